// SPDX-License-Identifier: BSD-3-Clause
// The serving end on one device: does what the driver at the other end asks for.
#ifndef PKTGEN_SESSION_HPP
#define PKTGEN_SESSION_HPP

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "capture.hpp"
#include "channels.hpp"
#include "control.hpp"
#include "device.hpp"
#include "realtime.hpp"
#include "work.hpp"

namespace pktgen
{

class Session
{
public:
    /// @param needs     that the endpoint was opened for
    /// @param listener  for channels, or NULL; @param capture takes what comes, or NULL; outlive it
    Session(std::string device, ntbmsg_endpoint *endpoint, const Needs &needs,
            ntbmsg_listener *listener, Capture *capture, bool realtime);

    /// Some work, and a look at what the driver says. @param now  ticks of the TSC
    void round(uint64_t now);

    /// The peer serves as well, or is something else: in words. Empty while all is well.
    const std::string &error() const { return error_; }
    /// Whether a driver has come, ever.
    bool met() const { return driver_known_ || drivers_left_ != 0; }
    /// Drivers that have come and gone.
    unsigned drivers_left() const { return drivers_left_; }

private:
    void look_at_events();
    void obey(const ControlMessage &message, uint64_t now);
    void greet();
    void begin(const ControlMessage &message, uint64_t now);
    std::string prepare(const Point &point, uint64_t now);
    void finish_when_done(uint64_t now);
    void report();
    void end_work();
    void peer_left();

    const std::string device_;
    ntbmsg_endpoint *const endpoint_;
    const uint32_t queues_;
    ntbmsg_listener *const listener_;
    Capture *const capture_;
    Control control_;
    Channels channels_; ///< none without a listener
    const bool may_be_realtime_;
    std::optional<Realtime> realtime_; ///< while work_ is there
    std::unique_ptr<Work> work_;
    unsigned steps_ = 0;
    uint32_t serial_ = 0;      ///< of the point that is worked on
    uint64_t give_up_tsc_ = 0; ///< the driver has forgotten us by then
    bool stopping_ = false;    ///< the driver has sent all that promised_ says
    uint64_t promised_ = 0;    ///< messages the driver has sent
    uint64_t seen_ = 0;        ///< messages that had come when last looked at
    uint64_t patient_tsc_ = 0; ///< missing messages are waited for until then
    uint64_t next_events_ = 0; ///< events cost a lock
    bool driver_known_ = false;
    unsigned drivers_left_ = 0;
    uint64_t points_ = 0;
    std::string error_;
};

} // namespace pktgen

#endif
