# SPDX-License-Identifier: BSD-3-Clause
"""What telemetry shows of a running host, and what plx-doctor makes of it.

    telemetry_test.py ntbmsg-echo plx-doctor
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

PATIENCE = 60


def await_socket(path, child):
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert child.poll() is None, "the host ended"
        assert time.monotonic() < deadline, "no telemetry socket"
        time.sleep(0.005)


class Telemetry:
    def __init__(self, path):
        self.connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.connection.settimeout(PATIENCE)
        self.connection.connect(str(path))
        self.connection.recv(1 << 16)

    def __call__(self, command):
        self.connection.send(command.encode())
        answer = json.loads(self.connection.recv(1 << 17).decode())
        return answer[command.split(",")[0]]


def check_answers(ask):
    ids = ask("/plx_ntb/list")
    assert len(ids) == 2, ids
    device = ids[0]
    info = ask(f"/plx_ntb/info,{device}")
    assert info["name"] == "raw_plx_ntb0" and info["platform"] == "twin", info
    assert info["queues"] == 1 and info["ring_lines"] == 512 and info["block_bytes"] > 0, info
    link = ask(f"/plx_ntb/link,{device}")
    assert link["state"] == "waiting" and link["why"] and link["connects"] == 0, link
    assert ask(f"/plx_ntb/link,{ids[1]}")["state"] == "stopped"
    windows = ask(f"/plx_ntb/windows,{device}")
    assert windows["kind"] == "alut" and windows["segments"] == 256, windows
    assert windows["grants"] == 0 and "grant_0" not in windows, windows
    copy = ask(f"/plx_ntb/copy,{device}")
    assert copy["engine"] in ("cpu", "dma"), copy
    parts = ask(f"/plx_ntb/regs,{device}")
    assert "nt_virtual" in parts, parts
    for part in parts:
        registers = ask(f"/plx_ntb/regs,{device},{part}")
        assert registers, part
        assert all(int(value, 16) <= 0xFFFFFFFF for value in registers.values()), registers
    assert ask(f"/plx_ntb/regs,{device},nt_virtual")["SPAD_7"] is not None


def check_refusals(ask):
    for what in ("info", "link", "copy", "windows", "regs"):
        for parameter in ("", ",", ",x", ",-1", ",99", ",99999999999999999999", ",0x0", ",1a"):
            assert ask(f"/plx_ntb/{what}{parameter}") is None, (what, parameter)
    assert not ask("/plx_ntb/regs,0,no_such_part")


def check_doctor(doctor, run):
    with tempfile.TemporaryDirectory() as no_cards:
        done = subprocess.run([doctor, "--json", "--sysfs", no_cards, "--run", run],
                              capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 2 and "raw_plx_ntb0" in found[0]["name"], found
    assert [f["state"] for f in found[0]["findings"]] == ["ok", "warn"], found


def main():
    echo, doctor = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ntbmsg-") as folder:
        run = pathlib.Path(folder) / "dpdk"
        command = [echo, "-l", "0", "--no-huge", "-m", "128", "--no-pci", "--file-prefix", "rte",
                   f"--vdev=raw_plx_ntb0,cable={folder}/a", f"--vdev=raw_plx_ntb1,cable={folder}/b",
                   "--", "--serve", "--ring", "512"]
        with open(pathlib.Path(folder) / "log", "w+", encoding="utf-8") as log:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env={**os.environ, "RUNTIME_DIRECTORY": folder})
            try:
                path = run / "rte" / "dpdk_telemetry.v2"
                await_socket(path, child)
                ask = Telemetry(path)
                while ask("/plx_ntb/link,0") in (None, {}) or ask("/plx_ntb/link,0")["state"] == "stopped":
                    assert child.poll() is None, "the host ended"
                check_answers(ask)
                check_refusals(ask)
                check_doctor(doctor, str(run))
                child.send_signal(signal.SIGINT)
                assert child.wait(PATIENCE) == 0
            except BaseException:
                log.seek(0)
                print(log.read(), file=sys.stderr)
                raise
            finally:
                child.kill()
                child.wait()


main()
