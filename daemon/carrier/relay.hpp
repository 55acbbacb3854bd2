// SPDX-License-Identifier: BSD-3-Clause
// One connection through the daemon: the other end of its client's memory, and a pipe.
#ifndef NTBD_CARRIER_RELAY_HPP
#define NTBD_CARRIER_RELAY_HPP

#include "carrier/bridge.hpp"

#include <cstdint>
#include <memory>

namespace ntbd
{

class Relay
{
public:
    /// Counted by all relays of a carrier.
    struct Traffic {
        uint64_t messages_out, bytes_out, messages_in, bytes_in, rings;
    };

    Relay(RelayOrder &&order, Traffic &traffic);
    Relay(const Relay &) = delete;
    Relay &operator=(const Relay &) = delete;

    uint64_t id() const { return id_; }
    int bell() const { return bell_.get(); }
    uint32_t ring_bytes() const { return memory_->ring_bytes(); }
    /// Whether it waits for the peer's daemon to name it by this ticket.
    bool expects(const Ticket &ticket) const;

    /// @param is_open nothing has to be answered first @param peer_ring_bytes bound the messages
    void join(std::unique_ptr<Pipe> pipe, bool is_open, uint32_t peer_ring_bytes);
    void ready(uint32_t events);
    /// The peer's daemon will not name it.
    void abandon();
    /// The peer's daemon is lost: what has arrived is delivered.
    void lose();
    /// Ends it here, with a reset for the client.
    void end(int status);
    /// The bell may be readable.
    void rung();

    /// Moves some bytes each way. @return whether there was something to do
    bool turn();
    /// Asks to be woken by the bell or an event of the pipe. @return false: turn() has to go on
    bool sleep();
    void wake();

    /// Nothing is left to do: to be destroyed.
    bool has_ended() const;
    /// Then: 0 orderly, or a negative errno.
    int status() const { return status_; }

    // Of the carrier.
    bool is_active = false;
    bool is_idle = false;
    int64_t idle_since_ns = 0;
    uint32_t window_ns = 20000; ///< for which it is polled in vain before it sleeps

private:
    bool move_out();
    bool move_in();
    bool send_end();
    uint32_t end_to_send();
    bool take_mark(const Mark &mark);
    bool drops() const;
    bool has_room() { return sender_.room(chunk_in_) >= chunk_in_; }
    bool is_client_gone() const;
    void ring(char event);

    uint64_t id_;
    Token token_;
    std::shared_ptr<Memory> memory_;
    Descriptor bell_;
    Traffic &traffic_;
    std::unique_ptr<Pipe> pipe_;
    ntbc::Receiver receiver_; // of what the client sends
    ntbc::Sender sender_;     // of what it receives
    size_t chunk_out_ = 0;    // longest message to the peer
    size_t chunk_in_;         // and of the peer
    bool expecting_;
    bool out_ready_ = false; // the pipe takes messages
    bool in_ready_ = false;  // and may have some
    bool bell_closed_ = false;
    bool lost_ = false;
    bool ended_ = false;
    uint32_t sent_marks_ = 0;
    uint32_t peer_marks_ = 0;
    int status_ = 0;
};

} // namespace ntbd

#endif
