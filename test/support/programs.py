# SPDX-License-Identifier: BSD-3-Clause
"""Other people's programs in tests: where they are, and when a server is there."""

import os
import pathlib
import socket

# Where tools/setup unpacks programs that are not installed.
PROGRAMS = pathlib.Path(__file__).resolve().parents[2] / ".deps/programs/usr"


def find_programs():
    libraries = sorted(str(folder) for folder in PROGRAMS.glob("lib/*-linux-gnu"))
    # Servers are in sbin, which not every user's path has.
    paths = ["/usr/sbin", str(PROGRAMS / "bin"), str(PROGRAMS / "sbin")]
    for name, folders in (("PATH", paths), ("LD_LIBRARY_PATH", libraries)):
        if folders:
            os.environ[name] = ":".join([*filter(None, [os.environ.get(name)]), *folders])


def listens(port):
    """Looked up, not tried: a connection would be one more for the server."""
    lines = [line.split() for table in ("tcp", "tcp6") if pathlib.Path(f"/proc/net/{table}").is_file()
             for line in pathlib.Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]]
    return any(line[1].endswith(f":{port:04X}") and line[3] == "0A" for line in lines)


RESERVED = []


def free_port():
    """A port of all addresses for a server, which has to set SO_REUSEADDR as servers do: until this process ends nobody
    is given it who does not name it, other tests beside this one in particular."""
    one = socket.socket()
    RESERVED.append(one)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("", 0))
    return one.getsockname()[1]
