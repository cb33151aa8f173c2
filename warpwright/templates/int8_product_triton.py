"""The product of INT8 slices in Triton with plain pointers: version 1 of the ladder in int8_product.cu, level 3 only."""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from warpwright.templates.int8_product import SlicedMatrix

BLOCKS = ((128, 64, 128, 8, 3), (128, 128, 64, 8, 3))
"""Rows, columns and bytes of k of a tile, warps, stages: the two best on an H200, 190 and 184 TFLOP/s at 4096^3."""


@triton.jit  # type: ignore[untyped-decorator]
def _joint(a, b, a_inverse, b_inverse, c, m, n, k, plane_a, plane_b, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):  # type: ignore
    pid, down, across = tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(n, BN)
    band = pid // (8 * across) * 8
    rows = tl.minimum(down - band, 8)
    rm = (band + pid % (8 * across) % rows) * BM + tl.arange(0, BM)
    rn = pid % (8 * across) // rows * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    pa = a + (rm % m)[:, None] * k + rk[None, :]
    pb = b + (rn % n)[None, :] * k + rk[:, None]
    c0 = tl.zeros((BM, BN), tl.int32)
    c1 = tl.zeros((BM, BN), tl.int32)
    c2 = tl.zeros((BM, BN), tl.int32)
    for _ in range(0, k, BK):
        a0 = tl.load(pa)
        b0 = tl.load(pb)
        c0 = tl.dot(a0, b0, acc=c0, out_dtype=tl.int32)
        a1 = tl.load(pa + plane_a)
        b1 = tl.load(pb + plane_b)
        c1 = tl.dot(a0, b1, acc=c1, out_dtype=tl.int32)
        c1 = tl.dot(a1, b0, acc=c1, out_dtype=tl.int32)
        c2 = tl.dot(a1, b1, acc=c2, out_dtype=tl.int32)
        a2 = tl.load(pa + 2 * plane_a)
        b2 = tl.load(pb + 2 * plane_b)
        c2 = tl.dot(a0, b2, acc=c2, out_dtype=tl.int32)
        c2 = tl.dot(a2, b0, acc=c2, out_dtype=tl.int32)
        pa += BK
        pb += BK
    total = (c0 + (c1 >> 8)).to(tl.float64) * 65536.0 + (((c1 & 255) << 8) + c2).to(tl.float64)
    scale = tl.load(a_inverse + rm, mask=rm < m)[:, None] * tl.load(b_inverse + rn, mask=rn < n)[None, :]
    tl.store(c + rm[:, None] * n + rn[None, :], (total * scale).to(tl.float32), mask=(rm < m)[:, None] & (rn < n)[None, :])


def product(a: SlicedMatrix, b: SlicedMatrix, out: torch.Tensor, block: tuple[int, int, int, int, int] = BLOCKS[0]) -> torch.Tensor:
    """Write a @ b.T at level 3 into out [m, n], contiguous, and return it."""
    (m, _), n, k = a.source.shape, b.source.shape[0], a.padded
    bm, bn, bk, warps, stages = block
    grid: Any = (triton.cdiv(m, bm) * triton.cdiv(n, bn),)
    _joint[grid](
        a.slices, b.slices, a.inverse, b.inverse, out, m, n, k, m * k, n * k, BM=bm, BN=bn, BK=bk, num_warps=warps, num_stages=stages
    )  # fmt: skip
    return out
