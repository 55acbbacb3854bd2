# SPDX-License-Identifier: BSD-3-Clause
"""Each statement of doc/semantics.md names tests, and each of these exists.

    semantics_test.py SOURCE_ROOT
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
TEST = re.compile(r'\bTEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\s*\)')
REFERENCE = re.compile(r'`(\w+\.\w+)`(?=(?:\s+`\w+\.\w+`)*\s*$)')


def known_tests():
    return {f'{suite}.{case}' for path in (ROOT / 'test').rglob('*_test.cpp')
            for suite, case in TEST.findall(path.read_text(encoding='utf-8'))}


def statements(text):
    """The items of all lists, each with its continuation lines."""
    for item in re.split(r'^\* ', text, flags=re.MULTILINE)[1:]:
        yield ' '.join(re.split(r'\n\s*\n|\n#', item)[0].split())


def main():
    tests = known_tests()
    found = list(statements((ROOT / 'doc/semantics.md').read_text(encoding='utf-8')))
    wrong = [f'no test: {item}' for item in found if not REFERENCE.findall(item)]
    wrong += [f'no such test: {name}' for item in found for name in REFERENCE.findall(item) if name not in tests]
    print(*wrong, f'{len(found)} statements, {len(tests)} tests', sep='\n')
    sys.exit(1 if wrong or len(found) < 15 else 0)


if __name__ == '__main__':
    main()
