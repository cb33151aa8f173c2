"""Tables of what `benchmarks.policy.live.probed` saw.

    python -m benchmarks.policy.live.probed_table OUT/rows.jsonl[.gz] [...] [--name probed] [--searches policy,random,...] > TABLES.jsonl

Shares are of the best that any search of the task found, geometric means over tasks, with intervals of 95 %; a task's value is the mean over the runs
that came to so many evaluations, or ended because there was nothing new before. A task counts where every search has such a run, and its original,
where it was timed again at the end, took another time by no more than a tenth; none to which the evaluator gives no score. Evolve's longer run is
given as far as it came: to 256, to the end of the space (nothing new in 300 proposals), or to the end of the time; what it had earlier, as a share of
that, says what more evaluations are worth, and where there is no other run of evolve, what it had at 16 and before stands for one. `programs`: that
all searches of a task made, told apart by what was seen of them. No task may be in two of the files.

The rows of `benchmarks.policy.live.verified` give the same tables, and `NAME-verdicts`: what the verifier said of the programs that were best after
so many evaluations, of which those after 16 had to pass; `NAME-times`: what the verdicts of each task took. `--pick`: a regular expression that the
names of tasks begin with.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.policy.recording import records
from benchmarks.policy.trained.large import cell

EVALUATIONS = (1, 2, 4, 8, 16)

MOVED = 0.1

LONGER = "evolve's longer run"

APART = -1
"""Seed that stands for the beginning of a longer run."""

EARLIER = (16, 32, 64, 96, 128, 160, 192)
"""Evaluations of the longer run that are compared with its end."""

Runs = Mapping[tuple[str, int], Sequence[float]]
"""Search and seed -> the best speed-up after 0, 1, 2 ... evaluations."""


def runs_of(lines: Sequence[Mapping[str, Any]], task: str, least: int = EVALUATIONS[-1]) -> tuple[Runs, Sequence[float]]:
    """Return a task's runs that came to `least` evaluations or their end, and evolve's longer one as far as it came."""
    found: dict[tuple[str, int, int], list[float]] = {}
    for line in lines:
        if line["row"] == "evaluation" and line["task"] == task:
            best = found.setdefault((line["search"], line["seed"], line["of"]), [1.0])
            best.append(max(best[-1], line["speedup"]))
    most = max(EVALUATIONS)
    whole = next((best for (search, _, of), best in found.items() if of > most), [1.0])
    own = [one for one in lines if one["row"] == "run" and one["task"] == task and one["of"] == most]
    ended = {(one["search"], one["seed"]) for one in own if one["stopped"] != "time"}
    short = {(search, seed): best for (search, seed, of), best in found.items() if of == most}
    runs = {run: padded(best, most) for run, best in short.items() if run in ended or len(best) > least}
    begun = not any(search == "evolve" for search, _ in short) and (len(whole) > least or exhausted(lines, task))
    return runs | ({("evolve", APART): padded(whole[: most + 1], most)} if begun and len(whole) > 1 else {}), whole


def exhausted(lines: Sequence[Mapping[str, Any]], task: str) -> bool:
    """Did a task's longer run come to the end of the space?"""
    return any(one["row"] == "run" and one["task"] == task and one["of"] > max(EVALUATIONS) and one["stopped"] == "nothing new" for one in lines)


def padded(best: Sequence[float], count: int) -> list[float]:
    """Return a run of `count` evaluations: a search that had nothing new to propose keeps what it had."""
    return [*best, *[best[-1]] * count][: count + 1]


def shares(runs: Runs, best: float, counts: Sequence[int] = EVALUATIONS) -> dict[str, dict[int, float]]:
    """Return search -> evaluations -> the mean over its runs of the log of its share of `best`."""
    found: dict[str, dict[int, float]] = {}
    for search in dict.fromkeys(search for search, _ in runs):
        own = [run for (name, _), run in runs.items() if name == search]
        found[search] = {k: sum(math.log(run[k] / best) for run in own) / len(own) for k in counts}
    return found


