"""A convolution's bias as an addition of its own, so that it joins the kernel that goes over the result anyway.

    gelu(conv2d(x, w, b))  ->  gelu(conv2d(x, w) + b[:, None, None])        b is added by a pass of its own in cuDNN's place otherwise
"""

from __future__ import annotations

from typing import Any

from torch import fx

from warpwright.domains.graph.cpp.calls import BUILDERS, MOVES, VIEWS
from warpwright.domains.graph.ir import GraphIR, argument, aten, edit, find, shape, users
from warpwright.domains.graph.techniques.convolutions.convolution import CONVOLUTIONS, TRANSPOSED

_IN_WORDS = (aten.conv1d.padding, aten.conv2d.padding, aten.conv3d.padding)
BIAS = 2
"""Its place among the arguments."""


def expand(ir: GraphIR) -> GraphIR:
    """Return the IR with the bias apart of every convolution that a call follows which can be in a kernel."""
    names = [node.name for node in find(ir, *CONVOLUTIONS, *_IN_WORDS, *TRANSPOSED) if _applies(node)]
    if not names:
        return ir
    e = edit(ir)
    for name in names:
        node = e.node(name)
        at, bias, sizes = e.before(node), argument(node, "bias"), shape(node)
        plain = at.call(node.target, *node.args[:BIAS], None, *node.args[BIAS + 1 :], **{k: v for k, v in node.kwargs.items() if k != "bias"})
        lifted = at.call(aten.reshape.default, bias, [sizes[1], *[1] * (len(sizes) - 2)])
        e.replace(node, at.call(aten.add.Tensor, plain, lifted))
    return e.finish()


def _applies(node: fx.Node) -> bool:
    bias: Any = argument(node, "bias")
    weight: Any = argument(node, "weight")
    batched = bias is not None and len(shape(node)) == len(shape(weight))
    return batched and any(user.target in BUILDERS and user.target not in (*VIEWS, *MOVES) for user in users(node))
