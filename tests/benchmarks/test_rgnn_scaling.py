"""benchmarks/rgnn/scaling.py: the picture, and a dry run of two processes whose results are those of one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks.rgnn import scaling

ROOT = Path(__file__).resolve().parents[2]


def test_efficiency_is_the_time_of_one_gpu_over_gpus_times_theirs() -> None:
    times = {8: 2.0, 2: 5.0, 1: 10.0}
    rows = [{"graph": "am", "layer": "rgcn", "gpus": gpus, "step_ms": ms} for gpus, ms in times.items()]
    picture = scaling.efficiency([*rows, {"graph": "mag", "layer": "hgt", "gpus": 8, "note": "out of memory"}])
    assert "am rgcn" in picture and "mag" not in picture
    heights = [float(point.split(",")[1]) for point in picture.split('points="')[1].split('"')[0].split()]
    assert heights[0] == heights[1] < heights[2]  # 100 %, 100 %, 62.5 %


def test_fewer_gpus_have_time_left_and_never_more_than_half() -> None:
    now = time.time()
    assert scaling.until(now + 68, 2) == now + 68 - 2 * scaling.LATER
    assert abs(scaling.until(now + 20, 2) - (now + 10)) < 1
    assert scaling.until(now + 5, 0) == now + 5


def test_a_graph_beyond_one_card_is_as_large_as_the_cards_hold() -> None:
    assert scaling.fitting(free=int(141e9), peak=int(282e9 * scaling.TRIED)) == pytest.approx(scaling.HELD / 2)
    assert scaling.fitting(free=int(141e9), peak=int(14e9 * scaling.TRIED)) == 1.0


def test_one_process_says_why_a_cell_failed(tmp_path: Path) -> None:
    said = [scaling.first_to_fail(str(tmp_path / "store"), "beyond", layer) for layer in ("rgcn", "rgcn", "hgt")]
    assert said == [True, False, True]


@pytest.mark.slow
def test_a_cell_that_fails_is_a_row_and_the_rest_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second cell ends the second of two processes; the third hangs until the seconds are over."""
    text = """import json, sys, time
out, rank, cells = sys.argv[1:]
for cell in cells.split(","):
    graph, layer = cell.split(":")
    if layer == "b" and rank == "1": sys.exit(1)
    if layer in "bc": time.sleep(60)
    if rank == "0": open(out + "/rows.jsonl", "a").write(json.dumps(dict(graph=graph, layer=layer, gpus=2, when=time.time(), step_ms=1.0)) + "\\n")
"""

    def processes(options: Any, gpus: int, cells: Sequence[str]) -> Iterator[subprocess.Popen[bytes]]:
        return (subprocess.Popen([sys.executable, "-c", text, str(tmp_path), str(rank), ",".join(cells)]) for rank in range(gpus))

    monkeypatch.setattr(scaling, "processes", processes)
    done = scaling.one_count(SimpleNamespace(out=tmp_path), 2, ["g:a", "g:b", "g:c"], time.time() + 4)  # type: ignore[arg-type]
    assert done == ["g:a"]
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [(row["layer"], "note" in row) for row in rows] == [("a", False), ("b", True)]


@pytest.mark.slow
@pytest.mark.skipif(not torch.distributed.is_gloo_available(), reason="needs gloo")
def test_a_dry_run_of_two_processes(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "benchmarks.rgnn.scaling", "--dry", "--gpus", "2", "--graphs", "am", "--models", "rgcn,hgt"]
    command += ["--out", str(tmp_path)]
    subprocess.run(command, check=True, timeout=500, cwd=ROOT, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert [(row["graph"], row["gpus"]) for row in rows] == [("am", 2), ("am", 2), ("beyond", 2), ("am", 1), ("am", 1)]
    assert all(row["error"] < 1e-5 for row in rows if row["graph"] == "am")
    assert (tmp_path / "scaling.svg").read_text().startswith("<svg")
