# SPDX-License-Identifier: BSD-3-Clause
"""Serial EEPROM images: what they set, and whether that makes a card fit for host-to-host use.

Format and codes of the blocks: read off production images (doc/hardware.md, EEP). The CRC at the
end is shown as it is stored: no source says over which bytes it goes."""
from dataclasses import dataclass

from . import registers
from .finding import Finding

HEADER = 4
RECORD = 6
MOST_BYTES = 1 << 17

BLOCKS = {
    **{port: f"port{port}" for port in registers.PORTS},
    **{0x28 + n: f"DMA{n}" for n in range(4)},
    0x38: "NT0-link",
    0x39: "NT0-virtual",
    0x3A: "NT1-link",
    0x3B: "NT1-virtual",
}


class BadImage(Exception):
    """Says in one line what is wrong and where."""


@dataclass(frozen=True)
class Record:
    where: str
    offset: int
    value: int

    def name(self):
        return registers.names_in(self.where).get(self.offset, "(not documented)") if known(self.where) else "?"


@dataclass(frozen=True)
class Image:
    records: list
    crc: int  # as stored; None when the image ends before it

    def last(self, where, offset):
        """What the register holds after the image was loaded; None when the image leaves it alone."""
        found = None
        for record in self.records:
            if (record.where, record.offset) == (where, offset):
                found = record.value
        return found


def known(where):
    return where in BLOCKS.values()


def decode(data):
    if len(data) > MOST_BYTES:
        raise BadImage(f"{len(data)} bytes: an image has at most {MOST_BYTES}")
    if len(data) < HEADER or data[0] != 0x5A:
        raise BadImage(f"byte 0 is {data[:1].hex() or 'missing'}: expected 5a, an image that the chip loads")
    if data[1] != 0x80:
        raise BadImage(f"byte 1 is {data[1]:02x}: expected 80, the only kind of image that is known")
    count = int.from_bytes(data[2:4], "little")
    if count % RECORD:
        raise BadImage(f"bytes 2-3: {count} bytes of records, expected a multiple of {RECORD}")
    end = HEADER + count
    if end > len(data):
        raise BadImage(f"bytes 2-3: {count} bytes of records, but only {len(data) - HEADER} follow")
    records = [record(data[at : at + RECORD]) for at in range(HEADER, end, RECORD)]
    tail = data[end : end + 4]
    return Image(records, int.from_bytes(tail, "little") if len(tail) == 4 else None)


def record(six):
    address = int.from_bytes(six[:2], "little")
    block = address >> 10
    return Record(
        BLOCKS.get(block, f"block{block:02x}"), (address & 0x3FF) << 2, int.from_bytes(six[2:], "little")
    )


def judge(image):
    """What the image makes of a card, as findings."""
    out = []
    upstream = image.last("port0", 0x360)
    if upstream is None:
        out.append(Finding("nt", "unknown", "register 360 is not set: straps decide whether there is an NT port"))
        return out + judge_debug(image, (0, 1))
    ports = registers.Upstream(upstream)
    enabled = [nt for nt in (0, 1) if ports.nt_port(nt) is not None]
    if enabled:
        out.append(Finding("nt", "ok", ports.text()))
    else:
        out.append(Finding("nt", "warn", f"register 360 is {upstream:08x}: no NT port is enabled",
                           "set bit 13 and bits 12:8 (the port) of register 360 of port 0"))
    for nt in enabled:
        out.append(judge_alut(ports, nt))
        out += [judge_window(image, nt, link) for link in (False, True)]
    return out + judge_debug(image, enabled) + judge_dma(image)


def judge_alut(ports, nt):
    entries = ports.alut_entries(nt)
    if entries:
        return Finding("a-lut", "ok", f"NT{nt}: {entries} entries")
    return Finding("a-lut", "warn", f"NT{nt} has none: one window, a power of two in size and alignment",
                   f"set bit {30 + nt} of register 360 of port 0")


def judge_window(image, nt, link):
    where = f"NT{nt}-{'link' if link else 'virtual'}"
    low, high = (0xE8, 0xEC) if link else (0xD4, 0xD8)
    values = image.last(where, low), image.last(where, high)
    if None in values:
        return Finding("window", "unknown", f"{where}: BAR2/3 keeps its reset size, which is not documented")
    size = registers.setup_bytes(*values)
    if size and values[0] & 0xF == 0xC:
        return Finding("window", "ok", f"{where}: BAR2/3 is {registers.sized(size)}, 64-bit, prefetchable")
    return Finding("window", "warn", f"{where}: BAR2/3 is {values[1]:08x}'{values[0]:08x}, no 64-bit prefetchable window",
                   f"write C000000C to {low:03X} and FFFFFFFF to {high:03X} for 1 GiB")


def judge_debug(image, enabled):
    value = image.last("port0", 0xA30)
    if value is None:
        return [Finding("csr", "unknown", "register A30 is not set: whether the NT ports reach the registers is up to reset")]
    missing = [nt for nt in enabled if registers.bits(value, 25 + 4 * nt, 24 + 4 * nt) != 3]
    if missing:
        return [Finding("csr", "warn", f"A30 is {value:08x}: NT{missing[0]} may not reach the registers of the chip",
                        f"set bits {24 + 4 * missing[0]} and {25 + 4 * missing[0]} of register A30 of port 0")]
    kept = "kept" if registers.bits(value, 4, 4) else "reset, which the driver makes up for"
    return [Finding("csr", "ok", f"A30 is {value:08x}; the link side is {kept} when the link goes down")]


def judge_dma(image):
    shares = image.last("DMA0", 0x1FC)
    mode = image.last("DMA0", 0x1F8)
    if shares is None or mode is None:
        return [Finding("dma", "unknown", "channels are not assigned to ports by the image")]
    channels = (0, 2) if mode == 2 else (0, 1, 2, 3)
    text = ", ".join(f"channel {c} to port {registers.bits(shares, 8 * c + 7, 8 * c)}" for c in channels)
    return [Finding("dma", "ok", f"{text} (reading of 1F8 and 1FC is inferred)")]
