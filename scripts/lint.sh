#!/usr/bin/env bash
# The project's own sources against .clang-format and .clang-tidy; changes nothing.
#   scripts/lint.sh format
#   scripts/lint.sh tidy BUILD_FOLDER          all sources but tests
#   scripts/lint.sh tidy-tests BUILD_FOLDER    the tests
# BUILD_FOLDER has compile_commands.json and is built, so that generated headers are there.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

folders=(reference harness device kernels reports fuzz)

format() {
  find "${folders[@]}" \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 --no-run-if-empty clang-format-14 --dry-run --Werror
}

own="^$PWD/($(IFS='|' && echo "${folders[*]}"))/"

# tidy BUILD_FOLDER REGEX OPTION...: clang-tidy over the sources whose path matches; prints only what it complains of.
tidy() {
  local build=$1 regex=$2 log=$1/clang-tidy.log
  shift 2
  # The compilation database is g++'s, whose warning options clang may not know.
  if ! run-clang-tidy-14 -p "$build" -j "$(nproc)" -quiet -extra-arg=-Wno-unknown-warning-option "$@" "$regex" >"$log" 2>&1; then
    sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -vE '^[^ ]*clang-tidy|generated\.$|^$' >&2
    return 1
  fi
  if ! grep -q 'clang-tidy.* -quiet' "$log"; then
    say "clang-tidy: no source in $build/compile_commands.json matches $regex"
    return 1
  fi
}

case "${1-}" in
  format) format ;;
  tidy) tidy "${2:?tidy needs a build folder}" "$own.*(?<!_test)\.cpp\$" ;;
  # The path-sensitive analyser takes more than half of the time on GoogleTest's macros, and looks for leaks and null
  # dereferences, which the sanitizer run of the same tests observes.
  tidy-tests) tidy "${2:?tidy-tests needs a build folder}" "$own.*_test\.cpp\$" '-checks=-clang-analyzer-*' ;;
  *)
    echo "usage: scripts/lint.sh format | tidy BUILD_FOLDER | tidy-tests BUILD_FOLDER" >&2
    exit 2
    ;;
esac
