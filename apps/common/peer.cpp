// SPDX-License-Identifier: BSD-3-Clause
#include "peer.hpp"

#include <cerrno>
#include <chrono>

#include "signals.hpp"
#include "units.hpp"

namespace app
{

namespace
{

// How long a signal may have to wait for an answer.
constexpr uint32_t look_ms = 50;

} // namespace

Endpoint::Endpoint(const std::string &device, const ntbmsg_endpoint_options &options)
{
    if (ntbmsg_endpoint_open(device.c_str(), &options, &handle_) != 0)
        handle_ = nullptr;
}

Endpoint::~Endpoint()
{
    // What was sent has the time to be received, unless the user wants an end.
    if (stop_signal() == 0) {
        ntbmsg_endpoint_close(handle_);
        return;
    }
    stop_interrupting();
    ntbmsg_endpoint_close_linger(handle_, look_ms, nullptr);
}

Peer await_peer(ntbmsg_endpoint *endpoint, double seconds)
{
    using clock = std::chrono::steady_clock;
    const auto begin = clock::now();
    while (stop_signal() == 0) {
        const int rc = ntbmsg_endpoint_wait_connected(endpoint, look_ms);
        if (rc == 0)
            return Peer::connected;
        if (rc == -EPROTO)
            return Peer::refused;
        const std::chrono::duration<double> passed = clock::now() - begin;
        if (seconds > 0 && passed.count() >= seconds)
            return Peer::absent;
    }
    return Peer::interrupted;
}

std::string why_not_connected(const ntbmsg_endpoint *endpoint, Peer peer, double seconds)
{
    const std::string why = why_no_peer(endpoint);
    return peer == Peer::refused ? "the peer was refused: " + why
                                 : "no peer connected in " + with_unit(seconds, "s") + ": " + why;
}

std::string event_text(const ntbmsg_endpoint *endpoint, ntbmsg_event event)
{
    switch (event) {
    case NTBMSG_EVENT_CONNECTED:
        return "a peer is connected";
    case NTBMSG_EVENT_SILENT:
        return "the peer is silent";
    case NTBMSG_EVENT_ALIVE:
        return "the peer is no longer silent";
    case NTBMSG_EVENT_LOST:
        return "the peer was lost";
    case NTBMSG_EVENT_REFUSED:
        return "the peer was refused: " + why_no_peer(endpoint);
    case NTBMSG_EVENT_CLOSING:
        return "the peer has stopped";
    }
    return "an unknown event";
}

std::string why_no_peer(const ntbmsg_endpoint *endpoint)
{
    char text[128] = "";
    ntbmsg_endpoint_link_reason_get(endpoint, text, sizeof(text));
    return text;
}

} // namespace app
