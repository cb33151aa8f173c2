"""Synthetic heterogeneous graphs with the counts of published data sets, for machines without a network, and adversarial ones.

Exact numbers of nodes, edges and relations; relation sizes fall as rank^-zipf; inverse relations share their endpoints; each relation has a domain
of sources and of destinations of its own, with power-law ranks in it. The statistics are those of the data sets as DGL and OGB load them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from warpwright.errors import UsageError


@dataclass(frozen=True)
class Spec:
    """Counts and skews of one data set."""

    nodes: tuple[int, ...]
    """Per type."""
    relations: int
    edges: int
    zipf: float = 0.9
    inverse: bool = True
    """Relations come in pairs, the second the first turned round."""
    domains: tuple[float, float] = (0.9, 0.5)
    """Sizes of a relation's source and destination domain, in multiples of its edges."""
    skews: tuple[float, float] = (1.3, 2.0)
    """Exponents of the ranks in them; 1 is uniform."""
    exact: tuple[tuple[int, int, int], ...] = ()
    """Relations as (source type, destination type, edges), where they are known."""


def _shares(nodes: int, shares: list[int]) -> tuple[int, ...]:
    counts = [max(1, round(nodes * share / sum(shares))) for share in shares]
    return (counts[0] + nodes - sum(counts), *counts[1:])


SPECS: Mapping[str, Spec] = {
    "aifb": Spec(_shares(7262, [40, 25, 15, 10, 5, 3, 2]), 104, 48810),
    "mutag": Spec(_shares(27163, [60, 25, 10, 3, 2]), 50, 148100, 1.3),
    "bgs": Spec(_shares(94806, [30, *[10] * 3, *[3] * 10, *[1] * 13]), 122, 672884, 1.0),
    "am": Spec(_shares(1885136, [40, 25, 15, 10, 5, 3, 2]), 108, 5668682, 0.75, True, (1.2, 0.7), (1.2, 1.6)),
    "mag": Spec((1134649, 736389, 8740, 59965), 4, 21111007, inverse=False, domains=(1.0, 1.0), skews=(1.6, 1.8),
                exact=((0, 2, 1043998), (0, 1, 7145660), (1, 1, 5416271), (1, 3, 7505078))),
    "wikikg2": Spec((2500604,), 535, 16109182, 1.1, False, (1.5, 0.25), (1.2, 2.5)),
    "fb15k": Spec((14541,), 474, 620232, 0.9, True, (0.5, 0.25), (1.8, 1.8)),
    "biokg": Spec((10687, 17499, 10533, 9969, 45085), 51, 4762678, 0.8, False, (0.2, 0.2), (1.5, 1.5)),
}  # fmt: skip


@dataclass(frozen=True)
class Synthetic:
    """A graph over global node numbers, sorted by type, with its edges sorted by relation."""

    name: str
    nodes: tuple[int, ...]
    relations: tuple[tuple[int, int, int], ...]
    """(source type, destination type, edges) each."""
    edge_index: torch.Tensor
    edge_type: torch.Tensor

    @property
    def count(self) -> int:
        """Nodes of all types."""
        return sum(self.nodes)

    def offsets(self) -> list[int]:
        """Return where each type's nodes begin."""
        return [0, *torch.tensor(self.nodes).cumsum(0).tolist()]

    def hetero(self) -> tuple[list[str], list[tuple[str, str, str]], dict[tuple[str, str, str], torch.Tensor]]:
        """Return node types, edge types and edges by type, over local node numbers, as HeteroData has them."""
        kinds, at, start = [f"t{i}" for i in range(len(self.nodes))], self.offsets(), 0
        edges = {}
        for number, (source, target, count) in enumerate(self.relations):
            shift = torch.tensor([[at[source]], [at[target]]], device=self.edge_index.device)
            edges[kinds[source], f"r{number}", kinds[target]] = self.edge_index[:, start : start + count] - shift
            start += count
        return kinds, list(edges), edges


