"""Attention by a kernel of our own, as a call of the library's or written out: products, scale, bias, mask, softmax (or ReLU). CUDA only.

torch's fused kernels do not take what is written out, and torch.compile finds few forms of it: elsewhere the scores are written to memory and read
again four to eight times. float32 has no fast kernel in the library either. The kernels are `kernels/flash_attention.py` and `kernels/flash_wide.py`.

    forms -> masks -> reading -> technique <- blocks, calls
"""

from warpwright.domains.graph.techniques.kernels.attention.technique import TECHNIQUES, FlashAttentions

__all__ = ["TECHNIQUES", "FlashAttentions"]
