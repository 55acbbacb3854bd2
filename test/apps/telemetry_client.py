# SPDX-License-Identifier: BSD-3-Clause
"""The socket at which a DPDK program reports on itself, for tests."""

import json
import socket
import time


def connect(path, patience):
    """Retried: the socket's name is there a moment before anybody listens."""
    deadline = time.monotonic() + patience
    while True:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.settimeout(patience)
        try:
            connection.connect(str(path))
            return connection
        except ConnectionRefusedError:
            connection.close()
            if time.monotonic() >= deadline:
                raise
        time.sleep(0.005)


class Telemetry:
    """ask(command) gives what DPDK's telemetry answers."""

    def __init__(self, path, patience):
        self.connection = connect(path, patience)
        self.connection.recv(1 << 16)

    def __call__(self, command):
        self.connection.send(command.encode())
        answer = json.loads(self.connection.recv(1 << 17).decode())
        return answer[command.split(",")[0]]
