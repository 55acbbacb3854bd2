// SPDX-License-Identifier: BSD-3-Clause
// A connection of a stream of bytes: the daemon is the other end of its client's memory.
#ifndef NTBD_CARRIER_BYTE_RELAY_HPP
#define NTBD_CARRIER_BYTE_RELAY_HPP

#include "carrier/relay.hpp"
#include "ring/receiver.hpp"
#include "ring/sender.hpp"

#include <cstdint>
#include <memory>

namespace ntbd
{

class ByteRelay : public Relay
{
public:
    ByteRelay(RelayOrder &&order, Traffic &traffic);

    void join(std::unique_ptr<Pipe> pipe, bool is_open, uint32_t peer_ring_bytes) override;
    void end(int status) override;
    bool turn() override;
    bool sleep() override;
    void wake() override;
    bool has_ended() const override;

private:
    bool move_out();
    bool move_in();
    bool send_end();
    uint32_t end_to_send();
    bool take_mark(const Mark &mark);
    bool drops() const;
    bool has_room() { return sender_.room(chunk_in_) >= chunk_in_; }
    bool is_client_gone() const;

    ntbc::Receiver receiver_; // of what the client sends
    ntbc::Sender sender_;     // of what it receives
    size_t chunk_out_ = 0;    // longest message to the peer
    size_t chunk_in_;         // and of the peer
    uint32_t sent_marks_ = 0;
    uint32_t peer_marks_ = 0;
};

} // namespace ntbd

#endif
