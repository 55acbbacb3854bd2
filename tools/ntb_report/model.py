# SPDX-License-Identifier: BSD-3-Clause
"""From points to figures: repetitions of one set-up become a median and a spread, and what was disturbed or taken
in another placement class is kept separate."""
import collections
import dataclasses
import statistics

LIMIT = "limit"
# How our own messages travel: drawn first and thicker beside other things.
OURS = ("queue", "send", "write", "write-imm", "read", "fetch-add", "compare-swap")
SET_UP = ("mode", "operation", "device", "size", "mix", "burst", "in_flight", "queues", "offered_rate", "copy", "copy_mode",
          "completion", "region", "lcores", "server_lcores", "pattern", "verified", "clock")
QUANTILES = ("p50", "p99", "p99_9")
ONE_WAY = ("rate", "throughput", "bidirectional", "incast", "replay")
# Repetitions that lie further apart than this, as a part of their median, are called noisy.
NOISY = 0.15


@dataclasses.dataclass(frozen=True)
class Spread:
    """Of the repetitions."""
    median: float
    low: float
    high: float
    count: int

    @property
    def noise(self):
        """How far they lie apart, as a part of the median."""
        return (self.high - self.low) / self.median if self.median else 0.0


def spread(values):
    values = [value for value in values if value is not None]
    if not values:
        return None
    return Spread(statistics.median(values), min(values), max(values), len(values))


@dataclasses.dataclass
class Figure:
    """One set-up with all its repetitions that count."""
    set_up: tuple
    commit: str
    points: list

    def __getattr__(self, name):
        if name in SET_UP:
            return self.set_up[SET_UP.index(name)]
        raise AttributeError(name)

    def of(self, take):
        return spread([take(point) for point in self.points])

    def latency(self, name, curve="round_trip_ns"):
        return self.of(lambda p: p[curve] and p[curve][name])

    def mean_round_trip(self):
        """Of a ping-pong, also of one whose rounds were not timed one by one."""
        if self.mode != "latency":
            return None
        return self.of(lambda p: p["round_trip_ns"]["mean"] if p["round_trip_ns"]
                       else p["seconds"] * 1e9 / p["messages"] if p["messages"] else None)

    def rate(self):
        return self.of(lambda p: p["messages_per_second"] or None)

    def throughput(self):
        return self.of(lambda p: p["bytes_per_second"] or None)

    def histogram(self):
        """All repetitions in one: [(from, to, count)]."""
        merged = collections.Counter()
        for point in self.points:
            for low, high, count in (point["round_trip_ns"] or {"histogram": ()})["histogram"]:
                if high > low:
                    merged[low, high] += count
        return sorted((low, high, count) for (low, high), count in merged.items())

    def noisiest(self):
        found = [self.mean_round_trip()] if self.mode == "latency" else [self.rate()]
        return max((f.noise for f in found if f), default=0.0)


@dataclasses.dataclass
class Model:
    documents: list
    placement: str
    figures: list
    disturbed: list  # (why, how many)
    elsewhere: int  # points of other classes

    def commits(self):
        """In the order of the files, of all but the limit, which no commit changes."""
        measured = {figure.commit for figure in self.figures if figure.operation != LIMIT}
        return [commit for commit in dict.fromkeys(map(commit_of, self.documents)) if commit in measured]

    def of_mode(self, *modes):
        return [figure for figure in self.figures if figure.mode in modes]


def commit_of(document):
    return document["program"]["commit"] or "unknown"


def judged_class(documents):
    """The class that most points were taken in; one that is known, if there is any."""
    taken = collections.Counter(point["placement"]["class"] for document in documents for point in document["points"]
                                if point["complete"])
    known = [placement for placement, _ in taken.most_common() if placement != "unknown"]
    return known[0] if known else "unknown"


def build(documents):
    placement = judged_class(documents)
    disturbed = collections.Counter()
    elsewhere = 0
    kept = {}
    for document in documents:
        for point in document["points"]:
            if not point["complete"] or point["error"]:
                disturbed[point["error"] or "ended early"] += 1
            elif point["placement"]["class"] != placement:
                elsewhere += 1
            else:
                set_up = tuple(point[name] for name in SET_UP)
                kept.setdefault((commit_of(document), set_up), []).append(point)
    figures = [Figure(set_up, commit, points) for (commit, set_up), points in kept.items()]
    figures.sort(key=lambda f: (f.mode, f.operation not in OURS, f.operation, f.size, f.offered_rate, f.burst, f.in_flight, f.queues))
    return Model(documents, placement, figures, disturbed.most_common(), elsewhere)
