"""The front end: a layer is a function over symbolic graph tensors, traced by operator overloading.

    def rgat(g, x, weight, q, k):
        z_src, z_dst = g.src(x) @ weight[g.etype], g.dst(x) @ weight[g.etype]
        score = leaky_relu((z_dst * q).sum() + (z_src * k).sum(), 0.2)
        return g.sum_in(g.softmax_in(score) * z_src)

Where each value lives is inferred: `z_src` depends on (source, relation) only, so it has a row for each such pair and not for each edge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from warpwright.domains.rgnn.ir import Builder, Program, Shape
from warpwright.domains.rgnn.lattice import Domain, join
from warpwright.errors import UsageError


class Slice(Enum):
    """What a weight is indexed by."""

    ETYPE = Domain.ETYPE
    TSRC = Domain.TSRC
    TDST = Domain.TDST


@dataclass(frozen=True)
class Sym:
    """A value of the traced program."""

    builder: Builder
    at: int

    @property
    def domain(self) -> Domain:
        """What it depends on."""
        return self.builder.ops[self.at].domain

    @property
    def shape(self) -> Shape:
        """The shape of one row."""
        return self.builder.ops[self.at].shape

    def __getitem__(self, place: Slice | tuple[object, ...]) -> Sym:
        """Return the weight of an edge's relation or of a node's type; `x[..., None]` appends a dimension of one."""
        if isinstance(place, Slice):
            return Sym(self.builder, self.builder.view(self.at, place.value))
        if place == (Ellipsis, None):
            return Sym(self.builder, self.builder.reshape(self.at, (*self.shape, 1)))
        raise UsageError(f"expected g.etype, g.src.type, g.dst.type or [..., None], saw {place!r}")

    def __add__(self, other: Sym | float) -> Sym:
        return self._map("add", other) if isinstance(other, Sym) else self._map("shift", constant=other)

    def __sub__(self, other: Sym | float) -> Sym:
        return self._map("sub", other) if isinstance(other, Sym) else self._map("shift", constant=-other)

    def __neg__(self) -> Sym:
        return self._map("scale", constant=-1.0)

    def __mul__(self, other: Sym | float) -> Sym:
        return product(self, other) if isinstance(other, Sym) else self._map("scale", constant=other)

    __rmul__ = __mul__
    __radd__ = __add__

    def __truediv__(self, other: Sym | float) -> Sym:
        return product(self, other._map("reciprocal")) if isinstance(other, Sym) else self._map("scale", constant=1 / other)

    def __matmul__(self, weight: Sym) -> Sym:
        """Return row @ weight over the last dimension; leading dimensions that both have (heads) go in parallel, those of one alone are kept."""
        left, right = len(self.shape), len(weight.shape)
        heads = max(0, min(left - 1, right - 2))
        letters = "abcdefgh"[: left - 1] + "k"
        shared = letters[left - 1 - heads : left - 1]
        return self._contract(weight, letters, "xyz"[: right - 2 - heads] + shared + "km", "xyz"[: right - 2 - heads] + letters[:-1] + "m")

    def per_head(self, weight: Sym) -> Sym:
        """Return [heads, out] of a row [in] and a weight [in, heads, out]."""
        return self._contract(weight, "k", "khm", "hm")

    def sum(self) -> Sym:
        """Sum the last dimension of each row."""
        letters = "abcdefgh"[: len(self.shape)]
        return Sym(self.builder, self.builder.contract([self.at], [letters], letters[:-1]))

    def reshape(self, *shape: int) -> Sym:
        """Give each row another shape."""
        return Sym(self.builder, self.builder.reshape(self.at, shape))

    def _map(self, function: str, *others: Sym, constant: float = 0.0) -> Sym:
        return Sym(self.builder, self.builder.map(function, self.at, *(other.at for other in others), constant=float(constant)))

    def _contract(self, other: Sym, mine: str, its: str, result: str) -> Sym:
        return Sym(self.builder, self.builder.contract([self.at, other.at], [mine, its], result))


def product(a: Sym, b: Sym) -> Sym:
    """Return the elementwise product; dimensions of one are stretched, leading ones may lack."""
    rank = max(len(a.shape), len(b.shape))
    letters = "abcdefgh"[:rank]
    wide = [(1,) * (rank - len(x.shape)) + x.shape for x in (a, b)]
    kept = ["".join(c for c, n, m in zip(letters, wide[i], wide[1 - i], strict=True) if n != 1 or (m == 1 and i == 0)) for i in (0, 1)]
    narrow = [x.reshape(*(w[letters.index(c)] for c in k)) for x, w, k in zip((a, b), wide, kept, strict=True)]
    result = "".join(c for c in letters if c in kept[0] or c in kept[1])
    return narrow[0]._contract(narrow[1], kept[0], kept[1], result)


def exp(x: Sym) -> Sym:
    """Return e to the x."""
    return x._map("exp")


def leaky_relu(x: Sym, slope: float = 0.01) -> Sym:
    """Return x where it is positive, slope * x elsewhere."""
    return x._map("leaky_relu", constant=slope)


def relu(x: Sym) -> Sym:
    """Return max(x, 0)."""
    return x._map("relu")


def tanh(x: Sym) -> Sym:
    """Return the hyperbolic tangent."""
    return x._map("tanh")


def sigmoid(x: Sym) -> Sym:
    """Return 1 / (1 + e^-x)."""
    return x._map("sigmoid")


def gelu(x: Sym) -> Sym:
    """Return x times the normal distribution function of x."""
    return x._map("gelu")


class _End:
    """`g.src` or `g.dst`: reads node values at an edge's end."""

    def __init__(self, domain: Domain, types: Slice) -> None:
        self.domain, self.type = domain, types

    def __call__(self, x: Sym) -> Sym:
        return Sym(x.builder, x.builder.view(x.at, self.domain))


