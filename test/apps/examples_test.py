# SPDX-License-Identifier: BSD-3-Clause
"""The two roles of an example, as a user runs them, each on a host of its own.

    examples_test.py SERVER ROLE CLIENT ROLE TEXT...    ROLE is one word: its arguments, by commas

Both have to end well, and the client has to say each TEXT.
"""

import pathlib
import subprocess
import sys
import tempfile

from echo_hosts import PATIENT, pick_cores
from pages import eal_memory

# For machines that are slow, busy or instrumented. Nothing waits for this long when all is well.
PATIENCE = 150


def start(folder, program, role, core):
    eal = ["-l", str(core), *eal_memory(256), "--no-pci", "--no-shconf", "--no-telemetry",
           f"--vdev=raw_plx_ntb0,cable={folder / 'cable'},{PATIENT}"]
    log = folder / f"log{core}{role}"
    with open(log, "wb") as out:
        return subprocess.Popen([program, *eal, "--", *role.split(",")], stdout=out, stderr=out,
                                stdin=subprocess.DEVNULL), log


def main():
    server, serves, client, asks, *texts = sys.argv[1:]
    cores = pick_cores()
    with tempfile.TemporaryDirectory(prefix="ntbmsg-example-") as name:
        folder = pathlib.Path(name)
        hosts = [start(folder, server, serves, cores[0]), start(folder, client, asks, cores[1])]
        try:
            for child, _ in reversed(hosts):
                child.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            print(f"not ended after {PATIENCE} s")
        finally:
            for child, _ in hosts:
                child.kill()
                child.wait()
        said = [log.read_text(errors="replace") for _, log in hosts]
        missing = [text for text in texts if text not in said[1]]
        codes = [child.returncode for child, _ in hosts]
        if codes != [0, 0] or missing:
            print(f"status {codes}, not said: {missing}", *said, sep="\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
