// SPDX-License-Identifier: BSD-3-Clause
#include "campaign/campaign.hpp"

#include <algorithm>

namespace bench
{

namespace
{

constexpr uint64_t ms = 1000000;
constexpr uint64_t bound = 3000 * ms;

class Pairing
{
public:
    Pairing(Session &session, const Plan &plan, Findings &findings)
        : m_session(session), m_plan(plan), m_findings(findings), m_begin(monotonic_ns())
    {
    }

    void run()
    {
        while (!ended() && !complete())
            round();
    }

private:
    bool ended() const
    {
        return interrupted() || m_broken || monotonic_ns() - m_begin > m_plan.pairs_ns;
    }
    bool open(size_t i) const { return m_plan.wanted[i] && m_findings.failures[i].empty(); }
    bool needs_pairs(size_t i) const
    {
        return open(i) && !enough_pairs(m_findings.pairs[i], m_plan.pairs);
    }
    bool complete() const;
    void round();
    void take(size_t i);
    void stalled();

    Session &m_session;
    const Plan &m_plan;
    Findings &m_findings;
    const uint64_t m_begin;
    unsigned m_stalls = 0;
    bool m_broken = false; ///< nothing more can be measured
};

bool Pairing::complete() const
{
    for (size_t i = 0; i < measure_count; i++)
        if (needs_pairs(i))
            return false;
    return true;
}

/// One pair of each measure that still needs one.
void Pairing::round()
{
    for (size_t i = 0; i < measure_count && !ended(); i++) {
        if (!needs_pairs(i))
            continue;
        const auto ns = probe(m_session);
        if (!ns) {
            stalled();
            break;
        }
        m_findings.probes[static_cast<unsigned>(classify(*ns))]++;
        take(i);
    }
}

void Pairing::take(size_t i)
{
    const auto pair = take_pair(m_session, measures[i], m_findings.failures[i]);
    if (pair)
        m_findings.pairs[i].push_back(*pair);
    else if (m_findings.failures[i].empty())
        stalled();
}

/// A probe or a limit did not end in time: the machine is busy with something else. That may pass.
void Pairing::stalled()
{
    constexpr unsigned most_stalls = 8;
    if (m_session.alive() && ++m_stalls < most_stalls)
        return;
    m_broken = true;
    for (size_t i = 0; i < measure_count; i++)
        if (open(i) && m_findings.pairs[i].empty())
            m_findings.failures[i] = m_session.error();
}

/// On a busy machine a side may not get its turn in time. That may pass.
bool exercise_in_the_end(Session &session, const Measure &measure, std::string &error)
{
    constexpr unsigned most_tries = 5;
    for (unsigned i = 0; i < most_tries && session.alive(); i++)
        if (exercise(session, measure, error))
            return true;
    return false;
}

void take_memory(Session &session, Single &single)
{
    // After traffic, so that every buffer that is used has its pages.
    std::string error;
    for (const Measure &measure : measures)
        if (measure.kind != Kind::engine && measure.shape == usual_shape &&
            !exercise_in_the_end(session, measure, error)) {
            single.failure = error;
            return;
        }
    Command command{};
    command.op = Op::host_memory;
    command.bound_ns = bound;
    const auto answers = session.run_well(command);
    if (!answers)
        single.failure = session.error();
    else
        single.value = static_cast<double>(std::max(answers->of[0].bytes, answers->of[1].bytes));
}

void take_idle(Session &session, Single &single)
{
    Command command{};
    command.op = Op::host_idle;
    command.run_ns = 1000 * ms;
    command.bound_ns = bound;
    const auto answers = session.run_well(command);
    if (!answers) {
        single.failure = session.error();
        return;
    }
    const auto share = [](const Result &result) {
        return static_cast<double>(result.count) / static_cast<double>(result.ns);
    };
    single.value = std::max(share(answers->of[0]), share(answers->of[1]));
}

void take_wakeup(Session &session, Single &single)
{
    Command command{};
    command.op = Op::host_wakeup;
    command.rounds = 200;
    command.bound_ns = bound;
    const auto answers = session.run_well(command);
    if (!answers)
        single.failure = session.error();
    else
        single.value = static_cast<double>(answers->of[1].ns);
}

void take_turnover(Session &session, Single &single)
{
    Command command{};
    command.op = Op::host_engine_open;
    command.payload = 64;
    command.batch = 32;
    command.run_ns = 100 * ms;
    command.bound_ns = bound;
    const bool open = session.run_well(command).has_value();
    command.op = Op::host_turnover;
    const auto answers = open ? session.run_well(command) : std::nullopt;
    command.op = Op::host_engine_close;
    if (open)
        session.run(command);
    if (!answers)
        single.failure = session.error();
    else
        single.value = static_cast<double>(answers->of[0].count) * 1e9 /
                       static_cast<double>(answers->of[0].ns);
}

void take_crossover(Session &session, Single &single)
{
    Command command{};
    command.op = Op::host_crossover;
    command.bound_ns = bound;
    const auto answers = session.run_well(command);
    if (!answers) {
        single.failure = session.error();
        return;
    }
    single.value = static_cast<double>(answers->of[0].bytes);
    single.note = answers->of[0].text;
}

std::string in_ms(double ns)
{
    char text[32];
    snprintf(text, sizeof(text), "%.2f ms", ns / ms);
    return text;
}

/// The host comes back after each kill but the last.
void take_kills(Session &session, unsigned kills, Single &single)
{
    std::vector<double> values;
    while (single.failure.empty() && !interrupted()) {
        if (const auto ns = session.kill_to_event(single.failure))
            values.push_back(static_cast<double>(*ns));
        if (values.size() == kills || !single.failure.empty())
            break;
        session.restart_to_message(single.failure);
    }
    if (values.size() < kills)
        return;
    single.value = median(values);
    std::sort(values.begin(), values.end());
    if (kills > 1)
        single.note = std::to_string(kills) + " kills, nine of ten within " +
                      in_ms(values[(kills - 1) * 9 / 10]) + ", the longest " + in_ms(values.back());
}

void take_restart(Session &session, Single &single)
{
    const auto ns = session.restart_to_message(single.failure);
    if (!ns)
        return;
    single.value = static_cast<double>(ns->from_device);
    single.note = "from the start of the process: " + std::to_string(ns->from_process / ms) + " ms";
}

} // namespace

unsigned good_pairs(const std::vector<Pair> &pairs, Class c)
{
    return static_cast<unsigned>(std::count_if(pairs.begin(), pairs.end(), [c](const Pair &pair) {
        return pair.placement == c && pair.disturbed.empty();
    }));
}

bool enough_pairs(const std::vector<Pair> &pairs, unsigned wanted)
{
    for (unsigned c = 0; c < class_count; c++)
        if (good_pairs(pairs, static_cast<Class>(c)) >= wanted)
            return true;
    return false;
}

void run_campaign(Session &session, const Plan &plan, Findings &findings)
{
    if (plan.memory) // first: endpoints of other sizes leave gaps behind in EAL's memory
        take_memory(session, findings.memory_bytes);
    if (!interrupted())
        Pairing(session, plan, findings).run();
    if (plan.idle && !interrupted())
        take_idle(session, findings.idle_share);
    if (plan.turnover && !interrupted())
        take_turnover(session, findings.turnover_rate);
    if (plan.wakeup && !interrupted())
        take_wakeup(session, findings.wakeup_ns);
    if (plan.crossover && !interrupted())
        take_crossover(session, findings.crossover_bytes);
    if (plan.kill && !interrupted()) // late: it ends a host
        take_kills(session, plan.kills, findings.kill_to_event_ns);
    if (plan.restart && !interrupted())
        take_restart(session, findings.restart_to_message_ns);
}

} // namespace bench
