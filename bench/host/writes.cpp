// SPDX-License-Identifier: BSD-3-Clause
#include "host/writes.hpp"

#include "host/channels.hpp"
#include "host/traffic.hpp"
#include "mbufs/mbuf_link.hpp"
#include "mbufs/swap_tokens.hpp"

#include <atomic>
#include <cerrno>

#include <rte_pause.h>

namespace bench
{

namespace
{

constexpr uint64_t polls_per_clock = 4096; ///< between two reads of the clock, waiting
constexpr uint64_t spins_per_worker_poll = 64;
constexpr uint64_t left_ns = 4000; ///< by a reader that has caught up
constexpr uint64_t swap_ns = 20000000000u;
constexpr uint32_t slot_max = 65536;
constexpr uint64_t slots_bytes = data_bytes / 2;
// Behind the slots, each two lines apart: the word of round trips, how far was written, how far was
// read.
constexpr uint64_t word_offset = slots_bytes;
constexpr uint64_t written_offset = slots_bytes + 2 * line_bytes;
constexpr uint64_t read_offset = slots_bytes + 4 * line_bytes;
constexpr uint64_t region_bytes = slots_bytes + 6 * line_bytes;
constexpr uint64_t last_round = uint64_t{1} << 63; ///< set in the last word of a series

uint64_t load_word(const std::byte *at)
{
    return __atomic_load_n(reinterpret_cast<const uint64_t *>(at), __ATOMIC_ACQUIRE);
}

/// Each poll takes the polled line away from its writer, whose later stores wait behind it. So a
/// reader that has caught up leaves some time in which more can come: by the clock, for how long a
/// pause takes differs by tens from CPU to CPU.
void leave_time()
{
    const uint64_t until = monotonic_ns() + left_ns;
    while (monotonic_ns() < until)
        rte_pause();
}

} // namespace

void Writes::prepare(Result &result)
{
    if (const int error = ntbmsg_cq_create(1024, nullptr, nullptr, &m_cq); error != 0)
        fail(result, -error, "no completion queue");
}

void Writes::open(ntbmsg_endpoint *endpoint, const Channels &channels, Result &result)
{
    m_worker = channels.worker();
    m_channel = channels.at(0);
    m_source.resize(slot_max / line_bytes);
    m_rounds = m_sequence = m_reported = 0;
    ntbmsg_region_info info{};
    info.size = sizeof(info);
    ntbmsg_region_token token{};
    int error = ntbmsg_region_alloc(endpoint, region_bytes, NTBMSG_RIGHT_WRITE, &m_region);
    if (error == 0)
        error = ntbmsg_region_info_get(m_region, &info);
    if (error == 0)
        error = ntbmsg_region_token_get(m_region, &token);
    if (error != 0)
        return fail(result, -error, "no region to be written to");
    m_memory = static_cast<std::byte *>(info.address);
    const uint64_t give_up = monotonic_ns() + swap_ns;
    if (!swap_tokens(m_channel, ntbmsg_endpoint_pool(endpoint), token,
                     [&] { return monotonic_ns() > give_up; }))
        return fail(result, ETIMEDOUT, "the other host exposes no region");
    error = ntbmsg_remote_open(m_channel, &token, &m_remote);
    if (error != 0)
        fail(result, -error, "the other host's region cannot be opened");
}

void Writes::close_remote()
{
    ntbmsg_remote_close(m_remote);
    m_remote = nullptr;
}

void Writes::close()
{
    if (m_region)
        ntbmsg_region_release(m_region);
    m_region = nullptr;
    ntbmsg_cq_destroy(m_cq);
    m_cq = nullptr;
}

/// Posts them, of which the last one asks for a completion, and polls that.
bool Writes::post(ntbmsg_work *works, unsigned n, uint64_t give_up, Result &result)
{
    works[n - 1].flags = NTBMSG_WORK_SIGNAL;
    unsigned posted = 0;
    ntbmsg_completion done;
    for (uint64_t spin = 1;; spin++) {
        if (posted < n) {
            const int taken = ntbmsg_channel_post_burst(m_channel, works + posted,
                                                        static_cast<uint16_t>(n - posted));
            if (taken < 0) {
                fail(result, -taken, "a write is refused");
                return false;
            }
            posted += static_cast<unsigned>(taken);
        }
        if (ntbmsg_cq_poll(m_cq, &done, 1) == 1)
            break;
        ntbmsg_worker_poll(m_worker);
        if (spin % polls_per_clock == 0 && monotonic_ns() > give_up) {
            fail(result, ETIMEDOUT, "a write does not complete");
            return false;
        }
    }
    if (done.status != 0)
        fail(result, -done.status, "a write failed");
    return done.status == 0;
}

bool Writes::write(uint64_t offset, const void *from, uint32_t bytes, uint64_t give_up,
                   Result &result)
{
    const ntbmsg_sge sge{const_cast<void *>(from), bytes, 0};
    ntbmsg_work work = work_for(offset, sge);
    return post(&work, 1, give_up, result);
}

// Round trips -------------------------------------------------------------------------------------

bool Writes::write_word(uint64_t value, uint64_t give_up, Result &result)
{
    return write(word_offset, &value, sizeof(value), give_up, result);
}

/// Waits until the word of round trips is another one than @p seen. @return it, or @p seen
uint64_t Writes::await_word(uint64_t seen, uint64_t give_up, Result &result)
{
    for (uint64_t spin = 1;; spin++) {
        const uint64_t word = load_word(m_memory + word_offset);
        if (word != seen)
            return word;
        if (spin % spins_per_worker_poll == 0)
            ntbmsg_worker_poll(m_worker);
        if (spin % polls_per_clock == 0 && monotonic_ns() > give_up) {
            fail(result, ETIMEDOUT, "no write came");
            return seen;
        }
    }
}

void Writes::ask(const Command &command, Result &result)
{
    const uint64_t begin = monotonic_ns();
    const uint64_t give_up = begin + command.bound_ns;
    uint64_t seen = load_word(m_memory + word_offset);
    for (bool last = false; !last; result.count++) {
        last = result.count + 1 == command.rounds ||
               (result.count % 512 == 0 && monotonic_ns() - begin > command.run_ns);
        const uint64_t value = ++m_rounds | (last ? last_round : 0);
        if (!write_word(value, give_up, result))
            return;
        seen = await_word(seen, give_up, result);
        if (result.error)
            return;
        if (seen != value)
            return fail(result, EBADMSG, "what came back is not what was written");
    }
    result.ns = monotonic_ns() - begin;
    result.counted = result.count;
}

void Writes::answer(const Command &command, Result &result)
{
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    uint64_t seen = m_rounds;
    for (bool last = false; !last; result.count++) {
        const uint64_t value = await_word(seen, give_up, result);
        if (result.error || !write_word(value, give_up, result))
            return;
        seen = value;
        last = (value & last_round) != 0;
    }
    m_rounds = seen;
}

// One way -----------------------------------------------------------------------------------------

bool Writes::await_room(uint64_t written, uint64_t slots, uint64_t give_up, Result &result)
{
    for (uint64_t spin = 1; written - load_word(m_memory + read_offset) > slots; spin++) {
        if (spin % spins_per_worker_poll == 0)
            ntbmsg_worker_poll(m_worker);
        if (spin % polls_per_clock == 0 && monotonic_ns() > give_up) {
            fail(result, ETIMEDOUT, "what was written is not read");
            return false;
        }
    }
    return true;
}

ntbmsg_work Writes::work_for(uint64_t offset, const ntbmsg_sge &sge) const
{
    ntbmsg_work work{};
    work.remote = m_remote;
    work.offset = offset;
    work.sges = &sge;
    work.sge_count = 1;
    work.op = NTBMSG_OP_WRITE;
    return work;
}

void Writes::begin_run(const Command &command)
{
    m_slots = command.slot_count;
    m_base = m_sequence;
}

template <uint32_t bytes>
uint64_t Writes::slot_offset(uint64_t number) const
{
    return ((number - m_base) & (m_slots - 1)) * bytes;
}

/// Prepares writes of as many slots, and behind them of how far was written. They are posted again
/// and again: each local store waits in line behind the stores to the window.
template <uint32_t bytes>
void Writes::prepare_slots(unsigned batch, Slots &slots)
{
    for (unsigned i = 0; i < batch; i++) {
        slots.sges[i] = {source() + i * bytes % slot_max, bytes, 0};
        slots.works[i] = work_for(0, slots.sges[i]);
    }
    slots.sges[batch] = {&m_sequence, sizeof(m_sequence), 0};
    slots.works[batch] = work_for(written_offset, slots.sges[batch]);
}

/// Writes the next slots. Short ones are filled for each write, long ones copied from what is
/// there, as the limits have it.
template <uint32_t bytes>
bool Writes::write_slots(unsigned batch, Slots &slots, uint64_t give_up, Result &result)
{
    for (unsigned i = 0; i < batch; i++) {
        if constexpr (bytes == line_bytes)
            kernel.fill_payload(static_cast<std::byte *>(slots.sges[i].address), bytes,
                                m_sequence + 1);
        slots.works[i].offset = slot_offset<bytes>(m_sequence++);
    }
    return post(slots.works, batch + 1, give_up, result);
}

template <uint32_t bytes>
void Writes::stream_as(const Command &command, Shared &shared, Result &result)
{
    constexpr uint64_t batches_per_clock = 16;
    const uint64_t begin = monotonic_ns();
    const uint64_t give_up = begin + command.bound_ns;
    begin_run(command);
    kernel.fill_payload(source(), slot_max, fill_word);
    Slots slots;
    prepare_slots<bytes>(command.batch, slots);
    for (uint64_t batches = 1;; batches++) {
        if (!await_room(m_sequence + command.batch, m_slots, give_up, result) ||
            !write_slots<bytes>(command.batch, slots, give_up, result))
            break;
        result.count += command.batch;
        if (batches % batches_per_clock == 0 && monotonic_ns() - begin > command.run_ns)
            break;
    }
    result.ns = monotonic_ns() - begin;
    shared.sent_total.store(result.count + 1,
                            std::memory_order_release); // pairs with await_written
    // What the other host writes back may need this one's worker.
    await_room(m_sequence, 0, give_up, result);
}

/// @return how far was written, more than was read; or as far: there is no more, or an error
uint64_t Writes::await_written(const Shared &shared, uint64_t give_up, Result &result)
{
    for (;;) {
        const uint64_t written = load_word(m_memory + written_offset);
        if (written != m_sequence)
            return written;
        leave_time();
        ntbmsg_worker_poll(m_worker);
        if (shared.sent_total.load(std::memory_order_acquire) == result.count + 1)
            return m_sequence;
        if (monotonic_ns() > give_up) {
            fail(result, ETIMEDOUT, "writes are missing");
            return m_sequence;
        }
    }
}

/// Reads a slot. @return whether it holds what was written
template <uint32_t bytes>
bool Writes::read_slot()
{
    const std::byte *slot = m_memory + slot_offset<bytes>(m_sequence);
    const uint64_t sum = kernel.sum_payload(slot, bytes);
    m_sequence++;
    return sum == (bytes == line_bytes ? m_sequence : bytes / line_bytes * fill_word);
}

/// Reports to the writer how far was read.
bool Writes::report_read(uint64_t give_up, Result &result)
{
    m_reported = m_sequence;
    return write(read_offset, &m_reported, sizeof(m_reported), give_up, result);
}

template <uint32_t bytes>
void Writes::follow_as(const Command &command, const Shared &shared, Result &result)
{
    const uint64_t warm = 2 * uint64_t{command.slot_count};
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    uint64_t begin = 0, begin_at = 0, bad = 0;
    begin_run(command);
    while (!result.error) {
        const uint64_t written = await_written(shared, give_up, result);
        if (written == m_sequence)
            break;
        if (written - m_sequence > m_slots)
            return fail(result, EBADMSG, "more was written than there is room for");
        for (; m_sequence != written; result.count++)
            bad += !read_slot<bytes>();
        if (m_sequence - m_reported >= m_slots / 4)
            report_read(give_up, result);
        if (begin == 0 || (begin_at < warm && result.count >= warm)) {
            begin = monotonic_ns();
            begin_at = result.count;
        }
    }
    result.ns = begin != 0 ? monotonic_ns() - begin : 0;
    result.counted = result.count - begin_at;
    if (!result.error) // what comes next may have fewer slots than were read and not reported
        report_read(give_up, result);
    if (!result.error && bad != 0)
        fail(result, EBADMSG, "what came is not what was written");
}

void Writes::stream(const Command &command, Shared &shared, Result &result)
{
    if (!m_remote || command.batch > batch_max)
        return fail(result, EINVAL, "no region is open");
    return command.payload == line_bytes ? stream_as<line_bytes>(command, shared, result)
                                         : stream_as<slot_max>(command, shared, result);
}

void Writes::follow(const Command &command, const Shared &shared, Result &result)
{
    if (!m_remote)
        return fail(result, EINVAL, "no region is open");
    return command.payload == line_bytes ? follow_as<line_bytes>(command, shared, result)
                                         : follow_as<slot_max>(command, shared, result);
}

} // namespace bench
