"""Attention in 16 bits by a kernel that Hopper's tensor cores are kept busy by, in the place of what was read. CUDA only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import fx

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import Edit, GraphIR, aten, dtype, edit, find, shape
from warpwright.domains.graph.techniques.fold import FOLD
from warpwright.domains.graph.techniques.kernels.attention import technique
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_HOPPER
from warpwright.domains.graph.techniques.kernels.attention.forms import Attention
from warpwright.domains.graph.techniques.kernels.attention.reading import STARTS, read
from warpwright.domains.graph.techniques.kernels.fuse import fuse_cuda
from warpwright.errors import NotApplicable
from warpwright.space import Traits
from warpwright.templates.flash_hopper import MOST_CAP, WIDEST

_LEAST_ROWS = 64
"""A warpgroup's: with fewer the library divides the keys among blocks, as this kernel does not."""


@dataclass(frozen=True)
class FlashHoppers:
    """softmax(scale q k^T) v in bfloat16 or float16, plain or causal, or the library's call  ->  FlashAttention 3's plan (templates/flash_hopper.cu).

    For heads of one size up to 256, a multiple of 8, and 64 rows or more; scores may be capped, and rows have sinks. On other GPUs the program makes
    the library's call.
    """

    name: str = "flash_hopper"
    traits: ClassVar[Traits] = Traits(
        "S", tried_first=True,
        best_with=(Action("flash_attention", params=(("precision", "own"),)), Action("fused_product"), fuse_cuda(1, DEFAULT), Action("cuda_graph")),
    )
    """On an H200 1.10 times cuDNN's kernel in the mean of 34 cases, 0.92 to 1.29 (results/attention_h200). What it leaves, with a mask or a bias, is
    `flash_attention`'s."""
    assume: str = "what goes into attention is finite"

    def sites(self, ir: GraphIR) -> Iterable[Action]:
        """Yield one action for all such attentions together."""
        if ir.training is None and not any(ir.scheduled(name) for name in ("compile", "cuda_graph", "plan", "fuse_cuda")) and _places(ir):
            yield Action(self.name)

    def apply(self, ir: GraphIR, action: Action) -> GraphIR:
        """Return the IR with every such attention replaced, and what depends on parameters alone folded."""
        if action not in list(self.sites(ir)):
            raise NotApplicable(f"expected attention in 16 bits without mask or bias, of heads up to {WIDEST} numbers", f"not {action}")
        e = edit(ir)
        for name in _places(ir):
            node = e.node(name)
            found = read(node)
            assert found is not None
            _emit(e, node, found)
        done = e.finish(self.assume)
        return FOLD.apply(done, Action(FOLD.name)) if list(FOLD.sites(done)) else done


def _places(ir: GraphIR) -> list[str]:
    return [node.name for node in find(ir, *STARTS) if (found := read(node)) is not None and _fits(node, found)]


def _fits(node: fx.Node, found: Attention) -> bool:
    kinds = {dtype(x) for x in (node, found.q, found.k, found.v)}
    if kinds not in ({torch.bfloat16}, {torch.float16}) or found.form != "softmax" or found.masks or found.biases or found.window:
        return False
    d, keys = shape(found.q)[-1], found.sizes[-1]
    if found.cap > MOST_CAP or d != shape(found.v)[-1] or d > WIDEST or d % 8 or found.scale <= 0 or not keys or len(found.sizes) > 4:
        return False
    rows = found.sizes[-2]
    return rows >= _LEAST_ROWS and (not found.causal or found.offset >= 0) and technique.flops(found) >= technique.LEAST_FLOPS


def _emit(e: Edit, node: fx.Node, found: Attention) -> None:
    at, four = e.before(node), len(found.sizes) == 4
    q, k, v = technique.operands(at, found)
    if not four:  # as many heads of one batch
        q, k, v = (at.call(aten.unsqueeze.default, x, 0) for x in (q, k, v))
    turned = four and technique.is_turned(node)
    new = at.call(FLASH_HOPPER, q, k, v, found.scale, found.causal, found.offset, turned, *technique.capped(at, found))
    e.replace(node, at.shaped(new, shape(node)))
