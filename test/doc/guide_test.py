# SPDX-License-Identifier: BSD-3-Clause
"""The guide renders without a warning, and names whatever can be set or asked of the driver.

    guide_test.py SOURCE_ROOT
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
DRIVER = ROOT / "drivers/raw/plx_ntb"
GUIDE = (ROOT / "doc/guides/rawdevs/plx_ntb.rst").read_text(encoding="ascii")


def source(name):
    return (DRIVER / name).read_text(encoding="ascii")


def rows(title):
    """name -> the rest of its row, of a list-table of the guide. A row may name several."""
    table = re.search(rf"^\.\. list-table:: {title}\n(.*?)(?=^\S|\Z)", GUIDE, re.M | re.S).group(1)
    found = {}
    for names, rest in re.findall(r"^   \* - (.*)\n((?:     .*\n)*)", table, re.M):
        found.update((name, rest) for name in re.findall(r"``(\w+)``", names))
    return found


def numbers(text):
    return re.findall(r"\d+", text)


def ranges_of_struct(header, struct):
    """field -> (lowest, highest) as its comment has it, where it has a range."""
    body = re.search(rf"^struct {struct} \{{(.*?)^\}};", header.read_text(encoding="ascii"), re.M | re.S).group(1)
    found = {}
    for field, comment in re.findall(r"(\w+);\s*/\*\*< (.*?)\*/", body, re.S):
        bounds = re.search(r"(\d+) to (\d+)", " ".join(comment.split()))
        if bounds:
            found[field] = bounds.groups()
    return found


class Guide(unittest.TestCase):
    def test_it_renders(self):
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "-d", f"{out}/trees",
                                   ROOT / "doc/guides", f"{out}/html"],
                                  capture_output=True, text=True, timeout=100, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def expect_same(self, title, names, least):
        """@p names: what the source has."""
        self.assertGreaterEqual(len(names), least, f"the test finds no {title} in the source any more")
        self.assertEqual(sorted(rows(title)), sorted(names), f"{title}: guide and source")

    def test_device_arguments(self):
        macros = re.findall(r"#define PLX_(?:COMMON|TWIN|PCI)_PARAMS((?:.*\\\n)*.*)", source("device/options.hpp"))
        self.expect_same("Device arguments", re.findall(r'[" ](\w+)=', "".join(macros)), 15)

    def bounds_of_device_arguments(self):
        """devarg -> (lowest, highest) as the driver checks it, but for those that have no highest of their own."""
        table = re.search(r"number_keys\[\] = \{(.*?)\n\};", source("device/options.cpp"), re.S).group(1)
        for name, number in re.findall(r"constexpr uint32_t (\w+) = (\d+);", source("hw/facts/plx_regs.hpp")):
            table = table.replace(f"facts::{name}", number)
        table = re.sub(r"(\d+) - 1", lambda found: str(int(found[1]) - 1), self.with_values(table))
        found = re.findall(r'\{"(\w+)",\s*(?:nullptr|&)[\w:]*,\s*(?:nullptr|&)[\w:]*,\s*\{(\d+), (\d+)\}', table)
        self.assertEqual(len(found) + 1, table.count('{"'))
        return {name: (low, high) for name, low, high in found}

    def test_bounds_of_device_arguments(self):
        bounds = self.bounds_of_device_arguments()
        self.assertGreaterEqual(len(bounds), 15)
        guide = rows("Device arguments")
        for name, expected in bounds.items():
            valid = guide[name].rsplit("     - ", 1)[1]
            self.assertEqual([n for n in expected if n not in numbers(valid)], [], f"{name}: {valid}")

    @staticmethod
    def with_values(text):
        """@p text with the ranges that driver and library share in place of their names."""
        shared = (ROOT / "lib/common/ranges.hpp").read_text(encoding="ascii")
        found = re.findall(r"constexpr Range (\w+)\{(\d+), (\d+)\};", shared)
        for name, low, high in found:
            text = text.replace(f"ranges::{name}.high", high)
            text = re.sub(rf"ranges::{name}\b", f"{{{low}, {high}}}", text)
        return text

    def test_ranges_agree(self):
        """A size has one range: in both headers, in the table of library and driver, in the guide."""
        config = ranges_of_struct(DRIVER / "rte_pmd_plx_ntb.h", "rte_pmd_plx_ntb_config")
        options = ranges_of_struct(ROOT / "lib/ntbmsg/ntbmsg_endpoint.h", "ntbmsg_endpoint_options")
        table = re.search(r"bounds\[\] = \{(.*?)\n\};", (ROOT / "lib/ntbmsg/endpoint/options.cpp").read_text(), re.S)
        checked = {name: (low, high) for name, low, high in
                   re.findall(r'\{"(\w+)", &Options::\w+, \{(\d+), (\d+)\}', self.with_values(table.group(1)))}
        self.assertGreaterEqual(len(checked), 14)
        for name, bounds in checked.items():
            self.assertEqual(options.get(name, ("0", "1")), bounds, name)
        self.assertEqual(sorted(config), ["buf_bytes", "buffers", "inline_max", "max_message", "queue_buffers", "queues",
                                          "ring_lines"])
        devargs = {"ring_lines": "ring", "buf_bytes": "buf", "inline_max": "inline"}
        driver, guide = self.bounds_of_device_arguments(), rows("Device arguments")
        for name, bounds in config.items():
            if name != "queues":  # an endpoint may have workers alone
                self.assertEqual(checked[name], bounds, name)
            devarg = devargs.get(name, name)
            self.assertEqual(driver[devarg], bounds, name)
            text = guide[devarg].rsplit("     - ", 1)[1]
            self.assertEqual([n for n in bounds if n not in numbers(text)], [], f"{name}: {text}")

    def test_wire_version(self):
        page = (ROOT / "doc/wire-protocol.md").read_text(encoding="utf-8")
        major, minor = (re.search(rf"version_{part} = (\d+);", source("queue/wire.hpp")).group(1)
                        for part in ("major", "minor"))
        self.assertEqual(re.search(r"^# .*, version (.*)$", page, re.M).group(1), f"{major}.{minor}")

    def test_attributes(self):
        names = re.findall(r'^    \{"(\w+)",(?:$| \[\])', source("api/attributes.cpp"), re.M)
        self.expect_same("Attributes", names + ["spad_user_0", "spad_user_3"], 15)

    def test_statistics(self):
        text = source("api/statistics.cpp")
        names = [f"{way}_{what}" for way, what in re.findall(r'\{"([rt]x)", "(\w+)"', text)]
        self.expect_same("Extended statistics", names + re.findall(r'(?<!x", )"((?:link|sleep|dma)_\w+)"', text), 20)

    def test_telemetry(self):
        commands = re.findall(r'rte_telemetry_register_cmd\("([^"]+)"', source("api/telemetry.cpp"))
        self.assertGreaterEqual(len(commands), 5)
        self.assertEqual(sorted(set(re.findall(r"``(/plx_ntb/\w+)", GUIDE))), sorted(commands))


unittest.main()
