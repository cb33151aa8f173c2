"""A `cat` of channels whose operands are results of `implicit_convolution`'s kernels: each writes its part of one tensor, and nothing is copied.

    cat([conv(x, v), conv(x, w)], 1)  ->  z = conv(x, v, part of z); z = conv(x, w, into=z)

In the graph each call returns the whole tensor, of which the next one is the only reader: that it is the same memory changes nothing that is read.
"""

from __future__ import annotations

from typing import Any

from torch import fx

from warpwright.domains.graph.ir import Edit, dtype, only_user, shape
from warpwright.domains.graph.techniques.convolutions import ends


def join(e: Edit) -> None:
    """Let kernels write the parts of every such `cat`."""
    for node in [node for node in e.graph.nodes if ends.is_cat_of_channels(node)]:
        operands: Any = node.args[0]
        if len(set(operands)) == len(operands) > 1 and all(_writes_for(one, node) for one in operands):
            _join(e, node, list(operands))


def _writes_for(operand: Any, cat: fx.Node) -> bool:
    """May this call write its part of the result? One that writes into another tensor already may not: what it returns is all of that."""
    return ends.is_ended(operand) and only_user(operand) is cat and dtype(operand) == dtype(cat) and bool(operand.target.is_alone(operand))


def _join(e: Edit, cat: fx.Node, operands: list[fx.Node]) -> None:
    at, into, first = e.before(cat), None, 0
    for one in operands:
        target: Any = one.target
        channels = shape(one)[1]
        given = list(one.args)
        place = target.place_of_into
        given[place], given[place + 1] = into, [shape(cat)[1], first]
        into, first = at.call(target, *given), first + channels
    assert into is not None
    e.replace(cat, into)
