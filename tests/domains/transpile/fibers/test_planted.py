"""Bugs planted in a few kernels of benchmarks/sanitizer are found at their lines, and the kernels without are clean."""

from __future__ import annotations

import pytest

from benchmarks.sanitizer.run import examine, kernels


@pytest.mark.compiler
def test_planted_bugs_are_found_and_clean_kernels_are_clean() -> None:
    rows = examine(kernels(["exchange", "tree"]))
    assert len(rows) >= 12 and all(row["ok"] for row in rows), [row for row in rows if not row["ok"]]
