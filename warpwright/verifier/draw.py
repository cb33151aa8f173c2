"""How the inputs of a case are drawn, besides its distribution and its seed: what `Case.params` holds for the verifier. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from warpwright.base import Case

VARIATIONS = ("edited", "permuted")
"""Distributions that vary the first nominal input."""

STRIDED = "strided"
"""The distribution whose inputs lie in memory otherwise than the task's own."""


@dataclass(frozen=True)
class Draw:
    """Parameters of a case; None for what is as usual."""

    of: int | None = None
    """Seed of the nominal input that is changed, if it is not the case's own."""
    fixed: int | None = None
    """1: integers, Booleans and Python numbers stay as the task's own inputs have them."""
    layout: int | None = None
    """Seed of the strides, if it is not the case's own."""
    variant: int | None = None
    """Seed of the variant in a turn of calls (`workers/tensors/variants.py`)."""

    @classmethod
    def of_case(cls, case: Case) -> Draw:
        """Return the parameters of a case."""
        return cls(**{field.name: int(case.params[field.name]) for field in fields(cls) if field.name in case.params})


def with_draw(case: Case, draw: Draw) -> Case:
    """Return a case with these parameters."""
    values = {field.name: getattr(draw, field.name) for field in fields(draw)}
    return replace(case, params={name: value for name, value in values.items() if value is not None})
