#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/compare: what it does with runs, with peers that fail, and what it leaves behind.

  compare_test.py SOURCE_ROOT FOLDER    FOLDER: of the peer programs
"""
import contextlib
import dataclasses
import io
import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import tempfile
import time
import unittest

import jsonschema

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1))
PROGRAMS = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "tools"))

from ntb_compare import pair, peers, result, table, testpmd  # noqa: E402
from ntb_compare import __main__ as main_of_compare  # noqa: E402

LINE = {"bytes": 64, "class": "other", "stayed": True, "probe_ns": [200.0, 210.0], "ran": 1.0,
        "round_trips": {"count": 1000, "seconds": 0.0004}, "messages": {"count": 1000, "seconds": 0.00002},
        "latency": {"count": 2, "min": 1, "mean": 2, "max": 3, "p50": 2, "p90": 3, "p99": 3, "p99_9": 3, "p99_99": 3,
                    "histogram": [[1.0, 2.0, 1], [3.0, 4.0, 1]]}}
UNIX = next(peer for peer in peers.OTHERS if peer.name == "unix")


def line(**changes):
    return {**LINE, **changes}


def processes_of(folder):
    """Those whose command line names something in a folder."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(folder) in entry.read_bytes().decode(errors="replace"):
                found.append(entry.parent.name)
        except OSError:
            continue
    return found


def compare(*words, temporary=None):
    return [sys.executable, str(ROOT / "tools/ntb_compare"), "--programs", str(PROGRAMS), *words], \
        {**os.environ, **({"TMPDIR": str(temporary)} if temporary else {})}


def run(*words, temporary=None):
    command, environment = compare(*words, temporary=temporary)
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=False)


