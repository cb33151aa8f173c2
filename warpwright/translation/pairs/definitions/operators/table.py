"""A table of operators, and the sizes, inputs and one-stage graphs that all of its files draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from warpwright.translation.pairs.definitions.expr import Expr, Graph, Stage, Tensor, graph, index
from warpwright.translation.pairs.definitions.functions import Interval

Make = Callable[[Random], Graph]
Body = Callable[[Expr], Expr]

I, J, K, N, C, H, W, R, Q, P, S = (index(name) for name in ("i", "j", "k", "n", "c", "h", "w", "r", "q", "p", "e"))  # noqa: E741
"""The axes that definitions of more than one stage or reduction are written in."""


@dataclass(frozen=True)
class Operator:
    """One row of the table: `make` draws sizes and returns the graph."""

    name: str
    family: str
    make: Make


class Table(dict[str, Operator]):
    """Operators by name, in the order of their definition, which a seed's meaning depends on."""

    def operator(self, family: str, name: str = "") -> Callable[[Make], Make]:
        """Register the decorated function, under its own name unless `name` is set."""

        def register(make: Make) -> Make:
            key = name or make.__name__.rstrip("_")
            self[key] = Operator(key, family, make)
            return make

        return register


def identity(x: Expr) -> Expr:
    """Return x."""
    return x


def size(rng: Random, low: int, high: int) -> int:
    """Draw an extent from low to high, small ones more often; half of the time a multiple of a power of two."""
    value = int(math.exp(rng.uniform(math.log(low), math.log(high + 1))))
    if rng.random() < 0.5:
        step = 2 ** max(0, value.bit_length() - 3)
        value = max(low, value // step * step)
    return min(high, max(low, value))


def tensor_shape(rng: Random, rank: int = 0, most: int = 65536) -> tuple[int, ...]:
    """Draw a shape of at most `most` elements and at least 512."""
    rank = rank or rng.choice((1, 2, 2, 3, 3, 4))
    total = size(rng, 2048, most)
    shape: list[int] = []
    for left in range(rank, 1, -1):
        shape.append(size(rng, 2, max(2, min(128, int(total ** (1 / left)) * 2))))
        total = max(2, total // shape[-1])
    shape.append(max(2, total))
    return tuple(shape)


def cut(interval: Interval, wide: float = 4.0) -> Interval:
    """Return the part of a domain that inputs are drawn from: from -wide to wide, or the lower end of a domain above 0."""
    low, high = interval
    if low > 0:
        return low, min(high, max(2 * low, wide))
    return max(low, -wide), min(high, wide)


def source(name: str, *shape: int, interval: Interval = (-1.0, 1.0)) -> Tensor:
    """Return a float32 input."""
    return Tensor(name, shape, "float32", *interval)


def positions(shape: tuple[int, ...], prefix: str = "i") -> tuple[tuple[tuple[str, int], ...], tuple[Expr, ...]]:
    """Return axes over a shape and their index expressions."""
    axes = tuple((f"{prefix}{d}", extent) for d, extent in enumerate(shape))
    return axes, tuple(index(name) for name, _ in axes)


def mapped(name: str, family: str, inputs: tuple[Tensor, ...], shape: tuple[int, ...], body: Callable[..., Expr]) -> Graph:
    """Return a graph of one stage: out[i0, i1, ...] = body(i0, i1, ...)."""
    axes, at = positions(shape)
    return graph(name, family, inputs, (Stage("y", axes, body(*at)),))
