"""What the kernels of `implicit_convolution` end with: calls element by element, a pool whose windows do not overlap, and calls on what it leaves;
statistics for a norm; and the store, into a part of a larger tensor where the result is one operand of a `cat`.

    cat([relu(conv(x, v)), relu(max_pool2d(conv(x, w), 2))], 1)  ->  two kernels, each of which writes its channels
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx

from warpwright.base import digest
from warpwright.domains.graph.cpp.kernel import interpret, subgraph
from warpwright.domains.graph.ir import argument, aten, is_op, only_user, shape
from warpwright.domains.graph.kernels import FromFile
from warpwright.domains.graph.techniques.convolutions import epilogue
from warpwright.domains.graph.techniques.convolutions.convolution import TRANSPOSED
from warpwright.domains.graph.techniques.convolutions.epilogue import Epilogue

POOLS: Mapping[Any, str] = {
    aten.max_pool1d.default: "max", aten.max_pool2d.default: "max", aten.max_pool3d.default: "max",
    aten.avg_pool1d.default: "avg", aten.avg_pool2d.default: "avg", aten.avg_pool3d.default: "avg",
}  # fmt: skip
MOST_OF_A_WINDOW = 16
"""Places that a pool joins: they are neighbours in a block."""
POSITION = "row, real, target, kept"


@dataclass(frozen=True)
class End:
    """Calls after one of `start`, which a kernel may end with."""

    start: fx.Node
    found: Epilogue | None = None
    pool: fx.Node | None = None
    windows: tuple[int, ...] = ()
    later: Epilogue | None = None
    """After the pool."""
    moved: fx.Node | None = None
    """A maximum over windows that the kernel cannot form; what it ends with, `found`, stood behind that, and comes before it now."""

    @property
    def last(self) -> fx.Node:
        """The call in whose place the kernel's result comes, with `moved` after it."""
        return self.later.last if self.later else self.pool or (self.found.last if self.found else self.start)

    @property
    def operands(self) -> tuple[fx.Node, ...]:
        """Tensors that it reads."""
        return (*(self.found.operands if self.found else ()), *(self.later.operands if self.later else ()))

    @property
    def kind(self) -> str:
        """Of the pool: max, avg, or nothing."""
        return POOLS[self.pool.target] if self.pool is not None else ""

    @property
    def calls(self) -> fx.Graph | None:
        """The calls as a graph of the first one's result and the operands."""
        after = [*(self.found.calls if self.found else ()), *([self.pool] if self.pool is not None else ())]
        after += self.later.calls if self.later else ()
        return subgraph(after, (self.moved or self.start, *self.operands), [self.last]) if after else None


def load(operand: fx.Node, start: fx.Node) -> str | None:
    """Return how an operand is read: a number a channel, one in all, or a tensor like the result."""
    if shape(operand) == shape(start):
        return "tl.load({q} + target, mask=kept, other=0.0)"
    of_channels = epilogue.of_channels(operand, start)
    return of_channels.replace("[None, :]", "[:, None]") if of_channels else None


def after(start: fx.Node) -> End:
    """Return all that the kernel of `start` may end with."""
    found = epilogue.after(start, load)
    end = End(start, found)
    pool = only_user(end.last)
    whole = not is_op(start, *TRANSPOSED)  # a transposed convolution's blocks hold every other place, and no windows
    windows = windows_of(pool, end.last) if pool is not None and whole else ()
    if pool is None or not windows:
        return _moved(end, pool) or end
    later = epilogue.after(pool, load)
    if later is not None and len(later.operands) + (len(found.operands) if found else 0) > epilogue.MOST_OPERANDS:
        later = None
    return End(start, found, pool, windows, later)


RISING = frozenset({
    aten.add.Tensor, aten.add.Scalar, aten.relu.default, aten.relu6.default, aten.sigmoid.default, aten.tanh.default, aten.clamp.default,
    aten.clamp_min.default, aten.clamp_max.default, aten.hardtanh.default, aten.hardsigmoid.default,
})  # fmt: skip
"""Calls that do not fall where one of their tensors rises: the largest of several results is that of the largest."""


