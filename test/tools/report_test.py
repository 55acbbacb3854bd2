#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tools/report: what it makes of results, and of files that are none.   report_test.py SOURCE_ROOT"""
import contextlib
import copy
import html.parser
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree as xml

import jsonschema

sys.dont_write_bytecode = True
ROOT = pathlib.Path(sys.argv.pop(1))
TOOL = ROOT / "tools/report"
SCHEMA = json.loads((ROOT / "doc/result.schema.json").read_text())
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "test/apps")]

import example_result  # noqa: E402
import result_schema_test  # noqa: E402
import demo_hosts  # noqa: E402
from ntb_report import changes, load, model, page, plots  # noqa: E402

EXAMPLE = example_result.of_queues()


def variants():
    """What the test of the schema does to the example: (what, result)"""
    return result_schema_test.broken(EXAMPLE)


def point(mode, **changed):
    found = next(p for p in EXAMPLE["points"] if p["mode"] == mode)
    return {**copy.deepcopy(found), **changed}


def timed(median, **changed):
    made = point("latency", **changed)
    made["round_trip_ns"].update(p50=median, p99=2 * median, p99_9=3 * median, mean=median)
    return made


def result(points, commit="aaaa", **changed):
    made = {**copy.deepcopy(EXAMPLE), "points": points, "skipped": [], **changed}
    made["program"]["commit"] = commit
    return made


class Checker(html.parser.HTMLParser):
    """Tags that are opened are closed, in order; nothing comes from elsewhere."""
    EMPTY = {"meta", "line", "br"}

    def __init__(self):
        super().__init__()
        self.open = []
        self.tags = []
        self.wrong = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.wrong += [name for name, _ in attrs if name in ("src", "href", "xlink:href", "onload", "onclick")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY and (not self.open or self.open.pop() != tag):
            self.wrong.append("</" + tag)


def cells(text):
    """The rows of all tables."""
    plain = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)]
    return [row for row in plain if row]


