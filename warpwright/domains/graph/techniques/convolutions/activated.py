"""A convolution, its bias, a residual and a ReLU as one call of cuDNN, which has kernels that end so. What torch does by itself are three kernels, of
which two go over the result once more; torch.compile leaves one of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from torch import fx
from torch.nn import functional as F

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, aten, dtype, edit, find, is_op, is_tensor, only_user, shape, value
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, Convolution, read
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits

_TEXT = '''
def activated_convolution(x, weight, bias, more, stride, padding, dilation, groups, known={}):
    """Return relu(conv2d(x, weight, bias) + more), on a GPU by one call of cuDNN where `cudnn_keeps_nan`. `known`: where it does."""
    given = (x, weight, bias, more, stride, padding, dilation, groups)
    if not x.is_cuda:
        return convolved_apart(*given)
    form = (x.device, x.shape, x.stride(), weight.shape, weight.stride(), more is None, *stride, *padding, *dilation, groups)
    fits = known.get(form)
    if fits is None and not torch.cuda.is_current_stream_capturing():
        fits = known[form] = cudnn_keeps_nan(*given)
    return convolved_in_one(*given) if fits else convolved_apart(*given)


def cudnn_keeps_nan(x, weight, *rest):
    """Has cuDNN one kernel for this form, whose result is NaN where torch's is? Its ReLU may make 0 of NaN; asked once a form.

    Without `more` it is given the memory of its result in that place, times 0: of what lies there nothing may be seen.
    """
    try:
        for probe in (x, x.detach().clone().fill_(float("nan"))):
            expected = convolved_apart(probe, weight, *rest).isnan()
            torch.full_like(expected, float("nan"), dtype=x.dtype)  # freed at once, so that the call finds NaN in its memory
            if not torch.equal(convolved_in_one(probe, weight, *rest).isnan(), expected):
                return False
    except RuntimeError:  # there is no such kernel
        return False
    return True


def convolved_in_one(x, weight, bias, more, stride, padding, dilation, groups):
    if more is None:
        return torch.cudnn_convolution_relu(x, weight, bias, stride, padding, dilation, groups)
    return torch.cudnn_convolution_add_relu(x, weight, more, 1.0, bias, stride, padding, dilation, groups)


def convolved_apart(x, weight, bias, more, stride, padding, dilation, groups):
    result = torch.nn.functional.conv2d(x, weight, bias, stride, padding, dilation, groups)
    return torch.relu(result if more is None else result + more)
'''


class ActivatedConvolution:
    """The graph's name for the generated function `activated_convolution`."""

    __name__ = "activated_convolution"

    def __call__(self, x: Any, weight: Any, bias: Any, more: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> torch.Tensor:
        """Return what the function computes."""
        result = F.conv2d(x, weight, bias, stride, padding, dilation, groups)
        last = any(t.is_contiguous(memory_format=torch.channels_last) and not t.is_contiguous() for t in (x, weight))
        form = torch.channels_last if last else torch.contiguous_format
        return torch.relu(result if more is None else result + more).contiguous(memory_format=form)

    def python_text(self) -> str:
        """Return the function's text, for the generated file."""
        return _TEXT


ACTIVATED = ActivatedConvolution()


class _Match(NamedTuple):
    conv: Convolution
    more: fx.Node | None


@dataclass(frozen=True)
class CudnnEpilogue:
    """relu(conv2d(x, w, b) + z)  ->  torch.cudnn_convolution_add_relu(x, w, z, 1.0, b), and the same without z, for every such convolution.

    In the precision that the flags permit, as the convolution itself. z is added in float32 before the result is written. The generated file asks at
    the first call of each form whether cuDNN has such a kernel and keeps NaN, as torch.relu does, and goes back to torch's own calls where not:
    a verifier need not see that, since inputs hold NaN only where a task says so.
    """

    name: str = "cudnn_epilogue"
    traits: ClassVar[Traits] = Traits("S", tried_first=True, best_with=(fuse_cuda(1, DEFAULT), fuse_cuda(1, DEFAULT, 0), Action("cuda_graph")))

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all of them together."""
        late = ("compile", "cuda_graph", "launch_plan", "plan", "full_precision_convolutions", "fuse_cuda")
        if ir.training is None and not any(ir.scheduled(name) for name in late) and _matches(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with each in one call."""
        if action not in list(self.sites(ir)):
            raise NotApplicable("expected a 2D convolution with a bias before a ReLU", f"not {action}")
        e = edit(ir)
        for name in _matches(ir):
            node = e.node(name)
            match = _match(node)
            assert match is not None
            conv, more = match
            at = e.before(node)
            places = (list(conv.stride), list(conv.padding), list(conv.dilation))
            e.replace(node, at.call(ACTIVATED, conv.x, conv.weight, conv.bias, more, *places, conv.groups))
        return e.finish().with_schedule(action)


def _matches(ir: GraphIR) -> list[str]:
    return [node.name for node in find(ir, aten.relu.default) if _match(node) is not None]


def _match(node: fx.Node) -> _Match | None:
    """Return the convolution that a ReLU ends, and what is added to it, if all of that is read nowhere else."""
    source: Any = node.args[0]
    if _is_fit(source, node):
        return _Match(read(source), None)  # type: ignore[arg-type]
    if not is_op(source, aten.add.Tensor) or source.kwargs or only_user(source) is not node:
        return None
    for one, other in (source.args, source.args[::-1]):
        if _is_fit(one, source) and is_tensor(other) and _laid_alike(other, one):
            return _Match(read(one), other)  # type: ignore[arg-type]
    return None


def _laid_alike(other: fx.Node, one: fx.Node) -> bool:
    return dtype(other) == dtype(one) and shape(other) == shape(one) and value(other).stride() == value(one).stride()


def _is_fit(node: Any, reader: fx.Node) -> bool:
    conv = read(node) if is_op(node, *CONVOLUTIONS) else None
    if conv is None or conv.d != 2 or conv.bias is None or only_user(node) is not reader or conv.groups == shape(conv.x)[1] > 1:
        return False
    return all(dtype(tensor) == torch.float32 for tensor in (conv.x, conv.weight, conv.bias, node))


TECHNIQUES = (CudnnEpilogue(),)
