"""Sums of rows over the edges of pairs, times the relation's weight, by one CUDA kernel (gathered.cu), on large graphs.

Triton holds a step's rows and the weight's fragments in registers, 158 to 222 a thread, so twelve warps are on a multiprocessor. Here sums go through
shared memory, and 24 warps are there. On am's graph (5.7 million edges, an H200) a training step takes 4.45 ms so and 4.95 by Triton (RGCN), 9.0 and
9.4 (RGAT), 19.4 and 20.1 (HGT); forwards, which add to rows of nodes and keep no sums, take as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from warpwright.domains.rgnn.emit.own.kernel import ALIGNED, Launch, Own, Side, dense
from warpwright.domains.rgnn.emit.places import is_product
from warpwright.domains.rgnn.emit.rows import Kernel as RowKernel
from warpwright.domains.rgnn.emit.rows import Schedule
from warpwright.domains.rgnn.emit.tiles import tiles
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.ir import Op
from warpwright.domains.rgnn.lattice import PAIRS, Domain
from warpwright.domains.rgnn.sorting.counting import Tiles

WIDEST = 64
"""Numbers of a row, and of a result."""
ROWS, PITCH, THREADS = 64, 80, 256
"""Those of gathered.cu."""
SHARED = (8 * 8 * 32 * 4 + ROWS * PITCH + 2 * ROWS) * 4
"""Bytes of a block: the weight's fragments, the sums, where the results go and the riders."""


@dataclass(frozen=True)
class Rider:
    """A pair's number times a row of its relation, added to the product (riding.py)."""

    result: int
    """Its own, in the same memory as the product's."""
    number: int
    vector: int


@dataclass(frozen=True)
class Gather:
    """Sums of rows and their products with a weight as the kernel takes them."""

    rows: Side
    number: Side | None
    """A number of each edge; None: one."""
    scale: Side | None
    """A number of each pair."""
    inverse: bool
    """Is it one over the value, and 0 for 0?"""
    weight: int
    turned: bool
    """Does a row meet the weight's columns?"""
    result: int
    sums: int | None
    """Those that are kept, before the product."""
    late: bool
    """Are sums kept without the pair's number?"""
    rider: Rider | None = None


def gather_of(schedule: Schedule, kernel: RowKernel) -> Gather | None:
    """Return a kernel over rows as the product of sums that it is; None for another one, or one of another form."""
    ops = schedule.program.ops
    products = [i for i in kernel.ops if is_product(ops[i])]
    if kernel.rows not in PAIRS or len(products) != 1 or products[0] not in kernel.stored:
        return None
    (result,) = products
    op = ops[result]
    matrix = next(i for i, letters in enumerate(op.subscripts[:-1]) if len(letters) == 2)
    weight, value = op.inputs[matrix], op.inputs[1 - matrix]
    shape = ops[weight].shape
    if len(op.inputs) != 2 or ops[weight].domain is not Domain.ETYPE or weight in kernel.ops or any(n % 4 or n > WIDEST for n in shape):
        return None
    turned = op.subscripts[matrix][0] == op.subscripts[-1]
    taken, scale = {result}, None
    if value in kernel.ops and not ops[value].sums:
        taken.add(value)
        scale, value = _parts(ops[value])
        if scale is None or ops[scale].shape or len(ops[value].shape) != 1:
            return None
    taken.add(value)
    kept, late = value if value in kernel.stored else None, scale is not None
    if value not in kernel.ops or ops[value].over is not Domain.EDGE or ops[value].domain is not kernel.rows:
        return None  # a product of rows that are there: Triton's kernels take 0.7 ms for am's, this one 0.8
    number, value = _parts(ops[value])
    if number is not None and ops[number].domain <= kernel.rows:
        if scale is not None:
            return None
        number, scale = None, number
    stored = {result} if kept is None else {result, kept}
    rider = _rider(schedule, kernel, result)
    if rider is not None:
        taken.add(rider.result)
        stored.add(rider.result)
    if taken != set(kernel.ops) or stored != set(kernel.stored) or value < 0 or value in schedule.inline or len(ops[value].shape) != 1:
        return None
    inverse = scale is not None and scale in schedule.inline and ops[scale].function == "inverse"
    scale = ops[scale].inputs[0] if scale is not None and inverse else scale
    numbers = [i for i in (number, scale) if i is not None]
    if any(i in kernel.ops or i in schedule.inline or ops[i].shape or ops[i].kind == "segmax" for i in numbers):
        return None
    if ops[value].domain <= kernel.rows or value in kernel.ops:
        return None  # a sum of a pair's own row over its edges
    of_number, of_scale = (None if i is None else Side(i, ops[i].domain) for i in (number, scale))
    return Gather(Side(value, ops[value].domain), of_number, of_scale, inverse, weight, turned, result, kept, late, rider)


