"""Exponentials of a long softmax that stay in registers: those that the sum took, over the thread's own maximum, and one factor a thread.

    total += exp(x - own); ...; y = exp(x - top) / total   ->   kept = exp(x - own), total += kept; ...; y = kept * exp(own - top) / total

A softmax over 65,536 took 35 instructions an element, which bound it (0.81 of a copy on an H200); without its second exponential it takes 22.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from warpwright.domains.graph.cpp.phases import Phases, closure
from warpwright.domains.graph.cpp.program import FLOAT, Value


@dataclass(frozen=True)
class Power:
    """An exponential that a later phase takes from a register."""

    value: Value
    phase: int
    carrier: Value
    """The kept value whose registers hold it from the sum on."""
    dropped: frozenset[Value]
    """What it alone is computed from, which that phase does not compute again."""


def kept_power(phases: Phases, pack: Value, kept: Sequence[Value]) -> Power | None:
    """Return the exponential of what `pack` (the maximum, and the sum of exponentials beside it) joins, where one phase alone reads it, as a factor
    beside the total: that is NaN where the maximum is Inf, and so is every product then."""
    later = [phase for phase in range(pack.args[0].phase + 1, phases.last + 1) if phases.elements_in(phase, kept)]
    if len(later) != 1:
        return None
    [phase] = later
    values = phases.elements_in(phase, kept)
    powers = [v for v in values if _of(v, pack)]
    if len(powers) != 1:
        return None
    [power] = powers
    below = {v for v in closure([power]) if v in values} - {power}
    others = [v for v in values if v not in below and v is not power]
    alone = not any(below.intersection(v.args) for v in others) and not below.intersection(phases.roots(phase))
    carriers = [v for v in kept if v in below and v.type == FLOAT and phases.is_kept(v, phase, kept)]
    scaled = [_by_the_total(v, power, pack) for v in others if power in v.args]
    if not alone or not carriers or not scaled or not all(scaled) or power in phases.roots(phase):
        return None
    return Power(power, phase, carriers[0], frozenset(below))


def _of(v: Value, pack: Value) -> bool:
    """Is it exp(x - top)?"""
    if v.text == "vexp({0})" and v.args[0].text == "{0} - {1}":
        x, top = v.args[0].args
    elif v.text == "vexp({0} - {1})":
        x, top = v.args
    else:
        return False
    return x is pack.args[0] and top.kind == "part" and top.text == "top" and top.args[0] is pack


def _by_the_total(v: Value, power: Value, pack: Value) -> bool:
    """Is it the power times what is made of the sum?"""
    if v.text != "{0} * {1}":
        return False
    [other] = [arg for arg in v.args if arg is not power] or [power]
    return any(a.kind == "part" and a.text == "total" and a.args[0] is pack for a in closure([other]))


__all__ = ["Power", "kept_power"]
