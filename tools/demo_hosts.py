# SPDX-License-Identifier: BSD-3-Clause
"""The two hosts of tools/demo: starts them, reads their results, prints what they say, and makes a
page of it."""

import argparse
import filecmp
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))

from ntb_report import load, model  # noqa: E402

SIZES = "8-64K"
LIMIT_SIZES = "8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768,65536"
RUN_SECONDS = "0.1"
LOAD = ["--mode", "load", "--size", "64,1K", "--rate", "100K,300K,1M,3M,10M,30M"]
SWEEP_TIMEOUT = 100
HOST_TIMEOUT = 30
# A core that is taken away for more than this part of the time spoils the figures.
BUSY = 0.02
DEVICE = "raw_plx_ntb0"


def cores():
    """The CPU of each host: two different ones where there are two."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) == 1:
        print("one CPU for both hosts: they take turns, so expect milliseconds", file=sys.stderr)
    return allowed[0], allowed[-1]


class Hosts:
    """A serving process that lives as long as this object, and clients that come and go."""

    def __init__(self, program, memory, scratch):
        self.program = program
        self.scratch = pathlib.Path(scratch)
        self.name = pathlib.Path(program).name
        self.memory = (["--in-memory"] if memory == "huge"
                       else ["--no-huge", "-m", "512", "--no-shconf"])
        self.server_core, self.client_core = cores()
        self.log = self.scratch / f"{self.name}.log"
        with open(self.log, "wb") as log:
            self.server = subprocess.Popen(self.command(self.server_core, ["--serve"]),
                                           stdout=log, stderr=log)

    def command(self, core, own):
        eal = ["-l", str(core), "--no-pci", "--no-telemetry", "--log-level=lib.eal:error",
               f"--vdev={DEVICE},cable={self.scratch / self.name}.cable"]
        # No host outlives this process, however it ends.
        return ["setpriv", "--pdeathsig", "TERM", self.program, *eal, *self.memory, "--", *own]

    def drive(self, result, timeout, *own):
        """Runs one client. Returns what it wrote to `result`, or ends the demo with what it said."""
        result.unlink(missing_ok=True)
        words = [*own, "--quiet", "--json", str(result)]
        done = subprocess.run(self.command(self.client_core, words), capture_output=True, text=True,
                              timeout=timeout, check=False)
        if done.returncode != 0 or not result.exists():
            sys.exit(f"demo: the client failed:\n{done.stdout}{done.stderr}"
                     f"the serving host says:\n{self.log.read_text()}")
        return json.loads(result.read_text())

    def waited(self):
        """Which part of its time the serving host wanted to run and something else did."""
        pid = self.server.pid
        ran, delayed = pathlib.Path(f"/proc/{pid}/schedstat").read_text().split()[:2]
        return int(delayed) / (int(ran) + int(delayed))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
        try:
            self.server.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()


def echo_file(hosts, file, results):
    back = hosts.scratch / "back"
    report = hosts.drive(hosts.scratch / "report.json", HOST_TIMEOUT, "--send", str(file), "--out", str(back))
    same = filecmp.cmp(file, back, shallow=False)
    back.unlink()
    if not same:
        sys.exit("demo: what came back is not what was sent")
    report["file"] = file.name
    (results / "echo.json").write_text(json.dumps(report, indent=2) + "\n")
    trip = report["round_trip_ns"]
    print(f"{file.name}: {report['bytes']} bytes in {report['messages']} messages of "
          f"{report['size']} bytes went to the other host and back")
    print(f"  compared while it came and again as a file: identical, "
          f"CRC-32C {report['crc32c_back']}")
    print(f"  {report['in_flight']} messages in flight: round trip p50 {trip['p50'] / 1e3:.1f} us, "
          f"p99 {trip['p99'] / 1e3:.1f} us; "
          f"{report['bytes_per_second'] / 1e9:.2f} GB/s each way, every byte compared\n")


def rows_of(built):
    """One for each size, of the figures that the page shows."""
    by_size = {}
    for figure in built.figures:
        if figure.operation != model.LIMIT and figure.mode in ("latency", "rate"):
            by_size.setdefault(figure.size, {})[figure.mode] = figure
    for size, found in sorted(by_size.items()):
        trip, rate = found.get("latency"), found.get("rate")
        if trip and rate and trip.latency("p50") and rate.rate():
            yield size, trip, rate


def marks_of(built, figure):
    return figure.placement + ("*" if figure.disturbed else "")


def print_table(built):
    print(f"{'message':>8}  {'round trip, one message in flight':^44}  {'one way, as fast as it goes':^32}")
    print(f"{'bytes':>8}  {'p50':>9} {'p99':>9} {'p99.9':>9} {'class':>7}       {'M msg/s':>9} {'GB/s':>8} {'class':>7}")
    spoilt = False
    for size, trip, rate in rows_of(built):
        p50, p99, p99_9 = (trip.latency(name).median / 1e3 for name in model.QUANTILES)
        print(f"{size:>8}  {p50:>6.2f} us {p99:>6.2f} us {p99_9:>6.2f} us {marks_of(built, trip):>7}       "
              f"{rate.rate().median / 1e6:>9.3f} {rate.throughput().median / 1e9:>8.3f} {marks_of(built, rate):>7}")
        spoilt = spoilt or trip.disturbed or rate.disturbed
    print("   class  how near the two cores were to each other, from smt to far (doc/reading-numbers.md)")
    if spoilt:
        print("       *  something else had a core of the two hosts, or the cores were moved")


def sweep(hosts, results):
    """Measures."""
    hosts.drive(results / "sweep.json", SWEEP_TIMEOUT, "--mode", "latency,rate", "--size", SIZES, "--seconds",
                RUN_SECONDS)
    hosts.drive(results / "load.json", SWEEP_TIMEOUT, *LOAD, "--seconds", RUN_SECONDS)
    waited = hosts.waited()
    if waited > BUSY:
        print(f"This machine has other work: {waited:.0%} of the time the serving host waited for "
              "its core,\nso rates are too low and the worst round trips are the scheduler's.\n")


def make_page(options):
    """What the two cores could do at best, and everything on one page. Returns what the page is made of."""
    tools, results = pathlib.Path(__file__).resolve().parent, options.results
    # Both were built from one tree.
    commit = json.loads((results / "sweep.json").read_text())["program"]["commit"]
    subprocess.run([sys.executable, tools / "ntb_compare", "--programs", options.peers, "--only", "limit", "--sizes",
                    LIMIT_SIZES, "--rounds", "3", "--commit", commit, "--json", results / "limit.json"],
                   stdout=subprocess.DEVNULL, timeout=HOST_TIMEOUT, check=False)
    files = [file for name in ("sweep", "load", "limit") if (file := results / f"{name}.json").exists()]
    subprocess.run([tools / "report", "-o", results / "report.html", *files],
                   stdout=subprocess.DEVNULL, timeout=HOST_TIMEOUT, check=True)
    return model.build([load.load(file) for file in files])


def stop(_signal, _frame):
    sys.exit("demo: ended by a signal")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--echo", required=True, help="the ntbmsg-echo program")
    parser.add_argument("--pktgen", required=True, help="the ntbmsg-pktgen program")
    parser.add_argument("--peers", required=True, help="the folder of peer_limit")
    parser.add_argument("--memory", choices=["huge", "small"], required=True)
    parser.add_argument("--scratch", required=True, type=pathlib.Path)
    parser.add_argument("--results", required=True, type=pathlib.Path)
    parser.add_argument("file", type=pathlib.Path)
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    options.results.mkdir(exist_ok=True)
    with Hosts(options.echo, options.memory, options.scratch) as hosts:
        echo_file(hosts, options.file, options.results)
    with Hosts(options.pktgen, options.memory, options.scratch) as hosts:
        sweep(hosts, options.results)
    print_table(make_page(options))
    print(f"\npage: {options.results}/report.html, with plots, percentiles, latency under load and the limit\n"
          f"data: {options.results}/echo.json, sweep.json, load.json and limit.json")


if __name__ == "__main__":
    main()
