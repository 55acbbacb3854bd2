# SPDX-License-Identifier: BSD-3-Clause
"""Builds and installs with default_library=static, and links a C program with what pkg-config says of it.

    static_only_test.py SOURCE_ROOT SDK_FOLDER|-
"""

import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

ROOT, SDK = pathlib.Path(sys.argv[1]), sys.argv[2]
OPTIONS = [f"-D{part}=false" for part in ("tests", "bench", "apps", "examples")] + ["-Ddefault_library=static"]
EAL = ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry"]


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def main():
    with tempfile.TemporaryDirectory(prefix="ntbmsg-static-") as name:
        folder = pathlib.Path(name)
        run("meson", "setup", folder / "build", ROOT, *OPTIONS, *([] if SDK == "-" else [f"-Ddpdk_sdk={SDK}"]))
        run("meson", "install", "-C", folder / "build", "--quiet", "--destdir", folder / "stage", timeout=1000)
        assert not list((folder / "stage").rglob("*.so*"))
        package = next((folder / "stage").rglob("libntbmsg.pc"))
        environment = {**os.environ, "PKG_CONFIG_PATH": str(package.parent)}
        flags = shlex.split(run("pkg-config", "--cflags", "--libs", "libntbmsg", env=environment))
        run("gcc", "-o", folder / "app", ROOT / "examples/hello_c/main.c", *flags)
        cores = sorted(os.sched_getaffinity(0))
        hosts = [subprocess.Popen([folder / "app", "-l", str(core), *EAL, f"--vdev=raw_plx_ntb0,cable={folder}/cable",
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
