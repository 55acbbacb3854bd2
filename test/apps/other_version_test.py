# SPDX-License-Identifier: BSD-3-Clause
"""Our programs against a host that speaks another version of the wire protocol: each says so in words
that name the reason, and none hangs.

    other_version_test.py PROGRAM other_version_host CASE
"""

import signal
import subprocess

from echo_hosts import PATIENCE, Process, await_fact, expect, run_case

WHY = "peer was refused: the peer speaks another version of the protocol"


def meet(world):
    """The other host at the other end of the cable. It speaks when it sees somebody there."""
    host = Process([world.hello, str(world.folder / "cable")], world.folder / "other", subprocess.PIPE)
    world.processes.append(host)
    return host


def leave(host):
    host.child.stdin.close()
    host.expect_end(0, "spoken")


def expect_refusal(world, program):
    host = meet(world)
    program.expect_end(1, WHY)
    leave(host)


def case_sends(world):
    expect_refusal(world, world.send(world.file(10_000), "--timeout", str(PATIENCE)))


def case_serves(world):
    """It goes on to the next client."""
    server = world.serve()
    host = meet(world)
    server.await_text("the " + WHY)
    leave(host)
    file = world.file(10_000)
    # Until the server's driver has noticed that the other host has left, its refusal of that one is what a
    # client finds.
    await_fact(lambda: world.send(file).end() == 0, "a client that is served")
    expect("came back byte for byte" in world.processes[-1].text(), "no service")
    server.child.send_signal(signal.SIGINT)
    server.expect_end(0)


def case_serves_for_a_time(world):
    """With a time to wait for the first client, a refused one is none."""
    server = world.serve("--timeout", "2")
    meet(world)
    server.expect_end(1, "no peer connected in")


def case_harness(world):
    """It stays, since somebody else may come."""
    console = world.console("send")
    host = meet(world)
    console.process.await_text("link: the " + WHY)
    expect("another version" in console.ask("show link"), console.process.text())
    leave(host)
    world.harness("serve", "--forward-mode", "echo")
    console.process.await_text("link: a peer is connected")
    console.quit()


def case_drives_pktgen(world):
    expect_refusal(world, world.start(world.echo, world.cores["send"], ["--timeout", str(PATIENCE)]))


def case_serves_pktgen(world):
    """It goes on to the next client."""
    server = world.serve()
    host = meet(world)
    server.await_text("the " + WHY)
    leave(host)
    server.child.send_signal(signal.SIGINT)
    server.end()


if __name__ == "__main__":
    run_case(globals())
