"""Where the seconds of verdicts went, task by task, from the logs and the archive that `benchmarks.kernelbench.run --trace` leaves.

    python -m benchmarks.kernelbench.held OUT/verdicts [--table held] >> rows.jsonl

One row a task: how long it was at work, how often and how long it held the device alone, what it asked its judge for (seconds of waiting, in which it
was stopped while others were timed), and of its programs the pairs that count and the passes that were left out.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright.archive import Archive
from warpwright.base import is_baseline

SUM = re.compile(r"^\s+sum\s+(?P<seconds>[\d.]+) s in\s+(?P<count>\d+) x (?P<what>.+)$")
EVENT = re.compile(r"^\s*(?P<at>\d+\.\d+)\s+(?P<seconds>[\d.]+)?\s")
HOLDING = "holding the device"
ASKED = {
    "judge: open": "open s", "judge: certify": "certificate s", "judge: viable": "cases s",
    "judge: ship": "inputs s", "judge: compare": "comparisons s",
}  # fmt: skip


def row_of(log: Path) -> dict[str, Any]:
    """Return the row of a task's log."""
    ends, held, sums = [0.0], list[float](), dict[str, tuple[float, int]]()
    for line in log.read_text().splitlines():
        if found := SUM.match(line):
            sums[found["what"]] = float(found["seconds"]), int(found["count"])
        elif found := EVENT.match(line):
            seconds = float(found["seconds"] or 0.0)
            ends.append(float(found["at"]) + seconds)
            held += [seconds] * (line.endswith(HOLDING) and "#" not in line)
    asked = {short: round(sums.get(what, (0.0, 0))[0], 1) for what, short in ASKED.items()}
    alone = {"alone": ", ".join(f"{one:.1f}" for one in held), "alone s": round(sum(held), 1)}
    return {"task": log.stem, "seconds": round(max(ends), 1), **alone, **asked}


def programs(archive: Path) -> Mapping[str, str]:
    """Return of each task the pairs and the left out passes of its programs, by the task's name."""
    found: dict[str, list[str]] = {}
    with Archive(archive, readonly=True) as kept:
        for record in kept.records():
            if record.measurement is not None and not is_baseline(record):
                told = record.measurement.conditions
                found.setdefault(record.task.name, []).append(f"{told.get('pairs')} and {told.get('disturbed_passes', 0)}")
    return {name: "; ".join(each) for name, each in found.items()}


def main() -> None:
    """Print a row for each log."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of the run: with logs/, results.jsonl and archive.db")
    parser.add_argument("--table", default="held")
    options = parser.parse_args()
    ended = {json.loads(line)["task"] for line in (options.folder / "results.jsonl").read_text().splitlines()}
    timed = programs(options.folder / "archive.db")
    for log in sorted((options.folder / "logs").glob("*.txt")):
        row = row_of(log)
        print(json.dumps({"table": options.table, **row, "pairs and passes left out": timed.get(row["task"], ""), "ended": row["task"] in ended}))


if __name__ == "__main__":
    main()
