#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what no compiler checks: who may include whom, licence lines, unfinished work.

  tree.py ROOT    prints 'file:line: what is wrong' for each finding; status 1 if there is one
"""

import pathlib
import re
import sys

LICENCE = 'SPDX-License-Identifier: BSD-3-Clause'
# Formats that have no place for a comment, and the licence text itself.
WITHOUT_LICENCE_LINE = {'.csv', '.json', '.png', '.svg', '.bin'}
NOT_OURS = re.compile(r'(^|/)(build[^/]*|\.git|\.deps|demo-results|__pycache__)(/|$)')
UNFINISHED = re.compile(r'\b(TODO|FIXME|XXX)\b')
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
SOURCES = {'.c', '.cpp', '.h', '.hpp'}

PUBLIC = {'drivers/raw/plx_ntb/rte_pmd_plx_ntb.h', 'lib/ntbmsg/ntbmsg.h', 'lib/ntbmsg/ntbmsg.hpp'}
FACTS, HW, QUEUE = (f'drivers/raw/plx_ntb/{part}' for part in ('hw/facts', 'hw', 'queue'))
DRIVER = 'drivers/raw/plx_ntb'
# Each layer, the most deeply nested first, with the layers that it may include beside itself.
# 'public' stands for the public headers of driver and library; 'dpdk' for any header of DPDK.
LAYERS = {
    FACTS: set(),
    HW: {FACTS},
    QUEUE: {'dpdk'},
    DRIVER: {FACTS, HW, QUEUE, 'public', 'dpdk'},
    'twin': {FACTS},
    'lib/ntbmsg': {'public', 'dpdk'},
    'apps/measure': set(),
    'apps': {'apps/measure', 'public', 'dpdk'},
    'examples': {'public', 'dpdk'},
    'bench/micro': {QUEUE, 'apps', 'apps/measure', 'dpdk'},
    'bench': {'apps/measure', 'public', 'dpdk'},
}
# The one part of the driver that knows the twin.
TWIN_USERS = re.compile(r'^drivers/raw/plx_ntb/pmd_vdev[^/]*$')


def layer_of(path):
    return next((layer for layer in LAYERS if path.startswith(layer + '/')), None)


def files(root):
    for path in sorted(root.rglob('*')):
        name = path.relative_to(root).as_posix()
        if path.is_file() and not NOT_OURS.search(name):
            yield name, path


def is_dpdk(header):
    name = header.rsplit('/', 1)[-1]
    return name.startswith('rte_') or name in {
        'dev_driver.h', 'bus_driver.h', 'bus_pci_driver.h', 'bus_vdev_driver.h',
        'ethdev_driver.h', 'ethdev_pci.h', 'ethdev_vdev.h'}


def included_layer(name, header, headers):
    """The layer behind an include: one of ours, 'public', 'dpdk', or None for the system's."""
    own = [path for path in headers if path == header or path.endswith('/' + header)]
    if not own:
        return 'dpdk' if is_dpdk(header) else None
    # A header of the same folder wins, as it does for the compiler.
    folder = name.rsplit('/', 1)[0]
    path = next((path for path in own if path == f'{folder}/{header}'), own[0])
    return 'public' if path in PUBLIC else layer_of(path) or 'test'


def check_includes(name, lines, headers):
    own = layer_of(name)
    if own is None:
        return
    allowed = LAYERS[own] | {own, None}
    if TWIN_USERS.match(name):
        allowed = allowed | {'twin'}
    for number, line in lines:
        found = INCLUDE.match(line)
        layer = included_layer(name, found.group(1), headers) if found else None
        if layer not in allowed:
            yield number, f'{own} must not include {found.group(1)} of {layer}'


def check_dpdk_names(name, lines):
    """Layers without DPDK do not speak of it either: a declaration by hand would hide the arrow."""
    own = layer_of(name)
    if own is None or 'dpdk' in LAYERS[own]:
        return
    for number, line in lines:
        code = line.split('//', 1)[0]
        if not code.lstrip().startswith('*') and re.search(r'\brte_\w+\s*\(', code):
            yield number, f'{own} must not use DPDK'


def check_text(name, lines):
    if name == 'LICENSE' or pathlib.PurePath(name).suffix in WITHOUT_LICENCE_LINE:
        return
    # Line 2 where the first has to be an interpreter's.
    if not any(LICENCE in line for _, line in lines[:2]):
        yield 1, f'the licence line is missing: {LICENCE}'
    if name.startswith('test/abi/'):
        return
    for number, line in lines:
        if UNFINISHED.search(line):
            yield number, 'unfinished work is an issue, not a comment'


def findings(root):
    everything = list(files(root))
    headers = [name for name, _ in everything if pathlib.PurePath(name).suffix in {'.h', '.hpp'}]
    for name, path in everything:
        try:
            lines = list(enumerate(path.read_text(encoding='utf-8').splitlines(), 1))
        except UnicodeDecodeError:
            continue
        checks = [check_text(name, lines)]
        if path.suffix in SOURCES:
            checks += [check_includes(name, lines, headers), check_dpdk_names(name, lines)]
        for check in checks:
            for number, what in check:
                yield f'{name}:{number}: {what}'


def main():
    found = list(findings(pathlib.Path(sys.argv[1])))
    print('\n'.join(found))
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
