#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What model_test.py takes from the record of whole searches, and what it searches anew.    record_test.py C-COMPILER..."""
import subprocess
import shutil
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
COMPILER = sys.argv[1:]
MODEL = """/*
 *   variant ONLY  of all
 */
#define MISSING 1 /* ONLY, what is left out */
int wrong = 0;
c_code { \\#include <stdlib.h> };
active proctype one() {
    byte i;
    c_code { now.wrong = atoi(getenv("WRONG")); };
    do :: i < LAST -> i++ :: else -> break od;
    assert(wrong == 0)
}
"""


class Records(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        shutil.copy(HERE / "model_test.py", self.folder)
        self.record = self.folder / "searched.txt"
        self.record.write_text("# kept\nother.pml ONLY 0 7\n")
        self.write(3)

    def write(self, last):
        (self.folder / "one.pml").write_text(MODEL.replace("LAST", str(last)))

    def search(self, *ways):
        done = subprocess.run([sys.executable, self.folder / "model_test.py", *ways, self.folder / "one.pml", *COMPILER],
                              capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_record_stands_for_its_model_alone(self):
        self.assertIn("model_test.py --record", self.search()[1], "what is not recorded")
        self.assertEqual(self.search("--record")[0], 0)
        self.assertEqual(self.record.read_text().splitlines()[:2], ["# kept", "other.pml ONLY 0 7"])
        status, said = self.search()
        self.assertEqual((status, "ONLY as it is: recorded" in said, "ONLY MISSING: 1 errors" in said), (0, True, True), said)
        status, said = self.search("--whole")
        self.assertEqual((status, "ONLY as it is: 0 errors" in said), (0, True), said)
        self.write(4)
        status, said = self.search()
        self.assertEqual((status, "ONLY as it is: 0 errors" in said, "--record" in said), (1, True, True), said)

    def test_a_number_of_states_that_was_not_found_is_seen(self):
        self.assertEqual(self.search("--record")[0], 0)
        lines = self.record.read_text().splitlines()
        self.record.write_text("\n".join([*lines[:-1], lines[-1].rsplit(" ", 1)[0] + " 1000"]) + "\n")
        self.assertEqual(self.search("--whole")[0], 1)


if __name__ == "__main__":
    if not shutil.which("spin"):
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
