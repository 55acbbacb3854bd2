#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs spin on a model as it is, where it has to find nothing, and with each step of the protocol
left out, where it has to find a violation.

    model_test.py MODEL C-COMPILER...

A model names the steps in one of two ways. ' *   -DNAME' in its comment: a macro that leaves the step out, and a
verifier for each. '#define NAME 7 /* VARIANT, ...': the value of the variable WRONG in the environment, which the
model reads as it starts, and one verifier for each VARIANT, a macro that the comment lists as ' *   variant NAME'."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIP = 77
DEPTH = 10000  # steps; a search that would go deeper says so, and fails
SLOTS = 24  # of the hash table, a power of two: with fewer than states a third of the search goes into chains


def run(command, folder, environment=None):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def verifier(model, define, compiler, folder):
    """Builds the verifier of a model, a program that searches it. With -O2 the compiler takes longer than the search saves."""
    run(["spin", "-a", *([f"-D{define}"] if define else []), model], folder)
    run([*compiler, "-w", "-O1", "-DSAFETY", "-DVECTORSZ=1024", "-o", "pan", "pan.c"], folder)


def errors_of(folder, name, wrong="0"):
    """How many errors the verifier reports, and its report. The whole of the states is searched, or there is no verdict."""
    report = run(["./pan", f"-m{DEPTH}", f"-w{SLOTS}"], folder, dict(os.environ, WRONG=wrong))
    found = re.search(r"errors: (\d+)", report)
    if not found or "max search depth too small" in report:
        sys.exit(f"{name}: no verdict\n{report}")
    return int(found.group(1)), report


def judge(name, as_it_is, found):
    """Prints what was found, and returns whether it is what has to be."""
    errors, report = found
    good = (errors == 0) == as_it_is
    states = re.search(r"(\d+) states, stored", report)
    print(f"{'ok  ' if good else 'FAIL'} {name}: {errors} errors{f', {states.group(1)} states' if states else ''}", flush=True)
    if not good:
        print(report)
    return good


def search_each(model, left_out, compiler):
    """A verifier for each step that is left out."""
    good = True
    for define in [None, *left_out]:
        with tempfile.TemporaryDirectory() as folder:
            verifier(model, define, compiler, folder)
            good &= judge(define or "as it is", define is None, errors_of(folder, define or "as it is"))
    return good


def search_variants(model, variants, rules, compiler):
    """A verifier for each variant, told what to leave out."""
    good = True
    for variant in variants:
        with tempfile.TemporaryDirectory() as folder:
            verifier(model, variant, compiler, folder)
            name = f"{variant} as it is"
            good &= judge(name, True, errors_of(folder, name))
            for rule, number, finder in rules:
                if finder == variant:
                    good &= judge(f"{variant} {rule}", False, errors_of(folder, rule, number))
    return good


def main():
    model, compiler = Path(sys.argv[1]).resolve(), sys.argv[2:]
    if not shutil.which("spin"):
        print("spin is missing: tools/setup")
        return SKIP
    text = model.read_text(encoding="utf-8")
    left_out = re.findall(r"^ \*   -D(\w+)", text, re.MULTILINE)
    variants = re.findall(r"^ \*   variant (\w+)", text, re.MULTILINE)
    rules = re.findall(r"^#define (\w+) +(\d+) +/\* (\w+), ", text, re.MULTILINE)
    unknown = {finder for _, _, finder in rules} - set(variants)
    if unknown or len({number for _, number, _ in rules}) != len(rules) or not (left_out or rules):
        sys.exit(f"{model}: names no step to be left out, one number twice, or an unknown variant: {unknown}")
    good = search_each(model, left_out, compiler) if left_out else search_variants(model, variants, rules, compiler)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
