"""The benchmarks of single kernels call them as they are: each runs a case small, by Triton's interpreter, and finds it right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from interpreter import INTERPRETER

MOST = 4.0
"""Times eager's error: a few numbers of a small case."""


@INTERPRETER
@pytest.mark.parametrize(
    ("module", "case"),
    [
        ("implicit_convolution", "strict 64 x 64 x 56"),
        pytest.param("fused_products", "1024 x 8192 -> 8192, residual", marks=pytest.mark.slow),
        pytest.param("attention", "float32 ViT", marks=pytest.mark.slow),
        pytest.param("attention_backward", "float32 512 x 96", marks=pytest.mark.slow),
    ],
)
def test_a_case_is_right_when_it_is_small(module: str, case: str, tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-m", f"benchmarks.kernels.{module}", "--dry", "--cases", case, "--out", str(tmp_path)]
    subprocess.run(command, env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250, stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    shapes = [row for row in rows if row["table"].endswith("-shapes")]
    assert shapes and all(row["ms"] == {"ours": ""} and row["times eager's error"]["ours"] < MOST for row in shapes), rows


@INTERPRETER
def test_every_block_of_the_direct_convolution_is_right_when_images_are_small() -> None:
    command = [sys.executable, "-W", "ignore", "-m", "benchmarks.kernels.direct_convolution", "--dry", "--cases", "l2_58"]
    done = subprocess.run(command, env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250, capture_output=True, text=True)
    errors = [(row[1], float(row[2])) for row in (line.strip("| ").split(" | ") for line in done.stdout.splitlines()) if row[0] == "l2_58"]
    assert len(errors) == 14 and all(error < (2e-3 if what.startswith("tf32,") else 2e-6) for what, error in errors), errors
