# SPDX-License-Identifier: BSD-3-Clause
"""A node daemon of one's own, programs under the preload, and what these count."""
import contextlib
import dataclasses
import os
import pathlib
import shutil
import struct
import time

from ntb_compare import pair

START_SECONDS = 60
PROGRAMS = ("daemon/ntbd", "lib/socket/ntb-run", "lib/socket/libntbsocket.so")
# The first words of lib/socket/preload/figures.hpp: magic, version, process, program; matched, received, sent.
FIGURES, MAGIC, VERSION = struct.Struct("=IIi4x32sQQQ"), 0x6E746273, 4


@dataclasses.dataclass(frozen=True)
class Counts:
    matched: int = 0  # ends of connections that found their other end
    received: int = 0  # bytes by ring
    sent: int = 0

    def __add__(self, other):
        return Counts(self.matched + other.matched, self.received + other.received, self.sent + other.sent)


class Page:
    """The counters of a process and its forks. Held open, they outlive it."""

    def __init__(self, pid, running):
        end = time.monotonic() + START_SECONDS
        self.file = None
        while not self.is_written():
            if not running() or time.monotonic() > end:
                raise pair.Failed("the preload is not in the program")
            self.file = self.file or find_page(pid)
            pair.Signals.check()
            time.sleep(0.001)
        self.read()

    def is_written(self):
        return self.file is not None and is_written(self.file)

    def read(self):
        return read_counts(self.file)

    def close(self):
        self.file.close()


class Tree:
    """The counters of a process, of all below it and of all that were. Whoever lives between two looks is missed."""

    def __init__(self, pid):
        self.pid, self.pages = pid, {}

    def look(self):
        for pid in descendants(self.pid):
            file = find_page(pid)
            if file is None:
                continue
            number = os.fstat(file.fileno()).st_ino
            if number in self.pages or not is_written(file):
                file.close()
            else:
                self.pages[number] = file

    def read(self):
        return sum(map(read_counts, self.pages.values()), Counts())

    def close(self):
        for file in self.pages.values():
            file.close()


def descendants(pid):
    found = [pid]
    for one in found:
        # Each may end while it is looked at.
        with contextlib.suppress(OSError):
            for task in pathlib.Path(f"/proc/{one}/task").glob("*/children"):
                with contextlib.suppress(OSError):
                    found += map(int, task.read_text(encoding="ascii").split())
    return found


def is_written(file):
    """The magic number is stored last."""
    return os.pread(file.fileno(), 4, 0) not in (b"", bytes(4))


def read_counts(file):
    magic, version, _, _, *counts = FIGURES.unpack(os.pread(file.fileno(), FIGURES.size, 0))
    if (magic, version) != (MAGIC, VERSION):
        raise pair.Failed("the preload has counters of another version")
    return Counts(*counts)


def find_page(pid):
    with contextlib.suppress(OSError):
        for entry in pathlib.Path(f"/proc/{pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                if os.readlink(entry).startswith("/memfd:ntbsocket-figures"):
                    return open(entry, "rb", buffering=0)
    return None


class Preload:
    """The words before a command that goes by a daemon, where there is one."""

    def __init__(self, build, folder, spin=None):
        self.build, self.folder, self.library = build, folder, build / "lib/socket/libntbsocket.so"
        self.config = folder / "sockets.conf"
        hosts = "".join(f"host {address} {folder}/ntbd.sock\n" for address in ("127.0.0.0/8", "::1"))
        self.config.write_text(hosts + "use ntb * * *:*\n" + ("" if spin is None else f"spin {spin}\n"))

    def under(self):
        return [self.build / "lib/socket/ntb-run", "--library", self.library, "--config", self.config]


class Rings(Preload):
    """And a daemon without a device."""

    def __init__(self, build, processes, spin=None):
        super().__init__(build, processes.folder, spin)
        folder = processes.folder
        (folder / "ntbd.conf").write_text(f"socket {folder}/ntbd.sock\n")
        number = processes.start([build / "daemon/ntbd", "--config", folder / "ntbd.conf"])
        processes.await_file("ntbd.sock", number, START_SECONDS)

    def open_to_others(self):
        """Programs of other users load the library and reach the daemon."""
        self.library = shutil.copy(self.library, self.folder)
        for path, mode in ((self.folder, 0o755), (self.library, 0o644), (self.config, 0o644), (self.folder / "ntbd.sock", 0o666)):
            os.chmod(path, mode)


def missing(build):
    """What was not built, or an empty text."""
    return next((f"{name} was not built" for name in PROGRAMS if not (build / name).exists()), "")
