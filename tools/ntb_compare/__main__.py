# SPDX-License-Identifier: BSD-3-Clause
"""Runs ours beside what else moves messages between two processes, interleaved, next to the limit."""
import argparse
import json
import os
import pathlib
import random
import shlex
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from ntb_compare import calls, kernels, pair, peers, programs, result, rxe, table, testpmd, verbs  # noqa: E402

SIZES = [8, 64, 256, 1024, 1518, 4096, 65536]
OTHERS = (*peers.OTHERS, *testpmd.PEERS)
KNOWN = (peers.LIMIT, peers.OURS, peers.CHANNEL, peers.PORT, peers.WRITE, *OTHERS)
# A peer that fails is tried again in the next rounds, but not for ever.
MOST_FAILURES = 2


class Campaign:
    def __init__(self, chosen, sizes, settings, document, file):
        self.settings = settings
        self.sizes = sizes
        self.document = document
        self.file = file
        self.failures = {}
        self.chosen = []
        for peer in chosen:
            why = peer.missing(settings)
            if why:
                self.skip(peer, why)
            else:
                self.chosen.append(peer)

    def skip(self, peer, why):
        print(f"# left out: {peer.label}: {why}", flush=True)
        self.document["skipped"].append({"what": peer.name, "why": why})

    def take(self, peer, number):
        """One peer, all sizes, once."""
        sizes = peer.sizes(self.sizes)
        if self.failures.get(peer.name, 0) >= MOST_FAILURES or not sizes or number >= peer.rounds:
            return
        try:
            lines = peer.run(sizes, self.settings)
        except pair.Failed as error:
            self.failures[peer.name] = self.failures.get(peer.name, 0) + 1
            self.skip(peer, f"failed in round {number}: {error}")
            return
        for line in lines:
            self.document["points"] += result.points(peer, line, number)

    def round(self, number, generator):
        """The limit first; the order of the others is another one in each round."""
        others = [peer for peer in self.chosen if peer.kind != "limit"]
        generator.shuffle(others)
        for peer in [p for p in self.chosen if p.kind == "limit"] + others:
            self.take(peer, number)

    def run(self, rounds, seed):
        begin = time.monotonic()
        generator = random.Random(seed)
        for number in range(rounds):
            self.round(number, generator)
            self.save(begin)
            if sys.stderr.isatty():
                print(f"\rround {number + 1} of {rounds}", end="", file=sys.stderr, flush=True)
        self.document["complete"] = True
        self.save(begin)

    def save(self, begin):
        self.document["seconds"] = round(time.monotonic() - begin, 3)
        if self.file:
            beside = self.file.with_name(self.file.name + ".new")
            beside.write_text(json.dumps(self.document, separators=(",", ":")) + "\n")
            beside.replace(self.file)


class ProgramCampaign(Campaign):
    def round(self, number, generator):
        """The ways of one load directly one after the other."""
        loads = list(dict.fromkeys(peer.load for peer in self.chosen))
        generator.shuffle(loads)
        for load in loads:
            ways = [peer for peer in self.chosen if peer.load is load]
            generator.shuffle(ways)
            for way in ways:
                self.take(way, number)


def report(document, chosen, sizes, markdown):
    points = document["points"]
    place = table.best_class(points, peers.OURS.name)
    good = sum(point["complete"] for point in points)
    layout = table.as_markdown if markdown else table.as_text
    print(f"# {document['machine']['cpu']}, {document['started'][:10]}, {f'class {place}' if good else 'no class'}, "
          f"{good} of {len(points)} runs undisturbed, load {document['machine']['load_1min']}")
    for line in table.left_out(points, place, chosen):
        print(f"# not in the tables: {line}")
    if not good:
        print("# no run counts: take it on a quiet machine, or with --realtime (root)" if points else "# nothing was measured")
        return
    for metric in table.METRICS:
        print(f"\n{'**' if markdown else ''}{metric.title}{'**' if markdown else ''}\n")
        print(layout(table.rows(metric, points, place, chosen, sizes)))
    others = [peer for peer in chosen if peer in OTHERS]
    for ours in (peers.OURS, peers.CHANNEL, peers.PORT, peers.WRITE):
        for metric in (table.ROUND_TRIP, table.RATE):
            lines = list(table.standing(metric, points, place, ours, others, sizes))
            if lines:
                print(f"\n{ours.label}, {metric.title.lower()}:\n")
                print("\n".join(f"{'* ' if markdown else '  '}{line}" for line in lines))


