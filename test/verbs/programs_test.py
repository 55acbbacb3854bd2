#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's own verbs programs, started by ntb-verbs at two hosts that have a node daemon each, over the twin.

  programs_test.py CASE CARRIER NTBD NTB_SS NTB_VERBS LIBRARY OTHER_ABI TRAPS TCP_ECHO ENDS BESIDE
"""

import gzip
import os
import pathlib
import platform
import re
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "daemon"))
import hosts as hosts_module
from hosts import PATIENCE, Failure, as_root, await_fact, expect, run_case, stop
import facts  # beside what hosts has looked for
from programs import find_programs, free_port, is_bound, listens, unpacked

SERVER = "127.0.0.1"
SKIPPED = 77
NOBODY = 65534
# perftest measures the CPU's frequency for each figure, and ends without one where its samples spread too far because
# others have the CPU. That says nothing of what it ran over.
GAVE_UP = "Can't produce a report"
# rping's second thread may ask for an event of the channel that its first one has closed meanwhile, as the program ends
# ("rping: Fix spurious failure return codes" of rdma-core, of 2025).
OWN_FAULTS = (GAVE_UP, "rdma_get_cm_event: Bad file descriptor")
TRIES = 10


def at_fault(said):
    """Whether it was a program's own fault that it ended."""
    return any(fault in said for fault in OWN_FAULTS)


class Hosts:
    """Two daemons that are joined, and programs that are started at them."""

    def __init__(self, lab, carrier, library):
        self.lab, self.library = lab, library
        self.options = {"a": (), "b": ()}  # of ntb-verbs
        lab.ring = "64K"
        self.daemons = [lab.daemon(name, True, f"carrier {carrier}") for name in "ab"]
        for daemon in self.daemons:
            daemon.await_text("joined with the daemon of the peer host")
        # Both hosts are this machine, so their map has its addresses.
        for name in "ab":
            self.map(name).write_text(f"host 127.0.0.0/8 {lab.socket(name)}\n")

    def map(self, host):
        return self.lab.folder / f"{host}.map"

    def under(self, host, *words):
        return [self.lab.client, "--library", self.library, "--socket", self.lab.socket(host),
                "--hosts", self.map(host), *self.options[host], *words]

    def run(self, host, *words):
        try:
            return subprocess.run([str(word) for word in self.under(host, *words)], capture_output=True, text=True,
                                  timeout=PATIENCE, check=False)
        except subprocess.TimeoutExpired as late:
            said = b"".join(text or b"" for text in (late.stdout, late.stderr)).decode(errors="replace")
            command = " ".join(str(word) for word in words)
            raise Failure(f"'{command}' did not end in {PATIENCE} s; it said:\n{said}") from None

    def start_pair(self, *words):
        """A server at one host, and its client at the other once it listens."""
        port = free_port()
        server = self.lab.start(self.under("a", *words, "-p", port), "server")
        await_fact(lambda: listens(port) or server.child.poll() is not None, server.text)
        expect(server.child.poll() is None, server.text())
        return server, self.lab.start(self.under("b", *words, "-p", port, SERVER), "client")

    def pair(self, *words):
        both = self.start_pair(*words)
        for process in both:
            process.end(0)
        return both[1].text()

    def measure(self, *words):
        """As pair(), for perftest, once more where it gave up."""
        return self.measured(*words)[1].text()

    def measured(self, *words):
        """@return both processes, which have ended well"""
        for _ in range(TRIES):
            both = self.start_pair(*words)
            await_fact(lambda both=both: all(process.child.poll() is not None for process in both), both[0].text)
            if not any(GAVE_UP in process.text() for process in both):
                break
        for process in both:
            process.end(0)
        return both

    def managed(self, server_words, client_words, server_status=0):
        """A server and a client that meet by the connection manager. Until the server listens its client is refused. Both
        once more where a fault of their own ended one."""
        for _ in range(TRIES):
            server = self.lab.start(self.under("a", *server_words), "server")
            tries = []

            def is_over(server=server, tries=tries):
                tries.append(self.run("b", *client_words))
                return tries[-1].returncode == 0 or server.child.poll() is not None or at_fault(tries[-1].stderr)
            # What made the first one fail, behind which a server may listen no more.
            await_fact(is_over, lambda server=server, tries=tries: f"{tries[0]}, ..., {tries[-1]}\n{server.text()}")
            if tries[-1].returncode != 0 and server.child.poll() is None:
                server.child.kill()  # it may await the one that has ended for ever, as over an adapter
            elif server_status is None:
                server.child.terminate()
            await_fact(lambda server=server: server.child.poll() is not None, server.text)
            if not at_fault(server.text() + "".join(one.stderr for one in tries)):
                break
        expect(tries[-1].returncode == 0, f"{tries}\n{server.text()}")
        if server_status is not None:
            server.end(server_status)
        return tries[-1].stdout

    def await_traffic(self, client, least=100000):
        """Until the client's queue pairs are at work, or it has ended."""
        sent = 7  # column of ntb-ss
        await_fact(lambda: any(int(row[sent]) > least for row in self.lab.list("b")) or client.child.poll() is not None,
                   client.text)

    def stop(self):
        self.lab.await_no_connection("a", "b")
        for daemon in self.daemons:
            stop(daemon)


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            print(f"there is no {program}: tools/setup fetches it")
            sys.exit(SKIPPED)


