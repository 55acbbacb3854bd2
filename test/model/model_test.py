#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs spin on a model as it is, where it has to find nothing, and with each step of the protocol
left out, where it has to find a state in which a message is slept through.

    model_test.py MODEL C-COMPILER..."""
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SKIP = 77
DEPTH = 10000  # steps; a search that would go deeper says so, and fails


def run(command, folder):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=120, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}\n{done.stdout}")
    return done.stdout


def errors_of(model, define, compiler):
    """How many errors the verifier reports, and its report."""
    with tempfile.TemporaryDirectory() as folder:
        run(["spin", "-a", *([f"-D{define}"] if define else []), model], folder)
        run([*compiler, "-w", "-O1", "-DSAFETY", "-DVECTORSZ=1024", "-o", "pan", "pan.c"], folder)
        report = run(["./pan", f"-m{DEPTH}", "-w20"], folder)
    found = re.search(r"errors: (\d+)", report)
    if not found or "max search depth too small" in report:
        sys.exit(f"{define or 'as it is'}: no verdict\n{report}")
    return int(found.group(1)), report


def main():
    model, compiler = Path(sys.argv[1]).resolve(), sys.argv[2:]
    if not shutil.which("spin"):
        print("spin is missing: tools/setup")
        return SKIP
    left_out = re.findall(r"^ \*   -D(\w+)", model.read_text(encoding="utf-8"), re.MULTILINE)
    if not left_out:
        sys.exit(f"{model}: names no step to be left out")
    failed = 0
    for define in [None, *left_out]:
        errors, report = errors_of(model, define, compiler)
        good = (errors == 0) == (define is None)
        print(f"{'ok  ' if good else 'FAIL'} {define or 'as it is'}: {errors} errors")
        if not good:
            print(report)
            failed += 1
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
