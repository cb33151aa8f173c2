"""A graph shared out among processes: each owns a range of the nodes of each type, with all edges into them, and asks the others for rows they read.

A layer runs once all rows are there, or twice (`overlap`). RGCN with a mean or a sum then aggregates the edges that come from the process' own
rows while those of others are under way, and adds the rest to that: half of all edges, on two processes that nobody partitioned for. Attention has to
see a node's edges together, so RGAT and HGT run for the nodes whose edges all come from own rows, which on such graphs are few, and for the others.
Backward the rows' gradients are under way while the first run's is computed. On two H200 a step of RGCN takes 4.0, 5.5 and 6.6 ms in two runs and
5.5, 5.7 and 7.3 in one (am, mag, wikikg2); RGAT and HGT take 1.2 to 2 times as long in two, so that is the default for RGCN alone.

    part = Part(edge_index, edge_type, [nodes])          # each process gives all edges, or those into its own nodes
    layer = Parted(RGCNConv(64, 64, relations), part)    # the same weights in each process
    layer(x[part.own(0)]).square().sum().backward()
    sum_gradients(layer, part)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.distributed as dist

from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.nn.common import typed_edges
from warpwright.domains.rgnn.nn.hgt import EdgeType, HGTConv
from warpwright.domains.rgnn.nn.rgat import RGATConv
from warpwright.domains.rgnn.nn.rgcn import LAYERS, RGCNConv
from warpwright.domains.rgnn.operator import apply
from warpwright.errors import UsageError

SUMMED, WIDE = {"mean", "sum", "add"}, {torch.float32, torch.float64}
"""Aggregations whose parts can be added, and the types in which they are."""
FLOW = "source_to_target"


@dataclass(eq=False)
class Edges:
    """Edges of one run of a layer, with the rows' numbers in this process: own rows of all types, then rows of others, sorted by their numbers."""

    edge_index: torch.Tensor
    edge_type: torch.Tensor
    rows: torch.Tensor | None = None
    """The own rows that the run is for, in order; None: all."""

    @cached_property
    def short(self) -> torch.Tensor:
        """`edge_index` with destinations numbered among `rows`."""
        if self.rows is None:
            return self.edge_index
        return torch.stack([self.edge_index[0], torch.searchsorted(self.rows, self.edge_index[1].contiguous())])

    def chosen(self, own: torch.Tensor) -> torch.Tensor:
        """Return `rows` of all own rows, without a copy where they are all of them."""
        chosen: torch.Tensor = own if self.rows is None or self.rows.numel() == own.shape[0] else _Chosen.apply(self.rows, own)
        return chosen


class _Chosen(torch.autograd.Function):
    """Some rows, none twice: their gradient is written where torch's adds to each row atomically."""

    @staticmethod
    def forward(ctx: Any, rows: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        ctx.rows, ctx.shape = rows, x.shape
        return x.index_select(0, rows)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, torch.Tensor]:
        return None, gradient.new_zeros(ctx.shape).index_copy_(0, ctx.rows, gradient)


class _Apart(torch.autograd.Function):
    """Rows of the first run and of the second, which are all rows: their gradients are written to one memory, where torch's would be added up."""

    @staticmethod
    def forward(ctx: Any, first: torch.Tensor, second: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.places = first, second
        return x.index_select(0, first), x.index_select(0, second)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[None, None, torch.Tensor]:
        return None, None, _written(ctx.places, gradients)


class _Merged(torch.autograd.Function):
    """The results of both runs, each row where it belongs: written once, where torch copies all rows for each run and for each gradient."""

    @staticmethod
    def forward(ctx: Any, first: torch.Tensor, second: torch.Tensor, inner: torch.Tensor, outer: torch.Tensor) -> torch.Tensor:
        ctx.places = first, second
        return _written(ctx.places, (inner, outer))

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, None, torch.Tensor, torch.Tensor]:
        inner, outer = (gradient.index_select(0, rows) for rows in ctx.places)
        return None, None, inner, outer


def _written(places: Sequence[torch.Tensor], parts: Sequence[torch.Tensor]) -> torch.Tensor:
    whole = parts[0].new_empty(sum(rows.numel() for rows in places), *parts[0].shape[1:])
    for rows, part in zip(places, parts, strict=True):
        whole.index_copy_(0, rows, part)
    return whole


