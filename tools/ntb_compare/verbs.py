# SPDX-License-Identifier: BSD-3-Clause
"""RDMA verbs over two node daemons with the twin between them, by perftest as Debian has it, beside what they stand on:
our client library's messages, our library's writes, UCX's puts into shared memory, and the limit of the machine."""
import dataclasses
import re

from ntb_sockets.programs import find, free_port, libraries, listens

from . import pair, peers, programs, testpmd

SIZES = [8, 64, 4096, 65536, 1 << 20]
LARGEST = 1 << 20
SERVER = "127.0.0.1"
START_SECONDS, RUN_SECONDS = 60, 120
PROGRAMS = ("daemon/ntbd", "lib/verbs/ntb-verbs", "lib/verbs/libntbverbs.so")
# perftest measures the CPU's frequency for each figure, and ends without one where its samples spread too far.
GAVE_UP = "Can't produce a report"
TRIES = 5
MIB = 1 << 20
# Of a run, for each millisecond that it is to last: by a latency, a rate and a bandwidth that are rather high, so that
# it is not shorter by much.
TRIPS_PER_MS, MESSAGES_PER_MS, BYTES_PER_MS = 200, 2000, 4 << 20
LEAST = 100
# Without messages it is faster by ten, and the first ones still have one, until the daemons have granted the memory and its
# pages were touched: these are to be a small part of a run, as perftest has no warm-up that ends.
DIRECT_TIMES = 100


def build_of(settings):
    return settings.programs.parents[1]


def first_of(settings):
    """Threads of a host share a CPU, so real-time priority would keep one from another."""
    return ["nice", "-n", "-20"] if settings.realtime else []


class Hosts:
    """Two daemons that are joined by the twin, each on its host's CPU."""

    def __init__(self, processes, settings):
        self.processes, self.build = processes, build_of(settings)
        self.cpus, self.first = settings.cpus, first_of(settings)
        self.options = ()  # of ntb-verbs
        self.daemons = [self.daemon(side) for side in (0, 1)]
        for number in self.daemons:
            programs.await_fact(lambda number=number: "joined with the daemon of the peer host" in self.said(number),
                                processes, number, START_SECONDS, "the daemons do not join")

    def said(self, number):
        return self.processes.text("out", number) + self.processes.text("err", number)

    def socket(self, side):
        return self.processes.folder / f"daemon{side}.sock"

    def daemon(self, side):
        folder = self.processes.folder
        path = folder / f"daemon{side}.conf"
        # A busy machine may keep a daemon's heartbeat for longer than the device's second.
        path.write_text(f"socket {self.socket(side)}\nring 64K\ncarrier direct\ndevice raw_plx_ntb0\n"
                        f"eal --no-huge -m 256 --no-pci -l {self.cpus[side]} --no-telemetry --no-shconf\n"
                        f"eal --vdev=raw_plx_ntb0,cable={folder}/cable,lost_ms=60000\n")
        return self.processes.start([*self.first, self.build / "daemon/ntbd", "--config", path])

    def start(self, side, words):
        return self.processes.start(
            [*self.first, "taskset", "-c", self.cpus[side], self.build / "lib/verbs/ntb-verbs", "--library",
             self.build / "lib/verbs/libntbverbs.so", "--socket", self.socket(side), *self.options, find(words[0]), *words[1:]], libraries())


@dataclasses.dataclass(frozen=True)
class Figure:
    """Of a message size, what a program says: messages, and the seconds that they took."""
    count: int
    seconds: float


def line_of(size, trips, messages, place):
    """As a peer program prints it. Neither perftest nor UCX's program says whether others had the CPUs."""
    def count(figure):
        return {"count": figure.count, "seconds": figure.seconds} if figure else {"count": 0, "seconds": 0.0}
    return {"bytes": size, "class": place["class"], "probe_ns": place["probe_ns"], "stayed": True, "ran": 1.0,
            "round_trips": count(trips), "latency": None, "messages": count(messages)}


