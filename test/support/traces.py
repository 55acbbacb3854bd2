# SPDX-License-Identifier: BSD-3-Clause
"""What DPDK's trace library wrote (Common Trace Format)."""

import pathlib
import re
import struct


def declared(metadata, prefix):
    """{name behind the prefix: id} of the events that the metadata describe."""
    return {name: int(number) for number, name in
            re.findall(rf'event \{{\s*id = (\d+);\s*name = "{re.escape(prefix)}([\w.]+)"', metadata)}


def occurrences(streams, number):
    """Words that begin an event: 48 bits of time, 16 of its id. Events begin at multiples of 8."""
    found = 0
    for stream in streams:
        data = stream.read_bytes()
        words = struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8])
        # A time is some seconds at least after the machine's start.
        found += sum(1 for word in words if word >> 48 == number and word & (1 << 48) - 1 > 1 << 24)
    return found


def counts(folder, prefix):
    """{name behind the prefix: how often it occurred} of the one trace below a folder."""
    (metadata,) = pathlib.Path(folder).rglob("metadata")
    streams = [file for file in metadata.parent.iterdir() if file.name.startswith("channel0_")]
    return {name: occurrences(streams, number) for name, number in declared(metadata.read_text(), prefix).items()}
