#!/usr/bin/env bash
# Installs what is missing, builds, replays the bundled fixtures and runs every test, first under AddressSanitizer and
# UndefinedBehaviorSanitizer, then optimised. Stops at the first step that fails, with its exit status.
#   scripts/test.sh [--all] [--preset NAME] [ARGUMENT of the last ctest...]
#   CI=true in the environment: formatting as well
#   --all: also clang-tidy, which takes as long as everything else together
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

all=false
checks=false
[[ ${CI-} != true ]] || checks=true
preset=release
while (($# > 0)); do
  case "$1" in
    --all) all=true checks=true ;;
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

# All but the catalogue of mutants: these are about verdicts, run the same code again 130 times, and come in the last step.
sanitized_tests() {
  local log=$PWD/build/asan/ctest.log
  export LSAN_OPTIONS=suppressions=$PWD/scripts/lsan.supp:print_suppressions=0
  if ! UBSAN_OPTIONS=print_stacktrace=1 run_ctest asan --exclude-regex '^Mutants/' --quiet --output-log "$log"; then
    grep -vE '^ +Start +[0-9]+:| Passed ' "$log" >&2
    return 1
  fi
  grep 'tests passed' "$log" >&2
}

if $checks; then
  step "set-up" scripts/setup.sh --checks
  step "format" scripts/lint.sh format
else
  step "set-up" scripts/setup.sh
fi
step "build (asan)" build asan
step "tests (asan)" sanitized_tests
step "build ($preset)" build "$preset"
if $all; then
  step "clang-tidy" scripts/lint.sh tidy "build/$preset"
  step "clang-tidy (tests)" scripts/lint.sh tidy-tests "build/$preset"
fi
step "replay" replay "$preset"
say "tests ($preset)"
run_ctest "$preset" "$@"
