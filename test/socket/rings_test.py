#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs under ntb-run with a daemon: what they do is as ever, and their bytes go by ring.

  rings_test.py CASE NTB_RUN LIBRARY TRAPS NTBD [carried]

With 'carried' servers and clients are of two daemons, between two devices of the twin, and all goes through these.
"""

import contextlib
import hashlib
import os
import pathlib
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from facts import PATIENCE, PATIENT, Failure, await_fact, expect
from pages import eal_memory
from programs import find_programs, free_port, listens, unpacked

SERVER = "127.0.0.2"
SKIPPED = 77
# What the peer sent by the ring before it was asked to go back cannot be read by the next program: a reset, or not, by
# who was faster (doc/socket-protocol.md, section 11).
UNSURE = {"exec"}
# Cases whose connections stay TCP, or carry a few bytes.
NOT_BY_RING = {"epoll_blind", "epoll_refused", "connect_again"}


class Bench:
    def __init__(self, folder, ntb_run, library, traps, ntbd):
        self.folder, self.traps = folder, traps
        (folder / "ntbd.conf").write_text(f"socket {folder}/ntbd.sock\nring 64K\n")
        (folder / "sockets.conf").write_text(f"host 127.0.0.0/8 {folder}/ntbd.sock\nuse ntb * * *:*\n")
        self.ntbd, self.prefix = ntbd, [ntb_run, "-v", "--library", library, "--config", folder / "sockets.conf"]
        self.children, self.hosts = [], {}
        self.server_prefix, self.is_carried = self.prefix, False
        self.start_daemon()

    def carry(self):
        """Servers are of one host and clients of another; their daemons do not share memory."""
        for name in ("a", "b"):
            start_host(self, name, lines=("carrier daemon",))
            configuration = self.folder / f"{name}-sockets.conf"
            configuration.write_text(f"host 127.0.0.0/8 {self.folder}/{name}.sock\nuse ntb * * *:*\n")
        await_joined(self, "a", "b")
        self.is_carried = True
        self.prefix = [*self.prefix[:-1], self.folder / "b-sockets.conf"]
        self.server_prefix = [*self.prefix[:-1], self.folder / "a-sockets.conf"]

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

    def end(self, child, name, number=signal.SIGTERM):
        """@return what the server reported"""
        child.send_signal(number)
        child.wait(timeout=PATIENCE)
        return self.said(name)

    def close(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
                child.wait()


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


def traps(bench):
    """What programs do with sockets is the same with and without rings."""
    names = bench.run(bench.traps, "list", under=False).stdout.split()
    expect(len(names) > 20, names)
    for name in names:
        if name in UNSURE:
            continue
        alone = bench.run(bench.traps, name, under=False)
        expect(alone.returncode == 0 and alone.stdout, f"{name} alone: {alone}")

        def run_under(name=name, alone=alone, more=None):
            under = bench.run(bench.traps, name, env=os.environ | (more or {}))
            expect((under.returncode, under.stdout) == (0, alone.stdout),
                   f"{name}: alone\n{alone.stdout}\nunder the preload\n{under.stdout}{under.stderr}")
            return under

        # Connections that are matched in the midst of the case, and those that are rings when it begins.
        long = name in ("long", "epoll_early", "epoll_sandboxed")
        under = in_time(run_under, (500000, 500000)) if long else run_under()
        if name not in NOT_BY_RING:
            in_time(lambda run=run_under: run(more={"TRAPS_WARM": "1"}), (1, 1))
        expect(not name.startswith("io_uring") or "set up 0" not in alone.stdout or
               "2 stay TCP: the program uses io_uring" in under.stderr, under)
        expect(name != "epoll_blind" or "1 stay TCP: in an epoll set" in under.stderr, under)
    # Without -v a socket that is TCP is known no longer than that matters.
    quiet = [word for word in bench.prefix if word != "-v"]
    alone, under = (bench.run(*words, bench.traps, "epoll_refused", under=False) for words in ([], quiet))
    expect((under.returncode, under.stdout) == (0, alone.stdout), f"{alone}\n{under}")


def redis_benchmark(bench, *words):
    done = bench.run_well("redis-benchmark", "-t", "set,get", "-q", *words)
    expect(done.stdout.count("requests per second") == 2, done)
    return done


def forked_save(bench, serve, place):
    """The server forks a child that writes what it has to a file, while clients are served. A server that reads the file
    has as much."""
    def ask(place, *words):
        return bench.run_well("redis-cli", *place, *words).stdout

    # A value of each key, so that no more are made meanwhile.
    redis_benchmark(bench, *place, "-n", 5000, "-r", 5000, "-d", 1000, "-P", 16)
    keys = ask(place, "dbsize")
    load = bench.start("load", *bench.prefix, "redis-benchmark", *place, "-t", "get", "-q", "-n", 100000, "-c", 8)
    expect("Background saving started" in ask(place, "bgsave"), "bgsave")
    await_fact(lambda: "rdb_bgsave_in_progress:0" in ask(place, "info", "persistence"), "the save ends")
    expect("rdb_last_bgsave_status:ok" in ask(place, "info", "persistence"), ask(place, "info", "persistence"))
    expect(load.wait(timeout=PATIENCE) == 0, bench.said("load"))
    port = free_port()
    reader = serve("redis-reader", port)
    expect(ask(["-h", SERVER, "-p", port], "dbsize") == keys != "(integer) 0\n", keys)
    bench.end(reader, "redis-reader")


def redis(bench):
    need("redis-server", "redis-benchmark", "redis-cli")
    port = free_port()

    def serve(name, port):
        return bench.serve(name, port, "redis-server", "--port", port, "--save", "", "--appendonly", "no", "--bind", SERVER,
                           "--dir", bench.folder)

    server, place = serve("redis", port), ["-h", SERVER, "-p", port]
    for more in (["-c", 1, "-n", 20000 if bench.is_carried else 5000], ["-c", 50, "-n", 20000, "-P", 16]):
        in_time(lambda more=more: redis_benchmark(bench, *place, *more), (2000, 2000))
    expect(bench.run("redis-cli", *place, "ping").stdout == "PONG\n", "ping")
    forked_save(bench, serve, place)
    # While it runs, ntb-ss says what became of its connections; a ping may be over before it is matched.
    def listed():
        return bench.run(pathlib.Path(bench.ntbd).with_name("ntb-ss"), "--programs", under=False).stdout

    shown = rf"^ *{server.pid} +\d+ redis-server\n +\d+ were shown to the daemon$"
    await_fact(lambda: re.search(shown, listed(), re.MULTILINE), listed)
    said = bench.end(server, "redis")
    expect(min(by_ring(said)) > 4000, said)


def forked(bench):
    """What a program's children report is added to what it did, and takes nothing from it."""
    program = EXCHANGES + f"""
import os
def connection():
    listener = socket.create_server(("{SERVER}", 0))
    one = socket.create_connection(listener.getsockname())
    other, _ = listener.accept()
    count = await_rings((one, other))
    both_ways((one, other), 100)
    print(count + 100)
    return count
for _ in range(2):
    while not connection():
        pass
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    done = bench.run("/usr/bin/python3", "-c", program)
    matched = re.search(r"^  (\d+) matched$", done.stderr, re.M)
    expect(done.returncode == 0 and matched and int(matched[1]) >= 4, done)
    moved = 2 * 2000 * sum(int(count) for count in done.stdout.split())
    expect(all(2 * 2 * 100 * 2000 <= count <= moved for count in by_ring(done.stderr)), done)


def unnamed(bench):
    """A program that connects to no address in particular reaches its own host, or the address that it is bound to."""
    program = EXCHANGES + """
