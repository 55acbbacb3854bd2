// SPDX-License-Identifier: BSD-3-Clause
#include "round_trip/report.hpp"

#include <cinttypes>
#include <cstdio>
#include <utility>

#include <rte_cycles.h>

#include "build.hpp"
#include "cpu_share.hpp"
#include "json.hpp"
#include "units.hpp"
#include "whole_file.hpp"

namespace echo
{

namespace
{

double to_ns(double cycles)
{
    return cycles * 1e9 / static_cast<double>(rte_get_tsc_hz());
}

std::string duration(double cycles)
{
    return app::with_unit(to_ns(cycles) / 1e9, "s");
}

double per_second(double amount, double seconds)
{
    return seconds > 0 ? amount / seconds : 0;
}

void print_headline(const Report &r, FILE *to)
{
    std::fprintf(to, "%" PRIu64 " message%s, %" PRIu64 " bytes came back byte for byte%s\n",
                 r.messages, r.messages == 1 ? "" : "s", r.bytes,
                 r.interrupted ? "; ended by a signal" : "");
    if (r.missing != 0)
        std::fprintf(to, "  missing     %" PRIu64 " messages were sent and did not come back\n",
                     r.missing);
    if (r.stats.tx_unconfirmed != 0)
        std::fprintf(to, "  unconfirmed %" PRIu64 " messages may or may not have arrived\n",
                     r.stats.tx_unconfirmed);
}

std::string hex(uint32_t crc)
{
    char text[16];
    std::snprintf(text, sizeof(text), "%08" PRIx32, crc);
    return text;
}

std::string to_json(const Report &r, const Options &o)
{
    app::JsonText json;
    json.begin_object();
    json.member("ok", r.error.empty());
    json.member("error", r.error);
    json.member("interrupted", r.interrupted);
    json.member("file", o.send);
    json.member("size", o.size);
    json.member("in_flight", o.in_flight);
    json.member("queues", o.queues);
    json.member("messages", r.messages);
    json.member("bytes", r.bytes);
    json.member("build", app::build_name(r.built != 0));
    json.member("built", r.built);
    json.member("missing", r.missing);
    json.member("seconds", r.seconds);
    json.member("messages_per_second", per_second(static_cast<double>(r.messages), r.seconds));
    json.member("bytes_per_second", per_second(static_cast<double>(r.bytes), r.seconds));
    json.member("cpu_share", r.cpu_share);
    const app::Histogram &h = r.round_trips;
    json.key("round_trip_ns");
    json.begin_object();
    json.member("min", to_ns(static_cast<double>(h.min())));
    json.member("mean", to_ns(h.mean()));
    for (const auto &[name, part] :
         {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99_9", 0.999}})
        json.member(name, to_ns(static_cast<double>(h.quantile(part))));
    json.member("max", to_ns(static_cast<double>(h.max())));
    json.end_object();
    json.member("crc32c_sent", hex(r.crc_sent));
    json.member("crc32c_back", hex(r.crc_back));
    json.member("tx_full", r.stats.tx_full);
    json.member("rx_nombuf", r.stats.rx_nombuf);
    json.member("tx_unconfirmed", r.stats.tx_unconfirmed);
    json.end_object();
    return json.text() + "\n";
}

} // namespace

void print(const Report &r, const Options &o, FILE *to)
{
    if (r.messages != 0 || r.missing != 0 || r.interrupted)
        print_headline(r, to);
    if (r.messages == 0)
        return;
    const app::Histogram &h = r.round_trips;
    std::fprintf(to,
                 "  set-up      messages of %" PRIu64 " bytes, %" PRIu64
                 " in flight on each of %" PRIu64 " queue%s, %s\n",
                 o.size, o.in_flight, o.queues, o.queues == 1 ? "" : "s",
                 app::with_unit(r.seconds, "s").c_str());
    if (r.built != 0)
        std::fprintf(to, "  built       %" PRIu64 " answers in receive buffers of this side\n",
                     r.built);
    std::fprintf(to, "  round trip  %s  (min %s, mean %s)\n",
                 app::quantiles_text(h, static_cast<double>(rte_get_tsc_hz())).c_str(),
                 duration(static_cast<double>(h.min())).c_str(), duration(h.mean()).c_str());
    std::fprintf(
        to, "  each way    %s, %s\n",
        app::with_unit(per_second(static_cast<double>(r.messages), r.seconds), "msg/s").c_str(),
        app::with_unit(per_second(static_cast<double>(r.bytes), r.seconds), "B/s").c_str());
    if (r.cpu_share < app::least_cpu_share)
        std::fprintf(to, "  disturbed   the polling thread had its CPU for %.0f %% of the time\n",
                     app::whole_percent(r.cpu_share));
    std::fprintf(to, "  CRC-32C     %08" PRIx32 " sent, %08" PRIx32 " came back\n", r.crc_sent,
                 r.crc_back);
}

std::string write_json(const Report &report, const Options &options)
{
    return app::write_whole(options.json, to_json(report, options));
}

} // namespace echo
