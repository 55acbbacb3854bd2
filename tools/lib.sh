# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# What the tools share: messages, child processes that end with us, hugepages. Sourced, never run.

# The tools work from any folder and for any caller's PATH: DPDK's and meson's Python is Debian's
# own, which a version manager's shim may shadow.
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
deps=$root/.deps
sdk=$deps/dpdk-sdk
python=/usr/bin/python3
PATH=/usr/bin:/usr/sbin:/sbin:/bin:$PATH
export root deps sdk python PATH

note() { printf '%s\n' "$*" >&2; }

# die MESSAGE [COMMAND]: one line that says what is wrong, and the command that mends it.
die() {
    note "${0##*/}: $1${2:+; run: $2}"
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }
is_root() { [ "$(id -u)" -eq 0 ]; }

# usage: the comment block at the top of the calling tool, below the SPDX line, is its help text.
usage() { sed -n '/^# SPDX/d; 2,/^[^#]/ { s/^# \{0,1\}//p }' "$0"; }

version() { echo "${0##*/} (ntbmsg) $(cat "$root/VERSION")"; }

# ------------------------------------------------------------------------------- clean-up at exit
# The commands registered here run once, last first, whether the tool ends, fails or is killed: once what
# run() has started has ended, as it may write into what they remove.
exit_commands=()

at_exit() { exit_commands+=("$1"); }

run_exit_commands() {
    local status=$? i
    trap - EXIT
    trap '' HUP INT TERM
    end_child
    for ((i = ${#exit_commands[@]} - 1; i >= 0; i--)); do
        eval "${exit_commands[i]}" || true
    done
    exit "$status"
}

arm_exit_commands() {
    trap run_exit_commands EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
}

# scratch_folder: sets $scratch to a folder that is removed at exit.
scratch=
scratch_folder() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/ntbmsg-${0##*/}.XXXXXX")
    at_exit "rm -rf '$scratch'"
}

# apt_private FOLDER COMMAND...: apt-get with source list, lists and caches in FOLDER alone.
apt_private() {
    local folder=$1
    shift
    apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$folder/sources" \
        -o Dir::State::lists="$folder/lists" -o Dir::Cache="$folder/cache" \
        -o APT::Sandbox::User="$(id -un)" -o Acquire::Retries=3 "$@" </dev/null
}

# --------------------------------------------------------------------------------- child processes
# run SECONDS COMMAND...: in a session of its own, so that its whole tree can be ended, and in the
# background, because bash runs a trap only when no foreground child keeps it waiting. The death
# signal covers the case that no trap can: this shell killed outright. Descriptor 9 is the tool's
# lock, which must not outlive it in a child.
child=
run() {
    local seconds=$1 status=0
    shift
    setsid setpriv --pdeathsig TERM timeout --kill-after=10 "$seconds" "$@" </dev/null 9>&- &
    child=$!
    wait "$child" || status=$?
    child=
    return "$status"
}

# `timeout` hands the signal on to its group, and kills it if that is not heeded: the wait is bounded.
end_child() {
    [ -n "$child" ] || return 0
    kill -TERM -- "-$child" 2>/dev/null || return 0
    wait "$child" || true
    kill -KILL -- "-$child" 2>/dev/null || true
}

# ----------------------------------------------------------------------------------- hugepages (2 MB)
hugepages_dir=/sys/kernel/mm/hugepages/hugepages-2048kB

hugepages_free() { cat "$hugepages_dir/free_hugepages" 2>/dev/null || echo 0; }

memory_available_mb() { awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo; }

# Several tools may run at a time, in any checkout: each leaves its number here, under the lock, and the
# machine's own numbers, total and free, lie beside them in `before` from the first one on. `raised`: there
# is something to give back.
hugepages_holders=/run/ntbmsg-hugepages

hugepages_locked() {
    local lock status=0
    mkdir -p "$hugepages_holders"
    exec {lock}>"$hugepages_holders/lock"
    if ! flock -w 60 "$lock" || ! "$@"; then
        status=1
    fi
    exec {lock}>&-
    return "$status"
}

# hugepages_wanted: sets $wanted to what all holders that live want together.
hugepages_wanted() {
    local holder
    wanted=0
    for holder in "$hugepages_holders"/[0-9]*; do
        [ -e "$holder" ] || continue
        if kill -0 "${holder##*/}" 2>/dev/null; then
            wanted=$((wanted + $(cat "$holder")))
        else
            rm -f "$holder" # killed before it could
        fi
    done
}

hugepages_take() {
    local count=$1 nr=$hugepages_dir/nr_hugepages wanted total free now target
    rm -f "$hugepages_holders/$$" # it asks anew
    hugepages_wanted
    now=$(cat "$nr")
    [ -e "$hugepages_holders/before" ] || echo "$now $(hugepages_free)" >"$hugepages_holders/before"
    read -r total free <"$hugepages_holders/before"
    target=$((total + (wanted + count > free ? wanted + count - free : 0)))
    [ $((4 * (target - now))) -lt "$(memory_available_mb)" ] || return 1
    if [ "$target" -gt "$now" ]; then
        touch "$hugepages_holders/raised"
        echo "$target" >"$nr"
    fi
    [ "$(cat "$nr")" -ge "$target" ] || return 1
    echo "$count" >"$hugepages_holders/$$"
    [ "$target" -le "$now" ] || note "2 MB hugepages: $((target - now)) more for this run, given back at its end"
}

# The last one puts the machine's own number back; before, pages that others want stay.
hugepages_give() {
    local nr=$hugepages_dir/nr_hugepages wanted total free target
    rm -f "$hugepages_holders/$$"
    [ -e "$hugepages_holders/before" ] || return 0
    hugepages_wanted
    read -r total free <"$hugepages_holders/before"
    target=$((total + (wanted > free ? wanted - free : 0)))
    [ ! -e "$hugepages_holders/raised" ] || [ "$target" -ge "$(cat "$nr")" ] || echo "$target" >"$nr"
    [ "$wanted" -gt 0 ] || rm -f "$hugepages_holders/before" "$hugepages_holders/raised"
}

# hugepages_hold COUNT: true if COUNT pages are free for this tool, after asking the kernel for more
# when we may and they take no more than half of the memory that is available. They are given back
# at exit, or at once if it was in vain; the caller takes the no-huge path on false.
hugepages_hold() {
    if [ ! -w "$hugepages_dir/nr_hugepages" ]; then
        [ "$(hugepages_free)" -ge "$1" ]
        return
    fi
    at_exit "hugepages_locked hugepages_give"
    hugepages_locked hugepages_take "$1" && return 0
    hugepages_locked hugepages_give
    return 1
}

# hugepages_hold_most COUNT EACH: holds EACH pages for each of COUNT users, or of as many fewer as can be;
# sets $held to how many, which may be 0.
hugepages_hold_most() {
    held=$1
    while [ "$held" -gt 0 ] && ! hugepages_hold $((held * $2)); do
        held=$((held - 1))
    done
}
