"""The CUDA kernels of attend.cu prepared for a graph, and what they compute.

Per edge they move the rows of `keys` and `values` of its (source, relation) pair, once forward and once backward. Kernels for each operation move, on
am's graph (5.7 million edges, 3.3 million pairs, 64 numbers), 2.9 GB forward for these rows, as here, but also three numbers of each edge by way of
memory, and 3.3 million rows of sums twice, since they add to rows of nodes; backward they read 2.9 GB of rows of pairs, and make one of the two
kinds of rows again, 1.7 GB.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from warpwright.domains.rgnn.emit.own.kernel import Launch, Own, dense, loaded_together, numbers_of_a_check, unless_ordered, with_the_others
from warpwright.domains.rgnn.index import Index
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.sorting.counting import LONGEST, SHORT

WIDEST = 64
"""Numbers of a row."""
THREADS, GROUP = 256, 16
"""Those of spans.cu."""
SPANS = THREADS // GROUP
"""Of a block."""


@dataclass(frozen=True)
class Spans:
    """The work list: spans of edges in the order of their destinations, long ones first; all int32 but `cut`."""

    node: torch.Tensor
    """[spans]; -1: none."""
    begin: torch.Tensor
    end: torch.Tensor
    slot: torch.Tensor
    """Where a span's part of its node goes; -1: it is the whole node."""
    cut: torch.Tensor
    """int64: the nodes of most edges, among them all that are cut."""
    cut_nodes: torch.Tensor
    """The same as int32."""
    first: torch.Tensor
    """The first slot of each node of `cut`, and how many it has: 0 if it is not cut."""
    count: torch.Tensor
    slots: int
    pair: torch.Tensor
    """[edges]: each edge's (source, relation) pair."""
    edge: torch.Tensor | None
    """[edges]: its number among the edges by relation and destination."""


def spans(index: Index) -> Spans:
    """Return the work list of a graph, kept beside it. Made on its device, without waiting for it."""
    return index.keep("attention", lambda: _spans(index))