def trips_of(size, run_ms):
    return max(LEAST, min(run_ms * TRIPS_PER_MS, run_ms * BYTES_PER_MS // size))


def messages_of(size, run_ms):
    return max(LEAST, min(run_ms * MESSAGES_PER_MS, run_ms * BYTES_PER_MS // size))


def not_understood(text, size):
    """With the line of that size, if there is one."""
    row = next((line.strip() for line in text.splitlines() if line.startswith(f" {size} ")), pair.last_line(text))
    return pair.Failed(f"not understood: {row[:200]}")


def row_of(text, size):
    """The words of perftest's line of that size, which begins with the size and the count. Of a long wait among many
    rounds it calls the deviation -nan."""
    found = re.search(rf"^ {size}\s+(\d+)\s+(\d(?:[\d.\s]|-?nan)*?)\s*$", text, re.M)
    try:
        words = [float(word) for word in found[2].split()]
        if len(words) < 3 or any(word < 0 for word in words):
            raise ValueError
        return int(found[1]), words
    except (TypeError, ValueError) as error:
        raise not_understood(text, size) from error


def read_latency(text, size, is_whole):
    """Minimum, maximum, median, ... in microseconds: of the whole for a read, else of half of it. The median is taken,
    as the mean is that of the worst of some thousand rounds where others want the CPUs."""
    count, words = row_of(text, size)
    if not words[2] > 0:
        raise not_understood(text, size)
    return Figure(count, count * words[2] * (1 if is_whole else 2) / 1e6)


def read_bandwidth(text, size):
    """Peak and mean in MiB a second, and million messages a second."""
    count, words = row_of(text, size)
    if not words[1] > 0:
        raise not_understood(text, size)
    return Figure(count, count * size / (words[1] * MIB))


class Perftest:
    """ib_OPERATION_lat and ib_OPERATION_bw, each size by itself; where the memory is direct, without messages."""
    kind, read, rounds = "messages", False, 100

    def __init__(self, operation, *options):
        self.operation, self.options = operation, options
        self.name = "".join([f"verbs-{operation}", *(option[1:] for option in options)])
        self.label = " ".join([f"verbs, {operation}", *options])

    def missing(self, settings):
        program = f"ib_{self.operation}_lat"
        if find(program) is None:
            return f"{program} is not there; run: tools/setup"
        return next((f"{name} was not built" for name in PROGRAMS if not (build_of(settings) / name).exists()), "")

    def sizes(self, wanted):
        return wanted

    def run(self, sizes, settings):
        place = testpmd.probe(settings)
        with pair.group() as processes:
            hosts = Hosts(processes, settings)
            hosts.options = self.options
            run_ms = settings.run_ms * (DIRECT_TIMES if self.options else 1)
            lines = []
            for size in sizes:
                trips = read_latency(self.take(hosts, "lat", size, trips_of(size, run_ms)), size, self.operation == "read")
                messages = read_bandwidth(self.take(hosts, "bw", size, messages_of(size, run_ms)), size)
                lines.append(line_of(size, trips, messages, place))
            return lines

    def take(self, hosts, what, size, count):
        """The client's text."""
        for _ in range(TRIES):
            words = [f"ib_{self.operation}_{what}", "-F", "-s", size, "-n", count, "-p", free_port()]
            text, gave_up = take_pair(hosts.processes, words[-1], lambda side, *more, words=words: hosts.start(side, [*words, *more]))
            if not gave_up:
                return text
        raise pair.Failed(GAVE_UP)


def take_pair(processes, port, start):
    """Server and client of a program that meet by TCP. @return what the client said, and whether it gave up"""
    server = start(1)
    programs.await_fact(lambda: listens(port), processes, server, START_SECONDS, "the server does not listen")
    client = start(0, SERVER)
    both = (server, client)
    programs.await_fact(lambda: not any(processes.running(number) for number in both), processes, 0, RUN_SECONDS,
                        "the program does not end")
    if any(GAVE_UP in processes.text(name, number) for name in ("out", "err") for number in both):
        return "", True
    for number in both:
        if processes.members[number].poll() != 0:
            processes.fail(number)
    return processes.text("out", client), False


class UcxPerftest:
    """UCX's own program with its puts into shared memory, which does not look at what arrives."""
    kind, read, rounds, name, label = "put", False, 100, "ucx_perftest", "UCX, posix, its own put test"

    def missing(self, _settings):
        return "" if find("ucx_perftest") else "ucx_perftest is not there; run: tools/setup"

    def sizes(self, wanted):
        return wanted

    def run(self, sizes, settings):
        place = testpmd.probe(settings)
        with pair.group() as processes:
            idle = processes.start(["sleep", "infinity"])  # ends with the group, as daemons do
            assert idle == 0
            return [line_of(size, self.take(processes, settings, "ucp_put_lat", size, trips_of(size, settings.run_ms)),
                            self.take(processes, settings, "ucp_put_bw", size, messages_of(size, settings.run_ms)), place)
                    for size in sizes]

    def take(self, processes, settings, test, size, count):
        port = free_port()

        def start(side, *more):
            return processes.start([*first_of(settings), "taskset", "-c", settings.cpus[side], find("ucx_perftest"), "-p", port, "-t", test, "-f",
                                    "-s", size, "-n", count, "-w", count // 10, *more],
                                   {**libraries(), "UCX_TLS": "posix,self", "UCX_LOG_LEVEL": "error"})
        text, _ = take_pair(processes, port, start)
        return read_ucx(text, test == "ucp_put_lat")


def read_ucx(text, is_latency):
    """Count; median, mean, mean of all in microseconds; bandwidth, of all, in MiB a second; messages a second, of all."""
    found = re.search(r"^ *(?:Final: +)?(\d+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +([\d.]+) +(\d+) +(\d+)\s*$", text, re.M)
    if not found or float(found[2]) == 0 or int(found[8]) == 0:
        raise pair.Failed(f"not understood: {pair.last_line(text)}")
    count = int(found[1])
    if is_latency:
        return Figure(count, count * 2 * float(found[2]) / 1e6)
    return Figure(count, count / int(found[8]))


@dataclasses.dataclass(frozen=True)
class Client(peers.Peer):
    """Our client library, over the same daemons."""

    def missing(self, settings):
        return super().missing(settings) or \
            next((f"{name} was not built" for name in PROGRAMS[:1] if not (build_of(settings) / name).exists()), "")

    def run_part(self, sizes, form, settings):
        with pair.group() as processes, pair.shared_memory() as shared:
            Hosts(processes, settings)
            ends = [processes.start([settings.programs / self.program, "--side", side, "--cpu", settings.cpus[side],
                                     *peers.common_words(shared, sizes, form, processes.folder, settings), "--",
                                     processes.folder / f"daemon{side}.sock"]) for side in (1, 0)]
            programs.await_fact(lambda: not any(processes.running(number) for number in ends), processes, 0,
                                peers.PAIR_SECONDS, "the program does not end")
            for number in ends:
                if processes.members[number].poll() != 0:
                    processes.fail(number)
            return peers.parse_lines(processes.text("out", ends[1]))


CLIENT = Client("client", "ntbmsg, client library", "peer_client")
SEND, WRITE, READ = (Perftest(operation) for operation in ("send", "write", "read"))
UCX_PUT = next(peer for peer in peers.OTHERS if peer.name == "ucx-put")
DIRECT = (*(Perftest(operation, "--direct") for operation in ("write", "read")), Perftest("send", "--direct-sends"))
KNOWN = (peers.LIMIT, CLIENT, peers.WRITE, SEND, WRITE, READ, *DIRECT, UCX_PUT, UcxPerftest())
