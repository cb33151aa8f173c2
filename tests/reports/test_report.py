"""Reports say what the records say: the line, the tables, and a page that needs nothing but itself."""

from __future__ import annotations

import io
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from rich.console import Console

from warpwright.base import Action, Candidate, Comparison, Errors, Measurement, Record, Regime, Source, Status, Task, Timing, Verdict
from warpwright.reports import artefact, page, plots, report
from warpwright.search.llm import feedback

TASK = Task("rows", "/nowhere/rows.py", source_digest="1")
ACTIONS = (Action("collapse", "sum_1"), Action("fold", "weight"), Action("channels_last"))


ROOF = {"floor_seconds": 5e-4, "work_flops": 1e8, "work_bytes": 1e6, "peak_flops_per_second": 1e11, "peak_bytes_per_second": 1e10}


def timing(milliseconds: float) -> Timing:
    samples = tuple(milliseconds * 1e-3 * factor for factor in (0.99, 1.0, 1.01))
    return Timing(samples, milliseconds * 1e-3, samples[0], samples[-1])


def make_record(actions: tuple[Action, ...] = ACTIONS, ours: float = 1.0, proposer: str = "ladder", status: Status = "ok") -> Record:
    text = f"class ModelNew:\n    # {' '.join(map(str, actions))} {proposer}\n    def forward(self, x):\n        return x < 3\n"
    candidate = Candidate(Source("python", (("optimized.py", text),)), "cpu", actions, proposer=proposer, assumptions=("inputs are <finite>",))
    if status != "ok":
        return Record(TASK, candidate, "cpu", status, Verdict(False, status, "expected 1, saw 2", "zeros"), detail="expected 1, saw 2")
    baselines = {"eager": timing(4.0), "compile": timing(2.0), "cuda_graph": Timing((), math.nan, math.nan, math.nan, "no GPU")}
    verdict = Verdict(True, "ok", "", "heavy_tail", Errors(1e-6, 1e-7, 1e-8), Errors(2e-6, 1e-7, 1e-8), "values")
    said: Comparison = "FASTER" if ours < 1.9 else "SAME"
    interval = (1.9 / ours, 2.1 / ours)
    measured = Measurement("time", "s", "lower", timing(ours), baselines, "compile", 2.0 / ours, interval, said, ROOF)
    return Record(TASK, candidate, "cpu", "ok", verdict, measured, versions={"torch": "2.x"}, when="2026-01-01T00:00:00+00:00")


def test_a_line_has_the_keys_of_the_contract() -> None:
    line = report.line("rows", [make_record()], "out/optimized.py")
    keys = {"task", "status", "check", "case", "reason", "verdict", "speedup", "baselines", "error", "error_original", "recipe", "artifact"}
    assert keys <= line.keys()
    assert line["speedup"]["best"] == 2.0 and line["speedup"]["eager"] == 4.0 and line["speedup"]["interval"] == [1.9, 2.1]
    assert line["baselines"] == {"eager": 4.0, "compile": 2.0, "cuda_graph": None}
    assert line["recipe"] == ["collapse(sum_1)", "fold(weight)", "channels_last()"]
    assert (line["error"], line["error_original"], line["artifact"]) == (1e-6, 2e-6, "out/optimized.py")
    json.dumps(line, allow_nan=False)


def test_a_kept_baseline_stands_at_one() -> None:
    line = report.line("rows", [make_record((), 2.0, "baseline:compile"), make_record(ours=2.0)])
    assert (line["speedup"]["best"], line["verdict"], line["recipe"]) == (1.0, "SAME", ["baseline:compile"])


def test_a_kept_baseline_tells_of_a_program_that_could_not_be_proven_faster() -> None:
    seems = make_record(ours=1.0)
    assert seems.measurement is not None
    unsure = replace(seems, measurement=replace(seems.measurement, verdict="UNSURE", interval=(0.7, 3.0)))
    line = report.line("rows", [make_record((), 2.0, "baseline:compile"), unsure])
    assert line["recipe"] == ["baseline:compile"] and "not proven faster" in line["reason"] and "[0.70, 3.00]" in line["reason"]


def test_a_task_without_a_pass_says_why() -> None:
    line = report.line("rows", [make_record(status="wrong")])
    assert (line["status"], line["reason"], line["verdict"], line["artifact"]) == ("wrong", "expected 1, saw 2", None, None)
    assert report.line("rows", [])["status"] == "unscored"


