#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Two ntbd that carry the connections of their clients over the twin, as processes.

  carrier_test.py CASE NTBD NTB_SS CLIENT_HOST
"""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import sys

from hosts import PATIENCE, await_fact, expect, run_case, stop

sys.path += [str(pathlib.Path(__file__).resolve().parent.parent / name) for name in ("apps", "support")]
from telemetry_client import Telemetry
from traces import counts

BYTES = 2000000
JOINED = "joined with the daemon of the peer host, over the bridge"


def daemons(lab, *lines):
    pair = [lab.daemon(name, True, *lines) for name in "ab"]
    for daemon in pair:
        daemon.await_text(JOINED)
    return pair


def shown(lab):
    """ntb-ss and telemetry show which carrier a connection has, and count what goes through it."""
    os.environ["RUNTIME_DIRECTORY"] = str(lab.folder)
    lab.telemetry = True
    pair = daemons(lab, "carrier daemon")
    ask = [Telemetry(lab.folder / "dpdk" / name / "dpdk_telemetry.v2", PATIENCE) for name in "ab"]
    server = lab.clients("a", None, "serve", "echo")
    server.await_text("serving")
    lab.clients("b", None, "ask", "echo", BYTES).end(0)
    lab.await_no_connection("a", "b")
    for one in ask:
        seen = one("/ntbd/carrier")
        expect(seen["carrier"] == "daemon", seen)
        for way in ("tx", "rx"):
            expect(seen[f"{way}_bytes"] == BYTES and 0 < seen[f"{way}_messages"] <= BYTES, seen)
    pump = lab.clients("b", None, "pump", "echo")
    pump.await_text("pumping")
    for name in "ab":
        rows = lab.list(name)
        expect(len(rows) == 1 and rows[0][3] == "relay", rows)
    await_fact(lambda: all(one("/ntbd/carrier")["connections"] == 1 for one in ask), "a connection each")
    for one, listeners in zip(ask, (1, 0)):
        seen = one("/ntbd/stats")
        expect((seen["peer"], seen["open"], seen["connecting"], seen["listeners"]) == (1, 1, 0, listeners), seen)
        expect(seen["clients"] >= 1 and seen["matched"] == 2 and seen["revoked"] == 0, seen)
        seen = one("/ntbd/users")
        own = seen[str(os.getuid())]
        expect(list(seen) == [str(os.getuid())] and own["connections"] == 1 and own["listeners"] == listeners, seen)
        expect(own["clients"] >= 1 and own["bytes"] > 32768 and own["segments"] == 0, seen)
    pump.child.kill()
    server.await_text("end -104")
    lab.await_no_connection("a", "b")
    # Without traffic no one polls: the thread sleeps for its longest.
    await_fact(lambda: all(one("/ntbd/carrier")["connections"] == 0 for one in ask), "no connection")
    for one in ask:
        expect(one("/ntbd/carrier")["polled"] == 0, one("/ntbd/carrier"))
    for daemon in pair:
        stop(daemon)


def traced(lab):
    """Control messages, and who comes and goes, are in the trace of DPDK's trace library."""
    folders = {name: lab.folder / f"trace-{name}" for name in "ab"}
    pair = []
    for name, folder in folders.items():
        folder.mkdir()
        pair.append(lab.daemon(name, True, "carrier daemon", f"eal --trace=ntbd.* --trace-dir={folder}"))
    for daemon in pair:
        daemon.await_text(JOINED)
    server = lab.clients("a", None, "serve", "echo")
    server.await_text("serving")
    lab.clients("b", None, "ask", "echo", 1000).end(0)
    lab.await_no_connection("a", "b")
    for daemon in reversed(pair):
        stop(daemon)
    found = {name: counts(folder, "ntbd.") for name, folder in folders.items()}
    # Of b: the client that asked, which connected and closed, and at least one ntb-ss; of a: the one that serves.
    for name, least in (("a", 2), ("b", 2)):
        for event in ("client.attach", "client.received", "client.sent"):
            expect(found[name][event] >= least, found)
    expect(found["b"]["client.detach"] == found["b"]["client.attach"], found)
    expect(found["b"]["peer.sent"] >= 1 and found["a"]["peer.received"] >= 1, found)
    expect(found["a"]["peer.sent"] >= 1 and found["b"]["peer.received"] >= 1, found)


