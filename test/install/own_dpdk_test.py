# SPDX-License-Identifier: BSD-3-Clause
"""A DPDK of one's own, found by PKG_CONFIG_PATH: what is configured is linked with its libraries, and
refused where its parts are not of one release. The machine's DPDK under another prefix stands for it.

    own_dpdk_test.py SOURCE_ROOT SDK_FOLDER|-
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

SDK = sys.argv.pop()
ROOT = pathlib.Path(sys.argv.pop())
OPTIONS = [f"-D{part}=false" for part in ("tests", "bench", "apps", "examples")]
if SDK != "-":
    OPTIONS.append(f"-Ddpdk_sdk={SDK}")


def asked(*words):
    return subprocess.run(["pkg-config", *words], check=True, capture_output=True, text=True).stdout.strip()


class OwnDpdk(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="ntbmsg-own-dpdk-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name).resolve()
        self.lib = self.folder / "own" / "lib"
        (self.lib / "pkgconfig").mkdir(parents=True)
        for file in pathlib.Path(asked("--variable=libdir", "libdpdk")).glob("librte_*"):
            (self.lib / file.name).symlink_to(file)
        packages = pathlib.Path(asked("--variable=pcfiledir", "libdpdk"))
        include = asked("--variable=includedir", "libdpdk")
        for name in ("libdpdk.pc", "libdpdk-libs.pc"):
            values = {"prefix": self.folder / "own", "libdir": self.lib, "includedir": include}
            text = (packages / name).read_text()
            for key, value in values.items():
                text = re.sub(rf"^{key}=.*$", f"{key}={value}", text, flags=re.MULTILINE)
            (self.lib / "pkgconfig" / name).write_text(text)

    def spoil(self, old, new):
        for file in (self.lib / "pkgconfig").iterdir():
            file.write_text(re.sub(old, new, file.read_text(), flags=re.MULTILINE))

    def configure(self):
        build = self.folder / "build"
        environment = {**os.environ, "PKG_CONFIG_PATH": str(self.lib / "pkgconfig")}
        done = subprocess.run(["meson", "setup", build, ROOT, *OPTIONS], env=environment, check=False, timeout=120,
                              capture_output=True, text=True)
        return build, done.returncode, done.stdout + done.stderr

    def test_its_libraries_are_linked(self):
        build, status, output = self.configure()
        self.assertEqual(status, 0, output)
        link = subprocess.run(["ninja", "-C", build, "-t", "commands", "all"], check=True, capture_output=True,
                              text=True).stdout
        for line in link.splitlines():
            if " -shared " in line:
                taken = re.findall(r"\S*librte_(?!raw_plx|net_plx)\w+\.(?:so|a)\S*|-lrte_\S+", line)
                if "libntbclient" in line or "libntbsocket" in line or "libntbverbs" in line:  # for processes without DPDK
                    self.assertEqual(taken, [])
                    continue
                self.assertIn(str(self.lib / "librte_eal.so"), taken)
                self.assertEqual([library for library in taken if not library.startswith(f"{self.lib}/")], [])
        # Users of what is installed are led there too.
        for package in build.glob("meson-private/lib*-libs.pc"):
            self.assertIn(f"-Wl,-rpath,{self.lib}", package.read_text())

    def test_plugins_stay_below_the_prefix(self):
        """The folder that is compiled into the headers is another DPDK's."""
        build, status, output = self.configure()
        self.assertEqual(status, 0, output)
        installed = json.loads(subprocess.run(["meson", "introspect", build, "--installed"], check=True,
                                              capture_output=True, text=True).stdout)
        places = {str(pathlib.Path(place).parent) for place in installed.values() if "/dpdk/pmds-" in place}
        self.assertEqual(len(places), 1, installed)
        self.assertRegex(places.pop(), r"^/usr/local/lib/\S*dpdk/pmds-\d+\.0$")

    def test_libraries_of_another_abi_are_refused(self):
        for file in self.lib.glob("librte_eal.so.*"):
            file.rename(self.lib / "librte_eal.so.99")
        _, status, output = self.configure()
        self.assertNotEqual(status, 0)
        self.assertRegex(output, rf"ERROR: .*its libdir {self.lib} has no librte_eal\.so\.\d+")

    def test_headers_of_another_release_are_refused(self):
        self.spoil(r"^Version: .*$", "Version: 23.07.0")
        _, status, output = self.configure()
        self.assertNotEqual(status, 0)
        self.assertRegex(output, r"ERROR: .*pkg-config finds DPDK 23\.07\.0 but the compiler DPDK")


if __name__ == "__main__":
    unittest.main()
