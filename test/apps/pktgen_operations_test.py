#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ntbmsg-pktgen with channels and one-sided operations, several queues and lcores, and copy engines.

    pktgen_operations_test.py ntbmsg-pktgen SCHEMA CASE
"""

import signal

from echo_hosts import expect
from pktgen_lab import await_points, expect_broken_off, expect_good, run_case

ONE_SIDED = ("write", "write-imm", "read", "fetch-add", "compare-swap")


def case_channels(lab):
    """Over channels what goes over queues, on as many of them."""
    lab.serve("--operation", "send", "--queues", "2")
    result = lab.measured("--operation", "queue,send", "--mode", "latency,rate,bidirectional", "--size",
                          "8,300,5000,200000", "--queues", "1,2", "--verify", "--count", "300")
    expect(len(result["points"]) == 3 * 4 * 2 * 2, "points")
    for point in result["points"]:
        expect_good(point)
    expect({p["operation"] for p in result["points"]} == {"queue", "send"}, "operations")


def case_channels_at_one_end(lab):
    server = lab.serve("--queues", "2")
    lab.drive("--operation", "send").expect_end(1, "queues and workers do not fit: this side has 2 and 1, "
                                                 "the peer 3 and 0")
    server.child.send_signal(signal.SIGINT)
    server.expect_end(0)
    lab.serve("--operation", "send")
    lab.drive().expect_end(1, "serve without --operation send")
    # And it goes on serving: the channels of a client that has left are taken anew.
    for _ in range(2):
        lab.measured("--operation", "send", "--mode", "rate", "--size", "64")


def of(result, **wanted):
    return [p for p in result["points"] if all(p[name] == value for name, value in wanted.items())]


def case_one_sided(lab):
    """Every operation in every mode that it knows, with what its completion means."""
    lab.serve("--operation", "write")
    result = lab.measured("--operation", "write,write-imm,read,atomic", "--mode",
                          "latency,load,rate,throughput,bidirectional", "--rate", "2K", "--size", "8,300,5000",
                          "--verify", "--count", "200")
    expect(len(result["points"]) == 5 * (3 * 3 + 2), f"{len(result['points'])} points")
    for point in result["points"]:
        expect_good(point)
        timed = point["mode"] in ("latency", "load")
        expect((point["round_trip_ns"] is not None) == timed, "round trips")
        if timed:
            expect(point["round_trip_ns"]["count"] > 0, "none is timed")
        names = [flow["name"] for flow in point["flows"]]
        expect(names == (["out", "in"] if point["mode"] == "bidirectional" else ["echo" if timed else "out"]), names)
        writes = point["operation"].startswith("write")
        expect(point["region"] == ("direct" if writes else "served"), f"{point['region']}")
        wanted = {"write": "done" if timed else "stored", "write-imm": "done" if timed else "reported"}
        expect(point["completion"] == wanted.get(point["operation"], "done"), "completion")
    expect({p["size"] for p in of(result, operation="fetch-add")} == {8}, "atomics are of one size")


def case_writes_served_and_confirmed(lab):
    """Who does a write is counted where it is done."""
    lab.serve("--operation", "write")
    own = ("--operation", "write,write-imm", "--mode", "latency,rate", "--size", "64", "--count", "300", "--no-probe")
    for point in lab.measured(*own, "--region", "served")["points"]:
        expect_good(point)
        expect(point["region"] == "served" and point["counters"]["served"] >= point["messages"],
               f"{point['counters']}")
        expect(point["completion"] in ("done", "reported"), "nothing served is merely stored")
    result = lab.measured(*own, "--completion", "done")
    expect({p["completion"] for p in of(result, operation="write")} == {"done"}, "confirmed")
    for point in result["points"]:
        expect_good(point)
        expect(point["counters"]["served"] < 100, f"direct: {point['counters']}")


def case_one_sided_sizes(lab):
    """Up to the longest there is; with as many in flight as the exposed memory has room for."""
    lab.serve("--operation", "write")
    result = lab.measured("--operation", "write,write-imm,read", "--mode", "throughput", "--size", "4,64K,16M,17M",
                          "--verify", "--in-flight", "4096", "--count", "3", "--no-probe")
    expect([p["size"] for p in result["points"]] == [65536] * 3 + [1 << 24] * 3, "sizes")
    expect([p["in_flight"] for p in result["points"]] == [256] * 3 + [1] * 3, "in flight")
    for point in result["points"]:
        expect_good(point)
    why = [s["why"] for s in result["skipped"]]
    expect(len(why) == 6 and all("want 8 bytes" in w for w in why[:3]) and
           all("has 16777216 bytes" in w for w in why[3:]), f"{why}")


def case_nothing_to_expose(lab):
    """A device that cannot expose memory: one line, what was measured is kept; registered memory does."""
    cables = ("cable,alut=0",)
    lab.serve("--operation", "write", cables=cables)
    own = ("--operation", "send,write", "--mode", "rate", "--size", "64", "--count", "50")
    lab.drive(*own, "--json", str(lab.folder / "result"), cables=cables).expect_end(
        1, "cannot expose 4096 bytes", "--region served")
    result = lab.result()
    expect(not result["complete"] and len(of(result, operation="send", complete=True)) == 1, "kept")
    for point in lab.measured(*own, "--region", "served", cables=cables)["points"]:
        expect_good(point)


def case_one_sided_mixes(lab):
    lab.serve("--operation", "write")
    for point in lab.measured("--operation", "write,write-imm", "--mode", "rate,bidirectional", "--mix",
                              "uniform:8-900", "--verify", "--count", "700")["points"]:
        expect_good(point)
    for point in lab.measured("--operation", "read", "--mode", "rate", "--mix", "imix", "--count", "700")["points"]:
        expect_good(point)


def case_one_sided_incast(lab):
    """Two servers write to one client's memory, read from it, and count in it."""
    lab.serve("--operation", "write", cables=("a",))
    lab.serve("--operation", "write", cables=("b",))
    result = lab.measured("--operation", ",".join(ONE_SIDED), "--mode", "incast", "--size", "256", "--device",
                          "raw_plx_ntb0", "--device", "raw_plx_ntb1", "--count", "500", "--seconds", "600",
                          "--verify", cables=("a", "b"))
    expect(len(result["points"]) == 5, "points")
    for point in result["points"]:
        expect_good(point)
        expect([flow["name"] for flow in point["flows"]] == ["raw_plx_ntb0", "raw_plx_ntb1"], "flows")
        expect([flow["messages"] for flow in point["flows"]] == [500, 500], f"{point['flows']}")


