"""Cases of ggml's kernels that read or write quantised blocks. What the bytes mean is told by the package gguf, which is NumPy code of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from benchmarks.real_cuda.families import Case, blocks, empty, random

try:
    from gguf import GGMLQuantizationType, quants
    from gguf.constants import GGML_QUANT_SIZES
except ImportError:  # the cases below are left out then
    GGMLQuantizationType = None

F = torch.float32
SCALES = {
    "Q2_K": (80, 82), "Q3_K": (108,), "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,), "IQ2_XXS": (0,), "IQ2_XS": (0,), "IQ2_S": (0,),
    "IQ3_XXS": (0,), "IQ3_S": (0,), "IQ1_S": (0,), "IQ4_NL": (0,), "IQ4_XS": (0,), "Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2),
    "Q8_0": (0,),
}  # fmt: skip
"""Where a block keeps its scales as halves, in bytes: any other byte may be anything."""


def fast_divisor(d: int) -> bytes:
    """Return what the kernels divide by: a multiplier, a shift and the divisor."""
    shift = max(d - 1, 0).bit_length()
    return np.array([((1 << 32) * ((1 << shift) - d)) // d + 1 & 0xFFFFFFFF, shift, d], np.uint32).tobytes()


def size_of(kind: str) -> tuple[int, int]:
    """Return how many values and how many bytes a block of a kind has."""
    values, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    return int(values), int(size)


def random_blocks(kind: str, count: int) -> torch.Tensor:
    """Return blocks of random bytes whose scales are no infinities and of a like size."""
    data = torch.randint(0, 256, (count, size_of(kind)[1]), dtype=torch.uint8)
    for place in SCALES.get(kind, ()):
        data[:, place : place + 2] = random(torch.float16, count, low=0.5, high=1.5).view(torch.uint8).reshape(count, 2)
    if kind == "IQ1_M":  # the nibbles of one half lie in four words
        for word, nibble in enumerate((0, 0, 0xC, 3)):
            data[:, 49 + 2 * word] = data[:, 49 + 2 * word] & 0x0F | nibble << 4
    elif kind == "MXFP4":
        data[:, 0] = torch.randint(124, 130, (count,), dtype=torch.uint8)
    elif kind == "NVFP4":
        data[:, :4] = torch.randint(40, 70, (count, 4), dtype=torch.uint8)
    return data


def values_of(data: torch.Tensor, kind: str) -> torch.Tensor:
    """Return the values of blocks, flat."""
    return torch.from_numpy(quants.dequantize(data.numpy(), GGMLQuantizationType[kind])).double().reshape(-1)


def whole(kind: str, threads: int, *more: object, per: int = 256) -> Case:
    """Return a case of a kernel that writes the values of `per` elements in each block."""
    count = 6 * max(per // size_of(kind)[0], 1)
    data = random_blocks(kind, count)
    right = values_of(data, kind)
    return Case((right.numel() // per,), (threads,), [data, empty(F, right.numel()), *more], {1: right}, 2e-6, "float")


def dequantised(kind: str) -> Case:
    """Return a case of the general kernel: three rows in two planes."""
    name = kind.lower()
    data = random_blocks(kind, 2 * 3 * 4)
    n = 4 * size_of(kind)[0]
    arguments = [data, empty(F, 6 * n), n, 3, 2, fast_divisor(2), 4, 12, 24]
    return Case((blocks(n, 512), 3, 2), (256,), arguments, {1: values_of(data, kind)}, 2e-6, f"QK{kind[1:]}, QR{kind[1:]}, dequantize_{name}, float")


def to_half() -> Case:
    data = random_blocks("Q8_0", 128)
    return Case((2,), (32,), [data, empty(torch.float16, 4096), 4096], {1: values_of(data, "Q8_0")}, 1e-3, "false")


def row_of_blocks(kind: str, rows: int, columns: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Return quantised rows, their values and how many bytes a row has."""
    per, size = size_of(kind)
    data = random_blocks(kind, rows * columns // per)
    return data, values_of(data, kind).reshape(rows, columns), columns // per * size


def rows_taken(kind: str) -> Case:
    """Return a case of k_get_rows or k_get_rows_kq."""
    super_block = size_of(kind)[0] == 256
    columns = 512 if super_block else 128
    data, values, stride = row_of_blocks(kind, 10, columns)
    index = torch.randint(0, 10, (7,), dtype=torch.int32)
    where = [columns, 7 * columns, 7 * columns, stride, 10 * stride, 10 * stride, 1, 7, 7]
    arguments = [data, index, empty(F, 7, columns), columns, 1, fast_divisor(1), *where]
    name = kind.lower().replace("_k", "_K") if super_block else kind.lower()
    instance = f"float, dequantize_{name}<float>" if super_block else f"QK{kind[1:]}, QR{kind[1:]}, dequantize_{name}, float"
    grid, block = ((7, 2, 1), 64 if kind in ("Q2_K", "Q3_K", "Q5_K", "Q6_K") else 32) if super_block else ((7, 1, 1), 256)
    return Case(grid, (block,), arguments, {2: values[index.long()]}, 2e-6, instance)


def copied(kind: str, back: bool) -> Case:
    """Return a case of a copy of floats to blocks, or back, two planes of three rows."""
    n, (per, size), low = 128, size_of(kind), kind.lower()
    shape, elements = (n, 3, 2), 4
    packed = (size, n // per * size, 3 * (n // per) * size, 6 * (n // per) * size)
    plain = (elements, n * elements, 3 * n * elements, 6 * n * elements)
    if back:
        data, values, _ = row_of_blocks(kind, 6, n)
        step = "cpy_blck_q8_0_f32" if kind == "Q8_0" else f"cpy_blck_q_f32<dequantize_{low}, QK{kind[1:]}>"
        arguments = [data, empty(F, 6, n), 6 * n, *shape, *packed, *shape, *plain]
        return Case((blocks(6 * n // per, 32),), (32,), arguments, {1: values}, 2e-6, f"{step}, QK{kind[1:]}")
    x = random(F, 6, n)
    right = torch.from_numpy(quants.quantize(x.numpy(), GGMLQuantizationType[kind])).double()
    arguments = [x, torch.zeros(right.shape, dtype=torch.uint8), 6 * n, *shape, *plain, *shape, *packed]
    return Case((blocks(6 * n // per, 32),), (32,), arguments, {1: right}, 0.0, f"cpy_blck_f32_{low}, QK{kind[1:]}")


def rows_stored(kind: str) -> Case:
    """Return a case of rows that are quantised and stored where an index says."""
    n, (per, size), low = 128, size_of(kind), kind.lower()
    x, index = random(F, 5, n), torch.randperm(9)[:5].contiguous()
    row = n // per * size
    right = torch.zeros((9, row), dtype=torch.uint8)
    right[index] = torch.from_numpy(quants.quantize(x.numpy(), GGMLQuantizationType[kind])).reshape(5, row)
    arguments = [x, index, torch.zeros((9, row), dtype=torch.uint8), 5 * n // per, 5, 1, 1, 1, n, 5 * n, 5 * n, 1, 5, 5, row, 9 * row, 9 * row,
                 fast_divisor(n), fast_divisor(5), fast_divisor(1), fast_divisor(1), fast_divisor(1)]  # fmt: skip
    instance = f"int64_t, block_{low}, QK{kind[1:]}, quantize_f32_{low}_block"
    return Case((blocks(5 * n // per, 64),), (64,), arguments, {2: right.double()}, 0.0, instance)


def bytes_and_sums() -> Case:
    """Return a case of q8_1: 32 bytes with a scale and the sum of the values, both halves."""
    rows, n = 6, 128
    x = random(F, rows, n)
    wide = x.double().reshape(rows * n // 32, 32)
    scale = wide.abs().amax(1, keepdim=True) / 127
    right = torch.zeros((rows * n // 32, 36), dtype=torch.uint8)
    right[:, 4:] = (wide / scale).round().to(torch.int8).view(torch.uint8)
    right[:, :2] = scale.half().view(torch.uint8)
    right[:, 2:4] = wide.sum(1, keepdim=True).half().view(torch.uint8)
    arguments = [x, torch.zeros_like(right), n, n, 3 * n, 6 * n, n, 3, fast_divisor(2)]
    return Case((1, 3, 2), (256,), arguments, {1: right.double()}, 0.0)


def vector_of_bytes(n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a vector in q8_1 and its values, flat."""
    codes = torch.randint(-127, 128, (n // 32, 32), dtype=torch.int8)
    scale = random(torch.float16, n // 32, 1, low=0.01, high=0.02)
    values = codes.double() * scale.double()
    data = torch.cat([scale.view(torch.uint8), values.sum(1, keepdim=True).half().view(torch.uint8), codes.view(torch.uint8)], 1)
    return data.contiguous(), values.reshape(-1)


def product_of_blocks(kind: str) -> Case:
    """Return a case of a matrix of blocks times a vector in q8_1."""
    rows, n = 24, 512
    data, values, _ = row_of_blocks(kind, rows, n)
    y, vector = vector_of_bytes(n)
    one = fast_divisor(1)
    per = size_of(kind)[0]
    arguments = [data, y, None, bytes(48), empty(F, rows), n, one, n // per, n // 32, rows, one, rows * n // per, n // 32, rows, one, rows * n // per,
                 n // 32, rows, 0]  # fmt: skip
    right = values @ vector
    return Case((rows,), (32, 4), arguments, {4: right}, 2e-3, f"GGML_TYPE_{kind}, 1, false")

def products_of_experts(kind: str) -> Case:
    """Return a case of 4 tokens' products with the matrices of blocks of two experts each, of three."""
    tokens, used, experts, rows, n = 4, 2, 3, 24, 512
    data, values, _ = row_of_blocks(kind, experts * rows, n)
    y, vectors = vector_of_bytes(tokens * n)
    ids = torch.stack([torch.randperm(experts)[:used] for _ in range(tokens)]).to(torch.int32)
    right = torch.einsum("turn,tn->tur", values.reshape(experts, rows, n)[ids.long()], vectors.reshape(tokens, n))
    per = size_of(kind)[0]
    arguments = [data, y, ids, empty(F, tokens, used, rows), n, fast_divisor(1), rows, n // per, n // 32, used * rows, rows * n // per, n // 32, rows,
                 tokens, used]  # fmt: skip
    return Case((rows // 2, used), (32, tokens), arguments, {3: right}, 2e-3, f"GGML_TYPE_{kind}, 2")


def bytes_for_products(layout: str) -> Case:
    """Return a case of blocks of 128 bytes behind 16 of scales and sums, the block's columns first; rows of 500 values lie in 512."""
    planes, rows, n, wide = 2, 5, 500, 512
    x = random(F, planes, rows, n)
    padded = torch.nn.functional.pad(x, (0, wide - n)).reshape(planes, rows, 4, 128).transpose(1, 2).reshape(-1, 128)
    scaled, summed = (64, 16) if layout == "D2S6" else (32, 32)
    inverse = torch.tensor(127.0) / padded.reshape(-1, 128 // scaled, scaled).abs().amax(2)  # 127 / x would be 127 times a reciprocal
    codes = (padded.reshape(-1, 128 // scaled, scaled) * inverse[..., None]).round().to(torch.int8).reshape(-1, 128)
    scales, fours = 1 / inverse, padded.reshape(-1, 128 // summed, summed // 4, 4)
    sums = ((fours[..., 0] + fours[..., 1]) + fours[..., 2]) + fours[..., 3]  # bytes of a sum tell its order: halves of what is left, added
    while sums.shape[2] > 1:
        sums = sums[..., : sums.shape[2] // 2] + sums[..., sums.shape[2] // 2 :]
    sums = sums[..., 0]
    if layout == "D4":
        head = scales.contiguous().view(torch.uint8)
    elif layout == "DS4":
        head = torch.stack([scales.half(), sums.half()], 2).reshape(-1, 8).view(torch.uint8)
    else:
        head = torch.cat([scales.half(), sums[:, :6].half()], 1).contiguous().view(torch.uint8)
    right = torch.cat([head, codes.view(torch.uint8)], 1)
    arguments = [x, None, torch.zeros_like(right), n, n, rows * n, planes * rows * n, wide, rows, planes, 0]
    return Case((rows, 1, planes), (128,), arguments, {2: right.double()}, 0.0, f"MMQ_Q8_1_DS_LAYOUT_{layout}, false")


FOURS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
"""What three bits of e2m1 stand for."""


def fours_for_products() -> Case:
    """Return a case of mxfp4's blocks of 256 values: 8 exponents of 32 values each, two in a word, before the values, 4 bits each."""
    rows, n = 5, 512
    x = random(F, rows, n)
    groups = x.double().reshape(rows, n // 256, 8, 32).transpose(0, 1)
    exponent = groups.abs().amax(3).log2().round() - 2
    scaled = groups / torch.exp2(exponent)[..., None]
    code = (scaled.abs().clamp(max=6)[..., None] - FOURS).abs().argmin(-1) + 8 * (scaled < 0)
    packed = code[..., :16] | code[..., 16:] << 4
    biased = (exponent + 127).to(torch.int64)
    words = torch.zeros(n // 256, rows, 4, 4, dtype=torch.int64)
    words[..., 0], words[..., 1] = biased[..., 0::2], biased[..., 1::2]
    right = torch.cat([words.flatten(2), packed.flatten(2)], 2)
    arguments = [x, None, torch.zeros(right.shape, dtype=torch.uint8), n, n, rows * n, rows * n, n, rows, 1, 0]
    return Case((rows, 1, 1), (32, 8), arguments, {2: right.double()}, 0.0, "false")



def all_of(*cases: Callable[[], Case]) -> Callable[[], list[Case]]:
    """Return the cases of one kernel."""
    return lambda: [one() for one in cases]


THREADS = {
    "q2_K": 64, "q3_K": 64, "q4_K": 32, "q5_K": 64, "q6_K": 64, "iq2_xxs": 32, "iq2_xs": 32, "iq2_s": 32, "iq3_xxs": 32, "iq3_s": 32, "iq1_s": 32,
    "iq1_m": 32, "iq4_nl": 32, "iq4_xs": 32, "mxfp4": 32,
}  # fmt: skip
SIMPLE = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")

QUANTISED: dict[str, Callable[[], Case | list[Case]]] = {} if GGMLQuantizationType is None else {
    **{f"dequantize_block_{name}": partial(whole, name.upper(), size) for name, size in THREADS.items()},
    "dequantize_block_q4_0": lambda: whole("Q4_0", 32, 48), "dequantize_block_q4_1": lambda: whole("Q4_1", 32, 48),
    "dequantize_block_nvfp4": lambda: whole("NVFP4", 32, 6 * 64, per=64), "dequantize_block_q8_0_f16": to_half,
    "dequantize_block": all_of(*(lambda kind=kind: dequantised(kind) for kind in SIMPLE)),
    "k_get_rows": all_of(*(lambda kind=kind: rows_taken(kind) for kind in SIMPLE)),
    "k_get_rows_kq": all_of(*(lambda kind=kind: rows_taken(kind) for kind in ("Q2_K", "Q4_K", "Q6_K"))),
    "cpy_f32_q": all_of(*(lambda kind=kind: copied(kind, False) for kind in SIMPLE)),
    "cpy_q_f32": all_of(*(lambda kind=kind: copied(kind, True) for kind in SIMPLE)),
    "k_set_rows_quant": all_of(*(lambda kind=kind: rows_stored(kind) for kind in SIMPLE)),
    "quantize_q8_1": bytes_and_sums, "quantize_mmq_mxfp4": fours_for_products,
    "quantize_mmq_q8_1": all_of(*(lambda layout=layout: bytes_for_products(layout) for layout in ("D4", "DS4", "D2S6"))),
    "mul_mat_vec_q_moe": all_of(*(lambda kind=kind: products_of_experts(kind) for kind in (*SIMPLE, "Q2_K", "Q4_K", "Q6_K"))),
    "mul_mat_vec_q": all_of(*(lambda kind=kind: product_of_blocks(kind) for kind in (*SIMPLE, "Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K"))),
}  # type: ignore[misc]  # fmt: skip
"""Name of a kernel -> its cases; empty without the package gguf."""
