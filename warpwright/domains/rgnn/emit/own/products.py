"""Rows of (source, relation) pairs, each a node's row times its relation's weight, by one CUDA kernel (products.cu): what attention reads.

Triton's kernel takes 89 us for fb15k's 195,000 pairs of 474 relations, 84 for bgs' 270,000 and 0.84 ms for am's 3.3 million, on an H200, where
the bytes take 13, 17 and 210 from memory. HGT's keys and values are one launch here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from warpwright.domains.rgnn.emit.own.kernel import Launch, Own, dense
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain

WIDEST = 64
"""Numbers of a row, and of a result."""
ROWS, PITCH, THREADS = 64, 80, 256
"""Those of products.cu."""
SHARED = (8 * 8 * 32 * 4 + ROWS * PITCH) * 4
"""Bytes of a block: the weight's fragments, and the rows."""
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
    each = each or ROWS * min(MOST, max(1, pairs // (ROWS * BLOCKS)))
    table = index.keep(("pairs in blocks", each), lambda: blocks(index, each))
    first, second = sides[0], sides[-1]
    given = [dense(y) for pair in ((first.rows, second.rows), (first.weight, second.weight)) for y in pair]
    others = [None if y is None else dense(y) for y in (first.base, second.base, first.scale, second.scale)]
    outs = [dense(whole[0]), whole[-1]]
    if pairs:
        launch(table.shape[0] * len(sides), table, index.lift(Domain.SRC, Domain.PAIR_SRC), *given, *others, *outs, depth, width, len(sides))
    return list(whole.unbind())


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
    random = torch.Generator().manual_seed(0)
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


KERNEL = Own("products.cu", "pair_products", "P" * 12 + "q" * 3, THREADS, SHARED, right_on, "rows of pairs", ("tensor.cu",))
