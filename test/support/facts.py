# SPDX-License-Identifier: BSD-3-Clause
"""What a case of a test in Python expects, at once or within a bound."""

import time

# For machines that are slow, busy or instrumented. Nothing waits for this long when all is well.
# A virtual machine may stand still for a minute while its clock goes on, and all is well behind it.
PATIENCE = 100
# Of which a single look uses this much at most, however long the machine stood still before it.
LONGEST_LOOK = 1
# Of a device: a machine that is busy may keep heartbeats for long; who is killed is noticed without them.
PATIENT = "lost_ms=600000"


class Failure(Exception):
    """What a case expected and did not find."""


def expect(condition, what):
    if not condition:
        raise Failure(what)


def await_fact(fact, what, patience=PATIENCE, clock=time.monotonic, pause=time.sleep):
    """Polls until fact() is true, for so many seconds. The pause bounds the cost, not the outcome."""
    waited, looked = 0, clock()
    while not fact():
        now = clock()
        waited, looked = waited + min(now - looked, LONGEST_LOOK), now
        expect(waited < patience, f"in {patience} s never: {what() if callable(what) else what}")
        pause(0.005)


def await_end(child, what):
    """Waits for the end of a subprocess; returns its exit status."""
    await_fact(lambda: child.poll() is not None, what)
    return child.returncode
