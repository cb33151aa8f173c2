"""Calls of other libraries' kernels, as candidates beside ours, where they are installed (extra `libraries`). CUDA only.

    softmax(x, -1), layer_norm, silu(a) * b, scaled_dot_product_attention, relu(conv2d(x, w, b)), ...  ->  a call of the library's kernel each

What each library takes is a file of `kernels/others/`. Its baseline is the same of the whole program as it is written, without a graph.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, argument, aten, edit, find, is_op, is_tensor, only_user, shape, value
from warpwright.domains.graph.kernels.others import OWN, TABLES
from warpwright.domains.graph.libraries import LIBRARIES, Library
from warpwright.domains.graph.techniques.convolutions import convolution
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.tf32 import tf32_flags

Call = tuple[str, tuple[Any, ...]]
"""A call of OWN and what it is given, nodes among it."""


class LibraryCall:
    """The graph's name for one of a library's calls in a generated file."""

    def __init__(self, library: str, call: str) -> None:
        self.library, self.call, self.__name__ = library, call, f"{library}_{call}"

    def __call__(self, x: torch.Tensor, *rest: Any) -> Any:
        """Return what it computes, by torch's own call."""
        return OWN[self.call](x, *rest)

    @property
    def shared_text(self) -> str:
        """What the library's functions share, which stands in a generated file once."""
        return LIBRARIES[self.library].text

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        return f'def {self.__name__}(x, *rest):\n    return {self.library}("{self.call}", x, *rest)\n'


CALLS = {(library, call): LibraryCall(library, call) for library, table in TABLES.items() for call in table}


@dataclass(frozen=True)
class LibraryKernels:
    """softmax(x, -1)  ->  LigerSoftmaxFunction.apply(x), and so with every call of a program that a library has a kernel for."""

    library: Library
    tf32: bool = False
    """Does the task permit TF32, whatever the program's own flags say?"""
    traits: ClassVar[Traits] = Traits("S", best_with=(fuse_cuda(1, DEFAULT), Action("cuda_graph")))

    @property
    def name(self) -> str:
        """Of its actions."""
        return self.library.technique

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together, where the package is installed."""
        if ir.takes_kernels and ir.training is None and self.library.installed and any(self.read(node) for node in find(ir, *ROOTS)):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with each of them a call of the library's."""
        if action not in list(self.sites(ir)):
            library = self.library
            raise NotApplicable(f"expected a call that {library.package} has a kernel for ({library.takes}), and the package", f"not {action}")
        e = edit(ir)
        for name in reversed([node.name for node in find(ir, *ROOTS) if self.read(node)]):  # what ends with a call comes after it
            node = e.node(name)
            call, given = self.read(node) or ("", ())
            if not call or not node.users:
                continue
            made, several = e.before(node).call(CALLS[self.library.name, call], *given), list(node.users)
            if is_tensor(node):
                e.replace(node, made)
            else:
                for item in several:
                    e.replace(item, e.before(item).item(made, int(item.args[1])))  # type: ignore[arg-type]
        return e.finish()

    def read(self, node: fx.Node) -> Call | None:
        """Return the call of the library's table that a node is and what it is given; None where the library has none."""
        table = TABLES[self.library.name]
        with tf32_flags(True) if self.tf32 else contextlib.nullcontext():
            return next((one for one in _calls(node) if one[0] in table and _fits(table[one[0]][0], node, one[1])), None)


def _fits(takes: Any, node: fx.Node, given: tuple[Any, ...]) -> bool:
    if not all(is_tensor(one) for one in given if isinstance(one, fx.Node)):
        return False
    seen = [value(one).detach() if isinstance(one, fx.Node) else one for one in given]  # a parameter asks for no gradients here
    return (not is_tensor(node) or value(node).dtype == seen[0].dtype) and bool(takes(*seen))


def _calls(node: fx.Node) -> Iterator[Call]:
    """Yield what a node may be read as, the longest first."""
    if is_op(node, aten.mul.Tensor):
        yield from _gated(node)
        return
    end, before = _end(node)
    if before is not None:
        yield from _ending(before, end)
        return
    yield from _ending(node, "")
    named = _NAMED.get(node.target)
    if named is not None:
        yield named[0], tuple(argument(node, name) for name in named[1])
    elif is_op(node, aten.cross_entropy_loss.default) and argument(node, "weight") is None:
        yield "cross_entropy", (*node.args[:2], *(argument(node, name) for name in ("reduction", "ignore_index", "label_smoothing")))
    elif is_op(node, aten.scaled_dot_product_attention.default) and not argument(node, "dropout_p"):
        yield "attention", tuple(argument(node, name) for name in ("query", "key", "value", "attn_mask", "is_causal", "scale", "enable_gqa"))
    elif is_op(node, aten.topk.default):
        x: Any = node.args[0]
        last = argument(node, "dim") % max(1, len(shape(x))) == len(shape(x)) - 1
        if last and argument(node, "largest") and all(user.target is operator.getitem for user in node.users):
            yield "top_k", (x, argument(node, "k"))