def _rider(schedule: Schedule, kernel: RowKernel, result: int) -> Rider | None:
    """Return what rides with the product `result`."""
    ops = schedule.program.ops
    for position in kernel.stored:
        number, row = _parts(ops[position])
        alike = ops[position].over is kernel.rows and ops[position].domain is ops[result].domain and ops[position].shape == ops[result].shape
        if number is None or not alike or number in (*kernel.ops, *schedule.inline) or row in kernel.ops:
            continue
        if ops[number].domain is kernel.rows and not ops[number].shape and ops[number].kind == "contract" and ops[row].domain is Domain.ETYPE:
            return Rider(position, number, row)
    return None


def _parts(op: Op) -> tuple[int | None, int]:
    """Return the number and the row whose product a row's value, or a term of a sum, is; (None, -1) for a value of another form."""
    letters = op.subscripts[:-1]
    if op.kind != "contract" or op.subscripts[-1] != "a" or sorted(letters) not in (["a"], ["", "a"]):
        return None, -1
    row = letters.index("a")
    return op.inputs[1 - row] if len(letters) == 2 else None, op.inputs[row]


@dataclass
class Ready:
    """The sums and their products on one graph."""

    gather: Gather
    launch_: Launch
    indices: tuple[torch.Tensor | None, ...]
    """Of rows, numbers, scales and results (None: as they lie)."""
    work: Tiles
    count: int
    """Tiles; 0 where there are none."""
    cut: torch.Tensor | None
    """The pairs whose sums may be added in parts, and have to be zero in memory before; None where no sums are kept."""
    most: int
    """Edges of a chunk."""

    def launch(self, device: int, values: list[Any]) -> None:
        """Launch on the current stream."""
        gather, out = self.gather, values[self.gather.result]
        number, scale = (None if side is None else values[side.value].contiguous() for side in (gather.number, gather.scale))
        given = dense(values[gather.rows.value]), number, scale, dense(values[gather.weight])
        sums = None if gather.sums is None else values[gather.sums]
        place = out if not out.data_ptr() % ALIGNED else torch.zeros_like(out)
        rider = None if gather.rider is None else (values[gather.rider.number].contiguous(), dense(values[gather.rider.vector]))
        run(self.launch_, given, self.indices, place, sums, self.work, gather, self.most, rider)
        if place is not out:
            out.add_(place)


