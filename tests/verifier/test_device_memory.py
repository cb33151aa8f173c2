"""A judge of a task that takes little has the smallest share of a GPU's memory, and works nothing out for it."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import corpus
import pytest
import torch

from warpwright.base import Task, to_json
from warpwright.tasks import footprint
from warpwright.verifier.judge import judge_worker
from warpwright.verifier.judge.original.device_memory import EAGER_PEAKS, FEWEST_BYTES, Memory


class OfAGpu(Memory):
    """The share of a GPU that is not there: 64 GiB, of which calls take `takes`."""

    takes = 1 << 20
    refused = iter(())

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.limited = True
        self.limits: list[int] = []

    def _set(self, wanted: int) -> None:
        self.limits.append(wanted)

    def _held(self) -> int:
        return self.takes

    def _refusals(self) -> int:
        return next(self.refused, 0)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Return a function that opens a judge of a task and returns the limits that were set."""
    monkeypatch.setattr(judge_worker, "Memory", OfAGpu)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)

    def judge() -> list[int]:
        worker = judge_worker.JudgeWorker({"device": "cpu", "exchange": str(tmp_path), "isolation": []})
        worker.open(to_json(corpus.task("relu")), "abcdef0123456789", False)
        assert isinstance(worker.memory, OfAGpu)
        return worker.memory.limits

    return judge


def test_a_task_that_takes_little_is_not_run_on_the_meta_device(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(footprint, "peak_bytes", lambda task: pytest.fail("the meta device was asked"))
    assert opened() == [FEWEST_BYTES]


def test_one_that_takes_much_has_as_much_as_before(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OfAGpu, "takes", 2 << 30)
    monkeypatch.setattr(footprint, "peak_bytes", lambda task: 2 << 30)
    assert opened() == [FEWEST_BYTES, EAGER_PEAKS * (2 << 30)]


def test_one_that_does_not_fit_the_smallest_share_is_opened_again(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Task] = []
    original = judge_worker.Original

    def too_large(task: Task, *rest: Any) -> Any:
        made.append(task)
        if len(made) == 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return original(task, *rest)

    monkeypatch.setattr(judge_worker, "Original", too_large)
    monkeypatch.setattr(footprint, "peak_bytes", lambda task: 3 << 30)
    assert opened() == [FEWEST_BYTES, EAGER_PEAKS * (3 << 30)] and len(made) == 2


def test_one_that_went_on_without_memory_that_it_was_refused_is_opened_again(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A state that the original does not take for want of memory would be weakened."""
    monkeypatch.setattr(OfAGpu, "refused", iter((0, 1, 1)))
    monkeypatch.setattr(footprint, "peak_bytes", lambda task: 3 << 30)
    assert opened() == [FEWEST_BYTES, EAGER_PEAKS * (3 << 30)]


def test_what_was_opened_first_holds_no_memory_while_it_is_opened_again(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    left: list[int] = []
    original = judge_worker.Original

    def counted(*of_a_task: Any) -> Any:
        left.append(sum(one() is not None for one in made))
        one = original(*of_a_task)
        made.append(weakref.ref(one))
        return one

    monkeypatch.setattr(judge_worker, "Original", counted)
    monkeypatch.setattr(OfAGpu, "refused", iter((0, 1, 1)))
    monkeypatch.setattr(footprint, "peak_bytes", lambda task: 3 << 30)
    assert len(opened()) == 2 and left == [0, 0]


def test_an_error_of_another_kind_is_raised_at_once(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def broken(*_: Any) -> Any:
        made.append(1)
        raise RuntimeError("no such thing")

    monkeypatch.setattr(judge_worker, "Original", broken)
    with pytest.raises(RuntimeError, match="no such thing"):
        opened()
    assert len(made) == 1
