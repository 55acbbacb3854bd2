// SPDX-License-Identifier: BSD-3-Clause
#include "memory/block.hpp"

#include "memory/sealed.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <numa.h>
#include <sys/mman.h>
#include <unistd.h>

namespace plx::twin
{

namespace
{
// One step of a move: the shorter, the less can happen within it; long enough to be worth a remap.
constexpr size_t small_stride = size_t{256} << 10;
constexpr size_t line = 64; // small enough to be copied in place

void place_on(void *memory, size_t bytes, int node)
{
    if (node >= 0 && numa_available() >= 0 && node <= numa_max_node())
        numa_tonode_memory(memory, bytes, node);
}

// A descriptor whose pages there surely are, mapped anywhere: a mapping of huge pages reserves
// them, small ones are allocated here. A store must never find the pool empty later (SIGBUS).
struct Backing {
    int fd = -1;
    size_t page_bytes = 0;
    void *mapped = nullptr;
};

bool back_with(size_t bytes, int node, bool huge, Backing *out)
{
    out->fd = sealed_create("plx-twin-memory", bytes, huge);
    if (out->fd < 0)
        return false;
    out->mapped = map_shared(nullptr, bytes, out->fd, 0);
    out->page_bytes = huge ? huge_page : small_page;
    if (out->mapped != nullptr) {
        place_on(out->mapped, bytes, node);
        if (fallocate(out->fd, 0, 0, static_cast<off_t>(bytes)) == 0)
            return true;
        munmap(out->mapped, bytes);
    }
    close(out->fd);
    return false;
}

bool back(size_t bytes, int node, bool huge, Backing *out)
{
    const bool fits = bytes % huge_page == 0;
    return (huge && fits && back_with(bytes, node, true, out)) ||
           back_with(bytes, node, false, out);
}

void merge_bytes(std::atomic<uint8_t> *to, const uint8_t *late, const uint8_t *copied)
{
    for (size_t i = 0; i < sizeof(uint64_t); i++) {
        uint8_t expected = copied[i];
        if (late[i] != copied[i])
            to[i].compare_exchange_strong(expected, late[i]);
    }
}

void merge_word(uint8_t *to, uint64_t late, uint64_t copied)
{
    auto *word = reinterpret_cast<std::atomic<uint64_t> *>(to);
    uint64_t expected = copied;
    if (!word->compare_exchange_strong(expected, late))
        merge_bytes(reinterpret_cast<std::atomic<uint8_t> *>(to),
                    reinterpret_cast<const uint8_t *>(&late),
                    reinterpret_cast<const uint8_t *>(&copied));
}

// A move goes through mappings that no one else uses, so there is nothing in them for a thread
// sanitizer, which would touch four times as much memory of its own: whole blocks are copied and
// searched without it. Neither may call memcpy() or memcmp(), which the sanitizer has its own of.
[[gnu::no_sanitize_thread]] void copy_lines(uint8_t *to, const uint8_t *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += line)
        memcpy(to + i, from + i, line);
}

// Stores that local threads did between the copy and the switch of addresses are in the old memory
// alone: they go to the new one where it still holds what was copied, that is where no later store
// went. Whole words first, so that another thread never sees half of a late pointer.
[[gnu::no_sanitize_thread]] void merge_late(uint8_t *to, const uint8_t *old, const uint8_t *copied,
                                            size_t bytes)
{
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t late;
        uint64_t expected;
        memcpy(&late, old + i, sizeof(late));
        memcpy(&expected, copied + i, sizeof(expected));
        if (late != expected)
            merge_word(to + i, late, expected);
    }
}

void move_step(uint8_t *home, size_t bytes, const uint8_t *old, const Backing &next, size_t offset,
               uint8_t *scratch)
{
    auto *const fresh = static_cast<uint8_t *>(next.mapped) + offset;
    copy_lines(scratch, old, bytes);
    copy_lines(fresh, scratch, bytes);
    if (map_shared(home, bytes, next.fd, offset) == nullptr) {
        // Half of the block is moved: neither way is safe to go on.
        fprintf(stderr, "plx twin: cannot map exposed memory: %s\n", strerror(errno));
        abort();
    }
    merge_late(fresh, old, scratch, bytes);
}

// Once mmap() returns, no store through the old translation is in flight on any core (else the
// kernel could not give the old pages to another process), so the search for late stores is
// complete.
void move_all(Block *block, const uint8_t *old, const Backing &next, uint8_t *scratch)
{
    auto *const home = static_cast<uint8_t *>(block->base);
    const size_t stride = std::max({small_stride, block->page_bytes, next.page_bytes});
    for (size_t done = 0; done < block->bytes; done += stride) {
        const size_t bytes = std::min(stride, block->bytes - done);
        move_step(home + done, bytes, old + done, next, done, scratch);
    }
}
} // namespace

uint64_t new_generation()
{
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1) + 1;
}

int block_create(size_t bytes, int numa_node, bool want_huge, Block *out)
{
    Backing backing;
    if (!back(bytes, numa_node, want_huge, &backing))
        return -ENOMEM;
    munmap(backing.mapped, bytes);
    void *base = reserve(bytes, std::max(bytes, huge_page));
    if (base == nullptr || map_shared(base, bytes, backing.fd, 0) == nullptr) {
        if (base != nullptr)
            munmap(base, bytes);
        close(backing.fd);
        return -ENOMEM;
    }
    *out = {base, bytes, backing.page_bytes, numa_node, backing.fd, new_generation()};
    return 0;
}

void block_destroy(Block *block)
{
    munmap(block->base, block->bytes);
    close(block->fd);
    *block = {};
}

int block_rehome(Block *block)
{
    Backing next;
    void *scratch = malloc(std::min(huge_page, block->bytes)); // a step at the most
    void *old = map_shared(nullptr, block->bytes, block->fd, 0);
    const bool ready = scratch != nullptr && old != nullptr &&
                       back(block->bytes, block->numa_node, block->page_bytes == huge_page, &next);
    if (ready) {
        move_all(block, static_cast<const uint8_t *>(old), next, static_cast<uint8_t *>(scratch));
        munmap(next.mapped, block->bytes);
        close(block->fd);
        block->fd = next.fd;
        block->page_bytes = next.page_bytes;
        block->generation = new_generation();
    }
    if (old != nullptr)
        munmap(old, block->bytes);
    free(scratch);
    return ready ? 0 : -ENOMEM;
}

} // namespace plx::twin
