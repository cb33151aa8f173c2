"""`--polish` and `--search ppo` through the command line, on a machine without a GPU."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sass_cubins import task_path

from warpwright import api
from warpwright.cli.bounded import Bound

Command = Callable[..., tuple[int, dict[str, Any], str]]

TASK = """import torch
import warpwright


@warpwright.task(inputs=lambda: (torch.randn(8, 8),))
def f(x):
    return torch.relu(x) + 1
"""


def test_without_a_gpu_a_program_is_left_as_it_is(command: Command, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text(TASK)
    code, line, said = command("optimize", "f.py", "--target", "cpu", "--budget", "1 proposals", "--baselines", "eager", "--polish", "5s")
    assert code == 0 and line["status"] == "ok"
    assert "polish: left as it is: expected a program with CUDA kernels on an NVIDIA GPU" in said


def test_what_there_was_is_written_first_and_the_budget_does_not_end_a_polish(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen on an H200: the bound on a command's budget ended a polish, and the program that was there before it was lost."""
    (tmp_path / "f.py").write_text(TASK)
    bounds: list[float | None] = []
    seen: list[str] = []
    begin = Bound.begin

    def bounded(bound: Bound, task: str, seconds: float | None, as_json: bool, after: float) -> None:
        bounds.append(seconds)
        begin(bound, task, seconds, as_json, after)

    def polished(*arguments: Any) -> Any:
        seen.append(json.loads((arguments[-1] / "report.json").read_text())["status"])
        raise KeyboardInterrupt

    monkeypatch.setattr(Bound, "begin", bounded)
    monkeypatch.setattr(api, "_polished", polished)
    command("optimize", "f.py", "--target", "cpu", "--budget", "60s,1 proposals", "--baselines", "eager", "--polish", "5s")
    assert seen == ["ok"] and bounds == [None]
    assert list(tmp_path.glob("warpwright-out/*/optimized.py"))
    command("optimize", "f.py", "--target", "cpu", "--budget", "60s,1 proposals", "--baselines", "eager")
    assert bounds == [None, 60.0]


def test_a_polish_wants_a_time(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command("optimize", "f.py", "--polish", "3 proposals")
    assert "expected a time such as 30s" in capfd.readouterr().err


def test_ppo_is_a_search_of_machine_code_alone(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("sb3_contrib", reason="needs sb3-contrib (pip install 'warpwright[sass-rl]')")
    path = task_path("saxpy_90", tmp_path)
    code, line, _ = command("optimize", str(path), "--target", "cubin:sim", "--search", "ppo", "--budget", "6 proposals")
    assert code == 0 and line["status"] == "ok"
    (tmp_path / "f.py").write_text(TASK)
    code, line, _ = command("optimize", "f.py", "--target", "cpu", "--search", "ppo", "--budget", "2 proposals", "--baselines", "eager")
    assert code == 2 and "expected machine code for --search ppo" in line["error"]