def test_how_a_program_was_read_does_not_hide_why_none_passed() -> None:
    note = "only 2 parts are changed"
    assert report.line("rows", [make_record(status="wrong")], reason=note)["reason"] == f"expected 1, saw 2; {note}"
    assert report.line("rows", [make_record()], reason=note)["reason"] == note == report.line("rows", (), reason=note)["reason"]


def test_an_unscored_task_is_said_to_be_so() -> None:
    unscored = make_record((), proposer="baseline:eager", status="unscored")
    assert report.line("rows", [unscored, make_record(status="wrong")])["status"] == "unscored"


def test_infinities_become_null() -> None:
    assert report.finite({"a": [math.inf, 1.0], "b": (math.nan,)}) == {"a": [None, 1.0], "b": [None]}


def test_a_report_document_holds_records_that_can_be_read_again() -> None:
    record = make_record()
    data = json.loads(report.document(report.line("rows", [record]), [record]))
    again = report.read_record(data["records"][0])
    assert again.key == record.key and again.measurement is not None and math.isnan(again.measurement.baselines["cuda_graph"].median)
    assert again.measurement.speedup == 2.0 and again.candidate == record.candidate


def test_ablation_is_read_from_the_records() -> None:
    best = make_record()
    without_collapse = make_record(ACTIONS[2:], 2.0)  # fold needed it and went too
    without_last = make_record(ACTIONS[:2], 1.25)
    found = report.ablation(best, [best, without_collapse, without_last])
    assert [entry.gain for entry in found] == [pytest.approx(2.0), None, pytest.approx(1.25)]
    assert "1 more" in found[0].note and "not measured" in found[1].note


def test_ablation_tells_when_the_rest_is_wrong() -> None:
    best = make_record()
    broken = make_record(ACTIONS[1:], status="wrong")
    assert report.ablation(best, [broken])[0].gain is None and "wrong" in report.ablation(best, [broken])[0].note


def test_the_terminal_table_names_times_and_reasons() -> None:
    text = io.StringIO()
    said = [report.line("rows", [make_record()]), report.line("broken", [make_record(status="crashed")])]
    report.print_table(said, Console(file=text, width=200))
    shown = text.getvalue()
    assert "2.00x [1.90, 2.10]" in shown and "FASTER" in shown and "broken: crashed: expected 1, saw 2" in shown and "compile ms" in shown


def in_two_regimes() -> Record:
    """Return a record whose program is faster in a stream alone."""
    record = make_record()
    assert record.measurement is not None
    one = Regime(1e-3, {"eager": 1.0e-3}, "eager", 1.01, (0.99, 1.02), "SAME")
    other = Regime(1e-4, {"eager": 1.7e-4}, "eager", 1.7, (1.6, 1.8), "FASTER", "a quiet <machine>")
    measured = replace(record.measurement, regimes={"single": one, "stream": other}, conditions={**ROOF, "regime": "stream"})
    return replace(record, measurement=measured)


def test_both_ways_of_calling_are_shown() -> None:
    record = in_two_regimes()
    said = report.line("task", [record], chosen=record)
    assert said["regime"] == "stream" and said["regimes"]["single"]["verdict"] == "SAME"
    assert said["regimes"]["stream"]["baselines"] == {"eager": pytest.approx(0.17)}
    console = Console(record=True, width=200, file=io.StringIO())
    report.print_table([said], console)
    text = console.export_text()
    assert "single" in text and "stream" in text and "1.01x" in text and "1.70x" in text
    assert "| 1.01x SAME | 1.70x FASTER | FASTER |" in report.markdown([said])
    assert all(f"{name}: " in artefact.header(record) and f"In the regime {name}: " in feedback.profile(record) for name in ("single", "stream"))
    shown = page.page([record], "a.db", "title")
    assert "Ways of calling" in shown and "1.01x, 0.99 to 1.02" in shown and "a quiet &lt;machine&gt;" in shown
    again = report.read_record(json.loads(report.document(said, [record]))["records"][0])
    assert again.measurement is not None and record.measurement is not None
    assert again.measurement.regimes == record.measurement.regimes


def test_the_file_of_declared_shapes_says_what_each_gained() -> None:
    record = in_two_regimes()
    assert record.measurement is not None
    one, other = record.measurement.regimes.values()
    header = artefact.header(replace(record, measurement=replace(record.measurement, shapes={"x 1x8": one, "x 6x8": other}, regimes={})))
    assert "#     x 1x8: 1 ms a call, 1.01x [0.99, 1.02] of eager, SAME" in header and "x 6x8: 0.1 ms a call" in header
    assert "hidden inputs of the declared shapes" in header and "the example's" not in header
    assert "hidden inputs of the example's shapes" in artefact.header(record)


