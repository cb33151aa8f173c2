"""Do a single call and a stream of calls take as long by the evaluator's clock as by a plain timer in one process?

    python -m benchmarks.timing.agree --device cuda --kernelbench out/kb --limit 38 --out $OUT
    python -m benchmarks.timing.agree --device cpu --tasks softmax_small,add_small --out /tmp/agree

The tasks are those of `split`: three small ones, and the twenty of KernelBench that were timed independently. Each original has a worker of its
own; all are built first, several at once, and then timed one after the other. The two timers take turns, block by block, and either goes first in
every second one: clocks that drift count for both. With the plain one always first, and four blocks, one of twenty programs read 3.8 % more, and
1.5 % more in the next run. A row says by how much the evaluator's median is above the plain one, and whether that is within 3 % or 5 us; another
says where a single call's microseconds go, and what a program takes that does nothing but is prepared as any other ("hollow"); and a third what
calls take that do nothing but wait for the device, beyond the wait: that is what the evaluator subtracts ("overhead").
What was not reached in `--limit` seconds is named in the last row.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.timing.split import SPAN, SPIN, Subject, empty, hollow, split, subjects
from warpwright.timing.facts import device_facts
from warpwright.timing.overhead import Overhead
from warpwright.verifier import timed
from warpwright.workers import placement

SHARE, LEAST_US = 0.03, 5.0
"""They agree within this share of the plain time, or so many microseconds."""

BLOCKS, BLOCK_CALLS = 6, timed.SAME_PLACE
"""Turns of each timer, and single calls in each: as many as the evaluator makes on one core (with eight, two of them the first ones there, which take
7 to 46 us more, two of twenty programs read 3.2 and 4.7 % more than plain)."""

PART_CALLS = 31

LEFT_SECONDS = 1.5
"""A task is not begun with less time left; it takes 0.5 to 1.5 s."""


def compared(subject: Subject, overhead: Overhead) -> dict[str, Any]:
    """Return the medians of both timers in both regimes, in microseconds.

    As the evaluator does: made ready on the core of a pass, which the parent keeps off, both waiting busily for as long, less what calls of nothing
    take that wait as long.
    """
    waits, quick = timed.busy_waits(subject.worker)[1], placement.QuickCores()

    def singly() -> list[float]:
        spans, place = [], quick.place(random.random())  # as the evaluator's passes have one
        for _ in range(BLOCK_CALLS):
            with started_at(subject, place):
                subject.prepare("call", flush=True, slot="same", spin=SPIN)
            with placement.aside(place):
                span = subject.worker.go(60, spin=waits)
                spans.append((span - overhead.of(span)) * 1e6)
        return spans

    plain, ours = in_turns(lambda: [seconds * 1e6 for seconds in subject.plain("single", BLOCK_CALLS)], singly)
    row = {"single": against(plain, ours)}
    calls = max(6, min(200, round(SPAN * 1e6 / row["single"]["plain"])))

    def streamed() -> list[float]:
        place = quick.place(random.random())
        with started_at(subject, place):
            subject.line_up(calls, False, SPIN)
        with placement.aside(place):
            span = subject.worker.go(60, spin=waits)
            return [(span - overhead.of(span)) * 1e6 / calls]

    plain, ours = in_turns(lambda: [seconds * 1e6 for seconds in subject.plain("stream", calls)], streamed)
    return {**row, "stream": against(plain, ours), "calls": calls, "overhead us": round(overhead.of(row["single"]["ours"] * 1e-6) * 1e6, 1)}


def in_turns(*timers: Callable[[], list[float]]) -> list[list[list[float]]]:
    """Return the times of each timer's blocks; the first block of each is a warm-up and left out."""
    taken: list[list[list[float]]] = [[] for _ in timers]
    for block in range(BLOCKS + 1):
        for at in sorted(range(len(timers)), reverse=block % 2 == 1):
            taken[at].append(timers[at]())
    return [blocks[1:] for blocks in taken]


