#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Under ntb-run with a daemon: what programs do with sockets is as ever, and their bytes go by ring.

  rings_test.py CASE NTB_RUN LIBRARY TRAPS NTBD [CARRIER]
"""

import contextlib
import os
import pathlib
import re
import shutil
import sys

from rings import EXCHANGES, SERVER, SKIPPED, as_user, by_ring, in_time, run_by_ring, run_case
import instructions
from facts import PATIENCE, await_fact, expect
from programs import free_port

# What the peer sent by the ring before it was asked to go back cannot be read by the next program: a reset, or not, by
# who was faster (doc/socket-protocol.md, section 11).
UNSURE = {"exec", "unseen_bytes"}
# Cases whose connections stay TCP, or carry a few bytes.
NOT_BY_RING = {"epoll_blind", "epoll_refused", "connect_again"}


def traps(bench):
    """What programs do with sockets is the same with and without rings."""
    names = bench.run(bench.traps, "list", under=False).stdout.split()
    expect(len(names) > 20, names)
    for name in names:
        alone = bench.run(bench.traps, name, under=False)
        expect(alone.returncode == 0 and alone.stdout, f"{name} alone: {alone}")
        if name in UNSURE:
            done = bench.run(bench.traps, name, env=os.environ | {"TRAPS_WARM": "1"})
            expect((done.returncode, done.stdout) == (0, alone.stdout) or "ECONNRESET" in done.stdout, done)
            continue

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


# Instructions of a call by ring, at most, of which the loop of the traps has some 9.
COSTS = {"send and recv": 1035, "recv of nothing": 190}


def costs(bench):
    """Two programs that poll wait for nothing but these."""
    instructions.need_valgrind()
    words = dict(zip(bench.prefix[2::2], bench.prefix[3::2]))
    preload = {"LD_PRELOAD": str(words["--library"]), "NTB_SOCKET_CONFIG": str(words["--config"])}

    def run_alone(*words, **more):
        return bench.run(*words, under=False, **more)

    for kind, (name, most) in enumerate(COSTS.items()):
        counted = instructions.of_a_call(run_alone, bench.traps, kind, preload, (2000, 22000))
        print(f"{name}: {counted:.1f} instructions by ring")
        expect(counted <= most, f"{name}: {counted}, at most {most}")


def apart(bench):
    """A program may give up its root, its environment or its user before its first socket, and start children that have no
    environment."""
    program = EXCHANGES + f"""
import encodings.idna, os, sys
what, folder = sys.argv[1:]
if what == "root":
    os.chroot(folder)
    os.chdir("/")
elif what == "environment":
    os.environ.clear()
    child = os.fork()
    if child != 0:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
elif what == "user":
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
listener = socket.create_server(("{SERVER}", 0))
one = socket.create_connection(listener.getsockname())
other, _ = listener.accept()
await_rings((one, other))
"""
    empty = bench.folder / "empty"
    empty.mkdir()
    bench.folder.chmod(0o755)
    for what in ("environment", "root", "user"):
        if what != "environment" and os.geteuid() != 0:
            print("giving up root and user needs root")
            sys.exit(SKIPPED)
        run_by_ring(bench, program, what, empty)


# Connections of one user, that say how many of them became rings.
OF_A_USER = EXCHANGES + """
import sys
listener = socket.create_server((sys.argv[1], 0))
pairs, rings = [], 0
for _ in range(int(sys.argv[2])):
    one = socket.create_connection(listener.getsockname())
    pairs.append((one, listener.accept()[0]))
    rings += await_rings(pairs[-1]) != 0
print(rings, flush=True)
sys.stdin.readline()
for pair in pairs:
    both_ways(pair, 10)
"""


def users(bench):
    """Two users on one host: the quota of one does not touch the other, and neither sees nor ends what the other has. What
    the daemon has said of a program's connections is shown while all of them last."""
    if os.geteuid() != 0:
        print("needs root")
        sys.exit(SKIPPED)
    few, many, ntb_ss = 64001, 64002, pathlib.Path(bench.ntbd).with_name("ntb-ss")
    bench.end(bench.children[0], "ntbd")
    with open(bench.folder / "ntbd.conf", "a", encoding="ascii") as file:
        file.write(f"quota {few} connections 4\n")
    bench.start_daemon()
    bench.open_to_others()

    def listed(user):
        done = bench.run(*as_user(user), ntb_ss, bench.folder / "ntbd.sock", under=False)
        expect(done.returncode == 0, done)
        return [line.split() for line in done.stdout.splitlines()[1:]]

    def matched(program):
        shown = bench.run(ntb_ss, "--programs", under=False).stdout
        found = re.search(rf"^ *{program.child.pid} +(\d+) ", shown, re.MULTILINE)
        return int(found[1]) if found else 0

    for _ in range(20):
        with contextlib.ExitStack() as stack:
            programs = {user: stack.enter_context(bench.talk(f"{user}", *as_user(user), *bench.prefix, "/usr/bin/python3", "-c",
                                                             OF_A_USER, SERVER, 4)) for user in (few, many)}
            rings = {user: int(program.child.stdout.readline()) for user, program in programs.items()}
            # Both ends of each connection are the user's.
            expect(rings[few] <= 2, f"{rings} {bench.said(str(few))}")
            rows = {user: listed(user) for user in programs}
            expect(all(row[4] == str(user) for user, found in rows.items() for row in found), rows)
            expect(all(matched(program) >= 2 * rings[user] for user, program in programs.items()), rings)
            if rings[many] > 2:
                expect(len(rows[many]) >= 2 * rings[many], f"{rings} {rows}")
                refused = bench.run(*as_user(few), ntb_ss, bench.folder / "ntbd.sock", "--revoke", rows[many][0][0], under=False)
                expect(refused.returncode == 1, refused)
            for program in programs.values():
                program.go_on()
                program.ends()
        if rings[few] > 0 and rings[many] > 2:
            break
    expect(rings[few] > 0 and rings[many] > 2, rings)


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


# In which the server's child is killed: what it had counted is lost.
UNREAD = {"unread_poll", "unread_select", "unread_epoll", "unread_edge", "unread_send"}


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
            moved = (max if name in UNREAD else min)(by_ring(done.stderr))
            if name in SHARED or moved > 10000:
                break
        expect((moved > 10000) == (name not in SHARED), f"{name}: {done}")
        expect(name != "both" or "while another process had them too" in done.stderr, f"{name}: {done}")
    # No one answers the child's claim.
    bench.children[0].kill()
    for name in names:
        done = bench.run(of[name], name)
        expect((done.returncode, done.stdout, by_ring(done.stderr)) == (0, "served\n", (0, 0)), f"{name}: {done}")


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
            with bench.talk("client", *words, about=name) as client:
                client.reaches("at")
                if waits:
                    await_fact(lambda server=server: runs_cat(server.pid), name)
                    client.go_on()
                said = client.ends()
                expect(said in (("all\n",) if waits else ("all\n", "reset\n")),
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


if __name__ == "__main__":
    run_case(traps, costs, apart, users, forked, unnamed, families, forking, inetd, replaced)
