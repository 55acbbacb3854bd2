// SPDX-License-Identifier: BSD-3-Clause
// An endpoint that closes itself, and the wait for its peer.
#ifndef APP_PEER_HPP
#define APP_PEER_HPP

#include <string>

#include <ntbmsg.h>

namespace app
{

class Endpoint
{
public:
    /// Opens @p device; on failure ok() is false and the library has logged why.
    Endpoint(const std::string &device, const ntbmsg_endpoint_options &options);
    /// Closes it. mbufs of the endpoint must have been freed.
    ~Endpoint();
    Endpoint(const Endpoint &) = delete;
    Endpoint &operator=(const Endpoint &) = delete;

    bool ok() const { return handle_ != nullptr; }
    ntbmsg_endpoint *get() const { return handle_; }

private:
    ntbmsg_endpoint *handle_ = nullptr;
};

enum class Peer {
    connected,
    absent,      ///< it did not connect in time
    refused,     ///< it speaks another protocol
    interrupted, ///< a signal asked for an end
};

/// Waits for the peer, without using the CPU. @param seconds  at most; 0: no limit
Peer await_peer(ntbmsg_endpoint *endpoint, double seconds);

/// Why await_peer() did not end in `connected`, for the user. @param seconds  that it was to wait
std::string why_not_connected(const ntbmsg_endpoint *endpoint, Peer peer, double seconds);

/// What an event of the endpoint says, for the user.
std::string event_text(const ntbmsg_endpoint *endpoint, ntbmsg_event event);

/// Why there is no peer, in the driver's words.
std::string why_no_peer(const ntbmsg_endpoint *endpoint);

} // namespace app

#endif