def synthetic(name: str, scale: float = 1.0, device: str | torch.device = "cpu", seed: int = 0) -> Synthetic:
    """Return the graph of SPECS[name] with `scale` times its nodes and edges; raise UsageError for a name that is not there."""
    if name not in SPECS:
        raise UsageError(f"expected a data set out of {', '.join(SPECS)}, saw {name!r}")
    spec = SPECS[name]
    nodes = tuple(max(4, int(count * scale)) for count in spec.nodes)
    relations = _relations(spec, nodes, scale, seed)
    random = torch.Generator(device=device).manual_seed(seed)
    order = [torch.randperm(count, generator=random, device=device) for count in nodes]
    ends: list[tuple[torch.Tensor, torch.Tensor]] = []
    start = [0, *torch.tensor(nodes).cumsum(0).tolist()]

    def side(kind: int, edges: int, domain: float, skew: float) -> torch.Tensor:
        size = min(nodes[kind], max(4, int(domain * edges)))
        shift, spread = torch.rand(edges + 1, generator=random, device=device, dtype=torch.float64).split([1, edges])
        rank = (size * spread**skew).long().clamp_(max=size - 1)
        return start[kind] + order[kind][(rank + (shift * nodes[kind]).long()) % nodes[kind]]

    for number, (source, target, edges) in enumerate(relations):
        if spec.inverse and number % 2 and relations[number - 1][2] == edges:
            ends.append((ends[-1][1], ends[-1][0]))
        else:
            ends.append((side(source, edges, spec.domains[0], spec.skews[0]), side(target, edges, spec.domains[1], spec.skews[1])))
    src, dst = torch.cat([s for s, _ in ends]), torch.cat([d for _, d in ends])
    counts = torch.tensor([edges for _, _, edges in relations], device=device)
    return Synthetic(name, nodes, relations, torch.stack([src, dst]), torch.repeat_interleave(torch.arange(len(relations), device=device), counts))


def _relations(spec: Spec, nodes: tuple[int, ...], scale: float, seed: int) -> tuple[tuple[int, int, int], ...]:
    if spec.exact:
        return tuple((source, target, max(1, int(edges * scale))) for source, target, edges in spec.exact)
    edges, each = max(spec.relations, int(spec.edges * scale)), 2 if spec.inverse else 1
    count = spec.relations // each
    shares = torch.arange(1, count + 1, dtype=torch.float64) ** -spec.zipf
    sizes = (shares / shares.sum() * (edges / each)).floor().clamp(min=1).long().tolist()
    sizes[0] += max(0, edges // each - sum(sizes))
    random = torch.Generator().manual_seed(seed + 1)
    kinds = torch.multinomial(torch.tensor([float(n) for n in nodes]), 2 * count, replacement=True, generator=random).tolist()
    relations = []
    for number, size in enumerate(sizes):
        source, target = kinds[2 * number], kinds[2 * number + 1]
        relations += [(source, target, size), (target, source, size)][:each]
    return tuple(relations)


def adversarial(name: str, edges: int = 100_000, device: str | torch.device = "cpu", seed: int = 0) -> Synthetic:
    """Return a graph that layers fail on.

    hub, relations (10,000, most of them empty), lopsided (99 % of the edges in one), duplicates, none (no edge) or loops; or, to compare with
    them, a plain one of as many nodes and edges: random.
    """
    random = torch.Generator(device=device).manual_seed(seed)
    count = max(16, edges // 10)

    def some(high: int, size: int = edges) -> torch.Tensor:
        return torch.randint(high, (size,), generator=random, device=device)

    src, dst, kind, relations = some(count), some(count), some(8), 8
    if name == "hub":
        dst = torch.zeros_like(dst)
    elif name == "relations":
        relations, kind = 10_000, some(40) * 250
    elif name == "lopsided":
        kind = torch.where(some(100) > 0, 0, kind)
    elif name == "duplicates":
        src, dst = src % 3, dst % 2
    elif name == "none":
        src, dst, kind = src[:0], dst[:0], kind[:0]
    elif name == "loops":
        src = dst
    elif name != "random":
        raise UsageError(f"expected hub, relations, lopsided, duplicates, none, loops or random, saw {name!r}")
    order = torch.sort(kind, stable=True)[1]
    sizes = torch.bincount(kind, minlength=relations).tolist()
    return Synthetic(name, (count,), tuple((0, 0, size) for size in sizes), torch.stack([src, dst])[:, order], kind[order])
