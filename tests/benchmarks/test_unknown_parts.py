"""The scripts that measure part by part on a GPU: a part that they do not have is no success."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


SCRIPTS = ("cwc/h200.sh", "kernelbench/h200.sh", "kernelbench/draw_h200.sh", "rgnn/h200.sh", "policy/h200.sh", "sass/h200.sh")


@pytest.mark.parametrize("script", SCRIPTS)
def test_an_unknown_part_ends_with_a_code_and_one_sentence(script: str, tmp_path: Path) -> None:
    """A misspelt part had ended with 0 after no second, as if it had measured."""
    folder, out = str(tmp_path), str(tmp_path / "out")
    arguments = {"kernelbench/draw_h200.sh": [folder, out, "nonsense", "5"], "rgnn/h200.sh": ["nonsense", out]}
    command = ["bash", f"benchmarks/{script}", *arguments.get(script, ["nonsense", folder, out, "5"])]
    environment = {**os.environ, "TMPDIR": folder, "WORK": str(tmp_path / "work")}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert ended.stderr.startswith("expected ") and ended.stderr.rstrip().endswith("saw nonsense"), ended.stderr
    assert len(ended.stderr.splitlines()) == 1 and not ended.stdout
