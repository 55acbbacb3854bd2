// SPDX-License-Identifier: BSD-3-Clause
// A pipe of the carrier as a channel of ntbmsg.
#ifndef NTBD_DEVICE_CHANNEL_PIPE_HPP
#define NTBD_DEVICE_CHANNEL_PIPE_HPP

#include "carrier/bridge.hpp"

#include <ntbmsg.h>

namespace ntbd
{

/// Messages are bytes, or a mark: then the immediate data are its bits, and the message its count.
/// Those of a claimed connection are words with bytes behind them, and have no immediate data.
class ChannelPipe : public Pipe
{
public:
    /// @param channel of a worker that runs to completion; closed with the pipe
    ChannelPipe(ntbmsg_channel *channel, ntbmsg_endpoint *endpoint)
        : channel_(channel), endpoint_(endpoint)
    {
    }
    ~ChannelPipe() override;
    ChannelPipe(const ChannelPipe &) = delete;
    ChannelPipe &operator=(const ChannelPipe &) = delete;

    size_t longest() const override;
    ssize_t send(const ntbc::Receiver &ring, size_t bytes) override;
    int send(const Mark &mark) override;
    Got receive(ntbc::Sender *ring, size_t most) override;
    ssize_t send(const LineWords &words, const ntb::socket::Ring &ring, uint64_t position,
                 size_t bytes) override;
    Got receive(LineWords *words) override;
    void copy(size_t from, const ntb::socket::Ring &ring, uint64_t position, size_t bytes) override;
    void reset() override { ntbmsg_channel_reset(channel_, 0); }

private:
    // What fills a message puts its bytes [from, from + n) to a place.
    template <typename Fill>
    ssize_t send_filled(size_t bytes, const Fill &fill);
    template <typename Fill>
    ssize_t send_inline(size_t bytes, const Fill &fill);
    template <typename Fill>
    ssize_t send_in_place(size_t bytes, const Fill &fill);
    void drop_held();
    int send_mbuf(rte_mbuf *message, uint32_t imm);

    ntbmsg_channel *channel_;
    ntbmsg_endpoint *endpoint_;
    mutable size_t longest_ = 0; // 0: not asked yet
    rte_mbuf *held_ = nullptr;   // the last message with words
    size_t room_bytes_ = 2048;   // of the peer's receive buffers, as far as known
};

} // namespace ntbd

#endif
