// SPDX-License-Identifier: BSD-3-Clause
// A Link over libraries that write into the other side's memory: messages are slots of a ring that
// lies with their reader, who polls memory alone and writes back now and then how far it has read.
// An Api is
//
//   std::byte *memory();   // put_bytes of zeros, which the other side writes
//   bool put(const Put *puts, unsigned n, uint64_t give_up);
//       writes them; what puts[n - 1] writes is not seen before the rest; on return their sources
//       may be used again
//   void progress();       // what the library has to do while its user waits
#ifndef BENCH_PEERS_LINKS_PUT_HPP
#define BENCH_PEERS_LINKS_PUT_HPP

#include "peers/pair/run.hpp"

#include <vector>

namespace peers
{

/// A write into the other side's memory.
struct Put {
    uint64_t offset;
    const void *from;
    size_t bytes;
};

inline constexpr unsigned most_puts = most_burst + 1;

/// What lies in the memory of each side: slots, then words that are two lines apart.
inline constexpr size_t slots_bytes = 4u << 20;
inline constexpr size_t written_at = slots_bytes;
inline constexpr size_t read_at = written_at + 2 * line_bytes;
inline constexpr size_t short_at = read_at + 2 * line_bytes;
inline constexpr size_t short_slots = 64;
inline constexpr size_t put_bytes = short_at + short_slots * line_bytes;

template <typename Api>
class PutLink : public PayloadLink
{
public:
    static constexpr size_t longest = 65536;

    static std::unique_ptr<PutLink> open(const Options &options, std::string &error)
    {
        auto link = std::make_unique<PutLink>();
        if (!link->m_api.open(options, error))
            return nullptr;
        link->m_memory = link->m_api.memory();
        return link;
    }

    /// The sources are lines, as the slots are.
    PutLink() : m_source(most_source / line_bytes) {}

    size_t max_message() const { return longest; }

    int send(uint64_t value, unsigned n, uint64_t give_up)
    {
        const size_t bytes = m_bytes;
        if (is_short(bytes, n))
            return send_short(bytes, value, give_up) ? 0 : EIO;
        if (!await_room(bytes, n, give_up))
            return ETIMEDOUT;
        Put puts[most_puts];
        for (unsigned i = 0; i < n; i++) {
            std::byte *from = m_source.data()->bytes + i * stride_of(bytes);
            write_payload(from, bytes, value + i);
            puts[i] = {slot_offset(m_sent++, bytes), from, bytes};
        }
        puts[n] = {written_at, &m_sent, sizeof(m_sent)};
        return m_api.put(puts, n + 1, give_up) ? 0 : EIO;
    }

    int receive(unsigned n, uint64_t &sum)
    {
        const size_t bytes = m_bytes;
        if (bytes != m_reads) { // another size has other slots: none of them may count as taken
            m_reads = bytes;
            if (m_reported != m_received && !report_received())
                return -EIO;
        }
        const int got =
            is_short(bytes, n) ? receive_short(bytes, sum) : receive_slots(bytes, n, sum);
        if (got == 0 && ++m_looks % looks_per_progress == 0)
            m_api.progress();
        return got;
    }

private:
    struct alignas(line_bytes) Line {
        std::byte bytes[line_bytes];
    };
    static constexpr uint64_t empty = 0; ///< a round trip's messages count from 1
    static constexpr uint64_t looks_per_progress = 64;
    static constexpr size_t most_slots = 4096;
    static constexpr size_t most_source = 131072; ///< of a burst, whose payload is 64 KiB at most

    /// A single message of one line is its own flag: the reader polls its first word.
    static bool is_short(size_t bytes, unsigned n) { return n == 1 && bytes <= line_bytes; }
    static size_t stride_of(size_t bytes) { return lines_of(bytes) * line_bytes; }
    static size_t slots_of(size_t bytes)
    {
        return std::min(slots_bytes / stride_of(bytes), most_slots);
    }
    static uint64_t slot_offset(uint64_t number, size_t bytes)
    {
        return number % slots_of(bytes) * stride_of(bytes);
    }
    static size_t short_offset(uint64_t number)
    {
        return short_at + number % short_slots * line_bytes;
    }
    uint64_t *word(size_t at) const { return reinterpret_cast<uint64_t *>(m_memory + at); }
    uint64_t load(size_t at) const { return __atomic_load_n(word(at), __ATOMIC_ACQUIRE); }

    bool send_short(size_t bytes, uint64_t value, uint64_t give_up)
    {
        write_payload(m_source.data()->bytes, bytes, value);
        const Put put = {short_offset(m_short_sent++), m_source.data(), bytes};
        return m_api.put(&put, 1, give_up);
    }

    int receive_short(size_t bytes, uint64_t &sum)
    {
        const size_t at = short_offset(m_short_received);
        if (load(at) == empty)
            return 0;
        sum += read_payload(m_memory + at, bytes);
        // Only now the message before is known to be stored for good: a copy may store a word
        // twice.
        *word(short_offset(m_short_received - 1)) = empty;
        m_short_received++;
        return 1;
    }

    bool await_room(size_t bytes, unsigned n, uint64_t give_up)
    {
        for (uint64_t spin = 1; m_sent + n - load(read_at) > slots_of(bytes); spin++) {
            if (spin % looks_per_progress == 0)
                m_api.progress();
            if (spin % measure::polls_per_clock == 0 && monotonic_ns() > give_up)
                return false;
        }
        return true;
    }

    int receive_slots(size_t bytes, unsigned n, uint64_t &sum)
    {
        const uint64_t there = load(written_at) - m_received;
        const auto got = static_cast<unsigned>(std::min<uint64_t>(there, n));
        for (unsigned i = 0; i < got; i++)
            sum += read_payload(m_memory + slot_offset(m_received++, bytes), bytes);
        if (m_received - m_reported >= slots_of(bytes) / 4 && !report_received())
            return -EIO;
        return static_cast<int>(got);
    }

    bool report_received()
    {
        m_reported = m_received;
        const Put put = {read_at, &m_reported, sizeof(m_reported)};
        return m_api.put(&put, 1, monotonic_ns() + bound_ns);
    }

    Api m_api;
    std::byte *m_memory = nullptr;
    std::vector<Line> m_source;
    uint64_t m_sent = 0;
    uint64_t m_received = 0;
    uint64_t m_reported = 0;
    uint64_t m_short_sent = 0;
    uint64_t m_short_received = 0;
    uint64_t m_looks = 0;
    size_t m_reads = 0;
};

} // namespace peers

#endif
