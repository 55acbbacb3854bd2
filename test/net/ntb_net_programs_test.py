# SPDX-License-Identifier: BSD-3-Clause
"""Programs that know nothing of the bridge, between two kernels that tools/ntb-net joins.

    ntb_net_programs_test.py NTB_NET PROGRAM

Status 77 (skipped) where namespaces or tap devices are not to be had; a case whose programs are missing is skipped.
"""

import filecmp
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent))
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from ntb_net_hosts import PATIENCE, Hosts, await_fact, main, run
from programs import UNPACKED, find_programs, listens, unpacked

find_programs()

# Long frames, and many of them; not a multiple of any block.
LENGTH = (32 << 20) + 12345


def have(*programs):
    lacks = [program for program in programs if shutil.which(program) is None]
    return unittest.skipIf(lacks, "needs " + ", ".join(lacks))


class Programs(Hosts):
    def setUp(self):
        super().setUp()
        self.both_up()
        self.data = self.folder / "data"
        self.data.write_bytes(os.urandom(LENGTH))

    def begin(self, host, *words, **more):
        """A program at a host, ended with the case."""
        log = open(self.folder / f"log{len(self.children)}", "w+")  # pylint: disable=consider-using-with
        self.addCleanup(log.close)
        child = subprocess.Popen(["ip", "netns", "exec", host.netns, *map(str, words)],
                                 **{"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log, **more})
        self.children.append(child)
        self.addCleanup(lambda: (child.kill(), child.communicate()))
        return child

    def serve(self, host, port, *words, **more):
        """A server, from the moment that it listens."""
        child = self.begin(host, *words, **more)
        log = self.folder / f"log{len(self.children) - 1}"
        await_fact(lambda: listens(port, child.pid) or child.poll() is not None, f"{words[0]} listens")
        self.assertIsNone(child.poll(), log.read_text())
        return child

    def at(self, host, *words):
        done = run("ip", "netns", "exec", host.netns, *words, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def same(self, got):
        self.assertTrue(filecmp.cmp(self.data, got, shallow=False), f"{got} is not {self.data}")

    def start_again(self, host, other):
        other.await_carrier(0)
        await_fact(lambda: host.value("carrier") is None, "the interface ends with its process")
        host.up()
        for one in (host, other):
            one.await_carrier(1)

    def start_sshd(self, host):
        """Without what an installation would have made: its user, its folder, an account of root that keys may use. The
        files are this test's own, as all of its mounts."""
        for name, add in (("passwd", "sshd:x:65533:65534::/run/sshd:/usr/sbin/nologin\n"), ("shadow", "sshd:*:1::::::\n")):
            lines = [line for line in pathlib.Path("/etc", name).read_text().splitlines(keepends=True)
                     if not line.startswith(("sshd:", "root:"))]
            root = "root:x:0:0::/root:/bin/sh\n" if name == "passwd" else "root:*:1::::::\n"
            mine = self.folder / name
            mine.write_text("".join([root, *lines, add]))
            run("mount", "--bind", mine, f"/etc/{name}")
            self.addCleanup(run, "umount", f"/etc/{name}")
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        for key in ("host", "user"):
            run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / key)
        config = self.folder / "sshd_config"
        config.write_text(f"Port 22\nHostKey {self.folder}/host\nAuthorizedKeysFile {self.folder}/user.pub\n"
                          "PermitRootLogin yes\nStrictModes no\nUsePAM no\nPidFile none\nSubsystem sftp internal-sftp\n")
        # Newer ones have it in several programs.
        for option, name in (("SshdSessionPath", "sshd-session"), ("SshdAuthPath", "sshd-auth")):
            path = unpacked(f"lib/openssh/{name}")
            if path:
                config.write_text(config.read_text() + f"{option} {path}\n")
        self.serve(host, 22, shutil.which("sshd"), "-D", "-e", "-f", config)
        return ["-F", "none", "-i", self.folder / "user", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
                "-o", "UserKnownHostsFile=/dev/null"]

    def start_nginx(self, host):
        config = self.folder / "nginx.conf"
        config.write_text(f"daemon off; user root; worker_processes 1; pid {self.folder}/nginx.pid; error_log stderr;\n"
                          "events { }\nhttp { access_log off; sendfile on; "
                          + "".join(f"{what}_temp_path {self.folder}/{what}; "
                                    for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
                          + f"server {{ listen 80; root {self.folder}; }} }}\n")
        # Asked to end, it ends its workers.
        server = self.serve(host, 80, shutil.which("nginx"), "-p", self.folder, "-c", config, "-e", "stderr")
        self.addCleanup(server.wait, PATIENCE)
        self.addCleanup(server.terminate)

    @have("ping")
    def test_ping(self):
        a, b = self.hosts
        for size in (56, 60000):
            # With a time limit it waits for so many answers, without it for little longer than the slowest one took.
            said = self.at(a, "ping", "-c", 10, "-w", PATIENCE // 2, "-i", 0.05, "-s", size, b.address)
            self.assertRegex(said, r"\b[1-9]\d+ received")

    @have("ssh", "scp", "sshd", "ssh-keygen")
    def test_scp_both_ways(self):
        a, b = self.hosts
        options = self.start_sshd(b)
        scp = ["scp", "-S", shutil.which("ssh"), *options]
        self.at(a, *scp, f"root@{b.address}:{self.data}", self.folder / "down")
        self.same(self.folder / "down")
        self.at(a, *scp, self.data, f"root@{b.address}:{self.folder}/up")
        self.same(self.folder / "up")

    @have("nginx", "curl", "wrk")
    def test_nginx(self):
        a, b = self.hosts
        self.start_nginx(b)
        self.at(a, "curl", "-sSf", "-o", self.folder / "down", f"http://{b.address}/data")
        self.same(self.folder / "down")
        (self.folder / "page").write_text("x" * 612)
        said = self.at(a, "wrk", "-t", 1, "-c", 8, "-d", 1, f"http://{b.address}/page")
        self.assertRegex(said, r"(?m)^\s*[1-9]\d* requests in ")
        self.assertNotRegex(said, "Socket errors|Non-2xx")

    @have("iperf3")
    def test_iperf3(self):
        a, b = self.hosts
        self.serve(b, 5201, "iperf3", "-s")
        for more in ([], ["-R"], ["-P", 4]):
            with self.subTest(more):
                said = json.loads(self.at(a, "iperf3", "-c", b.address, "-J", "-n", 16 << 20, *more))
                self.assertGreaterEqual(said["end"]["sum_sent"]["bytes"], 16 << 20)
                # What came after the receiver's last report is not counted there.
                self.assertGreater(said["end"]["sum_received"]["bytes"], 1 << 20)

    @have("ganesha.nfsd", "nfs-ls", "nfs-cp")
    def test_nfs(self):
        """A server and a client in user space: not every kernel has NFS."""
        plugins = unpacked(f"lib/{os.uname().machine}-linux-gnu/ganesha")
        if plugins is None or not (plugins / "libfsalvfs.so").exists():
            self.skipTest("needs libfsalvfs.so of ganesha")
        if unpacked("lib/ganesha/libganesha_nfsd.so.4.3") is None:
            self.skipTest("needs ganesha 4.3: others take another configuration")
        a, b = self.hosts
        export = self.folder / "export"
        export.mkdir()
        config = self.folder / "ganesha.conf"
        config.write_text(
            f"NFS_CORE_PARAM {{ Protocols = 4; Enable_NLM = false; Enable_RQUOTA = false; Plugins_Dir = {plugins}; }}\n"
            f"NFSV4 {{ Graceless = true; RecoveryRoot = {self.folder}; Only_Numeric_Owners = true; UseGetpwnam = true; }}\n"
            "NFS_KRB5 { Active_krb5 = false; }\n"
            f"EXPORT {{ Export_Id = 1; Path = {export}; Pseudo = /data; Access_Type = RW; Squash = None; SecType = sys;\n"
            "         Protocols = 4; Transports = TCP; FSAL { Name = VFS; } }\n")
        # Where its own library lies, if it is not installed.
        libraries = os.environ.get("LD_LIBRARY_PATH", "") + f":{UNPACKED}/lib/ganesha"
        shutil.copy(self.data, export / "data")
        self.serve(b, 2049, "ganesha.nfsd", "-F", "-L", "STDERR", "-f", config, "-p", self.folder / "ganesha.pid",
                   env={**os.environ, "LD_LIBRARY_PATH": libraries})
        url = f"nfs://{b.address}/data"
        self.assertRegex(self.at(a, "nfs-ls", f"{url}?version=4&nfsport=2049"), rf"{LENGTH} +data\n")
        self.at(a, "nfs-cp", f"{url}/data?version=4&nfsport=2049", self.folder / "down")
        self.same(self.folder / "down")
        # Short: this client writes no more over NFS 4.
        short = self.folder / "short"
        short.write_bytes(os.urandom(1000))
        self.at(a, "nfs-cp", short, f"{url}/up?version=4&nfsport=2049")
        self.assertTrue(filecmp.cmp(short, export / "up", shallow=False))

    @have("ssh", "sshd", "ssh-keygen", "nginx", "curl")
    def test_a_session_and_a_transfer_outlive_a_restart_of_either_side(self):
        a, b = self.hosts
        options = self.start_sshd(b)
        self.start_nginx(b)
        session = self.begin(a, "ssh", *options, f"root@{b.address}", "cat", stdin=subprocess.PIPE, stdout=subprocess.PIPE)

        def answers(text):
            session.stdin.write(text)
            session.stdin.flush()
            self.assertEqual(self.line(session).encode() + b"\n", text)
        answers(b"before\n")
        down = self.folder / "down"
        # With bytes on the way all the time.
        transfer = self.begin(a, "curl", "-sSf", "--limit-rate", "8M", "-o", down, f"http://{b.address}/data")
        for host, other in ((a, b), (b, a)):
            had = down.stat().st_size if down.exists() else 0
            await_fact(lambda: down.exists() and down.stat().st_size > had, "more bytes")
            os.kill(host.pid(), signal.SIGKILL)
            # Held up, so that it is not over before the next one.
            transfer.send_signal(signal.SIGSTOP)
            self.start_again(host, other)
            answers(f"after {host.netns}\n".encode())
            self.assertIsNone(transfer.poll())
            transfer.send_signal(signal.SIGCONT)
        self.assertEqual(transfer.wait(PATIENCE), 0)
        self.same(down)
        session.communicate(timeout=PATIENCE)
        self.assertEqual(session.returncode, 0)


if __name__ == "__main__":
    main()
