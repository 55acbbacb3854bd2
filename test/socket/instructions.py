# SPDX-License-Identifier: BSD-3-Clause
"""What calls cost, in instructions of user space: they are the same in each run, whatever else the machine does."""

import os
import re
import shutil
import sys

from facts import expect


def need_valgrind():
    if shutil.which("valgrind") is None:
        print("valgrind is not installed (tools/setup)")
        sys.exit(77)


def of_a_call(run, traps, kind, more, calls=(100, 600)):
    """Of one of the calls that the traps repeat: what many of them take more than some.
    @param run   starts a program with these words
    @param more  variables of its environment"""
    counts = []
    for n in calls:
        done = run("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", traps, "repeat", kind, n, env=os.environ | more)
        found = re.search(r"Collected : (\d+)", done.stderr)
        expect(done.returncode == 0 and found, done)
        counts.append(int(found.group(1)))
    return (counts[1] - counts[0]) / (calls[1] - calls[0])
