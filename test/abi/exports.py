#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what a shared library exports with its version map, the reviewed list.

  exports.py NM LIBRARY MAP    prints each difference; status 1 if there is one
"""

import re
import subprocess
import sys


def mapped(text):
    """The names of all 'global:' parts of a version map."""
    text = re.sub(r'/\*.*?\*/|#[^\n]*', '', text, flags=re.DOTALL)
    names = set()
    for body in re.findall(r'\{(.*?)\}', text, flags=re.DOTALL):
        scope = 'global'
        for label, name in re.findall(r'(global|local)\s*:|([^\s;:{}]+)\s*;', body):
            scope = label or scope
            if name and scope == 'global':
                names.add(name)
    return names


def exported(nm, library):
    output = subprocess.run([nm, '--dynamic', '--defined-only', library],
                            check=True, capture_output=True, text=True).stdout
    symbols = (line.split()[-2:] for line in output.splitlines())
    # 'A' are the version nodes themselves.
    return {name.split('@')[0] for kind, name in symbols if kind != 'A'}


def differences(listed, found):
    yield from (f'{name}: a list has no patterns' for name in sorted(listed) if '*' in name)
    yield from (f'{name}: exported, but not in the list' for name in sorted(found - listed))
    yield from (f'{name}: in the list, but not exported' for name in sorted(listed - found))


def main():
    nm, library, version_map = sys.argv[1:]
    with open(version_map, encoding='utf-8') as file:
        listed = mapped(file.read())
    found = list(differences(listed, exported(nm, library)))
    print('\n'.join(found))
    sys.exit(1 if found or not listed else 0)


if __name__ == '__main__':
    main()
