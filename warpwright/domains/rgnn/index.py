"""The index structures of a graph, on its device: edges sorted by relation and destination, unique pairs, and maps between the domains.

Building reads the device once (the two numbers of pairs); nothing afterwards waits for it. Everything but the sort by relation and destination is
made when it is first asked for and kept. On a GPU edges are sorted by counting where there are few keys (sorting/counting.py). `of` keeps indices by
the identity, version and place of the edge tensors.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from warpwright.domains.rgnn import tensors
from warpwright.domains.rgnn.lattice import Domain
from warpwright.domains.rgnn.sorting import counting
from warpwright.errors import UsageError

ROWS = {Domain.PAIR_DST: (Domain.DST, "dst"), Domain.PAIR_SRC: (Domain.SRC, "src")}

Kept = TypeVar("Kept")

INTEGERS = frozenset({torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8})

ENDS = ("sources", "targets", "relations")

OF_EDGES = {(Domain.EDGE, domain): n for n, domain in enumerate((Domain.SRC, Domain.DST, Domain.ETYPE, Domain.PAIR_DST, Domain.PAIR_SRC))}
OF_PAIRS = {
    (Domain.PAIR_DST, Domain.DST): 1, (Domain.PAIR_DST, Domain.ETYPE): 2, (Domain.PAIR_SRC, Domain.SRC): 6, (Domain.PAIR_SRC, Domain.ETYPE): 7,
}  # fmt: skip
STARTS = {Domain.PAIR_DST: 0, Domain.PAIR_SRC: 5}
"""Maps and starts as `counting.Sorted` numbers them; the order of PAIR_SRC's edges is the sixth array of edges."""
BESIDE_COUNTS: Mapping[Any, Callable[[Any], Any]] = {
    ("count", Domain.PAIR_DST, torch.float32): lambda counted: counted.count,
    ("inverse", 0.0, Domain.PAIR_DST, torch.float32): lambda counted: counted.inverse,
    ("work", Domain.PAIR_DST): lambda counted: counted.work,
}
"""What is kept beside graphs and counting has made."""


class OutOfRange(UsageError):
    """An edge has an end, or a type, that the graph does not have."""


