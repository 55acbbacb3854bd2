# SPDX-License-Identifier: BSD-3-Clause
"""Runs the two processes of a peer, bounded in time, and leaves neither behind."""
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

# The shared memory of a pair, as the peer programs map it, with room to spare.
SHARED_BYTES = 12 << 20
GONE_SECONDS = 10
LARGEST_OUTPUT = 8 << 20
# How a program ends that only waited for the other one (bench/peers/pair/run.hpp).
OTHER_SIDE = "the other side does not come"
# The only name that a socket of a peer may have besides: paths of sockets are short.
SCRATCH_PREFIX = "ntbcmp."


class Failed(Exception):
    """A peer did not do what was asked of it; the text is one line."""


class Interrupted(Exception):
    """A signal asks for the end."""


class Signals:
    """Noted when they come and raised where processes are waited for, so that none of the cleaning up is
    ever cut short."""
    came = False

    @classmethod
    def catch(cls):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, cls.note)

    @classmethod
    def note(cls, _signal, _frame):
        cls.came = True

    @classmethod
    def check(cls):
        if cls.came:
            raise Interrupted


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def own_lines(text, program):
    """What a program has said itself, in one line: libraries that it uses may say more after that."""
    mark = f"{program}: "
    return "; ".join(line.removeprefix(mark).strip() for line in text.splitlines() if line.startswith(mark))[:200]


class Group:
    """Processes, each the leader of a session of its own, so that its children end with it."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.members = []
        self.names = []

    def start(self, command, environment=None):
        """Nothing outlives us, however we end: hence setpriv."""
        number = len(self.members)
        with open(self.folder / f"out{number}", "wb") as out, open(self.folder / f"err{number}", "wb") as err:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *map(str, command)], stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, start_new_session=True, env={**os.environ, **(environment or {})})
        self.members.append(process)
        self.names.append(pathlib.Path(str(command[0])).name)
        return number

    def running(self, number):
        return self.members[number].poll() is None

    def text(self, name, number):
        with open(self.folder / f"{name}{number}", "rb") as file:
            return file.read(LARGEST_OUTPUT).decode(errors="replace")

    def await_file(self, name, number, seconds):
        """Until process `number` has made a file, a socket for example."""
        end = time.monotonic() + seconds
        while not (self.folder / name).exists():
            if not self.running(number) or time.monotonic() > end:
                raise Failed(last_line(self.text("err", number)) or f"{name} does not appear")
            Signals.check()
            time.sleep(0.002)

    def await_ends(self, seconds):
        """Until all have ended, well. The first that fails ends the others."""
        end = time.monotonic() + seconds
        while any(self.running(i) for i in range(len(self.members))):
            bad = [i for i, p in enumerate(self.members) if p.poll() not in (None, 0)]
            if bad or time.monotonic() > end:
                break
            Signals.check()
            time.sleep(0.002)
        self.check(seconds)

    def check(self, seconds):
        states = [process.poll() for process in self.members]
        bad = [number for number, state in enumerate(states) if state not in (None, 0)]
        if bad:
            # A side that only waited for the other one knows less.
            self.fail(min(bad, key=lambda number: OTHER_SIDE in self.why(number)))
        if None in states:
            raise Failed(f"not done after {seconds} s")

    def check_running(self):
        """Of those that end only on a signal."""
        for number in range(len(self.members)):
            if not self.running(number):
                self.fail(number)

    def why(self, number):
        errors = self.text("err", number)
        return own_lines(errors, self.names[number]) or last_line(errors) or last_line(self.text("out", number))

    def fail(self, number):
        raise Failed(self.why(number) or f"ended with status {self.members[number].poll()}")

    def end(self):
        for process in self.members:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for process in self.members:
            await_gone(process.pid)


def await_gone(session):
    """Grandchildren die by themselves after the signal, which takes a moment on a busy machine."""
    end = time.monotonic() + GONE_SECONDS
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < end:
            os.killpg(session, 0)
            time.sleep(0.002)


@contextlib.contextmanager
def group():
    folder = tempfile.mkdtemp(prefix=SCRATCH_PREFIX)
    members = Group(folder)
    try:
        yield members
    finally:
        members.end()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def shared_memory():
    """Its path, for as long as we live: it has no name that could be left behind."""
    descriptor = os.memfd_create("peers")
    try:
        os.ftruncate(descriptor, SHARED_BYTES)
        yield f"/proc/{os.getpid()}/fd/{descriptor}"
    finally:
        os.close(descriptor)
