"""How a fused kernel is spread over a GPU: the parameters that a search may set, and what follows from them for one program.

    flat     nothing is reduced: a thread takes `unroll` vectors
    crossed  the same, but some operands lie in another order: a block reads a tile of those into shared memory, and turns it there
    rows     the last axis is reduced: a group of threads takes a row
    columns  the last axis is not reduced: neighbouring threads take neighbouring columns, and several share one

A row (or column) that fits the registers of its threads is read once; so is a row that fits those of TOGETHER blocks, which wait for one another's
sums between phases. A longer one is cut into parts, each the work of a block in each phase; what reads it again comes soon enough to find it in the
L2 cache (`Chunks`).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import torch

from warpwright.domains.graph.cpp.layout import Layout, Loop
from warpwright.domains.graph.cpp.program import Program, Unsupported
from warpwright.domains.graph.ir import value

MULTIPROCESSORS = 132
"""Of an H100 or H200: how many blocks fill a GPU follows from it. Right on any GPU, best tuned for these."""
REGISTERS = {256: 96, 512: 64, 1024: 32}
"""Threads of a block -> values that each may keep in registers between phases."""
HELD = 48
"""Elements of a row, one value of each, that each of 1,024 threads may keep: they have 64 registers, and about 15 of them are addresses."""
THREADS = 2048 * MULTIPROCESSORS
"""That it holds at once."""
CHUNK_BYTES = 16 << 20
"""Of rows that do not fit registers as many are worked on at once as an L2 of 50 MB surely holds, together with what is written meanwhile."""
LARGE, SMALL = 16384, 16
"""Elements of a part, and those of a thread in the smallest one. Each part draws its work and counts itself as done, by atomic additions to a few
addresses: softmax of 4,096 rows of 1.6 MB took 6.3 ms on an H200 in parts of 4,096 elements and 5.5 in parts of 16,384."""
FAR_BYTES, FAR = 32 << 20, 4 * LARGE
"""From how many bytes on nothing of a row is left in an L2 when it is read once more, and elements of a part of such a row: all rows are read
before the first is read again, so no block waits, and nothing asks for small parts. A batch norm of 67 MB a channel (KernelBench's 1:33) takes
3.14 ms on an H200 so, 3.27 in parts of 16,384 elements whose phases take turns (results/streams_h200)."""
SHORT, MANY_COLUMNS = 128, THREADS
"""Elements of a column that is read once and that a thread reads by itself; columns from which on longer ones are read in strips."""
STRIP, STRIP_BLOCK = 128, 512
"""Neighbouring columns of a block that has no others, and its threads. The blocks that run at once then read one piece of memory, and thousands of
blocks end evenly: of rows of 4,095 (KernelBench's 1:47) an H200 read 4.31 TB/s so, 4.22 in strips of 32 by 256 threads, and 3.97 in blocks of 256
columns and half of the rows (results/streams_h200)."""
FEW_LANES = 16
"""Neighbouring columns of a block, 64 bytes of a row, where blocks of 32 leave half of the multiprocessors idle and elements are read again: more
threads share a column. Of 256 x 1,024 elements blocks of 32 columns take 32 multiprocessors of 132, on which each of 8 warps carries out 1,104
instructions; blocks of 16 take 64, and 624 instructions."""
ONLY_READ = 2
"""Times as many elements a thread of a block has where its threads wait for one another within a row, and only results of rows are written: more rows
are on their way then. logsumexp of rows of 4,096 took 120 us in place of 154 on an H200; softmax, which writes as much as it reads, 134 and 131."""
OF_HALVES = 16
"""Elements of a thread in a short row, times the unroll, where each is of two bytes: as many bytes are on their way as by 8 of four bytes. Rows of
4,096 in bfloat16 took 170 us (softmax) and 166 (layer norm) on an H200 by 8, 139 and 134 by 16, 134 and 135 by 32."""
FLAT_BLOCK = 128
"""Threads of a block where nothing is reduced, at most: on an H200 maps took 0.4 and 0.7 % less than with 256, and 1.0 and 1.6 less than with 512."""
TOGETHER, TOGETHER_BLOCK = 16, 512
"""Blocks at most that share a row whose elements stay in their registers, and threads of each: two of them on a multiprocessor, so that one moves
data while the other waits. A block waits for others of its row that may not have begun. They do begin: blocks draw their work in order, so only the
last row drawn lacks some, and all other blocks end. So a GPU needs room for TOGETHER blocks, eight multiprocessors."""
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
    unroll: int = 1
    """Vectors of a thread in a flat kernel; elsewhere a thread takes about 8 elements of a short row (OF_HALVES of two bytes each), and 16 of a part
    of a long one, times this. Of a long column it reads four elements, times this, before it uses the first: with four a multiprocessor has 32 KB on
    their way."""


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
    wide: int = 0
    """Crossed only: neighbours of a result in a tile."""
    loose: frozenset[int] = frozenset()
    """Operands whose rows do not begin at multiples of a vector: each element is read for itself."""
    written: int = 1
    """Crossed only: neighbours of a result that a thread writes at once."""
    tile: int = 0
    """Crossed only: elements of a tile."""

    @property
    def together(self) -> bool:
        """Do several blocks keep a row in their registers?"""
        return self.parts > 1 and self.items > 0

    @property
    def per_block(self) -> int:
        """Rows of a block, or neighbouring columns of a block."""
        return self.block // self.group


@dataclass(frozen=True)
class Chunks:
    """The order of work where rows have parts: chunks of rows, and in each step phase p of chunk `step - p`; of a single chunk its phases in turn.

    Blocks draw numbers in turn, so that whatever a block waits for was drawn before, by a block that runs or is done.
    """

    count: int
    blocks: int
    """Rows (of columns: blocks of them) of a chunk."""
    items: int
    """Numbers of one phase of one chunk: blocks times parts."""

    def grid(self, phases: int) -> int:
        """Return how many numbers are drawn in all."""
        return (self.count + phases - 1) * phases * self.items if self.count > 1 else phases * self.items


def chunks(shape: Plan, blocks: int, row_bytes: int) -> Chunks:
    """Return the chunks of `blocks` rows (or blocks of columns) that read `row_bytes` each again; one chunk where nothing is read again.

    In chunks the blocks that finish rows are drawn among those that read, and wait on the multiprocessors for what was drawn just before them: half
    of the room. KernelBench's 1:47, sums of 4,096 rows, took 2.66 ms on an H200 so, where torch took 2.13 (results/kernelbench_whole_h200). So does
    a row of which L2 would keep nothing.
    """
    row_bytes = row_bytes if row_bytes < FAR_BYTES else 0
    at_once = max(1, min(blocks, CHUNK_BYTES // row_bytes)) if row_bytes else blocks
    count = -(-blocks // at_once)
    return Chunks(count, at_once, at_once * shape.parts)


def plan(program: Program, layout: Layout, tuning: Tuning, phases: int, strided: Mapping[int, int] = MappingProxyType({})) -> Plan:
    """Return the plan of a program that goes over its elements `phases` times. `strided`: operand -> its offset, where it is not contiguous."""
    if program.moves and layout.order not in ("flat", "rows"):
        raise Unsupported("other places in tensors that are read by columns")
    if program.sums and layout.order != "flat":
        raise Unsupported("sums at indices beside reductions, or in tiles")
    sums = {t: target.move for t, (node, _) in enumerate(program.outputs, len(program.operands)) if (target := program.sums.get(node))}
    for move in (*(move for moves in program.moves.values() for move in moves if move.kind == "gather"), *sums.values()):
        if any(loop.strides[move.index] for loop in layout.inner[:-1]):
            raise Unsupported("an index for each element of several loops")
    if layout.order == "columns":
        return _columns(layout, tuning, phases)
    if layout.order == "crossed":
        return _crossed(program, layout, strided)
    widest = 1 if program.sums else 2 * tuning.vector if _halves(program) else tuning.vector  # additions of a warp to neighbours are one transaction
    vector = _vector(layout, widest, {*strided, *program.moves})
    loops = [*layout.outer, *layout.inner[:-1]]
    loose = {t for t, offset in strided.items() if offset % vector or any(loop.strides[t] % vector for loop in loops)}
    loose |= {t for t in program.moves if _uneven(program, layout, t, vector)}
    gathers = [(t, move.index) for t, moves in program.moves.items() for move in moves if move.kind == "gather"]
    gathers += [(t, move.index) for t, move in sums.items()]
    bags = [move.bag for moves in program.moves.values() for move in moves if move.bag is not None]
    loose |= {operand for bag in bags for operand in (bag.index, bag.offsets, bag.weights, bag.lengths) if operand >= 0}
    loose |= {index for _, index in gathers} | {t for t, index in gathers if layout.inner[-1].strides[index]}
    if layout.order == "flat":
        chosen = Plan("flat", min(tuning.block, FLAT_BLOCK), vector, 1, 0, 1, layout.rows, layout.length, tuning.unroll)
    else:
        results = range(len(program.operands), len(layout.inner[-1].strides))
        written = any(loop.strides[t] for t in results for loop in layout.inner)
        chosen = _rows(layout, tuning, vector, phases, written, _halves(program))
        if phases > 1 and not chosen.items and any(move.kind in ("sample", "bag") for moves in program.moves.values() for move in moves):
            raise Unsupported("resampling or bags that each reading of a row would work out again")
    return replace(chosen, loose=frozenset(loose))


TILE = 4096
"""Elements of a tile of each operand that lies in another order; twice as many of one of two bytes each. So 128 bytes of a row are read and 512 are
written at once: with 256 an H200 wrote the results of a float16 convolution at 2.7 TB/s, where it wrote those of a float32 one at 3.5 by 512."""


def _crossed(program: Program, layout: Layout, strided: Mapping[int, int]) -> Plan:
    """Return the plan of a program in tiles; `vector` is that of the reads of crossed operands, `written` that of the rest.

    One result at a time took about 60 instructions an element, which bound a kernel that turns float16 back (587 us on an H200, where its bytes take
    372); four at a time take 22, by what the compiler makes of both. Rows of 131,070 (KernelBench's 1:67) begin at even places: two at a time.
    """
    across, along = layout.inner
    loops = [*layout.outer, along]
    halves = all(value(program.operands[t][0]).element_size() == 2 for t in layout.crossed)
    tile = 2 * TILE if halves and len(layout.crossed) == 1 else TILE
    wide = min(_power_of_two(along.size), max(128, tile // _power_of_two(across.size)))
    floats = all(value(program.operands[t][0]).is_floating_point() for t in layout.crossed)
    widths = (width for width in (8 if halves else 4, 4, 2) if across.size % width == 0 and floats)
    vector = next((width for width in widths if _begin_at(layout.crossed, loops, strided, width)), 1)
    if 4 * TILE * len(layout.crossed) > SHARED_BYTES:
        raise Unsupported("more tensors in another order than shared memory has room for")
    inputs = len(program.operands)
    results = range(inputs, len(along.strides))
    small = all(value(node).element_size() == 2 for node, _ in program.outputs)
    loops = [*layout.outer, across]
    written = next((width for width in (8 if small else 4, 4, 2) if along.size % width == 0 and _begin_at(results, loops, {}, width)), 1)
    plain = [t for t in range(inputs) if t not in layout.crossed]
    loose = frozenset(t for t in plain if written == 1 or not along.strides[t] or not _begin_at([t], loops, strided, written))
    return Plan("crossed", 256, vector, 1, 0, 1, layout.rows, layout.length, 1, wide, loose, written, tile)


def _begin_at(tensors: Iterable[int], loops: Sequence[Loop], strided: Mapping[int, int], width: int) -> bool:
    """Do all rows of these tensors begin at a multiple of `width`?"""
    return all(strided.get(t, 0) % width == 0 and not any(loop.strides[t] % width for loop in loops) for t in tensors)


def _uneven(program: Program, layout: Layout, t: int, vector: int) -> bool:
    """May a vector of an operand that has other places begin between multiples of it, or lie in two of its places?"""
    along = layout.inner[-1]
    moved = [move for move in program.moves[t] if along.axis in move.axes]
    if any(move.kind in ("sample", "bag") or move.start % vector or move.size % vector for move in moved):
        return True
    tensor = value(program.operands[t][0])
    steps = [*tensor.stride(), *(loop.strides[t] for loop in (*layout.outer, *layout.inner[:-1]))]
    return tensor.dim() == 0 or tensor.shape[-1] % vector != 0 or any(step % vector for step in steps if step != 1)


def _vector(layout: Layout, widest: int, strided: Collection[int]) -> int:
    """Return how many neighbours one access may take: all rows of all tensors but those `strided` have to begin at a multiple of it."""
    loops = [*layout.outer, *layout.inner[:-1]]
    last = layout.inner[-1]
    width = widest
    for tensor, step in enumerate(last.strides):
        if step and tensor not in strided:
            while width > 1 and any(loop.strides[tensor] % width for loop in loops):
                width //= 2
    while width > 1 and last.size % width:
        width //= 2
    return width


def _halves(program: Program) -> bool:
    """Are all tensors of more than a row of two bytes an element?"""
    tensors = [value(node) for node, _ in (*program.operands, *program.outputs)]
    largest = max(t.numel() for t in tensors)
    return all(t.element_size() <= 2 for t in tensors if 2 * t.numel() > largest)


def _power_of_two(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _rows(layout: Layout, tuning: Tuning, vector: int, phases: int, written: bool, halves: bool) -> Plan:
    """Return the plan of rows; `written`: is a result as large as they are? `halves`: are elements of two bytes each?"""
    rows, length = layout.rows, layout.length
    vectors = -(-length // vector)
    per_thread = max(1, (OF_HALVES if halves else 8) * tuning.unroll // vector)  # vectors of a thread in a short row
    if vectors <= 32 * per_thread:
        group = min(32, _power_of_two(-(-vectors // per_thread)))
        while group < min(32, vectors) and rows * group < THREADS:
            group *= 2
        return Plan("rows", tuning.block, vector, group, -(-vectors // group), 1, rows, length)
    more = 1 if written or phases == 1 else ONLY_READ
    block = max(min(1024, _power_of_two(-(-vectors // (more * per_thread)))), 64)
    items = -(-vectors // block)
    few = rows < MULTIPROCESSORS and length > LONG
    if items * vector <= HELD and not few:
        return Plan("rows", block, vector, block, items, 1, rows, length)
    least = -(-length // (HELD * TOGETHER_BLOCK))
    if phases > 1 and least <= TOGETHER and rows * TOGETHER >= MULTIPROCESSORS:
        parts = max(least, min(TOGETHER, 2 * MULTIPROCESSORS // rows, vectors // TOGETHER_BLOCK, length // LONG))
        share = -(-vectors // (parts * TOGETHER_BLOCK))
        return Plan("rows", TOGETHER_BLOCK, vector, TOGETHER_BLOCK, share, parts, rows, length)
    return _parts(Plan("rows", tuning.block, vector, tuning.block, 0, 1, rows, length), tuning.unroll, phases)


def _columns(layout: Layout, tuning: Tuning, phases: int) -> Plan:
    assert layout.lanes is not None
    units, length, block = layout.rows * layout.lanes.size, layout.length, tuning.block
    group = 1
    while 2 * group <= length and (units * group < THREADS or length > group * 8 * tuning.unroll) and group < block // 32:
        group *= 2
    while phases > 1 and length > 32 * group and group < 32:  # to be read once
        group *= 2
        block = max(block, 32 * group)
    if phases == 1 and units >= MANY_COLUMNS:
        group = 1
        if length > SHORT:
            block = max(block, STRIP_BLOCK)
            group = block // STRIP
    while phases > 1 and -(-length // group) <= 32 and 2 * group <= min(length, block // FEW_LANES) and 2 * units * group <= MULTIPROCESSORS * block:
        group *= 2
    whole = Plan("columns", block, 1, group, -(-length // group), 1, units, length, tuning.unroll)
    if whole.items <= 32 or (phases == 1 and length <= SHORT):
        return whole
    return _parts(replace(whole, items=0), tuning.unroll, phases)


def _parts(whole: Plan, unroll: int, phases: int) -> Plan:
    """Return the plan with rows in parts: `unroll` times LARGE elements of a block, or fewer where that would leave multiprocessors idle.

    In a single phase, in which no block waits for another, there are no more parts than fill the GPU twice.
    """
    blocks = -(-whole.units // whole.per_block)
    most = min(1024, -(-whole.length // (whole.group * SMALL * unroll)))
    if phases == 1:
        return replace(whole, parts=min(most, -(-2 * THREADS // (whole.block * blocks))))
    elements = whole.length * whole.per_block
    far = 4 * elements >= FAR_BYTES and blocks * (elements // (FAR * unroll)) >= 4 * THREADS // whole.block
    at_once = max(1, min(blocks, CHUNK_BYTES // (4 * elements)))
    few = -(-elements // (unroll * (FAR if far else LARGE)))
    return replace(whole, parts=min(most, max(few, -(-2 * MULTIPROCESSORS // at_once))))


def counted(program: Program) -> str:
    """Return the type that counts elements."""
    tensors = [value(node) for node, _ in (*program.operands, *program.outputs)]
    largest = max((1 + sum((size - 1) * step for size, step in zip(t.shape, t.stride(), strict=True)) for t in tensors), default=0)
    largest = max(largest, math.prod(program.sizes))
    if largest >= 2**40:
        raise Unsupported("too many elements")
    return "int" if largest < 2**31 - 2**20 else "long long"


TYPES = {
    torch.float32: "float", torch.bfloat16: "bf16", torch.float16: "f16", torch.int64: "long long", torch.int32: "int", torch.bool: "bool",
    torch.uint8: "unsigned char",
}  # fmt: skip
