# SPDX-License-Identifier: BSD-3-Clause
"""Reads result files. Whatever they hold is bounded and checked before anything is made of it."""
import json
import os
import pathlib

LARGEST_FILE = 64 << 20
LARGEST_NUMBER = 10 ** 18
LONGEST_REFUSAL = 200
MOST_POINTS = 20000
ADDED_IN_2 = {"copy_mode": "auto", "completion": "received", "region": "none", "lcores": 1, "server_lcores": 1}
ADDED_IN_3 = {"rate_met": True, "cpu_share": 1, "disturbed": ""}
SCHEMA = pathlib.Path(__file__).resolve().parent.parent.parent / "doc" / "result.schema.json"


class Unusable(Exception):
    """A file that no report can be made of; the text is one line."""


def refuse_constant(name):
    raise ValueError(f"{name} is no number")


def bounded(kind):
    """Reads a number of that kind, if it is one that can be reckoned with."""
    def number(text):
        value = kind(text)
        if not abs(value) <= LARGEST_NUMBER:
            raise ValueError("a number is too large")
        return value
    return number


def check(document, path):
    """Refuses what doc/result.schema.json does not describe."""
    try:
        import jsonschema
    except ImportError as error:
        raise Unusable("jsonschema is missing; run: apt-get install python3-jsonschema") from error
    try:
        schema = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text()))
        found = jsonschema.exceptions.best_match(schema.iter_errors(document))
    except (OSError, ValueError) as error:
        raise Unusable(f"{SCHEMA}: {error}") from error
    except RecursionError as error:
        raise Unusable(f"{path}: nested too deeply") from error
    if found is not None:
        raise Unusable(f"{path}: result{found.json_path[1:]}: {found.message}"[:LONGEST_REFUSAL])


def read(path):
    """The text of a file as JSON."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            text = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise Unusable(f"{path}: {error.strerror}") from error
    if len(text) > LARGEST_FILE:
        raise Unusable(f"{path}: larger than {LARGEST_FILE >> 20} MiB")
    try:
        return json.loads(text.decode("utf-8"), parse_constant=refuse_constant, parse_int=bounded(int),
                          parse_float=bounded(float))
    except UnicodeDecodeError as error:
        raise Unusable(f"{path}: no text") from error
    except RecursionError as error:
        raise Unusable(f"{path}: nested too deeply") from error
    except ValueError as error:
        cut = isinstance(error, json.JSONDecodeError) and error.pos >= len(text.decode("utf-8").rstrip())
        what = f"cut short after {size} bytes" if cut else f"no JSON: {error}"
        raise Unusable(f"{path}: {what}") from error


def brought_up(document):
    """An older result as one of version 5: what was added, as it was then, or as far as it is known."""
    points, options = document.get("points"), document.get("options")
    # Until version 4 it was said of the run alone.
    build = {"build": options.get("build", "mbuf") if isinstance(options, dict) else "mbuf"}
    for point in points if isinstance(points, list) else ():
        if not isinstance(point, dict):
            continue
        for name, value in (ADDED_IN_2 | ADDED_IN_3 | build).items():
            point.setdefault(name, value)
        flows, counters = point.get("flows"), point.get("counters")
        for flow in flows if isinstance(flows, list) else ():
            if isinstance(flow, dict):
                flow.update({"queue": 0, "cpu": -1, **flow})
        if isinstance(counters, dict):
            counters.setdefault("served", 0)
    machine = document.get("machine")
    cores = machine.get("cores") if isinstance(machine, dict) else None
    if isinstance(cores, dict) and "driver" in cores:
        cores["client"] = cores.pop("driver") # the client's name until version 3
    document["version"] = 5
    return document


def load(path):
    """A result of a version that we know."""
    document = read(path)
    if not isinstance(document, dict) or document.get("format") != "ntbmsg-result":
        raise Unusable(f"{path}: not a result of ntbmsg")
    if document.get("version") not in (1, 2, 3, 4, 5):
        raise Unusable(f"{path}: a result of version {str(document.get('version'))[:20]}, this tool knows 1 to 5")
    if document["version"] < 5:
        document = brought_up(document)
    check(document, path)
    if len(document["points"]) > MOST_POINTS:
        raise Unusable(f"{path}: more than {MOST_POINTS} points")
    return document
