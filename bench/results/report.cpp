// SPDX-License-Identifier: BSD-3-Clause
#include "results/report.hpp"

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

std::string quoted(std::string_view text)
{
    std::string out = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\')
            out += '\\';
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return out + '"';
}

std::string json_number(std::optional<double> value)
{
    const std::string text = number(value, 6);
    return text == "-" ? "null" : text;
}

std::string json_row(const Row &row)
{
    return "{\"name\": " + quoted(row.figure->name) + ", \"value\": " + json_number(row.value) +
           ", \"unit\": " + quoted(row.figure->unit) + ", \"limit\": " + json_number(row.limit) +
           ", \"ratio\": " + json_number(row.ratio) +
           ", \"class\": " + (row.placement ? quoted(name_of(*row.placement)) : "null") +
           ", \"reach\": " + quoted(reach_text(*row.figure)) +
           ", \"verdict\": " + quoted(row.verdict) + ", \"note\": " + quoted(row.note) + "}";
}

std::string json_pair(const Measure &measure, const Pair &pair)
{
    std::string text = "{\"measure\": " + quoted(measure.name) +
                       ", \"class\": " + quoted(name_of(pair.placement)) +
                       ", \"value\": " + json_number(pair.value) +
                       ", \"limit\": " + json_number(pair.limit) +
                       ", \"limit_how\": " + quoted(pair.limit_how) +
                       ", \"probe_before_ns\": " + json_number(pair.probe_before_ns) +
                       ", \"probe_after_ns\": " + json_number(pair.probe_after_ns) +
                       ", \"disturbed\": " + quoted(pair.disturbed);
    if (measure.kind == Kind::round_trip)
        for (unsigned p = 0; p < percentile_count; p++)
            text += ", \"p" + number(percentiles[p], p + 1 == percentile_count) +
                    "_ns\": " + json_number(pair.at_percentile[p]);
    return text + "}";
}

std::string json_circumstances(const Circumstances &c)
{
    return "\"cpu\": " + quoted(c.machine.cpu) + ",\n  \"kernel\": " + quoted(c.machine.kernel) +
           ",\n  \"cpus_allowed\": " + std::to_string(c.machine.cpus) + ",\n  \"cpus_used\": [" +
           std::to_string(c.cpus[0]) + ", " + std::to_string(c.cpus[1]) +
           "],\n  \"huge_pages_total\": " + std::to_string(c.machine.huge_pages_total) +
           ",\n  \"huge_pages_free\": " + std::to_string(c.machine.huge_pages_free) +
           ",\n  \"huge_pages_used\": " + (c.huge_pages ? "true" : "false") +
           ",\n  \"commit\": " + quoted(c.commit) + ",\n  \"started\": " + quoted(c.started) +
           ",\n  \"seconds\": " + json_number(c.seconds) +
           ",\n  \"kernel_variant\": " + quoted(best_kernel().name);
}

std::string json_list(const std::vector<std::string> &items)
{
    std::string text = "[";
    for (size_t i = 0; i < items.size(); i++)
        text += (i != 0 ? ",\n    " : "\n    ") + items[i];
    return text + "\n  ]";
}

std::string json_probes(const Findings &findings)
{
    std::string text = "{";
    for (unsigned c = 0; c < class_count; c++)
        text += (c != 0 ? ", " : "") + quoted(name_of(static_cast<Class>(c))) + ": " +
                std::to_string(findings.probes[c]);
    return text + "}";
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
    std::vector<std::string> rows;
    std::vector<std::string> pairs;
    for (size_t i = 0; i < figure_count; i++)
        if (selection[i])
            rows.push_back(json_row(row_of(figures[i], findings)));
    for (size_t i = 0; i < measure_count; i++)
        for (const Pair &pair : findings.pairs[i])
            pairs.push_back(json_pair(measures[i], pair));
    FILE *file = fopen(path, "we");
    if (!file)
        return false;
    fprintf(file, "{\n  %s,\n  \"probes\": %s,\n  \"figures\": %s,\n  \"pairs\": %s\n}\n",
            json_circumstances(circumstances).c_str(), json_probes(findings).c_str(),
            json_list(rows).c_str(), json_list(pairs).c_str());
    const bool written = ferror(file) == 0;
    return fclose(file) == 0 && written;
}

} // namespace bench
