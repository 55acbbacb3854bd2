// SPDX-License-Identifier: BSD-3-Clause
#include "results/report.hpp"

#include "json.hpp"
#include "kernel/kernels.hpp"

#include <cmath>

namespace bench
{

namespace
{

std::string number(std::optional<double> value, int digits = 2)
{
    if (!value || !std::isfinite(*value))
        return "-";
    char text[40];
    snprintf(text, sizeof(text), "%.*f", digits, *value);
    return text;
}

std::string reach_text(const Row &row)
{
    const double bound = bound_of(row);
    char text[32];
    switch (bound != 0 ? row.figure->reach : Reach::none) {
    case Reach::ratio_at_most:
        snprintf(text, sizeof(text), "<=%gx", bound);
        return text;
    case Reach::ratio_at_least:
        snprintf(text, sizeof(text), ">=%gx", bound);
        return text;
    case Reach::value_at_least:
        snprintf(text, sizeof(text), ">=%g", bound);
        return text;
    case Reach::value_at_most:
        snprintf(text, sizeof(text), "<=%g", bound);
        return text;
    case Reach::none:
        break;
    }
    return "-";
}

void print_row(FILE *out, const Row &row, const char *prefix)
{
    const std::string name = prefix + std::string(row.figure->name);
    const std::string placement = row.placement ? std::string(name_of(*row.placement)) : "-";
    fprintf(out, "%-24s %9s %-7s %9s %6s %-5s %-8s %s\n", name.c_str(), number(row.value).c_str(),
            std::string(row.figure->unit).c_str(), number(row.limit).c_str(),
            number(row.ratio).c_str(), placement.c_str(), reach_text(row).c_str(),
            row.verdict.c_str());
}

/// Rows of a figure in further classes that occurred, each judged there.
std::vector<Row> other_classes(const Row &first, const Findings &findings)
{
    std::vector<Row> rows;
    for (unsigned c = 0; first.placement && c < class_count; c++) {
        const Class placement = static_cast<Class>(c);
        if (placement == *first.placement)
            continue;
        const Row row = row_in_class(*first.figure, findings, placement);
        if (row.value)
            rows.push_back(row);
    }
    return rows;
}

void print_percentiles(FILE *out, const Row &row, const Findings &findings)
{
    for (size_t i = 0; i < measure_count; i++) {
        if (measures[i].name != row.figure->measure || measures[i].kind != Kind::round_trip ||
            row.figure->source != Source::value)
            continue;
        fprintf(out, "#   percentiles:");
        for (unsigned p = 0; p < percentile_count; p++) {
            std::vector<double> values;
            for (const Pair &pair : findings.pairs[i])
                if (pair.placement == row.placement)
                    values.push_back(pair.at_percentile[p]);
            fprintf(out, " p%g %.0f ns", percentiles[p], median(values));
        }
        fprintf(out, "\n");
    }
}

void print_how(FILE *out, const Row &row, const Findings &findings)
{
    if (!row.note.empty())
        fprintf(out, "#   %s\n", row.note.c_str());
    if (row.figure->source != Source::value)
        return;
    for (size_t i = 0; i < measure_count; i++)
        if (measures[i].name == row.figure->measure && row.value && !findings.pairs[i].empty())
            fprintf(out, "#   limit: %s\n", findings.pairs[i].back().limit_how.c_str());
    if (row.value)
        print_percentiles(out, row, findings);
}

void print_classes(FILE *out, const Findings &findings)
{
    unsigned all = 0;
    for (const unsigned count : findings.probes)
        all += count;
    if (all == 0)
        return;
    for (unsigned c = 0; c < class_count; c++) {
        const std::string name(name_of(static_cast<Class>(c)));
        if (findings.probes[c] != 0)
            fprintf(out, "# class %s: %u of %u probes\n", name.c_str(), findings.probes[c], all);
        else
            fprintf(out, "# class %s: did not occur\n", name.c_str());
    }
}

// JSON --------------------------------------------------------------------------------------------

void put_number(app::JsonText &json, std::string_view name, std::optional<double> value)
{
    json.key(name);
    value ? json.value(*value) : json.null();
}

void put_row(app::JsonText &json, const Row &row)
{
    json.begin_object();
    json.member("name", row.figure->name);
    put_number(json, "value", row.value);
    json.member("unit", row.figure->unit);
    put_number(json, "limit", row.limit);
    put_number(json, "ratio", row.ratio);
    json.key("class");
    row.placement ? json.value(name_of(*row.placement)) : json.null();
    json.member("reach", reach_text(row));
    json.member("verdict", row.verdict);
    json.member("note", row.note);
    json.end_object();
}

void put_pair(app::JsonText &json, const Measure &measure, const Pair &pair)
{
    json.begin_object();
    json.member("measure", measure.name);
    json.member("class", name_of(pair.placement));
    json.member("value", pair.value);
    json.member("limit", pair.limit);
    json.member("limit_how", pair.limit_how);
    json.member("probe_before_ns", pair.probe_before_ns);
    json.member("probe_after_ns", pair.probe_after_ns);
    json.member("disturbed", pair.disturbed);
    if (measure.kind == Kind::round_trip)
        for (unsigned p = 0; p < percentile_count; p++)
            json.member(std::string("p")
                            .append(number(percentiles[p], p + 1 == percentile_count))
                            .append("_ns"),
                        pair.at_percentile[p]);
    json.end_object();
}

void put_circumstances(app::JsonText &json, const Circumstances &c)
{
    json.member("cpu", c.machine.cpu);
    json.member("kernel", c.machine.kernel);
    json.member("cpus", c.machine.cpus);
    json.key("cpus_used");
    json.row({static_cast<double>(c.cpus[0]), static_cast<double>(c.cpus[1])});
    json.member("huge_pages_total", c.machine.huge_pages_total);
    json.member("huge_pages_free", c.machine.huge_pages_free);
    json.member("huge_pages_used", c.huge_pages);
    json.member("commit", c.commit);
    json.member("started", c.started);
    json.member("seconds", c.seconds);
    json.member("kernel_variant", best_kernel().name);
}

} // namespace

void print_table(FILE *out, const Selection &selection, const Findings &findings,
                 const Circumstances &circumstances)
{
    fprintf(out, "# %s, %s, CPUs %u and %u, %s, commit %s, %s\n", circumstances.machine.cpu.c_str(),
            circumstances.machine.kernel.c_str(), circumstances.cpus[0], circumstances.cpus[1],
            circumstances.huge_pages ? "2 MiB pages" : "no huge pages",
            circumstances.commit.c_str(), circumstances.started.c_str());
    fprintf(out, "# %-22s %9s %-7s %9s %6s %-5s %-8s %s\n", "name", "value", "unit", "limit",
            "ratio", "class", "reach", "verdict");
    for (size_t i = 0; i < figure_count; i++) {
        if (!selection[i])
            continue;
        const Row row = row_of(figures[i], findings);
        print_row(out, row, "");
        print_how(out, row, findings);
        for (const Row &other : other_classes(row, findings)) {
            print_row(out, other, "# ");
            fprintf(out, "#   %s\n", other.note.c_str());
        }
    }
    print_classes(out, findings);
    fprintf(out, "# %.1f s\n", circumstances.seconds);
}

bool write_json(const char *path, const Selection &selection, const Findings &findings,
                const Circumstances &circumstances)
{
    app::JsonText json;
    json.begin_object();
    put_circumstances(json, circumstances);
    json.key("probes");
    json.begin_object();
    for (unsigned c = 0; c < class_count; c++)
        json.member(name_of(static_cast<Class>(c)), findings.probes[c]);
    json.end_object();
    json.key("figures");
    json.begin_array();
    for (size_t i = 0; i < figure_count; i++) {
        if (!selection[i])
            continue;
        const Row row = row_of(figures[i], findings);
        put_row(json, row);
        for (const Row &other : other_classes(row, findings))
            put_row(json, other);
    }
    json.end_array();
    json.key("pairs");
    json.begin_array();
    for (size_t i = 0; i < measure_count; i++)
        for (const Pair &pair : findings.pairs[i])
            put_pair(json, measures[i], pair);
    json.end_array();
    json.end_object();
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    fputs(json.text().c_str(), file);
    const bool written = ferror(file) == 0;
    return fclose(file) == 0 && written;
}

} // namespace bench
