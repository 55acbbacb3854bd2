# SPDX-License-Identifier: BSD-3-Clause
"""From points to figures: repetitions of one set-up become a median and a spread.

One rule says which of them count, for the page and for the demo's table: those that were not disturbed, of the class
that most of all such points were taken in; where a set-up has none there, those of the class that has most of its own;
where all were disturbed, these, marked. The limit is kept in every class: a ratio is of one class."""
import collections
import dataclasses
import re
import statistics

LIMIT = "limit"
# The nearest first: of equally many points its own count.
CLASSES = ("smt", "ccx", "other", "far", "remote", "same", "unknown")
# How our own messages travel: drawn first and thicker beside other things.
OURS = ("queue", "send", "port", "testpmd-port", "testpmd-port-zerocopy", "write", "write-imm", "read", "fetch-add",
        "compare-swap")
SET_UP = ("mode", "operation", "device", "size", "mix", "burst", "in_flight", "queues", "offered_rate", "copy", "copy_mode", "build",
          "completion", "region", "lcores", "server_lcores", "pattern", "verified", "clock")
# The device of a point that an emulator ran begins so (ntb_compare/rxe.py).
EMULATED_ON = "QEMU"
# Programs as they come: the operation of such a point is LOAD:WAY.
WAYS = {"tcp": "TCP loopback", "unix": "AF_UNIX", "ring": "ntbmsg", "absent": "preload, no daemon", "loopback": "loopback",
        "veth": "veth", "memif": "net_tap, memif", "ntb-net": "ntb-net"}
OUR_WAYS = ("ring", "ntb-net")
# A message of so many bytes is a block of a stream.
LEAST_BLOCK = 64 << 10
QUANTILES = ("p50", "p99", "p99_9")
ONE_WAY = ("rate", "throughput", "bidirectional", "incast", "replay")
# Repetitions that lie further apart than this, as a part of their median, are called noisy.
NOISY = 0.15
PERCENTAGE = re.compile(r"(\d+) ?%")


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
    placement: str = "unknown"
    disturbed: str = ""  # why, where all repetitions were

    def __getattr__(self, name):
        if name in SET_UP:
            return self.set_up[SET_UP.index(name)]
        raise AttributeError(name)

    @property
    def load(self):
        return self.operation.partition(":")[0]

    @property
    def way(self):
        """Of a program as it comes, else an empty text."""
        way = self.operation.partition(":")[2]
        return way if way in WAYS else ""

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

    def first_latency(self, name):
        """What a user waits for: from when a message was due, where messages had a time."""
        return self.latency(name, "round_trip_from_intended_ns") or self.latency(name)

    @property
    def rate_met(self):
        return all(point["rate_met"] for point in self.points)

    def histogram(self):
        """All repetitions in one: [(from, to, count)]."""
        merged = collections.Counter()
        for point in self.points:
            for low, high, count in (point["round_trip_ns"] or {"histogram": ()})["histogram"]:
                if high > low:
                    merged[low, high] += count
        return sorted((low, high, count) for (low, high), count in merged.items())

    def of_program(self):
        """What is shown of a program as it comes: ("time", "bytes" or "requests", its spread)."""
        if self.mode == "latency":
            return "time", self.of(lambda p: p["round_trip_ns"] and p["round_trip_ns"]["p50"] / 2)
        return ("bytes", self.throughput()) if self.size >= LEAST_BLOCK else ("requests", self.rate())

    def noisiest(self):
        if self.way:
            found = self.of_program()[1]
            return found.noise if found else 0.0
        found = [self.mean_round_trip()] if self.mode == "latency" else [self.rate()]
        return max((f.noise for f in found if f), default=0.0)


