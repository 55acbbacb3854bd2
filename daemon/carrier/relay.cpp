// SPDX-License-Identifier: BSD-3-Clause
#include "carrier/relay.hpp"

#include <cerrno>
#include <sys/socket.h>

namespace ntbd
{

Relay::Relay(RelayOrder &&order, Traffic &traffic)
    : id_(order.id), token_(order.token), memory_(std::move(order.memory)),
      bell_(std::move(order.bell)), traffic_(traffic),
      expecting_(order.kind == RelayOrder::Kind::expect)
{
}

// In a time that does not depend on where the tokens differ.
bool Relay::expects(const Ticket &ticket) const
{
    uint8_t difference = 0;
    for (size_t i = 0; i < token_.size(); i++)
        difference = static_cast<uint8_t>(difference | (token_[i] ^ ticket.token[i]));
    return expecting_ && difference == 0;
}

void Relay::join(std::unique_ptr<Pipe> pipe, bool is_open, uint32_t)
{
    pipe_ = std::move(pipe);
    expecting_ = false;
    out_ready_ = is_open;
    in_ready_ = true;
}

void Relay::ready(uint32_t events)
{
    if ((events & Pipe::readable) != 0)
        in_ready_ = true;
    if ((events & Pipe::writable) != 0 && !lost_)
        out_ready_ = true;
}

void Relay::abandon()
{
    if (pipe_ == nullptr)
        end(-ECONNRESET);
}

void Relay::lose()
{
    lost_ = true;
    out_ready_ = false;
    in_ready_ = true;
    abandon();
}

// Only what has been looked at is read: descriptors, which no client of ours sends, would be closed
// by that, and a close may wait. They stay there until the bell is closed.
void Relay::rung()
{
    for (;;) {
        char bytes[64];
        iovec part = {bytes, sizeof(bytes)};
        msghdr header = {};
        header.msg_iov = &part;
        header.msg_iovlen = 1;
        const ssize_t got = recvmsg(bell_.get(), &header, MSG_DONTWAIT | MSG_PEEK);
        const bool is_clean = got > 0 && (header.msg_flags & MSG_CTRUNC) == 0;
        if (is_clean)
            recv(bell_.get(), bytes, static_cast<size_t>(got), MSG_DONTWAIT);
        if (is_clean || (got < 0 && errno == EINTR))
            continue;
        if (got >= 0 || errno != EAGAIN)
            bell_closed_ = true;
        return;
    }
}

void Relay::ring(char event)
{
    send(bell_.get(), &event, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    traffic_.rings++;
}

} // namespace ntbd
