// SPDX-License-Identifier: BSD-3-Clause
// The server: a session a device, in turn on one lcore.
#include <cstdio>
#include <memory>
#include <vector>

#include <rte_cycles.h>

#include "measure/lcores.hpp"
#include "peer.hpp"
#include "results/period.hpp"
#include "roles/roles.hpp"
#include "session/session.hpp"
#include "signals.hpp"
#include "transport/device.hpp"

namespace pktgen
{

namespace
{

int complain(const std::string &error)
{
    std::fprintf(stderr, "ntbmsg-pktgen: %s\n", error.c_str());
    return 1;
}

/// A device, and the session on it.
class Served
{
public:
    Served(std::string device, const Duty &duty) : device_(std::move(device)), duty_(duty)
    {
        open();
    }

    bool ok() const { return endpoint_->ok(); }
    ntbmsg_endpoint *endpoint() const { return endpoint_->get(); }
    Session &session() const { return *session_; }
    /// What the last session was asked for. @return false: the device does not open any more
    bool set_copy(CopyMode mode);

private:
    void open();

    const std::string device_;
    Duty duty_;
    std::unique_ptr<app::Endpoint> endpoint_;
    std::unique_ptr<Session> session_; ///< its mbufs belong to the endpoint
};

void Served::open()
{
    endpoint_ = std::make_unique<app::Endpoint>(device_, endpoint_options(duty_.needs));
    if (ok())
        session_ = std::make_unique<Session>(device_, endpoint_->get(), duty_);
}

bool Served::set_copy(CopyMode mode)
{
    const CopyMode before = copy_mode_of(device_);
    session_.reset();
    endpoint_.reset();
    duty_.copy = set_copy_mode(device_, mode) ? static_cast<uint32_t>(mode) : copy_refused;
    open();
    if (ok())
        return true;
    duty_.copy = copy_refused; // why has been logged
    set_copy_mode(device_, before);
    open();
    return ok();
}

class Servers
{
public:
    explicit Servers(const Options &options) : options_(options) {}

    /// @return exit status
    int run();

private:
    std::string open();
    void watch();
    bool change_copies();
    std::string round(uint64_t now);

    const Options &options_;
    std::unique_ptr<Capture> capture_;
    ChannelListener listener_;
    std::vector<std::unique_ptr<Served>> all_;
    std::unique_ptr<Period> period_;
    unsigned left_ = 0;
    bool any_met_ = false;
};

/// @return empty, or what is wrong
std::string Servers::open()
{
    const Options &o = options_;
    if (!o.capture.empty()) {
        capture_ = std::make_unique<Capture>(o.capture, o.capture_bytes);
        const std::string error = capture_->open();
        if (!error.empty())
            return error;
    }
    const std::string deaf = want_channels(o) ? listener_.open() : std::string();
    if (!deaf.empty())
        return deaf;
    // Sessions go on in turn, so only one of them can have the other lcores.
    const unsigned lcores = o.devices.size() == 1 ? lcores_here() : 1;
    const Needs needs{o.serve_queues, o.ring, o.max_message, o.max_message, want_channels(o)};
    for (const std::string &device : o.devices) {
        const CopyMode copy = copy_mode_of(device);
        all_.push_back(std::make_unique<Served>(device, Duty{needs, listener_.get(), capture_.get(),
                                                             o.realtime, lcores, copy,
                                                             static_cast<uint32_t>(copy)}));
        if (!all_.back()->ok())
            return device + " cannot be opened"; // why has been logged
        std::printf("%s: serving, SIGINT ends it\n", device.c_str());
    }
    std::fflush(stdout);
    return {};
}

void Servers::watch()
{
    std::vector<const ntbmsg_endpoint *> endpoints;
    for (const auto &one : all_)
        endpoints.push_back(one->endpoint());
    period_ = std::make_unique<Period>(options_.stats_period, options_.devices, endpoints);
}

/// @return false: a device does not open any more
bool Servers::change_copies()
{
    for (const auto &one : all_) {
        const auto copy = one->session().next_copy();
        if (!copy)
            continue;
        period_.reset(); // it looks at the endpoint
        left_ += one->session().clients_left();
        any_met_ = true;
        if (!one->set_copy(*copy))
            return false;
        watch();
    }
    return true;
}

/// @return empty, or what ends it
std::string Servers::round(uint64_t now)
{
    for (const auto &one : all_) {
        one->session().round(now);
        if (!one->session().error().empty())
            return one->session().error();
        any_met_ = any_met_ || one->session().met();
    }
    return change_copies() ? std::string() : "a device does not open any more";
}

int Servers::run()
{
    const Options &o = options_;
    std::string error = open();
    if (!error.empty())
        return complain(error);
    watch();
    const auto give_up =
        rte_rdtsc() + static_cast<uint64_t>(o.timeout * static_cast<double>(rte_get_tsc_hz()));
    while (app::stop_signal() == 0) {
        const uint64_t now = rte_rdtsc();
        error = round(now);
        if (!error.empty())
            return complain(error);
        unsigned left = left_;
        for (const auto &one : all_)
            left += one->session().clients_left();
        if (o.once && left >= all_.size())
            return 0;
        if (o.timeout > 0 && !any_met_ && now > give_up)
            return complain(
                app::why_not_connected(all_[0]->endpoint(), app::Peer::absent, o.timeout));
    }
    return 0;
}

} // namespace

int serve(const Options &o)
{
    return Servers(o).run();
}

} // namespace pktgen
