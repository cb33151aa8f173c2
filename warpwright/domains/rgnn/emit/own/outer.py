"""Weight gradients of many rows by one CUDA kernel (outer.cu): sums over the rows of each relation of left^T right, in float32.

Triton turns both operands on their way to the tensor cores: 1.17 ms for 3.7 million rows of an H200, 0.57 for 1.9 million that lie in order, whose
bytes take 0.46 and 0.24. Here a fragment is read from shared memory as the rows lie there.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpwright.domains.rgnn.emit.own.kernel import ALIGNED, Launch, Own, Side, dense
from warpwright.domains.rgnn.emit.places import is_gradient, is_total
from warpwright.domains.rgnn.emit.rows import Kernel as RowKernel
from warpwright.domains.rgnn.emit.rows import Schedule
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.ir import Op
from warpwright.domains.rgnn.lattice import PAIRS, Domain

WIDEST = 256
"""Numbers of a row: each tile of SIDE x SIDE of a result reads its columns of all rows."""
SIDE, ROWS, PITCH, STAGES, THREADS, RESIDENT = 64, 32, 72, 3, 128, 4
"""Those of outer.cu, and the blocks that a multiprocessor holds."""
LEAST = 8 * ROWS
"""Rows of a block: each adds 4,096 sums to memory, which all blocks of a small graph's rows add to."""
SHARED = STAGES * (2 * ROWS * PITCH + ROWS) * 4
"""Bytes of a block: the rows of the steps under way, and their factors."""


@dataclass(frozen=True)
class Outer:
    """A weight gradient as the kernel takes it."""

    left: Side
    right: Side
    scale: Side | None
    inverse: bool
    """Is the scale one over the value, and 0 for 0?"""
    result: int
    per_relation: bool
    total: int | None = None
    """The sum of the right rows."""


def outer_of(schedule: Schedule, kernel: RowKernel) -> Outer | None:
    """Return a kernel over rows as the weight gradient that it is; None for another one, or one of another form."""
    ops = schedule.program.ops
    found = [i for i in kernel.stored if is_gradient(ops[i])]
    totals = [i for i in kernel.stored if is_total(ops[i])]
    if len(found) != 1 or len(found) + len(totals) != len(kernel.stored) or len(totals) > 1 or kernel.rows not in PAIRS:
        return None
    (position,) = found
    op = ops[position]
    if any(size % 4 or size > WIDEST for size in op.shape) or any(ops[i].sums for i in kernel.ops if i not in (position, *totals)):
        return None
    sides: list[Side] = []
    scales: list[int] = []
    for value in op.inputs:
        own = value in kernel.ops
        number, row = _scaled(ops[value], ops) if own else (None, value)
        if row is None or row in kernel.ops or row in schedule.inline:
            return None
        sides.append(Side(row, ops[row].domain))
        scales += [number] if number is not None else []
    if len(scales) > 1 or any(not side.domain <= kernel.rows or len(ops[side.value].shape) != 1 for side in sides):
        return None
    turned = op.subscripts[-1] != "".join(op.subscripts[:-1])
    left, right = reversed(sides) if turned else sides
    total = totals[0] if totals else None
    if total is not None and (ops[total].inputs != (right.value,) or ops[total].domain is not op.domain):
        return None
    if not scales:
        return Outer(left, right, None, False, position, op.domain is Domain.ETYPE, total)
    value, inverse = scales[0], False
    if value in schedule.inline:
        if ops[value].function != "inverse":
            return None
        (value,), inverse = ops[value].inputs, True
    if value in kernel.ops or value in schedule.inline or ops[value].shape or ops[value].kind == "segmax":
        return None
    return Outer(left, right, Side(value, ops[value].domain), inverse, position, op.domain is Domain.ETYPE, total)


def _scaled(op: Op, ops: tuple[Op, ...]) -> tuple[int | None, int | None]:
    """Return the number and the row whose product a row's value is; (None, None) for a value of another form."""
    if op.kind != "contract" or op.sums or len(op.inputs) != 2 or sorted(op.subscripts[:-1]) != ["", "a"]:
        return None, None
    row = op.subscripts.index("a")
    return op.inputs[1 - row], op.inputs[row]


@dataclass
class Ready:
    """A weight gradient on one graph."""

    outer: Outer
    launch_: Launch
    indices: tuple[torch.Tensor | None, ...]
    """Of left, right and scale (None: the rows as they lie), then each row's relation (None: all have one matrix)."""
    rows: int
    count: int
    """Rows; 0 where there are none."""

    beside: bool = False
    """Is it launched beside other kernels, which it leaves half of each multiprocessor to?"""

    def positions(self) -> list[int]:
        """Return the positions of the result (that of rows alone, not of their sums), and of what is read."""
        outer = self.outer
        return [outer.result, *(side.value for side in (outer.left, outer.right, outer.scale) if side is not None)]

    def launch(self, device: int, values: list[Any]) -> None:
        """Launch on the current stream."""
        outer = self.outer
        left, right = (dense(values[side.value]) for side in (outer.left, outer.right))
        scale = None if outer.scale is None else values[outer.scale.value].contiguous()
        scaled = 0 if scale is None else 2 if outer.inverse else 1
        total, resident = None if outer.total is None else values[outer.total], RESIDENT // 2 if self.beside else RESIDENT
        add(self.launch_, left, right, values[outer.result], total, self.indices, scale, scaled, self.rows, resident)


