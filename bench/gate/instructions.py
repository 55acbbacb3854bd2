#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counts the instructions of the hot calls under valgrind's callgrind and compares them with the
stored baseline. Counts do not depend on the load of the machine, nor on the maker of its processor:
valgrind shows every program the same simulated one, by its instruction set (AVX2 where the processor
has it), and cache hints are off. They do depend on the compiler, on DPDK and on the C library: each
baseline is good for those it was taken with, and where there is none of them nothing is judged.

  instructions.py PROGRAM BASELINES             compares; status 1: something grew by more than 3 %
  instructions.py PROGRAM BASELINES --update    writes the baseline; say in the commit why
  BASELINES: the folder in which each baseline is a file
  status 77: there is nothing to compare with here, and why
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# A case may grow by so much: less than a cache line fetched in vain, more than a re-ordered branch.
GROWTH = 0.03
SKIPPED = 77
TIME_LIMIT = 300
NOTHING = 'nothing'
FACTS = ('compiler', 'dpdk', 'libc', 'variant', 'build')


class Unusable(Exception):
    """Why nothing can be judged."""


def counts(folder):
    """{case: instructions} of callgrind's files, one for each time that counts were written."""
    found = {}
    for file in folder.iterdir():
        text = file.read_text(errors='replace')
        case = re.search(r'^desc: Trigger: Client Request: (\S+)$', text, re.MULTILINE)
        total = re.search(r'^totals: (\d+)$', text, re.MULTILINE)
        if case and total:
            found[case.group(1)] = int(total.group(1))
    return found


def measured(output, totals):
    """What the program said of itself, and instructions a message of each case, without those that begin and end
    the count of a call: the case NOTHING has only them."""
    facts = dict(re.findall(r'^# (\S+) (.*)$', output, re.MULTILINE))
    cases = {name: (int(calls), int(messages))
             for name, calls, messages in re.findall(r'^(\S+) (\d+) (\d+)$', output, re.MULTILINE)}
    if NOTHING not in cases or set(cases) != set(totals) or not all(totals.values()):
        raise RuntimeError(f'cases {sorted(cases)}, but counts of {sorted(totals)}')
    of_a_call = totals[NOTHING] / cases.pop(NOTHING)[0]
    facts['instructions'] = {name: round((totals[name] - calls * of_a_call) / messages, 2)
                             for name, (calls, messages) in sorted(cases.items())}
    return facts


def machine():
    """What else counts depend on."""
    return {'libc': os.confstr('CS_GNU_LIBC_VERSION')}


def measure(program):
    if shutil.which('valgrind') is None:
        raise Unusable('valgrind is not installed (tools/setup)')
    with tempfile.TemporaryDirectory(prefix='ntbmsg-gate-') as folder:
        out = pathlib.Path(folder)
        done = subprocess.run(['valgrind', '-q', '--tool=callgrind', '--collect-atstart=no',
                               f'--callgrind-out-file={out / "counts"}', program], cwd=folder,
                              capture_output=True, text=True, timeout=TIME_LIMIT, check=False)
        if done.returncode == SKIPPED:
            raise Unusable(done.stdout.strip())
        if done.returncode != 0:
            raise RuntimeError(f'{program}: status {done.returncode}\n{done.stdout}{done.stderr}')
        return measured(done.stdout, counts(out)) | machine()


def of(facts):
    """What counts depend on, in one line: what the program says of it, and the machine."""
    return ', '.join(str(facts[fact]) for fact in FACTS if fact in facts)


def file_of(now, folder):
    """Where the baseline of this ground is kept: what counts depend on is its name."""
    return folder / (re.sub(r'[^a-z0-9.+]+', '-', of(now).lower()) + '.json')


def comparable(now, folder):
    """@return the baseline of the same ground; counts of another one say nothing about the code"""
    file = file_of(now, folder)
    if file.exists():
        return json.loads(file.read_text())
    there = sorted(one.stem for one in folder.glob('*.json'))
    raise Unusable('; '.join([f'no baseline of {of(now)}', *(f'there is one of {one}' for one in there)]))


def judged(now, baseline):
    """[(case, instructions before and now, verdict)]; verdicts 'grew' and 'gone' are failures."""
    old, new = baseline['instructions'], now['instructions']
    for name in sorted(old.keys() | new.keys()):
        if name not in new:
            yield name, old[name], None, 'gone'
        elif name not in old:
            yield name, None, new[name], 'new'
        else:
            change = new[name] / old[name] - 1
            verdict = 'grew' if change > GROWTH else 'fell' if change < -GROWTH else 'same'
            yield name, old[name], new[name], verdict


def report(rows):
    """Prints them. @return the exit status"""
    for name, before, after, verdict in rows:
        change = f'{(after / before - 1) * 100:+7.2f} %' if before and after else '         '
        print(f'{name:24} {before or "-":>10} {after or "-":>10} {change}  {verdict}')
    failed = [name for name, _, _, verdict in rows if verdict in ('grew', 'gone')]
    if failed:
        print(f'# grew by more than {GROWTH:.0%} or gone: {" ".join(failed)}; '
              'if it is meant: tools/bench --check --update')
    elif any(verdict != 'same' for _, _, _, verdict in rows):
        print('# better or new: keep it with tools/bench --check --update')
    return 1 if failed else 0


def main():
    program, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    try:
        now = measure(program)
        if sys.argv[3:] == ['--update']:
            file = file_of(now, folder)
            file.write_text(json.dumps(now, indent=1, sort_keys=True) + '\n')
            print(f'# {file}: {len(now["instructions"])} cases')
            return 0
        baseline = comparable(now, folder)
    except Unusable as why:
        print(f'# skipped: {why}')
        return SKIPPED
    print('# instructions a message: case, baseline, now')
    return report(list(judged(now, baseline)))


if __name__ == '__main__':
    sys.exit(main())
