"""Harbor's own trial of an exported folder: its verifier reads the reward that ours wrote, whatever the artefact does.

Harbor wants a newer Python than ours may be: WARPWRIGHT_TEST_HARBOR names an interpreter that has `harbor`. Seen with 0.25 on Python 3.12.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_harbor import DAEMON, REPOSITORY

from warpwright.adapters import harbor
from warpwright.adapters.judge import Judge

PYTHON = os.environ.get("WARPWRIGHT_TEST_HARBOR", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON, reason="WARPWRIGHT_TEST_HARBOR names no interpreter with harbor"),
    pytest.mark.skipif(os.getuid() != 0, reason="a mount namespace stands in for containers, which root alone may make"),
]


def trial(real: Any, folder: Path, agent: str, program: str = "") -> dict[str, Any]:
    """Export the task, have Harbor try it, and return what it says."""
    path = os.pathsep.join(filter(None, [str(REPOSITORY), os.environ.get("PYTHONPATH", "")]))
    for name, text in harbor.files(real.where, Judge(real.where).describe(), None, sys.executable, {"PYTHONPATH": path}).items():
        file = folder / "task" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(0o755 if file.suffix == ".sh" else 0o644)
    (folder / "handed_in.py").write_text(program)
    environment = {**os.environ, "PYTHONPATH": "", "PROGRAM_FILE": str(folder / "handed_in.py")}
    command = [PYTHON, str(Path(__file__).with_name("harbor_trial.py")), str(folder / "task"), str(folder / "trials"), agent]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr[-3000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert said["failure"] == "", said
    return said["rewards"]


def test_the_solution_that_is_exported_passes(real: Any, tmp_path: Path) -> None:
    assert 0 < trial(real, tmp_path, "oracle")["reward"] < 1000


@pytest.mark.parametrize("kind", ["right", "wrong", "empty", "forger"])
def test_an_agents_file_gets_its_true_reward(kind: str, real: Any, tmp_path: Path) -> None:
    forger = DAEMON.replace("@REWARD", "/logs/verifier/reward.json") + real.right
    reward = trial(real, tmp_path, "writer", {"right": real.right, "wrong": real.wrong, "empty": "", "forger": forger}[kind])["reward"]
    assert reward == 0 if kind in ("wrong", "empty") else reward < 1000
    assert reward > 0 or kind != "right"
