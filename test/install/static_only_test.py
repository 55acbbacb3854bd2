# SPDX-License-Identifier: BSD-3-Clause
"""Builds and installs with default_library=static, and links a C program with what pkg-config says of it.

    static_only_test.py SOURCE_ROOT SDK_FOLDER|-
"""

import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from facts import PATIENT

ROOT, SDK = pathlib.Path(sys.argv[1]), sys.argv[2]
# Without optimisation: what is linked is judged here, and a build from nothing takes minutes of a busy machine.
OPTIONS = [f"-D{part}=false" for part in ("tests", "bench", "apps", "examples", "debug")] + [
    "-Ddefault_library=static", "-Doptimization=0"]
EAL = ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry"]


def run(*command, timeout=100, **more):
    """Runs a command with all that it starts, which ends with it: compilers would outlive a build that is cut."""
    with subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True, **more) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0, f"{command}: status {process.returncode}\n{output}{errors}"
    return output


def main():
    with tempfile.TemporaryDirectory(prefix="ntbmsg-static-") as name:
        folder = pathlib.Path(name)
        run("meson", "setup", folder / "build", ROOT, *OPTIONS, *([] if SDK == "-" else [f"-Ddpdk_sdk={SDK}"]))
        run("meson", "install", "-C", folder / "build", "--quiet", "--destdir", folder / "stage", timeout=1000)
        # What programs are started with is loaded, never linked: libntbsocket.so is one in each build,
        # libntbverbs.so where there are headers of libibverbs.
        assert {file.name for file in (folder / "stage").rglob("*.so*")} - {"libntbverbs.so"} == {"libntbsocket.so"}
        package = next((folder / "stage").rglob("libntbmsg.pc"))
        environment = {**os.environ, "PKG_CONFIG_PATH": str(package.parent)}
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "libntbmsg", env=environment))
        run("gcc", "-o", folder / "app", ROOT / "examples/hello_c/main.c", *flags)
        cores = sorted(os.sched_getaffinity(0))
        hosts = [subprocess.Popen([folder / "app", "-l", str(core), *EAL, f"--vdev=raw_plx_ntb0,cable={folder}/cable,{PATIENT}",
                                   "--", role], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                 for core, role in ((cores[0], "listen"), (cores[-1], "say"))]
        try:
            said = [host.communicate(timeout=120)[0] for host in reversed(hosts)]
        finally:
            for host in hosts:
                host.kill()
                host.wait()
        assert [host.returncode for host in hosts] == [0, 0], said
        assert 'answer 4: you said "hello number 4"' in said[0], said


if __name__ == "__main__":
    main()
