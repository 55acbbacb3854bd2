#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Each program of the benchmark says by --version what it is, and nothing else.

  versions_test.py VERSION PROGRAM...
"""

import pathlib
import subprocess
import sys
import unittest

VERSION, *PROGRAMS = sys.argv[1:]


class Versions(unittest.TestCase):
    def test_each_program_has_one(self):
        self.assertTrue(PROGRAMS)
        for program in PROGRAMS:
            with self.subTest(program=program):
                done = subprocess.run([program, '--version'], capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ''))
                self.assertRegex(done.stdout, rf'^{pathlib.Path(program).name} {VERSION}(, DPDK .*)?\n$')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])
