# SPDX-License-Identifier: BSD-3-Clause
"""The kernels of two network namespaces, joined by the kernel itself, by ours over the twin, and by DPDK's own means:
what a TCP connection of unchanged programs between them gets."""
import dataclasses
import os
import pathlib
import shutil
import subprocess
import sys

from ntb_report import model

from . import pair, peers, programs

LOOPBACK, VETH, MEMIF, OURS = "loopback", "veth", "memif", "ntb-net"
LABELS = {way: model.WAYS[way] for way in (LOOPBACK, VETH, MEMIF, OURS)}
INTERFACE = "ntb0"
ADDRESSES = ("10.213.0.1", "10.213.0.2")
SETUP_SECONDS = 30
COMMAND_SECONDS = 10

# A datagram to a port where no one listens is answered with an error as soon as there is a way.
REACH = """
import socket, sys
one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
one.settimeout(0.05)
one.connect((sys.argv[1], 9))
for _ in range(400):
    try:
        one.send(b"x")
        one.recv(1)
    except ConnectionRefusedError:
        sys.exit(0)
    except OSError:
        pass
sys.exit("the other kernel does not answer")
"""


class Network:
    """Two namespaces of the network. Each is held by a process of the group, so that it ends with that, however we do."""

    def __init__(self, processes):
        self.processes = processes
        self.pids = [self.hold() for _ in range(2)]

    def hold(self):
        number = self.processes.start(["unshare", "--net", "sleep", "infinity"])
        pid = self.processes.members[number].pid
        programs.await_fact(lambda: os.readlink(f"/proc/{pid}/ns/net") != os.readlink("/proc/self/ns/net"), self.processes,
                            number, COMMAND_SECONDS, "there is no namespace")
        return pid

    def enter(self, side):
        return ["nsenter", "-t", str(self.pids[side]), "-n"]

    def call(self, side, *words):
        done = subprocess.run([*self.enter(side), *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=SETUP_SECONDS, check=False)
        if done.returncode != 0:
            raise pair.Failed(pair.last_line(done.stderr) or f"{words[0]} ended with status {done.returncode}")

    def has(self, side, interface):
        return f"{interface}:" in pathlib.Path(f"/proc/{self.pids[side]}/net/dev").read_text()

    def forward(self, side, words, environment):
        """Starts a program that makes the interface there."""
        number = self.processes.start([*self.enter(side), *words], environment)
        programs.await_fact(lambda: self.has(side, INTERFACE), self.processes, number, SETUP_SECONDS, f"there is no {INTERFACE}")

    def address(self, interfaces=(INTERFACE, INTERFACE)):
        for side, interface in enumerate(interfaces):
            self.call(side, "ip", "address", "add", f"{ADDRESSES[side]}/24", "dev", interface)
            self.call(side, "ip", "link", "set", interface, "up")
        self.call(1, sys.executable, "-c", REACH, ADDRESSES[0])


def eal(side, settings):
    cpu = settings.cpus[side]
    return ["--lcores", f"0@{cpu},1@{cpu}", "--file-prefix", f"side{side}", "--no-pci", "--no-telemetry",
            *(peers.HUGE if settings.huge else peers.SMALL_PAGES)]


def join_by_veth(network, _settings):
    network.call(0, "ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns", network.pids[1])
    network.address()


def net_program(settings):
    return settings.programs.parents[1] / "apps/net/ntbmsg-net"


def join_by_ours(network, settings):
    cable = network.processes.folder / peers.SOCKET
    environment = {"RUNTIME_DIRECTORY": str(network.processes.folder)}
    for side in range(2):
        network.forward(side, [net_program(settings), *eal(side, settings), f"--vdev=net_plx_ntb0,zero_copy=1,cable={cable}",
                               "--", "--interface", INTERFACE], environment)
    network.address()


def join_by_memif(network, settings):
    environment = {"RUNTIME_DIRECTORY": str(network.processes.folder)}
    common = f"id=1,socket={network.processes.folder / peers.SOCKET},socket-abstract=no,bsize=2048"
    for side, role in enumerate(("server", "client")):
        network.forward(side, ["dpdk-testpmd", *eal(side, settings), f"--vdev=net_tap0,iface={INTERFACE}",
                               f"--vdev=net_memif0,role={role},{common}", "--", "--nb-cores=1", "--total-num-mbufs=8192",
                               "--forward-mode=io", "--stats-period", "60", "--auto-start"], environment)
    network.address()


JOINS = {VETH: join_by_veth, MEMIF: join_by_memif, OURS: join_by_ours}


@dataclasses.dataclass(frozen=True)
class Way(programs.Way):
    """A load between two kernels. Loopback is one kernel with itself."""

    @property
    def label(self):
        return f"{self.load.label}, {LABELS[self.way]}"

    def missing(self, settings):
        if os.geteuid() != 0:
            return "takes root: it makes namespaces of the network"
        if self.way in (MEMIF, OURS) and not pathlib.Path("/dev/net/tun").exists():
            return "there is no /dev/net/tun; run: modprobe tun"
        if self.way == MEMIF and not shutil.which("dpdk-testpmd"):
            return "apt-get install dpdk"
        if self.way == MEMIF and not settings.huge:
            return "needs 2 MB hugepages"
        if self.way == OURS and not net_program(settings).exists():
            return f"{net_program(settings).name} was not built"
        return super().missing(settings)

    def prepare(self, processes, settings):
        network = Network(processes)
        if self.way == LOOPBACK:
            network.call(0, "ip", "link", "set", "lo", "up")
            return programs.Place(processes.folder, self.way, programs.free_port(), "127.0.0.1"), (network.enter(0),) * 2
        JOINS[self.way](network, settings)
        return (programs.Place(processes.folder, self.way, programs.free_port(), ADDRESSES[0]),
                (network.enter(0), network.enter(1)))


LOADS = tuple(load for load in programs.LOADS if load.name in ("sockperf-sleep", "iperf3-1", "iperf3-4"))
KNOWN = tuple(Way(load, way) for load in LOADS for way in LABELS)
