# SPDX-License-Identifier: BSD-3-Clause
"""Daemons and clients as processes, for the tests of them: they end with the case, waits are bounded."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from facts import PATIENCE, PATIENT, Failure, await_end, await_fact, expect
from pages import HUGE, eal_memory

# Nobody, and nobody else: users that need not be in the user database.
USERS = (65534, 64001, 64002)


class Process:
    def __init__(self, command, log, **popen):
        self.log = log
        with open(log, "wb") as out:
            self.child = subprocess.Popen(command, stdout=out, stderr=out, stdin=subprocess.PIPE, **popen)

    def text(self):
        return self.log.read_text(errors="replace")

    def await_text(self, text, count=1):
        await_fact(lambda: self.text().count(text) >= count or self.child.poll() is not None,
                   lambda: f"'{text}' in {self.text()}")
        expect(self.text().count(text) >= count, f"it ended before it said '{text}':\n{self.text()}")

    def end(self, status):
        got = await_end(self.child, lambda: f"its end; it said:\n{self.text()}")
        expect(got == status, f"status {got} instead of {status}; it said:\n{self.text()}")

    def tell(self, line):
        self.child.stdin.write((line + "\n").encode())
        self.child.stdin.flush()


class Lab:
    """A folder, and what runs in it."""

    def __init__(self, programs):
        self.ntbd, self.ntb_ss, self.client = programs
        self.processes = []
        self.stack = contextlib.ExitStack()
        self.folder = None
        self.ring = "16K"
        self.telemetry = False  # of daemons, below RUNTIME_DIRECTORY

    def __enter__(self):
        self.folder = pathlib.Path(self.stack.enter_context(tempfile.TemporaryDirectory(prefix="ntbd-")))
        self.folder.chmod(0o755)
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.child.poll() is None:
                process.child.kill()
                process.child.wait()
            process.child.stdin.close()
        self.stack.close()

    def start(self, command, name, **popen):
        process = Process([str(word) for word in command], self.folder / f"{name}-{len(self.processes)}.log", **popen)
        self.processes.append(process)
        return process

    def socket(self, name):
        return self.folder / f"{name}.sock"

    def configure(self, name, device=False, *lines):
        words = [f"socket {self.socket(name)}", f"ring {self.ring}", *lines]
        if device:
            telemetry = f"--file-prefix={name}" if self.telemetry else "--no-telemetry --no-shconf"
            words += ["device raw_plx_ntb0",
                      f"eal {' '.join(eal_memory(256, HUGE and not self.telemetry))} --no-pci -l 0 {telemetry}",
                      f"eal --vdev=raw_plx_ntb0,cable={self.folder / 'cable'},{PATIENT}"]
        path = self.folder / f"{name}.conf"
        path.write_text("\n".join(words) + "\n")
        return path

    def daemon(self, name, device=False, *lines):
        process = self.start([self.ntbd, "--config", self.configure(name, device, *lines)], name)
        process.await_text("ntbd: listening")
        return process

    def clients(self, name, user, *words):
        """A client of the daemon with that name, which gets its commands in words."""
        who = {"user": user, "group": user, "extra_groups": []} if user is not None else {}
        return self.start([self.client, self.socket(name), *words], "client", **who)

    def list(self, name):
        """Connections as ntb-ss shows them: rows of words."""
        text = subprocess.run([self.ntb_ss, self.socket(name)], capture_output=True, text=True, timeout=PATIENCE,
                              check=True).stdout
        return [line.split() for line in text.splitlines()[1:]]

    def await_no_connection(self, *names):
        for name in names:
            await_fact(lambda name=name: not self.list(name), lambda name=name: f"no connection: {self.list(name)}")


def stop(daemon):
    daemon.child.send_signal(signal.SIGTERM)
    daemon.end(0)


def as_root():
    return os.geteuid() == 0


def run_case(name, programs, case):
    """Runs case(lab). Where it fails, prints what the processes said and why; then status 1."""
    try:
        with Lab(programs) as lab:
            try:
                case(lab)
            except (Failure, subprocess.SubprocessError):
                for process in lab.processes:
                    print(f"--- {process.log.name}\n{process.text()}")
                raise
    except Failure as failure:
        print(f"{name}: {failure}")
        sys.exit(1)
