"""The evaluator's word on what `benchmarks.policy.live.probed` found: the best program of each search, and the policy's search answered by it alone.

    python -m benchmarks.policy.live.judged --out OUT --files FOLDER[,FOLDER] --found ROWS.jsonl[.gz][,ROWS] [--live] [--limit 90]

The probe (probe.py) compares a program with float64 and times it; it gives no verdicts. Here the best program of each search's first 16
evaluations, and of evolve's longer run, goes through the evaluator: its cases, its guards, its clock, beside the original. Where that refuses a
program, the search's next best follows, TRIES at most. A program that several searches found is judged once. `--live`: a process that finds no
further task runs the policy's search once more on its last one, each proposal answered by the evaluator. The device's lock times one program at a
time; what is built and verified goes on beside that. OUT/rows.jsonl has a line for each program as it comes; tasks that it has are not judged again.
`--device cpu` tries it without a GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import spawned
from benchmarks.kernelbench.first import DRY_SCALE
from benchmarks.policy.live import probed
from benchmarks.policy.recording import records
from benchmarks.policy.recording.choice import LEFT_OUT, body
from warpwright import loop

TRIES = 3
"""Programs of a search that are judged at most."""

LAST = 4.0
"""Seconds before the limit after which no program is begun."""

FIRST = 16
"""Evaluations of a search whose best is judged."""

LONGER = "longer"
"""Evolve's longer run, among the searches."""

SEED = 0
"""Of the runs whose programs are judged."""


def main() -> None:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--files", required=True, help="folders of task files, comma-separated")
    parser.add_argument("--found", required=True, help="what probed wrote, comma-separated")
    parser.add_argument("--live", action="store_true", help="the policy's search besides, where a process has no further task")
    parser.add_argument("--timing-seconds", type=float, default=0.5, help="of each program at most, in its regime (%(default)s)")
    parser.add_argument("--model", type=Path, help="folder of a trained policy; the one that ships where it is not given")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--jobs", type=int, default=12)
    parser.add_argument("--limit", type=float, default=90.0, help="seconds after which it ends, whatever is left (%(default)s)")
    options = parser.parse_args()
    end = time.monotonic() + options.limit
    options.out.mkdir(parents=True, exist_ok=True)
    written = options.out / "rows.jsonl"
    done = {line["task"] for line in records.read([written]) if line["row"] == "judged all"} if written.is_file() else set()
    found = records.read(Path(file) for file in options.found.split(","))
    files = {file.stem: file for folder in options.files.split(",") for file in Path(folder).glob("*.py")}
    asked = list(dict.fromkeys(line["task"] for line in found if line["row"] == "evaluation"))
    jobs = [(files[task], ranked(found, task)) for task in asked if task in files and task not in done]
    with written.open("a") as out:
        for line in spawned.lines(work, jobs, options.jobs, end, options, end - LAST, daemon=False):
            out.write(json.dumps(line) + "\n")
            out.flush()
            print(f"{options.limit - (end - time.monotonic()):.0f} s", {name: line[name] for name in line if name != "told"}, flush=True)


def ranked(lines: Sequence[Mapping[str, Any]], task: str) -> dict[str, list[tuple[str, float]]]:
    """Return search -> its recipes that the probe called right and their speed-ups, the fastest first."""
    found: dict[str, list[tuple[str, float]]] = {}
    for line in lines:
        if line["row"] == "evaluation" and line["task"] == task and line["told"] == "ok":
            longer = line["of"] > FIRST
            if longer or (line["seed"] == SEED and line["number"] <= FIRST):
                found.setdefault(LONGER if longer else line["search"], []).append((line["recipe"], line["speedup"]))
    return {search: sorted(those, key=lambda pair: -pair[1]) for search, those in found.items()}


def work(todo: Any, lines: Any, options: argparse.Namespace, end: float) -> None:
    """Do tasks until none is left or the end has come, then the policy's search on the last one."""
    for file, searches in spawned.taken(todo, end):
        try:
            one_task(file, searches, todo, lines, options, end)
        except Exception:  # one task must not end the others
            lines.put({"row": "failure", "task": file.stem, "reason": traceback.format_exc()[-600:]})


