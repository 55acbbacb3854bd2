# SPDX-License-Identifier: BSD-3-Clause
"""ntbmsg-echo as a harness: its modes, commands and prompt, between two processes.

    echo_harness_test.py ntbmsg-echo hello_c CASE
"""

import os
import pty
import re
import signal

from echo_hosts import PATIENCE, await_fact, expect, run_case


def case_ping(world):
    """A command file measures round trips through a peer that echoes."""
    peer = world.harness("serve", "--forward-mode", "echo")
    commands = world.commands("set fwd ping   # round trips", "", "set count 3000", "set in-flight 8",
                              "set size 700", f"wait connected {PATIENCE}", "start",
                              f"wait done {PATIENCE}", "show stats")
    world.harness("send", "--cmdline-file", str(commands)).expect_end(
        0, "received    3000 messages, 2100000 bytes", "sent        3000 messages, 2100000 bytes",
        "3000 answers)")
    peer.await_text("the peer was lost")
    peer.child.send_signal(signal.SIGINT)
    peer.expect_end(0, "received    3000 messages, 2100000 bytes",
                    "sent        3000 messages, 2100000 bytes")


def case_txonly_rxonly(world):
    receiver = world.console("serve", "--forward-mode", "rxonly", "--auto-start")
    sender = world.console("send", "--forward-mode", "txonly", "--size", "300", "--count", "5000")
    sender.tell(f"wait connected {PATIENCE}", "start", f"wait done {PATIENCE}")
    expect("sent        5000 messages, 1500000 bytes" in sender.ask("show stats"), "it sent others")
    receiver.await_answer("show stats", "received    5000 messages, 1500000 bytes")
    expect("sent        0 messages, 0 bytes" in receiver.ask("show stats"), "rxonly sends")
    receiver.ask("clear stats")
    expect("received    0 messages" in receiver.ask("show stats"), "clear stats did not")
    expect(re.search(r"^rx_messages +0$", receiver.ask("show xstats"), re.M), "the device's stats")
    sender.quit()
    receiver.quit()


def case_flowgen(world):
    """Frames go there and back; one that is too short for its headers is refused."""
    world.harness("serve", "--forward-mode", "echo")
    sender = world.console("send", "--forward-mode", "flowgen", "--flows", "7", "--count", "1000")
    sender.tell(f"wait connected {PATIENCE}", "start", f"wait done {PATIENCE}")
    sender.await_answer("show stats", "received    1000 messages, 64000 bytes")
    expect("flows       7" in sender.ask("show stats"), "no word of the flows")
    sender.tell("stop", "set size 41", "start")
    sender.process.expect_end(1, "mode flowgen takes a size from 42 to 65549, not 41")


def case_modes_of_queues(world):
    peer = world.console("serve", "--queues", "2")
    peer.tell("set fwd rxonly 1", "start")
    sender = world.console("send", "--queues", "2", "--count", "200")
    sender.tell("set fwd ping 0", "set fwd txonly 1", f"wait connected {PATIENCE}", "start",
                f"wait done {PATIENCE}")
    answer = sender.ask("show stats")
    expect("queue 0: ping" in answer and "200 answers" in answer, answer)
    expect("queue 1: txonly" in answer, answer)
    answer = peer.await_answer("show stats", r"queue 1: rxonly.*\n  received    200 messages").string
    expect("queue 0: echo" in answer and "sent        200 messages" in answer, answer)
    expect(re.search(r"queue 1 +rxonly +1  connected", peer.ask("show channels")), "show channels")
    sender.quit()
    peer.quit()


