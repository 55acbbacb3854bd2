# SPDX-License-Identifier: BSD-3-Clause
"""Other people's programs in tests."""

import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))

from ntb_sockets.programs import FOLDERS, UNPACKED, free_port, libraries, listens  # noqa: E402, F401


def find_programs():
    os.environ["PATH"] = ":".join([*filter(None, [os.environ.get("PATH")]), *FOLDERS])
    os.environ.update(libraries())
