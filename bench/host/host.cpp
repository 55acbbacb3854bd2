// SPDX-License-Identifier: BSD-3-Clause
#include "host/host.hpp"

#include "host/engine.hpp"
#include "host/poller.hpp"
#include "host/traffic.hpp"
#include "host/wakeup.hpp"
#include "mbufs/bare_way.hpp"
#include "session/footprint.hpp"

#include <ntbmsg.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_pmd_plx_ntb.h>
#include <rte_rawdev.h>

namespace bench
{

namespace
{

constexpr const char *device = "raw_plx_ntb0";
constexpr uint32_t connect_ms = 30000;
constexpr uint64_t drain_ns = 20000000;

constexpr uint32_t buffers = 4096; // what mem.host is judged with
constexpr uint32_t tx_mbufs = 4096;
// Long ones are fewer.
constexpr uint32_t window_bytes = 32u << 20;
constexpr uint32_t tx_bytes = 16u << 20;

int start_eal(const HostOptions &options)
{
    // EAL leaves its run-time folder behind, so it gets one that the parent removes.
    setenv("RUNTIME_DIRECTORY", options.folder, 1);
    std::vector<std::string> words{"ntbmsg_bench",
                                   "--no-pci",
                                   "--no-telemetry",
                                   "--log-level=lib.eal:error",
                                   "--log-level=*plx_ntb*:warning",
                                   "-l",
                                   std::to_string(options.cpu),
                                   "--file-prefix",
                                   "host" + std::to_string(options.side),
                                   std::string("--vdev=") + device + ",cable=" + options.folder +
                                       "/cable,dmadev=1"};
    if (options.huge_pages)
        words.push_back("--in-memory");
    else
        words.insert(words.end(), {"--no-huge", "--no-shconf", "-m", "192"});
    std::vector<char *> arguments;
    for (std::string &word : words)
        arguments.push_back(word.data());
    return rte_eal_init(static_cast<int>(arguments.size()), arguments.data());
}

} // namespace

Host::~Host()
{
    close();
}

void Host::open(const HostOptions &options, const Command &command, Result &result)
{
    begin(options, result);
    if (!result.error)
        open_endpoint(command.shape, result);
}

void Host::shape(const Command &command, Result &result)
{
    close_endpoint(result);
    if (!result.error)
        open_endpoint(command.shape, result);
}

void Host::begin(const HostOptions &options, Result &result)
{
    m_side = options.side;
    if (start_eal(options) < 0)
        return fail(result, rte_errno, "EAL does not start");
    m_eal = true;
}

void Host::open_endpoint(const Shape &shape, Result &result)
{
    ntbmsg_endpoint_options settings;
    ntbmsg_endpoint_options_init(&settings);
    settings.buffers = std::min(buffers, window_bytes / shape.buf_bytes);
    settings.tx_mbufs = std::min(tx_mbufs, tx_bytes / shape.buf_bytes);
    settings.buf_bytes = shape.buf_bytes;
    settings.tx_room = shape.buf_bytes;
    if (shape.channels != 0) {
        settings.workers = 1;
        settings.dedicated = shape.dedicated;
        settings.rx_mbufs = credit_of_all(shape.channels);
        if (m_side == 1)
            m_channels.listen(result);
    }
    const int error = ntbmsg_endpoint_open(device, &settings, &m_endpoint);
    if (error)
        return fail(result, -error, "the endpoint does not open");
    m_pool = ntbmsg_endpoint_pool(m_endpoint);
    if (shape.buf_bytes == long_room)
        fill_pool(m_pool);
    connect(result);
    if (shape.channels != 0 && !result.error)
        open_channels(shape, result);
}

void Host::open_channels(const Shape &shape, Result &result)
{
    const Poller poller(shape.dedicated != 0 ? ntbmsg_endpoint_worker(m_endpoint, 0) : nullptr);
    if (shape.regions != 0)
        m_writes.prepare(result);
    m_channels.open(m_endpoint, m_side, shape, m_writes.queue(), result);
    if (shape.regions != 0 && !result.error)
        m_writes.open(m_endpoint, m_channels, result);
}

void Host::close_channels()
{
    const Poller poller(driven());
    m_writes.close_remote();
    m_channels.close();
    m_writes.close();
}

/// The worker that needs a thread of its own, while its channels are open; or nullptr.
ntbmsg_worker *Host::driven() const
{
    return m_channels.dedicated() && m_channels.count() != 0 ? m_channels.worker() : nullptr;
}

void Host::close_endpoint(Result &result)
{
    close_channels();
    const int error = ntbmsg_endpoint_close_linger(m_endpoint, 0, nullptr);
    if (error)
        return fail(result, -error, "the endpoint does not close");
    m_endpoint = nullptr;
}

void Host::connect(Result &result)
{
    const int error = ntbmsg_endpoint_wait_connected(m_endpoint, connect_ms);
    if (error == 0)
        return;
    char why[128] = "";
    ntbmsg_endpoint_link_reason_get(m_endpoint, why, sizeof(why));
    fail(result, -error, (std::string("the hosts do not connect, ") + why).c_str());
}

void Host::run(const Command &command, Shared &shared, Result &result)
{
    if (!m_endpoint)
        return fail(result, ENOTCONN, "the host is not open");
    const Ways ways{m_endpoint, m_pool, m_channels, &BareRings::in(shared.data), m_side};
    // A driven worker's thread polls: nothing is to poll meanwhile.
    const Poller poller(command.op == Op::host_idle ? nullptr : driven());
    switch (command.op) {
    case Op::host_rtt:
        return m_side == 0 ? ask(ways, command, result) : answer(ways, command, result);
    case Op::host_rate:
        return m_side == 0 ? send(ways, command, shared, result)
                           : receive(ways, command, shared, result);
    case Op::host_write_rtt:
        return m_side == 0 ? m_writes.ask(command, result) : m_writes.answer(command, result);
    case Op::host_write_rate:
        return m_side == 0 ? m_writes.stream(command, shared, result)
                           : m_writes.follow(command, shared, result);
    case Op::host_drain:
        return drain();
    case Op::host_memory:
        result.bytes = own_footprint(&shared, window_address());
        return;
    case Op::host_idle:
        return idle(command, result);
    case Op::host_engine:
        return m_side == 0 ? m_engine.copy(command, shared, result)
                           : read_engine_copies(command, shared, result);
    case Op::host_engine_open:
        return m_side == 0 ? m_engine.open(command, shared, result) : void();
    case Op::host_engine_close:
        return m_engine.close();
    case Op::host_turnover:
        return m_side == 0 ? m_engine.turn_over(command, result) : void();
    case Op::host_wakeup:
        return m_side == 0 ? wake(ways, command, result)
                           : be_woken(ways, rte_rawdev_get_dev_id(device), command, result);
    case Op::host_crossover:
        return crossover(result);
    case Op::host_await_loss:
        return m_side == 1 ? send(ways, command, shared, result) : await_loss(command, result);
    default:
        return fail(result, EINVAL, "no such operation");
    }
}

/// Where some receive buffer of this host lies; nullptr if none is free.
const void *Host::window_address() const
{
    rte_pmd_plx_ntb_info info = {};
    info.size = sizeof(info);
    const uint16_t device_id = rte_rawdev_get_dev_id(device);
    rte_rawdev_info raw_info = {};
    raw_info.dev_private = &info;
    if (device_id == UINT16_MAX || rte_rawdev_info_get(device_id, &raw_info, sizeof(info)) != 0 ||
        !info.buffer_pool)
        return nullptr;
    rte_mbuf *buffer = rte_pktmbuf_alloc(info.buffer_pool);
    const void *address = buffer ? buffer->buf_addr : nullptr;
    rte_pktmbuf_free(buffer);
    return address;
}

/// After a failure: what is still on its way must not be taken for the next figure's.
void Host::drain()
{
    rte_mbuf *message = nullptr;
    for (uint64_t quiet_from = monotonic_ns(), begin = quiet_from;
         monotonic_ns() - quiet_from < drain_ns && monotonic_ns() - begin < 50 * drain_ns;) {
        if (ntbmsg_queue_recv_burst(m_endpoint, 0, &message, nullptr, 1) != 1)
            continue;
        rte_pktmbuf_free(message);
        quiet_from = monotonic_ns();
    }
}

/// CPU time of the threads that do not poll, while the polling one sleeps.
void Host::idle(const Command &command, Result &result)
{
    const uint64_t begin = monotonic_ns();
    const uint64_t others = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID);
    const timespec span{static_cast<time_t>(command.run_ns / 1000000000u),
                        static_cast<long>(command.run_ns % 1000000000u)};
    nanosleep(&span, nullptr);
    result.count = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - clock_ns(CLOCK_THREAD_CPUTIME_ID) - others;
    result.ns = monotonic_ns() - begin;
}

