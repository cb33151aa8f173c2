"""The lines that graph_rows wrote, as rows that `warpwright train` reads.

    python -m benchmarks.policy.recording.records OUT/tasks.jsonl [...] --rate 2400 --out configs/graphs.parquet

`--rate`: GB/s that copying moves on that GPU (OUT/rate.json), for each task's place under the roof. Recipes that make one program share its result.
Nothing is measured here.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from warpwright.learn.policy import rows
from warpwright.learn.policy.rows import Row

RESULTS = Path(__file__).parents[2] / "results"

EVALUATED = ("kernelbench_h200", "kernelbench_draw_h200")
"""What the evaluator said of KernelBench's tasks on a GPU."""


def lines_of(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Return the lines of tasks that were recorded; a file may be compressed (`.gz`)."""
    return [line for line in read(files) if len(line.get("programs", ())) > 1]


def read(files: Iterable[Path]) -> list[dict[str, Any]]:
    """Return all lines of files, which may be compressed (`.gz`)."""
    texts = (gzip.decompress(file.read_bytes()).decode() if file.suffix == ".gz" else file.read_text() for file in files)
    return [json.loads(line) for text in texts for line in text.splitlines()]


def unscored() -> set[str]:
    """Return the tasks to which the evaluator gave no score on a GPU: their check accepts a constant, or they differ from themselves."""
    runs = read(RESULTS / name / "rows.jsonl" for name in EVALUATED)
    return {line["task"] for line in runs if line.get("status") == "unscored"}


def rows_of(line: Mapping[str, Any], rate: float) -> Iterator[Row]:
    """Yield the rows of one task; recipes of programs that were not reached are left out."""
    eager = line["programs"][0][1]
    roof = round(line["moved"] / (1e3 * rate) / eager, 4)
    estimates = line["estimated us"] or [0.0] * len(line["recipes"])
    for (program, *numbers), estimate in zip(line["recipes"], estimates, strict=True):
        if program >= len(line["programs"]):
            continue
        told, us = line["programs"][program]
        right = told == "ok"
        status = "ok" if right else "wrong" if told.startswith(("error", "shapes", "does not fit")) else "crashed"
        yield Row(
            line["task"], line["key"], line["device"], tuple(line["words"]), roof, tuple(line["actions"][number] for number in numbers), status,
            round(eager / us, 4) if right else 0.0, seconds=us / 1e6 if right else 0.0, original_seconds=eager / 1e6,
            check="" if right else told, estimate=estimate / 1e6,
        )  # fmt: skip


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--rate", type=float, required=True, help="GB/s")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    found = [row for line in lines_of(options.files) for row in rows_of(line, options.rate)]
    rows.write(options.out, found)
    print(f"{len(found)} rows of {len({row.task_key for row in found})} tasks in {options.out}")


if __name__ == "__main__":
    main()
