# SPDX-License-Identifier: BSD-3-Clause
"""Installs what was built into a folder of its own, builds the examples against it through pkg-config, in
C and in C++, shared and static, and runs them there; as README says it, with nothing set that it does
not set.

    install_test.py SOURCE_ROOT BUILD_ROOT VERSION SOVERSION DPDK_ABI
"""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from facts import PATIENT

DPDK_ABI = sys.argv.pop()
SONAME = f"libntbmsg.so.{sys.argv.pop()}"
DRIVER_SONAME = f"librte_raw_plx_ntb.so.{DPDK_ABI}"
PORT_SONAME = f"librte_net_plx_ntb.so.{DPDK_ABI}"
VERSION = sys.argv.pop()
BUILD = pathlib.Path(sys.argv.pop())
ROOT = pathlib.Path(sys.argv.pop())
PATIENCE = 120
WARNINGS = ["-Wall", "-Wextra", "-Werror", "-O1"]
# A build folder that was made before pkg-config files could be moved.
SKIPPED = 77


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300,
                          check=False, **more)
    if done.returncode != 0:
        raise AssertionError(f"{shlex.join(map(str, command))}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.scratch = tempfile.TemporaryDirectory(prefix="ntbmsg-install-")
        cls.addClassCleanup(cls.scratch.cleanup)
        cls.folder = pathlib.Path(cls.scratch.name)
        # It may be moved, as packages are.
        run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", cls.folder / "staged")
        (cls.folder / "staged").rename(cls.folder / "stage")
        files = list((cls.folder / "stage").rglob("libntbmsg.pc"))
        assert len(files) == 1, files
        cls.pc = files[0]
        cls.lib = cls.pc.parent.parent
        cls.environment = {name: value for name, value in os.environ.items()
                           if name not in ("LD_LIBRARY_PATH", "LD_PRELOAD", "PKG_CONFIG_PATH")}
        cls.as_found = dict(cls.environment)
        cls.environment["PKG_CONFIG_PATH"] = str(cls.pc.parent)

    def installed(self, name):
        files = [path for path in (self.folder / "stage").rglob(name) if not path.is_dir()]
        self.assertEqual(len(files), 1, name)
        return files[0]

    def pkg_config(self, *words):
        return shlex.split(run("pkg-config", *words, env=self.environment))

    def build(self, source, package="libntbmsg", static=()):
        """Compiles and links a source by what pkg-config says and nothing else."""
        # DPDK's own headers increment volatile variables, which C++20 frowns on.
        compiler = ["g++", "-std=c++20", "-Wno-volatile"] if source.suffix == ".cpp" else ["gcc", "-std=gnu11"]
        if "-DALLOW_EXPERIMENTAL_API" in source.read_text():
            compiler.append("-DALLOW_EXPERIMENTAL_API")
        program = self.folder / f"{source.parent.name}-{source.stem}{''.join(static)}"
        run(*compiler, *WARNINGS, *self.pkg_config("--cflags", package), source, "-o", program,
            *self.pkg_config(*static, "--libs", package), env=self.environment)
        return program

    def needed(self, file):
        return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", file)))

    def eal(self, core, device=True):
        words = ["-l", str(core), "--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry"]
        return words + ([f"--vdev=raw_plx_ntb0,cable={self.folder / 'cable'},{PATIENT}"] if device else [])

    def two_hosts(self, programs, first, second):
        """Runs both roles of an example. @return what both said"""
        cores = sorted(os.sched_getaffinity(0))
        children = [subprocess.Popen([program, *self.eal(core), "--", *role], stdout=subprocess.PIPE,
                                     stderr=subprocess.STDOUT, text=True, env=self.environment)
                    for program, core, role in zip(programs, (cores[0], cores[-1]), (first, second))]
        try:
            said = [child.communicate(timeout=PATIENCE)[0] for child in reversed(children)][::-1]
        finally:
            for child in children:
                if child.poll() is None:
                    child.send_signal(signal.SIGKILL)
                    child.wait()
        self.assertEqual([child.returncode for child in children], [0, 0], said)
        return said

    def test_what_is_installed(self):
        include = {path.name for path in (self.folder / "stage").rglob("include/ntbmsg/*")}
        driver = [f"rte_pmd_plx_ntb{part}.h" for part in ("", "_memory", "_requester")]
        parts = [f"ntbmsg{part}.{kind}" for part in ("", "_endpoint", "_channel", "_rma") for kind in ("h", "hpp")]
        self.assertEqual(include, {*driver, *parts, "ntbclient.h"})
        names = {path.name for path in self.lib.glob("lib*")}
        self.assertEqual(names, {"libntbmsg.so", SONAME, f"libntbmsg.so.{VERSION}", "libntbmsg.a", "librte_raw_plx_ntb.so",
                                 DRIVER_SONAME, f"{DRIVER_SONAME}.0", "librte_raw_plx_ntb.a", "librte_net_plx_ntb.so",
                                 PORT_SONAME, f"{PORT_SONAME}.0", "librte_net_plx_ntb.a", "libntbclient.so", "libntbclient.so.0",
                                 f"libntbclient.so.{VERSION}"})
        share = self.lib.parents[1] / "share/ntbmsg"
        self.assertEqual({path.parent.name for path in share.glob("examples/*/main.c*")},
                         {path.parent.name for path in (ROOT / "examples").glob("*/main.c*")})
        self.assertTrue((share / "examples/ntb_net/ntb-net@.service").is_file())
        self.assertEqual([path for path in share.rglob("*") if path.name in ("meson.build", "__pycache__")], [])

    def test_drivers_lie_where_dpdk_looks(self):
        """Links to the libraries; what they show is where they will be, not where they are staged."""
        links = {path.name: path for path in (self.folder / "stage").glob(f"**/dpdk/pmds-{DPDK_ABI}.0/*")}
        self.assertEqual(set(links), {f"{soname[:-len(DPDK_ABI) - 1]}{ending}" for soname in (DRIVER_SONAME, PORT_SONAME)
                                      for ending in ("", f".{DPDK_ABI}", f".{DPDK_ABI}.0")})
        for name, link in links.items():
            target = os.readlink(link)
            place = self.folder / "stage" / target[1:] if target.startswith("/") else link.parent / target
            self.assertEqual(place.resolve(), (self.lib / name).resolve())

    def test_versions(self):
        for package in ("libntbmsg", "librte_raw_plx_ntb", "libntbclient"):
            self.assertEqual(self.pkg_config("--modversion", package), [VERSION])

    def test_the_libraries_stand_alone(self):
        for name, soname, paths in (("libntbmsg.so", SONAME, ["$ORIGIN"]), ("librte_raw_plx_ntb.so", DRIVER_SONAME, []),
                                    ("librte_net_plx_ntb.so", PORT_SONAME, ["$ORIGIN"])):
            dynamic = run("readelf", "-dW", self.lib / name)
            self.assertIn(f"Library soname: [{soname}]", dynamic)
            # Beside itself, and nowhere where it was built.
            self.assertEqual(re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic), paths)
        # A C program links the library without knowing that it is C++; the driver allocates by operator new.
        self.assertFalse([lib for lib in self.needed(self.lib / "libntbmsg.so") if "stdc++" in lib or "gcc_s" in lib])
        # A client has no DPDK.
        self.assertFalse([lib for lib in self.needed(self.lib / "libntbclient.so") if "stdc++" in lib or "rte_" in lib])

    def test_programs_are_started_with_the_library(self):
        if not list(self.lib.glob("ntbmsg/libntbsocket.so")):
            self.skipTest("an instrumented build has none")
        config = self.folder / "sockets.conf"
        config.write_text("")
        done = subprocess.run([self.installed("ntb-run"), "-v", "--config", config, "true"], capture_output=True, text=True,
                              timeout=PATIENCE, check=True, env=self.environment)
        said = re.search(r"^ntb-run: \S+ with \S+ and (\S+)$", done.stderr, re.M)
        self.assertTrue(said, done.stderr)
        self.assertEqual(pathlib.Path(said[1]).resolve(), self.lib / "ntbmsg/libntbsocket.so")
        self.assertIn("ntbsocket: true (", done.stderr)

    def test_symbols_carry_their_version(self):
        for name, node in (("libntbmsg.so", f"NTBMSG_{SONAME.rsplit('.', 1)[-1]}"), ("librte_raw_plx_ntb.so", f"DPDK_{DPDK_ABI}")):
            symbols = [line.split()[-1] for line in run("nm", "-D", "--defined-only", self.lib / name).splitlines()]
            functions = [symbol for symbol in symbols if symbol.startswith(("ntbmsg_", "rte_pmd_"))]
            self.assertGreater(len(functions), 10)
            nodes = {symbol.split("@@")[-1] for symbol in functions}
            self.assertEqual(nodes, {node, "EXPERIMENTAL", "INTERNAL"})

    def test_a_program_in_cpp(self):
        program = self.build(ROOT / "test/install/library_user.cpp")
        major, minor = re.search(r"MAJOR (\d+)(?:.|\n)*MINOR (\d+)", (ROOT / "lib/ntbmsg/ntbmsg_endpoint.h").read_text()).groups()
        self.assertEqual(run(program, env=self.environment), f"version {major}.{minor}\n")

    def test_a_program_on_the_driver_alone(self):
        program = self.build(ROOT / "test/install/driver_user.c", "librte_raw_plx_ntb")
        self.assertIn(DRIVER_SONAME, self.needed(program))
        self.assertNotIn(SONAME, self.needed(program))
        self.assertIn("device 0\n", run(program, *self.eal(sorted(os.sched_getaffinity(0))[0]), env=self.environment))

    def test_every_example_builds(self):
        sources = sorted(path for path in (ROOT / "examples").glob("*/*.c*") if path.suffix in (".c", ".cpp"))
        self.assertGreaterEqual(len(sources), 1)
        for source in sources:
            with self.subTest(source.parent.name):
                program = self.build(source)
                self.assertIn(SONAME, self.needed(program))
                if source.suffix == ".c":
                    self.assertFalse([lib for lib in self.needed(program) if "stdc++" in lib])

    def two_say_hello(self, programs):
        heard, answers = self.two_hosts(programs, ["listen"], ["say"])
        self.assertIn('answer 4: you said "hello number 4"', answers)
        self.assertIn("heard  4: hello number 4", heard)

    def test_a_shared_and_a_static_program_say_hello(self):
        # DPDK's static libraries need more packages than Debian's libdpdk-dev depends on.
        if subprocess.run(["pkg-config", "--static", "--libs", "libdpdk", "libsystemd"], capture_output=True).returncode:
            self.skipTest("a static DPDK cannot be linked: libsystemd-dev is missing")
        hello = ROOT / "examples/hello_c/main.c"
        programs = [self.build(hello), self.build(hello, static=("--static",))]
        ours = (SONAME, DRIVER_SONAME, f"librte_eal.so.{DPDK_ABI}")
        self.assertLessEqual({ours[0], ours[2]}, self.needed(programs[0]))
        self.assertFalse(self.needed(programs[1]) & set(ours))
        self.two_say_hello(programs)

    def test_what_the_readme_says(self):
        """README's lines, run in a folder with a program and a link to the build folder."""
        section = (ROOT / "README.md").read_text().split("## In a program of your own")[1].split("\n## ")[0]
        lines = [line.strip() for line in section.splitlines() if line.startswith("    ")]
        self.assertTrue(lines[0].startswith("meson install -C build "), lines)
        lines[0] = lines[0].replace(" -C build ", " -C build --no-rebuild --quiet ", 1)
        folder = self.folder / "readme"
        folder.mkdir()
        (folder / "build").symlink_to(BUILD)
        (folder / "app.c").write_bytes((ROOT / "examples/hello_c/main.c").read_bytes())
        run("bash", "-euc", "\n".join(lines), cwd=folder, env=self.as_found)
        self.two_say_hello([folder / "app"] * 2)

    def test_installed_programs_run(self):
        for name in ("ntbmsg-echo", "ntbmsg-pktgen"):
            with self.subTest(name):
                self.assertIn("--serve", run(self.installed(name), "--", "--help", env=self.as_found))
        self.assertIn("--interface", run(self.installed("bin/ntbmsg-net"), "--help", env=self.as_found))
        for name in ("plx-doctor", "ntb-net"):
            self.assertIn(VERSION, run(self.installed(f"bin/{name}"), "--version", env=self.as_found))
        self.assertIn("report", run(self.installed("bin/ntbmsg-report"), "--help", env=self.as_found))

    def test_two_hosts_greet_each_other_in_two_languages(self):
        server, client = (self.build(ROOT / f"examples/greeter_{language}") for language in ("c/main.c", "cpp/main.cpp"))
        heard, answers = self.two_hosts([server, client], ["serve", "3"], ["greet", "3"])
        self.assertIn("heard: guest 2", heard)
        self.assertIn("answer: welcome, guest 2", answers)

    def test_two_hosts_share_a_board_in_two_languages(self):
        sharer, writer = (self.build(ROOT / f"examples/board_{language}") for language in ("c/main.c", "cpp/main.cpp"))
        heard, answers = self.two_hosts([sharer, writer], ["share"], ["write", "3"])
        self.assertIn("notified of line 2: this is line 2", heard)
        self.assertIn("the peer counted 3 lines, the last one is: this is line 2", answers)


if __name__ == "__main__":
    if "${pcfiledir}" not in next(BUILD.glob("meson-private/libntbmsg.pc")).read_text():
        print(f"skipped: meson configure {BUILD} -Dpkgconfig.relocatable=true")
        sys.exit(SKIPPED)
    unittest.main()
