# SPDX-License-Identifier: BSD-3-Clause
"""ntbmsg-echo as a bridge between a queue and an ethdev port, between two processes.

    echo_io_test.py ntbmsg-echo hello_c CASE
"""

import struct

from echo_hosts import PATIENCE, expect, run_case

HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


def frames(count, seed):
    """Ethernet frames of many lengths, each with a content of its own."""
    found = []
    for i in range(count):
        size = 60 + (i * 37 + seed) % 1400
        found.append((bytes([2, 0, 0, 0, seed, i % 256, 2, 0, 0, 0, 0, seed]) + b"\x88\xb5" +
                      bytes((i + j + seed) % 256 for j in range(size - 14))))
    return found


def write_capture(path, packets):
    path.write_bytes(HEADER + b"".join(
        struct.pack("<IIII", 1, i, len(p), len(p)) + p for i, p in enumerate(packets)))
    return path


def read_capture(path):
    data, at, packets = path.read_bytes(), len(HEADER), []
    while at < len(data):
        size, = struct.unpack_from("<I", data, at + 8)
        packets.append(data[at + 16:at + 16 + size])
        at += 16 + size
    return packets


def bridge(world, where, given, *own):
    """A host with a port that reads the frames of a capture and writes another."""
    given = write_capture(world.folder / f"{where}.in", given)
    out = world.folder / f"{where}.out"
    vdev = f"--vdev=net_pcap0,rx_pcap={given},tx_pcap={out}"
    return world.console(where, "--forward-mode", "io", *own, more=[vdev]), out


def case_captures(world):
    """Every frame of one host's capture ends in the other's, in order."""
    left, right = frames(300, 1), frames(200, 2)
    one, one_out = bridge(world, "serve", left)
    two, two_out = bridge(world, "send", right)
    for host in (one, two):
        host.tell(f"wait connected {PATIENCE}")
        host.ask("show link")
    # Both are connected: none of the frames finds no peer.
    one.tell("start")
    two.tell("start")
    one.await_answer("show stats", r"port 0.0 .* sent 200 frames")
    two.await_answer("show stats", r"port 0.0 .* sent 300 frames")
    for host in (one, two):
        host.tell("stop")  # closes the captures
        host.ask("show stats")
    expect(read_capture(one_out) == right, "the left host's capture")
    expect(read_capture(two_out) == left, "the right host's capture")
    one.quit()
    two.quit()


def case_no_peer(world):
    """A network does not wait."""
    host, _ = bridge(world, "serve", frames(50, 3))
    host.tell("start")
    host.await_answer("show stats", r"dropped     50 messages")
    host.quit()


def case_what_is_no_frame(world):
    """Messages that no network takes do not reach the port."""
    host, out = bridge(world, "serve", [])
    peer = world.console("send", "--forward-mode", "txonly", "--size", "13", "--count", "20")
    host.tell("start")
    peer.tell(f"wait connected {PATIENCE}", "start", f"wait done {PATIENCE}", "stop",
              "set size 5000", "start", f"wait done {PATIENCE}", "stop", "set size 60", "start",
              f"wait done {PATIENCE}")
    answer = host.await_answer("show stats", r"port 0.0 .* sent 20 frames").string
    expect("dropped     40 messages" in answer, answer)
    host.tell("stop")
    host.ask("show stats")
    expect([len(p) for p in read_capture(out)] == [60] * 20, "other frames were captured")
    host.quit()
    peer.quit()


def case_null_ports(world):
    """Two ports that make frames for ever, two queues."""
    null = [f"--vdev=net_null{i},size=100,copy=1" for i in range(2)]
    host = world.console("serve", "--forward-mode", "io", "--queues", "2", more=null)
    peer = world.console("send", "--forward-mode", "rxonly", "--queues", "2", "--auto-start")
    host.tell(f"wait connected {PATIENCE}", "start")
    answer = peer.await_answer("show stats", r"queue 0: .*\n  received    [1-9]\d{3,} messages"
                                             r"(.|\n)*queue 1: .*\n  received    [1-9]\d{3,} ").string
    expect("queue 1: rxonly" in answer, answer)
    answer = host.ask("show stats")
    expect("port 0.0" in answer and "port 1.0" in answer, answer)
    # And again: the ports start a second time.
    host.tell("stop", "start")
    peer.ask("clear stats")
    peer.await_answer("show stats", r"received    [1-9]\d{3,} messages")
    host.quit()
    peer.quit()


def case_no_port(world):
    host = world.console("serve", "--forward-mode", "io")
    host.tell("start")
    host.process.expect_end(1, "mode io wants a port to bridge to")
    host = world.console("serve", "--queues", "17", "--forward-mode", "io",
                         more=["--vdev=net_pcap0,iface=lo"])
    host.tell("start")
    host.process.expect_end(1, "port 0 (net_pcap0) has fewer queues than are to be bridged")


if __name__ == "__main__":
    run_case(globals())
