"""A released program beside ours: what is refused, that its settings are its own, processes that end, and what the rows come to."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import spawned
from benchmarks.kernelbench import cuda_l1_beside as beside
from benchmarks.kernelbench import cuda_l1_release as release
from benchmarks.kernelbench import first

TASK = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(8, 16)]

def get_init_inputs():
    return []
"""
OWN = TASK.replace("class Model(", "class ModelNew(")


def made(tmp_path: Path, code: str) -> tuple[Any, str]:
    """Return what becomes of a released program with this text."""
    from warpwright.tasks import taskfile

    program = release.written({"level_id": 1, "task_id": 1, "ref_code": TASK, "custom_code": code}, tmp_path)
    reference = taskfile.load(taskfile.describe(program.task))
    model, inputs = reference.make_model(), reference.make_inputs(0, "cpu")

    def judge(programs: dict[str, Any]) -> dict[str, str]:
        return beside.judged(programs, model, inputs, 3.0)

    with torch.no_grad():
        return beside.made_by_them(program, reference, model, inputs, "cpu", judge)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", "right"),
        ("ModelNew.forward = lambda self, x: torch.relu(x) * 1.01", "errors"),
        ("kept = {}\nModelNew.forward = lambda self, x: kept.setdefault(id(x), torch.relu(x))", "answers for the values"),
        ("out = torch.empty(8, 16)\nModelNew.forward = lambda self, x: torch.clamp(x, min=0, out=out)", "writes over an earlier result"),
        ("ModelNew.forward = lambda self, x: x.relu_()", "changes its inputs"),
        ("class Own(torch.Tensor): pass\nModelNew.forward = lambda self, x: torch.relu(x).as_subclass(Own)", "results of a type of its own"),
        ("ModelNew.forward = lambda self, x: undefined", "NameError"),
    ],
)
def test_what_is_wrong_with_a_released_program(tmp_path: Path, more: str, said: str) -> None:
    assert said in made(tmp_path, f"{OWN}\n{more}\n")[1]


def test_its_settings_are_its_own(tmp_path: Path) -> None:
    usual = beside.settings()
    setting = "def forward(self, x):\n    torch.backends.cuda.matmul.allow_tf32 = True\n    return torch.relu(x)\n\nModelNew.forward = forward"
    theirs, said = made(tmp_path, f"{OWN}\ntorch.backends.cudnn.benchmark = True\n{setting}\n")
    assert said == "right" and beside.settings() == usual
    assert {name for name, value in theirs.settings.items() if value != usual[name]} == {"cudnn.benchmark", "matmul"}
    with beside.under(theirs.settings):
        assert torch.backends.cudnn.benchmark
    assert beside.settings() == usual


def test_each_call_is_timed_under_its_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()

    def call() -> None:
        seen.add(torch.backends.cudnn.benchmark)

    def batch(call: Any, count: int) -> float:
        call()
        return 1e-3

    monkeypatch.setattr(first, "batch", batch)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    settings = {**beside.settings(), "cudnn.benchmark": True}
    times = beside.timed_alone({"theirs": call, "eager": lambda: None}, {"theirs": lambda: beside.under(settings)}, tmp_path / "alone")
    beside.signal.alarm(0)
    assert all(0.0 <= times.pop(name) < 0.1 for name in beside.CLOCKS)
    assert not beside.leaks(1.0, 1.2, 1.0, 1.0) and not beside.leaks(0.048, 0.265, 0.06, 0.24) and beside.leaks(0.01, 0.9, 0.05, 0.07)
    assert times == {"theirs": 1e-3, "eager": 1e-3} and seen == {True} and not torch.backends.cudnn.benchmark


def test_what_a_released_program_writes_where_it_stands_ends_with_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One made a folder of sources and objects in the project's own."""
    monkeypatch.chdir(tmp_path)
    for name in ("TORCH_EXTENSIONS_DIR", "TORCH_CUDA_ARCH_LIST", "MAX_JOBS"):
        monkeypatch.setenv(name, "")
    with beside.workplace() as folder:
        Path("vit_build").mkdir()
        assert (folder / "vit_build").is_dir() and os.environ["TORCH_EXTENSIONS_DIR"] == str(folder)
    assert Path.cwd() == tmp_path and not any(tmp_path.iterdir()) and not folder.exists()