def options(lab, _carrier, library, other_abi):
    """What ntb-verbs says, and what it says when it cannot."""
    def run(*words, **more):
        return subprocess.run([str(word) for word in (lab.client, *words)], capture_output=True, text=True,
                              timeout=PATIENCE, check=False, **more)

    def refuses(status, text, *words, **more):
        done = run(*words, **more)
        expect(done.returncode == status, done)
        expect(text in done.stderr and done.stderr.count("\n") == 1 and done.stdout == "", done)

    expect(run("--help").stdout.startswith("ntb-verbs: "), "help")
    expect(run("--version").stdout.startswith("ntb-verbs "), "version")
    lab.daemon("a")
    here = ("--library", library, "--socket", lab.socket("a"))
    expect(run(*here, "echo", "-n", "word").stdout == "word", "the program is executed")
    expect(str(library) in run("-v", *here, "true").stderr, "verbose")
    refuses(2, "expected: ntb-verbs")
    refuses(2, "--link: expected a name", "--link", "../ntb0", "true")
    refuses(127, "no-such-program", *here, "no-such-program")
    refuses(1, f"no node daemon at {lab.folder}/none: No such file", "--library", library, "--socket", lab.folder / "none",
            "true")
    refuses(1, "no node daemon at /run/ntbmsg/no-such-link.sock", "--library", library, "--link", "no-such-link", "true")
    for name, line, why in (("b", "quota default clients 0", "admits no more of this user: 'quota'"),
                            ("c", f"allow {os.getuid() + 1}", "does not admit this user: 'mode' or 'allow'")):
        lab.daemon(name, False, line)
        refuses(1, f"the node daemon at {lab.socket(name)} {why} in its configuration", "--library", library,
                "--socket", lab.socket(name), "true")
    refuses(1, "none.so cannot be loaded: --library names another one, as that of a build", "--library", lab.folder / "none.so", "--socket", lab.socket("a"), "true")
    fake = lab.folder / "fake"
    fake.mkdir()
    shutil.copy(other_abi, fake / "libibverbs.so.1")
    refuses(1, "libibverbs has private ABI 57, and libntbverbs.so is for 34", *here, "true",
            env={**os.environ, "LD_LIBRARY_PATH": str(fake)})
    (lab.folder / "static.c").write_text("int main(void) { return 0; }\n")
    subprocess.run(["gcc", "-static", "-o", lab.folder / "static", lab.folder / "static.c"], check=True, timeout=PATIENCE)
    refuses(1, "is static: nothing can be loaded into it", *here, lab.folder / "static")
    if as_root():  # of another user
        setuid = lab.folder / "setuid"
        shutil.copy("/bin/true", setuid)
        os.chown(setuid, NOBODY, NOBODY)
        setuid.chmod(0o4755)
        refuses(1, "is setuid: nothing can be loaded into it", *here, setuid)


def devices(lab, carrier, library, _other_abi):
    """The device is found, with an address of each process's own."""
    need("ibv_devices", "ibv_devinfo")
    hosts = Hosts(lab, carrier, library)
    done = hosts.run("a", "ibv_devices")
    expect(done.returncode == 0 and re.search(r"^ +ntb0 +\t026e7462", done.stdout, re.M), done)
    named = hosts.run("a", "ibv_devinfo")
    expect(named.returncode == 0 and "hca_id:\tntb0" in named.stdout, named)
    seen = set()
    for host in "ab":
        done = hosts.run(host, "ibv_devinfo", "-v")
        expect(done.returncode == 0, done)
        for text in ("PORT_ACTIVE", "InfiniBand", "4096 (5)", "max_sge:\t\t\t16", "ATOMIC_HCA", "fe80:0000:0000:0000:026e"):
            expect(text in done.stdout, (text, done.stdout))
        seen.add(re.search(r"port_lid:\s+(\d+)", done.stdout)[1])
    expect(len(seen) == 2, seen)
    hosts.daemons[0].child.kill()
    hosts.daemons[0].child.wait()
    done = subprocess.run(["ibv_devinfo"], capture_output=True, text=True, timeout=PATIENCE, check=False,
                          env={**os.environ, "LD_PRELOAD": str(library), "NTB_VERBS_SOCKET": str(lab.socket("a"))})
    expect(done.returncode != 0 and "ntbverbs: no node daemon at" in done.stderr, done)


def traps(lab, carrier, library, _other_abi):
    """What programs may ask of libibverbs besides: events of objects that go, queries, refusals."""
    hosts = Hosts(lab, carrier, library)
    done = hosts.run("a", pathlib.Path(sys.argv[8]).resolve())
    expect(done.returncode == 0 and done.stderr == "", done)
    hosts.stop()


def beside(lab, carrier, library, _other_abi):
    """A device of a driver of libibverbs comes first in the list, and a program uses both at a time."""
    sysfs = lab.folder / "sys"
    device, node = sysfs / "class/infiniband/beside0", sysfs / "class/infiniband_verbs/uverbs-beside"
    numbers = os.stat("/dev/full").st_rdev
    for place, text in {
            node.parent / "abi_version": "6", node / "abi_version": "1", node / "ibdev": "beside0",
            node / "dev": f"{os.major(numbers)}:{os.minor(numbers)}",
            device / "node_type": "1: CA", device / "node_guid": "1122:3344:5566:7788",
            device / "ports/1/gids/0": "fd00:0000:0000:0000:0000:0000:0000:0042",
            device / "ports/1/gid_attrs/types/0": "IB/RoCE v1", device / "ports/1/pkeys/0": "0xffff",
            device / "ports/1/pkeys/1": "0x8123"}.items():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text + "\n")
    hosts = Hosts(lab, carrier, library)
    done = hosts.run("a", "env", f"SYSFS_PATH={sysfs}", pathlib.Path(sys.argv[11]).resolve())
    expect(done.returncode == 0 and done.stderr == "", done)
    hosts.stop()


def pingpong(lab, carrier, library, _other_abi):
    """Each pingpong program, by polling and by events."""
    need("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong")
    hosts = Hosts(lab, carrier, library)
    for words in (("ibv_rc_pingpong", "-c"), ("ibv_rc_pingpong", "-e"), ("ibv_rc_pingpong", "-g", 0),
                  ("ibv_rc_pingpong", "-s", 1048576, "-n", 100), ("ibv_uc_pingpong",), ("ibv_uc_pingpong", "-e"),
                  ("ibv_ud_pingpong",), ("ibv_ud_pingpong", "-e"), ("ibv_srq_pingpong", "-q", 16),
                  ("ibv_srq_pingpong", "-q", 16, "-e")):
        said = hosts.pair(*words)
        print(*words, ":", said.splitlines()[-1])
        expect(re.search(r"^\d+ iters in .* usec/iter$", said, re.M), said)
        expect("invalid data" not in said, said)
    hosts.stop()


