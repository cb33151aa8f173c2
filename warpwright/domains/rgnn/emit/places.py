"""What an operation is to the kernels over rows, and who computes it: torch, a kernel over some rows, or whoever reads it."""

from __future__ import annotations

from typing import Literal

from warpwright.domains.rgnn.ir import NARROW, Op, Program, narrow
from warpwright.domains.rgnn.lattice import PAIRS, WEIGHTS, Domain
from warpwright.errors import NotApplicable

Place = Literal["host", "inline"] | Domain

ROWS = (Domain.PAIR_DST, Domain.PAIR_SRC, Domain.DST, Domain.SRC)

_LOOPS = {("", ""), ("", "", ""), ("", "a", "a"), ("a", "", "a"), ("a", "a"), ("a", "a", "a"), ("a", "a", "")}
_OF_ROWS = _LOOPS | {("a", "")}
_GEMM = {("a", "ab", "b"), ("ab", "a", "b"), ("ab", "b", "a"), ("a", "ba", "b")}
_OUTER = {("a", "b", "ab"), ("a", "b", "ba")}

WHOLE = 128
"""Numbers of a row, and sides of a weight, that a kernel holds whole; wider ones are taken in windows."""
WIDEST = 256
"""Sides of a weight that a kernel takes: a result of 64 rows of 256 numbers fills half a core's registers."""


def is_product(op: Op) -> bool:
    """Is it a product of rows with a weight?"""
    return op.kind == "contract" and any(len(letters) == 2 for letters in op.subscripts[:-1])


def is_gradient(op: Op) -> bool:
    """Is it a weight's gradient?"""
    return op.kind == "contract" and bool(op.subscripts) and len(op.subscripts[-1]) == 2 and op.over in PAIRS


def is_total(op: Op) -> bool:
    """Is it the sum of each relation's rows?"""
    return op.kind == "contract" and op.subscripts == ("a", "a") and op.over in PAIRS and op.domain is Domain.ETYPE


def gradient_alone(program: Program, op: Op) -> bool:
    """Is it a weight gradient too wide for the registers of one program? It has a kernel of its own, in blocks."""
    return is_gradient(op) and max(op.shape) > WHOLE


def wide_product(program: Program, op: Op) -> bool:
    """Is it a product of rows with a weight that no program holds whole? It takes both window by window, from memory."""
    product = op.kind == "contract" and len(op.subscripts) == 3 and op.over in PAIRS and len(op.subscripts[-1]) == 1
    return product and any(len(program.ops[i].shape) == 2 and max(program.ops[i].shape) > WHOLE for i in op.inputs)


def place_of(program: Program, op: Op, general: bool = False) -> Place:
    """Return who computes an operation; raise NotApplicable where no kernel has its form."""
    if op.kind == "reshape" and op.domain is Domain.EDGE:
        raise NotApplicable("expected no other shape for values of edges")
    if op.kind in {"input", "view", "reshape", "count"}:
        return "host"
    reads = [program.ops[i] for i in op.inputs]
    over = op.over if op.kind in {"contract", "segmax"} else op.domain
    if op.kind == "map" and all(read.kind == "count" for read in reads):
        return "host"  # kept beside the graph
    if over in WEIGHTS or over in {Domain.SRC, Domain.DST, Domain.NODE}:
        return "host"
    if general:
        return _general_place(program, op, over)
    if any(len(read.shape) > 1 and read.domain not in {Domain.ETYPE, Domain.ONE} for read in reads):
        raise NotApplicable(f"expected rows of one dimension, saw {[read.shape for read in reads]}")
    if over in PAIRS:
        _check_row_form(op, reads)
        return over
    if op.domain is Domain.EDGE:
        if all(read.width == 1 and not read.shape for read in reads):
            return "inline"
        if op.kind == "contract" and op.subscripts in {("a", "a", "")}:
            return Domain.PAIR_DST
        raise NotApplicable(f"expected values of an edge with one number, saw {op.shape}")
    if op.domain not in ROWS:
        raise NotApplicable(f"expected sums over edges onto nodes or pairs, saw {op.domain}")
    if op.kind == "segmax" and op.shape:
        raise NotApplicable("expected a maximum of one number")
    if op.kind == "contract" and (any(len(read.shape) > 1 for read in reads) or op.subscripts not in _LOOPS):
        raise NotApplicable(f"expected a weighted sum of rows, saw {op.subscripts}")
    return op.domain


