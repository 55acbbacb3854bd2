# SPDX-License-Identifier: BSD-3-Clause
"""Runs suites of others without and with the socket preload, and prints what came of it."""
import argparse
import pathlib
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from ntb_compare import pair  # noqa: E402
from ntb_sockets import rings, suites  # noqa: E402


def parse():
    made = argparse.ArgumentParser(prog="sockets", description=__doc__)
    made.add_argument("--build", type=pathlib.Path, required=True, metavar="FOLDER", help="where ntbd and the preload were built")
    made.add_argument("--programs", type=pathlib.Path, default=ROOT / ".deps/programs", metavar="FOLDER",
                      help="where tools/setup unpacks")
    made.add_argument("--only", nargs="+", metavar="SUITE", help="these, as test_socket or 'test_s*'")
    made.add_argument("--seconds", type=int, default=suites.SUITE_SECONDS, metavar="N", help="for each run of a suite")
    made.add_argument("--markdown", action="store_true", help="a table for a document")
    return made


def main():
    options = parse().parse_args()
    chosen = suites.choose(options.only)
    why = rings.missing(options.build) or ("" if chosen else "no suite is called that; there are: " + " ".join(suites.NAMES))
    if why:
        print(f"sockets: {why}", file=sys.stderr)
        return 2
    pair.Signals.catch()
    with tempfile.TemporaryDirectory(prefix=pair.SCRATCH_PREFIX) as folder:
        tests = suites.find_tests(options.programs, pathlib.Path(folder))
        if tests is None:
            print(f"CPython's tests are missing; run: tools/setup\n0 passed, 0 failed, {len(chosen)} skipped")
            return 0
        try:
            passed, failed = suites.run_all(suites.Suites(options.build.resolve(), tests, seconds=options.seconds), chosen,
                                            options.markdown)
        except pair.Interrupted:
            return 130
    print(f"{passed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
