"""Programs that are timed in turns: each meets the device as the others leave it, and a row says the median."""

from __future__ import annotations

import pytest

from benchmarks.kernels import beside


def test_a_device_that_slows_down_slows_all_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that is lower with each batch: what is timed one after the other differs by it, what is timed in turns hardly does."""
    heat, asked = [0], list[str]()

    def batch(call, count: int) -> float:
        asked.append(call())
        heat[0] += 1
        return 1e-3 * (1.0 + 0.01 * heat[0])

    monkeypatch.setattr(beside, "batch", batch)
    row = {"ms": {"kept": 7.0}}
    beside.in_turns(row, {name: lambda name=name: name for name in "abc"})
    assert asked == list("abc") * 6
    assert row["ms"].pop("kept") == 7.0 and max(row["ms"].values()) / min(row["ms"].values()) < 1.02
    assert row["ms"]["a"] == pytest.approx(1.10), "the third of five rounds, which follows three batches and six"
