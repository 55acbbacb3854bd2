// SPDX-License-Identifier: BSD-3-Clause
// What two cores could do at best with nothing in between: the fastest of the forms that are known,
// for the same work as everything else (every line written here, read there).
#include "peers/pair/run.hpp"

#include <x86intrin.h>

namespace peers
{

namespace
{

constexpr uint64_t form_ns = 4000000;
constexpr uint64_t ping_rounds = 4000;
constexpr size_t mailbox_bytes = data_bytes / 2;
constexpr uint32_t ring_batch = 32;
constexpr uint64_t source_word = 0x0123456789abcdefu;
constexpr size_t source_bytes = 1 << 16;

struct Best {
    Count round_trips;
    Count messages;
};

struct alignas(4096) Source {
    uint64_t words[source_bytes / sizeof(uint64_t)];
};

class Limit
{
public:
    Limit(Meeting &meeting) : m_meeting(meeting), m_source(std::make_unique<Source>())
    {
        std::fill(std::begin(m_source->words), std::end(m_source->words), source_word);
    }

    /// @return false: the other side has failed
    bool round_trip(size_t bytes, Best &best);
    bool rate(size_t bytes, Best &best);

private:
    bool ping(bench::PingForm form, Best &best);
    bool exchange(size_t bytes, bool relaxed, Best &best);
    uint64_t exchange_rounds(size_t bytes, bool relaxed);
    bool ring(bench::StreamJob job, Best &best);
    bench::StreamJob job_for(size_t bytes) const;