def _general_place(program: Program, op: Op, over: Domain) -> Place:
    if over in PAIRS:
        if op.sums and op.domain not in {Domain.SRC, Domain.DST, Domain.ETYPE, Domain.ONE}:
            raise NotApplicable(f"expected sums onto nodes or relations, saw {op.domain}")
        return over
    if op.domain is Domain.EDGE:
        if narrow(program, op):
            return "inline"
        if op.kind == "contract" and op.width <= NARROW:
            return Domain.PAIR_DST
        raise NotApplicable(f"expected values of an edge with few numbers, saw {op.shape}")
    if op.domain not in ROWS:
        raise NotApplicable(f"expected sums over edges onto nodes or pairs, saw {op.domain}")
    return op.domain


def _check_row_form(op: Op, reads: list[Op]) -> None:
    if op.kind == "map":
        if any(len(read.shape) > 1 for read in reads):
            raise NotApplicable("expected rows, saw weights in a map")
        return
    if op.kind == "segmax":
        if op.shape or op.domain not in {Domain.SRC, Domain.DST}:
            raise NotApplicable(f"expected a maximum of one number onto nodes, saw {op.shape} onto {op.domain}")
        return
    matrices = [read for read in reads if len(read.shape) == 2]
    wide = max([1, *(size for read in (*reads, op) for size in read.shape)])
    if op.subscripts in _OF_ROWS and not matrices:
        if op.sums and op.domain not in {Domain.SRC, Domain.DST, Domain.ETYPE, Domain.ONE}:
            raise NotApplicable(f"expected sums onto nodes or relations, saw {op.domain}")
        return
    fits = (op.subscripts in _GEMM and len(matrices) == 1) or (op.subscripts in _OUTER and op.domain in {Domain.ETYPE, Domain.ONE})
    if not fits or wide > WIDEST:
        shapes = [read.shape for read in reads]
        raise NotApplicable(f"expected a product with a weight of at most {WIDEST} rows and columns, saw {op.subscripts} of {shapes}")


def numbers_of_nodes(program: Program) -> set[int]:
    """Return the elementwise operations on one number of each node that kernels alone read: a launch costs more than computing them again."""
    readers: dict[int, list[int]] = {}
    for position, op in enumerate(program.ops):
        for value in op.inputs:
            readers.setdefault(value, []).append(position)
    numbers: set[int] = set()
    for position in reversed(range(len(program.ops))):
        op = program.ops[position]
        reads = [program.ops[i] for i in op.inputs]
        number = op.kind == "map" or (op.kind == "contract" and not op.sums)
        of_node = op.domain in {Domain.SRC, Domain.DST, Domain.NODE}
        if not number or not of_node or op.shape or any(read.shape for read in reads):
            continue
        if position in program.outputs or all(read.kind == "count" for read in reads):
            continue  # a function of counts is kept beside the graph
        if all(reader in numbers or place_of(program, program.ops[reader]) != "host" for reader in readers.get(position, [])):
            numbers.add(position)
    return numbers


def numbers_of_edges(program: Program) -> set[int]:
    """Return the numbers of edges that are stored: those that sums of rows, or by source, would compute from two numbers or more.

    A source's edges lie anywhere among the destinations', so each number is a read of its own, and every thread of a row holds all of them: on an
    H200 a sum of rows by source took 4.6 ms on mag's graph (HGT's backward) where one with a single number took 1.5, and a sum of rows with a
    product behind it 2.4 ms on am's (RGAT) where one whose number is the row's took 1.2.
    """
    of_edges = [(i, op) for i, op in enumerate(program.ops) if op.domain is Domain.EDGE and op.kind in {"map", "contract"}]
    inline = {i for i, op in of_edges if place_of(program, op) == "inline"}

    def leaves(value: int) -> set[int]:
        if value not in inline:
            return {value} if program.ops[value].domain not in WEIGHTS else set()
        return set().union(*(leaves(i) for i in program.ops[value].inputs))

    sums = [op for op in program.ops if op.kind == "contract" and op.over is Domain.EDGE and op.sums]
    reading = [op for op in sums if op.shape or op.domain in {Domain.SRC, Domain.PAIR_SRC}]
    return {i for op in reading for i in op.inputs if i in inline and len(leaves(i)) > 1}


def exponentials_of_edges(program: Program) -> set[int]:
    """Return the exponentials of edges' numbers: each reads numbers of both pairs and of the node, and several kernels read it."""
    return {i for i, op in enumerate(program.ops) if is_exponential(op) and place_of(program, op) == "inline"}


def is_exponential(op: Op) -> bool:
    """Is it a softmax's exponential of an edge's score?"""
    return op.kind == "map" and op.function == "exp" and op.domain is Domain.EDGE and not op.shape


def outputs_of_edges(program: Program) -> set[int]:
    """Return the numbers of edges among the results, such as the gradient of an edge's features."""
    return {i for i in program.outputs if program.ops[i].domain is Domain.EDGE and place_of(program, program.ops[i]) == "inline"}
