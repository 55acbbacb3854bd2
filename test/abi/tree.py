#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks what no compiler checks: who may include whom, the place of tests, licence lines, unfinished work.

  tree.py ROOT    prints 'file:line: what is wrong' for each finding; status 1 if there is one
"""

import os
import pathlib
import re
import sys

LICENCE = 'SPDX-License-Identifier: BSD-3-Clause'
# Formats that have no place for a comment, and the licence text itself.
WITHOUT_LICENCE_LINE = {'.csv', '.json', '.png', '.svg', '.bin'}
# What is read in a terminal first.
SHORT_LINES = {'README.md', 'CONTRIBUTING.md'}
NOT_OURS = {'.git', '.deps', 'demo-results', '__pycache__'}
UNFINISHED = re.compile(r'\b(TODO|FIXME|XXX)\b')
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]')
SOURCES = {'.c', '.cpp', '.h', '.hpp'}
# Words for which the field has better ones (report, return, deliver, close, refuse, prepare): in sources, where NOBODY is
# a user and queues drain, and where users read.
OWN_WORDS = re.compile(r'\b([Tt]old|[Tt]ells?|[Nn]obody|bury|buried|equip(s|ped)?|protests?)\b')
READERS_WORDS = re.compile(OWN_WORDS.pattern + r'|\bdrain(s|ed)?\b', re.IGNORECASE)

PUBLIC = {f'drivers/raw/plx_ntb/rte_pmd_plx_ntb{part}.h' for part in ('', '_memory', '_requester')} | {
    f'lib/ntbmsg/ntbmsg{part}.{kind}' for part in ('', '_endpoint', '_channel', '_rma') for kind in ('h', 'hpp')} | {
    'lib/ntbclient/ntbclient.h'}
# Calls for tests and for drivers on top, not installed. Of the programs, echo has a command that causes faults.
INTERNAL = {'drivers/raw/plx_ntb/rte_pmd_plx_ntb_driver.h', 'drivers/raw/plx_ntb/rte_pmd_plx_ntb_test.h', 'lib/ntbmsg/ntbmsg_test.h'}
# What other layers of this tree will stand on, not installed.
BORDERS = {'lib/verbs/ntbv.h'}
FACTS, HW, QUEUE = (f'drivers/raw/plx_ntb/{part}' for part in ('hw/facts', 'hw', 'queue'))
DRIVER = 'drivers/raw/plx_ntb'
NET = 'drivers/net/plx_ntb'
# What differs between the releases of DPDK.
COMPAT = 'lib/dpdk'
# What driver and library both use.
COMMON = 'lib/common'
# The sockets of unchanged programs: the protocol, and what is preloaded.
SOCKET = 'lib/socket'
# The engine of RDMA verbs.
VERBS = 'lib/verbs'
# Headers that stand below the folders of their area.
FACES = PUBLIC | INTERNAL | BORDERS | {'twin/twin.hpp'}
# Each layer, the most deeply nested first, with the layers that it may include beside itself.
# 'public' stands for the public headers of driver and library, 'internal' for those with calls for tests;
# 'dpdk' for any header of DPDK.
# From another layer to a driver there is one arrow, to its public headers (or the internal ones): these are the interface, as a
# rawdev's or ethdev's user includes it, and no include of a layer above leads to a file of the driver's folders.
LAYERS = {
    COMMON: set(),
    COMPAT: {'dpdk'},
    FACTS: set(),
    HW: {FACTS},
    QUEUE: {COMMON, 'dpdk'},
    DRIVER: {COMMON, COMPAT, FACTS, HW, QUEUE, 'public', 'internal', 'dpdk'},
    NET: {COMPAT, 'public', 'internal', 'dpdk'},
    'twin': {COMMON, FACTS},
    'lib/ntbmsg': {COMMON, COMPAT, 'public', 'internal', 'dpdk'},
    SOCKET: {COMMON, 'lib/ntbclient'},
    VERBS: {COMMON, SOCKET, 'public'},
    'lib/ntbclient': {COMMON, 'public'},
    'daemon': {COMPAT, 'lib/ntbclient', SOCKET, 'public', 'dpdk'},
    'apps/measure': {'dpdk'},
    'apps/echo': {'apps/measure', 'apps', 'public', 'internal', 'dpdk'},
    'apps/pktgen': {'apps/measure', 'apps', 'public', 'dpdk'},
    'apps': {'apps/measure', 'public', 'dpdk'},
    'examples': {'public', 'dpdk'},
    'bench/micro': {QUEUE, SOCKET, 'lib/verbs', 'daemon', 'apps', 'apps/measure', 'public', 'dpdk'},
    'bench': {'apps/measure', 'public', 'dpdk'},
}
# The folders of an area, lowest first: a file includes headers of its own folder and of those before
# it, and no chain of includes comes back to the stem (x.cpp and x.hpp) that it started from. Sources
# beside the folders, such as main.cpp, stand above all of them; public headers below.
FOLDERS = {
    DRIVER: ('hw/facts', 'hw', 'queue', 'sync', 'link', 'platform', 'window', 'dma', 'device', 'api', 'bus'),
    'lib/ntbmsg': ('base', 'wire', 'transport', 'rma', 'channel', 'dispatch', 'endpoint', 'api', 'observe'),
    SOCKET: ('direction', 'kernel', 'pair', 'record', 'connection', 'readiness', 'config', 'table', 'preload', 'run'),
    VERBS: ('port', 'wire', 'memory', 'completion', 'queue', 'engine', 'api', 'network', 'cm', 'shim', 'run'),
    'lib/ntbclient': ('ring', 'wire', 'client'),
    'daemon': ('config', 'broker', 'server', 'carrier', 'device'),
    'twin': ('memory', 'chip', 'dma', 'host', 'cable'),
    NET: (),
    'apps/common': (),
    'apps/net': (),
    'apps/echo': ('traffic', 'files', 'modes', 'options', 'round_trip', 'harness', 'prompt'),
    'apps/pktgen': ('point', 'traffic', 'transport', 'measure', 'options', 'session', 'results', 'roles'),
    'bench': ('kernel', 'mbufs', 'session', 'campaign', 'results', 'host', 'peers/pair', 'peers/links', 'peers/ours', 'peers/others', 'gate', 'micro'),
}
# Areas whose folders have a table in a page: | `folder/` | contents | folders it includes |.
PICTURED = {DRIVER: 'doc/architecture.md'}
# Areas whose unit tests mirror them: y/z.cpp is tested by y/z_test.cpp, or by y/z/*_test.cpp where one
# file would be too long. What other suites test is in the folder's covered_by.txt.
MIRRORED = {
    COMMON: 'test/unit/common',
    DRIVER: 'test/unit/driver',
    NET: 'test/unit/net',
    'lib/ntbmsg': 'test/unit/ntbmsg',
    SOCKET: 'test/unit/socket',
    VERBS: 'test/unit/verbs',
    'lib/ntbclient': 'test/unit/ntbclient',
    'daemon': 'test/unit/daemon',
    'twin': 'test/unit/twin',
    'apps/common': 'test/unit/apps/common',
    'apps/echo': 'test/unit/apps/echo',
    'apps/measure': 'test/unit/apps/measure',
    'apps/net': 'test/unit/apps/net',
    'apps/pktgen': 'test/unit/apps/pktgen',
    'bench': 'test/unit/bench',
}
# The one file of the driver that knows the twin. The rest stands on a port, platform/platform.hpp, which the PCI side of bus/
# and this file fill, each with a table of functions: so what would go up from a driver to its test double is an adapter, and it
# is DPDK code (EAL's threads, clock, memory, log), which the twin must not hold. Were it in the twin, filled in at link time or
# registered, the twin would include the driver's inside and DPDK, and the test double could no longer be built alone.
TWIN_USERS = re.compile(r'^drivers/raw/plx_ntb/bus/twin_platform[^/]*$')


def layer_of(path):
    return next((layer for layer in LAYERS if path.startswith(layer + '/')), None)


def files(root):
    """Names and paths of the tree's own files, without those in a folder that meson builds in, whatever its name."""
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders
                      if name not in NOT_OURS and not pathlib.Path(folder, name, 'meson-private').is_dir()]
        found += [pathlib.Path(folder, name) for name in names]
    for path in sorted(path for path in found if path.is_file()):
        yield path.relative_to(root).as_posix(), path


