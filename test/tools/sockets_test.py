#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/ntb_sockets: what it reads from programs under the preload, and what it says of suites.

  sockets_test.py SOURCE_ROOT BUILD
"""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from unittest import mock

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1))
BUILD = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "tools"))

from ntb_compare import pair  # noqa: E402
from ntb_sockets import libuv, redis, rings, stress, suites  # noqa: E402

# A suite of one's own: its connection goes by ring where there is one.
TRAFFIC = f"""
import os, socket, sys, time, unittest
sys.path.insert(0, {str(ROOT / "tools")!r})
from ntb_sockets import rings
preloaded = "libntbsocket" in os.environ.get("LD_PRELOAD", "")
class Case(unittest.TestCase):
    def exchange(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            with socket.create_connection(listener.getsockname()) as one, listener.accept()[0] as other:
                for _ in range(2000):
                    one.sendall(bytes(1000))
                    self.assertEqual(len(other.recv(1000, socket.MSG_WAITALL)), 1000)
    def test_bytes(self):
        page = rings.Page(os.getpid(), lambda: True) if preloaded else None
        end = time.monotonic() + 30
        self.exchange()
        # Counted at the end of a connection. Its bytes may be over before the daemon has matched its ends.
        while page and page.read().received < 1000000 and time.monotonic() < end:
            self.exchange()
    @unittest.skip("always")
    def test_skipped(self):
        pass
"""
PRELOADED = 'under = "libntbsocket" in os.environ.get("LD_PRELOAD", "")\n'


class Suites(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def take(self, script, seconds=60):
        """What is printed of a suite with these tests, and the numbers of suites."""
        installed = pathlib.Path("/") / suites.library() / "test"
        (self.folder / "test").mkdir()
        for file in installed.iterdir():
            if file.name != "__pycache__" and file.name != "test_ours.py":
                (self.folder / "test" / file.name).symlink_to(file)
        (self.folder / "test/test_ours.py").write_text(script)
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
            counts = suites.run_all(suites.Suites(BUILD, self.folder, seconds=seconds), ["test_ours"], False)
        return said.getvalue(), counts

    def test_the_same_both_ways_passes_and_rings_are_counted(self):
        said, counts = self.take(TRAFFIC)
        self.assertEqual(counts, (1, 0), said)
        cells = said.splitlines()[1].split()
        self.assertEqual((cells[1:4], cells[5:8]), (["2", "0", "1"],) * 2, said)
        self.assertIn(int(cells[9]), range(2, 100, 2), "both ends of each connection that was tried")
        self.assertGreater(float(cells[10]), 1)

    def test_what_fails_with_the_preload_alone_is_named(self):
        said, counts = self.take(TRAFFIC + f"    {PRELOADED}    def test_differs(self):\n        self.assertFalse(self.under)\n")
        self.assertEqual(counts, (0, 1), said)
        self.assertIn("FAILED: test.test_ours.Case.test_differs: passed alone, failed with the preload\n", said)

    def test_a_suite_of_which_nothing_passes_alone_fails(self):
        said, counts = self.take("import unittest\nclass Case(unittest.TestCase):\n    def test_fails(self):\n        self.fail()\n")
        self.assertEqual(counts, (0, 1), said)
        self.assertIn("FAILED: test_ours: of 1 tests none passed alone\n", said)

    def test_what_fails_both_ways_is_no_difference(self):
        said, counts = self.take(TRAFFIC + "    def test_fails(self):\n        self.fail()\n")
        self.assertEqual((counts, "FAILED" in said), ((1, 0), False), said)

    def test_what_differs_once_is_told(self):
        mark = self.folder / "mark"
        script = f"    {PRELOADED}    def test_once(self):\n        if self.under and not os.path.exists('{mark}'):\n" \
                 f"            open('{mark}', 'w').close()\n            self.fail()\n"
        said, counts = self.take(TRAFFIC + script)
        self.assertEqual(counts, (1, 0), said)
        self.assertIn("differed once: test.test_ours.Case.test_once: once passed alone and failed with the preload; "
                      "again passed both ways\n", said)

    def test_a_suite_that_does_not_end_or_cannot_be_read_fails(self):
        said, counts = self.take(PRELOADED.join(["import os, time\n", "if under:\n    time.sleep(1000)\n"]) + TRAFFIC, seconds=5)
        self.assertEqual(counts, (0, 1), said)
        self.assertIn("FAILED: test_ours with the preload: ", said)

    def test_what_fails_before_the_tests_of_a_module_has_a_name(self):
        results = self.folder / "results.xml"
        results.write_text('<testsuites><testsuite><testcase><error/></testcase><testcase name="a"/></testsuite></testsuites>')
        parsed = suites.parse(results)
        self.assertEqual(parsed, {"the module": suites.FAILED, "a": suites.PASSED})
        self.assertEqual(suites.differences(suites.Run({"a": suites.PASSED}), suites.Run(parsed)),
                         [("the module", "did not run", suites.FAILED)])

    def test_a_suite_without_a_test_fails(self):
        said, counts = self.take("nothing = 0\n")
        self.assertEqual(counts, (0, 1), said)

    def test_unpacked_tests_are_joined_with_the_installed_package(self):
        system, programs = self.folder / "system", self.folder / "programs"
        for root, name in ((system, "__init__.py"), (programs, "test_socket.py")):
            (root / suites.library() / "test").mkdir(parents=True)
            self.assertIsNone(suites.find_tests(programs, self.folder, system))
            (root / suites.library() / "test" / name).write_text(f"# {name}\n")
        # What both have is the installed one.
        (programs / suites.library() / "test/__init__.py").write_text("# unpacked\n")
        found = suites.find_tests(programs, self.folder, system) / "test"
        self.assertEqual({file.name: file.read_text() for file in found.iterdir()},
                         {name: f"# {name}\n" for name in ("__init__.py", "test_socket.py")})
        (system / suites.library() / "test/test_socket.py").touch()
        self.assertEqual(suites.find_tests(programs, self.folder, system), system / suites.library())


# What Redis' tests print, by a program in their place. Under the preload it waits until its counters were found.
PRINTED = r"""
set under [expr {[info exists ::env(LD_PRELOAD)] && [string match *libntbsocket* $::env(LD_PRELOAD)]}]
puts "\[ok\]: of two lists (3 ms)"
puts [expr {$under ? "\[err\]: differs in tests/unit/protocol.tcl\nExpected 1" : "\[ok\]: differs (1 ms)"}]
puts "\[ignore\]: large: Tag: denied"
puts "\\o/ All tests passed without errors!"
while {$under && ![file exists SEEN[pid]]} {after 1}
"""


class Redis(unittest.TestCase):
    def test_results_are_read_without_times_files_and_colours(self):
        text = "[ready]: 4711\n[testing]: a\n\x1b[1;32m[ok]\x1b[0m: a (b) (12 ms)\n\x1b[0;32m[\x1b[1;32mok\x1b[0m]: c (0 ms)\n" \
               "[err]: d in e in tests/unit/type/list.tcl\nExpected [ok]: no\n[skip]: f\n[ignore]: g: Tag: needs:debug denied\n" \
               "[1/1 done]: unit/type/list (3 seconds)\n!!! WARNING The following tests failed:\n" \
               "*** [err]: d in e in tests/unit/type/list.tcl\n"
        expected = {"a (b)": suites.PASSED, "c": suites.PASSED, "d in e": suites.FAILED, "f": suites.SKIPPED,
                    "g: Tag: needs:debug denied": suites.SKIPPED}
        self.assertEqual(redis.parse(text), (expected, ""))

    def test_the_worst_of_a_name_counts(self):
        for order in (("ok", "err", "ok"), ("err", "ok", "ok")):
            text = "".join("[ok]: a (1 ms)\n" if word == "ok" else "[err]: a in tests/unit/b.tcl\n" for word in order)
            self.assertEqual(redis.parse(text)[0], {"a": suites.FAILED})

    def test_a_run_that_broke_off_is_trouble(self):
        self.assertEqual(redis.parse("[ok]: a (1 ms)\n")[1], "it did not come to its end")
        self.assertEqual(redis.parse("[exception]: Executing test client: no such thing.\n")[1],
                         "exception: Executing test client: no such thing.")
        self.assertEqual(redis.parse("[TIMEOUT]: clients state report follows.\n")[1],
                         "timeout: clients state report follows.")

    def test_what_is_not_there_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertRegex(redis.missing(pathlib.Path(folder)), "their source$")

    def test_a_unit_is_run_both_ways_and_judged(self):
        with tempfile.TemporaryDirectory() as folder:
            tests = pathlib.Path(folder) / "tests"
            tests.mkdir()
            (tests / "test_helper.tcl").write_text(PRINTED.replace("SEEN", f"{folder}/seen."))
            if why := redis.missing(tests.parent):
                self.skipTest(f"there is missing: {why}")
            said, look = io.StringIO(), rings.Tree.look

            def look_and_tell(tree):
                look(tree)
                if tree.pages:
                    (pathlib.Path(folder) / f"seen.{tree.pid}").touch()

            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()), \
                    mock.patch.object(rings.Tree, "look", look_and_tell):
                runner = suites.Several({"redis:unit/protocol": redis.Units(BUILD, tests.parent)})
                counts = suites.run_all(runner, ["redis:unit/protocol"], False)
        self.assertEqual(counts, (0, 1), said.getvalue())
        self.assertIn("FAILED: differs: passed alone, failed with the preload\n", said.getvalue())
        cells = said.getvalue().splitlines()[1].split()
        self.assertEqual((cells[1:4], cells[5:8]), (["3", "0", "1"], ["3", "1", "1"]), said.getvalue())


# A program in the place of libuv's tests, or of stress-ng, that says the same of one test and something else of another.
# Under the preload it waits until its counters were found.
OTHER = r"""#!/bin/sh
[ "$1" = --list ] && { echo tcp_same; echo tcp_differs; echo fs_other; exit; }
case $LD_PRELOAD in *libntbsocket*) under=1; while [ ! -e SEEN ]; do sleep 0.01; done ;; esac
case "$*" in
*tcp_differs*) echo "${under:+not }ok 1 - tcp_differs" ;;
*tcp_same*) echo "ok 1 - tcp_same # SKIP no reason" ;;
*--timeout*differs*) exit ${under:+2} ;;
*skipped*) exit 4 ;;
esac
"""


class Others(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)
        self.folder.chmod(0o755)
        self.program = self.folder / "program"
        self.program.write_text(OTHER.replace("SEEN", f"{self.folder}/seen"))
        self.program.chmod(0o755)

    def judge(self, suite, runner):
        said, look = io.StringIO(), rings.Tree.look

        def look_and_tell(tree):
            look(tree)
            if tree.pages:
                (self.folder / "seen").touch()

        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()), \
                mock.patch.object(rings.Tree, "look", look_and_tell):
            counts = suites.run_all(suites.Several({suite: runner}), [suite], False)
        cells = said.getvalue().splitlines()[1].split()
        self.assertEqual((counts, cells[1:4], cells[5:8]), ((0, 1), ["2", "0", "1"], ["2", "1", "1"]), said.getvalue())
        return said.getvalue()

    def test_a_group_of_libuvs_tests_is_run_both_ways_and_judged(self):
        (self.folder / "build").mkdir()
        (self.folder / "test/fixtures").mkdir(parents=True)
        self.assertEqual(libuv.missing(self.folder), "the program of its tests")
        self.program.rename(self.folder / libuv.PROGRAM)
        self.assertEqual(libuv.missing(self.folder), "")
        said = self.judge("libuv:tcp", libuv.Groups(BUILD, self.folder))
        self.assertIn("FAILED: tcp_differs: passed alone, failed with the preload\n", said)

    def test_the_rest_of_libuvs_tests_is_what_no_other_group_has(self):
        self.program.write_text("#!/bin/sh\necho tcp_one; echo poll_one; echo 'fs_one (helpers: tcp_helper)'; echo timer_one\n")
        groups = libuv.Groups(BUILD, self.folder)
        self.assertEqual(groups.names("libuv:tcp", [], self.program), ["tcp_one"])
        self.assertEqual(groups.names("libuv:rest", [], self.program), ["fs_one", "timer_one"])

    def test_what_libuvs_tests_print_is_read(self):
        text = "1..3\nok 1 - a\n# Output from process `a`:\nnot ok 2 - b\nok 3 - c # SKIP why\n"
        self.assertEqual(libuv.parse(text), {"a": suites.PASSED, "b": suites.FAILED, "c": suites.SKIPPED})

    def test_a_stressor_is_run_both_ways_and_judged(self):
        settings = {"sock": {"differs": ["--differs"], "not here": ["--skipped"]}}
        with mock.patch.object(stress.programs, "find", lambda name: self.program):
            said = self.judge("stress-ng:sock", stress.Stressors(BUILD, settings, 1))
        self.assertIn("FAILED: differs: passed alone, failed with the preload\n", said)


class Counters(unittest.TestCase):
    def test_a_process_that_has_ended_has_none_below_it_and_no_page(self):
        child = subprocess.Popen(["/bin/true"])
        child.wait()
        self.assertEqual(rings.descendants(child.pid), [child.pid])
        self.assertIsNone(rings.find_page(child.pid))

    def test_pages_below_a_process_are_added_up_and_outlive_it(self):
        with tempfile.TemporaryDirectory() as folder, pair.group() as processes:
            page = rings.FIGURES.pack(rings.MAGIC, rings.VERSION, 1, b"program", 1, 2, 3)
            script = pathlib.Path(folder) / "script"
            script.write_text(f"import os, time\nfile = os.memfd_create('ntbsocket-figures')\nos.pwrite(file, {page!r}, 0)\n"
                              "time.sleep(1000)\n")
            number = processes.start(["sh", "-c", f"{sys.executable} {script} & {sys.executable} {script} & wait"])
            tree, end = rings.Tree(processes.members[number].pid), time.monotonic() + 60
            while len(tree.pages) < 2 and time.monotonic() < end:
                tree.look()
                time.sleep(0.01)
            tree.look()
            processes.end()
            tree.look()
            self.assertEqual(tree.read(), rings.Counts(2, 4, 6))
            tree.close()

    def test_a_program_without_the_preload_has_none(self):
        with pair.group() as processes:
            number = processes.start(["true"])
            with self.assertRaisesRegex(pair.Failed, "^the preload is not in the program$"):
                rings.Page(processes.members[number].pid, lambda: processes.running(number))

    def test_a_page_that_is_not_yet_written_is_waited_for(self):
        with tempfile.TemporaryDirectory() as folder, pair.group() as processes:
            made, go = pathlib.Path(folder) / "made", pathlib.Path(folder) / "go"
            page = rings.FIGURES.pack(rings.MAGIC, rings.VERSION, 1, b"program", 1, 2, 3)
            number = processes.start([sys.executable, "-c", f"""
import os, pathlib, time
file = os.memfd_create("ntbsocket-figures")
pathlib.Path({str(made)!r}).touch()
while not os.path.exists({str(go)!r}):
    time.sleep(0.001)
os.pwrite(file, {page!r}, 0)
while True:
    time.sleep(1000)
"""])
            looks = 0

            def running():
                nonlocal looks
                looks += made.exists()
                if looks == 3:
                    go.touch()
                return processes.running(number)

            found = rings.Page(processes.members[number].pid, running)
            self.assertEqual((found.read(), looks >= 3), (rings.Counts(1, 2, 3), True))
            found.close()


if __name__ == "__main__":
    unittest.main()