class Pages(unittest.TestCase):
    def render(self, *documents):
        for document in documents:
            jsonschema.validate(document, SCHEMA)
        text = page.render(model.build(list(documents)))
        checker = Checker()
        checker.feed(text)
        self.assertEqual((checker.wrong, checker.open), ([], []))
        self.assertNotIn("script", checker.tags)
        self.assertIsNone(re.search(r"https?:|@import|url\(", text))
        for svg in re.findall(r"<svg.*?</svg>", text, re.S):
            xml.fromstring(svg)
        return text

    def test_the_example_has_all_its_plots(self):
        text = self.render(EXAMPLE)
        for title in ("Messages per second", "Bytes per second", "Round trip over size: queue",
                      "Latency under load: queue, 64 B", "Distribution of round trips", "prefers-color-scheme: dark"):
            self.assertTrue(title in text, title)

    def test_what_the_schema_is_tested_with_makes_a_page(self):
        self.assertTrue("<svg" in self.render(example_result.of_operations()))

    def test_operations_and_how_they_complete_have_lines_of_their_own(self):
        points = [point("rate", operation="write", completion=c, region=r)
                  for c, r in (("stored", "direct"), ("done", "direct"), ("done", "served"))]
        text = self.render(result(points))
        for name in ("write, stored", "write, done", "write, done, served"):
            self.assertIn([name], [row[:1] for row in cells(text)])

    def test_programs_as_they_come_have_a_bar_for_each_way(self):
        points = [point("rate", operation=f"redis-1:{way}", size=3, messages_per_second=rate, repeat=i)
                  for way, rates in (("tcp", (20e3, 22e3, 21e3)), ("unix", (30e3,)), ("ring", (90e3, 100e3, 110e3)))
                  for i, rate in enumerate(rates)]
        points += [point("rate", operation=f"iperf3-1:{way}", size=128 << 10, bytes_per_second=rate) for way, rate in (("tcp", 2e9), ("ring", 5e9))]
        points += [timed(2000 * half, operation=f"sockperf-poll:{way}", clock="on") for way, half in (("tcp", 8), ("ring", 1))]
        text = self.render(result(points))
        self.assertTrue("<h2>Programs as they come</h2>" in text and "<h2>Table</h2>" in text)
        self.assertFalse("Messages per second" in text or "Mean round trip" in text)
        for title in ("redis-1, 3 B: requests per second", "iperf3-1, 128 KiB: bytes per second",
                      "sockperf-poll, 64 B: half of a round trip"):
            self.assertTrue(f"<figcaption>{title}</figcaption>" in text, title)
        rows = {tuple(row[:2]): row[2:5] for row in cells(text)}
        self.assertEqual(rows["redis-1", "TCP loopback"], ["21 k", "20 k", "22 k"])
        self.assertEqual(rows["redis-1", "ntbmsg"], ["100 k", "90 k", "110 k"])
        self.assertIn(["redis-1", "ntbmsg", "100 k", "90 k", "110 k", "±10.0% of 3"], cells(text))
        self.assertEqual(rows["iperf3-1", "ntbmsg"][0], "5 GB/s")
        self.assertEqual(rows["sockperf-poll", "ntbmsg"][0], "1 µs")
        widths = [float(width) for width in re.findall(r'class="way [^"]*" x="[^"]*" y="[^"]*" width="([\d.]+)"', text)]
        self.assertEqual(len(widths), 7)
        self.assertAlmostEqual(widths[2] / widths[0], 100 / 21, places=1)

    def test_beside_other_points_programs_change_nothing(self):
        before = self.render(EXAMPLE)
        after = self.render(result([*EXAMPLE["points"], point("rate", operation="nginx:ring", size=612)], EXAMPLE["program"]["commit"]))
        self.assertEqual(before.count("<svg") + 1, after.count("<svg"))
        self.assertIn("<h2>Tables</h2>", after)

    def test_repetitions_become_a_median_and_a_spread(self):
        text = self.render(result([timed(v, repeat=i) for i, v in enumerate((300, 310, 320, 700, 305))]))
        row = next(row for row in cells(text) if row[0] == "queue" and "one in flight" in row)
        self.assertEqual(row[4:9], ["other", "310 ns", "310 ns", "620 ns", "930 ns"])
        self.assertRegex(row[-1], "of 5$")
        self.assertTrue("1 of 1 figures are noisy" in text)

    def test_disturbed_runs_and_other_classes_are_told_apart(self):
        far = timed(9000, repeat=2)
        far["placement"]["class"] = "far"
        lost = timed(5000, repeat=3, complete=False, error="other programs had the CPU")
        text = self.render(result([timed(300), timed(302, repeat=1), far, lost]))
        self.assertTrue("1 run was disturbed and left out: other programs had the CPU" in text)
        self.assertTrue("1 points were taken while the cores lay in another placement class" in text)
        rows = [row for row in cells(text) if row[0] == "queue"]
        self.assertEqual([row[6] for row in rows], ["301 ns"])

    def test_a_point_whose_class_changed_in_the_sweep_says_it(self):
        far = point("rate", size=128, messages_per_second=2e6)
        far["placement"]["class"] = "far"
        limits = [point("rate", operation="limit", size=size, clock="off", messages_per_second=rate)
                  for size, rate in ((64, 4e7), (128, 4e6))]
        limits[1]["placement"]["class"] = "far"
        text = self.render(result([point("rate", size=64), point("rate", size=256), far, *limits]))
        self.assertTrue("1 of 3 figures could only be taken in another class than “other”" in text)
        self.assertEqual([row[3] for row in cells(text) if row[0] == "queue" and len(row) == 8],
                         ["other", "far", "other"])
        self.assertIn("2.00x", next(row for row in cells(text) if "far" in row), "of the limit of its class")
        self.assertTrue("128 B, 2 Mmsg/s, class far" in text)
        self.assertTrue('hollow"' in text)

    def test_the_demo_prints_what_the_page_shows(self):
        near = [point("rate", repeat=i, messages_per_second=5.8e7, bytes_per_second=3.7e9) for i in range(2)]
        far = [point("rate", repeat=i, messages_per_second=2.3e7, bytes_per_second=1.5e9) for i in range(2, 5)]
        for one in far:
            one["placement"]["class"] = "far"
        built = model.build([result([timed(300), timed(300, repeat=1), timed(300, repeat=2), *near, *far])])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            demo_hosts.print_table(built)
        *_, row, legend = out.getvalue().splitlines()
        self.assertEqual(row.split()[-3:], ["58.000", "3.700", "other"])
        self.assertIn("class", legend)
        self.assertIn("58 Mmsg/s", next(row for row in cells(page.render(built)) if row[0] == "queue" and len(row) == 8))

    def test_what_was_always_disturbed_is_shown_and_marked(self):
        why = "a polling thread had its CPU for 50 % of the time"
        spoilt = point("rate", size=64, disturbed=why, cpu_share=0.5)
        good = point("rate", size=128)
        text = self.render(result([spoilt, good, {**good, "repeat": 1, "disturbed": why}]))
        self.assertTrue("1 of 2 figures are disturbed in every repetition" in text)
        self.assertTrue(f"1 run was disturbed and left out: {why}" in text)
        self.assertIn(f"disturbed: {why}", next(row for row in cells(text) if "64 B" in row))

    def test_reasons_that_differ_in_a_percentage_are_one(self):
        good = point("rate", size=128)
        runs = [{**good, "repeat": i, "disturbed": f"a polling thread had its CPU for {share} % of the time"}
                for i, share in enumerate((50, 7, 50), 1)]
        text = self.render(result([good, *runs]))
        self.assertTrue("3 runs were disturbed and left out: a polling thread had its CPU for 7 to 50 % of the time" in text)

    def test_under_load_times_count_from_when_a_message_was_due(self):
        short = point("load", complete=False, rate_met=False, error="the offered rate was not met: a of b",
                      messages_per_second=1690)
        short["round_trip_from_intended_ns"].update(p50=2e9)
        row = next(row for row in cells(self.render(result([short]))) if row[0] == "queue")
        self.assertEqual((row[2], row[3], row[6]), ("1 Mmsg/s", "1.69 kmsg/s", "2 s"))

    def test_a_long_tail_does_not_squeeze_a_histogram(self):
        document = result([timed(300)])
        document["points"][0]["round_trip_ns"].update(max=5e7)
        document["points"][0]["round_trip_ns"]["histogram"].append([4.9e7, 5e7, 3])
        text = self.render(document)
        self.assertTrue("3 of" in text and "beyond the plot, up to 50 ms" in text)

    def test_the_limit_is_drawn_and_divided_by(self):
        limit = point("rate", operation="limit", size=64, clock="off")
        mine = point("rate", size=64, messages_per_second=limit["messages_per_second"] / 4)
        text = self.render(result([limit, mine]))
        self.assertTrue('class="line limit"' in text)
        self.assertIn("4.00x", next(row for row in cells(text) if row[0] == "queue"))

    def plot(self, text, title):
        return next(card for card in re.findall(r"<figure>.*?</figure>", text, re.S) if f"<figcaption>{title}<" in card)

    def test_a_plot_shows_the_limit_that_there_is_or_says_why_there_is_none(self):
        mine = point("rate", size=64)
        good = point("rate", operation="limit", size=64, clock="off")
        far = copy.deepcopy(good)
        far["placement"]["class"] = "far"
        why = "a polling thread had its CPU for 50 % of the time"
        lost = {**good, "complete": False, "error": "other programs had the CPU"}
        hollow = "where its marks are hollow"
        for limits, drawn, marked, words in (
                ([good], True, False, ""),
                ([far], True, True, hollow),
                ([good, far], True, False, ""),
                ([{**good, "disturbed": why}], True, True, hollow),
                ([{**far, "disturbed": why}], True, True, hollow),
                ([lost], False, False, "No limit at 64 B: other programs had the CPU."),
                ([lost, good], True, False, ""),
                ([], False, False, "No limit line: the results hold none of these sizes")):
            plot = self.plot(self.render(result([mine, *limits])), "Messages per second")
            self.assertEqual(('class="line limit"' in plot, "limit hollow" in plot), (drawn, marked), limits)
            self.assertEqual("class=\"note\"" in plot, bool(words))
            self.assertIn(words, plot)

    def test_an_empty_result_says_so(self):
        self.assertTrue("no undisturbed figure" in self.render(result([])))

    def test_texts_of_a_file_cannot_become_markup(self):
        evil = '"><script>alert(1)</script><img src=x onerror=y>'
        document = result([timed(300, operation=evil), timed(300, operation="b", pattern=evil)], commit=evil,
                          error=evil, complete=False)
        document["machine"]["cpu"] = document["program"]["command"] = evil
        document["skipped"] = [{"what": evil, "why": evil}]
        other = result([timed(400, operation=evil)], commit="b")
        self.assertFalse("<script>" in self.render(document, other))

    def test_odd_figures_still_make_a_page(self):
        nothing = point("rate", messages=0, messages_per_second=0, bytes_per_second=0)
        tiny = timed(0.0, size=0)
        wide = timed(300, size=1 << 24)
        wide["round_trip_ns"]["histogram"] = [[0, 1, 5], [0, 1e18, 1], [3, 3, 2]]
        self.render(result([nothing, tiny, wide, point("load", offered_rate=0), point("rate", mix="imix")]))


