"""Rows of the benchmarks of relational layers: one way to write them, at once, with a note where a check fails."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.rgnn import noted, profiled

FOLDER = Path(noted.__file__).parent


def test_rows_are_in_the_file_before_the_run_ends_and_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "folder"

    def fails() -> dict[str, Any]:
        raise ValueError("no such graph")

    with pytest.raises(KeyboardInterrupt), noted.rows_file(out) as write:
        noted.noted(write, {"check": "one"}, lambda: {"ms": 2.0})
        noted.noted(write, {"check": "two"}, fails)
        assert [json.loads(line) for line in (out / "rows.jsonl").read_text().splitlines()] == [
            {"check": "one", "ms": 2.0},
            {"check": "two", "note": "ValueError: no such graph"},
        ]
        raise KeyboardInterrupt
    shown = capsys.readouterr()
    assert shown.out.splitlines()[0] == '{"check": "one", "ms": 2.0}' and "in fails" in shown.err


def test_what_is_not_shown_is_written_and_a_second_run_may_append(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for append in (False, True):
        with noted.rows_file(tmp_path, lambda row: "", append) as write:
            write({"append": append})
    assert (tmp_path / "rows.jsonl").read_text().splitlines() == ['{"append": false}', '{"append": true}'] and capsys.readouterr().out == ""
    assert noted.timed_from(0.0, lambda row: row["table"])({"table": "times"}).endswith(" s times")


def test_no_benchmark_here_writes_rows_in_another_way() -> None:
    others = {path.name for path in FOLDER.glob("*.py") if path.name != "noted.py" and ".write(json" in path.read_text()}
    assert others == set()


def test_operations_come_in_order_with_the_time_between_them() -> None:
    x = torch.ones(4)
    shown = profiled.in_order(lambda: x.cos().sin(), False, 9)
    assert [name for name, _, _ in shown] == ["aten::cos", "aten::sin"]
    assert shown[0][2] == 0.0 and all(us > 0 for _, us, _ in shown)
