"""An original that leaves the device in error on one of our inputs costs the task that input, not its score."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpwright.base import Case, Task
from warpwright.errors import DeviceFailed, JudgeFailed
from warpwright.targets.local import LocalEvaluator
from warpwright.tasks import taskfile
from warpwright.verifier.draw import STRIDED
from warpwright.verifier.judge.discrete import WIDE_WORDS, restride
from warpwright.verifier.judge.judge_worker import JudgeWorker
from warpwright.verifier.judge.original.on_host import OnHost
from warpwright.verifier.judge.original.reference import Original
from warpwright.verifier.judge_client import Judge

torch = pytest.importorskip("torch")

LOST = {"error": "...", "kind": "AcceleratorError", "message": "CUDA error: misaligned address"}


def judge(failures: Counter[str], lost: Any) -> Judge:
    """Return a judge whose process loses its device on the cases that `lost` names."""

    def request(op: str, timeout: float | None, fields: dict[str, Any]) -> dict[str, Any]:
        case = fields["case"]
        return LOST if lost(case) else {"problem": "", "params": case["params"], "seconds": 0.0}

    made = object.__new__(Judge)
    made.task, made.device, made.secret, made.failures = Task("any", "/nowhere/any.py"), "cuda:0", 7, failures
    made._cases, made.dropped, made.facts, made._trims = None, {}, {"state_tensors": 0}, 0
    made._request = request  # type: ignore[method-assign]
    return made


def asked(lost: Any) -> tuple[Judge, int]:
    """Return the first judge that has its cases, and how many had none."""
    failures: Counter[str] = Counter()
    for number in range(9):
        made = judge(failures, lost)
        try:
            made.cases  # noqa: B018
        except DeviceFailed:
            continue
        return made, number
    raise AssertionError


def test_other_strides_begin_at_wide_words_where_they_must() -> None:
    found, failed = asked(lambda case: case["name"] == STRIDED and not case["params"].get("mild"))
    strided = [case for case in found.cases if case.name == STRIDED]
    assert failed == 1 and len(strided) == 3 and all(case.params["mild"] for case in strided)
    assert "in error" in found.dropped[STRIDED]


@pytest.mark.parametrize(("name", "failures"), [(STRIDED, 2), ("huge", 1)])
def test_a_case_that_costs_the_device_is_left_out(name: str, failures: int) -> None:
    found, failed = asked(lambda case: case["name"] == name)
    assert failed == failures and name not in {case.name for case in found.cases} and "huge" in {case.name for case in found.cases} | {name}


def test_an_original_that_fails_everywhere_is_given_up() -> None:
    with pytest.raises(JudgeFailed) as seen:
        asked(lambda case: True)
    assert not isinstance(seen.value, DeviceFailed)


def test_a_lost_device_is_no_fault_of_the_case_that_comes_next() -> None:
    def answered(error: Exception) -> Any:
        def answer(case: Case, which: int) -> None:
            raise error

        return SimpleNamespace(_original=SimpleNamespace(answer=answer), asks_host=False)

    assert "raises on it" in JudgeWorker._problem(answered(ValueError("no such mask")), Case("huge", 1), 0)
    with pytest.raises(RuntimeError, match="misaligned"):
        JudgeWorker._problem(answered(RuntimeError("CUDA error: misaligned address")), Case("huge", 1), 0)


SHARES = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.gain = torch.nn.Parameter(torch.rand(5))

    def forward(self, x, shares):
        return torch.quantile(x, shares, dim=1) * self.gain[:, None]


def get_inputs():
    return [torch.randn(8, 40), torch.rand(5)]


def get_init_inputs():
    return []
"""


def test_what_raises_on_the_cpu_is_not_asked_of_the_device(tmp_path: Path) -> None:
    (tmp_path / "task.py").write_text(SHARES)
    original = Original(taskfile.describe(tmp_path / "task.py"), "cpu", 7, 1 << 30)
    host = OnHost(original)
    assert not host.problem(Case("small", 4), 1) and "range" in host.problem(Case("huge", 4), 0)
    judging: Any = SimpleNamespace(asks_host=True, on_host=host)
    assert "on the CPU" in JudgeWorker._problem(judging, Case("huge", 4), 0)  # the original of the device would not even be there
    original.reference = SimpleNamespace(make_model=lambda: torch.nn.Linear(2, 2))  # type: ignore[assignment]
    assert not OnHost(original).problem(Case("huge", 4), 0)  # where it does not run on the CPU the device alone says it


@pytest.mark.parametrize("turned", [0, 1, 2])
def test_aligned_lines_begin_at_wide_words(turned: int) -> None:
    plain = [torch.randn(6, 32) for _ in range(4)]
    moved = restride(plain, 3, turned, False, aligned=True)
    assert all(torch.equal(one, other) for one, other in zip(plain, moved, strict=True))
    assert any(one.storage_offset() for one in moved) and all(one.storage_offset() % WIDE_WORDS == 0 for one in moved)
    assert all(one.stride(0) % WIDE_WORDS == 0 for one in moved if one.stride(1) == 1)


@pytest.mark.parametrize(("lost", "steps"), [([1, 1, 0], 3), ([0], 1), ([1, 2], 2)])
def test_trusted_processes_begin_anew_for_each_case_that_is_left_out(lost: list[int], steps: int) -> None:
    """1: a device is lost on a case that is left out from then on; 2: another failure, which is not met twice."""
    failures: Counter[str] = Counter()
    evaluator: Any = SimpleNamespace(_bench=SimpleNamespace(failures=failures), close=lambda: None)
    taken: list[int] = []

    def step() -> str:
        taken.append(lost[len(taken)] if len(taken) < len(lost) else 0)
        if taken[-1] == 1:
            failures["strided"] += 1
            raise DeviceFailed("lost")
        if taken[-1] == 2:
            raise JudgeFailed("otherwise")
        return "answer"

    assert LocalEvaluator._twice(evaluator, step) == "answer" and len(taken) == steps + (lost[-1] == 2)
