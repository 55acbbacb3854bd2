// SPDX-License-Identifier: BSD-3-Clause
#include "traffic.hpp"

#include "kernels.hpp"

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

/// @return the sum over the first word of every line: lines<bytes> times what was written.
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

/// The pool's mbufs hold a message each.
template <size_t bytes>
bool make_burst(rte_mempool *pool, rte_mbuf **messages, unsigned n, uint64_t first_value)
{
    if (rte_pktmbuf_alloc_bulk(pool, messages, n) != 0)
        return false;
    for (unsigned i = 0; i < n; i++) {
        messages[i]->pkt_len = messages[i]->data_len = bytes;
        write_payload<bytes>(messages[i], first_value + i);
    }
    return true;
}

// Sending and receiving with back-pressure --------------------------------------------------------

/// @return whether all n were taken; what was not is freed
bool send_all(const Port &port, rte_mbuf **messages, unsigned n, uint64_t give_up, Result &result)
{
    for (unsigned sent = 0; sent < n;) {
        const int taken = until(give_up, [&] {
            return ntbmsg_send_burst(port.endpoint, 0, messages + sent, nullptr,
                                     static_cast<uint16_t>(n - sent));
        });
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
rte_mbuf *receive_one(const Port &port, uint64_t give_up, Result &result)
{
    rte_mbuf *message = nullptr;
    const int got =
        until(give_up, [&] { return ntbmsg_recv_burst(port.endpoint, 0, &message, nullptr, 1); });
    if (got == 1)
        return message;
    fail(result, got < 0 ? -got : ETIMEDOUT, "no message came");
    return nullptr;
}

// Round trips -------------------------------------------------------------------------------------

template <size_t bytes>
bool ask_once(const Port &port, uint64_t round, uint64_t give_up, Result &result)
{
    rte_mbuf *message = nullptr;
    if (!make_burst<bytes>(port.pool, &message, 1, round)) {
        fail(result, ENOMEM, "the pool is empty");
        return false;
    }
    if (!send_all(port, &message, 1, give_up, result))
        return false;
    rte_mbuf *reply = receive_one(port, give_up, result);
    if (!reply)
        return false;
    if (read_payload<bytes>(reply) != round * lines<bytes>)
        fail(result, EBADMSG, "a reply is not what was sent");
    rte_pktmbuf_free(reply);
    return result.error == 0;
}

template <size_t bytes>
void ask_rounds(const Port &port, const Command &command, std::vector<uint64_t> *ticks,
                Result &result)
{
    const uint64_t begin = monotonic_ns();
    const uint64_t give_up = begin + command.bound_ns;
    uint64_t last = rte_rdtsc();
    while (result.count < command.rounds &&
           (result.count % rounds_per_look != 0 || monotonic_ns() - begin <= command.run_ns)) {
        if (!ask_once<bytes>(port, result.count + 1, give_up, result))
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
    ask_once<bytes>(port, farewell, give_up, result);
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

template <size_t bytes>
void ask_as(const Port &port, const Command &command, Result &result)
{
    if (!command.timed) {
        ask_rounds<bytes>(port, command, nullptr, result);
        return;
    }
    std::vector<uint64_t> ticks(command.rounds);
    ask_rounds<bytes>(port, command, &ticks, result);
    ticks.resize(result.count);
    set_percentiles(ticks, result);
}

template <size_t bytes>
void answer_as(const Port &port, const Command &command, Result &result)
{
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    for (uint64_t value = 0; value != farewell; result.count += value != farewell) {
        rte_mbuf *message = receive_one(port, give_up, result);
        if (!message)
            return;
        value = read_payload<bytes>(message);
        write_payload<bytes>(message, value);
        if (!send_all(port, &message, 1, give_up, result))
            return;
    }
}

// One way -----------------------------------------------------------------------------------------

template <size_t bytes>
void send_as(const Port &port, const Command &command, Shared &shared, Result &result)
{
    constexpr uint64_t bursts_per_look = 16;
    Burst messages;
    const uint64_t begin = monotonic_ns();
    for (uint64_t bursts = 1;; bursts++) {
        if (!make_burst<bytes>(port.pool, messages, command.batch, result.count)) {
            fail(result, ENOMEM, "the pool is empty");
            break;
        }
        if (!send_all(port, messages, command.batch, begin + command.bound_ns, result))
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
int next_burst(const Port &port, Burst &burst, const Command &command, const Shared &shared,
               uint64_t give_up, Result &result)
{
    for (uint64_t spin = 1;; spin++) {
        const int got = ntbmsg_recv_burst(port.endpoint, 0, burst, nullptr,
                                          static_cast<uint16_t>(command.batch));
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

template <size_t bytes>
void receive_as(const Port &port, const Command &command, const Shared &shared, Result &result)
{
    // Rings, pools and their caches have been round by then. A run too short for that counts whole.
    constexpr uint64_t warm = bytes >= kernel_from ? 4096 : 16384;
    const uint64_t give_up = monotonic_ns() + command.bound_ns;
    uint64_t begin = 0;
    uint64_t begin_at = 0;
    Burst burst;
    while (const int got = next_burst(port, burst, command, shared, give_up, result)) {
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
    if (!result.error && result.check != result.count * (result.count - 1) / 2 * lines<bytes>)
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
    default:
        return fail(result, EINVAL, "no such payload size");
    }
}

bool batch_fits(const Command &command, Result &result)
{
    if (command.batch >= 1 && command.batch <= max_burst)
        return true;
    fail(result, EINVAL, "no such burst size");
    return false;
}

} // namespace

void fail(Result &result, int error, const char *text)
{
    if (result.error)
        return;
    result.error = error;
    snprintf(result.text, sizeof(result.text), "%s: %s", text, rte_strerror(error));
}

void send_one(const Port &port, const Command &command, Result &result)
{
    rte_mbuf *message = nullptr;
    if (!make_burst<line_bytes>(port.pool, &message, 1, 1))
        return fail(result, ENOMEM, "the pool is empty");
    send_all(port, &message, 1, monotonic_ns() + command.bound_ns, result);
}

void ask(const Port &port, const Command &command, Result &result)
{
    with_payload(command.payload, result,
                 [&]<size_t bytes>() { ask_as<bytes>(port, command, result); });
}

void answer(const Port &port, const Command &command, Result &result)
{
    with_payload(command.payload, result,
                 [&]<size_t bytes>() { answer_as<bytes>(port, command, result); });
}

void send(const Port &port, const Command &command, Shared &shared, Result &result)
{
    if (batch_fits(command, result))
        with_payload(command.payload, result,
                     [&]<size_t bytes>() { send_as<bytes>(port, command, shared, result); });
}

void receive(const Port &port, const Command &command, Shared &shared, Result &result)
{
    if (batch_fits(command, result))
        with_payload(command.payload, result,
                     [&]<size_t bytes>() { receive_as<bytes>(port, command, shared, result); });
}

} // namespace bench