def is_dpdk(header):
    name = header.rsplit('/', 1)[-1]
    return name.startswith('rte_') or name in {
        'dev_driver.h', 'bus_driver.h', 'bus_pci_driver.h', 'bus_vdev_driver.h',
        'ethdev_driver.h', 'ethdev_pci.h', 'ethdev_vdev.h'}


def area_of(path, areas):
    """The most deeply nested area that a file lies in."""
    return max((area for area in areas if path.startswith(area + '/')), key=len, default=None)


def included_file(name, header, headers):
    """The file of ours behind an include, or None."""
    own = [path for path in headers if path == header or path.endswith('/' + header)]
    # A header of the same folder wins, as it does for the compiler; then one below the area's folder.
    for folder in (name.rsplit('/', 1)[0], area_of(name, FOLDERS) or layer_of(name)):
        if f'{folder}/{header}' in own:
            return f'{folder}/{header}'
    # Of equal names in other layers the compiler sees those that the build lets it see.
    seen = LAYERS.get(layer_of(name), set())
    return next((path for path in own if layer_of(path) in seen), own[0] if own else None)


def included_layer(name, header, headers):
    """The layer behind an include: one of ours, 'public', 'dpdk', or None for the system's."""
    path = included_file(name, header, headers)
    if path is None:
        return 'dpdk' if is_dpdk(header) else None
    return 'public' if path in PUBLIC else 'internal' if path in INTERNAL else layer_of(path) or 'test'


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


