"""What there is to find in a recorded space."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.policy.recording import spaces

LINE: dict[str, Any] = {
    "task": "t", "eager us": 100.0, "again us": 101.0, "actions": ["fuse(block=128)", "fuse(block=256)", "fold()"],
    "programs": [["ok", 100.0], ["ok", 50.0], ["ok", 51.0], ["ok", 80.0], ["error 3", None], ["ok", 40.0]],
    "recipes": [[0], [1, 0], [2, 1], [3, 2], [4, 2, 2], [5, 0, 2], [5, 2, 0]], "estimated us": [100.0, 60.0, 60.0, 90.0, 1.0, 30.0, 30.0],
}  # fmt: skip


def test_a_space_is_told_by_what_is_near_its_best_and_by_its_sets_of_techniques() -> None:
    row, medians = spaces.rows_of([LINE], "x", 3)
    assert (row["programs"], row["faster than the original"], row["within 5 % of the best"], row["actions at the start"]) == (5, 4, 1, 3)
    assert (row["sets"], row["sets within 5 %"], row["techniques of the best"], row["within a set"]) == (3, 1, 2, 1.02)
    assert row["chance of one in 16"] == 1.0 and row["rank correlation"] > 0.9 and row["explained by sets"] > 0.99
    assert row["mean program"] == pytest.approx((40**5 / (50 * 51 * 80 * 100 * 40)) ** 0.2, abs=0.01)
    assert (medians["table"], medians["recorded"], medians["tasks"]) == ("spaces", "x", 1)
    assert list(spaces.rows_of([{**LINE, "again us": 150.0}], "x", 3)) == [{"table": "spaces", "recorded": "x", "tasks": 0}]


def test_the_chance_of_a_near_one() -> None:
    assert spaces.chance(20, 0) == 0.0 and spaces.chance(10, 1) == 1.0 and spaces.chance(32, 1) == pytest.approx(0.5)
