# SPDX-License-Identifier: BSD-3-Clause
"""The page: one file, nothing from elsewhere."""
import html

from . import changes, model, plots, units

MOST_CHANGES = 200
MOST_SKIPPED = 20
PROGRAMS = ("Medians over the rounds, in which the ways follow each other directly; the stroke goes from the least to the largest. A longer bar is "
            "better where it is a rate, a shorter one where it is a time.")

STYLE = """
:root { color-scheme: light dark; --page: #fbfbfa; --card: #ffffff; --text: #1d1f21; --soft: #5c6166; --rule: #dcdfe2;
  --grid: #eceef0; --limit: #7a7f85; --good: #1a7f37; --bad: #c02626; --warn: #8a5a00; --warnback: #fff5dc;
  --c0: #0b62c4; --c1: #d1570a; --c2: #10855d; --c3: #b01f62; --c4: #6f4bbd; --c5: #8a6d00; --c6: #0f7f97; --c7: #6b4d3a; }
@media (prefers-color-scheme: dark) { :root { --page: #15171a; --card: #1d2024; --text: #e7e9eb; --soft: #a3a9b0;
  --rule: #383d43; --grid: #2b2f34; --limit: #9aa0a7; --good: #5fd07f; --bad: #ff8080; --warn: #f2c869; --warnback: #33290f;
  --c0: #6db1ff; --c1: #ff9f5a; --c2: #4fd1a1; --c3: #ff8abf; --c4: #b9a0ff; --c5: #e3c64b; --c6: #5fd0e6; --c7: #d3a98b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1180px; padding: 20px 16px 48px; background: var(--page); color: var(--text);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; }
h1 { font-size: 1.6rem; margin: 0 0 4px; line-height: 1.25; } h2 { font-size: 1.2rem; margin: 36px 0 10px; }
p { margin: 6px 0; } .soft, .note { color: var(--soft); } .note { font-size: 0.85rem; }
code { font: 0.85em ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
.warn { background: var(--warnback); color: var(--warn); padding: 8px 12px; border-radius: 6px; margin: 12px 0; }
.grid2 { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 400px), 1fr)); gap: 14px; }
figure { margin: 0; background: var(--card); border: 1px solid var(--rule); border-radius: 8px; padding: 12px; min-width: 0; }
figcaption { font-weight: 600; margin-bottom: 6px; } svg { display: block; width: 100%; height: auto; }
.legend { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 14px; padding: 0; margin: 0 0 6px; font-size: 0.85rem; }
.key { display: inline-block; width: 18px; height: 0; border-top: 3px solid var(--c); margin-right: 6px; vertical-align: middle; }
.key.dashed, .key.limit { border-top-style: dashed; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); } .c4 { --c: var(--c4); }
.c5 { --c: var(--c5); } .c6 { --c: var(--c6); } .c7 { --c: var(--c7); } .limit { --c: var(--limit); }
.line { fill: none; stroke: var(--c); stroke-width: 1.8; } .line.dashed, .line.limit { stroke-dasharray: 5 4; }
.line.ours { stroke-width: 3.4; } .key.ours { border-top-width: 5px; }
.mark { fill: var(--c); stroke: var(--card); stroke-width: 0.8; } .mark.hollow { fill: var(--card); stroke: var(--c); stroke-width: 1.4; } .spread { stroke: var(--c); stroke-width: 1; opacity: 0.6; }
.grid { stroke: var(--grid); } .tick { fill: var(--soft); font-size: 11.5px; } .label { fill: var(--soft); font-size: 12px; }
.bar { fill: var(--c0); } .way { fill: var(--c); } .upright { stroke: var(--c1); stroke-width: 1.4; stroke-dasharray: 4 3; }
.scroll { overflow-x: auto; border: 1px solid var(--rule); border-radius: 8px; background: var(--card); }
table { border-collapse: collapse; width: 100%; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 10px; text-align: right; white-space: nowrap; border-top: 1px solid var(--rule); }
thead th { border-top: 0; color: var(--soft); font-weight: 600; } th:first-child, td:first-child { text-align: left; }
.regression { color: var(--bad); font-weight: 600; } .better { color: var(--good); } .noisy { color: var(--warn); }
details { margin: 10px 0; } summary { cursor: pointer; } dl { display: grid; grid-template-columns: max-content 1fr; gap: 2px 14px; margin: 8px 0; }
dt { color: var(--soft); } dd { margin: 0; overflow-wrap: anywhere; } @media (max-width: 520px) { .tick { font-size: 14px; } .label { font-size: 15px; } dl { grid-template-columns: 1fr; } dd { margin-bottom: 6px; } }
"""


def escaped(value):
    return html.escape(str(value), quote=True)


def table(head, rows, empty=""):
    """@param rows  lists of (text, class)"""
    if not rows:
        return f'<p class="soft">{escaped(empty)}</p>' if empty else ""
    cells = "".join(f"<th>{escaped(text)}</th>" for text in head)
    body = "".join("<tr>" + "".join(f'<td class="{style}">{escaped(text)}</td>' if style else f"<td>{escaped(text)}</td>"
                                    for text, style in row) + "</tr>" for row in rows)
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>'


