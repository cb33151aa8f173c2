"""Which numbers a GPU's kernels keep in float64: those of pairs that scores of a softmax are made of, and the weights' vectors in them.

A score of 200 lies 1.5e-5 from the next one in float32, and its exponential is off by as much; so are the products of weights that it comes from, in
which most of the error is. On a graph of 50,000 edges with scores from -140 to 700 (RGAT) the gradient of the weight is off by 1.6e-5 in float32, by
1.3e-5 with sums and products of rows in float64, and by 9e-7 with products of weights too. A score that rounds across zero has leaky_relu's other
slope besides. Maxima are float64 too: the largest score's exponential is then exactly 1, and a share of nearly all leaves no gradient behind that is
nothing but rounding.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from warpwright.domains.rgnn.ir import Op, Program
from warpwright.domains.rgnn.lattice import PAIRS, WEIGHTS, Domain

CARRYING = frozenset({"add", "sub", "shift", "scale", "neg", "leaky_relu", "detach"})
"""Functions of which float64 makes float64 in a kernel."""
ROUNDING = frozenset({"exp", "leaky_slope", "positive"})
"""Functions that give float32 whatever they take, on edges."""


@dataclass(frozen=True)
class Doubles:
    """Positions of a program's operations."""

    numbers: frozenset[int] = frozenset()
    """Of pairs, in memory as float64; kernels make them."""
    maxima: frozenset[int] = frozenset()
    """Of scores, as numbers."""
    vectors: frozenset[int] = frozenset()
    """Of relations, which torch makes; those among the results are float32 there."""


NONE = Doubles()


def doubles(forward: Program, backward: Program | None) -> Doubles:
    """Return what of the forward is kept in float64; the backward gets numbers as they are. None where something else reads what they make."""
    numbers = _numbers(forward)
    carried = _carried(forward, numbers)
    if not numbers or carried is None or forward.outputs[0] in carried:
        return NONE
    if backward is not None:
        saved = {f"saved{place}" for place, value in enumerate(forward.outputs[1:]) if value in carried}
        if _carried(backward, [position for name, position in backward.names().items() if name in saved]) is None:
            return NONE
    maxima = frozenset(position for position in carried if forward.ops[position].kind == "segmax")
    vectors = {i for number in numbers for i in forward.ops[number].inputs if _is_product_of_weights(forward, i)}
    elsewhere = {i for position, op in enumerate(forward.ops) if position not in numbers for i in op.inputs}
    return Doubles(numbers, maxima, frozenset(vectors - elsewhere))


def _numbers(program: Program) -> frozenset[int]:
    """Return the numbers of pairs that exponentials take by way of `CARRYING` functions alone."""
    found: set[int] = set()
    stack = [i for op in program.ops if op.kind == "map" and op.function == "exp" and op.domain is Domain.EDGE for i in op.inputs]
    while stack:
        position = stack.pop()
        op = program.ops[position]
        if op.kind == "map" and op.function in CARRYING and not op.shape:
            stack += op.inputs
        elif _is_number(program, op):
            found.add(position)
    return frozenset(found)


def _is_number(program: Program, op: Op) -> bool:
    """Is it the product of a node's row and a vector of the relation, or of all?"""
    if op.kind != "contract" or op.sums or op.domain not in PAIRS or op.subscripts != ("a", "a", ""):
        return False
    return sum(program.ops[i].domain in WEIGHTS for i in op.inputs) == 1


def _carried(program: Program, positions: Collection[int]) -> set[int] | None:
    """Return these and all that is float64 as they are; None where that reaches more than functions that give float32."""
    carried = set(positions)
    for position, op in enumerate(program.ops):
        if not carried.intersection(op.inputs):
            continue
        if op.kind == "segmax" or (op.kind == "map" and op.function in CARRYING and (op.domain is Domain.EDGE or op.function == "detach")):
            carried.add(position)
        elif not (op.kind == "map" and op.function in ROUNDING and op.domain is Domain.EDGE):
            return None
    return carried


def _is_product_of_weights(program: Program, position: int) -> bool:
    op = program.ops[position]
    return op.kind == "contract" and op.over in WEIGHTS and all(program.ops[i].domain in WEIGHTS for i in op.inputs)
