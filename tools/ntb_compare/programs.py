# SPDX-License-Identifier: BSD-3-Clause
"""Programs as they come: a server and a load, by TCP loopback, by AF_UNIX where both know it, and by ring under the
socket preload. A run by ring counts only if the preload's counters say that its bytes went that way."""
import csv
import dataclasses
import json
import os
import pathlib
import re
import time

from ntb_report import model
from ntb_sockets import rings
from ntb_sockets.programs import find, free_port, libraries, listens

from . import pair, table

SERVER = "127.0.0.2"
START_SECONDS, RUN_SECONDS = 60, 120
# Of the bytes that the load says it moved. What is sent before both ends have claimed the connection goes by TCP.
LEAST_BY_RING = 0.9
TCP, UNIX, RING, ABSENT = "tcp", "unix", "ring", "absent"
WAY_LABELS = {way: model.WAYS[way] for way in (TCP, UNIX, RING)}
ABSENT_LABELS = {way: model.WAYS[way] for way in (TCP, ABSENT)}
SMALL_FILE = 612
BLOCK = 128 << 10


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a server listens: a port, or for AF_UNIX a path."""
    folder: pathlib.Path
    way: str
    port: int
    address: str = SERVER

    @property
    def path(self):
        return self.folder / "server.sock"

    def is_served(self, server):
        return self.path.exists() if self.way == UNIX else listens(self.port, server)


@dataclasses.dataclass
class Taken:
    """What a load says."""
    count: int
    seconds: float
    payload: int  # bytes that it moved, both ways, at least
    latency: dict = None  # round trips in ns, in place of messages one way


@dataclasses.dataclass(frozen=True)
class Load:
    """A server and what loads it."""
    name: str
    label: str
    metric: table.Metric
    size: int  # of a message
    needs: tuple
    server: object  # Place -> words
    client: object  # Place, milliseconds -> words
    read: object  # text of the client, milliseconds -> Taken
    ways: tuple = (TCP, RING)
    cpus: tuple = None  # of server and client, as places in Settings.cpus; None: wherever the kernel puts them
    spin: int = None  # microseconds that a waiting call looks before it sleeps
    tcp_words: tuple = ()  # of both sides by TCP alone


@dataclasses.dataclass(frozen=True)
class Way:
    """A load by one way, as a peer."""
    load: Load
    way: str
    kind: str = "messages"
    read: bool = True
    rounds: int = 100

    @property
    def name(self):
        return f"{self.load.name}:{self.way}"

    @property
    def label(self):
        return f"{self.load.label}, {(WAY_LABELS | ABSENT_LABELS)[self.way]}"

    def missing(self, settings):
        lacks = [program for program in self.load.needs if find(program) is None]
        if lacks:
            return f"{lacks[0]} is not there; run: tools/setup"
        return rings.missing(settings.programs.parents[1]) if self.way in (RING, ABSENT) else ""

    def sizes(self, _wanted):
        return [self.load.size]

    def run(self, _sizes, settings):
        with pair.group() as processes:
            place, before = self.prepare(processes, settings)
            server = self.start(processes, 0, before[0], self.load.server(place), settings)
            pid = processes.members[server].pid
            await_fact(lambda: place.is_served(pid), processes, server, START_SECONDS, "the server does not listen")
            client = self.start(processes, 1, before[1], self.load.client(place, settings.run_ms), settings)
            page = rings.Page(processes.members[client].pid, lambda: processes.running(client)) if self.way == RING else None
            await_fact(lambda: not processes.running(client), processes, server, RUN_SECONDS, "the load does not end")
            if processes.members[client].poll() != 0:
                processes.fail(client)
            taken = self.load.read(processes.text("out", client), settings.run_ms)
            if page:
                counts = page.read()
                page.close()
                check_rings(counts, taken)
            return [self.line(taken)]

    def prepare(self, processes, settings):
        """The place of the server, and the words before those of server and client."""
        before = []
        if self.way == ABSENT:
            before = rings.Preload(settings.programs.parents[1], processes.folder).under()
        elif self.way == RING:
            before = rings.Rings(settings.programs.parents[1], processes, self.load.spin).under()
        return Place(processes.folder, self.way, free_port()), (before, before)

    def start(self, processes, side, before, words, settings):
        pinned = ["taskset", "-c", settings.cpus[self.load.cpus[side]]] if self.load.cpus else []
        more = self.load.tcp_words if self.way in (TCP, ABSENT) else ()
        return processes.start([*pinned, *before, find(words[0]), *words[1:], *more], libraries())

    def line(self, taken):
        nothing, count = {"count": 0, "seconds": 0.0}, {"count": taken.count, "seconds": taken.seconds}
        return {"bytes": self.load.size, "class": "unknown", "probe_ns": [None, None], "stayed": True, "ran": 1.0,
                "round_trips": nothing, "latency": taken.latency, "messages": nothing if taken.latency else count}


def await_fact(fact, processes, number, seconds, what):
    """Until it is one. Process `number` must go on meanwhile."""
    end = time.monotonic() + seconds
    while not fact():
        if not processes.running(number):
            processes.fail(number)
        if time.monotonic() > end:
            raise pair.Failed(what)
        pair.Signals.check()
        time.sleep(0.002)


def check_rings(counts, taken):
    moved = counts.received + counts.sent
    if moved < LEAST_BY_RING * taken.payload:
        raise pair.Failed(f"{moved} of {taken.payload} bytes went by ring")


# ---- redis

# A SET and a GET of 3 bytes, with their answers.
REDIS_BYTES = 95


def redis_server(place):
    where = ["--port", "0", "--unixsocket", place.path] if place.way == UNIX else ["--port", place.port, "--bind", place.address]
    return ["redis-server", *where, "--save", "", "--appendonly", "no", "--dir", place.folder]


def redis(name, label, clients, pipeline, per_ms):
    def client(place, run_ms):
        where = ["-s", place.path] if place.way == UNIX else ["-h", place.address, "-p", place.port]
        return ["redis-benchmark", *where, "-t", "set,get", "-c", clients, "-P", pipeline, "-n", run_ms * per_ms, "--csv"]

    def read(text, run_ms):
        rates = {row[0]: float(row[1]) for row in csv.reader(text.splitlines()) if row and row[0] in ("SET", "GET")}
        if "GET" not in rates or rates["GET"] <= 0:
            raise pair.Failed(f"not understood: {pair.last_line(text)}")
        requests = run_ms * per_ms
        return Taken(requests, requests / rates["GET"], requests * REDIS_BYTES)

    return Load(name, label, KILO_RATE, 3, ("redis-server", "redis-benchmark"), redis_server, client, read,
                ways=(TCP, UNIX, RING))


# ---- sockperf

SOCKPERF_BYTES = 64


def sockperf_server(place):
    # Else it does not set SO_REUSEADDR, and the port is reserved.
    return ["sockperf", "sr", "--tcp", "--uc-reuseaddr", "-i", place.address, "-p", place.port]


def sockperf_client(place, run_ms):
    return ["sockperf", "pp", "--tcp", "-i", place.address, "-p", place.port, "-t", seconds_of(run_ms), "-m", SOCKPERF_BYTES]


def seconds_of(run_ms):
    """Programs that know whole seconds only."""
    return max(1, round(run_ms / 1000))


def read_sockperf(text, _run_ms):
    """It gives halves of round trips in microseconds."""
    found = dict(re.findall(r"---> (?:percentile )?(\S+)(?: observation)? =\s*([\d.]+)", text))
    total = re.search(r"Total (\d+) observations", text)
    mean = re.search(r"Latency is ([\d.]+) usec", text)
    names = {"min": "<MIN>", "p50": "50.000", "p90": "90.000", "p99": "99.000", "p99_9": "99.900", "p99_99": "99.990",
             "max": "<MAX>"}
    if not total or not mean or not set(names.values()) <= set(found) or int(total[1]) == 0:
        raise pair.Failed(f"not understood: {pair.last_line(text)}")
    count = int(total[1])
    latency = {name: 2000 * float(found[there]) for name, there in names.items()}
    latency.update(count=count, mean=2000 * float(mean[1]), histogram=[])
    return Taken(count, count * latency["mean"] / 1e9, 2 * SOCKPERF_BYTES * count, latency)


def sockperf(name, label, **more):
    return Load(name, label, HALF_ROUND_TRIP, SOCKPERF_BYTES, ("sockperf",), sockperf_server, sockperf_client,
                read_sockperf, **more)


# ---- iperf3

IPERF3_BYTES_PER_MS = 2 << 20


def iperf3(name, label, streams):
    def client(place, run_ms):
        return ["iperf3", "-c", place.address, "-p", place.port, "-P", streams, "-n", run_ms * IPERF3_BYTES_PER_MS, "-J"]

    def read(text, _run_ms):
        try:
            end = json.loads(text)["end"]["sum_received"]
            size, seconds = int(end["bytes"]), float(end["seconds"])
        except (ValueError, KeyError, TypeError) as error:
            raise pair.Failed(f"not understood: {pair.last_line(text)}") from error
        return Taken(size // BLOCK, seconds, size)

    return Load(name, label, GIGABITS, BLOCK, ("iperf3",),
                lambda place: ["iperf3", "-s", "-B", place.address, "-p", place.port], client, read)


# ---- nginx

UNITS = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


def nginx_server(place):
    folder = place.folder
    (folder / "small").write_bytes(bytes(ord("a") + i % 26 for i in range(SMALL_FILE)))
    temporary = " ".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"daemon off; worker_processes 1; {'user root;' if os.geteuid() == 0 else ''} pid {folder}/nginx.pid;\n"
        "events { worker_connections 256; }\n"
        f"http {{ access_log off; keepalive_requests 1000000000; {temporary}\n"
        f"server {{ listen {place.address}:{place.port}; root {folder}; }} }}\n")
    return ["nginx", "-e", "stderr", "-p", folder, "-c", folder / "nginx.conf"]


def wrk_client(place, run_ms):
    return ["wrk", "-t1", "-c8", f"-d{seconds_of(run_ms)}", f"http://{place.address}:{place.port}/small"]


def read_wrk(text, _run_ms):
    found = re.search(r"(\d+) requests in ([\d.]+)s, ([\d.]+)([KMG]?B) read", text)
    if not found or int(found[1]) == 0 or "Non-2xx" in text or "Socket errors" in text:
        raise pair.Failed(f"not understood, or with errors: {pair.last_line(text)}")
    return Taken(int(found[1]), float(found[2]), int(float(found[3]) * UNITS[found[4]]))


# ---- memcached

def memcached_server(place):
    more = ["-u", "root"] if os.geteuid() == 0 else []
    return ["memcached", *more, "-l", place.address, "-p", place.port, "-U", 0, "-t", 1]


def memaslap_client(place, run_ms):
    """Nine GETs for each SET, of values of 1 KiB."""
    return ["memcaslap", "-s", f"{place.address}:{place.port}", "-t", f"{seconds_of(run_ms)}s", "-T", 1, "-c", 8]


def read_memaslap(text, _run_ms):
    found = {name: int(number) for name, number in re.findall(r"^(written_bytes|read_bytes): (\d+)$", text, re.M)}
    run = re.search(r"^Run time: ([\d.]+)s Ops: (\d+) ", text, re.M)
    if not run or len(found) != 2 or float(run[1]) == 0 or int(run[2]) == 0:
        raise pair.Failed(f"not understood: {pair.last_line(text)}")
    return Taken(int(run[2]), float(run[1]), sum(found.values()))


KILO_RATE = table.Metric("rate", "1000 requests/s", False, 1)
GIGABITS = table.Metric("rate", "Gb/s", False, 1)
HALF_ROUND_TRIP = table.Metric("latency", "us, half of a round trip", True, 2, clock="on")


def value(metric, point):
    if metric is HALF_ROUND_TRIP:
        return point["round_trip_ns"]["p50"] / 2000
    return point["messages_per_second"] / 1e3 if metric is KILO_RATE else point["bytes_per_second"] * 8 / 1e9


LOADS = (
    redis("redis-1", "redis GET, 1 client", 1, 1, 30),
    redis("redis-50", "redis GET, 50 clients, pipelines of 16", 50, 16, 500),
    # Both poll: by TCP with sockets that do not block, by ring with a call that waits.
    sockperf("sockperf-poll", "sockperf 64 B, both poll, a CPU each", cpus=(0, 1), spin=1000, tcp_words=("--nonblocked",)),
    sockperf("sockperf-sleep", "sockperf 64 B, both sleep", spin=0),
    # Else the kernel chooses, and another way each time it is asked: beside each other, or both on one CPU.
    sockperf("sockperf-apart", "sockperf 64 B, both sleep, a CPU each", cpus=(0, 1), spin=0),
    sockperf("sockperf-shared", "sockperf 64 B, both on one CPU", cpus=(0, 0)),
    iperf3("iperf3-1", "iperf3, 1 stream", 1),
    iperf3("iperf3-4", "iperf3, 4 streams", 4),
    Load("nginx", "nginx, a file of 612 B, wrk with 8 connections", KILO_RATE, SMALL_FILE, ("nginx", "wrk"), nginx_server,
         wrk_client, read_wrk),
    Load("memcached", "memcached, 1 KiB, memaslap with 8 connections", KILO_RATE, 1024, ("memcached", "memcaslap"), memcached_server,
         memaslap_client, read_memaslap),
)
KNOWN = tuple(Way(load, way) for load in LOADS for way in load.ways)
WITHOUT_DAEMON = tuple(Way(load, way) for load in LOADS for way in ABSENT_LABELS)


def rows(points, chosen, labels=WAY_LABELS, ours=RING):
    """One row for each load, a column for each way: medians with the least and the largest, and how many times ours is
    better than each other one."""
    others = [way for way in labels if way != ours]
    made = [["", "unit", *labels.values(), *(f"{labels[ours]}/{labels[way]}" for way in others), "rounds"]]
    for load in dict.fromkeys(peer.load for peer in chosen):
        figures = table.Figures(load.metric, points, "unknown", value)
        cells = [load.label, load.metric.title]
        for way in labels:
            taken = model.spread(figures.values(f"{load.name}:{way}", load.size))
            cells.append("–" if taken is None else "{0:.{3}f} ({1:.{3}f}–{2:.{3}f})".format(
                taken.median, taken.low, taken.high, load.metric.digits))
        for way in others:
            ratio = figures.ratio(f"{load.name}:{way}", load.size, f"{load.name}:{ours}")
            cells.append("–" if ratio is None else f"{ratio:.2f}x")
        made.append([*cells, str(figures.count(f"{load.name}:{ours}", load.size))])
    return made


def report(document, chosen, markdown, labels=WAY_LABELS, ours=RING):
    machine = document["machine"]
    print(f"# {machine['cpu']}, {machine['cpus']} CPUs, {document['started'][:10]}, commit {document['program']['commit']}, "
          f"load {machine['load_1min']} at the start\n")
    made = rows(document["points"], chosen, labels, ours)
    print((table.as_markdown if markdown else table.as_text)(made))