class Graph:
    """The symbolic graph that a traced layer is given."""

    def __init__(self) -> None:
        self.src, self.dst, self.etype = _End(Domain.SRC, Slice.TSRC), _End(Domain.DST, Slice.TDST), Slice.ETYPE

    def sum_in(self, x: Sym, to: Domain = Domain.DST) -> Sym:
        """Sum over the edges into each node (`to` PAIR_DST: over those of one relation)."""
        letters = "abcdefgh"[: len(x.shape)]
        return Sym(x.builder, x.builder.contract([x.at], [letters], letters, Domain.EDGE, to))

    def mean_in(self, x: Sym, to: Domain = Domain.DST) -> Sym:
        """Average over the edges into each node; 0 where there are none."""
        return product(self.sum_in(x, to), self.degree(x, to)._map("inverse"))

    def max_in(self, x: Sym, to: Domain = Domain.DST) -> Sym:
        """Take the maximum over the edges into each node; 0 where there are none."""
        return Sym(x.builder, x.builder.segmax(x.at, to))

    def degree(self, like: Sym, to: Domain = Domain.DST) -> Sym:
        """Count the edges into each node."""
        return Sym(like.builder, like.builder.count(to))

    def per_relation(self, x: Sym, how: str = "mean") -> Sym:
        """Aggregate over each (destination, relation) pair by sum, mean or max, then add up over the relations."""
        if how == "max":
            return _pair_sum(self.max_in(x, Domain.PAIR_DST))
        if how in {"sum", "add"}:
            return self.sum_in(x)
        inverse = Sym(x.builder, x.builder.count(Domain.PAIR_DST))._map("inverse")
        return self.sum_in(product(x, inverse))

    def softmax_in(self, score: Sym, to: Domain = Domain.DST) -> Sym:
        """Normalise over the edges into each node; the maximum is subtracted, so that no score overflows."""
        top = self.max_in(score, to)._map("detach")
        power = exp(score - top)
        return product(power, self.sum_in(power, to)._map("inverse"))


def _pair_sum(x: Sym) -> Sym:
    letters = "abcdefgh"[: len(x.shape)]
    return Sym(x.builder, x.builder.contract([x.at], [letters], letters, Domain.PAIR_DST, Domain.DST))


def sum_pairs(x: Sym) -> Sym:
    """Add up a value of (destination, relation) pairs over the relations of each destination."""
    if join(x.domain, Domain.PAIR_DST) is not Domain.PAIR_DST:
        raise UsageError(f"expected a value of (destination, relation) pairs, saw one of {x.domain}")
    return _pair_sum(x)


def trace(layer: Callable[..., Sym], inputs: Mapping[str, tuple[Domain, Shape]]) -> Program:
    """Return the program of layer(g, **inputs), whose inputs have the given domains and shapes per row."""
    builder, graph = Builder(), Graph()
    symbols = {name: Sym(builder, builder.input(name, domain, shape)) for name, (domain, shape) in inputs.items()}
    result = layer(graph, **symbols)
    return builder.program([result.at])
