"""The single calls of benchmarks/kernels/calls: the ladder's first program of each leaves nothing that goes over its tensors to torch."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.kernels import left_to_torch

CALLS = sorted((Path(left_to_torch.__file__).parent / "calls").glob("*.py"))


@pytest.mark.parametrize("file", CALLS, ids=lambda file: file.stem)
def test_the_first_program_is_a_kernel_of_ours(file: Path) -> None:
    row = left_to_torch.row_of(file, file.stem)
    ours = {kind: us for kind, us in row["us"].items() if kind.startswith("ours")}
    assert sum(ours.values()) > 0.99 * sum(row["us"].values()), row["us"]
