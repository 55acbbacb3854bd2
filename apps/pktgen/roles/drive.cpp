// SPDX-License-Identifier: BSD-3-Clause
// The client: goes through the plan, and keeps what it has measured whatever happens.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <sched.h>
#include <unistd.h>
#include <vector>

#include <rte_cycles.h>

#include "build.hpp"
#include "machine.hpp"
#include "measure/lcores.hpp"
#include "options/plan.hpp"
#include "placement.hpp"
#include "results/period.hpp"
#include "results/table.hpp"
#include "roles/roles.hpp"
#include "roles/run_point.hpp"
#include "session/server_link.hpp"
#include "signals.hpp"
#include "transport/device.hpp"
#include "whole_file.hpp"

namespace pktgen
{

namespace
{

std::string utc_now()
{
    const time_t now = time(nullptr);
    tm parts;
    gmtime_r(&now, &parts);
    char text[32];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
    return text;
}

class Sweep
{
public:
    Sweep(const Options &options, const std::string &command);

    /// @return exit status
    int run();

private:
    bool read_packets();
    bool open_capture();
    std::unique_ptr<ServerLink> open_server(const std::string &device) const;
    bool open_lines();
    void watch();
    bool meet();
    void describe();
    void go_through();
    bool take(const Planned &planned);
    std::string why_skipped(const Planned &planned) const;
    bool set_copy(const Planned &planned);
    void label(app::ResultPoint &result, const Planned &planned) const;
    void show_progress(size_t i) const;
    void probe();
    bool save();
    void fail(const std::string &error);
    int finish();
    FILE *table_file() const
    {
        return options_.json == "-" || options_.csv == "-" ? stderr : stdout;
    }

