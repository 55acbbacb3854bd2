// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "result.hpp"

namespace app
{

namespace
{

std::string csv_quoted(const std::string &text)
{
    if (text.find_first_of(",\"\n") == std::string::npos)
        return text;
    std::string out = "\"";
    for (const char c : text)
        out += c == '"' ? std::string("\"\"") : std::string(1, c == '\n' ? ' ' : c);
    return out + '"';
}

std::string csv_line(const ResultPoint &p)
{
    const ResultRate rate = rate_of(p);
    std::string line;
    for (const std::string &text :
         {p.mode, p.operation, p.device, p.mix, p.placement, p.completion, p.region, p.copy_mode,
          p.build, std::string(p.copied_by_dma ? "dma" : "cpu")})
        line += csv_quoted(text) + ",";
    for (const uint64_t number : {p.size, p.burst, p.in_flight, p.queues, p.lcores, p.repeat})
        line += std::to_string(number) + ",";
    const Latency none;
    const Latency &rtt = p.latency ? *p.latency : none;
    const Latency &intended = p.latency_from_intended ? *p.latency_from_intended : none;
    char numbers[256];
    std::snprintf(numbers, sizeof(numbers),
                  "%.6g,%.9g,%.9g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,%.6g,", p.offered_rate,
                  rate.messages_per_second, rate.bytes_per_second, intended.p50_ns, intended.p99_ns,
                  intended.p99_9_ns, rtt.mean_ns, rtt.p50_ns, rtt.p99_ns, rtt.p99_9_ns, rtt.max_ns,
                  p.cpu_share);
    return line + numbers + csv_quoted(p.disturbed) + (p.complete ? ",1\n" : ",0\n");
}

} // namespace

std::string to_csv(const Result &result)
{
    std::string text =
        "mode,operation,device,mix,placement,completion,region,copy_mode,build,copy,size,"
        "burst,in_flight,queues,lcores,repeat,"
        "offered_rate,messages_per_second,bytes_per_second,rtt_intended_p50_ns,"
        "rtt_intended_p99_ns,rtt_intended_p99_9_ns,rtt_mean_ns,rtt_p50_ns,"
        "rtt_p99_ns,rtt_p99_9_ns,rtt_max_ns,cpu_share,disturbed,complete\n";
    for (const ResultPoint &point : result.points)
        text += csv_line(point);
    return text;
}

} // namespace app
