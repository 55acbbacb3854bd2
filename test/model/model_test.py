#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs spin on a model as it is, where it has to find nothing, and with each step of the protocol
left out, where it has to find a violation.

    model_test.py [--whole | --record] MODEL C-COMPILER...

What a search of a model as it is finds depends on the model alone, and is most of the time. So the verdict stands in searched.txt
with a digest of the model and of what decides how it is searched, and is taken from there; each search for a violation runs
always. A model that is not as recorded is searched whole, and fails until it was recorded. --whole searches all, whatever the
record, and compares the numbers of states (tools/test --long); --record writes the lines of a model anew.

A model names the steps in one of two ways. ' *   -DNAME' in its comment: a macro that leaves the step out, and a
verifier for each. '#define NAME 7 /* VARIANT, ...': the value of the variable WRONG in the environment, which the
model reads as it starts, and one verifier for each VARIANT, a macro that the comment lists as ' *   variant NAME'."""
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIP = 77
DEPTH = 10000  # steps; a search that would go deeper says so, and fails
OPTIONS = ["-O1", "-DSAFETY", "-DVECTORSZ=1024"]  # with -O2 the compiler takes longer than the search saves
SLOTS = 24  # of the hash table, a power of two: with fewer than states a third of the search goes into chains


def run(command, folder, environment=None):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120, check=False, env=environment)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def verifier(model, define, compiler, folder):
    """Builds the verifier of a model, a program that searches it; in two steps, as a compiler cache keeps objects only."""
    run(["spin", "-a", *([f"-D{define}"] if define else []), model], folder)
    run([*compiler, "-w", *OPTIONS, "-c", "pan.c"], folder)
    run([*compiler, "-o", "pan", "pan.o"], folder)


def errors_of(folder, name, wrong="0"):
    """How many errors the verifier reports, and its report. The whole of the states is searched, or there is no verdict."""
    report = run(["./pan", f"-m{DEPTH}", f"-w{SLOTS}"], folder, dict(os.environ, WRONG=wrong))
    found = re.search(r"errors: (\d+)", report)
    if not found or "max search depth too small" in report:
        sys.exit(f"{name}: no verdict\n{report}")
    return int(found.group(1)), report


def states_of(report):
    found = re.search(r"(\d+) states, stored", report)
    return int(found.group(1)) if found else None


def judge(name, as_it_is, found):
    """Prints what was found, and returns whether it is what has to be."""
    errors, report = found
    good = (errors == 0) == as_it_is
    states = states_of(report)
    print(f"{'ok  ' if good else 'FAIL'} {name}: {errors} errors{f', {states} states' if states else ''}", flush=True)
    if not good:
        print(report)
    return good


class Record:
    """The states that were searched of each variant of one model as it is, none with an error."""

    def __init__(self, model, way, file):
        decides = [*OPTIONS, str(DEPTH), model.read_text(encoding="utf-8")]
        self.digest = hashlib.sha256("\n".join(decides).encode()).hexdigest()[:16]
        self.name, self.way, self.file = model.name, way, file
        lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
        self.states = {variant: int(states) for name, variant, digest, states in lines if (name, digest) == (self.name, self.digest)}
        self.found = {}

    def known(self, variant):
        """Whether a variant need not be searched again."""
        if self.way or variant not in self.states:
            return False
        print(f"ok   {variant} as it is: recorded, {self.states[variant]} states", flush=True)
        return True

    def compare(self, variant, report):
        """Whether the record has what was found; a record that is made has it."""
        self.found[variant] = states_of(report)
        if self.way == "--record" or self.states.get(variant) == self.found[variant]:
            return True
        print(f"FAIL {variant} as it is: {self.file.name} has not its {self.found[variant]} states: model_test.py --record", flush=True)
        return False

    def write(self):
        kept = [line for line in self.file.read_text(encoding="utf-8").splitlines() if line.partition(" ")[0] != self.name]
        made = [f"{self.name} {variant} {self.digest} {states}" for variant, states in self.found.items()]
        self.file.write_text("\n".join(kept + made) + "\n", encoding="utf-8")


def search_as_it_is(variant, record, folder):
    if record.known(variant):
        return True
    name = f"{variant} as it is"
    found = errors_of(folder, name)
    return judge(name, True, found) and record.compare(variant, found[1])


def search_each(model, left_out, compiler, record):
    """A verifier for each step that is left out."""
    good = True
    for define in [None, *left_out]:
        with tempfile.TemporaryDirectory() as folder:
            verifier(model, define, compiler, folder)
            good &= judge(define, False, errors_of(folder, define)) if define else search_as_it_is("WHOLE", record, folder)
    return good


def search_variants(model, variants, rules, compiler, record):
    """A verifier for each variant, with what it leaves out."""
    good = True
    for variant in variants:
        with tempfile.TemporaryDirectory() as folder:
            verifier(model, variant, compiler, folder)
            good &= search_as_it_is(variant, record, folder)
            for rule, number, finder in rules:
                if finder == variant:
                    good &= judge(f"{variant} {rule}", False, errors_of(folder, rule, number))
    return good


def main():
    ways = [word for word in sys.argv[1:2] if word in ("--whole", "--record")]
    model, compiler = Path(sys.argv[1 + len(ways)]).resolve(), sys.argv[2 + len(ways):]
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
    record = Record(model, ways[0] if ways else "", model.parent / "searched.txt")
    good = search_each(model, left_out, compiler, record) if left_out else search_variants(model, variants, rules, compiler, record)
    if good and record.way == "--record":
        record.write()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
