"""Blocks of convolutions' kernels that have places of one sample each.

A thread that writes places of two samples holds an address for each of its 64 sums; where an image's places are a multiple of four they go four by
four, and nothing is gained. Elsewhere Triton 3.6 takes 255 registers and up to 1,184 bytes of stack, and 128 to 216 and none with blocks of one
sample (benchmarks/results/compiled_h200). On an H200 all five cases gain by them, 1.28 to 3.9 times, even where a sample's last block is a third full
(benchmarks/results/implicit_convolution_h200).
"""

from __future__ import annotations

import math
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import shape
from warpwright.domains.graph.techniques.convolutions import ends

MOST_MORE = 1.55
"""Times as many blocks at most, since a sample's last one is not full: 1.515 times as many gained 1.34 (13 x 13 places in blocks of 256)."""


def separate(graph: fx.Graph) -> None:
    """Give each call of a convolution's kernel blocks of one sample each, where an image's places are no multiple of four."""
    for node in graph.nodes:
        if ends.is_ended(node) and _gains(node):
            at = node.target.place("blocks")
            node.update_arg(at, [*node.args[at], 1])


def _gains(node: fx.Node) -> bool:
    """May blocks of this call have places of two samples, and do its threads hold many addresses for that?"""
    if _of(node, "pool") or (node.target.file == "implicit_convolution" and _of(node, "transposed")):  # type: ignore[union-attr]
        return False
    samples, one, places = shape(_of(node, "x"))[0], math.prod(_of(node, "places")), _of(node, "blocks")[1]
    return one % 4 != 0 and samples * -(-one // places) <= MOST_MORE * -(-samples * one // places)


def _of(node: fx.Node, name: str) -> Any:
    """Return an argument of a call, None where it is not given."""
    at = node.target.place(name)  # type: ignore[union-attr]
    return node.args[at] if at < len(node.args) else None
