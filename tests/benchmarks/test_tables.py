"""Results are written from their rows: every README has its rows beside it and shows what they say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import tables


def test_every_readme_shows_its_rows() -> None:
    assert tables.main(["--check"]) == 0


def test_every_result_is_a_folder_with_rows_and_a_readme() -> None:
    for path in tables.RESULTS.iterdir():
        assert sorted(file.name for file in path.iterdir() if file.suffix in {".md", ".jsonl"}) == ["README.md", "rows.jsonl"], path


def test_a_changed_row_is_written_and_missed_by_no_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "copy"
    folder.mkdir()
    (folder / "README.md").write_text("# Copy\n\n<!-- table: speed -->\nold\n<!-- end -->\n\nSaid by hand.\n")
    (folder / "rows.jsonl").write_text(json.dumps({"table": "speed", "size": "4 Mi", "ms": 1.5}) + "\n")
    monkeypatch.setattr(tables, "RESULTS", tmp_path)
    assert tables.main(["--check"]) == 1
    assert tables.main([]) == 0 and tables.main(["--check"]) == 0
    assert "| size | ms |\n| --- | --- |\n| 4 Mi | 1.5 |" in (folder / "README.md").read_text()
    assert (folder / "README.md").read_text().endswith("Said by hand.\n")


def test_a_mark_without_rows_is_an_error() -> None:
    with pytest.raises(ValueError, match="saw none"):
        tables.table([{"table": "speed", "ms": 1}], "space")
