#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What meson knows of the tests of a build folder, and what became of them.

  results.py names FOLDER SUITES PART   the tests of all SUITES whose name contains PART, where
                                        'A,!B' are those of suite A but not of suite B; '' is all.
                                        PART may be a file: the tests that cover a source, or run a
                                        test's; the long ones only where there are no others
  results.py targets FOLDER NAME...     the files that ninja has to build for them
  results.py count FOLDER NAME...       'passed failed skipped' after `meson test`
  results.py said FOLDER NAME...        the ends of what those said that failed
  results.py times FOLDER NAME...       the seconds that tests took, added up by their first suite

A GoogleTest program counts with its single cases; anything else counts once. A program that
crashed, ran out of time, left no result file or ran no case counts as a failure, whatever its
cases said before.
"""

import collections
import json
import os
import pathlib
import sys
import xml.etree.ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.append(str(ROOT / 'test/abi'))
import tree

GOOD = {'OK', 'EXPECTEDFAIL', 'SKIP'}
# Of what a test said that failed; sanitizers' reports are longer, and meson has printed all of it.
LAST_LINES = 40


def introspect(folder, what):
    """What `meson introspect` would print, from where meson wrote it when it configured the folder."""
    return json.loads((folder / 'meson-info' / f'intro-{what}.json').read_text(encoding='utf-8'))


def tests(folder):
    return {test['name']: test for test in introspect(folder, 'tests')}


def in_suites(test, suites):
    """Whether TEST is in all of 'A,!B'."""
    its = {name.split(':')[-1] for name in test['suite']}
    return all((suite.lstrip('!') in its) != suite.startswith('!') for suite in filter(None, suites.split(',')))


def running(folder, file):
    """The tests whose program is made of FILE, or that have it on their command line."""
    made = {path for target in introspect(folder, 'targets')
            if any(str(file) in part.get('sources', []) for part in target['target_sources'])
            for path in target['filename']}
    return {test['name'] for test in introspect(folder, 'tests')
            if test['cmd'][0] in made or any(os.path.normpath(word) == str(file) for word in test['cmd'])}


def covering(folder, file, root=ROOT):
    """The names of the tests that cover a source of ours or run a test's."""
    found = set()
    for test in tree.tests_of(root, file) or [file]:
        path, _, name = test.partition(': ')
        found |= {name} if name else running(folder, root / path)
    brief = {test['name'] for test in introspect(folder, 'tests') if in_suites(test, '!long')}
    return found & brief or found


def source_file(part):
    """The path in the tree of a file that PART names, from here or from the tree's top; None if it is none."""
    for path in (pathlib.Path(part), ROOT / part):
        if '/' in part and path.is_file() and path.resolve().is_relative_to(ROOT):
            return path.resolve().relative_to(ROOT).as_posix()
    return None


def names(folder, suites, part):
    file = source_file(part)
    covers = covering(folder, file) if file else ()
    chosen = [test['name'] for test in introspect(folder, 'tests') if in_suites(test, suites) and (
        test['name'] in covers if file else part in test['name'])]
    if not chosen and (file or '/' in part):
        print(f'{folder.name}: no test of its own covers {file}' if file else f'there is no file {part}', file=sys.stderr)
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
    return {entry['name'].split(' / ')[-1]: entry.get(what) for entry in map(json.loads, lines)}


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


def said(folder, chosen):
    known, results = tests(folder), logged(folder, 'result')
    streams = [logged(folder, stream) for stream in ('stdout', 'stderr')]
    lines = []
    for name in chosen:
        result = results.get(name, 'did not run')
        if not judge(known[name], result, folder)[1]:
            continue
        lines.append(f'---- {folder.name}: {name}: {result}; the end of what it said:')
        for stream in streams:
            lines += (stream.get(name) or '').splitlines()[-LAST_LINES:]
    return lines


def main():
    commands = {'targets': targets, 'count': count, 'said': said, 'times': times}
    match sys.argv[1:]:
        case ['names', folder, suites, part]:
            lines = names(pathlib.Path(folder).resolve(), suites, part)
        case [command, folder, *chosen] if command in commands:
            lines = commands[command](pathlib.Path(folder).resolve(), chosen)
        case _:
            print(__doc__.strip(), file=sys.stderr)
            sys.exit(2)
    print('\n'.join(lines), end='\n' if lines else '')


if __name__ == '__main__':
    main()
