#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what a shared library exports with its version map, the reviewed list, and looks at the map: its lists
are sorted, and what is promised has a version with the number of the soname, as in DPDK's libraries.

  exports.py NM LIBRARY MAP    prints each difference; status 1 if there is one
"""

import re
import subprocess
import sys

from elftools.elf.elffile import ELFFile


def blocks(text):
    """block -> the names of its 'global:' part in their order, of a version map."""
    text = re.sub(r'/\*.*?\*/|#[^\n]*', '', text, flags=re.DOTALL)
    found = {}
    for block, body in re.findall(r'(\w+)\s*\{(.*?)\}', text, flags=re.DOTALL):
        scope, names = 'global', found.setdefault(block, [])
        for label, name in re.findall(r'(global|local)\s*:|([^\s;:{}]+)\s*;', body):
            scope = label or scope
            if name and scope == 'global':
                names.append(name)
    return found


def disorder(found, soname):
    """What is wrong with the blocks of a map themselves."""
    number = soname.rsplit('.', 1)[-1]
    for block, names in found.items():
        if not re.search(rf'(EXPERIMENTAL|INTERNAL|_{number})$', block):
            yield f'{block}: {block.rsplit("_", 1)[0]}_{number} is expected, since the soname is {soname}'
        yield from (f'{name}: not in alphabetical order' for before, name in zip(names, names[1:]) if name < before)


def soname_of(library):
    with open(library, 'rb') as file:
        return next(tag.soname for tag in ELFFile(file).get_section_by_name('.dynamic').iter_tags('DT_SONAME'))


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
        found = blocks(file.read())
    listed = set().union(*found.values())
    found = [*disorder(found, soname_of(library)), *differences(listed, exported(nm, library))]
    print('\n'.join(found))
    sys.exit(1 if found or not listed else 0)


if __name__ == '__main__':
    main()