class Tables(unittest.TestCase):
    def points(self, values, peer, **changes):
        made = []
        for repeat, nanoseconds in enumerate(values):
            count = {"count": 1000, "seconds": nanoseconds * 1e-6}
            made += result.points(peer, line(round_trips=count, latency=None, **changes), repeat)
        return made

    def test_median_and_ratio_are_taken_round_by_round(self):
        points = self.points([100, 200, 900], peers.LIMIT) + self.points([200, 200, 900], UNIX)
        figures = table.Figures(table.ROUND_TRIP, points, "other")
        self.assertAlmostEqual(figures.median("unix", 64), 200)
        self.assertAlmostEqual(figures.ratio("unix", 64), 1)  # of 2, 1 and 1
        self.assertEqual(figures.count("unix", 64), 3)

    def test_rates_are_better_when_larger(self):
        points = result.points(peers.LIMIT, LINE, 0)
        points += result.points(UNIX, line(messages={"count": 1000, "seconds": 0.00004}), 0)
        self.assertAlmostEqual(table.Figures(table.RATE, points, "other").ratio("unix", 64), 2)
        self.assertAlmostEqual(table.Figures(table.THROUGHPUT, points, "other").median("unix", 64), 1.6)

    def test_other_classes_and_disturbed_runs_do_not_count(self):
        points = self.points([100], UNIX)
        points += self.points([700], UNIX, stayed=False) + self.points([800], UNIX, ran=0.5)
        points += self.points([900], UNIX, **{"class": "far"})
        figures = table.Figures(table.ROUND_TRIP, points, "other")
        self.assertAlmostEqual(figures.median("unix", 64), 100)
        self.assertEqual([p["error"] != "" for p in points if p["mode"] == "latency"], [False, True, True, False])

    def test_standing_says_who_is_ahead(self):
        points = self.points([100], peers.OURS) + self.points([250], UNIX)
        said = list(table.standing(table.ROUND_TRIP, points, "other", peers.OURS, [UNIX], [8, 64]))
        self.assertEqual(said, ["64 B: 2.50x ahead of AF_UNIX, polled"])
        points = self.points([300], peers.OURS) + self.points([250], UNIX)
        said = list(table.standing(table.ROUND_TRIP, points, "other", peers.OURS, [UNIX], [64]))
        self.assertEqual(said, ["64 B: 1.20x behind AF_UNIX, polled"])

    def test_a_peer_without_a_run_that_counts_is_named_with_the_reason(self):
        points = self.points([100], peers.OURS) + self.points([700], UNIX, stayed=False) + self.points([900], UNIX, **{"class": "far"})
        points += self.points([800], UNIX, ran=0.5) + self.points([800], UNIX, ran=0.25)
        said = list(table.left_out([p for p in points if p["mode"] == "latency"], "other", [peers.LIMIT, peers.OURS, UNIX]))
        self.assertEqual(said, ["AF_UNIX, polled: other programs had the CPU, 2 of 4 runs; the CPUs were moved meanwhile, 1 of 4 runs; "
                                "in class far, 1 of 4 runs"])

    def report(self, points):
        document = {"machine": {"cpu": "a CPU", "load_1min": 1.0}, "started": "2026-11-21T00:00:00Z", "points": points}
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            main_of_compare.report(document, [peers.LIMIT, peers.OURS, UNIX], [64], False)
        return said.getvalue()

    def test_without_a_run_that_counts_there_is_no_table_and_no_class(self):
        said = self.report(self.points([100], peers.OURS, stayed=False))
        self.assertIn(" no class, 0 of ", said)
        self.assertIn("# not in the tables: ntbmsg, queue pair: the CPUs were moved meanwhile, ", said)
        self.assertIn("--realtime", said)
        self.assertNotIn("Round trip", said)
        said = self.report(self.points([100], peers.OURS) + self.points([700], UNIX, stayed=False))
        self.assertIn(" class other, ", said)
        self.assertIn("# not in the tables: AF_UNIX, polled: ", said)
        self.assertIn("Round trip", said)

    def test_messages_are_not_ranked_beside_puts(self):
        put = dataclasses.replace(UNIX, name="put", label="a put", kind="put")
        points = self.points([100], peers.OURS) + self.points([200], peers.WRITE)
        points += self.points([250], UNIX) + self.points([50], put)
        for ours, said in ((peers.OURS, "64 B: 2.50x ahead of AF_UNIX, polled"), (peers.WRITE, "64 B: 4.00x behind a put")):
            self.assertEqual(list(table.standing(table.ROUND_TRIP, points, "other", ours, [UNIX, put], [64])), [said])

    def test_what_is_not_read_is_marked_and_not_ranked(self):
        lazy = dataclasses.replace(UNIX, read=False)
        points = self.points([100], peers.OURS) + self.points([10], lazy)
        self.assertEqual(list(table.standing(table.ROUND_TRIP, points, "other", peers.OURS, [lazy], [64])), [])
        made = table.rows(table.ROUND_TRIP, points, "other", [lazy], [64])
        self.assertEqual(made[1][0], "AF_UNIX, polled (not read)")
        self.assertIn("| AF_UNIX, polled (not read) | 10 |", table.as_markdown(made))