def two_on(core):
    return ("--lcores", f"0@{core},1@{core}")


def case_queues_on_lcores(lab):
    """Two queues on one lcore, and each on its own, at either end; every queue has its line, and its part."""
    every = ("--operation", "queue,send,write-imm,fetch-add", "--mode", "latency,rate,bidirectional", "--size", "64",
             "--count", "101", "--queues", "2", "--verify", "--no-probe")
    for serving, driving in ((1, 1), (2, 2), (1, 2)):
        server = lab.serve("--operation", "send", "--queues", "2", "--once",
                           lcores=two_on(lab.cores["serve"]) if serving == 2 else ())
        result = lab.measured(*every, lcores=two_on(lab.cores["send"]) if driving == 2 else ())
        server.expect_end(0)
        for point in result["points"]:
            expect_good(point)
            expect((point["lcores"], point["server_lcores"]) == (driving, serving), "lcores")
            both = point["mode"] == "bidirectional"
            queues = [flow["queue"] for flow in point["flows"]]
            expect(queues == ([0, 0, 1, 1] if both else [0, 1]), f"flows of queues {queues}")
            out = [f["messages"] for f in point["flows"] if f["name"] != "in"]
            expect(all(n > 0 for n in out) and sum(out) <= 101, f"{out} of 101")
            expect(point["messages"] == sum(f["messages"] for f in point["flows"]), "the sum")


def case_more_queues_than_lcores(lab):
    lab.serve("--queues", "3", lcores=two_on(lab.cores["serve"]))
    for point in lab.measured("--mode", "rate,load", "--rate", "3K", "--size", "64", "--queues", "3", "--verify",
                              lcores=two_on(lab.cores["send"]))["points"]:
        expect_good(point)
        expect(point["lcores"] == 2 and len(point["flows"]) == 3, "two lcores share three queues")


def case_copy_engines(lab):
    """One command goes over engines; each point names its own, and the server goes back to its usual one."""
    server = lab.serve("--operation", "send", cables=("cable,copy=cpu",))
    own = ("--operation", "queue,send,read", "--mode", "rate", "--size", "64,64K", "--count", "50", "--verify",
           "--no-probe")
    result = lab.measured(*own, "--copy", "dma,cpu,auto", "--repeat", "2")
    for point in result["points"]:
        expect_good(point)
        if point["copy_mode"] != "auto":
            by_dma = point["copy_mode"] == "dma" and point["size"] > 256
            expect(point["copy"] == ("dma" if by_dma else "cpu"), f"{point['copy_mode']}: {point['copy']}")
    modes = [p["copy_mode"] for p in result["points"]]
    expect(modes == (["dma"] * 6 + ["cpu"] * 6 + ["auto"] * 6) * 2, f"{modes}")
    server.await_text("the client has left")
    expect(of(lab.measured(*own, cables=("cable,copy=cpu",)), copy_mode="cpu"), "an ordinary client")


def case_no_copy_engine(lab):
    """A device without engines: one line, what was measured is kept, the server serves on."""
    for here, there in ((",dma=0", ""), ("", ",dma=0")):
        server = lab.serve(cables=("cable" + there,))
        client = lab.drive("--mode", "rate", "--size", "64", "--copy", "cpu,dma", "--json", str(lab.folder / "result"),
                           cables=("cable" + here,))
        client.expect_end(1, "cannot copy by dma")
        result = lab.result()
        expect(not result["complete"] and [p["copy_mode"] for p in result["points"]] == ["cpu"], "kept")
        lab.measured("--mode", "rate", "--size", "64", "--count", "50", cables=("cable" + here,))
        server.child.send_signal(signal.SIGINT)
        server.expect_end(0)


def case_server_killed_in_operations(lab):
    """What was measured until then is kept."""
    for operation in ("write", "read", "fetch-add"):
        server = lab.serve("--operation", "write")
        (lab.folder / "result").unlink(missing_ok=True)
        size = () if operation == "fetch-add" else ("--size", "64")
        client = lab.drive("--operation", operation, "--mode", "rate", *size, "--repeat", "1000", "--json",
                           str(lab.folder / "result"))
        await_points(lab, client, 2)
        server.child.kill()
        expect_broken_off(lab, client)


def case_client_killed_in_operations(lab):
    """The server revokes its memory, and exposes it to the next client."""
    server = lab.serve("--operation", "write")
    client = lab.drive("--operation", "write,write-imm,read,atomic", "--mode", "bidirectional", "--size", "64",
                       "--repeat", "1000", "--json", str(lab.folder / "result"))
    await_points(lab, client, 6)
    client.child.kill()
    server.await_text("the client has left")
    for point in lab.measured("--operation", "write", "--mode", "bidirectional", "--size", "64")["points"]:
        expect_good(point)


if __name__ == "__main__":
    run_case(globals())
