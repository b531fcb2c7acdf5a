#!/usr/bin/env bash
# Installs what is missing, builds, replays the bundled fixtures and runs every test: under AddressSanitizer and
# UndefinedBehaviorSanitizer, and those about numerics optimised as well. Stops at the first step that fails, with its
# exit status.
#   scripts/test.sh [--all] [--without-torch] [--preset NAME] [ARGUMENT of the last ctest...]
#   CI=true in the environment: formatting and a minute of fuzzing as well
#   --all: also clang-tidy, which takes as long as everything else together, and every test optimised
#   --without-torch: do not fetch torch (half a gigabyte); the capture package's tests are then skipped
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

all=false
checks=false
torch=true
[[ ${CI-} != true ]] || checks=true
preset=release
while (($# > 0)); do
  case "$1" in
    --all) all=true checks=true ;;
    --without-torch) torch=false ;;
    --preset)
      preset=${2:?--preset needs a name}
      shift
      ;;
    *) break ;;
  esac
  shift
done

run_ctest() {
  local of_preset=$1
  shift
  ctest --preset "$of_preset" --no-tests=error --parallel "$(nproc)" "$@"
}

# All but the catalogue of mutants and the random fixtures: these are about verdicts, run the same code again thousands of
# times, and come in the last step.
sanitized_tests() {
  local log=$PWD/build/asan/ctest.log
  export LSAN_OPTIONS=suppressions=$PWD/scripts/lsan.supp:print_suppressions=0
  if ! UBSAN_OPTIONS=print_stacktrace=1 run_ctest asan --exclude-regex '^(Mutants|Random)/' --quiet --output-log "$log"; then
    grep -vE '^ +Start +[0-9]+:| Passed ' "$log" >&2
    return 1
  fi
  grep 'tests passed' "$log" >&2
}

optional=(--tests)
! $checks || optional+=(--checks)
step "set-up" scripts/setup.sh "${optional[@]}"
if $torch; then
  environment=${XDG_CACHE_HOME:-$HOME/.cache}/attndiff/python
  step "set-up (torch)" scripts/attndiff_capture/test_environment.sh "$environment"
  export ATTNDIFF_PYTHON=$environment/bin/python
fi
! $checks || step "format" scripts/lint.sh format
# Before the long builds, since its own, of other sources together, fails for reasons of its own. The same inputs each
# time: a change is not to fail for what a fuzzer happens to find that day.
! $checks || FUZZ_SEED=1 step "fuzz" scripts/fuzz.sh 60
step "build (asan)" build asan
step "tests (asan)" sanitized_tests
if $all; then
  step "build ($preset)" build "$preset"
  step "clang-tidy" scripts/lint.sh tidy "build/$preset"
  step "clang-tidy (tests)" scripts/lint.sh tidy-tests "build/$preset"
else
  step "build ($preset)" build "$preset" attndiff numerics_tests
fi
step "replay" replay "$preset"
say "tests ($preset)"
if $all; then
  run_ctest "$preset" "$@"
else
  run_ctest "$preset" --label-regex numerics "$@"
fi
