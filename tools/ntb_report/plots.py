# SPDX-License-Identifier: BSD-3-Clause
"""Which figures become which plots."""
import html

from . import model, svg, units

COLOURS = 8
MARKERS = ("circle", "square", "triangle")
QUANTILE_NAMES = {"p50": "p50", "p99": "p99", "p99_9": "p99.9"}
MOST_HISTOGRAMS = 12


def legend(all_series):
    if len(all_series) < 2:
        return ""
    items = "".join(f'<li><span class="key {series.style}"></span>{html.escape(series.label)}</li>'
                    for series in all_series)
    return f'<ul class="legend">{items}</ul>'


def card(title, body, note=""):
    note = f'<p class="note">{html.escape(note)}</p>' if note else ""
    return f"<figure><figcaption>{html.escape(title)}</figcaption>{body}{note}</figure>"


def style_of(number):
    return f"c{number % COLOURS}" + (" dashed" if number >= COLOURS else "")


def count_form(value):
    """Of a rate, whose unit stands in the title."""
    return units.scaled(value, units.PREFIXES)


def line_name(figure, several_commits):
    """What is the same along one line of a plot over size."""
    words = [figure.operation]
    if figure.completion != "received":
        words.append(figure.completion)
    # Of what the far end's CPU does not serve as a matter of course.
    if figure.region == "served" and figure.operation.startswith("write"):
        words.append("served")
    if figure.queues > 1:
        words.append(f"{figure.queues} queues")
    if figure.lcores > 1:
        words.append(f"{figure.lcores} lcores")
    if figure.mode in model.ONE_WAY and figure.mode not in ("rate", "throughput"):
        words.append(figure.mode)
    if figure.in_flight > 1:
        words.append(f"{figure.in_flight} in flight")
    if figure.copy == "dma":
        words.append("DMA")
    if figure.build == "in-place":
        words.append("built in place")
    if figure.pattern == "not read":
        words.append("not read")
    if figure.device.startswith(model.EMULATED_ON):
        words.append(f"software emulation ({figure.device})")
    if several_commits and figure.operation != model.LIMIT:
        words.append(figure.commit[:9])
    return ", ".join(words)


def described(figure):
    """What a mark says of the circumstances."""
    words = f"class {figure.placement}"
    if figure.disturbed:
        words += f", disturbed: {figure.disturbed}"
    return words


def lines_over_size(built, figures, take, form):
    """One series for each set-up that differs in more than size: ours first, the limit last, once for each class
    that there are figures of."""
    several = len(built.commits()) > 1
    lines, hollow = {}, {}
    for figure in figures:
        found = take(figure)
        if not found or not figure.size or figure.mix not in ("", "fixed"):
            continue
        name = line_name(figure, several)
        apart = built.apart(figure)
        if figure.operation == model.LIMIT and figure.placement != built.placement:
            if not built.limit_counts(figure):
                continue
            name += f", class {figure.placement}"
            apart = bool(figure.disturbed) or figure.placement not in built.other_classes()
        if apart:
            hollow.setdefault((name, figure.operation), set()).add(figure.size)
        lines.setdefault((name, figure.operation), {})[figure.size] = (
            figure.size, found.median, found.low, found.high,
            f"{units.size(figure.size)}, {form(found.median)}, {described(figure)}")
    made = []
    beside = len({operation for _, operation in lines} - {model.LIMIT}) > 1
    for (name, operation), points in sorted(lines.items(), key=lambda item: item[0][1] == model.LIMIT):
        style = "limit" if operation == model.LIMIT else style_of(len(made))
        if beside and operation in model.OURS:
            style += " ours"
        made.append(svg.Series(name, list(points.values()), style, MARKERS[len(made) % len(MARKERS)],
                               frozenset(hollow.get((name, operation), ()))))
    return made


def about_limit(built, all_series, modes):
    """What a plot over size says where its limit is missing, has a gap, or is not as good as a limit should be."""
    drawn = [series for series in all_series if series.style == model.LIMIT]
    sizes = {point[0] for series in all_series if series.style != model.LIMIT for point in series.points}
    lost = [(size, why) for mode, size, why in built.lost_limits if mode in modes and size in sizes]
    if lost:
        return "No limit at " + "; ".join(f"{units.size(size)}: {why}" for size, why in lost) + "."
    if not drawn:
        return "No limit line: the results hold none of these sizes (tools/compare --only limit)."
    if any(series.hollow for series in drawn):
        return "The limit was disturbed, or is of another class than all else, where its marks are hollow."
    return ""


def over_size(built, title, figures, take, form, axis_form):
    all_series = lines_over_size(built, figures, take, form)
    if all(series.style == model.LIMIT for series in all_series):
        return ""
    ticks = sorted({point[0] for series in all_series for point in series.points})
    plot = svg.line_plot(title, all_series, "message size, bytes", units.short_size, axis_form, ticks)
    return card(title, legend(all_series) + plot, about_limit(built, all_series, {figure.mode for figure in figures}))


