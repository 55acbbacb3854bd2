#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""plx-doctor on made-up cards, twins and EEPROM images.   doctor_test.py SOURCE_ROOT"""
import json
import os
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest

sys.dont_write_bytecode = True
ROOT = sys.argv.pop(1)
TOOL = os.path.join(ROOT, "tools/plx-doctor")
sys.path.insert(0, os.path.join(ROOT, "tools"))

from plx_doctor import registers  # noqa: E402

NT = "0000:05:00.0"
ENGINE = "0000:03:00.1"
CHAIN = ["pci0000:00", "0000:00:01.0", "0000:03:00.0", "0000:04:01.0", NT]


def run(*words):
    done = subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def config(device, pci_class, payload=1, able=1, speed=3, width=8, chip=0x8749, redirect=False, side=0):
    """A configuration space with the capabilities that the doctor reads."""
    space = bytearray(4096)
    struct.pack_into("<HH", space, 0, 0x10B5, device)
    struct.pack_into("<I", space, 8, pci_class << 8 | 0xCA)
    struct.pack_into("<HH", space, 0x2C, 0x10B5, chip)
    space[0x34] = 0x68
    struct.pack_into("<BB", space, 0x68, 0x10, 0xDC)
    struct.pack_into("<I", space, 0x6C, able)
    struct.pack_into("<H", space, 0x70, payload << 5 | 2 << 12)
    struct.pack_into("<I", space, 0x74, 3 | 8 << 4)
    struct.pack_into("<HH", space, 0x78, 0, speed | width << 4)
    struct.pack_into("<BBBB", space, 0xDC, 0x09, 0, 0x24, 0)
    struct.pack_into("<II", space, 0xDC + 0x18, chip << 16 | 0x10B5, 0xCA)
    struct.pack_into("<I", space, 0x100, 0x000D | 1 << 16)
    struct.pack_into("<H", space, 0x106, 4 if redirect else 0)
    struct.pack_into("<I", space, 0xC8C, side)
    return space


class Tree:
    """A made-up /sys with one card behind two bridges."""

    def __init__(self, folder):
        self.sysfs = folder
        self.mtrr = os.path.join(folder, "mtrr")
        self.devices = os.path.join(folder, "bus/pci/devices")
        os.makedirs(self.devices)
        above = os.path.join(folder, "devices")
        for name in CHAIN:
            above = os.path.join(above, name)
            os.makedirs(above)
            if name.startswith("0000"):
                self.function(above, name, 0x8749, config(0x8749, 0x060400))
        self.function(above, NT, 0x87B0, config(0x87B0, 0x068000))
        beside = os.path.join(folder, "devices", *CHAIN[:2], ENGINE)
        os.makedirs(beside)
        self.function(beside, ENGINE, 0x87D0, config(0x87D0, 0x088000))
        self.write("class", "0x088000", ENGINE)
        self.resource((0xA0000000, 1 << 18, 0x200), None, (0x380000000000, 1 << 29, 0x142200), None, (0x381000000000, 1 << 22, 0x142200))
        self.bind("igb_uio")
        self.bind("igb_uio", ENGINE)
        self.write_at("module/igb_uio/parameters/wc_activate", "1")
        group = os.path.join(folder, "kernel/iommu_groups/7/devices", NT)
        os.makedirs(group)
        os.symlink(os.path.join(folder, "kernel/iommu_groups/7"), self.path(NT, "iommu_group"))
        self.write("numa_node", "0")
        pages = "devices/system/node/node0/hugepages/hugepages-2048kB/"
        self.write_at(pages + "nr_hugepages", "512")
        self.write_at(pages + "free_hugepages", "500")

    def function(self, place, name, device, space):
        link = os.path.join(self.devices, name)
        if not os.path.islink(link):
            os.symlink(place, link)
        self.write("vendor", "0x10b5", name)
        self.write("device", f"{device:#x}", name)
        self.config(space, name)

    def path(self, name, file):
        return os.path.join(self.devices, name, file)

    def write(self, file, text, name=NT):
        with open(self.path(name, file), "w", encoding="ascii") as out:
            out.write(text + "\n")

    def write_at(self, file, text):
        path = os.path.join(self.sysfs, file)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as out:
            out.write(text + "\n")

    def config(self, space, name=NT):
        with open(self.path(name, "config"), "wb") as out:
            out.write(space)

    def resource(self, *bars):
        lines = [f"{b[0]:#x} {b[0] + b[1] - 1:#x} {b[2]:#x}" if b else "0x0 0x0 0x0" for b in bars]
        self.write("resource", "\n".join(lines + ["0x0 0x0 0x0"] * (6 - len(lines))))

    def bind(self, driver, name=NT):
        path = self.path(name, "driver")
        if os.path.islink(path):
            os.unlink(path)
        if driver:
            os.symlink(f"../drivers/{driver}", path)


