# SPDX-License-Identifier: BSD-3-Clause
"""Names and places of the chip's registers, from registers.txt, and what the words in them mean.
The sources of each fact are in doc/hardware.md."""
import os
from dataclasses import dataclass

CSR_BYTES = 0x40000
BLOCK_BYTES = 0x1000
ALL_ONES = 0xFFFFFFFF
ALUT_RAM = range(0x38000, 0x3C000)
PORTS = range(22)


@dataclass(frozen=True)
class Register:
    block: str  # chip, station, port, nt_both, nt_virtual, nt_link, alut, dma
    name: str
    offset: int  # in its block
    count: int  # elements, four bytes each
    access: str

    def elements(self):
        """(name, offset) of each element."""
        if self.count == 1:
            return [(self.name, self.offset)]
        return [(f"{self.name}[{i}]", self.offset + 4 * i) for i in range(self.count)]


def load():
    path = os.path.join(os.path.dirname(__file__), "registers.txt")
    with open(path, encoding="ascii") as lines:
        rows = [line.split() for line in lines if not line.startswith("#")]
    return [Register(block, name, int(offset, 16), int(count), access) for block, name, offset, count, access in rows]


TABLE = load()


def nt_base(nt, link):
    return 0x3E000 - nt * 0x2000 + (0x1000 if link else 0)


NT_BLOCKS = {
    f"NT{nt}-{'link' if link else 'virtual'}": nt_base(nt, link) for nt in (0, 1) for link in (False, True)
}


def belongs(register, where):
    """Whether the block called `where` has the register."""
    if where.startswith("NT"):
        return register.block in ("nt_both", "nt_link" if where.endswith("link") else "nt_virtual")
    if where.startswith("DMA"):
        return register.block == "dma"
    port = int(where[len("port"):])
    return (
        register.block == "port"
        or (register.block == "chip" and port == 0)
        or (register.block == "station" and port % 8 == 0)
    )


def names_in(where):
    """offset -> name for the block called `where`: port0, NT0-virtual, DMA2 ..."""
    return {offset: name for r in TABLE if belongs(r, where) for name, offset in r.elements()}


def bits(value, high, low):
    return (value >> low) & ((1 << (high - low + 1)) - 1)


@dataclass(frozen=True)
class Upstream:
    """Register 360: which ports are what."""

    value: int

    @property
    def port(self):
        return bits(self.value, 4, 0)

    def nt_port(self, nt):
        """Port number of an NT port; None when it is not enabled."""
        at = 16 if nt else 8
        return bits(self.value, at + 4, at) if bits(self.value, at + 5, at + 5) else None

    def alut_entries(self, nt):
        shares = bits(self.value, 31, 30)
        if shares == 3:
            return 128
        return 256 if shares == (2 if nt else 1) else 0

    def text(self):
        words = [f"upstream port {self.port}"]
        for nt in (0, 1):
            port = self.nt_port(nt)
            if port is not None:
                entries = self.alut_entries(nt)
                words.append(f"NT{nt} on port {port}, " + (f"A-LUT {entries} entries" if entries else "no A-LUT"))
        return "; ".join(words)


def setup_bytes(low, high):
    """Size of the 64-bit BAR pair with these set-up registers; 0: disabled."""
    if not high >> 31:
        return 0
    mask = (high << 32) | (low & 0xFFF00000)
    return (1 << 64) - mask


def sized(count):
    for unit, name in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} bytes"
