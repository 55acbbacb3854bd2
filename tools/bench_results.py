#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Results of tools/bench, kept by machine in bench/results/<maker>-<family>-<model>.json, and shown in
doc/performance.md.

  bench_results.py record FOLDER RESULT [DOCUMENT]   takes what RESULT (of ntbmsg_bench --json) has into this
                                                     machine's file; then the table of DOCUMENT, if it is named
  bench_results.py table FOLDER DOCUMENT             writes the table of DOCUMENT anew
  bench_results.py check FOLDER DOCUMENT             status 1 if it is not what the files say

A figure is kept by class with the commit and the day it was taken at: a run in one class leaves those of others.
"""
import json
import os
import pathlib
import re
import sys

MAKERS = {"AuthenticAMD": "amd", "GenuineIntel": "intel"}
CLASSES = ("smt", "ccx", "other", "far", "-")
BEGIN, END = "<!-- results: tools/bench --record -->", "<!-- end of results -->"
# Of these there is a value to keep; the others say why there is none.
TAKEN = ("reached", "missed", "shown")


class Unusable(Exception):
    """The text is one line."""


def processor():
    """(maker, family, model) of this machine."""
    found = dict(re.findall(r"^(vendor_id|cpu family|model)\s*:\s*(\S+)", pathlib.Path("/proc/cpuinfo").read_text(), re.M))
    try:
        return found["vendor_id"], int(found["cpu family"]), int(found["model"])
    except (KeyError, ValueError) as error:
        raise Unusable("/proc/cpuinfo does not say what processor this is") from error


def file_name(maker, family, model):
    name = MAKERS.get(maker) or re.sub("[^a-z0-9]+", "", maker.lower()) or "unknown"
    return f"{name}-{family}-{model}.json"


def read(path):
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise Unusable(f"{path}: {error}") from error


def entries(result):
    """{name: {class: entry}} of what one run took."""
    pairs = {}
    for row in result["figures"]:
        if row["verdict"] not in TAKEN or row["value"] is None:
            continue
        entry = {name: row[name] for name in ("value", "limit", "ratio", "reach", "verdict")}
        entry.update(value=round(row["value"], 2), commit=result["commit"], date=result["started"][:10])
        for name in ("limit", "ratio"):
            entry[name] = entry[name] if entry[name] is None else round(entry[name], 2)
        pairs.setdefault(row["name"], {})[row["class"] or "-"] = {"unit": row["unit"], **entry}
    return pairs


def record(folder, result, described=None):
    maker, family, model = described or processor()
    path = folder / file_name(maker, family, model)
    kept = read(path) if path.exists() else {"figures": {}}
    figures = kept["figures"]
    for name, classes in entries(result).items():
        figures.setdefault(name, {}).update(classes)
    kept = {"maker": maker, "family": family, "model": model, "cpu": result["cpu"], "kernel": result["kernel"],
            "cpus": result["cpus"], "note": kept.get("note", ""), "figures": figures}
    beside = path.with_name(path.name + ".new")
    beside.write_text(as_text(kept))
    os.replace(beside, path)
    return path


def as_text(kept):
    """A line for each figure and class, so that a change of one shows as that."""
    head = {name: value for name, value in kept.items() if name != "figures"}
    lines = json.dumps(head, indent=2).rstrip("}\n").rstrip()
    figures = [f'    {json.dumps(name)}: {{\n' + ",\n".join(
        f"      {json.dumps(where)}: {json.dumps(classes[where])}" for where in CLASSES if where in classes) + "\n    }"
        for name, classes in kept["figures"].items()]
    return lines + ',\n  "figures": {\n' + ",\n".join(figures) + "\n  }\n}\n"


def number(value):
    if isinstance(value, list):
        return "–".join(number(each) for each in value)
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def cell(entry):
    if not entry:
        return ""
    ratio = f" ({number(entry['ratio'])}x)" if entry.get("ratio") is not None else ""
    text = number(entry["value"]) + ratio
    return f"*{text}*" if entry["verdict"] == "missed" else text


def columns(machines):
    """(machine, class) of all that was taken, but for figures without a class: they stand in each machine's first."""
    for kept in machines:
        taken = {where for classes in kept["figures"].values() for where in classes}
        yield from ((kept, where) for where in CLASSES if where in taken and where != "-")


def sources(kept, where):
    """When and at what commits a column was taken, the oldest first."""
    taken = sorted({(entry["date"], entry["commit"]) for classes in kept["figures"].values()
                    for entry in [classes.get(where)] if entry})
    return ", ".join(f"{commit} of {date}" for date, commit in taken)


def table(folder):
    machines = [read(path) for path in sorted(folder.glob("*-*.json"))]
    shown = list(columns(machines))
    names = list(dict.fromkeys(name for kept in machines for name in kept["figures"]))
    units = {name: entry["unit"] for kept in machines for name, classes in kept["figures"].items()
             for entry in classes.values()}

    def label(kept):
        return f"{MAKERS.get(kept['maker'], kept['maker'])} {kept['family']}/{kept['model']}"
    lines = ["| figure | unit | " + " | ".join(f"{label(kept)}, `{where}`" for kept, where in shown) + " |",
             "|---|---" + "|--:" * len(shown) + "|"]
    for name in names:
        cells, seen = [], set()
        for kept, where in shown:
            alone = None if id(kept) in seen else kept["figures"].get(name, {}).get("-")
            seen.add(id(kept))
            cells.append(cell(kept["figures"].get(name, {}).get(where) or alone))
        lines.append(f"| `{name}` | {units[name]} | " + " | ".join(cells) + " |")
    lines.append("")
    for kept in machines:
        lines.append(f"* **{label(kept)}**: {kept['cpu']}, {kept['kernel']}, {kept['cpus']} CPUs"
                     + (f"; {kept['note']}" if kept["note"] else "") + ".")
        lines += [f"  `{where}`: commit {sources(kept, where)}." for each, where in shown if each is kept]
    return "\n".join(lines)


def with_table(document, folder):
    text = document.read_text()
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise Unusable(f"{document}: there is no place for the table")
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n\n" + table(folder) + "\n\n" + END + rest.partition(END)[2]


def main(words):
    if len(words) not in (3, 4) or words[0] not in ("record", "table", "check"):
        print(__doc__.strip(), file=sys.stderr)
        return 2
    folder = pathlib.Path(words[1])
    try:
        if words[0] == "record":
            print(f"recorded: {record(folder, read(pathlib.Path(words[2])))}")
            words = words[3:]
        else:
            words = words[2:] if words[0] == "table" else ["check", words[2]]
        if words and words[0] == "check":
            document = pathlib.Path(words[1])
            if with_table(document, folder) == document.read_text():
                return 0
            print(f"{document}: the table is not what {folder} says; run: tools/bench_results.py table", file=sys.stderr)
            return 1
        if words:
            document = pathlib.Path(words[0])
            document.write_text(with_table(document, folder))
    except Unusable as error:
        print(f"bench_results: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
