#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Compares the rules of a protocol's page with those that its models leave out, both ways.

    rules_test.py PAGE MODEL..."""
import re
import sys
from pathlib import Path


def main():
    page = Path(sys.argv[1]).read_text(encoding="utf-8")
    said = {rule for bold in re.findall(r"\*\*([A-Z]\d(?:, [A-Z]\d)*)\*\*", page) for rule in bold.split(", ")}
    left_out = set()
    for model in sys.argv[2:]:
        left_out |= set(re.findall(r"^#define \w+ +\d+ +/\* \w+, +([A-Z]\d): ", Path(model).read_text(encoding="utf-8"), re.MULTILINE))
    for rule in sorted(said - left_out):
        print(f"{sys.argv[1]}: {rule} is in no model")
    for rule in sorted(left_out - said):
        print(f"{sys.argv[1]}: {rule} of the models is not on the page")
    print(f"{len(said & left_out)} rules")
    return 1 if said != left_out or not said else 0


if __name__ == "__main__":
    sys.exit(main())
