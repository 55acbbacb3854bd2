# SPDX-License-Identifier: BSD-3-Clause
"""Other people's programs in tests."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from ntb_sockets.programs import FOLDERS, UNPACKED, free_port, is_bound, libraries, listens  # noqa: E402, F401


def find_programs():
    os.environ["PATH"] = ":".join([*filter(None, [os.environ.get("PATH")]), *FOLDERS])
    os.environ.update(libraries())


def unpacked(path):
    """Of a file that a program has beside itself: where it is, installed or not."""
    found = [at for at in (pathlib.Path("/usr"), UNPACKED) if (at / path).exists()]
    return found[0] / path if found else None