def perftest(lab, carrier, library, _other_abi):
    """perftest's operations, each for a short while. Those of bandwidth without options are in sweeps."""
    programs = [f"ib_{what}_lat" for what in ("send", "write", "read", "atomic")]
    need(*programs, *(program.replace("_lat", "_bw") for program in programs))
    hosts = Hosts(lab, carrier, library)
    cases = [(program, "-n", 100) for program in programs]
    cases += [("ib_send_lat", "-e", "-n", 100), ("ib_send_lat", "-c", "UC", "-n", 100), ("ib_send_lat", "-c", "UD", "-n", 100),
              ("ib_send_bw", "-a", "-b", "-q", 8, "-n", 20), ("ib_send_bw", "-q", 8, "--use-srq", "-r", 128, "-n", 100),
              ("ib_write_bw", "-q", 4, "-s", 8388608, "-n", 10), ("ib_read_bw", "-o", 16, "-e", "-n", 100),
              ("ib_atomic_bw", "-A", "CMP_AND_SWAP", "-n", 100)]
    # Warm-up waits for a completion of each request, which it asks for with -Q 1 alone where the size is small.
    cases += [(program, "--perform_warm_up", "-s", 64, "-Q", 1, "-n", 100) for program in ("ib_send_bw", "ib_write_bw", "ib_read_bw")]
    cases += [("ib_atomic_bw", "--perform_warm_up", "-Q", 1, "-n", 100), ("ib_write_bw", "--perform_warm_up", "-n", 100),
              ("ib_write_lat", "--perform_warm_up", "-s", 64, "-n", 100)]
    for words in cases:
        said = hosts.measure(*words)
        rows = [line for line in said.splitlines() if re.match(r" \d+ +\d+ ", line)]
        expect(rows, said)
        print(*words, ":", rows[-1])
    hosts.stop()


def direct(lab, carrier, library, _other_abi):
    """Programs under --direct at both ends: what they write and read goes without a message, but for the first of it."""
    programs = [f"ib_{what}" for what in ("write_lat", "write_bw", "read_lat", "read_bw", "send_bw", "atomic_lat")]
    need(*programs, "ibv_rc_pingpong", "rping")
    hosts = Hosts(lab, carrier, library)

    def without_message(said):
        """What the client says of its requests, and of regions that were not shared."""
        found = re.search(r"; (\d+) writes and (\d+) reads without a message", said)
        expect(found, said)
        return int(found[1]) + int(found[2])

    def lent(said):
        """What the client says of its sends whose data stayed where they were."""
        found = re.search(r"(\d+) sends without data in theirs", said)
        expect(found, said)
        return int(found[1])

    def measure_mostly(counted, requests, words):
        """Half of all requests go as is counted. The busier the machine, the more go before the daemons have granted
        the memory: then more of them are tried, whose number is the last of the words."""
        for times in (1, 4, 16):
            said = hosts.measure(*words[:-1], words[-1] * times)
            if counted(said) >= requests * times // 2:
                break
        else:
            expect(False, said)
        rows = [line for line in said.splitlines() if re.match(r" \d+ +\d+ ", line)]
        expect(rows, said)
        print(*words, ":", rows[-1].split("ntbverbs")[0])

    hosts.options = {host: ("--direct", "-v") for host in "ab"}
    if carrier == "daemon":  # no memory is granted over the bridge
        said = hosts.measure("ib_write_bw", "-n", 1000)
        expect(without_message(said) == 0 and "refused by the way to the peer" in said, said)
        hosts.stop()
        return
    for words, requests in ((("ib_write_lat", "-s", 8, "-n", 10000), 10000), (("ib_write_lat", "-s", 64, "-n", 10000), 10000),
                        (("ib_write_bw", "-s", 64, "-n", 100000), 100000), (("ib_write_bw", "-s", 65536, "-n", 20000), 20000),
                        (("ib_write_bw", "-q", 4, "-s", 1048576, "-n", 200), 800),
                        (("ib_read_lat", "-s", 8, "-n", 10000), 10000), (("ib_read_bw", "-n", 20000), 20000)):
        measure_mostly(without_message, requests, words)
    for words in (("ib_send_bw", "-n", 1000), ("ib_atomic_lat", "-n", 100), ("ib_write_bw", "-c", "UC", "-n", 1000)):
        expect(without_message(hosts.measure(*words)) == 0, words)
    said = hosts.pair("ibv_rc_pingpong", "-c")
    expect(without_message(said) == 0 and "has no right for peers" in said, said)
    words = ("rping", "-C", 100, "-S", 64, "-V", "-a", SERVER, "-p", free_port())
    hosts.managed((*words, "-s"), (*words, "-c"))
    # Data that are lent; the other end only maps them.
    hosts.options = {"a": ("--direct-sends", "-v"), "b": ("--direct-sends", "-v")}
    for words, requests in ((("ib_send_bw", "-s", 65536, "-n", 10000), 10000), (("ib_send_bw", "-s", 4096, "-q", 2, "-n", 20000), 40000),
                        (("ib_send_bw", "-s", 1048576, "-b", "-n", 500), 500)):
        measure_mostly(lent, requests, words)
    # One end alone.
    for other in "ab":
        hosts.options = {"a": (), "b": ()}
        hosts.options[other] = ("--direct", "-v")
        said = "".join(process.text() for process in hosts.measured("ib_write_bw", "-n", 1000))
        expect("; 0 writes and 0 reads without a message" in said, said)
    # A peer that dies.
    hosts.options = {host: ("--direct",) for host in "ab"}
    server, client = hosts.start_pair("ib_write_bw", "-n", 100000000)
    hosts.await_traffic(client, 100)
    server.child.send_signal(signal.SIGKILL)
    server.child.wait()
    client.end(1)
    expect("Failed status 12" in client.text(), client.text())
    hosts.stop()


def become_anybody(*files):
    """Gives up what root may, all of it. The files have to be for everybody."""
    if as_root():
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    if not all(os.access(file, os.R_OK | os.X_OK) for file in files):
        print("the build folder is not for every user")
        sys.exit(SKIPPED)


def unprivileged(lab, carrier, library, _other_abi):
    """Daemons and programs of a user without rights (main() has become one), with direct memory and by librdmacm, too."""
    need("ibv_rc_pingpong", "rping", "ib_write_bw")
    expect(not as_root(), "root has no rights to be without")
    hosts = Hosts(lab, carrier, library)
    hosts.pair("ibv_rc_pingpong", "-c")
    port = free_port()
    hosts.managed(("rping", "-s", "-a", SERVER, "-p", port, "-C", 3), ("rping", "-c", "-a", SERVER, "-p", port, "-V", "-C", 3))
    hosts.options = {"a": ("--direct",), "b": ("--direct", "-v")}
    said = hosts.measure("ib_write_bw", "-s", 65536, "-n", 5000)
    expect(re.search(r"memory: [1-9]\d* regions", said), said)
    hosts.stop()


def killed(lab, carrier, library, _other_abi):
    """A program whose peer dies learns it, and the next pair works."""
    need("ib_write_bw", "ibv_rc_pingpong")
    hosts = Hosts(lab, carrier, library)
    # It always has requests under way. Who only waits for the peer's learns nothing, as on a cable.
    server, client = hosts.start_pair("ib_write_bw", "-n", 100000000)
    hosts.await_traffic(client)
    server.child.send_signal(signal.SIGKILL)
    server.child.wait()
    client.end(1)
    expect("Failed status 12" in client.text(), client.text())
    hosts.pair("ibv_rc_pingpong")
    hosts.stop()


