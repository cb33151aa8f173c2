"""Wherever the original runs on inputs of ours, a lost device is told from an input that it does not take, and costs that input alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warpwright.base import Case, Task, to_json
from warpwright.errors import DeviceFailed, JudgeFailed, told_full
from warpwright.tasks import taskfile
from warpwright.verifier.judge import left_behind
from warpwright.verifier.judge.certificate import certify
from warpwright.verifier.judge.judge_worker import JudgeWorker
from warpwright.verifier.judge.original.conditioning import examined
from warpwright.verifier.judge.original.on_host import OnHost, is_lost
from warpwright.verifier.judge.original.reference import Original
from warpwright.verifier.judge_client import Judge, steady

torch = pytest.importorskip("torch")

SHARES = """import torch


class Model(torch.nn.Module):
    def forward(self, x, shares):
        if FAILS and not bool(((shares >= 0) & (shares <= 1)).all()):
            raise RuntimeError("{error}")
        return torch.quantile(x, shares, dim=1)


FAILS = {fails}


def get_inputs():
    return [torch.randn(8, 40), torch.tensor([0.0, 0.3, 1.0])]


def get_init_inputs():
    return []
"""
LOST, RAISED = "CUDA error: device-side assert triggered", "shares are from 0 to 1"
NOMINAL = Case("nominal", 3)


SEARCH = "\nSearch for `cudaErrorIllegalAddress' in the documentation of CUDA for more information."

SAID = [
    ("AcceleratorError", "CUDA error: an illegal memory access was encountered" + SEARCH, "lost"),
    ("AcceleratorError", "CUDA error: misaligned address", "lost"),
    ("RuntimeError", "CUDA error: device-side assert triggered", "lost"),
    ("RuntimeError", "CUDA error: unspecified launch failure", "lost"),
    ("RuntimeError", "Triton Error [CUDA]: an illegal memory access was encountered", "lost"),
    ("AcceleratorError", "CUDA error: the launch timed out and was terminated", "lost"),
    ("AcceleratorError", "CUDA error: out of memory", "full"),
    ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.", "full"),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "full"),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`", "full"),
    ("RuntimeError", "cuFFT error: CUFFT_ALLOC_FAILED", "full"),
    ("RuntimeError", "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "full"),
    ("RuntimeError", "[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: you tried to allocate 80 bytes.", "full"),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmul( ... )`", ""),
    ("RuntimeError", "CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( ... )`", ""),
    ("AcceleratorError", "CUDA error: invalid configuration argument", ""),
    ("AcceleratorError", "CUDA error: no kernel image is available for execution on the device", ""),
    ("AcceleratorError", "CUDA error: too many resources requested for launch", ""),
    ("RuntimeError", "expected a mask, saw a misaligned address", ""),
    ("ValueError", "the labels are out of memory", ""),
]
"""The class and the message of an error, and what they say by themselves of the device."""


@pytest.mark.parametrize(("kind", "message", "says"), SAID)
def test_only_errors_that_stay_say_that_a_device_is_lost(kind: str, message: str, says: str) -> None:
    assert DeviceFailed.told_by(kind, message) == (says == "lost")
    assert told_full(kind, message) == (says == "full")


@pytest.mark.parametrize("lost", [True, False])
def test_what_leaves_it_open_is_asked_of_the_device(monkeypatch: pytest.MonkeyPatch, lost: bool) -> None:
    def synchronize() -> None:
        if lost or not asked:
            asked.append(1)
            raise RuntimeError("CUDA error: an illegal memory access was encountered")

    asked: list[int] = []
    open_question = RuntimeError("CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( ... )`")
    assert not is_lost(open_question), "a process that has used no device asks none"
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    assert is_lost(open_question) == lost
    assert not is_lost(ValueError("an index is out of range"))


@pytest.mark.parametrize("device", ["CUDA error: an illegal memory access was encountered", ""])
def test_a_judge_whose_device_is_in_error_is_lost_whatever_was_raised(device: str) -> None:
    judge = object.__new__(Judge)
    answer = {"error": "...", "kind": "RuntimeError", "message": "cuDNN error: CUDNN_STATUS_EXECUTION_FAILED", "device": device}
    judge._request = lambda *_: answer  # type: ignore[method-assign]
    with pytest.raises(JudgeFailed) as seen:
        judge._ask("viable")
    assert isinstance(seen.value, DeviceFailed) == bool(device)


def original(folder: Path, error: str = "", device_alone: bool = False) -> Original:
    """Return quantiles of rows that raise `error` at other shares; `device_alone`: a copy of them does not."""
    (folder / "task.py").write_text(SHARES.format(error=error, fails=bool(error)))
    return Original(taskfile.describe(folder / "task.py"), "cpu", 7, 1 << 30)


def moved(made: Original) -> Any:
    return examined(made, NOMINAL, 0)


def left(made: Original) -> Any:
    return left_behind.states_of_moves(made, NOMINAL, 0, [])


def mutants(made: Original) -> Any:
    return certify(made, (Case("huge", 4),), lambda values, case, which: "values")


@pytest.mark.parametrize("ask", [moved, left])
def test_moves_that_the_original_does_not_take_are_left_out(tmp_path: Path, ask: Callable[[Original], Any]) -> None:
    assert ask(original(tmp_path, RAISED)) is not None  # a share of 1 becomes more


@pytest.mark.parametrize("ask", [moved, left, mutants])
def test_a_lost_device_is_no_input_that_is_not_taken(tmp_path: Path, ask: Callable[[Original], Any]) -> None:
    with pytest.raises(RuntimeError, match="device-side assert"):
        ask(original(tmp_path, LOST))


@pytest.mark.parametrize("ask", [moved, left])
def test_the_cpu_keeps_the_device_from_inputs_that_end_it(tmp_path: Path, ask: Callable[[Original], Any]) -> None:
    made = original(tmp_path, LOST)
    made.refusal = OnHost(made).refusal
    assert ask(made) is not None
    with pytest.raises(ValueError, match="on the CPU"):
        made.answer(Case("huge", 4), 0)


def test_a_judge_that_begins_asks_the_cpu_about_states() -> None:
    seen: dict[str, Any] = {}

    def request(op: str, timeout: float | None, fields: dict[str, Any]) -> dict[str, Any]:
        seen[op] = fields
        return {"error": "...", "kind": "AcceleratorError", "message": LOST} if "on_host" not in fields else {"strength": 1}

    failures: Counter[str] = Counter()
    judge = object.__new__(Judge)
    judge.task, judge.device, judge.failures, judge._trims = Task("any", "/nowhere/any.py"), "cuda:0", failures, 0
    judge.worker = type("Process", (), {"limits": type("Limits", (), {"build_seconds": 9.0})})()
    judge._request = request  # type: ignore[method-assign]
    with pytest.raises(DeviceFailed):
        judge.begin(7)
    judge.begin(7)
    assert failures == Counter({"states": 1}) and judge.facts == {"strength": 1} and seen["open"]["on_host"]


def steadied(lost_at: Callable[[int], str]) -> tuple[Any, int]:
    """Return what `steady` gives, and how many judges it took. `lost_at`: at which step the n-th judge loses its device."""
    failures: Counter[str] = Counter()
    made: list[Any] = []

    class Fake:
        def __init__(self) -> None:
            self.failures, self.closed, self.number = failures, False, len(made)
            made.append(self)

        def _step(self, name: str) -> None:
            if lost_at(self.number) == name:
                failures[name] += 1
            if lost_at(self.number).endswith(name):
                raise DeviceFailed("lost")

        def certify(self) -> None:
            self._step("certify")

        @property
        def cases(self) -> None:
            self._step("cases")

        def close(self) -> None:
            self.closed = True

    judge = steady(Fake)  # type: ignore[arg-type]
    assert all(one.closed for one in made[:-1]) and not made[-1].closed
    return judge, len(made)


def test_a_judge_is_made_anew_for_each_input_that_costs_it_its_device() -> None:
    assert steadied(lambda number: ("certify", "cases", "")[number])[1] == 3
    assert steadied(lambda number: "")[1] == 1
    with pytest.raises(JudgeFailed):
        steadied(lambda number: "uncounted cases")


MISREADS = """import torch


