#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The checks of the tree find what they are there to find, and nothing in a clean tree."""

import pathlib
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
import exports
import tree

SPDX = '// ' + tree.LICENCE + '\n'
CLEAN = {
    'drivers/raw/plx_ntb/hw/facts/regs.hpp': '#include <cstdint>\n',
    'drivers/raw/plx_ntb/hw/chip.hpp': '',
    'drivers/raw/plx_ntb/hw/chip.cpp': '#include "regs.hpp"\n// as rte_read32() does\n',
    'drivers/raw/plx_ntb/queue/queue.hpp': '#include <rte_mbuf.h>\n',
    'drivers/raw/plx_ntb/rte_pmd_plx_ntb.h': '#include <rte_compat.h>\n',
    'drivers/raw/plx_ntb/bus/twin_platform.cpp': '#include "twin.hpp"\n#include <bus_vdev_driver.h>\n',
    'twin/twin.hpp': '#include "regs.hpp"\n',
    'lib/ntbmsg/ntbmsg.h': '#include <stdint.h>\n',
    'apps/echo/main.cpp': '#include <ntbmsg.h>\n#include "options.hpp"\n',
    'apps/echo/options.hpp': '',
    'apps/pktgen/session/session.hpp': '',
    'test/unit/driver/hw/chip_test.cpp': '#include "twin.hpp"\n#include <gtest/gtest.h>\n',
}


def findings(**changed):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**CLEAN, **changed}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text if name in changed else SPDX + text)
        return list(tree.findings(pathlib.Path(folder)))


