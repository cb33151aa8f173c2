"""How narrow the interval of a warm right answer is after how many seconds, in several settings; and where the seconds of a pass go.

    python -m benchmarks.timing.narrow --device cuda --rows 8192,2048 --limit 85 --out $OUT

The evaluator of a resident server in this process, on the task of `speed`; `--rows` are its sizes, in this order. After a first answer, which builds
the baselines, come answers in the ways of `--ways`, again and again until the time is over, a size's share of it:

    usual   as the server answers with this interval asked for
    all     no pass is left out for a slow core
    half    half as many calls in a turn
    wide    cores count as quick that take a quarter longer than the quickest
    launches  a core is quick where a trusted process sends kernels to the device as quickly as it ever did, to 5 %, in place of the parent's loop

A row for each answer: its seconds, the interval, the pairs, what each step of its passes took, how long the parent's loop took in each look at
a core, in parts of the quickest, and every time of each program. Before that, how much the loop is slowed down while other cores work ("burn"): a
candidate on a GPU may do that. An interval of 0.0099 to either side is one of 2 % from end to end.
"""

from __future__ import annotations

import argparse
import functools
import json
import math
import multiprocessing
import os
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.timing import speed
from warpwright.base import Candidate, Measurement, Record, Source, target_of
from warpwright.space import Measuring
from warpwright.targets.local import LocalEvaluator
from warpwright.targets.trust import doubles
from warpwright.tasks import taskfile
from warpwright.timing import measure
from warpwright.timing.facts import device_facts
from warpwright.timing.interleaved import rounds
from warpwright.verifier import streamed, timed, verify
from warpwright.workers import placement
from warpwright.workers.sandbox import Worker

WAYS = ("usual", "all", "half", "wide", "launches")
WIDE = 1.25
LAUNCHES, LOOPS, QUICK_LAUNCHES = 25, 3, 1.05
"""Kernels in a loop, and loops, of which the last counts: the first finds cold caches. In passes in which eager, which waits for the host, was within
5 % of its quickest, its spread was 0.4 % (benchmarks/results/host_cores_h200)."""


class Steps:
    """Adds up the seconds of named steps, where the evaluator takes them."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.calls: Counter[str] = Counter()
        self.loops: list[float] = []
        """Seconds of the parent's loop in parts of the quickest, at each look at the core of a pass."""
        self.passes: list[str] = []
        """The order of the programs of each pass, a letter each: n for the candidate, the second of a baseline's name, large for a second
        process; with a minus where the pass was left out."""
        self.programs: dict[str, list[float]] = {}
        """Of the latest comparison in turns: microseconds of each program's calls, those of second processes apart."""

    def wrap(self, owner: Any, name: str, step: str, by_name: bool = False) -> None:
        """Count what a function takes; one that is called within another that is counted adds to both."""
        whole = getattr(owner, name)

        @functools.wraps(whole)
        def counted(*given: Any, **more: Any) -> Any:
            began = time.perf_counter()
            try:
                return whole(*given, **more)
            finally:
                called = f"{step} {given[0].name}" if by_name else step
                self.seconds[called] += time.perf_counter() - began
                self.calls[called] += 1

        setattr(owner, name, counted)

    def taken(self) -> dict[str, list[float]]:
        """Return seconds and calls of each step since this was asked last."""
        found = {name: [round(seconds, 4), self.calls[name]] for name, seconds in sorted(self.seconds.items(), key=lambda item: -item[1])}
        self.seconds.clear()
        self.calls.clear()
        return found


