"""How good the ladder's first proposal is, and how well the cost model ranks proposals: from recorded H200 rows, without a GPU.

    python -m benchmarks.kernelbench.choices --kernelbench KB --cuda-l1 h100.json --out ROWS    estimates and first proposals of the present code
    python -m benchmarks.kernelbench.choices                                                    the page's tables, from the rows that are kept

Times are those of results/kernelbench_whole_h200 (strict and TF32's track) and of results/cuda_l1_beside_h200. *Regret*: the time of the first
proposal over the least of a right program that was timed for the task. A task of which a single program was timed says nothing. What was never timed
is unknown, and counted as that. A third of the tasks, drawn by a seed, is told apart: nothing was fitted to it.
"""

from __future__ import annotations

import argparse
import bisect
import json
import math
import random
import re
import statistics
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kernelbench.first_table import BASELINES, is_right

RESULTS = Path(__file__).parents[1] / "results"
Row = Mapping[str, Any]
TRACKS = ("strict", "tf32", "cuda-l1")
SEED, SHARE = 811, 3
"""Of the draw of tasks that are told apart, and one in how many they are."""
APART = 1.05
"""Two times within this factor of one another are no order."""
LEAST_MS = 0.2
"""Below this the host decides, and what other processes do to it."""


@dataclass(frozen=True)
class Timed:
    """A program of ours that was timed."""

    track: str
    task: str
    recipe: str
    ms: float
    right: bool
    baseline_ms: float
    """Of the fastest baseline of the same run."""


def timed(whole: Iterable[Row], beside: Iterable[Row]) -> list[Timed]:
    """Return the programs of the two results' rows, of each task in the order of their proposal."""
    found = []
    tables = {"first": "strict", "tf32: first": "tf32"}
    for row in whole:
        if row.get("table") in tables and "ours ms" in row:
            best = min(float(row[f"{name} ms"]) for name in BASELINES if f"{name} ms" in row)
            found.append(Timed(tables[row["table"]], row["task"], row["recipe"], float(row["ours ms"]), is_right(row), best))
    for row in beside:
        kept = row.get("kept ms") or {}
        if row.get("table") == "beside" and kept:
            for recipe, ms in (row.get("ours ms") or {}).items():
                if ms is not None:
                    found.append(Timed("cuda-l1", row["task"], recipe, float(ms), recipe not in row["wrong"], min(kept.values())))
    return found


