# SPDX-License-Identifier: BSD-3-Clause
"""What telemetry shows of endpoints, queues, channels and regions.

    library_telemetry_test.py channel_host
"""

import os
import pathlib
import subprocess
import sys
import tempfile

from telemetry_client import Telemetry

PATIENCE = 120


def check_answers(ask):
    assert ask("/ntbmsg/endpoints") == [0, 1]
    near = ask("/ntbmsg/endpoints,0")
    assert near["device"] == "raw_plx_ntb0" and near["link"] == "connected" and near["why"] == "", near
    assert (near["queues"], near["workers"], near["channels"]) == (1, 1, 1), near
    assert near["bad_peer"] == 0 and near["tx_errors"] == 0, near
    queues = ask("/ntbmsg/queues,0")
    assert [(name, queue["use"]) for name, queue in queues.items()] == [("queue_0", "bare"), ("queue_1", "worker")]
    assert queues["queue_0"]["tx_messages"] == 0 and queues["queue_1"]["tx_messages"] >= 3, queues
    worker = ask("/ntbmsg/worker,0,0")
    assert (worker["dedicated"], worker["channels"], worker["bad_peer"]) == (0, 1, 0), worker
    for host, sent in ((0, 1), (1, 0)):
        (slot,) = ask(f"/ntbmsg/channels,{host},0")
        channel = ask(f"/ntbmsg/channel,{host},0,{slot}")
        assert channel["state"] == "open" and channel["port"] == 9 and channel["handle"] == 1, channel
        assert (channel["tx_messages"], channel["tx_bytes"]) == (sent, 100 * sent), channel
        assert channel["credit_messages"] == channel["credit_messages_granted"] - sent, channel
        assert ask(f"/ntbmsg/channels,{host},0,{slot + 1}") == []
    regions = ask("/ntbmsg/regions,0")
    assert sorted((region["rights"], region["direct"]) for region in regions.values()) == [(1, 1), (6, 0)], regions
    assert {region["bytes"] for region in regions.values()} >= {4096}, regions
    assert all(region["refused"] == 0 for region in regions.values()), regions
    assert len(ask("/ntbmsg/regions,0,1")) == 1 and not ask("/ntbmsg/regions,1")


def check_refusals(ask):
    wrong = ("", ",", ",x", ",-1", ",99", ",99999999999999999999", ",0x0", ",1a", ",0,", ",0,0,0,0", ",2,0,0",
             ",0,1,0", ",0,0,99999")
    for what in ("queues", "channel"):
        for parameter in wrong:
            if what == "queues" and parameter == ",0,":
                continue
            assert not ask(f"/ntbmsg/{what}{parameter}"), (what, parameter)
    for parameter in ("", ",", ",0", ",x,0", ",0,1", ",99,0", ",0,0,0"):
        assert not ask(f"/ntbmsg/worker{parameter}"), parameter
    for parameter in ("", ",", ",x", ",99", ",0,0,0"):
        assert not ask(f"/ntbmsg/regions{parameter}"), parameter
    for parameter in (",x", ",99", ",0,0"):
        assert not ask(f"/ntbmsg/endpoints{parameter}"), parameter


def await_ready(child):
    """The host's own word, or its end."""
    for line in child.stdout:
        if line.strip() == "ready":
            return
    raise AssertionError("the host ended before it was ready")


def main():
    with tempfile.TemporaryDirectory(prefix="ntbmsg-") as folder:
        path = pathlib.Path(folder) / "dpdk" / "rte" / "dpdk_telemetry.v2"
        patient = "heartbeat_ms=30000,lost_ms=60000"
        command = [sys.argv[1], "-l", str(min(os.sched_getaffinity(0))), "--no-huge", "-m", "256", "--no-pci",
                   "--file-prefix", "rte", f"--vdev=raw_plx_ntb0,cable=mem:look,{patient}",
                   f"--vdev=raw_plx_ntb1,cable=mem:look,{patient}"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                 env={**os.environ, "RUNTIME_DIRECTORY": folder})
        try:
            await_ready(child)
            ask = Telemetry(path, PATIENCE)
            check_answers(ask)
            check_refusals(ask)
            child.communicate(timeout=PATIENCE)
            assert child.returncode == 0, child.returncode
        finally:
            child.kill()
            child.wait()


main()
