// SPDX-License-Identifier: BSD-3-Clause
#include "host/window.hpp"

#include "memory/sealed.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
// One piece of all-ones serves a whole window. Larger ones for windows of many gigabytes, so that
// the count of mappings stays far below the kernel's limit (65530).
uint64_t absent_piece(uint64_t window_bytes)
{
    return std::min(window_bytes, std::max<uint64_t>(huge_page, window_bytes / 4096));
}

int make_all_ones(uint64_t bytes)
{
    const int fd = sealed_create("plx-twin-absent", bytes, false);
    if (fd < 0)
        return fd;
    // Written, not mapped, so that a thread sanitizer follows no more than the piece.
    std::array<uint8_t, 16384> ones;
    ones.fill(0xFF);
    for (uint64_t done = 0; done < bytes; done += ones.size())
        if (pwrite(fd, ones.data(), ones.size(), static_cast<off_t>(done)) !=
            static_cast<ssize_t>(ones.size())) {
            close(fd);
            return -ENOMEM;
        }
    return fd;
}

// Nothing answers there: loads give all-ones. Stores go to private pages of this process, which
// the next remap of the range drops.
bool map_absent(const Window &window, uint64_t offset, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        const uint64_t inside = (offset + done) % window.absent_bytes;
        const uint64_t piece = std::min(bytes - done, window.absent_bytes - inside);
        if (map_private(window.base + offset + done, piece, window.absent_fd, inside) == nullptr)
            return false;
        done += piece;
    }
    return true;
}

const Extent *find(const View &view, const Extent &like)
{
    for (unsigned i = 0; i < view.count; i++) {
        const Extent &e = view.extents[i];
        if (e.direct && e.window == like.window && e.offset == like.offset && e.bytes == like.bytes)
            return &e;
    }
    return nullptr;
}

struct Range {
    uint64_t from = ~uint64_t{0};
    uint64_t to = 0;
};

bool is_lost(const Extent &e, const View &after)
{
    return e.direct && find(after, e) == nullptr;
}

Range span_of_lost(unsigned window, const View &before, const View &after)
{
    Range lost;
    for (unsigned i = 0; i < before.count; i++) {
        const Extent &e = before.extents[i];
        if (e.window != window || !is_lost(e, after))
            continue;
        lost.from = std::min(lost.from, e.offset);
        lost.to = std::max(lost.to, e.offset + e.bytes);
    }
    return lost;
}

bool holds_kept(const Range &range, unsigned window, const View &before, const View &after)
{
    for (unsigned i = 0; i < before.count; i++) {
        const Extent &e = before.extents[i];
        if (e.direct && e.window == window && e.offset < range.to &&
            e.offset + e.bytes > range.from && !is_lost(e, after))
            return true;
    }
    return false;
}

// Nothing answers in a range any more. All-ones take a mapping a piece, and stores of other threads
// go on meanwhile: one mapping of the whole range comes first, so that a store that is lost is
// followed by no store that arrives, as on a link that went down.
void cut(const Window &window, const Range &range)
{
    if (range.to - range.from > window.absent_bytes)
        map_anonymous(window.base + range.from, range.to - range.from);
    map_absent(window, range.from, range.to - range.from);
}

// At once where all that lies between goes too; else piece by piece.
void cut_lost(const Window &window, unsigned index, const View &before, const View &after)
{
    const Range all = span_of_lost(index, before, after);
    if (all.from >= all.to)
        return;
    if (!holds_kept(all, index, before, after)) {
        cut(window, all);
        return;
    }
    for (unsigned i = 0; i < before.count; i++) {
        const Extent &e = before.extents[i];
        if (e.window == index && is_lost(e, after))
            cut(window, {e.offset, e.offset + e.bytes});
    }
}

bool same_memory(const Extent &a, const Extent &b)
{
    return a.region == b.region && a.at == b.at && a.generation == b.generation;
}
} // namespace

int window_open(uint64_t bytes, Window *out)
{
    Window w;
    w.bytes = bytes;
    w.absent_bytes = absent_piece(bytes);
    w.absent_fd = make_all_ones(w.absent_bytes);
    if (w.absent_fd < 0)
        return -ENOMEM;
    // As firmware places a BAR.
    w.base = static_cast<uint8_t *>(reserve(bytes, std::max<uint64_t>(bytes, huge_page)));
    if (w.base == nullptr || !map_absent(w, 0, bytes)) {
        window_close(&w);
        return -ENOMEM;
    }
    w.bus = reinterpret_cast<uintptr_t>(w.base);
    *out = w;
    return 0;
}

void window_close(Window *window)
{
    if (window->base != nullptr)
        munmap(window->base, window->bytes);
    if (window->absent_fd >= 0)
        close(window->absent_fd);
    *window = {};
}

void windows_follow(Window *windows, const View &before, const View &after, const int *fds)
{
    // Away first: an extent of huge pages can only be replaced as a whole.
    for (unsigned i = 0; i < window_count; i++)
        cut_lost(windows[i], i, before, after);
    for (unsigned i = 0; i < after.count; i++) {
        const Extent &e = after.extents[i];
        const Extent *was = e.direct ? find(before, e) : nullptr;
        if (!e.direct || (was != nullptr && same_memory(*was, e)))
            continue;
        const Window &w = windows[e.window];
        if (map_shared(w.base + e.offset, e.bytes, fds[e.region], e.at) == nullptr)
            map_absent(w, e.offset, e.bytes);
    }
}

int window_move(Window *window, unsigned index, const View &view, const Region *remote,
                const int *fds, void **old)
{
    Window next = *window;
    next.base =
        static_cast<uint8_t *>(reserve(next.bytes, std::max<uint64_t>(next.bytes, huge_page)));
    if (next.base == nullptr)
        return -ENOMEM;
    bool mapped = map_absent(next, 0, next.bytes);
    for (unsigned i = 0; mapped && i < view.count; i++) {
        const Extent &e = view.extents[i];
        // What went away meanwhile stays absent.
        if (e.window == index && e.direct && remote[e.region].generation == e.generation &&
            map_shared(next.base + e.offset, e.bytes, fds[e.region], e.at) == nullptr)
            mapped = map_absent(next, e.offset, e.bytes);
    }
    // One mapping in place of the old ones: a store goes to them or to it, and never fails.
    if (!mapped || map_anonymous(window->base, window->bytes) == nullptr) {
        munmap(next.base, next.bytes);
        return -ENOMEM;
    }
    *old = window->base;
    *window = next;
    return 0;
}

} // namespace plx::twin