import select, sys
own, waits = sys.argv[1], sys.argv[2] == "waits"
listener = socket.create_server(("0.0.0.0", 0))
one = socket.socket()
if own:
    one.bind((own, 0))
one.setblocking(waits)
one.connect_ex(("0.0.0.0", listener.getsockname()[1]))
other, _ = listener.accept()
select.select([], [one], [])
one.setblocking(True)
assert one.getpeername()[0] == (own or "127.0.0.1"), one
await_rings((one, other))
"""
    for own in ("", SERVER):
        for waits in ("waits", "does not"):
            run_by_ring(bench, program, own, waits)


def families(bench):
    """IPv6, and IPv4 as an IPv6 socket has it, at either end or both: by ring, with the program's own names for it."""
    with open(bench.folder / "sockets.conf", "a") as file:
        file.write(f"host ::1 {bench.folder}/ntbd.sock\n")
    program = EXCHANGES + """
import sys
own, to, peer = sys.argv[1:]
listener = socket.socket(socket.AF_INET6 if ":" in own else socket.AF_INET)
if ":" in own:
    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
listener.bind((own, 0))
listener.listen()
one = socket.socket(socket.AF_INET6 if ":" in to else socket.AF_INET)
one.connect((to, listener.getsockname()[1]))
other, name = listener.accept()
assert name[0] == peer and one.getpeername()[0] == to, (name, one)
await_rings((one, other))
"""
    for own, to, peer in (("::1", "::1", "::1"), ("::", "::1", "::1"), ("::", "127.0.0.1", "::ffff:127.0.0.1"),
                          ("127.0.0.1", "::ffff:127.0.0.1", "127.0.0.1"),
                          ("::ffff:127.0.0.1", "::ffff:127.0.0.1", "::ffff:127.0.0.1")):
        run_by_ring(bench, program, own, to, peer)


# Servers that fork whose connection no process has for itself until the last byte, or knows that it has.
SHARED = {"both", "given_up", "handed_on", "unknown", "passed_on", "confined_alone"}


def forking(bench):
    """Servers that fork after accept(): no byte is another, and those of a process that is the only one that has the
    connection go by ring, both ways. A claim may be answered after the last byte, so each is repeated until it was not."""
    program = pathlib.Path(bench.traps).with_name("socket_forking")
    bench.allow("use ntb inherit socket_forking *:*\nuse ntb late socket_confining *:*\n")
    names = bench.run(program, "list", under=False).stdout.split()
    expect(len(names) > 10 and SHARED < set(names), names)
    confining = bench.folder / "socket_confining"  # by this name the line `late` knows it
    confining.symlink_to(program)
    of = {name: confining if name == "confining_forked" else program for name in names}
    for name in names:
        for _ in range(20):
            done = bench.run(of[name], name)
            expect((done.returncode, done.stdout) == (0, "served\n"), f"{name}: {done}")
            if name in SHARED or min(by_ring(done.stderr)) > 10000:
                break
        expect((min(by_ring(done.stderr)) > 10000) == (name not in SHARED), f"{name}: {done}")
        expect(name != "both" or "while another process had them too" in done.stderr, f"{name}: {done}")
    # No one answers the child's claim.
    bench.children[0].kill()
    for name in names:
        done = bench.run(of[name], name)
        expect((done.returncode, done.stdout, by_ring(done.stderr)) == (0, "served\n", (0, 0)), f"{name}: {done}")


LOGINS = """
import os, socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
while True:
    one, _ = listener.accept()
    child = os.fork()
    if child == 0:
        os.dup2(one.fileno(), 0)
        os.execl(sys.argv[3], "socket_confining", "confining", "0")
    one.close()
    print("started", child, flush=True)
    os.waitpid(child, 0)
    print("ended", child, flush=True)
"""
LOGIN = """
import signal, socket, sys
signal.alarm(60)
one = socket.create_connection((sys.argv[1], int(sys.argv[2])))
stop, waits, rounds = int(sys.argv[3]), sys.argv[4] == "waits", 3000
block = bytes(range(250)) * 4
served, said = 0, "all"
try:
    for i in range(rounds):
        if i == stop:
            print("at", flush=True)
            if waits:
                sys.stdin.readline()
        sent, got = block[i % 250:] + block[:i % 250], b""
        one.sendall(sent)
        while len(got) < len(sent):
            some = one.recv(len(sent) - len(got))
            if not some:
                raise EOFError
            got += some
        assert got == sent, i
        served += 1
    one.shutdown(socket.SHUT_WR)
    assert one.recv(1) == b""
except (ConnectionResetError, BrokenPipeError, EOFError):
    said = "over"
print(said, served, flush=True)
"""