def absent(lab, carrier, library, _other_abi):
    """A queue pair whose peer's host has a daemon and no verbs program: its requests end as where nobody answers."""
    need("ibv_rc_pingpong", "ibv_devinfo")
    hosts = Hosts(lab, carrier, library)
    # Of a process that has ended.
    done = hosts.run("a", "ibv_devinfo", "-v")
    expect(done.returncode == 0, done)
    lid = int(re.search(r"port_lid:\s+(\d+)", done.stdout)[1])
    gid = re.search(r"GID\[ *0\]:\s+([0-9a-f:]+)", done.stdout)[1].replace(":", "")
    expect(len(gid) == 32, done)
    with socket.create_server((SERVER, 0)) as listener:
        listener.settimeout(PATIENCE)
        port = listener.getsockname()[1]
        client = lab.start(hosts.under("b", "ibv_rc_pingpong", "-g", 0, "-p", port, SERVER), "client")
        peer = listener.accept()[0]
        with peer:
            # As ibv_rc_pingpong tells its peer of its queue pair.
            peer.settimeout(PATIENCE)
            asked = peer.makefile("rb").read(52)
            expect(asked.count(b":") == 3 and asked.endswith(b"\0"), asked)
            peer.sendall(f"{lid:04x}:{0x123:06x}:{0:06x}:{gid}\0".encode())
            client.await_text("Failed status transport retry counter exceeded (12)")
    client.end(1)
    hosts.pair("ibv_rc_pingpong")
    hosts.stop()


def manager(lab, carrier, library, _other_abi):
    """Programs that connect by librdmacm: each kind of id, private data, several connections, rsockets."""
    need("rping", "rdma_server", "rdma_xserver", "ucmatose", "udaddy", "cmtime", "rstream", "riostream")
    hosts = Hosts(lab, carrier, library)

    def both(*words, client=(), status=0):
        said = hosts.managed(words, (*words, *client), status)
        print(*words, ":", (said.splitlines() or ["-"])[-1])
        return said

    for size in (64, 4096):
        words = ("-C", 100, "-S", size, "-a", SERVER, "-p", free_port())
        said = hosts.managed(("rping", "-s", *words), ("rping", "-c", "-v", "-V", *words))
        expect(said.count("ping data: ") == 100, said)
    port = free_port()
    hosts.managed(("rping", "-s", "-a", "0.0.0.0", "-p", port), ("rping", "-c", "-q", "-C", 10, "-a", SERVER, "-p", port))
    port = ("-p", free_port())
    hosts.managed(("rdma_server", *port), ("rdma_client", "-s", SERVER, *port))
    port = ("-p", free_port())
    hosts.managed(("rdma_xserver", "-c", "r", *port), ("rdma_xclient", "-c", "r", "-s", SERVER, *port))
    at_server = ("-s", SERVER)
    both("ucmatose", "-c", 10, "-C", 100, "-S", 4096, "-p", free_port(), client=at_server)
    both("udaddy", "-c", 4, client=at_server)
    said = both("cmtime", "-c", 100, "-p", free_port(), client=at_server, status=None)
    expect(re.search(r"^(connect +:|cm connect +\d)", said, re.M), said)  # before and since rdma-core 50
    both("rstream", "-T", "v", "-S", 4096, "-p", free_port(), client=at_server)
    both("riostream", "-T", "v", "-S", 4096, "-p", free_port(), client=at_server)
    hosts.stop()


def until_it_ends(hosts, *words):
    """A client that has ended, at one of several tries: librdmacm's rpoll() may not return if its time was over before it
    began to sleep."""
    for _ in range(TRIES):
        client = hosts.lab.start(hosts.under("b", *words), "client")
        try:
            client.child.wait(timeout=PATIENCE / TRIES)
            return client
        except subprocess.TimeoutExpired:
            client.child.kill()
            client.child.wait()
    return None


def rsockets(lab, carrier, library, _other_abi):
    """Sockets of librdmacm: datagrams, which look for the peer's LID in the route to it, and a TCP program that knows
    nothing of all this."""
    need("udpong")
    preload = unpacked(f"lib/{sysconfig.get_config_var('MULTIARCH')}/rsocket/librspreload.so")
    if not preload:
        print("there is no librspreload.so: tools/setup fetches it")
        sys.exit(SKIPPED)
    hosts = Hosts(lab, carrier, library)
    for words in (("-S", 64), ("-S", 2000, "-T", "b", "-T", "e")):
        words = ("udpong", "-C", 100, "-p", free_port(), *words)
        # Datagrams to no one are lost, and the client awaits an answer for ever.
        server = lab.start(hosts.under("a", *words, "-b", SERVER), "server")
        await_fact(lambda words=words: is_bound(words[4]) or server.child.poll() is not None, server.text)
        client = until_it_ends(hosts, *words, "-s", SERVER)
        expect(client, f"udpong does not end: {server.text()}")
        client.end(0)
        print(*words, ":", client.text().splitlines()[-1])
        server.child.terminate()
        server.child.wait()
    os.environ["LD_PRELOAD"] = str(preload)
    port = free_port()
    tcp_echo = pathlib.Path(sys.argv[9]).resolve()
    server = lab.start(hosts.under("a", tcp_echo, port), "server")
    client = None

    def is_served():
        nonlocal client
        client = hosts.run("b", tcp_echo, port, 3000000)
        expect(not listens(port), "it is TCP's port")
        return client.returncode == 0
    await_fact(is_served, lambda: f"{client}\n{server.text()}")
    del os.environ["LD_PRELOAD"]
    expect(client.stdout == "3000000 bytes came back\n", client)
    server.end(0)
    hosts.stop()


def managed_perftest(lab, carrier, library, _other_abi):
    """perftest with queue pairs that the connection manager connects."""
    cases = [(f"ib_{what}", "-R", "-n", 100) for what in ("send_lat", "write_lat", "read_lat", "atomic_lat", "read_bw")]
    cases += [("ib_send_lat", "-R", "-c", "UD", "-n", 100), ("ib_send_bw", "-R", "-q", 2, "-b", "-n", 100), ("ib_send_lat", "-R", "-e", "-n", 100),
              ("ib_send_bw", "-R", "-b", "-q", 8, "--use-srq", "-r", 128, "-n", 100), ("ib_read_bw", "-R", "-o", 16, "-e", "-n", 100),
              ("ib_write_bw", "-R", "-q", 4, "-n", 100), ("ib_atomic_bw", "-R", "-A", "CMP_AND_SWAP", "-n", 100)]
    need(*(case[0] for case in cases))
    hosts = Hosts(lab, carrier, library)
    for words in cases:
        words = (*words, "-p", free_port())
        said = hosts.managed(words, (*words, SERVER))
        rows = [line for line in said.splitlines() if re.match(r" \d+ +\d+ ", line)]
        expect(rows, said)
        print(*words, ":", rows[-1])
    hosts.stop()