@dataclass
class Judged:
    """A task whose programs the evaluator judges, in the place of a probe's bench."""

    space: Any
    evaluator: Any
    began: float
    eager: float = 1.0
    """So that what `measured` returns is the inverse of a speed-up."""
    known: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Text of a program -> the line that was written of it."""
    roof: float | None = None
    """How much of the device's bandwidth the original would need if it moved only what every correct program moves."""

    def __post_init__(self) -> None:
        self.known[body(self.space.candidate(()).source.text)] = {"status": "ok", "speedup": 1.0}

    def line(self, recipe: Any) -> dict[str, Any]:
        """Return what the evaluator says of a recipe's program."""
        candidate = self.space.candidate(recipe)
        name = body(candidate.source.text)
        if name not in self.known:
            [record] = self.evaluator.evaluate([candidate])
            if self.roof is None and record.speedup > 0:
                self.roof = loop.bandwidth_share(record) / record.speedup or None
            self.known[name] = told(record) | {"at s": round(time.monotonic() - self.began, 1)}
        return self.known[name]

    def measured(self, recipe: Any) -> tuple[str, str, float]:
        """Return the text of a recipe's program, what is wrong with it or "ok", and its seconds as a share of the original's."""
        try:
            name = body(self.space.candidate(recipe).source.text)
        except Exception as error:  # a recipe without a program is an evaluation that failed
            return f"none {recipe}", f"{type(error).__name__}: {error}"[:160], 0.0
        line = self.line(recipe)
        return (name, "ok", 1 / line["speedup"]) if line["speedup"] > 0 else (name, f"{line['status']}: {line['reason']}", 0.0)

    def judged(self, recipe: Any) -> tuple[str, str, float]:
        """Return the text of a recipe's program, what is wrong with it or "ok", and its speed-up."""
        name, told, seconds = self.measured(recipe)
        return name, told, 1 / seconds if seconds else 0.0


def told(record: Any) -> dict[str, Any]:
    """Return a record as a line of the rows."""
    verdict, measurement = record.verdict, record.measurement
    line = {
        "status": record.status, "speedup": round(record.speedup, 4), "s": round(record.seconds, 2), "check": verdict.check if verdict else "",
        "reason": (verdict.reason if verdict and not verdict.ok else record.detail)[:200],
    }  # fmt: skip
    if measurement is not None:
        line |= {"verdict": measurement.verdict, "interval": [round(one, 4) for one in measurement.interval]}
        line["us"] = round(1e6 * measurement.candidate.median, 2)
        line |= {name: round(one.speedup, 4) for name, one in measurement.regimes.items()}
    return line


def opened(file: Path, options: argparse.Namespace) -> tuple[Any, Any]:
    """Return a task's space without what is left out, and its evaluator."""
    from warpwright import targets
    from warpwright.run import Settings, measuring, open_space

    settings = Settings(
        device=options.device, baselines=("eager",), timing_seconds=options.timing_seconds, scale=DRY_SCALE if options.device == "cpu" else 1.0
    )
    task = settings.describe(file)
    whole = open_space(task, options.device)
    space = replace(whole, techniques=[one for one in whole.techniques if one.name not in LEFT_OUT])
    return space, targets.evaluator(task, options.device, replace(measuring(settings), resident=True))


def one_task(file: Path, searches: Mapping[str, Sequence[tuple[str, float]]], todo: Any, lines: Any, options: argparse.Namespace, end: float) -> None:
    """Have the best program of each search judged."""
    began = time.monotonic()
    space, opening = opened(file, options)
    with opening as evaluator:
        bench = Judged(space, evaluator, began)
        for search in sorted(searches, key=lambda name: name != LONGER):
            for recipe, speedup in searches[search][:TRIES]:
                if time.monotonic() > end:
                    return
                line = bench.line(parsed(recipe))
                lines.put({"row": "judged", "task": file.stem, "search": search, "recipe": recipe, "probe": speedup, **line})
                if line["status"] == "ok":
                    break
        lines.put({"row": "judged all", "task": file.stem, "s": round(time.monotonic() - began, 1)})
        if options.live and todo.empty():
            live(bench, file.stem, options, lines, end)


def parsed(recipe: str) -> tuple[Any, ...]:
    """Return the recipe that a line of probed tells."""
    from warpwright.base import Action

    return tuple(map(Action.parse, recipe.split("; ")))


def live(bench: Judged, task: str, options: argparse.Namespace, lines: Any, end: float) -> None:
    """Run the policy's search, each proposal answered by the evaluator."""
    from warpwright.policy.model import SHIPPED, Policy
    from warpwright.policy.search import PolicySearch

    began, number = time.monotonic(), 0
    search = PolicySearch(Policy.load(options.model or SHIPPED), bench.roof)
    row: Any = partial(dict, task=task, search="policy", seed=SEED, of=FIRST)
    stand_in: Any = bench
    for recipe, wrong, speedup in probed.followed(stand_in, task, search(bench.space, Random(f"policy {SEED}"), 1), FIRST, end):
        number += 1
        text = "; ".join(map(str, recipe))
        lines.put(row(row="evaluation", number=number, told=wrong, speedup=round(speedup, 4), recipe=text))
    stopped = "evaluations" if number == FIRST else "time" if time.monotonic() > end else "nothing new"
    lines.put(row(row="run", evaluations=number, stopped=stopped, note=search.note, s=round(time.monotonic() - began, 1)))


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    main()