def test_the_order_takes_levels_in_turn_and_leaves_out_what_has_no_program() -> None:
    known = {(level, number): {"custom_code": "x" if number != 3 else None} for level in (1, 2, 3) for number in range(1, 6)}
    drawn = beside.order(known, 811, None)
    assert [level for level, _ in drawn] == [1, 2, 3] * 4 and sorted({number for _, number in drawn}) == [1, 2, 4, 5]
    assert drawn == beside.order(known, 811, None) != beside.order(known, 812, None)
    assert beside.order(known, 811, "1:3,2:1") == [(2, 1)]


def test_a_release_that_says_none_by_the_word_has_no_program(tmp_path: Path) -> None:
    path = tmp_path / "h100.json"
    path.write_text("".join(json.dumps({"level_id": 1, "task_id": number, "custom_code": code}) + "\n" for number, code in ((1, "None"), (2, OWN))))
    assert beside.order(release.rows(path, ""), 1, None) == [(1, 2)]


def test_what_a_constructor_draws_beside_its_state_is_the_originals(tmp_path: Path) -> None:
    from warpwright.run import Settings, open_space
    from warpwright.tasks import taskfile

    path = tmp_path / "task.py"
    drawn = "    def __init__(self):\n        super().__init__()\n        self.h = torch.randn(16)\n\n"
    path.write_text(TASK.replace("    def forward", f"{drawn}    def forward").replace("torch.relu(x)", "torch.relu(x) + self.h"))
    task = Settings(device="cpu").describe(path)
    reference = taskfile.load(task)
    torch.manual_seed(0)
    model, (x,) = reference.make_model(), reference.make_inputs(0, "cpu")
    torch.manual_seed(5)
    new = first.rewritten(open_space(task, "cpu"), (), model, reference, "cpu", made_on="cpu")
    torch.testing.assert_close(new(x), model(x))


def test_what_rows_come_to() -> None:
    ours = {"wrong": {"b": "errors"}, "ours ms": {"a": 2.0, "b": 1.0, "c": None}, "kept ms": {"eager": 4.0}}
    rows = [{"task": "L1-1", "theirs": "right", "theirs ms": 8.0, **ours}, {"task": "L1-2", "theirs": "right", "theirs ms": 1.0, **ours},
            {"task": "L2-1", "theirs": "errors", "theirs ms": 0.1, **ours},
            {"task": "L3-1", "theirs": "its process ended", "reason": "while making theirs"}]  # fmt: skip
    text = beside.summarised(rows, 9)
    assert "| L1 | 2 | 1 | 1.41x [0.50, 4.00] | 1 | 1 |" in text and "| all | 2 | 1 |" in text
    assert "4 of 9 tasks were begun; theirs is right in 2, ours is the original kept in 0" in text
    assert "theirs not right: L3-1: its process ended" in text and "ours not right: L1-1: b: errors" in text


def one_job(todo: Any, lines: Any) -> None:
    """Do one job; a job that is odd ends the process at once."""
    job = todo.get(timeout=1.0)
    if job[0] % 2:
        os._exit(1)
    lines.put(job[0])


@pytest.mark.slow
def test_processes_that_end_are_replaced_while_jobs_are_left() -> None:
    end, large = time.monotonic() + 30, "x" * 100_000  # more than a pipe holds
    assert sorted(spawned.lines(one_job, [(number, large) for number in range(6)], 2, end, renewed_until=end)) == [0, 2, 4]
    assert time.monotonic() < end


def test_long_programs_are_timed_in_few_rounds_and_each_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, told = [0.0], list[str]()

    def batch(call: Any, count: int) -> float:
        seconds = {"short": 2e-5, "long": 0.1}[call()]
        clock[0] += count * seconds
        told.extend([call()] if len(told) < 100 else [])
        return seconds

    monkeypatch.setattr(first, "batch", batch)
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    calls: dict[str, Callable[[], object]] = {"short": lambda: "short", "long": lambda: "long"}
    assert first.timed(calls, None, 3e-3, 13, 0.6) == {"short": 2e-5, "long": 0.1}
    assert told == ["short", "short", "long", *["short", "long"] * 3] and clock[0] < 1.0
    told.clear()
    first.timed({"short": calls["short"]}, None, 3e-3, 13, 0.6)
    assert len(told) == 2 + 13


def test_by_the_clock_long_programs_are_called_less(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, called = [0.0], list[float]()
    monkeypatch.setattr(time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def taking(seconds: float) -> Any:
        def call() -> None:
            called.append(seconds)
            clock[0] += seconds

        return call

    assert beside.by_the_clock(taking(0.02)) == pytest.approx(0.02) and len(called) == 2
    called.clear()
    assert beside.by_the_clock(taking(1e-4)) == pytest.approx(1e-4) and len(called) == 30