def test_a_record_from_before_is_shown_as_it_was() -> None:
    said = report.line("task", [make_record()])
    assert said["regime"] == "single" and said["regimes"] == {}
    console = Console(record=True, width=200, file=io.StringIO())
    report.print_table([said], console)
    assert "stream" not in console.export_text()


def test_markdown_has_a_row_a_task() -> None:
    assert "| rows | ok |" in report.markdown([report.line("rows", [make_record()])])


class _Tags(HTMLParser):
    """Collects what a page loads, and checks that its tags close."""

    VOID = frozenset({"meta", "br", "line", "circle", "path"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [value or "" for name, value in attrs if name in ("src", "href") and not (value or "").startswith("#")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_is_self_contained_and_whole() -> None:
    other = replace(TASK, name="other <task>")
    records = [make_record(), make_record((), 2.0, "baseline:compile"), replace(make_record(status="wrong"), task=other)]
    text = page.page(records, "a b.db")
    tags = _Tags()
    tags.feed(text)
    assert not tags.open and not tags.loads and not re.search(r"https?://|@import|url\(", text)
    for said in ("Baselines", "Roofline", "Intervals", "Recipe", "What changed", "How to reproduce", "<svg", "50 %", "inputs are &lt;finite&gt;"):
        assert said in text, said
    assert f"warpwright reproduce {make_record().key}" in text and "other &lt;task&gt;" in text and "expected 1, saw 2" in text


def test_a_page_without_measurements_is_made_too() -> None:
    assert "expected 1, saw 2" in page.page([make_record(status="crashed")])


def test_the_interval_picture_shows_every_program_in_order() -> None:
    picture = plots.intervals([plots.Bar("eager", 4e-3, 3e-3, 5e-3), plots.Bar("ours", 1e-3, 1e-3, 1e-3, ours=True)], 5e-4)
    at = [float(found) for found in re.findall(r'circle cx="([\d.]+)"', picture)]
    assert len(at) == 2 and at[0] > at[1] and "roofline floor 500 µs" in picture
    assert plots.intervals([]) == ""


def test_the_roofline_picture_puts_the_faster_program_higher() -> None:
    bars = [plots.Bar("eager", 4e-3, 3e-3, 5e-3), plots.Bar("ours", 1e-3, 1e-3, 1e-3, ours=True)]
    picture = plots.roofline(1e9, 1e7, 1e12, 1e11, bars)
    heights = [float(found) for found in re.findall(r'cy="([\d.]+)"', picture)]
    assert len(heights) == 2 and heights[1] < heights[0] and "1e+03 Gflop/s" not in picture and "1 Tflop/s" in picture
    assert plots.roofline(0.0, 1e7, 1e12, 1e11, bars) == ""


@pytest.mark.parametrize(("seconds", "text"), [(2.0, "2 s"), (1.5e-3, "1.5 ms"), (2.5e-6, "2.5 µs"), (3e-9, "3 ns")])
def test_times_are_written_with_a_unit(seconds: float, text: str) -> None:
    assert plots.time_text(seconds) == text


def test_the_search_and_the_lineage_are_drawn() -> None:
    first = make_record(ACTIONS[:1], ours=1.5)
    wrong = make_record(ACTIONS[:2], status="wrong")
    best = make_record(ours=1.0)
    best = replace(best, candidate=replace(best.candidate, parent=first.candidate.key))
    text = page.page([make_record((), 2.0, "baseline:compile"), first, wrong, best])
    assert "progress of the search" in text and text.count("<circle") >= 4 and "×" in text
    lineage = text.partition("Lineage of the best")[2].partition("<h3>")[0]
    assert lineage.index(first.key) < lineage.index(best.key) and wrong.key not in lineage
    assert plots.search([]) == "" and plots.search([plots.Tried(0.0, "x", "wrong")] * 3) == ""


def test_labels_of_programs_that_are_as_fast_do_not_lie_on_one_another() -> None:
    bars = [plots.Bar(name, 1e-3 * factor, 1e-3, 1e-3) for name, factor in (("eager", 1.0), ("compile", 1.001), ("ours", 0.5))]
    text = plots.roofline(1e8, 1e6, 1e11, 1e10, bars)
    places = sorted(float(at) for at in re.findall(r'<text x="[^"]+" y="([^"]+)">(?:eager|compile|ours)', text))
    assert len(places) == 3 and min(b - a for a, b in pairwise(places)) >= 13.9
