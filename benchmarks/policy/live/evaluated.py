"""`--search policy` beside other searches on a GPU, each proposal through the evaluator: what each has found after so many evaluations.

    python -m benchmarks.policy.live.evaluated --out OUT --files FILE,FILE [--searches policy,evolve] [--evaluations 16] [--jobs 6] [--limit 150]

A task and a search are a run with an archive of its own, so that nobody is answered from what another measured; runs share the GPU, and the device's
lock times one program at a time. OUT/rows.jsonl has a line for each record as it comes: a run that the limit cuts short is compared at what it had.
Baseline: the original as it is. `--device cpu` tries it without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import spawned

END = 6.0
"""Seconds before the limit after which no program is begun."""


def main() -> None:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--files", required=True, help="task files, comma-separated")
    parser.add_argument("--searches", default="policy,evolve")
    parser.add_argument("--evaluations", type=int, default=16, help="of each run, the original not counted (%(default)s)")
    parser.add_argument("--model", default="", help="folder of a trained policy; the one that ships where it is not given")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=6)
    parser.add_argument("--limit", type=float, default=150.0, help="seconds after which it ends, whatever is left (%(default)s)")
    options = parser.parse_args()
    end = time.monotonic() + options.limit
    options.out.mkdir(parents=True, exist_ok=True)
    runs = [(file, search) for file in options.files.split(",") for search in options.searches.split(",")]
    found: list[dict[str, Any]] = []
    with (options.out / "rows.jsonl").open("a") as out:
        for line in spawned.lines(work, runs, options.jobs, end, options, end - END, daemon=False):
            found.append(line)
            out.write(json.dumps(line) + "\n")
            out.flush()
            print(f"{options.limit - (end - time.monotonic()):.0f} s", line, flush=True)
        for row in table(found):
            out.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)


def work(todo: Any, lines: Any, options: argparse.Namespace, end: float) -> None:
    """Do runs until none is left or the end has come."""
    for file, search in spawned.taken(todo, end):
        try:
            lines.put(one_run(Path(file), search, lines, options, end))
        except Exception:  # one run must not end the others
            lines.put({"row": "failure", "task": Path(file).stem, "search": search, "reason": traceback.format_exc()[-600:]})


def one_run(file: Path, search: str, lines: Any, options: argparse.Namespace, end: float) -> dict[str, Any]:
    """Search for a faster program of one task; return the row of the whole run."""
    from warpwright.archive import Archive
    from warpwright.base import is_baseline
    from warpwright.run import Conduct, Settings, run_task

    settings = Settings(
        device=options.device, search=search, budget=f"{options.evaluations + 1} proposals", baselines=("eager",), seed=options.seed,
        timing_seconds=1.0, model=options.model if search == "policy" else "",
    )  # fmt: skip
    began = time.monotonic()
    seen: list[float] = []

    def told(record: Any) -> None:
        if not is_baseline(record) and record.candidate.actions:
            seen.append(record.speedup)
            lines.put({
                "row": "record", "task": record.task.name, "search": search, "number": len(seen), "status": record.status,
                "speedup": round(record.speedup, 4), "recipe": "; ".join(map(str, record.candidate.actions)), "s": round(time.monotonic() - began, 1),
            })  # fmt: skip

    with Archive(options.out / f"{file.stem}_{search}.db") as archive:
        run = run_task(settings.describe(file), settings, archive, Conduct(told, should_stop=lambda: time.monotonic() > end))
    return {
        "row": "run", "task": run.outcome.task.name, "search": search, "evaluations": len(seen), "best": round(max([1.0, *seen]), 4),
        "stopped": run.outcome.stopped, "note": run.note, "limited": run.limited, "s": round(time.monotonic() - began, 1),
    }  # fmt: skip


def table(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each task: what each search had found at the evaluations that all of them came to."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        if line["row"] == "record":
            found.setdefault(line["task"], {}).setdefault(line["search"], []).append(line["speedup"])
    rows = []
    for task, searches in found.items():
        count = min(map(len, searches.values()))
        best = {f"{search}, best": f"{max(1.0, *speedups[:count]):.2f}x" for search, speedups in searches.items()}
        rows.append({"table": "live", "task": task, "evaluations": count, **best})
    return rows


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    main()
