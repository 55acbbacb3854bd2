# SPDX-License-Identifier: BSD-3-Clause
"""What telemetry shows of a running host, what plx-doctor makes of it, and that a twin takes its register dump.

    telemetry_test.py ntbmsg-echo plx-doctor
"""

import json
import os
import pathlib
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from facts import await_fact
from telemetry_client import Telemetry

PATIENCE = 60
CARD = "0000:05:00.0"
CSR_BYTES = 0x40000
SEEN = 0x00C0FFEE
# What shows a chip in its registers, and one that no driver writes.
REGISTERS = {0x360: 0x40002100, 0x624: SEEN, 0xA30: 0x03000000, 0x3E000: 0x87B010B5, 0x3E02C: 0x874910B5,
             0x3F000: 0x87A010B5, 0x3FC8C: 1 << 31}


def await_socket(path, child):
    await_fact(lambda: path.exists() or child.poll() is not None, "a telemetry socket", PATIENCE)
    assert path.exists(), "the host ended"


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
    windows = ask(f"/plx_ntb/memory,{device}")
    assert windows["translation"] == "alut" and windows["segments"] == 256, windows
    assert windows["exposed"] == 0 and "exposed_0" not in windows, windows
    requesters = ask(f"/plx_ntb/requesters,{device}")
    assert requesters["slot_0"] == "00:00.x CPU" and "DMA functions" in requesters["slot_2"], requesters
    copy = ask(f"/plx_ntb/copy,{device}")
    assert copy["engine"] in ("cpu", "dma"), copy
    assert ask(f"/plx_ntb/cache_hint,{device}") == {"queue_0": "none, not tried"}
    assert ask(f"/plx_ntb/lead,{device}") == {"queue_0": "no, 0 pauses"}
    assert ask(f"/plx_ntb/stores,{device}") == {"queue_0": "plain, not tried"}
    assert ask(f"/plx_ntb/inline,{device}") == {"queue_0": "ring, not tried"}
    parts = ask(f"/plx_ntb/regs,{device}")
    assert "nt_virtual" in parts, parts
    for part in parts:
        registers = ask(f"/plx_ntb/regs,{device},{part}")
        assert registers, part
        assert all(int(value, 16) <= 0xFFFFFFFF for value in registers.values()), registers
    assert ask(f"/plx_ntb/regs,{device},nt_virtual")["SPAD_7"] is not None


def check_refusals(ask):
    for what in ("info", "link", "copy", "drain", "windows", "regs"):
        for parameter in ("", ",", ",x", ",-1", ",99", ",99999999999999999999", ",0x0", ",1a"):
            assert ask(f"/plx_ntb/{what}{parameter}") is None, (what, parameter)
    assert not ask("/plx_ntb/regs,0,no_such_part")


def dump_a_card(doctor, folder):
    """What plx-doctor reads off a made-up card, as a file for the twin."""
    card = folder / "sys/bus/pci/devices" / CARD
    card.mkdir(parents=True)
    csr = bytearray(CSR_BYTES)
    for offset, value in REGISTERS.items():
        struct.pack_into("<I", csr, offset, value)
    (card / "resource0").write_bytes(csr)
    for name, text in (("vendor", "0x10b5"), ("device", "0x87b0"), ("config", "")):
        (card / name).write_text(text, encoding="ascii")
    done = subprocess.run([doctor, "--sysfs", folder / "sys", "regs", CARD], capture_output=True, text=True,
                          timeout=PATIENCE, check=True)
    (folder / "card.regs").write_text(done.stdout, encoding="ascii")
    return folder / "card.regs"


def check_dump_is_loaded(ask):
    assert int(ask("/plx_ntb/regs,1,chip")["GPIO_OUTPUT"], 16) == SEEN
    assert int(ask("/plx_ntb/regs,0,chip")["GPIO_OUTPUT"], 16) != SEEN


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
        state = dump_a_card(doctor, pathlib.Path(folder))
        command = [echo, "-l", "0", "--no-huge", "-m", "128", "--no-pci", "--file-prefix", "rte",
                   f"--vdev=raw_plx_ntb0,cable={folder}/a", f"--vdev=raw_plx_ntb1,cable={folder}/b,state={state}",
                   "--", "--serve", "--ring", "512"]
        with open(pathlib.Path(folder) / "log", "w+", encoding="utf-8") as log:
            child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                     env={**os.environ, "RUNTIME_DIRECTORY": folder})
            try:
                path = run / "rte" / "dpdk_telemetry.v2"
                await_socket(path, child)
                ask = Telemetry(path, PATIENCE)
                while ask("/plx_ntb/link,0") in (None, {}) or ask("/plx_ntb/link,0")["state"] == "stopped":
                    assert child.poll() is None, "the host ended"
                check_answers(ask)
                check_dump_is_loaded(ask)
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
