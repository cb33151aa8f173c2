"""Calls of another library's kernels, as a candidate beside ours: Liger-Kernel, where it is installed (extra `libraries`). CUDA only.

    softmax(x, -1), layer_norm, rms_norm, group_norm, silu(a) * b, gelu(a, "tanh") * b, cross_entropy, kl_div  ->  a call of Liger's kernel each

What these are is `kernels/liger.py`. The baseline `liger` is the same of the whole program as it is written, without a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, argument, aten, edit, find, is_op, is_tensor, only_user, value
from warpwright.domains.graph.kernels import FromFile, liger
from warpwright.domains.graph.libraries import LIGER
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits


class LigerCall(FromFile):
    """The graph's name for one of Liger's calls in a generated file."""

    file = "liger"

    def __init__(self, call: str) -> None:
        self.call, self.__name__ = call, f"liger_{call}"

    def __call__(self, x: torch.Tensor, *rest: Any) -> torch.Tensor:
        """Return what it computes, by torch's own call."""
        result: torch.Tensor = _TABLE[self.call][2](x, *rest)
        return result

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        return f'def {self.__name__}(x, *rest):\n    return liger("{self.call}", x, *rest)\n'


_TABLE: Mapping[str, tuple[Any, Any, Any]] = liger.LIGER
CALLS = {call: LigerCall(call) for call in _TABLE}


@dataclass(frozen=True)
class LigerKernels:
    """softmax(x, -1)  ->  LigerSoftmaxFunction.apply(x), and so with every call of a program that Liger-Kernel has a kernel for."""

    name: str = "liger_kernels"
    traits: ClassVar[Traits] = Traits("S", best_with=(fuse_cuda(1, DEFAULT), Action("cuda_graph")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together, where the package is installed."""
        if ir.takes_kernels and ir.training is None and LIGER.installed and any(read(node) for node in find(ir, *_ROOTS)):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with each of them a call of Liger's."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a call that Liger-Kernel has a kernel for, and the package", f"not {action}")
        e = edit(ir)
        for name in [node.name for node in find(ir, *_ROOTS) if read(node)]:
            node = e.node(name)
            call, given = read(node) or ("", ())
            e.replace(node, e.before(node).call(CALLS[call], *given))
        return e.finish()


def read(node: fx.Node) -> tuple[str, tuple[Any, ...]] | None:
    """Return the call of `liger.LIGER` that a node is and what it is given; None where Liger has none."""
    call, given = _given(node)
    if not call or not is_tensor(node) or not all(is_tensor(one) for one in given if isinstance(one, fx.Node)):
        return None
    seen = [value(one).detach() if isinstance(one, fx.Node) else one for one in given]  # a parameter asks for no gradients here
    return (call, given) if value(node).dtype == seen[0].dtype and _TABLE[call][0](*seen) else None


def _given(node: fx.Node) -> tuple[str, tuple[Any, ...]]:
    x: Any = node.args[0]
    if is_op(node, aten.softmax.int):
        return "softmax", (x, node.args[1])
    if is_op(node, aten.layer_norm.default):
        return "layer_norm", tuple(argument(node, name) for name in ("input", "normalized_shape", "weight", "bias", "eps"))
    if is_op(node, aten.rms_norm.default):
        return "rms_norm", tuple(argument(node, name) for name in ("input", "normalized_shape", "weight", "eps"))
    if is_op(node, aten.group_norm.default):
        return "group_norm", tuple(argument(node, name) for name in ("input", "num_groups", "weight", "bias", "eps"))
    if is_op(node, aten.kl_div.default):
        return "kl_div", (x, node.args[1], argument(node, "reduction"), argument(node, "log_target"))
    if is_op(node, aten.cross_entropy_loss.default) and argument(node, "weight") is None:
        return "cross_entropy", (x, node.args[1], *(argument(node, name) for name in ("reduction", "ignore_index", "label_smoothing")))
    return _gated(node) if is_op(node, aten.mul.Tensor) else ("", ())


def _gated(node: fx.Node) -> tuple[str, tuple[Any, ...]]:
    """Return an activation times a tensor, if nobody else reads the activation."""
    for gate, other in (node.args, node.args[::-1]):
        if not isinstance(gate, fx.Node) or only_user(gate) is not node:
            continue
        if is_op(gate, aten.silu.default):
            return "silu_mul", (gate.args[0], other)
        if is_op(gate, aten.gelu.default) and argument(gate, "approximate") == "tanh":
            return "gelu_mul", (gate.args[0], other)
    return "", ()


_ROOTS = (
    aten.softmax.int, aten.layer_norm.default, aten.rms_norm.default, aten.group_norm.default, aten.kl_div.default, aten.cross_entropy_loss.default,
    aten.mul.Tensor,
)  # fmt: skip

TECHNIQUES = (LigerKernels(),)
