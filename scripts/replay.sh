#!/usr/bin/env bash
# Installs what is missing, builds, replays the bundled fixtures and prints the table. Exits as `attndiff replay` does.
#   scripts/replay.sh [--preset NAME] [ARGUMENT of attndiff replay...]
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

preset=release
if [[ ${1-} == --preset ]]; then
  preset=${2:?--preset needs a name}
  shift 2
fi

step "set-up" scripts/setup.sh
step "build ($preset)" build "$preset" attndiff
replay "$preset" "$@"