/// The curve stands in the device's dump alone.
void Host::crossover(Result &result)
{
    const uint16_t device_id = rte_rawdev_get_dev_id(device);
    if (rte_rawdev_get_attr(device_id, "dma_min", &result.bytes) != 0)
        return fail(result, ENODEV, "the device does not say how it copies");
    char *dump = nullptr;
    size_t size = 0;
    std::FILE *file = open_memstream(&dump, &size);
    if (!file)
        return fail(result, errno, "no memory for the device's dump");
    rte_rawdev_dump(device_id, file);
    std::fclose(file);
    constexpr const char *begin = "copy_curve=";
    if (const char *curve = strstr(dump, begin))
        snprintf(result.text, sizeof(result.text), "%.*s", static_cast<int>(strcspn(curve, "\n")),
                 curve);
    std::free(dump);
}

/// Receives until the peer is reported lost; result.check is the time of that.
void Host::await_loss(const Command &command, Result &result)
{
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    ntbmsg_event event;
    rte_mbuf *burst[32];
    for (uint64_t polls = 1; result.check == 0; polls++) {
        const int got = ntbmsg_queue_recv_burst(m_endpoint, 0, burst, nullptr, 32);
        if (got > 0)
            rte_pktmbuf_free_bulk(burst, static_cast<unsigned>(got));
        if (polls % 64 != 0)
            continue;
        while (ntbmsg_endpoint_event_poll(m_endpoint, &event) == 1)
            if (event == NTBMSG_EVENT_LOST)
                result.check = monotonic_ns();
        if (monotonic_ns() > give_up)
            return fail(result, ETIMEDOUT, "the loss was not reported");
    }
}

/// result.check is the time at which the device began to start.
void Host::restart(const HostOptions &options, const Command &command, Result &result)
{
    begin(options, result);
    result.check = monotonic_ns();
    if (!result.error)
        open_endpoint(command.shape, result);
    if (!result.error)
        send_one(Ways{m_endpoint, m_pool, m_channels}, command, result);
}

/// Receives until a message comes; result.check is the time of that.
void Host::await_message(const Command &command, Result &result)
{
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    rte_mbuf *message = nullptr;
    for (uint64_t polls = 1; ntbmsg_queue_recv_burst(m_endpoint, 0, &message, nullptr, 1) != 1;
         polls++)
        if (polls % 4096 == 0 && monotonic_ns() > give_up)
            return fail(result, ETIMEDOUT, "no message came from the host that has started again");
    result.check = monotonic_ns();
    rte_pktmbuf_free(message);
}

void Host::close()
{
    m_engine.close();
    close_channels();
    if (m_endpoint)
        ntbmsg_endpoint_close_linger(m_endpoint, 0, nullptr);
    m_endpoint = nullptr;
    if (m_eal)
        rte_eal_cleanup();
    m_eal = false;
}

} // namespace bench
