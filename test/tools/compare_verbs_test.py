#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/compare --verbs: what it reads from programs, and a short run.

  compare_verbs_test.py SOURCE_ROOT BUILD
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import jsonschema

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1))
BUILD = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "tools"))

from ntb_compare import pair, peers, verbs  # noqa: E402

LATENCY = """ #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]
 64      4000          0.58           1507.22      0.75     \t       1.76        \t26.23  \t\t1.72    \t\t476.69
---------------------------------------------------------------------------------------
"""
BANDWIDTH = """ #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      2000             1230.10            1000.00 \t\t   0.016000
---------------------------------------------------------------------------------------
"""
UCX = "                      100000      0.250     0.033     0.033     1846.24    1846.24    30000000    20000000\n"
SETTINGS = peers.Settings(BUILD / "bench/peers", (0, 1), 20, False, False)


class Read(unittest.TestCase):
    def test_latency_is_the_median_of_whole_round_trips(self):
        self.assertAlmostEqual(verbs.read_latency(LATENCY, 64, False).seconds / 4000, 1.5e-6)
        self.assertAlmostEqual(verbs.read_latency(LATENCY, 64, True).seconds / 4000, 0.75e-6)

    def test_a_deviation_that_perftest_has_no_number_for_does_not_matter(self):
        self.assertAlmostEqual(verbs.read_latency(LATENCY.replace("26.23", "-nan"), 64, False).seconds / 4000, 1.5e-6)
        with self.assertRaisesRegex(pair.Failed, "^not understood"):
            verbs.read_latency(LATENCY.replace("0.75", "-nan"), 64, False)

    def test_bandwidth_is_the_mean_in_units_of_two_to_the_20(self):
        found = verbs.read_bandwidth(BANDWIDTH, 65536)
        self.assertEqual(found.count, 2000)
        self.assertAlmostEqual(found.count * 65536 / found.seconds, 1000 * (1 << 20))

    def test_ucx_says_halves_and_overall_rates(self):
        self.assertAlmostEqual(verbs.read_ucx(UCX, True).seconds / 100000, 0.5e-6)
        self.assertAlmostEqual(verbs.read_ucx(UCX, False).seconds, 100000 / 20e6)
        self.assertEqual(verbs.read_ucx(UCX.replace("        100000", "Final:  100000"), False).count, 100000)

    def test_what_is_not_understood_is_refused(self):
        for text in ("", "nonsense\n", LATENCY, BANDWIDTH, UCX):
            for read in (lambda said: verbs.read_latency(said, 8, False), lambda said: verbs.read_bandwidth(said, 8)):
                with self.assertRaisesRegex(pair.Failed, "^not understood", msg=text):
                    read(text)
        for text in ("", LATENCY, UCX.replace("20000000", "0")):
            with self.assertRaisesRegex(pair.Failed, "^not understood", msg=text):
                verbs.read_ucx(text, False)
        with self.assertRaisesRegex(pair.Failed, "^not understood: 65536 .* 0.00 "):  # the line that it is about
            verbs.read_bandwidth(BANDWIDTH.replace("1000.00", "0.00"), 65536)

    def test_a_run_of_long_messages_has_fewer(self):
        self.assertEqual([verbs.messages_of(size, 20) for size in (8, 4096, 65536, 1 << 20)], [40000, 20480, 1280, 100])
        self.assertEqual([verbs.trips_of(size, 20) for size in (8, 65536, 1 << 20)], [4000, 1280, 100])


class Runs(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cmp")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def compare(self, *words):
        return subprocess.run([sys.executable, str(ROOT / "tools/ntb_compare"), "--programs", str(BUILD / "bench/peers"),
                               "--verbs", *words], env={**os.environ, "TMPDIR": str(self.folder)}, capture_output=True,
                              text=True, timeout=400, check=False)

    @unittest.skipIf(verbs.SEND.missing(SETTINGS) != "", verbs.SEND.missing(SETTINGS))
    def test_sends_and_the_client_library(self):
        file = self.folder / "result.json"
        done = self.compare("--only", "verbs-send", "verbs-write-direct", "client", "--sizes", "64", "--rounds", "1", "--run-ms", "50", "--json", str(file))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        document = json.loads(file.read_text())
        jsonschema.validate(document, json.loads((ROOT / "doc/result.schema.json").read_text()))
        self.assertEqual(document["skipped"], [], done.stdout)
        found = {(point["operation"], point["mode"]): point for point in document["points"]}
        for name in ("verbs-send", "verbs-write-direct", "client"):
            self.assertGreater(found[name, "latency"]["seconds"], 0)
            self.assertGreater(found[name, "rate"]["messages_per_second"], 0)
        self.assertEqual(found["verbs-send", "rate"]["pattern"], "not read")
        self.assertEqual(list(self.folder.iterdir()), [file])

    def test_bad_calls_are_one_line(self):
        for words in (["--only", "queue"], ["--sizes", "2097152"], ["--run-ms", "0"]):
            done = self.compare(*words)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, r"^compare: [^\n]+\n$", words)


if __name__ == "__main__":
    unittest.main()