@dataclasses.dataclass
class Model:
    documents: list
    placement: str
    figures: list
    disturbed: list  # (why, how many)
    elsewhere: int  # points that were left out because those of another class count
    lost_limits: list  # (mode, size, why) of what there is no figure of, as its points ended early

    def apart(self, figure):
        """Whether it cannot be held against most of the others."""
        return figure.placement != self.placement or bool(figure.disturbed)

    def other_classes(self):
        """Those that there are figures of beside the limit's."""
        return {figure.placement for figure in self.figures if figure.operation != LIMIT}

    def limit_counts(self, limit):
        """Whether a limit stands for its mode and size: one of a class that nothing else is of does where there is no other."""
        known = self.other_classes() | {self.placement}
        return limit.placement in known or not any(
            other.operation == LIMIT and (other.mode, other.size) == (limit.mode, limit.size) and other.placement in known
            for other in self.figures)

    def commits(self):
        """In the order of the files, of all but the limit, which no commit changes."""
        measured = {figure.commit for figure in self.figures if figure.operation != LIMIT}
        return [commit for commit in dict.fromkeys(map(commit_of, self.documents)) if commit in measured]

    def of_mode(self, *modes):
        """But of programs as they come."""
        return [figure for figure in self.figures if figure.mode in modes and not figure.way]

    def loads(self):
        """{load: {way: figure}} of programs as they come, in the order of the points."""
        made = {}
        mine = {f.operation: f for f in self.figures if f.way}
        for operation in dict.fromkeys(p["operation"] for document in self.documents for p in document["points"]):
            if operation in mine:
                made.setdefault(mine[operation].load, {})[mine[operation].way] = mine[operation]
        return made


def commit_of(document):
    return document["program"]["commit"] or "unknown"


def whole(point):
    """A load that was more than the system takes is a finding."""
    return point["complete"] or not point["rate_met"]


def undisturbed(point):
    return whole(point) and not point["disturbed"]


def most_taken(points, nothing="unknown"):
    """The class that most points were taken in; one that is known, if there is any."""
    taken = collections.Counter(point["placement"]["class"] for point in points)
    known = [placement for placement in CLASSES[:-1] if taken[placement]]
    return max(known, key=lambda placement: taken[placement]) if known else nothing


def judged_class(documents):
    """Of all points that count."""
    points = [point for document in documents for point in document["points"] if whole(point)]
    return most_taken([point for point in points if undisturbed(point)] or points)


def those_that_count(points, placement):
    """Of one set-up: (class, points, why all of them are disturbed)."""
    good = [point for point in points if undisturbed(point)]
    candidates = good or points
    here = [point for point in candidates if point["placement"]["class"] == placement]
    where = placement if here else most_taken(candidates)
    kept = here or [point for point in candidates if point["placement"]["class"] == where]
    return where, kept, "" if good else kept[0]["disturbed"]


def figures_of(commit, set_up, points, placement):
    operation = set_up[SET_UP.index("operation")]
    if operation != LIMIT:
        where, kept, why = those_that_count(points, placement)
        return [Figure(set_up, commit, kept, where, why)]
    made = []
    for each in dict.fromkeys(point["placement"]["class"] for point in points):
        mine = [point for point in points if point["placement"]["class"] == each]
        where, kept, why = those_that_count(mine, each)
        made.append(Figure(set_up, commit, kept, where, why))
    return made


def reasons(left_out):
    """(why, how many) with those first that there are most of; such as differ in a percentage alone are one."""
    alike = {}
    for why, count in left_out.items():
        alike.setdefault(PERCENTAGE.sub("{}", why), []).append((why, count))
    found = collections.Counter()
    for kind, members in alike.items():
        shares = sorted(int(share) for why, _ in members for share in PERCENTAGE.findall(why))
        words = f"{shares[0]} to {shares[-1]} %" if shares and shares[0] != shares[-1] else f"{shares[0]} %" if shares else ""
        found[kind.replace("{}", words)] += sum(count for _, count in members)
    return found.most_common()


def build(documents):
    placement = judged_class(documents)
    left_out = collections.Counter()
    grouped, lost = {}, {}
    for document in documents:
        for point in document["points"]:
            if not whole(point):
                why = point["error"] or "ended early"
                left_out[why] += 1
                if point["operation"] == LIMIT:
                    lost[point["mode"], point["size"]] = why
                continue
            set_up = tuple(point[name] for name in SET_UP)
            grouped.setdefault((commit_of(document), set_up), []).append(point)
    figures, elsewhere = [], 0
    for (commit, set_up), points in grouped.items():
        made = figures_of(commit, set_up, points, placement)
        kept = {id(point) for figure in made for point in figure.points}
        for point in points:
            if id(point) in kept:
                continue
            if point["disturbed"]:
                left_out[point["disturbed"]] += 1
            else:
                elsewhere += 1
        figures += made
    figures.sort(key=lambda f: (f.mode, f.operation not in OURS, f.operation, f.size, f.offered_rate, f.burst, f.in_flight, f.queues))
    for limit in (figure for figure in figures if figure.operation == LIMIT):
        lost.pop((limit.mode, limit.size), None)
    lost_limits = [(*which, why) for which, why in sorted(lost.items())]
    return Model(documents, placement, figures, reasons(left_out), elsewhere, lost_limits)