class Part:
    """One process' share of a graph. All processes of `group` make one together."""

    def __init__(self, edge_index: torch.Tensor, edge_type: torch.Tensor, counts: Sequence[int], group: Any = None) -> None:
        """Take edges between nodes numbered over all types, and the nodes of each type. Edges into others' nodes are left out."""
        self.group, self.rank, self.ranks = group, dist.get_rank(group), dist.get_world_size(group)
        edge_index, edge_type = edge_index.long(), edge_type.long()
        low, high = torch.stack(torch.aminmax(edge_index)).tolist() if edge_index.numel() else (0, -1)
        strange = low < 0 or high >= sum(counts)
        anywhere = edge_index.new_tensor([int(strange)])
        dist.all_reduce(anywhere, dist.ReduceOp.MAX, group=group)  # all raise together: none waits for messages of one that has
        if anywhere.item():
            seen = f"saw numbers from {low} to {high}" if strange else "another process saw others"
            raise UsageError(f"expected edges between nodes 0 to {sum(counts) - 1}, {seen}")
        starts = [sum(counts[:kind]) for kind in range(len(counts))]
        self.starts = [start + count * rank // self.ranks for start, count in zip(starts, counts, strict=True) for rank in range(self.ranks)]
        self.starts.append(sum(counts))
        self.bounds = torch.tensor(self.starts, device=edge_index.device)
        self.first = torch.tensor([self._first(block) for block in range(len(self.starts) - 1)], device=edge_index.device)
        self.counts = [self.own(kind).stop - self.own(kind).start for kind in range(len(counts))]
        self.nodes = sum(self.counts)
        block = self._blocks(edge_index)
        mine = block[1] % self.ranks == self.rank
        (src, dst), block, kind = edge_index[:, mine], block[:, mine], edge_type[mine]
        far = block[0] % self.ranks != self.rank
        self.others = torch.unique(src[far])
        """The numbers of the others' nodes that edges come from."""
        self._agree()
        source = torch.where(far, self.nodes + torch.searchsorted(self.others, src), self._rows(src, block[0]))
        self.whole = Edges(torch.stack([source, self._rows(dst, block[1])]), kind)
        """All edges into the own nodes."""
        self.kinds_of_others = torch.bincount(self._blocks(self.others) // self.ranks, minlength=len(counts)).tolist()

    @cached_property
    def runs(self) -> tuple[Edges, Edges]:
        """Return the edges into nodes that read rows of their own process alone, and those into the others."""
        (source, target), kind = self.whole.edge_index, self.whole.edge_type
        reading = torch.zeros(self.nodes, dtype=torch.bool, device=source.device).index_fill_(0, target[source >= self.nodes], True)
        late = reading[target]
        inner, outer = (
            Edges(torch.stack([source[run], target[run]]), kind[run], torch.nonzero(nodes).flatten())
            for run, nodes in ((~late, ~reading), (late, reading))
        )
        return inner, outer

    @cached_property
    def origins(self) -> tuple[Edges, Edges]:
        """Return the edges that come from own rows, and those from the others' rows, which are numbered among these alone."""
        (source, target), kind = self.whole.edge_index, self.whole.edge_type
        far = source >= self.nodes
        near, apart = (Edges(torch.stack([source[some], target[some]]), kind[some]) for some in (~far, far))
        apart.edge_index[0] -= self.nodes
        return near, apart

    def own(self, kind: int) -> slice:
        """Return which nodes of all are this process' own of a type."""
        block = kind * self.ranks + self.rank
        return slice(self.starts[block], self.starts[block + 1])

    def _first(self, block: int) -> int:
        """Return the first row of a block among the rows of the process that owns it."""
        return sum(self.starts[b + 1] - self.starts[b] for b in range(block % self.ranks, block, self.ranks))

    def _blocks(self, nodes: torch.Tensor) -> torch.Tensor:
        return torch.searchsorted(self.bounds, nodes.contiguous(), right=True) - 1

    def _rows(self, nodes: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
        return nodes - self.bounds[block] + self.first[block]

    def _agree(self) -> None:
        """Tell each process which of its rows are read here, and learn which of the own ones are read there."""
        owner = self._blocks(self.others) % self.ranks
        order = torch.sort(owner, stable=True)[1]
        self.place = torch.sort(order)[1] if len(self.starts) > self.ranks + 1 and self.ranks > 2 else None
        """Where each of the others' rows is among those received, which come process by process; None: in that order."""
        asked = torch.bincount(owner, minlength=self.ranks)
        told = torch.empty_like(asked)
        dist.all_to_all_single(told, asked, group=self.group)
        self.received, self.sent = asked.tolist(), told.tolist()
        nodes = self.others.new_empty(sum(self.sent))
        dist.all_to_all_single(nodes, self.others[order], self.sent, self.received, group=self.group)
        self.rows_sent = self._rows(nodes, self._blocks(nodes))

    def exchange(self, x: torch.Tensor, back: bool = False, memory: torch.Tensor | None = None) -> tuple[torch.Tensor, Any, torch.Tensor]:
        """Begin to send rows; return the memory that others' arrive in, what waits for them, and what is sent, which has to live as long."""
        rows, to, of = (x, self.received, self.sent) if back else (x.index_select(0, self.rows_sent), self.sent, self.received)
        memory = x.new_empty(sum(of), *x.shape[1:]) if memory is None else memory
        return memory, dist.all_to_all_single(memory, rows, of, to, group=self.group, async_op=True), rows


@dataclass
class _Under:
    """An exchange under way, and that of its gradients."""

    part: Part
    forward: tuple[torch.Tensor, Any, torch.Tensor] | None = None
    backward: tuple[torch.Tensor, Any, torch.Tensor] | None = None


class _Sent(torch.autograd.Function):
    """Rows -> the memory that others' arrive in. Autograd runs later nodes first: the inner run's backward lies between `_Arrived`'s and this."""

    @staticmethod
    def forward(ctx: Any, under: _Under, x: torch.Tensor) -> torch.Tensor:
        under.forward = under.part.exchange(x.detach().contiguous())
        ctx.under, ctx.shape = under, x.shape
        return under.forward[0]

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, torch.Tensor]:
        under = ctx.under
        memory, work, _ = under.backward
        work.wait()
        under.backward = None
        own = memory.new_zeros(ctx.shape)
        if under.part.ranks == 2:  # no row is sent twice
            return None, own.index_copy_(0, under.part.rows_sent, memory)
        return None, own.index_add_(0, under.part.rows_sent, memory)


class _Arrived(torch.autograd.Function):
    """The memory -> others' rows, sorted by their numbers."""

    @staticmethod
    def forward(ctx: Any, under: _Under, memory: torch.Tensor) -> torch.Tensor:
        assert under.forward is not None
        under.forward[1].wait()
        under.forward, ctx.under = None, under
        place = under.part.place
        return memory.clone() if place is None else memory.index_select(0, place)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, torch.Tensor]:
        place = ctx.under.part.place
        gradient = gradient.contiguous() if place is None else torch.empty_like(gradient).index_copy_(0, place, gradient)
        ctx.under.backward = ctx.under.part.exchange(gradient, back=True)
        return None, gradient


class _Joined(torch.autograd.Function):
    """Own rows -> own rows and others', those of each kind side by side, once all have arrived.

    `sizes` are each kind's own and others' rows. Own rows are copied while messages are under way, forward and backward; of one kind, others' rows
    arrive where they stay.
    """

    @staticmethod
    def forward(ctx: Any, part: Part, sizes: Sequence[tuple[int, int]], x: torch.Tensor) -> torch.Tensor:
        ctx.part, ctx.sizes = part, sizes
        x = x.detach().contiguous()
        every = x.new_empty(sum(own + far for own, far in sizes), *x.shape[1:])
        straight = every[sizes[0][0] :] if len(sizes) == 1 and part.place is None else None
        memory, work, _sent = part.exchange(x, memory=straight)
        own, far = _kinds_of(every, sizes)
        torch._foreach_copy_(own, x.split([rows for rows, _ in sizes]))
        work.wait()
        if straight is None:
            arrived = memory if part.place is None else memory.index_select(0, part.place)
            torch._foreach_copy_(far, arrived.split([rows for _, rows in sizes]))
        return every

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[None, None, torch.Tensor]:
        part = ctx.part
        own, far = _kinds_of(gradient.contiguous(), ctx.sizes)
        others = far[0] if len(far) == 1 else torch.cat(far)
        if part.place is not None:
            others = torch.empty_like(others).index_copy_(0, part.place, others)
        memory, work, _sent = part.exchange(others, back=True)
        mine = own[0].clone() if len(own) == 1 else torch.cat(own)
        work.wait()
        return None, None, mine.index_add_(0, part.rows_sent, memory)


def _kinds_of(every: torch.Tensor, sizes: Sequence[tuple[int, int]]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Return each kind's own rows, and each kind's rows of others."""
    parts = every.split([rows for pair in sizes for rows in pair])
    return list(parts[::2]), list(parts[1::2])


class Parted(torch.nn.Module):
    """A layer on this process' share: own rows in, own rows out. Of HGTConv rows are those of all types, in the order of its node types."""

    def __init__(self, layer: torch.nn.Module, part: Part, overlap: bool | None = None) -> None:
        """Take RGCNConv, FastRGCNConv, RGATConv or HGTConv; edge types are numbers, for HGTConv in the order of its edge types.

        `overlap`: does the layer run twice? None: where its result is a sum over edges.
        """
        super().__init__()
        if not isinstance(layer, RGCNConv | RGATConv | HGTConv):
            raise UsageError(f"expected RGCNConv, FastRGCNConv, RGATConv or HGTConv, saw {type(layer).__name__}")
        if layer.arguments.get("flow", FLOW) != FLOW:
            raise UsageError(f"expected flow={FLOW!r}, as processes own edges by where they end, saw flow={layer.arguments['flow']!r}")
        self.layer, self.part, self.overlap = layer, part, overlap
        self._kept: dict[Edges, dict[EdgeType, torch.Tensor]] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the results of own nodes [own, out]."""
        part = self.part
        if x.shape[0] != part.nodes:
            raise UsageError(f"expected the rows of the {part.nodes} nodes of process {part.rank}, saw {x.shape[0]}")
        if part.ranks == 1:
            return self._run(x, x, part.whole)
        by_origin = isinstance(self.layer, RGCNConv) and x.dtype in WIDE and _is_sum(self.layer)
        if not (by_origin if self.overlap is None else self.overlap):
            of_kinds = list(zip(part.counts, part.kinds_of_others, strict=True))
            sizes = of_kinds if isinstance(self.layer, HGTConv) else [(part.nodes, part.others.numel())]
            return self._run(x, _Joined.apply(part, sizes, x), part.whole)
        if by_origin and isinstance(self.layer, RGCNConv):
            with torch.autocast(x.device.type, enabled=False):  # as in the layer's own forward
                return self._by_origin(self.layer, x)
        under, (first, second) = _Under(part), part.runs
        memory = _Sent.apply(under, x)
        of_runs = _Apart.apply(first.rows, second.rows, x) if isinstance(self.layer, RGCNConv) else (None, None)
        inner = self._run(x, x, first, of_runs[0])
        outer = self._run(x, self._beside(x, _Arrived.apply(under, memory)), second, of_runs[1])
        result: torch.Tensor = _Merged.apply(first.rows, second.rows, inner, outer)
        return result

    def _by_origin(self, layer: RGCNConv, x: torch.Tensor) -> torch.Tensor:
        """Aggregate over the edges from own rows while others' are under way, then add what comes from these, in the same memory."""
        part, under = self.part, _Under(self.part)
        memory = _Sent.apply(under, x)
        weight, sizes = layer.relation_weights(), (part.nodes, part.others.numel())
        runs = zip(part.origins, sizes, strict=True)
        near, far = (typed_edges(e.edge_index, e.edge_type, rows, part.nodes, layer.num_relations) for e, rows in runs)
        if layer.aggr == "mean":
            _count_together(near.index(), far.index())
        base = layer.run_on(LAYERS, near, {"x": (Domain.SRC, x), "weight": (Domain.ETYPE, weight)}, x)
        given = {"x": (Domain.SRC, _Arrived.apply(under, memory)), "weight": (Domain.ETYPE, weight), "base": (Domain.DST, base)}
        return apply(("based", LAYERS[layer.aggr]), far, given, layer.options, donated=("base",))

    def _beside(self, x: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return own rows and others' as `_Joined` has them."""
        if not isinstance(self.layer, HGTConv):
            return torch.cat([x, others])
        own, far = x.split(self.part.counts), others.split(self.part.kinds_of_others)
        return torch.cat([rows for pair in zip(own, far, strict=True) for rows in pair])

    def _run(self, x: torch.Tensor, every: torch.Tensor, edges: Edges, targets: torch.Tensor | None = None) -> torch.Tensor:
        """Return the results of the nodes of one run; `every`: the rows that edges come from; `targets`: the nodes' own rows, for RGCNConv."""
        if isinstance(self.layer, HGTConv):
            return self._by_type(self.layer, every, edges, every.shape[0] > x.shape[0])
        result: torch.Tensor
        if isinstance(self.layer, RGCNConv):
            result = self.layer((every, x if targets is None else targets), edges.short, edges.edge_type)
            return result
        result = self.layer(every, edges.edge_index, edges.edge_type)
        return edges.chosen(result[: x.shape[0]])

    def _by_type(self, layer: HGTConv, every: torch.Tensor, edges: Edges, others: bool) -> torch.Tensor:
        part = self.part
        sizes = [own + far for own, far in zip(part.counts, part.kinds_of_others, strict=True)] if others else part.counts
        rows = dict(zip(layer.node_types, every.split(sizes), strict=True))
        if edges not in self._kept:
            self._kept[edges] = self._graph(layer, edges)
        done = layer(rows, self._kept[edges])
        width = layer.out_channels
        results = [done[t][:n] if t in done else every.new_zeros(n, width) for t, n in zip(layer.node_types, part.counts, strict=True)]
        return edges.chosen(torch.cat(results))

    def _graph(self, layer: HGTConv, edges: Edges) -> dict[EdgeType, torch.Tensor]:
        """Return a run's edges by edge type. They are kept: a layer's index is that of the tensors it was built for."""
        part = self.part
        graph: dict[EdgeType, torch.Tensor] = {}
        starts = [sum(part.counts[:kind]) for kind in range(len(part.counts))]
        beyond = [part.nodes + sum(part.kinds_of_others[:kind]) for kind in range(len(part.counts))]
        if edges.edge_type.numel() and not 0 <= edges.edge_type.min() <= edges.edge_type.max() < len(layer.edge_types):
            raise UsageError(f"expected edges of types 0 to {len(layer.edge_types) - 1}, saw others")
        for number, kind in enumerate(layer.edge_types):
            source, target = (layer.node_types.index(end) for end in (kind[0], kind[-1]))
            src, dst = edges.edge_index[:, edges.edge_type == number]
            near, far, to = src - starts[source], src - beyond[source], dst - starts[target]
            own = src < part.nodes
            given = torch.where(own, _within(near, part.counts[source]), _within(far, part.kinds_of_others[source]))
            if not (given & _within(to, part.counts[target])).all():
                raise UsageError(f"expected edges of type {number} from nodes of type {kind[0]!r} to nodes of type {kind[-1]!r}, saw others")
            graph[kind] = torch.stack([torch.where(own, near, far + part.counts[source]), to])
        return graph


def _within(numbers: torch.Tensor, count: int) -> torch.Tensor:
    return (numbers >= 0) & (numbers < count)


def _is_sum(layer: RGCNConv) -> bool:
    """Is the layer's result a sum over edges, and its call no more than that? Hooks, and a forward of a class or a layer, are for whole calls."""
    hooks = layer._forward_pre_hooks, layer._forward_hooks, layer._backward_pre_hooks, layer._backward_hooks
    own = type(layer).forward is RGCNConv.forward and not layer.watched and not any(hooks)
    return own and not layer.unsupported and layer.num_blocks is None and layer.aggr in SUMMED


def _count_together(first: Index, second: Index) -> None:
    """Let a mean over a (destination, relation) pair's edges in one graph be over its edges in both. Either may have been made anew since."""
    if "together" in first.kept and "together" in second.kept:
        return
    (keys, counts), (others, theirs) = (_pairs(index) for index in (first, second))
    first.count_pairs_as(counts + _at(keys, others, theirs))
    second.count_pairs_as(theirs + _at(others, keys, counts))
    first.kept["together"] = second.kept["together"] = True


def _pairs(index: Index) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a key of each (destination, relation) pair, in order as edges are sorted by both, and how many edges it has."""
    keys = index.lift(Domain.ETYPE, Domain.PAIR_DST).long() * index.targets + index.lift(Domain.DST, Domain.PAIR_DST)
    return keys, index.start(Domain.PAIR_DST).diff()


def _at(keys: torch.Tensor, others: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """Return the values that the other, sorted keys have at these keys; 0 where they have none."""
    if not others.numel():
        return values.new_zeros(keys.shape)
    place = torch.searchsorted(others, keys).clamp_(max=others.numel() - 1)
    return torch.where(others[place] == keys, values[place], 0)


def sum_gradients(module: torch.nn.Module, part: Part) -> None:
    """Add up the gradients of the parameters over the processes, each of which has those of its own nodes' results."""
    parameters = [p for p in module.parameters() if p.requires_grad]
    for p in parameters:
        p.grad = torch.zeros_like(p) if p.grad is None else p.grad
    for kind in dict.fromkeys((p.dtype, p.device) for p in parameters):  # one message of each: HGT's layer on am's graph has 145 parameters
        gradients = [p.grad for p in parameters if (p.dtype, p.device) == kind and p.grad is not None]
        flat = torch.cat([g.reshape(-1) for g in gradients])
        dist.all_reduce(flat, group=part.group)
        torch._foreach_copy_(gradients, [x.view_as(g) for x, g in zip(flat.split([g.numel() for g in gradients]), gradients, strict=True)])