def parse():
    made = argparse.ArgumentParser(prog="compare", description=__doc__)
    made.add_argument("--quick", action="store_true", help="5 rounds instead of 15")
    made.add_argument("--rounds", type=int, metavar="N", help="1 to 100")
    made.add_argument("--only", nargs="+", metavar="NAME", help="these peers, and the limit")
    made.add_argument("--sizes", metavar="A,B,...", help="bytes of payload, 8 to 65536; to 1048576 with --verbs")
    made.add_argument("--json", type=pathlib.Path, metavar="FILE", help="every run, for tools/report")
    made.add_argument("--markdown", action="store_true", help="tables for a document")
    made.add_argument("--cpus", metavar="A,B", help="the two CPUs; the first two of this process otherwise")
    made.add_argument("--run-ms", type=int, metavar="N",
                      help="length of one measurement, 1 to 1000; with programs as they come 100 to 10000")
    programs_of = made.add_mutually_exclusive_group()
    programs_of.add_argument("--sockets", action="store_true", help="programs as they come, by TCP, AF_UNIX and ring")
    programs_of.add_argument("--without-daemon", action="store_true", help="the same by TCP, and by TCP under the preload; then call by call")
    programs_of.add_argument("--verbs", action="store_true", help="RDMA verbs, by perftest, beside puts, our own messages, and Soft-RoCE between two guests in QEMU")
    programs_of.add_argument("--kernel", action="store_true", help="the same between two kernels (root)")
    made.add_argument("--realtime", action="store_true", help="poll with real-time priority (root)")
    made.add_argument("--list", action="store_true", help="the names of the peers, and what they lack here")
    made.add_argument("--seed", type=int, default=1, help="of the order within a round")
    made.add_argument("--programs", type=pathlib.Path, required=True, help=argparse.SUPPRESS)
    made.add_argument("--commit", default="unknown", help=argparse.SUPPRESS)
    made.add_argument("--huge", action="store_true", help=argparse.SUPPRESS)
    return made


def fail(text):
    print(f"compare: {text}", file=sys.stderr)
    sys.exit(2)


def numbers(text, low, high, what):
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        fail(f"{what}: {text}: numbers with commas between them")
    if not all(low <= number <= high for number in found):
        fail(f"{what}: {text}: each from {low} to {high}")
    return found


def choose_cpus(text):
    allowed = sorted(os.sched_getaffinity(0))
    cpus = numbers(text, 0, 4095, "--cpus") if text else allowed[:2]
    if len(cpus) != 2 or cpus[0] == cpus[1] or not set(cpus) <= set(allowed):
        fail("two different CPUs that this process may use are needed, as in --cpus 0,1")
    return tuple(cpus)


def choose_loads(known, only):
    names = list(dict.fromkeys(way.load.name for way in known))
    for name in only or ():
        if name not in names:
            fail(f"no load is called {name}; there are: {' '.join(names)}")
    return [way for way in known if not only or way.load.name in only]


def choose_peers(known, only):
    names = {peer.name for peer in known}
    for name in only or ():
        if name not in names:
            fail(f"no peer is called {name}; there are: {' '.join(sorted(names))}")
    return [p for p in known if not only or p.name in only or p.kind == "limit"]


def of_programs(options):
    return options.sockets or options.kernel or options.without_daemon


def choose_known(options):
    if options.without_daemon:
        return programs.WITHOUT_DAEMON
    return kernels.KNOWN if options.kernel else programs.KNOWN if options.sockets else (*verbs.KNOWN, *rxe.KNOWN) if options.verbs else KNOWN


def choose_lengths(options):
    """Rounds, and the milliseconds of a run. Programs need some to start, and for their connections to be matched."""
    usual, low, high = (1000, 100, 10000) if of_programs(options) else (20, 1, 1000)
    rounds = options.rounds if options.rounds is not None else 5 if options.quick else 15
    run_ms = options.run_ms if options.run_ms is not None else usual
    if not 1 <= rounds <= 100 or not low <= run_ms <= high:
        fail(f"--rounds goes from 1 to 100, --run-ms from {low} to {high}")
    return rounds, run_ms


def command_line(words):
    """What repeats this run: without what tools/compare adds by itself."""
    kept = list(words)
    for name, values in (("--programs", 1), ("--commit", 1), ("--huge", 0)):
        if name in kept:
            at = kept.index(name)
            del kept[at:at + 1 + values]
    return " ".join(["tools/compare", *map(shlex.quote, kept)])


def main():
    options = parse().parse_args()
    options.sizes = options.sizes or ",".join(map(str, verbs.SIZES if options.verbs else SIZES))
    sizes = sorted(set(numbers(options.sizes, 8, verbs.LARGEST if options.verbs else 65536, "--sizes")))
    known = choose_known(options)
    chosen = choose_loads(known, options.only) if of_programs(options) else choose_peers(known, options.only)
    rounds, run_ms = choose_lengths(options)
    settings = peers.Settings(options.programs, choose_cpus(options.cpus), run_ms, options.realtime, options.huge)
    if options.list:
        for peer in known:
            print(f"{peer.name:20} {peer.label:32} {peer.missing(settings)}".rstrip())
        return 0
    document = result.header(command_line(sys.argv[1:]), options.commit, settings.cpus,
                             {"rounds": str(rounds), "run_ms": str(run_ms), "seed": str(options.seed),
                              "realtime": str(int(options.realtime)), "sizes": options.sizes})
    pair.Signals.catch()
    campaign = (ProgramCampaign if of_programs(options) else Campaign)(chosen, sizes, settings, document, options.json)
    status = 0
    begin = time.monotonic()
    try:
        campaign.run(rounds, options.seed)
    except pair.Interrupted:
        document["interrupted"] = True
        campaign.save(begin)
        status = 130
    except OSError as error:
        fail(f"{error.filename or options.json}: {error.strerror}")
    if options.kernel:
        programs.report(document, campaign.chosen, options.markdown, kernels.LABELS, kernels.OURS)
    elif options.without_daemon:
        programs.report(document, campaign.chosen, options.markdown, programs.ABSENT_LABELS, programs.ABSENT)
        if not document["interrupted"]:
            print()
            calls.report(settings, options.markdown)
    elif options.sockets:
        programs.report(document, campaign.chosen, options.markdown)
    else:
        report(document, campaign.chosen, sizes, options.markdown)
    return status


if __name__ == "__main__":
    sys.exit(main())
