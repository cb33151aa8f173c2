"""Judge candidates of an item: build, several seeds and value ranges against the oracle, guard zones, then time beside the reference."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright import native
from warpwright.base import Comparison, Status, Verdict
from warpwright.errors import WarpwrightError, WorkerDied, WorkerError, WorkerTimeout
from warpwright.timing import measure
from warpwright.translation.items import Item
from warpwright.translation.judge import c_text as text
from warpwright.translation.judge import examples as answers
from warpwright.translation.judge.examples import Case, differs, one_number_only, tells, undecided
from warpwright.translation.judge.inputs import inputs_of, ranges_of
from warpwright.translation.judge.program import Program

SEEDS = (1, 2)
RANGES = 3
"""Ranges of values that an item is judged on, where so many give finite answers."""


@dataclass(frozen=True)
class Answer:
    """A candidate's program text, or why there is none."""

    source: str
    """Name of the model, "compiler", ..."""
    code: str
    language: str = "c"
    failure: str = ""


@dataclass(frozen=True)
class Row:
    """What became of one candidate on one item."""

    item: str
    family: str
    source: str
    status: Status
    reason: str = ""
    built: bool = False
    ran: bool = False
    speedup: float = 0.0
    """Reference time over candidate time; 0 where not measured."""
    interval: tuple[float, float] = (0.0, 0.0)
    verdict: Comparison | None = None
    reference_seconds: float = 0.0

    @property
    def counted(self) -> float:
        """The speed-up as it enters the means: a failure falls back to the reference, 1."""
        return self.speedup if self.status == "ok" and self.speedup > 0 else 1.0


@dataclass
class Prepared:
    """An item whose reference is built and whose answers are known."""

    item: Item
    library: Path
    cases: list[Case] = field(default_factory=list)
    unscored: str = ""
    oracle: str = ""
    """"float64" or "reference" (its own float32 answers)."""


def build(answer: Answer) -> Path | str:
    """Return a candidate's library, or the compiler's complaint."""
    tries = [(text.complete(answer.code), text.C_FLAGS), (text.as_cpp(answer.code), text.CPP_FLAGS)]
    if answer.language == "cpp":
        tries = [(answer.code, text.CPP_FLAGS)]
    complaint = ""
    for code, flags in tries:
        try:
            return native.build(code, flags=flags)
        except native.BuildError as error:
            complaint = complaint or _first_error(str(error))
        except subprocess.TimeoutExpired:
            complaint = complaint or "the compiler took longer than 600 s"
    return complaint


def _first_error(log: str) -> str:
    return next((" ".join(line.partition("error:")[2].split()) for line in log.splitlines() if "error:" in line), log[-200:])


def prepare(item: Item, threads: int = 1) -> Prepared:
    """Return an item with its answers; where nothing can be judged by it, the reason."""
    library = "" if item.unscored else build(Answer("reference", item.c))
    if isinstance(library, str):
        return Prepared(item, Path(), unscored=item.unscored or f"the reference does not compile: {library}")
    made = Prepared(item, library)
    try:
        with ExitStack() as open_now:

            def program(built: Path, double: bool = False) -> Program:
                return open_now.enter_context(Program(built, item.entry, item.buffers, double=double, threads=threads))

            exact, other = (_library(code) for code in (text.in_double(item.c), text.with_other_memory(item.c)))
            runs = References(program(library), program(exact, True) if exact else None, program(other) if other else None)
            made.cases, made.unscored = _chosen(lambda where, seed: runs.case(item, where, seed), item)
    except WorkerError as error:
        made.unscored = f"the reference does not run: {error.message}"
        return made
    made.oracle = "float64" if exact and not any(case.coarse for case in made.cases) else "reference"
    return made


def _library(code: str) -> Path | None:
    try:
        return native.build(code, flags=text.C_FLAGS) if code else None
    except native.BuildError:
        return None


def _chosen(drawn: Callable[[str, int], Case], item: Item) -> tuple[list[Case], str]:
    """Return the cases that an item is judged by, and why they cannot tell a wrong program; empty when they can.

    The usual ranges count where all their answers are finite and float32 is fine enough for them. Where that leaves fewer than `RANGES`, or a wrong
    program is not told, others are added: first such ones; then, if it is still not told, those with answers of which some are not finite, or that
    are mostly rounding; last, for answers that are one number whatever the inputs, with NaN among the inputs.
    """
    usual, more, last = ranges_of(item)
    tried = [drawn(where, seed) for where in usual for seed in SEEDS]
    cases = [one for one in tried if one.good]
    why = undecided(cases)
    for where in more:
        if not why and len({one.where for one in cases}) >= RANGES:
            break
        added = [drawn(where, seed) for seed in SEEDS]
        tried += added
        if all(one.good for one in added):
            cases = [*cases, *added]
            why = undecided(cases) if why else ""
    for where in dict.fromkeys(one.where for one in sorted(tried, key=lambda one: one.coarse) if not one.good):
        if not why:
            break
        cases += [one for one in tried if one.where == where and not one.good and tells(one)]
        why = undecided(cases)
    if why and one_number_only(cases):
        cases += [drawn(where, seed) for where in last for seed in SEEDS]
        why = undecided(cases)
    return cases, why


