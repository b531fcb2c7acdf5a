# shellcheck shell=bash
# Sourced by the scripts beside it: strict mode, the repository root as working folder, timed steps, one way to build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A second build of the same sources costs little where ccache happens to be installed.
if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER="${CMAKE_CXX_COMPILER_LAUNCHER-ccache}"
  export CMAKE_CUDA_COMPILER_LAUNCHER="${CMAKE_CUDA_COMPILER_LAUNCHER-ccache}"
fi

# say TEXT...: progress, on stderr.
say() { printf '==> %s\n' "$*" >&2; }

# step TITLE COMMAND...: runs a command, prints how long it took, ends the script with its exit status when it fails.
step() {
  local title=$1 start=$SECONDS status=0
  shift
  say "$title"
  "$@" || status=$?
  if ((status != 0)); then
    say "$title: FAILED with exit status $status after $((SECONDS - start)) s"
    exit "$status"
  fi
  say "$title: $((SECONDS - start)) s"
}

# build PRESET [TARGET...]: configures and builds, by default everything; output goes to stderr, so that stdout holds
# results only.
build() {
  local preset=$1
  shift
  cmake --preset "$preset" >&2 && cmake --build --preset "$preset" --parallel "$(nproc)" ${1+--target "$@"} >&2
}

# replay PRESET ARGUMENTS...: the bundled fixtures, recorded from torch, through the CPU reference.
replay() {
  local preset=$1
  shift
  "build/$preset/bin/attndiff" replay --reference cpu --candidate recorded "$@" fixtures/
}
