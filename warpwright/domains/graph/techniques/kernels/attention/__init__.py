"""Attention by a kernel of our own, as a call of the library's or written out: products, scale, bias, mask, softmax. CUDA only.

torch's fused kernels do not take what is written out, and torch.compile finds few forms of it: elsewhere the scores are written to memory and read
again four to eight times. float32 has no fast kernel in the library either. The kernels are `flash_attention`, `flash_wide` and, of training steps,
`flash_backward` of domains/graph/kernels.

    forms -> masks, heads, sinks -> reading -> technique <- blocks, calls -> step
                             reading -> words    technique -> hopper
"""

from warpwright.domains.graph.techniques.kernels.attention import step  # noqa: F401 (its operators are known from here on)
from warpwright.domains.graph.techniques.kernels.attention.hopper import FlashHoppers
from warpwright.domains.graph.techniques.kernels.attention.technique import FlashAttentions, in_step, of_step
from warpwright.domains.graph.techniques.kernels.attention.words import MASK_IN_WORDS

TECHNIQUES = (FlashAttentions(), FlashHoppers())
REWRITES = (MASK_IN_WORDS,)

__all__ = ["REWRITES", "TECHNIQUES", "FlashAttentions", "in_step", "of_step"]
