#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/compare --sockets and --kernel: what it reads from loads, which runs it refuses, and short runs.

  compare_sockets_test.py SOURCE_ROOT BUILD
"""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

import jsonschema

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1))
BUILD = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "tools"))

from ntb_compare import calls, kernels, pair, peers, programs, result, table  # noqa: E402
from ntb_sockets import rings  # noqa: E402

LOADS = {load.name: load for load in programs.LOADS}
SOCKPERF = """sockperf: [Total Run] RunTime=1.0 sec; Warm up time=400 msec; SentMessages=1000; ReceivedMessages=999
sockperf: ====> avg-latency=4.684 (std-dev=1.0)
sockperf: Summary: Latency is 5.500 usec
sockperf: Total 900 observations; each percentile contains 9.00 observations
sockperf: ---> <MAX> observation =  100.500
sockperf: ---> percentile 99.999 =   90.000
sockperf: ---> percentile 99.990 =   80.000
sockperf: ---> percentile 99.900 =   70.000
sockperf: ---> percentile 99.000 =   60.000
sockperf: ---> percentile 90.000 =   50.000
sockperf: ---> percentile 75.000 =   40.000
sockperf: ---> percentile 50.000 =    4.250
sockperf: ---> percentile 25.000 =    3.000
sockperf: ---> <MIN> observation =    2.500
"""
WRK = """Running 1s test @ http://127.0.0.2:1/small
  1 threads and 8 connections
  20500 requests in 1.02s, 16.50MB read
Requests/sec:  20098.03
"""

MEMASLAP = """servers: 127.0.0.2:21511
threads count: 1
written_bytes: 5394800
read_bytes: 19977405
object_bytes: 3383680

