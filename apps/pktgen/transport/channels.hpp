// SPDX-License-Identifier: BSD-3-Clause
// The channels of one endpoint, one a queue, each over a worker of its own: the client
// connects them before the first measurement, the server accepts them, and they stay for all
// that follow.
#ifndef PKTGEN_TRANSPORT_CHANNELS_HPP
#define PKTGEN_TRANSPORT_CHANNELS_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ntbmsg.h>

namespace pktgen
{

/// Where servers of this process listen, on all their devices.
class ChannelListener
{
public:
    ChannelListener() = default;
    ~ChannelListener() { ntbmsg_listener_close(listener_); }
    ChannelListener(const ChannelListener &) = delete;
    ChannelListener &operator=(const ChannelListener &) = delete;

    /// @return empty, or one line that says what is wrong
    std::string open();
    ntbmsg_listener *get() const { return listener_; }

private:
    ntbmsg_listener *listener_ = nullptr;
};

/// What one queue has of it. One thread at a time uses it.
struct ChannelLane {
    ntbmsg_worker *worker = nullptr;
    ntbmsg_cq *cq = nullptr;
    ntbmsg_channel *channel = nullptr; ///< NULL: not there (any more)
};

class Channels
{
public:
    /// @param lanes    how many; @param longest  message that is expected, bytes; 0: any
    Channels(ntbmsg_endpoint *endpoint, uint32_t lanes, uint64_t longest);
    ~Channels();
    Channels(const Channels &) = delete;
    Channels &operator=(const Channels &) = delete;

    /// Driving end. @return empty, or why a channel did not open; also empty when a signal came
    std::string connect(double timeout_s);
    /// Serving end: takes who waits.
    void accept(ntbmsg_listener *listener);
    /// Closes all.
    void close();
    /// Frees what has come and was not received.
    void discard_received();
    /// Drives them while nothing is sent or received.
    void poll() const;

    /// Whether lanes 0 to @p n - 1 are there.
    bool has(uint32_t n) const;
    /// The longest message that they take, bytes.
    uint32_t max_message() const;
    const ChannelLane &at(size_t lane) const { return lanes_[lane]; }

private:
    ntbmsg_channel_options options(const ChannelLane &lane) const;

    const uint64_t longest_;
    std::vector<ChannelLane> lanes_;
};

/// Bytes in receive buffers that a channel grants.
uint64_t channel_credit_bytes(uint64_t longest);
/// Messages that a channel grants.
inline constexpr uint32_t channel_credit_messages = 2048;

} // namespace pktgen

#endif