# The layers alone: folders and mirrored tests have cases of their own.
@unittest.mock.patch.dict(tree.FOLDERS, clear=True)
@unittest.mock.patch.dict(tree.MIRRORED, clear=True)
@unittest.mock.patch.dict(tree.PICTURED, clear=True)
class Tree(unittest.TestCase):
    def expect(self, name, text, what):
        found = findings(**{name: SPDX + text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(f'{name}:2: ', found[0])
        self.assertIn(what, found[0])

    def test_clean_tree_has_no_finding(self):
        self.assertEqual(findings(), [])

    def test_build_folders(self):
        for name in ('build', 'out/debug'):
            self.assertEqual(findings(**{f'{name}/meson-private/x.c': '', f'{name}/x.cpp': ''}), [])
        self.assertEqual(len(findings(**{'apps/echo/build_info.hpp': ''})), 1)

    def test_upward_includes(self):
        self.expect('drivers/raw/plx_ntb/hw/facts/x.hpp', '#include "twin.hpp"\n', 'of twin')
        self.expect('twin/x.cpp', '#include "plx_ntb/hw/chip.hpp"\n', 'of ' + tree.HW)
        self.expect('drivers/raw/plx_ntb/queue/x.cpp', '#include <ntbmsg.h>\n', 'of public')
        self.expect('drivers/raw/plx_ntb/link/link.cpp', '#include "twin.hpp"\n', 'of twin')
        self.expect('lib/ntbmsg/src/x.cpp', '#include "queue/queue.hpp"\n', 'queue')
        self.expect('apps/echo/x.cpp', '#include <twin.hpp>\n', 'of twin')
        self.expect('apps/common/x.cpp', '#include "session/session.hpp"\n', 'of apps/pktgen')

    def test_dpdk_below_the_driver(self):
        self.expect('twin/x.cpp', '#include <rte_log.h>\n', 'of dpdk')
        self.expect('drivers/raw/plx_ntb/hw/x.cpp', '#include <dev_driver.h>\n', 'of dpdk')
        self.expect('twin/y.cpp', 'void f() { rte_pause(); }\n', 'must not use DPDK')

    def test_release_of_dpdk(self):
        self.expect('lib/ntbmsg/x.cpp', '#if RTE_VERSION < 3\n', 'asks for the release of DPDK')
        self.assertEqual(findings(**{'lib/dpdk/x.hpp': SPDX + '#if RTE_VERSION < 3\n'}), [])

    def test_words(self):
        licence = '<!-- ' + tree.LICENCE + ' -->\n'
        self.assertEqual(len(findings(**{'doc/x.md': licence + 'The peer is Told.\n'})), 1)
        self.assertEqual(len(findings(**{'doc/decisions/x.md': licence + 'The peer is told.\n'})), 1)
        self.expect('lib/ntbmsg/ntbmsg.h', '/* Nobody waits. */\n', 'plainer word than "Nobody"')
        self.expect('twin/x.cpp', '// Nobody is told.\n', 'plainer word than "Nobody"')
        self.assertEqual(findings(**{'twin/x.cpp': SPDX + 'constexpr int NOBODY = 1; // drains\n'}), [])

    def test_licence_line(self):
        self.assertEqual(len(findings(**{'doc/x.md': '# A page\n'})), 1)
        self.assertEqual(findings(**{'tools/x': '#!/bin/bash\n# ' + tree.LICENCE + '\n'}), [])

    def test_lines_of_the_first_pages(self):
        self.expect('README.md', 'x' * 121 + '\n', 'longer than 120')
        self.assertEqual(findings(**{'doc/x.md': SPDX + 'x' * 121 + '\n'}), [])

    def test_unfinished_work(self):
        self.expect('twin/x.cpp', '// TODO: later\n', 'unfinished')


# An area with two folders below its main.cpp; the lower one has a header of the same name elsewhere.
HOUSE = {
    'apps/house/base/clock.hpp': '',
    'apps/house/base/clock.cpp': '#include "base/clock.hpp"\n',
    'apps/house/base/time.hpp': '#include "base/clock.hpp"\n',
    'apps/house/upper/door.hpp': '#include "base/time.hpp"\n#include "upper/key.hpp"\n',
    'apps/house/upper/door.cpp': '#include "upper/door.hpp"\n#include "key.hpp"\n',
    'apps/house/upper/key.hpp': '#include <ntbmsg.h>\n',
    'apps/house/main.cpp': '#include "upper/door.hpp"\n#include "base/clock.hpp"\n',
    'twin/upper/door.hpp': '',
    'test/unit/house/base/clock_test.cpp': '#include "base/clock.hpp"\n',
    'test/unit/house/base/time/zone_test.cpp': '',
    'test/unit/house/upper/fixture.hpp': '',
    'test/unit/house/covered_by.txt': '# ' + tree.LICENCE + '\nupper/door.cpp: test/contract/door_test.cpp\n'
                                      'main.cpp: test/contract/door_test.cpp\n',
    'test/contract/door_test.cpp': '',
    'doc/house.md': '| `base/` | stones | |\n| `upper/` | tiles | base |\n',
}


@unittest.mock.patch.dict(tree.FOLDERS, {'apps/house': ('base', 'upper')}, clear=True)
@unittest.mock.patch.dict(tree.MIRRORED, {'apps/house': 'test/unit/house'}, clear=True)
@unittest.mock.patch.dict(tree.PICTURED, {'apps/house': 'doc/house.md'}, clear=True)
class Folders(unittest.TestCase):
    def found(self, **changed):
        return findings(**{name: text if name.endswith('.txt') else SPDX + text
                           for name, text in {**HOUSE, **changed}.items() if text is not None})

    def expect(self, changed, name, what, line=2):
        found = self.found(**changed)
        self.assertEqual(len(found), 1, found)
        self.assertIn(f'{name}:{line}: ', found[0])
        self.assertIn(what, found[0])

    def test_clean_area_has_no_finding(self):
        self.assertEqual(self.found(), [])

    def test_areas_without_an_entry_are_not_checked(self):
        self.assertEqual(self.found(**{'twin/a.hpp': '#include "b.hpp"\n', 'twin/b.hpp': '#include "a.hpp"\n'}), [])

    def test_include_of_a_folder_above(self):
        key = 'apps/house/base/time.hpp'
        self.expect({key: '#include "upper/key.hpp"\n'}, key, 'base must not include upper/key.hpp of upper')

    def test_include_of_the_top(self):
        self.expect({'apps/house/program.hpp': '', 'apps/house/upper/key.hpp': '#include "program.hpp"\n'},
                    'apps/house/upper/key.hpp', 'of the top')

    def test_picture_of_the_folders(self):
        table = HOUSE['doc/house.md']
        self.expect({'doc/house.md': table.replace('| base |', '| |')}, 'doc/house.md', 'upper/ includes base', 3)
        self.expect({'doc/house.md': table.replace('stones | |', 'stones | upper |')}, 'doc/house.md',
                    'base/ includes nothing', 2)

    def test_no_such_folder(self):
        self.expect({'apps/house/attic/box.hpp': ''}, 'apps/house/attic/box.hpp', 'has no such folder', 1)

    def test_cycle_inside_a_folder(self):
        # By way of a source: headers alone would not compile in a cycle, but stems do.
        self.expect({'apps/house/upper/key.cpp': '#include "upper/door.hpp"\n',
                     'test/unit/house/upper/key_test.cpp': ''},
                    'apps/house/upper/key.cpp', 'a cycle of includes')

    def test_test_without_a_source(self):
        self.expect({'test/unit/house/upper/roof_test.cpp': ''},
                    'test/unit/house/upper/roof_test.cpp', 'no source in apps/house', 1)

    def test_source_without_a_test(self):
        self.expect({'apps/house/upper/roof.cpp': ''}, 'apps/house/upper/roof.cpp', 'no unit test', 1)

    def test_covered_by_names_what_is_there(self):
        covered = 'test/unit/house/covered_by.txt'
        for line, what in [('upper/roof.cpp: test/contract/door_test.cpp', 'apps/house has no upper/roof.cpp'),
                           ('base/clock.cpp: test/contract/door_test.cpp', 'has a unit test of its own')]:
            self.expect({covered: HOUSE[covered] + line + '\n'}, covered, what, 4)
        self.expect({'apps/house/upper/roof.cpp': '',
                     covered: HOUSE[covered] + 'upper/roof.cpp: test/contract/roof_test.cpp\n'},
                    covered, 'no such file: test/contract/roof_test.cpp', 4)
        build = {'apps/house/upper/roof.cpp': '', 'test/house/meson.build': "test('roof', roof)\n"}
        self.expect(build | {covered: HOUSE[covered] + 'upper/roof.cpp: test/house/meson.build: tiles\n'},
                    covered, 'no such test: test/house/meson.build: tiles', 4)

    def test_tests_of_a_source(self):
        with tempfile.TemporaryDirectory() as holder:
            root = pathlib.Path(holder)
            for name, text in HOUSE.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            door, unit = 'test/contract/door_test.cpp', 'test/unit/house/base'
            for source, tests in [('upper/door.cpp', [door]), ('upper/key.hpp', [door]), ('main.cpp', [door]),
                                  ('base/clock.cpp', [f'{unit}/clock_test.cpp']),
                                  ('base/time.hpp', [f'{unit}/time/zone_test.cpp'])]:
                self.assertEqual(tree.tests_of(root, f'apps/house/{source}'), tests)


class Usage(unittest.TestCase):
    def test_without_a_tree_it_prints_its_usage(self):
        done = subprocess.run([sys.executable, tree.__file__], capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, '', tree.__doc__.strip() + '\n'))


class Exports(unittest.TestCase):
    MAP = '# comment\nA_1 {\n global:\n  one; /* why */\n  two;\n local: *;\n};\nA_2 { global: three; } A_1;\n'

    def test_names_of_all_global_parts(self):
        self.assertEqual(exports.blocks(self.MAP), {'A_1': ['one', 'two'], 'A_2': ['three']})

    def test_lists_are_sorted_and_versions_have_the_sonames_number(self):
        self.assertEqual(list(exports.disorder({'A_1': ['one', 'two'], 'EXPERIMENTAL': ['x'], 'B_EXPERIMENTAL': []}, 'liba.so.1')), [])
        self.assertEqual(list(exports.disorder({'A_0': ['one', 'two', 'three'], 'INTERNAL': ['a', 'b']}, 'liba.so.1')),
                         ['A_0: A_1 is expected, since the soname is liba.so.1', 'three: not in alphabetical order'])

    def test_every_difference_is_told(self):
        told = list(exports.differences({'one', 'two', 'x_*'}, {'two', 'four'}))
        self.assertEqual(len(told), 4, told)


if __name__ == '__main__':
    unittest.main()