def tables(
    lines: Sequence[Mapping[str, Any]], name: str = "probed", of: Sequence[str] = (), most: int = EVALUATIONS[-1], least: int = 0
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield the rows of all tables, `of` some searches or all, to `most` evaluations, and what was left out.

    `least`: runs that the time cut after so many or more count as what they had; 0 for none.
    """
    counts = [k for k in EVALUATIONS if k <= most]
    eager = {line["task"]: line["eager us"] for line in lines if "eager us" in line}
    moved = {line["task"]: round(line["again us"] / eager[line["task"]] - 1, 3) for line in lines if line["row"] == "again"}
    left = {task: "moved" for task, by in moved.items() if abs(by) > MOVED}
    left |= dict.fromkeys(records.unscored() & set(eager), "no score by the evaluator")
    left |= {line["task"]: line["reason"] for line in lines if line["row"] == "failure" and line["reason"].startswith("no score")}
    left |= {line["task"]: "not all verdicts" for line in lines if line["row"] == "cut"}
    searches = list(of) or list(dict.fromkeys(line["search"] for line in lines if line["row"] == "evaluation"))
    found: dict[str, dict[str, dict[int, float]]] = {}
    reached: dict[str, int] = {}
    for task in (task for task in eager if task not in left):
        runs, whole = runs_of(lines, task, least or most)
        runs = {(search, seed): run for (search, seed), run in runs.items() if search in searches}
        if {search for search, _ in runs} != set(searches):
            left[task] = "not every search came to its end"
            continue
        best = max([*whole, *(one for run in runs.values() for one in run)])
        found[task] = shares(runs, best, counts)
        row = {"table": f"{name}-tasks", "task": task, "best": f"{best:.2f}x"}
        row |= {f"{search}, best of {most}": f"{math.exp(found[task][search][most]):.2f}" for search in searches}
        if len(whole) > 1:
            found[task][LONGER] = dict.fromkeys(counts, math.log(whole[-1] / best))
            reached[task] = len(whole) - 1
            row |= {LONGER: f"{whole[-1] / best:.2f}", "evaluations of that": reached[task]}
        yield row | {"programs": programs(lines, task)}
    if found:
        yield from _over_tasks(found, searches, name, counts)
        yield from longer(lines, list(reached), name)
    yield from verdicts(lines, list(found), name)
    yield from ({"table": f"{name}-times", **row} for row in times(lines))
    yield {"row": f"{name} conditions", "tasks": len(found), "left out": left, "evaluations of evolve's longer run": sorted(reached.values())}


def programs(lines: Sequence[Mapping[str, Any]], task: str) -> int:
    """Return how many programs the searches of a task made: one that was made twice was measured once."""
    made = [line for line in lines if line["row"] == "evaluation" and line["task"] == task]
    return len({line["speedup"] for line in made if line["told"] == "ok"}) + len({line["recipe"] for line in made if line["told"] != "ok"})


def longer(lines: Sequence[Mapping[str, Any]], tasks: Sequence[str], name: str) -> Iterator[dict[str, Any]]:
    """Yield, of evolve's longer runs that were cut by the time, what they had earlier as a share of what they had at their end."""
    cut = [runs_of(lines, task)[1] for task in tasks if not exhausted(lines, task)]
    for k in EARLIER:
        values = [best[k] / best[-1] for best in cut if len(best) > k]
        if len(values) > 1:
            share = cell([math.log(value) for value in values])
            yield {"table": f"{name}-longer", "evaluations": k, "runs": len(values), "share of its end": share, "least": round(min(values), 3)}


def verdicts(lines: Sequence[Mapping[str, Any]], tasks: Sequence[str], name: str) -> Iterator[dict[str, Any]]:
    """Yield what the verifier said of the programs that were a search's best after so many evaluations, and of all that it was asked."""
    said = {(line["task"], line["recipe"]): line["refused"] for line in lines if line["row"] == "verdict" and line["task"] in tasks}
    seen = {(line["task"], line["recipe"]): line["speedup"] for line in lines if line["row"] == "evaluation"}
    alike = {(task, seen[task, recipe]): why for (task, recipe), why in said.items() if (task, recipe) in seen}  # other recipes of the same program
    bests: dict[tuple[str, int], list[str]] = {}
    for task in tasks if said else ():
        for (search, _), recipes in _recipes(lines, task).items():
            for k in EVALUATIONS:
                recipe, speedup = max(recipes[:k], key=lambda pair: pair[1], default=("", 0.0))
                if speedup > 1:
                    why = said.get((task, recipe), alike.get((task, speedup), "?"))
                    bests.setdefault((search, k), []).append({"": "passed", "?": "not asked"}.get(why, "refused"))
    for search, k in bests:
        counts = {word: bests[search, k].count(word) for word in ("passed", "refused", "not asked")}
        yield {"table": f"{name}-verdicts", "search": search, "best after": k, **counts}
    refused = sorted((task, recipe, why) for (task, recipe), why in said.items() if why)
    for task, recipe, why in refused:
        yield {"table": f"{name}-refused", "task": task, "recipe": recipe, "reason": " ".join(why.split())}
    if said:
        yield {"row": f"{name} verdicts", "asked": len(said), "refused": len(refused)}


def times(lines: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield what the searches and the verdicts of each task took that is done, or was cut by the time."""
    for line in lines:
        if line["row"] in ("done", "cut"):
            own = [one for one in lines if one["row"] == "verdict" and one["task"] == line["task"]]
            later = sorted(one["s"] for one in own[1:])
            yield {
                "task": line["task"], "done": line["row"] == "done", "searched s": line["searched s"],
                "waited s": round(line["waited s"] + line.get("waited then s", 0.0), 1), "verified s": line["verified s"],
                "verdicts": len(own), "refused": sum(1 for one in own if one["refused"]),
                "first s": own[0]["s"] if own else "", "later, median s": later[len(later) // 2] if later else "",
            }  # fmt: skip


def _recipes(lines: Sequence[Mapping[str, Any]], task: str) -> Mapping[tuple[str, int], Sequence[tuple[str, float]]]:
    found: dict[tuple[str, int], list[tuple[str, float]]] = {}
    for line in lines:
        if line["row"] == "evaluation" and line["task"] == task and line["of"] == max(EVALUATIONS):
            found.setdefault((line["search"], line["seed"]), []).append((line["recipe"], line["speedup"]))
    return found


def _over_tasks(
    found: Mapping[str, Mapping[str, Mapping[int, float]]], searches: Sequence[str], name: str, counts: Sequence[int]
) -> Iterator[dict[str, Any]]:  # fmt: skip
    long = [one for one in found.values() if LONGER in one]
    for search in searches:
        yield {"table": f"{name}-shares", "search": search, **{f"best of {k}": cell([one[search][k] for one in found.values()]) for k in counts}}
    for k in counts:
        row: dict[str, Any] = {"table": f"{name}-gains", "evaluations": k}
        row |= {f"over {over}": cell([one[searches[0]][k] - one[over][k] for one in found.values()]) for over in searches[1:]}
        if long:
            where = f" ({len(long)} tasks)" if len(long) < len(found) else ""
            row[f"over {LONGER}{where}"] = cell([one[searches[0]][k] - one[LONGER][k] for one in long])
        yield row


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", type=Path, nargs="+")
    parser.add_argument("--name", default="probed")
    parser.add_argument("--searches", default="", help="those that are told of, the first over the others; all where it is not given")
    parser.add_argument("--most", type=int, default=EVALUATIONS[-1], choices=EVALUATIONS, help="evaluations; runs that came to fewer are left out")
    parser.add_argument("--least", type=int, default=0, help="runs that the time cut after so many count as what they had (none)")
    parser.add_argument("--pick", default="", help="regular expression that the names of tasks begin with; all where it is not given")
    options = parser.parse_args()
    lines = [line for line in records.read(options.rows) if re.match(options.pick, line.get("task", ""))]
    for row in tables(lines, options.name, [one for one in options.searches.split(",") if one], options.most, options.least):
        sys.stdout.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