def choice(lab):
    """Both daemons choose by one rule."""
    for lines, text in ((("auto", "direct"), "on this machine"), (("daemon", "auto"), "over the bridge"),
                        (("daemon", "direct"), "exclude each other's carrier")):
        pair = [lab.daemon(name, True, f"carrier {line}") for name, line in zip("ab", lines)]
        for daemon in pair:
            daemon.await_text(text)
        for daemon in pair:
            stop(daemon)


def killed(lab):
    """Clients, servers and daemons that are killed at any time: what is checked is right, nothing is left."""
    seed = random.randrange(2**32)
    print("seed", seed)
    chance = random.Random(seed)
    pair = dict(zip("ab", daemons(lab, "carrier daemon")))
    for turn in range(30):
        server = lab.clients("a", None, "serve", "echo")
        pump = lab.clients("b", None, "pump", "echo")
        if chance.random() < 0.7:
            pump.await_text("pumping")
        victim = chance.choice((server, pump)) if turn % 5 != 4 else pair[chance.choice("ab")]
        try:
            victim.child.wait(chance.random() * 0.02)
        except subprocess.TimeoutExpired:
            victim.child.kill()
            victim.child.wait()
        if victim is not pump and "pumping" in pump.text():
            pump.end(1)
            expect("-104" in pump.text(), pump.text())
        for process in (server, pump):
            process.child.kill()
            process.child.wait()
            expect("wrong byte" not in process.text(), process.text())
        for name, daemon in pair.items():
            if daemon is victim:
                other = pair["b" if name == "a" else "a"]
                joins = other.text().count(JOINED)
                pair[name] = lab.daemon(name, True, "carrier daemon")
                pair[name].await_text(JOINED)
                other.await_text(JOINED, joins + 1)
    lab.await_no_connection("a", "b")
    for daemon in pair.values():
        def sockets(daemon=daemon):
            found = set()
            for one in os.scandir(f"/proc/{daemon.child.pid}/fd"):
                with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                    found.add(os.readlink(one.path))
            return {link for link in found if link.startswith("socket")}
        # Perhaps with one of a client that has just ended, so which, not how many.
        before = sockets()
        server = lab.clients("a", None, "serve", "echo")
        lab.clients("b", None, "ask", "echo", 10000).end(0)
        server.child.kill()
        server.child.wait()
        lab.await_no_connection("a", "b")
        await_fact(lambda: sockets() <= before, "its sockets are closed")
        # By the carrier's thread, after the sockets.
        maps = pathlib.Path(f"/proc/{daemon.child.pid}/maps")
        await_fact(lambda maps=maps: "ntbd-connection" not in maps.read_text(encoding="ascii"),
                   "its memory is unmapped")
    for daemon in pair.values():
        stop(daemon)


def many(lab):
    """A hundred clients at a time, each of which checks its bytes."""
    pair = daemons(lab, "carrier daemon")
    server = lab.clients("a", None, "serve", "echo")
    server.await_text("serving")
    clients = [lab.clients("b", None, "ask", "echo", 100000) for _ in range(100)]
    for client in clients:
        client.end(0)
    await_fact(lambda: server.text().count("end 0") == len(clients), server.text)
    lab.await_no_connection("a", "b")
    for daemon in pair:
        daemon.child.send_signal(signal.SIGTERM)
    for daemon in pair:
        daemon.end(0)


CASES = {case.__name__: case for case in (shown, traced, choice, killed, many)}


def main():
    run_case(sys.argv[1], sys.argv[2:5], CASES[sys.argv[1]])


if __name__ == "__main__":
    main()
