// SPDX-License-Identifier: BSD-3-Clause
// HOT. A Link of the measuring loops (loops.hpp) over anything that carries mbufs, as an
// application would write it: messages from a pool and back to it, in bulk; a chain where one mbuf
// is too small. A Way is
//
//   rte_mempool *pool;                          // what is sent comes from here
//   int send(rte_mbuf **, uint16_t n);          // how many it takes, or a negative errno
//   int receive(rte_mbuf **, uint16_t n);       // how many came, or a negative errno
//
// and a Size says how long messages are: as a constant, so that writing and reading them costs what
// it costs in a program that knows its messages, or as it is set before each run.
#ifndef BENCH_MBUFS_MBUF_LINK_HPP
#define BENCH_MBUFS_MBUF_LINK_HPP

#include "kernel/payload.hpp"
#include "loops.hpp"
#include "mbufs.hpp"

#include <rte_mbuf.h>

namespace bench
{

inline constexpr unsigned most_burst = 32;

/// What long messages are filled with that are not written anew each time.
inline constexpr uint64_t fill_word = 0x0123456789abcdefu;

/// @p room  data bytes of an mbuf. Longer messages are chains whose bytes are there before
/// (fill_pool): like the source of the limit's copies they are not written for each message, but
/// for the first word of each mbuf.
/// @param as_it_is  the same for a message in one mbuf
template <size_t size, size_t room, bool as_it_is = false>
struct FixedSize {
    static constexpr unsigned most_segments = (size + room - 1) / room;
    static constexpr bool filled = as_it_is || most_segments > 1;
    static_assert(most_segments == 1 || size % room == 0);

    static constexpr size_t bytes() { return size; }
    static constexpr size_t segment_bytes() { return room; }
    static constexpr unsigned segments() { return most_segments; }
};

/// Every word is written, also of chains.
class VariableSize
{
public:
    static constexpr unsigned most_segments = 64;
    static constexpr bool filled = false;

    /// @param room  a multiple of line_bytes
    explicit VariableSize(size_t room) : m_room(room) {}
    void use(size_t bytes)
    {
        m_bytes = bytes;
        m_segments = static_cast<unsigned>((bytes + m_room - 1) / m_room);
    }

    size_t bytes() const { return m_bytes; }
    size_t segment_bytes() const { return m_room; }
    unsigned segments() const { return m_segments; }

private:
    size_t m_room;
    size_t m_bytes = 0;
    unsigned m_segments = 0;
};

template <typename Way, typename Size>
class MbufLink
{
public:
    explicit MbufLink(Way way, Size size = {}) : m_way(way), m_size(size) {}
    ~MbufLink() { rte_pktmbuf_free(m_kept); }
    MbufLink(const MbufLink &) = delete;
    MbufLink &operator=(const MbufLink &) = delete;

    /// Of a VariableSize.
    void use(size_t bytes) { m_size.use(bytes); }

    int send(uint64_t value, unsigned n, uint64_t give_up)
    {
        rte_mbuf *mbufs[most_burst * Size::most_segments];
        return make(mbufs, value, n) ? send_all(mbufs, n, give_up) : ENOMEM;
    }

    int receive(unsigned n, uint64_t &sum)
    {
        const Size size = m_size; // a copy: what is stored in messages cannot have changed it
        uint64_t read_here = 0;
        const int got = measure::take_burst<most_burst>(
            static_cast<uint16_t>(n),
            [&](rte_mbuf **messages, uint16_t most) { return m_way.receive(messages, most); },
            [&](const rte_mbuf *message, int) { read_here += read(message, size); });
        sum += read_here;
        return got;
    }

    int receive_kept(uint64_t &sum)
    {
        const int got = m_way.receive(&m_kept, 1);
        if (got > 0)
            sum += read(m_kept, m_size);
        return got;
    }

    int send_kept(uint64_t value, uint64_t give_up)
    {
        rte_mbuf *message = m_kept;
        m_kept = nullptr;
        for (rte_mbuf *segment = message; segment != nullptr; segment = segment->next)
            write(segment, segment->data_len, value);
        return send_all(&message, 1, give_up);
    }

    uint64_t sum_of(uint64_t messages, uint64_t values) const
    {
        const uint64_t lines = lines_of(m_size.bytes());
        if constexpr (Size::filled)
            return values * m_size.segments() + messages * (lines - m_size.segments()) * fill_word;
        else
            return values * lines;
    }

private:
    [[gnu::always_inline]] static void write(rte_mbuf *segment, size_t bytes, uint64_t value)
    {
        if constexpr (Size::filled)
            *rte_pktmbuf_mtod(segment, uint64_t *) = value;
        else
            write_payload(rte_pktmbuf_mtod(segment, void *), bytes, value);
    }

    /// A message of another length counts as nothing, which the sum then shows.
    [[gnu::always_inline]] static uint64_t read(const rte_mbuf *message, const Size &size)
    {
        if (message->pkt_len != size.bytes())
            return 0;
        uint64_t sum = 0;
        for (const rte_mbuf *segment = message; segment != nullptr; segment = segment->next)
            sum += read_payload(rte_pktmbuf_mtod(segment, const void *), segment->data_len,
                                size.bytes());
        return sum;
    }

    /// The messages become the first n of @p mbufs.
    bool make(rte_mbuf **mbufs, uint64_t value, unsigned n)
    {
        const Size size = m_size; // a copy, as in receive()
        const unsigned segments = size.segments();
        if (rte_pktmbuf_alloc_bulk(m_way.pool, mbufs, n * segments) != 0)
            return false;
        for (unsigned i = 0; i < n; i++) {
            if (segments == 1)
                make_one(mbufs[i], size, value + i);
            else
                mbufs[i] = make_chain(mbufs + i * segments, size, value + i);
        }
        return true;
    }

    static void make_one(rte_mbuf *message, const Size &size, uint64_t value)
    {
        message->pkt_len = static_cast<uint32_t>(size.bytes());
        message->data_len = static_cast<uint16_t>(size.bytes());
        write(message, size.bytes(), value);
    }

    /// @return the first of them
    static rte_mbuf *make_chain(rte_mbuf **mbufs, const Size &size, uint64_t value)
    {
        rte_mbuf *head =
            measure::link_chain(mbufs, size.segments(), static_cast<uint32_t>(size.segment_bytes()),
                                static_cast<uint32_t>(size.bytes()));
        for (rte_mbuf *segment = head; segment != nullptr; segment = segment->next)
            write(segment, segment->data_len, value);
        return head;
    }

    /// What is not taken in time is freed.
    int send_all(rte_mbuf **messages, unsigned n, uint64_t give_up)
    {
        for (unsigned sent = 0; sent < n;) {
            const int taken = measure::await(give_up, [&] {
                return m_way.send(messages + sent, static_cast<uint16_t>(n - sent));
            });
            if (taken < 0) {
                rte_pktmbuf_free_bulk(messages + sent, n - sent);
                return -taken;
            }
            sent += static_cast<unsigned>(taken);
        }
        return 0;
    }

    Way m_way;
    Size m_size;
    rte_mbuf *m_kept = nullptr; ///< a message that is being answered
};

} // namespace bench

#endif
