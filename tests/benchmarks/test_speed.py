"""Answers of a server that the time left would cut short are not begun, and a row says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from benchmarks.timing import speed


class Server:
    """Answers at once; counts what it is asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.archive = self

    def records(self) -> list[Any]:
        return []

    def evaluate(self, *_: Any, **__: Any) -> dict[str, Any]:
        self.asked += 1
        return {"status": "ok", "record": "one"}


@pytest.mark.parametrize(("limit", "asked"), [(30.0, 1), (600.0, 6)])
def test_what_would_be_cut_short_is_not_begun(limit: float, asked: int, tmp_path: Path) -> None:
    bench, server = speed.Bench("cuda", tmp_path, tmp_path, 1.0, 0.02, "", limit), Server()
    speed._warm(bench, server, ["warm"], ["wrong", "right"], 2, 1.0)  # type: ignore[arg-type]
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    left_out = [row["left out"] for row in rows if "status" not in row]
    assert server.asked == asked and len(left_out) == (2 if limit < 100 else 0)
    assert all("left" in why or "first answer" in why for why in left_out)