def started_at(subject: Subject, place: float) -> AbstractContextManager[None]:
    """Inside, the worker's main thread is on the core at `place`."""
    return placement.started_at(subject.worker.pid, place)


def against(plain: list[list[float]], ours: list[list[float]]) -> dict[str, Any]:
    """Return the two medians, whether they agree, and by how many per cent each block's own lie apart."""
    one, other = (statistics.median(time for block in blocks for time in block) for blocks in (plain, ours))
    apart = [round(100 * (statistics.median(b) / statistics.median(a) - 1), 2) for a, b in zip(plain, ours, strict=True)]
    return {"plain": round(one, 2), "ours": round(other, 2), "agree": abs(other - one) <= max(SHARE * one, LEAST_US), "blocks": apart}


def built(text: str, device: str) -> Subject | str:
    """Return a task's original in a worker, or why there is none."""
    try:
        return Subject(text, device, False)
    except Exception:
        return traceback.format_exc()[-400:]


def main() -> None:
    """Build, compare, count."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--tasks", default="", help="names, joined by commas (all)")
    parser.add_argument("--times", type=int, default=1, help="rows of each task, one after the other, from the same worker")
    parser.add_argument("--jobs", type=int, default=8, help="programs built at once")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds in all")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    end, device = time.monotonic() + given.limit, "cuda:0" if given.device == "cuda" else given.device
    given.out.mkdir(parents=True, exist_ok=True)

    def write(row: dict[str, Any]) -> None:
        with (given.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0], **device_facts(device)})
    named = [one for one in subjects(given.kernelbench) if not given.tasks or one[0] in given.tasks.split(",")]
    with ThreadPoolExecutor(given.jobs) as pool:
        made = list(zip([name for name, _ in named], pool.map(lambda one: built(one[1], device), named), strict=True))
    write({"part": "built", "programs": len(made), "seconds": round(given.limit - (end - time.monotonic()), 1) if given.limit < 1e9 else None})
    rows: list[dict[str, Any]] = []
    left = []
    for name, subject in [one for one in made for _ in range(given.times)]:
        if isinstance(subject, str) or end - time.monotonic() < LEFT_SECONDS:
            left.append(name if not isinstance(subject, str) else f"{name}: {subject}")
            continue
        try:
            overhead = timed.overheads(subject.worker)
            rows.append({"table": "agree", "task": name, **_flat(compared(subject, overhead)), "empty us": round(overhead.empty * 1e6, 1)})
            write(rows[-1])
            points = {f"{span * 1e3:.1f} ms": round(seconds * 1e6, 1) for span, seconds in overhead.points}
            write({"table": "overhead", "task": name, "points": points})
            parts = split(subject, "spin", PART_CALLS)
            write({"table": "parts", "task": name, **parts, "hollow": hollow(subject, "spin", PART_CALLS), "empty": empty(subject, "spin")})
        except Exception:  # one task's failure leaves the others
            left.append(f"{name}: {traceback.format_exc()[-300:]}")
    agree = {regime: sum(row[f"{regime} agrees"] for row in rows) for regime in ("single", "stream")}
    write({"table": "agreement", "programs": len(rows), **agree, "left out": len(left)})
    write({"part": "left out", "tasks": left})
    for _, subject in made:
        if not isinstance(subject, str):
            subject.close()


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row of the table."""
    found: dict[str, Any] = {}
    for regime in ("single", "stream"):
        plain, ours = row[regime]["plain"], row[regime]["ours"]
        found |= {f"{regime} plain us": plain, f"{regime} us": ours, f"{regime} above %": round(100 * (ours / plain - 1), 2)}
        found[f"{regime} agrees"] = row[regime]["agree"]
        found[f"{regime} blocks %"] = row[regime]["blocks"]
    return {**found, "calls": row["calls"], "overhead us": row["overhead us"]}


if __name__ == "__main__":
    main()
