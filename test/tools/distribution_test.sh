#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# tools/test --in says in one line why it cannot be, and tools name their version.
#
#   distribution_test.sh TOOLS VERSION
set -euo pipefail
tools=$(cd "$1" && pwd)

fail() { echo "distribution_test: $*" >&2; exit 1; }

for tool in setup test lint demo plx-doctor; do
    said=$("$tools/$tool" --version)
    [ "$said" = "$tool (ntbmsg) $2" ] || fail "$tool --version: $said"
done

unprivileged=()
[ "$(id -u)" -ne 0 ] || unprivileged=(setpriv --reuid 65534 --clear-groups)
for distribution in debian12 debian13 ubuntu24.04; do
    status=0
    said=$("${unprivileged[@]}" "$tools/test" --in "$distribution" --only none 2>&1) || status=$?
    [ "$status" -eq 77 ] || fail "--in $distribution without root: status $status: $said"
    [ "$said" = "0 passed, 0 failed, 1 skipped: tools/test --in $distribution: it takes root" ] ||
        fail "--in $distribution without root: $said"
done

# The whole of a name, and no more.
for distribution in debian99 debian1 '.*' 'ubuntu24.04 x'; do
    said=$("${unprivileged[@]}" "$tools/test" --in "$distribution" 2>&1) && fail "--in $distribution was accepted"
    [[ $said == *"$distribution is none of debian12, debian13, ubuntu24.04"* ]] || fail "--in $distribution: $said"
done

# Interrupted, it leaves nothing of a root, though what runs in there still writes when it is asked to end.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/tool" <<'TOOL'
set -euo pipefail
. "$1/lib.sh"
. "$1/distribution_root.sh"
arm_exit_commands
mkdir "$2/root"
at_exit "remove_root '$2/root'"
# shellcheck disable=SC2016 # expanded in there
run 60 bash -c 'trap "for i in {1..20}; do mkdir -p $1/root; touch $1/root/\$i; sleep 0.01; done; exit" TERM
                echo >"$1/ready"; while :; do sleep 0.01; done' it "$2"
TOOL
mkfifo "$folder/ready"
bash "$folder/tool" "$tools" "$folder" &
read -r <"$folder/ready"
kill -TERM $!
wait $! || true
[ ! -e "$folder/root" ] || fail "an interrupted run left $(find "$folder/root")"
