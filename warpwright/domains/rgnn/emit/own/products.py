"""Rows of (source, relation) pairs, each a node's row times its relation's weight, by one CUDA kernel (products.cu): what attention reads.

Triton's kernel takes 89 us for fb15k's 195,000 pairs of 474 relations, 84 for bgs' 270,000 and 0.84 ms for am's 3.3 million, on an H200, where
the bytes take 13, 17 and 210 from memory. HGT's keys and values are one launch here.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from warpwright.domains.rgnn.emit.own.kernel import Launch, Own, dense, numbers_of_a_check
from warpwright.domains.rgnn.emit.own.kinds import STRUCT, Kinds
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain

WIDEST = 64
"""Numbers of a row, and of a result."""
ROWS, PITCH, THREADS = 64, 80, 256
"""Those of products.cu."""
SHARED = (8 * 8 * 32 * 4 + ROWS * PITCH) * 4
"""Bytes of a block: the weight's fragments, and the rows."""
FULL, SET_UP = 396, 3
"""Blocks of rows that an H200 runs at once, and how long to make a block's weight takes, in times of 64 rows.

So about it fits: with 64 rows a block mutag's 69,500 pairs took 91 us, and bgs' 270,000 with 320 a block 167, where nodes' keys and values took 16
and 44 and their pairs 36 and 115. By these blocks it is 48 and 157, beside the queries.
"""
BLOCKS, MOST = 800, 16
"""Blocks, about, from which each takes more than 64 rows with one weight; and how many times 64 at most."""


@dataclass(frozen=True)
class Side:
    """What is multiplied: rows [nodes, depth] and weight [relations, depth, width]."""

    rows: torch.Tensor
    weight: torch.Tensor
    base: torch.Tensor | None = None
    """What is added to each relation's rows [relations, width]."""
    scale: torch.Tensor | None = None
    """What each relation's weight is multiplied by [relations]."""


def messages(index: Index, sides: Sequence[Side]) -> list[torch.Tensor] | None:
    """Return the rows of all pairs [pairs, width] for one or two sides of one shape; None where there is no such kernel or it does not take them."""
    launch = KERNEL.launcher(index.device) if takes(sides) else None
    return None if launch is None else computed(launch, index, sides)


def takes(sides: Sequence[Side]) -> bool:
    """Does the kernel take these rows and weights?"""
    tensors = [x for side in sides for x in (side.rows, side.weight, side.base, side.scale) if x is not None]
    shapes = {side.weight.shape for side in sides}
    sizes = all(0 < n <= WIDEST and n % 4 == 0 for shape in shapes for n in shape[1:])
    return 0 < len(sides) <= 2 and len(shapes) == 1 and sizes and all(x.dtype is torch.float32 for x in tensors)


def computed(launch: Launch, index: Index, sides: Sequence[Side], each: int = 0) -> list[torch.Tensor]:
    """Return the same by a launch. `each`: pairs of a block; 0: as the graph's number of pairs suggests."""
    pairs, (_, depth, width) = index.rows[Domain.PAIR_SRC], sides[0].weight.shape
    whole = sides[0].rows.new_empty(len(sides), pairs, width)
    table = table_of(index, each)
    first, second = sides[0], sides[-1]
    given = [dense(y) for pair in ((first.rows, second.rows), (first.weight, second.weight)) for y in pair]
    others = [None if y is None else dense(y) for y in (first.base, second.base, first.scale, second.scale)]
    outs = [dense(whole[0]), whole[-1]]
    if pairs:
        launch(table.shape[0] * len(sides), table, index.lift(Domain.SRC, Domain.PAIR_SRC), *given, *others, *outs, depth, width, len(sides))
    return list(whole.unbind())


