# SPDX-License-Identifier: BSD-3-Clause
"""What is compared: one entry for each way of getting a message from one process to another."""
import dataclasses
import json
import os
import pathlib
import shutil

from . import pair

PAIR_SECONDS = 120
SERVER_SECONDS = 60
# Up to here one mbuf of 2 KiB holds a message; DPDK peers, ours too, are set up anew for longer ones.
SMALL_UP_TO = 1518
SOCKET = "socket"
PORT_DRIVER = "librte_net_plx_ntb.so"

EAL = ["--no-pci", "--no-telemetry", "--log-level=lib.eal:error", "--log-level=lib.vhost:error", "-l", "{cpu}",
       "--file-prefix", "side{side}"]
HUGE = ["--in-memory"]
SMALL_PAGES = ["--no-huge", "--no-shconf", "-m", "256"]


@dataclasses.dataclass(frozen=True)
class Settings:
    """Of a whole run."""
    programs: pathlib.Path  # folder of the peer programs
    cpus: tuple
    run_ms: int
    realtime: bool
    huge: bool


@dataclasses.dataclass(frozen=True)
class Peer:
    name: str
    label: str
    program: str
    kind: str = "messages"  # or "put", "limit"
    read: bool = True  # the payload is written at one end and every line of it read at the other
    packages: tuple = ()  # of Debian, beside the program itself
    form: str = ""
    largest: int = 65536
    smallest: int = 8
    eal: bool = False
    huge: bool = False  # only with hugepages
    words: tuple = ()  # of both sides
    side_words: tuple = ((), ())
    server_first: bool = False  # side 1 makes SOCKET, which side 0 needs at once
    environment: tuple = ()
    rounds: int = 100  # it takes part in so many at most
    port: bool = False  # over our port: with the drivers that were built, not installed ones

    def missing(self, settings):
        """Why it cannot be run here, or an empty text."""
        if not (settings.programs / self.program).exists():
            return f"{self.program} was not built: apt-get install {' '.join(self.packages)}" if self.packages \
                else f"{self.program} was not built"
        if self.port and not (port_folder(settings) / PORT_DRIVER).exists():
            return f"{PORT_DRIVER} was not built"
        if self.huge and not settings.huge:
            return "needs 2 MB hugepages"
        return ""

    def sizes(self, wanted):
        return [size for size in wanted if self.smallest <= size <= self.largest]

    def variables(self, folder, settings):
        """Of the environment of both sides."""
        made = {"RUNTIME_DIRECTORY": str(folder), **dict(self.environment)}
        if self.port:
            paths = [port_folder(settings), port_folder(settings).parents[1] / "raw/plx_ntb",
                     *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
            made["LD_LIBRARY_PATH"] = ":".join(map(str, paths))
        return made

    def run(self, sizes, settings):
        """The lines that the peer programs print, one for each size. Failed says why not."""
        parts = [sizes]
        if self.eal:
            parts = [[s for s in sizes if s <= SMALL_UP_TO], [s for s in sizes if s > SMALL_UP_TO]]
        lines = []
        for part, form in zip(parts, (self.form or "small", "large")):
            if part:
                lines += self.run_part(part, form if self.eal else self.form, settings)
        return lines

    def run_part(self, sizes, form, settings):
        with pair.group() as processes, pair.shared_memory() as shared:
            self.start(processes, shared, sizes, form, settings)
            processes.await_ends(PAIR_SECONDS)
            return parse_lines(processes.text("out", processes.side0))

    def start(self, processes, shared, sizes, form, settings):
        for side in (1, 0):
            own = self.own_words(side, form, processes.folder, settings)
            number = processes.start(
                [settings.programs / self.program, "--side", side, "--cpu", settings.cpus[side],
                 *common_words(shared, sizes, form, processes.folder, settings), "--", *own],
                self.variables(processes.folder, settings))
            if side == 1 and self.server_first:
                processes.await_file(SOCKET, number, SERVER_SECONDS)
            processes.side0 = number

    def own_words(self, side, form, folder, settings):
        words = [*self.words, *self.side_words[side]]
        if self.eal:
            words = [*EAL, *(HUGE if settings.huge else SMALL_PAGES), *words]
        return [word.format(side=side, cpu=settings.cpus[side], folder=folder, socket=folder / SOCKET,
                            bytes=2048 if form == "small" else 8192) for word in words]


def port_folder(settings):
    """Where the build has the port's driver: EAL takes it by name from there, not by a path that anyone can write."""
    return settings.programs.parents[1] / "drivers/net/plx_ntb"


class MpiPeer(Peer):
    """Both ranks are started by mpirun, with one command line."""

    def missing(self, settings):
        if not shutil.which("mpirun"):
            return f"apt-get install {' '.join(self.packages)}"
        return super().missing(settings)

    def start(self, processes, shared, sizes, form, settings):
        processes.side0 = processes.start(
            ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", "2", *self.words,
             settings.programs / self.program, *common_words(shared, sizes, form, processes.folder, settings), "--",
             *settings.cpus], {"TMPDIR": str(processes.folder)})


