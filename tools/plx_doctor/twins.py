# SPDX-License-Identifier: BSD-3-Clause
"""Twins of running DPDK programs, asked through their telemetry sockets."""
import glob
import json
import os
import socket

from .finding import Finding

MOST_BYTES = 1 << 17
MENDS = {
    "stopped": "the program starts the device with rte_rawdev_start()",
    "waiting": "start the other host (on a twin: with the same cable=)",
    "refused": "run the same version at both ends, with sizes that both can take",
}
PATIENCE_S = 2


def sockets(folder):
    return sorted(glob.glob(os.path.join(folder, "*", "dpdk_telemetry.v2*")))


def ask(path, commands):
    """command -> what was answered; fewer when the program stops answering."""
    answers = {}
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.settimeout(PATIENCE_S)
        connection.connect(path)
        connection.recv(MOST_BYTES)
        for command in commands:
            connection.send(command.encode())
            answers.update(json.loads(connection.recv(MOST_BYTES).decode()))
    return answers


def examine(path):
    """(device name, findings) for each device of the program behind a socket; [] if it is none of ours."""
    try:
        found = ask(path, ["/plx_ntb/list"]).get("/plx_ntb/list")
        return [device(path, number) for number in found or []]
    except (OSError, ValueError):
        return []


def device(path, number):
    info, link = (ask(path, [f"/plx_ntb/{what},{number}"]).get(f"/plx_ntb/{what}") or {} for what in ("info", "link"))
    kind = "twin" if info.get("platform") == "twin" else "card in use"
    name = f"{kind} {info.get('name', number)} of {os.path.dirname(path)}"
    out = [Finding("device", "ok", ", ".join(f"{key} {value}" for key, value in sorted(info.items())))]
    state = link.get("state", "unknown")
    text = ", ".join(f"{key} {value}" for key, value in sorted(link.items()) if value not in ("", None))
    out.append(Finding("link", {"connected": "ok", "unknown": "unknown"}.get(state, "warn"), text,
                       MENDS.get(state, "")))
    return name, out
