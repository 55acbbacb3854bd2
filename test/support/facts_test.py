# SPDX-License-Identifier: BSD-3-Clause
"""How long a case waits for a fact: on a clock that the test moves."""

import subprocess
import sys
import unittest

import facts


class Machine:
    """Its clock, and what happens while nobody looks."""

    def __init__(self, *stalls):
        self.now, self.looks, self.stalls = 0.0, 0, dict(stalls)

    def pause(self, seconds):
        self.looks += 1
        self.now += seconds + self.stalls.get(self.looks, 0)

    def await_fact(self, fact):
        facts.await_fact(fact, "it", clock=lambda: self.now, pause=self.pause)


class AwaitFact(unittest.TestCase):
    def test_what_never_comes_is_a_failure_after_the_patience(self):
        machine = Machine()
        with self.assertRaisesRegex(facts.Failure, "never: it"):
            machine.await_fact(lambda: False)
        self.assertAlmostEqual(machine.now, facts.PATIENCE, delta=1)

    def test_a_machine_that_stood_still_is_looked_at_again(self):
        machine = Machine((3, 10 * facts.PATIENCE), (5, facts.PATIENCE))
        machine.await_fact(lambda: machine.looks == 100)
        self.assertGreater(machine.now, facts.PATIENCE)

    def test_one_that_only_stands_still_has_an_end(self):
        machine = Machine(*((look, 50) for look in range(1000)))
        with self.assertRaises(facts.Failure):
            machine.await_fact(lambda: False)
        self.assertLessEqual(machine.looks, facts.PATIENCE / facts.LONGEST_LOOK + 1)

    def test_the_end_of_a_child(self):
        child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"])
        self.assertEqual(facts.await_end(child, "its end"), 7)


if __name__ == "__main__":
    unittest.main()