    const Options &options_;
    app::Result result_;
    Packets packets_;
    std::vector<Planned> plan_;
    std::unique_ptr<Capture> capture_;
    std::vector<std::unique_ptr<ServerLink>> servers_;
    std::unique_ptr<Period> period_;
    const uint64_t begin_tsc_ = rte_rdtsc();
    const uint64_t run_ = new_run();
    uint32_t serial_ = 0;
    std::optional<CopyMode> copy_; ///< that all devices were last set to
    double probe_ns_ = 0;          ///< the last one; 0: not taken
    std::string placement_ = "unknown";
    bool finished_ = false; ///< standard output is written to once
};

Sweep::Sweep(const Options &options, const std::string &command) : options_(options)
{
    result_.program = "ntbmsg-pktgen";
    result_.command = command;
    result_.started = utc_now();
    result_.client_cpu = sched_getcpu();
    result_.load_1min = app::read_machine().load_1min;
    result_.options = options.as_text;
}

void Sweep::fail(const std::string &error)
{
    if (!result_.error.empty())
        return;
    result_.error = error;
    std::fprintf(stderr, "ntbmsg-pktgen: %s\n", error.c_str());
}

bool Sweep::read_packets()
{
    const std::string path = options_.pcap.empty() ? options_.mix.file : options_.pcap;
    if (path.empty())
        return true;
    const std::string error = packets_.read(path);
    if (!error.empty())
        fail(error);
    return error.empty();
}

bool Sweep::open_capture()
{
    if (options_.capture.empty())
        return true;
    capture_ = std::make_unique<Capture>(options_.capture, options_.capture_bytes);
    const std::string error = capture_->open();
    if (!error.empty())
        fail(error);
    return error.empty();
}

std::unique_ptr<ServerLink> Sweep::open_server(const std::string &device) const
{
    const uint64_t queues = *std::max_element(options_.queues.begin(), options_.queues.end());
    const uint64_t longest =
        options_.max_message != 0 ? options_.max_message : longest_message(plan_);
    return std::make_unique<ServerLink>(
        device,
        Needs{queues, options_.ring, longest, options_.max_message, want_channels(options_)},
        options_.timeout, run_);
}

bool Sweep::open_lines()
{
    for (const std::string &device : options_.devices) {
        servers_.push_back(open_server(device));
        if (servers_.back()->ok())
            continue;
        fail(device + " cannot be opened"); // why has been logged
        return false;
    }
    return true;
}

bool Sweep::meet()
{
    for (const auto &server : servers_) {
        if (!options_.quiet &&
            ntbmsg_endpoint_link_state_get(server->endpoint()) == NTBMSG_LINK_WAITING)
            std::fprintf(stderr, "waiting for a peer on %s\n", server->device().c_str());
        const std::string error = server->meet();
        if (!error.empty())
            fail(error);
        if (!error.empty() || app::stop_signal() != 0)
            return false;
    }
    return true;
}

void Sweep::watch()
{
    std::vector<const ntbmsg_endpoint *> endpoints;
    for (const auto &server : servers_)
        endpoints.push_back(server->endpoint());
    period_ = std::make_unique<Period>(options_.stats_period, options_.devices, endpoints);
}

void Sweep::describe()
{
    result_.server_cpu = servers_[0]->server_cpu();
    result_.same_machine = servers_[0]->same_machine();
    for (const auto &server : servers_)
        result_.devices.push_back(describe_device(server->device(), server->endpoint()));
}

void Sweep::probe()
{
    probe_ns_ = 0;
    placement_ = "unknown";
    if (!servers_[0]->same_machine())
        placement_ = "remote";
    else if (servers_[0]->server_cpu() == result_.client_cpu)
        placement_ = "same";
    else if (!options_.no_probe && servers_[0]->error().empty())
        probe_ns_ = servers_[0]->probe().value_or(0);
    if (probe_ns_ > 0)
        placement_ = app::name_of(app::classify(probe_ns_));
}

/// @return empty, or why this point cannot be measured with this peer
std::string Sweep::why_skipped(const Planned &planned) const
{
    const auto bytes = [](uint64_t n) { return std::to_string(n) + " bytes"; };
    const Point &p = planned.point;
    if (is_one_sided(p.operation) && p.size_to > largest_operation)
        return "the longest operation there is has " + bytes(largest_operation);
    if (is_one_sided(p.operation) && !is_atomic(p.operation) && p.verify && p.size < seal_bytes)
        return "a number and a CRC want " + bytes(seal_bytes);
    if (is_one_sided(p.operation))
        return {};
    if (p.size_to > largest_size)
        return "the longest message there is has " + bytes(largest_size);
    const app::ResultDevice &device = result_.devices[planned.device];
    const uint32_t most = servers_[planned.device]->max_message(p.operation);
    // 0: the peer is gone, which is no reason to leave something out but to fail.
    if (p.direction != Direction::in && most != 0 && p.size_to > most)
        return "the peer takes " + bytes(most) + " at most: serve with --max-message " +
               std::to_string(p.size_to);
    const uint32_t built = servers_[planned.device]->longest_built();
    if (options_.in_place && p.size_to > built)
        return "the peer's ring has lines for the receive buffers of " + bytes(built) +
               ", and one built in place needs all of them at once: serve with a longer --ring, "
               "or --build mbuf";
    if (p.direction != Direction::out && p.size_to > device.max_message)
        return "this end takes " + bytes(device.max_message) + " at most: --max-message " +
               std::to_string(p.size_to);
    return {};
}

/// Each device is opened anew. @return false: the sweep is over
bool Sweep::set_copy(const Planned &planned)
{
    if (!planned.copy || planned.copy == copy_)
        return true;
    period_.reset(); // it looks at the endpoints
    std::string error;
    for (size_t i = 0; i < servers_.size() && error.empty(); ++i) {
        const std::string device = servers_[i]->device();
        error = servers_[i]->ask_copy(*planned.copy);
        if (!error.empty())
            break;
        servers_[i].reset();
        set_copy_mode(device, *planned.copy);
        servers_[i] = open_server(device);
        error = servers_[i]->ok() ? servers_[i]->meet_with_copy(*planned.copy)
                                  : device + " cannot copy by " + name_of(*planned.copy);
        result_.devices[i] = describe_device(device, servers_[i]->endpoint());
    }
    if (!error.empty()) {
        fail(error);
        return false;
    }
    copy_ = planned.copy;
    watch();
    return app::stop_signal() == 0;
}

/// What the end of an operation says.
const char *completion_of(const Point &p, bool direct)
{
    if (!is_one_sided(p.operation))
        return "received";
    if (p.operation == Operation::write_imm && p.direction != Direction::echo)
        return "reported";
    const bool stored = p.operation == Operation::write && direct && !p.confirm;
    return stored ? "stored" : "done";
}

void Sweep::label(app::ResultPoint &result, const Planned &planned) const
{
    const Point &p = planned.point;
    const app::ResultDevice &device = result_.devices[planned.device];
    result.mode = name_of(p.mode);
    result.operation = name_of(p.operation);
    result.device = device.name;
    result.pattern = p.mode == Mode::replay ? "pcap" : name_of(p.pattern);
    result.clock = p.clock ? "on" : "off";
    result.mix = "fixed";
    if (p.mix == MixKind::imix)
        result.mix = "imix";
    else if (p.mix == MixKind::uniform)
        result.mix = "uniform:" + std::to_string(p.size) + "-" + std::to_string(p.size_to);
    else if (p.mix == MixKind::pcap)
        result.mix = "pcap:" + (options_.pcap.empty() ? options_.mix.file : options_.pcap);
    result.size = packets_.count() != 0 ? Sizes(packets_.sizes()).mean() : Sizes(p).mean();
    result.burst = p.burst;
    result.in_flight =
        p.direction == Direction::echo || is_one_sided(p.operation) ? p.in_flight : 0;
    result.queues = p.queues;
    result.repeat = planned.repeat;
    result.offered_rate = p.rate;
    result.verified = p.verify;
    const bool direct = result.region == "direct";
    result.completion = completion_of(p, direct);
    result.copy_mode = name_of(copy_mode_of(device.name));
    result.build = app::build_name(options_.in_place);
    // The CPU that posts stores what is written directly, and atomics are words.
    result.copied_by_dma = device.dma_min != 0 && p.size_to >= device.dma_min && !direct;
}

/// @return false: the sweep is over
bool Sweep::take(const Planned &planned)
{
    std::vector<ServerLink *> servers;
    for (size_t i = 0; i < servers_.size(); ++i) {
        if (planned.point.mode == Mode::incast || i == planned.device)
            servers.push_back(servers_[i].get());
    }
    const double probe_before = probe_ns_;
    const std::string placement = placement_;
    const ClientExtras extras{packets_.count() != 0 ? &packets_ : nullptr,
                              planned.point.mode == Mode::replay,
                              options_.recorded,
                              options_.in_place,
                              capture_.get(),
                              options_.realtime,
                              lcores_here()};
    app::ResultPoint result = run_point(servers, planned.point, ++serial_, extras);
    label(result, planned);
    probe();
    result.probe_before_ns = probe_before;
    result.probe_after_ns = probe_ns_;
    result.placement = placement;
    app::judge(result);
    std::fputs(table_line(result).c_str(), table_file());
    std::fflush(table_file());
    // A load that is too high is a finding, not a failure.
    if (!result.complete && result.rate_met && app::stop_signal() == 0)
        fail(result.error);
    else if (result.lost + result.corrupt + result.out_of_order != 0)
        fail("messages were lost, changed or out of order");
    result_.points.push_back(std::move(result));
    // Also where it was lost behind the measurement, in the probe.
    const auto lost = std::find_if(servers.begin(), servers.end(), [](const ServerLink *server) {
        return !server->error().empty();
    });
    if (lost != servers.end())
        fail((*lost)->error());
    const std::string unwritten = capture_ != nullptr ? capture_->flush() : std::string();
    if (!unwritten.empty())
        fail(unwritten);
    return save() && lost == servers.end() && unwritten.empty() && app::stop_signal() == 0;
}

void Sweep::go_through()
{
    std::fputs(table_head().c_str(), table_file());
    probe();
    for (size_t i = 0; i < plan_.size() && app::stop_signal() == 0; ++i) {
        const std::string why = why_skipped(plan_[i]);
        if (!why.empty()) {
            if (plan_[i].repeat == 0)
                result_.skipped.push_back({std::string(name_of(plan_[i].point.mode)) + " of " +
                                               std::to_string(plan_[i].point.size_to) + " bytes",
                                           why});
            continue;
        }
        show_progress(i);
        if (!set_copy(plan_[i]) || !take(plan_[i]))
            return;
    }
    result_.complete = app::stop_signal() == 0 && result_.error.empty();
}

/// On a terminal only: it is overwritten by the line of the result.
void Sweep::show_progress(size_t i) const
{
    if (options_.quiet || isatty(STDERR_FILENO) == 0)
        return;
    std::fprintf(stderr, "%zu of %zu: %s, %u bytes\r", i + 1, plan_.size(),
                 name_of(plan_[i].point.mode), plan_[i].point.size_to);
}

/// Also before the first point: where nothing can be written, that is better known early.
bool Sweep::save()
{
    result_.seconds =
        static_cast<double>(rte_rdtsc() - begin_tsc_) / static_cast<double>(rte_get_tsc_hz());
    std::string error;
    if (!options_.json.empty() && (options_.json != "-" || finished_))
        error = app::write_whole(options_.json, app::to_json(result_));
    if (error.empty() && !options_.csv.empty() && (options_.csv != "-" || finished_))
        error = app::write_whole(options_.csv, app::to_csv(result_));
    if (!error.empty())
        fail(error);
    return error.empty();
}

int Sweep::finish()
{
    period_.reset();
    result_.interrupted = app::stop_signal() != 0;
    finished_ = true;
    for (const app::Skipped &skipped : result_.skipped)
        std::fprintf(stderr, "left out: %s: %s\n", skipped.what.c_str(), skipped.why.c_str());
    if (result_.points.empty() && !result_.interrupted)
        fail("nothing could be measured");
    if (!result_.points.empty())
        save();
    constexpr int signal_base = 128;
    if (result_.interrupted)
        return signal_base + app::stop_signal();
    return result_.error.empty() ? 0 : 1;
}

int Sweep::run()
{
    if (!read_packets() || !open_capture())
        return 1;
    plan_ = plan_for(options_, packets_);
    if (!open_lines())
        return 1;
    if (meet()) {
        describe();
        watch();
        if (save())
            go_through();
    }
    return finish();
}

} // namespace

int drive(const Options &options, const std::string &command)
{
    return Sweep(options, command).run();
}

} // namespace pktgen
