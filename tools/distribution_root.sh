# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2154 # root, deps and more are the caller's
# Another distribution to build and test in: a root file system made by debootstrap. Sourced by tools/test
# after lib.sh.
#
# Everything that runs in it, debootstrap included, has mounts and process numbers of its own: with the
# first of these processes all others end and all mounts are gone, even if that one was killed.

# Download, packages, build and tests, in seconds.
root_limits=(1200 7200)

# Name, the archive's name of it, archive, and components.
distributions() {
    cat <<'LIST'
debian12     bookworm  debian  main
debian13     trixie    debian  main
ubuntu24.04  noble     ubuntu  main,universe
LIST
}

# Archive, where it is, and the package of its keys.
archives() {
    cat <<'LIST'
debian  http://deb.debian.org/debian      debian-archive-keyring
ubuntu  http://archive.ubuntu.com/ubuntu  ubuntu-keyring
LIST
}

# find_distribution NAME: sets $suite, $archive, $components, $mirror, $keyring_package and $keyring.
find_distribution() {
    local name=$1 found
    read -r _ suite archive components < <(distributions | awk -v name="$name" '$1 == name') ||
        die "$name is none of $(distributions | awk '{ printf "%s%s", (NR > 1 ? ", " : ""), $1 }')" "tools/test --help"
    read -r _ mirror keyring_package < <(archives | awk -v name="$archive" '$1 == name')
    keyring=/usr/share/keyrings/$archive-archive-keyring.gpg
    # The mirror that the machine itself uses, if it has one of this archive.
    # shellcheck disable=SC2016 # apt's own variable
    found=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2>/dev/null | grep -m 1 -E "/$archive/?\$" || true)
    mirror=${found:-$mirror}
    mirror=${mirror%/}
}

# debootstrap takes from the environment what apt has in its configuration.
take_proxy() {
    local proxy=
    eval "$(apt-config shell proxy Acquire::http::Proxy)"
    [ -z "$proxy" ] || export http_proxy=${http_proxy-$proxy}
}

# have_keyring: the archive's keys, as the machine has them; else, for a Debian 12, which has no package of
# Ubuntu's, from Debian 13's package, verified by Debian's keys. No archive is used unverified.
have_keyring() {
    local debian_keys=/usr/share/keyrings/debian-archive-keyring.gpg from=$scratch/keys
    [ ! -e "$keyring" ] || return 0
    [ -e "$debian_keys" ] || return 1
    mkdir -p "$from"/{sources,lists/partial,cache/archives/partial}
    (find_distribution debian13
     echo "deb [signed-by=$debian_keys] $mirror $suite $components") >"$from/sources/debian.list"
    (apt_private "$from" update && cd "$from" && apt_private "$from" download "$keyring_package") >"$from/log" 2>&1 || return 1
    dpkg -x "$from/$keyring_package"_*.deb "$from/root" || return 1
    keyring=$from/root$keyring
    [ -s "$keyring" ]
}

archive_answers() {
    run 60 /usr/lib/apt/apt-helper download-file "$mirror/dists/$suite/InRelease" "$scratch/InRelease" >/dev/null 2>&1
}

# apart SECONDS COMMAND...: in namespaces of its own.
apart() { run "$1" unshare --mount --pid --fork --kill-child --propagation private "${@:2}"; }

# in_root SECONDS FOLDER COMMAND...: with the kernel's folders and, if there is one, the compiler cache. Its root is a
# mount of its own: tests in there make namespaces, which changes the propagation of "/". The number of hugepages can
# only be read: in there it is not known who else on the machine needs some.
in_root() {
    local seconds=$1 folder=$2 cache=${CCACHE_DIR:-$HOME/.cache/ccache}
    shift 2
    # shellcheck disable=SC2016 # expanded in there
    apart "$seconds" bash -euc '
        folder=$1 cache=$2
        shift 2
        mount --bind "$folder" "$folder"
        mount -t proc proc "$folder/proc"
        mount --rbind /sys "$folder/sys"
        pages=$folder/sys/kernel/mm/hugepages
        if [ -d "$pages" ]; then
            mount --bind "$pages" "$pages"
            mount -o remount,bind,ro "$pages"
        fi
        mount --rbind /dev "$folder/dev"
        # What programs leave in shared memory ends with it.
        if [ -d "$folder/dev/shm" ]; then
            mount -t tmpfs -o mode=1777 shm "$folder/dev/shm"
        fi
        if [ -d "$cache" ]; then
            mkdir -p "$folder/root/.cache/ccache"
            mount --bind "$cache" "$folder/root/.cache/ccache"
        fi
        exec chroot "$folder" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            NTBMSG_DPDK_SDK="${NTBMSG_DPDK_SDK:+/dpdk-sdk}" "$@"' in_root "$folder" "$cache" "$@"
}

