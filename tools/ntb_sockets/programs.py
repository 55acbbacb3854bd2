# SPDX-License-Identifier: BSD-3-Clause
"""Other people's programs: where they are, and when a server is there."""
import os
import pathlib
import shutil
import socket

# Where tools/setup unpacks programs that are not installed.
UNPACKED = pathlib.Path(__file__).resolve().parents[2] / ".deps/programs/usr"
# Servers are in sbin, which not every user's path has. PostgreSQL's programs have a folder of each version, which comes
# before bin: the programs of the same names there look for modules where only an installation has them.
FOLDERS = ("/usr/sbin", *sorted(map(str, pathlib.Path("/usr/lib/postgresql").glob("*/bin"))),
           *sorted(map(str, UNPACKED.glob("lib/postgresql/*/bin"))), str(UNPACKED / "bin"), str(UNPACKED / "sbin"),
           str(UNPACKED.parent / "bin"))


def find(program):
    """Its path, also where tools/setup unpacks; None: it is not there."""
    return shutil.which(program, path=":".join([*filter(None, [os.environ.get("PATH")]), *FOLDERS]))


def libraries():
    """Variables for unpacked programs. Of Ceph's own folder is a library that fio is linked with."""
    folders = [str(found) for name in ("", "/ceph") for found in sorted(UNPACKED.glob(f"lib/*-linux-gnu{name}"))]
    return {"LD_LIBRARY_PATH": ":".join([*filter(None, [os.environ.get("LD_LIBRARY_PATH")]), *folders])} if folders else {}


RESERVED = []


def free_port():
    """A port of all addresses for a server, which has to set SO_REUSEADDR as servers do: until this process ends no one
    is given it who does not name it, other processes beside this one in particular."""
    one = socket.socket()
    RESERVED.append(one)
    one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    one.bind(("", 0))
    return one.getsockname()[1]


def listens(port, pid="self"):
    """Whether a server does in the network namespace of a process. Looked up, not tried: a connection would be one more
    for the server."""
    return _has_socket(("tcp", "tcp6"), port, pid, "0A")


def is_bound(port, pid="self"):
    """Whether a socket for datagrams is, likewise."""
    return _has_socket(("udp", "udp6"), port, pid, "07")


def _has_socket(tables, port, pid, state):
    for table in tables:
        try:
            text = pathlib.Path(f"/proc/{pid}/net/{table}").read_text(encoding="ascii")
        except OSError:  # the process has ended, or the kernel has no IPv6
            continue
        lines = (line.split() for line in text.splitlines()[1:])
        if any(line[1].endswith(f":{port:04X}") and line[3] == state for line in lines):
            return True
    return False
