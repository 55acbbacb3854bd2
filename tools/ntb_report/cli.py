# SPDX-License-Identifier: BSD-3-Clause
"""The command line of tools/report."""
import argparse
import os
import pathlib
import sys
import tempfile

from . import changes, load, model, page

OK, REGRESSED, FAILED = 0, 3, 1
MOST_FILES = 64

ABOUT = """Turns result files (doc/results.md) of ntbmsg-pktgen and tools/compare into one page with plots and tables.

  report result.json                    writes result.html beside it
  report limit.json sweep.json          a sweep against the limit (tools/compare --only limit --json limit.json)
  report before.json after.json         results of two commits: what became worse by more than the noise is marked
"""


def parser():
    made = argparse.ArgumentParser(prog="report", description=ABOUT, formatter_class=argparse.RawDescriptionHelpFormatter)
    version = (pathlib.Path(__file__).resolve().parents[2] / "VERSION").read_text().strip()
    made.add_argument("--version", action="version", version=f"report (ntbmsg) {version}")
    made.add_argument("results", nargs="+", type=pathlib.Path, metavar="RESULT")
    made.add_argument("--output", "-o", type=pathlib.Path, metavar="FILE",
                      help="where to write the page; the last RESULT with .html otherwise")
    made.add_argument("--fail-on-regression", action="store_true",
                      help=f"status {REGRESSED} if something became worse from the first to the last commit")
    return made


def write(path, text):
    """Whole, or not at all."""
    folder = path.parent if str(path.parent) else pathlib.Path(".")
    descriptor, beside = tempfile.mkstemp(dir=folder, prefix=path.name + ".")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def regressed(built):
    commits = built.commits()
    found = changes.between(built, commits[0], commits[-1]) if len(commits) > 1 else []
    return [change for change in found if change.verdict == "regression"]


def main(words):
    options = parser().parse_args(words)
    output = options.output or options.results[-1].with_suffix(".html")
    try:
        if len(options.results) > MOST_FILES:
            raise load.Unusable(f"more than {MOST_FILES} results")
        built = model.build([load.load(path) for path in options.results])
        write(output, page.render(built))
    except load.Unusable as error:
        print(f"report: {error}", file=sys.stderr)
        return FAILED
    except OSError as error:
        print(f"report: {output}: {error.strerror}", file=sys.stderr)
        return FAILED
    worse = regressed(built)
    print(f"report: {output}" + (f": {len(worse)} regressions" if worse else ""))
    return REGRESSED if worse and options.fail_on_regression else OK