def with_server(hosts, port, server_words, client_words):
    """What the client says. Its server listens at the port, and may go on for ever."""
    server = hosts.lab.start(hosts.under("a", *server_words), "server")
    await_fact(lambda: listens(port) or server.child.poll() is not None, server.text)
    expect(server.child.poll() is None, server.text())
    done = hosts.run("b", *client_words)
    expect(done.returncode == 0, f"{done}\n{server.text()}")
    return server, done.stdout


def qperf(lab, carrier, library, _other_abi):
    """qperf's tests of verbs, by one server that forks a process for each.

    With -cm 1 that process ends by a fault of qperf's, behind its last word: it closes the queue pair of the id that
    listens, which has none (cm_close), and not that of the connection. librdmacm and libibverbs look into it.
    """
    need("qperf")
    ends = pathlib.Path(sys.argv[10]).resolve()
    hosts = Hosts(lab, carrier, library)
    port = free_port()
    tests = ("rc_lat", "rc_bi_bw", "uc_lat", "ud_lat", "rc_rdma_write_lat", "rc_rdma_write_poll_lat", "rc_rdma_read_bw",
             "rc_compare_swap_mr", "ver_rc_fetch_add")
    server, said = with_server(hosts, port, (ends, "qperf", "-lp", port), ("qperf", "-lp", port, "-t", 1, SERVER, *tests))
    print(said)
    for test in tests:
        expect(re.search(rf"^{test}:\n +(latency|bw|msg_rate) +=", said, re.M), said)
    expect("ends:" not in server.text(), server.text())
    managed = tuple(test for test in tests if "rc_" in test)  # of others it says that it does without
    done = hosts.run("b", "qperf", "-lp", port, "-t", 1, "-cm", "1", SERVER, *managed)
    expect(done.returncode == 0 and all(f"{test}:\n" in done.stdout for test in managed), done)
    fault = f"ends: signal {int(signal.SIGSEGV)}\n"
    server.await_text(fault, len(managed))
    expect(server.text().count("ends:") == len(managed), server.text())
    server.child.terminate()
    server.child.wait()
    hosts.stop()


# Of fio, which lets its receiver be late not once (rnr_retry 0). It says so, and both ends wait for ever.
FIO_WAS_LATE = "RNR retry counter exceeded"


def fio(lab, carrier, library, _other_abi):
    """fio's engine for RDMA."""
    need("fio")
    hosts = Hosts(lab, carrier, library)

    def pair(receives, sends):
        words = ("fio", "--ioengine=rdma", "--thread", f"--port={free_port()}", "--bs=64k", "--size=16m", "--iodepth=16")
        return ((*words, f"--verb={receives}", "--name=receiver", "--rw=read"),
                (*words, f"--verb={sends}", "--name=sender", "--rw=write", f"--hostname={SERVER}"))

    def check(verb, said):
        rate = re.search(r"^ +write: IOPS=.*\(16\.0MiB/.*$", said, re.M)
        expect(rate and "err= 0" in said, said)
        print(verb, ":", rate[0].strip())

    for verb in ("write", "read"):
        check(verb, hosts.managed(*pair(verb, verb)))
    for _ in range(TRIES):
        server_words, client_words = pair("recv", "send")
        server, clients = lab.start(hosts.under("a", *server_words), "server"), []

        def is_over(server=server, clients=clients, client_words=client_words):
            if not clients or clients[-1].child.poll() not in (None, 0):  # it was refused
                clients.append(lab.start(hosts.under("b", *client_words), "client"))
            return FIO_WAS_LATE in clients[-1].text() or clients[-1].child.poll() == 0 or server.child.poll() is not None
        await_fact(is_over, server.text)
        if FIO_WAS_LATE not in clients[-1].text():
            server.end(0)
            clients[-1].end(0)
            check("send", clients[-1].text())
            break
        for process in (server, clients[-1]):
            process.child.kill()
            process.child.wait()
    expect(clients[-1].child.returncode == 0, "its receiver was late each time")
    hosts.stop()


# Its layer above connections reads that the peer hangs up before all completions of that peer, and then destroys the
# queue pair with them: the last message is said to be flushed, or its completion is awaited for ever. So it reads more
# completions at a time, and looks for what happens to connections once a second.
OFI_RXM = {"FI_OFI_RXM_COMP_PER_PROGRESS": "64", "FI_OFI_RXM_CM_PROGRESS_INTERVAL": "1000000"}


def libfabric(lab, carrier, library, _other_abi):
    """libfabric's provider of verbs: connected endpoints, datagrams, and reliable datagrams above connections."""
    need("fi_pingpong")
    os.environ.update(OFI_RXM)
    hosts = Hosts(lab, carrier, library)
    for words in (("-p", "verbs", "-e", "msg"), ("-p", "verbs", "-e", "dgram", "-d", "ntb0-dgram"),
                  ("-p", "verbs;ofi_rxm", "-e", "rdm")):
        port = free_port()
        words = ("-I", 100, "-c", *words)
        server, said = with_server(hosts, port, ("fi_pingpong", "-B", port, *words),
                                   ("fi_pingpong", "-P", port, *words, SERVER))
        server.end(0)
        print(*words, ":", said.splitlines()[-1])
        expect(re.search(r"^64 +100 +=100 ", said, re.M), said)
    hosts.stop()


def ucx_perftest():
    """The program, which is one of MPI's too in some distributions, and would wait for its peers as such."""
    need("ucx_perftest")
    help_text = subprocess.run(["ucx_perftest", "-h"], capture_output=True, text=True, check=False).stdout
    return ("ucx_perftest", "-P", 0) if "disable/enable MPI mode" in help_text else ("ucx_perftest",)