def table_of(index: Index, each: int = 0) -> torch.Tensor:
    """Return the blocks of a graph's pairs, kept beside it; `each`: as `computed`'s."""
    pairs = index.rows[Domain.PAIR_SRC]
    each = each or ROWS * min(MOST, max(1, pairs // (ROWS * BLOCKS)))
    return index.keep(("pairs in blocks", each), lambda: blocks(index, each))


@dataclass(frozen=True)
class Composed:
    """Two products one after the other, of which only the last is made: rows of node types, then of relations."""

    linear: torch.Tensor
    """[types, 3 * width, depth]: the first and the last third are taken."""
    bias: torch.Tensor
    """[types, 3 * width]."""
    first: torch.Tensor
    """[relations, width, width]: what comes after the first third, and after the last."""
    last: torch.Tensor
    scale: torch.Tensor
    """What the relations' first is multiplied by [relations], and by `factor`."""
    kinds: torch.Tensor
    """The type of each relation's sources, int32."""
    factor: float = 1.0


@functools.lru_cache(maxsize=256)
def steps_of_block(pairs: int, relations: int) -> int:
    """Return how many times 64 pairs a block takes that makes its weight first: those that are done soonest, with one of a relation half full."""

    def time(steps: int) -> float:
        blocks, each = 2 * (pairs / (ROWS * steps) + relations / 2), SET_UP + steps
        return each if blocks <= FULL else each * (blocks / FULL + 0.5)

    return min(range(1, MOST + 1), key=time)


def fits(of: Composed) -> bool:
    """Does the kernel take these weights?"""
    tensors, width = (of.linear, of.bias, of.first, of.last, of.scale), of.first.shape[2]
    plain = all(x.dtype is torch.float32 and x.is_contiguous() for x in tensors)
    return plain and of.first.shape == of.last.shape and all(0 < n <= WIDEST and n % 4 == 0 for n in (width, of.linear.shape[2]))


def composed(launch: Launch, index: Index, rows: bytes, of: Composed, each: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return both rows of all pairs [pairs, width] for the nodes' own rows, which lie at `rows` (kinds.places). `each`: pairs of a block."""
    pairs, width, depth = index.rows[Domain.PAIR_SRC], of.first.shape[2], of.linear.shape[2]
    keys, values = of.linear.new_empty(2, pairs, width)
    table = table_of(index, each or ROWS * steps_of_block(pairs, index.relations))
    if pairs:
        given = of.linear, of.bias, of.first, of.last, of.scale, keys, values
        launch(table.shape[0] * 2, table, index.lift(Domain.SRC, Domain.PAIR_SRC), of.kinds, rows, *given, depth, width, of.factor)
    return keys, values


def blocks(index: Index, each: int) -> torch.Tensor:
    """Return the pairs in blocks of one relation: relation, first pair and pairs of each, int32 [blocks, 3]. Made without waiting for the device."""
    pairs, relations = index.rows[Domain.PAIR_SRC], index.relations
    start = index.relation_starts(Domain.PAIR_SRC).long()
    needed = (start.diff() + each - 1) // each
    ends = needed.cumsum(0)
    block = torch.arange(pairs // each + relations, device=index.device)  # at least as many as there are
    of = torch.searchsorted(ends, block, right=True)
    used, of = of < relations, of.clamp(max=relations - 1)
    first = start[of] + (block - (ends - needed)[of]) * each
    count = torch.where(used, torch.minimum(start[of + 1] - first, torch.full_like(first, each)), 0)
    return torch.stack([of, first, count], 1).int()


def right_on(launch: Launch, device: torch.device) -> bool:
    """Are the results of a small example right? One relation has no pairs, and one has two blocks, of which one takes two steps."""
    random = numbers_of_a_check()
    nodes, edges, relations = 150, 220, 3
    kind = 2 * (torch.arange(edges) % 10 == 0)
    source, target = (torch.randint(nodes, (edges,), generator=random) for _ in range(2))
    source[:150], target[:150] = torch.arange(nodes), 0
    index = Index(source.to(device), target.to(device), kind.to(device), nodes, nodes, relations)
    of, relation = (index.lift(domain, Domain.PAIR_SRC).long().cpu() for domain in (Domain.SRC, Domain.ETYPE))
    found, wanted = [], []
    for depth, width, based in ((WIDEST, WIDEST, False), (20, 12, True)):
        shapes = (nodes, depth), (relations, depth, width), (relations, width), (relations,)
        drawn = [[torch.randn(*shape, generator=random) for shape in shapes] for _ in (0, 1)]
        sides = [Side(*(x.to(device) for x in (one if based else one[:2]))) for one in drawn]
        found += computed(launch, index, sides, 2 * ROWS) + computed(launch, index, sides[1:], ROWS)
        for rows, weight, base, scale in (*drawn, drawn[1]):
            exact = torch.einsum("pk,pkn->pn", rows[of].double(), weight.double()[relation])
            wanted.append(exact * scale[relation, None] + base[relation] if based else exact)
    return all(float((a.double().cpu() - b).norm()) <= 1e-6 * float(b.norm()) for a, b in zip(found, wanted, strict=True))


def right_of_rows(launch: Launch, device: torch.device) -> bool:
    """Are the results of a small example of rows right? Two types lie apart, and a relation's block takes two steps."""
    random, counts = numbers_of_a_check(), (90, 30)
    kind = torch.arange(200) % 3
    source = torch.where(kind == 1, 90 + torch.randint(30, (200,), generator=random), torch.randint(90, (200,), generator=random))
    index = Index(source.to(device), torch.zeros(200, dtype=torch.long, device=device), kind.to(device), 120, 120, 4)
    types = torch.tensor([0, 1, 0, 1])
    of, relation = (index.lift(domain, Domain.PAIR_SRC).long().cpu() for domain in (Domain.SRC, Domain.ETYPE))
    found: list[torch.Tensor] = []
    wanted: list[torch.Tensor] = []
    for depth, width in ((WIDEST, WIDEST), (20, 12)):
        shapes = (120, depth), (2, 3 * width, depth), (2, 3 * width), (4, width, width), (4, width, width), (4,)
        x, linear, bias, first, last, scale = (torch.randn(*shape, generator=random) for shape in shapes)
        parts = [part.clone() for part in x.to(device).split(counts)]
        a, b, c, d, e, f = (y.to(device) for y in (linear, bias, first, last, scale, types.int()))
        given = Composed(a, b, c, d, e, f, factor=0.5)
        found += composed(launch, index, Kinds((), counts).places_of(parts), given, 2 * ROWS)
        thirds = linear.double().view(2, 3, width, depth)[types], bias.double().view(2, 3, width)[types]
        for place, after in ((0, 0.5 * first.double() * scale.double()[:, None, None]), (2, last.double())):
            own = torch.einsum("pi,poi->po", x.double()[of], thirds[0][relation, place]) + thirds[1][relation, place]
            wanted.append(torch.einsum("po,pon->pn", own, after[relation]))
    return all(float((a.double().cpu() - b).norm()) <= 1e-5 * float(b.norm()) for a, b in zip(found, wanted, strict=True))


OF_ROWS = Own(
    "products.cu", "pair_products_of_rows", ("P", "P", "P", STRUCT, *"P" * 7, "q", "q", "f"), THREADS, SHARED + 4 * 64 * 4, right_of_rows,
    "rows of pairs from nodes' rows", ("tensor.cu",),
)  # fmt: skip
KERNEL = Own("products.cu", "pair_products", "P" * 12 + "q" * 3, THREADS, SHARED, right_on, "rows of pairs", ("tensor.cu",))
