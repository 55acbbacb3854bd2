#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/compare --verbs with peers between two guests: what a guest is made of, what its console says, and a short run.

  compare_rxe_test.py SOURCE_ROOT BUILD
"""
import contextlib
import json
import lzma
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import jsonschema

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1))
BUILD = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "tools"))

from ntb_compare import guests, pair, peers, result, rxe, table  # noqa: E402

SETTINGS = peers.Settings(BUILD / "bench/peers", (0, 1), 20, False, False)
VERSION = "6.1.0-9-amd64"
LATENCY = " #bytes #iterations    t_min[usec] ...\r\n 64      1000          374.17         8882.03      737.23   \t       1055.02     \t-nan   \t\t4480.53\r\n"
BANDWIDTH = " #bytes     #iterations    BW peak[MB/sec] ...\r\n 64         1000             0.43               0.37   \t\t   0.006079\r\n"
CONSOLE = ("SeaBIOS\r\nguest: up\r\nguest: step ib_read_lat 64\r\n" + LATENCY +
           "guest: step ib_read_bw 64\r\n" + BANDWIDTH + "guest: end\r\n")
PLACE = {"class": "ccx", "probe_ns": [50, 50]}

# In place of QEMU: it makes the wire, and says at the end of side 0 what a guest would.
EMULATOR = r"""#!/bin/bash
[ -z "$FAKE_LOG" ] || echo "$*" >>"$FAKE_LOG"
case "$*" in *"-accel kvm"*) echo "failed to set MSR" >&2; exit 1 ;; esac
words="$*" path=${words##*addr.path=}
case "$words" in
*side=1*) : >"${path%% *}"; echo "guest: up"; sleep 60 ;;
*) cat "$FAKE_CONSOLE"; sleep "$FAKE_SECONDS" ;;
esac
"""


def unpacked(data):
    """{path: (mode, bytes)} of a "newc" archive, in its order."""
    made, at = {}, 0
    while True:
        assert data[at:at + 6] == b"070701", at
        words = [int(data[at + 6 + 8 * i:at + 14 + 8 * i], 16) for i in range(13)]
        name = data[at + 110:at + 110 + words[11] - 1].decode()
        at = (at + 110 + words[11] + 3) & ~3
        body, at = data[at:at + words[6]], (at + words[6] + 3) & ~3
        if name == "TRAILER!!!":
            assert at == len(data)
            return made
        made[name] = (words[1], body)


def module(depends):
    return b"\x7fELF...\0license=GPL\0depends=" + depends.encode() + b"\0name=x\0"


class InFolder(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="cmp")
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def file(self, path, body=b""):
        made = self.folder / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(body)
        return made

    def kernel(self, version=VERSION, end=".ko", modules="lib/modules"):
        self.file(f"boot/vmlinuz-{version}")
        return self.file(f"{modules}/{version}/{guests.RXE}{end}")


class Made(InFolder):
    def test_an_archive_has_folders_before_files_and_every_byte(self):
        for body in (b"", b"1", b"12", b"123", b"1234"):
            found = unpacked(guests.archive({"/lib/deep/er": (0o644, body), "/init": (0o755, b"#!")}))
            self.assertEqual(found["lib/deep/er"], (stat.S_IFREG | 0o644, body))
            self.assertEqual(found["init"], (stat.S_IFREG | 0o755, b"#!"))
            names = list(found)
            self.assertLess(names.index("lib"), names.index("lib/deep"))
            self.assertLess(names.index("lib/deep"), names.index("lib/deep/er"))
            for name in ("dev", "proc", "sys", "tmp"):
                self.assertEqual(found[name][0], stat.S_IFDIR | 0o755)

    def test_modules_come_after_what_they_need(self):
        for name, needs in (("rdma_rxe", "ib_core,udp-tunnel"), ("ib_core", ""), ("crc32_generic", ""), ("unused", "ib_core")):
            self.file(f"kernel/{name}.ko", module(needs))
        self.file("kernel/udp-tunnel.ko.xz", lzma.compress(module("ib-core")))
        self.file("kernel/virtio_pci.ko", module("virtio_pci"))  # of itself, which ends too
        found = guests.modules_in_order(self.folder)
        self.assertEqual([name for name, _ in found], ["crc32_generic", "virtio_pci", "ib_core", "udp_tunnel", "rdma_rxe"])
        self.assertEqual(dict(found)["udp_tunnel"], module("ib-core"))

    def test_libraries_come_with_what_is_loaded_at_the_end(self):
        self.file("libgcc_s.so.1")
        text = (f"\tlinux-vdso.so.1 (0x7f)\n\tlibc.so.6 => {self.folder}/libc.so.6 (0x7f)\n\tlibx.so.1 => /opt/lib/libx.so.1 (0x7f)\n"
                "\t/lib64/ld-linux-x86-64.so.2 (0x7f)\n")
        found = guests.libraries_of(["/bin/a"], lambda _path: text)
        self.assertEqual({path: str(source) for path, source in found.items()},
                         {"/lib/libc.so.6": f"{self.folder}/libc.so.6", "/lib/libx.so.1": "/opt/lib/libx.so.1",
                          "/lib64/ld-linux-x86-64.so.2": "/lib64/ld-linux-x86-64.so.2", "/lib/libgcc_s.so.1": f"{self.folder}/libgcc_s.so.1"})
        self.assertEqual(guests.libraries_of(["/bin/static"], lambda _path: ""), {})
        with self.assertRaisesRegex(pair.Failed, "^/bin/a: libx.so.1 => not found$"):
            guests.libraries_of(["/bin/a"], lambda _path: "\tlibx.so.1 => not found\n")

    def test_a_guest_has_programs_provider_modules_and_steps(self):
        library = self.file("x86_64-linux-gnu/libibverbs/librxe-rdmav34.so", b"rxe")
        found = rxe.files_of("read", [8, 1 << 20], [("ib_core", b"core"), ("rdma_rxe", b"module")], lambda _path: "",
                             lambda name: self.file(f"bin/{name}", name.encode()), library)
        self.assertEqual({path: body for path, (_, body) in found.items() if path not in ("/init", "/steps")},
                         {"/bin/busybox": b"busybox", "/bin/rdma": b"rdma", "/bin/ib_read_lat": b"ib_read_lat", "/bin/ib_read_bw": b"ib_read_bw",
                          "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so": b"rxe", "/etc/libibverbs.d/rxe.driver": b"driver rxe\n",
                          "/modules/00-ib_core.ko": b"core", "/modules/01-rdma_rxe.ko": b"module"})
        self.assertEqual(found["/steps"][1].decode(), "20000 ib_read_lat 8 300\n20001 ib_read_bw 8 300\n"
                         "20002 ib_read_lat 1048576 8\n20003 ib_read_bw 1048576 8\n")
        self.assertEqual(found["/init"][0], 0o755)
        self.assertEqual(subprocess.run(["sh", "-n"], input=found["/init"][1], check=False).returncode, 0)


class Missing(InFolder):
    def test_the_newest_kernel_with_soft_roce_is_taken(self):
        self.assertIsNone(guests.kernel((self.folder,)))
        self.file("boot/vmlinuz-7.0-cloud")  # has none
        self.assertIsNone(guests.kernel((self.folder,)))
        self.kernel()
        self.kernel("6.1.0-10-amd64", ".ko.xz", "usr/lib/modules")
        self.kernel("6.2.0-1-amd64", ".ko.zst")  # not understood
        found = guests.kernel((self.folder, self.folder / "none"))
        self.assertEqual(found, (self.folder / "boot/vmlinuz-6.1.0-10-amd64", self.folder / "usr/lib/modules/6.1.0-10-amd64"))

    def test_what_is_not_there_is_named_by_its_package(self):
        with mock.patch("platform.machine", lambda: "x86_64"):
            why = guests.missing(lambda _name: None, (self.folder,))
            self.assertEqual(why, "qemu-system-x86 busybox-static linux-image-amd64: not there; run: tools/compare --verbs --install")
            self.kernel()
            self.assertEqual(guests.missing(lambda name: None if name == "busybox" else name, (self.folder,)),
                             "busybox-static: not there; run: tools/compare --verbs --install")
            self.assertEqual(guests.missing(lambda name: name, (self.folder,)), "")
        for lacks, why in (("ib_read_lat", "ib_read_lat is not there; run: tools/setup"), ("rdma", "rdma is not there; run: tools/setup")):
            with mock.patch.object(guests, "missing", lambda: ""), \
                    mock.patch.object(rxe, "find", lambda name, lacks=lacks: None if name == lacks else name):
                self.assertEqual(rxe.SoftRoce("read").missing(SETTINGS), why)
        with mock.patch.object(guests, "missing", lambda: ""), mock.patch.object(rxe, "find", lambda name: name), \
                mock.patch.object(rxe, "provider", lambda: None):
            self.assertEqual(rxe.SoftRoce("read").missing(SETTINGS), "apt-get install ibverbs-providers")
        with mock.patch("platform.machine", lambda: "aarch64"):
            self.assertEqual(guests.missing(lambda name: name, (self.folder,)), "guests are of x86-64 only")


class Read(unittest.TestCase):
    def lines(self, text, sizes=(64,)):
        with mock.patch.object(rxe.SoftRoce, "accelerator", "tcg"):
            return rxe.SoftRoce("read").lines(text, list(sizes), PLACE)

    def test_a_console(self):
        line, = self.lines(CONSOLE)
        self.assertEqual((line["bytes"], line["class"], line["device"]), (64, "ccx", "QEMU, TCG"))
        self.assertEqual((line["round_trips"]["count"], line["messages"]["count"]), (1000, 1000))
        self.assertAlmostEqual(line["round_trips"]["seconds"], 0.73723)  # of a read, the whole
        self.assertAlmostEqual(line["messages"]["seconds"], 64000 / (0.37 * (1 << 20)))

    def test_what_is_not_understood_is_refused(self):
        for text in ("", "guest: up\r\n", "Kernel panic\r\n"):
            with self.assertRaisesRegex(pair.Failed, "^the guest does not come to its end: "):
                self.lines(text)
        for text in (CONSOLE.replace(" 64  ", " 65  "), CONSOLE.replace("0.37", "0.00"), CONSOLE.replace("737.23", "nan"), CONSOLE.replace("ib_read_bw", "ib_send_bw")):
            with self.assertRaisesRegex(pair.Failed, "^not understood", msg=text):
                self.lines(text)
        with self.assertRaisesRegex(pair.Failed, "^not understood: Unable to find"):
            self.lines(CONSOLE.replace(BANDWIDTH, " Unable to find the Infiniband/RoCE device\r\n"))

    def test_rows_say_that_it_is_emulation(self):
        for accelerator, how in ((None, "KVM or TCG"), ("kvm", "KVM"), ("tcg", "TCG")):
            with mock.patch.object(rxe.SoftRoce, "accelerator", accelerator):
                self.assertEqual(rxe.SoftRoce("send").label, f"Soft-RoCE, send: software emulation (QEMU, {how})")
                points = result.points(rxe.SoftRoce("read"), self.lines(CONSOLE)[0], 0)
                self.assertEqual(table.rows(table.ROUND_TRIP, points, "ccx", [rxe.SoftRoce("read")], [64])[1],
                                 [f"Soft-RoCE, read: software emulation (QEMU, {how}) (not read)", "737230"])


class Pairs(InFolder):
    """With an emulator that only says what a guest would."""

    def run_fake(self, console, accelerators=("kvm", "tcg"), seconds=0):
        fake = self.file("qemu", EMULATOR.encode())
        fake.chmod(0o755)
        (self.folder / "work").mkdir(exist_ok=True)
        environment = {"FAKE_LOG": str(self.folder / "log"), "FAKE_CONSOLE": str(self.file("console", console.encode())),
                       "FAKE_SECONDS": str(seconds)}
        with contextlib.ExitStack() as stack:
            for patch in (mock.patch.dict(os.environ, environment),
                          mock.patch.object(tempfile, "tempdir", str(self.folder / "work")),
                          mock.patch.object(rxe.SoftRoce, "accelerator", None),
                          mock.patch.object(guests, "find", lambda _name: fake),
                          mock.patch.object(guests, "accelerators", lambda: accelerators),
                          mock.patch.object(guests, "kernel", lambda: ("image", None)),
                          mock.patch.object(guests, "modules_in_order", lambda _folder: []),
                          mock.patch.object(rxe, "files_of", lambda *_: {}),
                          mock.patch.object(rxe.testpmd, "probe", lambda _settings: PLACE)):
                stack.enter_context(patch)
            try:
                return rxe.SoftRoce("read").run([64], SETTINGS), rxe.SoftRoce.accelerator
            finally:
                self.assertEqual(list((self.folder / "work").iterdir()), [])

    def started(self):
        return [(line.partition("-accel ")[2][:3], line.partition("side=")[2][:1])
                for line in (self.folder / "log").read_text().splitlines()]

    def test_where_kvm_carries_no_guest_an_interpreter_does(self):
        (line,), accelerator = self.run_fake(CONSOLE)
        self.assertEqual((line["device"], accelerator), ("QEMU, TCG", "tcg"))
        self.assertEqual(self.started(), [("kvm", "1"), ("tcg", "1"), ("tcg", "0")])

    def test_a_guest_that_does_not_start_is_said(self):
        with self.assertRaisesRegex(pair.Failed, "^failed to set MSR$"):
            self.run_fake(CONSOLE, ("kvm",))
        with mock.patch.dict(guests.UP_SECONDS, tcg=5), \
                self.assertRaisesRegex(pair.Failed, r"^a guest does not start within 5 s \(TCG\)$"):
            self.run_fake("SeaBIOS\n", ("tcg",), 60)

    def test_a_guest_that_hangs_is_ended(self):
        with mock.patch.object(rxe, "RUN_SECONDS", 1), self.assertRaisesRegex(pair.Failed, "^the guests do not come to their end$"):
            self.run_fake("guest: up\n", ("tcg",), 60)


class Runs(InFolder):
    @unittest.skipIf(rxe.KNOWN[0].missing(SETTINGS) != "", rxe.KNOWN[0].missing(SETTINGS))
    def test_sends_between_two_guests(self):
        file = self.folder / "result.json"
        done = subprocess.run([sys.executable, str(ROOT / "tools/ntb_compare"), "--programs", str(BUILD / "bench/peers"), "--verbs",
                               "--only", "rxe-send", "--sizes", "64", "--rounds", "1", "--json", str(file)],
                              env={**os.environ, "TMPDIR": str(self.folder)}, capture_output=True, text=True, timeout=500, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)
        document = json.loads(file.read_text())
        jsonschema.validate(document, json.loads((ROOT / "doc/result.schema.json").read_text()))
        self.assertEqual(document["skipped"], [], done.stdout)
        found = {point["mode"]: point for point in document["points"] if point["operation"] == "rxe-send"}
        self.assertGreater(found["latency"]["seconds"], 0)
        self.assertGreater(found["rate"]["messages_per_second"], 0)
        for point in found.values():
            self.assertRegex(point["device"], "^QEMU, (KVM|TCG)$")
            self.assertEqual(point["pattern"], "not read")
        self.assertEqual(list(self.folder.iterdir()), [file])


if __name__ == "__main__":
    unittest.main()
