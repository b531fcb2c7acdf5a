#!/usr/bin/env bash
# The capture package's tests, with the attndiff program given.
#   scripts/attndiff_capture/run_tests.sh ATTNDIFF [PYTHON]
# PYTHON has torch, h5py, numpy and safetensors; by default $ATTNDIFF_PYTHON, else the environment that scripts/setup.sh
# installs. Without one: exit 77, which CTest counts as skipped; in CI (CI=true) that is a failure.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ATTNDIFF_BINARY=$(realpath "${1:?the attndiff program}")
python=${2:-${ATTNDIFF_PYTHON:-$here/../../build/python/bin/python}}
export ATTNDIFF_BINARY PYTHONPATH=$here PYTHONDONTWRITEBYTECODE=1
# The models here are tiny, and threads cost them more than they give.
export OMP_NUM_THREADS=1

if ! "$python" -c 'import torch, h5py, numpy, safetensors.torch'; then
  echo "$python is no Python with torch, h5py, numpy and safetensors; scripts/setup.sh installs one" >&2
  [[ ${CI-} != true ]] || exit 1
  exit 77
fi
cd "$here/tests"
exec "$python" -m unittest discover --verbose
