"""The streaming benchmark at a thirtieth of its size: bounded memory, and kill -9 with --resume to the same bytes."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "benchmarks" / "classwise_stream.py"


@pytest.mark.compiler
def test_a_killed_stream_resumes_to_the_same_bytes_in_bounded_memory(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("classwise_stream", SCRIPT)
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    sys.modules["classwise_stream"] = script
    spec.loader.exec_module(script)
    undisturbed, disturbed, same, right = script.stream(tmp_path, 30_000, 1, samples=50)
    assert same and right == 50
    assert max(run.peak_mib for run in [*undisturbed, *disturbed]) < script.LIMIT_MIB
    assert len(disturbed) == 2 and disturbed[0].killed
