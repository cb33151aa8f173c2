"""Blocks of convolutions' kernels that have places of one sample each. CUDA only.

A thread that writes places of two samples holds an address for each of its 64 sums; where an image's places are a multiple of four they go four by
four, and nothing is gained. Elsewhere Triton 3.6 takes 255 registers and up to 1,184 bytes of stack, and 128 to 216 and none with blocks of one
sample (benchmarks/results/compiled_h200): two blocks are resident in place of one. What that is worth no GPU has said; it is one more candidate.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.ir import GraphIR, edit, shape
from warpwright.domains.graph.techniques.convolutions import ends
from warpwright.errors import NotApplicable
from warpwright.space import Traits

MOST_MORE = 1.125
"""Times as many blocks at most: the last one of a sample is not full."""
SHAPE = 5
"""Numbers of a block's shape without the one that says so."""


@dataclass(frozen=True)
class SamplesApart:
    """conv(x, w, blocks=[channels, places, ...])  ->  the same with blocks of one sample each, where an image's places are no multiple of four."""

    name: str = "samples_apart"
    traits: ClassVar[Traits] = Traits("S")

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all such convolutions together."""
        if any(True for _ in _gaining(ir)):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with such blocks."""
        names = [node.name for node in _gaining(ir)]
        if not names or action not in list(self.sites(ir)):
            raise NotApplicable("expected a convolution by a kernel of ours whose images have places that are no multiple of four", f"not {action}")
        e = edit(ir)
        for node in map(e.node, names):
            target: Any = node.target
            blocks: Any = node.args[target.place("blocks")]
            node.update_arg(target.place("blocks"), [*blocks, 1])
        return e.finish()


def _gaining(ir: GraphIR) -> Iterator[fx.Node]:
    """Yield the calls whose blocks may have places of two samples, and whose threads hold many addresses for that."""
    for node in ir.graph.nodes:
        if not ends.is_ended(node) or _of(node, "pool") or node.target.statistics:  # type: ignore[union-attr]
            continue
        if node.target.file == "implicit_convolution" and _of(node, "transposed"):  # type: ignore[union-attr]
            continue
        samples, one, blocks = shape(_of(node, "x"))[0], math.prod(_of(node, "places")), _of(node, "blocks")
        if len(blocks) == SHAPE and one % 4 and samples * -(-one // blocks[1]) <= MOST_MORE * -(-samples * one // blocks[1]):
            yield node


def _of(node: fx.Node, name: str) -> Any:
    """Return an argument of a call, None where it is not given."""
    at = node.target.place(name)  # type: ignore[union-attr]
    return node.args[at] if at < len(node.args) else None


TECHNIQUES = (SamplesApart(),)
