#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Verbs between processes of two hosts that have a node daemon each, over the twin.

  hosts_test.py CASE CARRIER NTBD NTB_SS VERBS_HOST    (VERBS_RULES for the case "rules")
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))
from hosts import PATIENCE, await_fact, expect, run_case, stop

RETRY_EXC_ERR, WR_FLUSH_ERR = "12", "5"


def daemons(lab, carrier):
    lab.ring = "64K"
    pair = [lab.daemon(name, True, f"carrier {carrier}") for name in "ab"]
    for daemon in pair:
        daemon.await_text("joined with the daemon of the peer host")
    return pair


def here(process):
    process.await_text("here ")
    return process.text().split("here ")[1].splitlines()[0]


def meet(lab, server_at, client_at, *words):
    """A server and a client whose queue pairs are connected. Both are direct if the client is to be."""
    serves = "answer" if words[0] == "talk" else "serve"
    return introduce(lab, (server_at, serves, *words[2 if serves == "serve" else 1:]), (client_at, *words))


def introduce(lab, server, client):
    """Two programs, each of a daemon and words, as soon as their queue pairs are connected to each other."""
    both = [lab.start([lab.client, lab.socket(at), *words], name)
            for name, (at, *words) in (("server", server), ("client", client))]
    addresses = [here(process) for process in both]
    both[0].tell(addresses[1])
    both[1].tell(addresses[0])
    for process in both:
        process.await_text("connected")
    return both


def halt(process):
    process.child.send_signal(signal.SIGSTOP)
    os.waitpid(process.child.pid, os.WUNTRACED)


def flood(client):
    client.await_text("ready")
    client.tell("go")
    client.await_text("posted")


def statuses_of(client):
    return client.text().split("completed")[1].split()[:64]


def operations(lab, carrier):
    """Every operation of a reliable connection, by programs that poll and that sleep, of two hosts and of one."""
    pair = daemons(lab, carrier)
    for server_at, client_at, how in (("a", "b", "poll"), ("a", "b", "wait"), ("b", "a", "wait"), ("a", "a", "wait")):
        server, client = meet(lab, server_at, client_at, "ask", how)
        client.end(0)
        server.tell("end")
        server.end(0)
    lab.await_no_connection("a", "b")
    for daemon in pair:
        stop(daemon)


def killed(lab, carrier):
    """A peer that dies with 64 requests under way: the first fails, the others are flushed; the next peer is reached."""
    pair = daemons(lab, carrier)
    for how in ("stopped", "at work"):
        server, client = meet(lab, "a", "b", "flood", "64")
        client.await_text("ready")
        if how == "stopped":
            halt(server)
        flood(client)
        server.child.kill()
        server.child.wait()
        client.end(0)
        statuses = statuses_of(client)
        good = statuses.count("0")
        expect(how != "stopped" or good == 0, statuses)
        if how == "stopped" or good < 64:
            expect(statuses == ["0"] * good + [RETRY_EXC_ERR] + [WR_FLUSH_ERR] * (63 - good), statuses)
    lab.await_no_connection("a", "b")
    server, client = meet(lab, "a", "b", "ask", "wait")
    client.end(0)
    server.tell("end")
    server.end(0)
    for daemon in pair:
        stop(daemon)


def daemon_killed(lab, carrier):
    """The peer's daemon dies: its client is lost, and reached again by the next daemon."""
    pair = daemons(lab, carrier)
    server, client = meet(lab, "a", "b", "flood", "64")
    client.await_text("ready")
    halt(server)
    flood(client)
    pair[0].child.kill()
    pair[0].child.wait()
    client.end(0)
    expect(statuses_of(client) == [RETRY_EXC_ERR] + [WR_FLUSH_ERR] * 63, client.text())
    expect(client.text().count("ntbverbs: the node daemon has lost that of the peer host") == 1, client.text())
    server.child.kill()
    joins = pair[1].text().count("joined with")
    again = lab.daemon("a", True, f"carrier {carrier}")
    await_fact(lambda: pair[1].text().count("joined with") > joins, pair[1].text)
    server, client = meet(lab, "a", "b", "ask", "wait")
    client.end(0)
    server.tell("end")
    server.end(0)
    for daemon in (again, pair[1]):
        stop(daemon)


