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


def named(name):
    """Whether the guide has it, spelled so, as a literal."""
    return re.search(rf"``{re.escape(name)}``", GUIDE) is not None


class Guide(unittest.TestCase):
    def test_it_renders(self):
        with tempfile.TemporaryDirectory() as out:
            done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "-q", "-b", "html", "-d", f"{out}/trees",
                                   ROOT / "doc/guides", f"{out}/html"],
                                  capture_output=True, text=True, timeout=100, check=False)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def expect_all(self, kind, names, least):
        self.assertGreaterEqual(len(names), least, f"the test finds no {kind}s in the source any more")
        self.assertEqual([name for name in names if not named(name)], [], f"{kind}s that the guide lacks")

    def test_device_arguments(self):
        macros = re.findall(r"#define PLX_(?:COMMON|TWIN|PCI)_PARAMS((?:.*\\\n)*.*)", source("plx_options.hpp"))
        self.expect_all("devarg", re.findall(r'[" ](\w+)=', "".join(macros)), 15)

    def test_attributes(self):
        self.expect_all("attribute", re.findall(r'^    \{"(\w+)",(?:$| \[\])', source("pmd_attr.cpp"), re.M), 15)

    def test_statistics(self):
        text = source("pmd_stats.cpp")
        names = [f"{way}_{what}" for way, what in re.findall(r'\{"([rt]x)", "(\w+)"', text)]
        self.expect_all("statistic", names + re.findall(r'(?<!x", )"((?:link|sleep|dma)_\w+)"', text), 20)


unittest.main()