    Meeting &m_meeting;
    std::unique_ptr<Source> m_source;
};

void keep(const Count &count, Count &best)
{
    if (count.n != 0 && count.ns != 0 && (best.n == 0 || count.ns_each() < best.ns_each()))
        best = count;
}

bool Limit::ping(bench::PingForm form, Best &best)
{
    Shared &shared = m_meeting.shared();
    bench::PingLine &mine = shared.lines[m_meeting.starts() ? 0 : 1];
    bench::PingLine &theirs = shared.lines[m_meeting.starts() ? 1 : 0];
    mine = {};
    bench::PingDone done{};
    if (!together(m_meeting, [&] {
            done = kernel.ping({&mine, &theirs, form, m_meeting.starts(), ping_rounds, bound_ns});
            return done.rounds == ping_rounds && done.bad == 0;
        }))
        return false;
    keep({done.rounds, done.ns}, best.round_trips);
    return true;
}

/// The last word of a message says that it is there: it is stored last, with release.
void post(std::byte *mailbox, size_t bytes, uint64_t value)
{
    const size_t before = (lines_of(bytes) - 1) * line_bytes;
    write_payload(mailbox, before, value);
    uint64_t *last = reinterpret_cast<uint64_t *>(mailbox + before);
    for (int i = 0; i < 7; i++)
        __atomic_store_n(&last[i], value, __ATOMIC_RELAXED);
    __atomic_store_n(&last[7], value, __ATOMIC_RELEASE);
}

bool collect(const std::byte *mailbox, size_t bytes, uint64_t value, bool relaxed, uint64_t give_up)
{
    const size_t lines = lines_of(bytes);
    const uint64_t *last =
        reinterpret_cast<const uint64_t *>(mailbox + (lines - 1) * line_bytes) + 7;
    for (uint64_t spin = 1; __atomic_load_n(last, __ATOMIC_ACQUIRE) != value; spin++) {
        if (relaxed)
            _mm_pause();
        if (spin % measure::polls_per_clock == 0 && monotonic_ns() > give_up)
            return false;
    }
    return read_payload(mailbox, lines * line_bytes) == value * lines;
}

uint64_t Limit::exchange_rounds(size_t bytes, bool relaxed)
{
    std::byte *mine = m_meeting.shared().data + (m_meeting.starts() ? 0 : mailbox_bytes);
    const std::byte *theirs = m_meeting.shared().data + (m_meeting.starts() ? mailbox_bytes : 0);
    const uint64_t give_up = monotonic_ns() + bound_ns;
    const uint64_t rounds = std::max<uint64_t>(200, 2000000 / bytes);
    for (uint64_t round = 1; round <= rounds; round++) {
        if (m_meeting.starts())
            post(mine, bytes, round);
        if (!collect(theirs, bytes, round, relaxed, give_up))
            return 0;
        if (!m_meeting.starts())
            post(mine, bytes, round);
    }
    return rounds;
}

bool Limit::exchange(size_t bytes, bool relaxed, Best &best)
{
    std::byte *mine = m_meeting.shared().data + (m_meeting.starts() ? 0 : mailbox_bytes);
    std::fill(mine, mine + lines_of(bytes) * line_bytes, std::byte{});
    uint64_t rounds = 0;
    uint64_t ns = 0;
    if (!together(m_meeting, [&] {
            const uint64_t begin = monotonic_ns();
            rounds = exchange_rounds(bytes, relaxed);
            ns = monotonic_ns() - begin;
            return rounds != 0;
        }))
        return false;
    keep({rounds, ns}, best.round_trips);
    return true;
}

bool Limit::round_trip(size_t bytes, Best &best)
{
    if (bytes <= sizeof(uint64_t))
        return ping(bench::PingForm::word, best);
    if (bytes <= line_bytes)
        return ping(bench::PingForm::line_by_words, best) &&
               ping(bench::PingForm::line_by_vector, best);
    return exchange(bytes, false, best) && exchange(bytes, true, best) &&
           exchange(bytes, false, best);
}

bool Limit::ring(bench::StreamJob job, Best &best)
{
    Shared &shared = m_meeting.shared();
    if (m_meeting.starts())
        shared.head = shared.total = {};
    else
        shared.tail = {};
    bench::StreamDone done{};
    if (!together(m_meeting, [&] {
            done = m_meeting.starts() ? kernel.write(job) : kernel.read(job);
            m_meeting.mine().report.counted = done.counted;
            m_meeting.mine().report.ns = done.ns;
            return shared.total.value == done.slots + 1;
        }))
        return false;
    // Of the reader; read between two meetings.
    const Report &reader = (m_meeting.starts() ? m_meeting.theirs() : m_meeting.mine()).report;
    keep({reader.counted, reader.ns}, best.messages);
    return m_meeting.meet();
}

/// Short messages are made in registers, with a line that says that they are there; longer ones
/// are copied from a private buffer.
bench::StreamJob Limit::job_for(size_t bytes) const
{
    Shared &shared = m_meeting.shared();
    bench::StreamJob job{};
    job.head = &shared.head;
    job.tail = &shared.tail;
    job.total = &shared.total;
    job.slots = shared.data;
    job.run_ns = form_ns;
    job.bound_ns = bound_ns;
    const auto with_mark = static_cast<uint32_t>(bytes / line_bytes + 1);
    const bool made = with_mark == 1 || with_mark == 2 || with_mark == 5; // what the kernels know
    job.source = made ? nullptr : reinterpret_cast<std::byte *>(m_source->words);
    job.slot_lines = made ? with_mark : static_cast<uint32_t>(lines_of(bytes));
    job.batch = std::min(ring_batch, burst_of(bytes));
    return job;
}

bool Limit::rate(size_t bytes, Best &best)
{
    bench::StreamJob job = job_for(bytes);
    for (const uint32_t slots : {4u, 16u, 128u, 512u, 2048u, 8192u}) {
        if (slots < 2 * job.batch || size_t{slots} * job.slot_lines * line_bytes > data_bytes)
            continue;
        job.slot_count = slots;
        for (const bench::Writer writer : bench::supported_writers())
            for (const bench::Reader reader : bench::supported_readers()) {
                if (writer != bench::Writer::plain && reader != bench::Reader::plain)
                    continue;
                job.writer = writer;
                job.reader = reader;
                if (!ring(job, best))
                    return false;
            }
    }
    return true;
}

/// @param only_probe  where the cores are, and nothing else
bool measure_size(Limit &limit, Meeting &meeting, size_t bytes, bool only_probe)
{
    Figures figures;
    figures.bytes = bytes;
    Best best;
    meeting.mine().report = {};
    figures.probe_before_ns = meeting.probe();
    if (figures.probe_before_ns == 0)
        return false;
    if (!only_probe && (!limit.round_trip(bytes, best) || !limit.rate(bytes, best)))
        return false;
    figures.probe_after_ns = meeting.probe();
    figures.round_trips = best.round_trips;
    figures.messages = best.messages;
    if (meeting.starts())
        print(figures, meeting.mine().report, meeting.theirs().report);
    return figures.probe_after_ns != 0 && meeting.meet();
}

int run(int argc, char **argv)
{
    if (app::show_version(argc, argv))
        return app::finish_output(program_invocation_short_name, 0);
    Meeting meeting;
    const auto options = begin(argc, argv, meeting);
    if (!options)
        return 1;
    Limit limit(meeting);
    for (const size_t bytes : options->sizes)
        if (bytes > source_bytes || !measure_size(limit, meeting, bytes, options->form == "probe"))
            return give_up("no limit for " + std::to_string(bytes) + " bytes");
    return app::finish_output(program_invocation_short_name, 0);
}

} // namespace

} // namespace peers

int main(int argc, char **argv)
{
    return peers::run(argc, argv);
}
