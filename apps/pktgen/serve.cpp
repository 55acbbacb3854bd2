// SPDX-License-Identifier: BSD-3-Clause
// The serving end: a session a device, in turn on one lcore.
#include <cstdio>
#include <memory>
#include <vector>

#include <rte_cycles.h>

#include "device.hpp"
#include "peer.hpp"
#include "period.hpp"
#include "roles.hpp"
#include "session.hpp"
#include "signals.hpp"

namespace pktgen
{

namespace
{

struct Served {
    std::unique_ptr<app::Endpoint> endpoint;
    std::unique_ptr<Session> session;
};

int complain(const std::string &error)
{
    std::fprintf(stderr, "ntbmsg-pktgen: %s\n", error.c_str());
    return 1;
}

/// @return exit status
int run(std::vector<Served> &all, const Options &o)
{
    const uint64_t begin = rte_rdtsc();
    const auto give_up =
        begin + static_cast<uint64_t>(o.timeout * static_cast<double>(rte_get_tsc_hz()));
    bool anybody = false;
    while (app::stop_signal() == 0) {
        unsigned left = 0;
        const uint64_t now = rte_rdtsc();
        for (const Served &one : all) {
            one.session->round(now);
            if (!one.session->error().empty())
                return complain(one.session->error());
            left += one.session->drivers_left();
            anybody = anybody || one.session->met();
        }
        if (o.once && left >= all.size())
            return 0;
        if (o.timeout > 0 && !anybody && now > give_up)
            return complain("no driver came in " + std::to_string(o.timeout) +
                            " s: " + app::why_no_peer(all[0].endpoint->get()));
    }
    return 0;
}

} // namespace

int serve(const Options &o)
{
    std::unique_ptr<Capture> capture;
    if (!o.capture.empty()) {
        capture = std::make_unique<Capture>(o.capture, o.capture_bytes);
        const std::string error = capture->open();
        if (!error.empty())
            return complain(error);
    }
    ChannelListener listener;
    const std::string deaf = want_channels(o) ? listener.open() : std::string();
    if (!deaf.empty())
        return complain(deaf);
    std::vector<Served> all;
    std::vector<const ntbmsg_endpoint *> endpoints;
    const Needs needs{o.serve_queues, o.ring, o.max_message, o.max_message, want_channels(o)};
    for (const std::string &device : o.devices) {
        auto endpoint = std::make_unique<app::Endpoint>(device, endpoint_options(needs));
        if (!endpoint->ok())
            return 1;
        auto session = std::make_unique<Session>(device, endpoint->get(), needs, listener.get(),
                                                 capture.get(), o.realtime);
        endpoints.push_back(endpoint->get());
        all.push_back({std::move(endpoint), std::move(session)});
        std::printf("%s: serving, SIGINT ends it\n", device.c_str());
    }
    std::fflush(stdout);
    const Period period(o.stats_period, o.devices, endpoints);
    const int status = run(all, o);
    for (Served &one : all)
        one.session.reset(); // its mbufs belong to the endpoint
    return status;
}

} // namespace pktgen
