"""Programs of kernels that memory binds: written for whoever times them, by the technique that a case is for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.kernels import memory_bound


@pytest.mark.parametrize(("case", "technique"), [("1:42 max pool 2d", "windows_cuda"), ("1:90 cumprod", "scans_cuda"), ("bf16 softmax", "fuse_cuda")])
def test_a_case_becomes_a_program_of_kernels(case: str, technique: str, tmp_path: Path) -> None:
    for version in ("before", "now"):
        memory_bound.write(tmp_path, version, [case])
    first, second = map(json.loads, (tmp_path / "index.jsonl").read_text().splitlines())
    assert (first["case"], first["version"], second["version"]) == (case, "before", "now") and first["action"].startswith(technique)
    text = (tmp_path / first["file"]).read_text()
    assert text == (tmp_path / second["file"]).read_text() and "__global__" in text and first["file"] != second["file"]
    compile(text, "program", "exec")
