"""The gallery lists every task of an archive, with the report of each beside it."""

from __future__ import annotations

import runpy
from pathlib import Path

from tests.reports.test_report import make_record
from warpwright.archive import Archive

GALLERY = runpy.run_path(str(Path(__file__).parents[2] / "docs/gallery.py"))


def test_each_task_has_a_report_and_a_row(tmp_path: Path) -> None:
    record = make_record()
    with Archive(tmp_path / "demo.db") as archive:
        archive.add(record)
    names = GALLERY["write"](tmp_path / "demo.db", tmp_path / "gallery")
    assert names == [record.task.name]
    index = (tmp_path / "gallery/index.md").read_text()
    assert f"[{record.task.name}]({record.task.name}.html)" in index and "FASTER" in index
    assert "<svg" in (tmp_path / f"gallery/{record.task.name}.html").read_text()
