// SPDX-License-Identifier: BSD-3-Clause
#include "host/traffic.hpp"

#include "host/channels.hpp"
#include "loops.hpp"
#include "mbufs/bare_way.hpp"
#include "mbufs/in_place_link.hpp"
#include "mbufs/mbuf_link.hpp"
#include "mbufs/ways.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include <ntbmsg.h>
#include <rte_cycles.h>

namespace bench
{

namespace
{

/// All channels in turn, a burst a visit; received as their poll set reports.
class TurnsWay
{
    static constexpr uint16_t most_ready = 64;
    const Channels &m_channels;
    size_t m_next = 0;
    ntbmsg_ready m_ready[most_ready];
    int m_ready_count = 0;
    int m_visited = 0;

public:
    rte_mempool *pool;

    TurnsWay(rte_mempool *from, const Channels &channels) : m_channels(channels), pool(from) {}

    int send(rte_mbuf **mbufs, uint16_t n)
    {
        ChannelWay way{pool, m_channels.worker(), m_channels.at(m_next)};
        m_next = m_next + 1 < m_channels.count() ? m_next + 1 : 0;
        return way.send(mbufs, n);
    }
    int receive(rte_mbuf **mbufs, uint16_t n)
    {
        if (m_visited == m_ready_count) {
            m_visited = 0;
            m_ready_count = ntbmsg_poll_set_poll(m_channels.set(), m_ready, most_ready);
            if (m_ready_count <= 0)
                return std::exchange(m_ready_count, 0);
        }
        return ntbmsg_channel_recv_burst(m_ready[m_visited++].channel, mbufs, nullptr, n);
    }
};

using measure::Outcome;

void keep(const Outcome &outcome, Result &result)
{
    result.count = outcome.count;
    result.counted = outcome.counted;
    result.ns = outcome.ns;
    if (outcome.error != 0)
        fail(result, outcome.error, outcome.what);
}

measure::Span span_of(const Command &command)
{
    return {command.run_ns, command.bound_ns, command.rounds};
}

void set_percentiles(std::vector<uint64_t> &ticks, Result &result)
{
    const double ns_per_tick = 1e9 / static_cast<double>(rte_get_tsc_hz());
    std::sort(ticks.begin(), ticks.end());
    for (unsigned i = 0; i < percentile_count && !ticks.empty(); i++) {
        const double rank = percentiles[i] / 100 * static_cast<double>(ticks.size() - 1);
        result.at_percentile[i] =
            static_cast<double>(ticks[static_cast<size_t>(rank)]) * ns_per_tick;
    }
}

template <typename Link>
void ask_timed(Link &link, const Command &command, Outcome &outcome, Result &result)
{
    std::vector<uint64_t> ticks(command.rounds);
    uint64_t *next = ticks.data();
    measure::ask(
        link, span_of(command), [&](uint64_t took) { *next++ = took; }, outcome);
    ticks.resize(outcome.count);
    set_percentiles(ticks, result);
}

/// Calls @p run with a link over the way that the command names, and keeps what came of it.
template <size_t bytes, bool as_it_is = false, typename Run>
void with_way(const Ways &ways, const Command &command, Result &result, Run run)
{
    const auto over = [&](auto way) {
        MbufLink<decltype(way), FixedSize<bytes, long_room, as_it_is>> link(way);
        Outcome outcome;
        run(link, outcome);
        keep(outcome, result);
    };
    if (command.bare != 0) {
        if constexpr (bytes == line_bytes)
            return over(BareWay(ways.pool, *ways.bare, ways.side));
        return fail(result, EINVAL, "bare slots hold another size");
    }
    const Channels &channels = ways.channels;
    if (command.used > channels.count())
        fail(result, EINVAL, "not so many channels are open");
    else if (command.used == 0)
        over(QueueWay{ways.pool, ways.endpoint});
    else if (channels.dedicated())
        over(PolledWay{ways.pool, channels.at(0)});
    else if (command.used == 1)
        over(ChannelWay{ways.pool, channels.worker(), channels.at(0)});
    else
        over(TurnsWay(ways.pool, channels));
}

template <size_t... payloads, typename Run>
void with_payload(std::index_sequence<payloads...>, const Ways &ways, const Command &command,
                  Result &result, Run run)
{
    const auto is = [&]<size_t payload>() {
        if (command.payload == payload)
            with_way<payload>(ways, command, result, run);
        return command.payload == payload;
    };
    if (!(is.template operator()<payloads>() || ...))
        fail(result, EINVAL, "no such payload size");
}

template <typename Run>
void with_link(const Ways &ways, const Command &command, Result &result, Run run)
{
    if (command.as_it_is != 0 && command.payload == 4096)
        return with_way<4096, true>(ways, command, result, run);
    with_payload(std::index_sequence<8, 32, 64, 256, 1518, 2048, 4096, 1048576>(), ways, command,
                 result, run);
}

void send_in_place(const Ways &ways, const Command &command, Shared &shared, Result &result)
{
    const auto as = [&]<size_t bytes>() {
        InPlaceLink<bytes> link(ways.endpoint);
        Outcome outcome;
        measure::send_stream(link, command.batch, span_of(command), shared.sent_total, outcome);
        keep(outcome, result);
    };
    if (command.payload == 1518)
        as.template operator()<1518>();
    else if (command.payload == 4096)
        as.template operator()<4096>();
    else
        fail(result, EINVAL, "no such payload size");
}

bool burst_fits(const Command &command, Result &result)
{
    if (command.batch >= 1 && command.batch <= most_burst)
        return true;
    fail(result, EINVAL, "no such burst size");
    return false;
}

} // namespace

void fill_pool(rte_mempool *pool)
{
    std::vector<rte_mbuf *> all;
    while (rte_mbuf *one = rte_pktmbuf_alloc(pool)) {
        std::byte *data = rte_pktmbuf_mtod(one, std::byte *);
        kernel.fill_payload(data, rte_pktmbuf_tailroom(one) / line_bytes * line_bytes, fill_word);
        all.push_back(one);
    }
    rte_pktmbuf_free_bulk(all.data(), static_cast<unsigned>(all.size()));
}

void send_one(const Ways &ways, const Command &command, Result &result)
{
    MbufLink<QueueWay, FixedSize<line_bytes, long_room>> link({ways.pool, ways.endpoint});
    if (const int error = link.send(1, 1, monotonic_ns() + command.bound_ns); error != 0)
        fail(result, error, "sending failed");
}

void ask(const Ways &ways, const Command &command, Result &result)
{
    with_link(ways, command, result, [&](auto &link, Outcome &outcome) {
        if (command.timed != 0)
            ask_timed(link, command, outcome, result);
        else
            measure::ask(link, span_of(command), measure::Untimed{}, outcome);
    });
}

void answer(const Ways &ways, const Command &command, Result &result)
{
    with_link(ways, command, result, [&](auto &link, Outcome &outcome) {
        measure::answer(link, command.bound_ns, outcome);
    });
}

void send(const Ways &ways, const Command &command, Shared &shared, Result &result)
{
    if (command.as_it_is != 0)
        fill_pool(ways.pool); // other runs have written it
    if (!burst_fits(command, result))
        return;
    if (command.in_place != 0)
        send_in_place(ways, command, shared, result);
    else
        with_link(ways, command, result, [&](auto &link, Outcome &outcome) {
            measure::send_stream(link, command.batch, span_of(command), shared.sent_total, outcome);
        });
}

void receive(const Ways &ways, const Command &command, Shared &shared, Result &result)
{
    if (burst_fits(command, result))
        with_link(ways, command, result, [&](auto &link, Outcome &outcome) {
            measure::receive_stream(link, command.batch, span_of(command), shared.sent_total,
                                    outcome);
        });
}

} // namespace bench
