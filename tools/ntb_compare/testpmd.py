# SPDX-License-Identifier: BSD-3-Clause
"""DPDK's own testpmd between two processes: it looks at no payload, so it is shown apart. It gives one figure a
second, and is started anew for each size."""
import dataclasses
import pathlib
import re
import shutil
import time

from . import pair, peers

SAMPLES = 3  # the first one is of starting
SAMPLE_SECONDS = 15
NOTHING = {"count": 0, "seconds": 0.0}
FORWARD = ("txonly", "rxonly")


@dataclasses.dataclass(frozen=True)
class TestpmdPeer(peers.Peer):
    ports: tuple = ()  # --vdev of side 0, who sends, and of side 1
    rounds: int = 3  # it takes seconds, so it does not take part in every one

    def missing(self, settings):
        if not shutil.which("dpdk-testpmd"):
            return "apt-get install " + " ".join(self.packages)
        return super().missing(settings)

    def sizes(self, wanted):
        """Two are enough to place it."""
        return [size for size in super().sizes(wanted) if size in (64, 1518)]

    def run(self, sizes, settings):
        lines = []
        for size in sizes:
            before = probe(settings)
            rate, ran = self.measure(size, settings)
            after = probe(settings)
            near, far = sorted((before["probe_ns"][0], after["probe_ns"][0]))
            lines.append({**before, "bytes": size, "probe_ns": [before["probe_ns"][0], after["probe_ns"][0]],
                          "stayed": before["class"] == after["class"] and far <= 1.25 * near, "ran": ran,
                          "messages": {"count": rate, "seconds": 1.0}})
        return lines

    def measure(self, size, settings):
        """Packets per second at the receiver, and which part of the time both had their CPUs."""
        with pair.group() as processes:
            for side in (1, 0):
                number = processes.start(self.command(side, size, processes.folder, settings),
                                         self.variables(processes.folder, settings))
                if side == 1:
                    receiver = number
                    processes.await_file(peers.SOCKET, number, peers.SERVER_SECONDS)
            rates = await_rates(processes, receiver)
            return rates[-1], min(part_running(process.pid) for process in processes.members)

    def command(self, side, size, folder, settings):
        cpu = settings.cpus[side]
        port = self.ports[side].format(socket=folder / peers.SOCKET)
        # Its threads share a CPU, so real-time priority would keep the one that prints from it.
        first = ["nice", "-n", "-20"] if settings.realtime else []
        eal = ["--no-pci", "--no-telemetry", "--in-memory", "--single-file-segments", "--file-prefix", f"side{side}",
               *(["-d", peers.PORT_DRIVER] if self.port else []), "--lcores", f"0@{cpu},1@{cpu}", "--main-lcore", "0", port]
        return [*first, "dpdk-testpmd", *eal, "--", "--nb-cores=1", "--total-num-mbufs=8192",
                "--forward-mode=" + FORWARD[side], f"--txpkts={size}", "--burst=32", "--rxd=1024", "--txd=1024",
                "--stats-period", "1", "--auto-start"]


def probe(settings):
    """How near the CPUs are to each other now."""
    return dataclasses.replace(peers.LIMIT, form="probe").run([64], settings)[0]


def await_rates(processes, receiver):
    end = time.monotonic() + SAMPLE_SECONDS
    while True:
        rates = [int(n) for n in re.findall(r"Rx-pps:\s+(\d+)", processes.text("out", receiver))]
        if len(rates) >= SAMPLES:
            return rates
        processes.check_running()
        if time.monotonic() > end:
            raise pair.Failed("testpmd gives no figure")
        pair.Signals.check()
        time.sleep(0.02)


def part_running(pid):
    ran = waited = 0
    for file in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
        words = file.read_text().split()
        ran, waited = ran + int(words[0]), waited + int(words[1])
    return ran / (ran + waited) if ran + waited else 0.0


def memif(zero_copy):
    common = "id=1,socket={socket},socket-abstract=no,rsize=10,bsize=2048"
    return (f"--vdev=net_memif0,role=client,{common},zero-copy={zero_copy}", f"--vdev=net_memif0,role=server,{common}")


def peer(name, label, ports, **more):
    return TestpmdPeer(name, label, "peer_limit", read=False, huge=True, packages=("dpdk",), ports=ports, **more)


# The sender is the guest, whose frames the other process copies; neither side reads them.
VHOST = ("--vdev=net_virtio_user0,path={socket},queues=1,queue_size=1024,packed_vq=1,in_order=1,mrg_rxbuf=0",
         "--vdev=net_vhost0,iface={socket},queues=1")
PORT = "--vdev=net_plx_ntb0,cable={socket}"

PEERS = (peer("testpmd-port", "testpmd, ntbmsg port", (PORT, PORT), port=True),
         peer("testpmd-port-zerocopy", "testpmd, ntbmsg port, zero-copy", (PORT + ",zero_copy=1",) * 2, port=True),
         peer("testpmd-copy", "testpmd, memif, copy", memif("no")),
         peer("testpmd-zerocopy", "testpmd, memif, zero-copy", memif("yes")),
         peer("testpmd-vhost", "testpmd, virtio-user and vhost", VHOST))
