"""What putting a program on a core costs a single call on a GPU: the evaluator's clock above a plain one, with and without each step.

    python -m benchmarks.timing.places --device cuda --kernelbench out/kb --limit 30 --out $OUT

    loose    the worker and the parent are wherever the scheduler has them
    placed   the worker is made ready on one core, which the parent keeps off, and is let go for the call: as the evaluator does
    beside   the same, but the parent stays where it is
    held     the worker stays on that core in the call, too
    off      the worker is loose, the parent keeps off a core

Blocks of calls on one core, the ways in random order, and a plain timer in the worker before each block. An empty call is timed in each block as the
others are, and subtracted. A row for each task and way: microseconds above the plain timer for the first two calls on a core and for the later ones.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
import traceback
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.timing.agree import built
from benchmarks.timing.split import SPIN, Subject, subjects
from warpwright.timing.facts import device_facts
from warpwright.verifier.timed import PARENT_WAITS
from warpwright.workers import placement

WAYS = ("loose", "placed", "beside", "held", "off")
TASKS = "softmax_small,matmul_small,level2_71_,level2_9_,level2_64_,level1_61_"
BLOCKS, CALLS, EMPTY, EARLY = 4, 12, 6, 2
LEFT_SECONDS = 2.0
"""No task is begun with less time left."""


def timed(subject: Subject, way: str, place: float, entry: str | None) -> float:
    """Return the microseconds of one call, or of an empty one."""
    pid = subject.worker.pid
    if way == "held":
        placement.take(pid, place)
    inside = placement.started_at(pid, place) if way in ("placed", "beside") else nullcontext()
    with inside:
        subject.prepare("call", entry=entry, flush=True, slot="same", spin=SPIN)
    with placement.aside(place) if way in ("placed", "held", "off") else nullcontext():
        return subject.worker.go(60, spin=PARENT_WAITS) * 1e6


def compared(subject: Subject, rng: random.Random) -> list[dict[str, Any]]:
    """Return a row for each way."""
    above: dict[str, dict[str, list[float]]] = {way: {"first": [], "later": [], "empty": [], "plain": []} for way in WAYS}
    for block in range(BLOCKS + 1):
        for way in rng.sample(WAYS, len(WAYS)):
            placement.release(subject.worker.pid)
            plain = statistics.median(subject.plain("single", CALLS)) * 1e6
            place = rng.random()
            empty = statistics.median(timed(subject, way, place, None) for _ in range(EMPTY))
            found = [timed(subject, way, place, "program") - empty - plain for _ in range(CALLS)]
            if block:  # the first is a warm-up
                above[way]["first"] += found[:EARLY]
                above[way]["later"] += found[EARLY:]
                above[way]["empty"].append(empty)
                above[way]["plain"].append(plain)
    placement.release(subject.worker.pid)
    return [{"way": way, **{name: round(statistics.median(values), 1) for name, values in seen.items()}} for way, seen in above.items()]


def main() -> None:
    """Build, compare, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--tasks", default=TASKS, help="beginnings of names, joined by commas")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds in all")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    end, device = time.monotonic() + chosen.limit, "cuda:0" if chosen.device == "cuda" else chosen.device
    chosen.out.mkdir(parents=True, exist_ok=True)

    def write(row: dict[str, Any]) -> None:
        with (chosen.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0], **device_facts(device)})
    for name, text in subjects(chosen.kernelbench):
        if not name.startswith(tuple(chosen.tasks.split(","))):
            continue
        if end - time.monotonic() < LEFT_SECONDS:
            write({"task": name, "left out": "no time"})
            continue
        subject = built(text, device)
        if isinstance(subject, str):
            write({"task": name, "error": subject})
            continue
        try:
            for row in compared(subject, random.Random()):
                write({"table": "places", "task": name, **row})
        except Exception:  # one task's failure leaves the others
            write({"task": name, "error": traceback.format_exc()[-400:]})
        finally:
            subject.close()


if __name__ == "__main__":
    main()
