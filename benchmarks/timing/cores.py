"""How pairs of turns of a stream depend on the core, on one another and on the length of a turn, and where the time of a pass goes.

    python -m benchmarks.timing.cores --device cuda --calls 128,32 --limit 75 --out $OUT
    python -m benchmarks.timing.cores --device cpu --baselines eager --calls 20,5 --limit 40 --out /tmp/cores

The right program of `speed` beside baselines of its task, in passes as the evaluator makes them, in several ways, sixteen passes each:

    sixteen  all sixteen passes on one core, drawn anew for the next sixteen
    each     a core for each pass
    one      the same core in all passes of this way
    quick    on one core as long as a loop of the parent's is quick there, as the evaluator does (`placement.QuickCores`)

With several numbers of `--calls` in a turn the first is for all ways, the others for the last way of `--ways` alone. A row for each pass: the core,
seconds of a call of each program, of the parent's loop on that core just before, and of each step. Then for each way and baseline the spread of the
pairs' log-ratios, their correlation time, the spread of the medians of sixteen, half of the interval that so many pairs give, and their seconds;
the spread of what a line through the first baseline's own times leaves of the other pairs ("less the host's": how much of it is the host's speed,
which both share); the correlation of the loop's seconds with the baseline's ("loop and baseline"); and how far each core stands from the others.
`--limit` is for all.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.timing import speed
from warpwright import targets
from warpwright.base import Source
from warpwright.tasks import taskfile
from warpwright.timing.device_lock import DeviceLock
from warpwright.timing.facts import device_facts
from warpwright.timing.sequential import LOOK_ERROR, bound, correlation_time, median, spread
from warpwright.verifier import streamed, timed, verify
from warpwright.workers.placement import QuickCores, core, cores, seconds_on
from warpwright.workers.sandbox import Role, Worker, up

WAYS = ("sixteen", "each", "one", "quick")
PASSES = 16
CANDIDATE = "candidate"


def place_of(way: str, number: int, before: float, fixed: float, rng: random.Random, quick: QuickCores) -> float:
    """Return the place of pass `number` of a stretch, after one at `before`."""
    if way == "one":
        return fixed
    if way == "quick":
        return before if number and quick.still(before) else quick.place(rng.random())
    return rng.random() if way == "each" or number == 0 else before


def timed_pass(judge: verify.Judge, programs: Mapping[str, streamed.StreamedProgram], order: list[str], place: float) -> dict[str, Any]:
    """Make one pass; return its row."""
    loop = seconds_on(core(place))
    os.sched_setaffinity(0, cores())
    began = time.perf_counter()
    inputs = judge.fresh()
    steps, seconds = {"inputs": time.perf_counter() - began}, {}
    for name in order:
        at = time.perf_counter()
        programs[name].prepare(inputs, place)
        ready = time.perf_counter()
        seconds[name] = programs[name].go()
        steps[f"{name}: prepare"], steps[f"{name}: calls"] = ready - at, time.perf_counter() - ready
    return {"core": core(place), "loop": loop, "order": order, "seconds": seconds, "steps": {name: round(one, 6) for name, one in steps.items()}}


def passes(
    judge: verify.Judge, programs: Mapping[str, streamed.StreamedProgram], ways: list[tuple[str, int]], rng: random.Random, left: Callable[[], float]
) -> Iterator[dict[str, Any]]:
    """Yield the rows of passes until there is no time; those of the first stretch of each way are a warm-up."""
    timed.places = lambda device: AsTold()  # type: ignore[assignment]
    names, fixed, stretch, quick = list(programs), rng.random(), 0, QuickCores()
    while left() > 0:
        for way, turn in rng.sample(ways, len(ways)):
            place, order = 0.0, names
            for program in programs.values():
                program.calls = turn
            for number in range(PASSES):
                if left() <= 0:
                    return
                place = place_of(way, number, place, fixed, rng, quick)
                order = rng.sample(names, len(names)) if number % 2 == 0 else order[::-1]
                row = {"way": way, "calls": turn, "stretch": stretch, "warm-up": stretch == 0}
                yield {**row, **timed_pass(judge, programs, order, place)}
        stretch += 1


class AsTold:
    """Places that are this script's."""

    def kept(self, drawn: float) -> float:
        """Return it."""
        return drawn


def chosen_ways(ways: list[str], calls: list[int]) -> list[tuple[str, int]]:
    """Return the ways, each with the calls of a turn."""
    return [*((way, calls[0]) for way in ways), *((ways[-1], number) for number in calls[1:])]