class Changes(unittest.TestCase):
    def verdicts(self, before, after):
        built = model.build([result([timed(v, repeat=i) for i, v in enumerate(values)], commit)
                             for values, commit in ((before, "old"), (after, "new"))])
        return {c.metric: c.verdict for c in changes.between(built, "old", "new")}

    def test_beyond_the_noise_is_a_regression(self):
        self.assertEqual(self.verdicts((300, 303, 306), (330, 333, 336))["p50"], "regression")
        self.assertEqual(self.verdicts((330, 333, 336), (300, 303, 306))["p50"], "better")

    def test_within_the_noise_is_none(self):
        self.assertEqual(self.verdicts((300, 303, 306), (306, 309, 312))["p50"], "within noise")
        self.assertEqual(self.verdicts((300, 330, 360), (330, 340, 370))["p50"], "within noise")

    def test_single_runs_are_not_trusted_far(self):
        self.assertEqual(self.verdicts((300,), (325,))["p50"], "within noise")
        self.assertEqual(self.verdicts((300,), (345,))["p50"], "regression")

    def test_rates_get_worse_when_they_fall(self):
        points = [point("rate", repeat=i, messages_per_second=rate) for i, rate in enumerate((1e6, 1.001e6))]
        slower = [point("rate", repeat=i, messages_per_second=rate) for i, rate in enumerate((8e5, 8.01e5))]
        built = model.build([result(points, "old"), result(slower, "new")])
        self.assertEqual([c.verdict for c in changes.between(built, "old", "new")], ["regression"])


