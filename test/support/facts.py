# SPDX-License-Identifier: BSD-3-Clause
"""What a case of a test in Python expects, at once or within a bound."""

import time

# For machines that are slow, busy or instrumented. Nothing waits for this long when all is well.
PATIENCE = 60
# Of a device: a machine that is busy may keep heartbeats for long; who is killed is noticed without them.
PATIENT = "lost_ms=60000"


class Failure(Exception):
    """What a case expected and did not find."""


def expect(condition, what):
    if not condition:
        raise Failure(what)


def await_fact(fact, what):
    """Polls until fact() is true. The pause bounds the cost, not the outcome."""
    deadline = time.monotonic() + PATIENCE
    while not fact():
        expect(time.monotonic() < deadline, f"in {PATIENCE} s never: {what() if callable(what) else what}")
        time.sleep(0.005)
