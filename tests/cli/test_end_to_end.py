"""The real command with real workers on a small task: the program it writes runs by itself, reproduces, and an interruption loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from warpwright import cli

ROOT = Path(__file__).parents[2]
TASK = str(ROOT / "tests/tasks/linear_sum.py")
QUICK = "import sys; from warpwright import cli; from warpwright.cli import programs; programs.TIMING_SECONDS = 0.3; sys.exit(cli.main(sys.argv[1:]))"
COMMAND = [sys.executable, "-c", QUICK]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}

Run = Callable[..., tuple[int, dict[str, Any], str]]

pytestmark = [pytest.mark.compiler, pytest.mark.timeout(900)]


@pytest.mark.parametrize("audited", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_optimize_audit_and_reproduce(tmp_path: Path, command: Run, audited: bool) -> None:
    """What is written runs alone and reproduces; and passes an audit, of which test_cuda_on_cpu.py has a quick one."""
    code, said, err = command("optimize", TASK, "--target", "cpu", "--budget", "1 proposals", "--baselines", "eager")
    assert code == cli.DONE, err
    assert said["status"] == "ok" and said["verdict"] != "SLOWER" and said["recipe"]
    program = tmp_path / said["artifact"]
    alone = subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, text=True, timeout=300, env={**os.environ, "PYTHONPATH": ""})
    assert alone.returncode == 0, alone.stderr  # its self-test needs only torch
    if audited:
        code, found, err = command("audit", str(program), "--task", TASK, "--target", "cpu", "--baselines", "eager")
        assert code == cli.DONE and found["status"] == "ok", err
    _, again, err = command("reproduce", said["record"])
    assert again["status"] == "ok", err  # whether the intervals overlap is for a quiet machine to say


def test_a_wrong_program_fails_the_audit(command: Run) -> None:
    Path("candidate.py").write_text(
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, inputs, hidden, scale):\n        super().__init__()\n"
        "        self.weight = torch.nn.Parameter(torch.randn(hidden, inputs))\n\n"
        "    def forward(self, x):\n        return torch.zeros(x.shape[0], 1)\n"
    )
    code, said, err = command("audit", "candidate.py", "--task", TASK, "--target", "cpu", "--baselines", "eager")
    assert code == cli.NOT_PASSED and said["status"] == "wrong" and "error" in said["reason"], err


def test_a_hang_in_the_first_call_is_given_up_when_the_command_says(command: Run) -> None:
    Path("candidate.py").write_text(
        "import time\nimport torch\n\n\nclass ModelNew(torch.nn.Module):\n    def __init__(self, inputs, hidden, scale):\n"
        "        super().__init__()\n        self.weight = torch.nn.Parameter(torch.randn(hidden, inputs))\n\n"
        "    def forward(self, x):  # torch.compile\n        time.sleep(100)\n"
    )
    code, said, err = command("audit", "candidate.py", "--task", TASK, "--target", "cpu", "--baselines", "eager", "--warm-up", "1")
    assert code == cli.NOT_PASSED and said["status"] == "timeout" and "within 1 s" in said["reason"], err


def test_ctrl_c_leaves_the_best_so_far(tmp_path: Path) -> None:
    arguments = ["optimize", TASK, "--target", "cpu", "--budget", "10m", "--baselines", "eager", "--json"]
    running = subprocess.Popen(
        [*COMMAND, *arguments], cwd=tmp_path, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs, these tests perhaps, ignore it
    )  # fmt: skip
    assert running.stderr is not None
    try:
        for line in running.stderr:
            if "the best baseline" in line and not line.startswith("baseline"):
                break
        os.killpg(running.pid, signal.SIGINT)  # as a terminal does it: to the whole group
        out, err = running.communicate(timeout=120)
    finally:
        running.kill()
    assert running.returncode == cli.INTERRUPTED, err
    said = json.loads(out)
    assert said["status"] == "ok" and (tmp_path / said["artifact"]).exists() and (tmp_path / "warpwright-out/linear_sum/report.html").exists()
