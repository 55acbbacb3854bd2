#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What meson knows of the tests of a build folder, and what became of them.

  results.py names FOLDER SUITES PART   the tests of all SUITES whose name contains PART, where
                                        'A,!B' are those of suite A but not of suite B; '' is all
  results.py targets FOLDER NAME...     the files that ninja has to build for them
  results.py count FOLDER NAME...       'passed failed skipped' after `meson test`
  results.py times FOLDER NAME...       the seconds that tests took, added up by their first suite

A GoogleTest program counts with its single cases; anything else counts once. A program that
crashed, ran out of time, left no result file or ran no case counts as a failure, whatever its
cases said before.
"""

import collections
import json
import pathlib
import sys
import xml.etree.ElementTree as xml

GOOD = {'OK', 'EXPECTEDFAIL', 'SKIP'}


def introspect(folder, what):
    """What `meson introspect` would print, from where meson wrote it when it configured the folder."""
    return json.loads((folder / 'meson-info' / f'intro-{what}.json').read_text(encoding='utf-8'))


def tests(folder):
    return {test['name']: test for test in introspect(folder, 'tests')}


def in_suites(test, suites):
    """Whether TEST is in all of 'A,!B'."""
    its = {name.split(':')[-1] for name in test['suite']}
    return all((suite.lstrip('!') in its) != suite.startswith('!') for suite in filter(None, suites.split(',')))


def names(folder, suites, part):
    chosen = [test['name'] for test in introspect(folder, 'tests')
              if in_suites(test, suites) and part in test['name']]
    twice = {name for name in chosen if chosen.count(name) > 1}
    if twice:
        sys.exit('two tests share a name, and would share their result file: ' + ', '.join(twice))
    return chosen


def targets(folder, chosen):
    files = {target['id']: target['filename'] for target in introspect(folder, 'targets')}
    known = tests(folder)
    wanted = {identity for name in chosen for identity in known[name]['depends']}
    return sorted({str(pathlib.Path(file).relative_to(folder))
                   for identity in wanted for file in files[identity]})


def logged(folder, what):
    log = folder / 'meson-logs' / 'testlog.json'
    lines = log.read_text().splitlines() if log.exists() else []
    # Logged as 'project:suites / name'.
    return {entry['name'].split(' / ')[-1]: entry[what] for entry in map(json.loads, lines)}


def times(folder, chosen):
    known, took = tests(folder), logged(folder, 'duration')
    total = collections.Counter()
    for name in chosen:
        total[known[name]['suite'][0].split(':')[-1]] += took.get(name, 0)
    return [', '.join(f'{suite} {seconds:.0f} s' for suite, seconds in total.most_common())]


def gtest_cases(file):
    """[passed, failed, skipped, names of the failed] of a result file; None if it is unusable."""
    try:
        cases = list(xml.parse(file).iter('testcase'))
    except (OSError, xml.ParseError):
        return None
    failed = [case for case in cases if case.find('failure') is not None]
    skipped = [case for case in cases if case not in failed and (
        case.find('skipped') is not None or case.get('status') == 'notrun')]
    return (len(cases) - len(failed) - len(skipped), len(failed), len(skipped),
            [f"{case.get('classname')}.{case.get('name')}" for case in failed])


def judge(test, result, folder):
    """(passed, failed, skipped, why) of one test."""
    good = result in GOOD
    if test['protocol'] != 'gtest':
        if result == 'SKIP':
            return 0, 0, 1, []
        return int(good), int(not good), 0, [] if good else [result]
    cases = gtest_cases(pathlib.Path(test['workdir'] or folder) / (test['name'] + '.xml'))
    if cases is None:
        return 0, 1, 0, [result if not good else 'no result file']
    passed, failed, skipped, why = cases
    if not good and not failed:
        failed, why = 1, [result]
    if passed + failed + skipped == 0:
        failed, why = 1, ['ran no case']
    return passed, failed, skipped, why


def count(folder, chosen):
    known, results = tests(folder), logged(folder, 'result')
    total = [0, 0, 0]
    for name in chosen:
        *numbers, why = judge(known[name], results.get(name, 'did not run'), folder)
        total = [old + new for old, new in zip(total, numbers)]
        for reason in why:
            print(f'FAILED: {folder.name}: {name}: {reason}', file=sys.stderr)
    return [' '.join(map(str, total))]


def main():
    command, folder = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    if command == 'names':
        lines = names(folder, sys.argv[3], sys.argv[4])
    else:
        lines = {'targets': targets, 'count': count, 'times': times}[command](folder, sys.argv[3:])
    print('\n'.join(lines), end='\n' if lines else '')


if __name__ == '__main__':
    main()
