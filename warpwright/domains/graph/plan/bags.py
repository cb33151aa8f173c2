"""Bags of rows in a plan: one call of bags.cpp, whose text takes what a program's bags are."""

from __future__ import annotations

import itertools
import math
from typing import Any

from torch import fx

from warpwright.domains.graph.cpp.calls.bags import BAG, form_of_rows, form_of_segments
from warpwright.domains.graph.cpp.program import Bag, Unsupported
from warpwright.domains.graph.ir import is_op
from warpwright.domains.graph.plan.memory import Place

MOST = 128
"""Numbers of a row that stay in registers."""


def read(node: fx.Node) -> tuple[Bag, Any, list[Any]]:
    """Return the form of a call's bags, the table, and what its numbers of operands stand for."""
    held: list[Any] = []

    def number(tensor: Any) -> int:
        held.append(tensor)
        return len(held) - 1

    form, table = (form_of_rows if is_op(node, BAG) else form_of_segments)(node, number)
    return form, table, held


def lines(form: Bag, to: Place, table: Place, held: list[Place], step: int) -> list[str]:
    """Return the call; what is no bag, and an index out of range, leave the plan. Unsupported where a row lies in several pieces."""
    index, offsets, weights = (held[number] if number >= 0 else None for number in (form.index, form.offsets, form.weights))
    rows, out = _as_rows(table), _as_rows(to)
    if rows is None or out is None or table.type not in ("float", "double"):
        raise Unsupported("bags of what is no float, or whose rows lie in several pieces")
    if any(place is not None and place.type not in ("int64_t", "int32_t") for place in (index, offsets)):
        raise Unsupported("bags by what are no indices")
    width, *_ = rows
    numbers = [
        table.sizes[0], *rows[1:], width, *out[1:], form.count, form.total, form.length, *_steps(index, form), *_steps(weights, form),
        offsets.strides[0] if offsets is not None else 0, form.padding, form.total if index is not None and index.contiguous else 0,
    ]  # fmt: skip
    flags = [form.last, form.offsets >= 0 and form.index >= 0, form.whole]
    shown = ", ".join([*map(str, numbers), *(str(flag).lower() for flag in flags)])
    others = ((index, "int64_t"), (offsets, "int64_t"), (weights, table.type))
    pointers = [table.pointer, *(_pointer(place, kind) for place, kind in others), to.pointer]
    kinds = [table.type, *(place.type if place is not None else "int64_t" for place in (index, offsets))]
    call = f"join_bags<BAG_{form.how.upper()}, {min(width, MOST)}, {', '.join(kinds)}>"
    ends = ", ".join(_number(one, table.type) for one in (form.begin, form.empty))
    return [f"if (!{call}({{{shown}}}, {', '.join(pointers)}, {ends}, threads)) throw Failure{{{step}}};"]


def _as_rows(place: Place) -> tuple[int, int, int] | None:
    """Return how many numbers a row has, the distance of rows, and that of the numbers of one; None where they have several."""
    sizes, strides = place.sizes[1:], place.strides[1:]
    long = [(size, step) for size, step in zip(sizes, strides, strict=True) if size != 1]
    if any(step != below * size for (_, step), (size, below) in itertools.pairwise(long)):
        return None
    return math.prod(sizes), place.strides[0], long[-1][1] if long else 1


def _steps(place: Place | None, form: Bag) -> tuple[int, int]:
    """Return the distance of bags and of the rows of one in a tensor that holds one number for each."""
    if place is None:
        return 0, 0
    return (place.strides[0] if form.offsets < 0 else 0), place.strides[-1]


def _pointer(place: Place | None, kind: str) -> str:
    return place.pointer if place is not None else f"({kind}*)nullptr"


def _number(number: float, kind: str) -> str:
    text = {math.inf: "INFINITY", -math.inf: "-INFINITY"}.get(number, "NAN" if number != number else repr(number))
    return f"({kind}){text}"
