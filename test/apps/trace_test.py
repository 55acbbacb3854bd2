# SPDX-License-Identifier: BSD-3-Clause
"""The library's tracepoints, in the files that DPDK's trace library writes (Common Trace Format).

    trace_test.py channel_host FAST    FAST 1: those of the data path were compiled in
"""

import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from traces import counts

PATIENCE = 120
# What each of the two endpoints, or the two ends of the channel, must have gone through.
SLOW = {"endpoint.open": 2, "endpoint.event": 2, "endpoint.close": 2, "channel.connect": 1, "channel.request": 1,
        "channel.open": 2}
FAST = {"channel.send": 1}


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
        found = counts(folder, "lib.ntbmsg.")
        wanted = dict(SLOW, **(FAST if fast == "1" else {}))
        assert set(wanted) <= set(found), (wanted, found)
        for name, least in wanted.items():
            assert found[name] >= least, (name, found)
        if fast != "1":
            assert not set(FAST) & set(found), found


main()
