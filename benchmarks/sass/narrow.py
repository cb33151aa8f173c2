"""Which of its changes make a schedule fail? Ask the hardware about parts of it: the changes in one stretch, the compiler's order elsewhere.

    python -m benchmarks.sass.narrow --kernel stencil --unroll 8 --schedule FAILED.json --out OUT --seconds 12
    python -m benchmarks.sass.narrow --kernel stencil --unroll 8 --schedule FAILED.json --out OUT --dry     the parts alone, without a GPU
    python -m benchmarks.sass.narrow --cubin NAME.cubin --schedule FAILED.json --out OUT     a cubin from elsewhere, with its harness NAME.py

A schedule is cut where both orders have had the same instructions. The half that still fails is halved again. Besides, the whole schedule is asked
with some of its control words put right, and where today's distances refuse it, with all of what they refuse put right, and all but one: a row for
each question, with what the model of hazards says of it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.sass.build import HERE, Flags, build
from benchmarks.sass.faults import outcome
from warpwright import domains
from warpwright.domains.sass import script
from warpwright.domains.sass.code import control
from warpwright.domains.sass.code.kernel import Schedule
from warpwright.domains.sass.domain import checker_of, kernel_of
from warpwright.domains.sass.harness import load
from warpwright.domains.sass.model import hazards
from warpwright.domains.sass.model.checker import Checker
from warpwright.domains.sass.model.hazards import Violation
from warpwright.space import Measuring
from warpwright.targets.cubin.evaluator import CubinEvaluator

Asked = Callable[[str, Schedule], bool]
"""(what is asked, a schedule) -> does it fail?"""


def cuts(schedule: Schedule) -> list[int]:
    """Return the places before which a schedule and the original have the same instructions, whose changes stand between them."""
    found, ahead = [0], 0
    seen: set[int] = set()
    for place, index in enumerate(schedule.order):
        seen.add(index)
        ahead = max(ahead, index + 1)
        if len(seen) == place + 1 == ahead:
            found.append(place + 1)
    return found


def part(schedule: Schedule, start: int, stop: int) -> Schedule:
    """Return the original with the schedule's places from `start` to `stop`, two of its cuts."""
    original = schedule.kernel.original
    order = (*original.order[:start], *schedule.order[start:stop], *original.order[stop:])
    words = (*original.words[:start], *schedule.words[start:stop], *original.words[stop:])
    return replace(original, order=order, words=words)


def changed(schedule: Schedule, start: int, stop: int) -> bool:
    """Does anything between two places differ from the original?"""
    original = schedule.kernel.original
    return schedule.order[start:stop] != original.order[start:stop] or schedule.words[start:stop] != original.words[start:stop]


def variants(schedule: Schedule) -> Iterator[tuple[str, Schedule]]:
    """Yield the schedule with one kind of control word put right."""
    short = [place for place, word in enumerate(schedule.words) if not control.held(word) and control.stall(word) == 1]
    yield f"{len(short)} yields of one cycle held", schedule.with_words({place: control.with_hold(schedule.words[place], True) for place in short})
    yield f"{len(short)} yields of one cycle made two", schedule.with_words({place: control.with_stall(schedule.words[place], 2) for place in short})
    plain = {place: control.without_reuse(word) for place, word in enumerate(schedule.words) if control.reused(word)}
    yield f"{len(plain)} reuse flags dropped", schedule.with_words(plain)
    longer = {place: control.with_stall(word, control.stall(word) + 1) for place, word in enumerate(schedule.words) if control.stall(word) < 11}
    yield "each stall a cycle longer", schedule.with_words(longer)


def distances(schedule: Schedule, checker: Checker) -> dict[int, int]:
    """Return the places before which some cycles are missing by the model, and how many."""
    found: list[Violation] = []
    for entry, block in zip(hazards.entries(schedule), schedule.kernel.blocks, strict=True):
        if entry is not None:
            hazards.run(entry.copy(), hazards.items(schedule, block), checker.judge.watch(found, set()))
    missing: dict[int, int] = {}
    for one in found:
        if one.rule == "DISTANCE":
            place = schedule.place_of(one.index)
            missing[place] = max(missing.get(place, 0), one.needed - one.cycles)
    return missing


