# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # root, deps and more are the caller's
# Another Debian release to build and test in: a root file system made by debootstrap. Sourced by
# tools/test after lib.sh.
#
# Everything that runs in it, debootstrap included, has mounts and process numbers of its own: with the
# first of these processes all others end and all mounts are gone, even if that one was killed.

debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# Download, packages, build and tests, in seconds.
debian_limits=(1200 7200)

# release_suite RELEASE: Debian's own name of it.
release_suite() {
    case "$1" in
    debian12) echo bookworm ;;
    debian13) echo trixie ;;
    *) return 1 ;;
    esac
}

# The archive that the machine itself uses, if that is one of Debian.
debian_mirror() {
    local uri
    # shellcheck disable=SC2016 # apt's own variable
    uri=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 -E '/debian/?$' || true)
    uri=${uri%/}
    echo "${uri:-http://deb.debian.org/debian}"
}

# debootstrap takes from the environment what apt has in its configuration.
take_proxy() {
    local proxy=
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [ -z "$proxy" ] || export http_proxy=${http_proxy-$proxy}
}

archive_answers() {
    run 60 /usr/lib/apt/apt-helper download-file "$1/dists/$2/InRelease" "$scratch/InRelease" >/dev/null 2>&1
}

# apart SECONDS COMMAND...: in namespaces of its own.
apart() { run "$1" unshare --mount --pid --fork --kill-child --propagation private "${@:2}"; }

# in_root SECONDS FOLDER COMMAND...: with the kernel's folders and, if there is one, the compiler cache.
in_root() {
    local seconds=$1 folder=$2 cache=${CCACHE_DIR:-$HOME/.cache/ccache}
    shift 2
    # shellcheck disable=SC2016 # expanded in there
    apart "$seconds" bash -euc '
        folder=$1 cache=$2
        shift 2
        mount -t proc proc "$folder/proc"
        mount --rbind /sys "$folder/sys"
        mount --rbind /dev "$folder/dev"
        if [ -d "$cache" ]; then
            mkdir -p "$folder/root/.cache/ccache"
            mount --bind "$cache" "$folder/root/.cache/ccache"
        fi
        exec chroot "$folder" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            NTBMSG_DPDK_SDK="${NTBMSG_DPDK_SDK:+/dpdk-sdk}" "$@"' in_root "$folder" "$cache" "$@"
}

# make_root FOLDER SUITE MIRROR
make_root() {
    local folder=$1
    # The marker says that the whole of it is there, should it be kept.
    [ ! -e "$folder/.made" ] || return 0
    rm -rf --one-file-system "$folder"
    mkdir -p "$folder"
    note "making a root file system of $2 from $3"
    logged "$scratch/debootstrap" apart "${debian_limits[0]}" \
        debootstrap --variant=minbase --keyring="$debian_keyring" "$2" "$folder" "$3" || return 1
    # It lives for an hour: nothing in it is worth waiting for the disk.
    echo force-unsafe-io >"$folder/etc/dpkg/dpkg.cfg.d/unsafe-io"
    apt-config dump | grep -E '^Acquire::(https?::|Check|Retries|Languages)' >"$folder/etc/apt/apt.conf.d/90host" || true
    touch "$folder/.made"
}

# The tree as git knows it, with what is not yet committed, and nothing that was built.
copy_tree() {
    local folder=$1/ntbmsg
    rm -rf "$folder"
    mkdir -p "$folder"
    git -C "$root" ls-files -coz --exclude-standard | while IFS= read -r -d '' file; do
        [ ! -e "$root/$file" ] || printf '%s\0' "$file"
    done | tar -C "$root" -c --null -T - -f - | tar -C "$folder" -xf - --no-same-owner
}

# The headers that an archive may lack.
copy_sdk() {
    local folder=$1
    [ -n "${NTBMSG_DPDK_SDK-}" ] || return 0
    export NTBMSG_DPDK_SDK
    rm -rf "$folder/dpdk-sdk"
    cp -rL "$NTBMSG_DPDK_SDK" "$folder/dpdk-sdk"
}

# why_no_root SUITE MIRROR: what keeps this machine from it, nothing if nothing does.
why_no_root() {
    if ! is_root; then
        echo "it takes root"
    elif ! have debootstrap; then
        echo "debootstrap is missing; run: apt-get install debootstrap"
    elif [ ! -e "$debian_keyring" ]; then
        echo "Debian's keys are missing; run: apt-get install debian-archive-keyring"
    elif ! unshare --mount --pid --fork --propagation private true 2>/dev/null; then
        echo "no mounts of one's own here"
    elif ! archive_answers "$2" "$1"; then
        echo "no answer from $2"
    fi
}

# test_in RELEASE KEEP ARGUMENT...: runs tools/test with these arguments in there.
test_in() {
    local release=$1 keep=$2 suite mirror why folder
    local packages=(ccache)
    shift 2
    suite=$(release_suite "$release") || die "$release is none of debian12, debian13" "tools/test --help"
    scratch_folder
    mirror=$(debian_mirror)
    take_proxy
    why=$(why_no_root "$suite" "$mirror")
    if [ -n "$why" ]; then
        echo "0 passed, 0 failed, 1 skipped: tools/test --in $release: $why"
        exit 77
    fi
    # For the tests in there: a tool that is killed with its namespace puts no number back.
    hugepages_hold "$test_hugepages" || true
    if $keep; then
        folder=${XDG_CACHE_HOME:-$HOME/.cache}/ntbmsg/$release
    else
        # Not in a memory file system: it takes some 2 GB.
        folder=$(mktemp -d "/var/tmp/ntbmsg-$release.XXXXXX")
        at_exit "rm -rf --one-file-system '$folder'"
    fi
    make_root "$folder" "$suite" "$mirror" || die "the root file system of $release could not be made"
    cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
    copy_tree "$folder"
    [[ " $* " != *" --clang "* ]] || packages+=(clang)
    logged "$scratch/packages" in_root "${debian_limits[0]}" "$folder" bash -euc \
        "apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends ${packages[*]}" ||
        die "the packages of $release could not be installed"
    copy_sdk "$folder"
    in_root "${debian_limits[1]}" "$folder" /ntbmsg/tools/test "$@"
}
