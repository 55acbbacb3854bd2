# SPDX-License-Identifier: BSD-3-Clause
"""Memory of EAL for hosts that a test starts: hugepages, as in real life, where they were reserved for tests."""

import os

# Set by tools/test, which knows what it has reserved; programs with a sanitizer in them never take hugepages
# (pages.hpp), so whoever runs a test of such a build by hand leaves this alone.
HUGE = os.environ.get("NTBMSG_TEST_PAGES") == "huge"


def eal_memory(megabytes, huge=HUGE):
    """EAL's options for at most so much memory that no other process sees. Of hugepages only what is used is
    taken: each page is filled with zeros before, and the machine has few."""
    if huge:
        return ["--in-memory", "--single-file-segments", f"--socket-limit={megabytes}"]
    return ["--no-huge", "-m", str(megabytes)]