def common_words(shared, sizes, form, folder, settings):
    return ["--shared", shared, "--folder", folder, "--sizes", ",".join(map(str, sizes)), "--run-ms", settings.run_ms,
            "--form", form, *(["--realtime"] if settings.realtime else [])]


def parse_lines(text):
    lines = []
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            lines.append(json.loads(line))
        except ValueError as error:
            raise pair.Failed(f"not understood: {line[:80]}") from error
    return lines


def memif(name, label, ring_bits, zero_copy):
    common = f"id=1,socket={{socket}},socket-abstract=no,rsize={ring_bits},bsize={{bytes}}"
    return Peer(name, label, "peer_ethdev", eal=True, huge=True, largest=8192, server_first=True,
                packages=("libdpdk-dev",), words=("--single-file-segments",),
                side_words=((f"--vdev=net_memif0,role=client,{common},zero-copy={zero_copy}",),
                            (f"--vdev=net_memif0,role=server,{common}",)))


def mpi(name, label, single_copy):
    return MpiPeer(name, label, "peer_mpi", packages=("openmpi-bin", "libopenmpi-dev"), words=(
        "--mca", "plm", "isolated", "--mca", "btl", "vader,self", "--mca", "mpi_yield_when_idle", "0",
        "--mca", "btl_vader_single_copy_mechanism", single_copy))


def ucx(name, label, transports, program="peer_ucx", kind="messages"):
    return Peer(name, label, program, kind=kind, packages=("libucx-dev",),
                environment=(("UCX_TLS", transports), ("UCX_LOG_LEVEL", "error")))


LIMIT = Peer("limit", "limit of the machine", "peer_limit", kind="limit")
OURS = Peer("queue", "ntbmsg, queue pair", "peer_queue_pair", eal=True,
            words=("--vdev=raw_plx_ntb0,cable={folder}/cable",))
CHANNEL = Peer("send", "ntbmsg, channel", "peer_channel", eal=True, words=OURS.words)
# The same queue pair as a port, whose frames are copied into the application's pool.
PORT = Peer("port", "ntbmsg, port", "peer_ethdev", eal=True, port=True, largest=1518, packages=("libdpdk-dev",),
            words=("-d", PORT_DRIVER, "--vdev=net_plx_ntb0,cable={folder}/cable"))
WRITE = Peer("write", "ntbmsg, write", "peer_write", kind="put", eal=True, words=OURS.words)
OTHERS = (
    memif("memif-copy", "net_memif, copy", 10, "no"),
    memif("memif-copy-4096", "net_memif, copy, 4096 slots", 12, "no"),
    memif("memif-zerocopy", "net_memif, zero-copy", 10, "yes"),
    # A frame shorter than 64 bytes is not passed on.
    Peer("vhost", "virtio-user and vhost", "peer_ethdev", eal=True, huge=True, smallest=64, largest=1518,
         server_first=True, packages=("libdpdk-dev",), words=("--single-file-segments",),
         side_words=(("--vdev=net_virtio_user0,path={socket},queues=1,queue_size=1024,packed_vq=1,in_order=1,"
                      "mrg_rxbuf=0",), ("--vdev=net_vhost0,iface={socket},queues=1",))),
    ucx("ucx", "UCX, posix", "posix,self"),
    ucx("ucx-cma", "UCX, posix and cma", "posix,cma,self"),
    ucx("ucx-put", "UCX, posix, put", "posix,self", program="peer_ucx_put", kind="put"),
    mpi("mpi", "Open MPI, vader", "none"),
    mpi("mpi-cma", "Open MPI, vader and cma", "cma"),
    Peer("fabric", "libfabric, shm", "peer_fabric", form="shm", packages=("libfabric-dev",)),
    Peer("unix", "AF_UNIX, polled", "peer_socket", form="unix"),
    Peer("tcp", "TCP loopback, polled", "peer_socket", form="tcp"),
)