class Model(torch.nn.Module):
    def forward(self, x, y):
        rows = torch.as_strided(x, x.shape, {strides}, x.storage_offset())
        return torch.nan_to_num(rows, nan=3.0).cumsum(1) + y


def get_inputs():
    return [torch.randn(6, 10), torch.randn(6, 10)]


def get_init_inputs():
    return []
"""


def viable_layouts(folder: Path, strides: str) -> list[str]:
    """Return why each of some layouts cannot be used, or "": of an original that reads rows at these strides."""
    (folder / "task.py").write_text(MISREADS.format(strides=strides))
    worker = JudgeWorker({"device": "cpu", "exchange": str(folder), "isolation": ""})
    worker.open(to_json(taskfile.describe(folder / "task.py")), f"{7:x}", False)
    drawn = [Case("strided", seed, {"layout": seed, "turned": turned}) for seed in range(3) for turned in (0, 1, 2)]
    problems = [worker.viable(to_json(case), 0)["problem"] for case in drawn]
    assert not worker.viable(to_json(Case("normal", 5)), 0)["problem"]
    return problems


def test_a_layout_that_the_original_misreads_says_nothing(tmp_path: Path) -> None:
    problems = viable_layouts(tmp_path, "(10, 1)")
    assert {"", "the original answers otherwise than to the same values without gaps"} <= set(problems)
    assert all(problems[at] for at in range(9) if at % 3 < 2)  # some the float64 run reads otherwise than the original
    assert not any(problems[2::3])  # dense, off the start of their memory: it takes those


def test_a_layout_that_the_original_takes_stays(tmp_path: Path) -> None:
    assert not any(viable_layouts(tmp_path, "x.stride()"))
