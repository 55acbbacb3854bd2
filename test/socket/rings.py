#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What tests of programs under ntb-run with a daemon stand on."""

import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from facts import PATIENCE, PATIENT, Failure, await_end, await_fact, expect
from pages import eal_memory
from programs import find_programs, listens

SERVER = "127.0.0.2"
SKIPPED = 77


class Bench:
    def __init__(self, folder, ntb_run, library, traps, ntbd):
        self.folder, self.traps = folder, traps
        (folder / "ntbd.conf").write_text(f"socket {folder}/ntbd.sock\nring 64K\n")
        (folder / "sockets.conf").write_text(f"host 127.0.0.0/8 {folder}/ntbd.sock\nuse ntb * * *:*\n")
        self.ntbd, self.prefix = ntbd, [ntb_run, "-v", "--library", library, "--config", folder / "sockets.conf"]
        self.children, self.hosts = [], {}
        self.server_prefix, self.carrier = self.prefix, None
        self.start_daemon()

    def carry(self, carrier):
        """Servers are of one host and clients of another, with a daemon each."""
        self.carrier = carrier
        for name in ("a", "b"):
            start_host(self, name, f"carrier {carrier}")
            configuration = self.folder / f"{name}-sockets.conf"
            configuration.write_text(f"host 127.0.0.0/8 {self.folder}/{name}.sock\nuse ntb * * *:*\n")
        await_joined(self, "a", "b")
        self.prefix = [*self.prefix[:-1], self.folder / "b-sockets.conf"]
        self.server_prefix = [*self.prefix[:-1], self.folder / "a-sockets.conf"]

    @property
    def is_carried(self):
        """The daemons do not share memory."""
        return self.carrier == "daemon"

    def start_daemon(self):
        daemon = self.start("ntbd", self.ntbd, "--config", self.folder / "ntbd.conf")
        await_fact(lambda: "listening" in self.said("ntbd") or daemon.poll() is not None, lambda: self.said("ntbd"))
        return daemon

    def use(self, configuration):
        """What is started from now on has this one: it is on another host."""
        self.prefix[-1] = configuration  # of servers as well

    def allow(self, lines):
        """More lines of the configurations."""
        for configuration in {self.prefix[-1], self.server_prefix[-1]}:
            with open(configuration, "a", encoding="ascii") as file:
                file.write(lines)

    def said(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def start(self, name, *words):
        with open(self.folder / f"{name}.log", "wb") as log:
            child = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                     cwd=self.folder)
        self.children.append(child)
        return child

    def serve(self, name, port, *words):
        """A server under the preload, once its port is taken."""
        child = self.start(name, *self.server_prefix, *words)
        await_fact(lambda: listens(port) or child.poll() is not None, lambda: self.said(name))
        expect(child.poll() is None, self.said(name))
        return child

    def run(self, *words, under=True, **more):
        command = [*self.prefix, *words] if under else words
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE,
                              check=False, cwd=self.folder, **more)

    def run_well(self, *words):
        done = self.run(*words)
        expect(done.returncode == 0, done)
        return done

    @contextlib.contextmanager
    def talk(self, name, *words, about=""):
        """A program that says in a line how far it is, and goes on when it is let. What fails names what it is about."""
        with open(self.folder / f"{name}.log", "wb") as log, subprocess.Popen(
                [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as child:
            self.children.append(child)
            yield Talk(child, lambda: f"{about} {self.said(name)}")

    def open_to_others(self):
        """Programs of other users may load the library, and reach what is in the folder."""
        library = self.prefix.index("--library") + 1
        self.prefix[library] = shutil.copy(self.prefix[library], self.folder)
        for path, mode in ((self.folder, 0o755), (self.prefix[library], 0o644), (self.folder / "ntbd.sock", 0o666)):
            os.chmod(path, mode)

    def end(self, child, name, number=signal.SIGTERM):
        """@return what the server reported"""
        child.send_signal(number)
        await_end(child, lambda: f"its end: {self.said(name)}")
        return self.said(name)

    def close(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()


class Talk:
    def __init__(self, child, log):
        self.child, self.log = child, log

    def reaches(self, text):
        said = self.child.stdout.readline()
        expect(said == text + "\n", f"{said!r} for {text!r}: {self.log()}")

    def go_on(self):
        self.child.stdin.write("\n")
        self.child.stdin.flush()

    def ends(self):
        """Well. @return what else it has said"""
        said = self.child.stdout.read()
        expect(await_end(self.child, "its end") == 0, f"{said} {self.log()}")
        return said


def as_user(user):
    """What to put before a program."""
    return ["setpriv", "--reuid", user, "--regid", user, "--clear-groups"]


def by_ring(said):
    """Bytes received and sent by ring, of all reports."""
    found = re.findall(r"by ring: (\d+) bytes received, (\d+) sent", said)
    expect(found, said)
    return tuple(sum(int(bytes) for bytes in way) for way in zip(*found))


# What programs below begin with: exchanges that are checked, and one that waits until nothing of it goes by TCP. How many
# that takes is the daemon's turn, not theirs.
EXCHANGES = """
import socket, struct, time
block = bytes(range(250)) * 8
def both_ways(pair, n):
    for i in range(n):
        for a, b in (pair, pair[::-1]):
            sent = block[i % 250:] + block[:i % 250]
            a.sendall(sent)
            got = b.recv(len(sent), socket.MSG_WAITALL)
            assert got == sent, (i, len(got))
def by_tcp(one):
    # tcpi_bytes_sent
    return struct.unpack_from("Q", one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 200)
def await_rings(pair):
    # How many exchanges it took, or 0: a daemon may be late, and then a claim ends without its mirror, for good after 2 s.
    end, count = time.monotonic() + 3, 0
    while time.monotonic() < end:
        both_ways(pair, 1)
        before = [by_tcp(one) for one in pair]
        both_ways(pair, 1)
        count += 2
        if before == [by_tcp(one) for one in pair]:
            return count
    return 0
"""


def in_time(attempt, least):
    """A match may come when most bytes of a program, or all, have gone by TCP. attempt() runs it, and it is right each
    time; once, of many, LEAST bytes received and sent go by ring. @return what it reported then"""
    for _ in range(20):
        done = attempt()
        counts = by_ring(done.stderr) if "by ring" in done.stderr else (0, 0)
        if all(count >= bound for count, bound in zip(counts, least)):
            return done
    raise Failure(f"{least} bytes never went by ring: {done}")


def run_by_ring(bench, program, *words):
    """A program that ends with await_rings()."""
    in_time(lambda: bench.run_well("/usr/bin/python3", "-c", program, *words), (1, 1))


def need(*names):
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        print(f"not installed: {' '.join(missing)}")
        sys.exit(SKIPPED)


def start_host(bench, name, *lines, before=()):
    """A daemon with a device, at one end of the twin's cable."""
    more = "".join(f"{line}\n" for line in lines)
    (bench.folder / f"{name}.conf").write_text(f"""socket {bench.folder}/{name}.sock
ring 64K
{more}device raw_plx_ntb0
eal {' '.join(eal_memory(256))} --no-pci -l 0 --no-telemetry --no-shconf
eal --vdev=raw_plx_ntb0,cable={bench.folder}/cable,{PATIENT}
""")
    bench.hosts[name] = bench.start(name, *before, bench.ntbd, "--config", bench.folder / f"{name}.conf")


JOINED = "joined with the daemon of the peer host"


def await_joined(bench, *names):
    for name in names:
        await_fact(lambda name=name: JOINED in bench.said(name),
                   lambda name=name: bench.said(name))


def run_case(*cases):
    """CASE NTB_RUN LIBRARY TRAPS NTBD [CARRIER]: with a carrier, 'daemon' or 'direct', servers and clients are of two daemons,
    between two devices of the twin. By 'daemon' all goes through these, by 'direct' through memory that both ends map."""
    name, *programs = sys.argv[1:]
    carrier = programs.pop() if programs[-1] in ("daemon", "direct") else None
    find_programs()
    with tempfile.TemporaryDirectory(prefix="ntb-rings-") as folder:
        bench = Bench(pathlib.Path(folder), *(os.path.abspath(program) for program in programs))
        try:
            if carrier:
                bench.carry(carrier)
            next(case for case in cases if case.__name__ == name)(bench)
        except Failure as failure:
            sys.exit(f"{name}: {failure}")
        finally:
            bench.close()
