# SPDX-License-Identifier: BSD-3-Clause
"""What calls cost under the socket preload where no daemon answers, beside libc's in the same process, in turn: where
whole programs differ from run to run by more than what is looked for."""
import json

from ntb_sockets import rings
from ntb_sockets.programs import libraries

from . import pair, programs, table

PROGRAM = "peer_calls"
RUN_SECONDS = 120
HEADER = ["one thread has both ends", "TCP, us", "preload, us", "preload/TCP", "half of the turns", "TCP/TCP", "turns"]
FIELDS = {"call": str, "libc_ns": float, "preload_ns": float, "ratio": float, "low": float, "high": float, "control": float,
          "turns": int}


def missing(settings):
    """What was not built, or an empty text."""
    if not (settings.programs / PROGRAM).exists():
        return f"{PROGRAM} was not built"
    return rings.missing(settings.programs.parents[1])


def read(text):
    """A line of JSON for each kind of call."""
    try:
        lines = [json.loads(line) for line in text.splitlines()]
        if not lines or not all(isinstance(line[field], kind) for line in lines for field, kind in FIELDS.items()):
            raise ValueError
    except (ValueError, TypeError, KeyError) as error:
        raise pair.Failed(f"not understood: {pair.last_line(text)}") from error
    return lines


def measure(settings):
    with pair.group() as processes:
        before = rings.Preload(settings.programs.parents[1], processes.folder).under()
        number = processes.start([*before, settings.programs / PROGRAM, settings.run_ms, programs.SERVER], libraries())
        processes.await_ends(RUN_SECONDS)
        return read(processes.text("out", number))


def rows(lines):
    """The last ratio is of two users of libc's calls: how far it is from 1 is the error of the method."""
    return [HEADER] + [[line["call"], f"{line['libc_ns'] / 1000:.2f}", f"{line['preload_ns'] / 1000:.2f}", f"{line['ratio']:.3f}",
                        f"{line['low']:.3f}–{line['high']:.3f}", f"{line['control']:.3f}", str(line["turns"])] for line in lines]


def report(settings, markdown):
    why = missing(settings)
    if not why:
        try:
            print((table.as_markdown if markdown else table.as_text)(rows(measure(settings))))
            return
        except pair.Failed as error:
            why = str(error)
    print(f"# left out: calls one by one: {why}")