def with_cycles(schedule: Schedule, missing: dict[int, int]) -> Schedule:
    """Return a schedule with longer stalls before some places."""
    words = list(schedule.words)
    for place, cycles in missing.items():
        for before in range(place - 1, -1, -1):
            stall = control.stall(words[before])
            longer = min(control.MOST_STALL, stall + cycles)
            words[before] = control.with_stall(words[before], longer)
            cycles -= longer - stall
            if not cycles:
                break
    return replace(schedule, words=tuple(words))


def distance_variants(schedule: Schedule, checker: Checker) -> Iterator[tuple[str, Schedule]]:
    """Yield the schedule with the distances that are too short put right: all of them, and all but one."""
    missing = distances(schedule, checker)
    if missing:
        yield f"{len(missing)} short distances put right", with_cycles(schedule, missing)
    for left in missing if len(missing) > 1 else ():
        rest = {place: cycles for place, cycles in missing.items() if place != left}
        yield f"all but the one before {schedule.order[left]}: {schedule.at(left).text}", with_cycles(schedule, rest)


def narrowed(schedule: Schedule, fails: Asked) -> None:
    """Ask about ever smaller parts, while one of two halves fails."""
    edges = cuts(schedule)
    edges = [edges[0], *(right for left, right in pairwise(edges) if changed(schedule, left, right))]
    while len(edges) > 2:
        middle = len(edges) // 2
        halves = edges[: middle + 1], edges[middle:]
        failing = next((half for half in halves if fails(f"places {half[0]} to {half[-1]}", part(schedule, half[0], half[-1]))), None)
        if failing is None:
            return
        edges = failing


def main() -> None:
    """Narrow one schedule down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", help="one of this folder")
    parser.add_argument("--cubin", type=Path, help="one that was made elsewhere")
    parser.add_argument("--unroll", type=int, default=0)
    parser.add_argument("--schedule", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=12.0)
    parser.add_argument("--dry", action="store_true")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("a") as rows:
        cubin = given.cubin or build(given.kernel, Path(folder), flags=Flags(unroll=given.unroll))
        harness = given.cubin.with_suffix(".py") if given.cubin else HERE / "harnesses" / f"{given.kernel}.py"
        task = domains.describe(cubin, {"harness": str(harness), "kernel": load(harness).kernel})
        schedule = script.read(given.schedule.read_text(), kernel_of(task))
        checker = checker_of(schedule.kernel)

        def said(row: dict[str, Any]) -> None:
            rows.write(json.dumps({"schedule": given.schedule.stem, **row}) + "\n")
            rows.flush()
            print(row, flush=True)

        if given.dry:
            ask(schedule, checker, lambda _: "not run", said, time.monotonic() + given.seconds)
            return
        with CubinEvaluator(task, "cubin:0", Measuring()) as evaluator:
            evaluator.child.start()
            ask(schedule, checker, lambda one: outcome(evaluator, one), said, time.monotonic() + given.seconds)


def ask(schedule: Schedule, checker: Checker, hardware: Callable[[Schedule], str], said: Callable[[dict[str, Any]], None], until: float) -> None:
    """Ask about the whole, its variants and its parts, until the time is over."""

    def fails(name: str, one: Schedule) -> bool:
        if time.monotonic() > until:
            return False
        found = checker.all_violations(one)
        model = f"{found[0].rule} at {found[0].index}" if found else "legal"
        result = hardware(one)
        said({"asked": name, "the model": model, "outcome": result})
        return result in ("broke", "crashed")

    fails("the original", schedule.kernel.original)
    fails("the whole", schedule)
    for name, one in (*variants(schedule), *distance_variants(schedule, checker)):
        fails(name, one)
    narrowed(schedule, fails)


if __name__ == "__main__":
    main()
