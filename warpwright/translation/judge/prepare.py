"""Prepare an item for judging: build its reference, run it on draws of inputs, and keep the examples that can tell a wrong program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.errors import WorkerDied, WorkerError
from warpwright.translation.items import Item
from warpwright.translation.judge import variants
from warpwright.translation.judge.build import Translation, build, build_variant
from warpwright.translation.judge.examples import Example, example
from warpwright.translation.judge.inputs import inputs_of, ranges_of
from warpwright.translation.judge.program import Program
from warpwright.translation.judge.soundness import one_number_only, tells, undecided

SEEDS = (1, 2)
RANGES = 3
"""Ranges of values that an item is judged on, where so many give finite answers."""


@dataclass
class Prepared:
    """An item whose reference is built and whose answers are known."""

    item: Item
    library: Path
    examples: list[Example] = field(default_factory=list)
    unscored: str = ""
    oracle: str = ""
    """"float64", or "reference" for its own float32 answers."""


def prepare(item: Item, threads: int = 1) -> Prepared:
    """Return an item with its answers, or with the reason why nothing can be judged by it."""
    library = "" if item.unscored else build(Translation("reference", item.c))
    if isinstance(library, str):
        return Prepared(item, Path(), unscored=item.unscored or f"the reference does not compile: {library}")
    prepared = Prepared(item, library)
    try:
        with ExitStack() as stack:

            def program(built: Path, double: bool = False) -> Program:
                return stack.enter_context(Program(built, item.entry, item.buffers, double=double, threads=threads))

            exact, other = (build_variant(code) for code in (variants.in_double(item.c), variants.with_other_memory(item.c)))
            rounded = [build_variant(variants.complete(item.c) if exact else "", *flags) for flags in variants.ROUNDINGS]
            references = References(
                program(library), program(exact, True) if exact else None, program(other) if other else None,
                [program(one) for one in rounded if one],
            )  # fmt: skip
            prepared.examples, prepared.unscored = _choose(lambda where, seed: references.example(item, where, seed), item)
    except WorkerError as error:
        prepared.unscored = f"the reference does not run: {error.message}"
        return prepared
    prepared.oracle = "float64" if exact and not any(one.coarse for one in prepared.examples) else "reference"
    return prepared


def _choose(draw: Callable[[str, int], Example], item: Item) -> tuple[list[Example], str]:
    """Return the examples that an item is judged by, and why they cannot tell a wrong program; empty where they can.

    The usual ranges count where all their answers are finite and float32 is fine enough for them. Where that leaves fewer than `RANGES`, or a
    wrong program would pass, others are added: first more such ranges; then, if needed, those with answers that are not all finite or are mostly
    rounding; last, for answers that are one number whatever the inputs, draws with NaN among the inputs.
    """
    usual, more, last = ranges_of(item)
    drawn = [draw(where, seed) for where in usual for seed in SEEDS]
    chosen = [one for one in drawn if one.good]
    why = undecided(chosen)
    for where in more:
        if not why and len({one.where for one in chosen}) >= RANGES:
            break
        added = [draw(where, seed) for seed in SEEDS]
        drawn += added
        if all(one.good for one in added):
            chosen = [*chosen, *added]
            why = undecided(chosen) if why else ""
    for where in dict.fromkeys(one.where for one in sorted(drawn, key=lambda one: one.coarse) if not one.good):
        if not why:
            break
        chosen += [one for one in drawn if one.where == where and not one.good and tells(one)]
        why = undecided(chosen)
    if why and one_number_only(chosen):
        chosen += [draw(where, seed) for where in last for seed in SEEDS]
        why = undecided(chosen)
    return chosen, why


@dataclass
class References:
    """The reference, with its float64 variant, the variant with other values in its memory, and those that round otherwise, where they build."""

    own: Program
    double: Program | None
    other: Program | None
    rounded: list[Program]

    def example(self, item: Item, where: str, seed: int) -> Example:
        """Return one draw of inputs with its answers. Raises WorkerError where a reference does not run or damages memory."""
        inputs = inputs_of(item, seed, where)
        single = _outputs(self.own, inputs)
        damage = self.own.damage(inputs)
        if damage:
            raise WorkerDied(f"the reference {damage}")
        exact = _outputs(self.double, inputs) if self.double is not None else None
        unwritten = None
        if self.other is not None:
            first, second = _outputs(self.other, inputs), _outputs(self.other, inputs)
            unwritten = {name: (first[name] != second[name]) & ~np.isnan(single[name]) for name in first if single[name].dtype.kind == "f"}
        return example(where, seed, inputs, single, exact, unwritten, [_outputs(one, inputs) for one in self.rounded])


def _outputs(program: Program, inputs: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    program.fill(inputs)
    program.call()
    return program.outputs()
