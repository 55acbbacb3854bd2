#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs dpdk-pmdinfo.py on the driver and compares what it shows with the driver's sources.

pmdinfo.py DPDK_PMDINFO LIBRARY DRIVER_FOLDER
"""

import json
import re
import subprocess
import sys
from pathlib import Path


def shown(script: str, library: str) -> dict:
    output = subprocess.run([sys.executable, script, library], check=True, timeout=60,
                            stdout=subprocess.PIPE, text=True).stdout
    drivers = {}
    for driver in json.loads(output):
        if not driver["name"].startswith("raw_plx_ntb"):
            continue
        assert driver["name"] not in drivers, f"{driver['name']} is there twice"
        drivers[driver["name"]] = driver
    return drivers


def macro(text: str, name: str) -> str:
    """The string that a macro stands for, its pieces put together."""
    body = re.search(rf"#define {name}\b((?:.*\\\n)*.*)", text)
    assert body, f"no macro {name}"
    return "".join(re.findall(r'"([^"]*)"', body.group(1)))


def nt_ids(facts: str) -> set:
    vendor = re.search(r"vendor_plx = 0x([0-9A-Fa-f]{4});", facts).group(1).lower()
    devices = re.findall(r"device_nt\d_(?:virtual|link) = 0x([0-9A-Fa-f]{4});", facts)
    assert len(devices) == 4, f"{len(devices)} NT endpoints in the facts"
    return {(vendor, device.lower()) for device in devices}


def main() -> None:
    script, library, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    options = (folder / "device/options.hpp").read_text()
    common = macro(options, "PLX_COMMON_PARAMS")
    drivers = shown(script, library)

    card = drivers["raw_plx_ntb_pci"]
    assert card["params"] == common, card["params"]
    assert "vfio-pci" in card["kmod"] and "uio_pci_generic" in card["kmod"], card["kmod"]
    ids = {(i["vendor"], i["device"]) for i in card["pci_ids"]}
    expected = nt_ids((folder / "hw/facts/plx_ids.hpp").read_text())
    assert ids == expected, f"{ids} is not {expected}"
    assert all(set(i) == {"vendor", "device"} for i in card["pci_ids"]), card["pci_ids"]

    dma = drivers["raw_plx_ntb_dma"]
    assert "vfio-pci" in dma["kmod"], dma["kmod"]
    ids = {(i["vendor"], i["device"]) for i in dma["pci_ids"]}
    assert ids == {("10b5", "87d0"), ("10b5", "87e0")}, ids

    twin = drivers["raw_plx_ntb"]
    assert twin["params"] == macro(options, "PLX_TWIN_PARAMS") + common, twin["params"]
    assert "pci_ids" not in twin, twin


if __name__ == "__main__":
    main()
