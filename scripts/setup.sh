#!/usr/bin/env bash
# Installs what building attndiff needs and this Debian 12 machine lacks. Does nothing where all is there.
#   scripts/setup.sh [--tests] [--checks]
#     --tests: also what the tests open files and reports with: h5py, h5dump, Chromium, readers of JUnit and Markdown
#     --checks: also the formatter, the linter and the fuzzer
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

packages=(
  g++ cmake ninja-build
  libeigen3-dev libhdf5-dev libcli11-dev libfmt-dev nlohmann-json3-dev libtomlplusplus-dev
  libgtest-dev libgmock-dev libbenchmark-dev libzip-dev zlib1g-dev
)
for option; do
  case "$option" in
    --tests)
      packages+=(
        python3 python3-venv binutils python3-h5py hdf5-tools
        chromium chromium-driver fonts-dejavu-core python3-selenium python3-jsonschema
        python3-junitparser python3-lxml cmark-gfm
      )
      ;;
    --checks) packages+=(clang-format-14 clang-tidy-14 clang-14 libclang-rt-14-dev llvm-14) ;;
    *)
      echo "usage: scripts/setup.sh [--tests] [--checks]" >&2
      exit 2
      ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  say "no apt-get here, so nothing is installed; attndiff needs the counterparts of: ${packages[*]}"
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [[ $state == installed ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  say "set-up: all ${#packages[@]} packages are installed"
  exit 0
fi

as_root=()
if ((EUID != 0)); then
  if ! command -v sudo >/dev/null; then
    say "these packages are missing, and installing them needs root or sudo: ${missing[*]}"
    exit 1
  fi
  as_root=(sudo)
fi
say "installing: ${missing[*]}"
"${as_root[@]}" apt-get update -qq >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
