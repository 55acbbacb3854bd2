// SPDX-License-Identifier: BSD-3-Clause
#include "round_trip/report.hpp"

#include "units.hpp"

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include <rte_cycles.h>

namespace echo
{

namespace
{

struct Quantile {
    const char *text;
    const char *json;
    double part;
};

constexpr Quantile quantiles[] = {
    {"p50", "p50", 0.5}, {"p90", "p90", 0.9}, {"p99", "p99", 0.99}, {"p99.9", "p99_9", 0.999}};

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

std::string quoted(const std::string &text)
{
    std::string out = "\"";
    for (const char c : text) {
        char escaped[8];
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
            out += escaped;
        } else {
            out += c;
        }
    }
    return out + '"';
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

void write_round_trips(const app::Histogram &h, FILE *to)
{
    std::fprintf(to, "  \"round_trip_ns\": {\"min\": %.0f, \"mean\": %.1f",
                 to_ns(static_cast<double>(h.min())), to_ns(h.mean()));
    for (const Quantile &q : quantiles)
        std::fprintf(to, ", \"%s\": %.0f", q.json, to_ns(static_cast<double>(h.quantile(q.part))));
    std::fprintf(to, ", \"max\": %.0f},\n", to_ns(static_cast<double>(h.max())));
}

void write(const Report &r, const Options &o, FILE *to)
{
    std::fprintf(to, "{\n  \"ok\": %s,\n  \"error\": %s,\n  \"interrupted\": %s,\n",
                 r.error.empty() ? "true" : "false", quoted(r.error).c_str(),
                 r.interrupted ? "true" : "false");
    std::fprintf(to,
                 "  \"file\": %s,\n  \"size\": %" PRIu64 ",\n  \"window\": %" PRIu64
                 ",\n  \"queues\": %" PRIu64 ",\n",
                 quoted(o.send).c_str(), o.size, o.window, o.queues);
    std::fprintf(to,
                 "  \"messages\": %" PRIu64 ",\n  \"bytes\": %" PRIu64 ",\n  \"missing\": %" PRIu64
                 ",\n  \"seconds\": %.6f,\n",
                 r.messages, r.bytes, r.missing, r.seconds);
    std::fprintf(to, "  \"messages_per_second\": %.0f,\n  \"bytes_per_second\": %.0f,\n",
                 per_second(static_cast<double>(r.messages), r.seconds),
                 per_second(static_cast<double>(r.bytes), r.seconds));
    write_round_trips(r.round_trips, to);
    std::fprintf(to,
                 "  \"crc32c_sent\": \"%08" PRIx32 "\",\n  \"crc32c_back\": \"%08" PRIx32 "\",\n",
                 r.crc_sent, r.crc_back);
    std::fprintf(to,
                 "  \"tx_full\": %" PRIu64 ",\n  \"rx_nombuf\": %" PRIu64
                 ",\n  \"tx_unconfirmed\": %" PRIu64 "\n}\n",
                 r.stats.tx_full, r.stats.rx_nombuf, r.stats.tx_unconfirmed);
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
                 " under way on each of %" PRIu64 " queue%s, %s\n",
                 o.size, o.window, o.queues, o.queues == 1 ? "" : "s",
                 app::with_unit(r.seconds, "s").c_str());
    std::fprintf(to, "  round trip ");
    for (const Quantile &q : quantiles)
        std::fprintf(to, " %s %s ", q.text,
                     duration(static_cast<double>(h.quantile(q.part))).c_str());
    std::fprintf(to, " max %s  (min %s, mean %s)\n", duration(static_cast<double>(h.max())).c_str(),
                 duration(static_cast<double>(h.min())).c_str(), duration(h.mean()).c_str());
    std::fprintf(
        to, "  each way    %s, %s\n",
        app::with_unit(per_second(static_cast<double>(r.messages), r.seconds), "msg/s").c_str(),
        app::with_unit(per_second(static_cast<double>(r.bytes), r.seconds), "B/s").c_str());
    std::fprintf(to, "  CRC-32C     %08" PRIx32 " sent, %08" PRIx32 " came back\n", r.crc_sent,
                 r.crc_back);
}

std::string write_json(const Report &report, const Options &options)
{
    const bool to_stdout = options.json == "-";
    FILE *to = to_stdout ? stdout : std::fopen(options.json.c_str(), "w");
    if (to == nullptr)
        return options.json + ": " + std::strerror(errno);
    write(report, options, to);
    const bool failed = std::ferror(to) != 0;
    const bool unfinished = (to_stdout ? std::fflush(to) : std::fclose(to)) != 0;
    return failed || unfinished ? options.json + ": " + std::strerror(errno) : std::string();
}

} // namespace echo
