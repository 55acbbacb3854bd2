# SPDX-License-Identifier: BSD-3-Clause
"""libuv's own tests, a group of them as a suite: each test is a process that starts others for the other end."""
import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import time

from ntb_compare import pair

from . import rings, suites

MARK = "libuv:"
# What of its tests is of TCP, of polling a descriptor, and of handing a connection over; and all others.
REST = "rest"
GROUPS = {"tcp": ("tcp_*", "getsockname_tcp", "socket_buffer_size", "multiple_listen", "delayed_accept"),
          "stream": ("connection_fail*", "shutdown_*", "close_order", "callback_stack", "watcher_cross_stop", "ping_pong*"),
          "poll": ("poll_*",),
          "ipc": ("ipc_*tcp*", "ipc_listen_*", "ipc_send_recv_*", "ipc_closed_handle", "ipc_heavy_traffic_deadlock_bug"),
          REST: ("*",)}
NAMES = tuple(MARK + name for name in GROUPS)
# One test, in seconds. They have bounds of their own, which are shorter.
TEST_SECONDS = 120
# Many of the processes live for some milliseconds.
LOOK_SECONDS = 0.002
# Where tools/setup keeps the tests and what it has built of them.
UNPACKED = pathlib.Path(__file__).resolve().parents[2] / ".deps/libuv-tests"
PROGRAM = "build/uv_run_tests_a"
NOBODY = 65534

LINE = re.compile(r"^(ok|not ok) \d+ - (\S+)( # SKIP)?", re.MULTILINE)


def missing(tests=UNPACKED):
    """What is not there, or an empty text."""
    return "" if os.access(tests / PROGRAM, os.X_OK) else "the program of its tests"


def parse(text):
    """The results of what a run printed."""
    return {name: suites.SKIPPED if skipped else suites.PASSED if word == "ok" else suites.FAILED
            for word, name, skipped in LINE.findall(text)}


class Groups:
    def __init__(self, build, tests=UNPACKED, seconds=TEST_SECONDS, groups=None):
        self.build, self.tests, self.seconds, self.groups = build.resolve(), tests, seconds, groups or GROUPS

    def names(self, suite, user, program):
        said = subprocess.run([*map(str, user), program, "--list"], stdout=subprocess.PIPE, text=True, check=False).stdout
        # Behind a name, in brackets, are the programs for its other end.
        listed = re.findall(r"^(\w+)", said, re.MULTILINE)
        def are_of(group):
            return {name for name in listed if any(fnmatch.fnmatch(name, pattern) for pattern in self.groups[group])}

        group = suite.removeprefix(MARK)
        others = set().union(*map(are_of, self.groups.keys() - {group})) if group == REST else set()
        return [name for name in listed if name in are_of(group) - others]

    def run(self, suite, with_rings, only=()):
        begin = time.monotonic()
        made = suites.Run({})
        with pair.group() as processes:
            under = rings.Rings(self.build, processes) if with_rings else None
            user, program = self.prepare(processes.folder, under)
            before = under.under() if under else []
            seen = False
            for name in only or self.names(suite, user, program):
                number = processes.start(["env", "-C", processes.folder, *before, *user, program, name])
                tree = rings.Tree(processes.members[number].pid)
                ended = suites.Suites.await_end(processes, number, time.monotonic() + self.seconds, tree.look if under else None,
                                                LOOK_SECONDS)
                found = parse(processes.text("out", number) + processes.text("err", number))
                made.results[name] = found.get(name, suites.FAILED) if ended else suites.FAILED
                made.counts += tree.read()
                seen = seen or bool(tree.pages)
                tree.close()
            if under and not seen:
                made.trouble = "the preload is not in the programs"
        made.seconds = time.monotonic() - begin
        return made

    def prepare(self, folder, under):
        """(what is put before a program, the program): the tests refuse to run as root, and write where they are."""
        program = pathlib.Path(shutil.copy(self.tests / PROGRAM, folder))
        shutil.copytree(self.tests / "test/fixtures", folder / "test/fixtures")
        if os.geteuid() != 0:
            return [], program
        for path in (folder, program, folder / "test/fixtures"):
            os.chmod(path, 0o755)
        os.chown(folder, NOBODY, NOBODY)
        if under:
            under.open_to_others()
        return ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"], program
