#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is kept of a run of tools/bench, and the table that is made of it.

  bench_results_test.py SOURCE_ROOT
"""
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1))
sys.path.insert(0, str(ROOT / "tools"))
import bench_results

ZEN = ("AuthenticAMD", 25, 17)


def row(name, value, placement="ccx", verdict="reached", ratio=0.5):
    return {"name": name, "value": value, "unit": "GB/s", "limit": 40.0, "ratio": ratio, "class": placement,
            "reach": ">=0.85x", "verdict": verdict, "note": "5 pairs"}


def run(*rows, commit="aaaa", started="2026-11-22T18:00:00Z"):
    return {"cpu": "A CPU", "kernel": "Linux 6", "cpus": 2, "commit": commit, "started": started, "figures": list(rows)}


class Records(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def kept(self):
        return json.loads((self.folder / "amd-25-17.json").read_text())

    def test_each_machine_has_a_file(self):
        self.assertEqual(bench_results.record(self.folder, run(row("a", 1.0)), ZEN).name, "amd-25-17.json")
        self.assertEqual(bench_results.file_name("GenuineIntel", 6, 207), "intel-6-207.json")
        self.assertEqual(bench_results.file_name("../Some One", 1, 2), "someone-1-2.json")

    def test_a_later_run_replaces_what_it_took_and_nothing_else(self):
        bench_results.record(self.folder, run(row("a", 1.0), row("a", 2.0, "far"), row("b", 3.0)), ZEN)
        bench_results.record(self.folder, run(row("a", 9.0, "far"), commit="bbbb", started="2026-12-01T00:00:00Z"), ZEN)
        figures = self.kept()["figures"]
        self.assertEqual([figures["a"]["ccx"]["value"], figures["a"]["far"]["value"], figures["b"]["ccx"]["value"]],
                         [1.0, 9.0, 3.0])
        self.assertEqual([figures["a"][c]["commit"] for c in ("ccx", "far")], ["aaaa", "bbbb"])
        self.assertEqual(figures["a"]["far"]["date"], "2026-12-01")

    def test_what_did_not_count_is_not_kept(self):
        bench_results.record(self.folder, run(row("a", 1.0, verdict="disturbed"), row("b", 1.0, verdict="failed"),
                                              row("c", None, verdict="missing"), row("d", 1.0, verdict="missed")), ZEN)
        self.assertEqual(list(self.kept()["figures"]), ["d"])

    def test_the_table_has_a_column_for_each_machine_and_class(self):
        bench_results.record(self.folder, run(row("a", 12.3), row("a", 2.0, "far"), row("m", 57.0, None, ratio=None)), ZEN)
        bench_results.record(self.folder, run(row("a", 30.0, "other"), commit="cccc"), ("GenuineIntel", 6, 207))
        lines = bench_results.table(self.folder).splitlines()
        self.assertEqual(lines[0], "| figure | unit | amd 25/17, `ccx` | amd 25/17, `far` | intel 6/207, `other` |")
        self.assertIn("| `a` | GB/s | 12.3 (0.5x) | 2 (0.5x) | 30 (0.5x) |", lines)
        self.assertIn("| `m` | GB/s | 57 |  |  |", lines)
        self.assertIn("  `other`: commit cccc of 2026-11-22.", lines)

    def test_the_table_shows_what_missed_its_reach(self):
        bench_results.record(self.folder, run(row("a", 12.3), row("b", 12.3, verdict="missed")), ZEN)
        lines = bench_results.table(self.folder).splitlines()
        self.assertIn("| `a` | GB/s | 12.3 (0.5x) |", lines)
        self.assertIn("| `b` | GB/s | *12.3 (0.5x)* |", lines)

    def test_a_document_that_differs_is_found_and_written_anew(self):
        bench_results.record(self.folder, run(row("a", 1.0)), ZEN)
        document = self.folder / "page.md"
        document.write_text(f"before\n{bench_results.BEGIN}\nold\n{bench_results.END}\nbehind\n")
        words = [str(self.folder), str(document)]
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(bench_results.main(["check", *words]), 1)
        self.assertEqual(bench_results.main(["table", *words]), 0)
        self.assertEqual(bench_results.main(["check", *words]), 0)
        text = document.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("behind\n") and "old" not in text)

    def test_what_cannot_be_used_is_one_line(self):
        document = self.folder / "page.md"
        document.write_text("no place\n")
        (self.folder / "result").write_text("{")
        for words in (["table", str(self.folder), str(document)], ["record", str(self.folder), str(self.folder / "result")]):
            errors = io.StringIO()
            with contextlib.redirect_stderr(errors):
                self.assertEqual(bench_results.main(words), 1)
            self.assertRegex(errors.getvalue(), r"\Abench_results: [^\n]+\n\Z")


class Document(unittest.TestCase):
    def test_the_table_is_what_the_files_say(self):
        self.assertEqual(bench_results.main(["check", str(ROOT / "bench/results"), str(ROOT / "doc/performance.md")]), 0)


if __name__ == "__main__":
    unittest.main()
