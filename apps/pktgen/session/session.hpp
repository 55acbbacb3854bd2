// SPDX-License-Identifier: BSD-3-Clause
// The server on one device: does what the client at the other end asks for. Nothing that a
// peer says or leaves out ends it: a peer that is no client is ignored from then on.
#ifndef PKTGEN_SESSION_SESSION_HPP
#define PKTGEN_SESSION_SESSION_HPP

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "measure/lcores.hpp"
#include "measure/make_work.hpp"
#include "realtime.hpp"
#include "session/control.hpp"
#include "traffic/capture.hpp"
#include "transport/channels.hpp"
#include "transport/copy_mode.hpp"
#include "transport/device.hpp"
#include "transport/region.hpp"

namespace pktgen
{

/// What a session is given beside its endpoint. Pointers outlive it.
struct Duty {
    Needs needs;               ///< that the endpoint was opened for
    ntbmsg_listener *listener; ///< for channels, or NULL
    Capture *capture;          ///< takes what comes, or NULL
    bool realtime;
    unsigned lcores;     ///< that drive its queues, at most
    CopyMode usual_copy; ///< goes back to it when a client has left
    uint32_t copy;       ///< now: enum CopyMode, or copy_refused
};

class Session
{
public:
    Session(std::string device, ntbmsg_endpoint *endpoint, const Duty &duty);

    /// Some work, and the client's next message. @param now  ticks of the TSC
    void round(uint64_t now);

    /// What this end cannot do any more, as to write a capture: in words. Empty while all is well.
    const std::string &error() const { return error_; }
    /// Whether a client has come, ever.
    bool met() const { return client_known_ || clients_left_ != 0; }
    /// Clients that have come and gone.
    unsigned clients_left() const { return clients_left_; }
    /// For which the endpoint is to be opened anew, with another session.
    std::optional<CopyMode> next_copy() const { return link_is_down_ ? next_copy_ : std::nullopt; }

private:
    void look_at_events(uint64_t now);
    void receive(uint64_t now);
    void obey(const ControlMessage &message, uint64_t now);
    void send(ControlMessage message, uint64_t now);
    void send_waiting(uint64_t now);
    void drop(const std::string &why);
    void greet(uint64_t now);
    void begin(const ControlMessage &message, uint64_t now);
    std::string prepare(const Point &point, uint64_t now);
    void set_to_work(const Point &point, uint64_t now);
    void say_sent(uint64_t now);
    void finish_when_done(uint64_t now);
    void report(uint64_t now);
    void end_work();
    void peer_left();

    const std::string device_;
    ntbmsg_endpoint *const endpoint_;
    const Duty duty_;
    const uint32_t queues_;
    Control control_;
    std::deque<ControlMessage> waiting_; ///< for the peer to take them; at most a point's reports
    uint64_t untaken_tsc_ = 0;           ///< it takes none of them until then: dropped
    bool dropped_ = false;               ///< until it says hello as a client, or leaves
    bool complained_ = false;            ///< of this peer
    Channels channels_;                  ///< none without a listener
    std::optional<app::Realtime> realtime_; ///< while lcores_ is there
    Point point_;                           ///< that is worked on
    std::unique_ptr<Region> region_;        ///< outlives lcores_, as does the next
    std::unique_ptr<Notebook> notebook_;
    std::unique_ptr<Lcores> lcores_; ///< NULL: nothing to do
    unsigned steps_ = 0;
    uint32_t serial_ = 0;               ///< of point_
    uint64_t give_up_tsc_ = 0;          ///< the client has forgotten us by then
    bool said_sent_ = false;            ///< to a client that sends nothing itself
    bool stopping_ = false;             ///< the client has sent all that promised_ says
    uint64_t promised_ = 0;             ///< messages the client has sent
    uint64_t seen_ = 0;                 ///< messages that had come when last looked at
    uint64_t patient_tsc_ = 0;          ///< missing messages are waited for until then
    uint64_t next_events_ = 0;          ///< events cost a lock
    std::optional<CopyMode> next_copy_; ///< when the client has let the link go
    bool link_is_down_ = false;         ///< it has
    bool client_known_ = false;
    unsigned clients_left_ = 0;
    uint64_t points_ = 0;
    std::string error_;
};

} // namespace pktgen

#endif
