# SPDX-License-Identifier: BSD-3-Clause
"""Installs the drivers for good and runs DPDK's own programs, without an argument for it: they find the port by
themselves, once. All of it in a mount namespace, on an overlay over /usr that ends with it.

    plugins_test.py BUILD_ROOT PLUGINS TESTPMD

Status 77 (skipped) where /usr cannot be overlaid.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "net"))
import testpmd_test

SKIPPED = 77
DRIVERS = ("librte_raw_plx_ntb", "librte_net_plx_ntb")


def outside(arguments):
    """Runs this program again, in a namespace and over a /usr of its own."""
    with tempfile.TemporaryDirectory(prefix="ntbmsg-plugins-") as folder:
        mounts = (f"mount -t tmpfs none {folder} && mkdir {folder}/upper {folder}/work {folder}/test && "
                  f"mount -t overlay overlay -o lowerdir=/usr,upperdir={folder}/upper,workdir={folder}/work /usr")
        again = f'{mounts} || exit {SKIPPED}; exec "$0" "$@"'
        status = subprocess.run(["unshare", "--mount", "--propagation", "private", "sh", "-c", again, sys.executable,
                                 __file__, f"--inside={folder}/test", *arguments],
                                timeout=300, check=False).returncode
    if status in (1, SKIPPED) and subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL,
                                                 check=False).returncode != 0:
        status = SKIPPED
    if status == SKIPPED:
        print("skipped: needs root and a kernel that overlays /usr in a mount namespace")
    return status


class Plugins(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", "libs"], check=True,
                       timeout=120)

    def setUp(self):
        self.world = testpmd_test.World(TESTPMD, None, None, FOLDER)
        # Meson's leads to the build folder.
        self.world.environment.pop("LD_LIBRARY_PATH", None)
        self.addCleanup(lambda: [process.kill() for process in self.world.processes])

    def test_a_stock_program_finds_the_port(self):
        near, far = self.world.pair()
        self.assertIn("Driver name: net_plx_ntb", near.ask("show port info 0"))
        testpmd_test.traffic(near, far, "txonly", "rxonly")
        far.await_more("rx_good_packets")
        testpmd_test.both_quit(near, far)

    def test_named_too_it_is_there_once(self):
        """What the loader mapped: a driver that is loaded as two files registers itself twice."""
        self.world.library = (PLUGINS / "librte_net_plx_ntb.so").resolve()
        self.assertNotEqual(self.world.library.parent, PLUGINS)
        host = self.world.start("named", 0)
        host.await_answer("show port info 0", "Driver name: net_plx_ntb")
        maps = pathlib.Path(f"/proc/{host.child.pid}/maps").read_text()
        for driver in DRIVERS:
            self.assertEqual(len({line.split()[4] for line in maps.splitlines() if driver in line}), 1, maps)
        host.quit()

    def test_pmdinfo_shows_it(self):
        script = shutil.which("dpdk-pmdinfo.py")
        if script is None or subprocess.run(["/usr/bin/python3", "-c", "import elftools"], capture_output=True,
                                            check=False).returncode:
            self.skipTest("needs dpdk-pmdinfo.py and python3-pyelftools")
        shown = subprocess.run(["/usr/bin/python3", script, "--search-plugins", TESTPMD], check=True, timeout=120,
                               capture_output=True, text=True).stdout
        params = {driver["name"]: driver.get("params", "") for driver in json.loads(shown)}
        for argument in ("dev=", "mac=", "zero_copy="):
            self.assertIn(argument, params["net_plx_ntb"])
        self.assertIn("cable=", params["raw_plx_ntb"])


if __name__ == "__main__":
    if not sys.argv[1].startswith("--inside="):
        sys.exit(outside(sys.argv[1:]))
    FOLDER = pathlib.Path(sys.argv.pop(1).removeprefix("--inside="))
    TESTPMD = sys.argv.pop()
    PLUGINS = pathlib.Path(sys.argv.pop())
    BUILD = pathlib.Path(sys.argv.pop())
    unittest.main()
