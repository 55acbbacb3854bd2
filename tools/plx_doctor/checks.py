# SPDX-License-Identifier: BSD-3-Clause
"""What is looked at on a card, one function a question. Each gives findings: ok, warn with what
mends it, or unknown with the reason."""
import glob
import os
import re

from . import pci
from .finding import Finding
from .registers import ALL_ONES, Upstream, bits, sized

NT_ID = 0xC8C
KNOWN_PARTS = (0x8713, 0x8717, 0x8725, 0x8733, 0x8749)
DRACO_1 = (0x8712, 0x8716, 0x8724, 0x8732, 0x8747, 0x8748)
REVISION_AA = 0xAA
CAPELLA = (0x8714, 0x8718, 0x8734, 0x8750, 0x8764, 0x8780, 0x8796)
ENGINE_REACH = 1 << 48
BAR0_BYTES = 0x40000
SPEEDS = {1: "2.5", 2: "5", 3: "8", 4: "16", 5: "32"}


def part(nt):
    if nt.chip is not None:
        number, revision = nt.chip
    elif nt.config32(0x2C) is not None:
        number, revision = nt.config32(0x2C) >> 16, nt.config32(0x08) & 0xFF
    else:
        return Finding("part", "unknown", "configuration space cannot be read", "run as root")
    text = f"PEX {number:04x} revision {revision:02x}"
    if number in CAPELLA:
        return Finding("part", "warn", f"{text}: a Capella, with another requester-ID table and no DMA: not supported")
    if number in DRACO_1 and revision == REVISION_AA:
        return Finding("part", "warn", f"{text}: a Draco-1 that does not say which side it is: not supported")
    if number >> 8 == 0x97:
        return Finding("part", "warn", f"{text}: a Capella-2: not supported")
    if number in KNOWN_PARTS or number in DRACO_1:
        return Finding("part", "ok", text)
    return Finding("part", "unknown", f"{text} is not among the parts that are known to have NT ports, A-LUT and DMA")


def side(nt):
    word = nt.config32(NT_ID)
    if word is None:
        return Finding("side", "unknown", "only 256 bytes of configuration space can be read", "run as root")
    if word == ALL_ONES:
        return Finding("side", "warn", "the function does not answer: link down, or no power",
                       "check the cable, then rescan: echo 1 > /sys/bus/pci/rescan")
    where = "link" if word >> 31 else "virtual"
    topology = (
        "the peer owns the chip (NTB to root port)"
        if where == "link"
        else "back-to-back, unless a host is cabled to the NT port directly"
    )
    return Finding("side", "ok", f"NT{word & 1} {where} side: {topology}")


def driver(function, purpose):
    bind = f"driverctl set-override {function.name} vfio-pci"
    name = function.driver
    if name == "vfio-pci":
        return Finding("driver", "ok", f"{purpose}: vfio-pci")
    if name == "igb_uio":
        return Finding("driver", "ok", f"{purpose}: igb_uio; no IOMMU protects memory from the card")
    if name == "uio_pci_generic":
        return Finding("driver", "warn", f"{purpose}: uio_pci_generic needs IOVA as PA; no IOMMU protects memory from the card", bind)
    if name is None:
        return Finding("driver", "warn", f"{purpose}: no driver is bound, so DPDK does not see it", bind)
    return Finding("driver", "warn", f"{purpose}: bound to {name}, which DPDK cannot use", bind)


def windows(nt):
    bars = {bar.index: bar for bar in nt.bars}
    out = []
    if 0 not in bars:
        out.append(Finding("bars", "warn", "BAR0, the registers, has no address",
                           "reserve more memory for the bridge: pci=realloc,hpmemsize=... on the kernel command line"))
    elif bars[0].size != BAR0_BYTES:
        out.append(Finding("bars", "warn", f"BAR0 is {sized(bars[0].size)}: expected {sized(BAR0_BYTES)}"))
    for index, purpose, least in ((2, "data window", 1 << 20), (4, "shared window", 2 << 20)):
        out.append(window(bars.get(index), index, purpose, least))
    return out


def window(bar, index, purpose, least):
    name = f"BAR{index}, the {purpose},"
    eeprom = "set it up in the EEPROM (plx-doctor eeprom explains an image)"
    if bar is None:
        return Finding("bars", "warn", f"{name} is absent", eeprom)
    size = f"{name} is {sized(bar.size)} at {bar.start:#x}"
    if bar.size < least or bar.size & (bar.size - 1):
        return Finding("bars", "warn", f"{size}: expected a power of two of at least {sized(least)}", eeprom)
    if not (bar.is_64bit and bar.prefetchable):
        return Finding("bars", "warn", f"{size}: expected 64-bit and prefetchable", eeprom)
    if bar.start + bar.size > ENGINE_REACH:
        return Finding("bars", "warn", f"{size}: above 2^48, where the DMA engine does not reach",
                       "limit 64-bit addresses of PCI in the firmware set-up (above 4G decoding, MMIO high base)")
    return Finding("bars", "ok", size)


