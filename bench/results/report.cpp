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

std::string reach_text(const Figure &figure)
{
    char text[32];
    switch (figure.reach) {
    case Reach::ratio_at_most:
        snprintf(text, sizeof(text), "<=%gx", figure.bound);
        return text;
    case Reach::ratio_at_least:
        snprintf(text, sizeof(text), ">=%gx", figure.bound);
        return text;
    case Reach::value_at_least:
        snprintf(text, sizeof(text), ">=%g", figure.bound);
        return text;
    case Reach::value_at_most:
        snprintf(text, sizeof(text), "<=%g", figure.bound);
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
            number(row.ratio).c_str(), placement.c_str(), reach_text(*row.figure).c_str(),
            row.verdict.c_str());
}

/// Rows of a figure in the classes that do not count, where they occurred.
void print_other_classes(FILE *out, const Figure &figure, const Findings &findings, Class counted)
{
    for (unsigned c = 0; c < class_count; c++) {
        const Class placement = static_cast<Class>(c);
        if (placement == counted)
            continue;
        const Row row = row_in_class(figure, findings, placement);
        if (row.value)
            print_row(out, row, "# ");
    }
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
            fprintf(out, "# class %s: missing\n", name.c_str());
    }
    if (findings.probes[static_cast<unsigned>(judged_class)] == 0)
        fprintf(out,
                "# class %s, which the reaches are meant for, did not occur: judged in the "
                "class that each line names\n",
                std::string(name_of(judged_class)).c_str());
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
    json.member("reach", reach_text(*row.figure));
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
    json.member("cpus_allowed", c.machine.cpus);
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
        if (row.placement)
            print_other_classes(out, figures[i], findings, *row.placement);
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
    for (size_t i = 0; i < figure_count; i++)
        if (selection[i])
            put_row(json, row_of(figures[i], findings));
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
