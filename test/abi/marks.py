#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the marks of declarations with the blocks of the version map.

  marks.py MAP INSTALLED... -- INSIDE...

Functions of the block EXPERIMENTAL are marked __rte_experimental, and no others are. Those of the block INTERNAL are
marked __rte_internal, and no installed header declares one. Prints each difference; status 1 if there is one.
"""

import pathlib
import re
import sys

MARKS = {'EXPERIMENTAL': '__rte_experimental', 'INTERNAL': '__rte_internal'}


def blocks(text):
    """block -> its functions, of a version map."""
    text = re.sub(r'#[^\n]*', '', text)
    return {name: set(re.findall(r'(\w+)\s*;', body)) for name, body in re.findall(r'(\S+) \{(.*?)\};', text, re.DOTALL)}


def declared(text):
    """function -> the marks of its declaration."""
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.DOTALL)
    text = re.sub(r'^\s*#.*(?:\\\n.*)*', '', text, flags=re.MULTILINE)
    found = {}
    for statement in re.split(r'[;{}]', text):
        function = re.match(r'[^=()]*?\b(\w+)\s*\(', statement)
        if function:
            found[function.group(1)] = {mark for mark in MARKS.values() if mark in statement}
    return found


def differences(listed, installed, inside):
    """LISTED as blocks() has it; INSTALLED and INSIDE as declared() has them."""
    every = {**installed, **inside}
    block_of = {name: block for block, names in listed.items() for name in names}
    for name, block in sorted(block_of.items()):
        wanted = {MARKS[block]} if block in MARKS else set()
        if name not in every:
            yield f'{name}: in the map, but no header declares it'
        elif every[name] != wanted:
            yield f'{name}: in the block {block}, marked {" ".join(sorted(every[name])) or "not at all"}'
        if block == 'INTERNAL' and name in installed:
            yield f'{name}: internal, but an installed header declares it'


def main():
    # What C++ has on top calls them, and declares none.
    version_map, *headers = (word for word in sys.argv[1:] if not word.endswith('.hpp'))
    border = headers.index('--')
    installed, inside = ({name: marks for header in some for name, marks in
                          declared(pathlib.Path(header).read_text(encoding='ascii')).items()}
                         for some in (headers[:border], headers[border + 1:]))
    listed = blocks(pathlib.Path(version_map).read_text(encoding='ascii'))
    found = list(differences(listed, installed, inside))
    print('\n'.join(found))
    sys.exit(1 if found or not all(listed.get(block) for block in MARKS) else 0)


if __name__ == '__main__':
    main()