def ucx(lab, carrier, library, _other_abi):
    """UCX over its verbs transports: operations of the transport, and its own protocols above them."""
    need("ucx_info")
    program = ucx_perftest()
    hosts = Hosts(lab, carrier, library)
    done = hosts.run("a", "ucx_info", "-d")
    expect(done.returncode == 0 and done.stderr == "", done)
    for transport in ("rc_verbs", "ud_verbs"):
        expect(re.search(rf"Transport: {transport}\n#         Device: ntb0:1$", done.stdout, re.M), done.stdout)
    device = ("-d", "ntb0:1", "-x")
    cases = [(*device, "rc_verbs", "-t", test) for test in ("put_lat", "put_bw", "am_lat", "add_lat")]
    cases += [(*device, "rc_verbs", "-t", "get", "-D", "zcopy", "-s", 4096), (*device, "ud_verbs", "-t", "am_lat")]
    # With nothing else to choose from, all of these go through the device.
    os.environ["UCX_TLS"], os.environ["UCX_NET_DEVICES"] = "rc_verbs,ud_verbs,self", "ntb0:1"
    cases += [("-t", test, *more) for test in ("tag_lat", "tag_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", "ucp_add")
              for more in ((), ("-s", 1048576)) if test != "ucp_add" or not more]
    for words in cases:
        port = free_port()
        words = ("-p", port, "-n", 100, "-w", 10, *words)
        server, said = with_server(hosts, port, (*program, *words), (*program, *words, SERVER))
        server.end(0)
        rows = re.findall(r"^Final: +100 .*$", said, re.M)
        expect(len(rows) == 1, said)
        print(*words, ":", rows[0])
    hosts.stop()


