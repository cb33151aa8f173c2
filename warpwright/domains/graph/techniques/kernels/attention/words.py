"""The library's call with a causal mask of literals, or one that hides nothing, said in words: half of the pairs, and no mask to read."""

from __future__ import annotations

from torch import fx

from warpwright.domains.graph.ir import Edit, argument, aten
from warpwright.domains.graph.techniques.kernels.attention.forms import Attention
from warpwright.domains.graph.techniques.kernels.attention.reading import read
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


def _match(node: fx.Node) -> Attention | None:
    if argument(node, "attn_mask") is None or argument(node, "is_causal"):
        return None
    found = read(node)
    return found if found is not None and not (found.masks or found.biases or found.window or found.offset) else None


def _emit(e: Edit, node: fx.Node, found: Attention) -> None:
    keywords = {"scale": found.scale, "enable_gqa": argument(node, "enable_gqa")}
    call = e.before(node).call(aten.scaled_dot_product_attention.default, *node.args[:3], None, 0.0, found.causal, **keywords)
    e.replace(node, call)


MASK_IN_WORDS = Rewrite(
    "mask_in_words", Traits("E"), (aten.scaled_dot_product_attention.default,), _match, _emit,
    "scaled_dot_product_attention(q, k, v, mask of literals) -> the same with is_causal, or without a mask: fused kernels skip what is hidden.",
    assume="what goes into attention is finite", together=True,
)  # fmt: skip