def killed(bench):
    """A program whose child is confined and uses the connection before it does (the role `late`): child, program or daemon
    are killed between the steps, and while blocks are on their way. The client sees what TCP would show, and each block
    that it gets is the right one."""
    program = pathlib.Path(bench.traps).with_name("socket_forking")
    bench.allow("use ntb late socket_confining *:*\n")
    daemon, port, rounds, by_child = bench.children[0], free_port(), 3000, range(10, 110)
    server = bench.serve("logins", port, sys.executable, "-c", LOGINS, SERVER, port, program)
    idle = len(os.listdir(f"/proc/{daemon.pid}/fd"))

    def started():
        # Python writes a line in pieces.
        return re.findall(r"started (\d+)\n", bench.said("logins"))

    # When the program serves and has no child yet, at the child's first block, between, at its last one, when the program
    # serves what is left, and much later.
    steps = [(stop, waits) for stop in (0, 5, 10, 60, 109, 111, 115, 2500) for waits in (True, False)]
    by_rings = 0
    for victim, stop, waits in [(victim, *step) for victim in ("nobody", "child", "program", "daemon") for step in steps]:
        # What a child had read when it was killed is lost, and by TCP no one would know of it either.
        if victim == "child" and (stop not in by_child or not waits):
            continue
        what = f"{victim}, {stop}, {waits}"
        count = len(started())
        words = [*bench.prefix, "/usr/bin/python3", "-c", LOGIN, SERVER, port, stop, "waits" if waits else "goes on"]
        with open(bench.folder / "login.log", "wb") as log, subprocess.Popen(
                [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as client:
            bench.children.append(client)
            expect(client.stdout.readline() == "at\n", f"{what}: {bench.said('login')}")
            await_fact(lambda count=count: len(started()) > count, lambda: bench.said("logins"))
            one = int(started()[-1])

            def child_of(pid):
                return pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()

            if waits and stop in by_child:
                await_fact(lambda one=one: child_of(one), lambda what=what: f"{what}: no child")
            if victim == "child":
                os.kill(int(child_of(one)[0]), signal.SIGKILL)
                # One that is killed in its call may still take what comes before it has run.
                await_fact(lambda one=one: not child_of(one), lambda what=what: f"{what}: the child is there")
            elif victim == "program":
                with contextlib.suppress(ProcessLookupError):  # it has served all
                    os.kill(one, signal.SIGKILL)
            elif victim == "daemon":
                daemon.kill()
                daemon.wait()
            if waits:
                client.stdin.write("\n")
                client.stdin.flush()
            said = client.stdout.read()
            expect(client.wait() == 0, f"{what}: {said}, {bench.said('login')}")
        how, served = said.split()[0], int(said.split()[1])
        await_fact(lambda one=one: f"ended {one}\n" in bench.said("logins"), lambda what=what: f"{what}: {bench.said('logins')}")
        if victim in ("nobody", "child"):
            expect((how, served) == ("all", rounds), f"{what}: {said}")
            by_rings += min(by_ring(bench.said("login"))) > 1000000
        elif victim == "program" and waits:
            expect((how, served) == ("over", by_child.stop if stop in by_child else stop), f"{what}: {said}")
        else:
            expect(served >= stop and (how == "over" or served == rounds), f"{what}: {said}")
        if victim == "daemon":
            daemon = bench.start_daemon()
        else:
            await_fact(lambda: len(os.listdir(f"/proc/{daemon.pid}/fd")) <= idle, lambda what=what: f"{what}: left in the daemon")
    expect(by_rings > 5, f"{by_rings} by ring")
    bench.end(server, "logins")


INETD = """
import os, socket, subprocess, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
for _ in range(int(sys.argv[3])):
    one, _ = listener.accept()
    if sys.argv[4] == "vfork":
        child = subprocess.Popen(["cat"], stdin=one, stdout=one)
        one.close()
        assert child.wait() == 0
    else:
        if os.fork() == 0:
            os.dup2(one.fileno(), 0)
            os.dup2(one.fileno(), 1)
            os.execlp("cat", "cat")
        one.close()
        assert os.wait()[1] == 0
"""
ECHOED = """
import socket, sys
one = socket.create_connection((sys.argv[1], int(sys.argv[2])))
block = bytes(range(250)) * 4
for i in range(2000):
    sent = block[i % 250:] + block[:i % 250]
    one.sendall(sent)
    assert one.recv(1000, socket.MSG_WAITALL) == sent
one.shutdown(socket.SHUT_WR)
assert one.recv(1) == b""
"""


def inetd(bench):
    """Programs that are started with a connection open: theirs goes by ring where the configuration says so."""
    tries = 10
    environment = [f"-E{name}" for name in ("LD_PRELOAD", "NTB_SOCKET_CONFIG", "NTB_SOCKET_VERBOSE")]
    servers = [[sys.executable, "-c", INETD, SERVER, None, tries, way] for way in ("vfork", "fork")]
    if shutil.which("systemd-socket-activate"):
        servers.append(["systemd-socket-activate", *environment, "-l", None, "-a", "--inetd", "cat"])
    for inherits in (False, True):
        if inherits:
            bench.allow("use ntb inherit cat *:*\n")
        for i, words in enumerate(servers):
            port, name = free_port(), f"inetd-{inherits}-{i}"
            place = f"{SERVER}:{port}" if words[0] == "systemd-socket-activate" else port
            server = bench.serve(name, port, *(place if word is None else word for word in words))
            # A claim may be answered late, as ever.
            rings = 0
            for _ in range(tries):
                done = bench.run("/usr/bin/python3", "-c", ECHOED, SERVER, port)
                expect(done.returncode == 0, f"{name}: {done}")
                rings += min(by_ring(done.stderr)) > 1000000
            expect(rings > 1 if inherits else rings == 0, f"{name}: {rings}, {done}, {bench.said(name)}")
            if server.poll() is None:
                bench.end(server, name)


# A server that has used a connection itself before a program goes on with it, in its place or in that of a child.
REPLACED = """
import os, socket, sys
listener = socket.create_server((sys.argv[1], int(sys.argv[2])))
rounds, forks = int(sys.argv[3]), sys.argv[4] == "fork"
one, _ = listener.accept()
listener.close()
for _ in range(rounds):
    one.sendall(one.recv(1000, socket.MSG_WAITALL))
if not forks or os.fork() == 0:
    os.dup2(one.fileno(), 0)
    os.dup2(one.fileno(), 1)
    one.close()
    os.execlp("cat", "cat")
one.close()
os.wait()
"""
SPEAKS = """
import socket, sys
one = socket.create_connection((sys.argv[1], int(sys.argv[2])))
block = bytes(range(250)) * 4
try:
    for i in range(2000):
        if i == int(sys.argv[3]):
            print("at", flush=True)
            if sys.argv[4] == "waits":
                sys.stdin.readline()
        sent = block[i % 250:] + block[:i % 250]
        one.sendall(sent)
        got = one.recv(1000, socket.MSG_WAITALL)
        assert got == sent[:len(got)], i
        if len(got) < 1000:
            got += one.recv(1)
            assert got == b"", i
    one.shutdown(socket.SHUT_WR)
    assert one.recv(1) == b""
    print("all")
except ConnectionResetError:
    print("reset")
"""


def replaced(bench):
    """A program that is started with a connection which was matched by others does not take part: it goes back to TCP
    before, which is counted, and every byte is there, also where an 'inherit' line names the program. A client that goes on
    meanwhile may have sent by ring what the program cannot read: a reset, and no wrong byte."""
    bench.allow("use ntb inherit cat *:*\n")
    half = 1000

    def runs_cat(pid):
        family = [pid, *map(int, pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split())]
        return any(pathlib.Path(f"/proc/{one}/comm").read_text(encoding="ascii") == "cat\n" for one in family)

    for way, waits in (("exec", True), ("fork", True), ("fork", False)):
        rings = 0
        for turn in range(4):
            port, name = free_port(), f"replaced-{way}-{waits}-{turn}"
            server = bench.serve(name, port, sys.executable, "-c", REPLACED, SERVER, port, half, way)
            words = [*bench.prefix, "/usr/bin/python3", "-c", SPEAKS, SERVER, port, half, "waits" if waits else "goes on"]
            with open(bench.folder / "client.log", "wb") as log, subprocess.Popen(
                    [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as client:
                bench.children.append(client)
                expect(client.stdout.readline() == "at\n", f"{name}: {bench.said('client')}")
                if waits:
                    await_fact(lambda server=server: runs_cat(server.pid), name)
                    client.stdin.write("\n")
                    client.stdin.flush()
                said = client.stdout.read()
                expect(client.wait() == 0 and said in (("all\n",) if waits else ("all\n", "reset\n")),
                       f"{name}: {said} {bench.said('client')} {bench.said(name)}")
            server.wait(timeout=PATIENCE)
            moved = by_ring(bench.said("client"))
            expect(max(moved) <= (half + (not waits)) * 1000, f"{name}: {bench.said('client')}")
            if min(moved) == 0:
                continue
            rings += 1
            if way == "fork":
                expect("1 went back to TCP: given to another program" in bench.said(name), f"{name}: {bench.said(name)}")
            if said == "reset\n":
                expect("1 were reset: the peer did not go back to TCP" in bench.said(name), f"{name}: {bench.said(name)}")
            expect("were open when the program was started" not in bench.said(name), f"{name}: {bench.said(name)}")
        expect(rings > 0, f"{way}: {rings}")


MANY = EXCHANGES + """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))
server, count, short = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
listener = socket.create_server((server, 0), backlog=1000)
def make():
    one = socket.create_connection(listener.getsockname())
    return one, listener.accept()[0]
def make_by_ring():
    while True:
        pair = make()
        if await_rings(pair):
            return pair
        for one in pair:
            one.close()
def ask(text):
    print(text, flush=True)
    sys.stdin.readline()
pairs = []
for _ in range(count):
    pairs.append(make_by_ring())
for _ in range(2):
    ask("ready")
    for pair in pairs:
        both_ways(pair, 60)
    ask("active")
    ask("idle")
for a, b in pairs:
    a.close()
    b.close()
ask("closed")
for i in range(short):
    a, b = make()
    a.sendall(b"x")
    assert b.recv(1) == b"x"
    if i % 4 == 0:
        both_ways((a, b), 2)
    a.close()
    assert b.recv(1) == b""
    b.close()
ask("over")
"""


def ring_memory(pid):
    """Bytes of rings and records that a process has, of each file by that mapping which has most of it."""
    files, file = {}, None
    for line in pathlib.Path(f"/proc/{pid}/smaps").read_text(encoding="ascii", errors="replace").splitlines():
        if re.match(r"[0-9a-f]+-", line):
            file = line.split()[4] if "memfd:ntbd-" in line else None
        elif file and line.startswith("Rss:"):
            files[file] = max(files.get(file, 0), int(line.split()[1]) * 1024)
    return sum(files.values())


def many(bench):
    """1000 connections, which take memory while they move bytes, and 100000 that are short, which leave nothing."""
    count, short = 1000, 100000
    # Both ends of each are of one user.
    (bench.folder / "many.conf").write_text(f"socket {bench.folder}/many.sock\nquota default connections 4096 bytes 4G\n")
    daemon = bench.start("many", bench.ntbd, "--config", bench.folder / "many.conf")
    await_fact(lambda: "listening" in bench.said("many"), lambda: bench.said("many"))
    (bench.folder / "many-sockets.conf").write_text(f"host 127.0.0.0/8 {bench.folder}/many.sock\nuse ntb * * *:*\n")
    bench.use(bench.folder / "many-sockets.conf")
    words = [*bench.prefix, "/usr/bin/python3", "-c", MANY, SERVER, count, short]

    def state():
        descriptors = len(os.listdir(f"/proc/{daemon.pid}/fd"))
        return descriptors, ring_memory(daemon.pid)

    before = state()
    with open(bench.folder / "program.log", "wb") as log, subprocess.Popen(
            [str(word) for word in words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as program:
        bench.children.append(program)

        def reaches(name):
            said = program.stdout.readline()
            expect(said == name + "\n", f"{said!r} for {name}: {bench.said('program')}")

        def go_on():
            program.stdin.write("\n")
            program.stdin.flush()

        for _ in range(2):
            reaches("ready")
            # It frees the memory of what moves nothing for a second, and on a busy machine all of this takes longer.
            daemon.send_signal(signal.SIGSTOP)
            go_on()
            reaches("active")
            active = ring_memory(program.pid)
            daemon.send_signal(signal.SIGCONT)
            print(f"active: {active / count / 1e3:.0f} kB a connection")
            expect(count * 30e3 < active <= count * 100e3, f"{active} with {count} active")
            go_on()
            reaches("idle")
            await_fact(lambda: ring_memory(program.pid) <= count * 13e3, lambda: f"{ring_memory(program.pid)} with {count} idle")
            print(f"idle: {ring_memory(program.pid) / count / 1e3:.0f} kB a connection")
            go_on()
        reaches("closed")
        await_fact(lambda: state()[0] <= before[0] + 1 and state()[1] == 0, lambda: f"{state()}, {before} before")
        go_on()
        reaches("over")
        await_fact(lambda: state()[0] <= before[0] + 1 and state()[1] == 0, lambda: f"{state()}, {before} before")
        own = len(os.listdir(f"/proc/{program.pid}/fd"))
        expect(own < 20, f"{own} descriptors are left in the program")
        go_on()
        expect(program.wait(timeout=PATIENCE) == 0, bench.said("program"))
    matched = re.search(r"^  (\d+) matched$", bench.said("program"), re.M)
    print(f"{matched[1]} ends matched")
    expect(int(matched[1]) > 2 * count and min(by_ring(bench.said("program"))) > count * 2 * 60 * 2000, bench.said("program"))


LATE = EXCHANGES + '''
import os, resource, signal, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))
server, daemon, count = sys.argv[1], int(sys.argv[2]), 600
listener = socket.create_server((server, 0), backlog=count)
# The first claim attaches.
pairs = []
def make():
    one = socket.create_connection(listener.getsockname())
    pairs.append((one, listener.accept()[0]))
make()
os.kill(daemon, signal.SIGSTOP)
for _ in range(count - 1):
    make()
for a, b in pairs:
    a.sendall(b"x")
    assert b.recv(1) == b"x"
os.kill(daemon, signal.SIGCONT)
await_rings(pairs[-1])
'''


def late(bench):
    """A daemon that has too much to read for a while takes the claims that it had no room for later."""
    run_by_ring(bench, LATE, SERVER, bench.children[0].pid)


def start_host(bench, name, *before, lines=()):
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


def hosts(bench):
    """Redis on one host and its clients on another: two daemons, each with a device, and the twin between them."""
    need("redis-server", "redis-benchmark")
    places = {}
    for name in ("a", "b"):
        start_host(bench, name)
        places[name] = bench.folder / f"{name}-sockets.conf"
        places[name].write_text(f"host 127.0.0.0/8 {bench.folder}/{name}.sock\nuse ntb * * *:*\n")
    await_joined(bench, *places)
    port = free_port()
    bench.use(places["a"])
    server = bench.serve("redis", port, "redis-server", "--port", port, "--save", "", "--appendonly", "no", "--bind", SERVER)
    bench.use(places["b"])
    in_time(lambda: redis_benchmark(bench, "-h", SERVER, "-p", port, "-c", 8, "-n", 10000, "-P", 4), (2000, 2000))
    said = bench.end(server, "redis")
    expect(min(by_ring(said)) > 2000, said)


# Argument: address and port; a file in which is said how far it got.
SENDER = """
import mmap, os, socket, sys
address, port, board = sys.argv[1], int(sys.argv[2]), mmap.mmap(os.open(sys.argv[3], os.O_RDWR), 4096)
stream = bytes((i * 131 + (i >> 9)) & 255 for i in range(131072)) * 64
one, done, length = socket.create_connection((address, port)), 0, 1
try:
    for _ in range(300): # by the end of which there are rings, as a rule
        one.send(b"x")
        one.recv(1)
    while done < len(stream):
        done += one.send(stream[done:done + length])
        board[0:8] = done.to_bytes(8, "little")
        length = length * 7 % 6007 + 1
    one.shutdown(socket.SHUT_WR)
    said = "all" if one.recv(1) == b"" else "more"
except OSError as error:
    said = str(error.errno)
print("said", said, flush=True)
"""
RECEIVER = """
import mmap, os, socket, sys
address, port, board = sys.argv[1], int(sys.argv[2]), mmap.mmap(os.open(sys.argv[3], os.O_RDWR), 4096)
stream = bytes((i * 131 + (i >> 9)) & 255 for i in range(131072)) * 64
listener = socket.create_server((address, port))
one, _ = listener.accept()
got, said = 0, "end"
try:
    for _ in range(300):
        one.send(one.recv(1))
    while some := one.recv(5000):
        if some != stream[got:got + len(some)]:
            said = "wrong"
        got += len(some)
        board[8:16] = got.to_bytes(8, "little")
except OSError as error:
    said = str(error.errno)
print("said", said, got, flush=True)
"""


def carried_killed(bench):
    """Who sends, who receives, and either daemon, killed at any time: what is received is a prefix of the stream, its end
    comes only where all that was taken from the sender has, and nobody waits for ever."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    board, seen, rings = bench.folder / "board", set(), 0
    for turn in range(24):
        board.write_bytes(bytes(4096))
        port, victim = free_port(), ("sender", "receiver", "a", "b")[turn % 4]
        ends = {"receiver": bench.serve("receiver", port, "/usr/bin/python3", "-c", RECEIVER, SERVER, port, board),
                "sender": bench.start("sender", *bench.prefix, "/usr/bin/python3", "-c", SENDER, SERVER, port, board)}
        words = lambda: [int.from_bytes(board.read_bytes()[at:at + 8], "little") for at in (0, 8)]
        least = chance.choice((1, 3000, 100000, 1000000, 3000000, 6000000))
        await_fact(lambda least=least: words()[1] >= least or ends["receiver"].poll() is not None, words)
        killed_one = ends.get(victim) or bench.hosts[victim]
        killed_one.kill()
        killed_one.wait()
        for name, child in ends.items():
            if name != victim:
                child.wait(timeout=PATIENCE)
        accepted = words()[0]
        if victim != "receiver":
            rings += by_ring(bench.said("receiver"))[0] > 0
        found = re.search(r"said (\S+) (\d+)", bench.said("receiver"))
        if victim != "receiver" or found:
            expect(found, bench.said("receiver"))
            said, got = found.group(1), int(found.group(2))
            expect(said in ("end", "104"), f"{turn} {victim}: {said} at {got} of {accepted}")
            # Of one that was killed the last bytes may have been taken, and not been counted.
            expect(said != "end" or got == accepted or (victim == "sender" and got > accepted),
                   f"{turn} {victim}: an end at {got} of {accepted}")
            seen.add((victim, said))
        if victim in bench.hosts:
            other = "b" if victim == "a" else "a"
            joins = bench.said(other).count(JOINED)
            start_host(bench, victim, lines=("carrier daemon",))
            await_joined(bench, victim)
            await_fact(lambda joins=joins, other=other: bench.said(other).count(JOINED) > joins,
                       lambda other=other: bench.said(other))
    print(rings, "by ring")
    expect(rings > 3 and len(seen) > 2, f"{rings} by ring, {seen}")


def iperf3(bench):
    need("iperf3")
    for streams in (1, 4):
        name = f"iperf3-{streams}"

        def transfer(streams=streams, name=name):
            port = free_port()
            server = bench.serve(name, port, "iperf3", "-s", "-1", "-B", SERVER, "-p", port)
            done = bench.run_well("iperf3", "-c", SERVER, "-p", port, "-n", "200M", "-P", streams)
            server.wait(timeout=PATIENCE)
            return done

        in_time(transfer, (0, 100e6))
        expect(by_ring(bench.said(name))[0] >= 100e6, bench.said(name))


def http(bench):
    """A file by python3's server and curl, compared. A short connection may be over before it is matched, so it is
    fetched until one was not."""
    need("curl")
    port, contents = free_port(), os.urandom(3000000)
    (bench.folder / "file").write_bytes(contents)
    server = bench.serve("http", port, "/usr/bin/python3", "-m", "http.server", port, "--bind", SERVER)
    received = 0
    for i in range(100):
        done = bench.run("curl", "-s", "-o", "got", f"http://{SERVER}:{port}/file")
        expect(done.returncode == 0 and (bench.folder / "got").read_bytes() == contents, done)
        received += by_ring(done.stderr)[0]
        if i >= 3 and received > 0:
            break
    said = bench.end(server, "http", signal.SIGINT)
    expect(received > 0 and by_ring(said)[1] >= received, said)


def asyncio(bench):
    """Streams and transports of python3's asyncio at both ends, several connections in one loop, each byte compared."""
    (bench.folder / "echo.py").write_text(f"""
import asyncio, os, sys
async def answer(reader, writer):
    while data := await reader.read(10000):
        writer.write(data)
        await writer.drain()
    writer.close()
async def serve(port):
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(15, end.set)
    async with await asyncio.start_server(answer, "{SERVER}", port):
        await end.wait()
async def ask(port, number):
    reader, writer = await asyncio.open_connection("{SERVER}", port)
    for length in [1000] * 200 + [100000] * 10:
        sent = os.urandom(length)
        writer.write(sent)
        got, _ = await asyncio.gather(reader.readexactly(length), writer.drain())
        assert got == sent, number
    writer.write_eof()
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()
async def ask_all(port):
    await asyncio.gather(*(ask(port, number) for number in range(8)))
    print("all is right")
asyncio.run((serve if sys.argv[1] == "serve" else ask_all)(int(sys.argv[2])))
""")
    port, program = free_port(), ["/usr/bin/python3", bench.folder / "echo.py"]
    server = bench.serve("asyncio", port, *program, "serve", port)

    def ask():
        done = bench.run_well(*program, "ask", port)
        expect(done.stdout == "all is right\n", done)
        return done

    in_time(ask, (1000000, 1000000))
    said = bench.end(server, "asyncio")
    expect(server.returncode == 0, said)
    expect(min(by_ring(said)) > 1000000, said)


def exhausted(bench):
    """A program that has few descriptors left gets them all itself, and talks by TCP."""
    program = f"""
import os, resource, socket, sys
left = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
taken = []
try:
    while True:
        taken.append(os.dup(0))
except OSError:
    pass
for one in taken[-left:]:
    os.close(one)
listener = socket.create_server(("{SERVER}", 0))
one = socket.create_connection(listener.getsockname())
other, _ = listener.accept()
for number in range(2000):
    sent = number.to_bytes(4, "big") * 250
    one.sendall(sent)
    assert other.recv(1000, socket.MSG_WAITALL) == sent
    other.sendall(sent)
    assert one.recv(1000, socket.MSG_WAITALL) == sent
one.close()
assert other.recv(1) == b""
print("all is right")
"""
    def talk(left):
        done = bench.run("/usr/bin/python3", "-c", program, left)
        expect((done.returncode, done.stdout) == (0, "all is right\n"), f"{left} left: {done}")
        return min(by_ring(done.stderr)) if "by ring" in done.stderr else 0

    for left in (3, 4, 5, 6, 7, 8, 10, 12, 16):
        expect(talk(left) == 0, f"{left} left, and by ring")
    # It may be over before it is matched.
    expect(any(talk(64) for _ in range(20)), "64 left, and never by ring")


def maps(bench):
    """One host has the other in its map, and not the other way: no one answers the claim, and it stays TCP."""
    need("curl")
    one_sided = bench.folder / "one-sided.conf"
    one_sided.write_text(f"host 192.0.2.0/24 {bench.folder}/ntbd.sock\nuse ntb * * *:*\n")
    both, contents = bench.prefix[-1], os.urandom(3000000)
    (bench.folder / "file").write_bytes(contents)
    for name, server_has, client_has in (("server", one_sided, both), ("client", both, one_sided)):
        port = free_port()
        bench.use(server_has)
        server = bench.serve(name, port, "/usr/bin/python3", "-m", "http.server", port, "--bind", SERVER)
        bench.use(client_has)
        for _ in range(3):
            done = bench.run("curl", "-s", "-o", "got", f"http://{SERVER}:{port}/file")
            expect(done.returncode == 0 and (bench.folder / "got").read_bytes() == contents, done)
        said = bench.end(server, name, signal.SIGINT)
        expect("by ring" not in said + done.stderr or max(by_ring(said + done.stderr)) == 0, said + done.stderr)


# An echo over one connection for some seconds: what is sent meanwhile is checked, and that both ends agree.
ECHO_SERVER = """
import socket, sys
listener = socket.create_server(("", int(sys.argv[1])))
one, _ = listener.accept()
while (got := one.recv(65536)):
    one.sendall(got)
"""
ECHO_CLIENT = """
import os, socket, sys, time
one = socket.create_connection((sys.argv[1], int(sys.argv[2])))
end, number = time.monotonic() + float(sys.argv[3]), 0
while time.monotonic() < end:
    sent = number.to_bytes(4, "big") * 250
    one.sendall(sent)
    assert one.recv(len(sent), socket.MSG_WAITALL) == sent
    number += 1
    if number % 100 == 0:
        time.sleep(0.002)
one.shutdown(socket.SHUT_WR)
assert one.recv(1) == b""
print("all is right")
"""
# Of the router: towards the client, and towards the server.
ROUTER = ("10.219.1.1", "10.219.2.1")
ENDS = ("10.219.1.2", "10.219.2.2")
TRANSLATIONS = {
    "none": ("postrouting", "accept"),
    "destination": ("prerouting", "ip daddr %s tcp dport %d dnat to %s"),
    "source": ("postrouting", "ip saddr %s masquerade"),
}


@contextlib.contextmanager
def namespaces(*names):
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True, timeout=PATIENCE)
        yield
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=PATIENCE)


def route_between(client, router, server):
    for number, host in enumerate((client, server)):
        for words in (f"link add wire{number} netns {router} type veth peer name wire netns {host}",
                      f"-n {router} address add {ROUTER[number]}/24 dev wire{number}", f"-n {router} link set wire{number} up",
                      f"-n {host} address add {ENDS[number]}/24 dev wire", f"-n {host} link set wire up",
                      f"-n {host} link set lo up", f"-n {host} route add default via {ROUTER[number]}"):
            subprocess.run(["ip", *words.split()], check=True, timeout=PATIENCE)
    subprocess.run(["ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1"], check=True, timeout=PATIENCE)


def nat(bench):
    """Two hosts with a router between them. Where it changes an address each end is shown with other names than its
    mirror's, and the connection stays TCP."""
    if os.geteuid() != 0:
        print("network namespaces need root")
        sys.exit(SKIPPED)
    need("ip", "nft", "sysctl")
    client, router, server = names = [f"ntbnat{os.getpid()}{letter}" for letter in "crs"]
    within = {name: ["ip", "netns", "exec", name] for name in names}
    with namespaces(*names):
        table = bench.run(*within[router], "nft", "add table ip t; add chain ip t c { type nat hook prerouting priority 0; }",
                          under=False)
        if table.returncode != 0:
            print(f"no address translation here: {table.stderr.strip().splitlines()[0]}")
            sys.exit(SKIPPED)
        route_between(client, router, server)
        places = {}
        for name, letter in ((client, "a"), (server, "b")):
            start_host(bench, letter, *within[name])
            places[name] = bench.folder / f"{letter}-sockets.conf"
            places[name].write_text(f"host 10.219.0.0/16 {bench.folder}/{letter}.sock\nuse ntb * * *:*\n")
        await_joined(bench, "a", "b")
        for name, (hook, rule) in TRANSLATIONS.items():
            port = free_port()
            address = ROUTER[0] if name == "destination" else ENDS[1]
            rule = rule % {"none": (), "destination": (ROUTER[0], port, ENDS[1]), "source": (ENDS[0],)}[name]
            done = bench.run(*within[router], "nft", f"flush ruleset; add table ip t; add chain ip t {hook} {{ type nat hook {hook}"
                             f" priority 0; }}; add rule ip t {hook} {rule}", under=False)
            expect(done.returncode == 0, done)
            # A claim waits two seconds for its mirror.
            for seconds in (2.5, 5, 10, 20):
                bench.use(places[server])
                echo = bench.start(f"echo-{name}", *within[server], *bench.prefix, "/usr/bin/python3", "-c", ECHO_SERVER, port)
                await_fact(lambda echo=echo, port=port: listens(port, echo.pid) or echo.poll() is not None,
                           lambda name=name: bench.said(f"echo-{name}"))
                done = bench.run(*within[client], *bench.prefix[:-1], places[client], "/usr/bin/python3", "-c", ECHO_CLIENT,
                                 address, port, seconds, under=False)
                expect((done.returncode, done.stdout) == (0, "all is right\n"), f"{name}: {done}")
                echo.wait(timeout=PATIENCE)
                said = [done.stderr, bench.said(f"echo-{name}")]
                if all(("1 matched" if name == "none" else "1 stay TCP: the other end was not shown") in one for one in said):
                    break
            for one in said:
                if name == "none":
                    expect("1 matched" in one and min(by_ring(one)) > 100000, f"{name}: {one}")
                else:
                    expect("1 stay TCP: the other end was not shown" in one and "0 matched" in one and
                           max(by_ring(one)) == 0, f"{name}: {one}")


def nginx(bench):
    """Two workers, and a proxy before them. wrk asks for a small file over some connections, curl for a large one twice
    by one connection: the second time the ring is filled by a server that waits for room, edge triggered."""
    need("nginx", "wrk", "curl")
    ports, large = [free_port() for _ in range(3)], os.urandom(1000000)
    (bench.folder / "large").write_bytes(large)
    (bench.folder / "small").write_text("a small file\n")
    temporary = " ".join(f"{name}_temp_path {bench.folder}/{name};"
                         for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (bench.folder / "nginx.conf").write_text(f"""
daemon off; worker_processes 2; {"user root;" if os.geteuid() == 0 else ""} pid {bench.folder}/nginx.pid;
events {{ worker_connections 256; }}
http {{
    access_log off; keepalive_requests 1000000; {temporary}
    upstream behind {{ server {SERVER}:{ports[1]}; keepalive 8; }}
    server {{ listen {SERVER}:{ports[0]}; listen {SERVER}:{ports[1]}; root {bench.folder}; }}
    server {{
        listen {SERVER}:{ports[2]};
        location / {{ proxy_pass http://behind; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
}}
""")
    server = bench.serve("nginx", ports[2], "nginx", "-e", "stderr", "-p", bench.folder, "-c",
                         bench.folder / "nginx.conf")
    for port in (ports[0], ports[2]):
        url, received = f"http://{SERVER}:{port}", 0

        def load(url=url):
            done = bench.run_well("wrk", "-t1", "-c8", "-d1", f"{url}/small")
            expect("Non-2xx" not in done.stdout and "Socket errors" not in done.stdout, done)
            return done

        in_time(load, (10000, 10000))
        for i in range(100):
            done = bench.run("curl", "-s", "-m", PATIENCE // 2, f"{url}/large", "-o", "one", f"{url}/large", "-o", "two")
            expect(done.returncode == 0, done)
            expect(all((bench.folder / name).read_bytes() == large for name in ("one", "two")), "other bytes")
            received += by_ring(done.stderr)[0]
            if i >= 9 and received > 1000000:
                break
        expect(received > 1000000, received)
    said = bench.end(server, "nginx", signal.SIGQUIT)
    expect(min(by_ring(said)) > 20000, said)


def sockperf(bench):
    need("sockperf")
    port = free_port()
    server = bench.serve("sockperf", port, "sockperf", "sr", "--tcp", "--uc-reuseaddr", "-i", SERVER, "-p", port)

    def ping():
        done = bench.run_well("sockperf", "pp", "--tcp", "-i", SERVER, "-p", port, "-t", 1, "-m", 64)
        expect("percentile 50" in done.stdout, done)
        return done

    in_time(ping, (10000, 10000))
    bench.end(server, "sockperf", signal.SIGINT)


def memcached(bench):
    need("memcached")
    port = free_port()
    server = bench.serve("memcached", port, "memcached", "-u", "root", "-p", port, "-l", SERVER, "-t", 2)
    client = f"""
import socket
c = socket.create_connection(("{SERVER}", {port}))
for i in range({20000 if bench.is_carried else 1000}):
    value = b"v%d" % i * 10
    c.sendall(b"set k%d 0 0 %d\\r\\n%s\\r\\n" % (i, len(value), value))
    assert c.recv(100) == b"STORED\\r\\n"
    c.sendall(b"get k%d\\r\\n" % i)
    got = b""
    while not got.endswith(b"END\\r\\n"):
        got += c.recv(1000)
    assert value in got
"""
    in_time(lambda: bench.run_well("/usr/bin/python3", "-c", client), (10000, 10000))
    said = bench.end(server, "memcached", signal.SIGINT)
    expect(min(by_ring(said)) > 10000, said)


def as_other_user(bench, folder):
    """PostgreSQL refuses to run as root. @return what to put before a program: for another user, who owns the folder
    and may load the library"""
    if os.geteuid() != 0:
        return []
    nobody = 65534
    os.chown(folder, nobody, nobody)
    library = bench.prefix.index("--library") + 1
    bench.prefix[library] = shutil.copy(bench.prefix[library], bench.folder)
    for path, mode in ((bench.folder, 0o755), (bench.prefix[library], 0o644), (bench.folder / "ntbd.sock", 0o666)):
        os.chmod(path, mode)
    return ["setpriv", "--reuid", nobody, "--regid", nobody, "--clear-groups"]


def postgres(bench):
    """A server that forks for each connection, with transactions of several clients and bulk data both ways. The child
    claims the connection, once the server has closed it."""
    need("initdb", "postgres", "pgbench", "psql", "setpriv")
    data = bench.folder / "data"
    data.mkdir(mode=0o700)
    user = as_other_user(bench, data)
    if bench.run(*user, shutil.which("postgres"), "--version", under=False).returncode != 0:
        print("not reachable for other users: postgres")
        sys.exit(SKIPPED)
    done = bench.run(*user, "initdb", "-N", "-A", "trust", "-U", "tester", "-D", data, under=False)
    expect(done.returncode == 0, done)
    port = free_port()
    server = bench.serve("postgres", port, *user, "postgres", "-D", data, "-p", port, "-h", SERVER, "-F",
                         "-c", "unix_socket_directories=", "-c", "shared_buffers=16MB")
    await_fact(lambda: "ready to accept connections" in bench.said("postgres"), lambda: bench.said("postgres"))
    place = ["-h", SERVER, "-p", port, "-U", "tester"]
    # The tables are filled by COPY through the connection.
    in_time(lambda: bench.run_well("pgbench", "-i", "-I", "dtgvp", "-s", 2, *place, "postgres"), (0, 1000000))
    transactions = 0
    for clients, mode in ((1, "simple"), (4, "prepared")):

        def trade(clients=clients, mode=mode):
            nonlocal transactions
            transactions += clients * 200
            done = bench.run_well("pgbench", "-n", "-c", clients, "-t", 200, "-M", mode, *place, "postgres")
            expect(f"processed: {clients * 200}/{clients * 200}" in done.stdout, done)
            expect("failed transactions: 0 " in done.stdout, done)
            return done

        in_time(trade, [clients * 10000] * 2)
    # What the transactions did is consistent, and a long answer arrives as it is.
    ask = ["psql", *place, "-AtX", "postgres", "-c"]
    sums = [f"(SELECT sum({column}) FROM pgbench_{table})"
            for table, column in (("accounts", "abalance"), ("tellers", "tbalance"), ("branches", "bbalance"),
                                  ("history", "delta"))]
    done = bench.run(*ask, f"SELECT {', '.join(sums)}, (SELECT count(*) FROM pgbench_history)")
    found = done.stdout.strip().split("|")
    expect(len(set(found[:4])) == 1 and found[4:] == [str(transactions)], done)

    def read_all():
        done = bench.run(*ask, "SELECT md5(n::text) FROM generate_series(1, 50000) n")
        expect(done.stdout.split() == [hashlib.md5(b"%d" % n).hexdigest() for n in range(1, 50001)], done.stderr)
        return done

    in_time(read_all, (1000000, 0))
    said = bench.end(server, "postgres", signal.SIGINT)
    expect(server.returncode == 0 and min(by_ring(said)) > 1000000, said)


def ssh(bench):
    """sshd starts itself anew for each login, with the connection open, and has a child in a sandbox until the user is
    known. Once that is gone the new program claims it, and the bytes of a file go by ring both ways. A login may take
    longer than a claim waits, so each is repeated until one did not; what arrives is what was sent by every one.
    Of an sshd in several programs (OpenSSH 10) the connection stays TCP."""
    need("sshd", "ssh", "scp", "ssh-keygen")
    apart = []
    if os.geteuid() == 0:
        # What an installation makes, an account that sshd lets in, and the folder that it insists on: in mounts of its
        # own, so that nothing is left, and other runs are not disturbed.
        accounts = {name: pathlib.Path("/etc", name).read_text().splitlines() for name in ("passwd", "shadow")}
        if not any(line.startswith("sshd:") for line in accounts["passwd"]):
            accounts["passwd"].append("sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin")
        accounts["shadow"] = [re.sub("^root:!+", "root:*", line) for line in accounts["shadow"]]
        for name, lines in accounts.items():
            (bench.folder / name).write_text("\n".join(lines) + "\n")
            (bench.folder / name).chmod(0o644 if name == "passwd" else 0o600)
        apart = ["unshare", "--mount", "sh", "-c", "for one in passwd shadow; do mount --bind $0/$one /etc/$one || exit; done;"
                 ' mount -t tmpfs none /run && mkdir -m 755 /run/sshd && exec "$@"', bench.folder]
        if bench.run(*apart, "true", under=False).returncode != 0:
            print("no mounts (unshare)")
            sys.exit(SKIPPED)
    for key in ("host", "user"):
        done = bench.run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", bench.folder / key, under=False)
        expect(done.returncode == 0, done)
    port, contents = free_port(), os.urandom(20000000)
    (bench.folder / "sshd.conf").write_text(f"""
ListenAddress {SERVER}:{port}
HostKey {bench.folder}/host
AuthorizedKeysFile {bench.folder}/user.pub
PidFile none
StrictModes no
UsePAM no
PermitRootLogin yes
PasswordAuthentication no
Subsystem sftp internal-sftp
""")
    # Newer ones have it in several programs.
    several = unpacked("lib/openssh/sshd-session")
    for option, name in (("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")):
        if path := unpacked(f"lib/openssh/{name}"):
            with open(bench.folder / "sshd.conf", "a", encoding="ascii") as config:
                config.write(f"{option} {path}\n")
    bench.allow("use ntb late sshd *:*\n")
    server = bench.serve("sshd", port, *apart, shutil.which("sshd"), "-D", "-e", "-f", bench.folder / "sshd.conf")
    options = ["-F", "none", "-i", bench.folder / "user", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
               "-o", f"UserKnownHostsFile={bench.folder}/known"]
    there = f"{pwd.getpwuid(os.geteuid()).pw_name}@{SERVER}"
    (bench.folder / "sent").write_bytes(contents)
    for source, target, got in ((bench.folder / "sent", f"{there}:{bench.folder}/there", "there"),
                                (f"{there}:{bench.folder}/there", bench.folder / "back", "back")):
        for _ in range(20):
            (bench.folder / got).unlink(missing_ok=True)
            done = bench.run("scp", "-S", shutil.which("ssh"), *options, "-P", port, source, target)
            expect(done.returncode == 0 and (bench.folder / got).read_bytes() == contents, done)
            if several or by_ring(done.stderr)[got == "there"] > len(contents) // 2:
                break
        expect(several or by_ring(done.stderr)[got == "there"] > len(contents) // 2, done)
    done = bench.run("ssh", *options, "-p", port, there, f"sha256sum {bench.folder}/there")
    expect(done.returncode == 0 and done.stdout.split()[:1] == [hashlib.sha256(contents).hexdigest()], done)
    said = bench.end(server, "sshd")
    expect(several or min(by_ring(said)) > len(contents) // 2, said)


CASES = {case.__name__: case for case in (traps, redis, unnamed, families, forked, forking, killed, inetd, replaced, many, hosts, iperf3, http, nginx, sockperf,
                                         memcached, postgres, ssh, asyncio, exhausted, late, maps, nat, carried_killed)}


def main():
    case, *programs = sys.argv[1:]
    is_carried = programs[-1] == "carried"
    if is_carried:
        programs.pop()
    find_programs()
    with tempfile.TemporaryDirectory(prefix="ntb-rings-") as folder:
        bench = Bench(pathlib.Path(folder), *(os.path.abspath(program) for program in programs))
        try:
            if is_carried:
                bench.carry()
            CASES[case](bench)
        except Failure as failure:
            sys.exit(f"{case}: {failure}")
        finally:
            bench.close()


if __name__ == "__main__":
    main()
