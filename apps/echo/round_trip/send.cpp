// SPDX-License-Identifier: BSD-3-Clause
#include "round_trip/send.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "peer.hpp"
#include "round_trip/client.hpp"

namespace echo
{

namespace
{

int complain(const std::string &error)
{
    std::fprintf(stderr, "ntbmsg-echo: %s\n", error.c_str());
    return 1;
}

struct CloseFile {
    void operator()(std::FILE *file) const { std::fclose(file); }
};
using OutFile = std::unique_ptr<std::FILE, CloseFile>;

/// @return empty when the peer is there and takes such messages, else why not
std::string await_peer(ntbmsg_endpoint *endpoint, const Options &o, bool &interrupted)
{
    if (!o.quiet && ntbmsg_endpoint_link_state_get(endpoint) == NTBMSG_LINK_WAITING)
        std::fprintf(stderr, "waiting for a peer on %s\n", o.device.c_str());
    const app::Peer peer = app::await_peer(endpoint, o.timeout);
    interrupted = peer == app::Peer::interrupted;
    if (interrupted)
        return {};
    if (peer != app::Peer::connected)
        return app::why_not_connected(endpoint, peer, o.timeout);
    const uint32_t most = ntbmsg_endpoint_max_message(endpoint);
    if (most != 0 && o.size > most)
        return "--size " + std::to_string(o.size) + " is more than the peer takes, " +
               std::to_string(most) + " bytes: serve with --max-message " + std::to_string(o.size);
    return {};
}

/// Runs the client and reports. The client goes first: its mbufs belong to the endpoint.
int converse(ntbmsg_endpoint *endpoint, const Options &o, app::FileSource &source, OutFile out)
{
    auto report = std::make_unique<Report>();
    report->error = await_peer(endpoint, o, report->interrupted);
    if (report->error.empty() && !report->interrupted)
        Client(endpoint, o, source, out.get()).run(*report);
    if (out != nullptr && std::fclose(out.release()) != 0 && report->error.empty())
        report->error = o.out + ": " + std::strerror(errno);
    // With the JSON on standard output, that is all that is there.
    print(*report, o, o.json == "-" ? stderr : stdout);
    const std::string unwritten = o.json.empty() ? std::string() : write_json(*report, o);
    if (!report->error.empty())
        return complain(report->error);
    return unwritten.empty() ? 0 : complain(unwritten);
}

} // namespace

int send(const Options &o)
{
    app::FileSource source;
    if (const std::string error = source.open(o.send); !error.empty())
        return complain(error);
    OutFile out;
    if (!o.out.empty()) {
        out.reset(std::fopen(o.out.c_str(), "wb"));
        if (out == nullptr)
            return complain(o.out + ": " + std::strerror(errno));
    }
    const app::Endpoint endpoint(o.device, endpoint_options(o));
    if (!endpoint.ok())
        return 1;
    return converse(endpoint.get(), o, source, std::move(out));
}

} // namespace echo