def folder_of(path, area):
    """The folder of an area that a file lies in: its index in FOLDERS, or None where there is none."""
    folders, inside = FOLDERS[area], path.removeprefix(area + '/')
    if '/' not in inside:
        return len(folders)
    folder = area_of(inside, folders)
    return None if folder is None else folders.index(folder)


def included_stems(name, lines, headers, area):
    """The files of the same area that a file includes, with the line numbers."""
    for number, line in lines:
        found = INCLUDE.match(line)
        path = included_file(name, found.group(1), headers) if found else None
        if path and path not in FACES and area_of(path, FOLDERS) == area:
            yield number, path


def check_folders(name, lines, headers):
    area = area_of(name, FOLDERS)
    if area is None or name in FACES:
        return
    folders, own = FOLDERS[area], folder_of(name, area)
    if own is None:
        yield 1, f'{area} has no such folder: its folders are {", ".join(folders)}'
        return
    for number, path in included_stems(name, lines, headers, area):
        folder = folder_of(path, area)
        if folder is not None and folder > own:
            where = folders[folder] if folder < len(folders) else 'the top'
            yield number, f'{folders[own]} must not include {path.removeprefix(area + "/")} of {where}, which is above it'


def stem(path):
    return path.rsplit('.', 1)[0]


def check_cycles(sources, headers):
    """One finding for each include that leads back to where it comes from, inside an area."""
    arrows = {}
    for name, lines in sources.items():
        area = area_of(name, FOLDERS)
        if area is None or name in FACES:
            continue
        for number, path in included_stems(name, lines, headers, area):
            if stem(path) != stem(name):
                arrows.setdefault(stem(name), {}).setdefault(stem(path), (name, number))
    done = set()

    def visit(node, way):
        for to, (name, number) in arrows.get(node, {}).items():
            if to in way:
                cycle = way[way.index(to):] + [to]
                yield name, number, 'a cycle of includes: ' + ' -> '.join(cycle)
            elif to not in done:
                yield from visit(to, way + [to])
        done.add(node)

    for node in sorted(arrows):
        if node not in done:
            yield from visit(node, [node])


def covered_by(root, folder):
    """The lines of covered_by.txt: source -> (line number, test); a test is a file, or 'a meson.build: its test'."""
    path = root / folder / 'covered_by.txt'
    if not path.is_file():
        return {}
    lines = enumerate(path.read_text(encoding='utf-8').splitlines(), 1)
    pairs = ((number, line.partition(':')) for number, line in lines if line and not line.startswith('#'))
    return {source.strip(): (number, test.strip()) for number, (source, _, test) in pairs}


def check_mirrors(root, names):
    for area, folder in MIRRORED.items():
        sources = {name.removeprefix(area + '/') for name in names
                   if name.startswith(area + '/') and pathlib.PurePath(name).suffix in SOURCES}
        stems = {stem(source) for source in sources}
        elsewhere = covered_by(root, folder)
        tested = set()
        for name in names:
            if not name.startswith(folder + '/') or not name.endswith('_test.cpp'):
                continue
            test = name.removeprefix(folder + '/').removesuffix('_test.cpp')
            own = next((source for source in (test, str(pathlib.PurePath(test).parent)) if source in stems), None)
            tested.add(own)
            if own is None:
                yield name, 1, f'no source in {area} has this test: {test}.cpp or .hpp is expected'
        for source in sorted(source for source in sources if source.endswith(('.c', '.cpp'))):
            if stem(source) not in tested and source not in elsewhere:
                yield (f'{area}/{source}', 1,
                       f'no unit test: {folder}/{stem(source)}_test.cpp or a line in {folder}/covered_by.txt is expected')
        for source, (number, test) in elsewhere.items():
            where = f'{folder}/covered_by.txt'
            if source not in sources:
                yield where, number, f'{area} has no {source}'
            elif stem(source) in tested:
                yield where, number, f'{source} has a unit test of its own'
            elif not (root / test.partition(':')[0]).is_file():
                yield where, number, f'no such file: {test}'
            elif ':' in test and f"test('{test.partition(': ')[2]}'" not in (root / test.partition(':')[0]).read_text():
                yield where, number, f'no such test: {test}'


