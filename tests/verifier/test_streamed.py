"""Programs in turns of many calls, with real workers: what is measured, what a turn catches that single calls do not, and which tasks have none."""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.base import Candidate, Case, Source
from warpwright.space import Measuring
from warpwright.targets.local import ORIGINAL, LocalEvaluator
from warpwright.tasks import taskfile
from warpwright.timing.device_lock import DeviceLock
from warpwright.verifier import streamed
from warpwright.verifier.judge_client import Shipment

TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, x, rows):
        return torch.sin(torch.sin(x)).t()[rows]


def get_inputs():
    return [torch.randn(128, 256).t(), torch.randperm(128)[:64]]


def get_init_inputs():
    return []
"""

HASTY = """
import time, torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last, self.kept = 0.0, None

    def forward(self, x, rows):
        now = time.perf_counter()
        if self.kept is None or now - self.last > 0.0005:
            self.kept = torch.sin(torch.sin(x)).t()[rows]
        self.last = time.perf_counter()
        return self.kept.clone()
"""


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEvaluator]:
    folder = tmp_path_factory.mktemp("streamed")
    (folder / "task.py").write_text(TASK)
    measuring = Measuring((ORIGINAL,), 0.3, regime="stream")
    with LocalEvaluator(taskfile.describe(folder / "task.py"), "cpu", measuring, lock=DeviceLock("cpu", folder / "locks")) as made:
        yield made


def evaluate(evaluator: LocalEvaluator, text: str) -> Any:
    [record] = evaluator.evaluate([Candidate(Source("python", (("optimized.py", text),)), "cpu")])
    return record


def test_a_record_has_both_ways_of_calling(evaluator: LocalEvaluator) -> None:
    [baseline] = evaluator.evaluate_baselines()
    record = evaluate(evaluator, TASK.replace("class Model(", "class ModelNew("))
    for one in (baseline, record):
        assert one.status == "ok" and one.measurement is not None, one.detail
        assert set(one.measurement.regimes) == {"single", "stream"} and one.measurement.conditions["regime"] == "stream"
        assert all(regime.candidate > 0 and regime.baselines["eager"] > 0 for regime in one.measurement.regimes.values())
    assert record.versions["regime"] == "stream" and record.measurement.conditions["checked_calls"] > 0


def test_a_program_that_is_wrong_in_a_stream_alone_is_found_out(evaluator: LocalEvaluator) -> None:
    """It keeps its answer for half a millisecond, which is right of calls that are further apart."""
    record = evaluate(evaluator, HASTY)
    assert record.status in ("wrong", "cheated") and "timed call" in record.detail, record.detail


def shipment(shape: list[int], dtype: str = "float32") -> Shipment:
    stride = [math.prod(shape[at + 1 :]) for at in range(len(shape))]
    return Shipment(Case("nominal", 1), {"list": [{"tensor": {"shape": shape, "dtype": dtype, "stride": stride}}]})


def judge(**facts: bool) -> Any:
    return SimpleNamespace(facts={"stateful": False, "mutated_state": False, "random": False, **facts})


@pytest.mark.parametrize(("seconds", "calls"), [(1.0, 4), (1e-3, 10), (1e-6, 200)])
def test_a_turn_takes_some_ten_milliseconds(seconds: float, calls: int) -> None:
    assert streamed.calls_of(judge(), shipment([16]), seconds, "cpu") == (calls, "")


def test_a_turn_is_shorter_where_its_inputs_are_large() -> None:
    assert streamed.calls_of(judge(), shipment([4 << 20, 2], "bfloat16"), 1e-6, "cpu") == (16, "")
    calls, why = streamed.calls_of(judge(), shipment([1 << 30], "float64"), 1e-3, "cuda:0")
    assert calls == 0 and "32.0 GiB" in why


@pytest.mark.parametrize("fact", ["stateful", "mutated_state", "random"])
def test_what_depends_on_the_calls_before_has_no_turns(fact: str) -> None:
    calls, why = streamed.calls_of(judge(**{fact: True}), shipment([16]), 1e-3, "cpu")
    assert calls == 0 and "depends" in why


@pytest.mark.parametrize(("stride", "dense"), [([3, 1], True), ([1, 4], True), ([0, 1], False), ([6, 1], False)])
def test_inputs_with_gaps_have_no_turns(stride: list[int], dense: bool) -> None:
    sent = Shipment(Case("nominal", 1), {"list": [{"tensor": {"shape": [4, 3], "dtype": "float32", "stride": stride}}]})
    assert (streamed.calls_of(judge(), sent, 1e-3, "cpu")[0] > 0) == dense
