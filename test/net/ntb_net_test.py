# SPDX-License-Identifier: BSD-3-Clause
"""tools/ntb-net: the kernels of two network namespaces, joined over the twin.

    ntb_net_test.py NTB_NET PROGRAM EXAMPLE_UNIT [TESTPMD NET_LIBRARY RAW_LIBRARY]

Status 77 (skipped) where namespaces or tap devices are not to be had.
"""

import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
import testpmd_test
from ntb_net_hosts import ADDRESSES, PATIENCE, PING, PROGRAM, TOOL, Hosts, await_fact, lives, main, run

UNIT = pathlib.Path(sys.argv.pop(1))
# A program of DPDK's as the peer, where there is one.
STOCK = [sys.argv.pop(1) for _ in range(3)] if len(sys.argv) >= 4 and "testpmd" in sys.argv[1] else None
BYTES = 64 << 20

# Each prints one line that the test compares. Data of a seed, so that only sums have to be compared.
RECEIVE = """
import hashlib, socket, sys
server = socket.create_server((sys.argv[1], 5001))
print("listens", flush=True)
peer, sum, got = server.accept()[0], hashlib.sha256(), 0
while block := peer.recv(1 << 18):
    sum.update(block)
    for _ in range(got >> 23, (got + len(block)) >> 23):
        print("some", flush=True)
    got += len(block)
print(got, sum.hexdigest())
"""
SEND = """
import hashlib, random, socket, sys
block, sum = random.Random(1).randbytes(1 << 20), hashlib.sha256()
peer = socket.create_connection((sys.argv[1], 5001))
for n in range(int(sys.argv[2]) >> 20):
    peer.sendall(block)
    sum.update(block)
    if len(sys.argv) > 3:
        sys.stdin.readline()
peer.close()
print(int(sys.argv[2]), sum.hexdigest())
"""


