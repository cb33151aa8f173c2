"""What the original draws from torch's generators in a call, repeated: the same numbers in its own precision and in float64.

A call that draws (an initial state where none is given, a dropout) has no answer of its own until it is said where the generators begin. So each case
has a seed, and all default generators, the CPU's and the GPUs', begin there before each call of the original and of a program. Who draws the
same by the same calls in the same order has the same numbers. A draw of float64 takes other bits of the generator than one of float32: in the float64
run each draw is what the original drew in its own precision, widened.

Repeated so is what draws and does nothing else (`PURE`), and a dropout's mask. What draws inside a larger operator (an attention's dropout, a
multinomial's choice by values) is not: such a task is unscored, if that changes its answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from warpwright.base import Case
from warpwright.errors import TaskError
from warpwright.tasks.mode import Mode
from warpwright.verifier.draw import Draw
from warpwright.workers.inside import generators

PURE = frozenset({
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "normal_", "uniform_", "random_", "exponential_", "geometric_",
    "cauchy_", "log_normal_",
})  # fmt: skip
"""Operators whose result is drawn numbers alone, by numbers that the program's text or its shapes give. (bernoulli_ is one with a share that is a
number; normal of float64 where mean and spread are.)"""

WITH_NUMBERS = {"bernoulli_": "float", "normal": "float_float"}
"""Operators of which one overload is such."""

DROPOUT = "native_dropout"


def is_pure(function: Any, keywords: Any) -> bool:
    """Whether a call of an operator draws and does nothing else."""
    name, overload = function.overloadpacket.__name__, function._overloadname
    return "out" not in keywords and (name in PURE or WITH_NUMBERS.get(name) == overload)


Tape = list[torch.Tensor | None]
"""What the calls drew that draw and do nothing else, in order; None for one that drew from a generator of the program's own."""


class Draws:
    """Where an original's generators begin, case by case."""

    def __init__(self, secret: int) -> None:
        self._secret, self._seed = secret, 0
        self.found = False
        """Whether a call draws. Until that is known, and where none does, nothing is done for it."""
        self.elsewhere = False
        """Whether a call draws from Python's or numpy's generators. That is not repeated."""
        self.matter = False
        """Whether other draws give another answer: a recurrence may have forgotten by its last step where it began."""
        self.left: list[str] = []
        """Where the last run left the generators."""
        self.hidden: list[str] = []
        """Operators that draw and cannot be repeated in float64."""

    def seed_of(self, case: Case) -> int | None:
        """Return where the generators begin on a case; None where nothing is drawn. A variation of an input has the seed of that one.

        (A program that goes by the seed alone is wrong there, and where others are drawn: they are later ones of that seed. What a seed tells of the
        secret is a digest.)
        """
        if not self.found:
            return None
        draw = Draw.of_case(case)
        text = f"{self._secret} {case.seed if draw.of is None else draw.of}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:7]) * 2 + (draw.drawn or 0)

    def begin(self, case: Case) -> None:
        """Have every run from here on begin where this case does."""
        self._seed = self.seed_of(case) or 0

    @contextmanager
    def beginning(self) -> Iterator[None]:
        """Inside, a run has the numbers of the case at hand; the generators are put back."""
        if not self.found:
            yield
            return
        with generators.seeded(self._seed):
            yield
            self.left = generators.marks()

    @contextmanager
    def repeated(self, tape: Tape) -> Iterator[None]:
        """Inside, a float64 run draws what is on the tape."""
        if not self.found:
            yield
            return
        with self.beginning(), Repeating(tape):
            yield

    @contextmanager
    def recorded(self) -> Iterator[Tape]:
        """Inside, a run's draws are noted in what is yielded, in order."""
        with self.beginning(), _Recording() as mode:
            yield mode.tape
        self.hidden = mode.hidden


class _Recording(Mode):
    """Notes what each operator draws, and the names of those that draw something that is not seen."""

    def __init__(self) -> None:
        super().__init__()
        self.tape: Tape = []
        self.hidden: list[str] = []

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = keywords or {}
        if torch.Tag.nondeterministic_seeded not in function.tags:
            return function(*arguments, **keywords)
        before = generators.states()
        result = function(*arguments, **keywords)
        drew = generators.states() != before
        if is_pure(function, keywords):
            self.tape.append(result.clone() if drew else None)
        elif function.overloadpacket.__name__ == DROPOUT:
            self.tape.append(result[1].clone() if drew else None)
        elif drew:
            self.hidden.append(str(function))
        return result


class Repeating(Mode):
    """Gives each operator that draws what was drawn when the tape was made."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._left = iter(tape)

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = keywords or {}
        if torch.Tag.nondeterministic_seeded not in function.tags:
            return function(*arguments, **keywords)
        result = function(*arguments, **keywords)  # its form is the float64 run's
        if function.overloadpacket.__name__ == DROPOUT:
            mask = self._next(result[1], function)
            return result if mask is None else (_dropped(arguments[0], mask, arguments[1]), mask)
        if not is_pure(function, keywords):
            return result
        drawn = self._next(result, function)
        return result if drawn is None else result.copy_(drawn)

    def _next(self, seen: torch.Tensor, function: Any) -> torch.Tensor | None:
        """Return what was drawn in place of `seen`; None where that was the program's own generator's."""
        drawn = next(self._left, seen.new_empty(0, 0, 0))
        if drawn is not None and drawn.shape != seen.shape:
            raise TaskError(f"the original draws otherwise in float64 than in its own precision: {function}")
        return drawn


def _dropped(values: torch.Tensor, mask: torch.Tensor, share: float) -> torch.Tensor:
    """Return values of a dropout that kept those of a mask."""
    return values * mask * (1 / (1 - share) if share < 1 else 0.0)
