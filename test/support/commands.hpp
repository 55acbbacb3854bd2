// SPDX-License-Identifier: BSD-3-Clause
// What a test can ask of a host, and what it answers: plain data, so that it crosses a socket to a
// host in another process just as it is.
#ifndef TEST_SUPPORT_COMMANDS_HPP
#define TEST_SUPPORT_COMMANDS_HPP

#include <cstdint>

#include <rte_pmd_plx_ntb.h>
#include <rte_pmd_plx_ntb_test.h>

namespace test
{

/// A stream of messages on one queue. Message i has length lengths[i % lengths_used] and bytes and
/// metadata that follow from seed and i, so that a receiver in another process can check them.
struct Stream {
    uint32_t queue = 0;
    uint32_t seed = 1;
    uint32_t first = 0; ///< i of the first message
    uint32_t count = 0;
    uint32_t lengths[24] = {};
    uint32_t lengths_used = 0;
    uint32_t segment = 0;   ///< bytes of each segment sent; 0: as the pool's mbufs hold
    uint32_t burst = 32;    ///< at most 64
    bool plain = false;     ///< metadata is zeros
    bool unchecked = false; ///< what arrives may be anything, and what is refused is no error
};
inline constexpr unsigned streams_max = 8;

enum class Op : uint32_t {
    attach, ///< text: devargs of a twin, or pci:<address>,<devargs>
    detach,
    configure,   ///< config
    queue_setup, ///< every queue; value: mbufs of the private pool of each, 0: the device's own
    start,
    stop,
    close,
    traffic,  ///< out, in
    echo,     ///< sends back value messages of queue 0, asleep in between; answer.received
    forward,  ///< sends value messages of queue 0 of this device on by the host's first;
              ///< answer.received
    release,  ///< frees what traffic kept
    discard,  ///< takes and frees what has come
    observe,  ///< link, events and counters alone
    pattern,  ///< fills the kept mbufs with bytes of seed value
    unharmed, ///< whether the kept mbufs still hold that: answer.value counts the bytes that differ
    xstat,    ///< text: name; answer.value
    inject,   ///< value: the fault, high half, and its argument, low half
    outstanding, ///< mbufs of the own pools that are not home
    expose,      ///< allocates value bytes and exposes them with rights extra; answer.value: where
    word,        ///< answer.value: the 8 bytes at value of what is exposed
    revoke,      ///< revokes what is exposed; extra: and frees it
    store,       ///< extra, 8 bytes, to value of the peer's window
    load,        ///< answer.value: the 8 bytes at value of the peer's window
};

/// When a host ends its traffic, beside errors and the time limit.
enum class Until : uint32_t {
    complete, ///< everything sent and received
    full,     ///< or a burst comes back short: back-pressure
    time,     ///< the time limit, whatever was moved
    lost,     ///< the connection is gone; what a stream counts is then only a limit
};

struct Command {
    Op op = Op::observe;
    uint32_t device = 0; ///< 1: the second one of a host in its own process
    uint64_t value = 0;
    uint64_t extra = 0;
    uint32_t limit_ms = 30'000;
    Until until = Until::complete;
    bool keep = false;    ///< received mbufs are not freed
    bool threads = false; ///< a thread for each stream and direction
    uint32_t outs = 0;
    uint32_t ins = 0;
    Stream out[streams_max];
    Stream in[streams_max];
    rte_pmd_plx_ntb_config config = {};
    char text[256] = "";
};

struct Answer {
    int64_t rc = 0;
    uint64_t value = 0;
    uint64_t sent = 0;
    uint64_t received = 0;
    rte_pmd_plx_ntb_link link = {};
    /// Since attach, one letter each: Connected Silent Alive Lost Refused Ending.
    char events[128] = "";
    char text[256] = ""; ///< what was wrong first
};

/// The letter of an event in Answer::events.
constexpr char letter(rte_pmd_plx_ntb_event event)
{
    return "CSALRE"[event];
}

} // namespace test

#endif
