"""Convolutions of many channels by kernels of our own, which end with what follows them. CUDA only.

    add(relu(conv(x, W, b)), r)  ->  one kernel (after one that cuts x), whose last lines are `max(v + b, 0) + r`

cuDNN's tensor cores want the channels last: with float16 operands (`half_convolutions`) it takes 0.47 ms for L2-1, and the passes that find the
largest element of x, turn x and turn the result back take 0.75 more. Here x is turned by the pass that looks for that element, and the result is
float32 and channels first at once. With two float16 numbers an operand the error is float32's. The kernel is `kernels/implicit_convolution.py`;
convolutions of one tap have another (`pointwise.py`), and both end alike (`ends.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, Inserter, aten, dtype, edit, find, shape
from warpwright.domains.graph.kernels import FromFile
from warpwright.domains.graph.techniques.convolutions import ends, joined, pointwise
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, TRANSPOSED, Convolution, read, swap_channels
from warpwright.domains.graph.techniques.convolutions.ends import Ended
from warpwright.domains.graph.techniques.convolutions.pointwise import PointwiseConvolution
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.tf32 import permits

_LEAST_FLOPS, _FEW, _LEAST_TERMS = 4e9, 16, 256
"""Operations below which four launches cost more than they save; channels of the input below which `direct_convolution` reads x once, where a sum
has fewer terms than that, unless a `cat` reads the result, which is then written where it belongs."""
COLOURS, MOST_OF_ROWS, LEAST_OF_ROWS = 4, 8, 128
"""Channels of the input up to which a tap is a row of the window, four numbers a place: an image's first convolution. Eight numbers a place, and a
tap a place, were twice the products and the copies (results/implicit_convolution_h200: 35 TFLOP/s). And up to which it is one of eight numbers a
place, where sums have so many terms (windows over three axes): `direct_convolution` makes 16 to 34 TFLOP/s of these (L2-7, L2-8), and rows of three
channels 220 (L1-60)."""
LARGEST = 14
"""Power of two that the largest element of the weight is scaled to: sums are float32, so float16's end, 65,504, is met by operands alone."""
MOST_KINDS = 24
"""Sizes of convolutions that are taken in one program, those with the most operations: each is a kernel of its own, which Triton compiles in 2 to 4 s
at the first call."""
PARTS = {"half": 1, "float32": 2}
"""Float16 numbers an operand, by what the result errs like: TF32, or float32."""


def block_shape(places: int, channels: int, inputs: int, terms: int, parts: int) -> list[int]:
    """Return channels, places and terms of a block's step, warps and stages; `places`: of all results, `inputs`: channels of x, `terms`: of a sum.

    The fastest of three or four on an H200, or within 5 % of it (results/implicit_convolution_h200): two or three blocks a multiprocessor, of which
    one writes while another multiplies, but for long sums.
    """
    rows, warps = (64, 4) if channels <= 64 else (128, 8)
    if inputs == 16 and rows == 128:
        return [rows, 128, 16, warps, 4]
    if parts == 2:
        return [rows, 128, 32, warps, 3]
    if rows == 64 and inputs % 64 == 32:  # a step within a tap: L1-62 1.10 ms, and 1.21 with 128 places and steps of 64
        return [rows, 256, 32, 8, 4]
    if rows == 128 and terms >= 2048 and math.ceil(places / 256) * math.ceil(channels / rows) >= 132:
        return [rows, 256, 64, warps, 3]
    return [rows, 128, 64, warps, 3]


def width(channels: int) -> int:
    """Return the numbers a place of a cut x of so many channels."""
    return channels + -channels % 8


def of_place(inputs: int) -> int:
    """Return the numbers a place of x where a tap is a row of the window."""
    return COLOURS if inputs <= COLOURS else MOST_OF_ROWS


def of_rows(taps: int, inputs: int) -> int:
    """Return the numbers of a tap that is a row of `taps` places."""
    own = of_place(inputs) * taps
    return next((size for size in (16, 32, 64) if own <= size), own + -own % 64)