def mtrr_combines(mtrr, bar):
    """Whether a write-combining MTRR covers a BAR whole."""
    rows = re.findall(r"base=0x([0-9a-fA-F]+) .*?size= *(\d+)([KM])B, count=\d+: write-combining$", mtrr, re.M)
    spans = [(int(base, 16), int(count) << (20 if unit == "M" else 10)) for base, count, unit in rows]
    return any(base <= bar.start and bar.start + bar.size <= base + size for base, size in spans)


def write_combining(nt, mtrr):
    """As the driver decides it (bus/pci_mapping.cpp). @p mtrr: the text of /proc/mtrr."""
    data = next((bar for bar in nt.bars if bar.index == 2), None)
    active = pci.read_text(os.path.join(nt.sysfs, "module/igb_uio/parameters/wc_activate"))
    if nt.driver == "igb_uio" and active in ("1", "Y"):
        return Finding("wc", "ok", "igb_uio maps the windows write-combining")
    if nt.driver == "uio_pci_generic" and os.path.exists(nt.file("resource2_wc")):
        return Finding("wc", "ok", "resource2_wc can be mapped")
    if data is not None and mtrr_combines(mtrr, data):
        return Finding("wc", "ok", "a write-combining MTRR covers the data window")
    if nt.driver == "igb_uio":
        return Finding("wc", "warn", "igb_uio maps the windows uncached: stores by the CPU are ten times slower",
                       "rmmod igb_uio; modprobe igb_uio wc_activate=1")
    place = f"base={data.start:#x} size={data.size:#x}" if data is not None else "base=... size=..."
    return Finding("wc", "warn", "the windows are mapped uncached (vfio-pci maps no other way on x86)",
                   f"echo '{place} type=write-combining' > /proc/mtrr; or uio_pci_generic, igb_uio with wc_activate=1;"
                   " or leave long messages to the DMA engine")


def link(function, name):
    cap = function.capability(pci.CAP_PCIE)
    able = function.config32(cap + 0x0C) if cap is not None else None
    status = function.config16(cap + 0x12) if cap is not None else None
    if able is None or status is None:
        return Finding("link", "unknown", f"{name}: no link registers can be read", "run as root")
    speed, width = status & 0xF, bits(status, 9, 4)
    best_speed, best_width = able & 0xF, bits(able, 9, 4)
    if width == 0:
        return Finding("link", "warn", f"{name}: down", "check the cable, power the other host, start its driver")
    text = f"{name}: {SPEEDS.get(speed, '?')} GT/s x{width} of {SPEEDS.get(best_speed, '?')} GT/s x{best_width}"
    if speed < best_speed or width < best_width:
        return Finding("link", "warn", f"{text}: less than it could", "reseat card and cable; check the slot's width")
    return Finding("link", "ok", text)


def payloads(nt):
    """Payload and read-request sizes along the way: the smallest payload counts."""
    hops = [(hop, *sizes(hop)) for hop in nt.way_up()]
    if any(payload is None for _, payload, _, _ in hops):
        return [Finding("payload", "unknown", "not every hop can be read", "run as root")]
    text = ", ".join(f"{hop.name} {payload}/{request}" for hop, payload, request, _ in hops)
    least_able = min(able for *_, able in hops)
    least = min(payload for _, payload, _, _ in hops)
    if len({payload for _, payload, _, _ in hops}) > 1:
        return [Finding("payload", "warn", f"payload sizes differ along the way (payload/read request): {text}",
                        "pci=pcie_bus_safe on the kernel command line")]
    if least < least_able:
        return [Finding("payload", "warn", f"{least} bytes are used, every hop could take {least_able}: {text}",
                        "pci=pcie_bus_perf on the kernel command line")]
    return [Finding("payload", "ok", f"payload/read request: {text}")]


def sizes(hop):
    """(payload, read request, payload that it could take) in bytes."""
    cap = hop.capability(pci.CAP_PCIE)
    able = hop.config32(cap + 0x04) if cap is not None else None
    control = hop.config16(cap + 0x08) if cap is not None else None
    if able is None or control is None:
        return None, None, None
    return 128 << bits(control, 7, 5), 128 << bits(control, 14, 12), 128 << (able & 7)


