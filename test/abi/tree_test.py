#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The checks of the tree find what they are there to find, and nothing in a clean tree."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
import exports
import tree

SPDX = '// ' + tree.LICENCE + '\n'
CLEAN = {
    'drivers/raw/plx_ntb/hw/facts/regs.hpp': '#include <cstdint>\n',
    'drivers/raw/plx_ntb/hw/chip.hpp': '',
    'drivers/raw/plx_ntb/hw/chip.cpp': '#include "regs.hpp"\n// as rte_read32() does\n',
    'drivers/raw/plx_ntb/queue/plx_queue.hpp': '#include <rte_mbuf.h>\n',
    'drivers/raw/plx_ntb/rte_pmd_plx_ntb.h': '#include <rte_compat.h>\n',
    'drivers/raw/plx_ntb/pmd_vdev.cpp': '#include "twin.hpp"\n#include <bus_vdev_driver.h>\n',
    'twin/twin.hpp': '#include "regs.hpp"\n',
    'lib/ntbmsg/ntbmsg.h': '#include <stdint.h>\n',
    'apps/echo/main.cpp': '#include <ntbmsg.h>\n#include "options.hpp"\n',
    'apps/echo/options.hpp': '',
    'test/unit/hw/chip_test.cpp': '#include "twin.hpp"\n#include <gtest/gtest.h>\n',
}


def findings(**changed):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changed}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if name in changed else SPDX + text)
        return list(tree.findings(pathlib.Path(folder)))


class Tree(unittest.TestCase):
    def expect(self, name, text, what):
        found = findings(**{name: SPDX + text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(f'{name}:2: ', found[0])
        self.assertIn(what, found[0])

    def test_clean_tree_has_no_finding(self):
        self.assertEqual(findings(), [])

    def test_upward_includes(self):
        self.expect('drivers/raw/plx_ntb/hw/facts/x.hpp', '#include "twin.hpp"\n', 'of twin')
        self.expect('twin/x.cpp', '#include "plx_ntb/hw/chip.hpp"\n', 'of ' + tree.HW)
        self.expect('drivers/raw/plx_ntb/queue/x.cpp', '#include <ntbmsg.h>\n', 'of public')
        self.expect('drivers/raw/plx_ntb/link.cpp', '#include "twin.hpp"\n', 'of twin')
        self.expect('lib/ntbmsg/src/x.cpp', '#include "plx_queue.hpp"\n', 'queue')
        self.expect('apps/echo/x.cpp', '#include <twin.hpp>\n', 'of twin')

    def test_dpdk_below_the_driver(self):
        self.expect('twin/x.cpp', '#include <rte_log.h>\n', 'of dpdk')
        self.expect('drivers/raw/plx_ntb/hw/x.cpp', '#include <dev_driver.h>\n', 'of dpdk')
        self.expect('twin/y.cpp', 'void f() { rte_pause(); }\n', 'must not use DPDK')

    def test_licence_line(self):
        self.assertEqual(len(findings(**{'doc/x.md': '# A page\n'})), 1)
        self.assertEqual(findings(**{'tools/x': '#!/bin/bash\n# ' + tree.LICENCE + '\n'}), [])

    def test_unfinished_work(self):
        self.expect('twin/x.cpp', '// TODO: later\n', 'unfinished')


class Exports(unittest.TestCase):
    MAP = '# comment\nA_1 {\n global:\n  one; /* why */\n  two;\n local: *;\n};\nA_2 { global: three; } A_1;\n'

    def test_names_of_all_global_parts(self):
        self.assertEqual(exports.mapped(self.MAP), {'one', 'two', 'three'})

    def test_every_difference_is_told(self):
        told = list(exports.differences({'one', 'two', 'x_*'}, {'two', 'four'}))
        self.assertEqual(len(told), 4, told)


if __name__ == '__main__':
    unittest.main()