class Files(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def test_a_result_of_version_1_is_read_as_what_it_was(self):
        old = copy.deepcopy(EXAMPLE)
        old["version"] = 1
        for one in old["points"]:
            for name in ("build", *load.ADDED_IN_2, *load.ADDED_IN_3):
                del one[name]
            del one["counters"]["served"]
            for flow in one["flows"]:
                del flow["queue"], flow["cpu"]
        cores = old["machine"]["cores"]
        cores["driver"] = cores.pop("client")
        path = self.folder / "old.json"
        path.write_text(json.dumps(old))
        new = load.load(path)
        self.assertEqual(new["points"][0]["completion"], "received")
        self.assertEqual(new["machine"]["cores"], EXAMPLE["machine"]["cores"])

    def test_what_was_built_in_place_is_another_figure(self):
        """Of each point since version 5, of the run before."""
        ran = {point["build"] for point in load.load(self.write("now", EXAMPLE))["points"]}
        self.assertEqual(ran, {"mbuf"})
        old = copy.deepcopy(EXAMPLE)
        old["version"] = 4
        old["options"]["build"] = "in-place"
        for one in old["points"]:
            del one["build"]
        read = load.load(self.write("old", old))
        self.assertEqual({point["build"] for point in read["points"]}, {"in-place"})
        built = model.build([load.load(self.write("now", EXAMPLE)), read])
        names = [plots.line_name(figure, False) for figure in built.of_mode("rate")]
        self.assertEqual(sum("built in place" in name for name in names) * 2, len(names), names)
        self.assertGreater(len(names), 0)

    def test_what_an_emulator_ran_is_named_so(self):
        run = copy.deepcopy(EXAMPLE)
        for one in run["points"]:
            one.update(operation="rxe-send", device="QEMU, TCG", pattern="not read")
        built = model.build([load.load(self.write("run", run))])
        figures = built.of_mode("rate")
        self.assertGreater(len(figures), 0)
        for figure in figures:
            self.assertTrue(plots.line_name(figure, False).endswith("not read, software emulation (QEMU, TCG)"))
        genuine = model.build([load.load(self.write("example", EXAMPLE))]).of_mode("rate")
        self.assertFalse(any("emulation" in plots.line_name(figure, False) for figure in genuine))

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return path

    def run_tool(self, *words):
        done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def refused(self, path):
        status, out, errors = self.run_tool(path)
        self.assertEqual((status, out), (1, ""), path)
        self.assertRegex(errors, r"\Areport: [^\n]+\n\Z")
        self.assertFalse(path.with_suffix(".html").exists())
        return errors

    def test_the_page_is_written_beside_the_result(self):
        path = self.write("r.json", EXAMPLE)
        self.assertEqual(self.run_tool(path), (0, f"report: {self.folder / 'r.html'}\n", ""))
        self.assertTrue((self.folder / "r.html").read_text().startswith("<!DOCTYPE html>"))
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["r.html", "r.json"])

    def test_what_is_no_result_is_refused_in_one_line(self):
        whole = json.dumps(EXAMPLE).encode()
        contents = {"empty": b"", "binary": bytes(range(256)), "text": b"hello", "list": [], "number": b"1" * 5000,
                    "foreign": {"format": "other", "version": 1}, "newer": {**EXAMPLE, "version": 6},
                    "nan": whole.replace(b'"seconds": 6.1', b'"seconds": NaN'),
                    "deep": b"[" * 100000, "huge": whole.replace(b'"seconds": 6.1', b'"seconds": 1e300'),
                    "infinite": whole.replace(b'"seconds": 6.1', b'"seconds": 1e999')}
        for name, content in contents.items():
            self.refused(self.write(name, content))
        self.assertIn("version 6", self.refused(self.folder / "newer"))
        self.refused(self.folder / "missing")
        self.refused(self.folder)

    def test_a_truncated_result_is_refused_wherever_it_ends(self):
        whole = json.dumps(EXAMPLE, indent=1).encode()
        for cut in range(1, len(whole) - 1, len(whole) // 12):
            self.refused(self.write("cut", whole[:cut]))

    def test_a_file_that_is_too_large_is_not_read(self):
        largest, load.LARGEST_FILE = load.LARGEST_FILE, 1000
        self.addCleanup(setattr, load, "LARGEST_FILE", largest)
        with self.assertRaisesRegex(load.Unusable, "larger than"):
            load.load(self.write("r.json", EXAMPLE))

    def test_every_tool_that_measures_or_shows_says_its_version(self):
        version = (ROOT / "VERSION").read_text()
        for name in ("bench", "compare", "report"):
            done = subprocess.run([ROOT / "tools" / name, "--version"], capture_output=True, text=True, timeout=60,
                                  check=False)
            self.assertEqual((done.returncode, done.stdout), (0, f"{name} (ntbmsg) {version}"))

    def test_an_output_that_cannot_be_written_is_one_line(self):
        status, _, errors = self.run_tool(self.write("r.json", EXAMPLE), "-o", self.folder / "no" / "such.html")
        self.assertEqual(status, 1)
        self.assertRegex(errors, r"\Areport: [^\n]+\n\Z")

    def test_regressions_can_be_a_status(self):
        old = self.write("old.json", result([timed(300)], "old"))
        new = self.write("new.json", result([timed(600)], "new"))
        self.assertEqual(self.run_tool(old, new)[0], 0)
        status, out, _ = self.run_tool(old, new, "--fail-on-regression")
        self.assertEqual(status, 3)
        self.assertIn("2 regressions", out)
        self.assertEqual(self.run_tool(new, old, "--fail-on-regression")[0], 0)


class Schema(unittest.TestCase):
    def test_it_takes_what_our_programs_write(self):
        load.check(EXAMPLE, "r.json")

    def test_all_else_is_refused_in_one_short_line(self):
        for what, document in variants():
            with self.assertRaises(load.Unusable, msg=what) as refusal:
                load.check(document, "r.json")
            self.assertRegex(str(refusal.exception), r"\Ar\.json: result[^\n]{1,200}\Z")

    def test_without_its_package_it_says_which(self):
        with unittest.mock.patch.dict(sys.modules, {"jsonschema": None}):
            with self.assertRaisesRegex(load.Unusable, "apt-get install python3-jsonschema"):
                load.check(EXAMPLE, "r.json")


if __name__ == "__main__":
    unittest.main()
