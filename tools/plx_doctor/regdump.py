# SPDX-License-Identifier: BSD-3-Clause
"""A card's registers as text, one "offset value name" a line, which the twin takes as its state.

Left out: A-LUT RAM, whose reads are said to upset Draco-2 chips, the DMA engines' descriptor RAM,
and the four words that Draco-1 forbids (doc/hardware.md, E4 and E6)."""
import mmap

from . import registers

FORBIDDEN = (0x856C, 0x8570, 0x1056C, 0x10570)
DMA_RAM = range(0x20000, 0x21000)


class NoRegisters(Exception):
    """Says in one line why the registers cannot be read."""


class Csr:
    """BAR0 of an NT function, mapped read-only."""

    def __init__(self, function):
        try:
            with open(function.file("resource0"), "rb") as file:
                self.map = mmap.mmap(file.fileno(), registers.CSR_BYTES, mmap.MAP_SHARED, mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise NoRegisters(f"{function.name}: BAR0 cannot be mapped: {error}") from error
        self.words = memoryview(self.map).cast("I")

    def read32(self, offset):
        return self.words[offset // 4]


def places():
    """(CSR offset, name) of every documented register that may be read."""
    found = []
    for port in registers.PORTS:
        found += [((port << 12) + o, f"port{port} {n}") for o, n in registers.names_in(f"port{port}").items()]
    for channel in range(4):
        found += [(0x21000 + 0x1000 * channel + o, f"DMA{channel} {n}") for o, n in registers.names_in(f"DMA{channel}").items()]
    for where, base in registers.NT_BLOCKS.items():
        found += [(base + o, f"{where} {n}") for o, n in registers.names_in(where).items()]
    return sorted((o, n) for o, n in found if o not in FORBIDDEN and o not in registers.ALUT_RAM and o not in DMA_RAM)


def dump(function, csr):
    part = f"{function.chip[0]:04x}" if function.chip else "unknown"
    yield f"# plx-registers 1 part {part} function {function.name}"
    for offset, name in places():
        yield f"{offset:05x} {csr.read32(offset):08x} {name}"
