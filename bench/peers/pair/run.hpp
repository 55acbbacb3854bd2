// SPDX-License-Identifier: BSD-3-Clause
// main() of a peer program: one process of a pair, on a core of its own. Side 0 prints one line of
// JSON per message size.
//
// A Link of loops.hpp, which says how long messages may be and gets their length before each
// run:
//
//   size_t max_message() const;   // bytes, 0 if unknown
//   void use(size_t bytes);
#ifndef BENCH_PEERS_PAIR_RUN_HPP
#define BENCH_PEERS_PAIR_RUN_HPP

#include "loops.hpp"
#include "output.hpp"
#include "peers/pair/command_line.hpp"
#include "peers/pair/payload.hpp"
#include "peers/pair/print.hpp"
#include "realtime.hpp"
#include "version.hpp"

#include <cerrno>
#include <memory>
#include <optional>

namespace peers
{

/// Reads the arguments, pins this process and opens the meeting: before what is measured starts
/// threads of its own, so that they share our core and stay off the other one's. Ties our life to
/// that of the process that started us. @return nothing after having said why
std::optional<Options> begin(int argc, char **argv, Meeting &meeting);
/// @return 1, after having said why
int give_up(const std::string &why);

/// @p work by itself, with what our core did meanwhile.
template <typename Work>
bool watch(Meeting &meeting, Work work)
{
    Report &report = meeting.mine().report;
    const app::Realtime realtime(meeting.realtime());
    const uint64_t wall = monotonic_ns();
    const uint64_t cpu = thread_cpu_ns();
    const bool good = work();
    report.wall_ns += monotonic_ns() - wall;
    report.cpu_ns += thread_cpu_ns() - cpu;
    return good;
}

/// Runs @p work on both sides at once. @return false: it failed here or there
template <typename Work>
bool together(Meeting &meeting, Work work)
{
    if (!meeting.meet())
        return false;
    const bool good = watch(meeting, work);
    if (!good)
        meeting.fail();
    return good && meeting.meet();
}

/// Says what went wrong in a loop. @return whether nothing did
bool went_well(const measure::Outcome &outcome);

/// @param record  as measure::ask() has it; @param count  set on the asking side
template <typename Link, typename Record>
bool measure_round_trips(Link &link, Meeting &meeting, uint64_t run_ns, Record record, Count &count)
{
    return together(meeting, [&] {
        measure::Outcome outcome;
        if (meeting.starts())
            measure::ask(link, {run_ns, bound_ns}, record, outcome);
        else
            measure::answer(link, bound_ns, outcome);
        count = {outcome.counted, outcome.ns};
        return went_well(outcome);
    });
}

/// Until the receiver says that it has all of them: a library may have some left to do that only
/// our calls give it time for.
template <typename Link>
bool send_stream(Link &link, unsigned burst, uint64_t run_ns, Shared &shared)
{
    measure::Outcome outcome;
    measure::send_stream(link, burst, {run_ns, bound_ns}, shared.sent_total, outcome);
    uint64_t sum = 0;
    return went_well(outcome) &&
           measure::await(monotonic_ns() + bound_ns, [&] { return link.receive(1, sum); }) > 0;
}

template <typename Link>
bool receive_stream(Link &link, unsigned burst, uint64_t run_ns, const Shared &shared,
                    Report &report)
{
    measure::Outcome outcome;
    measure::receive_stream(link, burst, {run_ns, bound_ns}, shared.sent_total, outcome);
    report.counted = outcome.counted;
    report.ns = outcome.ns;
    return went_well(outcome) && outcome.counted != 0 &&
           link.send(measure::last_value, 1, monotonic_ns() + bound_ns) == 0;
}

/// @param count  what the receiver saw
template <typename Link>
bool measure_stream(Link &link, Meeting &meeting, unsigned burst, uint64_t run_ns, Count &count)
{
    Shared &shared = meeting.shared();
    shared.sent_total.store(0, std::memory_order_relaxed);
    const bool good = together(meeting, [&] {
        if (meeting.starts())
            return send_stream(link, burst, run_ns, shared);
        return receive_stream(link, burst, run_ns, shared, meeting.mine().report);
    });
    const Report &receiver = (meeting.starts() ? meeting.theirs() : meeting.mine()).report;
    count = {receiver.counted, receiver.ns};
    return good;
}

template <typename Link>
bool measure_size(Link &link, Meeting &meeting, size_t bytes, uint64_t run_ns)
{
    Figures figures;
    Count warm_up;
    Count timed;
    figures.bytes = bytes;
    meeting.mine().report = {};
    link.use(bytes);
    const auto record = [&](uint64_t ticks) { figures.ticks.record(ticks); };
    figures.probe_before_ns = meeting.probe();
    if (figures.probe_before_ns == 0 ||
        !measure_round_trips(link, meeting, run_ns / 8, measure::Untimed{}, warm_up) ||
        !measure_round_trips(link, meeting, run_ns / 2, record, timed) ||
        !measure_round_trips(link, meeting, run_ns, measure::Untimed{}, figures.round_trips) ||
        !measure_stream(link, meeting, burst_of(bytes), run_ns, figures.messages))
        return false;
    figures.probe_after_ns = meeting.probe();
    if (figures.probe_after_ns == 0)
        return false;
    if (meeting.starts())
        print(figures, meeting.mine().report, meeting.theirs().report);
    return meeting.meet();
}

/// @p link is open on both sides, or here alone if the other side failed.
template <typename Link>
int run_sizes(Link &link, const Options &options, Meeting &meeting)
{
    meeting.mine().max_message = link.max_message();
    if (!meeting.meet())
        return give_up("the other side does not come");
    const size_t most = std::min(meeting.mine().max_message, meeting.theirs().max_message);
    for (const size_t bytes : options.sizes) {
        if (bytes > most)
            continue; // its line is missing, which says so
        if (!measure_size(link, meeting, bytes, options.run_ns))
            return give_up("messages of " + std::to_string(bytes) + " bytes do not get through");
    }
    return 0;
}

/// @p Link has static open(const Options &, std::string &error), which waits for the other side.
template <typename Link>
int run_peer(int argc, char **argv)
{
    if (app::show_version(argc, argv))
        return app::finish_output(program_invocation_short_name, 0);
    Meeting meeting;
    const auto options = begin(argc, argv, meeting);
    if (!options)
        return 1;
    std::string error;
    std::unique_ptr<Link> link = Link::open(*options, error);
    if (!link) {
        meeting.fail();
        return give_up(error);
    }
    const int status = run_sizes(*link, *options, meeting);
    if constexpr (requires { requires Link::server_leaves_last; }) {
        if (status == 0 && meeting.starts())
            link.reset();
        if (status == 0)
            meeting.meet();
    }
    return app::finish_output(program_invocation_short_name, status);
}

} // namespace peers

#endif
