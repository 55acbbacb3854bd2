#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The count of tests: what passes, what is skipped, and that nothing that failed can hide.

  results_test.py FOLDER    the folder of results.py
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOOLS = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(TOOLS))
import results

CASES = '<testsuites><testsuite>{}</testsuite></testsuites>'
PASSED = '<testcase classname="C" name="passed" status="run"/>'
FAILED = '<testcase classname="C" name="failed" status="run"><failure/></testcase>'
SKIPPED = '<testcase classname="C" name="skipped" status="run"><skipped/></testcase>'
DISABLED = '<testcase classname="C" name="disabled" status="notrun"/>'


class Judge(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def judge(self, result, cases=None, protocol='gtest'):
        if cases is not None:
            (self.folder / 't.xml').write_text(cases)
        test = {'name': 't', 'protocol': protocol, 'workdir': None}
        *numbers, why = results.judge(test, result, self.folder)
        self.assertEqual(bool(numbers[1]), bool(why))
        return numbers

    def test_single_cases_count(self):
        self.assertEqual(self.judge('OK', CASES.format(PASSED + PASSED + SKIPPED + DISABLED)), [2, 0, 2])
        self.assertEqual(self.judge('FAIL', CASES.format(PASSED + FAILED)), [1, 1, 0])

    def test_death_after_good_cases_is_a_failure(self):
        for result in ('FAIL', 'TIMEOUT', 'ERROR', 'INTERRUPT', 'did not run'):
            self.assertEqual(self.judge(result, CASES.format(PASSED)), [1, 1, 0])

    def test_missing_and_broken_result_files(self):
        self.assertEqual(self.judge('OK'), [0, 1, 0])
        self.assertEqual(self.judge('OK', '<testsuites><tests'), [0, 1, 0])

    def test_program_without_cases(self):
        self.assertEqual(self.judge('OK', CASES.format('')), [0, 1, 0])

    def test_other_protocols_count_once(self):
        self.assertEqual(self.judge('OK', protocol='exitcode'), [1, 0, 0])
        self.assertEqual(self.judge('SKIP', protocol='exitcode'), [0, 0, 1])
        self.assertEqual(self.judge('TIMEOUT', protocol='exitcode'), [0, 1, 0])

    def test_log_names_the_test_behind_its_suites(self):
        (self.folder / 'meson-logs').mkdir()
        entry = json.dumps({'name': 'ntbmsg:contract+tsan / t', 'result': 'OK', 'duration': 1.6})
        (self.folder / 'meson-logs' / 'testlog.json').write_text(entry + '\n')
        self.assertEqual(results.logged(self.folder, 'result'), {'t': 'OK'})
        (self.folder / 'meson-info').mkdir()
        (self.folder / 'meson-info' / 'intro-tests.json').write_text(
            json.dumps([{'name': 't', 'suite': ['ntbmsg:contract', 'ntbmsg:tsan']}]))
        self.assertEqual(results.times(self.folder, ['t']), ['contract 2 s'])

    def test_what_failed_is_repeated_and_bounded(self):
        for name in ('meson-logs', 'meson-info'):
            (self.folder / name).mkdir()
        long = ''.join(f'line {i}\n' for i in range(1000))
        entries = [{'name': 'ntbmsg:unit / good', 'result': 'OK', 'stdout': 'all is well'},
                   {'name': 'ntbmsg:unit / bad', 'result': 'FAIL', 'stdout': long, 'stderr': 'the reason\n'},
                   {'name': 'ntbmsg:unit / silent', 'result': 'TIMEOUT'}]
        (self.folder / 'meson-logs' / 'testlog.json').write_text(''.join(json.dumps(entry) + '\n' for entry in entries))
        names = ['good', 'bad', 'silent', 'absent']
        (self.folder / 'meson-info' / 'intro-tests.json').write_text(
            json.dumps([{'name': name, 'protocol': 'exitcode'} for name in names]))
        said = '\n'.join(results.said(self.folder, names))
        for part in ('bad: FAIL', 'line 999\nthe reason', 'silent: TIMEOUT', 'absent: did not run'):
            self.assertIn(part, said)
        self.assertNotIn('all is well', said)
        self.assertNotIn('line 9\n', said)

    def test_suites(self):
        test = {'suite': ['ntbmsg:contract', 'ntbmsg:tsan']}
        self.assertTrue(results.in_suites(test, ''))
        self.assertTrue(results.in_suites(test, 'tsan'))
        self.assertFalse(results.in_suites(test, 'san'))
        self.assertFalse(results.in_suites(test, '!tsan'))
        self.assertTrue(results.in_suites(test, '!abi'))
        self.assertTrue(results.in_suites(test, 'tsan,!abi'))
        self.assertFalse(results.in_suites(test, 'contract,!tsan'))

    def test_names_and_targets_come_from_where_meson_wrote_them(self):
        (self.folder / 'meson-info').mkdir()

        def write(what, content):
            (self.folder / 'meson-info' / f'intro-{what}.json').write_text(json.dumps(content))
        write('tests', [{'name': 'link', 'suite': ['ntbmsg:unit'], 'depends': ['a']},
                        {'name': 'link_long', 'suite': ['ntbmsg:long'], 'depends': ['b']}])
        write('targets', [{'id': name, 'filename': [str(self.folder / name)]} for name in 'abc'])
        self.assertEqual(results.names(self.folder, '!long', 'lin'), ['link'])
        self.assertEqual(results.names(self.folder, '', 'link'), ['link', 'link_long'])
        self.assertEqual(results.targets(self.folder, ['link', 'link_long']), ['a', 'b'])

    def test_a_source_file_has_tests(self):
        (self.folder / 'meson-info').mkdir()
        part = {'sources': [str(self.folder / 'test/link_test.cpp')]}
        for what, content in [
                ('targets', [{'id': 'a', 'filename': ['link_test'], 'target_sources': [part, {}]}]),
                ('tests', [{'name': name, 'suite': [f'ntbmsg:{suite}'], 'cmd': cmd} for name, suite, cmd in [
                    ('link', 'unit', ['link_test']), ('link_other', 'long', ['link_test']),
                    ('peers', 'long', ['python3', str(self.folder / 'build/../test/peers_test.py')])]])]:
            (self.folder / 'meson-info' / f'intro-{what}.json').write_text(json.dumps(content))
        for file, tests in [('test/link_test.cpp', {'link'}), ('test/peers_test.py', {'peers'}), ('other.cpp', set())]:
            self.assertEqual(results.covering(self.folder, file, self.folder), tests)
        self.assertEqual(results.source_file('tools/results.py'), 'tools/results.py')
        self.assertIsNone(results.source_file('link'))


class Usage(unittest.TestCase):
    def test_what_it_does_not_know_it_answers_by_its_usage(self):
        for words in ([], ['count'], ['names', '.', ''], ['rename', '.']):
            done = subprocess.run([sys.executable, TOOLS / 'results.py', *words], capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, ''))
            self.assertEqual(done.stderr, results.__doc__.strip() + '\n')


if __name__ == '__main__':
    unittest.main()
