# SPDX-License-Identifier: BSD-3-Clause
"""Two network namespaces that tools/ntb-net joins, for tests whose first arguments are the tool and ntbmsg-net."""

import os
import pathlib
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import facts

ARGUMENTS = list(sys.argv)
APART = "NTBMSG_TEST_APART"
TOOL = sys.argv.pop(1)
PROGRAM = sys.argv.pop(1)
PATIENCE = 60
SKIPPED = 77
RUN = pathlib.Path("/run/ntb-net")
ADDRESSES = ("10.213.0.1", "10.213.0.2")

# Prints how many of ten requests were answered with their data.
PING = """
import os, select, socket, struct, sys
ping = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
me, payload = os.getpid() & 0xffff, os.urandom(int(sys.argv[2]))
def request(number):
    head = struct.pack("!BBHHH", 8, 0, 0, me, number)
    words = struct.unpack(f"!{(len(head) + len(payload)) // 2}H", head + payload)
    total = sum(words)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return head[:2] + struct.pack("!H", ~total & 0xffff) + head[4:] + payload
answers = 0
for number in range(10):
    ping.sendto(request(number), (sys.argv[1], 0))
    while select.select([ping], [], [], 5)[0]:
        got = ping.recv(65536)[20:]
        if got[0] == 0 and struct.unpack("!HH", got[4:8]) == (me, number):
            answers += got[8:] == payload
            break
print(answers)
"""


def run(*words, check=True):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE, check=False)
    if check and done.returncode:
        raise AssertionError(f"{shlex.join(done.args)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def await_fact(fact, what):
    facts.await_fact(fact, what, PATIENCE)


def lives(pid):
    try:
        return "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


class Host:
    def __init__(self, world, number):
        self.world, self.number = world, number
        self.netns = f"ntbtest{os.getpid()}{'ab'[number]}"
        self.address = ADDRESSES[number]
        self.cpu = world.cpus[-number]
        run("ip", "netns", "add", self.netns)
        run("ip", "-n", self.netns, "link", "set", "lo", "up")

    def tool(self, command, *words, check=True):
        return run("bash", TOOL, command, "--netns", self.netns, *words, check=check)

    def up(self, *options, check=True):
        return self.tool("up", "--program", PROGRAM, "--cable", self.world.folder / "cable", "--cpus", self.cpu,
                         "--address", f"{self.address}/24", *options, check=check)

    def state(self):
        return RUN / f"{self.netns}@ntb0"

    def pid(self):
        return int((self.state() / "pid").read_text())

    def value(self, name):
        """Of the interface, in sysfs of the namespace; None: there is none."""
        got = run("ip", "netns", "exec", self.netns, "cat", f"/sys/class/net/ntb0/{name}", check=False)
        return int(got.stdout) if got.returncode == 0 else None

    def await_carrier(self, value):
        await_fact(lambda: self.value("carrier") == value, f"carrier {value} of {self.netns}")

    def python(self, text, *words, **more):
        return subprocess.Popen(["ip", "netns", "exec", self.netns, sys.executable, "-c", text, *map(str, words)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **more)

    def remove(self):
        self.tool("down", check=False)
        run("ip", "netns", "del", self.netns, check=False)


class Hosts(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="ntbmsg-ntb-net-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.cpus = sorted(os.sched_getaffinity(0))
        self.children = []
        self.hosts = []
        for number in range(2):
            self.hosts.append(Host(self, number))
            self.addCleanup(self.hosts[-1].remove)

    def both_up(self, *options):
        for host in self.hosts:
            host.up(*options)
        for host in self.hosts:
            host.await_carrier(1)
            await_fact(lambda: "peer:" in (host.state() / "log").read_text(), "a hello")

    def start(self, host, text, *words):
        child = host.python(text, *words)
        self.children.append(child)
        self.addCleanup(lambda: (child.kill(), child.communicate()))
        return child

    def end_of(self, child):
        said, _ = child.communicate(timeout=PATIENCE)
        self.assertEqual(child.returncode, 0)
        return said.splitlines()[-1]

    def line(self, child):
        said = b""
        # Without a buffer of Python's, which would keep what end_of() reads.
        while not said.endswith(b"\n"):
            self.assertTrue(select.select([child.stdout], [], [], PATIENCE)[0], "nothing was said")
            said += os.read(child.stdout.fileno(), 1) or b"ended\n"
        return said.decode().strip()

    def answers(self, host, peer, size):
        """To ten requests."""
        return int(self.end_of(self.start(host, PING, peer.address, size)))

    def ping(self, host, peer, size):
        self.assertEqual(self.answers(host, peer, size), 10)


def missing():
    try:
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except OSError:
        return "/dev/net/tun"
    name = f"ntbtest{os.getpid()}"
    if shutil.which("ip") is None or run("ip", "netns", "add", name, check=False).returncode:
        return "network namespaces (ip netns add)"
    made = run("ip", "-n", name, "tuntap", "add", "dev", "t0", "mode", "tap", check=False).returncode == 0
    run("ip", "netns", "del", name, check=False)
    return None if made else "tap devices"


def skip(lacks):
    print(f"skipped: needs {lacks}")
    sys.exit(SKIPPED)


def alone():
    """Starts this test again as the first process of namespaces of its own, with a /run of its own. When it ends or is
    killed, the kernel ends all that it started, and its files, mounts and named namespaces are gone."""
    apart = ["unshare", "--mount", "--pid", "--kill-child", "--mount-proc", "--"]
    if os.geteuid() != 0:
        skip("root")
    if APART not in os.environ:
        if run(*apart, "mount", "-t", "tmpfs", "none", "/run", check=False).returncode:
            skip("namespaces of processes and mounts (unshare)")
        os.environ[APART] = "1"
        os.execvp(apart[0], [*apart, sys.executable, *ARGUMENTS])
    run("mount", "-t", "tmpfs", "none", "/run")
    os.environ["TMPDIR"] = tempfile.tempdir = "/run"


def main():
    alone()
    lacks = missing()
    if lacks:
        skip(lacks)
    unittest.main("__main__")
