#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ntbmsg-pktgen between two or more processes, as a user runs it.

    pktgen_test.py ntbmsg-pktgen SCHEMA CASE
"""

import contextlib
import json
import re
import resource
import signal
import struct
import subprocess

from echo_hosts import DEVICE, SHORT_FILES, await_fact, expect
from pktgen_lab import SHORT, await_points, expect_broken_off, expect_good, run_case


def case_latency(lab):
    lab.serve()
    result = lab.measured("--mode", "latency", "--size", "1,8,47,64,257,2049,70000")
    expect([p["size"] for p in result["points"]] == [1, 8, 47, 64, 257, 2049, 70000], "sizes")
    for point in result["points"]:
        expect_good(point)
        trip = point["round_trip_ns"]
        order = [trip[k] for k in ("min", "p50", "p90", "p99", "p99_9", "p99_99", "max")]
        expect(order == sorted(order) and order[0] > 0, f"quantiles {order}")
        expect(sum(b[2] for b in trip["histogram"]) == trip["count"], "the histogram lacks some")
        expect(point["placement"]["class"] != "remote", "one machine")
    expect(result["machine"]["cores"]["same_machine"], "one machine")
    expect(result["devices"][0]["platform"] == "twin", "a twin")


def case_rates_both_ways(lab):
    lab.serve()
    result = lab.measured("--mode", "rate,throughput,bidirectional", "--size", "64,4K")
    expect(len(result["points"]) == 6, "points")
    for point in result["points"]:
        expect_good(point)
        names = [flow["name"] for flow in point["flows"]]
        expect(names == (["out", "in"] if point["mode"] == "bidirectional" else ["out"]), names)


def case_sweep(lab):
    """Every combination, again for each repetition, and the same points as CSV."""
    lab.serve("--queues", "3")
    csv = lab.folder / "csv"
    result = lab.measured("--mode", "latency,rate", "--size", "64,300", "--burst", "1,4",
                          "--in-flight", "1,8", "--queues", "1,3", "--repeat", "2", "--count", "500",
                          "--csv", str(csv))
    keys = [(p["repeat"], p["mode"], p["size"], p["burst"], p["in_flight"], p["queues"])
            for p in result["points"]]
    expect(len(keys) == len(set(keys)) == 2 * (2 * 2 * 2 * 2 + 2 * 2 * 2), f"points {len(keys)}")
    for point in result["points"]:
        expect_good(point)
    lines = csv.read_text().splitlines()
    expect(len(lines) == len(keys) + 1, "lines of CSV")
    expect(len({line.count(",") for line in lines}) == 1, "columns of CSV")
    expect({p["build"] for p in result["points"]} == {"mbuf"} and ",mbuf," in lines[1], "where it is built")


def case_open_loop(lab):
    """Messages come at the rate that was asked for, and both curves are there."""
    lab.serve()
    result = lab.measured("--mode", "load", "--size", "64", "--rate", "1K,20K", "--seconds", "0.2")
    for point, rate in zip(result["points"], (1000, 20000)):
        expect_good(point)
        expect(point["offered_rate"] == rate, "rate")
        actual, intended = point["round_trip_ns"], point["round_trip_from_intended_ns"]
        expect(actual["count"] == intended["count"], "counts of the two curves")
        # Not more than there was time for, but for the last burst.
        expect(actual["count"] <= rate * point["seconds"] + 32, f"{actual['count']} messages")
        expect(intended["mean"] >= actual["mean"], "nothing leaves before its time")


def case_stalled_receiver_shows(lab):
    """A server that stands still for a while: hardly seen by who waits for it, seen in full from
    intended times."""
    cables = ("cable,lost_ms=60000",)
    server = lab.serve(cables=cables)
    stall, rate, seconds = 0.3, 20000, 3
    client = lab.drive("--mode", "load", "--size", "64", "--rate", str(rate), "--seconds",
                       str(seconds), "--json", str(lab.folder / "result"), "--no-probe",
                       "--stats-period", "0.05", cables=cables)
    await_fact(lambda: re.search(r"rx (\d{3}|[0-9.]+ k)", client.text()) or
               client.child.poll() is not None, "round trips")
    server.child.send_signal(signal.SIGSTOP)
    with contextlib.suppress(subprocess.TimeoutExpired):
        client.child.wait(timeout=stall) # the length of the stall
    server.child.send_signal(signal.SIGCONT)
    client.expect_end(0)
    point = lab.result()["points"][0]
    expect_good(point)
    intended = point["round_trip_from_intended_ns"]
    expect(intended["max"] > 0.9e9 * stall, f"the stall does not show: {intended['max']} ns")
    # Each message that was due while it lasted waited for the rest of it, on average half of it.
    late = sum(count for low, _, count in intended["histogram"] if low > 0.1e9 * stall)
    expect(late > 0.5 * stall * rate, f"{late} messages were late")


def case_clock_off(lab):
    lab.serve()
    result = lab.measured("--mode", "latency", "--size", "64", "--clock", "off")
    point = result["points"][0]
    expect(point["round_trip_ns"] is None and point["messages"] > 0, "no round trips, but a rate")


def case_verify(lab):
    lab.serve()
    for pattern in ("counter", "zeros", "ones", "random"):
        result = lab.measured("--mode", "latency,rate,bidirectional", "--size", "5,64,5000", "--verify",
                              "--pattern", pattern)
        for point in result["points"]:
            expect_good(point)
            expect(point["verified"] and point["pattern"] == pattern, "label")


def case_built_in_place(lab):
    lab.serve("--operation", "send")
    result = lab.measured("--mode", "rate,throughput", "--operation", "queue,send", "--size", "8,1518,5000",
                          "--build", "in-place")
    expect(len(result["points"]) == 12, "two modes, two operations, three sizes")
    for point in result["points"]:
        expect_good(point) # the far end's sum among it
        expect(point["bytes"] == point["messages"] * point["size"], "its size")
        expect(point["build"] == "in-place", "how")


def case_built_beyond_the_ring(lab):
    """A message that never finds as many receive buffers at once is left out, and said to be."""
    lab.serve("--ring", "64")
    result = lab.measured("--mode", "rate", "--size", "131072,131073", "--build", "in-place", "--ring", "64")
    expect([p["size"] for p in result["points"]] == [131072], "the longest that fits")
    expect_good(result["points"][0])
    [left_out] = result["skipped"]
    expect("131073 bytes" in left_out["what"] and "lines for the receive buffers of 131072 bytes" in left_out["why"],
           str(left_out))


def case_mixes(lab):
    lab.serve()
    imix = lab.measured("--mode", "rate,bidirectional", "--mix", "imix", "--verify")
    for point in imix["points"]:
        expect_good(point)
        expect(300 < point["size"] < 400, f"mean {point['size']}") # (7*64 + 4*594 + 1518) / 12
        if point["messages"] > 2000: # of fewer the mean may be any
            expect(abs(point["bytes"] / point["messages"] - point["size"]) < 60, "sent mean")
    uniform = lab.measured("--mode", "rate", "--mix", "uniform:100-300")
    expect(uniform["points"][0]["mix"] == "uniform:100-300", "label")
    expect(190 < uniform["points"][0]["size"] < 210, "mean")


def pcap(path, packets, magic=0xa1b2c3d4):
    """A file of (seconds, fraction, data)."""
    text = struct.pack("=IHHiIII", magic, 2, 4, 0, 0, 262144, 1)
    for seconds, fraction, data in packets:
        text += struct.pack("=IIII", seconds, fraction, len(data), len(data)) + data
    path.write_bytes(text)
    return path


def packets_of(path):
    """What is in a pcap file with nanoseconds."""
    text = path.read_bytes()
    expect(struct.unpack("=I", text[:4])[0] == 0xa1b23c4d, "another magic")
    at, found = 24, []
    while at < len(text):
        seconds, ns, length, _ = struct.unpack("=IIII", text[at:at + 16])
        found.append((seconds * 10**9 + ns, text[at + 16:at + 16 + length]))
        at += 16 + length
    return found


def case_replay_and_capture(lab):
    """What is replayed at one end is captured at the other one, packet by packet."""
    sent = [(7, i * 1000, bytes([i]) * (1 + 37 * i)) for i in range(100)]
    file = pcap(lab.folder / "sent", sent)
    caught = lab.folder / "caught"
    server = lab.serve("--capture", str(caught))
    for pace in ("max", "recorded"):
        point = lab.measured("--mode", "replay", "--pcap", str(file), "--pace", pace, "--verify")["points"][0]
        expect_good(point)
        expect(point["counters"]["captured"] == 100, "captured")
    server.child.send_signal(signal.SIGINT)
    server.expect_end(0)
    found = packets_of(caught)
    expect([data for _, data in found] == [data for *_, data in sent] * 2, "other packets")
    times = [ns for ns, _ in found]
    expect(times == sorted(times), "captured in another order")
    # Of the sending end: on a busy machine the other one may see much of it at once.
    expect(point["seconds"] >= 0.099, f"99 ms of packets in {point['seconds']} s")


def case_mix_of_a_pcap(lab):
    file = pcap(lab.folder / "sent", [(0, 0, b"x" * 100), (0, 1, b"x" * 300)])
    lab.serve()
    point = lab.measured("--mode", "rate", "--mix", f"pcap:{file}")["points"][0]
    expect_good(point)
    expect(point["size"] == 200, "mean")


def case_bad_pcap(lab):
    good = pcap(lab.folder / "good", [(0, 0, b"x" * 100)])
    cut = lab.folder / "cut"
    cut.write_bytes(good.read_bytes()[:-1])
    head = lab.folder / "head"
    head.write_bytes(good.read_bytes()[:10])
    none = pcap(lab.folder / "none", [])
    noise = lab.folder / "noise"
    noise.write_bytes(b"no packets here, only words, more than a header of them")
    for path, text in ((cut, "truncated"), (head, "truncated"), (none, "holds no packets"),
                       (noise, "unknown file format"), (lab.folder / "absent", "No such file")):
        lab.drive("--mode", "replay", "--pcap", str(path)).expect_end(1, text)


def case_incast(lab):
    """Two servers send to one client at once."""
    lab.serve(cables=("a",))
    lab.serve(cables=("b",))
    point = lab.measured("--mode", "incast", "--size", "256", "--device", "raw_plx_ntb0", "--device",
                         "raw_plx_ntb1", "--seconds", "0.3", "--verify",
                         cables=("a", "b"))["points"][0]
    expect_good(point)
    expect([flow["name"] for flow in point["flows"]] == ["raw_plx_ntb0", "raw_plx_ntb1"], "flows")
    expect(all(flow["messages"] > 0 for flow in point["flows"]), f"{point['flows']}")


def case_several_devices(lab):
    """One server on two devices; the client goes through them."""
    lab.serve("--device", "raw_plx_ntb0", "--device", "raw_plx_ntb1", cables=("a", "b"))
    result = lab.measured("--mode", "latency", "--size", "64", "--device", "raw_plx_ntb0", "--device",
                          "raw_plx_ntb1", cables=("a", "b"))
    expect([p["device"] for p in result["points"]] == ["raw_plx_ntb0", "raw_plx_ntb1"], "devices")


def case_large_messages(lab):
    """Up to the longest there is; what is beyond is said to be left out."""
    lab.serve("--max-message", "16777215", memory=512)
    result = lab.measured("--mode", "latency,throughput", "--size", "4M,16777215,16M", "--count", "3",
                          memory=512)
    expect([p["size"] for p in result["points"]] == [4 << 20, (1 << 24) - 1] * 2, "sizes")
    for point in result["points"]:
        expect_good(point)
    expect(["16777215" in s["why"] for s in result["skipped"]] == [True, True], f"{result['skipped']}")


def case_beyond_the_peer(lab):
    """Sizes that the peer does not take are left out; with nothing else there is an error."""
    lab.serve("--max-message", "1000")
    result = lab.measured("--mode", "rate", "--size", "64,2000")
    expect([p["size"] for p in result["points"]] == [64], "points")
    expect("serve with --max-message 2000" in result["skipped"][0]["why"], "reason")
    lab.drive("--mode", "rate", "--size", "2000").expect_end(1, "nothing could be measured",
                                                             "serve with --max-message 2000")


def case_too_many_queues(lab):
    lab.serve("--queues", "1")
    lab.drive("--queues", "2").expect_end(1, "serve with --queues 2")


def case_both_serve(lab):
    """Each says so, and stays for a client."""
    first, second = lab.serve(), lab.host("send", ["--serve"])
    for server in (first, second):
        server.await_text("the session is dropped: the peer serves as well")
    second.child.send_signal(signal.SIGINT)
    second.expect_end(0)
    expect_good(lab.measured("--mode", "latency", "--size", "64")["points"][0])


def case_both_drive(lab):
    first = lab.host("serve", [*SHORT, "--timeout", "20"])
    second = lab.host("send", [*SHORT, "--timeout", "20"])
    expect(first.end() == 1 and second.end() == 1, "both have to fail")
    expect("one end has to --serve" in first.text() + second.text(), first.text() + second.text())


def case_no_peer(lab):
    lab.host("send", ["--timeout", "0.3"]).expect_end(1, "no peer connected in")


def case_server_killed(lab):
    """What was measured until then is kept."""
    server = lab.serve()
    client = lab.drive("--mode", "latency", "--size", "8,64", "--repeat", "1000", "--json",
                       str(lab.folder / "result"))
    await_points(lab, client, 2)
    server.child.kill()
    expect(len(expect_broken_off(lab, client)["points"]) >= 2, "points were lost")


def case_interrupted(lab):
    """SIGINT ends a sweep, keeps its results, and leaves the server ready for the next client."""
    server = lab.serve()
    client = lab.drive("--mode", "rate", "--size", "64", "--repeat", "1000", "--json",
                       str(lab.folder / "result"))
    await_points(lab, client, 1)
    client.child.send_signal(signal.SIGINT)
    client.expect_end(128 + signal.SIGINT)
    result = lab.result()
    expect(result["interrupted"] and not result["complete"], "interrupted")
    expect(result["points"][0]["complete"], "points were lost")
    server.await_text("the client has left")
    lab.measured("--mode", "latency", "--size", "64")


def case_client_killed(lab):
    server = lab.serve()
    client = lab.drive("--mode", "bidirectional", "--size", "64", "--repeat", "1000", "--json",
                       str(lab.folder / "result"))
    await_points(lab, client, 1)
    client.child.kill()
    server.await_text("the client has left")
    lab.measured("--mode", "bidirectional", "--size", "64")


def case_once(lab):
    server = lab.serve("--once")
    lab.measured("--mode", "latency", "--size", "64")
    server.expect_end(0, "the client has left after 1 measurements")


def case_no_room_for_results(lab):
    """A file that may not grow as far stands for a full disk: the last state that fitted is kept."""
    path = lab.folder / "result"
    client = lab.drive("--mode", "latency", "--size", "64", "--repeat", "50", "--json", str(path))
    client.await_text("waiting for a peer") # its memory, which is a file, has grown by then
    resource.prlimit(client.child.pid, resource.RLIMIT_FSIZE, (20000, 20000))
    lab.serve()
    client.expect_end(1, "File too large")
    points = lab.result()["points"]
    expect(0 < len(points) < 50, f"{len(points)} points")
    expect(not list(lab.folder.glob("result.part*")), "a part was left behind")
    lab.drive("--json", "/dev/full").expect_end(1, "/dev/full: No space left on device")
    lab.drive("--json", "/nowhere/at/all").expect_end(1, "/nowhere/at/all: No such file")


def case_no_room_for_the_table(lab):
    """The results are there, but the table is not: that is no success."""
    lab.serve()
    client = lab.drive("--mode", "latency", "--size", "64", "--json", str(lab.folder / "result"), table="/dev/full")
    client.expect_end(1, "ntbmsg-pktgen: standard output: ")
    expect(lab.result()["complete"], "the result file")
    lab.host("send", ["--help"], table="/dev/full").expect_end(1, "ntbmsg-pktgen: standard output: ")


def case_no_room_for_memory(lab):
    """The device's memory is a file: one that may not grow is an error in words, not a signal."""
    lab.host("send", ["--serve"], before=SHORT_FILES).expect_end(1, "ntbmsg-pktgen: raw_plx_ntb0 cannot be opened")


def case_no_room_for_a_capture(lab):
    server = lab.serve("--capture", "/dev/full")
    lab.drive("--mode", "rate", "--size", "1K")
    server.expect_end(1, "/dev/full: No space left on device")


def case_statistics_period(lab):
    server = lab.serve("--stats-period", "0.05")
    client = lab.drive("--mode", "rate", "--size", "64", "--seconds", "0.3", "--stats-period", "0.05")
    client.expect_end(0, "tx ", "nombuf")
    server.await_text("rx ")


def case_results_on_standard_output(lab):
    lab.serve()
    client = lab.drive("--mode", "latency", "--size", "64", "--json", "-", "--quiet")
    client.expect_end(0)
    text = client.text()
    result = json.loads(text[text.index("{\n"):text.rindex("}") + 1])
    expect(len(result["points"]) == 1 and lab.schema.is_valid(result), "the result")


if __name__ == "__main__":
    run_case(globals())
