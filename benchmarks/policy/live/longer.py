"""Evolve's longer runs, beside which the searches of `verified` stand: those of earlier rows, or one that is made beside a task's searches."""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from benchmarks.policy.live import probed
from benchmarks.policy.recording import probe
from warpwright.base import Action

LONGER = 256
"""Evaluations of a longer run at most; what stands as the number of an earlier one's."""

FOUND, ALIKE = 9, 3
"""Of the programs of a longer run the fastest that are looked at, and those among them that have the same techniques: where one is refused, the
others of its techniques mostly are."""

SEED = 1
"""Of a longer run; the searches beside it have 0."""

LOOK, AFTER = 0.2, 3.0
"""Seconds between two looks of who waits for a longer run, and after its end until which: it measures its last program to the end."""


def fastest(lines: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """Return task -> the fastest programs of the longer runs in some rows, the fastest first, few of the same techniques."""
    right = [line for line in lines if line["row"] == "evaluation" and line["told"] == "ok" and line["of"] > probed.EVALUATIONS]
    best: dict[str, list[str]] = {}
    alike: Counter[tuple[str, frozenset[str]]] = Counter()
    for line in sorted(right, key=lambda line: -line["speedup"]):
        kind = line["task"], frozenset(action.technique for action in parsed(line["recipe"]))
        if alike[kind] < ALIKE and len(best.setdefault(line["task"], [])) < FOUND:
            alike[kind] += 1
            best[line["task"]].append(line["recipe"])
    return best


def parsed(recipe: str) -> tuple[Action, ...]:
    """Return the recipe that a line tells."""
    return tuple(map(Action.parse, recipe.split("; ")))


def shown_as(recipe: Any) -> str:
    """Return a recipe as the lines have it."""
    return "; ".join(map(str, recipe))


def rows_of(out: Path, task: str) -> Path:
    """Return where a task's longer run is written."""
    (out / "longer").mkdir(parents=True, exist_ok=True)
    return out / "longer" / f"{task}.jsonl"


@dataclass
class Written:
    """Takes lines as a queue does, and writes each at once."""

    file: TextIO

    def put(self, line: Mapping[str, Any]) -> None:
        """Write a line."""
        self.file.write(json.dumps(line) + "\n")
        self.file.flush()


def follow(file: Path, options: argparse.Namespace, turns: probe.Taken, end: float) -> None:
    """Follow evolve until it has made so many programs or it is `end`, and write a line for each."""
    bench = probed.opened(file, options, turns)
    with rows_of(options.out, file.stem).open("w") as out:
        probed.one_run(bench, file.stem, ("evolve", SEED, LONGER), options, Written(out), end)


def awaited(out: Path, task: str, until: float) -> tuple[list[str], int]:
    """Return the fastest programs of a task's longer run once it is at its end, and how many it made; until `until`, what it had by then."""
    while True:
        lines = _whole_lines(rows_of(out, task))
        if time.monotonic() > until + AFTER or any(line["row"] == "run" for line in lines):
            return fastest(lines).get(task, []), sum(line["row"] == "evaluation" for line in lines)
        time.sleep(LOOK)


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a file that another process is writing."""
    text = path.read_text() if path.is_file() else ""
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