def quantiles_of(built, name, figures):
    """p50, p99 and p99.9 of one line, with the limit."""
    all_series = []
    for number, quantile in enumerate(model.QUANTILES):
        points = [(f.size, s.median, s.low, s.high, f"{units.size(f.size)}, {units.nanoseconds(s.median)}, {described(f)}")
                  for f in figures if (s := f.latency(quantile))]
        all_series.append(svg.Series(QUANTILE_NAMES[quantile], points, style_of(number), MARKERS[number],
                                     frozenset(f.size for f in figures if built.apart(f))))
    sizes = {f.size for f in figures}
    limits = [f for f in built.of_mode("latency") if f.operation == model.LIMIT and f.size in sizes]
    all_series += lines_over_size(built, limits, model.Figure.mean_round_trip, units.nanoseconds)
    plot = svg.line_plot(f"Round trip of {name}", all_series, "message size, bytes", units.short_size,
                         units.nanoseconds, sorted(sizes))
    return card(f"Round trip over size: {name}", legend(all_series) + plot, about_limit(built, all_series, ("latency",)))


def quantiles_over_size(built):
    """Two lists of cards, one card for each line: of ours, and of what stands beside it."""
    several = len(built.commits()) > 1
    groups = {}
    for figure in built.of_mode("latency"):
        if figure.clock == "on" and figure.size:
            groups.setdefault((line_name(figure, several), figure.operation in model.OURS), []).append(figure)
    alone = not any(ours for _, ours in groups)
    cards = ([], [])
    for (name, ours), figures in groups.items():
        cards[0 if ours or alone else 1].append(quantiles_of(built, name, figures))
    return cards


def under_load(built):
    """Both curves: from when a message left, and from when it should have."""
    cards = []
    figures = built.of_mode("load")
    several = len(built.commits()) > 1
    groups = dict.fromkeys((line_name(f, several), f.size) for f in figures)
    for name, size in groups:
        mine = [f for f in figures if (line_name(f, several), f.size) == (name, size)]
        all_series = []
        for curve, words, dashed in (("round_trip_from_intended_ns", "from when it was due", ""),
                                     ("round_trip_ns", "from sending", " dashed")):
            for number, quantile in enumerate(("p50", "p99")):
                points = [(f.offered_rate, s.median, s.low, s.high,
                           f"{units.per_second(f.offered_rate)} offered, {units.per_second(f.rate().median)} went, "
                           f"{units.nanoseconds(s.median)}, {described(f)}")
                          for f in mine if f.offered_rate and f.rate() and (s := f.latency(quantile, curve))]
                if points:
                    all_series.append(svg.Series(
                        f"{quantile} {words}", points, style_of(number) + dashed, MARKERS[number],
                        frozenset(f.offered_rate for f in mine if built.apart(f) or not f.rate_met)))
        if all_series:
            title = f"Latency under load: {name}, {units.size(size)}"
            plot = svg.line_plot(title, all_series, "offered rate, messages per second",
                                 count_form, units.nanoseconds)
            cards.append(card(title, legend(all_series) + plot,
                              "Where the curves part, the offered rate is more than the system takes; marks are hollow where it was not met."))
    return cards


def histogram_card(title, buckets, marks):
    """The few that took much longer than the rest are counted below the plot: they would squeeze it."""
    edge = 2 * max(value for _, value in marks)
    shown = [bucket for bucket in buckets if bucket[0] <= edge] or buckets
    beyond, total = sum(b[2] for b in buckets[len(shown):]), sum(b[2] for b in buckets)
    note = f"{beyond} of {total} lie beyond the plot, up to {units.nanoseconds(buckets[-1][1])}." if beyond else ""
    return card(title, svg.histogram_plot(title, shown, marks, units.nanoseconds), note)


def histograms(built):
    cards = []
    several = len(built.commits()) > 1
    figures = [f for f in built.of_mode("latency", "load") if f.histogram()]
    for figure in figures[:MOST_HISTOGRAMS]:
        marks = [(QUANTILE_NAMES[q], figure.latency(q).median) for q in model.QUANTILES]
        title = f"{line_name(figure, several)}, {units.size(figure.size)}"
        if figure.offered_rate:
            title += f", {units.per_second(figure.offered_rate)}"
        cards.append(histogram_card(title, figure.histogram(), marks))
    left = len(figures) - len(cards)
    return cards, (f"{left} more histograms are in the result files." if left > 0 else "")


def rates(built):
    one_way = built.of_mode(*model.ONE_WAY)
    return [plot for plot in (
        over_size(built, "Messages per second", one_way, model.Figure.rate, units.per_second, count_form),
        over_size(built, "Bytes per second", one_way, model.Figure.throughput, units.bytes_per_second, count_form))
            if plot]


OF_PROGRAMS = {"time": ("half of a round trip", units.nanoseconds), "bytes": ("bytes per second", units.bytes_per_second),
               "requests": ("requests per second", count_form)}


def of_program(figure):
    """(what is shown, spread, form)"""
    kind, found = figure.of_program()
    words, form = OF_PROGRAMS[kind]
    return words, found, form


def programs(built):
    """A card for each load, a bar for each way."""
    cards = []
    for load, ways in built.loads().items():
        bars, shown, form = [], "", count_form
        for way in (way for way in model.WAYS if way in ways):
            shown, found, form = of_program(ways[way])
            if found:
                bars.append((model.WAYS[way], found.median, found.low, found.high, "c0" if way in model.OUR_WAYS else "limit"))
        if bars:
            title = f"{load}, {units.size(ways[next(iter(ways))].size)}: {shown}"
            cards.append(card(title, svg.bar_plot(title, bars, form)))
    return cards


def all_round_trips(built):
    """All operations in one plot, where there are several."""
    figures = [f for f in built.of_mode("latency") if f.clock == "off"] or built.of_mode("latency")
    if len({f.operation for f in figures}) < 2:
        return ""
    return over_size(built, "Mean round trip", figures, model.Figure.mean_round_trip, units.nanoseconds,
                     units.nanoseconds)