def cut_weight(w: torch.Tensor, parts: int, rows: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Return w [CO, CI, *kernel] as [parts, CO, *kernel, CI up to a multiple of 8] in float16, and what undoes each channel's power of two.

    `rows`: the last axis of the kernel has 1 in its place, and its taps follow one another with four or eight numbers each.
    """
    inputs, taps = w.shape[1], w.shape[-1]
    last = F.pad(w.permute(0, *range(2, w.dim()), 1), (0, of_place(inputs) - inputs if rows else -inputs % 8))
    if rows:
        last = F.pad(last.flatten(-2), (0, of_rows(taps, inputs) - of_place(inputs) * taps)).unsqueeze(-2)
    factor = torch.exp2(LARGEST - last.abs().amax(list(range(1, w.dim())), keepdim=True).clamp_min(1e-30).log2().ceil())
    high = (last * factor).half()
    return torch.stack([high, (last * factor - high.float()).half()][:parts]), factor.reciprocal().flatten()


class ImplicitCut(FromFile):
    """The graph's name for the generated function that cuts a tensor into float16 numbers with the channels last."""

    __name__, file = "implicit_cut", "implicit_convolution"

    def __call__(self, x: torch.Tensor, parts: int, wide: int) -> torch.Tensor:
        """Return a tensor of that size: those who read it read x, too."""
        return x.new_zeros(parts * (x.numel() // x.shape[1]) * wide + 2 * x.shape[0], dtype=torch.float16)


CUT = ImplicitCut()


class ImplicitConvolution(Ended):
    """The graph's name for a generated function: the convolution, and the calls after it."""

    file = "implicit_convolution"
    own = (
        "x, cut, w, of_w, bias, parts, kernel, stride, padding, places, dilation, transposed, blocks, groups=1, pool=(), pooled=\"\", "
        "into=None, within=()"
    )

    def __call__(
        self, x: torch.Tensor, cut: torch.Tensor, w: torch.Tensor, of_w: torch.Tensor, bias: torch.Tensor | None, parts: int, kernel: list[int],
        stride: list[int], padding: list[int], places: list[int], dilation: list[int], transposed: bool, blocks: list[int], groups: int = 1,
        pool: list[int] = (), pooled: str = "", into: torch.Tensor | None = None, within: list[int] = (), *operands: torch.Tensor,  # type: ignore[assignment]
    ) -> Any:  # fmt: skip
        """Return what the function computes, by torch's own calls."""
        d, margins = len(stride), []
        for a in reversed(range(d)):
            if transposed:
                reach = (x.shape[a + 2] - 1) * stride[a] + (kernel[a] - 1) * dilation[a] + 1
                margins += [-padding[a], padding[a] + places[a] - reach]
            else:
                reach = (places[a] - 1) * stride[a] + (kernel[a] - 1) * dilation[a] + 1
                margins += [padding[a], reach - padding[a] - x.shape[a + 2]]
        if w.shape[-2] != kernel[-1]:
            each = of_place(x.shape[1])
            w = w[..., 0, : each * kernel[-1]].unflatten(-1, (kernel[-1], each))
        whole = (w.to(x.dtype).sum(0) * of_w.reshape(-1, *[1] * (d + 1))).permute(0, d + 1, *range(1, d + 1))[:, : x.shape[1] // groups]
        if transposed:
            call = (torch.conv_transpose1d, torch.conv_transpose2d, torch.conv_transpose3d)[d - 1]
            y = F.pad(call(x, whole.transpose(0, 1), None, stride, 0, 0, 1, dilation), margins)
            y = y if bias is None else y + bias.reshape(-1, *[1] * d)
        else:
            y = (torch.conv1d, torch.conv2d, torch.conv3d)[d - 1](F.pad(x, margins), whole, bias, stride, 0, dilation, groups)
        return self.ended(y, operands, into, within, blocks[1] // math.prod(pool or [1]))

    def may_count(self, call: fx.Node) -> bool:
        """May this call return statistics? A transposed one's blocks hold every other place."""
        return super().may_count(call) and not call.args[self.place("transposed")]

    def _given(self) -> str:
        return self.own.replace("=1", "").replace("=()", "").replace('=""', "").replace("=None", "")


def _mixed(conv: Convolution) -> bool:
    return any(one is not None and dtype(one) != torch.float32 for one in (conv.x, conv.weight, conv.bias, conv.node))


def _is_product(conv: Convolution) -> bool:
    """Is it one tap, at every place? The library does those without turning x (L1-87: 3.5 ms, and 6.0 here): what ends the kernel has to gain it."""
    return math.prod(conv.kernel) == 1 and max(conv.stride) == 1 and not any((*conv.padding, *conv.output_padding))


def _has_rows(conv: Convolution) -> bool:
    """Is a tap a row of the window?"""
    inputs = shape(conv.x)[1]
    few = inputs <= COLOURS or (inputs <= MOST_OF_ROWS and inputs * math.prod(conv.kernel) >= LEAST_OF_ROWS)
    return few and conv.groups == 1 and not conv.transposed and conv.kernel[-1] > 1 and conv.dilation[-1] == 1


def _covered(node: fx.Node) -> Convolution | None:
    """Return the convolution that the kernel can compute and that is worth it, or None."""
    conv = read(node)
    if conv is None or _mixed(conv):
        return None
    image = _has_rows(conv) and shape(conv.x)[1] <= COLOURS
    wide = image and 4 * math.prod(shape(node)) >= pointwise.LEAST_BYTES  # cutting an image is little beside writing the result
    if conv.flops < _LEAST_FLOPS and not wide:
        return None
    if conv.groups > 1 and (conv.transposed or shape(conv.weight)[1] % 8 or conv.channels // conv.groups < 8):
        return None
    if conv.transposed and any(stride > 1 and step > 1 for stride, step in zip(conv.stride, conv.dilation, strict=True)):
        return None
    few = shape(conv.x)[1] < _FEW and not conv.transposed  # of which cuDNN makes 2 to 21 TFLOP/s
    short = few and shape(conv.x)[1] * math.prod(conv.kernel) < _LEAST_TERMS and not _has_rows(conv)
    if short and not ends.is_joined(node):
        return None
    if _is_product(conv) and (4 * conv.channels < 3 * shape(conv.x)[1] or (conv.bias is None and ends.after(node).last is node)):
        return None
    one = math.prod(conv.sizes) * (shape(conv.x)[1] + 7)
    counted = (one, shape(conv.x)[0] * math.prod(conv.out), math.prod(shape(conv.node)[1:]))  # by the kernel, in 32 bits
    return conv if max(counted) < 2**31 - 2**16 else None


Found = tuple[Convolution, bool]
"""A convolution, and whether the kernel for one tap takes it."""


def _found(node: fx.Node, parts: int) -> Found | None:
    """Return the convolution that one of the kernels takes."""
    if conv := pointwise.find(node, parts):
        return conv, True
    return (conv, False) if (conv := _covered(node)) else None


def _chosen(ir: GraphIR, parts: int) -> list[str]:
    """Return the names of the convolutions that are replaced, in the graph's order."""
    found = [(node.name, one) for node in find(ir, *CONVOLUTIONS, *TRANSPOSED) if (one := _found(node, parts)) is not None]
    kinds: dict[object, float] = {}
    for _, one in found:
        kinds[_kind(one)] = kinds.get(_kind(one), 0.0) + _weight(one)
    kept = sorted(kinds, key=lambda kind: -kinds[kind])[:MOST_KINDS]
    return [name for name, one in found if _kind(one) in kept]


def _weight(found: Found) -> float:
    """Return the operations that a convolution stands for; bytes count as those that take an H200 as long."""
    conv, of_one_tap = found
    return conv.flops + (400.0 * (math.prod(shape(conv.x)) + math.prod(shape(conv.node))) if of_one_tap else 0.0)


def _kind(found: Found) -> object:
    conv, _ = found
    return conv.sizes, shape(conv.weight), conv.stride, conv.padding, conv.output_padding, conv.dilation, conv.transposed, conv.groups


def _cut_weight(at: Inserter, conv: Convolution, parts: int) -> tuple[fx.Node, fx.Node]:
    """Insert `cut_weight`."""
    d, weight = conv.d, swap_channels(at, conv.weight, 1) if conv.transposed else conv.weight
    last = at.call(aten.permute.default, weight, [0, *range(2, d + 2), 1])
    inputs, taps = shape(weight)[1], conv.kernel[-1]
    wide = of_place(inputs) if _has_rows(conv) else width(inputs)
    if wide > inputs:
        last = at.call(aten.constant_pad_nd.default, last, [0, wide - inputs])
    if _has_rows(conv):
        last = at.call(aten.reshape.default, last, [conv.channels, *conv.kernel[:-1], 1, wide * taps])
        last = at.call(aten.constant_pad_nd.default, last, [0, of_rows(taps, inputs) - wide * taps])
    largest = at.call(aten.clamp_min.default, at.call(aten.amax.default, at.call(aten.abs.default, last), list(range(1, d + 2)), True), 1e-30)
    power = at.call(aten.rsub.Scalar, at.call(aten.ceil.default, at.call(aten.log2.default, largest)), LARGEST)
    factor = at.call(aten.exp2.default, power)
    scaled = at.call(aten.mul.Tensor, last, factor)
    high = at.call(aten.to.dtype, scaled, torch.float16)
    cut = [high]
    if parts == 2:
        cut.append(at.call(aten.to.dtype, at.call(aten.sub.Tensor, scaled, at.call(aten.to.dtype, high, torch.float32)), torch.float16))
    return at.call(aten.stack.default, cut), at.call(aten.reshape.default, at.call(aten.reciprocal.default, factor), [conv.channels])


def _emit(e: Edit, found: Found, parts: int, cuts: dict[tuple[fx.Node, int], fx.Node]) -> None:
    """Replace a convolution and what follows it; those who read the same x read one cut of it."""
    conv, of_one_tap = found
    end = ends.after(conv.node)
    kept = end if end.last is not end.start else None
    behind: tuple[Any, ...] = (list(end.windows), end.kind, None, [])
    if of_one_tap:
        new = e.before(end.last).call(PointwiseConvolution(kept), *pointwise.insert(e.before(conv.node), conv, parts), *behind, *end.operands)
    else:
        new = e.before(end.last).call(ImplicitConvolution(kept), *_arguments(e.before(conv.node), conv, parts, cuts), *behind, *end.operands)
    if end.moved is not None:
        new = e.before(end.last).call(end.moved.target, new, *end.moved.args[1:], **end.moved.kwargs)
    e.replace(end.last, new)


def _arguments(at: Inserter, conv: Convolution, parts: int, cuts: dict[tuple[fx.Node, int], fx.Node]) -> tuple[Any, ...]:
    """Return the arguments of `implicit_convolution` up to `groups`."""
    cut, of_w = _cut_weight(at, conv, parts)
    inputs = shape(conv.x)[1]
    wide = of_place(inputs) if _has_rows(conv) else width(inputs)
    if (conv.x, wide) not in cuts:
        cuts[conv.x, wide] = at.call(CUT, conv.x, parts, wide)
    of_tap, channels = shape(cut)[-1], conv.channels // conv.groups
    blocks = block_shape(shape(conv.x)[0] * math.prod(conv.out), channels, of_tap, of_tap * math.prod(shape(cut)[2:-1]), parts)
    blocks[2] = min(blocks[2], of_tap) if _has_rows(conv) else blocks[2]
    if conv.groups > 1 and channels <= 32:  # a step within a tap, and no more rows than there are
        blocks = [16 if channels <= 16 else 32, 128, of_tap & -of_tap if 16 <= of_tap & -of_tap <= 64 else 32, 4, 4]
    steps = [list(sizes) for sizes in (conv.kernel, conv.stride, conv.padding, conv.out, conv.dilation)]
    return (conv.x, cuts[conv.x, wide], cut, of_w, conv.bias, parts, *steps, conv.transposed, blocks, conv.groups)


@dataclass(frozen=True)
class ImplicitConvolutions:
    """conv(x, W) + b of many channels, and what follows element by element  ->  a kernel that cuts x into float16 numbers, and one for the rest.

    "half": one number an operand, as TF32 errs, which the verifier allows where torch's flags permit TF32 in convolutions (its default). "float32":
    two. Elements below 2^-32 of their sample's largest are lost; with two numbers those below 2^-11 begin to lose digits of float32's.
    """

    name: str = "implicit_convolution"
    tf32: bool = False
    """Does the task permit TF32, whatever torch's flags say?"""
    traits: ClassVar[Traits] = Traits(
        "S", tried_first=True, precisions=tuple(PARTS), best_with=(Action("windows_cuda"), fuse_cuda(1, DEFAULT), Action("cuda_graph"))
    )
    assume: str = "what goes into a convolution is finite"

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action a precision, for all such convolutions together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "channels_last", "fuse_cuda")
        free = ir.training is None and not any(ir.scheduled(name) for name in late)
        for precision, parts in PARTS.items() if free else ():
            allowed = precision != "half" or self.tf32 or permits("conv")
            if allowed and any(_found(node, parts) for node in find(ir, *CONVOLUTIONS, *TRANSPOSED)):
                yield Action(self.name, params=(("precision", precision),))

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such convolution replaced, with what follows, and what depends on parameters alone folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"expected a large float32 convolution of many channels, and one of {tuple(PARTS)}", f"not {action}")
        e, cuts, parts = edit(ir), dict[tuple[fx.Node, int], fx.Node](), PARTS[str(dict(action.params)["precision"])]
        for name in _chosen(ir, parts):
            node = next((one for one in e.graph.nodes if one.name == name), None)
            found = _found(node, parts) if node is not None and node.users else None
            if found is not None:
                _emit(e, found, parts, cuts)
        joined.join(e)
        done = e.finish(self.assume)
        return FOLD.apply(done, Action(FOLD.name)) if list(FOLD.sites(done)) else done


TECHNIQUES = (ImplicitConvolutions(),)