def watched() -> Steps:
    """Have the steps of a pass counted from now on."""
    steps = Steps()
    steps.wrap(timed.TimedProgram, "prepare", "prepare", by_name=True)
    steps.wrap(timed.TimedProgram, "go", "go", by_name=True)
    steps.wrap(timed.TimedProgram, "check", "check", by_name=True)
    steps.wrap(verify.Judge, "fresh", "fresh inputs")
    steps.wrap(verify.Judge, "hidden", "hidden inputs")
    steps.wrap(placement.QuickCores, "place", "finding a core")
    steps.wrap(timed, "_still_quick", "looking at the core")
    steps.wrap(measure, "warm_up", "warm-up")
    steps.wrap(measure, "look_at", "statistics")

    whole_pass, fold = rounds.take_pass, doubles.folded

    def noted_pass(block: Any, order: Sequence[str]) -> None:
        before = len(block.raw[measure.CANDIDATE])
        whole_pass(block, order)
        letters = ["n" if one == measure.CANDIDATE else one[1].upper() if one.endswith(doubles.MARK) else one[1] for one in order]
        steps.passes.append("".join(letters) + ("" if len(block.raw[measure.CANDIDATE]) > before else "-"))

    def kept(measurement: Measurement) -> Measurement:
        if not steps.programs:
            steps.programs = {name: microseconds(one.samples) for name, one in measurement.baselines.items()}
            steps.programs["candidate"] = microseconds(measurement.candidate.samples)
        return fold(measurement)

    def recorded(cores: Any, place: float) -> bool:
        usable = placement.cores()
        looks: list[float] = []
        try:
            while len(looks) < placement.LOOKS and not any(map(cores._counts, looks)):
                looks.append(cores._probe(placement.core(place)))
        finally:
            placement._move(0, usable)
        steps.loops += [round(seconds / cores._best, 3) for seconds in looks]
        return any(map(cores._counts, looks))

    placement.QuickCores.still = recorded  # type: ignore[method-assign, assignment]
    rounds.take_pass, doubles.folded = noted_pass, kept
    return steps


launchers: dict[int, placement.QuickCores] = {}
"""Of each evaluator's trusted processes."""


def launching(worker: Worker) -> Callable[[int], float]:
    """Return what tells the seconds in which a trusted process sends kernels to the device from a core."""

    def seconds_on(core: int) -> float:
        placement._move(worker.pid, {core})
        placement._move(0, set(placement.cores()) - set(placement.siblings(core)) or placement.cores())
        return float(worker.request("launches", count=LAUNCHES, loops=LOOPS)["seconds"][-1])

    return seconds_on