_NAMED: Mapping[Any, tuple[str, tuple[str, ...]]] = {
    aten.softmax.int: ("softmax", ("self", "dim")),
    aten.layer_norm.default: ("layer_norm", ("input", "normalized_shape", "weight", "bias", "eps")),
    aten.rms_norm.default: ("rms_norm", ("input", "normalized_shape", "weight", "eps")),
    aten.group_norm.default: ("group_norm", ("input", "num_groups", "weight", "bias", "eps")),
    aten.kl_div.default: ("kl_div", ("self", "target", "reduction", "log_target")),
}
"""Operators that are one call each, with the arguments that it takes."""

_ENDS: Mapping[Any, str] = {
    aten.relu.default: "relu", aten.silu.default: "silu", aten.sigmoid.default: "sigmoid", aten.tanh.default: "tanh", aten.gelu.default: "gelu",
}  # fmt: skip


def _end(node: fx.Node) -> tuple[str, fx.Node | None]:
    """Return the activation that a node is and the call before it, if nobody else reads that."""
    end, before = _ENDS.get(node.target, ""), node.args[0]
    if not end or not isinstance(before, fx.Node) or only_user(before) is not node:
        return "", None
    return ("gelu_tanh" if end == "gelu" and argument(node, "approximate") == "tanh" else end), before


def _ending(node: fx.Node, end: str) -> Iterator[Call]:
    """Yield a convolution or a product that ends so."""
    found = convolution.read(node)
    if found is not None and not found.transposed and found.d in (2, 3):
        yield "convolution", (found.x, found.weight, found.bias, list(found.stride), list(found.padding), list(found.dilation), found.groups, end)
    elif is_op(node, aten.linear.default):
        yield "linear", (*(argument(node, name) for name in ("input", "weight", "bias")), end)


def _gated(node: fx.Node) -> Iterator[Call]:
    """Yield an activation times a tensor, if nobody else reads the activation."""
    for gate, other in (node.args, node.args[::-1]):
        if not isinstance(gate, fx.Node) or not isinstance(other, fx.Node) or only_user(gate) is not node:
            continue
        kind = "silu" if is_op(gate, aten.silu.default) else ""
        kind = "gelu" if is_op(gate, aten.gelu.default) and argument(gate, "approximate") == "tanh" else kind
        if not kind:
            continue
        whole = _halves(gate.args[0], other)
        if whole is not None:
            yield f"{kind}_halves", (whole,)
        yield f"{kind}_mul", (gate.args[0], other)


def _halves(first: Any, second: fx.Node) -> fx.Node | None:
    """Return the tensor whose last dimension two nodes are the halves of, in this order."""
    parts = [_part(one) for one in (first, second)]
    if None in parts or parts[0][0] is not parts[1][0]:  # type: ignore[index]
        return None
    whole, low, high = parts[0]  # type: ignore[misc]
    last = shape(whole)[-1]
    return whole if 2 * high == last and low == 0 and parts[1][1:] == (high, last) else None  # type: ignore[index]


def _part(node: Any) -> tuple[fx.Node, int, int] | None:
    """Return the tensor that a node is a piece of, along its last dimension, and where the piece begins and ends."""
    if not isinstance(node, fx.Node) or not is_tensor(node):
        return None
    source: Any = node.args[0] if node.args else None
    if node.target is operator.getitem and is_op(source, aten.split.Tensor, aten.chunk.default):
        whole: Any = source.args[0]
        if argument(source, "dim") % len(shape(whole)) != len(shape(whole)) - 1:
            return None
        sizes = [part.shape[-1] for part in source.meta["val"]]
        at: Any = node.args[1]
        return whole, sum(sizes[:at]), sum(sizes[: at + 1])
    if is_op(node, aten.slice.Tensor) and argument(node, "dim") % len(shape(source)) == len(shape(source)) - 1 and argument(node, "step") == 1:
        low = argument(node, "start") or 0
        low += shape(source)[-1] if low < 0 else 0
        return source, low, low + shape(node)[-1]
    return None


ROOTS = (
    *_NAMED, *_ENDS, *convolution.CONVOLUTIONS, aten.linear.default, aten.cross_entropy_loss.default, aten.scaled_dot_product_attention.default,
    aten.topk.default, aten.mul.Tensor,
)  # fmt: skip

TECHNIQUES = tuple(map(LibraryKernels, LIBRARIES.values()))
