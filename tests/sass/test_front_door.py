"""`--polish` and `--search ppo` through the command line, on a machine without a GPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sass_cubins import task_path

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
