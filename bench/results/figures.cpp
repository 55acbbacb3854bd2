// SPDX-License-Identifier: BSD-3-Clause
#include "results/figures.hpp"

namespace bench
{

namespace
{

size_t measure_index(const Figure &figure)
{
    size_t i = 0;
    while (measures[i].name != figure.measure)
        i++;
    return i;
}

bool of_pairs(const Figure &figure)
{
    return figure.source == Source::value || figure.source == Source::beyond_limit;
}

std::string judge(const Figure &figure, const Row &row)
{
    const double bound = bound_of(row);
    if (bound == 0)
        return "shown";
    switch (figure.reach) {
    case Reach::ratio_at_most:
        return *row.ratio <= bound ? "reached" : "missed";
    case Reach::ratio_at_least:
        return *row.ratio >= bound ? "reached" : "missed";
    case Reach::value_at_least:
        return *row.value >= bound ? "reached" : "missed";
    case Reach::value_at_most:
        return *row.value <= bound ? "reached" : "missed";
    case Reach::none:
        break;
    }
    return "shown";
}

/// "Never" is an answer, and has no number.
Row crossover_row(const Figure &figure, const Single &single)
{
    Row row;
    row.figure = &figure;
    row.note = single.value ? single.note : single.failure;
    if (!single.value)
        row.verdict = single.failure.empty() ? "missing" : "failed";
    else if (*single.value == 0)
        row.verdict = "never";
    else
        row.value = *single.value;
    if (row.value)
        row.verdict = judge(figure, row);
    return row;
}

Row single_row(const Figure &figure, const Single &single)
{
    Row row;
    row.figure = &figure;
    if (!single.value) {
        row.verdict = single.failure.empty() ? "missing" : "failed";
        row.note = single.failure;
        return row;
    }
    row.value = *single.value * figure.scale;
    row.verdict = judge(figure, row);
    row.note = single.note;
    return row;
}

/// Pairs that count; where all are disturbed, those.
std::vector<Pair> pairs_of(const std::vector<Pair> &pairs, Class placement)
{
    const bool good = good_pairs(pairs, placement) != 0;
    std::vector<Pair> chosen;
    for (const Pair &pair : pairs)
        if (pair.placement == placement && pair.disturbed.empty() == good)
            chosen.push_back(pair);
    return chosen;
}

/// The class with most pairs that count, or most of any; of equals the nearer one.
Class class_of(const std::vector<Pair> &pairs)
{
    Class best = Class::ccx;
    std::pair<size_t, size_t> best_counts{};
    for (unsigned i = 0; i < class_count; i++) {
        const Class c = static_cast<Class>(i);
        const std::pair counts{size_t{good_pairs(pairs, c)}, pairs_of(pairs, c).size()};
        if (counts > best_counts) {
            best = c;
            best_counts = counts;
        }
    }
    return best;
}

Row pairs_row(const Figure &figure, const std::vector<Pair> &pairs)
{
    std::vector<double> values;
    std::vector<double> limits;
    std::vector<double> ratios;
    const bool beyond = figure.source == Source::beyond_limit;
    for (const Pair &pair : pairs) {
        const double value = beyond ? pair.value - pair.limit : pair.value;
        values.push_back(value * figure.scale);
        limits.push_back(pair.limit * figure.scale);
        ratios.push_back(value / pair.limit);
    }
    Row row;
    row.figure = &figure;
    row.value = median(values);
    row.limit = median(limits);
    row.ratio = median(ratios);
    row.placement = pairs[0].placement;
    row.verdict = pairs[0].disturbed.empty() ? judge(figure, row) : "disturbed";
    row.note = std::to_string(pairs.size()) + " pairs";
    if (!pairs[0].disturbed.empty())
        row.note += ", " + pairs[0].disturbed;
    return row;
}

} // namespace

double bound_of(const Row &row)
{
    // A figure without a class has one bound.
    return row.figure->bounds[static_cast<unsigned>(row.placement.value_or(Class::ccx))];
}

bool select(std::string_view name, Selection &selection)
{
    bool found = false;
    for (size_t i = 0; i < figure_count; i++) {
        const std::string_view full = figures[i].name;
        if (full != name && !full.starts_with(std::string(name) + "."))
            continue;
        selection[i] = true;
        found = true;
    }
    return found;
}

void plan_for(const Selection &selection, Plan &plan)
{
    for (size_t i = 0; i < figure_count; i++) {
        if (!selection[i])
            continue;
        if (of_pairs(figures[i]))
            plan.wanted[measure_index(figures[i])] = true;
        plan.memory |= figures[i].source == Source::memory;
        plan.idle |= figures[i].source == Source::idle;
        plan.turnover |= figures[i].source == Source::turnover;
        plan.wakeup |= figures[i].source == Source::wakeup;
        plan.crossover |= figures[i].source == Source::crossover;
        plan.restart |= figures[i].source == Source::restart;
        plan.kill |= figures[i].source == Source::kill || plan.restart; // it has to end first
    }
}

Row row_in_class(const Figure &figure, const Findings &findings, Class placement)
{
    const size_t i = measure_index(figure);
    const std::vector<Pair> pairs = pairs_of(findings.pairs[i], placement);
    if (!pairs.empty())
        return pairs_row(figure, pairs);
    Row row;
    row.figure = &figure;
    row.placement = placement;
    row.verdict = findings.failures[i].empty() ? "missing" : "failed";
    row.note = findings.failures[i];
    return row;
}

Row row_of(const Figure &figure, const Findings &findings)
{
    switch (figure.source) {
    case Source::memory:
        return single_row(figure, findings.memory_bytes);
    case Source::idle:
        return single_row(figure, findings.idle_share);
    case Source::turnover:
        return single_row(figure, findings.turnover_rate);
    case Source::wakeup:
        return single_row(figure, findings.wakeup_ns);
    case Source::crossover:
        return crossover_row(figure, findings.crossover_bytes);
    case Source::kill:
        return single_row(figure, findings.kill_to_event_ns);
    case Source::restart:
        return single_row(figure, findings.restart_to_message_ns);
    default:
        break;
    }
    const std::vector<Pair> &pairs = findings.pairs[measure_index(figure)];
    // A measure that failed halfway has pairs, but its figure does not stand.
    Row row = row_in_class(figure, findings, class_of(pairs));
    const std::string &failure = findings.failures[measure_index(figure)];
    if (!failure.empty()) {
        row.verdict = "failed";
        row.note = failure;
    }
    return row;
}

} // namespace bench
