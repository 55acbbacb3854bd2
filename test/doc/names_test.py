# SPDX-License-Identifier: BSD-3-Clause
"""Each function and file that a document names is one of the tree, and so is each file that a comment names.
Decisions are numbered without holes.

    names_test.py SOURCE_ROOT

A function is `name()`, `Class::name()` or `Class::name` in backticks; a file is a path or a name with
an ending of ours: in backticks in documents, as it stands in comments, where tools/NAME is one, too. What they
name of others is listed below.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
DOCUMENTS = ['README.md', 'CONTRIBUTING.md', *(str(p.relative_to(ROOT)) for p in ROOT.glob('doc/**/*.md')),
             *(str(p.relative_to(ROOT)) for p in ROOT.glob('doc/guides/**/*.rst'))]
CODE = ('.c', '.h', '.cpp', '.hpp', '.py', '.sh', '.map', '.build')
FOLDERS = ('apps', 'bench', 'daemon', 'drivers', 'examples', 'lib', 'test', 'tools', 'twin')
TICKED = re.compile(r'`{1,2}([^`\n]+)`{1,2}')
FUNCTION = re.compile(r'^(?:\w+(?:<[^>]*>)?::)*_?(\w+)\(\)$')
MEMBER = re.compile(r'^(?:\w+(?:<[^>]*>)?::)+(\w+)(?:\(\))?$')
FILE = re.compile(r'^[\w./-]+\.(?:cpp|hpp|py|sh|rst|md|map)$')
COMMENT = {'//': re.compile(r'(?:^|\s)(?://|/?\*)(.*)'), '#': re.compile(r'(?:^|\s)#(.*)')}
MARK = {'.c': '//', '.h': '//', '.cpp': '//', '.hpp': '//', '.py': '#', '.sh': '#', '.build': '#', '': '#'}
IN_COMMENT = re.compile(r'(?<![\w<./*$-])(?:[\w./-]+\.(?:cpp|hpp|py|sh|md|rst|map)\b(?![\w/(])|tools/[\w-]+)')
# Of DPDK, of the C library, of other projects.
FOREIGN = re.compile(r'^(?:rte_|rdma_|ibv_|ucp_|uct_|fi_|MPI_|[a-z]+$)')
# Results of a run, x/y.cpp, which stands for any file, and a program of DPDK.
MADE = {'report.md', 'dpdk-pmdinfo.py', 'x.cpp', 'x.hpp', *(f'{any}{end}' for any in 'yz' for end in ('.cpp', '_test.cpp'))}


def comments(path):
    """The comments of a source, with their line numbers."""
    comment = COMMENT[MARK[path.suffix]]
    for number, line in enumerate(path.read_text(errors='ignore').splitlines(), 1):
        found = comment.search(line)
        if found:
            yield number, found[1]


def misnumbered():
    """Decisions are numbered from 1 on without holes, and each title begins with the number of its file."""
    for number, path in enumerate(sorted((ROOT / 'doc/decisions').glob('*.md')), 1):
        if not path.name.startswith(f'{number:03}-'):
            yield f'doc/decisions/{path.name}: {number:03} is expected'
        if not re.search(rf'^# {path.name[:3]} ', path.read_text(), re.MULTILINE):
            yield f'doc/decisions/{path.name}: the title has another number'


def main():
    files = [p for folder in FOLDERS for p in (ROOT / folder).rglob('*') if p.is_file()]
    code = '\n'.join(p.read_text(errors='ignore') for p in files if p.suffix in CODE)
    words = set(re.findall(r'\w+', code))
    # Of the compiled languages alone: a script that looks for a word is not where it is declared.
    compiled = set(re.findall(r'\w+', '\n'.join(p.read_text(errors='ignore') for p in files if p.suffix in ('.c', '.h', '.cpp', '.hpp'))))
    paths = {str(p.relative_to(ROOT)) for p in files} | set(DOCUMENTS)
    findings = list(misnumbered())
    for name in DOCUMENTS:
        for number, line in enumerate((ROOT / name).read_text().splitlines(), 1):
            for ticked in TICKED.findall(line):
                function = FUNCTION.match(ticked)
                member = MEMBER.match(ticked)
                if member and member[1] not in compiled:
                    findings.append(f'{name}:{number}: no member {ticked}')
                elif function and function[1] not in words and not FOREIGN.match(function[1]):
                    # `rte_pmd_plx_ntb_memory_*` with `_find()` after it is read as one name.
                    if not any(word.endswith(function[1]) for word in words):
                        findings.append(f'{name}:{number}: no function {ticked}')
                elif FILE.match(ticked) and pathlib.PurePath(ticked).name not in MADE and \
                        not any(path == ticked or path.endswith('/' + ticked) for path in paths):
                    findings.append(f'{name}:{number}: no file {ticked}')
    for path in [p for p in files if p.suffix in MARK] + [*ROOT.glob('doc/**/*.py'), *ROOT.glob('doc/**/meson.build')]:
        for number, text in comments(path):
            for named in IN_COMMENT.findall(text):
                if pathlib.PurePath(named).name not in MADE and \
                        not any(file == named or file.endswith('/' + named) for file in paths):
                    findings.append(f'{path.relative_to(ROOT)}:{number}: no file {named}')
    for finding in findings:
        print(finding, file=sys.stderr)
    return 1 if findings or not words else 0


sys.exit(main())