@dataclass
class References:
    """The reference; its float64 run, and one whose memory holds something else before it is written, where they can be had."""

    own: Program
    double: Program | None
    other: Program | None

    def case(self, item: Item, where: str, seed: int) -> Case:
        """Return the answers to one draw of inputs."""
        inputs = inputs_of(item, seed, where)
        seen = _answers(self.own, inputs)
        damage = self.own.damage(inputs)
        if damage:
            raise WorkerDied(f"the reference {damage}")
        exact = _answers(self.double, inputs) if self.double is not None else None
        unwritten = None
        if self.other is not None:
            one, two = _answers(self.other, inputs), _answers(self.other, inputs)
            unwritten = {name: (one[name] != two[name]) & ~np.isnan(seen[name]) for name in one if seen[name].dtype.kind == "f"}
        return answers.case(where, seed, inputs, seen, exact, unwritten)


def _answers(program: Program, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    program.fill(inputs)
    program.call()
    return program.outputs()


# --- a candidate -----------------------------------------------------------------------------------------------------------------------


def wrong(program: Program, case: Case) -> str:
    """Return what is wrong with the outputs that a program holds; empty when nothing."""
    damage = program.damage(case.inputs)
    if damage:
        return damage
    return next((fault for name, value in program.outputs().items() if (fault := differs(case, name, value))), "")


def judge(prepared: Prepared, answer: Answer, seconds: float, rng: Random, threads: int = 1) -> Row:
    """Return what became of a candidate."""
    item = prepared.item

    def row(status: Status, reason: str = "", **more: Any) -> Row:
        return Row(item.name, item.family, answer.source, status, reason, **more)

    if prepared.unscored:
        return row("unscored", prepared.unscored)
    if answer.failure:
        return row("not_built", answer.failure)
    library = build(answer)
    if isinstance(library, str):
        return row("not_built", library)
    try:
        with Program(library, item.entry, item.buffers, threads=threads) as program:
            for case in prepared.cases:
                program.fill(case.inputs)
                program.call()
                fault = wrong(program, case)
                if fault:
                    return row("wrong", fault, built=True, ran=True)
            return _timed(prepared, program, row, seconds, rng, threads)
    except WorkerTimeout as error:
        return row("timeout", error.message, built=True)
    except WorkerError as error:
        return row("crashed", error.message, built=True)
    except WarpwrightError as error:
        return row("wrong", error.message, built=True, ran=True)


def _timed(prepared: Prepared, program: Program, row: Any, seconds: float, rng: Random, threads: int) -> Row:
    """Time a right candidate beside the reference, in turns, its outputs checked now and then."""
    item, cases = prepared.item, prepared.cases
    if seconds <= 0:
        return row("ok", built=True, ran=True)  # type: ignore[no-any-return]
    with Program(prepared.library, item.entry, item.buffers, threads=threads) as reference:
        current = {"case": cases[0]}

        def fresh() -> Mapping[str, NDArray[Any]]:
            current["case"] = rng.choice(cases)
            return current["case"].inputs

        def verdict() -> Verdict:
            fault = wrong(program, current["case"])
            return Verdict(not fault, "wrong" if fault else "ok", fault)

        for one in (program, reference):
            one.fill(cases[0].inputs)
            one.calibrate()
        if max(program.count, reference.count) <= 4 * min(program.count, reference.count):
            program.count = reference.count = max(program.count, reference.count)  # alike for programs that are alike, as in the control
        program.verdict = verdict
        found = measure.compare(program, {"reference": reference}, fresh, seconds=seconds, floor_seconds=0.0, overhead_seconds=0.0, rng=rng)
    return row(  # type: ignore[no-any-return]
        "ok", built=True, ran=True, speedup=found.speedup, interval=found.interval, verdict=found.verdict,
        reference_seconds=found.baselines["reference"].median,
    )  # fmt: skip


def control(prepared: Prepared, seconds: float, rng: Random, threads: int = 1) -> Row:
    """Return the reference judged and timed against itself: its speed-up has to be 1."""
    return judge(prepared, Answer("control", prepared.item.c), seconds, rng, threads)