def mpi(lab, carrier, library, _other_abi):
    """Open MPI, a rank at each host, above libfabric's provider of verbs: its messages have no other way."""
    need("mpirun.openmpi")
    package = unpacked("lib/python3/dist-packages/mpi4py")
    if not package:
        print("there is no mpi4py: tools/setup fetches it")
        sys.exit(SKIPPED)
    root = pathlib.Path(shutil.which("mpirun.openmpi")).parents[1]
    libraries = root / "lib" / sysconfig.get_config_var("MULTIARCH")
    os.environ.update(OFI_RXM, OPAL_PREFIX=str(root), OPAL_LIBDIR=str(libraries),
                      OPAL_PKGLIBDIR=str(libraries / "openmpi/lib/openmpi3"), PMIX_PREFIX=str(root),
                      PMIX_PKGLIBDIR=str(libraries / "pmix2/lib/pmix"), PYTHONPATH=str(package.parent),
                      OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", TMPDIR=str(lab.folder))
    version = subprocess.run(["mpirun.openmpi", "--version"], capture_output=True, text=True, check=False).stdout
    if ") 4." not in version:
        print("another Open MPI than 4, whose parts are looked for otherwise where it is not installed")
        sys.exit(SKIPPED)
    hosts = Hosts(lab, carrier, library)
    program = ("/usr/bin/python3", "-m", "mpi4py.bench", "ringtest", "-n", 65536, "-l", 200)
    words = ["mpirun.openmpi", "--oversubscribe", "--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "btl", "self",
             "--mca", "mtl_ofi_provider_include", "verbs;ofi_rxm"]
    ranks = [["-np", 1, *hosts.under(host, *program)] for host in "ab"]
    started = lab.start([*words, *ranks[0], ":", *ranks[1]], "mpirun")
    started.end(0)
    found = re.search(r"^time for 200 loops = (.*) seconds \(2 processes, 65536 bytes\)$", started.text(), re.M)
    expect(found, started.text())
    print("mpi4py.bench ringtest :", found[0])
    hosts.stop()


def manager_refusals(lab, carrier, library, _other_abi):
    """Addresses outside of the map, ports in use, no one there, a peer that dies, and no map."""
    need("rping")
    hosts = Hosts(lab, carrier, library)
    port = free_port()
    done = hosts.run("b", "rping", "-c", "-C", 1, "-a", "192.0.2.1", "-p", port)
    expect(done.returncode != 0, done)
    expect(f"ntbverbs: 192.0.2.1 is in no 'host' line of the map {hosts.map('b')}\n" in done.stderr, done)
    expect("rdma_resolve_addr: No route to host" in done.stderr, done)
    done = hosts.run("b", "rping", "-c", "-C", 1, "-a", SERVER, "-p", port)
    expect(done.returncode != 0 and "RDMA_CM_EVENT_REJECTED, error 8" in done.stderr, done)
    done = hosts.run("b", "rping", "-s", "-a", "192.0.2.1", "-p", port)
    expect(done.returncode != 0 and "rdma_bind_addr: Cannot assign requested address" in done.stderr, done)
    server = lab.start(hosts.under("a", "rping", "-s", "-P", "-a", SERVER, "-p", port), "server")
    client = ["rping", "-c", "-C", 1, "-a", SERVER, "-p", port]
    await_fact(lambda: hosts.run("b", *client).returncode == 0, server.text)
    done = hosts.run("a", "rping", "-s", "-a", SERVER, "-p", port)
    expect(done.returncode != 0 and "rdma_bind_addr: Address already in use" in done.stderr, done)
    # A client whose server dies learns it, and the next pair meets at the same port.
    client = lab.start(hosts.under("b", "rping", "-c", "-a", SERVER, "-p", port), "client")
    hosts.await_traffic(client)
    server.child.kill()
    server.child.wait()
    client.await_text("DISCONNECT EVENT")
    await_fact(lambda: client.child.poll() is not None, client.text)
    words = ("-C", 10, "-a", SERVER, "-p", port)
    hosts.managed(("rping", "-s", *words), ("rping", "-c", "-V", *words))

    def start(*words):
        words = [lab.client, "--library", library, "--socket", lab.socket("a"), *words]
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    hosts.map("a").write_text("host 127.0.0.0/8\n")
    done = start("--hosts", hosts.map("a"), "rping", "-s", "-a", SERVER)
    expect(done.returncode == 1 and f"{hosts.map('a')}:1: expected: host ADDRESS" in done.stderr, done)
    expect(done.stderr.count("\n") == 1, done)
    done = start("--hosts", lab.folder / "none", "rping", "-s", "-a", SERVER)
    expect(done.returncode == 1 and "none: No such file or directory" in done.stderr, done)
    # Without a map the kernel's manager is asked for. Who asks for none hears nothing.
    if "no map of hosts" in start("-v", "true").stderr and not pathlib.Path("/dev/infiniband/rdma_cm").exists():
        done = start("rping", "-c", "-a", SERVER)
        expect(done.returncode != 0 and "failed to create RDMA CM event channel" in done.stderr, done)
        lines = [line for line in done.stderr.splitlines() if line.startswith("ntbverbs: ")]
        expect(len(lines) == 1 and "ntbmsg/sockets.conf or ntb-verbs --hosts FILE" in lines[0], done)
        done = start("ibv_devices")
        expect(done.returncode == 0 and done.stderr == "", done)
    hosts.stop()
    # No connection is admitted, of who asks or of who listens: librdmacm has no word for it.
    words = ("rping", "-c", "-C", 1, "-a", SERVER, "-p", port)
    for names in ("cd", "ef"):
        pair = [lab.daemon(name, True, f"carrier {carrier}", *["quota default connections 0"] * (name in "cf")) for name in names]
        for name, daemon in zip(names, pair):
            daemon.await_text("joined with the daemon of the peer host")
            hosts.map(name).write_text(f"host 127.0.0.0/8 {lab.socket(name)}\n")
            hosts.options[name] = ()
        server = lab.start(hosts.under(names[0], "rping", "-s", "-a", SERVER, "-p", port), "server")
        tries = []

        def is_unreachable(name=names[1], tries=tries):  # before it listens it is a port without a listener
            tries.append(hosts.run(name, *words))
            return "RDMA_CM_EVENT_UNREACHABLE, error -122" in tries[-1].stderr
        await_fact(is_unreachable, lambda server=server, tries=tries: f"{tries[-1]}\n{server.text()}")
        expect(tries[-1].returncode != 0, tries[-1])
        expect(tries[-1].stderr.count("ntbverbs: a daemon admits no more connections") == 1, tries[-1])
        server.child.kill()
        for daemon in pair:
            stop(daemon)


# Modules of Debian 12's pyverbs, without those of one maker's devices, of RoCE and of what no device here has: how many
# tests pass, and how many are skipped. doc/guides/howto/verbs.rst names each of those that are skipped.
PYVERBS = {"addr": (2, 1), "atomic": (7, 2), "cq": (4, 0), "cq_events": (2, 0), "cqex": (4, 1), "device": (12, 10), "fork": (1, 0),
           "mr": (12, 15), "pd": (4, 0), "qp": (21, 5), "qpex": (17, 3), "relaxed_ordering": (2, 1)}
# Why tests are skipped: what the device or the machine says that it lacks.
PYVERBS_SKIPS = re.compile(
    "Allocating dmabuf|Device memory|Create XRCD|Extended QP|To Create RAW QP|All gid indices populated"
    "|Link layer of port=1 is InfiniBand")


def pyverbs(lab, carrier, library, _other_abi):
    """The tests of pyverbs as they are. They open the device twice, and take the LID of the one for the other's."""
    python, tests = unpacked("lib/python3/dist-packages/pyverbs"), unpacked("share/doc/rdma-core/tests")
    if not python or not tests:
        print("there is no pyverbs: tools/setup fetches it")
        sys.exit(SKIPPED)
    if platform.freedesktop_os_release().get("VERSION_ID") != "12":
        # Those of rdma-core 56 ask `rdma link show`, that is the kernel, for the network devices behind the verbs device.
        print("the tests of another pyverbs than Debian 12's: newer ones ask the kernel for a device that it does not have")
        sys.exit(SKIPPED)
    copy = lab.folder / "tests"
    shutil.copytree(tests, copy)
    for packed in copy.glob("*.gz"):
        packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
    os.environ["PYTHONPATH"] = str(python.parent)
    hosts = Hosts(lab, carrier, library)
    for module, counts in PYVERBS.items():
        said = hosts.run("a", "/usr/bin/python3", copy / "run_tests.py", "-v", "--dev", "ntb0", f"tests.test_{module}").stderr
        failed = set(re.findall(r"^(?:FAIL|ERROR): (\w+)", said, re.MULTILINE))
        skipped = re.findall(r"skipped (.*)$", said, re.MULTILINE)
        # Of a machine without free ones, or whose other tests have them all.
        without_pages = [reason for reason in skipped if "There are no huge pages" in reason]
        skipped = [reason for reason in skipped if reason not in without_pages]
        expect(not failed and all(PYVERBS_SKIPS.search(reason) for reason in skipped), said)
        ran = re.search(r"^Ran (\d+) tests?", said, re.MULTILINE)
        passed = int(ran[1]) - len(skipped) if ran else 0
        expect((passed, len(skipped)) == counts, (module, counts, said))
        print(f"{module}: {passed} passed, {len(skipped)} skipped")
    hosts.stop()


# ---- as long as these programs are asked for when a device is accepted; tools/test --long verbs shows the results

LONG_PATIENCE = 600


def be_patient():
    """For programs that have much to do."""
    global PATIENCE
    PATIENCE = hosts_module.PATIENCE = facts.PATIENCE = LONG_PATIENCE


def result(words, text):
    print("result:", *words, ":", text, flush=True)


def long_pingpong(lab, carrier, library, _other_abi):
    """Each pingpong program, ten thousand rounds."""
    need("ibv_rc_pingpong", "ibv_uc_pingpong", "ibv_ud_pingpong", "ibv_srq_pingpong")
    be_patient()
    hosts = Hosts(lab, carrier, library)
    for words in (("ibv_rc_pingpong", "-c"), ("ibv_rc_pingpong", "-e"), ("ibv_rc_pingpong", "-s", 1048576),
                  ("ibv_rc_pingpong", "-s", 1048576, "-e"), ("ibv_uc_pingpong",), ("ibv_uc_pingpong", "-e"),
                  ("ibv_ud_pingpong",), ("ibv_ud_pingpong", "-e"), ("ibv_srq_pingpong", "-q", 16),
                  ("ibv_srq_pingpong", "-q", 16, "-e")):
        words = (*words, "-n", 10000)
        said = hosts.pair(*words)
        found = re.search(r"^\d+ iters in .* = (.* usec/iter)$", said, re.M)
        expect(found and "invalid data" not in said, said)
        result(words, found[1])
    hosts.stop()


def sweeps(lab, carrier, library, _other_abi):
    """perftest over all sizes, by addresses that go over TCP and by the connection manager."""
    latencies = [("ib_send_lat",), ("ib_send_lat", "-e"), ("ib_send_lat", "-c", "UC"), ("ib_send_lat", "-c", "UD"),
                 ("ib_write_lat",), ("ib_read_lat",)]
    cases = [(*words, "-a", "-n", 100) for words in latencies]
    cases += [("ib_send_bw", "-a", "-b", "-q", 8, "-n", 100), ("ib_send_bw", "-a", "-b", "-q", 8, "--use-srq", "-r", 128, "-n", 200),
              ("ib_write_bw", "-a", "-n", 200), ("ib_write_bw", "-q", 4, "-s", 8388608, "-n", 100), ("ib_read_bw", "-a", "-o", 16, "-n", 200),
              ("ib_read_bw", "-a", "-o", 16, "-e", "-n", 200), ("ib_atomic_lat", "-n", 1000),
              ("ib_atomic_bw", "-A", "CMP_AND_SWAP", "-n", 10000), ("ib_atomic_bw", "-A", "FETCH_AND_ADD", "-n", 10000)]
    managed = [("ib_send_lat", "-a", "-n", 100, "-R"), ("ib_send_lat", "-a", "-n", 100, "-c", "UD", "-R"),
               ("ib_write_lat", "-a", "-n", 100, "-R"), ("ib_read_lat", "-a", "-n", 100, "-R"), ("ib_send_bw", "-a", "-b", "-q", 8, "-R", "-n", 100), ("ib_read_bw", "-a", "-R", "-n", 200)]
    need(*{case[0] for case in cases})
    be_patient()
    hosts = Hosts(lab, carrier, library)
    for words in (*cases, *managed):
        if "-R" in words:
            port = ("-p", free_port())
            said = hosts.managed((*words, *port), (*words, *port, SERVER))
        else:
            said = hosts.measure(*words)
        rows = [line.split() for line in said.splitlines() if re.match(r" \d+ +\d+ ", line)]
        if "-a" in words:  # datagrams end with the MTU
            expect([int(row[0]) for row in rows] == [2 ** i for i in range(1, 13 if "UD" in words else 24)], said)
        expect(rows, said)
        column = 4 if words[0].endswith("_lat") else 3
        shown = [row for row in rows if int(row[0]) in (2, 8, 64, 4096, 65536, 8388608)]
        result(words, ", ".join(f"{row[0]} B {row[column]}" for row in shown) + (" us" if column == 4 else " MB/s"))
    hosts.stop()


def long_streams(lab, carrier, library, _other_abi):
    """rsockets' own programs, all their sizes."""
    need("rstream", "riostream", "rping")
    be_patient()
    hosts = Hosts(lab, carrier, library)
    words = ("-C", 10000, "-S", 65536, "-a", SERVER, "-p", free_port())
    said = hosts.managed(("rping", "-s", *words), ("rping", "-c", "-V", "-v", *words))
    expect(said.count("ping data: ") == 10000, said[-1000:])
    result(("rping", "-V", *words[:4]), "contents right")
    for words in (("rstream", "-T", "v"), ("rstream",), ("riostream", "-T", "v"), ("riostream",)):
        port = ("-p", free_port())
        said = hosts.managed((*words, *port), (*words, *port, "-s", SERVER))
        lines = [line.split() for line in said.splitlines() if re.match(r"\w+_(lat|bw) ", line)]
        expect(len(lines) >= 8, said)
        result(words, ", ".join(f"{line[0]} {line[-1]} us" for line in lines if line[0] in ("64_lat", "4k_lat", "64k_lat", "64k_bw", "1m_bw")))
    hosts.stop()


def long_libfabric(lab, carrier, library, _other_abi):
    """libfabric's ping-pong, all its sizes."""
    need("fi_pingpong")
    os.environ.update(OFI_RXM)
    be_patient()
    hosts = Hosts(lab, carrier, library)
    for words in (("-p", "verbs", "-e", "msg"), ("-p", "verbs", "-e", "dgram", "-d", "ntb0-dgram"),
                  ("-p", "verbs;ofi_rxm", "-e", "rdm")):
        port = free_port()
        words = ("-I", 100, "-c", "-S", "all", *words)
        if "dgram" in words:
            words = ("-I", 100, "-c", *words[5:])
        server, said = with_server(hosts, port, ("fi_pingpong", "-B", port, *words),
                                   ("fi_pingpong", "-P", port, *words, SERVER))
        server.end(0)
        rows = [line.split() for line in said.splitlines() if re.match(r"\d+[km]? +", line)]
        expect(rows, said)
        result(("fi_pingpong", *words), ", ".join(f"{row[0]} {row[6]} us" for row in rows if row[0] in ("64", "4k", "64k", "1m")))
    hosts.stop()


def long_ucx(lab, carrier, library, _other_abi):
    """UCX, more often than for a short look."""
    program = ucx_perftest()
    be_patient()
    hosts = Hosts(lab, carrier, library)
    os.environ["UCX_TLS"], os.environ["UCX_NET_DEVICES"] = "rc_verbs,ud_verbs,self", "ntb0:1"
    device = ("-d", "ntb0:1", "-x", "rc_verbs")
    cases = [(*device, "-t", test, "-n", 10000) for test in ("put_lat", "put_bw", "am_lat", "am_bw", "add_lat")]
    cases += [(*device, "-t", "get", "-D", "zcopy", "-s", 4096, "-n", 10000), (*device, "-t", "put_bw", "-D", "zcopy", "-s", 65536, "-n", 10000)]
    cases += [("-d", "ntb0:1", "-x", "ud_verbs", "-t", "am_lat", "-n", 10000)]
    cases += [("-t", test, "-n", 10000) for test in ("tag_lat", "tag_bw", "ucp_put_lat", "ucp_put_bw", "ucp_get", "ucp_add")]
    for words in cases:
        port = free_port()
        words = ("-p", port, *words)
        server, said = with_server(hosts, port, (*program, *words), (*program, *words, SERVER))
        server.end(0)
        found = re.search(r"^Final: +(\d+) +(.*)$", said, re.M)
        expect(found, said)
        figures = found[2].split()
        result(("ucx_perftest", *words[2:]), f"{found[1]} times, {figures[2]} us, {figures[-3]} MB/s")
    hosts.stop()


CASES = {case.__name__: case for case in (options, devices, beside, traps, pingpong, perftest, direct, unprivileged, killed, absent, manager, rsockets,
                                          managed_perftest, qperf, fio, libfabric, ucx, mpi, manager_refusals, pyverbs, long_pingpong, sweeps, long_streams,
                                          long_libfabric, long_ucx)}


def main():
    case, carrier = sys.argv[1:3]
    find_programs()
    library, other_abi = (pathlib.Path(word).resolve() for word in sys.argv[6:8])
    if case == unprivileged.__name__:
        become_anybody(*sys.argv[3:6], library)
    run_case(case, [pathlib.Path(word).resolve() for word in sys.argv[3:6]],
             lambda lab: CASES[case](lab, carrier, library, other_abi))


if __name__ == "__main__":
    main()
