# SPDX-License-Identifier: BSD-3-Clause
"""ntbmsg-echo and hello_c between two processes, as a user runs them.

    echo_test.py ntbmsg-echo hello_c CASE

Each case ends its processes, whatever happens, and bounds every wait.
"""

import json
import random
import re
import signal
import subprocess

from echo_hosts import PATIENCE, SHORT_FILES, await_fact, expect, expect_version, run_case


def same_through(world, size, *own, **more):
    """Sends a file of `size` bytes and compares what was written with it."""
    sent, back = world.file(size), world.folder / "back"
    sender = world.send(sent, "--out", str(back), **more) if not own else \
        world.send(sent, "--out", str(back), *own, **more)
    sender.expect_end(0, "came back byte for byte")
    expect(sent.read_bytes() == back.read_bytes(), "the file that came back differs")
    return sender


def case_sizes(world):
    """From one byte through every way a message can travel to many buffers."""
    world.serve()
    for size, total in ((1, 3000), (47, 5000), (48, 5000), (49, 5000), (104, 9000), (1024, 70_001),
                        (2049, 70_001), (4097, 200_001), (65536, 300_000)):
        same_through(world, total, "--size", str(size))


def built_through(world, size, total, *own):
    """The same through a server that builds its answers in place. @return the report"""
    path = world.folder / "report"
    same_through(world, total, "--size", str(size), "--json", str(path), *own)
    return json.loads(path.read_text())


