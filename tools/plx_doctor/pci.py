# SPDX-License-Identifier: BSD-3-Clause
"""PCI functions as Linux shows them below /sys, or in a made-up tree: files and configuration space.
What cannot be read is None, never a guess."""
import os
import re
from dataclasses import dataclass
from functools import cached_property

from .registers import ALL_ONES

FUNCTION = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]$")
PLX = (0x10B5, 0x1000)
NT_IDS = {0x87B0: "NT0 virtual", 0x87B1: "NT1 virtual", 0x87A0: "NT0 link", 0x87A1: "NT1 link"}
DMA_IDS = (0x87D0, 0x87E0)
CLASS_OTHER_BRIDGE = 0x068000
CLASS_OTHER_SYSTEM = 0x088000

CAP_VENDOR, CAP_PCIE = 0x09, 0x10
EXT_VENDOR, EXT_ACS = 0x000B, 0x000D
RES_PREFETCH, RES_64, RES_MEM = 0x2000, 0x100000, 0x200


@dataclass(frozen=True)
class Bar:
    index: int
    start: int
    size: int
    prefetchable: bool
    is_64bit: bool


def read_text(path, most=4096):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(most).strip()
    except OSError:
        return None


def read_number(path):
    text = read_text(path)
    try:
        return int(text, 0)
    except (TypeError, ValueError):
        return None


class Function:
    def __init__(self, sysfs, name):
        self.sysfs = sysfs
        self.name = name
        self.path = os.path.join(sysfs, "bus/pci/devices", name)

    def file(self, name):
        return os.path.join(self.path, name)

    @cached_property
    def ids(self):
        return read_number(self.file("vendor")), read_number(self.file("device"))

    @cached_property
    def pci_class(self):
        return read_number(self.file("class"))

    @cached_property
    def driver(self):
        try:
            return os.path.basename(os.readlink(self.file("driver")))
        except OSError:
            return None

    @cached_property
    def node(self):
        return read_number(self.file("numa_node"))

    @cached_property
    def config(self):
        try:
            with open(self.file("config"), "rb") as file:
                return file.read(4096)
        except OSError:
            return b""

    @property
    def has_extended(self):
        return len(self.config) >= 4096

    def config32(self, offset):
        word = self.config[offset : offset + 4]
        return int.from_bytes(word, "little") if len(word) == 4 else None

    def config16(self, offset):
        word = self.config[offset : offset + 2]
        return int.from_bytes(word, "little") if len(word) == 2 else None

    def capability(self, wanted):
        """Offset of a capability. At most 48 fit, so a list that bites its tail ends."""
        at = (self.config[0x34] & 0xFC) if len(self.config) > 0x34 else 0
        for _ in range(48):
            if at < 0x40 or at + 4 > len(self.config):
                return None
            if self.config[at] == wanted:
                return at
            at = self.config[at + 1] & 0xFC
        return None

    def extended(self, wanted):
        at = 0x100
        for _ in range(64):
            head = self.config32(at) if at >= 0x100 else None
            if head in (None, 0, ALL_ONES):
                return None
            if head & 0xFFFF == wanted:
                return at
            at = head >> 20 & 0xFFC
        return None

    @cached_property
    def chip(self):
        """(part, silicon revision) as hard-coded in the chip; None where it says nothing."""
        at = self.capability(CAP_VENDOR)
        id_at = at + 0x18 if at is not None and self.config[at + 3] <= 1 else None
        if id_at is None:
            at = self.extended(EXT_VENDOR)
            id_at = at + 0x08 if at is not None and self.config32(at + 4) & 0xFFFF == 1 else None
        word = self.config32(id_at) if id_at is not None else None
        if word is None or word & 0xFFFF not in PLX:
            return None
        return word >> 16, (self.config32(id_at + 4) or 0) & 0xFF

    @cached_property
    def bars(self):
        found = []
        for index, line in enumerate((read_text(self.file("resource")) or "").splitlines()[:6]):
            try:
                start, end, flags = (int(word, 16) for word in line.split())
            except ValueError:
                continue
            if flags & RES_MEM and end > start:
                found.append(Bar(index, start, end - start + 1, bool(flags & RES_PREFETCH), bool(flags & RES_64)))
        return found

    @cached_property
    def parent(self):
        """The bridge above; None at a root port."""
        above = os.path.basename(os.path.dirname(os.path.realpath(self.path)))
        return Function(self.sysfs, above) if FUNCTION.match(above) else None

    def way_up(self):
        """This function, the bridges above it, the root port."""
        hop = self
        for _ in range(32):
            if hop is None:
                return
            yield hop
            hop = hop.parent

    @cached_property
    def iommu_group(self):
        try:
            return os.path.basename(os.readlink(self.file("iommu_group")))
        except OSError:
            return None

    def group_members(self):
        try:
            return sorted(os.listdir(os.path.join(self.path, "iommu_group/devices")))
        except OSError:
            return []

    def is_nt(self):
        vendor, device = self.ids
        return vendor in PLX and device in NT_IDS

    def is_dma(self):
        vendor, device = self.ids
        return vendor in PLX and device in DMA_IDS and self.pci_class == CLASS_OTHER_SYSTEM


def functions(sysfs):
    """Every PCI function of the machine. Raises OSError where there is no PCI in sight."""
    names = sorted(os.listdir(os.path.join(sysfs, "bus/pci/devices")))
    return [Function(sysfs, name) for name in names if FUNCTION.match(name)]


def dma_of(nt, everything):
    """The DMA functions of an NT function's chip: on the virtual side beside the upstream port, two
    bridges up; on the link side beside the function itself."""
    bridges = [hop for hop in nt.way_up()][1:]
    beside = {nt.name.rsplit(".", 1)[0]}
    if len(bridges) >= 2:
        beside.add(bridges[1].name.rsplit(".", 1)[0])
    return [f for f in everything if f.is_dma() and f.name.rsplit(".", 1)[0] in beside]
