# SPDX-License-Identifier: BSD-3-Clause
"""One thing that was looked at."""
from dataclasses import dataclass

STATES = ("ok", "warn", "unknown")


@dataclass(frozen=True)
class Finding:
    what: str
    state: str  # one of STATES
    text: str
    mend: str = ""  # command or setting that mends it

    def __post_init__(self):
        assert self.state in STATES

    def line(self):
        mend = f"\n{'':18}mend: {self.mend}" if self.mend else ""
        return f"  {self.state:<7} {self.what:<7} {self.text}{mend}"
