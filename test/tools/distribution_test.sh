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
status=0
said=$("${unprivileged[@]}" "$tools/test" --in debian13 --only none 2>&1) || status=$?
[ "$status" -eq 77 ] || fail "--in without root: status $status: $said"
[ "$said" = '0 passed, 0 failed, 1 skipped: tools/test --in debian13: it takes root' ] || fail "--in without root: $said"

said=$("${unprivileged[@]}" "$tools/test" --in debian99 2>&1) && fail "--in debian99 was accepted"
[[ $said == *"debian99 is none of debian12, debian13"* ]] || fail "--in debian99: $said"
