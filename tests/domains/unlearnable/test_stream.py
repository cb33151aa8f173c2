"""The streaming benchmark at a hundredth of its size: bounded memory, and kill -9 with --resume to the same bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.cwc import stream as script


@pytest.mark.compiler
def test_a_killed_stream_resumes_to_the_same_bytes_in_bounded_memory(tmp_path: Path) -> None:
    undisturbed, disturbed, same, right = script.stream(tmp_path, 10_000, 1, samples=50)
    assert same and right == 50
    assert max(run.peak_mib for run in [*undisturbed, *disturbed]) - script.torch_mib() < script.LIMIT_MIB
    assert len(disturbed) == 2 and disturbed[0].killed
