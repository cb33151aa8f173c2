"""The script over kernels from outside: rows of what came of each, also where nothing did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.cuda import outside
from warpwright.base import Candidate, Record, Source, Task

EXAMPLES = Path(__file__).parents[2] / "examples" / "cuda"


def said(**changed: object) -> dict[str, object]:
    speedup = {"best": 3.0, "interval": [2.5, 3.5]}
    return {"error": 1e-6, "status": "ok", "verdict": "FASTER", "reason": "", "recipe": ["block(k, x=128)"], "speedup": speedup, **changed}


def record(status: str) -> Record:
    return Record(Task("k", "/k.cu"), Candidate(Source("python", (("k.py", status),)), "cpu"), "cpu", status)  # type: ignore[arg-type]


def test_rows_say_what_was_read_passed_and_faster() -> None:
    row = outside.row(said(), [record("ok"), record("wrong")])
    assert (row["read"], row["programs"], row["passed"], row["speed-up"]) == ("yes", 2, 1, "3.00 [2.50, 3.50]")
    kept = outside.row(said(verdict="SAME", recipe=["baseline:eager"], reason="none | faster"), [record("wrong")])
    assert kept["speed-up"] == kept["recipe"] == "" and kept["reason"] == "none / faster" and kept["read"] == "yes"
    assert outside.row({"error": "expected x", "hint": ""}, [])["reason"] == "expected x"
    assert outside.row({}, [], "Traceback\nKilled")["reason"] == "Killed"
    assert outside.row(said(status="unscored", verdict=None, reason="it differs"), [])["read"] == "no"
    total = outside.summary([row, kept])
    assert (total["kernels"], total["read"], total["made faster"], total["geometric mean of the faster"]) == (2, 2, 1, "3.00")


def test_a_folder_of_tasks_is_found_and_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("clang")
    for name in ("saxpy", "row_sum"):
        (tmp_path / name).mkdir()
        for file in (f"{name}.cu", f"{name}_task.py"):
            (tmp_path / name / file).write_text((EXAMPLES / file).read_text())
    (tmp_path / "sources.json").write_text(json.dumps({"saxpy": {"repository": "some/where", "file": "a/b.cu"}}))
    assert outside.main([str(tmp_path), "--out", str(tmp_path / "out"), "--dry"]) == 0
    rows = [json.loads(line) for line in (tmp_path / "out/rows.jsonl").read_text().splitlines()]
    assert [row.get("kernel") for row in rows] == ["row_sum", "saxpy", None] and rows[1]["repository"] == "some/where"
    assert "cooperate" in rows[0]["recipe"] and rows[2]["read"] == 2
    with pytest.raises(SystemExit, match="saw none"):
        outside.found(tmp_path / "out")
