# SPDX-License-Identifier: BSD-3-Clause
"""The library's tracepoints, in the files that DPDK's trace library writes (Common Trace Format).

    trace_test.py channel_host FAST    FAST 1: those of the data path were compiled in
"""

import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

PATIENCE = 120
# What each of the two endpoints, or the two ends of the channel, must have gone through.
SLOW = {"endpoint.open": 2, "endpoint.event": 2, "endpoint.close": 2, "channel.connect": 1, "channel.request": 1,
        "channel.open": 2}
FAST = {"channel.send": 1}


def declared(metadata):
    """{name: id} of the events that the metadata describe."""
    return {name: int(number) for number, name in
            re.findall(r'event \{\s*id = (\d+);\s*name = "lib\.ntbmsg\.([\w.]+)"', metadata)}


def occurrences(streams, number):
    """Words that begin an event: 48 bits of time, 16 of its id. Events begin at multiples of 8."""
    found = 0
    for stream in streams:
        data = stream.read_bytes()
        words = struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8])
        # A time is some seconds at least after the machine's start.
        found += sum(1 for word in words if word >> 48 == number and word & (1 << 48) - 1 > 1 << 24)
    return found


def main():
    host, fast = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ntbmsg-trace-") as folder:
        patient = "heartbeat_ms=30000,lost_ms=60000"
        command = [host, "-l", str(min(os.sched_getaffinity(0))), "--no-huge", "-m", "256", "--no-pci",
                   "--no-shconf", "--no-telemetry", f"--vdev=raw_plx_ntb0,cable=mem:trace,{patient}",
                   f"--vdev=raw_plx_ntb1,cable=mem:trace,{patient}", "--trace=lib.ntbmsg.*",
                   f"--trace-dir={folder}"]
        done = subprocess.run(command, input="", capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0 and "ready" in done.stdout, done
        (metadata,) = pathlib.Path(folder).rglob("metadata")
        events = declared(metadata.read_text())
        streams = [file for file in metadata.parent.iterdir() if file.name.startswith("channel0_")]
        wanted = dict(SLOW, **(FAST if fast == "1" else {}))
        assert set(wanted) <= set(events), (wanted, events)
        found = {name: occurrences(streams, number) for name, number in events.items()}
        for name, least in wanted.items():
            assert found[name] >= least, (name, found)
        if fast != "1":
            assert not set(FAST) & set(events), events


main()