def case_built_in_place(world):
    """From one byte through messages that take many receive buffers, each answer built."""
    server = world.serve("--build", "in-place", "--max-message", "1M")
    for size, total in ((1, 3000), (48, 5000), (1024, 70_001), (2048, 70_000), (2049, 70_001),
                        (4097, 200_001), (1_000_000, 3_000_000)):
        report = built_through(world, size, total, "--in-flight", "8")
        expect(report["build"] == "in-place" and report["messages"] == -(-total // size), report)
        # Those for which there were too few buffers at a time went as they were.
        expect(report["built"] == report["messages"] or size > 2048, f"{size}: {report['built']}")
    server.child.send_signal(signal.SIGINT)
    server.expect_end(0, "served 3000 messages, 3000 bytes; 3000 built in place")


def case_built_beyond_the_rooms(world):
    """An answer that wants more rooms than the ring has lines goes as it is, in its turn."""
    world.serve("--build", "in-place", "--max-message", "1M")
    report = built_through(world, 300_000, 3_000_001, "--ring", "64", "--in-flight", "3")
    expect(report["messages"] == 11 and report["built"] == 1, f"{report['built']} built") # the last byte


def case_built_on_queues(world):
    """Echoes that wait for those of other queues hold receive buffers."""
    world.serve("--queues", "3", "--build", "in-place")
    report = built_through(world, 64, 2_000_000, "--queues", "3", "--in-flight", "1024")
    expect(report["built"] == report["messages"] == 31250, f"{report['built']} built")


def case_built_for_peers_that_die(world):
    """Nothing is kept back of what was reserved for a peer that is gone: the next one is served."""
    server = world.serve("--build", "in-place")
    for round in range(3):
        sender = world.endless("--size", "5000", "--in-flight", "64")
        sender.child.kill()
        await_fact(lambda: server.text().count("built in place") > round, "the end of a peer")
        expect(built_through(world, 3000, 300_000)["built"] > 0, "nothing was built")
        await_fact(lambda: server.text().count("built in place") > round + 1, "the end of a peer")
    server.child.send_signal(signal.SIGINT)
    server.expect_end(0)


def case_copied_by_default(world):
    server = world.serve()
    report = built_through(world, 1000, 10_000)
    expect(report["build"] == "mbuf" and report["built"] == 0, report)
    server.child.send_signal(signal.SIGINT)
    server.expect_end(0)
    expect("built" not in server.text(), server.text())


def case_one_in_flight(world):
    world.serve()
    same_through(world, 50_000, "--in-flight", "1", "--size", "64")


def case_many_in_flight(world):
    world.serve()
    same_through(world, 3_000_000, "--in-flight", "1024", "--size", "600")


def case_queues(world):
    world.serve("--queues", "3")
    same_through(world, 400_000, "--queues", "3", "--size", "777", "--in-flight", "5")


def case_too_many_queues(world):
    world.serve()
    world.send(world.file(9000), "--queues", "2").expect_end(1, "serve with --queues 2")


def case_sender_first(world):
    sender = world.send(world.file(9000), "--timeout", str(PATIENCE))
    sender.await_text("waiting for a peer")
    world.serve()
    sender.expect_end(0, "came back byte for byte")


def case_standard_input(world):
    world.serve()
    sender = world.send("-", "--size", "100", "--out", str(world.folder / "back"),
                        stdin=subprocess.PIPE)
    data = random.Random(1).randbytes(12_345)
    sender.child.stdin.write(data)
    sender.child.stdin.close()
    sender.expect_end(0, "124 messages")
    expect((world.folder / "back").read_bytes() == data, "standard input came back changed")


def case_count_repeats_the_file(world):
    world.serve()
    sent, back = world.file(1000), world.folder / "back"
    sender = world.send(sent, "--size", "300", "--count", "10", "--out", str(back))
    sender.expect_end(0, "10 messages")  # 300, 300, 300, 100, and again
    expect(back.read_bytes() == sent.read_bytes() * 2 + sent.read_bytes()[:600], "other bytes")


def case_report(world):
    world.serve()
    path = world.folder / "report"
    world.send(world.file(10_000), "--size", "1000", "--json", str(path)).expect_end(0)
    report = json.loads(path.read_text())
    expect(report["ok"] and report["error"] == "", "not ok")
    expect(report["messages"] == 10 and report["bytes"] == 10_000, "counts")
    expect(report["crc32c_sent"] == report["crc32c_back"] != "00000000", "CRC-32C")
    trip = report["round_trip_ns"]
    order = [trip[k] for k in ("min", "p50", "p90", "p99", "p99_9", "max")]
    expect(order == sorted(order) and order[0] > 0, f"percentiles {order}")


def case_no_peer(world):
    world.send(world.file(10), "--timeout", "0.3").expect_end(1, "no peer connected in")


def case_no_room(world):
    """What it has to say, or the device's memory, which is a file, finds no room: a status and a line."""
    world.serve()
    sender = world.send(world.file(10_000), table="/dev/full")
    sender.expect_end(1, "ntbmsg-echo: standard output: ")
    world.send(world.file(10), before=SHORT_FILES).expect_end(1, "no device raw_plx_ntb0")


def case_serve_no_peer(world):
    world.serve("--timeout", "0.3").expect_end(1, "no peer connected in")


def case_server_killed(world):
    server = world.serve()
    sender = world.endless()
    server.child.kill()
    # All that was sent may just have come back, so the frozen server reports what is missing.
    sender.expect_end(1, "the peer was lost")


def case_sender_killed(world):
    server = world.serve()
    sender = world.endless()
    sender.child.kill()
    server.await_text("served")
    same_through(world, 100_000)


def case_server_restarted(world):
    server = world.serve()
    same_through(world, 10_000)
    server.child.kill()
    server.end()
    world.serve()
    same_through(world, 10_000)


def case_server_stopped_for_long(world):
    """A stopped process is lost to its peer, and serves again once it continues."""
    world.patient = ""
    server = world.serve()
    sender = world.endless()
    server.child.send_signal(signal.SIGSTOP)
    sender.expect_end(1, "the peer was lost", "did not come back")
    server.child.send_signal(signal.SIGCONT)
    same_through(world, 100_000)


def case_sender_interrupted(world):
    server = world.serve()
    sender = world.endless()
    sender.child.send_signal(signal.SIGINT)
    sender.expect_end(0, "ended by a signal", "round trip")
    expect("did not come back" not in sender.text(), "messages were left behind")
    server.await_text("served")
    same_through(world, 10_000)


def case_sender_interrupted_alone(world):
    sender = world.send(world.file(10), "--timeout", str(PATIENCE))
    sender.await_text("waiting for a peer")
    sender.child.send_signal(signal.SIGTERM)
    sender.expect_end(0)


def case_server_interrupted(world):
    server = world.serve()
    sender = world.endless()
    server.child.send_signal(signal.SIGINT)
    server.expect_end(0, "served")
    sender.expect_end(1, "the peer was lost")


def case_server_once(world):
    server = world.serve("--once")
    same_through(world, 10_000)
    server.expect_end(0, "served 10 messages, 10000 bytes")


def case_wrong_peers(world):
    """A peer that takes nothing, one that is sent more than it takes, and one that sends what is no client's:
    the server goes on to the next client."""
    server = world.serve()
    for own in (["--forward-mode", "txonly"],
                ["--forward-mode", "txonly", "--max-message", "100", "--size", "1000"],
                ["--forward-mode", "flowgen"]):
        peer = world.harness("send", *own, "--stats-period", "0.05")
        await_fact(lambda: peer.child.poll() is not None or re.search(r"sent +[1-9]", peer.text()), "traffic")
        expect(peer.child.poll() is None, peer.text())
        peer.child.kill()
        peer.child.wait()
    same_through(world, 10_000)
    server.child.send_signal(signal.SIGINT)
    server.expect_end(0, "served")


def case_two_senders(world):
    first = world.start(world.echo, world.cores["serve"],
                        ["--send", str(world.file(10_000)), "--timeout", "5"])
    second = world.send(world.folder / "sent", "--timeout", "5")
    expect(first.end() == 1 and second.end() == 1, "both senders have to fail")
    expect("one side has to --serve" in first.text() + second.text(), first.text() + second.text())


def case_large_messages(world):
    """More than the default buffers hold: refused in words, and possible when both sides agree."""
    server = world.serve()
    world.send(world.file(5_000_000), "--size", "4M", "--in-flight", "2").expect_end(
        1, "more than the peer takes", "--max-message 4194304")
    server.child.send_signal(signal.SIGINT)
    server.expect_end(0)
    world.serve("--max-message", "4M")
    same_through(world, 5_000_000, "--size", "4M", "--in-flight", "2")


def case_bad_arguments(world):
    good = str(world.file(10))
    empty = world.folder / "empty"
    empty.touch()
    table = (
        (2, [], "give one of --serve and --send"),
        (2, ["--serve", "--quiet"], "--quiet goes with --send"),
        (2, ["--forward-mode", "echo", "--size", "9"], "--size has no effect in mode echo"),
        (2, ["--serve", "--send", good], "give one of --serve and --send"),
        (2, ["--send"], "--send needs a value"),
        (2, ["--nonsense"], "unknown option --nonsense"),
        (2, ["--send", good, "more"], 'what is "more"?'),
        (2, ["--serve", "--in-flight", "3"], "--in-flight goes with --send"),
        (2, ["--send", good, "--once"], "--once goes with --serve"),
        (2, ["--send", good, "--size", "0"], "--size 0: must be a number from 1"),
        (2, ["--send", good, "--size", "16M"], "must be a number from 1"),
        (2, ["--send", good, "--size", "-1"], "must be a number from 1"),
        (2, ["--send", good, "--size", "12x"], "must be a number from 1"),
        (2, ["--send", good, "--size", "99999999999999999999"], "must be a number"),
        (2, ["--send", good, "--queues", "65"], "must be a number from 1 to 64"),
        (2, ["--send", good, "--in-flight", "5000"], "larger than the ring"),
        (2, ["--send", good, "--ring", "100"], "must be a power of two"),
        (2, ["--send", good, "--size", "8M", "--in-flight", "512"], "more than 1 GiB"),
        (2, ["--send", good, "--timeout", "0"], "must be a time"),
        (2, ["--send", good, "--seconds", "nan"], "must be a time"),
        (1, ["--send", str(world.folder / "absent")], "No such file"),
        (1, ["--send", str(world.folder)], "is a folder"),
        (1, ["--send", str(empty)], "is empty"),
        (1, ["--send", good, "--out", "/nowhere/at/all"], "/nowhere/at/all"),
        (1, ["--send", good, "--device", "raw_plx_ntb7"], "no device raw_plx_ntb7"),
        (0, ["--help"], "--send FILE"),
    )
    for status, own, text in table:
        world.start(world.echo, world.cores["send"], own).expect_end(status, text)


def case_version(world):
    expect_version(world.echo, "ntbmsg-echo", "--send FILE")


def case_no_device(world):
    world.send(world.file(10), device=False).expect_end(1, "no device raw_plx_ntb0")


def case_hello_c(world):
    listener = world.start(world.hello, world.cores["serve"], ["listen"])
    speaker = world.start(world.hello, world.cores["send"], ["say"])
    speaker.expect_end(0, 'answer 4: you said "hello number 4"')
    listener.expect_end(0, "heard  4: hello number 4")


if __name__ == "__main__":
    run_case(globals())
