# SPDX-License-Identifier: BSD-3-Clause
"""ntbmsg-pktgen and a peer that is no good one: a server goes on to the next client, and no one is deaf to
a signal.

    pktgen_wrong_test.py ntbmsg-pktgen SCHEMA wrong_client CASE
"""

import signal
import subprocess
import time

from echo_hosts import PATIENCE, expect
from pktgen_lab import SHORT, await_points, expect_good, run_case

# What a signal may take on a machine that is busy or instrumented. All is well in a tenth of a second.
SOON = 8
QUEUES = ("--queues", "63")


def expect_soon(process, status):
    """It ends within SOON of a SIGINT."""
    process.child.send_signal(signal.SIGINT)
    begin = time.monotonic()
    process.expect_end(status)
    passed = time.monotonic() - begin
    expect(passed < SOON, f"{passed:.1f} s after the signal")


def expect_service(lab):
    expect_good(lab.measured("--mode", "rate", "--size", "64", *QUEUES, memory=512)["points"][0])


def deaf_client(lab):
    """A server with reports that its client does not take."""
    server = lab.serve(*QUEUES, memory=512)
    client = lab.host("send", ["--deaf"], memory=512, program=lab.wrong, stdin=subprocess.PIPE)
    client.await_text("deaf from now on")
    return server, client


def case_wrong_messages(lab):
    server = lab.serve(*QUEUES, memory=512)
    lab.host("send", ["--messages"], memory=512, program=lab.wrong).expect_end(0, "all were answered")
    server.await_text("the session is dropped")
    expect(server.text().count("the session is dropped") == 1, "a peer fills the log")
    server.await_text("the client has left")
    expect_service(lab)


def case_deaf_client_dropped(lab):
    server, client = deaf_client(lab)
    server.await_text("the session is dropped: it takes no messages")
    client.child.stdin.close()
    client.expect_end(0)
    expect_service(lab)


def case_deaf_client_and_a_signal(lab):
    server, client = deaf_client(lab)
    expect_soon(server, 0)
    client.child.stdin.close()


def case_interrupted_with_a_silent_server(lab):
    server = lab.serve()
    client = lab.host("send", [*SHORT, "--timeout", str(PATIENCE), "--mode", "latency", "--size", "64",
                               "--repeat", "1000", "--no-probe", "--json", str(lab.folder / "result")])
    await_points(lab, client, 1)
    server.child.send_signal(signal.SIGSTOP)
    expect_soon(client, 128 + signal.SIGINT)
    expect(lab.result()["points"][0]["complete"], "points were lost")


if __name__ == "__main__":
    run_case(globals())