def machine_list(document):
    machine, program, cores = document["machine"], document["program"], document["machine"]["cores"]
    pairs = [("machine", f"{machine['cpu']}, {machine['cpus']} CPUs, {machine['kernel']}"),
             ("hosts", f"CPU {cores['client']} and CPU {cores['server']}" + (
                 " of this machine" if cores["same_machine"] else " of two machines")),
             ("devices", "; ".join(device_words(device) for device in document["devices"])),
             ("program", f"{program['name']}, commit {program['commit']}, {program['dpdk']}, compiler {program['compiler']}"),
             ("taken", f"{document['started']}, in {document['seconds']:.0f} s, load {machine['load_1min']:.1f}, "
                       f"{machine['huge_pages_free']} of {machine['huge_pages_total']} hugepages free")]
    items = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in pairs if value)
    return f"<dl>{items}<dt>command</dt><dd><code>{escaped(program['command'])}</code></dd></dl>"


def device_words(device):
    if device["platform"] == "pci":
        return f"{device['name']}: PCIe {device['pcie_generation']}.0 x{device['lanes']}"
    return f"{device['name']}: software twin"


def warnings(built):
    said = []
    for why, count in built.disturbed[:6]:
        said.append(f"{count} {'run was' if count == 1 else 'runs were'} disturbed and left out: {why}")
    if built.elsewhere:
        said.append(f"{built.elsewhere} points were taken while the cores lay in another placement class than "
                    f"the figure they repeat, and are left out")
    apart = [f for f in built.figures if f.operation != model.LIMIT]
    moved, spoilt = (sum(f.placement != built.placement for f in apart), sum(bool(f.disturbed) for f in apart))
    if moved:
        said.append(f"{moved} of {len(apart)} figures could only be taken in another class than “{built.placement}”: their "
                    f"marks are hollow, and the tables name the class")
    if spoilt:
        said.append(f"{spoilt} of {len(apart)} figures are disturbed in every repetition: their marks are hollow, and the "
                    f"tables say so")
    noisy = [f for f in built.figures if f.noisiest() > model.NOISY and f.operation != model.LIMIT]
    if noisy:
        said.append(f"{len(noisy)} of {len(built.figures)} figures are noisy: their repetitions differ by more than "
                    f"{model.NOISY:.0%}; marked in the tables")
    for document in built.documents:
        if not document["complete"]:
            why = document["error"] or ("interrupted" if document["interrupted"] else "not complete")
            said.append(f"the result of {document['started']} is a part: {why}")
        if document["skipped"]:
            said.append("left out: " + "; ".join(f"{s['what']}: {s['why']}" for s in document["skipped"][:MOST_SKIPPED]))
    return "".join(f'<p class="warn">{escaped(text)}</p>' for text in said)


def spread_cell(spread, form):
    if not spread:
        return "–", ""
    return form(spread.median), ""


def class_cell(built, figure):
    return figure.placement, "noisy" if figure.placement != built.placement else ""


def noise_cell(figure):
    if figure.disturbed:
        return f"disturbed: {figure.disturbed}", "noisy"
    noise, count = figure.noisiest(), len(figure.points)
    if count < 2:
        return "one run", ""
    return f"±{noise / 2:.1%} of {count}", "noisy" if noise > model.NOISY else ""


def limits_of(built, take):
    return {(f.mode if f.mode == "latency" else "one way", f.size, f.placement): take(f) for f in built.figures
            if f.operation == model.LIMIT and take(f)}


def ratio_cell(figure, limit, value, smaller):
    """The limit has a reader: nothing is said of operations without one."""
    if figure.completion not in ("received", "reported") or not limit or not value or not limit.median or not value.median:
        return "–", ""
    return f"{value.median / limit.median if smaller else limit.median / value.median:.2f}x", ""


def round_trip_rows(built):
    limits = limits_of(built, model.Figure.mean_round_trip)
    for f in built.of_mode("latency", "load"):
        mean = f.first_latency("mean") if f.clock == "on" else f.mean_round_trip()
        if f.operation == model.LIMIT or not mean:
            continue
        one = "one in flight" if f.clock == "on" else "one in flight, untimed"
        load = units.per_second(f.offered_rate) if f.mode == "load" else one
        quantiles = [spread_cell(f.first_latency(q) if f.clock == "on" else None, units.nanoseconds)
                     for q in model.QUANTILES]
        went = spread_cell(f.rate(), units.per_second)[0] if f.mode == "load" else "–"
        yield [(plots.line_name(f, len(built.commits()) > 1), ""), (units.size(f.size), ""), (load, ""),
               (went, "" if f.rate_met else "noisy"), class_cell(built, f),
               spread_cell(mean, units.nanoseconds), *quantiles,
               ratio_cell(f, limits.get(("latency", f.size, f.placement)) if f.mode == "latency" else None, mean, True), noise_cell(f)]


