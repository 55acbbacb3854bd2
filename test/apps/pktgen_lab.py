# SPDX-License-Identifier: BSD-3-Clause
"""Hosts that run ntbmsg-pktgen, for the tests of it."""

import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

from echo_hosts import PATIENCE, Process, World, await_fact, expect, memory_behind, run_in

# Long enough for a figure, short enough for a test.
ONCE = ("--repeat", "1", "--timeout", str(PATIENCE))
SHORT = ("--seconds", "0.02", *ONCE)


class Lab(World):
    """Hosts that run ntbmsg-pktgen, on cables that are named."""

    def __init__(self, pktgen, schema, wrong, folder):
        super().__init__(pktgen, None, folder)
        self.wrong = wrong
        self.schema = jsonschema.Draft202012Validator(json.loads(schema.read_text()))

    def host(self, core, own, cables=("cable",), memory=256, lcores=(), before=(), table=None, program=None,
             stdin=subprocess.DEVNULL):
        eal = [*(lcores or ("-l", str(self.cores[core]))), *memory_behind(before, memory), "--no-pci", "--no-shconf",
               "--no-telemetry"]
        for i, cable in enumerate(cables):
            patient = "" if "lost_ms=" in cable else self.patient
            eal.append(f"--vdev=raw_plx_ntb{i},cable={self.folder / cable}{patient}")
        command = [*before, program or self.echo, *eal, "--", *own]
        process = Process(command, self.folder / f"log{len(self.processes)}", stdin, table)
        self.processes.append(process)
        return process

    def serve(self, *own, **more):
        return self.host("serve", ["--serve", *own], **more)

    def drive(self, *own, **more):
        return self.host("send", [*(ONCE if "replay" in own else SHORT), *own], **more)

    def result(self, name="result"):
        """A result file, which has to be what the schema says."""
        found = json.loads((self.folder / name).read_text())
        for error in self.schema.iter_errors(found):
            raise Failure(f"{error.json_path}: {error.message}")
        return found

    def measured(self, *own, **more):
        """Drives; returns the result."""
        self.drive(*own, "--json", str(self.folder / "result"), **more).expect_end(0)
        result = self.result()
        expect(result["complete"] and not result["error"], "not complete")
        return result


def expect_good(point):
    # A busy machine does not meet every rate.
    expect(point["complete"] or not point["rate_met"], f"not complete: {point}")
    expect(point["messages"] > 0 and point["bytes"] == point["messages"] * point["size"]
           or point["mix"] != "fixed", f"counts: {point['messages']}, {point['bytes']}")
    expect(not any(point["checks"].values()), f"checks: {point['checks']}")


def await_points(lab, client, count):
    def fact():
        path = lab.folder / "result"
        return client.child.poll() is not None or \
            path.exists() and len(json.loads(path.read_text())["points"]) >= count
    await_fact(fact, f"{count} points")
    expect(client.child.poll() is None, f"it ended early:\n{client.text()}")


def expect_broken_off(lab, client):
    """The client's peer was lost: what was measured until then is kept. @return the result"""
    client.expect_end(1, "the peer was lost")
    result = lab.result()
    expect(not result["complete"] and "peer was lost" in result["error"], "incomplete, with the reason")
    expect(result["points"][0]["complete"], "points were lost")
    return result


def run_case(cases):
    """Runs the case that the command line names: ntbmsg-pktgen SCHEMA [wrong_client] CASE."""
    pktgen, schema, *wrong, name = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ntbmsg-pktgen-") as folder:
        lab = Lab(pktgen, pathlib.Path(schema), wrong and wrong[0], pathlib.Path(folder))
        run_in(lab, cases["case_" + name], name)
