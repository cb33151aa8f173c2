"""The driver that runs the sets of programs again: what it takes for a row, and what it calls a change."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from benchmarks.transpile import again


def test_a_job_is_known_by_what_it_wrote_printed_or_left_open() -> None:
    def rows(text: str, limit: float = 20) -> list[dict[str, object]]:
        return again.done(again.Job("one", (sys.executable, "-S", "-c", text), limit), time.monotonic() + limit)

    writes = """open("ROW", "w").write('{"name": "a", "status": "verified"}')"""
    assert [(row["name"], row["status"], row["job"]) for row in rows(writes)] == [("a", "verified", "one")]
    assert rows("print('2 passed in 1.00s')")[0]["status"] == "passed"
    assert rows("raise SystemExit('no')")[0]["status"] == "no row"
    assert rows("pass") == []
    assert rows("import time; time.sleep(60)", 1.1)[0]["status"] == "cut"


def test_changed_statuses_are_told(tmp_path: Path) -> None:
    page = tmp_path / "rows.jsonl"
    page.write_text("".join(json.dumps({"name": name, "status": "verified"}) + "\n" for name in "ab"))
    rows: list[dict[str, object]] = [
        {"name": "a", "status": "verified"},
        {"name": "b", "status": "wrong", "reason": "own check"},
        {"name": "c", "status": "ran"},
    ]
    assert again.compared(rows, page) == ["b: verified -> wrong: own check"]
