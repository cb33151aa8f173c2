"""Convolutions with few terms and channels by a kernel of our own, which also reduces the channels where a reduction follows. CUDA only.

cuDNN runs convolutions of three axes with few input channels at 8 to 14 TFLOPS (KernelBench's L1-54, 60, 66, L2-6, 23, 27 on H100 and H200), and
what a reduction over channels throws away it writes first: L2-58, 89 and 96 (3 channels in, 16 out in 8 phases) write 1 GiB that the
next call reduces 8 to 16 times. The kernel is `kernels/direct_convolution.py`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import fx

from warpwright.base import Action, digest
from warpwright.domains.graph.cpp.kernel import interpret, subgraph
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, argument, aten, dtype, edit, find, is_op, only_user, shape
from warpwright.domains.graph.kernels import FromFile
from warpwright.domains.graph.techniques.convolutions import epilogue
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, Convolution, read
from warpwright.domains.graph.techniques.convolutions.epilogue import Epilogue
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.tf32 import permits

_OPS: dict[Any, str] = {aten.amax.default: "amax", aten.amin.default: "amin", aten.logsumexp.default: "logsumexp"}
_WIDEST, _DEEPEST = 256, 512
"""Channels that fit the registers of a block, and terms of one sum: beyond, the library's kernels are worth their traffic."""
_FEW, _LEAST_FLOPS = 16, 1e9
"""Input channels up to which cuDNN's kernels are slow, and operations below which a launch is what a convolution costs. Over two axes, 8 channels
to 64 (L2-57), the sums are 19 GFLOP and the tensors 0.59 GB, which take 0.14 ms; cuDNN takes 0.31 with the channels last and 0.87 with them first."""

_FLAT = 256
"""Terms of one sum over two axes beyond which cuDNN is faster: 72 (L2-57 and 87) gain, 363 (L1-50: 3 channels to 96, 11 x 11, stride 4) stood at
0.36 of torch.compile."""


BESIDE = (Action("windows_cuda"), fuse_cuda(1, DEFAULT), Action("compile", params=(("mode", "default"),)))
"""Kernels for what stays beside such a convolution."""


