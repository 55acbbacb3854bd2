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
from ntb_sockets import libuv, redis, rings, stress, suites  # noqa: E402


def parse():
    made = argparse.ArgumentParser(prog="sockets", description=__doc__)
    made.add_argument("--build", type=pathlib.Path, required=True, metavar="FOLDER", help="where ntbd and the preload were built")
    made.add_argument("--programs", type=pathlib.Path, default=ROOT / ".deps/programs", metavar="FOLDER",
                      help="where tools/setup unpacks")
    made.add_argument("--only", nargs="+", metavar="SUITE", help="these, as test_socket, 'test_s*' or 'redis:*'")
    made.add_argument("--seconds", type=int, default=suites.SUITE_SECONDS, metavar="N", help="for each run of a suite")
    made.add_argument("--markdown", action="store_true", help="a table for a document")
    return made


def find_runners(options, chosen, folder):
    """{suite: what runs it}, of the chosen ones whose tests are there. Says which are not."""
    build, runners = options.build.resolve(), {}
    of_redis, of_libuv, of_stress = ([name for name in chosen if name in others.NAMES] for others in (redis, libuv, stress))
    of_python = [name for name in chosen if name in suites.NAMES]
    if of_python:
        tests = suites.find_tests(options.programs, folder)
        if tests is None:
            print("CPython's tests are missing; run: tools/setup")
        else:
            runners.update(dict.fromkeys(of_python, suites.Suites(build, tests, seconds=options.seconds)))
    if of_redis:
        if why := redis.missing():
            print(f"for Redis' tests there is missing: {why}; run: tools/setup --suites")
        else:
            runners.update(dict.fromkeys(of_redis, redis.Units(build, seconds=min(options.seconds, redis.UNIT_SECONDS))))
    if of_libuv:
        if why := libuv.missing():
            print(f"for libuv's tests there is missing: {why}; run: tools/setup --suites")
        else:
            runners.update(dict.fromkeys(of_libuv, libuv.Groups(build, seconds=min(options.seconds, libuv.TEST_SECONDS))))
    if of_stress:
        if why := stress.missing():
            print(f"for the stressors there is missing: {why}; run: tools/setup")
        else:
            runners.update(dict.fromkeys(of_stress, stress.Stressors(build)))
    return runners


def main():
    options = parse().parse_args()
    names = (*suites.NAMES, *redis.NAMES, *libuv.NAMES, *stress.NAMES)
    chosen = suites.choose(options.only, names)
    why = rings.missing(options.build) or ("" if chosen else "no suite is called that; there are: " + " ".join(names))
    if why:
        print(f"sockets: {why}", file=sys.stderr)
        return 2
    pair.Signals.catch()
    with tempfile.TemporaryDirectory(prefix=pair.SCRATCH_PREFIX) as folder:
        runners = find_runners(options, chosen, pathlib.Path(folder))
        passed = failed = 0
        try:
            if runners:
                passed, failed = suites.run_all(suites.Several(runners), list(runners), options.markdown)
        except pair.Interrupted:
            return 130
    print(f"{passed} passed, {failed} failed, {len(chosen) - len(runners)} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
