#!/usr/bin/env bash
# The whole gate on a GPU machine, from an installed folder: GPU tests, every bundled fixture and generated preset, cpu
# against cuda in both modes and cuda against recorded, the sanitizers. Prints a table last; exits 0 where every part did, else 1.
#   bin/gpu_gate.sh OUTPUT_FOLDER [PART...]      PART: tests fixtures released sanitize (default: all)
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:?the folder for reports}
shift
parts=("$@")
((${#parts[@]} > 0)) || parts=(tests fixtures released sanitize)
mkdir -p "$out"
out=$(cd "$out" && pwd)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
attndiff=$here/bin/attndiff
# Reports name fixtures by their paths: these are the same on every machine.
cd "$made" || exit 1
ln -s "$here/share/attndiff/fixtures" fixtures
lines=()
worst=0

# part NAME COMMAND...: runs it, keeps its output, notes how it ended.
part() {
  local name=$1 start=$SECONDS status=0
  shift
  "$@" >"$out/$name.log" 2>&1 || status=$?
  if grep -q '\[  SKIPPED \]' "$out/$name.log"; then
    status=3 # on a machine without a usable GPU its tests skip, which is no pass here
  fi
  ((status == 0)) || worst=1
  ((status == 0)) || tail -n 25 "$out/$name.log"
  lines+=("$(printf '%-34s exit %d  %4d s  %s' "$name" "$status" $((SECONDS - start)) "$(grep -E 'comparisons of|PASSED|ERROR SUMMARY|RACECHECK SUMMARY' "$out/$name.log" | tail -n 1)")")
}

wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; }

generate() {
  local preset
  for preset in "$@"; do
    "$attndiff" generate --preset "$preset" -o "$preset.h5" || exit
  done
}

if wanted tests; then
  part kernels_test "$here/bin/kernels_test"
  part device_test "$here/bin/device_test"
fi
if wanted fixtures; then
  micro=(micro micro-own micro-4095 micro-4095-own micro-65535 micro-65535-own micro-e4m3 micro-ratio4 tiny tiny-resume mid)
  generate "${micro[@]}"
  micro_files=("${micro[@]/%/.h5}")
  part bundled-cpu-cuda "$attndiff" replay --reference cpu --candidate cuda --json "$out/bundled-cpu-cuda.json" fixtures
  part bundled-cuda-recorded "$attndiff" replay --reference cuda --candidate recorded --json "$out/bundled-cuda-recorded.json" fixtures
  part presets-cpu-cuda "$attndiff" replay --reference cpu --candidate cuda --json "$out/presets-cpu-cuda.json" "${micro_files[@]}"
fi
if wanted released; then
  for kind in window kv2 reader2 cand1 index1 reader1; do
    for form in 2048 40000; do
      generate "released-$kind-$form"
      part "released-$kind-$form" "$attndiff" replay --reference cpu --candidate cuda --json "$out/released-$kind-$form.json" "released-$kind-$form.h5"
    done
  done
fi
if wanted sanitize; then
  generate micro
  part poison env ATTNDIFF_CUDA_POISON=1 "$attndiff" replay --reference cpu --candidate cuda micro.h5 fixtures
  for tool in memcheck racecheck initcheck; do
    # cuBLASLt stores through the bulk copy engine, which initcheck does not see: its outputs are cleared first.
    part "sanitize-$tool" env ATTNDIFF_CUDA_CLEAR_PRODUCTS=1 compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$attndiff" replay --reference cpu --candidate cuda micro.h5
  done
fi

{
  "$attndiff" doctor
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
} | tee "$out/doctor.txt"
printf '%s\n' "${lines[@]}" | tee "$out/summary.txt"
exit "$worst"
