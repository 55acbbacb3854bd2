#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What abi.py takes for a break of a header's promises, and what not.

  abi_test.py COMPILER...
"""

import pathlib
import sys
import tempfile
import unittest

import abi

COMPILER = sys.argv[1:]
HEADER = """
#include <stddef.h>
#include <stdint.h>
#define SAMPLE_VERSION_MINOR 3
#define SAMPLE_MOST 64
struct sample_options { size_t size; uint32_t count; uint8_t bytes[8]; };
enum sample_state { SAMPLE_OPEN = 1, SAMPLE_SHUT = 2 };
struct sample_pair { uint32_t first; uint32_t second; };
typedef int (*sample_fn)(const struct sample_options *options, void *arg);
int sample_open(const char *name, const struct sample_options *options, struct sample **out);
void sample_each(sample_fn fn, void *arg);
"""
TRIAL = """
struct sample_try_result { int value; };
int sample_try_it(struct sample_try_result *result);
"""
MAP = "SAMPLE_0 { global: sample_open; sample_each; local: *; };"


def description(header=HEADER, version_map=MAP):
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, name) for name in ('sample.h', 'version.map')]
        files[0].write_text('struct sample;' + header)
        files[1].write_text(version_map)
        return abi.describe(*files, COMPILER)


class Description(unittest.TestCase):
    def breaks(self, old, new, version_map=MAP):
        self.assertIn(old, HEADER)
        return abi.broken(description(), set(description(HEADER.replace(old, new), version_map)))

    def test_it_names_what_callers_rely_on(self):
        lines = description()
        for line in ['function sample_each@SAMPLE_0: void (sample_fn, void *)',
                     'function sample_open@SAMPLE_0: int (const char *, const struct sample_options *, struct sample * *)',
                     'struct sample_options: 24 bytes', 'struct sample_options @8: uint32_t count',
                     'struct sample_options @12: uint8_t[8] bytes', 'enum sample_state SAMPLE_SHUT = 2',
                     'macro SAMPLE_MOST = 64', 'typedef sample_fn: int (const struct sample_options *, void *)']:
            self.assertIn(line, lines)

    def test_the_same_breaks_nothing(self):
        self.assertEqual(abi.broken(description(), set(description())), [])

    def test_additions_break_nothing(self):
        self.assertEqual(self.breaks('SAMPLE_SHUT = 2', 'SAMPLE_SHUT = 2, SAMPLE_GONE = 3'), [])
        self.assertEqual(self.breaks('void sample_each', 'int sample_more(void);\nvoid sample_each',
                                     MAP.replace('sample_each', 'sample_more; sample_each')), [])
        self.assertEqual(self.breaks('MINOR 3', 'MINOR 4'), [])

    def test_a_struct_that_says_its_size_may_grow(self):
        self.assertEqual(self.breaks('uint8_t bytes[8];', 'uint8_t bytes[8]; uint64_t more;'), [])

    def test_what_is_experimental_is_not_promised(self):
        lines = description(HEADER + TRIAL, MAP + " EXPERIMENTAL { global: sample_try_it; };")
        self.assertEqual([line for line in lines if 'sample_try' in line], [])
        self.assertEqual(lines, description())

    def test_the_order_of_declarations_does_not_matter(self):
        first, second = 'void sample_each(sample_fn fn, void *arg);\n', '#define SAMPLE_MOST 64\n'
        moved = HEADER.replace(first, '').replace(second, '') + first + second
        self.assertEqual(abi.broken(description(), set(description(moved))), [])

    def test_breaks(self):
        for old, new, word in [('uint32_t count;', 'uint64_t count;', 'count'),
                               ('uint8_t bytes[8];', 'uint8_t bytes[16];', 'uint8_t[8]'),
                               ('uint32_t second;', 'uint32_t second; uint32_t third;', '8 bytes'),
                               ('size_t size; uint32_t count;', 'uint32_t count; size_t size;', 'size'),
                               ('SAMPLE_SHUT = 2', 'SAMPLE_SHUT = 5', 'SAMPLE_SHUT'),
                               ('const char *name, ', '', 'sample_open'),
                               ('void sample_each', 'int sample_each', 'sample_each'),
                               ('void *arg);\nint', 'int arg);\nint', 'sample_fn'),
                               ('MOST 64', 'MOST 32', 'SAMPLE_MOST'), ('MINOR 3', 'MINOR 2', 'MINOR')]:
            with self.subTest(new):
                gone = self.breaks(old, new)
                self.assertTrue(any(word in line for line in gone), gone)

    def test_a_symbol_that_is_exported_no_more(self):
        gone = abi.broken(description(), set(description(version_map=MAP.replace('sample_each;', ''))))
        self.assertEqual(gone, ['function sample_each@SAMPLE_0: void (sample_fn, void *)'])

    def test_a_new_soname_allows_breaks(self):
        with tempfile.TemporaryDirectory() as folder:
            stored = pathlib.Path(folder, 'sample.abi')
            stored.write_text('soname libsample.so.0\nmacro A = 1\n')
            self.assertEqual(abi.check(stored, {'soname libsample.so.0', 'macro A = 1', 'macro B = 1'}), 0)
            self.assertEqual(abi.check(stored, {'soname libsample.so.0'}), 1)
            self.assertEqual(abi.check(stored, {'soname libsample.so.1'}), 0)


unittest.main(argv=sys.argv[:1])
