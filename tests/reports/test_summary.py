"""Means, counts and tables of outcome lines."""

from __future__ import annotations

import math
from typing import Any

from warpwright.reports import summary


def line(task: str, best: float | None, eager: float | None, status: str = "ok", **more: Any) -> dict[str, Any]:
    speedup = {"best": best, "eager": eager, "interval": [best, best] if best else None, "eager_interval": None}
    return {"task": task, "status": status, "speedup": speedup, "baselines": {"compile": 2.0, "eager": 4.0}, "reason": "", **more}


LINES = [
    line("a", 1.0, 2.0, verdict="SAME", recipe=["fold(linear)"]),
    line("b", 4.0, 8.0, verdict="FASTER", ours_ms=0.5),
    line("c", None, None, "wrong", reason="values | off\nby 3", verdict=None),
    line("d", None, None, "unscored", reason="any answer passes", verdict=None),
    line("e", 0.9, 1.0, verdict="SLOWER"),
]


def test_means_leave_out_the_unscored_and_count_failures_as_one() -> None:
    said = summary.summarise(LINES)
    assert said.best is not None and said.eager is not None
    assert math.isclose(said.best.value, (1.0 * 4.0 * 1.0 * 0.9) ** 0.25) and said.best.tasks == 4
    assert math.isclose(said.eager.value, 16**0.25) and said.eager.low <= said.eager.value <= said.eager.high
    assert said.statuses == {"ok": 3, "wrong": 1, "unscored": 1} and said.verdicts == {"SAME": 1, "FASTER": 1, "SLOWER": 1}
    assert said.below == ("e (0.90x)",) and said.large[5.0] == 1 and said.large[2.0] == 2


def test_no_lines_give_no_means() -> None:
    said = summary.summarise([])
    assert said.best is None and said.eager is None and "statuses" in summary.paragraphs(said)


def test_the_interval_of_a_ratio_holds_the_ratio() -> None:
    slow, fast = [2.0, 2.2, 1.8, 2.1, 1.9], [1.0, 1.1, 0.9, 1.05, 0.95]
    interval = summary.ratio_interval(slow, fast)
    assert interval is not None and interval[0] <= 2.0 <= interval[1] and interval[1] - interval[0] < 0.01
    unpaired = summary.ratio_interval(slow, fast[:4])
    assert unpaired is not None and unpaired[0] < 2.0 < unpaired[1]
    assert summary.ratio_interval([], fast) is None


def test_the_table_has_a_row_a_task_and_eager_first() -> None:
    rows = summary.table(LINES).splitlines()
    assert len(rows) == 2 + len(LINES) and rows[0].startswith("| task | status | eager ms | compile ms | ours ms | vs best |")
    assert all(row.replace("\\|", "").count("|") == rows[0].count("|") for row in rows)
    assert "values \\| off by 3" in rows[4] and "fold(linear)" in rows[2]


def test_the_document_names_the_unscored_with_their_reasons() -> None:
    page = summary.document("Title", {"machine": "two cores"}, LINES)
    assert "- machine: two cores" in page and "- d: any answer passes" in page and "- c (wrong): values" in page
