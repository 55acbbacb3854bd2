// SPDX-License-Identifier: BSD-3-Clause
#include "campaign/limits.hpp"

#include "kernel/kernels.hpp"

#include <algorithm>
#include <span>

namespace bench
{

namespace
{

constexpr uint64_t ms = 1000000;
constexpr uint64_t bound = 1000 * ms;
constexpr uint64_t stream_run = 4 * ms;
constexpr uint64_t probe_rounds = 10000;
constexpr uint64_t ping_rounds = 50000;
constexpr uint32_t ring_batch = 32;
constexpr size_t copy_batch_bytes = 16384;

std::optional<double> round_trip(Session &session, PingForm form, uint64_t rounds)
{
    Command command{};
    command.op = Op::ping;
    command.form = form;
    command.rounds = rounds;
    command.bound_ns = bound;
    const auto answers = session.run_well(command);
    if (!answers)
        return std::nullopt;
    return static_cast<double>(answers->of[0].ns) / static_cast<double>(rounds);
}

struct Hints {
    Writer writer;
    Reader reader;
};

/// Every hint of one end alone, and prefetching for write together with every hint of the reader.
std::vector<Hints> hint_pairs()
{
    std::vector<Hints> pairs;
    for (const Writer writer : supported_writers())
        for (const Reader reader : supported_readers())
            if (writer == Writer::plain || writer == Writer::prefetchw || reader == Reader::plain)
                pairs.push_back({writer, reader});
    return pairs;
}

/// Slots per second; 0 if the run was over before it was warm.
std::optional<double> stream(Session &session, Command command)
{
    command.op = Op::stream;
    command.run_ns = stream_run;
    command.bound_ns = bound;
    const auto answers = session.run_well(command);
    if (!answers)
        return std::nullopt;
    const Result &reader = answers->of[1];
    if (reader.ns == 0)
        return 0;
    return static_cast<double>(reader.counted) * 1e9 / static_cast<double>(reader.ns);
}

std::string describe(const Command &command)
{
    const size_t kib = size_t{command.slot_count} * command.slot_lines * line_bytes / 1024;
    return std::to_string(command.slot_count) + " slots (" + std::to_string(kib) +
           " KiB), writer " + std::string(name_of(command.writer)) + ", reader " +
           std::string(name_of(command.reader));
}

std::optional<Limit> best_stream(Session &session, Command command,
                                 std::span<const uint32_t> slot_counts)
{
    Limit best;
    for (const uint32_t slot_count : slot_counts) {
        const size_t bytes = size_t{slot_count} * command.slot_lines * line_bytes;
        if (slot_count < 2 * command.batch || bytes > data_bytes)
            continue;
        command.slot_count = slot_count;
        for (const Hints &hints : hint_pairs()) {
            command.writer = hints.writer;
            command.reader = hints.reader;
            const auto rate = stream(session, command);
            if (!rate)
                return std::nullopt;
            if (*rate > best.value)
                best = {*rate, describe(command)};
        }
    }
    return best;
}

} // namespace

std::optional<double> probe(Session &session)
{
    return round_trip(session, PingForm::word, probe_rounds);
}

std::optional<Limit> ping_limit(Session &session, uint32_t payload)
{
    // 8 bytes travel as the polled word itself; 64 bytes as a line that carries the polled word.
    const PingForm line_forms[] = {PingForm::line_by_words, PingForm::line_by_vector};
    const PingForm word_forms[] = {PingForm::word};
    const std::span<const PingForm> forms =
        payload > sizeof(uint64_t) ? std::span<const PingForm>(line_forms) : word_forms;
    Limit best;
    for (const PingForm form : forms) {
        const auto ns = round_trip(session, form, ping_rounds);
        if (!ns)
            return std::nullopt;
        if (best.value == 0 || *ns < best.value)
            best = {*ns, std::string(name_of(form))};
    }
    return best;
}

std::optional<Limit> ring_limit(Session &session, uint32_t slot_lines)
{
    // Up to 4 MiB of single lines, as of those that are written to a region.
    static constexpr uint32_t slot_counts[] = {128, 512, 2048, 8192, 65536};
    Command command{};
    command.slot_lines = slot_lines;
    command.batch = ring_batch;
    return best_stream(session, command,
                       std::span(slot_counts, std::size(slot_counts) - (slot_lines > 1 ? 1 : 0)));
}

std::optional<Limit> copy_limit(Session &session, uint32_t source, bool written)
{
    constexpr uint32_t slot_counts[] = {4, 16, 64, 128, 256, 1024, 2048};
    Limit best;
    for (const uint32_t bytes : {4096u, 65536u}) {
        Command command{};
        command.slot_lines = bytes / static_cast<uint32_t>(line_bytes);
        command.batch = bytes < copy_batch_bytes ? copy_batch_bytes / bytes : 1;
        command.copied = std::max(source, bytes);
        command.written = written ? 1 : 0;
        const auto limit = best_stream(session, command, slot_counts);
        if (!limit)
            return std::nullopt;
        if (limit->value * bytes > best.value)
            best = {limit->value * bytes, limit->how + (written ? ", written before" : "")};
    }
    return best;
}

} // namespace bench
