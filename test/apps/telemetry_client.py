# SPDX-License-Identifier: BSD-3-Clause
"""The socket at which a DPDK program tells of itself, for tests."""

import json
import socket


class Telemetry:
    """ask(command) gives what DPDK's telemetry answers."""

    def __init__(self, path, patience):
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(patience)
        self.connection.connect(str(path))
        self.connection.recv(1 << 16)

    def __call__(self, command):
        self.connection.send(command.encode())
        answer = json.loads(self.connection.recv(1 << 17).decode())
        return answer[command.split(",")[0]]
