#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A tool that ends, is interrupted or is killed outright leaves no process and no folder behind, and takes no
# hugepages away from another one.
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

# Hugepages: 5 of 8 are free before, and whoever holds some keeps them whatever others do.
mkdir "$work/pages"
echo 8 >"$work/pages/nr_hugepages"
cat >"$work/holder" <<TOOL
set -euo pipefail
. "$tools/lib.sh"
arm_exit_commands
hugepages_dir=$work/pages hugepages_holders=$work/holders
hugepages_free() { echo \$((\$(cat "$work/pages/nr_hugepages") - 3)); }
case \$1 in
*x*)
    hugepages_hold_most "\${1%x*}" "\${1#*x}" 2>/dev/null
    echo "\$held" >"$work/\$2.holds"
    ;;
*) hugepages_hold "\$1" 2>/dev/null && echo held >"$work/\$2.holds" || echo none >"$work/\$2.holds" ;;
esac
while [ ! -e "$work/\$2.ends" ]; do sleep 0.02; done
TOOL

declare -A holder
hold() { # COUNT NAME WHAT: starts a holder, which says what it got
    bash "$work/holder" "$1" "$2" &
    holder[$2]=$!
    await 10 [ -s "$work/$2.holds" ] || fail "holder $2 did not start"
    [ "$(cat "$work/$2.holds")" = "$3" ] || fail "holder $2: $(cat "$work/$2.holds") of $1 pages"
}
let_go() {
    touch "$work/$1.ends"
    wait "${holder[$1]}" || fail "holder $1 failed"
}
pages_are() { [ "$(cat "$work/pages/nr_hugepages")" = "$1" ] || fail "$2: $(cat "$work/pages/nr_hugepages") pages, not $1"; }

hold 4 first held
pages_are 8 "enough were free"
hold 3 second held
pages_are 10 "7 of 5 are wanted"
let_go first
pages_are 8 "3 of 5 are wanted"
hold 10 third held
pages_are 16 "13 of 5 are wanted"
let_go second
pages_are 13 "10 of 5 are wanted"
kill -KILL "${holder[third]}"
wait "${holder[third]}" 2>/dev/null || true
hold 100000000 greedy none
let_go greedy
pages_are 8 "no one is left, and one was killed"
# Half of the memory that is there is enough for two of these, but not for three.
most=$(bash -c ". '$tools/lib.sh'; memory_available_mb")
hold "3x$((most / 10))" several 2
let_go several
pages_are 8 "several let go"
hold "3x100000000" too_many 0
let_go too_many
pages_are 8 "nothing was held"
hold 6 last held
pages_are 9 "6 of 5 are wanted"
kill -TERM "${holder[last]}"
wait "${holder[last]}" 2>/dev/null || true
pages_are 8 "the last one was ended by a signal"
hold 2 content held
echo 20 >"$work/pages/nr_hugepages"
let_go content
pages_are 20 "it had asked for none"