def case_two_lcores(world):
    """Each queue has an lcore of its own where there are enough."""
    cores = sorted(world.cores.values())
    world.harness("serve", "--forward-mode", "echo", "--queues", "2",
                  lcores=f"0@{cores[0]},1@{cores[0]},2@{cores[-1]}")
    sender = world.console("send", "--forward-mode", "ping", "--queues", "2", "--count", "50",
                           lcores=f"0@{cores[0]},3@{cores[0]},5@{cores[-1]}")
    sender.tell(f"wait connected {PATIENCE}", "start", f"wait done {PATIENCE}")
    answer = sender.ask("show stats")
    expect("ping on lcore 3" in answer and "ping on lcore 5" in answer, answer)
    expect(answer.count("50 answers") == 2, answer)
    sender.quit()


def case_tx_first(world):
    """Two sides that only send back what comes, and one burst that goes round and round."""
    peer = world.console("serve", "--forward-mode", "echo")
    peer.tell(f"wait connected {PATIENCE}", "start")
    first = world.console("send", "--burst", "4")
    first.tell(f"wait connected {PATIENCE}", "start tx_first")
    first.await_answer("show stats", r"received    \d{4,} messages")
    first.quit()
    peer.quit()


def case_link_down_and_up(world):
    peer = world.console("serve", "--forward-mode", "echo", "--auto-start")
    host = world.console("send", "--forward-mode", "ping", "--auto-start")
    host.await_answer("show stats", r"\d{3,} answers")
    host.tell("link down")
    expect("state       stopped" in host.ask("show link"), "link down did not")
    peer.process.await_text("the peer was lost")
    host.tell("link up", f"wait connected {PATIENCE}", "clear stats")
    host.await_answer("show link", "state       connected") # silent meanwhile, if the machine is busy
    host.await_answer("show stats", r"\d{3,} answers")
    host.quit()
    peer.quit()


def case_faults(world):
    peer = world.console("serve", "--forward-mode", "echo", "--auto-start")
    host = world.console("send", "--forward-mode", "ping", "--in-flight", "32", "--auto-start")
    host.await_answer("show stats", r"\d{3,} answers")
    host.tell("inject link-down")
    host.process.await_text("the peer was lost")
    host.tell("inject link-down 0", f"wait connected {PATIENCE}", "clear stats")
    host.await_answer("show stats", r"\d{3,} answers")
    host.tell("inject link-down 2")
    host.process.expect_end(1, "standard input:", "inject link-down does not take 2")
    peer.quit()


def case_peer_killed(world):
    """What was under way is given up, and the next peer is used."""
    peer = world.harness("serve", "--forward-mode", "echo")
    host = world.console("send", "--forward-mode", "ping", "--in-flight", "16", "--auto-start")
    host.await_answer("show stats", r"\d{3,} answers")
    peer.child.kill()
    host.process.await_text("the peer was lost")
    world.harness("serve", "--forward-mode", "echo")
    host.tell(f"wait connected {PATIENCE}", "clear stats")
    host.await_answer("show stats", r"\d{3,} answers")
    host.quit()


def case_built_in_place(world):
    """Answers are built as they were asked to be, and each start may ask anew."""
    peer = world.console("serve", "--forward-mode", "echo", "--build", "in-place", "--auto-start")
    expect("build       in-place" in peer.ask("show config"), "show config")
    host = world.console("send", "--forward-mode", "ping", "--size", "3000", "--count", "500", "--in-flight", "8")
    host.tell(f"wait connected {PATIENCE}", "start", f"wait done {PATIENCE}")
    expect("500 answers)" in host.ask("show stats"), "answers")
    # Those for which there were too few buffers at a time went as they were.
    built = re.search(r"sent +500 messages, 1500000 bytes.*\n +built +(\d+) messages in receive", peer.ask("show stats"))
    expect(built and int(built[1]) > 0, "built")
    peer.tell("stop", "set build mbuf", "start")
    expect("build       mbuf" in peer.ask("show config"), "set build")
    host.tell("stop", "start", f"wait done {PATIENCE}")
    expect("500 answers)" in host.ask("show stats"), "answers")
    answer = peer.ask("show stats")
    expect("sent        500 messages" in answer and "built" not in answer, answer)
    peer.tell("set build in-place")
    peer.process.expect_end(1, "stop first: build is taken over at start")
    host.quit()