def run(
    launch: Launch, given: tuple[torch.Tensor | None, ...], indices: tuple[torch.Tensor | None, ...], out: torch.Tensor, sums: torch.Tensor | None,
    work: Tiles, gather: Gather, most: int, rider: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> None:  # fmt: skip
    """Compute the sums of `given` (rows, numbers, scales, weight) and their products. `rider`: numbers of rows, and rows of relations."""
    (x, number, scale, weight), (of_rows, of_number, of_scale, of_result) = given, indices
    assert weight is not None
    _, down, across = weight.shape
    depth, width, steps = (across, down, (1, across)) if gather.turned else (down, across, (across, 1))
    scaled = 0 if scale is None else (2 if gather.inverse else 1) + 4 * gather.late
    table = work.row, work.begin, work.end, work.first, work.relation, work.tile_begin, work.tile_end
    pointers = x, of_rows, number, of_number, scale, of_scale, weight, sums, out, of_result, *(rider or (None, None))
    launch(work.count, *pointers, *table, scaled, depth, width, *steps, most)


def ready(gather: Gather, schedule: Schedule, kernel: RowKernel, index: Index, many: int) -> Ready | None:
    """Return the kernel prepared for a graph; None where it has fewer than `many` rows, or the device has no such kernel."""
    launch = KERNEL.launcher(index.device) if index.rows[kernel.rows] >= many else None
    return None if launch is None else prepared(launch, gather, schedule, kernel, index)


def prepared(launch: Launch, gather: Gather, schedule: Schedule, kernel: RowKernel, index: Index) -> Ready:
    """Return the kernel prepared for a graph."""
    op, rows = schedule.program.ops[gather.result], kernel.rows

    def of_edges(side: Side | None) -> torch.Tensor | None:
        return None if side is None else index.order(rows) if side.domain is Domain.EDGE else index.along(rows, side.domain)

    def of_rows(side: Side | None) -> torch.Tensor | None:
        return None if side is None or side.domain is rows else index.lift(side.domain, rows)

    indices = of_edges(gather.rows), of_edges(gather.number), of_rows(gather.scale), of_rows(Side(gather.result, op.domain))
    work = tiles(index, rows, ROWS)
    count = work.count if work.row.numel() else 0
    cut = None if gather.sums is None else index.keep(("cut", rows), lambda: cut_rows(index, rows))
    return Ready(gather, launch, indices, work, count, cut, index.longest)


def cut_rows(index: Index, rows: Domain) -> torch.Tensor:
    """Return the rows of most edges, int64, among them all of as many edges as a chunk has, or more. Does not wait for the device."""
    lengths = index.start(rows).diff()
    return torch.topk(lengths, min(lengths.numel(), index.edges // index.longest), sorted=False).indices


MOST = 64
"""Edges of a chunk of the example."""


def right_on(launch: Launch, device: torch.device) -> bool:
    """Are the results of a small example right? It has a row cut in two, tiles of two steps, and weights as they lie and turned (with riders)."""
    random = torch.Generator().manual_seed(0)
    nodes, pairs, relations = 30, 3 * ROWS + 40, 3
    lengths = torch.randint(1, 5, (pairs,), generator=random)
    lengths[7] = MOST + 20
    begin = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
    edges = int(begin[-1])
    kind = torch.arange(pairs) * relations // pairs
    x, weight = torch.randn(nodes, 64, generator=random), torch.randn(relations, 64, 64, generator=random) / 8
    of, to = torch.randint(nodes, (edges,), generator=random), torch.randint(nodes, (pairs,), generator=random)
    number, scale = torch.randn(edges, generator=random), 0.5 + torch.rand(pairs, generator=random)
    by, vector = torch.randn(pairs, generator=random), torch.randn(relations, 64, generator=random)
    spans = [(p, int(begin[p]), int(begin[p + 1])) for p in range(pairs)]
    chunks = [(p, at, min(at + MOST, end), at == low) for p, low, end in spans for at in range(low, end, MOST)]
    row, first_edge, last_edge, first = (torch.tensor(column, dtype=torch.int32) for column in zip(*chunks, strict=True))
    start = torch.searchsorted(kind[row.long()].contiguous(), torch.arange(relations + 1)).int()
    numbers = torch.arange(relations, dtype=torch.int32)
    row, first_edge, last_edge, first, numbers, start = (t.to(device) for t in (row, first_edge, last_edge, first, numbers, start))
    work = Tiles(row, first_edge, last_edge, first, numbers, start[:-1].clone(), start[1:].clone(), start, 0)
    terms = (number[:, None].double() * x[of].double()) / scale.double().repeat_interleave(lengths)[:, None]
    summed = torch.zeros(pairs, 64, dtype=torch.float64).index_add_(0, torch.arange(pairs).repeat_interleave(lengths), terms)
    results = []
    for turned in (False, True):
        gather = Gather(Side(0, Domain.SRC), None, None, True, 0, turned, 0, None, False)
        given = (t.to(device) for t in (x, number, scale, weight))
        out, sums = torch.zeros(nodes, 64, device=device), torch.zeros(pairs, 64, device=device)
        rider = tuple(t.to(device) for t in (by, vector)) if turned else None
        run(launch, tuple(given), (of.int().to(device), None, None, to.int().to(device)), out, sums, work, gather, MOST, rider)  # type: ignore[arg-type]
        product = torch.stack([row @ (weight[k].double().t() if turned else weight[k].double()) for row, k in zip(summed, kind, strict=True)])
        product += by[:, None].double() * vector[kind].double() if turned else 0.0
        results += [(out, torch.zeros(nodes, 64, dtype=torch.float64).index_add_(0, to, product)), (sums, summed)]
    return all(float((a.double().cpu() - b).norm()) <= 1e-6 * float(b.norm()) for a, b in results)


KERNEL = Own("gathered.cu", "typed_gather", "P" * 19 + "q" * 6, THREADS, SHARED, right_on, "products of sums of rows", ("tensor.cu",))
