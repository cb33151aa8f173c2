"""benchmarks/rgnn/scaling.py: the picture, and a dry run of two processes whose results are those of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks.rgnn import scaling, shares

ROOT = Path(__file__).resolve().parents[2]


def test_efficiency_is_the_time_of_one_gpu_over_gpus_times_theirs() -> None:
    times = {8: 2.0, 2: 5.0, 1: 10.0}
    rows = [{"graph": "am", "layer": "rgcn", "gpus": gpus, "step_ms": ms} for gpus, ms in times.items()]
    picture = scaling.efficiency([*rows, {"graph": "mag", "layer": "hgt", "gpus": 8, "note": "out of memory"}])
    assert "am rgcn" in picture and "mag" not in picture
    heights = [float(point.split(",")[1]) for point in picture.split('points="')[1].split('"')[0].split()]
    assert heights[0] == heights[1] < heights[2]  # 100 %, 100 %, 62.5 %


def test_what_messages_and_other_kernels_share_of_the_time() -> None:
    messages = shares.joined([(5.0, 9.0), (0.0, 2.0), (1.0, 3.0)])
    assert messages == [(0.0, 3.0), (5.0, 9.0)]
    assert shares.total(shares.common_to(messages, [(2.0, 6.0), (8.0, 8.5)])) == 1.0 + 1.0 + 0.5


def test_values_are_known_from_numbers_alone_and_differ() -> None:
    rows = shares.values(5, 4005, 0, torch.device("cpu"))
    assert torch.equal(rows[100:200], shares.values_of(torch.arange(105, 205), 0))
    assert rows.abs().max() <= 1 and abs(float(rows.mean())) < 0.01 and 0.3 < float(rows.var()) < 0.37
    assert torch.corrcoef(rows[:, :8].T).fill_diagonal_(0).abs().max() < 0.1
    assert torch.unique(rows, dim=0).shape == rows.shape


def test_one_process_says_why_a_cell_failed(tmp_path: Path) -> None:
    said = [scaling.first_to_fail(str(tmp_path / "store"), cell) for cell in ("beyond:rgcn", "beyond:rgcn", "am:hgt")]
    assert said == [True, False, True]


def test_a_cell_that_fails_or_hangs_is_a_row_and_the_rest_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second cell ends the second of two processes, `beyond` does so until it takes less, and the fifth hangs."""
    text = """import json, sys, time
out, rank, store, cells = sys.argv[1:]
for cell in cells.split(","):
    open(store + "-now", "w").write(cell)
    if cell in ("g:b", "beyond:rgcn") and rank == "1": sys.exit(1)
    if cell in ("g:b", "beyond:rgcn", "g:c"): time.sleep(60)
    if rank == "0": open(out + "/rows.jsonl", "a").write(json.dumps(dict(cell=cell, gpus=2, when=time.time(), peak_gb=1.0)) + "\\n")
"""

    def processes(options: Any, store: Path, cells: Sequence[str], peers: bool) -> list[subprocess.Popen[bytes]]:
        return [subprocess.Popen([sys.executable, "-c", text, str(tmp_path), str(rank), str(store), ",".join(cells)]) for rank in range(2)]

    monkeypatch.setattr(scaling, "processes", processes)
    options = SimpleNamespace(out=tmp_path, gpus=2, cells="check,g:a,g:b,beyond:rgcn,g:c,g:d", cell_seconds=1.5)
    assert not scaling.run(options, time.time() + 30)  # type: ignore[arg-type]
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    seen = [(row["cell"], row.get("note", "")) for row in rows]
    assert [(cell, bool(note)) for cell, note in seen] == [
        ("check", False), ("g:a", False), ("g:b", True), ("beyond:rgcn", True), (f"beyond:rgcn:{scaling.LESS}", False), ("g:c", True), ("g:d", False),
    ]  # fmt: skip
    assert seen[2][1] == "a process ended" and "nothing after" in seen[5][1]


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--one-card"]])
@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="needs gloo")
def test_a_dry_run_of_two_processes(tmp_path: Path, more: list[str]) -> None:
    command = [sys.executable, "-m", "benchmarks.rgnn.scaling", "--dry", "--cells", "check,am:rgcn,am:hgt,beyond:rgcn", "--seconds", "400"]
    command += ["--cell-seconds", "200", "--out", str(tmp_path), *more]
    subprocess.run(command, check=True, timeout=500, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    programs = [(1, "one GPU"), (2, "rows first"), (2, "two runs")]
    wanted = [("check", 2, None), *(("am", *program) for _ in range(2) for program in programs), ("beyond", *programs[1]), ("beyond", *programs[0])]
    assert [(row["graph"], row["gpus"], row.get("program")) for row in rows] == wanted
    assert rows[0]["right"] and all(row["error"] < 1e-5 for row in rows if row["gpus"] == 2 and row["graph"] != "check")
    assert rows[-2]["gradient_error"] < 1e-5
    assert (tmp_path / "scaling.svg").read_text().startswith("<svg")