def ordering(nt):
    cap = nt.capability(pci.CAP_PCIE)
    control = nt.config16(cap + 0x08) if cap is not None else None
    if control is None:
        return Finding("order", "unknown", "relaxed ordering cannot be read", "run as root")
    if control & 0x10:
        return Finding("order", "ok", "relaxed ordering is allowed; the driver turns it off where order is relied on")
    return Finding("order", "ok", "relaxed ordering is off")


def timeouts(dma):
    cap = dma.capability(pci.CAP_PCIE)
    control = dma.config16(cap + 0x28) if cap is not None else None
    if control is None:
        return Finding("timeout", "unknown", f"{dma.name}: completion time-out cannot be read", "run as root")
    if control & 0x10:
        return Finding("timeout", "ok", f"{dma.name}: completion time-outs are disabled")
    return Finding("timeout", "ok",
                   f"{dma.name}: completion time-outs are on (an engine that meets one hangs); the driver disables them")


def access_control(nt):
    redirecting = []
    for hop in nt.way_up():
        at = hop.extended(pci.EXT_ACS)
        control = hop.config16(at + 6) if at is not None else None
        if control is not None and control & 0x04:
            redirecting.append(hop.name)
    if not nt.has_extended:
        return Finding("acs", "unknown", "only 256 bytes of configuration space can be read", "run as root")
    if redirecting:
        return Finding("acs", "warn",
                       f"{', '.join(redirecting)} send peer-to-peer traffic up to the root: DMA into the window takes that way",
                       f"pci=disable_acs_redir={';'.join(redirecting)} on the kernel command line")
    return Finding("acs", "ok", "no hop redirects peer-to-peer traffic")


def iommu(nt):
    if nt.iommu_group is None:
        return Finding("iommu", "warn", "off: the card reaches all of memory, and vfio-pci needs unsafe mode",
                       "intel_iommu=on or amd_iommu=on on the kernel command line")
    others = [name for name in nt.group_members() if name != nt.name]
    text = f"group {nt.iommu_group}" + (f" together with {', '.join(others)}" if others else "")
    # The bridge passes requests on under ids made of table indices; Linux knows that of these two only.
    if nt.ids[1] not in (0x87B0, 0x87B1):
        return Finding("iommu", "warn", f"{text}: requests from the other side carry ids that the kernel does not expect of this function",
                       "iommu=pt on the kernel command line, or a kernel whose quirk_plx_ntb_dma_alias has this id")
    return Finding("iommu", "ok", f"{text}; the kernel expects the ids under which the bridge passes requests on")


def memory(nt):
    node = nt.node if nt.node is not None and nt.node >= 0 else None
    base = f"devices/system/node/node{node}" if node is not None else "kernel/mm"
    pages = {}
    for path in glob.glob(os.path.join(nt.sysfs, base, "hugepages/hugepages-*kB")):
        pages[path.rsplit("-", 1)[1]] = (pci.read_number(f"{path}/nr_hugepages") or 0, pci.read_number(f"{path}/free_hugepages") or 0)
    place = f"node {node}" if node is not None else "NUMA node unknown"
    if not any(count for count, _ in pages.values()):
        return Finding("memory", "warn", f"{place}: no huge pages are reserved", "dpdk-hugepages.py --setup 1G")
    text = ", ".join(f"{free} of {count} free of {size}" for size, (count, free) in sorted(pages.items()) if count)
    return Finding("memory", "ok", f"{place}: huge pages: {text}")


def ports(word):
    """@p word: register 360, or None."""
    if word is None:
        return Finding("a-lut", "unknown", "registers are not read unless asked for", "plx-doctor --registers, while no program has the card")
    if word in (0, ALL_ONES):
        return Finding("a-lut", "warn", f"register 360 reads {word:08x}: the chip does not answer")
    return Finding("a-lut", "ok", Upstream(word).text())


def examine(nt, everything, vs0=None, mtrr=""):
    """All findings about an NT function and what belongs to it."""
    out = [part(nt), side(nt), driver(nt, "NT function")]
    out += windows(nt)
    out += [write_combining(nt, mtrr), link(nt, "NT link"), *(link(hop, f"{hop.name} upstream") for hop in [*nt.way_up()][2:3])]
    out += payloads(nt)
    out += [ordering(nt), access_control(nt), iommu(nt), memory(nt), ports(vs0)]
    engines = pci.dma_of(nt, everything)
    if not engines:
        out.append(Finding("dma", "warn", "no DMA function on this side of the chip: long messages go by the CPU",
                           "assign channels in the EEPROM (registers 1F8 and 1FC of DMA0)"))
    for engine in engines:
        out += [driver(engine, f"DMA function {engine.name}"), timeouts(engine)]
    return out
