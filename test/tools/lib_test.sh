#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A tool that ends, is interrupted or is killed outright leaves no process and no folder behind.
#
#   lib_test.sh TOOLS    the folder of lib.sh
set -euo pipefail
tools=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "lib_test: $*" >&2; exit 1; }

# await SECONDS CONDITION...: true as soon as the condition holds.
await() {
    local tries=$(($1 * 20))
    shift
    while ! "$@" 2>/dev/null; do
        ((tries-- > 0)) || return 1
        sleep 0.05
    done
}

# Dead counts as gone: when an orphan is reaped is not ours to decide.
gone() { ! grep -qE '^State:[[:space:]]+[^ZX[:space:]]' "/proc/$1/status"; }

# A tool whose child has a child of its own; both write down who they are, and stay.
cat >"$work/tool" <<TOOL
set -euo pipefail
. "$tools/lib.sh"
arm_exit_commands
at_exit end_child
at_exit 'echo cleaned >> "$work/cleaned"'
scratch_folder
echo "\$scratch" > "$work/scratch"
run 60 bash -c 'sleep 60 & echo \$! > "$work/grandchild.new"
    mv "$work/grandchild.new" "$work/grandchild"; wait'
TOOL

start_tool() {
    rm -f "$work/grandchild" "$work/cleaned"
    bash "$work/tool" &
    tool=$!
    await 10 [ -e "$work/grandchild" ] || fail "the tool did not start its child"
    grandchild=$(cat "$work/grandchild")
}

for signal in HUP TERM; do
    start_tool
    kill -"$signal" "$tool"
    wait "$tool" && fail "$signal: the tool ended as if nothing had happened"
    await 10 gone "$grandchild" || fail "$signal: the child's child is still there"
    [ "$(cat "$work/cleaned")" = cleaned ] || fail "$signal: not cleaned up exactly once"
    [ ! -e "$(cat "$work/scratch")" ] || fail "$signal: the scratch folder is still there"
done

start_tool
kill -KILL "$tool"
wait "$tool" 2>/dev/null || true
await 10 gone "$grandchild" || fail "KILL: the child's child is still there"
rm -rf "$(cat "$work/scratch")"
