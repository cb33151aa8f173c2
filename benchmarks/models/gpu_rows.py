"""Rows of drawn_models' page from what `benchmarks.third_party --drawn 12` wrote: `python -m benchmarks.models.gpu_rows ROWS [--table second-h200]`.

One a model and precision, with the times of a call in milliseconds, and why a program that was tried did not pass. A model that was not begun, as no
time was left, gives a row that says so.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.drawn_models import drawn

BASELINES = ("eager", "compile", "cuda_graph")
SAID = 300
"""Characters of a reason."""

Row = Mapping[str, Any]


def page_rows(rows: Sequence[Row], table: str) -> list[dict[str, Any]]:
    """Return the page's rows, in the order of `rows`."""
    halves = drawn()
    tried: dict[str, list[Row]] = {}
    for row in rows:
        if row["table"] == "programs":
            tried.setdefault(row["model"], []).append(row)
    return [_page_row(row, tried.get(row["model"], []), table, halves) for row in rows if row["table"] == "third_party"]


def _page_row(row: Row, tried: Sequence[Row], table: str, halves: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    name = row["model"].removesuffix("_bf16")
    found = {"table": table, "model": name, "half": halves[name][0], "precision": "float32" if name == row["model"] else "bfloat16"}
    found |= {"verdict": row["verdict"] or "not begun", "vs best": row.get("speedup") or "", "interval": row.get("interval") or ""}
    found |= {"vs eager": row.get("over_eager") or "", "ours ms": _shown(row.get("ours_ms"))}
    times = row.get("baselines_ms") or {}
    found |= {f"{baseline.replace('_', ' ')} ms": _shown(times.get(baseline)) for baseline in BASELINES}
    counts = Counter(one["status"] for one in tried)
    found |= {"programs": ", ".join(f"{count} {status}" for status, count in sorted(counts.items())), "seconds": row.get("seconds") or ""}
    failed = [one["detail"] for one in tried if one["status"] != "ok" and one.get("detail")]
    said = "; ".join(filter(None, [row.get("reason") or "", *failed[:1]]))
    return found | {"recipe": (row.get("recipe") or "")[-SAID:], "why": " ".join(said.split())[:SAID]}


def _shown(milliseconds: float | None) -> float | str:
    return "" if milliseconds is None else round(milliseconds, 3)


def main() -> None:
    """Print the rows, one JSON object a line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path, help="rows.jsonl of benchmarks.third_party")
    parser.add_argument("--table", default="second-h200")
    options = parser.parse_args()
    for row in page_rows([json.loads(line) for line in options.rows.read_text().splitlines()], options.table):
        print(json.dumps(row))


if __name__ == "__main__":
    main()
