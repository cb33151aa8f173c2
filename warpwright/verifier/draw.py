"""How the inputs of a case are drawn, besides its distribution and its seed, and how states are changed: what judge and parent both go by.

Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from warpwright.base import Case

VARIATIONS = ("edited", "permuted", "alike")
"""Distributions that vary the first nominal input."""

STRIDED = "strided"
"""The distribution whose inputs lie in memory otherwise than the task's own."""

UNEVEN: Mapping[str, float] = {"negated": 8e-3, "offset": 8e-3, "large": 1e-3, "small": 1e-3}
"""Distributions in which one tensor of several is smaller than the others, by this factor: a program may leave out what seems not to count. Of a
thousandth it may on a GPU, where operands rounded to TF32 err by half of that; of a hundredth nowhere."""

UNEVEN_TURNS = 60
"""Which tensor that is follows from the seed's remainder. A task's cases have remainders one apart, so that of up to four tensors each is small in
one, and of two each by both factors: with two tensors and a coin for each case, one of 4 audits never made the second one small."""

LEFT_OTHERWISE = 998
"""Number of the state of timed calls, but with those tensors that calls change as state 1 has them."""

TAKEN = 999
"""Number of the state that a program's call left, with two elements exchanged: a copy of its own that it goes by is out of date then, though the sum
is the same."""

MIXED = 1000
"""From here on a state is state 1 with one tensor changed: number MIXED + len(CHANGES) * k + c has the k-th changed as CHANGES[c] says."""

CHANGES = ("element", "tensor", "nudge", "minus", "row", "row ends", "column", "column ends")
"""One element moved; the whole tensor from state 2; all of it moved by 64 units in the last place (of 16 bits by 4), as a step of training does,
which is less than most would call a change (of integers in no order one element by one); one element of the other sign, of a parameter whose
elements all have one; or two elements of a row or a column exchanged, from its
middle or its ends. These leave the sum, the norm and every other mark of the tensor that knows no places as they were; one in a row also those of
each row, one in a column those of each column. From the middle it leaves the places of the extremes too; from the ends it is seen where only the
extremes matter."""

EXCHANGES = CHANGES[4:]
"""Those that exchange two elements."""


def mixed(tensor: int, change: str) -> int:
    """Return the number of the state in which the tensor that has this number is changed so."""
    return MIXED + len(CHANGES) * tensor + CHANGES.index(change)


@dataclass(frozen=True)
class Draw:
    """Parameters of a case; None for what is as usual."""

    of: int | None = None
    """Seed of the nominal input that is changed, if it is not the case's own."""
    fixed: int | None = None
    """1: integers, Booleans and Python numbers stay as the task's own inputs have them, and where those have them in memory."""
    mild: int | None = None
    """1: no integer tensor stands nearly all at one end of its range, and no Python Boolean is another. Of strides: lines begin at wide words.
    Of real numbers: the first rows are like the others."""
    layout: int | None = None
    """Seed of the strides, if it is not the case's own."""
    turned: int | None = None
    """1: tensors that this seed spreads out have gaps instead, and the other way round. 2: all are dense, off the start of their block.
    3: none is moved."""
    variant: int | None = None
    """Seed of the variant in a turn of calls (`workers/tensors/variants.py`)."""
    drawn: int | None = None
    """1: what the original itself draws in the call are later numbers of the same seed, on the same inputs."""

    @classmethod
    def of_case(cls, case: Case) -> Draw:
        """Return the parameters of a case."""
        return cls(**{field.name: int(case.params[field.name]) for field in fields(cls) if field.name in case.params})


def with_draw(case: Case, draw: Draw) -> Case:
    """Return a case with these parameters."""
    values = {field.name: getattr(draw, field.name) for field in fields(draw)}
    return replace(case, params={name: value for name, value in values.items() if value is not None})