def _moved(end: End, pool: fx.Node | None) -> End | None:
    """Return an end with the rising calls behind a maximum over other windows, which is what rewrites leave (`extremum_first`): there they are passes
    over its result, here they cost nothing."""
    if pool is None or end.found is not None or POOLS.get(pool.target) != "max" or pool.args[0] is not end.start:
        return None
    found = epilogue.after(pool)
    rises = found is not None and all(node.target in RISING for node in found.nodes[1:])
    once = found is not None and all(sum(arg in found.nodes for arg in node.all_input_nodes) == 1 for node in found.nodes[1:])
    if found is None or not rises or not once:
        return None
    loads = tuple(load(one, end.start) for one in found.operands)  # there, a number a channel may have the sizes of the pool's result
    if None in loads:
        return None
    kept = Epilogue(found.nodes, found.operands, tuple(one or "" for one in loads), found.lines)
    return End(end.start, kept, moved=pool)


def windows_of(pool: fx.Node, source: fx.Node) -> tuple[int, ...]:
    """Return the sizes of a pool's windows, where they do not overlap and fit a block; else nothing."""
    if pool.target not in POOLS or pool.args[0] is not source:
        return ()
    d = len(shape(pool)) - 2
    if not 1 <= d <= 3 or list(POOLS).index(pool.target) % 3 != d - 1:  # to a pool of more axes this is a sample without a batch
        return ()
    sizes, stride, padding = (_per_axis(argument(pool, name), d) for name in ("kernel_size", "stride", "padding"))
    plain = not any(padding) and (not stride or stride == sizes) and not argument(pool, "ceil_mode")
    if POOLS[pool.target] == "max":
        plain = plain and set(_per_axis(argument(pool, "dilation"), d)) == {1}
    elif d > 1:
        plain = plain and argument(pool, "divisor_override") is None
    fits = all(size & (size - 1) == 0 for size in sizes) and 1 < math.prod(sizes) <= MOST_OF_A_WINDOW
    inside = all(kept * size <= whole for kept, size, whole in zip(shape(pool)[2:], sizes, shape(source)[2:], strict=True))
    return sizes if plain and fits and inside else ()


def _per_axis(given: Any, d: int) -> tuple[int, ...]:
    values = (given,) if isinstance(given, int) else tuple(given or ())
    return values * d if len(values) == 1 else values


