"""Tables of what `benchmarks.policy.live.judged` saw: the evaluator's speed-ups of what each search had found.

    python -m benchmarks.policy.live.judged_table OUT/rows.jsonl[.gz] [...] [--name judged] > TABLES.jsonl

A search's value is the speed-up of its best program that passed, 1 where none of those that were judged did. A task counts where all of its programs
were judged and the evaluator gives a score. `policy, live`: the policy's search answered by the evaluator alone. Geometric means over tasks, with
intervals of 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.policy.live.judged import FIRST, LONGER
from benchmarks.policy.recording import records
from benchmarks.policy.trained.large import cell

LIVE = "policy, live"

Values = Mapping[str, float]
"""Search -> speed-up by the evaluator."""


def values_of(lines: Sequence[Mapping[str, Any]], task: str) -> dict[str, float]:
    """Return what the evaluator measured of each search's best program, and of the best that its own answers led the policy to."""
    found: dict[str, float] = {}
    for line in lines:
        if line["row"] == "judged" and line["task"] == task:
            found[line["search"]] = max(found.get(line["search"], 1.0), line["speedup"])
    if any(line["row"] == "run" and line["task"] == task and line["stopped"] != "time" for line in lines):
        found[LIVE] = max([1.0, *(line["speedup"] for line in lines if line["row"] == "evaluation" and line["task"] == task)])
    return found


def tables(lines: Sequence[Mapping[str, Any]], name: str = "judged") -> Iterator[dict[str, Any]]:
    """Yield the rows of all tables, and what was left out."""
    judged = [line for line in lines if line["row"] == "judged"]
    ended = [line["task"] for line in lines if line["row"] == "judged all"]
    begun = dict.fromkeys(line["task"] for line in judged)
    left = {task: "not every search's program was judged" for task in begun if task not in ended}
    left |= {line["task"]: f"no score: {line['reason']}" for line in judged if line["status"] == "unscored"}
    found = {task: values_of(lines, task) for task in ended if task not in left}
    for task, values in found.items():
        yield {"table": f"{name}-tasks", "task": task, **{told(search): f"{value:.2f}x" for search, value in values.items()}}
    yield from gains(found, name)
    yield from words_of_the_evaluator(judged, name)
    yield {"row": f"{name} conditions", "tasks": len(found), "left out": left}


def told(search: str) -> str:
    """Return what a search is called in a table."""
    return "evolve's longer run" if search == LONGER else search if search == LIVE else f"{search}, best of {FIRST}"


def gains(found: Mapping[str, Values], name: str) -> Iterator[dict[str, Any]]:
    """Yield what the policy gains on each other search, by the probe's choice and by the evaluator's answers alone."""
    for own in ("policy", LIVE):
        row: dict[str, Any] = {"table": f"{name}-gains", "of": told(own)}
        for other in dict.fromkeys(search for values in found.values() for search in values):
            both = [math.log(values[own] / values[other]) for values in found.values() if own in values and other in values]
            if other != own and len(both) > 1:
                row |= {f"over {told(other)}": f"{cell(both)} ({len(both)})"}
        if len(row) > 2:
            yield row


def words_of_the_evaluator(judged: Sequence[Mapping[str, Any]], name: str) -> Iterator[dict[str, Any]]:
    """Yield how often the evaluator passed what the probe had called right, how far their speed-ups are apart, and each refusal."""
    programs = {(line["task"], line["recipe"]): line for line in judged if line["status"] != "unscored"}
    passed = [line for line in programs.values() if line["status"] == "ok"]
    ratios = [math.log(line["speedup"] / line["probe"]) for line in passed if line["speedup"] > 0]
    yield {
        "table": f"{name}-agreement", "programs": len(programs), "passed": len(passed),
        "evaluator over probe": cell(ratios) if len(ratios) > 1 else "", "most apart": f"{math.exp(max(map(abs, ratios), default=0.0)):.2f}x",
    }  # fmt: skip
    for line in programs.values():
        if line["status"] != "ok":
            yield {"table": f"{name}-refused", **{key: line[key] for key in ("task", "search", "recipe", "status", "check", "reason")}}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--name", default="judged")
    options = parser.parse_args()
    for row in tables(records.read(options.rows), options.name):
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
