# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as tables: medians over the rounds of one placement class, with the limit of the same round."""
import collections
import dataclasses
import re
import statistics

CLASSES = ("ccx", "other", "smt", "far")


@dataclasses.dataclass(frozen=True)
class Metric:
    mode: str
    title: str
    smaller_is_better: bool
    digits: int
    clock: str = "off"  # which runs count: those without a look at the clock, or those that timed each round


ROUND_TRIP = Metric("latency", "Round trip, ns", True, 0)
RATE = Metric("rate", "One way, million messages per second", False, 2)
THROUGHPUT = Metric("rate", "One way, GB/s", False, 2)
METRICS = (ROUND_TRIP, RATE, THROUGHPUT)


def value(metric, point):
    if metric is ROUND_TRIP:
        return point["seconds"] * 1e9 / point["messages"]
    return point["messages_per_second"] / 1e6 if metric is RATE else point["bytes_per_second"] / 1e9


def counts(metric, point):
    return (point["mode"] == metric.mode and point["complete"] and point["messages"]
            and point["seconds"] and point["clock"] == metric.clock)


class Figures:
    """Of one metric and one class: (peer, size) -> {round: value}."""

    def __init__(self, metric, points, placement, value_of=value):
        self.metric = metric
        self.rounds = collections.defaultdict(dict)
        for point in points:
            if counts(metric, point) and point["placement"]["class"] == placement:
                self.rounds[point["operation"], point["size"]][point["repeat"]] = value_of(metric, point)

    def values(self, peer, size):
        return list(self.rounds.get((peer, size), {}).values())

    def median(self, peer, size):
        taken = self.values(peer, size)
        return statistics.median(taken) if taken else None

    def ratio(self, peer, size, base="limit"):
        """How many times the base is better, round by round, as a median."""
        limits = self.rounds.get((base, size), {})
        taken = self.rounds.get((peer, size), {})
        pairs = [(limits[r], taken[r]) for r in taken if r in limits]
        if not pairs:
            return None
        return statistics.median(t / l if self.metric.smaller_is_better else l / t for l, t in pairs)

    def count(self, peer, size):
        return len(self.rounds.get((peer, size), ()))


def best_class(points, ours):
    """The class in which most of ours and of the limit were taken."""
    taken = collections.Counter(p["placement"]["class"] for p in points
                                if p["complete"] and p["operation"] in (ours, "limit"))
    return max(CLASSES, key=lambda c: taken[c])


def left_out(points, placement, peers):
    """Who was measured and has no run that counts, and why, in a line each, as the row is missing."""
    for peer in peers:
        taken = [p for p in points if p["operation"] == peer.name]
        if not taken or any(p["complete"] and p["placement"]["class"] == placement for p in taken):
            continue
        # Reasons that differ in a percentage are one.
        reasons = collections.Counter(f"in class {p['placement']['class']}" if p["complete"]
                                      else re.sub(r" for \d+% of the time", "", p["error"]) for p in taken)
        yield f"{peer.label}: " + "; ".join(f"{reason}, {n} of {len(taken)} runs" for reason, n in reasons.most_common())


def cell(figures, peer, size, digits):
    median, ratio = figures.median(peer, size), figures.ratio(peer, size)
    if median is None:
        return "–"
    text = f"{median:.{digits}f}"
    return text if ratio is None or peer == "limit" else f"{text} ({ratio:.1f}x)"


def rows(metric, points, placement, peers, sizes):
    """A table as lists of texts, the first one its head. Who has no figure at all is left out."""
    figures = Figures(metric, points, placement)
    table = [["", *(f"{size} B" for size in sizes)]]
    for peer in peers:
        cells = [cell(figures, peer.name, size, metric.digits) for size in sizes]
        label = peer.label if peer.read else f"{peer.label} (not read)"
        if any(c != "–" for c in cells):
            table.append([label, *cells])
    return table


def as_text(table):
    widths = [max(len(row[i]) for row in table) for i in range(len(table[0]))]
    return "\n".join("  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:]))]).rstrip()
                     for row in table)


def as_markdown(table):
    lines = ["| " + " | ".join(row) + " |" for row in table]
    return "\n".join([lines[0], "|---" + "|--:" * (len(table[0]) - 1) + "|", *lines[1:]])


def standing(metric, points, placement, ours, others, sizes):
    """For each size, ours against the best of the others that do the same work, in one line: messages beside
    messages, puts beside puts."""
    figures = Figures(metric, points, placement)
    labels = {p.name: p.label for p in others if p.kind == ours.kind and p.read}
    for size in sizes:
        mine = figures.median(ours.name, size)
        found = {n: figures.median(n, size) for n in labels if figures.median(n, size) is not None}
        if mine is None or not found:
            continue
        best = (min if metric.smaller_is_better else max)(found, key=found.get)
        factor = found[best] / mine if metric.smaller_is_better else mine / found[best]
        word = "ahead of" if factor >= 1 else "behind"
        yield f"{size} B: {max(factor, 1 / factor):.2f}x {word} {labels[best]}"