class Ended(FromFile):
    """A generated function that ends with what follows it; what `ImplicitConvolution` and `PointwiseConvolution` have in common."""

    own = ""
    """Its parameters, as text, in the order of the call's arguments: `into` and `within` follow one another."""

    def __init__(self, end: End | None, statistics: str = "") -> None:
        """`statistics`: each or all."""
        self.calls, self.end = end.calls if end else None, end
        self.text = self._text("NAME", "LATER") if end else ""
        self._set(statistics)

    def _set(self, statistics: str) -> None:
        known = self.text + statistics
        self.statistics, self.__name__ = statistics, f"{self.file}_{digest(known)[:8]}" if known else self.file

    def _text(self, name: str, later: str) -> str:
        end = self.end
        assert end is not None
        texts = [end.found.text(name, POSITION)] if end.found else []
        texts += [end.later.text(later, POSITION, len(end.found.operands) if end.found else 0)] if end.later else []
        return "\n\n".join(texts)

    def ended(self, y: torch.Tensor, operands: Sequence[torch.Tensor], into: torch.Tensor | None, within: Sequence[int], places: int) -> Any:
        """Return what becomes of a convolution's result, by torch's own calls; `places` of a block."""
        y = interpret(self.calls, (y, *operands))[0] if self.calls else y
        found = _statistics(y, self.statistics, places) if self.statistics else None
        if within:
            whole, first = within
            parts = [y.new_zeros((y.shape[0], whole, *y.shape[2:])) if into is None else into]
            parts = [parts[0][:, :first], y, parts[0][:, first + y.shape[1] :]]
            y = torch.cat(parts, 1)
        return (y, found) if self.statistics else y

    def python_text(self) -> str:
        """Return the end of the kernel, and the function that hands it over."""
        if self.__name__ == self.file:
            return ""
        name, later, given = f"_end_of_{self.__name__}", f"_later_of_{self.__name__}", self._given()
        text = self._text(name, later) if self.end else ""
        given += f", epilogue={name}" if self.end and self.end.found else ""
        given += f", later={later}" if self.end and self.end.later else ""
        given += f', statistics="{self.statistics}"' if self.statistics else ""
        return f"{text}\n\ndef {self.__name__}({self.own}, *operands):\n    return {self.file}({given}, operands=operands)\n"

    def place(self, name: str) -> int:
        """Return the place of an argument of its calls."""
        return [one.partition("=")[0].strip() for one in self.own.split(",")].index(name)

    @property
    def place_of_into(self) -> int:
        """The place of the argument that says what is written into; after it stands how many channels that has, and which come first."""
        return self.place("into")

    def with_statistics(self, kind: str) -> Ended:
        """Return the same function that returns statistics, too."""
        new = copy.copy(self)
        new._set(kind)
        return new

    def is_alone(self, call: fx.Node) -> bool:
        """Does this call return its own result, and nothing else?"""
        return not self.statistics and not call.args[self.place_of_into + 1]

    def may_count(self, call: fx.Node) -> bool:
        """May this call return statistics?"""
        return self.is_alone(call)

    def places_of_block(self, call: fx.Node) -> int:
        """Return how many places of the result a block writes."""
        blocks, pool = call.args[self.place("blocks")], call.args[self.place("pool")]
        return int(blocks[1] // math.prod(pool or [1]))  # type: ignore[index, operator, arg-type]

    def _given(self) -> str:
        return self.own


def _statistics(y: torch.Tensor, kind: str, places: int) -> torch.Tensor:
    """Return mean and sum of squared deviations [blocks, channels, 2] of blocks of so many places, as the kernels store them."""
    n, channels = y.shape[:2]
    units, flat = (n, y.reshape(n, channels, -1)) if kind == "each" else (1, y.movedim(1, 0).reshape(1, channels, -1))
    more = -flat.shape[2] % places
    blocks = F.pad(flat, (0, more)).reshape(units, channels, -1, places)
    seen = F.pad(torch.ones_like(flat[:1, :1]), (0, more)).reshape(1, 1, -1, places)
    mean = blocks.sum(3) / seen.sum(3)
    squares = ((blocks - mean[..., None]) * seen).square().sum(3)
    return torch.stack([mean, squares], 3).transpose(1, 2).reshape(-1, channels, 2)


class NormOfBlocks:
    """The graph's name for the generated function `norm_of_blocks`."""

    __name__ = "norm_of_blocks"

    def __init__(self, shared_text: str) -> None:
        self.shared_text = shared_text

    def __call__(self, statistics: torch.Tensor, units: int, per: int, group: int, places: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what the function computes, by torch's own calls."""
        channels = statistics.shape[1]
        blocks = statistics.reshape(units, -1, channels // group, group, 2)
        counts = torch.full_like(blocks[:1, :, :1, :1, 0], places)
        counts[:, -1] = per - (blocks.shape[1] - 1) * places
        total = per * group
        mean = (counts * blocks[..., 0]).sum((1, 3), keepdim=True) / total
        squares = (blocks[..., 1] + counts * (blocks[..., 0] - mean).square()).sum((1, 3), keepdim=True) / total
        form = (units, channels, *[1] * (rank - 2))
        return tuple(one.expand(-1, -1, -1, group).reshape(form) for one in (squares, mean))  # type: ignore[return-value]

    def python_text(self) -> str:
        """Return what is this one's alone."""
        return ""


def is_ended(node: Any) -> bool:
    """Is it a call of such a function?"""
    return isinstance(node, fx.Node) and isinstance(node.target, Ended)


def is_cat_of_channels(node: fx.Node) -> bool:
    """Does it join channels?"""
    return is_op(node, aten.cat.default, aten.concat.default) and argument(node, "dim") in (1, 1 - len(shape(node)))


def is_joined(node: fx.Node) -> bool:
    """Is what the kernel of `node` gives an operand of a `cat` of channels?"""
    reader = only_user(after(node).last)
    return reader is not None and is_cat_of_channels(reader)
