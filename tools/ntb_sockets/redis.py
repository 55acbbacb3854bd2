# SPDX-License-Identifier: BSD-3-Clause
"""The tests that Redis' authors wrote, a unit of them as a suite: a Tcl program that starts servers and is their client."""
import pathlib
import re
import shutil
import time

from ntb_compare import pair

from . import programs, rings, suites

MARK = "redis:"
UNITS = ("unit/protocol", "unit/querybuf", "unit/limits", "unit/networking", "unit/introspection", "unit/tracking", "unit/multi",
         "unit/pubsub", "unit/pubsubshard", "unit/scripting", "unit/obuf-limits", "unit/wait", "unit/pause", "unit/auth",
         "unit/type/string", "unit/type/list", "integration/block-repl", "integration/replication-2",
         "integration/replication-3", "integration/redis-cli")
NAMES = tuple(MARK + unit for unit in UNITS)
# One run of one unit, in seconds.
UNIT_SECONDS = 300
# As the tests call them, below 'src'.
TOOLS = ("redis-server", "redis-cli", "redis-benchmark", "redis-check-aof", "redis-check-rdb")
# Where tools/setup keeps the tests, as the distribution's source package has them.
UNPACKED = pathlib.Path(__file__).resolve().parents[2] / ".deps/redis-tests"

COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LINE = re.compile(r"\[(ok|err|skip|ignore|exception|timeout)\]: ?(.*)", re.IGNORECASE)
RESULTS = {"ok": suites.PASSED, "err": suites.FAILED, "skip": suites.SKIPPED, "ignore": suites.SKIPPED}
ENDS = ("All tests passed without errors!", "The following tests failed:")


def missing(tests=UNPACKED):
    """What is not there, or an empty text."""
    absent = [program for program in ("tclsh", *TOOLS) if programs.find(program) is None]
    return ", ".join([*absent, *([] if (tests / "tests/test_helper.tcl").exists() else ["their source"])])


def parse(text):
    """(results, trouble) of what a run printed. Of a test that is there several times the worst counts, as in a
    loop over settings; what the summary at the end repeats is marked with stars there."""
    results, trouble, ended = {}, "", False
    for line in map(str.rstrip, COLOUR.sub("", text).splitlines()):
        found = LINE.match(line)
        ended = ended or any(end in line for end in ENDS)
        if not found:
            continue
        kind, name = found[1].lower(), found[2]
        if kind not in RESULTS:
            trouble = trouble or f"{kind}: {name}"
            continue
        name = re.sub(r" \(\d+ ms\)$" if kind == "ok" else r" in tests/\S+\.tcl$", "", name)
        results[name] = suites.FAILED if suites.FAILED in (RESULTS[kind], results.get(name)) else RESULTS[kind]
    return results, trouble or ("" if ended else "it did not come to its end")


class Units:
    def __init__(self, build, tests=UNPACKED, seconds=UNIT_SECONDS):
        self.build, self.tests, self.seconds = build.resolve(), tests, seconds

    def run(self, suite, with_rings, only=()):
        """The whole unit, also for some of its tests: they build on what those before them left in the server."""
        del only
        begin = time.monotonic()
        with pair.group() as processes:
            before = rings.Rings(self.build, processes).under() if with_rings else []
            number = processes.start(["env", "-C", self.prepare(processes.folder), *before, programs.find("tclsh"),
                                      "tests/test_helper.tcl", "--single", suite.removeprefix(MARK), "--clients", "1",
                                      "--durable", "--timeout", str(max(1, self.seconds * 3 // 4))], environment())
            tree = rings.Tree(processes.members[number].pid)
            ended = suites.Suites.await_end(processes, number, begin + self.seconds, tree.look if with_rings else None)
            made = suites.Run(*parse(processes.text("out", number)))
            if not ended:
                made.trouble = f"not done after {self.seconds} s"
            elif made.trouble:
                made.trouble += f": {pair.last_line(processes.text('err', number))}"
            elif with_rings and not tree.pages:
                made.trouble = "the preload is not in the program"
            made.counts = tree.read()
            tree.close()
        made.seconds = time.monotonic() - begin
        return made

    def prepare(self, folder):
        """The tests write beside themselves and look for what was built there."""
        shutil.copytree(self.tests, folder / "redis")
        (folder / "redis/tests/tmp").mkdir(exist_ok=True)
        (folder / "redis/src").mkdir(exist_ok=True)
        for tool in TOOLS:
            (folder / "redis/src" / tool).symlink_to(programs.find(tool))
        return folder / "redis"


def environment():
    """An unpacked Tcl has its own scripts where it does not look."""
    scripts = next(iter(sorted(programs.UNPACKED.glob("share/tcltk/tcl8*/init.tcl"))), None)
    return {**programs.libraries(), "TERM": "dumb", **({"TCL_LIBRARY": str(scripts.parent)} if scripts else {})}