class Card(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.tree = Tree(folder.name)

    def findings(self, *words):
        code, out, err = run("--sysfs", self.tree.sysfs, "--run", self.tree.sysfs, "--mtrr", self.tree.mtrr, "--json", *words)
        self.assertNotEqual(out, "", err)
        return code, json.loads(out)[0]["findings"]

    def the(self, what, *words):
        """States and texts of the findings about one thing."""
        found = [f for f in self.findings(*words)[1] if f["what"] == what]
        self.assertTrue(found, what)
        return {f["state"] for f in found}, " ".join(f["text"] for f in found), " ".join(f["mend"] for f in found)

    def test_a_good_card_has_nothing_to_mend(self):
        code, found = self.findings()
        self.assertEqual([f for f in found if f["state"] == "warn"], [])
        self.assertEqual(code, 0)
        text = run("--sysfs", self.tree.sysfs, "--run", self.tree.sysfs)[1]
        self.assertIn("PEX 8749 revision ca", text)
        self.assertIn("NT0 virtual side", text)
        self.assertIn("512 MiB", text)
        self.assertIn(ENGINE, text)

    def test_every_warning_says_what_mends_it(self):
        self.tree.config(config(0x87B0, 0x068000, payload=0, speed=1, width=4, redirect=True))
        self.tree.resource((0xA0000000, 1 << 18, 0x200), None, (0x1 << 48, 1 << 29, 0x142200))
        self.tree.bind(None)
        self.tree.write_at("devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages", "0")
        os.unlink(self.tree.path(NT, "iommu_group"))
        code, found = self.findings()
        self.assertEqual(code, 1)
        warned = {f["what"] for f in found if f["state"] == "warn"}
        self.assertEqual(warned, {"driver", "bars", "wc", "link", "payload", "acs", "iommu", "memory"})
        self.assertEqual([f for f in found if f["state"] == "warn" and not f["mend"]], [])

    def test_capella_is_named(self):
        self.tree.config(config(0x87B0, 0x068000, chip=0x8796))
        state, text, _ = self.the("part")
        self.assertEqual(state, {"warn"})
        self.assertIn("Capella", text)

    def test_parts_that_the_driver_refuses(self):
        for part, revision, state in ((0x9749, 0xCA, "warn"), (0x8748, 0xAA, "warn"), (0x8748, 0xBA, "ok"), (0x1234, 0xCA, "unknown")):
            space = config(0x87B0, 0x068000, chip=part)
            space[0xDC + 0x1C] = revision
            self.tree.config(space)
            self.assertEqual(self.the("part")[0], {state}, f"{part:04x} {revision:02x}")

    def test_a_short_configuration_space_is_unknown_not_wrong(self):
        self.tree.config(config(0x87B0, 0x068000)[:256])
        for what in ("side", "acs"):
            self.assertEqual(self.the(what)[0], {"unknown"}, what)

    def test_a_dead_function(self):
        self.tree.config(bytes([0xFF]) * 4096)
        self.assertEqual(self.the("side")[0], {"warn"})

    def test_a_capability_list_that_bites_its_tail_ends(self):
        space = config(0x87B0, 0x068000)
        space[0x68] = 0x01
        space[0x69] = 0x68
        self.tree.config(space)
        self.assertEqual(self.the("link")[0] & {"unknown"}, {"unknown"})

    def test_drivers(self):
        for driver, state in (("vfio-pci", "ok"), ("igb_uio", "ok"), ("uio_pci_generic", "warn"), ("e1000", "warn"), (None, "warn")):
            self.tree.bind(driver)
            found = [f for f in self.findings()[1] if f["what"] == "driver" and f["text"].startswith("NT")]
            self.assertEqual([f["state"] for f in found], [state], driver)

    def test_write_combining_is_judged_by_how_the_window_is_mapped(self):
        covers = "reg02: base=0x380000000000 (58720256MB), size=  512MB, count=1: write-combining"
        for driver, mtrr, state in (("igb_uio", "", "ok"), ("vfio-pci", "", "warn"), ("vfio-pci", covers, "ok"),
                                    ("vfio-pci", covers.replace("512MB", "256MB"), "warn"),
                                    ("vfio-pci", covers.replace("write-combining", "uncachable"), "warn"),
                                    ("uio_pci_generic", "", "ok"), (None, "", "warn")):
            self.tree.bind(driver)
            self.tree.write("resource2_wc", "")
            self.tree.write_at("mtrr", "reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n" + mtrr)
            found, _, mend = self.the("wc")
            self.assertEqual(found, {state}, (driver, mtrr))
            # What mends it is the range that would have been found.
            self.assertEqual("base=0x380000000000 size=0x20000000 type=write-combining" in mend, state == "warn", mend)
        self.tree.write_at("module/igb_uio/parameters/wc_activate", "0")
        self.tree.bind("igb_uio")
        self.assertIn("modprobe igb_uio wc_activate=1", self.the("wc")[2])

    def test_a_link_side_id_has_the_alias_problem(self):
        self.tree.write("device", "0x87a0")
        self.tree.config(config(0x87A0, 0x068000, side=1 << 31))
        self.assertEqual(self.the("iommu")[0], {"warn"})
        self.assertIn("link side", self.the("side")[1])

    def test_registers_are_read_where_asked(self):
        words = bytearray(registers.CSR_BYTES)
        struct.pack_into("<I", words, 0x360, 0x40002100)
        with open(self.tree.path(NT, "resource0"), "wb") as out:
            out.write(words)
        self.assertEqual(self.the("a-lut")[0], {"unknown"})
        self.assertIn("NT0 on port 1, A-LUT 256 entries", self.the("a-lut", "--registers")[1])
        code, out, _ = run("--sysfs", self.tree.sysfs, "regs", NT)
        self.assertEqual(code, 0)
        self.assertTrue(out.startswith("# plx-registers 1 part 8749 "), out[:80])
        self.assertIn("\n00360 40002100 port0 VS0_UPSTREAM\n", out)
        self.assertNotIn("ALUT_LOWER", out)

    def test_registers_that_cannot_be_read(self):
        code, out, err = run("--sysfs", self.tree.sysfs, "regs", NT)
        self.assertEqual((code, out), (2, ""))
        self.assertIn("BAR0 cannot be mapped", err)
        code, out, err = run("--sysfs", "/no/such/tree", "regs", NT)
        self.assertEqual((code, out, len(err.splitlines())), (2, "", 1))

    def test_a_name_that_is_not_there(self):
        code, _, err = run("--sysfs", self.tree.sysfs, "0000:ff:00.0")
        self.assertEqual(code, 2)
        self.assertIn("0000:ff:00.0", err)

    def test_nothing_in_sight(self):
        with tempfile.TemporaryDirectory() as empty:
            self.assertEqual(run("--sysfs", empty, "--run", empty)[0], 2)


class Twin(unittest.TestCase):
    """A program that answers as DPDK's telemetry does."""

    ANSWERS = {
        "/plx_ntb/list": [3],
        "/plx_ntb/info,3": {"name": "raw_plx_ntb0", "platform": "twin"},
        "/plx_ntb/link,3": {"state": "waiting", "why": "no process is at the other end of the cable"},
    }

    def serve(self, listener):
        listener.settimeout(20)
        try:
            while True:
                connection, _ = listener.accept()
                with connection:
                    connection.send(b'{"version": "DPDK 22.11"}')
                    while command := connection.recv(1024).decode():
                        key = command.split(",")[0]
                        connection.send(json.dumps({key: self.ANSWERS.get(command)}).encode())
        except OSError:
            return

    def test_it_is_found_and_explained(self):
        with tempfile.TemporaryDirectory() as folder:
            os.makedirs(os.path.join(folder, "rte"))
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.bind(os.path.join(folder, "rte/dpdk_telemetry.v2"))
            listener.listen()
            server = threading.Thread(target=self.serve, args=(listener,))
            server.start()
            code, out, _ = run("--sysfs", folder, "--run", folder)
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
            server.join()
        self.assertEqual(code, 1)
        self.assertIn("raw_plx_ntb0", out)
        self.assertIn("no process is at the other end of the cable", out)


class Eeprom(unittest.TestCase):
    # What the image of a production board with one NT port sets (doc/hardware.md, EEP).
    BOARD = [(0, 0x360, 0x40002100), (0, 0xA30, 0x03000000), (0x39, 0xD4, 0xC000000C), (0x39, 0xD8, 0xFFFFFFFF),
             (0x38, 0xE8, 0xC000000C), (0x38, 0xEC, 0xFFFFFFFF), (0x28, 0x1F8, 2), (0x28, 0x1FC, 0x01010000)]

    def explain(self, data, *words):
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            return run("eeprom", file.name, *words)

    def image(self, records, count=None):
        body = b"".join(struct.pack("<HI", block << 10 | offset >> 2, value) for block, offset, value in records)
        return b"\x5a\x80" + struct.pack("<H", len(body) if count is None else count) + body + b"\x01\x02\x03\x04"

    def test_a_board_that_is_fit(self):
        code, out, _ = self.explain(self.image(self.BOARD))
        self.assertEqual(code, 0)
        for text in ("port0        360 40002100 VS0_UPSTREAM", "NT0-virtual  0d4", "1 GiB", "channel 2 to port 1", "04030201"):
            self.assertIn(text, out)

    def test_what_keeps_a_card_from_use(self):
        for changed, what in (((0, 0x360, 0x40000100), "nt"), ((0, 0x360, 0x00002100), "a-lut"),
                              ((0x39, 0xD8, 0), "window"), ((0, 0xA30, 0), "csr")):
            code, out, _ = self.explain(self.image(self.BOARD + [changed]), "--json")
            warned = [f for f in json.loads(out)[0]["findings"] if f["state"] == "warn"]
            self.assertEqual((code, [f["what"] for f in warned]), (1, [what]))
            self.assertTrue(warned[0]["mend"])

    def test_what_an_image_leaves_open_is_unknown(self):
        code, out, _ = self.explain(self.image([]), "--json")
        self.assertEqual(code, 0)
        self.assertEqual({f["state"] for f in json.loads(out)[0]["findings"]}, {"unknown"})

    def test_files_that_are_no_image(self):
        good = self.image(self.BOARD)
        for data in (b"", b"\x5a", b"\x00" * 64, b"\x5a\x00" + good[2:], self.image(self.BOARD, 5), good[:40], b"\x5a" * (1 << 18)):
            code, out, err = self.explain(data)
            self.assertEqual((code, out), (2, ""))
            self.assertEqual(len(err.splitlines()), 1, err)
        self.assertEqual(run("eeprom", "/no/such/file")[0], 2)
        self.assertEqual(run("eeprom")[0], 2)


class Table(unittest.TestCase):
    def test_it_is_the_driver_s(self):
        with open(os.path.join(ROOT, "drivers/raw/plx_ntb/hw/facts/plx_regs.hpp"), encoding="ascii") as source:
            rows = re.findall(r'^ +(?:one|many)\(B::(\w+), "(\w+)", +(0x[0-9A-Fa-f]+), (?:(\d+), )?A::(\w+),', source.read(), re.M)
        wanted = [(block, name, int(offset, 16), int(count or 1), access) for block, name, offset, count, access in rows]
        self.assertGreater(len(wanted), 100)
        self.assertEqual([(r.block, r.name, r.offset, r.count, r.access) for r in registers.TABLE], wanted)


if __name__ == "__main__":
    unittest.main()
