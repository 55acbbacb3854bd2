# SPDX-License-Identifier: BSD-3-Clause
"""Suites that others wrote, without and with the preload: what differs is a failure.

A test whose result differs is run once more by itself, both ways: suites have tests that a busy machine fails."""
import collections
import dataclasses
import fnmatch
import os
import pathlib
import shutil
import sys
import time
import xml.etree.ElementTree as xml

from ntb_compare import pair, table

from . import rings

PYTHON = "/usr/bin/python3"
NAMES = ("test_socket", "test_socketserver", "test_select", "test_poll", "test_epoll", "test_selectors", "test_ftplib",
         "test_httplib", "test_ssl", "test_asyncio")
# This one wants to be allowed sockets; to others the word means hosts elsewhere.
RESOURCES = {"test_socketserver": ["-u", "network"]}
# One run of one suite, in seconds.
SUITE_SECONDS = 900
# Between two looks at the processes of a run.
LOOK_SECONDS = 0.1
# Sockets of virtual machines: that class waits for ever where the kernel has them and no host answers.
IGNORED = "*VSOCK*"
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


@dataclasses.dataclass
class Run:
    """Of one suite, one way."""
    results: dict  # name of a test: PASSED, FAILED or SKIPPED
    trouble: str = ""  # why the suite did not come to its end
    counts: rings.Counts = rings.Counts()
    seconds: float = 0

    def count(self, result):
        return collections.Counter(self.results.values())[result]


def library():
    """The folder of the standard library, below which Debian's package has the tests."""
    return f"usr/lib/python{sys.version_info.major}.{sys.version_info.minor}"


