# SPDX-License-Identifier: BSD-3-Clause
"""Each statement of doc/semantics.md has a mark and names its tests, and these tests carry the mark.

    semantics_test.py SOURCE_ROOT

In the page: '* [send-1] A message arrives. `Suite.Case`'; above the test: '// Semantics: send-1, order-2'. So
neither a statement without a test, nor a test that was renamed, nor one that proves another statement goes
unseen: whoever changes either finds the other one by its mark.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
TEST = re.compile(r'^TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)')
CARRIED = re.compile(r'^// Semantics: (.+)$')
REFERENCE = re.compile(r'`(\w+\.\w+)`(?=(?:\s+`\w+\.\w+`)*\s*$)')
MARK = re.compile(r'^\[([a-z-]+-[0-9]+)\] ')


def carried_marks(text):
    """(test or None where there is none below, mark) of each mark in a source, and all its tests."""
    marks, tests, pending = [], [], []
    for line in text.splitlines():
        if found := CARRIED.match(line):
            pending += [mark.strip() for mark in found[1].split(',')]
        elif found := TEST.match(line):
            tests.append('.'.join(found.groups()))
            marks += [(tests[-1], mark) for mark in pending]
            pending = []
        elif not line.startswith('//'):
            marks += [(None, mark) for mark in pending]
            pending = []
    return marks, tests


def statements(text):
    """The items of all lists, each with its continuation lines."""
    for item in re.split(r'^\* ', text, flags=re.MULTILINE)[1:]:
        yield ' '.join(re.split(r'\n\s*\n|\n#', item)[0].split())


def compare(page, sources):
    """What is wrong, and how many statements there are."""
    wrong, stated, tests, carried = [], set(), set(), set()
    for source in sources:
        marks, names = carried_marks(source)
        carried.update(marks)
        tests.update(names)
    known = set()
    found = list(statements(page))
    for item in found:
        mark = MARK.match(item)
        names = REFERENCE.findall(item)
        if not mark or mark[1] in known:
            wrong.append(f'no mark of its own: {item}')
            continue
        known.add(mark[1])
        if not names:
            wrong.append(f'no test: {item}')
        stated.update((name, mark[1]) for name in names)
    wrong += [f'no such test: {name}' for name, _ in sorted(stated) if name not in tests]
    wrong += [f'{name} does not carry {mark}' for name, mark in sorted(stated - carried) if name in tests]
    wrong += [f'{name or "no test below"} carries {mark}, whose statement does not name it'
              for name, mark in sorted(carried - stated, key=str)]
    return wrong, len(found)


def check_itself():
    page = '* [send-1] One. `A.B`\n* [send-2] Two. `A.B` `A.C`\n'
    source = '// Semantics: send-1, send-2\n// Why.\nTEST_F(A, B)\n{\n// Semantics: send-2\nTEST(A, C)\n'
    assert compare(page, [source]) == ([], 2)
    for bad_page, bad_source in ((page.replace('[send-2] ', ''), source), (page.replace('send-2', 'send-1'), source),
                                 (page.replace(' `A.C`', ''), source), (page, source.replace('A, C', 'A, D')),
                                 (page, source.replace('send-1, ', '')), (page, source + '// Semantics: send-1\n\n')):
        assert compare(bad_page, [bad_source])[0], (bad_page, bad_source)


def main():
    check_itself()
    sources = [path.read_text(encoding='utf-8') for path in (ROOT / 'test').rglob('*_test.cpp')]
    wrong, count = compare((ROOT / 'doc/semantics.md').read_text(encoding='utf-8'), sources)
    print(*wrong, f'{count} statements', sep='\n')
    sys.exit(1 if wrong or count < 15 else 0)


if __name__ == '__main__':
    main()