class DirectConvolution(FromFile):
    """The graph's name for the generated function `direct_convolution`."""

    __name__ = file = "direct_convolution"
    compilable = True
    """torch.compile calls it as it is, and fuses what surrounds it."""

    def __call__(
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int], places: list[int],
        dilation: list[int], precision: str, outer: int = 1, axis: int = 0, op: str = "",
    ) -> torch.Tensor:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        d, ends = len(stride), []
        for a in reversed(range(d)):
            reach = (places[a] - 1) * stride[a] + (weight.shape[a + 2] - 1) * dilation[a] + 1
            ends += [padding[a], reach - padding[a] - x.shape[a + 2]]
        y = (torch.conv1d, torch.conv2d, torch.conv3d)[d - 1](F.pad(x, ends), weight, bias, stride, 0, dilation)
        return getattr(torch, op)(y.reshape(y.shape[0], outer, y.shape[1] // outer, *places), axis) if axis else y


DIRECT_CONVOLUTION = DirectConvolution()


class WithEpilogue(DirectConvolution):
    """The name for the same function, whose kernel ends with what follows the convolution."""

    def __init__(self, found: Epilogue) -> None:
        self.calls = subgraph(found.calls, (found.nodes[0], *found.operands), [found.last])
        self.text = found.text("NAME")
        self.__name__ = f"{DIRECT_CONVOLUTION.__name__}_{digest(self.text)[:8]}"

    def __call__(  # type: ignore[override]
        self, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, stride: list[int], padding: list[int], places: list[int],
        dilation: list[int], precision: str, *operands: torch.Tensor,
    ) -> torch.Tensor:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        y = super().__call__(x, weight, bias, stride, padding, places, dilation, precision)
        return interpret(self.calls, (y, *operands))[0]

    def python_text(self) -> str:
        """Return the end of the kernel, and the function that hands it over."""
        end, own = f"_end_of_{self.__name__}", ", ".join(("x", "weight", "bias", "stride", "padding", "places", "dilation", "precision"))
        call = f"direct_convolution({own}, epilogue={end}, operands=operands)"
        return f"{self.text.replace('NAME', end)}\n\ndef {self.__name__}({own}, *operands):\n    return {call}\n"


@dataclass(frozen=True)
class _Found:
    """A convolution that the kernel covers; with `axis`, its reduction as [N, outer, channels / outer, *places] over axis 1 or 2."""

    conv: Convolution
    outer: int = 1
    axis: int = 0


def _match(node: fx.Node) -> _Found | None:
    if is_op(node, *CONVOLUTIONS):
        conv = _covered(node)
        return _Found(conv) if conv is not None and _worth_it(conv) else None
    source: Any = node.args[0]
    if not shape(source):
        return None
    dim = argument(node, "dim")
    axes = [a % len(shape(source)) for a in ([dim] if isinstance(dim, int) else dim)]
    split = is_op(source, aten.reshape.default)
    conv = _covered(source.args[0] if split else source)
    if conv is None or only_user(conv.node) is not (source if split else node):
        return None
    if not split:
        return _Found(conv, 1, 2) if axes == [1] else None
    n, outer, *rest = shape(source)
    kept = only_user(source) is node and (n, *rest[1:]) == (shape(conv.x)[0], *conv.out) and len(rest) == conv.d + 1
    return _Found(conv, outer, axes[0]) if kept and axes in ([1], [2]) and _wide(conv, outer) <= _WIDEST else None


def _covered(node: Any) -> Convolution | None:
    """Return the convolution that the kernel can compute, or None."""
    conv = read(node)
    if conv is None or conv.transposed or conv.groups != 1 or dtype(conv.node) != torch.float32 or conv.flops < _LEAST_FLOPS:
        return None
    small = _wide(conv, 1) <= _WIDEST and math.prod(shape(conv.weight)[1:]) <= _DEEPEST
    counted = (math.prod(shape(conv.x)[1:]), shape(conv.x)[0] * math.prod(conv.out), math.prod(shape(conv.node)[1:]))  # by the kernel, in 32 bits
    return conv if small and max(counted) < 2**31 - 2**16 else None


def _wide(conv: Convolution, outer: int) -> int:
    """Return how many channels a block holds: both factors as powers of two."""
    return _power_of_two(outer) * _power_of_two(conv.channels // outer)


def _power_of_two(n: int) -> int:
    return 1 << (n - 1).bit_length()


def _worth_it(conv: Convolution) -> bool:
    """Few input channels; or windows that hardly overlap, as a merged pool leaves them (L2-65: cuDNN had no TF32 kernel for it)."""
    if conv.d >= 2 and shape(conv.x)[1] <= _FEW and (conv.d > 2 or math.prod(shape(conv.weight)[1:]) <= _FLAT):
        return True
    return conv.d == 2 and min(conv.stride) > 1 and math.prod(conv.kernel) <= 4 * math.prod(conv.stride)


def _unpadded(conv: Convolution) -> tuple[fx.Node, list[int]]:
    """Return the convolution's input without zeros that an earlier call put round it, and how many stood before each axis."""
    pad = conv.x
    if is_op(pad, aten.constant_pad_nd.default) and not argument(pad, "value") and only_user(pad) is conv.node:
        pads: Any = argument(pad, "pad")
        ends = [*pads, *[0] * (2 * conv.d - len(pads))]
        if len(ends) == 2 * conv.d and min(ends) >= 0:
            return pad.args[0], [p + before for p, before in zip(conv.padding, ends[-2::-2], strict=True)]  # type: ignore[return-value]
    return pad, list(conv.padding)


def _emit(e: Edit, node: fx.Node, match: _Found, precision: str) -> None:
    conv = match.conv
    x, padding = _unpadded(conv)
    arguments = [x, conv.weight, conv.bias, list(conv.stride), padding, list(conv.out), list(conv.dilation), precision]
    at = e.before(node)
    if not match.axis:
        found = epilogue.after(node)
        if found is None:
            e.replace(node, at.call(DIRECT_CONVOLUTION, *arguments))
        else:
            e.replace(found.last, e.before(found.last).call(WithEpilogue(found), *arguments, *found.operands))
        return
    new = at.call(DIRECT_CONVOLUTION, *arguments, match.outer, match.axis, _OPS[node.target])
    if not is_op(node.args[0], *CONVOLUTIONS):
        new = at.call(aten.unsqueeze.default, new, match.axis) if argument(node, "keepdim") else new
    elif not argument(node, "keepdim"):
        new = at.call(aten.squeeze.dim, new, 1)
    e.replace(node, new)


@dataclass(frozen=True)
class DirectConvolutions:
    """conv(x, W) + b, and what follows element by element, or logsumexp, max or min over its channels  ->  one kernel, for few terms and channels.

    Of every output position all channels are formed in registers. In "tf32x3" the error is about that of float32, in "tf32" that of cuDNN's
    default. Inf in x gives NaN where a low part meets it, as in `tf32x3`.
    """

    name: str = "direct_convolution"
    precisions: tuple[str, ...] = ("tf32x3", "tf32")
    tf32: bool = False
    """Does the task permit TF32, whatever torch's flags say?"""
    traits: ClassVar[Traits] = Traits("S", tried_first=True, precisions=("tf32", "tf32x3"), best_with=BESIDE)
    """What follows is element by element, on what is left."""

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action a precision, for all places together."""
        late = ("compile", "launch_plan", "cuda_graph", "channels_last")
        if not any(ir.scheduled(name) for name in late) and _places(ir):
            permitted = [precision for precision in self.precisions if precision != "tf32" or self.tf32 or permits("conv")]
            yield from (Action(self.name, params=(("precision", precision),)) for precision in permitted)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such convolution replaced, together with the reduction that follows it."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"expected a convolution of few terms and channels, and one of {self.precisions}", f"not {action}")
        e = edit(ir)
        for name in _places(ir):
            node = next((node for node in e.graph.nodes if node.name == name), None)
            match = _match(node) if node is not None else None
            if node is not None and match is not None:
                _emit(e, node, match, str(dict(action.params)["precision"]))
        return e.finish()


def _places(ir: GraphIR) -> list[str]:
    """Return reductions first: what is left of their convolutions is dead then."""
    return [node.name for ops in (_OPS, CONVOLUTIONS) for node in find(ir, *ops) if _match(node) is not None]


TECHNIQUES = (DirectConvolutions(),)