def case_copy_engines(world):
    """Long messages by the engine that was asked for, and back to the CPU's stores."""
    peer = world.console("serve", "--forward-mode", "echo", "--auto-start")
    host = world.console("send", "--forward-mode", "ping", "--size", "4000", "--count", "50")
    for mode, way, other in (("dma", "dma", "cpu"), ("cpu", "cpu", "dma")):
        host.tell(f"set copy {mode}", f"wait connected {PATIENCE}", "clear stats", "start",
                  f"wait done {PATIENCE}")
        answer = host.ask("show copy")
        expect(re.search(rf"tx_{way}_messages +50\n", answer), answer)
        expect(re.search(rf"tx_{other}_messages +0\n", answer), answer)
        host.tell("stop")
    host.quit()
    peer.quit()


def case_no_copy_engine(world):
    """What there is not is refused, and the device is as it was."""
    peer = world.console("serve", "--forward-mode", "echo", "--auto-start")
    host = world.console("send", "--forward-mode", "ping", "--count", "50", vdev=",dma=0")
    host.tell("set copy dma")
    host.process.expect_end(1, "copy dma: the device does not start")
    peer.quit()


def case_shows(world):
    host = world.console("send", "--queues", "2")
    config = host.ask("show config")
    expect("raw_plx_ntb0, twin" in config and "queue 1     echo" in config, config)
    expect("burst       32" in config and "no end" in config, config)
    host.tell("set burst 7", "set size 4K", "set in-flight 9", "set flows 11", "set count 13")
    config = host.ask("show config")
    for text in ("burst       7", "size        4096", "in-flight   9", "flows       11",
                 "count       13 messages"):
        expect(text in config, f"no {text} in {config}")
    expect("not started yet" in host.ask("show stats"), "stats before the first start")
    expect("state       waiting for a peer" in host.ask("show link"), "show link")
    expect("inside the ring  up to 1024 bytes" in host.ask("show copy"), "show copy")
    expect("SPAD[7]" in host.ask("show regs"), "show regs")
    expect("tx_q1_messages" in host.ask("show xstats"), "show xstats")
    expect(re.search(r"queue 0 +echo +-  none", host.ask("show channels")), "show channels")
    listed = host.ask("help")
    for command in ("start tx_first", "set fwd echo|", "inject link-down|", "sleep SECONDS"):
        expect(f"  {command}" in listed, f"no {command} in {listed}")
    host.quit()


def case_statistics_period(world):
    host = world.harness("send", "--forward-mode", "rxonly", "--stats-period", "0.05")
    await_fact(lambda: host.text().count("rxonly on lcore 1, running") >= 3, "three times the stats")
    host.child.send_signal(signal.SIGTERM)
    host.expect_end(0, "rxonly on lcore 1, stopped")


def case_bad_commands(world):
    table = (
        ("nonsense", "there is no such command: nonsense"),
        ("start now", "a word is wrong, or one is missing: start now"),
        ("set fwd", "a word is wrong, or one is missing: set fwd"),
        ("set fwd nonsense", "a word is wrong, or one is missing: set fwd nonsense"),
        ("set fwd echo 1", "there is no queue or channel 1, the last one is 0"),
        ("set fwd echo -1", "-1: must be a number"),
        ("set build there", "a word is wrong, or one is missing: set build there"),
        ("set burst 0", "burst 0: must be a number from 1 to 512"),
        ("set burst 513", "must be a number from 1 to 512"),
        ("set burst 99999999999999999999", "must be a number"),
        ("set size 16M", "size 16777216: must be a number from 0 to 16777215"),
        ("set in-flight 0", "must be a number from 1 to 65536"),
        ("sleep -1", "must be a time in seconds"),
        ("wait connected nan", "must be a time in seconds"),
        ("wait connected 0.01", "no peer connected in time: "),
        ("wait done", "it is not running"),
        ("stop", "it is not running"),
        ("inject nonsense", "a word is wrong, or one is missing: inject nonsense"),
        ("inject link-down 4294967296", "more than 32 bits"),
        ("x" * 9000, "too long"),
        ("print a\0b", "no line of text"),
        ("start\nset fwd rxonly", "stop first"),
        ("start\nset burst 3", "stop first"),
        ("start\nstart", "it is running"),
    )
    for lines, text in table:
        commands = world.commands("# first", *lines.split("\n"), "print never")
        host = world.harness("send", "--cmdline-file", str(commands))
        host.expect_end(1, f"{commands}:{2 + lines.count(chr(10))}: ", text)
        expect("never" not in host.text(), f"it went on after {lines}")


