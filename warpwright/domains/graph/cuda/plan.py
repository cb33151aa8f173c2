"""How a fused kernel is spread over a GPU: the parameters that a search may set, and what follows from them for one program.

    flat     nothing is reduced: a thread takes `unroll` vectors
    rows     the last axis is reduced: a group of threads takes a row
    columns  the last axis is not reduced: neighbouring threads take neighbouring columns, and several share one

A row (or column) that fits the registers of its threads is read once. Of longer ones several parts are reduced at once when there are too few to
fill the GPU: each phase is then a launch of its own, and begins by joining the parts of the phase before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from warpwright.domains.graph.cpp.layout import Layout
from warpwright.domains.graph.cpp.program import Program, Unsupported
from warpwright.domains.graph.ir import value

MULTIPROCESSORS = 132
"""Of an H100 or H200: how many blocks fill a GPU follows from it. Right on any GPU, best tuned for these."""
REGISTERS = {256: 96, 512: 64, 1024: 32}
"""Threads of a block -> values that each may keep in registers between phases."""
FULL = 8 * MULTIPROCESSORS
"""Blocks of 256 threads that an H200 holds at once: with fewer, long rows are split."""
LONG = 16384
"""A row up to this is never split: a second launch would cost more than it saves."""
SHARED_BYTES = 40 << 10


@dataclass(frozen=True)
class Tuning:
    """What a search may choose. Legal: block 128, 256, 512 or 1024; vector 1, 2 or 4; unroll 1, 2 or 4."""

    block: int = 256
    """Threads of a block."""
    vector: int = 4
    """Floats that a thread reads at once, at most."""
    unroll: int = 2
    """Vectors of a thread in a flat kernel; items that a thread reduces before it needs the others, in tens, elsewhere."""


DEFAULT = Tuning()


@dataclass(frozen=True)
class Plan:
    """The shape of a kernel."""

    order: str
    block: int
    vector: int
    group: int
    """Threads that share a row or column."""
    items: int
    """Vectors of a thread that are kept in registers; 0: none is, and each phase reads memory."""
    parts: int
    """Into which a row is cut; 1: one launch does all phases."""
    units: int
    """Rows, or columns of all rows."""
    length: int
    """Elements of a row or column."""
    unroll: int = 1

    @property
    def per_block(self) -> int:
        """Rows of a block, or neighbouring columns of a block."""
        return self.block // self.group


def plan(program: Program, layout: Layout, tuning: Tuning) -> Plan:
    """Return the plan of a program; Unsupported when it has too many elements to count."""
    vector = 1 if layout.order == "columns" else _vector(program, layout, tuning.vector)
    if layout.order == "flat":
        return Plan("flat", tuning.block, vector, 1, 0, 1, layout.rows, layout.length, tuning.unroll)
    return _columns(layout, tuning) if layout.order == "columns" else _rows(layout, tuning, vector)


def _vector(program: Program, layout: Layout, widest: int) -> int:
    """Return how many neighbours one access may take: all rows of all tensors have to begin at a multiple of it."""
    loops = [*layout.outer, *layout.inner[:-1]]
    last = layout.inner[-1]
    width = widest
    for tensor, step in enumerate(last.strides):
        if step:
            while width > 1 and any(loop.strides[tensor] % width for loop in loops):
                width //= 2
    while width > 1 and last.size % width:
        width //= 2
    return width


def _power_of_two(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _rows(layout: Layout, tuning: Tuning, vector: int) -> Plan:
    rows, length = layout.rows, layout.length
    vectors = -(-length // vector)
    per_thread = max(1, 8 * tuning.unroll // vector)  # vectors of a thread in a short row: 16 floats unless tuned otherwise
    if vectors <= 32 * per_thread:
        group = min(32, _power_of_two(-(-vectors // per_thread)) if vectors > per_thread else 1)
        group = max(group, min(32, _power_of_two(vectors)) if rows * group < 2048 * MULTIPROCESSORS else group)
        return Plan("rows", tuning.block, vector, group, -(-vectors // group), 1, rows, length)
    few = rows < FULL // 2 and length > LONG
    block = max(min(1024, _power_of_two(-(-vectors // per_thread))), 64)
    items = -(-vectors // block)
    if items * vector <= 32 and not (few and rows < MULTIPROCESSORS):
        return Plan("rows", block, vector, block, items, 1, rows, length)
    if not few:
        return Plan("rows", 1024, vector, 1024, 0, 1, rows, length)
    block = tuning.block
    parts = max(1, min(-(-FULL // rows), length // (block * vector * 2)))
    return Plan("rows", block, vector, block, 0, parts, rows, length)


def _columns(layout: Layout, tuning: Tuning) -> Plan:
    assert layout.lanes is not None
    rows, length, lanes = layout.rows, layout.length, layout.lanes.size
    block = tuning.block
    widest = block // 32 if lanes >= 32 else block // min(32, _power_of_two(lanes))
    group = min(widest, _power_of_two(-(-length // (8 * tuning.unroll))))
    blocks = rows * -(-lanes // (block // group))
    items = -(-length // group)
    if items <= 32:
        return Plan("columns", block, 1, group, items, 1, rows * lanes, length)
    parts = 1
    if blocks < FULL // 2 and length >= 256:
        parts = max(1, min(-(-FULL // blocks), length // (group * 4)))
    return Plan("columns", block, 1, group, 0, parts, rows * lanes, length)


def counted(program: Program) -> str:
    """Return the type that counts elements."""
    tensors = [value(node) for node, _ in (*program.operands, *program.outputs)]
    largest = max((t.numel() for t in tensors), default=0)
    largest = max(largest, math.prod(program.sizes))
    if largest >= 2**40:
        raise Unsupported("too many elements")
    return "int" if largest < 2**31 - 2**20 else "long long"


TYPES = {torch.float32: "float", torch.int64: "long long", torch.int32: "int", torch.bool: "bool", torch.uint8: "unsigned char"}
