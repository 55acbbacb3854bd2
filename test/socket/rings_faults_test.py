#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs under ntb-run with a daemon where something is wrong: ends, limits, daemons and networks.

  rings_faults_test.py CASE NTB_RUN LIBRARY TRAPS NTBD [CARRIER]
"""

import contextlib
import os
import pathlib
import random
import re
import signal
import subprocess
import sys

from rings import EXCHANGES, JOINED, SERVER, SKIPPED, await_joined, by_ring, need, run_by_ring, run_case, start_host
from facts import PATIENCE, await_fact, expect
from programs import free_port, listens

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
        with bench.talk("login", *words, about=what) as client:
            client.reaches("at")
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
                client.go_on()
            said = client.ends()
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
    with bench.talk("program", *words) as talk:
        program = talk.child
        for _ in range(2):
            talk.reaches("ready")
            # It frees the memory of what moves nothing for a second, and on a busy machine all of this takes longer.
            daemon.send_signal(signal.SIGSTOP)
            talk.go_on()
            talk.reaches("active")
            active = ring_memory(program.pid)
            daemon.send_signal(signal.SIGCONT)
            print(f"active: {active / count / 1e3:.0f} kB a connection")
            expect(count * 30e3 < active <= count * 100e3, f"{active} with {count} active")
            talk.go_on()
            talk.reaches("idle")
            await_fact(lambda: ring_memory(program.pid) <= count * 13e3, lambda: f"{ring_memory(program.pid)} with {count} idle")
            print(f"idle: {ring_memory(program.pid) / count / 1e3:.0f} kB a connection")
            talk.go_on()
        talk.reaches("closed")
        await_fact(lambda: state()[0] <= before[0] + 1 and state()[1] == 0, lambda: f"{state()}, {before} before")
        talk.go_on()
        talk.reaches("over")
        await_fact(lambda: state()[0] <= before[0] + 1 and state()[1] == 0, lambda: f"{state()}, {before} before")
        own = len(os.listdir(f"/proc/{program.pid}/fd"))
        expect(own < 20, f"{own} descriptors are left in the program")
        talk.go_on()
        talk.ends()
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


HUNG = EXCHANGES + '''
import os, resource, signal, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (16384, 16384))
server, daemon, count = sys.argv[1], int(sys.argv[2]), 400
listener = socket.create_server((server, 0), backlog=count)
pairs = []
for _ in range(count):
    one = socket.create_connection(listener.getsockname())
    pairs.append((one, listener.accept()[0]))
for pair in pairs:
    await_rings(pair)
os.kill(daemon, signal.SIGSTOP)
try:
    for a, b in pairs:
        a.sendall(b"x")
        a.close()
        assert b.recv(2) == b"x" and b.recv(1) == b""
        b.close()
finally:
    os.kill(daemon, signal.SIGCONT)
'''


def hung(bench):
    """A daemon that hangs with a full socket is waited for once, not at the end of each connection: those of this program
    would take some ten minutes."""
    run_by_ring(bench, HUNG, SERVER, bench.children[0].pid)


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
            break
        got += len(some)
        board[8:16] = got.to_bytes(8, "little")
except OSError as error:
    said = str(error.errno)
print("said", said, got, flush=True)
"""


def stream_killed(bench):
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
            start_host(bench, victim, f"carrier {bench.carrier}")
            await_joined(bench, victim)
            await_fact(lambda joins=joins, other=other: bench.said(other).count(JOINED) > joins,
                       lambda other=other: bench.said(other))
    print(rings, "by ring")
    expect(rings > 3 and len(seen) > 2, f"{rings} by ring, {seen}")


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


# A program that outlives its daemon. It says how many exchanges it took until a connection was a ring.
OUTLIVES = EXCHANGES + """
import sys
listener = socket.create_server((sys.argv[1], 0))
def connection():
    one = socket.create_connection(listener.getsockname())
    return one, listener.accept()[0]
def ask(text):
    print(text, flush=True)
    sys.stdin.readline()
pair = connection()
while not await_rings(pair):
    pair = connection()
ask("by ring")
try:
    pair[0].recv(1)
except ConnectionResetError:
    ask("reset")
both_ways(connection(), 10)
ask("by TCP")
for _ in range(20):
    if await_rings(connection()):
        break
else:
    sys.exit("never by ring again")
print("by ring again", flush=True)
"""


def restarted(bench):
    """The end of a daemon resets what is a ring. New connections of the same program are TCP until there is a daemon again,
    and rings then: the program need not be started again."""
    with bench.talk("program", *bench.prefix, "/usr/bin/python3", "-c", OUTLIVES, SERVER) as talk:
        talk.reaches("by ring")
        bench.children[0].kill()
        bench.children[0].wait()
        talk.go_on()
        talk.reaches("reset")
        talk.go_on()
        talk.reaches("by TCP")
        bench.start_daemon()
        talk.go_on()
        talk.reaches("by ring again")
        talk.ends()


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
            start_host(bench, letter, before=within[name])
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


if __name__ == "__main__":
    run_case(killed, many, late, hung, stream_killed, exhausted, restarted, maps, nat)