class Pairs(unittest.TestCase):
    """Peer programs that do not behave."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.settings = peers.Settings(self.folder, (0, 1), 1, False, False)

    def peer(self, script):
        program = self.folder / "program"
        program.write_text("#!/bin/sh\n" + script)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return dataclasses.replace(UNIX, program="program")

    def test_the_reason_of_a_failure_is_told_and_the_other_side_ended(self):
        began = time.monotonic()
        with self.assertRaisesRegex(pair.Failed, "^no such thing$"):
            self.peer('[ "$2" = 0 ] && { echo no such thing >&2; exit 3; }; exec sleep 1000').run([8], self.settings)
        self.assertLess(time.monotonic() - began, peers.PAIR_SECONDS)
        self.assertEqual(processes_of(self.folder), [])

    def test_the_reason_is_what_the_program_said_and_not_what_its_libraries_said_later(self):
        script = ('[ "$2" = 0 ] || exec sleep 1000\n'
                  'for line in "program: no message came: Bad message" "program: 8 bytes do not get through" '
                  '"PLX_NTB: raw0: lost: this side stops"; do echo "$line" >&2; done; exit 1')
        with self.assertRaisesRegex(pair.Failed, "^no message came: Bad message; 8 bytes do not get through$"):
            self.peer(script).run([8], self.settings)

    def test_the_side_that_only_waited_does_not_give_the_reason(self):
        script = ('[ "$2" = 1 ] && { echo "program: a line was torn" >&2; touch "$0.done"; exit 1; }\n'
                  'while [ ! -e "$0.done" ]; do :; done; echo "program: the other side does not come" >&2; exit 1')
        with self.assertRaisesRegex(pair.Failed, "^a line was torn$"):
            self.peer(script).run([8], self.settings)

    def test_who_hangs_is_ended_with_its_children(self):
        peers_seconds, peers.PAIR_SECONDS = peers.PAIR_SECONDS, 0.5
        self.addCleanup(setattr, peers, "PAIR_SECONDS", peers_seconds)
        mark = self.folder / "child"
        script = f"sh -c 'trap \"\" TERM INT; sleep 1000 & wait # {mark}' & wait"
        with self.assertRaisesRegex(pair.Failed, "not done after"):
            self.peer(script).run([8], self.settings)
        self.assertEqual(processes_of(self.folder), [])

    def test_nonsense_is_refused(self):
        with self.assertRaisesRegex(pair.Failed, "not understood"):
            self.peer('echo "{nonsense"').run([8], self.settings)

    def test_a_socket_that_does_not_come_is_a_failure(self):
        server = dataclasses.replace(self.peer("echo no permission >&2; exit 1"), server_first=True)
        with self.assertRaisesRegex(pair.Failed, "no permission"):
            server.run([8], self.settings)

    def test_a_program_that_is_missing_names_its_package(self):
        why = dataclasses.replace(UNIX, program="nothing", packages=("libnothing-dev",)).missing(self.settings)
        self.assertEqual(why, "nothing was not built: apt-get install libnothing-dev")


    def fake_testpmd(self, script, name="testpmd-copy"):
        """A program of that name, found first."""
        program = self.folder / "dpdk-testpmd"
        program.write_text('#!/bin/bash\n[[ "$*" =~ (socket|iface|cable)=([^, ]*) ]] && touch "${BASH_REMATCH[2]}"\n' + script)
        program.chmod(0o755)
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = f"{self.folder}:{path}"
        return next(peer for peer in testpmd.PEERS if peer.name == name)

    def test_the_last_figure_of_testpmd_counts(self):
        peer = self.fake_testpmd('for n in 10 2000 3000; do echo "  Rx-pps:   $n   Rx-bps: 1"; done; exec sleep 1000')
        self.assertEqual(peer.missing(dataclasses.replace(self.settings, programs=PROGRAMS, huge=True)), "")
        self.assertEqual(peer.measure(64, self.settings)[0], 3000)
        self.assertEqual(processes_of(self.folder), [])

    def test_testpmd_over_our_port_takes_the_driver_that_was_built(self):
        programs = self.folder / "bench/peers"
        driver = self.folder / "drivers/net/plx_ntb" / peers.PORT_DRIVER
        settings = dataclasses.replace(self.settings, programs=programs, huge=True)
        peer = self.fake_testpmd('[[ "$*" == *" -d librte_net_plx_ntb.so "*"--vdev=net_plx_ntb0,cable="* ]] || exit 3\n'
                                 f'[[ "$LD_LIBRARY_PATH:" == "{driver.parent}:{self.folder}/drivers/raw/plx_ntb:"* ]] || exit 4\n'
                                 'for n in 1 2 3; do echo "  Rx-pps:   $n   Rx-bps: 1"; done; exec sleep 1000', "testpmd-port")
        for file in (programs / peer.program, driver):
            self.assertIn(f"{file.name} was not built", peer.missing(settings))
            file.parent.mkdir(parents=True)
            file.touch()
        self.assertEqual(peer.missing(settings), "")
        self.assertEqual(peer.measure(64, settings)[0], 3)

    def test_each_testpmd_has_a_socket_to_wait_for(self):
        for peer in testpmd.PEERS:
            for side in (0, 1):
                command = peer.command(side, 64, self.folder, self.settings)
                self.assertIn(f"={self.folder / peers.SOCKET}", " ".join(command), peer.name)
                self.assertEqual("-d" in command, peer.name.startswith("testpmd-port"))

    def test_testpmd_that_ends_is_a_failure(self):
        with self.assertRaisesRegex(pair.Failed, "no hugepages"):
            self.fake_testpmd("echo no hugepages >&2; exit 1").measure(64, self.settings)


@unittest.skipIf(len(os.sched_getaffinity(0)) < 2, "two CPUs are needed")
class Runs(unittest.TestCase):
    """The real thing, short."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cmp")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.file = self.folder / "result.json"

    def checked(self):
        document = json.loads(self.file.read_text())
        jsonschema.validate(document, json.loads((ROOT / "doc/result.schema.json").read_text()))
        return document

    def test_ours_beside_a_socket(self):
        done = run("--only", "queue", "send", "write", "unix", "--sizes", "8,128,65536", "--rounds", "1", "--run-ms", "20",
                   "--realtime", "--json", str(self.file), temporary=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        document = self.checked()
        self.assertEqual(document["skipped"], [])
        self.assertTrue(document["complete"])
        self.assertEqual(document["program"]["command"].split()[:4], ["tools/compare", "--only", "queue", "send"])
        taken = {(p["operation"], p["size"], p["mode"], p["clock"]) for p in document["points"]}
        kinds = [("latency", "off"), ("latency", "on"), ("rate", "off")]
        self.assertEqual(taken, {(peer, size, *kind) for peer in ("queue", "send", "write", "unix", "limit")
                                 for size in (8, 128, 65536)
                                 for kind in kinds if peer != "limit" or kind[1] == "off"})
        self.assertEqual(list(self.folder.iterdir()), [self.file])

    @unittest.skipUnless((PROGRAMS.parents[1] / "drivers/net/plx_ntb" / peers.PORT_DRIVER).exists(), "a static build")
    def test_our_port_beside_its_queue_pair(self):
        done = run("--only", "queue", "port", "--sizes", "64,1518,4096", "--rounds", "1", "--run-ms", "1", "--realtime",
                   "--json", str(self.file), temporary=self.folder)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        document = self.checked()
        self.assertEqual(document["skipped"], [])
        taken = {(p["size"], p["mode"]) for p in document["points"] if p["operation"] == "port"}
        self.assertEqual(taken, {(size, mode) for size in (64, 1518) for mode in ("latency", "rate")})

    def test_a_signal_keeps_what_was_measured(self):
        command, environment = compare("--only", "unix", "--rounds", "100", "--realtime", "--json", str(self.file),
                                       temporary=self.folder)
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        end = time.monotonic() + 60
        while not self.file.exists() and process.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        errors = process.communicate(timeout=60)[1]
        self.assertEqual((process.returncode, errors), (130, b""))
        document = self.checked()
        self.assertTrue(document["interrupted"] and not document["complete"])
        self.assertTrue(document["points"])
        self.assertEqual(list(self.folder.iterdir()), [self.file])
        self.assertEqual(processes_of(self.folder), [])

    def test_bad_calls_are_one_line(self):
        for words in (["--only", "nothing"], ["--sizes", "8,x"], ["--sizes", "70000"], ["--rounds", "0"],
                      ["--cpus", "0"], ["--cpus", "0,0"], ["--run-ms", "5000"],
                      ["--only", "unix", "--rounds", "1", "--run-ms", "1", "--json", "/nowhere/file"]):
            done = run(*words, temporary=self.folder)
            self.assertEqual(done.returncode, 2, words)
            self.assertRegex(done.stderr, r"^compare: [^\n]+\n$", words)


if __name__ == "__main__":
    unittest.main()