def tests_of(root, name):
    """What tests a source file, as check_mirrors() has it: files, or 'a meson.build: its test'. A header
    without a test of its own has those of the sources beside it."""
    area = area_of(name, MIRRORED)
    if area is None:
        return []
    folder, source = MIRRORED[area], name.removeprefix(area + '/')
    mirror = root / folder / stem(source)
    own = [mirror.with_name(mirror.name + '_test.cpp'), *sorted(mirror.glob('*_test.cpp'))]
    own = [path.relative_to(root).as_posix() for path in own if path.is_file()]
    elsewhere = {stem(covered): test for covered, (_, test) in covered_by(root, folder).items()}
    if own or stem(source) in elsewhere:
        return own or [elsewhere[stem(source)]]
    beside = (path.relative_to(root).as_posix() for path in sorted((root / name).parent.glob('*.cpp')))
    return sorted({test for path in beside for test in tests_of(root, path)}) if source.endswith(('.h', '.hpp')) else []


def check_dpdk_names(name, lines):
    """Layers without DPDK do not speak of it either: a declaration by hand would hide the arrow."""
    own = layer_of(name)
    if own is None or 'dpdk' in LAYERS[own]:
        return
    for number, line in lines:
        code = line.split('//', 1)[0]
        if not code.lstrip().startswith('*') and re.search(r'\brte_\w+\s*\(', code):
            yield number, f'{own} must not use DPDK'


def check_dpdk_version(name, lines):
    """What differs between releases of DPDK is in one place."""
    if layer_of(name) in (None, COMPAT):
        return
    for number, line in lines:
        if 'RTE_VERSION' in line:
            yield number, f'only {COMPAT} asks for the release of DPDK'


def check_pictured(root, headers, sources):
    """A table of folders names each folder that one includes, and no other."""
    for area, where in PICTURED.items():
        folders = FOLDERS[area]
        drawn = {}
        for number, line in enumerate((root / where).read_text(encoding='utf-8').splitlines(), 1):
            row = re.match(r'\| `([a-z/]+)/` \|.*\|([^|]*)\|$', line)
            if row and row.group(1) in folders:
                drawn[row.group(1)] = number, set(filter(None, map(str.strip, row.group(2).split(','))))
        for index, folder in enumerate(folders):
            included = {folders[to] for name, lines in sources.items()
                        if area_of(name, FOLDERS) == area and name not in FACES and folder_of(name, area) == index
                        for _, path in included_stems(name, lines, headers, area)
                        if (to := folder_of(path, area)) is not None and to < index}
            number, named = drawn.get(folder, (1, set()))
            if named != ({'all above'} if 'all above' in named else included):
                yield where, number, f'{folder}/ includes {", ".join(sorted(included)) or "nothing"}'


def check_words(name, lines):
    if name in PUBLIC | INTERNAL | BORDERS | SHORT_LINES or name.startswith('doc/'):
        words = READERS_WORDS
    elif (layer_of(name) or name.startswith('tools/')) and not name.endswith('.conf'):
        words = OWN_WORDS
    else:
        return
    for number, line in lines:
        if found := words.search(line):
            yield number, f'a plainer word than "{found.group(0)}" is expected'


def check_text(name, lines):
    if name in ('LICENSE', 'VERSION') or pathlib.PurePath(name).suffix in WITHOUT_LICENCE_LINE:
        return
    # Line 2 where the first has to be an interpreter's.
    if not any(LICENCE in line for _, line in lines[:2]):
        yield 1, f'the licence line is missing: {LICENCE}'
    if name in SHORT_LINES:
        for number, line in lines:
            if len(line) > 120:
                yield number, f'longer than 120 characters: {len(line)}'
    if name.startswith('test/abi/'):
        return
    for number, line in lines:
        if UNFINISHED.search(line):
            yield number, 'unfinished work is an issue, not a comment'


def findings(root):
    everything = list(files(root))
    headers = [name for name, _ in everything if pathlib.PurePath(name).suffix in {'.h', '.hpp'}]
    sources = {}
    for name, path in everything:
        try:
            lines = list(enumerate(path.read_text(encoding='utf-8').splitlines(), 1))
        except UnicodeDecodeError:
            continue
        checks = [check_text(name, lines), check_words(name, lines)]
        if path.suffix in SOURCES:
            sources[name] = lines
            checks += [check_includes(name, lines, headers), check_folders(name, lines, headers),
                       check_dpdk_names(name, lines), check_dpdk_version(name, lines)]
        for check in checks:
            for number, what in check:
                yield f'{name}:{number}: {what}'
    for check in [check_cycles(sources, headers), check_mirrors(root, [name for name, _ in everything]),
                  check_pictured(root, headers, sources)]:
        for name, number, what in check:
            yield f'{name}:{number}: {what}'


def main():
    if len(sys.argv) != 2:
        print(__doc__.strip(), file=sys.stderr)
        sys.exit(2)
    found = list(findings(pathlib.Path(sys.argv[1])))
    print('\n'.join(found))
    sys.exit(1 if found else 0)


if __name__ == '__main__':
    main()