def case_bad_options(world):
    commands = world.commands("show stats")
    table = (
        (2, ["--forward-mode", "nonsense"], "must be one of echo"),
        (2, ["--interactive", "--serve"], "give one of"),
        (2, ["-i", "--seconds", "1"], "--seconds goes with --send"),
        (2, ["-i", "--timeout", "1"], "--timeout goes with --send and --serve"),
        (2, ["--serve", "--burst", "1"], "--burst goes with --interactive"),
        (2, ["--serve", "--stats-period", "1"], "--stats-period goes with --interactive"),
        (2, ["--serve", "--build", "there"], "--build there: must be mbuf or in-place"),
        (2, ["--send", "x", "--build", "in-place"], "--build goes with --serve and mode echo"),
        (2, ["--forward-mode", "ping", "--build", "in-place"], "--build has no effect in mode ping"),
        (2, ["-i", "--burst", "513"], "must be a number from 1 to 512"),
        (1, ["--cmdline-file", "/nowhere"], "/nowhere: No such file"),
        (1, ["--cmdline-file", str(world.folder)], "Is a directory"),
        (1, ["--cmdline-file", str(commands), "--device", "raw_plx_ntb7"], "no device"),
    )
    for status, own, text in table:
        world.harness("send", *own).expect_end(status, text)
    world.start(world.echo, world.cores["send"], ["--forward-mode", "echo"]).expect_end(
        1, "no lcore is left to forward on")


class Terminal:
    """A prompt on a terminal, which gives editing, completion and history."""

    def __init__(self, world):
        self.master, slave = pty.openpty()
        self.process = world.harness("send", "-i", stdin=slave)
        os.close(slave)

    def type(self, text):
        os.write(self.master, text.encode())

    def expect_text(self, text):
        self.process.await_text(text)


def on_terminal(world):
    """The program's output goes to the log; the library's, which echoes keys, does as well."""
    terminal = Terminal(world)
    terminal.expect_text("echo> ")
    return terminal


def case_terminal(world):
    terminal = on_terminal(world)
    terminal.type("sh\tconf\t\n")  # both words completed
    terminal.expect_text("forwarding  stopped")
    terminal.type("set fwd ?")
    terminal.expect_text("what all queues and channels do")
    terminal.type("\x03nonsense\n")  # Ctrl-C clears the line
    terminal.expect_text("Command not found")
    terminal.type("set burst 0\n")
    terminal.expect_text("must be a number from 1 to 512")
    terminal.type("print once\n")
    terminal.expect_text("once")
    before = terminal.process.text().count("\nonce")
    terminal.type("\x1b[A\n")  # the last line again
    await_fact(lambda: terminal.process.text().count("\nonce") > before, "history")
    terminal.type("\x04")  # Ctrl-D
    terminal.process.expect_end(0)
    os.close(terminal.master)


def case_terminal_signal(world):
    terminal = on_terminal(world)
    terminal.process.child.send_signal(signal.SIGTERM)
    terminal.process.expect_end(0)
    os.close(terminal.master)


def case_terminal_closed(world):
    """The terminal goes away: so does the program."""
    terminal = on_terminal(world)
    os.close(terminal.master)
    terminal.process.end()


if __name__ == "__main__":
    run_case(globals())
