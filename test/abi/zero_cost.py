#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares what the compiler made of pairs of functions, c_NAME and cpp_NAME: ntbmsg.hpp must cost
no instruction more than the C call that stands behind it.

  zero_cost.py OBJDUMP FILE LEAST    status 1: a pair differs, or there are fewer than LEAST pairs
"""

import re
import subprocess
import sys


def functions(listing):
    """{name: instructions}, with jumps inside a function relative to its start."""
    found = {}
    for name, body in re.findall(r'^[0-9a-f]+ <(\w+)>:\n((?:.+\n)*)', listing + '\n', re.MULTILINE):
        lines = []
        for line in body.splitlines():
            # An instruction, or the relocation that says what it refers to.
            text = re.sub(r'^\s*[0-9a-f]+:\s*', '', line).strip()
            if text and not re.match(r'(nop|data16|cs nop|xchg +%ax,%ax)', text):
                lines.append(re.sub(r'\b[0-9a-f]+ <\w+(\+0x[0-9a-f]+)?>', r'<own\1>', text))
        found[name] = lines
    return found


def main():
    objdump, file, least = sys.argv[1:]
    output = subprocess.run([objdump, '-dr', '--no-show-raw-insn', file], check=True, capture_output=True,
                            text=True).stdout
    found = functions(output)
    pairs = sorted(name.removeprefix('c_') for name in found if name.startswith('c_'))
    differing = 0
    for name in pairs:
        plain, wrapped = found[f'c_{name}'], found.get(f'cpp_{name}', [])
        same = plain == wrapped
        differing += not same
        print(f'{name}: {len(plain)} lines in C, {len(wrapped)} in C++' + ('' if same else ': they differ'))
        if not same:
            print(*plain, '--', *wrapped, sep='\n    ')
    if len(pairs) < int(least):
        print(f'{len(pairs)} pairs instead of {least}')
    sys.exit(1 if differing or len(pairs) < int(least) else 0)


if __name__ == '__main__':
    main()
