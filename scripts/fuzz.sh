#!/usr/bin/env bash
# Builds the fuzz targets and runs each from its corpus, with sanitizers and a limit on memory. Fails at the first input
# that crashes, hangs or breaks a reader's promise; it is then in the folder of findings.
#   scripts/fuzz.sh [SECONDS]        of all targets added up, default 60
#   FUZZ_BUILD=FOLDER                a build folder other than build/fuzz
#   FUZZ_SEED=N                      the same inputs again, as far as the time goes; by default others each time
# Standard output is the record of the run: what ran, for how long, what it covered, how much memory it took.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

seconds=${1:-60}
build=${FUZZ_BUILD:-build/fuzz}
findings=$build/findings
# Of a hundred seconds: readers of files that strangers send come first.
declare -A share=([fixture]=50 [fixture_bytes]=25 [toml]=17 [topk]=8)

compile() {
  cmake --preset fuzz -B "$build" >&2 && cmake --build "$build" --target fuzz --parallel "$(nproc)" >&2
}

provenance() {
  printf 'commit %s\n' "$(git describe --always --dirty --abbrev=40 --exclude '*' 2>/dev/null || echo unknown)"
  printf '%s, HDF5 %s, %s\n' "$(clang++-14 --version | head -n 1)" "$(dpkg-query -W -f '${Version}' libhdf5-dev)" \
    "$(uname -sm)"
  printf 'begun %s, %s seconds of all targets together, inputs up to 1024 MiB and 120 s each\n' "$(date -u +%FT%TZ)" "$seconds"
}

# run TARGET CORPUS OPTION...
run() {
  local target=$1 corpus=$2 limit=$((seconds * ${share[$1]} / 100)) status=0
  shift 2
  rm -rf "$build/corpus-$target"
  mkdir -p "$findings" "$build/corpus-$target"
  "$build/bin/fuzz_$target" -max_total_time="$limit" -rss_limit_mb=1024 -timeout=120 -print_final_stats=1 -seed="${FUZZ_SEED:-0}" \
    -artifact_prefix="$findings/$target-" "$@" "$build/corpus-$target" "$corpus" >"$build/$target.log" 2>&1 || status=$?
  grep -E '^#[0-9]+.*DONE|stat::(number_of_executed_units|peak_rss_mb)|SUMMARY' "$build/$target.log" |
    sed "s/^/$target: /"
  if ((status != 0)); then
    tail -n 60 "$build/$target.log"
    say "$target: FAILED; the input is in $findings"
    return 1
  fi
}

export LSAN_OPTIONS=suppressions=$PWD/scripts/lsan.supp:print_suppressions=0
export ASAN_OPTIONS=quarantine_size_mb=16:malloc_context_size=8:allocator_may_return_null=1
export UBSAN_OPTIONS=print_stacktrace=1

step "build (fuzz)" compile
provenance
# HDF5 keeps memory of files it refuses, so that a search for leaks behind every input would find only its own; leaks
# are looked for once, at the end.
# One target fuzzes on one core: the one with half of the time runs beside the others.
step "fuzz fixture" run fixture fuzz/corpus/fixture -max_len=100000 -detect_leaks=0 >"$build/fixture.record" &
beside=$!
trap 'kill "$beside" 2>/dev/null || true' EXIT
step "fuzz fixture_bytes" run fixture_bytes fuzz/corpus/fixture -max_len=100000 -detect_leaks=0 -dict=fuzz/fixture.dict
step "fuzz toml" run toml fuzz/corpus/toml -max_len=8192 -dict=fuzz/toml.dict
step "fuzz topk" run topk fuzz/corpus/topk -max_len=8192
status=0
wait "$beside" || status=$?
trap - EXIT
cat "$build/fixture.record"
((status == 0)) || exit "$status"
printf 'ended %s: no finding\n' "$(date -u +%FT%TZ)"