def find_tests(programs, folder, system=pathlib.Path("/")):
    """A folder with a package 'test' that has the suites: the installed one, or one of links to what is installed
    and to what tools/setup unpacked. None: there is none."""
    installed, unpacked = system / library() / "test", programs / library() / "test"
    if (installed / "test_socket.py").exists():
        return installed.parent
    if not (unpacked / "test_socket.py").exists():
        return None

    def link(source, name):
        # What both have is the installed one.
        if not os.path.lexists(name):
            os.symlink(source, name)

    for source in (installed, unpacked):
        shutil.copytree(source, folder / "tests/test", copy_function=link, dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "tests"


def parse(path):
    """The results in a file of 'python3 -m test --junit-xml'."""
    try:
        cases = list(xml.parse(path).iter("testcase"))
    except (OSError, xml.ParseError) as error:
        raise pair.Failed(f"no results: {error}") from error
    results = {}
    for case in cases:
        tags = {part.tag for part in case}
        result = FAILED if tags & {"failure", "error"} else SKIPPED if "skipped" in tags else PASSED
        # Of a test that is there several times, with parts that fail, the worst counts. What fails before a module's tests
        # has no name.
        name = case.get("name") or "the module"
        results[name] = FAILED if FAILED in (result, results.get(name)) else result
    return results


class Suites:
    def __init__(self, build, tests, spin=None, seconds=SUITE_SECONDS):
        self.build, self.tests, self.spin, self.seconds = build, tests, spin, seconds

    def run(self, suite, with_rings, only=()):
        """A suite or some of its tests. With a daemon of its own, so that counters and losses are its own."""
        begin = time.monotonic()
        with pair.group() as processes:
            before = rings.Rings(self.build, processes, self.spin).under() if with_rings else []
            output = processes.folder / "results.xml"
            words = [PYTHON, "-m", "test", "--junit-xml", output, "-i", IGNORED, *RESOURCES.get(suite, ())]
            if only:
                (processes.folder / "names").write_text("\n".join(only) + "\n")
                words += ["--matchfile", processes.folder / "names"]
            # Whoever waits in vain says where.
            words += ["--timeout", str(max(1, self.seconds * 3 // 4)), suite]
            number = processes.start([*before, *words], {"PYTHONPATH": str(self.tests)})
            page, made = None, Run({})
            try:
                if with_rings:
                    page = rings.Page(processes.members[number].pid, lambda: processes.running(number))
                if not self.await_end(processes, number, begin + self.seconds):
                    made.trouble = f"not done after {self.seconds} s"
                made.results = parse(output)
            except pair.Failed as error:
                made.trouble = made.trouble or f"{error}: {pair.last_line(processes.text('err', number))}"
            if page:
                made.counts = page.read()
                page.close()
            status = processes.members[number].poll()
            if not made.trouble and status not in (0, 2, None) and not made.count(FAILED):
                made.trouble = f"ended with status {status}"
        made.seconds = time.monotonic() - begin
        return made

    @staticmethod
    def await_end(processes, number, end, look=None, every=LOOK_SECONDS):
        while processes.running(number):
            if time.monotonic() > end:
                return False
            pair.Signals.check()
            if look:
                look()
            time.sleep(every if look else 0.02)
        return True


class Several:
    """Suites of several authors. @param runners {name of a suite: what runs it}"""

    def __init__(self, runners):
        self.runners = runners

    def run(self, suite, with_rings, only=()):
        return self.runners[suite].run(suite, with_rings, only)


def differences(alone, under):
    """[(test, without, with)]"""
    names = sorted({*alone.results, *under.results})
    return [(name, alone.results.get(name, "did not run"), under.results.get(name, "did not run")) for name in names
            if alone.results.get(name) != under.results.get(name)]


def judge(suites, suite, alone, under):
    """(lines that say what differs, lines that say what differed once)"""
    trouble = [f"{suite} {way}: {run.trouble}" for way, run in (("alone", alone), ("with the preload", under)) if run.trouble]
    # Where all fail both ways nothing differs, and nothing was shown.
    if not trouble and not alone.count(PASSED):
        trouble = [f"{suite}: of {len(alone.results)} tests none passed alone"]
    first = differences(alone, under) if not trouble else []
    if not first:
        return trouble, []
    names = [name for name, _, _ in first]
    again = [suites.run(suite, with_rings, only=names) for with_rings in (False, True)]
    wrong, once = [run.trouble for run in again if run.trouble], []
    for name, without, under_it in first:
        results = [run.results.get(name, "did not run") for run in again]
        if results[0] == results[1]:
            once.append(f"{name}: once {without} alone and {under_it} with the preload; again {results[0]} both ways")
        else:
            wrong.append(f"{name}: {results[0]} alone, {results[1]} with the preload")
    return wrong, once


def row(suite, alone, under):
    cells = [suite]
    for run in (alone, under):
        cells += [str(len(run.results)), str(run.count(FAILED)), str(run.count(SKIPPED)), f"{run.seconds:.0f}"]
    counts = under.counts
    return cells + [str(counts.matched), f"{(counts.received + counts.sent) / 1e6:.1f}"]


HEAD = ["suite", "tests", "failed", "skipped", "s", "with: tests", "failed", "skipped", "s", "ends matched", "MB by ring"]


def run_all(suites, chosen, markdown):
    """Prints the table and what differs. @return (passed, failed): suites"""
    rows, wrong, once, failed = [HEAD], [], [], 0
    for suite in chosen:
        alone, under = suites.run(suite, False), suites.run(suite, True)
        print(f"# {suite}: {alone.seconds:.0f} s alone, {under.seconds:.0f} s with the preload", file=sys.stderr, flush=True)
        said, said_once = judge(suites, suite, alone, under)
        rows.append(row(suite, alone, under))
        wrong, once, failed = wrong + said, once + said_once, failed + bool(said)
    print((table.as_markdown if markdown else table.as_text)(rows))
    for line in once:
        print(f"differed once: {line}")
    for line in wrong:
        print(f"FAILED: {line}")
    return len(chosen) - failed, failed


def choose(patterns, names=NAMES):
    return [name for name in names if not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]