def granted(lab, carrier):
    """Memory is granted by the daemons to an end on their machine; either end is killed while one writes to it."""
    pair = daemons(lab, carrier)
    for server_at, client_at, how in (("a", "b", "poll"), ("b", "a", "wait"), ("a", "a", "poll")):
        is_granted = carrier == "direct" or server_at == client_at
        server, client = meet(lab, server_at, client_at, "ask", how, *["granted"] * is_granted, "direct")
        client.end(0)
        count = int(re.search(r"(\d+) without a message", client.text())[1])
        expect((count > 0) == is_granted, client.text())
        server.tell("end")
        server.end(0)
    server_at = "a" if carrier == "direct" else "b"
    # Who writes: the memory is its owner's again.
    server, client = meet(lab, server_at, "b", "fill", "poll", "direct")
    client.await_text("direct")
    client.child.kill()
    client.child.wait()
    server.tell("end")
    server.end(0)
    # Whose memory it is: no write succeeds any more.
    server, client = meet(lab, server_at, "b", "fill", "poll", "direct")
    client.await_text("direct")
    server.child.kill()
    server.child.wait()
    client.await_text("ended " + RETRY_EXC_ERR)
    client.end(0)
    lab.await_no_connection("a", "b")
    for daemon in pair:
        stop(daemon)


def rules(lab, carrier):
    """What a reliable connection, an unreliable one and datagrams promise, rule by rule, each end in a process."""
    names = subprocess.run([lab.client, "names"], capture_output=True, text=True, timeout=PATIENCE,
                           check=True).stdout.split()
    pair = daemons(lab, carrier)
    granted_at = "b" if carrier == "direct" else "a"
    for server_at, client_at, *how in (("a", "b", "poll"), ("b", "a", "wait"), ("a", "a", "wait"),
                                       ("a", granted_at, "poll", "granted")):
        for name in names:
            both = introduce(lab, (server_at, "serve", name, *how), (client_at, "ask", name, *how))
            await_fact(lambda both=both: any(process.child.poll() is not None for process in both),
                       lambda name=name, how=how: f"an end of {name}, {how}")
            # Who fails leaves the other one waiting.
            for process in sorted(both, key=lambda process: process.child.poll() is None):
                process.end(0)
    lab.await_no_connection("a", "b")
    for daemon in pair:
        stop(daemon)


def last_words(lab, carrier):
    """A program that answers each request at once ends when it has the last one: that one is complete."""
    pair = daemons(lab, carrier)
    for server_at, client_at in (("a", "b"), ("a", "a")):
        for _ in range(5):
            server, client = meet(lab, server_at, client_at, "talk", "poll")
            server.end(0)
            client.end(0)
    lab.await_no_connection("a", "b")
    for daemon in pair:
        stop(daemon)


def small_rings(lab, carrier):
    """Rings that are too small for verbs: each end says so, and the requests fail."""
    pair = [lab.daemon(name, True, f"carrier {carrier}") for name in "ab"]
    for daemon in pair:
        daemon.await_text("joined with the daemon of the peer host")
    _, client = meet(lab, "a", "b", "ask", "wait")
    client.end(1)
    expect(f"failed: completion: {RETRY_EXC_ERR}" in client.text(), client.text())
    expect("rings have 16384 bytes, and verbs need 32768" in client.text(), client.text())


def no_connections(lab, carrier):
    """No connection is admitted, of who asks or of who listens: the requests fail, and a line says why."""
    lab.ring = "64K"
    for names in ("ab", "cd"):
        pair = [lab.daemon(name, True, f"carrier {carrier}", *(["quota default connections 0"] if name in "ad" else []))
                for name in names]
        for daemon in pair:
            daemon.await_text("joined with the daemon of the peer host")
        _, client = meet(lab, *names, "ask", "wait")
        client.end(1)
        expect(f"failed: completion: {RETRY_EXC_ERR}" in client.text(), client.text())
        expect(client.text().count("a daemon admits no more connections") == 1, client.text())
        for daemon in pair:
            stop(daemon)


CASES = {case.__name__: case for case in (operations, killed, daemon_killed, granted, rules, last_words, small_rings,
                                          no_connections)}


def main():
    case, carrier = sys.argv[1:3]
    run_case(case, sys.argv[3:6], lambda lab: CASES[case](lab, carrier))


if __name__ == "__main__":
    main()