class NtbNet(Hosts):
    def transfer(self, sender, receiver, count=BYTES):
        server = self.start(receiver, RECEIVE, receiver.address)
        self.assertEqual(self.line(server), "listens")
        client = self.start(sender, SEND, receiver.address, count)
        self.assertEqual(self.end_of(client), self.end_of(server))

    def ping_stock(self, host, size):
        """testpmd answers to any address, for which it gives its own."""
        self.assertEqual(self.end_of(self.start(host, PING, "10.213.0.77", size)), "10")

    def test_ping_and_tcp_both_ways(self):
        self.both_up()
        a, b = self.hosts
        for one, other in ((a, b), (b, a)):
            for size in (16, 1400, 8000):
                self.ping(one, other, size)
            before = [one.value(f"statistics/tx_{what}") for what in ("bytes", "packets")]
            self.transfer(one, other)
            sent = [one.value(f"statistics/tx_{what}") - was for what, was in zip(("bytes", "packets"), before)]
            # TCP is not segmented on the way: frames are longer than the MTU.
            self.assertGreater(sent[0] / sent[1], 3000)

    def test_without_offloads_and_with_a_large_mtu(self):
        self.both_up("--mtu", "65521", "--", "--no-offloads")
        a, b = self.hosts
        self.ping(a, b, 65000)
        self.transfer(a, b)
        self.transfer(b, a)

    def test_one_side_without_offloads(self):
        self.hosts[0].up("--", "--no-offloads")
        self.hosts[1].up()
        for host in self.hosts:
            await_fact(lambda: "offloads off" in (host.state() / "log").read_text(), "a hello")
        self.transfer(*self.hosts)
        self.transfer(*reversed(self.hosts))

    def test_several_queues_and_a_peer_with_fewer(self):
        self.hosts[0].up("--queues", "4")
        self.hosts[1].up("--queues", "2")
        for host in self.hosts:
            await_fact(lambda: "peer: queues 2" in (host.state() / "log").read_text(), "a hello")
        a, b = self.hosts
        for size in (16, 1400):
            self.ping(a, b, size)
        self.transfer(a, b)
        self.transfer(b, a)

    def test_a_side_that_is_killed_and_started_again(self):
        """A TCP connection goes on where it was."""
        self.both_up()
        a, b = self.hosts
        server = self.start(b, RECEIVE, b.address)
        self.assertEqual(self.line(server), "listens")
        count = 32 << 20
        client = self.start(a, SEND, b.address, count, "line by line")
        def eight_more():
            """Through, so that TCP waits no longer than the next gap takes."""
            client.stdin.write("\n" * 8)
            client.stdin.flush()
            self.assertEqual(self.line(server), "some")

        eight_more()
        for killed, other in ((a, b), (b, a)):
            os.kill(killed.pid(), signal.SIGKILL)
            other.await_carrier(0)
            await_fact(lambda: killed.value("carrier") is None, "the interface ends with its process")
            self.assertIn("ended", killed.tool("status", check=False).stdout)
            self.assertIn("waits for its peer", other.tool("status", check=False).stdout)
            killed.up()
            killed.await_carrier(1)
            other.await_carrier(1)
            # A network may lose the first frames after a restart, but not go on to.
            await_fact(lambda: self.answers(a, b, 16) == 10, "each request is answered")
            eight_more()
        eight_more()
        self.assertEqual(self.end_of(client), self.end_of(server))

    def test_status_and_down(self):
        # A program is known by its arguments, whatever its name.
        other_name = self.folder / "other-name"
        other_name.symlink_to(PROGRAM)
        self.both_up("--program", other_name)
        other_name.unlink()
        a, b = self.hosts
        self.ping(a, b, 16)
        done = a.tool("status", "ntb0")
        self.assertRegex(done.stdout, rf"^{a.netns}@ntb0: connected, queues 1, offloads on, process {a.pid()}; "
                                      r"received \d+ frames, \d+ bytes; sent \d+ frames, \d+ bytes\n$")
        pids = [host.pid() for host in self.hosts]
        a.tool("down")
        b.await_carrier(0)
        b.tool("down")
        for host, pid in zip(self.hosts, pids):
            self.assertFalse(lives(pid))
            self.assertIsNone(host.value("carrier"))
            self.assertFalse(host.state().exists())
        self.assertEqual(list(self.folder.iterdir()), [])
        self.assertEqual([path for path in pathlib.Path("/var/run/dpdk").glob("ntb-net.*") if a.netns in path.name], [])

    def test_an_idle_forwarder_sleeps(self):
        self.both_up()
        a, b = self.hosts
        self.ping(a, b, 16)

        def slept():
            """The lcores of a, in the system call that waits."""
            waits = [task.joinpath("wchan").read_text() for task in pathlib.Path(f"/proc/{a.pid()}/task").iterdir()
                     if task.joinpath("comm").read_text().startswith(("ntbmsg-net", "rte-worker", "lcore-worker"))]
            return waits and all("poll" in wait for wait in waits)
        await_fact(slept, "all threads that forward sleep")

    def test_foreground_as_the_unit_has_it(self):
        start = re.search(r"^ExecStart=\S*/ntb-net (.*)$", UNIT.read_text(), re.M).group(1)
        words = start.replace("%i", "ntb0").replace(
            "$OPTIONS", f"--program {PROGRAM} --cable {self.folder}/cable --netns {self.hosts[0].netns} "
                        f"--address {ADDRESSES[0]}/24").split()
        child = subprocess.Popen(["bash", TOOL, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(lambda: (child.kill(), child.communicate()))
        self.hosts[1].up()
        self.hosts[1].await_carrier(1)
        await_fact(lambda: ADDRESSES[0] in run("ip", "-n", self.hosts[0].netns, "address").stdout, "its address")
        self.ping(self.hosts[1], self.hosts[0], 16)
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(timeout=PATIENCE), 0, child.stdout.read())
        self.hosts[1].await_carrier(0)
        self.assertFalse(self.hosts[0].state().exists())

    @unittest.skipUnless(STOCK, "needs dpdk-testpmd")
    def test_a_stock_program_as_the_peer(self):
        """It says no hello and gets plain frames; what it sends is bounded before it is used."""
        host = self.hosts[0]
        host.up("--queues", "2")
        world = testpmd_test.World(*STOCK, self.folder)
        self.addCleanup(lambda: [process.kill() for process in world.processes])
        requests = self.folder / "requests.pcap"
        frames = [head + kind + rest for head in (bytes(6) + b"\2" * 6, b"\xff" * 6 + b"\2" * 6)
                  for kind in (b"\x88\xb5", b"\x88\xb6", b"\x08\x00", b"\xff\xff")
                  for rest in (b"", b"\0", b"\0" * 46, b"\xff" * 46, b"\1\1\xff\xff" + b"\0" * 42, b"\1\xff\0\0" * 12,
                               # Segments of 0 bytes, a checksum behind the end, another kind of segmentation.
                               struct.pack("<BBHHHH", 1, 1, 65535, 0, 65535, 65535) + b"\x08\x00" + bytes(100),
                               struct.pack("<BBHHHH", 0, 9, 0, 1, 0, 0) + b"\x08\x00E" + bytes(1000))]
        requests.write_bytes(testpmd_test.PCAP_HEADER + b"".join(map(testpmd_test.captured, frames)))
        world.needs_driver("net_pcap")
        peer = world.start("peer", 1, "--no-flush-rx", vdevs=[
            f"net_plx_ntb0,cable={self.folder / 'cable'}", f"net_pcap0,rx_pcap={requests},tx_pcap={self.folder}/answers.pcap"])
        host.await_carrier(1)
        self.assertIn("connected to another program", host.tool("status").stdout)
        peer.tell("set portlist 0", "set fwd icmpecho", "start")
        for size in (16, 1400):
            self.ping_stock(host, size)
        peer.tell("stop", "clear port stats 0", "set portlist 0,1", "set fwd io", "start")
        peer.await_answer("show port stats 0", rf"TX-packets: {len(frames)}\b")
        peer.quit()
        host.await_carrier(0)
        # Of what a lying hello announced, nothing is left.
        self.hosts[1].up()
        self.hosts[1].await_carrier(1)
        await_fact(lambda: "peer: queues 1, offloads on" in (self.hosts[1].state() / "log").read_text(), "a hello")
        self.transfer(host, self.hosts[1])
        os.kill(host.pid(), signal.SIGTERM)
        await_fact(lambda: "queue 1" in (host.state() / "log").read_text(), "a report at the end")
        # Short ones and hellos were dropped here, wrong offload headers by the kernel.
        self.assertRegex((host.state() / "log").read_text(), r"refused by the kernel [1-9]\d*, invalid [1-9]\d*")

    def test_what_is_refused(self):
        host = self.hosts[0]
        for words, said in ((("--mtu", "70000"), "mtu"), (("--queues", "0"), "--queues 0"),
                            (("--queues", "65"), "--queues 65: expected"), (("--cpus", "x"), "--cpus x"),
                            (("--address", "10.0.0.300/24"), "cannot have the address"),
                            (("--card", "0000:05:00.0"), "exclude each other"), (("--nonsense",), "unknown option"),
                            (("..",), "no name of an interface"), (("--", "--port", "net_null0"), "no port net_null0")):
            with self.subTest(words):
                done = host.up(*words, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(said, done.stderr)
                self.assertFalse(host.state().exists())
                self.assertIsNone(host.value("carrier"))
        for command in ("down", "status"):
            done = host.tool(command, "--mtu", "1500", check=False)
            self.assertEqual((done.returncode, "--mtu is an option of up" in done.stderr), (2, True), done.stderr)
        host.up()
        self.assertIn("is up already", host.up(check=False).stderr)
        run("ip", "-n", self.hosts[1].netns, "tuntap", "add", "dev", "ntb0", "mode", "tap")
        self.assertIn("there is an interface of this name", self.hosts[1].up(check=False).stderr)


if __name__ == "__main__":
    main()
