#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs DPDK's own dmadev_autotest on a DMA channel of a twin.

dmadev_autotest.py DPDK_TEST LIBRARY_FOLDER no-huge|va|pa

The three ways in which EAL gives devices addresses: virtual ones without hugepages, virtual ones
with, physical ones. Status 77 (skipped) where the machine does not allow the last two.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

FREE = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
PAGES = 32
EAL = {
    "no-huge": ["--no-huge", "--no-shconf", "-m", "128"],
    "va": ["--in-memory", "--iova-mode=va", "-m", str(2 * PAGES)],
    "pa": ["--in-memory", "--iova-mode=pa", "-m", str(2 * PAGES)],
}
# By capability flags the channel has no fill; with physical addresses DPDK cannot see that one is bad.
SKIPPED = {"no-huge": {"fill"}, "va": {"fill"}, "pa": {"fill", "error handling"}}
# Tests of newer releases alone.
NEWER = {"sg copy", "stop start", "m2d autofree"}
RUN = {"copy", "burst capacity", "error handling"}
ATTEMPTS = 3


def skip(why: str) -> None:
    print("skipped:", why)
    sys.exit(77)


def section(output: str, device: str) -> str:
    """What was said of one device."""
    found = re.search(rf"### Test dmadev instance \d+ \[{device}\]\n(.*?)(?=### |RTE>>|\Z)", output,
                      re.S)
    assert found, f"no test of {device}"
    return found.group(1)


def skeleton_was_late(output: str) -> bool:
    """DPDK tests its skeleton device, too, and gives that one's thread 50 ms for a copy: on a busy machine that is not enough."""
    return bool(re.search(r"### Test dmadev infrastructure using [^\n]*skeleton[^#]*\b\w+_\w+ [Ff]ailed\n", output))


def names(pattern: str, text: str) -> set[str]:
    """The tests that a pattern finds, as DPDK 22.11 writes them: 23.11 has hyphens, 24.11 underscores."""
    return {re.sub("[-_]", " ", name) for name in re.findall(pattern, text)} - NEWER


def main() -> None:
    program, folder, mode = sys.argv[1:]
    if mode != "no-huge" and (not FREE.exists() or int(FREE.read_text()) < PAGES):
        skip(f"fewer than {PAGES} free hugepages of 2 MB")
    if mode == "pa" and os.geteuid() != 0:
        skip("physical addresses take root")
    command = [program, *EAL[mode], "--no-pci", "--no-telemetry", "-l", "0",
               "-d", "librte_raw_plx_ntb.so", f"--vdev=raw_plx_ntb0,cable=mem:autotest-{os.getpid()},dmadev=1"]
    environment = {**os.environ, "DPDK_TEST": "dmadev_autotest", "LD_LIBRARY_PATH": folder}
    for _ in range(ATTEMPTS):
        # A bare name with -d: EAL takes no library by its path from below a folder that anyone can write.
        done = subprocess.run(command, env=environment, cwd=folder + "/..", timeout=100, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        # Counters overwrite themselves by thousands.
        output = re.sub(r"Ops submitted:[^\r\n]*[\r\n]", "", done.stdout)
        print(output)
        if done.returncode == 0 or not skeleton_was_late(output):
            break
    if mode != "no-huge" and "Not enough memory" in output:
        skip("the hugepages went to another program")
    if mode == "pa" and "Selected IOVA mode 'PA'" not in output:
        skip("EAL gives no physical addresses here")
    if not skeleton_was_late(output):
        assert done.returncode == 0, f"status {done.returncode}"
        assert "Test OK" in output, "no Test OK"
    elif "### Test dmadev instance" not in output:  # DPDK 22.11 tests the skeleton first
        skip("DPDK's skeleton device was late, which ends its test before ours")
    assert "hangs" not in output, "the watchdog gave the engine up"
    said = section(output, "raw_plx_ntb0_dma0")
    assert not re.search(r"\w+ [Ff]ailed\n", said), "a case of our device failed"
    ran = names(r"Running (.*) Tests", said)
    assert ran == RUN - SKIPPED[mode], f"{sorted(ran)} ran"
    # DPDK 22.11 says so in a sentence, newer ones in a list of results.
    skipped = names(r"skipping (.*) tests", said) | names(r"TestCase \[ *\d+\] : (\w+) skipped", said)
    assert skipped == SKIPPED[mode], f"{sorted(skipped)} skipped"


if __name__ == "__main__":
    main()
