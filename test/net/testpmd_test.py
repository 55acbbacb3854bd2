# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own testpmd, as its package installed it, over ports of net_plx_ntb.

    testpmd_test.py TESTPMD NET_LIBRARY RAW_LIBRARY CASE

Status 77 (skipped) where a driver of DPDK that a case wants beside ours is not installed.
"""

import ctypes
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from facts import PATIENCE, PATIENT, Failure, await_end, await_fact, expect
from pages import eal_memory

ABI_GLOBS = ("/usr/lib/*/dpdk/pmds-*",)


class Testpmd:
    """One process, which gets its commands a line at a time."""

    def __init__(self, world, name, core, vdevs, own=()):
        self.log = world.folder / f"{name}.log"
        eal = ["--lcores", f"0@{core},1@{core},2@{core}", *eal_memory(192), "--no-pci",
               "--no-shconf", "--no-telemetry", *(["-d", world.library] if world.library else [])]
        eal += [f"--vdev={vdev}" for vdev in vdevs]
        # Its prompt does not wait for what it has printed, so that must not wait either.
        command = ["stdbuf", "-o0", world.testpmd, *eal, "--", "-i", "--nb-cores=1", "--total-num-mbufs=4096", *own]
        with open(self.log, "wb") as out:
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, cwd=world.folder,
                                          env=world.environment)
        world.processes.append(self)

    def text(self):
        return self.log.read_text(errors="replace")

    def tell(self, *lines):
        try:
            self.child.stdin.write("".join(line + "\n" for line in lines).encode())
            self.child.stdin.flush()
        except BrokenPipeError:
            raise Failure(f"it has ended; it said:\n{self.text()}") from None

    def ask(self, line):
        """What it says to a command: to a second one it says that there is none."""
        before = len(self.text())
        self.tell(line, "no-such-command")
        await_fact(lambda: "Command not found" in self.text()[before:] or
                   "Bad arguments" in self.text()[before:] and self.text()[before:].count("testpmd>") > 1 or
                   self.child.poll() is not None, self.text)
        expect(self.child.poll() is None, f"it ended: {self.text()}")
        return self.text()[before:]

    def await_answer(self, line, pattern):
        found = []

        def fact():
            found[:] = [re.search(pattern, self.ask(line), re.S)]
            return found[0]
        await_fact(fact, lambda: f"'{pattern}' as an answer to {line} in {self.text()[-3000:]}")
        return found[0]

    def await_link(self, up=True, port=0):
        self.await_answer(f"show port info {port}", f"Link status: {'up' if up else 'down'}")

    def counter(self, name, port=0):
        found = re.search(rf"^{name}: (\d+)", self.ask(f"show port xstats {port}"), re.M)
        expect(found, f"no counter {name} in {self.text()}")
        return int(found.group(1))

    def await_more(self, name, port=0, more=1000):
        """Waits until a counter has grown by that much."""
        start = self.counter(name, port)
        await_fact(lambda: self.counter(name, port) >= start + more, lambda: f"{name} grows: {self.text()[-2000:]}")

    def quit(self):
        self.tell("quit")
        status = await_end(self.child, lambda: f"its end; it said:\n{self.text()}")
        expect(status == 0, f"status {status}; it said:\n{self.text()}")

    def kill(self):
        self.child.kill()
        self.child.wait()


class World:
    def __init__(self, testpmd, net, raw, folder):
        self.testpmd, self.folder = testpmd, folder
        self.library = None  # none given: they are installed
        self.environment = {**os.environ}
        if net:
            # A bare name: EAL takes no library by its path from below a folder that anyone can write.
            self.library = pathlib.Path(net).name
            paths = [str(pathlib.Path(library).parent) for library in (net, raw)]
            self.environment["LD_LIBRARY_PATH"] = ":".join(paths)
        self.processes = []
        allowed = sorted(os.sched_getaffinity(0))
        self.cores = [allowed[0], allowed[-1]]

    def port(self, number=0, cable="cable", more=""):
        return f"net_plx_ntb{number},cable={self.folder / cable},ring=1024,buffers=1024,{PATIENT}{more}"

    def start(self, name, core, *own, vdevs=None):
        return Testpmd(self, name, self.cores[core], vdevs or [self.port()], own)

    def pair(self, near_own=(), far_own=(), near_vdevs=None, far_vdevs=None):
        near = self.start("near", 0, *near_own, vdevs=near_vdevs)
        far = self.start("far", 1, *far_own, vdevs=far_vdevs)
        near.await_link()
        far.await_link()
        return near, far

    def needs_driver(self, name):
        folders = [folder for pattern in ABI_GLOBS for folder in pathlib.Path("/").glob(pattern[1:])]
        if not any(list(folder.glob(f"librte_{name}.so*")) for folder in folders):
            print(f"skipped: DPDK's driver {name} is not installed")
            sys.exit(77)


def traffic(near, far, near_mode, far_mode):
    near.tell("stop", f"set fwd {near_mode}")
    far.tell("stop", f"set fwd {far_mode}", "start")
    near.tell("start")


def both_quit(near, far):
    near.tell("stop")
    far.tell("stop")
    near.quit()
    far.quit()


def case_one_way(world):
    near, far = world.pair()
    traffic(near, far, "txonly", "rxonly")
    far.await_more("rx_good_packets")
    far.await_more("rx_q0_messages")
    near.tell("stop", "set txpkts 1518", "start")
    far.await_more("rx_long_messages", more=200)
    both_quit(near, far)


def case_both_ways(world):
    """Each program that answers, with one that sends what it answers."""
    near, far = world.pair()
    for mode in ("io", "mac", "macswap", "5tswap"):
        traffic(near, far, "flowgen", mode)
        near.await_more("rx_good_packets")
        far.await_more("tx_good_packets")
    both_quit(near, far)


def case_queues(world):
    """On two lcores that forward."""
    own = ("--rxq=4", "--txq=4", "--nb-cores=2")
    near, far = world.pair(own, own)
    traffic(near, far, "txonly", "rxonly")
    for queue in range(4):
        far.await_more(f"rx_q{queue}_packets", more=100)
    both_quit(near, far)


def case_segments(world):
    """Chains at both ends: frames of 9000 bytes in mbufs of 2048."""
    own = ("--max-pkt-len=9018", "--enable-scatter", "--tx-offloads=0x8000", "--txpkts=1500,1500,1500,1500,1500,1500",
           "--mbuf-size=2176")
    near, far = world.pair(own, own)
    traffic(near, far, "txonly", "rxonly")
    far.await_more("rx_good_bytes", more=9000 * 100)
    both_quit(near, far)


def case_link_flaps(world):
    """The link by hand and the port stopped and started, under traffic."""
    near, far = world.pair()
    traffic(near, far, "txonly", "rxonly")
    far.await_more("rx_good_packets")
    for _ in range(3):
        far.tell("set link-down port 0")
        near.await_link(up=False)
        far.tell("set link-up port 0")
        far.await_link()
        far.await_more("rx_good_packets")
    far.tell("stop", "port stop 0")
    near.await_link(up=False)
    far.tell("port start 0", "start")
    far.await_link()
    far.await_more("rx_good_packets")
    both_quit(near, far)


def case_reset_and_close(world):
    near, far = world.pair()
    traffic(near, far, "txonly", "rxonly")
    far.await_more("rx_good_packets")
    far.tell("stop", "port stop 0", "port reset 0", "port start 0", "start")
    far.await_link()
    far.await_more("rx_good_packets")
    far.tell("stop", "port stop 0", "port close 0")
    near.await_link(up=False)
    both_quit(near, far)


def case_peer_killed(world):
    """In mid-traffic; the next one gets traffic again, without a word to the survivor."""
    near, far = world.pair()
    traffic(near, far, "txonly", "rxonly")
    far.await_more("rx_good_packets")
    far.kill()
    near.await_link(up=False)
    # With other settings: two queues, another ring, other buffers.
    far = world.start("far-again", 1, "--rxq=2", "--txq=2",
                      vdevs=[f"net_plx_ntb0,cable={world.folder / 'cable'},ring=2048,buffers=512,buf=4096,{PATIENT}"])
    far.tell("set fwd rxonly", "start")
    far.await_link()
    far.await_more("rx_good_packets")
    both_quit(near, far)


def case_mtu(world):
    near, far = world.pair()
    near.tell("port stop 0")
    answer = near.ask("port config mtu 0 60000")
    expect("expected at most 2030" in answer, answer)
    near.tell("port config mtu 0 2030", "port start 0")
    near.await_answer("show port info 0", r"MTU: 2030")
    both_quit(near, far)


PCAP_HEADER = struct.pack("<IHHIIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)


def captured(frame):
    """As it lies in a file behind that header."""
    return struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame


def ping_frame(number):
    """An ICMP echo request to testpmd, which answers to any address."""
    payload = struct.pack("!BBHHH", 8, 0, 0, 1, number) + bytes(40)
    total = sum(struct.unpack(f"!{len(payload) // 2}H", payload))
    checksum = ~(total + (total >> 16)) & 0xffff
    icmp = payload[:2] + struct.pack("!H", checksum) + payload[4:]
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(icmp), number, 0, 64, 1, 0, bytes((10, 0, 0, 1)), bytes((10, 0, 0, 2)))
    total = sum(struct.unpack("!10H", ip))
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack("!H", ~total & 0xffff) + ip[12:]
    return bytes((2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0)) + ip + icmp


def case_ping_of_a_capture(world):
    """net_pcap beside the port: requests of a file, answers of icmpecho behind the bridge into a file."""
    world.needs_driver("net_pcap")
    count = 20
    frames = [ping_frame(number) for number in range(count)]
    requests, answers = world.folder / "requests.pcap", world.folder / "answers.pcap"
    requests.write_bytes(PCAP_HEADER + b"".join(map(captured, frames)))
    # At start testpmd would throw away what has come.
    near, far = world.pair(["--no-flush-rx"], ["--no-flush-rx"], near_vdevs=[world.port(), f"net_pcap0,rx_pcap={requests},tx_pcap={answers}"])
    traffic(near, far, "io", "icmpecho")
    near.await_answer("show port stats 1", rf"TX-packets: {count}\b")
    both_quit(near, far)
    got = answers.read_bytes()[24:]
    at = 0
    for number in range(count):
        length = struct.unpack_from("<I", got, at + 8)[0]
        frame = got[at + 16:at + 16 + length]
        expect(frame[34] == 0 and frame[40:42] == struct.pack("!H", number), f"answer {number}: {frame.hex()}")
        at += 16 + length
    expect(at == len(got), f"{len(got)} bytes")


def case_two_bridges_in_a_row(world):
    """Frames through a host that forwards between two ports."""
    middle = world.start("middle", 1, vdevs=[world.port(0, "left"), world.port(1, "right")])
    near = world.start("near", 0, vdevs=[world.port(0, "left")])
    far = world.start("far", 0, vdevs=[world.port(0, "right")])
    for port in range(2):
        middle.await_link(port=port)
    near.await_link()
    far.await_link()
    middle.tell("set fwd io", "start")
    traffic(near, far, "txonly", "rxonly")
    far.await_more("rx_good_packets")
    near.quit()
    far.quit()
    middle.quit()


def case_bonding(world):
    """Two cards as one port; it goes on over one of them."""
    world.needs_driver("net_bond")

    # DPDK 23.11 has another word for it, in its programs' help, too.
    member = "member" if b"bonding member" in pathlib.Path(world.testpmd).read_bytes() else "slave"

    def vdevs():
        ports = [world.port(n, f"cable{n}") for n in range(2)]
        # With none named, each end sends and receives by the link that it has seen first: not always the same.
        return [*ports, f"net_bonding0,mode=1,{member}=net_plx_ntb0,{member}=net_plx_ntb1,primary=net_plx_ntb0"]
    near = world.start("near", 0, "--portlist=2", vdevs=vdevs())
    far = world.start("far", 1, "--portlist=2", vdevs=vdevs())
    near.await_link(port=2)
    far.await_link(port=2)
    traffic(near, far, "txonly", "rxonly")
    far.await_more("rx_good_packets", port=2)
    far.tell("set link-down port 0")
    near.await_link(up=False, port=0)
    far.await_more("rx_good_packets", port=2)
    both_quit(near, far)


def case_secondary_process(world):
    """Programs that look into a running one: each refused in one line. They share huge pages and files of EAL."""
    free = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
    pages = world.folder / "pages"
    pages.mkdir()
    # In a mount namespace of its own: the mount ends with this process, whatever ends it.
    mounted = (free.exists() and int(free.read_text()) >= 96 and ctypes.CDLL(None).unshare(0x20000) == 0 and
               subprocess.run(["mount", "--make-rprivate", "/"], check=False).returncode == 0 and
               subprocess.run(["mount", "-t", "hugetlbfs", "none", pages], check=False).returncode == 0)
    if not mounted:
        print("skipped: needs 96 free huge pages of 2 MB, and root for a file system of them")
        sys.exit(77)
    prefix = f"ntb{os.getpid()}"
    eal = ["--no-pci", "--no-telemetry", f"--file-prefix={prefix}", f"--huge-dir={pages}", "-d", world.library]
    command = ["stdbuf", "-o0", world.testpmd, "--lcores", f"0@{world.cores[0]},1@{world.cores[0]}", "-m", "64", *eal,
               f"--vdev={world.port()}", "--", "-i", "--total-num-mbufs=4096"]
    log = world.folder / "primary.log"
    done = {}
    with open(log, "wb") as out:
        primary = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=out, env=world.environment)
    try:
        await_fact(lambda: "testpmd>" in log.read_text(errors="replace") or primary.poll() is not None, log.read_text)
        for name, own in (("dpdk-proc-info", ["--stats"]),
                          ("dpdk-pdump", ["--pdump", f"port=0,queue=*,rx-dev={world.folder}/rx.pcap"])):
            program = pathlib.Path(world.testpmd).with_name(name)
            done[name] = subprocess.run([program, *eal, "--", *own], capture_output=True, text=True, timeout=PATIENCE,
                                        env=world.environment, check=False)
        # They did the primary no harm.
        primary.stdin.write(b"show port info 0\n")
        primary.stdin.flush()
        await_fact(lambda: "Driver name: net_plx_ntb" in log.read_text(errors="replace"), log.read_text)
    finally:
        primary.send_signal(signal.SIGTERM)
        primary.communicate(timeout=PATIENCE)
        subprocess.run(["umount", pages], check=False)
        shutil.rmtree(f"/var/run/dpdk/{prefix}", ignore_errors=True)
    for name, process in done.items():
        said = process.stdout + process.stderr
        expect(process.returncode != 0, f"{name}: {said}")
        expect(said.count("plx_ntb: net_plx_ntb0: secondary processes are not supported") == 1, f"{name}: {said}")


def case_suites_of_dpdk(world):
    """Suites of dpdk-test that take the ports that are there; without one they would make their own."""
    program = pathlib.Path(world.testpmd).with_name("dpdk-test")
    if not program.exists():
        print("skipped: dpdk-test is not installed")
        sys.exit(77)
    eal = ["--no-huge", "-m", "300", "--no-pci", "--no-shconf", "--no-telemetry", "-d", world.library]
    ports = [f"--vdev=net_plx_ntb{n},cable=mem:suites,ring=1024,buffers=1024" for n in range(2)]
    for suite in ("bitratestats_autotest", "latencystats_autotest", "event_eth_tx_adapter_autotest"):
        done = subprocess.run([program, *eal, "-l", ",".join(map(str, sorted(set(world.cores)))), *ports], text=True,
                              capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False,
                              env={**world.environment, "DPDK_TEST": suite})
        said = done.stdout + done.stderr
        expect(done.returncode == 0 and "Test OK" in said, f"{suite}: {said}")
        expect(re.search(r"Tests Passed : +[1-9]", said) and re.search(r"Tests Failed : +0", said), f"{suite}: {said}")


CASES = {name[5:]: function for name, function in globals().items() if name.startswith("case_")}


def main():
    testpmd, net, raw, case = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="ntbmsg-net-") as folder:
        world = World(testpmd, net, raw, pathlib.Path(folder))
        try:
            CASES[case](world)
        except Failure as failure:
            print(failure, file=sys.stderr)
            return 1
        finally:
            for process in world.processes:
                process.kill()
    return 0


if __name__ == "__main__":
    sys.exit(main())
