#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The schema of result files takes what our programs write, and nothing else.

    result_schema_test.py SCHEMA
"""

import copy
import json
import pathlib
import sys

import jsonschema

sys.dont_write_bytecode = True
import example_result  # noqa: E402


def broken(result):
    """(what was done to it, the result after that)"""
    def change(what, edit):
        other = copy.deepcopy(result)
        edit(other)
        return what, other

    point = result["points"][0]
    yield change("another version", lambda r: r.update(version=6))
    yield change("an unknown field", lambda r: r.update(surprise=1))
    yield change("a number as an option", lambda r: r["options"].update(size=8))
    yield change("a time in another form", lambda r: r.update(started="yesterday"))
    yield change("an error of two lines", lambda r: r.update(error="a\nb"))
    yield change("an unknown class", lambda r: r["points"][0]["placement"].update({"class": "near"}))
    yield change("a negative rate", lambda r: r["points"][0].update(messages_per_second=-1))
    for field in point:
        yield change(f"a point without {field}", lambda r, f=field: r["points"][0].pop(f))
    for field in result:
        yield change(f"no {field}", lambda r, f=field: r.pop(f))
    timed = next(i for i, p in enumerate(result["points"]) if p["round_trip_ns"])
    yield change("an empty bucket",
                 lambda r: r["points"][timed]["round_trip_ns"]["histogram"].append([1, 2, 0]))
    yield change("a bucket of two numbers",
                 lambda r: r["points"][timed]["round_trip_ns"]["histogram"].append([1, 2]))


def main():
    schema = json.loads(pathlib.Path(sys.argv[1]).read_text())
    result = example_result.of_operations()
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    for error in validator.iter_errors(result):
        sys.exit(f"the example is refused: {error.json_path}: {error.message}")
    for what, other in broken(result):
        if validator.is_valid(other):
            sys.exit(f"taken: {what}")


if __name__ == "__main__":
    main()