Run time: 2.0s Ops: 31089 TPS: 15535 Net_rate: 12.1M/s
"""


class Calls(unittest.TestCase):
    LINE = ('{"call":"an echo","libc_ns":1000.0,"preload_ns":1025.0,"ratio":1.0251,"low":0.9,"high":1.1,'
            '"control":1.0004,"turns":300}\n')

    def test_rows(self):
        self.assertEqual(calls.rows(calls.read(self.LINE))[1:],
                         [["an echo", "1.00", "1.02", "1.025", "0.900–1.100", "1.000", "300"]])

    def test_what_is_not_understood(self):
        for text in ("", "{}\n", "[1]\n", "send: Connection refused\n", self.LINE + "7\n"):
            with self.subTest(text), self.assertRaisesRegex(pair.Failed, "not understood"):
                calls.read(text)

    def test_needs_the_preload(self):
        done = subprocess.run([BUILD / "bench/peers/peer_calls", "0", "127.0.0.1"], capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, "^peer_calls: send: is libc's; start it under the preload\n$")

    def test_words(self):
        for words in ((), ("x", "127.0.0.1"), ("10001", "127.0.0.1"), ("0", "::1"), ("0", "127.0.0.1", "more")):
            done = subprocess.run([BUILD / "bench/peers/peer_calls", *words], capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, "^peer_calls: usage: ", words)


class Read(unittest.TestCase):
    def test_redis(self):
        taken = LOADS["redis-1"].read('"test","rps"\n"SET","1000.00","1"\n"GET","60000.00","2"\n', 100)
        self.assertEqual((taken.count, taken.payload), (3000, 3000 * 95))
        self.assertAlmostEqual(taken.count / taken.seconds, 60000)

    def test_sockperf_says_halves(self):
        taken = programs.read_sockperf(SOCKPERF, 1000)
        self.assertEqual((taken.count, taken.payload), (900, 900 * 128))
        self.assertEqual([taken.latency[name] for name in ("min", "p50", "p99", "p99_99", "max", "mean")],
                         [5000, 8500, 120000, 160000, 201000, 11000])
        self.assertAlmostEqual(taken.seconds, 900 * 11e-6)

    def test_iperf3(self):
        text = json.dumps({"end": {"sum_received": {"bytes": 2 << 20, "seconds": 0.5}}})
        taken = LOADS["iperf3-1"].read(text, 1)
        self.assertEqual((taken.count, taken.seconds, taken.payload), (16, 0.5, 2 << 20))

    def test_wrk(self):
        taken = programs.read_wrk(WRK, 1000)
        self.assertEqual((taken.count, taken.seconds, taken.payload), (20500, 1.02, int(16.5 * (1 << 20))))

    def test_memaslap(self):
        taken = programs.read_memaslap(MEMASLAP, 2000)
        self.assertEqual((taken.count, taken.seconds, taken.payload), (31089, 2.0, 5394800 + 19977405))

    def test_nonsense_is_refused(self):
        for read in {load.read for load in programs.LOADS}:
            for text in ("", "nonsense\n", '"GET","0","1"\n', '{"end": 3}', SOCKPERF.replace("50.000 =", "50 ="),
                         MEMASLAP.replace("Ops: 31089", "Ops: 0"), MEMASLAP.replace("read_bytes", "bytes"),
                         WRK + "  Socket errors: connect 0, read 3\n", WRK + "  Non-2xx or 3xx responses: 1\n"):
                if read is programs.read_sockperf or text != SOCKPERF:
                    with self.assertRaisesRegex(pair.Failed, "^not understood", msg=text):
                        read(text, 100)

    def test_a_run_whose_bytes_went_by_tcp_does_not_count(self):
        taken = programs.Taken(1, 1.0, 1000)
        programs.check_rings(rings.Counts(1, 500, 400), taken)
        with self.assertRaisesRegex(pair.Failed, "^899 of 1000 bytes went by ring$"):
            programs.check_rings(rings.Counts(1, 500, 399), taken)


class Table(unittest.TestCase):
    def points(self, load, way, rounds):
        peer = programs.Way(LOADS[load], way)
        made = []
        for number, taken in enumerate(rounds):
            made += result.points(peer, peer.line(taken), number)
        return made

    def test_medians_spread_and_ratios(self):
        points = self.points("redis-1", "tcp", [programs.Taken(n, 1.0, 0) for n in (10000, 20000, 90000)])
        points += self.points("redis-1", "ring", [programs.Taken(n, 1.0, 0) for n in (30000, 40000, 90000)])
        made = programs.rows(points, [programs.Way(LOADS["redis-1"], way) for way in ("tcp", "unix", "ring")])
        self.assertEqual(made[1][1:], ["1000 requests/s", "20.0 (10.0–90.0)", "–", "40.0 (30.0–90.0)", "2.00x", "–", "3"])

    def test_latency_is_better_when_smaller(self):
        def taken(half):
            return programs.read_sockperf(SOCKPERF.replace("4.250", half), 1000)
        points = self.points("sockperf-poll", "tcp", [taken("4.000")]) + self.points("sockperf-poll", "ring", [taken("0.500")])
        made = programs.rows(points, [programs.Way(LOADS["sockperf-poll"], way) for way in ("tcp", "ring")])
        self.assertEqual(made[1][1:], ["us, half of a round trip", "4.00 (4.00–4.00)", "–", "0.50 (0.50–0.50)", "8.00x", "–", "1"])


class Runs(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cmp")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.settings = peers.Settings(BUILD / "bench/peers", (0, 1), 100, False, False)

    def fake(self, server, client):
        """A load of shell scripts."""
        return programs.Load("fake", "a fake", programs.KILO_RATE, 1, ("sh",), lambda place: ["sh", "-c", server],
                             lambda place, run_ms: ["sh", "-c", client], programs.read_wrk)

    def test_what_is_missing_is_said(self):
        way = programs.Way(dataclasses.replace(self.fake("", ""), needs=("no-such-program",)), "tcp")
        self.assertEqual(way.missing(self.settings), "no-such-program is not there; run: tools/setup")
        nowhere = dataclasses.replace(self.settings, programs=self.folder / "bench/peers")
        self.assertEqual(programs.Way(self.fake("", ""), "ring").missing(nowhere), "daemon/ntbd was not built")

    def test_a_server_that_ends_is_told(self):
        with self.assertRaisesRegex(pair.Failed, "^no such port$"):
            programs.Way(self.fake("echo no such port >&2; exit 1", "true"), "tcp").run([1], self.settings)

    def test_a_load_that_fails_is_told(self):
        serve = f"exec {sys.executable} -c 'import socket, time; s = socket.create_server((\"127.0.0.2\", PORT)); time.sleep(1000)'"
        load = self.fake("", "echo no answer >&2; exit 1")
        load = dataclasses.replace(load, server=lambda place: ["sh", "-c", serve.replace("PORT", str(place.port))])
        with self.assertRaisesRegex(pair.Failed, "^no answer$"):
            programs.Way(load, "tcp").run([1], self.settings)

    @unittest.skipIf(programs.find("sockperf") is None, "there is no sockperf")
    def test_sockperf_gets_its_port(self):
        settings = dataclasses.replace(self.settings, run_ms=1000)
        line, = programs.Way(LOADS["sockperf-sleep"], "tcp").run([64], settings)
        self.assertGreater(line["latency"]["count"], 0)

    def compare(self, *words, of="--sockets"):
        return subprocess.run([sys.executable, str(ROOT / "tools/ntb_compare"), "--programs", str(BUILD / "bench/peers"),
                               of, *words], env={**os.environ, "TMPDIR": str(self.folder)}, capture_output=True,
                              text=True, timeout=400, check=False)

    @unittest.skipIf(programs.find("redis-benchmark") is None or programs.find("redis-server") is None, "there is no redis")
    def test_redis_by_three_ways(self):
        file = self.folder / "result.json"
        done = self.compare("--only", "redis-1", "--rounds", "1", "--run-ms", "200", "--json", str(file))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        document = json.loads(file.read_text())
        jsonschema.validate(document, json.loads((ROOT / "doc/result.schema.json").read_text()))
        self.assertEqual((document["complete"], document["skipped"]), (True, []))
        self.assertEqual(sorted(point["operation"] for point in document["points"]),
                         ["redis-1:ring", "redis-1:tcp", "redis-1:unix"])
        self.assertRegex(done.stdout, r"redis GET, 1 client .*x +1\n")
        self.assertEqual(list(self.folder.iterdir()), [file])

    @unittest.skipIf(programs.find("redis-benchmark") is None or programs.find("redis-server") is None, "there is no redis")
    def test_redis_without_a_daemon(self):
        file = self.folder / "result.json"
        done = self.compare("--only", "redis-1", "--rounds", "1", "--run-ms", "100", "--json", str(file), of="--without-daemon")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        self.assertEqual(sorted(point["operation"] for point in json.loads(file.read_text())["points"]),
                         ["redis-1:absent", "redis-1:tcp"])
        self.assertRegex(done.stdout, r"redis GET, 1 client .*x +1\n")
        self.assertRegex(done.stdout, r"\nsend and recv, 64 B( +[\d.]+){3} +[\d.]+–[\d.]+ +[\d.]+ +[1-9]\d+\n")
        self.assertRegex(done.stdout, r"\nconnect, accept and two closes +[\d.]+ ")

    @unittest.skipIf(programs.find("iperf3") is None, "there is no iperf3")
    @unittest.skipIf(os.geteuid() != 0 or not pathlib.Path("/dev/net/tun").exists(), "needs root and /dev/net/tun")
    def test_kernels_joined(self):
        file = self.folder / "result.json"
        done = self.compare("--only", "iperf3-1", "--rounds", "1", "--run-ms", "100", "--json", str(file), of="--kernel")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        document = json.loads(file.read_text())
        jsonschema.validate(document, json.loads((ROOT / "doc/result.schema.json").read_text()))
        # Without --huge, one way is left out.
        self.assertEqual([skipped["what"] for skipped in document["skipped"]], ["iperf3-1:memif"])
        points = {point["operation"]: point for point in document["points"]}
        self.assertEqual(sorted(points), ["iperf3-1:loopback", "iperf3-1:ntb-net", "iperf3-1:veth"])
        for point in points.values():
            self.assertGreater(point["bytes_per_second"], 0, point["operation"])
        self.assertRegex(done.stdout, r"iperf3, 1 stream .*x .* 1\n")
        self.assertEqual(list(self.folder.iterdir()), [file])

    def test_a_kernel_that_does_not_answer_is_told(self):
        lost = dataclasses.replace(kernels.KNOWN[0], way=kernels.VETH)
        joins = {**kernels.JOINS, kernels.VETH: lambda network, settings: network.call(1, "sh", "-c", "echo no way >&2; exit 1")}
        if os.geteuid() != 0:
            self.skipTest("needs root")
        with unittest.mock.patch.object(kernels, "JOINS", joins), self.assertRaisesRegex(pair.Failed, "^no way$"):
            lost.run([1], self.settings)

    def test_bad_calls_are_one_line(self):
        for words in (["--only", "queue"], ["--run-ms", "50"], ["--run-ms", "20000"]):
            done = self.compare(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, r"^compare: [^\n]+\n$", words)


if __name__ == "__main__":
    unittest.main()
