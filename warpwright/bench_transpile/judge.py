"""Judge candidates of an item: build, several seeds and value ranges against the oracle, guard zones, then time beside the reference."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright import native
from warpwright.base import Comparison, Status, Verdict
from warpwright.bench_transpile import text
from warpwright.bench_transpile.items import Item
from warpwright.bench_transpile.program import Program
from warpwright.bench_transpile.values import inputs_of, ranges_of
from warpwright.errors import WarpwrightError, WorkerDied, WorkerError, WorkerTimeout
from warpwright.timing import measure

EPSILON = float(np.finfo(np.float32).eps)
FLOOR, SLACK = 64.0, 4.0
"""A candidate may err by SLACK times the reference's own error against float64, and FLOOR roundings of the value and of the mean."""

SEEDS = (1, 2)
COARSE = 0.02
"""Where the float64 run of the reference differs from its float32 run by more than this share of the mean, it is no oracle."""


@dataclass(frozen=True)
class Case:
    """One draw of inputs with its answers."""

    where: str
    seed: int
    inputs: Mapping[str, NDArray[Any]]
    answers: Mapping[str, NDArray[Any]]
    allowed: Mapping[str, float]
    """Absolute tolerance of each output; the relative one is FLOOR roundings."""


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
        exact = _oracle_library(item)
        with Program(library, item.entry, item.buffers, threads=threads) as single:
            double = Program(exact, item.entry, item.buffers, double=True, threads=threads) if exact else None
            try:
                found = [_case(item, where, seed, single, double) for where in ranges_of(item) for seed in SEEDS]
            finally:
                if double is not None:
                    double.close()
    except WorkerError as error:
        made.unscored = f"the reference does not run: {error.message}"
        return made
    made.oracle = "float64" if exact and all(case.allowed for case in found if case) else "reference"
    made.cases = [case for case in found if case is not None]
    made.unscored = _vacuous(made.cases)
    return made


def _oracle_library(item: Item) -> Path | None:
    code = text.in_double(item.c)
    try:
        return native.build(code, flags=text.C_FLAGS) if code else None
    except native.BuildError:
        return None


def _case(item: Item, where: str, seed: int, single: Program, double: Program | None) -> Case | None:
    """Return a case, or None when its answers are not finite or the two runs of the reference make no oracle."""
    inputs = inputs_of(item, seed, where)
    single.fill(inputs)
    single.call()
    damage = single.damage(inputs)
    if damage:
        raise WorkerDied(f"the reference {damage}")
    seen, exact = single.outputs(), None
    if double is not None:
        double.fill(inputs)
        double.call()
        exact = double.outputs()
    answers, allowed = {}, {}
    for name, value in seen.items():
        if value.dtype.kind != "f":
            answers[name], allowed[name] = value, 0.0
            continue
        mean = float(np.abs(value).mean(dtype=np.float64)) if np.isfinite(value).all() else np.inf
        if not np.isfinite(mean):
            return None
        best = exact[name] if exact is not None else value.astype(np.float64)
        error = float(np.abs(value - best).max())
        if not error <= COARSE * mean + 1e-30:
            best, error = value.astype(np.float64), 0.0
        answers[name], allowed[name] = best, SLACK * error + FLOOR * EPSILON * mean
    return Case(where, seed, inputs, answers, allowed)


def _vacuous(cases: Sequence[Case]) -> str:
    """Return why no case can tell a right program from a wrong one; empty when one can."""
    if not cases:
        return "its answers are not finite on any range of values"
    reasons = [_vacuous_case(case) for case in cases]
    return "" if not all(reasons) else reasons[0]


def _vacuous_case(case: Case) -> str:
    for name, value in case.answers.items():
        if value.size > 1 and float(value.max()) - float(value.min()) <= 1e-6 * max(1e-6, float(np.abs(value).max())):
            return f"its output {name} is constant"
    names = [n for n, v in case.answers.items() if any(v.size == g.size and np.array_equal(v, g.astype(v.dtype)) for g in case.inputs.values())]
    return f"its output {names[0]} is a copy of an input" if names and len(names) == len(case.answers) else ""


# --- a candidate -----------------------------------------------------------------------------------------------------------------------


def wrong(program: Program, case: Case) -> str:
    """Return what is wrong with the outputs that a program holds; empty when nothing."""
    damage = program.damage(case.inputs)
    if damage:
        return damage
    for name, value in program.outputs().items():
        exact = case.answers[name]
        error = np.abs(value.astype(np.float64) - exact)
        if not (error <= case.allowed[name] + FLOOR * EPSILON * np.abs(exact) * (value.dtype.kind == "f")).all():
            most = float(np.nanmax(error)) if np.isfinite(error).any() else float("nan")
            return f"output {name} is off by {most:.3g} (allowed {case.allowed[name]:.3g}) on values of the range {case.where}"
    return ""


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
