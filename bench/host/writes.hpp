// SPDX-License-Identifier: BSD-3-Clause
// One-sided writes between the hosts: each exposes a region and stores into the other's.
#ifndef BENCH_HOST_WRITES_HPP
#define BENCH_HOST_WRITES_HPP

#include "session/shared.hpp"

#include <vector>

#include <ntbmsg.h>

namespace bench
{

class Channels;

class Writes
{
public:
    Writes() = default;
    ~Writes() { close(); }
    Writes(const Writes &) = delete;
    Writes &operator=(const Writes &) = delete;

    /// Makes the queue for completions, which the channel is opened with.
    void prepare(Result &);
    ntbmsg_cq *queue() const { return m_cq; }
    /// Exposes a region, and opens the other host's, over the first channel.
    void open(ntbmsg_endpoint *, const Channels &, Result &);
    /// Before the channel closes.
    void close_remote();
    /// After it.
    void close();

    /// Round trips: a word is written, seen in memory, and written back; each completion is polled.
    void ask(const Command &, Result &);
    void answer(const Command &, Result &);
    /// One way: slots of the region are written in turn as far as they were read, which is written
    /// back now and then. What is read is every line.
    void stream(const Command &, Shared &, Result &);
    void follow(const Command &, const Shared &, Result &);

private:
    struct alignas(line_bytes) SourceLine {
        std::byte bytes[line_bytes];
    };
    static constexpr unsigned batch_max = 32;
    /// A burst of writes, the last one of how far was written.
    struct Slots {
        ntbmsg_work works[batch_max + 1];
        ntbmsg_sge sges[batch_max + 1];
    };
    std::byte *source() { return m_source.data()->bytes; }
    bool post(ntbmsg_work *works, unsigned n, uint64_t give_up, Result &result);
    bool write(uint64_t offset, const void *from, uint32_t bytes, uint64_t give_up, Result &result);
    bool write_word(uint64_t value, uint64_t give_up, Result &result);
    uint64_t await_word(uint64_t seen, uint64_t give_up, Result &result);
    bool await_room(uint64_t written, uint64_t slots, uint64_t give_up, Result &result);
    void begin_run(const Command &command);
    template <uint32_t bytes>
    uint64_t slot_offset(uint64_t number) const;
    template <uint32_t bytes>
    void prepare_slots(unsigned batch, Slots &slots);
    template <uint32_t bytes>
    bool write_slots(unsigned batch, Slots &slots, uint64_t give_up, Result &result);
    template <uint32_t bytes>
    void stream_as(const Command &, Shared &, Result &);
    template <uint32_t bytes>
    void follow_as(const Command &, const Shared &, Result &);
    template <uint32_t bytes>
    bool read_slot();
    uint64_t await_written(const Shared &, uint64_t give_up, Result &result);
    bool report_read(uint64_t give_up, Result &result);
    ntbmsg_work work_for(uint64_t offset, const ntbmsg_sge &sge) const;

    ntbmsg_worker *m_worker = nullptr;
    ntbmsg_channel *m_channel = nullptr;
    ntbmsg_cq *m_cq = nullptr;
    ntbmsg_region *m_region = nullptr;
    ntbmsg_remote *m_remote = nullptr;
    std::byte *m_memory = nullptr;    ///< of the own region
    std::vector<SourceLine> m_source; ///< what is written comes from here
    uint64_t m_rounds = 0;            ///< round trips since the region was opened
    uint64_t m_sequence = 0;          ///< slots written, or read, since then
    uint64_t m_base = 0;              ///< m_sequence at the begin of a run
    uint64_t m_slots = 1;             ///< of a run, a power of two
    uint64_t m_reported = 0;          ///< of the slots read: those reported to the writer
};

} // namespace bench

#endif
