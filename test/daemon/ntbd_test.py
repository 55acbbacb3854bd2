#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ntbd, ntb-ss and clients as processes; with a device, two daemons are joined by the twin.

  ntbd_test.py CASE NTBD NTB_SS CLIENT_HOST
"""

import itertools
import os
import pathlib
import random
import re
import shutil
import signal
import stat
import subprocess
import sys

from hosts import PATIENCE, USERS, as_root, await_fact, expect, run_case, stop

BYTES = 2000000


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=PATIENCE,
                          check=False)


def options(lab):
    """What is wrong is said in one line, with file and line."""
    expect(run(lab.ntbd).returncode == 2, "no arguments")
    expect(run(lab.ntbd, "--config", "/x", "more").returncode == 2, "more arguments")
    expect(run(lab.ntbd, "--bad").returncode == 2, "an unknown option")
    expect("--config FILE" in run(lab.ntbd, "--help").stdout, "help")
    expect(run(lab.ntbd, "--version").stdout.startswith("ntbd "), "version")
    path = lab.configure("a", False, "mode 999")
    for check in ([], ["--check"]):
        done = run(lab.ntbd, "--config", path, *check)
        expect(done.returncode == 1, done)
        expect(done.stderr == f"ntbd: {path}:3: '999' is no octal mode up to 0777\n", done)
    expect(run(lab.ntbd, "--config", lab.configure("a"), "--check").returncode == 0, "a right one")
    path = lab.configure("a", True, "eal --no-such-option")
    done = run(lab.ntbd, "--config", path)
    expect(done.returncode == 1 and f"ntbd: {path}: the EAL does not start" in done.stderr, done)
    done = run(lab.ntb_ss, lab.folder / "nothing")
    expect(done.returncode == 1 and "No such file" in done.stderr, done)
    expect(run(lab.ntb_ss).returncode == 2, "ntb-ss without a socket")
    expect(run(lab.ntb_ss, "x", "--revoke", "12x").returncode == 2, "ntb-ss with a wrong number")
    expect(run(lab.ntb_ss, "x", "--programs").returncode == 2, "ntb-ss --programs with a socket")
    expect(run(lab.ntb_ss, "--programs").stdout.split()[:3] == ["PID", "MATCHED", "PROGRAM"], "ntb-ss --programs")


def local(lab):
    """One daemon, no device."""
    daemon = lab.daemon("a")
    server = lab.clients("a", None, "serve", "echo", "local")
    server.await_text("serving")
    lab.clients("a", None, "ask", "echo", BYTES, "local").end(0)
    server.await_text("end 0")
    lab.await_no_connection("a")
    pump = lab.clients("a", None, "pump", "echo", "local")
    pump.await_text("pumping")
    rows = lab.list("a")
    expect(len(rows) == 2 and {row[2] for row in rows} == {"connected", "accepted"}, rows)
    expect(all(row[-1] == "echo" and row[1] == "open" and int(row[7]) > 0 for row in rows), rows)
    expect(run(lab.ntb_ss, lab.socket("a"), "--revoke", "999").returncode == 1, "revoke nothing")
    expect(run(lab.ntb_ss, lab.socket("a"), "--revoke", rows[0][0]).returncode == 0, "revoke")
    pump.end(1)
    expect("-104" in pump.text(), pump.text())
    server.await_text("end -104")
    other = run(lab.ntbd, "--config", lab.configure("a"))
    expect(other.returncode == 1 and "another daemon is there" in other.stderr, other)
    stop(daemon)
    server.end(1)
    expect(not lab.socket("a").exists(), "the socket is left")


def reload(lab):
    """SIGHUP: what can be taken over is; a wrong file changes nothing."""
    daemon, times = lab.daemon("a"), itertools.count(1)

    def change(*lines):
        lab.configure("a", False, *lines)
        daemon.child.send_signal(signal.SIGHUP)

    def reread(*lines):
        change(*lines)
        daemon.await_text("read again", next(times))

    reread("quota default clients 0")
    client = lab.clients("a", None, "attach")
    client.end(0)
    expect("status -122" in client.text(), client.text())
    reread(f"allow {USERS[1]}")
    client = lab.clients("a", None, "attach")
    client.end(0)
    expect(f"status {-13 if os.getuid() != USERS[1] else 0}" in client.text(), client.text())
    change("quota default clients many")
    daemon.await_text("a.conf:3: 'many' is no number up to 1000000; the configuration stays as it was")
    change("mode 0600")
    daemon.await_text("changes of mode need a restart; the others are taken")
    client = lab.clients("a", None, "attach")
    client.end(0)
    expect("status 0" in client.text(), client.text())
    for ring, least in (("32K", 2 * 32768), ("256K", 2 * 262144)):
        lab.ring = ring
        reread()
        server = lab.clients("a", None, "serve", "echo", "local")
        server.await_text("serving")
        pump = lab.clients("a", None, "pump", "echo", "local")
        pump.await_text("pumping")
        maps = pathlib.Path(f"/proc/{pump.child.pid}/maps").read_text(encoding="ascii")
        sizes = [int(end, 16) - int(start, 16) for start, end in re.findall(r"^(\w+)-(\w+) .*ntbd-connection", maps, re.M)]
        expect(sizes and least < max(sizes) <= least + 8192, f"{ring}: {sizes} {maps}")
        for one in (pump, server):
            one.child.kill()
            one.child.wait()
    stop(daemon)


def unit(lab):
    """The example for systemd is one that it takes."""
    if shutil.which("systemd-analyze") is None:
        print("not installed: systemd-analyze")
        sys.exit(77)
    example = pathlib.Path(__file__).resolve().parents[2] / "examples" / "ntbd" / "ntbd@.service"
    path = lab.folder / "ntbd@ntb0.service"
    path.write_text(example.read_text(encoding="ascii").replace("/usr/local/bin/ntbd", os.path.abspath(lab.ntbd)), encoding="ascii")
    done = run("systemd-analyze", "verify", path)
    # It says what is wrong with others on the machine as well.
    own = [line for line in done.stderr.splitlines() if path.name in line]
    expect((done.returncode, done.stdout, own) == (0, "", []), done)


def users(lab):
    """Users are kept apart by mode, by configuration, and in what they see. The daemon is none of them."""
    lab.folder.chmod(0o777)
    daemon = lab.daemon("a", False, f"user {USERS[0]}", f"allow {USERS[1]} {USERS[2]} root")
    status = (lab.folder.parent / f"/proc/{daemon.child.pid}/status").read_text()
    for line in ("Uid", "Gid"):
        expect(f"{line}:" + f"\t{USERS[0]}" * 4 + "\n" in status, status)
    expect("CapEff:\t0000000000000000\n" in status and "Groups:\t \n" in status, status)
    expect(stat.S_IMODE(lab.socket("a").stat().st_mode) == 0o666, "mode")
    server = lab.clients("a", USERS[1], "serve", "echo", "local")
    server.await_text("serving")
    pump = lab.clients("a", USERS[2], "pump", "echo", "local")
    pump.await_text("pumping")
    expect(f"peer {USERS[1]}\n" in pump.text(), pump.text())
    rows = lab.list("a")  # root sees both
    expect({int(row[4]) for row in rows} == {USERS[1], USERS[2]}, rows)
    for user, rights in ((USERS[1], 1), (USERS[2], 1)):
        seen = subprocess.run([lab.ntb_ss, lab.socket("a")], user=user, group=user, extra_groups=[], text=True,
                              capture_output=True, timeout=PATIENCE, check=True).stdout.splitlines()[1:]
        expect(len(seen) == rights and seen[0].split()[4] == str(user), seen)
    others = next(row[0] for row in rows if int(row[4]) == USERS[2])
    refused = subprocess.run([lab.ntb_ss, lab.socket("a"), "--revoke", others], user=USERS[1], group=USERS[1],
                             extra_groups=[], timeout=PATIENCE, capture_output=True, check=False)
    expect(refused.returncode == 1, refused)
    stranger = lab.clients("a", 64003, "attach")
    stranger.end(0)
    expect("status -13" in stranger.text(), stranger.text())
    pump.child.kill()
    server.await_text("end -104")
    lab.await_no_connection("a")
    stop(daemon)


def carried(lab):
    """The same through the daemons."""
    hosts(lab, "carrier daemon")


def hosts(lab, *lines):
    """Two daemons joined by the twin; clients of two users."""
    first, second = (lab.daemon(name, True, *lines) for name in "ab")
    for daemon in (first, second):
        daemon.await_text("joined with the daemon of the peer host")
    user = (USERS[1], USERS[2]) if as_root() else (None, None)
    server = lab.clients("a", user[0], "serve", "echo")
    server.await_text("serving")
    client = lab.clients("b", user[1], "ask", "echo", BYTES)
    client.end(0)
    expect(f"checked {BYTES}" in client.text(), client.text())
    expect(f"peer {user[0] if as_root() else os.getuid()}\n" in client.text(), client.text())
    lab.await_no_connection("a", "b")
    # A daemon that is killed: its clients and those at the peer see a reset; another one is joined.
    pump = lab.clients("b", user[1], "pump", "echo")
    pump.await_text("pumping")
    first.child.kill()
    first.child.wait()
    pump.end(1)
    expect("-104" in pump.text(), pump.text())
    server.end(1)
    first = lab.daemon("a", True, *lines)
    first.await_text("joined with the daemon of the peer host")
    server = lab.clients("a", user[0], "serve", "echo")
    server.await_text("serving")
    lab.clients("b", user[1], "ask", "echo", BYTES).end(0)
    lab.await_no_connection("a", "b")
    stop(first)
    second.await_text("the daemon of the peer host is gone", 2)
    stop(second)


def descriptors_of(daemon):
    """What they stand for."""
    names = []
    for entry in pathlib.Path(f"/proc/{daemon.child.pid}/fd").iterdir():
        try:
            names.append(os.readlink(entry))
        except FileNotFoundError:
            names.append("closed meanwhile")
    return sorted(names)


def killed(lab):
    """Clients and servers that are killed at any time, one after another, leave nothing behind."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    daemon = lab.daemon("a")
    # Once it has answered it has all that it opens at its start, and then the socket that it listens at alone.
    lab.list("a")
    await_fact(lambda: sum(name.startswith("socket:") for name in descriptors_of(daemon)) == 1,
               lambda: f"no client: {descriptors_of(daemon)}")
    before = descriptors_of(daemon)
    for _ in range(40):
        server = lab.clients("a", None, "serve", "echo", "local")
        pump = lab.clients("a", None, "pump", "echo", "local")
        victim, other = (server, pump) if chance.random() < 0.5 else (pump, server)
        if chance.random() < 0.7:
            pump.await_text("pumping")
        try:
            victim.child.wait(chance.random() * 0.01)
        except subprocess.TimeoutExpired:
            victim.child.kill()
        expect("wrong byte" not in pump.text(), pump.text())
        if other is pump and "pumping" in pump.text():
            pump.end(1)
        else:
            other.child.kill()
            other.child.wait()
    lab.await_no_connection("a")
    await_fact(lambda: len(descriptors_of(daemon)) == len(before),
               lambda: f"its descriptors are closed: {descriptors_of(daemon)} instead of {before}")
    with open(f"/proc/{daemon.child.pid}/maps", encoding="ascii") as maps:
        expect("ntbd-connection" not in maps.read(), "its memory is unmapped")
    stop(daemon)


CASES = {case.__name__: case for case in (options, unit, local, reload, users, hosts, killed, carried)}


def main():
    case = CASES[sys.argv[1]]
    if case is users and not as_root():
        print("needs root")
        sys.exit(77)
    run_case(sys.argv[1], sys.argv[2:5], case)


if __name__ == "__main__":
    main()
