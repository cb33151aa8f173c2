"""Whether intervals of recorded pairs hold what they should: the looks of a run played on passes that a machine has recorded, again and again.

    python -m benchmarks.timing.coverage benchmarks/results/narrow_h200/rows.jsonl --out $OUT

`narrow` writes every time of every program in every kept pass. All pairs of one size and way, in the order in which they came, are taken for all
there is: their median is what an interval should hold. A run is played from each pass on (round, at the end, to the beginning), in the order as it
was, so that pairs depend on one another as they do; it looks after 10, 15, 23 ... pairs, and ends when the interval is as narrow as asked for or
after as many pairs as an answer had. A row for each: how many runs missed, and by how much. Runs that begin beside one another share most pairs.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from warpwright.timing.sequential import bound, look_error, median, next_look

ASKED = (0.0099, 0.02, 0.0)
"""Shares of the ratio to either side at which a run ends; 0: with its last pair."""


def pairs_of(row: dict[str, Any], baseline: str) -> list[float]:
    """Return the log-ratios of a row's passes."""
    times = row["us"]
    return [math.log(one / own) for one, own in zip(times[baseline], times["candidate"], strict=False)]


def played(pairs: Sequence[float], asked: float, start: int, most: int) -> tuple[float, float, int]:
    """Return the interval that a run ends with, and its pairs."""
    look = next_look(0)
    while True:
        look = min(look, most)
        seen = [pairs[(start + at) % len(pairs)] for at in range(look)]
        low, high = bound(seen, look_error(look) / 2, upper=False), bound(seen, look_error(look) / 2, upper=True)
        if look == most or (asked and high - low <= 2 * math.log(1 + asked)):
            return low, high, look
        look = next_look(look)


def coverage(pairs: Sequence[float], asked: float, most: int) -> dict[str, Any]:
    """Return how many runs missed the median of all."""
    truth = median(pairs)
    found = [played(pairs, asked, start, most) for start in range(len(pairs))]
    missed = [max(low - truth, truth - high) for low, high, _ in found if not low <= truth <= high]
    return {
        "asked": asked, "pairs in all": len(pairs), "pairs at most": most, "runs": len(found), "missed": len(missed),
        "by at most": f"{max(missed, default=0.0):.2%}", "pairs in the middle": sorted(pairs for *_, pairs in found)[len(found) // 2],
        "whole width in the middle": f"{sorted(math.expm1(high - low) for low, high, _ in found)[len(found) // 2]:.2%}",
    }  # fmt: skip


def main() -> None:
    """Play them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--baseline", default="compile", help="(%(default)s)")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    kinds: dict[tuple[int, str], list[list[float]]] = defaultdict(list)
    for row in map(json.loads, chosen.rows.read_text().splitlines()):
        if row.get("table") == "answer" and chosen.baseline in row.get("us", {}) and row["way"] != "first":
            kinds[row["rows"], row["way"]].append(pairs_of(row, chosen.baseline))
    with (chosen.out / "rows.jsonl").open("a") as file:
        for (rows, way), answers in sorted(kinds.items()):
            pairs = [pair for answer in answers for pair in answer]
            for asked in ASKED:
                found = {"table": "coverage", "rows": rows, "way": way, "answers": len(answers), **coverage(pairs, asked, max(map(len, answers)))}
                file.write(json.dumps(found) + "\n")
                print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