def recorded() -> list[Timed]:
    """Return all of them."""
    return timed(*(_lines(RESULTS / name / "rows.jsonl") for name in ("kernelbench_whole_h200", "cuda_l1_beside_h200")))


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def held_out(tasks: Iterable[str], seed: int = SEED) -> set[str]:
    """Return a third of the tasks, drawn by a seed. KernelBench's task is the same one in both tracks."""
    names = sorted(set(tasks))
    return set(random.Random(seed).sample(names, len(names) // SHARE))


def by_task(programs: Iterable[Timed]) -> dict[tuple[str, str], list[Timed]]:
    """Return each task's programs."""
    tasks: dict[tuple[str, str], list[Timed]] = {}
    for one in programs:
        tasks.setdefault((one.track, one.task), []).append(one)
    return tasks


# --- regret ------------------------------------------------------------------------------------------------------------------------


def regrets(programs: Iterable[Timed]) -> dict[tuple[str, str], float]:
    """Return the regret of each task's first proposal, where another one was timed and some program is right; one that is not right has that of its
    task's best baseline, which is what a user keeps."""
    found = {}
    for key, own in by_task(programs).items():
        right = [one.ms for one in own if one.right]
        if len(own) > 1 and right:
            first = own[0].ms if own[0].right else max(own[0].baseline_ms, min(right))
            found[key] = first / min(right)
    return found


def regret_table(programs: Sequence[Timed]) -> str:
    """Return the geometric means of the regret, track by track, of the tasks that may be fitted to and of the others."""
    lines = [["track", "tasks", "first is best", "within 5 %", "regret", "of those held out", "tasks held out", "worst"], ["---"] * 8]
    out = held_out(one.task for one in programs)
    every = regrets(programs)
    for track in TRACKS:
        seen = {task: value for (of, task), value in every.items() if of == track}
        apart = [value for task, value in seen.items() if task in out]
        worst = sorted(seen, key=lambda task: -seen[task])[:3]
        counts = [sum(value == 1 for value in seen.values()), sum(value <= APART for value in seen.values())]
        cells = [track, len(seen), *counts, f"{_mean(seen.values()):.3f}x", f"{_mean(apart):.3f}x", len(apart)]
        lines.append([*map(str, cells), ", ".join(f"{task} {seen[task]:.2f}x" for task in worst)])
    return _table(lines)


def worst_table(programs: Sequence[Timed], count: int = 30) -> str:
    """Return the tasks whose first proposal costs most: in a mean over tasks each counts by its logarithm."""
    tasks = by_task(programs)
    every = regrets([one for one in programs if one.ms >= LEAST_MS])
    lines = [["track", "task", "regret", "first ms", "best ms", "baseline ms", "first has besides", "best has besides"], ["---"] * 8]
    for key in sorted(every, key=lambda key: -every[key])[:count]:
        own = tasks[key]
        best = min((one for one in own if one.right), key=lambda one: one.ms)
        only = differences(own[0].recipe, best.recipe)
        lines.append([*key, f"{every[key]:.2f}", *(f"{one:.4g}" for one in (own[0].ms, best.ms, best.baseline_ms)), *(_short(one) for one in only)])
    return _table(lines)


# --- what the second proposal changed ------------------------------------------------------------------------------------------------


def differences(one: str, other: str) -> tuple[str, str]:
    """Return what each of two recipes has that the other has not; of rewrites the names alone, which stand at other places in other tasks."""
    ones, others = ([_named(action) for action in recipe.split("; ")] for recipe in (one, other))
    return "; ".join(x for x in ones if x not in others), "; ".join(x for x in others if x not in ones)


def _named(action: str) -> str:
    name, _, rest = action.partition("(")
    return action if "=" in rest else name


def seconds_table(programs: Sequence[Timed], least: int = 4) -> str:
    """Return by kind of change how often the second proposal was faster than the first, and by how much in the mean."""
    out = held_out(one.task for one in programs)
    kinds: dict[tuple[str, str], list[tuple[float, bool, bool]]] = {}
    for own in by_task(programs).values():
        if len(own) > 1:
            pair = own[0].ms / own[1].ms, own[1].right, own[0].task in out
            kinds.setdefault(differences(own[0].recipe, own[1].recipe), []).append(pair)
    lines = [["first has besides", "second has besides", "tasks", "second faster", "of held out", "held out", "first over second", "second right"]]
    lines.append(["---"] * 8)
    for kind, seen in sorted(kinds.items(), key=lambda item: -len(item[1])):
        if len(seen) >= least:
            apart = [gain for gain, _, of in seen if of]
            cells = [len(seen), sum(gain > 1 for gain, *_ in seen), sum(gain > 1 for gain in apart), len(apart)]
            lines.append([*map(_short, kind), *map(str, cells), f"{_mean(gain for gain, *_ in seen):.2f}x", str(sum(right for _, right, _ in seen))])
    return _table(lines)


def plans(beside: Iterable[Row], programs: Iterable[Timed]) -> list[tuple[str, str, float, float]]:
    """Return (table, task, ms with the plan, ms without it) where a program was timed with `launch_plan()` behind it and without, in the same run."""
    runs: dict[tuple[str, str], dict[str, float]] = {}
    for one in programs:
        if one.track != "cuda-l1":
            runs.setdefault((one.track, one.task), {})[one.recipe] = one.ms
    for row in beside:
        runs.setdefault((f"cuda-l1 {row.get('table')}", row["task"]), {}).update({k: v for k, v in (row.get("ours ms") or {}).items() if v})
    plan = "; launch_plan()"
    found = [(*key, ms, own[recipe.removesuffix(plan)]) for key, own in runs.items() for recipe, ms in own.items()
             if recipe.endswith(plan) and recipe.removesuffix(plan) in own]  # fmt: skip
    return sorted(found, key=lambda one: one[2] / one[3])


def repeats(beside: Iterable[Row]) -> list[tuple[str, str, float, float]]:
    """Return (task, program, ms, ms of the second run) for what two runs of cuda_l1_beside timed both: what a time is worth."""
    runs: dict[str, dict[str, dict[str, float]]] = {"beside": {}, "again": {}}
    for row in beside:
        if row.get("table") in runs:
            theirs = {"theirs": row["theirs ms"]} if row.get("theirs ms") else {}
            runs[row["table"]][row["task"]] = {**(row.get("kept ms") or {}), **(row.get("ours ms") or {}), **theirs}
    first, second = runs.values()
    return [(task, name, own[name], ms) for task, again in second.items() if (own := first.get(task)) for name, ms in again.items()
            if ms and own.get(name)]  # fmt: skip


def repeats_table(beside: Sequence[Row]) -> str:
    """Return by what factor two times of the same program differ."""
    lines = [["first run", "programs", "median factor", "nine of ten within", "most"], ["---"] * 5]
    pairs = repeats(beside)
    for name, low, high in ((f"below {LEAST_MS} ms", 0.0, LEAST_MS), (f"{LEAST_MS} to 1 ms", LEAST_MS, 1.0), ("1 ms and more", 1.0, math.inf)):
        factors = sorted(max(a / b, b / a) for *_, a, b in pairs if low <= a < high)
        if factors:
            parts = [statistics.median(factors), factors[int(0.9 * (len(factors) - 1))], factors[-1]]
            lines.append([name, str(len(factors)), *(f"{part:.2f}x" for part in parts)])
    return _table(lines)


# --- the cost model ----------------------------------------------------------------------------------------------------------------


def ranking_table(programs: Sequence[Timed], estimates: Mapping[tuple[str, str], Mapping[str, float]]) -> str:
    """Return how the estimates rank all programs of a track (Spearman), and the two of a task: of pairs whose times differ by more than APART."""
    lines = [["track", "programs", "not legal now", "Spearman", "time over estimate, median", "pairs in order", "of held out"], ["---"] * 7]
    out = held_out(one.task for one in programs)
    for track in TRACKS:
        own = [one for one in programs if one.track == track and (track, one.task) in estimates]
        known = [(one, us) for one in own if (us := estimates[track, one.task].get(one.recipe))]
        if len(known) > 2:
            rank = statistics.correlation(*(ranks(seen) for seen in zip(*((one.ms, us) for one, us in known), strict=True)))
            ratio = statistics.median(1e3 * one.ms / us for one, us in known)
            every = ordered(known)
            apart = ordered([pair for pair in known if pair[0].task in out])
            cells = [track, len(known), len(own) - len(known), f"{rank:.3f}", f"{ratio:.2f}", _of(every), _of(apart)]
            lines.append([str(cell) for cell in cells])
    return _table(lines)


def ranks(values: Sequence[float]) -> list[float]:
    """Return the place of each value in their order; equal ones share theirs."""
    order = sorted(values)
    return [(bisect.bisect_left(order, value) + bisect.bisect_right(order, value) - 1) / 2 for value in values]


def ordered(known: Sequence[tuple[Timed, float]]) -> list[bool]:
    """Return for each two programs of a task whose times differ by more than APART whether the estimates have the same order; equal ones have not."""
    tasks: dict[tuple[str, str], list[tuple[Timed, float]]] = {}
    for one, us in known:
        tasks.setdefault((one.track, one.task), []).append((one, us))
    return [(a.ms < b.ms) == (x < y) and x != y for own in tasks.values() for i, (a, x) in enumerate(own) for b, y in own[i + 1 :]
            if max(a.ms / b.ms, b.ms / a.ms) > APART]  # fmt: skip


def _of(seen: Sequence[bool]) -> str:
    return f"{sum(seen)} of {len(seen)}"


def read_estimates(rows: Iterable[Row], programs: Iterable[Timed]) -> dict[tuple[str, str], dict[str, float]]:
    """Return the kept estimates in microseconds by recipe: a row has one for each program of its task as recorded, null for what is not legal."""
    tasks = by_task(programs)
    kept = {(row["track"], row["task"]): row["us"] for row in rows if row.get("table") == "estimates"}
    return {key: {one.recipe: us for one, us in zip(tasks[key], seen, strict=True) if us} for key, seen in kept.items()}


def replay_table(programs: Sequence[Timed], proposals: Mapping[tuple[str, str], Sequence[str]]) -> str:
    """Return what the first proposals of the present code would have taken, by recorded times, and how many of them were never timed."""
    lines = [["track", "tasks", "first unchanged", "first timed, another", "first never timed", "two timed: better, same, worse", "by how much"]]
    lines.append(["---"] * 7)
    tasks = by_task(programs)
    for track in TRACKS:
        keys = [key for key in tasks if key[0] == track and key in proposals and len(tasks[key]) > 1]
        if not keys:
            continue
        times = {key: {one.recipe: one.ms if one.right else math.inf for one in tasks[key]} for key in keys}
        firsts = [(proposals[key][0] if proposals[key] else "", tasks[key][0].recipe, times[key]) for key in keys]
        same = sum(new == old for new, old, _ in firsts)
        other = [known[old] / known[new] for new, old, known in firsts if new != old and new in known and known[new] < math.inf]
        unknown = sum(new not in known for new, _, known in firsts)
        counts = f"{sum(gain > 1.02 for gain in other)}, {sum(0.98 <= gain <= 1.02 for gain in other)}, {sum(gain < 0.98 for gain in other)}"
        finite = [gain for gain in other if 0 < gain < math.inf]
        lines.append([track, str(len(keys)), str(same), str(len(other)), str(unknown), counts, f"{_mean(finite):.2f}x" if finite else ""])
    return _table(lines)


def view(rows: Sequence[Row], part: str) -> str:
    """Return one table of the page: `rows` are those beside it, estimates by task."""
    programs, beside = recorded(), _lines(RESULTS / "cuda_l1_beside_h200" / "rows.jsonl")
    estimates = read_estimates(rows, programs)
    proposals = {(row["track"], row["task"]): row["first"] for row in rows if row.get("table") == "proposals"}
    if part == "plans":
        shown = [["run", "task", "with launch_plan, ms", "without, ms", "with over without"], ["---"] * 5]
        return _table([*shown, *([run, task, f"{a}", f"{b}", f"{a / b:.2f}"] for run, task, a, b in plans(beside, programs))])
    parts = {
        "regret": lambda: regret_table(programs), "worst": lambda: worst_table(programs), "seconds": lambda: seconds_table(programs),
        "repeats": lambda: repeats_table(beside), "ranking": lambda: ranking_table(programs, estimates),
        "replay": lambda: replay_table(programs, proposals),
    }  # fmt: skip
    return parts[part]()


PARTS = ("regret", "worst", "seconds", "plans", "repeats", "ranking", "replay")


def _mean(values: Iterable[float]) -> float:
    seen = list(values)
    return math.exp(statistics.fmean(map(math.log, seen))) if seen else math.nan


def _short(text: str) -> str:
    return re.sub(r"calls=1, block=256, vector=4, unroll=1", "", text).replace("(, ", "(") or "nothing"


def _table(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# --- estimates by the present code, on a CPU -----------------------------------------------------------------------------------------


def files(kernelbench: Path | None, cuda_l1: Path | None, folder: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield (track, task, file) of the tasks that the recorded programs are of."""
    from benchmarks.kernelbench import cuda_l1_release, first

    for file in sorted(kernelbench.rglob("level*/*.py")) if kernelbench else ():
        for track in ("strict", "tf32"):
            yield track, first.name_of(file), file
    for (level, number), row in sorted(cuda_l1_release.rows(cuda_l1, "h100").items()) if cuda_l1 else ():
        file = folder / f"level{level}" / f"{number}_reference.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(row["ref_code"])
        yield "cuda-l1", f"L{level}-{number}", file


def estimated(track: str, file: Path, recipes: Sequence[str], proposals: int) -> tuple[list[float | None], list[str]]:
    """Return the estimate in microseconds of each recipe, None where it is not legal in the present code, and what the ladder proposes first now."""
    from benchmarks.kernelbench import first
    from warpwright.base import Action
    from warpwright.errors import NotApplicable
    from warpwright.run import Settings, open_space

    space = open_space(Settings(device="cuda", precision="tf32" if track == "tf32" else "strict").describe(file), "cuda")

    def microseconds(recipe: str) -> float | None:
        assert space.estimate is not None
        try:
            return round(1e6 * space.estimate(space.replay(tuple(map(Action.parse, recipe.split("; "))))), 2)
        except NotApplicable:
            return None

    made = ["; ".join(map(str, recipe)) for recipe in first.first(space, proposals, ("compile(",))] if proposals else []
    return [microseconds(recipe) for recipe in recipes], made


def main() -> None:
    """Print the tables, or write estimates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--cuda-l1", type=Path)
    parser.add_argument("--proposals", type=int, default=2)
    parser.add_argument("--only", help="tasks whose name holds this")
    parser.add_argument("--out", type=Path, help="a file that rows are added to; tasks that it has are left out")
    options = parser.parse_args()
    if options.out is None:
        kept = RESULTS / "first_choices_h200" / "rows.jsonl"
        rows = _lines(kept) if kept.exists() else []
        for part in PARTS:
            print(f"\n{part}\n\n{view(rows, part)}")
        return
    warnings.simplefilter("ignore")
    tasks = by_task(recorded())
    done = {(row["track"], row["task"]) for row in (_lines(options.out) if options.out.exists() else [])}
    with tempfile.TemporaryDirectory() as folder, options.out.open("a") as out:
        for track, task, file in files(options.kernelbench, options.cuda_l1, Path(folder)):
            if (track, task) in done or (track, task) not in tasks or (options.only and options.only not in task):
                continue
            us, made = estimated(track, file, [one.recipe for one in tasks[track, task]], options.proposals)
            out.write(json.dumps({"table": "estimates", "track": track, "task": task, "us": us}) + "\n")
            out.write(json.dumps({"table": "proposals", "track": track, "task": task, "first": made}) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
