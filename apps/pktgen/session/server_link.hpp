// SPDX-License-Identifier: BSD-3-Clause
// The client's connection to one peer: an endpoint, the messages to and from its server, and
// waits that end.
#ifndef PKTGEN_SESSION_SERVER_LINK_HPP
#define PKTGEN_SESSION_SERVER_LINK_HPP

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "measure/make_work.hpp"
#include "peer.hpp"
#include "session/control.hpp"
#include "transport/channels.hpp"
#include "transport/copy_mode.hpp"
#include "transport/device.hpp"

namespace pktgen
{

class ServerLink
{
public:
    /// @param timeout_s  for a peer or an answer that does not come
    ServerLink(std::string device, const Needs &needs, double timeout_s, uint64_t run);

    /// Waits for the peer and for its hello.
    /// @return empty, or one line that says what is wrong; also empty when a signal came
    std::string meet();

    /// Waits for a message of that kind about point @p serial.
    /// @param meanwhile  called again and again
    /// @return nothing: error() says why, or a signal came where one ends the wait
    std::optional<ControlMessage> await(Kind kind, uint32_t serial,
                                        const std::function<void()> &meanwhile = {});
    /// Waits where the peer takes nothing at the moment.
    /// @return whether it went: error() says why not, or a signal ended the wait
    bool send(const ControlMessage &message);

    /// Whether the server says now that it has sent all of point @p serial; once, and only while
    /// no answer is waited for.
    bool says_sent(uint32_t serial);

    /// Asks the server to copy long messages that way from now on. The endpoint is to be opened
    /// anew for it, at both ends. @return empty, or why it cannot be asked
    std::string ask_copy(CopyMode mode);
    /// Meets the server that was asked; the link may come and go before that.
    /// @return as meet(), and when the server cannot do it
    std::string meet_with_copy(CopyMode mode);

    /// Looks for a lost peer, at most once a millisecond. @param now  ticks of the TSC
    void watch(uint64_t now);

    /// Round trip in ns to the core where the server polls; nothing where it cannot be probed.
    std::optional<double> probe();
    /// Whether both ends run on one machine; known after meet().
    bool same_machine() const;

    /// @param exposed  to its peer; outlives the works
    Transports transports(const Region *region) const
    {
        return {endpoint_.get(), &channels_, region};
    }
    /// Whether others drive the channels now.
    void leave_channels(bool to_others) { channels_are_driven_ = to_others; }
    /// Frees what an earlier measurement has left. @param queues  for data
    void discard_received(uint32_t queues);
    /// The longest message that the peer takes by that operation, bytes.
    uint32_t max_message(Operation operation) const;
    bool ok() const { return endpoint_.ok(); }
    ntbmsg_endpoint *endpoint() const { return endpoint_.get(); }
    const std::string &device() const { return device_; }
    const std::string &error() const { return error_; }
    int server_cpu() const { return server_cpu_; }
    /// Longest message in bytes that can be built in its receive buffers.
    uint32_t longest_built() const { return longest_built_; }

private:
    std::string greet();
    bool may_wait(uint64_t give_up);
    std::string match(const ControlMessage &hello) const;
    void fail(std::string error);

    const std::string device_;
    const double timeout_s_;
    const Needs needs_;
    const app::Endpoint endpoint_;
    Control control_;
    Channels channels_; ///< none unless they are needed
    std::string error_;
    std::string server_boot_;
    int server_cpu_ = -1;
    uint32_t longest_built_ = 0;
    uint32_t server_copy_ = 0; ///< enum CopyMode, or copy_refused
    uint64_t next_watch_ = 0;
    bool channels_are_driven_ = false;
};

} // namespace pktgen

#endif
