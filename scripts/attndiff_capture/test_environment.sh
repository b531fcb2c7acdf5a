#!/usr/bin/env bash
# Makes a Python environment for the capture package's tests: torch for the CPU, h5py, numpy, safetensors.
#   scripts/attndiff_capture/test_environment.sh FOLDER      does nothing where FOLDER has one
# Needs python3 with venv, gcc and objdump. PyPI has torch for x86-64 only as a CUDA build, which is linked against 2 GB of
# libraries that nothing here calls. All but the small CUDA runtime are replaced by libraries of the same names whose
# functions trap: half a gigabyte is fetched instead of 2.7, and 1.4 are unpacked instead of 4.7.
set -euo pipefail
folder=${1:?the folder to make}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
works() { "$1/bin/python" -c 'import torch, h5py, numpy, safetensors.torch; torch.ones(2).bfloat16()' 2>/dev/null; }

if works "$folder"; then
  exit 0
fi
rm -rf "$folder"
mkdir -p "$(dirname "$folder")"
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps \
  torch==2.11.0 typing_extensions filelock fsspec sympy mpmath networkx jinja2 MarkupSafe numpy h5py safetensors
if [[ $(uname -m) == x86_64 ]]; then
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps nvidia-cuda-runtime==13.0.96
  "$folder/bin/python" "$here/stand_in_libraries.py"
fi
works "$folder" || {
  "$folder/bin/python" -c 'import torch, h5py, numpy, safetensors.torch'
  exit 1
}