def _spans(index: Index) -> Spans:
    nodes, device, longest = index.rows[Domain.DST], index.device, index.longest
    start = index.start(Domain.DST).long()
    lengths = start.diff()
    pieces = ((lengths + longest - 1) // longest).clamp(min=1)  # a node without edges has an empty span, which makes it zero
    ends = pieces.cumsum(0)
    number = torch.arange(nodes + index.edges // longest, device=device)  # at least as many as there are spans
    node = torch.searchsorted(ends, number, right=True)
    real, node = node < nodes, node.clamp(max=nodes - 1)
    piece = number - (ends - pieces)[node]
    begin = start[node] + piece * longest
    end = torch.minimum(begin + longest, start[node + 1])
    taken = torch.where(pieces > 1, pieces, 0)
    first = taken.cumsum(0) - taken
    slot = torch.where(pieces[node] > 1, first[node] + piece, -1)
    order = torch.sort(torch.where(real, end - begin, -1), descending=True, stable=True)[1]
    cut = torch.topk(pieces, min(nodes, index.edges // longest), sorted=False).indices
    given = (torch.where(real, node, -1), begin, end, slot)
    of_node, of_begin, of_end, of_slot = (x[order].int() for x in given)
    return Spans(
        of_node, of_begin, of_end, of_slot, cut, cut.int(), first[cut].int(), taken[cut].int(), 2 * (index.edges // longest),
        index.along(Domain.DST, Domain.PAIR_SRC), index.order(Domain.DST),
    )  # fmt: skip


@dataclass(frozen=True)
class Attended:
    """What the forward leaves: the result [nodes, width], each node's largest score and its sum of exp(score - largest) [nodes]."""

    out: torch.Tensor
    most: torch.Tensor
    total: torch.Tensor


@dataclass(frozen=True)
class Launches:
    """What launches the kernels on one device."""

    attend: Launch
    joined: Launch
    back: Launch

    def forward(self, work: Spans, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> Attended:
        """Return the attention of rows `query` [nodes, width] over rows `keys` and `values` [pairs, width]."""
        query, keys, values = dense(query), dense(keys), dense(values)
        nodes, depth = query.shape
        done = Attended(torch.empty_like(query), query.new_empty(nodes), query.new_empty(nodes))
        parts = query.new_empty(work.slots, depth), query.new_empty(work.slots), query.new_empty(work.slots)
        table, results = (work.node, work.begin, work.end, work.slot), (done.out, done.most, done.total)
        count = work.node.numel()
        self.attend(-(-count // SPANS), query, keys, values, work.pair, *table, *results, *parts, count, depth)
        if cut := work.cut.numel():
            self.joined(-(-cut // SPANS), work.cut_nodes, work.first, work.count, *parts, *results, cut, depth)
        return done

    def backward(
        self, work: Spans, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, gradient: torch.Tensor, done: Attended
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the gradient of `query`, and for each edge, by relation and destination, its share and the gradient of its score."""
        query, keys, values, gradient = dense(query), dense(keys), dense(values), dense(gradient)
        of_query, shares = torch.empty_like(query), query.new_empty(work.pair.numel())
        of_query.index_fill_(0, work.cut, 0.0)
        slopes, count = torch.empty_like(shares), work.node.numel()
        given = query, keys, values, gradient, dense(done.out), done.most, done.total
        table = work.pair, work.edge, work.node, work.begin, work.end, work.slot
        self.back(-(-count // SPANS), *given, *table, of_query, shares, slopes, count, query.shape[1])
        return of_query, shares, slopes


def takes(query: torch.Tensor) -> bool:
    """Does the kernel take these rows?"""
    return query.dtype is torch.float32 and query.dim() == 2 and 0 < query.shape[1] <= WIDEST and query.shape[1] % 4 == 0


@functools.cache
def _loaded(device: torch.device) -> Launches | None:
    return loaded_together(_OWN, device, Launches, right_on, "attention over graphs' edges is computed operation by operation")


def launches(device: torch.device) -> Launches | None:
    """Return the kernels of a device; None on a CPU, where sums have to be in a fixed order, or where they fail (warns once)."""
    return unless_ordered(device, _loaded)


def right_on(launch: Launches, device: torch.device) -> bool:
    """Are result and gradients of a small graph right, with chunks as small graphs have them and as large ones?"""
    return all(_right_on(launch, device, longest) for longest in (SHORT, LONGEST))


def example(random: torch.Generator, device: torch.device, longest: int, hub: int) -> Index:
    """Return a graph of 20 nodes and 3 relations with chunks of at most so many edges: a node has `hub` of the 300 edges at least, one has none."""
    nodes, edges, relations = 20, 300, 3
    source, target, kind = (torch.randint(high, (edges,), generator=random) for high in (nodes, nodes - 1, relations))
    target[:hub] = 7
    index = Index(source.to(device), target.to(device), kind.to(device), nodes, nodes, relations)
    index.longest = longest
    return index


def _right_on(launch: Launches, device: torch.device, longest: int) -> bool:
    """The same with chunks of at most so many edges. A node is cut in three or more, and one has no edges."""
    random = numbers_of_a_check()
    index = example(random, device, longest, 2 * LONGEST + 20)
    nodes = index.rows[Domain.NODE]
    pairs = index.rows[Domain.PAIR_SRC]
    query, gradient = (torch.randn(nodes, WIDEST, generator=random) for _ in range(2))
    keys, values = (torch.randn(pairs, WIDEST, generator=random) / 4 for _ in range(2))
    asking, asked, told, given = (x.to(device) for x in (query, keys, values, gradient))
    done = launch.forward(spans(index), asking, asked, told)
    found = [done.out, *launch.backward(spans(index), asking, asked, told, given, done)]
    wanted = plain(index, query.double(), keys.double(), values.double(), gradient.double())
    return all(float((a.double().cpu() - b).norm()) <= 1e-5 * float(b.norm()) for a, b in zip(found, wanted, strict=True))


def plain(index: Index, query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, gradient: torch.Tensor) -> list[torch.Tensor]:
    """Return by torch calls what the kernels compute: result, gradient of `query`, shares and gradients of scores."""
    to, of = (index.lift(domain, Domain.EDGE).long().cpu() for domain in (Domain.DST, Domain.PAIR_SRC))
    score = (query[to] * keys[of]).sum(1)
    top = torch.full((len(query),), -torch.inf, dtype=score.dtype).scatter_reduce(0, to, score, "amax")
    power = (score - top[to]).exp()
    share = power / torch.zeros_like(top).index_add(0, to, power)[to]
    out = torch.zeros_like(query).index_add(0, to, share[:, None] * values[of])
    slope = share * ((gradient[to] * values[of]).sum(1) - (gradient * out).sum(1)[to])
    return [out, torch.zeros_like(query).index_add(0, to, slope[:, None] * keys[of]), share, slope]


SHARED_TEXT = ("../../attention/spans.cu",)

_OWN = tuple(
    Own("../../attention/attend.cu", entry, formats, THREADS, 0, with_the_others, "attention over graphs' edges", SHARED_TEXT)
    for entry, formats in (("attend", "P" * 14 + "qq"), ("attend_joined", "P" * 9 + "qq"), ("attend_back", "P" * 16 + "qq"))
)