def summary(rows: list[dict[str, Any]], way: str, calls: int, baseline: str, host: str) -> dict[str, Any]:
    """Return the row of a table: what the pairs of one way say of the candidate beside a baseline. `host`: who tells the host's speed."""
    own = [row for row in rows if (row["way"], row["calls"]) == (way, calls) and not row["warm-up"]]
    if len(own) < 2:
        return {"way": way, "calls": calls, "beside": baseline, "left out": "no time"}
    pairs = [math.log(row["seconds"][baseline] / row["seconds"][CANDIDATE]) for row in own]
    stretches: dict[int, list[float]] = {}
    for row, pair in zip(own, pairs, strict=True):
        stretches.setdefault(row["stretch"], []).append(pair)
    low, high = (bound(pairs, LOOK_ERROR / 2, upper) for upper in (False, True))
    medians = [median(one) for one in stretches.values()]
    return {
        "table": "cores", "way": way, "calls": calls, "beside": baseline, "pairs": len(pairs), "ratio": round(math.exp(median(pairs)), 4),
        "spread": round(spread(pairs), 4), "within sixteen": round(median([spread(one) for one in stretches.values()]), 4),
        "of medians of sixteen": round(spread(medians), 4), "correlation time": round(correlation_time(pairs), 2),
        "half of the interval": f"{(high - low) / 2:.1%}" if math.isfinite(high - low) else "none",
        "s": round(sum(sum(row["steps"].values()) for row in own), 2),
        "less the host's": round(spread(without(pairs, [math.log(row["seconds"][host]) for row in own])), 4) if host != baseline else None,
        "candidate us": round(1e6 * median([row["seconds"][CANDIDATE] for row in own]), 1),
        "baseline us": round(1e6 * median([row["seconds"][baseline] for row in own]), 1),
        "candidate's spread": round(spread([math.log(row["seconds"][CANDIDATE]) for row in own]), 4),
        "loop and baseline": round(statistics.correlation([row["loop"] for row in own], [row["seconds"][baseline] for row in own]), 2),
        "baseline's spread": round(spread([math.log(row["seconds"][baseline]) for row in own]), 4),
    }  # fmt: skip


def without(values: list[float], others: list[float]) -> list[float]:
    """Return what the line of least squares through `others` leaves of `values`."""
    if len(values) < 2 or statistics.pvariance(others) == 0.0:
        return values
    slope, start = statistics.linear_regression(others, values)
    return [value - slope * other - start for value, other in zip(values, others, strict=True)]


def by_core(rows: list[dict[str, Any]], baseline: str) -> dict[str, Any]:
    """Return the row that says how far each core stands from the others, of all passes but those of one core: medians, and pairs on each."""
    cores: dict[int, list[float]] = {}
    for row in rows:
        if row["way"] != "one" and not row["warm-up"]:
            cores.setdefault(row["core"], []).append(math.log(row["seconds"][baseline] / row["seconds"][CANDIDATE]))
    middle = median([pair for pairs in cores.values() for pair in pairs]) if cores else 0.0
    each = {str(core): [round(math.exp(median(pairs) - middle), 3), len(pairs)] for core, pairs in sorted(cores.items())}
    within = [spread(pairs) for pairs in cores.values() if len(pairs) > 3]
    of_cores = round(spread([median(pairs) for pairs in cores.values()]), 4) if cores else None
    return {"table": "by core", "beside": baseline, "of cores": of_cores, "within a core": round(median(within), 4) if within else None, "each": each}


def parts(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of where a pass's milliseconds go, in the median."""
    kept = [row["steps"] for row in rows if not row["warm-up"]] or [row["steps"] for row in rows]
    return {"table": "pass", **{name: round(1e3 * statistics.median(one[name] for one in kept), 2) for name in kept[0]}}


@contextmanager
def opened(device: str, names: list[str], calls: int) -> Iterator[tuple[verify.Judge, dict[str, streamed.StreamedProgram]]]:
    """Give the judge of `speed`'s task, and its right program and the baselines in turns, each in a process of its own."""
    sizes = speed.sizes_of(device)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        path = Path(folder, "task.py")
        path.write_text(speed.TASK.format(**sizes))
        task = taskfile.describe(path)
        right = speed.PROGRAM.format(answer=speed.ANSWERS["right"], number=1, **sizes)
        sources = {CANDIDATE: Source("python", (("program.py", right),), "ModelNew")}
        sources |= targets.baselines(taskfile.source_text(task), device, names)
        judge = stack.enter_context(verify.Judge(task, device))
        judge.certify()
        programs: dict[str, streamed.StreamedProgram] = {}
        for name, source in sources.items():
            role: Role = "candidate" if name == CANDIDATE else "baseline"
            worker: Worker = stack.enter_context(up(lambda role=role: Worker(role, device)))  # type: ignore[misc]
            _, rejected = verify.build(judge, worker, "program", source)
            if rejected:
                raise RuntimeError(f"{name} was rejected: {rejected.reason}")
            timed.load_timed_state(judge, worker, "program")
            programs[name] = streamed.StreamedProgram(judge, worker, "program", calls)
        yield judge, programs


def main() -> None:
    """Build, time, summarise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--baselines", default="eager,compile", help="names, joined by commas (%(default)s)")
    parser.add_argument("--ways", default=",".join(WAYS), help="joined by commas (%(default)s)")
    parser.add_argument("--calls", default="50", help="in a turn; more numbers, joined by commas, for the last way alone")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds in all")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    end, device = time.monotonic() + chosen.limit, "cuda:0" if chosen.device == "cuda" else chosen.device

    def write(row: dict[str, Any]) -> None:
        with (chosen.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")

    write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0], **device_facts(device)})
    rows: list[dict[str, Any]] = []
    names, calls = chosen.baselines.split(","), [int(number) for number in chosen.calls.split(",")]
    each = chosen_ways(chosen.ways.split(","), calls)
    with opened(device, names, calls[0]) as (judge, programs), DeviceLock(device).exclusive():
        write({"part": "opened", "seconds left": round(end - time.monotonic(), 1)})
        for row in passes(judge, programs, each, random.Random(), lambda: end - time.monotonic()):
            rows.append(row)
            write(row)
        ways = [summary(rows, way, turn, name, names[0]) for name in names for way, turn in each]
        for row in [*ways, *(by_core(rows, name) for name in names), parts([row for row in rows if row["calls"] == calls[0]])]:
            write(row)
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
