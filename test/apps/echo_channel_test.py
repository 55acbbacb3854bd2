# SPDX-License-Identifier: BSD-3-Clause
"""ntbmsg-echo over channels of the library, between two processes.

    echo_channel_test.py ntbmsg-echo hello_c CASE
"""

import re

from echo_hosts import PATIENCE, expect, run_case


def both(world, count, *own):
    """A host that listens and echoes, and one that connects."""
    peer = world.console("serve", "--channels", str(count), "--auto-start")
    host = world.console("send", "--channels", str(count), "--connect", *own)
    return peer, host


def case_ping(world):
    peer, host = both(world, 3, "--forward-mode", "ping", "--count", "200", "--in-flight", "8")
    host.tell("start", f"wait connected {PATIENCE}", f"wait done {PATIENCE}")
    answer = host.ask("show stats")
    for i in range(3):
        expect(f"channel {i}: ping on lcore 1, running\n  received    200 messages" in answer, answer)
    expect(answer.count("200 answers") == 3 and "unexpected" not in answer, answer)
    answer = host.ask("show channels")
    expect(len(re.findall(r"channel \d +ping +1  open", answer)) == 3, answer)
    expect(len(re.findall(r"channel \d +echo +1  open", peer.ask("show channels"))) == 3, "peer")
    host.quit()
    peer.quit()


def case_built_in_place(world):
    """On several channels, of which one at a time has rooms, beside a queue."""
    both_ways = ("--queues", "1", "--channels", "3")
    peer = world.console("serve", *both_ways, "--build", "in-place", "--auto-start")
    host = world.console("send", *both_ways, "--connect", "--forward-mode", "ping", "--count", "300")
    for size in (1, 2048, 2049, 70000):
        host.tell(f"set size {size}", "set in-flight 8", "start", f"wait connected {PATIENCE}",
                  f"wait done {PATIENCE}")
        answer = host.ask("show stats")
        expect(answer.count("300 answers") == 4 and "unexpected" not in answer, answer)
        host.tell("stop")
        answer = peer.ask("show stats")
        built = [int(n) for n in re.findall(r"built +(\d+) messages in receive buffers", answer)]
        expect(len(built) == 4 and min(built) > 0 and (size > 2048 or set(built) == {300}), answer)
        peer.ask("clear stats")
    host.quit()
    peer.quit()


def case_many_with_long_messages(world):
    """Each channel is granted a whole message of the size that both sides were started with; what a channel
    does not take is an error at start."""
    count = "80"
    peer = world.console("serve", "--channels", count, "--max-message", "70000", "--auto-start")
    host = world.console("send", "--channels", count, "--connect", "--forward-mode", "ping", "--count", "3",
                         "--size", "70000")
    host.tell("start", f"wait done {PATIENCE}")
    answer = host.ask("show stats")
    expect(answer.count("3 answers") == 80, answer)
    peer.quit()
    host.tell("stop")
    peer = world.console("serve", "--channels", count, "--auto-start")
    host.tell("start", f"wait done {PATIENCE}")
    host.process.expect_end(1, "channel ", " takes messages of ", "not of size 70000: start the peer with "
                            "--max-message 70000, or both with fewer --channels")
    peer.quit()
    peer = world.console("serve", "--channels", count, "--max-message", "70000", "--auto-start")
    host = world.console("send", "--channels", count, "--connect", "--forward-mode", "ping", "--count", "3")
    host.tell("set size 70000", "start", f"wait done {PATIENCE}")
    host.process.expect_end(1, " has room for answers of ", "start this side with --size 70000")
    peer.quit()


def case_built_for_peers_that_die(world):
    peer = world.console("serve", "--channels", "2", "--build", "in-place", "--auto-start")
    own = ("--channels", "2", "--connect", "--forward-mode", "ping", "--size", "5000", "--in-flight", "16",
           "--auto-start")
    for _ in range(3):
        host = world.console("send", *own)
        host.await_answer("show stats", r"\d{3,} answers(.|\n)*\d{3,} answers")
        host.process.child.kill()
    host = world.console("send", *own)
    host.await_answer("show stats", r"\d{3,} answers(.|\n)*\d{3,} answers")
    host.quit()
    peer.quit()