def rate_rows(built):
    limits = limits_of(built, model.Figure.rate)
    for f in built.of_mode(*model.ONE_WAY):
        if f.operation == model.LIMIT or not f.rate():
            continue
        name = plots.line_name(f, len(built.commits()) > 1)
        yield [(name, ""), (units.size(f.size) if f.mix in ("", "fixed") else f.mix, ""), (f.burst, ""),
               class_cell(built, f), spread_cell(f.rate(), units.per_second), spread_cell(f.throughput(), units.bytes_per_second),
               ratio_cell(f, limits.get(("one way", f.size, f.placement)), f.rate(), False), noise_cell(f)]


def tables(built):
    programs = table(["load", "way", "median", "least", "largest", "noise"], list(program_rows(built)))
    if programs and all(f.way for f in built.figures):
        return "<h2>Table</h2>" + programs
    return ("<h2>Tables</h2><p class=\"soft\">Under load, times count from when a message was due.</p>"
            + table(["round trip", "size", "offered", "went", "class", "mean", "p50", "p99", "p99.9", "of the limit", "noise"],
                    list(round_trip_rows(built)), "No round trips.") + "<p></p>"
            + table(["one way", "size", "burst", "class", "rate", "throughput", "below the limit", "noise"],
                    list(rate_rows(built)), "Nothing was sent one way.") + ("<p></p>" + programs if programs else ""))


def change_row(change):
    words = dict(zip(model.SET_UP, change.set_up))
    form = units.per_second if change.metric == "rate" else units.nanoseconds
    what = f"{words['operation']}, {words['mode']}, {units.size(words['size'])}, {change.metric}"
    sign = "worse" if change.worse > 0 else "better" if change.worse < 0 else ""
    return [(what, ""), (form(change.before.median), ""), (form(change.after.median), ""),
            (f"{abs(change.worse):.1%} {sign}".strip(), ""), (f"{change.noise:.1%}", ""),
            (change.verdict, change.verdict if change.verdict != "within noise" else "")]


def change_section(built):
    commits = built.commits()
    if len(commits) < 2:
        return ""
    found = changes.between(built, commits[0], commits[-1])
    worse = sum(change.verdict == "regression" for change in found)
    better = sum(change.verdict == "better" for change in found)
    machines = {document["machine"]["cpu"] for document in built.documents}
    note = '<p class="warn">The results are of different machines: the difference is not the commits’ alone.</p>' \
        if len(machines) > 1 else ""
    head = (f"<h2>From {escaped(commits[0])} to {escaped(commits[-1])}</h2>{note}<p>{len(found)} figures in both: "
            f'<span class="regression">{worse} regressions</span>, <span class="better">{better} better</span>, '
            f"{len(found) - worse - better} within noise.</p>")
    rows = [change_row(change) for change in found[:MOST_CHANGES]]
    return head + table(["figure", "before", "after", "change", "noise", ""], rows, "They have no set-up in common.")


def program_rows(built):
    for load, ways in built.loads().items():
        for way, f in ((way, ways[way]) for way in model.WAYS if way in ways):
            _, found, form = plots.of_program(f)
            if found:
                yield [(load, ""), (model.WAYS[way], ""), (form(found.median), ""), (form(found.low), ""), (form(found.high), ""),
                       noise_cell(f)]


def section(title, cards, note=""):
    if not cards:
        return ""
    note = f'<p class="soft">{escaped(note)}</p>' if note else ""
    return f'<h2>{escaped(title)}</h2><div class="grid2">{"".join(cards)}</div>{note}'


def folded(title, cards):
    if not cards:
        return ""
    return f'<details><summary>{escaped(title)}</summary><div class="grid2">{"".join(cards)}</div></details>'


def render(built):
    """The whole page as text."""
    overview = plots.all_round_trips(built)
    ours, others = plots.quantiles_over_size(built)
    histograms, left = plots.histograms(built)
    documents = built.documents
    first = documents[0]
    title = f"ntbmsg: {' and '.join(dict.fromkeys(d['program']['name'] for d in documents))}"
    facts = machine_list(first) + "".join(f"<details><summary>result {i + 2}, {escaped(d['started'])}</summary>"
                                          f"{machine_list(d)}</details>" for i, d in enumerate(documents[1:]))
    nothing = "" if built.figures else '<p class="warn">There is no undisturbed figure in these results.</p>'
    placed = "" if built.placement == "unknown" else f"Most points were taken in placement class “{escaped(built.placement)}”. "
    body = (f"<h1>{escaped(title)}</h1><p class=\"soft\">{placed}Medians over "
            f"repetitions, bars from the least to the largest. Point at a mark for its figure; "
            f"doc/reading-numbers.md says how to read them.</p>{facts}{nothing}{warnings(built)}"
            + change_section(built)
            + section("Programs as they come", plots.programs(built), PROGRAMS)
            + section("One way", plots.rates(built))
            + section("Round trips", ([overview] if overview else []) + ours)
            + folded("Percentiles of what stands beside it", others)
            + section("Latency under load", plots.under_load(built))
            + section("Distribution of round trips", histograms, left) + tables(built))
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escaped(title)}</title>'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
            f"<body>{body}</body></html>\n")
