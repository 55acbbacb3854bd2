// SPDX-License-Identifier: BSD-3-Clause
#include "host/worker.hpp"

#include "host/traffic.hpp"
#include "kernel/kernels.hpp"
#include "mbufs/bare_way.hpp"
#include "pin.hpp"
#include "realtime.hpp"
#include "session/shared.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace bench
{

namespace
{

constexpr size_t source_bytes = 1048576; ///< longest message that is copied
constexpr uint64_t source_word = 0x0123456789abcdefu;
constexpr uint64_t meet_ns = 10000000000u; ///< a process may start slowly on a busy machine

struct alignas(4096) Source {
    uint64_t words[source_bytes / sizeof(uint64_t)];
};

/// Of the thread that does the command, or of all where several share its core.
uint64_t cpu_ns(const Command &command)
{
    return clock_ns(command.shape.dedicated != 0 ? CLOCK_PROCESS_CPUTIME_ID
                                                 : CLOCK_THREAD_CPUTIME_ID);
}

class Worker
{
public:
    Worker(const WorkerOptions &options, Shared &shared)
        : m_options(options), m_shared(shared), m_source(std::make_unique<Source>())
    {
        for (uint64_t &word : m_source->words)
            word = source_word;
    }

    /// One command. @return false for the last
    bool run(uint32_t number);

private:
    bool meet(uint32_t number);
    void ping(const Command &command, Result &result);
    void stream(const Command &command, Result &result);
    void write(const StreamJob &job, Result &result);
    void read(const StreamJob &job, Result &result);
    void execute(const Command &command, Result &result);
    bool starts() const { return m_options.host.side == 0; }

    const WorkerOptions m_options;
    Shared &m_shared;
    std::unique_ptr<Source> m_source;
    Host m_host;
};

/// Whether it is short, and nothing but the polling thread has to run meanwhile.
bool measures(Op op)
{
    return op == Op::ping || op == Op::stream || op == Op::host_rtt || op == Op::host_rate ||
           op == Op::host_write_rtt || op == Op::host_write_rate || op == Op::host_engine ||
           op == Op::host_turnover;
}

/// Both children wait for each other, so that neither's time contains the waking of the other.
bool Worker::meet(uint32_t number)
{
    Seat &mine = m_shared.seats[m_options.host.side];
    const Seat &theirs = m_shared.seats[1 - m_options.host.side];
    m_shared.lines[m_options.host.side] = {};
    if (m_shared.command.bare != 0)
        BareRings::in(m_shared.data).prepare(m_options.host.side);
    if (starts()) {
        m_shared.head = {};
        m_shared.total = {};
        m_shared.sent_total.store(0, std::memory_order_relaxed);
    } else {
        m_shared.tail = {};
    }
    mine.arrived.store(number, std::memory_order_release); // pairs with the load below
    const uint64_t give_up = monotonic_ns() + meet_ns;
    while (theirs.arrived.load(std::memory_order_acquire) != number)
        if (monotonic_ns() > give_up)
            return false;
    return true;
}

void Worker::ping(const Command &command, Result &result)
{
    const PingDone done = best_kernel().ping(
        {&m_shared.lines[m_options.host.side], &m_shared.lines[1 - m_options.host.side],
         command.form, starts(), command.rounds, command.bound_ns});
    result.count = result.counted = done.rounds;
    result.ns = done.ns;
    if (done.bad != 0)
        fail(result, EBADMSG, "a line of the ping-pong was torn");
    else if (done.rounds != command.rounds)
        fail(result, ETIMEDOUT, "the ping-pong did not end in time");
}

void Worker::write(const StreamJob &job, Result &result)
{
    const StreamDone done = best_kernel().write(job);
    result.count = done.slots;
    result.ns = done.ns;
}

void Worker::read(const StreamJob &job, Result &result)
{
    const StreamDone done = best_kernel().read(job);
    const uint64_t sum = job.source && !job.writes_source
                             ? done.slots * job.slot_lines * source_word
                             : done.slots * (done.slots - 1) / 2 * job.slot_lines;
    result.count = done.slots;
    result.counted = done.counted;
    result.ns = done.ns;
    if (m_shared.total.value != done.slots + 1)
        fail(result, ETIMEDOUT, "the ring was not emptied in time");
    else if (done.check != sum)
        fail(result, EBADMSG, "the ring did not carry what was written");
}

void Worker::stream(const Command &command, Result &result)
{
    const uint32_t slot_bytes = command.slot_lines * static_cast<uint32_t>(line_bytes);
    if (command.copied > source_bytes || (command.copied != 0 && command.copied < slot_bytes))
        return fail(result, EINVAL, "there is no such source to copy from");
    const bool copied = command.copied != 0;
    std::byte *source = copied ? reinterpret_cast<std::byte *>(m_source->words) : nullptr;
    const uint32_t source_mask = copied ? command.copied / slot_bytes - 1 : 0;
    const StreamJob job{&m_shared.head, &m_shared.tail,      &m_shared.total,    m_shared.data,
                        source,         command.slot_lines,  command.slot_count, command.batch,
                        command.writer, command.reader,      command.run_ns,     command.bound_ns,
                        source_mask,    command.written != 0};
    if (!starts())
        return read(job, result);
    write(job, result);
    if (job.writes_source) // what other jobs copy
        std::fill_n(m_source->words, command.copied / sizeof(uint64_t), source_word);
}

void Worker::execute(const Command &command, Result &result)
{
    switch (command.op) {
    case Op::ping:
        ping(command, result);
        break;
    case Op::stream:
        stream(command, result);
        break;
    case Op::host_open:
        m_host.open(m_options.host, command, result);
        break;
    case Op::host_shape:
        m_host.shape(command, result);
        break;
    case Op::host_close:
        m_host.close();
        break;
    case Op::host_restart:
        if (starts())
            m_host.await_message(command, result);
        else
            m_host.restart(m_options.host, command, result);
        break;
    default:
        m_host.run(command, m_shared, result);
        break;
    }
}

bool Worker::run(uint32_t number)
{
    const Command command = m_shared.command;
    if (command.op == Op::quit)
        return false;
    if (m_options.realtime)
        app::set_realtime(measures(command.op));
    Result result{};
    if (meet(number)) {
        const uint64_t cpu = cpu_ns(command);
        const uint64_t wall = monotonic_ns();
        execute(command, result);
        result.wall_ns = monotonic_ns() - wall;
        result.cpu_ns = cpu_ns(command) - cpu;
    } else {
        fail(result, ETIMEDOUT, "the other host did not come to the start");
    }
    Seat &seat = m_shared.seats[m_options.host.side];
    seat.result = result;
    seat.finished.store(number, std::memory_order_release); // pairs with the parent's load
    m_shared.results.fetch_add(1, std::memory_order_release);
    futex_wake(m_shared.results);
    return true;
}

} // namespace

int worker_main(const WorkerOptions &options)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_IGN); // the terminal sends it to all: the parent decides
    Shared *shared = shared_map(options.shared_fd);
    close(options.shared_fd);
    // Before EAL starts: its control threads then share the core with the polling thread of their
    // own host and stay off the other host's.
    if (!shared || !app::pin(options.host.cpu)) {
        fprintf(stderr, "ntbmsg_bench: host %u on CPU %u: %s\n", options.host.side,
                options.host.cpu, strerror(errno));
        return 1;
    }
    Worker worker(options, *shared);
    // 0, or what a predecessor was killed in.
    uint32_t number = shared->seats[options.host.side].arrived.load(std::memory_order_relaxed);
    while (getppid() == options.parent) { // it may have died before the line that ties us to it
        const uint32_t issued = shared->issued.load(std::memory_order_acquire);
        if (issued == number) {
            futex_wait(shared->issued, number, 1000000000u);
            continue;
        }
        number = issued;
        if (!worker.run(number))
            break;
    }
    return 0;
}

} // namespace bench
