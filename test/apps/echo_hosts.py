# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that run ntbmsg-echo, for the tests of it: processes that end with the case, waits that are
bounded."""

import contextlib
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from facts import PATIENCE, PATIENT, Failure, await_end, await_fact, expect
from pages import HUGE, eal_memory

DEVICE = "raw_plx_ntb0"


def expect_version(program, name, help_text):
    """What a program says of itself: alone, as everywhere, or among its own options."""
    def said(*words):
        return subprocess.run([program, *words], capture_output=True, text=True, timeout=60, check=True).stdout
    for text in (said("--version"), said("--", "--version")):
        expect(re.fullmatch(name + r" \d+\.\d+\.\d+ \(\S+\), DPDK \d\d\.\d\d\S*\n", text), text)
    expect(help_text in said("--help"), "help")


def pick_cores():
    """CPUs for two hosts that poll. Tests that run at the same time get different ones where there are."""
    allowed = sorted(os.sched_getaffinity(0))
    first = os.getpid() % len(allowed)
    return allowed[first], allowed[(first + 1) % len(allowed)]


class Process:
    """A host. Its output goes to a file that can be looked at while it runs."""

    def __init__(self, command, log, stdin, table=None):
        """table: a path for standard output alone."""
        self.log = log
        with open(log, "wb") as out, open(table or os.devnull, "wb") as first:
            self.child = subprocess.Popen(command, stdout=first if table else out, stderr=out, stdin=stdin)

    def text(self):
        return self.log.read_text(errors="replace")

    def end(self):
        """Waits for the end; returns the exit status."""
        return await_end(self.child, lambda: f"its end; it said:\n{self.text()}")

    def expect_end(self, status, *texts):
        got = self.end()
        expect(got == status, f"status {got} instead of {status}; it said:\n{self.text()}")
        for text in texts:
            expect(text in self.text(), f"no '{text}' in:\n{self.text()}")

    def await_text(self, text):
        await_fact(lambda: text in self.text() or self.child.poll() is not None,
                   f"'{text}' in {self.text()}")
        expect(text in self.text(), f"it ended before it said '{text}':\n{self.text()}")


# Files of that length are a full disk for a program that begins with these words. Its log is one, too.
SHORT_FILES = ("prlimit", "--fsize=16384")


def memory_behind(before, megabytes):
    """EAL's options for memory of a program that begins with these words: hugepages are files, too."""
    return eal_memory(megabytes, HUGE and before != SHORT_FILES)


class Console:
    """A host that gets its commands a line at a time."""

    def __init__(self, process):
        self.process = process
        self.asked = 0

    def tell(self, *lines):
        try:
            self.process.child.stdin.write("".join(line + "\n" for line in lines).encode())
            self.process.child.stdin.flush()
        except BrokenPipeError:
            raise Failure(f"it has ended; it said:\n{self.process.text()}") from None

    def ask(self, line):
        """What it says to one command."""
        before = len(self.process.text())
        self.asked += 1
        # Commands are done one after another: what is between is the answer.
        self.tell(line, f"print end {self.asked}")
        self.process.await_text(f"end {self.asked}\n")
        return self.process.text()[before:]

    def await_answer(self, line, pattern):
        """Asks until the answer is right. Returns the match."""
        found = []

        def fact():
            found[:] = [re.search(pattern, self.ask(line))]
            return found[0]
        await_fact(fact, f"'{pattern}' as an answer to {line}")
        return found[0]

    def quit(self):
        self.tell("quit")
        self.process.expect_end(0)


class World:
    """A folder, a cable, and the processes at its ends."""

    def __init__(self, echo, hello, folder):
        self.echo, self.hello, self.folder = echo, hello, folder
        self.patient = f",{PATIENT}"
        self.processes = []
        self.cores = dict(zip(("serve", "send"), pick_cores()))

    def start(self, program, core, own, stdin=subprocess.DEVNULL, device=True, lcores=None,
              more=(), vdev="", before=(), table=None):
        """lcores: EAL's option --lcores instead of one lcore on the core; more: of EAL's options; vdev: more
        of the device's; before: words in front of the command; table: a path for standard output."""
        place = ["--lcores", lcores] if lcores else ["-l", str(core)]
        eal = [*place, *memory_behind(before, 128), "--no-pci", "--no-shconf",
               "--no-telemetry", *more]
        if device:
            eal.append(f"--vdev={DEVICE},cable={self.folder / 'cable'}{self.patient}{vdev}")
        log = self.folder / f"log{len(self.processes)}"
        process = Process([*before, program, *eal, "--", *own], log, stdin, table)
        self.processes.append(process)
        return process

    def serve(self, *own):
        return self.start(self.echo, self.cores["serve"], ["--serve", *own])

    def send(self, file, *own, **more):
        return self.start(self.echo, self.cores["send"], ["--send", str(file), *own], **more)

    def harness(self, where, *own, **more):
        """A host that forwards on one lcore; its main lcore shares the CPU, and mostly sleeps."""
        core = self.cores[where]
        more.setdefault("lcores", f"0@{core},1@{core}")
        return self.start(self.echo, core, own, **more)

    def console(self, where, *own, **more):
        """The same, which takes commands from a pipe."""
        return Console(self.harness(where, "--interactive", *own, stdin=subprocess.PIPE, **more))

    def commands(self, *lines):
        path = self.folder / f"commands{len(self.processes)}"
        path.write_text("".join(line + "\n" for line in lines))
        return path

    def file(self, size, name="sent"):
        path = self.folder / name
        path.write_bytes(random.Random(size).randbytes(size))
        return path

    def endless(self, *own):
        """A sending host in the middle of its traffic: some of what it sent has come back."""
        out = self.folder / f"endless{len(self.processes)}"
        sender = self.send(self.file(100_000), "--seconds", "3600", "--out", str(out), *own)
        await_fact(lambda: sender.child.poll() is not None or
                   (out.exists() and out.stat().st_size > 0), "an echo")
        return sender

    def close(self):
        for process in self.processes:
            if process.child.poll() is None:
                process.child.kill()
            process.child.wait()


def run_in(world, case, name):
    """Runs a case in a world, and says what all its processes said where it failed."""
    with contextlib.closing(world):
        try:
            case(world)
        except Failure as failure:
            print(f"{name}: {failure}")
            for process in world.processes:
                print(f"--- {' '.join(process.child.args)}\n{process.text()}")
            sys.exit(1)


def run_case(cases):
    """Runs the case that the command line names: ntbmsg-echo hello_c CASE."""
    echo, hello, name = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ntbmsg-echo-") as folder:
        run_in(World(echo, hello, pathlib.Path(folder)), cases["case_" + name], name)
