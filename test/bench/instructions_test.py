# SPDX-License-Identifier: BSD-3-Clause
"""What the performance gate makes of counts.

    instructions_test.py FOLDER_OF_THE_GATE
"""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, sys.argv.pop())
import instructions  # noqa: E402

OUTPUT = """# compiler g++ 12.2.0
# dpdk DPDK 22.11.11
# variant plain/avx2
# build buildtype release
nothing 256 256
send.64x32 256 8192
recv.empty 256 256
"""
MACHINE = {'libc': 'glibc 2.36'}
NOW = {**MACHINE, 'compiler': 'g++ 12.2.0', 'dpdk': 'DPDK 22.11.11', 'variant': 'plain/avx2', 'build': 'buildtype release',
       'instructions': {'send.64x32': 140.0, 'recv.empty': 151.0}}


def verdicts(**changed):
    now = dict(NOW, instructions=dict(NOW['instructions'], **changed))
    return {name: verdict for name, _, _, verdict in instructions.judged(now, NOW)}


class Gate(unittest.TestCase):
    def test_counts_a_message(self):
        facts = instructions.measured(OUTPUT, {'nothing': 256 * 14, 'send.64x32': 8192 * 140 + 256 * 14,
                                               'recv.empty': 256 * (151 + 14)})
        self.assertEqual(facts | MACHINE, NOW)

    def test_a_case_without_counts_is_an_error(self):
        for totals in ({}, {'send.64x32': 1}, {'nothing': 1, 'send.64x32': 1, 'recv.empty': 0},
                       {'nothing': 1, 'send.64x32': 1, 'recv.empty': 1, 'more': 1},
                       {'send.64x32': 1, 'recv.empty': 1}):
            with self.assertRaises(RuntimeError):
                instructions.measured(OUTPUT, totals)
        with self.assertRaises(RuntimeError):
            instructions.measured(OUTPUT.replace('nothing 256 256\n', ''), {'send.64x32': 1, 'recv.empty': 1})

    def test_reads_what_callgrind_writes(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder)
            (out / 'counts.1').write_text('desc: Trigger: Client Request: send.8x1\nevents: Ir\ntotals: 80384\n')
            (out / 'counts').write_text('desc: Trigger: Program termination\ntotals: 0\n')
            self.assertEqual(instructions.counts(out), {'send.8x1': 80384})

    def test_growth_beyond_three_percent_fails(self):
        self.assertEqual(verdicts(**{'send.64x32': 144.1})['send.64x32'], 'same')
        self.assertEqual(verdicts(**{'send.64x32': 144.3})['send.64x32'], 'grew')
        self.assertEqual(verdicts(**{'send.64x32': 130.0})['send.64x32'], 'fell')
        self.assertEqual(verdicts(more=1.0)['more'], 'new')
        self.assertEqual(instructions.report([('a', 100, 104, 'grew')]), 1)
        self.assertEqual(instructions.report([('a', 100, 90, 'fell'), ('b', None, 1, 'new')]), 0)

    def test_a_case_that_is_gone_fails(self):
        rows = list(instructions.judged(dict(NOW, instructions={'recv.empty': 151.0}), NOW))
        self.assertEqual(instructions.report(rows), 1)

    def test_nothing_is_judged_on_another_ground(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            newer = dict(NOW, compiler='g++ 14.2.0', instructions={'recv.empty': 150.0})
            for one in (NOW, newer):
                instructions.file_of(one, folder).write_text(json.dumps(one))
            self.assertEqual(len(list(folder.iterdir())), 2)
            for one in (NOW, newer):
                self.assertEqual(instructions.comparable(one, folder), one)
            for fact in ('compiler', 'dpdk', 'libc', 'variant', 'build'):
                with self.assertRaisesRegex(instructions.Unusable, 'no baseline of .*other.*; there is one of'):
                    instructions.comparable(dict(NOW, **{fact: 'other'}), folder)

    def test_the_maker_of_the_processor_does_not_matter(self):
        self.assertNotIn('cpu', instructions.machine())


unittest.main()