@contextmanager
def in_way(way: str, evaluator: LocalEvaluator) -> Iterator[None]:
    """Inside, the evaluator times in one of the ways."""
    trusted, quick, sound, places = evaluator._trusted, placement.QUICK, timed.sound, timed.places(evaluator._bench.place)
    calls, usual = trusted.calls if trusted is not None else 0, places._cores
    try:
        if way == "launches" and trusted is not None and trusted.worker is not None:
            places._cores = launchers.setdefault(id(trusted), placement.QuickCores(launching(trusted.worker), QUICK_LAUNCHES, lasting=True))
        if way == "all":
            timed.sound = lambda device: None  # type: ignore[assignment]
        if way == "wide":
            placement.QUICK = WIDE
        if way == "half" and trusted is not None:
            trusted.calls = max(streamed.FEWEST, calls // 2)
        yield
    finally:
        placement.QUICK, timed.sound, places._cores = quick, sound, usual
        if trusted is not None:
            trusted.calls = calls


class Sizes:
    """Answers of one size after another."""

    def __init__(self, chosen: argparse.Namespace, write: Callable[[dict[str, Any]], None], steps: Steps) -> None:
        self.chosen, self.write, self.steps = chosen, write, steps
        self._number = 0

    def program(self, sizes: dict[str, int]) -> Candidate:
        """Return a right program that was not there before."""
        self._number += 1
        text = speed.PROGRAM.format(answer=speed.ANSWERS["right"], number=self._number, **sizes)
        return Candidate(Source("python", (("program.py", text),), "ModelNew"), target_of(self.chosen.device))

    def answers(self, rows: int, folder: Path, until: float) -> None:
        """Ask for answers of one size until then."""
        sizes = speed.sizes_of(self.chosen.device, rows)
        path = folder / f"task{rows}.py"
        path.write_text(speed.TASK.format(**sizes))
        measuring = Measuring(
            baselines=tuple(self.chosen.baselines.split(",")), seconds=self.chosen.seconds, interval=self.chosen.interval, resident=True,
            within=self.chosen.within,
        )  # fmt: skip
        with LocalEvaluator(taskfile.describe(path), self.chosen.device, measuring, folder=folder) as evaluator:
            longest = self.answer(evaluator, sizes, "first", rows)
            longest, ways, number = 8.0, self.chosen.ways.split(","), 0
            while time.monotonic() + longest < until:
                longest = self.answer(evaluator, sizes, ways[number % len(ways)], rows)
                number += 1

    def answer(self, evaluator: LocalEvaluator, sizes: dict[str, int], way: str, rows: int) -> float:
        """Write the row of one answer; return its seconds."""
        self.steps.taken()
        self.steps.loops, self.steps.passes, self.steps.programs = [], [], {}
        began = time.monotonic()
        with in_way(way, evaluator):
            record = next(iter(evaluator.evaluate([self.program(sizes)])))
        seconds = time.monotonic() - began
        row = {"table": "answer", "rows": rows, "way": way, "seconds": round(seconds, 2), "status": record.status, **said(record)}
        self.write({**row, "steps": self.steps.taken(), "loops": self.steps.loops, "passes": self.steps.passes, "us": self.steps.programs})
        return seconds


def said(record: Record) -> dict[str, Any]:
    """Return what a record says of its timing."""
    found = record.measurement
    if found is None:
        return {"reason": record.detail[:300]}
    low, high = found.interval
    names = ("pairs", "disturbed_passes", "spread_of_pairs", "correlation_time", "checked_calls", "calls_in_a_turn", "second_process")
    return {
        "verdict": found.verdict, "speedup": round(found.speedup, 4), "interval": [round(low, 4), round(high, 4)],
        "to either side": round(math.sqrt(high / low) - 1, 4), "whole": round(high / low - 1, 4), "best": found.best_baseline,
        **{name.replace("_", " "): found.conditions.get(name) for name in names}, "timed s": found.conditions.get("seconds"),
    }  # fmt: skip


def microseconds(samples: Sequence[float]) -> list[float]:
    """Return seconds in microseconds."""
    return [round(1e6 * one, 3) for one in samples]


def _burn(go: Any) -> None:
    while go.value:
        sum(range(2000))


def burn(workers: int) -> Iterator[dict[str, Any]]:
    """Yield what the parent's loop takes while so many processes of ours work on other cores, in parts of what it takes while they do not."""
    usable = placement.cores()
    own = usable[0]
    others = sorted(set(usable) - set(placement.siblings(own)))
    context = multiprocessing.get_context("fork")
    for busy in sorted({1, len(others) // 2, len(others)} - {0}):
        go = context.Value("i", 1)
        started = [context.Process(target=_burn, args=(go,)) for _ in range(min(busy, workers))]
        quiet = [placement.seconds_on(own) for _ in range(200)]
        for process, core in zip(started, others, strict=False):
            process.start()
            with suppress(OSError):
                os.sched_setaffinity(process.pid or 0, {core})
        time.sleep(0.05)
        loaded = [placement.seconds_on(own) for _ in range(200)]
        go.value = 0
        for process in started:
            process.join()
        placement._move(0, usable)
        ratio = statistics.median(loaded) / statistics.median(quiet)
        above = sum(one > placement.QUICK * min(quiet + loaded) for one in loaded) / len(loaded)
        yield {"table": "burn", "processes": len(started), "loop": round(ratio, 3), "share that counts as slow": round(above, 3)}


def main() -> None:
    """Ask, and write the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--rows", default="8192,2048", help="sizes, joined by commas (%(default)s)")
    parser.add_argument("--ways", default=",".join(WAYS), help="joined by commas (%(default)s)")
    parser.add_argument("--baselines", default="eager,compile,cuda_graph", help="names, joined by commas (%(default)s)")
    parser.add_argument("--seconds", type=float, default=2.8, help="of timing, at most, for an answer (%(default)s)")
    parser.add_argument("--interval", type=float, default=0.0099, help="share of the speed-up that it may reach to either side (%(default)s)")
    parser.add_argument("--within", type=float, default=0.0, help="seconds for an answer, timing and all (what --seconds come to)")
    parser.add_argument("--limit", type=float, default=85.0, help="seconds in all")
    parser.add_argument("--compile-threads", default="8", help="processes that torch.compile uses for the baselines (%(default)s)")
    parser.add_argument("--out", type=Path, required=True)
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    began, sizes = time.monotonic(), [int(one) for one in chosen.rows.split(",")]
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = chosen.compile_threads

    def write(row: dict[str, Any]) -> None:
        with (chosen.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps({name: value for name, value in row.items() if name not in ("us", "loops", "passes")}), flush=True)

    options = {"seconds": chosen.seconds, "interval": chosen.interval, "within": chosen.within, "baselines": chosen.baselines}
    facts = device_facts(chosen.device)
    write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0], **options, **facts})
    for row in burn(len(placement.cores())):
        write(row)
    asked = Sizes(chosen, write, watched())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        for number, rows in enumerate(sizes):
            asked.answers(rows, Path(name), began + chosen.limit * (number + 1) / len(sizes))


if __name__ == "__main__":
    main()
