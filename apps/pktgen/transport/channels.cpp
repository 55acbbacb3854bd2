// SPDX-License-Identifier: BSD-3-Clause
#include "transport/channels.hpp"

#include <algorithm>
#include <cstring>

#include <rte_mbuf.h>

#include "point/point.hpp"
#include "signals.hpp"

namespace pktgen
{

namespace
{

constexpr uint16_t port = 20;
constexpr uint64_t least_credit_bytes = uint64_t{1} << 20;
constexpr uint64_t messages_ahead = 2; ///< of the longest
constexpr uint32_t look_ms = 50;       ///< how long a signal may have to wait for an answer

// Completions that wait: of all that is under way, and as many words of the peer.
constexpr uint32_t completions = 2 * most_in_flight;

/// Travels with a connect: which lane it is.
using LaneNumber = uint16_t;

} // namespace

uint64_t channel_credit_bytes(uint64_t longest)
{
    return std::max(messages_ahead * longest, least_credit_bytes);
}

std::string ChannelListener::open()
{
    const int rc = ntbmsg_listener_open(port, 0, &listener_);
    return rc == 0 ? std::string() : std::string("cannot listen for channels: ") + strerror(-rc);
}

Channels::Channels(ntbmsg_endpoint *endpoint, uint32_t lanes, uint64_t longest)
    : longest_(longest), lanes_(lanes)
{
    for (size_t i = 0; i < lanes_.size(); ++i) {
        lanes_[i].worker = ntbmsg_endpoint_worker(endpoint, static_cast<uint16_t>(i));
        // Without one channels do not open, which is reported then.
        ntbmsg_cq_create(completions, nullptr, nullptr, &lanes_[i].cq);
    }
}

Channels::~Channels()
{
    close();
    for (const ChannelLane &lane : lanes_)
        ntbmsg_cq_destroy(lane.cq);
}

ntbmsg_channel_options Channels::options(const ChannelLane &lane) const
{
    ntbmsg_channel_options o;
    ntbmsg_channel_options_init(&o);
    o.credit_messages = channel_credit_messages;
    o.credit_bytes = static_cast<uint32_t>(channel_credit_bytes(longest_));
    o.cq = lane.cq;
    o.operations = lane.cq != nullptr ? most_in_flight : 0;
    return o;
}

std::string Channels::connect(double timeout_s)
{
    constexpr double ms_per_second = 1000;
    const auto timeout_ms = static_cast<uint32_t>(timeout_s * ms_per_second);
    for (size_t i = 0; i < lanes_.size(); ++i) {
        const auto number = static_cast<LaneNumber>(i);
        ntbmsg_channel_options o = options(lanes_[i]);
        o.private_data = &number;
        o.private_bytes = sizeof(number);
        o.timeout_ms = timeout_ms;
        int rc = ntbmsg_channel_connect(lanes_[i].worker, port, &o, &lanes_[i].channel);
        // The channel itself ends the wait when its time has passed.
        while (rc == 0 && app::stop_signal() == 0 &&
               ntbmsg_channel_state_get(lanes_[i].channel) == NTBMSG_CHANNEL_CONNECTING)
            ntbmsg_channel_wait_open(lanes_[i].channel, look_ms);
        if (app::stop_signal() != 0)
            return {};
        if (rc == 0)
            rc = ntbmsg_channel_wait_open(lanes_[i].channel, 0);
        if (rc != 0)
            return std::string("a channel does not open: ") + strerror(-rc);
    }
    return {};
}

void Channels::accept(ntbmsg_listener *listener)
{
    ntbmsg_request request;
    for (size_t i = 0; i < lanes_.size(); ++i) {
        while (ntbmsg_listener_poll(listener, lanes_[i].worker, &request) == 1) {
            LaneNumber number = 0;
            if (request.private_bytes == sizeof(number))
                std::memcpy(&number, request.private_data, sizeof(number));
            if (request.private_bytes != sizeof(number) || number != i ||
                lanes_[i].channel != nullptr) {
                ntbmsg_request_reject(&request, 0, nullptr, 0);
                continue;
            }
            const ntbmsg_channel_options o = options(lanes_[i]);
            if (ntbmsg_channel_accept(&request, &o, &lanes_[i].channel) != 0)
                lanes_[i].channel = nullptr;
        }
    }
}

void Channels::close()
{
    for (ChannelLane &lane : lanes_) {
        ntbmsg_channel_close(lane.channel);
        lane.channel = nullptr;
    }
}

void Channels::poll() const
{
    for (const ChannelLane &lane : lanes_)
        ntbmsg_worker_poll(lane.worker);
}

void Channels::discard_received()
{
    constexpr uint16_t burst = 64;
    rte_mbuf *messages[burst];
    for (const ChannelLane &lane : lanes_) {
        // Bounded by the credit: a peer that goes on is not for ever.
        for (unsigned i = 0; lane.channel != nullptr && i < channel_credit_messages / burst; ++i) {
            const int got = ntbmsg_channel_recv_burst(lane.channel, messages, nullptr, burst);
            if (got <= 0)
                break;
            rte_pktmbuf_free_bulk(messages, static_cast<unsigned>(got));
        }
    }
}

bool Channels::has(uint32_t n) const
{
    return n <= lanes_.size() &&
           std::all_of(lanes_.begin(), lanes_.begin() + n,
                       [](const ChannelLane &lane) { return lane.channel != nullptr; });
}

uint32_t Channels::max_message() const
{
    ntbmsg_channel_info info{};
    info.size = sizeof(info);
    return has(1) && ntbmsg_channel_info_get(lanes_[0].channel, &info) == 0 ? info.max_message : 0;
}

} // namespace pktgen
