"""A task with declared shapes: one record says what came of a program in each of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from warpwright import loop
from warpwright.base import BASELINE, Candidate, Measurement, Record, Source, Task, Timing, Verdict, from_json, to_json
from warpwright.deadline import Deadline
from warpwright.reports import report
from warpwright.space import Measuring
from warpwright.targets.shapes import ShapesEvaluator, joined
from warpwright.tasks import shapes

TASK = Task("toy", "/toy.py", options=(("shapes", '[{"x": [1]}, {"x": [8]}, {"x": [64]}]'),))
PROGRAM = Candidate(Source("python", (("a.py", "x = 1"),)), "cpu")
EAGER = replace(PROGRAM, source=Source("python", (("b.py", "x = 2"),)), proposer=f"{BASELINE}eager")


def measured(speedup: float, low: float, high: float, verdict: Any) -> Measurement:
    ours, eager = (Timing((t, t), t, t, t) for t in (1.0, speedup))
    return Measurement("time", "s", "lower", ours, {"eager": eager}, "eager", speedup, (low, high), verdict)


FAST, SAME, SLOW, UNSURE = (
    measured(2.0, 1.8, 2.2, "FASTER"), measured(1.0, 0.99, 1.01, "SAME"), measured(0.8, 0.7, 0.9, "SLOWER"), measured(1.2, 0.9, 1.5, "UNSURE"),
)  # fmt: skip


class OneShape:
    """Gives the measurement of its shape, or a failure; notes what was asked of it, and the time that it might plan with."""

    device = "cpu"
    versions: Mapping[str, str] = {"torch": "0"}

    def __init__(self, task: Task, outcome: Any, deadline: Deadline | None) -> None:
        self.task, self.outcome, self.deadline, self.asked, self.left = task, outcome, deadline, 0, 0.0

    def baselines(self) -> Sequence[Candidate]:
        return [EAGER]

    def evaluate_baselines(self) -> Iterator[Record]:
        self.left = self.deadline.left if self.deadline else 0.0
        yield Record(self.task, EAGER, "cpu", "ok", Verdict(True, "ok"), SAME, versions=self.versions)

    def evaluate(self, candidates: Sequence[Candidate]) -> Iterator[Record]:
        for candidate in candidates:
            self.asked += 1
            if isinstance(self.outcome, Measurement):
                yield Record(self.task, candidate, "cpu", "ok", Verdict(True, "ok"), self.outcome, seconds=1.0, versions=self.versions)
            else:
                yield Record(self.task, candidate, "cpu", self.outcome, Verdict(False, self.outcome, "saw 2"), detail="saw 2", versions=self.versions)


def evaluated(*outcomes: Any, deadline: Deadline | None = None) -> tuple[Record, list[OneShape], list[Record]]:
    made: list[OneShape] = []

    def opening(task: Task, device: str, measuring: Measuring) -> Any:
        made.append(OneShape(task, outcomes[len(made)], measuring.deadline))
        return nullcontext(made[-1])

    with ShapesEvaluator(TASK, "cpu", Measuring(deadline=deadline), opening) as evaluator:
        baselines = list(evaluator.evaluate_baselines())
        [record] = evaluator.evaluate([PROGRAM])
    return record, made, baselines


def test_one_record_names_each_shape() -> None:
    record, made, baselines = evaluated(FAST, SAME, FAST)
    assert record.task == TASK and record.status == "ok" and record.seconds == 3.0 and record.measurement is not None
    assert [one.task for one in made] == list(shapes.tasks(TASK))
    assert record.measurement.verdict == "FASTER" and record.speedup == pytest.approx(4 ** (1 / 3))
    assert {name: one.verdict for name, one in record.measurement.shapes.items()} == {"x 1": "FASTER", "x 8": "SAME", "x 64": "FASTER"}
    assert record.measurement.conditions["shape"] == "x 8", "the times are those of the shape with the least speed-up"
    assert from_json(Record, json.loads(json.dumps(to_json(record)))) == record
    line = report.line("toy", [*baselines, record])
    assert line["verdict"] == "FASTER" and line["shapes"]["x 8"]["verdict"] == "SAME"
    assert loop.best([*baselines, record]) is record


@pytest.mark.parametrize(
    ("outcomes", "verdict"),
    [((FAST, SLOW, FAST), "SLOWER"), ((FAST, UNSURE, FAST), "UNSURE"), ((SAME, SAME, SAME), "SAME"), ((FAST, FAST, FAST), "FASTER"),
     ((measured(1.03, 1.005, 1.05, "FASTER"), measured(0.99, 0.985, 1.01, "SAME"), SAME), "UNSURE")],
)  # fmt: skip
def test_it_is_never_faster_where_one_shape_is_slower(outcomes: tuple[Measurement, ...], verdict: str) -> None:
    record, _, baselines = evaluated(*outcomes)
    assert record.measurement is not None and record.measurement.verdict == verdict
    chosen = loop.best([*baselines, record])
    assert (chosen is record) == (verdict == "FASTER")
    if verdict == "SLOWER":
        assert record.speedup == 0.8


def test_a_failure_in_one_shape_is_the_programs(tmp_path: Path) -> None:
    record, made, _ = evaluated(FAST, "wrong", FAST)
    assert record.status == "wrong" and "in the shape x 8: saw 2" in record.detail and record.measurement is None
    assert [one.asked for one in made] == [1, 1, 0]


def test_the_baselines_of_a_shape_leave_time_for_the_others() -> None:
    _, made, _ = evaluated(FAST, FAST, FAST, deadline=Deadline.of(100.0))
    shares = [round(one.left / made[-1].left, 1) for one in made]
    assert shares == [0.3, 0.5, 1.0]


def test_the_mean_is_that_of_all_shapes() -> None:
    one = joined({"a": FAST, "b": measured(8.0, 7.2, 8.8, "FASTER")})
    assert one.speedup == pytest.approx(4.0) and one.interval == (pytest.approx(3.6), pytest.approx(4.4))


def test_what_does_not_count_in_a_shape_is_said_there() -> None:
    refused = replace(FAST, baselines={**FAST.baselines, "compile": Timing((1.0,), 1.0, 1.0, 1.0, "not eligible: its strides")})
    record, _, _ = evaluated(FAST, refused, FAST)
    assert record.measurement is not None
    assert {name: one.note for name, one in record.measurement.shapes.items()} == {
        "x 1": "", "x 8": "compile does not count: not eligible: its strides", "x 64": "",
    }  # fmt: skip


def test_a_baselines_second_build_is_the_first_shapes() -> None:
    class Rebuilds(OneShape):
        def rebuilt(self, baseline: Candidate) -> Candidate:
            return PROGRAM

    def found(kind: type[OneShape]) -> Candidate:
        with ShapesEvaluator(TASK, "cpu", Measuring(), lambda task, device, measuring: nullcontext(kind(task, SAME, None))) as evaluator:
            return evaluator.rebuilt(EAGER)

    assert found(Rebuilds) is PROGRAM and found(OneShape) is EAGER
