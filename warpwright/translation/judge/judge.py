"""Judge a translation: build it, compare it with the answers on every example, check the guard zones, then time it beside the reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from numpy.typing import NDArray

from warpwright.base import Comparison, Status, Verdict
from warpwright.errors import WarpwrightError, WorkerError, WorkerTimeout
from warpwright.timing import measure
from warpwright.translation.judge.build import Translation, build
from warpwright.translation.judge.examples import Example, differs
from warpwright.translation.judge.prepare import Prepared
from warpwright.translation.judge.program import Program


@dataclass(frozen=True)
class Row:
    """The outcome of one translation of one item."""

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
    """Of the speed-up, 95 %."""
    verdict: Comparison | None = None
    reference_seconds: float = 0.0

    @property
    def counted(self) -> float:
        """The speed-up as it enters the means: a failure falls back to the reference, 1."""
        return self.speedup if self.status == "ok" and self.speedup > 0 else 1.0


def wrong(program: Program, example: Example) -> str:
    """Return what is wrong with the outputs that a program holds; empty where nothing is."""
    damage = program.damage(example.inputs)
    if damage:
        return damage
    return next((fault for name, value in program.outputs().items() if (fault := differs(example, name, value))), "")


def judge(prepared: Prepared, translation: Translation, seconds: float, rng: Random, threads: int = 1) -> Row:
    """Return the row of a translation. `seconds`: for timing; 0: correctness only."""
    item = prepared.item

    def row(status: Status, reason: str = "", **more: Any) -> Row:
        return Row(item.name, item.family, translation.source, status, reason, **more)

    if prepared.unscored:
        return row("unscored", prepared.unscored)
    if translation.failure:
        return row("not_built", translation.failure)
    library = build(translation)
    if isinstance(library, str):
        return row("not_built", library)
    try:
        with Program(library, item.entry, item.buffers, threads=threads) as program:
            for one in prepared.examples:
                program.fill(one.inputs)
                program.call()
                fault = wrong(program, one)
                if fault:
                    return row("wrong", fault, built=True, ran=True)
            return row("ok", built=True, ran=True, **(_timed(prepared, program, seconds, rng, threads) if seconds > 0 else {}))
    except WorkerTimeout as error:
        return row("timeout", error.message, built=True)
    except WorkerError as error:
        return row("crashed", error.message, built=True)
    except WarpwrightError as error:
        return row("wrong", error.message, built=True, ran=True)


def _timed(prepared: Prepared, program: Program, seconds: float, rng: Random, threads: int) -> dict[str, Any]:
    """Return the timing fields of a row: a right program beside the reference, in turn, its outputs checked now and then."""
    item, examples = prepared.item, prepared.examples
    with Program(prepared.library, item.entry, item.buffers, threads=threads) as reference:
        current = {"example": examples[0]}

        def fresh() -> Mapping[str, NDArray[Any]]:
            current["example"] = rng.choice(examples)
            return current["example"].inputs

        def verdict() -> Verdict:
            fault = wrong(program, current["example"])
            return Verdict(not fault, "wrong" if fault else "ok", fault)

        for one in (program, reference):
            one.fill(examples[0].inputs)
            one.calibrate()
        if max(program.count, reference.count) <= 4 * min(program.count, reference.count):
            program.count = reference.count = max(program.count, reference.count)  # equal counts for similar programs, as in the control
        program.verdict = verdict
        timing = measure.compare(program, {"reference": reference}, fresh, seconds=seconds, floor_seconds=0.0, overhead_seconds=0.0, rng=rng)
    return {
        "speedup": timing.speedup, "interval": timing.interval, "verdict": timing.verdict,
        "reference_seconds": timing.baselines["reference"].median,
    }  # fmt: skip


def control(prepared: Prepared, seconds: float, rng: Random, threads: int = 1) -> Row:
    """Return the row of the reference judged and timed against itself: its speed-up has to be 1."""
    return judge(prepared, Translation("control", prepared.item.c), seconds, rng, threads)
