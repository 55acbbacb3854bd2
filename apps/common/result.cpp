// SPDX-License-Identifier: BSD-3-Clause
#include "result.hpp"

#include <rte_version.h>

#include <algorithm>
#include <cstdio>

#include "build_info.hpp"
#include "cpu_share.hpp"
#include "json.hpp"
#include "machine.hpp"
#include "placement.hpp"
#include "units.hpp"

namespace app
{

namespace
{

constexpr unsigned format_version = 5;
/// Of the offered rate: the last messages come a moment after their time.
constexpr double least_met = 0.97;

void put_program(JsonText &json, const Result &result)
{
    json.key("program");
    json.begin_object();
    json.member("name", result.program);
    json.member("command", result.command);
    json.member("commit", APP_BUILD_COMMIT);
    json.member("compiler", __VERSION__);
    json.member("dpdk", rte_version());
    json.end_object();
}

void put_machine(JsonText &json, const Result &result)
{
    const Machine machine = read_machine();
    json.key("machine");
    json.begin_object();
    json.member("cpu", machine.cpu);
    json.member("kernel", machine.kernel);
    json.member("cpus", machine.cpus);
    json.member("load_1min", result.load_1min);
    json.member("huge_pages_total", machine.huge_pages_total);
    json.member("huge_pages_free", machine.huge_pages_free);
    json.key("cores");
    json.begin_object();
    json.member("client", static_cast<double>(result.client_cpu));
    json.member("server", static_cast<double>(result.server_cpu));
    json.member("same_machine", result.same_machine);
    json.end_object();
    json.end_object();
}

void put_device(JsonText &json, const ResultDevice &device)
{
    json.begin_object();
    json.member("name", device.name);
    json.member("platform", device.platform);
    json.member("burst_functions", device.burst);
    json.member("pcie_generation", device.pcie_generation);
    json.member("lanes", device.lanes);
    json.member("ring_lines", device.ring_lines);
    json.member("inline_max", device.inline_max);
    json.member("max_message", device.max_message);
    json.member("peer_max_message", device.peer_max_message);
    json.member("dma_min", device.dma_min);
    json.end_object();
}

void put_flow(JsonText &json, const Flow &flow)
{
    json.begin_object();
    json.member("name", flow.name);
    json.member("queue", flow.queue);
    json.member("cpu", static_cast<double>(flow.cpu));
    json.member("messages", flow.messages);
    json.member("bytes", flow.bytes);
    json.member("seconds", flow.seconds);
    json.end_object();
}

void put_set_up(JsonText &json, const ResultPoint &p)
{
    json.member("mode", p.mode);
    json.member("operation", p.operation);
    json.member("device", p.device);
    json.member("size", p.size);
    json.member("mix", p.mix);
    json.member("burst", p.burst);
    json.member("in_flight", p.in_flight);
    json.member("queues", p.queues);
    json.member("offered_rate", p.offered_rate);
    json.member("copy", p.copied_by_dma ? "dma" : "cpu");
    json.member("copy_mode", p.copy_mode);
    json.member("build", p.build);
    json.member("completion", p.completion);
    json.member("region", p.region);
    json.member("lcores", p.lcores);
    json.member("server_lcores", p.server_lcores);
    json.member("pattern", p.pattern);
    json.member("verified", p.verified);
    json.member("clock", p.clock);
    json.member("repeat", p.repeat);
}

void put_probe(JsonText &json, std::string_view name, double ns)
{
    json.key(name);
    if (ns > 0)
        json.value(ns);
    else
        json.null();
}

void put_point(JsonText &json, const ResultPoint &p)
{
    const ResultRate rate = rate_of(p);
    json.begin_object();
    put_set_up(json, p);
    json.member("complete", p.complete);
    json.member("error", p.error);
    json.member("rate_met", p.rate_met);
    json.member("cpu_share", p.cpu_share);
    json.member("disturbed", p.disturbed);
    json.member("seconds", p.seconds);
    json.member("messages", rate.messages);
    json.member("bytes", rate.bytes);
    json.member("messages_per_second", rate.messages_per_second);
    json.member("bytes_per_second", rate.bytes_per_second);
    json.key("flows");
    json.begin_array();
    for (const Flow &flow : p.flows)
        put_flow(json, flow);
    json.end_array();
    put_latency(json, "round_trip_ns", p.latency);
    put_latency(json, "round_trip_from_intended_ns", p.latency_from_intended);
    json.key("placement");
    json.begin_object();
    json.member("class", p.placement);
    put_probe(json, "before_ns", p.probe_before_ns);
    put_probe(json, "after_ns", p.probe_after_ns);
    json.end_object();
    json.key("checks");
    json.begin_object();
    json.member("lost", p.lost);
    json.member("corrupt", p.corrupt);
    json.member("out_of_order", p.out_of_order);
    json.end_object();
    json.key("counters");
    json.begin_object();
    json.member("tx_full", p.tx_full);
    json.member("rx_nombuf", p.rx_nombuf);
    json.member("captured", p.captured);
    json.member("served", p.served);
    json.end_object();
    json.end_object();
}

} // namespace

ResultRate rate_of(const ResultPoint &point)
{
    ResultRate rate;
    for (const Flow &flow : point.flows) {
        rate.messages += flow.messages;
        rate.bytes += flow.bytes;
        if (flow.seconds <= 0)
            continue;
        rate.messages_per_second += static_cast<double>(flow.messages) / flow.seconds;
        rate.bytes_per_second += static_cast<double>(flow.bytes) / flow.seconds;
    }
    return rate;
}

void judge(ResultPoint &point)
{
    char text[160];
    point.disturbed.clear();
    if (point.cpu_share < least_cpu_share) {
        std::snprintf(text, sizeof(text), "a polling thread had its CPU for %.0f %% of the time",
                      whole_percent(point.cpu_share));
        point.disturbed = text;
    } else if (point.probe_before_ns > 0 && point.probe_after_ns > 0 &&
               !same_place(point.probe_before_ns, point.probe_after_ns)) {
        std::snprintf(
            text, sizeof(text),
            "the cores were moved: a line takes %.0f ns there and back before and %.0f ns after",
            point.probe_before_ns, point.probe_after_ns);
        point.disturbed = text;
    }
    const double achieved = rate_of(point).messages_per_second;
    double seconds = 0;
    for (const Flow &flow : point.flows)
        seconds = std::max(seconds, flow.seconds);
    // In a short run a burst more or less is no other rate.
    const double slack = seconds > 0 ? static_cast<double>(point.burst) / seconds : 0;
    point.rate_met = point.offered_rate <= 0 || seconds <= 0 ||
                     achieved + slack >= least_met * point.offered_rate;
    if (point.rate_met || !point.complete)
        return;
    point.complete = false;
    point.error = "the offered rate was not met: " + with_unit(achieved, "msg/s") + " of " +
                  with_unit(point.offered_rate, "msg/s");
}

std::string to_json(const Result &result)
{
    JsonText json;
    json.begin_object();
    json.member("format", "ntbmsg-result");
    json.member("version", format_version);
    json.member("complete", result.complete);
    json.member("interrupted", result.interrupted);
    json.member("error", result.error);
    json.member("started", result.started);
    json.member("seconds", result.seconds);
    put_program(json, result);
    put_machine(json, result);
    json.key("devices");
    json.begin_array();
    for (const ResultDevice &device : result.devices)
        put_device(json, device);
    json.end_array();
    json.key("options");
    json.begin_object();
    for (const auto &[name, value] : result.options)
        json.member(name, value);
    json.end_object();
    json.key("points");
    json.begin_array();
    for (const ResultPoint &point : result.points)
        put_point(json, point);
    json.end_array();
    json.key("skipped");
    json.begin_array();
    for (const Skipped &skipped : result.skipped) {
        json.begin_object();
        json.member("what", skipped.what);
        json.member("why", skipped.why);
        json.end_object();
    }
    json.end_array();
    json.end_object();
    return json.text();
}

} // namespace app
