// SPDX-License-Identifier: BSD-3-Clause
// The memory of a connection: two rings of bytes, one for each direction, in one sealed memory
// file. doc/node-daemon.md describes it. Both ends and the daemons map it, so whatever is read from
// it is input, and is bounded before it is used.
#ifndef NTBCLIENT_RING_LAYOUT_HPP
#define NTBCLIENT_RING_LAYOUT_HPP

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ntbc
{

inline constexpr size_t line_bytes = 64;

/// A count of bytes since the beginning, modulo 2^60. The four bits above are marks.
inline constexpr uint64_t count_mask = (uint64_t{1} << 60) - 1;
inline constexpr uint64_t mark_end = uint64_t{1} << 60;    ///< no byte follows
inline constexpr uint64_t mark_closed = uint64_t{1} << 61; ///< nor is anything read there any more
inline constexpr uint64_t mark_reset = uint64_t{1} << 62;  ///< ended at once; bytes may be lost
inline constexpr uint64_t marks = mark_end | mark_closed | mark_reset;

/// The control lines of one ring: the first two are written by its producer, the others by its
/// consumer. A pair of lines that the CPU may fetch together has one writer.
struct Direction {
    alignas(line_bytes) uint64_t published; ///< bytes that can be read, and marks
    alignas(line_bytes) uint32_t
        wants_room;                        ///< not 0: the producer sleeps; another number each time
    alignas(line_bytes) uint64_t consumed; ///< bytes that may be overwritten
    alignas(line_bytes) uint32_t wants_data; ///< as wants_room, of the consumer
};
static_assert(sizeof(Direction) == 4 * line_bytes);

/// What an end leaves for the other one. The daemons do not look at it.
struct alignas(2 * line_bytes) Word {
    uint64_t value;
};

/// The first page of the memory. Indices are ends: end e produces into direction[e].
struct Page {
    Direction direction[2];
    /// Bit e: end e has died, or lost its daemon; bit 2: a daemon has revoked the connection.
    alignas(line_bytes) uint32_t gone;
    Word word[2];
};
static_assert(offsetof(Page, gone) == 512 && offsetof(Page, word) == 640);
inline constexpr uint32_t gone_revoked = 4;
constexpr uint32_t gone_end(unsigned end)
{
    return 1u << end;
}

inline constexpr size_t page_bytes = 4096;
static_assert(sizeof(Page) <= page_bytes);

inline constexpr uint32_t ring_bytes_min = 4096;
inline constexpr uint32_t ring_bytes_max = uint32_t{1} << 24;

/// Whether rings may have this size: a power of two within the limits.
constexpr bool is_ring_size(uint32_t bytes)
{
    return bytes >= ring_bytes_min && bytes <= ring_bytes_max && (bytes & (bytes - 1)) == 0;
}
/// Memory of a connection whose rings have @p ring_bytes each.
constexpr size_t memory_bytes(uint32_t ring_bytes)
{
    return page_bytes + 2 * size_t{ring_bytes};
}

// Words of shared memory are accessed through these alone.
template <typename T>
T load(const T &word, std::memory_order order = std::memory_order_acquire)
{
    return std::atomic_ref<T>(const_cast<T &>(word)).load(order);
}
template <typename T>
void store(T &word, T value, std::memory_order order = std::memory_order_release)
{
    std::atomic_ref<T>(word).store(value, order);
}

inline void mark_gone(Page &page, uint32_t bits)
{
    std::atomic_ref(page.gone).fetch_or(bits, std::memory_order_acq_rel);
}

} // namespace ntbc

#endif