class Index:
    """A graph with `relations` edge types, from `sources` to `targets` nodes. EDGE rows are sorted by (relation, destination)."""

    def __init__(
        self,
        src: torch.Tensor,
        dst: torch.Tensor,
        etype: torch.Tensor,
        sources: int,
        targets: int,
        relations: int,
        src_types: torch.Tensor | None = None,
        dst_types: torch.Tensor | None = None,
        types: int = 1,
        order_kept: bool = False,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> None:
        """Sort the edges src -> dst (int64 [E]) of types `etype`. `src_types`, `dst_types` [nodes] give the nodes' types, out of `types`.

        `order_kept`: `given` says which of the edges given each row of EDGE is, for features of edges. `meanwhile` is called while the device works.
        """
        if not src.shape == dst.shape == etype.shape or src.dim() != 1:
            raise UsageError(f"expected source, destination and type of each edge, saw {tuple(src.shape)}, {tuple(dst.shape)}, {tuple(etype.shape)}")
        if any(x.dtype not in INTEGERS for x in (src, dst, etype)):
            raise UsageError(f"expected integers for the ends and types of edges, saw {src.dtype}, {dst.dtype}, {etype.dtype}")
        self.device, self.edges = src.device, src.numel()
        self.sources, self.targets, self.relations, self.types = sources, targets, relations, types
        self.longest = counting.longest_of(self.edges)
        """Edges of a row that one chunk has; a longer row is cut, so that a hub is worked on by many."""
        self.types_of = {Domain.SRC: src_types, Domain.DST: dst_types}
        self.maps: dict[tuple[Domain, Domain], torch.Tensor] = {}
        self.orders: dict[Domain, torch.Tensor] = {}
        self.starts: dict[Domain, torch.Tensor] = {}
        self.kept: dict[Any, Any] = {}
        """What `keep` keeps."""
        self.given: torch.Tensor | None = None
        self.memories: list[StorageWeakRef] = []
        """Of the edge tensors that it is kept for: `edge_index.data = other` gives the old one back, and the next may lie at its address."""
        self.counted: counting.Sorted | None = None
        """What counting gave: its arrays are taken from there when they are asked for."""
        self.beside_counts: Mapping[Any, Callable[[Any], Any]] = {}
        """What `keep` takes from there."""
        launch = counting.launcher(self.device) if not order_kept and counting.fits(self.edges, sources + targets, relations) else None
        if launch is None:
            meanwhile()
            pairs = self._sort(src, dst, etype, order_kept)
        else:
            pairs = self._take(counting.sort(launch, src, dst, etype, sources, targets, relations, meanwhile))
        self.rows = {
            Domain.ONE: 1, Domain.ETYPE: relations, Domain.TSRC: types, Domain.TDST: types, Domain.NTYPE: types, Domain.SRC: sources,
            Domain.DST: targets, Domain.NODE: sources, Domain.EDGE: self.edges, Domain.PAIR_DST: pairs[0], Domain.PAIR_SRC: pairs[1],
        }  # fmt: skip

    def _sort(self, src: torch.Tensor, dst: torch.Tensor, etype: torch.Tensor, order_kept: bool) -> tuple[int, int]:
        """Fill the maps of edges by torch's sorts; return the numbers of pairs. Raises UsageError where a number is out of range."""
        limits = self.sources, self.targets, self.relations
        key, perm = torch.sort(etype.long() * max(self.targets, 1) + dst.long(), stable=True)
        self.given = perm if order_kept else None
        for domain, ends in ((Domain.SRC, src), (Domain.DST, dst), (Domain.ETYPE, etype)):
            self.maps[Domain.EDGE, domain] = ends[perm].int()
        by_source = self.maps[Domain.EDGE, Domain.ETYPE].long() * max(self.sources, 1) + self.maps[Domain.EDGE, Domain.SRC]
        by_source, order = torch.sort(by_source, stable=True)
        self.orders[Domain.PAIR_SRC] = order.int()
        to_dst, to_src = _ranks(key), _ranks(by_source)
        counts = [-1, -1]
        if self.edges:
            ranges = [end.long() for x in (src, dst, etype) for end in torch.aminmax(x)]
            *counts, low, high, first, last, least, most = torch.stack([to_dst[-1], to_src[-1], *ranges]).tolist()
            seen = (low, high), (first, last), (least, most)
            for what, (lowest, highest), rows in zip(ENDS, seen, limits, strict=True):
                if lowest < 0 or highest >= rows:
                    raise OutOfRange(f"expected edges of {what} 0 to {rows - 1}, saw numbers from {lowest} to {highest}; is x of this graph?")
        self.maps[Domain.EDGE, Domain.PAIR_DST] = to_dst.int()
        self.maps[Domain.EDGE, Domain.PAIR_SRC] = torch.empty_like(to_src, dtype=torch.int32).index_copy_(0, order, to_src.int())
        return counts[0] + 1, counts[1] + 1

    def _take(self, index: counting.Sorted) -> tuple[int, int]:
        """Keep what counting gave; return the numbers of pairs."""
        self.counted, self.beside_counts = index, BESIDE_COUNTS
        return index.pairs, index.others

    def awaited(self) -> None:
        """Let the current stream wait until the index is made, where it is of another stream: the host waits for the numbers of pairs alone."""
        counted = self.counted
        if counted is None or counted.built is None or torch._C._cuda_getCurrentRawStream(self.device.index) == counted.stream:
            return
        if not torch.cuda.is_current_stream_capturing():  # what is captured has run before, on a stream that waited
            torch.cuda.current_stream(self.device).wait_event(counted.built)

    def keep(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """Return what is kept beside the graph under `key`, such as tiles or sparse matrices; it is made when it is first asked for."""
        if key not in self.kept:
            of_counting = self.beside_counts.get(key)
            self.kept[key] = make() if of_counting is None else of_counting(self.counted)
        kept: Kept = self.kept[key]
        return kept

    def count_pairs_as(self, counts: torch.Tensor) -> None:
        """Let each (destination, relation) pair have so many edges: those of a larger graph, of whose edges this one has some."""
        self.beside_counts = {key: part for key, part in self.beside_counts.items() if key[0] == "work"}
        for key in [key for key in self.kept if isinstance(key, tuple) and key[0] == "inverse" and Domain.PAIR_DST in key]:
            del self.kept[key]
        for dtype in (torch.float32, torch.float64):
            self.kept["count", Domain.PAIR_DST, dtype] = counts.to(dtype)

    def start(self, domain: Domain) -> torch.Tensor:
        """Return where the edges of each row of `domain` begin in its order, int32 [rows + 1]."""
        if domain not in self.starts and self.counted is not None and domain in STARTS:
            self.starts[domain] = self.counted.part(STARTS[domain]).tensor
        if domain not in self.starts:
            rows = torch.arange(self.rows[domain] + 1, device=self.device)
            self.starts[domain] = torch.searchsorted(self.along(domain, domain).long(), rows).int()
        return self.starts[domain]

    def order(self, domain: Domain) -> torch.Tensor | None:
        """Return the edges in the order of `domain`'s rows, int32 [E]; None where that is their own order."""
        if domain in {Domain.PAIR_DST, Domain.EDGE, Domain.ETYPE}:
            return None
        if domain not in self.orders and self.counted is not None and domain is Domain.PAIR_SRC:
            self.orders[domain] = self.counted.of_edge(5).tensor
        if domain not in self.orders:
            self.orders[domain] = torch.sort(self.lift(domain, Domain.EDGE), stable=True)[1].int()
        return self.orders[domain]

    def along(self, rows: Domain, domain: Domain) -> torch.Tensor:
        """Return the row of `domain` for each edge in the order of `rows`, int32 [E]."""

        def make() -> torch.Tensor:
            order = self.order(rows)
            lifted = self.lift(domain, Domain.EDGE)
            return lifted if order is None else lifted[order.long()]

        return self.keep(("along", rows, domain), make)

    def lift(self, coarse: Domain, fine: Domain) -> torch.Tensor:
        """Return the row of `coarse` for each row of `fine`, int32."""
        key = (fine, coarse)
        if key not in self.maps:
            counted = self._counted(key)
            self.maps[key] = self._lifted(coarse, fine) if counted is None else counted.tensor
        return self.maps[key]

    def _counted(self, key: tuple[Domain, Domain]) -> counting.Part | None:
        """Return a map that counting has made; None for another."""
        if self.counted is None or (key not in OF_EDGES and key not in OF_PAIRS):
            return None
        return self.counted.of_edge(OF_EDGES[key]) if key in OF_EDGES else self.counted.part(OF_PAIRS[key])

    def lifted(self, coarse: Domain, fine: Domain) -> counting.Array:
        """Return what `lift` does, for a kernel that wants an address alone."""
        counted = None if (fine, coarse) in self.maps else self._counted((fine, coarse))
        return self.lift(coarse, fine) if counted is None else counted

    def _lifted(self, coarse: Domain, fine: Domain) -> torch.Tensor:
        if coarse is fine:
            return torch.arange(self.rows[fine], device=self.device, dtype=torch.int32)
        if coarse is Domain.ONE:
            return torch.zeros(self.rows[fine], device=self.device, dtype=torch.int32)
        if (fine, coarse) in {(Domain.SRC, Domain.TSRC), (Domain.DST, Domain.TDST)}:
            types = self.types_of[fine]
            return torch.zeros(self.rows[fine], device=self.device, dtype=torch.int32) if types is None else types.int()
        if fine in ROWS:
            first = self.start(fine)[:-1].long()
            order = self.order(fine)
            edge = first if order is None else order[first].long()
            return self.lift(coarse, Domain.EDGE)[edge]
        node = {Domain.TSRC: Domain.SRC, Domain.TDST: Domain.DST}.get(coarse)
        if fine is Domain.EDGE and node is not None:
            return self.lift(coarse, node)[self.lift(node, fine).long()]
        raise UsageError(f"expected {coarse} to be determined by {fine}")

    def pairs_of(self, pairs: Domain, nodes: Domain) -> tuple[torch.Tensor, torch.Tensor]:
        """Return where the pairs of each node begin, int32 [nodes + 1], and the pairs in that order, int32."""

        def make() -> tuple[torch.Tensor, torch.Tensor]:
            by_node, order = torch.sort(self.lift(nodes, pairs), stable=True)
            every = torch.arange(self.rows[nodes] + 1, device=self.device, dtype=torch.int32)
            return torch.searchsorted(by_node, every).int(), order.int()

        return self.keep(("pairs of", pairs, nodes), make)

    def relation_starts(self, domain: Domain) -> torch.Tensor:
        """Return where each relation's rows begin in PAIR_SRC, PAIR_DST or EDGE, int32 [R + 1]."""

        def make() -> torch.Tensor:
            relations = torch.arange(self.relations + 1, device=self.device, dtype=torch.int32)
            return torch.searchsorted(self.lift(Domain.ETYPE, domain), relations).int()

        return self.keep(("relations", domain), make)

    def relation_starts_on_host(self, domain: Domain) -> list[int]:
        """Return the same as numbers; reads the device once for each domain."""
        return self.keep(("relations on host", domain), lambda: self.relation_starts(domain).tolist())


def _ranks(keys: torch.Tensor) -> torch.Tensor:
    """Return the number of the group of equal keys that each of the sorted `keys` belongs to."""
    if not keys.numel():
        return keys
    changed = torch.zeros_like(keys)
    changed[1:] = keys[1:] != keys[:-1]
    return changed.cumsum(0)


_KEPT: OrderedDict[tuple[Any, ...], tuple[list[Any], Index]] = OrderedDict()

MOST_KEPT = 16


_DEAD: list[tuple[tuple[Any, ...], Any]] = []
"""Keys of which an edge tensor has gone, and the weak reference to it. To ask all that are kept took a new batch ten microseconds."""


def _died(key: tuple[Any, ...], ref: Any, dead: list[Any] = _DEAD) -> None:
    dead.append((key, ref))  # a default is there while Python ends, too


def _drop_dead() -> None:
    """Drop the indices of edges that have gone."""
    while _DEAD:
        try:
            key, gone = _DEAD.pop()
        except IndexError:  # another thread was first
            return
        kept = _KEPT.get(key)
        if kept is not None and any(ref is gone for ref in kept[0]):  # the key may be that of other tensors by now
            _KEPT.pop(key, None)


Function = TypeVar("Function", bound=Callable[..., Any])


def uncompiled(function: Function) -> Function:
    """Keep torch.compile out of a function: identities and versions of tensors are no part of a graph."""
    disabled: Function = torch.compiler.disable(function)
    return disabled


Told = tuple[int, int, torch.Size, tuple[int, ...]]


def told(tensor: torch.Tensor) -> Told:
    """Return a tensor's version and place: writes that torch tells change the first, other memory the second."""
    return 0 if tensor.is_inference() else tensor._version, tensor.data_ptr(), tensor.shape, tensor.stride()


def of(edge_tensors: Sequence[torch.Tensor], sizes: tuple[int, ...], make: Callable[[Callable[[], None]], Index]) -> Index:
    """Return make(tidy), or what it gave for the same tensors at the same version and the same sizes. For calls that torch.compile does not trace.

    `tidy` may be called while a device works: it takes what `of` would else do afterwards.
    """
    if len(edge_tensors) >= MANY and (found := _known_of_many(edge_tensors, sizes)) is not None:
        return found
    key = (*((id(t), told(t)) for t in edge_tensors), sizes)
    kept = _KEPT.get(key)
    if kept is not None and all(ref() is t for ref, t in zip(kept[0], edge_tensors, strict=True)) and not any(m.expired() for m in kept[1].memories):
        with contextlib.suppress(KeyError):  # another thread's graphs may have taken its place
            _KEPT.move_to_end(key)
        _watch(key, *kept)
        kept[1].awaited()
        _remember_many(edge_tensors, sizes, key, *kept)
        return kept[1]
    refs: list[Any] = []

    def tidy() -> None:
        if refs:
            return
        _drop_dead()
        refs.extend(weakref.ref(t, functools.partial(_died, key)) for t in edge_tensors)
        while len(_KEPT) >= MOST_KEPT:
            _KEPT.popitem(last=False)

    index = make(tidy)
    tidy()
    index.memories = [StorageWeakRef(t.untyped_storage()) for t in edge_tensors]
    _KEPT[key] = refs, index
    _watch(key, refs, index)
    return index


MANY, MOST_OF_MANY = 16, 8
"""Edge tensors of a graph from which they are asked in one call, and how many such graphs are remembered for that."""

_OF_MANY: OrderedDict[tuple[Any, ...], tuple[list[int], Versions, tuple[Any, ...]]] = OrderedDict()
"""By the first edge tensor: the identities of all, their versions, and the key in _KEPT."""


def _known_of_many(edge_tensors: Sequence[torch.Tensor], sizes: tuple[int, ...]) -> Index | None:
    """Return the index of a graph that `_remember_many` has seen, where its tensors are the very same at the same versions."""
    known = _OF_MANY.get((id(edge_tensors[0]), sizes))
    if known is None or known[0] != [*map(id, edge_tensors)] or not known[1].same():
        return None
    kept = _KEPT.get(known[2])
    if kept is None:
        return None
    with contextlib.suppress(KeyError):
        _KEPT.move_to_end(known[2])
    _watch(known[2], *kept)
    kept[1].awaited()
    return kept[1]


def _remember_many(edge_tensors: Sequence[torch.Tensor], sizes: tuple[int, ...], key: tuple[Any, ...], refs: list[Any], index: Index) -> None:
    """Remember a graph of many edge tensors that is asked for again."""
    if len(edge_tensors) < MANY or any(t.is_inference() for t in edge_tensors):
        return
    versions = Versions([(tuple(own for _, own in key[:-1]), refs, None)])
    _OF_MANY[id(edge_tensors[0]), sizes] = [*map(id, edge_tensors)], versions, key
    while len(_OF_MANY) > MOST_OF_MANY:
        _OF_MANY.popitem(last=False)


Watched = list[tuple[tuple[Told, ...], list[Any], Any]]
"""Graphs that were asked for: what was told of their edge tensors, weak references to these, and the index. What is mentioned has no edges."""

_WATCHING: list[Watched] = []


def _watch(key: tuple[Any, ...], tensors: list[Any], index: Index) -> None:
    for watching in _WATCHING:
        watching.append((tuple(own for _, own in key[:-1]), tensors, index))


def mention(kept: Kept) -> Kept:
    """Return what is kept beside graphs; a recording that is being made keeps it too, as its launches read it."""
    for watching in _WATCHING:
        watching.append(((), [], kept))
    return kept


@contextmanager
def watched() -> Iterator[Watched]:
    """Give a list of the graphs that are asked for meanwhile, by any thread."""
    seen: Watched = []
    _WATCHING.append(seen)
    try:
        yield seen
    finally:
        _WATCHING[:] = [watching for watching in _WATCHING if watching is not seen]  # equal lists are not the same


class Versions:
    """The edge tensors of graphs as they were when they were asked for. They are not kept alive."""

    def __init__(self, graphs: Watched) -> None:
        self.kept = [index for _, _, index in graphs]
        """What a recording reads."""
        pairs = {(id(ref), own): (ref, own) for all_told, tensors, _ in graphs for ref, own in zip(tensors, all_told, strict=True)}
        there = [(t, own) for ref, own in pairs.values() if (t := ref()) is not None]
        self.told = [own for _, own in there]
        self.others = [t.detach() for t, _ in there if not t.is_inference()]
        """Other names of the tensors that have a version, which they share, and of the memory that they had; given back with the first tensor that
        goes."""
        self.at_once: tensors.Versions | None = None
        """The same, to be asked in one call."""
        self.gone = [True] * (len(there) < len(pairs))
        dropped = functools.partial(_dropped, self.gone, self.others)  # no method: with it this would wait for the garbage collector
        self.refs = [weakref.ref(t, dropped) for t, _ in there]

    @classmethod
    def of(cls, edge_tensors: Sequence[torch.Tensor]) -> Versions:
        """Return tensors as they are now."""
        return cls([(tuple(map(told, edge_tensors)), [weakref.ref(t) for t in edge_tensors], None)])

    def there(self) -> list[torch.Tensor]:
        """Return those that are there."""
        return [t for ref in self.refs if (t := ref()) is not None]

    def same(self) -> bool:
        """Are all there, and as they were?"""
        if self.gone:
            return False
        if self.at_once is not None:
            return self.at_once.same()
        if [told(t) for t in self.there()] != self.told:
            return False
        library = tensors.library(self.others[0]) if len(self.others) == len(self.refs) > 0 else None
        self.at_once = None if library is None else tensors.Versions(library, self.refs, self.others)
        return True


def _dropped(gone: list[bool], others: list[torch.Tensor], _: Any) -> None:
    gone.append(True)
    others.clear()


def latest() -> Index | None:
    """Return the index that was asked for last."""
    return next(reversed(_KEPT.values()))[1] if _KEPT else None


_FORGOTTEN = [0]


def forgotten() -> int:
    """Return how often `forget` was asked: what was recorded before reads what it dropped."""
    return _FORGOTTEN[0]


def forget(edge_tensors: Sequence[torch.Tensor]) -> None:
    """Drop the indices of tensors that were written where their version does not tell."""
    _FORGOTTEN[0] += 1
    gone = {id(t) for t in edge_tensors}
    for key in [key for key, (refs, _) in _KEPT.items() if any(id(ref()) in gone for ref in refs)]:
        del _KEPT[key]