# is_made FOLDER: the marker says that the whole of it is there, should it be kept.
is_made() { [ -e "$1/.made" ]; }

# make_root FOLDER: of the distribution that was found.
make_root() {
    local folder=$1 script=()
    rm -rf --one-file-system "$folder"
    mkdir -p "$folder"
    note "making a root file system of $suite from $mirror"
    # All of Ubuntu's releases are made by the script of one; Debian's debootstrap may not know of the newest.
    [ -e "/usr/share/debootstrap/scripts/$suite" ] || [ "$archive" != ubuntu ] || script=(/usr/share/debootstrap/scripts/gutsy)
    logged "$scratch/debootstrap" apart "${root_limits[0]}" debootstrap --variant=minbase --force-check-gpg \
        --keyring="$keyring" --components="$components" "$suite" "$folder" "$mirror" "${script[@]}" || return 1
    # It lives for an hour: nothing in it is worth waiting for the disk.
    echo force-unsafe-io >"$folder/etc/dpkg/dpkg.cfg.d/unsafe-io"
    apt-config dump | grep -E '^Acquire::(https?::|Check|Retries|Languages)' >"$folder/etc/apt/apt.conf.d/90host" || true
    touch "$folder/.made"
}

# remove_root FOLDER: the last processes of its namespace end a moment after the one that is waited for, and may write
# until then.
remove_root() {
    local i
    for ((i = 0; i < 100; i++)); do
        rm -rf --one-file-system "$1" 2>/dev/null && return
        sleep 0.1
    done
    rm -rf --one-file-system "$1"
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

# why_no_root FOLDER: what keeps this machine from it, nothing if nothing does. May set $keyring.
why_no_root() {
    why=
    if ! is_root; then
        why="it takes root"
    elif ! have debootstrap; then
        why="debootstrap is missing; run: apt-get install debootstrap"
    elif ! unshare --mount --pid --fork --propagation private true 2>/dev/null; then
        why="no mounts of one's own here"
    elif ! archive_answers; then
        why="no answer from $mirror"
    elif ! is_made "$1" && ! have_keyring; then
        why="the keys of $archive's archive are missing; run: apt-get install $keyring_package"
    fi
}

# test_in DISTRIBUTION KEEP ARGUMENT...: runs tools/test with these arguments in there.
test_in() {
    local name=$1 keep=$2 folder why suite archive components mirror keyring_package keyring
    local packages=(ccache)
    shift 2
    find_distribution "$name"
    scratch_folder
    take_proxy
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/ntbmsg/$name
    # Not in a memory file system: it takes some 2 GB.
    $keep || folder=$(mktemp -d "/var/tmp/ntbmsg-$name.XXXXXX")
    $keep || at_exit "remove_root '$folder'"
    why_no_root "$folder"
    if [ -n "$why" ]; then
        echo "0 passed, 0 failed, 1 skipped: tools/test --in $name: $why"
        exit 77
    fi
    # For the tests in there: a tool that is killed with its namespace puts no number back.
    hold_pages_for_jobs
    is_made "$folder" || make_root "$folder" || die "the root file system of $name could not be made"
    cp -L /etc/resolv.conf /etc/hosts "$folder/etc/"
    copy_tree "$folder"
    [[ " $* " != *" --clang "* ]] || packages+=(clang)
    logged "$scratch/packages" in_root "${root_limits[0]}" "$folder" bash -euc \
        "apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends ${packages[*]}" ||
        die "the packages of $name could not be installed"
    copy_sdk "$folder"
    in_root "${root_limits[1]}" "$folder" /ntbmsg/tools/test "$@"
}
