#!/usr/bin/env bash
# The whole gate on a GPU machine, from an installed folder: GPU tests, every bundled fixture and generated preset, cpu
# against cuda in both modes and cuda against recorded, known faults as other kernels, the sanitizers. Prints a table
# last; exits 0 where every part did, else 1.
#   bin/gpu_gate.sh OUTPUT_FOLDER [PART...]      PART: tests fixtures released mutants sanitize cost (default: all)
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
out=${1:?the folder for reports}
shift
parts=("$@")
((${#parts[@]} > 0)) || parts=(tests fixtures released mutants sanitize cost)
mkdir -p "$out"
out=$(cd "$out" && pwd)
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
attndiff=$here/bin/attndiff
# Reports name fixtures by their paths: these are the same on every machine.
cd "$made" || exit 1
ln -s "$here/share/attndiff/fixtures" fixtures
lines=()
exact=()
costs=()
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
  lines+=("$(printf '%-34s exit %d  %4d s  %s' "$name" "$status" $((SECONDS - start)) "$(grep -E 'comparisons of|killed at their stage|PASSED|ERROR SUMMARY|RACECHECK SUMMARY' "$out/$name.log" | tail -n 1)")")
}

wanted() { [[ " ${parts[*]} " == *" $1 "* ]]; }

generate() {
  local preset
  for preset in "$@"; do
    "$attndiff" generate --preset "$preset" -o "$preset.h5" || exit
  done
}

# exact_idx REPORT: in how many rows two free-running implementations attend different rows, which a plain exact
# comparison of idx would call wrong; from the comparisons that the gate certified.
exact_idx() {
  awk -F'"' '
    $2 == "tokens" { gsub(/[^0-9]/, "", $3); tokens = $3 }
    $2 == "mode" { mode = $4 }
    $2 == "stage" { stage = $4 }
    $2 == "verdict" { verdict = $4 }
    $2 == "reason" && mode == "free" && stage == "idx" {
      rows += tokens
      if (verdict == "explained") { split($4, words, " "); differ += words[1] }
      else if (verdict != "pass") other++
    }
    END {
      plain = differ > 0 ? "fails" : "passes"
      gate = other > 0 ? "fails" : (differ > 0 ? "explains every one" : "passes")
      printf("%6d of %6d rows differ: a plain exact comparison %s, the gate %s\n", differ, rows, plain, gate)
    }' "$1"
}

# timed COMMAND...: runs it, then prints its wall time in seconds.
timed() {
  local start=$EPOCHREALTIME status=0
  "$@" || status=$?
  awk -v from="$start" -v to="$EPOCHREALTIME" 'BEGIN { printf("wall %.2f\n", to - from) }'
  return "$status"
}

# lockstep_cost REPORT WALL: what lockstep adds to the reference's own time, as the report's timings have it: the
# candidate's calls with their transfers, and judging them. Reading the fixture and starting the program come to every
# replay and are in the wall time only. Fails where it is more than 60 % of that.
lockstep_cost() {
  awk -F'"' -v wall="$2" '
    $2 == "mode" { mode = $4 }
    $2 == "seconds" { getline; gsub(/[^0-9.e-]/, ""); seconds[mode] += $0 }
    END {
      ours = seconds["reference"]; calls = seconds["lockstep"]; judging = seconds["lockstep judging"]
      cost = 100 * (calls + judging) / ours
      printf("reference %.2f s, candidate %.2f s, judging %.2f s: %.0f %% over the reference%s; wall %.2f s\n",
             ours, calls, judging, cost, cost <= 60 ? "" : ", TOO MUCH: it may be 60 %", wall)
      exit !(cost <= 60)
    }' "$1"
}

if wanted tests; then
  part kernels_test "$here/bin/kernels_test"
  part device_test "$here/bin/device_test"
  costs+=("$(grep '^production plan' "$out/device_test.log")")
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
      exact+=("$(printf '%-34s %s' "idx of released-$kind-$form" "$(exact_idx "$out/released-$kind-$form.json")")")
    done
  done
fi
if wanted mutants; then
  part mutants timeout 200 "$attndiff" mutants --device cuda --json "$out/mutants.json"
  part mutants-released timeout 240 "$attndiff" mutants --device cuda --released --json "$out/mutants-released.json"
  sed -s -n '/^mutant  /,$p' "$out/mutants.log" "$out/mutants-released.log"
fi
if wanted sanitize; then
  generate micro
  part poison env ATTNDIFF_CUDA_POISON=1 "$attndiff" replay --reference cpu --candidate cuda micro.h5 fixtures
  for tool in memcheck racecheck initcheck; do
    # cuBLASLt stores through the bulk copy engine, which initcheck does not see: its outputs are cleared first.
    part "sanitize-$tool" env ATTNDIFF_CUDA_CLEAR_PRODUCTS=1 compute-sanitizer --tool "$tool" --error-exitcode 9 \
      "$attndiff" replay --in-process --reference cpu --candidate cuda micro.h5
  done
fi
if wanted cost; then
  for preset in released-window-2048 released-kv2-2048 released-cand1-2048 released-reader1-2048; do
    generate "$preset"
    part "cost-$preset" timed "$attndiff" replay --mode lockstep --reference cpu --candidate cuda --json "$out/cost-$preset.json" "$preset.h5"
    cost=$(lockstep_cost "$out/cost-$preset.json" "$(sed -n 's/^wall //p' "$out/cost-$preset.log")") || worst=1
    costs+=("$(printf '%-34s %s' "lockstep of $preset" "$cost")")
  done
fi

{
  "$attndiff" doctor
  nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
} | tee "$out/doctor.txt"
printf '%s\n' "${lines[@]}" "${exact[@]}" "${costs[@]}" | tee "$out/summary.txt"
exit "$worst"
