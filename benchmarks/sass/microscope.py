"""The agents as a microscope: what accepted schedules have changed in the loops, which moves recur, and why each helps.

    python -m benchmarks.sass.microscope --run benchmarks/results/sass_h200 --folder CUBINS --out OUT          counted, no GPU
    python -m benchmarks.sass.microscope --run benchmarks/results/sass_h200 --folder CUBINS --out OUT --measure   and each kind of change alone

Counted in the deepest loops, before and after, by the model of hazards' own notions:

    hidden     issue cycles between a load and the first instruction that waits for it: latency that does not show
    exposed    loads that are waited for within so few cycles that their latency must show (EXPOSED)
    for others waits of an instruction for a scoreboard on which a load is in flight whose result it does not need
    crowded    operations of the memory pipe that follow another within fewer cycles than the pipe takes for one (PIPE)
    issue      cycles that a warp's instructions take if nothing is waited for: its sum of stalls
    switches   instructions after which the scheduler may take another warp
    cached     operands that come from the operand cache

`--measure` times each schedule with one kind of its changes alone, and without it: the share of the gain is then measured, not inferred.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.sass.build import HERE, build
from benchmarks.sass.moves import hot, passed
from benchmarks.sass.replay import accepted, mended
from benchmarks.sass.rows import percent, span
from warpwright import domains
from warpwright.base import Task
from warpwright.domains.sass import script
from warpwright.domains.sass.code import control, hints
from warpwright.domains.sass.code.kernel import Kernel, Schedule
from warpwright.domains.sass.domain import checker_of, kernel_of
from warpwright.domains.sass.harness import load
from warpwright.domains.sass.model.checker import Checker
from warpwright.errors import WarpwrightError
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator

LOADS = ("LDG", "LDS", "LDSM", "LDGSTS", "LDC", "LDCU")
MEMORY_PIPE = (*LOADS, "STG", "STS", "STSM", "SHFL", "ATOMS", "RED")
EXPOSED, PIPE = 24, 4
"""Cycles: of a load from shared memory on an H100 (Jia et al.'s successors measured 23 to 29), and of the memory pipe for one operation."""

REASONS: Mapping[str, str] = {
    "hidden +": "scoreboard wait: loads stand further before their first use, so less of their latency shows",
    "exposed -": "scoreboard wait: fewer loads are waited for at once",
    "for others -": "scoreboard wait: instructions wait for fewer results that they do not need",
    "barrier": "scoreboard wait: a load rose above a barrier, so its latency passes while the block waits there",
    "shuffles": "scoreboard wait: a load passed a shuffle, so its latency passes while the warp exchanges values",
    "registers": "false dependence: values have registers of their own, so a load need not stay below the last use of the one that it fills",
    "hints": "memory: what is read again stays in the caches, what is not leaves them first",
    "crowded -": "issue slot: memory operations stand apart, so the pipe takes each when it is issued",
    "issue -": "stall: a warp's own instructions take fewer cycles",
    "switches -": "issue slot: the warp is kept, its operand cache with it; fewer warps interleave their traffic",
    "switches +": "issue slot: gaps of special functions, memory and dependences go to other warps",
    "cached +": "operand cache: fewer reads of register banks",
    "hidden -": "none by itself: more latency shows in one warp; other warps must cover it",
    "crowded +": "none in the pipe, which takes such operations late; the arithmetic between them comes earlier or later, together",
    "issue +": "none by itself: the price of an order or of yields; where pipes are the limit it costs nothing",
    "cached -": "none by itself: the price of an order or of yields",
}
"""Kind of change -> the stall it removes, by what the fields mean; `--measure` says whether the kind pays."""


def counted(schedule: Schedule) -> dict[str, int]:
    """Return what the head of this file lists, over the deepest loops."""
    kernel = schedule.kernel
    blocks = sorted({kernel.block_of[index] for index in hot(kernel)})
    total = dict.fromkeys(("hidden", "exposed", "for others", "crowded", "issue", "switches", "cached"), 0)
    for number in blocks:
        for name, value in _block(schedule, list(kernel.blocks[number])).items():
            total[name] += value
    return total


def _block(schedule: Schedule, places: list[int]) -> dict[str, int]:
    words = [schedule.words[place] for place in places]
    starts = [0]
    for word in words:
        starts.append(starts[-1] + control.stall(word))
    gaps = list(_waited(schedule, places, starts))
    memory = [start for place, start in zip(places, starts, strict=False) if schedule.at(place).base in MEMORY_PIPE]
    return {
        "hidden": sum(gaps),
        "exposed": sum(gap < EXPOSED for gap in gaps),
        "for others": _for_others(schedule, places),
        "crowded": sum(later - earlier < PIPE for earlier, later in pairwise(memory)),
        "issue": starts[-1],
        "switches": sum(not control.held(word) for word in words),
        "cached": sum(control.reused(word).bit_count() for word in words),
    }


def _waited(schedule: Schedule, places: list[int], starts: list[int]) -> Iterator[int]:
    """Yield for each load the cycles until something in its block, or in the block's next turn, waits for its scoreboard."""
    count = len(places)
    for here, place in enumerate(places):
        board = control.write_board(schedule.words[place])
        if schedule.at(place).base not in LOADS or board >= control.BOARDS:
            continue
        for later in range(here + 1, here + count + 1):
            word = schedule.words[places[later % count]]
            if control.waits(word) >> board & 1:
                yield starts[later % count] - starts[here] + (starts[-1] if later >= count else 0)
                break


def _for_others(schedule: Schedule, places: list[int]) -> int:
    """Return how many loads in flight are waited for by an instruction that does not need them, while it waits for another's result."""
    flying: dict[int, list[frozenset[int]]] = {}
    needless = 0
    for place in places:
        instruction, word = schedule.at(place), schedule.words[place]
        touched = instruction.uses | instruction.defs
        for board in range(control.BOARDS):
            if control.waits(word) >> board & 1:
                needed = [bool(defs & touched) for defs in flying.pop(board, [])]
                needless += needed.count(False) if any(needed) else 0
        if instruction.base in LOADS and control.write_board(word) < control.BOARDS:
            flying.setdefault(control.write_board(word), []).append(instruction.defs)
    return needless


def kinds(before: Mapping[str, int], after: Mapping[str, int], others: Mapping[str, object]) -> list[str]:
    """Return the kinds of change that a schedule shows, as REASONS calls them; `others`: those that are no counts, and whether it shows them."""
    signs = {name: "+" if after[name] > before[name] else "-" if after[name] < before[name] else "" for name in before}
    shown = [*(f"{name} {sign}" for name, sign in signs.items()), *(name for name, seen in others.items() if seen)]
    return [kind for kind in shown if kind in REASONS]


def hinted(schedule: Schedule) -> str:
    """Return the hints that differ from the compiler's, and at how many loads and stores each."""
    kernel, seen = schedule.kernel, Counter[str]()
    for index, word in zip(schedule.order, schedule.words, strict=True):
        instruction, before = kernel.instructions[index], kernel.words[index]
        if (word ^ before) & hints.mask(instruction, before, kernel.cubin.arch):
            hint = hints.read(word, instruction)
            seen[f"{instruction.base} {hint.evict}{f', {hint.ahead} bytes ahead' if hint.ahead else ''}"] += 1
    return "; ".join(f"{count} {name}" for name, count in seen.most_common())


# --- what each kind is worth ---------------------------------------------------------------------------------------------------------------


def variants(schedule: Schedule, checker: Checker) -> Iterator[tuple[str, Schedule]]:
    """Yield the schedule with one kind of its changes alone, and without one; each legal."""
    original = schedule.kernel.original
    where = {index: place for place, index in enumerate(schedule.order)}
    yields = original.with_words({index: _yield_as(original.words[index], schedule.words[place]) for index, place in where.items()})
    order = schedule.with_words({place: _yield_as(schedule.words[place], original.words[index]) for index, place in where.items()})
    longer = {place: _stall_at_least(schedule.words[place], original.words[index]) for index, place in where.items()}
    for name, one in (("yields alone", yields), ("order, waits and stalls alone", order), ("without shorter stalls", schedule.with_words(longer))):
        legal, given_up = mended(checker, one)
        if not given_up and legal.words not in (original.words, schedule.words):
            yield name, legal


def _yield_as(word: int, other: int) -> int:
    """Return a word with another's choice between keeping the warp and yielding, where it can be written."""
    hold = control.held(other)
    changed = control.with_hold(word, hold)
    return changed if control.decode(changed).legal else word


def _stall_at_least(word: int, other: int) -> int:
    return control.with_stall(word, max(control.stall(word), control.stall(other)))


def measured(task: Task, schedule: Schedule, checker: Checker) -> Iterator[dict[str, Any]]:
    """Yield what each variant gains over the compiler's schedule, in epochs, and whether the bits are the same."""
    with CubinEvaluator(task, "cubin:0", Measuring()) as evaluator:
        for name, one in (("all of it", schedule), *variants(schedule, checker)):
            (speedup, *bounds), differ = evaluator.against(one.cubin.data)
            yield {"change": name, "gain %": f"{percent(speedup)} ({span(bounds)})", "other words": differ}


# --- rows -----------------------------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Write a row for each schedule, then one for each recurring kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", type=Path, required=True, help="rows.jsonl and schedules of benchmarks.sass.suite")
    parser.add_argument("--folder", type=Path, help="where the cubins lie, NAME.cubin with NAME.py; otherwise they are built")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--measure", action="store_true", help="time each kind of change, on the GPU")
    parser.add_argument("--limit", type=float, default=40.0, help="seconds, with --measure")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    until, seen = time.monotonic() + given.limit, list[tuple[str, list[str]]]()
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("a") as rows:

        def write(row: dict[str, Any]) -> None:
            rows.write(json.dumps(row) + "\n")
            rows.flush()
            print(row, flush=True)

        for name, gain, text in schedules(given.run):
            try:
                task = task_of(name, text, given.folder, Path(folder))
                checker = checker_of(kernel_of(task))
                schedule = script.read(text.read_text(), checker.kernel)
                if given.measure and time.monotonic() < until:
                    for row in measured(task, schedule, checker):
                        write({"table": "kinds-of-change", "kernel": name, **row})
                elif not given.measure:
                    row, found = looked_at(schedule, gain)
                    write({"table": "microscope", "kernel": name, **row})
                    seen.append((name, found))
            except (WarpwrightError, RuntimeError, OSError) as error:  # the next one is worth a look
                traceback.print_exc()
                write({"table": "microscope", "kernel": name, "error": f"{type(error).__name__}: {error}"[:200]})
        for kind, reason in REASONS.items() if seen else ():
            names = [name for name, found in seen if kind in found]
            count = f"{len(names)} of {len(seen)}"
            write({"table": "recurring", "change": kind, "schedules": count, "what it removes": reason, "in": ", ".join(names)})


def schedules(run: Path) -> Iterator[tuple[str, float, Path]]:
    """Yield the kernel, its gain and its text for each schedule that was kept: of several, the last one's."""
    latest = {text: (name, gain) for name, _, gain, text in accepted(run)}
    for text, (name, gain) in latest.items():
        yield name, gain, text


def task_of(name: str, text: Path, folder: Path | None, scratch: Path) -> Task:
    """Return the task of a schedule's cubin."""
    harness = (folder or HERE / "harnesses") / f"{name}.py"
    cubin = folder / f"{name}.cubin" if folder else build(name, scratch)
    return domains.describe(cubin, {"harness": str(harness), "kernel": load(harness).kernel})


def looked_at(schedule: Schedule, gain: float) -> tuple[dict[str, Any], list[str]]:
    """Return a schedule's row, and the kinds of change that it shows."""
    kernel: Kernel = schedule.kernel
    before, after = counted(kernel.original), counted(schedule)
    where = {index: place for place, index in enumerate(schedule.order)}
    loads = [index for index in hot(kernel) if kernel.instructions[index].base in LOADS]
    told = {name: f"{before[name]} to {after[name]}" for name in before}
    compiled = kernel.compiled or kernel
    others: dict[str, Any] = {
        "barrier": passed(kernel, loads, where),
        "shuffles": passed(kernel, loads, where, "SHFL"),
        "registers": sum(mine != theirs for mine, theirs in zip(kernel.words, compiled.words, strict=True)),
        "hints": hinted(schedule),
    }
    named = {"loads past a barrier": "barrier", "past a shuffle": "shuffles", "words with other registers": "registers", "hints": "hints"}
    shown = {name: others[kind] for name, kind in named.items()}
    return {"gain %": percent(gain), **told, **shown}, kinds(before, after, others)


if __name__ == "__main__":
    main()