def case_modes(world):
    """Beside a queue, and each in a mode of its own; every message once."""
    peer = world.console("serve", "--queues", "1", "--channels", "2")
    peer.tell("set fwd rxonly", "set fwd echo 2", "start")
    host = world.console("send", "--queues", "1", "--channels", "2", "--connect", "--count", "300",
                         "--size", "500")
    host.tell("set fwd txonly", "set fwd ping 2", "start", f"wait connected {PATIENCE}",
              f"wait done {PATIENCE}")
    answer = host.ask("show stats")
    expect("queue 0: txonly" in answer and "channel 0: txonly" in answer, answer)
    expect("channel 1: ping" in answer and "300 answers" in answer, answer)
    peer.await_answer("show stats", r"queue 0: rxonly.*\n  received    300 messages, 150000 bytes")
    peer.await_answer("show stats", r"channel 0: rxonly.*\n  received    300 messages, 150000 ")
    host.quit()
    peer.quit()


def case_files(world):
    folder = world.folder / "received"
    folder.mkdir()
    file = world.file(3_000_001)
    peer = world.console("serve", "--channels", "1", "--forward-mode", "file", "--dir", str(folder),
                         "--auto-start")
    host = world.console("send", "--channels", "1", "--connect", "--forward-mode", "file",
                         "--auto-start")
    host.tell(f"send {file}", f"wait done {PATIENCE}")
    host.ask("show stats")
    expect((folder / "sent").read_bytes() == file.read_bytes(), "it differs")
    host.quit()
    peer.quit()


def case_peer_restarted(world):
    """Channels are connected again after each loss."""
    peer, host = both(world, 2, "--forward-mode", "ping", "--auto-start")
    host.await_answer("show stats", r"\d{2,} answers(.|\n)*\d{2,} answers")
    peer.process.child.kill()
    host.process.await_text("the peer was lost")
    host.tell("clear stats")
    peer = world.console("serve", "--channels", "2", "--auto-start")
    host.tell(f"wait connected {PATIENCE}", "clear stats")
    host.await_answer("show stats", r"\d{2,} answers(.|\n)*\d{2,} answers")
    host.quit()
    peer.quit()


def case_connecting_side_restarted(world):
    peer, host = both(world, 2, "--forward-mode", "ping", "--auto-start")
    host.await_answer("show stats", r"\d{2,} answers")
    host.quit()
    host = world.console("send", "--channels", "2", "--connect", "--forward-mode", "ping",
                         "--auto-start")
    host.await_answer("show stats", r"\d{2,} answers(.|\n)*\d{2,} answers")
    host.quit()
    peer.quit()


def case_link_lost(world):
    peer, host = both(world, 1, "--forward-mode", "ping", "--auto-start")
    host.await_answer("show stats", r"\d{2,} answers")
    host.tell("inject link-down")
    host.process.await_text("the peer was lost")
    host.tell("inject link-down 0", f"wait connected {PATIENCE}", "clear stats")
    host.await_answer("show stats", r"\d{2,} answers")
    host.quit()
    peer.quit()


def case_fewer_channels_there(world):
    """A channel that the peer does not have stays unconnected; the others work."""
    peer = world.console("serve", "--channels", "1", "--auto-start")
    host = world.console("send", "--channels", "2", "--connect", "--forward-mode", "ping",
                         "--auto-start")
    host.await_answer("show stats", r"channel 0: (.|\n)*\d{2,} answers")
    host.await_answer("show channels", r"channel 1 +ping +1  rejected by the peer")
    host.tell("wait connected 0.1")
    host.process.expect_end(1, "no peer connected in time: not all channels are open")
    peer.quit()


def case_bad_options(world):
    for own, text in ((["-i", "--connect"], "--connect goes with --channels"),
                      (["-i", "--channels", "1025"], "must be a number from 1 to 1024"),
                      (["-i", "--channels", "1", "--queues", "64"], "leaves no queue pair"),
                      (["--serve", "--channels", "1"], "--channels goes with --interactive")):
        world.harness("send", *own).expect_end(2, text)


if __name__ == "__main__":
    run_case(globals())
