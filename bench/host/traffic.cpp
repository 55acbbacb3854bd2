// SPDX-License-Identifier: BSD-3-Clause
#include "host/traffic.hpp"

#include "host/way.hpp"
#include "kernel/kernels.hpp"

#include <ntbmsg.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>

namespace bench
{

namespace
{

constexpr unsigned max_burst = 32;
constexpr uint64_t spins_per_look = 4096; ///< how often a waiting loop looks at the clock
constexpr uint64_t rounds_per_look = 512; ///< the same for a series of round trips
constexpr uint64_t farewell = UINT64_MAX; ///< payload of the message that ends a series

template <size_t bytes>
constexpr uint64_t lines = (bytes + line_bytes - 1) / line_bytes;

/// Payloads from here on are written and read by the kernel of this CPU, as the limit's are: what
/// the two differ in shall be the message path.
constexpr size_t kernel_from = 1024;
/// Longer messages are chains of mbufs of that size, whose bytes are there before: like the source
/// of the limit's copies they are not written for each message, but for their first words.
constexpr size_t segment_bytes = long_room;
constexpr uint64_t fill_word = 0x0123456789abcdefu;
template <size_t bytes>
constexpr unsigned segments = (bytes + segment_bytes - 1) / segment_bytes;
template <size_t bytes>
constexpr bool chained = bytes > segment_bytes;
/// Lines of a message that say which it is.
template <size_t bytes>
constexpr uint64_t stamped = chained<bytes> ? segments<bytes> : lines<bytes>;

/// What read_payload() gives for so many messages together, of which the numbers have that sum.
template <size_t bytes>
constexpr uint64_t sum_of(uint64_t messages, uint64_t numbers)
{
    constexpr uint64_t filled = lines<bytes> - stamped<bytes>;
    return numbers * stamped<bytes> + messages * filled * fill_word;
}
const Kernel &kernel = best_kernel();

using Burst = rte_mbuf *[max_burst];

/// One look at a time, until it gives something but 0. @return that, or 0 when time is up
template <typename Look>
int until(uint64_t give_up_ns, Look look)
{
    for (uint64_t spin = 1;; spin++) {
        const int seen = look();
        if (seen != 0)
            return seen;
        if (spin % spins_per_look == 0 && monotonic_ns() > give_up_ns)
            return 0;
    }
}

// Payload -----------------------------------------------------------------------------------------

/// Every word of the payload becomes @p value.
template <size_t bytes>
void write_payload(rte_mbuf *message, uint64_t value)
{
    uint64_t *data = rte_pktmbuf_mtod(message, uint64_t *);
    if constexpr (bytes >= kernel_from)
        kernel.fill_payload(reinterpret_cast<std::byte *>(data), bytes, value);
    else
        for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
            data[i] = value;
}

/// @return the sum over the first word of every line
/// A message of another length counts as nothing, which the sum then shows.
template <size_t bytes>
uint64_t read_payload(const rte_mbuf *message)
{
    if (message->pkt_len != bytes)
        return 0;
    uint64_t sum = 0;
    for (const rte_mbuf *segment = message; segment; segment = segment->next) {
        const uint64_t *data = rte_pktmbuf_mtod(segment, const uint64_t *);
        if constexpr (bytes >= kernel_from)
            sum += kernel.sum_payload(reinterpret_cast<const std::byte *>(data), segment->data_len);
        else
            for (size_t at = 0; at < segment->data_len; at += line_bytes)
                sum += data[at / sizeof(uint64_t)];
    }
    return sum;
}

/// A message that is a chain.
template <size_t bytes>
rte_mbuf *make_chain(rte_mempool *pool, uint64_t value)
{
    static_assert(bytes % segment_bytes == 0);
    rte_mbuf *chain[segments<bytes>];
    if (rte_pktmbuf_alloc_bulk(pool, chain, segments<bytes>) != 0)
        return nullptr;
    for (unsigned i = 0; i < segments<bytes>; i++) {
        chain[i]->data_len = segment_bytes;
        chain[i]->next = i + 1 < segments<bytes> ? chain[i + 1] : nullptr;
        *rte_pktmbuf_mtod(chain[i], uint64_t *) = value;
    }
    chain[0]->pkt_len = bytes;
    chain[0]->nb_segs = segments<bytes>;
    return chain[0];
}

template <size_t bytes>
bool make_chains(rte_mempool *pool, rte_mbuf **messages, unsigned n, uint64_t first_value)
{
    for (unsigned i = 0; i < n; i++) {
        messages[i] = make_chain<bytes>(pool, first_value + i);
        if (messages[i] == nullptr) {
            rte_pktmbuf_free_bulk(messages, i);
            return false;
        }
    }
    return true;
}

template <size_t bytes>
bool make_burst(rte_mempool *pool, rte_mbuf **messages, unsigned n, uint64_t first_value)
{
    if constexpr (chained<bytes>) {
        return make_chains<bytes>(pool, messages, n, first_value);
    } else {
        if (rte_pktmbuf_alloc_bulk(pool, messages, n) != 0)
            return false;
        for (unsigned i = 0; i < n; i++) {
            messages[i]->pkt_len = messages[i]->data_len = bytes;
            write_payload<bytes>(messages[i], first_value + i);
        }
        return true;
    }
}

// Sending and receiving with back-pressure --------------------------------------------------------

/// @return whether all n were taken; what was not is freed
template <typename Way>
bool send_all(Way &way, rte_mbuf **messages, unsigned n, uint64_t give_up, Result &result)
{
    for (unsigned sent = 0; sent < n;) {
        const int taken = until(
            give_up, [&] { return way.send(messages + sent, static_cast<uint16_t>(n - sent)); });
        if (taken <= 0) {
            fail(result, taken < 0 ? -taken : ETIMEDOUT, "sending failed");
            rte_pktmbuf_free_bulk(messages + sent, n - sent);
            return false;
        }
        sent += static_cast<unsigned>(taken);
    }
    return true;
}

/// @return the next message, or nullptr when time is up
template <typename Way>
rte_mbuf *receive_one(Way &way, uint64_t give_up, Result &result)
{
    rte_mbuf *message = nullptr;
    const int got = until(give_up, [&] { return way.receive(&message, 1); });
    if (got == 1)
        return message;
    fail(result, got < 0 ? -got : ETIMEDOUT, "no message came");
    return nullptr;
}

// Round trips -------------------------------------------------------------------------------------

template <size_t bytes, typename Way>
bool ask_once(Way &way, uint64_t round, uint64_t give_up, Result &result)
{
    rte_mbuf *message = nullptr;
    if (!make_burst<bytes>(way.pool, &message, 1, round)) {
        fail(result, ENOMEM, "the pool is empty");
        return false;
    }
    if (!send_all(way, &message, 1, give_up, result))
        return false;
    rte_mbuf *reply = receive_one(way, give_up, result);
    if (!reply)
        return false;
    if (read_payload<bytes>(reply) != sum_of<bytes>(1, round))
        fail(result, EBADMSG, "a reply is not what was sent");
    rte_pktmbuf_free(reply);
    return result.error == 0;
}

template <size_t bytes, typename Way>
void ask_rounds(Way &way, const Command &command, std::vector<uint64_t> *ticks, Result &result)
{
    const uint64_t begin = monotonic_ns();
    const uint64_t give_up = begin + command.bound_ns;
    uint64_t last = rte_rdtsc();
    while (result.count < command.rounds &&
           (result.count % rounds_per_look != 0 || monotonic_ns() - begin <= command.run_ns)) {
        if (!ask_once<bytes>(way, result.count + 1, give_up, result))
            return;
        if (ticks) {
            const uint64_t now = rte_rdtsc();
            (*ticks)[result.count] = now - last;
            last = now;
        }
        result.count++;
    }
    result.ns = monotonic_ns() - begin;
    result.counted = result.count;
    ask_once<bytes>(way, farewell, give_up, result);
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

template <size_t bytes, typename Way>
void ask_as(Way &way, const Command &command, Result &result)
{
    if (!command.timed) {
        ask_rounds<bytes>(way, command, nullptr, result);
        return;
    }
    std::vector<uint64_t> ticks(command.rounds);
    ask_rounds<bytes>(way, command, &ticks, result);
    ticks.resize(result.count);
    set_percentiles(ticks, result);
}

template <size_t bytes, typename Way>
void answer_as(Way &way, const Command &command, Result &result)
{
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    for (uint64_t value = 0; value != farewell; result.count += value != farewell) {
        rte_mbuf *message = receive_one(way, give_up, result);
        if (!message)
            return;
        value = read_payload<bytes>(message);
        write_payload<bytes>(message, value);
        if (!send_all(way, &message, 1, give_up, result))
            return;
    }
}

// One way -----------------------------------------------------------------------------------------

template <size_t bytes, typename Way>
void send_as(Way &way, const Command &command, Shared &shared, Result &result)
{
    constexpr uint64_t bursts_per_look = 16;
    Burst messages;
    const uint64_t begin = monotonic_ns();
    for (uint64_t bursts = 1;; bursts++) {
        if (!make_burst<bytes>(way.pool, messages, command.batch, result.count)) {
            fail(result, ENOMEM, "the pool is empty");
            break;
        }
        if (!send_all(way, messages, command.batch, begin + command.bound_ns, result))
            break;
        result.count += command.batch;
        if (bursts % bursts_per_look == 0 && monotonic_ns() - begin > command.run_ns)
            break;
    }
    result.ns = monotonic_ns() - begin;
    shared.sent_total.store(result.count + 1, std::memory_order_release); // pairs with all_received
}

/// Looked at only when nothing has come, so it costs the stream nothing.
bool all_received(const Shared &shared, uint64_t received)
{
    return shared.sent_total.load(std::memory_order_acquire) == received + 1;
}

/// Waits for a burst. @return how many came; 0: it was the last, or result tells an error
template <typename Way>
int next_burst(Way &way, Burst &burst, const Command &command, const Shared &shared,
               uint64_t give_up, Result &result)
{
    for (uint64_t spin = 1;; spin++) {
        const int got = way.receive(burst, static_cast<uint16_t>(command.batch));
        if (got > 0)
            return got;
        if (got < 0) {
            fail(result, -got, "receiving failed");
            return 0;
        }
        if (spin % 64 == 0 && all_received(shared, result.count))
            return 0;
        if (spin % spins_per_look == 0 && monotonic_ns() > give_up) {
            fail(result, ETIMEDOUT, "messages are missing");
            return 0;
        }
    }
}

template <size_t bytes, typename Way>
void receive_as(Way &way, const Command &command, const Shared &shared, Result &result)
{
    // Rings, pools and their caches have been round by then. A run too short for that counts whole.
    constexpr uint64_t warm = bytes >= kernel_from ? (16 << 20) / bytes : 16384;
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    uint64_t begin = 0;
    uint64_t begin_at = 0;
    Burst burst;
    while (const int got = next_burst(way, burst, command, shared, give_up, result)) {
        for (int i = 0; i < got; i++)
            result.check += read_payload<bytes>(burst[i]);
        rte_pktmbuf_free_bulk(burst, static_cast<unsigned>(got));
        result.count += static_cast<unsigned>(got);
        if (begin == 0 || (begin_at < warm && result.count >= warm)) {
            begin = monotonic_ns();
            begin_at = result.count;
        }
    }
    result.ns = begin != 0 ? monotonic_ns() - begin : 0;
    result.counted = result.count - begin_at;
    if (!result.error &&
        result.check != sum_of<bytes>(result.count, result.count * (result.count - 1) / 2))
        fail(result, EBADMSG, "what came is not what was sent");
}

/// Calls @p run with the payload size as a compile-time constant, so that writing and reading it
/// costs what it costs in a program that knows its message.
template <typename Run>
void with_payload(uint32_t bytes, Result &result, Run run)
{
    switch (bytes) {
    case 8:
        return run.template operator()<8>();
    case 32:
        return run.template operator()<32>();
    case 64:
        return run.template operator()<64>();
    case 256:
        return run.template operator()<256>();
    case 2048:
        return run.template operator()<2048>();
    case 4096:
        return run.template operator()<4096>();
    case 1048576:
        return run.template operator()<1048576>();
    default:
        return fail(result, EINVAL, "no such payload size");
    }
}

/// The same with the way that the command names.
template <typename Run>
void with_way(const Port &port, const Command &command, Result &result, Run run)
{
    const auto payload = [&](auto way) {
        with_payload(command.payload, result,
                     [&]<size_t bytes>() { run.template operator()<bytes>(way); });
    };
    const Channels &channels = port.channels;
    if (command.used > channels.count())
        fail(result, EINVAL, "not so many channels are open");
    else if (command.used == 0)
        payload(QueueWay{port.pool, port.endpoint});
    else if (channels.dedicated())
        payload(PolledWay{port.pool, channels.at(0)});
    else if (command.used == 1)
        payload(ChannelWay{port.pool, channels.worker(), channels.at(0)});
    else
        payload(TurnsWay(port.pool, channels));
}

bool batch_fits(const Command &command, Result &result)
{
    if (command.batch >= 1 && command.batch <= max_burst)
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

void send_one(const Port &port, const Command &command, Result &result)
{
    rte_mbuf *message = nullptr;
    QueueWay way{port.pool, port.endpoint};
    if (!make_burst<line_bytes>(port.pool, &message, 1, 1))
        return fail(result, ENOMEM, "the pool is empty");
    send_all(way, &message, 1, monotonic_ns() + command.bound_ns, result);
}

void ask(const Port &port, const Command &command, Result &result)
{
    with_way(port, command, result,
             [&]<size_t bytes>(auto &way) { ask_as<bytes>(way, command, result); });
}

void answer(const Port &port, const Command &command, Result &result)
{
    with_way(port, command, result,
             [&]<size_t bytes>(auto &way) { answer_as<bytes>(way, command, result); });
}

void send(const Port &port, const Command &command, Shared &shared, Result &result)
{
    if (batch_fits(command, result))
        with_way(port, command, result,
                 [&]<size_t bytes>(auto &way) { send_as<bytes>(way, command, shared, result); });
}

void receive(const Port &port, const Command &command, Shared &shared, Result &result)
{
    if (batch_fits(command, result))
        with_way(port, command, result,
                 [&]<size_t bytes>(auto &way) { receive_as<bytes>(way, command, shared, result); });
}

} // namespace bench
