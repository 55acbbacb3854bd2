#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs that know nothing of the bridge, started by ntb-run.

  sockets_test.py CASE NTB_RUN LIBRARY TRAPS
"""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
import instructions
from facts import PATIENCE, Failure, expect

# All of this machine, and no daemon.
CONFIG = "host 127.0.0.0/8 {folder}/nobody.sock\nuse ntb * * *:*\n"


class Bench:
    def __init__(self, folder, ntb_run, library, traps):
        self.folder, self.ntb_run, self.library, self.traps = folder, ntb_run, library, traps
        self.config = folder / "sockets.conf"
        self.config.write_text(CONFIG.format(folder=folder))

    def run(self, *words, **more):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=PATIENCE,
                              check=False, **more)

    def under(self, *words, options=(), **more):
        """A program under the preload."""
        return self.run(self.ntb_run, "--library", self.library, "--config", self.config, *options, *words, **more)


def options(bench):
    """What is wrong is said in one line, and what is chosen."""
    run = bench.run
    expect("--config FILE" in run(bench.ntb_run, "--help").stdout, "help")
    expect(run(bench.ntb_run, "--version").stdout.startswith("ntb-run "), "version")
    for words in ((), ("-v",), ("--bad", "true"), ("--config",)):
        done = run(bench.ntb_run, *words)
        expect(done.returncode == 2 and done.stderr.count("\n") == 1, done)
    # Options behind the program are its own.
    expect(bench.under("echo", "--config", "-v").stdout == "--config -v\n", "options of the program")
    expect(bench.under("sh", "-c", "exit 7").returncode == 7, "status")
    wrong = bench.folder / "wrong.conf"
    wrong.write_text("# right\nuse tcp\n")
    done = run(bench.ntb_run, "--config", wrong, "touch", bench.folder / "ran")
    expect(done.returncode == 2 and not (bench.folder / "ran").exists(), done)
    expect(done.stderr == f"ntb-run: {wrong}:2: expected: use ntb|tcp|both connect|accept|inherit|late|* PROGRAM ADDRESS:PORT\n", done)
    done = run(bench.ntb_run, "--config", bench.folder / "none", "true")
    expect(done.returncode == 2 and done.stderr == f"ntb-run: {bench.folder}/none: No such file or directory\n", done)
    done = run(bench.ntb_run, "--config", bench.config, "--library", bench.folder / "none.so", "echo", "ran")
    expect((done.returncode, done.stdout) == (0, "ran\n"), done)
    expect(done.stderr == f"ntb-run: {bench.folder}/none.so cannot be loaded: TCP alone\n", done)
    done = bench.under("sh", "-c", "echo $LD_PRELOAD", env=os.environ | {"LD_PRELOAD": "libc.so.6"})
    expect(done.stdout == f"libc.so.6:{bench.library}\n", done)


def programs(bench):
    """Programs that cannot be preloaded run all the same, and those that are not there do not."""
    done = bench.under("no-such-program")
    expect((done.returncode, done.stderr) == (127, "ntb-run: no-such-program: No such file or directory\n"), done)
    data = bench.folder / "data"
    data.write_text("no program")
    done = bench.under(data)
    expect((done.returncode, done.stderr) == (126, f"ntb-run: {data}: Permission denied\n"), done)
    expect(bench.under(bench.folder).returncode == 126, "a folder")
    source = bench.folder / "hello.c"
    source.write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
    static = bench.folder / "static"
    expect(bench.run("gcc", "-static", source, "-o", static).returncode == 0, "gcc")
    script = bench.folder / "script"
    script.write_text(f"#!{static}\n")
    script.chmod(0o755)
    for program, why in ((static, "is static"), (script, f"has an interpreter, {static}, that is static")):
        done = bench.under(program)
        expect((done.returncode, done.stdout) == (0, "hello\n"), done)
        expect(done.stderr == f"ntb-run: {program} {why}: TCP alone\n", done)
    other = bytearray(static.read_bytes())
    other[18] = 243  # RISC-V
    (bench.folder / "other").write_bytes(other)
    (bench.folder / "other").chmod(0o755)
    done = bench.under(bench.folder / "other")
    expect(done.returncode == 126 and "is of another kind of machine" in done.stderr, done)
    (bench.folder / "short").write_bytes(static.read_bytes()[:40])
    (bench.folder / "short").chmod(0o755)
    expect(bench.under(bench.folder / "short").returncode == 126, "a program of 40 bytes")
    if os.geteuid() == 0:
        setuid = bench.folder / "setuid"
        shutil.copy("/bin/true", setuid)
        os.chown(setuid, 65534, 65534)
        setuid.chmod(0o4755)
        done = bench.under(setuid)
        expect((done.returncode, done.stderr) == (0, f"ntb-run: {setuid} is setuid: TCP alone\n"), done)


def exports(bench):
    """A program finds in the library names of libc and of liburing alone, and needs nothing but libc for it."""
    names = bench.run("nm", "-D", "--defined-only", bench.library).stdout.split()[2::3]
    expect(len(names) > 50 and {"read", "__recv_chk", "fcntl64", "close_range"} <= set(names), names)
    uring = {"io_uring_setup", "io_uring_queue_init", "io_uring_queue_init_params", "io_uring_queue_init_mem"}
    expect(uring < set(names), names)
    # Taken by name as well, and looked up when they are called: older ones do not have them.
    newer = {"pidfd_spawn", "pidfd_spawnp"}
    expect(newer < set(names), names)
    names = [name for name in names if name not in uring | newer]
    libc = bench.run("/usr/bin/python3", "-c", "import ctypes, sys\n"
                     "libc = ctypes.CDLL('libc.so.6')\n"
                     "print([name for name in sys.argv[1:] if not hasattr(libc, name)])", *names)
    expect(libc.stdout == "[]\n", libc)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", bench.run("readelf", "-dW", bench.library).stdout)
    expect(all(re.match(r"(libc|libdl|libpthread|ld-linux.*)\.so", name) for name in needed), needed)


def reported(done):
    """The counts of calls, and bytes by TCP, of a report."""
    calls = re.search(r"^  calls:(.*)$", done.stderr, re.M)
    tcp = re.search(r"by TCP: (\d+) bytes received, (\d+) sent", done.stderr)
    expect(calls and tcp, done)
    words = calls.group(1).split()
    return dict(zip(words[::2], map(int, words[1::2]))), (int(tcp.group(1)), int(tcp.group(2)))


def calls(bench):
    """Every call that moves bytes or waits is seen."""
    done = bench.under(bench.traps, "calls", options=["-v"])
    expect(done.returncode == 0, done)
    counts, bytes_by_tcp = reported(done)
    once = set("read __read_chk readv recv __recv_chk recvfrom __recvfrom_chk recvmsg recvmmsg write writev sendto "
               "sendmsg sendmmsg sendfile splice shutdown ioctl poll __poll_chk ppoll __ppoll_chk select pselect "
               "epoll_ctl epoll_wait epoll_pwait epoll_pwait2".split())
    seen = {name.replace("64v2", "2").replace("64", ""): count for name, count in counts.items()}
    expect(seen == {name: 1 for name in once} | {"send": 2, "preadv2": 1, "pwritev2": 1}, counts)
    expect(bytes_by_tcp == (10, 10), bytes_by_tcp)
    expect("2 stay TCP: no daemon" in done.stderr, done)


def traps(bench):
    """What programs do with sockets is the same with and without the preload."""
    names = bench.run(bench.traps, "list").stdout.split()
    expect(len(names) > 20, names)
    for name in names:
        alone, under = bench.run(bench.traps, name), bench.under(bench.traps, name)
        expect(alone.returncode == 0 and alone.stdout, f"{name} alone: {alone}")
        expect((under.returncode, under.stdout, under.stderr) == (0, alone.stdout, alone.stderr),
               f"{name}: alone\n{alone.stdout}{alone.stderr}\nunder the preload\n{under.stdout}{under.stderr}")


def report(bench):
    """One block at the end, also of a program that has closed or replaced its standard error."""
    program = ("import os, socket; l = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(l.getsockname());"
               "a, _ = l.accept(); c.sendall(bytes(1000)); a.recv(1000, socket.MSG_WAITALL); {}")
    for end in ("pass", "os._exit(0)", "os.close(2)", "os.closerange(3, 5000)", "os.fork() and os.wait()"):
        done = bench.under("/usr/bin/python3", "-c", program.format(end), options=["-v"])
        expect(done.returncode == 0 and done.stderr.count("ntbsocket: python3") == 1, f"{end}: {done}")
        expect(reported(done)[1] == (1000, 1000), done)
    done = bench.under("/usr/bin/python3", "-c", program.format("pass"))
    expect((done.returncode, done.stderr) == (0, ""), done)
    # A program that ends well does so where the report cannot be written: a sandbox sets such a limit.
    for name, what in (("SIGXFSZ", "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"),
                       ("SIGPIPE", "r, w = os.pipe(); os.dup2(w, 2); os.close(r); os.close(w);"
                                   "os.execv('/bin/true', ['true'])")):
        with open(bench.folder / "limited", "wb") as file:
            done = subprocess.run([bench.ntb_run, "--library", bench.library, "--config", bench.config, "-v", "/usr/bin/python3", "-c",
                                   f"import os, signal, sys; signal.signal(signal.{name}, signal.SIG_DFL); {what}"],
                                  stderr=file, timeout=PATIENCE, check=False)
        expect(done.returncode == 0, f"{name}: {done}")
    # A configuration that is wrong when the program starts, or gone.
    bench.config.write_text("use\n")
    done = bench.run("/usr/bin/python3", "-c", program.format("pass"),
                     env=os.environ | {"LD_PRELOAD": str(bench.library), "NTB_SOCKET_CONFIG": str(bench.config),
                                       "NTB_SOCKET_VERBOSE": "1"})
    expect(done.returncode == 0 and done.stderr.startswith(f"ntbsocket: {bench.config}:1: expected: use "), done)


# Instructions more, at most, that a call takes in user space where no daemon answers. A set counts who sleeps in it.
COSTS = {"send and recv": 45, "recv of nothing": 25, "epoll_wait": 120, "poll": 50, "epoll_ctl": 70,
         "connect, accept and both closes": 400}
# More of them where the compiler guards stacks without being asked, as that of Ubuntu does: a call goes through several
# functions.
GUARDS = 25


def costs(bench):
    """Where no daemon answers a call is libc's, after a look at its descriptor."""
    instructions.need_valgrind()
    preload = {"LD_PRELOAD": str(bench.library), "NTB_SOCKET_CONFIG": str(bench.config)}
    guarded = "__stack_chk_fail" in bench.run("nm", "-D", "--undefined-only", bench.library).stdout
    for kind, (name, most) in enumerate(COSTS.items()):
        most += GUARDS if guarded else 0
        alone, under = (instructions.of_a_call(bench.run, bench.traps, kind, more) for more in ({}, preload))
        print(f"{name}: {alone:.1f} instructions, {under:.1f} under the preload")
        expect(under - alone <= most, f"{name}: {under - alone} more, at most {most}")


CASES = {case.__name__: case for case in (options, programs, exports, calls, traps, report, costs)}


def main():
    case, ntb_run, library, traps_program = sys.argv[1:]
    signal.alarm(4 * PATIENCE)
    with tempfile.TemporaryDirectory(prefix="ntb-sockets-") as folder:
        pathlib.Path(folder).chmod(0o755)
        try:
            CASES[case](Bench(pathlib.Path(folder), ntb_run, library, traps_program))
        except Failure as failure:
            sys.exit(f"{case}: {failure}")


if __name__ == "__main__":
    main()
