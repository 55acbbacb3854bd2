// SPDX-License-Identifier: BSD-3-Clause
// What a forwarding mode is: an object that drives one queue from one lcore.
#ifndef ECHO_TRAFFIC_FORWARDER_HPP
#define ECHO_TRAFFIC_FORWARDER_HPP

#include <cstdint>
#include <string>

#include "traffic/way.hpp"

namespace echo
{

/// What an lcore drives: one round after the other.
class Pollable
{
public:
    Pollable() = default;
    virtual ~Pollable() = default;
    Pollable(const Pollable &) = delete;
    Pollable &operator=(const Pollable &) = delete;

    virtual void poll() = 0;
};

/// Counted by the lcore of the queue, read between two of its rounds.
struct Counters {
    uint64_t rx_messages = 0, rx_bytes = 0;
    uint64_t tx_messages = 0, tx_bytes = 0;
    uint64_t built = 0;      ///< of tx_messages: in receive buffers of the peer
    uint64_t tx_full = 0;    ///< bursts that the peer cut short
    uint64_t dropped = 0;    ///< messages that found no way on
    uint64_t tx_nombuf = 0;  ///< rounds in which the pool had no mbuf to send
    uint64_t unexpected = 0; ///< messages that this mode has no use for
};

/// A mode at work on one queue. Made before its lcore starts, destroyed after it has stopped; in
/// between everything runs on that lcore.
class Forwarder : public Pollable
{
public:
    explicit Forwarder(const Way &way) : way_(way) {}

    /// One round: at most a burst each way.
    void poll() override = 0;
    /// The connection was lost: what is under way does not come any more.
    virtual void link_lost() {}
    /// Whether it comes to an end by itself, and whether it has.
    virtual bool ends() const { return false; }
    virtual bool done() const { return false; }
    /// What there is to say beyond the counters, lines of two blanks and a text; may be empty.
    virtual std::string report() const { return {}; }
    /// Forgets what it counted.
    virtual void clear() { counters_ = {}; }

    const Counters &counters() const { return counters_; }

protected:
    void count_received(rte_mbuf *const *mbufs, uint16_t n);

    Way way_;
    Counters counters_;
};

} // namespace echo

#endif