def ready(outer: Outer, kernel: RowKernel, index: Index, many: int, beside: bool = False) -> Ready | None:
    """Return the gradient prepared for a graph; None where it has fewer than `many` rows, or the device has no such kernel."""
    rows = index.rows[kernel.rows]
    launch = launcher(index.device) if rows >= many else None
    if launch is None:
        return None

    def of(side: Side | None) -> torch.Tensor | None:
        return None if side is None or side.domain is kernel.rows else index.lift(side.domain, kernel.rows)

    relations = index.lift(Domain.ETYPE, kernel.rows) if outer.per_relation else None
    return Ready(outer, launch, (of(outer.left), of(outer.right), of(outer.scale), relations), rows, rows, beside)


def add(
    launch: Launch, left: torch.Tensor, right: torch.Tensor, out: torch.Tensor, total: torch.Tensor | None,
    indices: tuple[torch.Tensor | None, ...] = (None, None, None, None), scale: torch.Tensor | None = None, scaled: int = 0, rows: int = 0,
    resident: int = RESIDENT, more: Sequence[torch.Tensor] = (),
) -> None:  # fmt: skip
    """Add the sums over rows of left^T right to `out` [relations, height, width], and those of the right rows to `total` [relations, width].

    `resident`: blocks for each multiprocessor. `more`: up to two tensors like `right`, whose columns follow its own in `out` and `total`; left rows
    are read once for all of them.
    """
    of_left, of_right, of_scale, relations = indices
    rows, (height, width) = rows or left.shape[0], (left.shape[1], right.shape[1])
    parts = 1 + len(more)
    tiles = -(-height // SIDE) * -(-width // SIDE) * parts
    spans = max(1, _multiprocessors(left.device) * resident // tiles)
    each = max(LEAST, -(-rows // (spans * ROWS)) * ROWS)
    place = out if not out.data_ptr() % ALIGNED else torch.zeros_like(out)
    one, two = (*more, right, right)[:2]
    pointers = left, of_left, right, one, two, of_right, scale, of_scale, relations, place, total
    launch(-(-rows // each) * tiles, *pointers, rows, left.stride(0), right.stride(0), height, width, each, scaled, parts)
    if place is not out:
        out.add_(place)


def takes(x: torch.Tensor, g: torch.Tensor) -> bool:
    """Does the kernel take these rows as they lie?"""
    plain = all(y.is_cuda and y.dtype is torch.float32 and y.stride(1) == 1 and y.stride(0) % 4 == 0 and not y.data_ptr() % ALIGNED for y in (x, g))
    sizes = all(0 < y.shape[1] <= WIDEST and y.shape[1] % 4 == 0 for y in (x, g))
    return plain and sizes and launcher(x.device) is not None


@functools.cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def right_on(launch: Launch, device: torch.device) -> bool:
    """Are the sums of a small example right?"""
    random = torch.Generator().manual_seed(0)
    nodes, rows, relations = 40, 300, 5
    left, right = (torch.randn(nodes, 64, generator=random) for _ in range(2))
    of = [torch.randint(nodes, (rows,), generator=random, dtype=torch.int32) for _ in range(3)]
    scale, relation = 0.5 + torch.rand(nodes, generator=random), torch.arange(rows, dtype=torch.int32) * relations // rows
    out, total = torch.zeros(relations, 64, 64, device=device), torch.zeros(relations, 64, device=device)
    given = [x.to(device) for x in (left, right, scale, *of, relation)]
    add(launch, given[0], given[1], out, total, (given[3], given[4], given[5], given[6]), given[2], 2, rows)
    rows_of = left[of[0].long()].double() / scale[of[2].long()].double()[:, None], right[of[1].long()].double()
    wanted = torch.stack([rows_of[0][relation == r].T @ rows_of[1][relation == r] for r in range(relations)])
    pairs = (out, wanted), (total, torch.stack([rows_of[1][relation == r].sum(0) for r in range(relations)]))
    return all(float((a.double().cpu() - b).norm()) <= 1e-6 * float(b.norm()) for a, b in pairs)


KERNEL = Own("outer.cu", "typed_outer", "P" * 11 + "q" * 8, THREADS, SHARED, right_on, "weight gradients", ("tensor.cu",))


def launcher(device: torch.device) -> Launch | None:
    """Return what launches the kernel on a GPU; None where it is not used."""
    return KERNEL.launcher(device)
