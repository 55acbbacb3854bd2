// SPDX-License-Identifier: BSD-3-Clause
// One connection through the daemon: its client's memory on one side, a pipe on the other.
#ifndef NTBD_CARRIER_RELAY_HPP
#define NTBD_CARRIER_RELAY_HPP

#include "carrier/bridge.hpp"

#include <cstdint>
#include <memory>

namespace ntbd
{

/// What both kinds have in common. Of the carrier's thread.
class Relay
{
public:
    /// Counted by all relays of a carrier.
    struct Traffic {
        uint64_t messages_out, bytes_out, messages_in, bytes_in, rings;
    };

    virtual ~Relay() = default;
    Relay(const Relay &) = delete;
    Relay &operator=(const Relay &) = delete;

    uint64_t id() const { return id_; }
    int bell() const { return bell_.get(); }
    uint32_t ring_bytes() const { return memory_->ring_bytes(); }
    /// Whether it waits for the peer's daemon to name it by this ticket.
    bool expects(const Ticket &ticket) const;

    /// @param is_open nothing has to be answered first @param peer_ring_bytes bound the messages
    virtual void join(std::unique_ptr<Pipe> pipe, bool is_open, uint32_t peer_ring_bytes);
    void ready(uint32_t events);
    /// The peer's daemon will not name it.
    void abandon();
    /// The peer's daemon is lost: what has arrived is delivered.
    void lose();
    /// Ends it here, with a reset for the client.
    virtual void end(int status) = 0;
    /// The bell may be readable.
    void rung();

    // Of the server.

    /// The client has closed it: what it has stored is the last.
    virtual void let_go() {}
    /// The client has seen a FIN while the ring of that generation is granted.
    virtual void fin_seen(uint32_t) {}
    /// The client has moved no byte for a while: the pages of its ring that hold no byte which it
    /// has still to read are given back.
    virtual void rest() {}

    /// Moves some bytes each way. @return whether there was something to do
    virtual bool turn() = 0;
    /// Asks to be woken by the bell or an event of the pipe. @return false: turn() has to go on
    virtual bool sleep() = 0;
    virtual void wake() = 0;

    /// Nothing is left to do: to be destroyed.
    virtual bool has_ended() const = 0;
    /// Then: 0 orderly, or a negative errno.
    int status() const { return status_; }

    // Of the carrier.
    bool is_active = false;
    bool is_idle = false;
    int64_t idle_since_ns = 0;
    uint32_t window_ns = 20000; ///< for which it is polled in vain before it sleeps

protected:
    // Of the bytes of a bell: NTBCLIENT_READABLE, NTBCLIENT_WRITABLE, and those of sockets.
    static constexpr char bell_readable = 1;
    static constexpr char bell_writable = 2;
    // Bytes that one connection moves before others have their turn.
    static constexpr size_t slice = 65536;
    static constexpr size_t longest_message = 16384;
    // What a message costs beside its bytes, in bytes of a slice.
    static constexpr size_t message_cost = 256;

    Relay(RelayOrder &&order, Traffic &traffic);
    void ring(char event);

    uint64_t id_;
    Token token_;
    std::shared_ptr<Memory> memory_;
    Descriptor bell_;
    Traffic &traffic_;
    std::unique_ptr<Pipe> pipe_;
    bool expecting_;
    bool out_ready_ = false; // the pipe takes messages
    bool in_ready_ = false;  // and may have some
    bool bell_closed_ = false;
    bool lost_ = false;
    bool ended_ = false;
    int status_ = 0;
};

} // namespace ntbd

#endif
