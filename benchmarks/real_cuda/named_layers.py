"""Cases of ggml's kernels that are layers of networks: convolutions, pools, norms, softmax, rotary embeddings, activations, experts, resizing."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from torch.nn import functional

from benchmarks.real_cuda.families import Case, blocks, empty, random
from benchmarks.real_cuda.named_layout import CLOSE, EXACT, WORDS, F, H, strides
from benchmarks.real_cuda.named_quantised import all_of, fast_divisor


def convolved(dtype: torch.dtype) -> Case:
    x, weight = random(F, 2, 3, 13, 17), random(dtype, 5, 3, 4, 3)
    right = functional.conv2d(x.double(), weight.double(), stride=(2, 1), padding=(2, 1), dilation=(1, 2))
    n, c, h, w = right.shape
    given = np.array([17, 13, w, h, 3, 4, 1, 2, 1, 2, 2, 1, 3, c, n, right.numel()], np.int64).tobytes()
    instance = ("float" if dtype == F else "half") + ", whcn_layout"
    return Case((blocks(right.numel(), 256),), (256,), [x, weight, empty(F, *right.shape), given], {2: right}, CLOSE, instance)


def convolved_by_channel(last: bool) -> Case:
    x, weight = random(F, 2, 6, 13, 17), random(F, 6, 1, 4, 3)
    right = functional.conv2d(x.double(), weight.double(), stride=(2, 1), padding=(2, 1), dilation=(1, 2), groups=6)
    h, w = right.shape[2:]
    numbers = [17, 13, w, h, 3, 4, 1, 2, 1, 2, 2, 1, 6, 2]
    given = [x, weight, empty(F, *right.shape)]
    if last:
        right = right.permute(0, 2, 3, 1).contiguous()
        given = [x.permute(0, 2, 3, 1).contiguous(), weight.permute(1, 2, 3, 0).contiguous(), empty(F, *right.shape)]
    instance = "float, cwhn_layout" if last else "float, whcn_layout"
    return Case((blocks(right.numel(), 256),), (256,), [*given, *numbers], {2: right}, CLOSE, instance)


def transposed(dtype: torch.dtype) -> Case:
    x, weight = random(F, 2, 3, 7, 9), random(dtype, 3, 4, 3, 5)
    right = functional.conv_transpose2d(x.double(), weight.double(), stride=2)
    h, w = right.shape[2:]
    numbers = [9, 7, w, h, 5, 3, 2, 3, 4, 2]
    arguments = [x, weight, empty(F, *right.shape), *numbers]
    return Case((blocks(right.numel(), 256),), (256,), arguments, {2: right}, CLOSE, "float" if dtype == F else "half")


def patches(dtype: torch.dtype) -> Case:
    x = random(F, 2, 3, 13, 17)
    unfolded = functional.unfold(x.double(), (4, 3), dilation=(1, 2), padding=(2, 1), stride=(2, 1))
    out_h, out_w = (13 + 4 - 3 - 1) // 2 + 1, (17 + 2 - 4 - 1) // 1 + 1
    right = unfolded.transpose(1, 2).reshape(2, out_h, out_w, 36)
    right = right.to(dtype).double()
    numbers = [3, 17, 13, out_h, out_w, 3, 4, 13 * 17, 3 * 13 * 17, 2 * out_h, 12, 36, 1, 2, 1, 2, 2, 1]
    arguments = [x, empty(dtype, *right.shape), *numbers]
    return Case((1, out_w, 2 * out_h), (36,), arguments, {1: right}, EXACT, "float" if dtype == F else "half")


def patches_3d() -> Case:
    batch, channels, depth, high, wide = 2, 3, 6, 7, 8
    x = random(F, batch, channels, depth, high, wide)
    padded = functional.pad(x.double(), (1, 1, 1, 1, 1, 1))
    view = padded.unfold(2, 3, 1).unfold(3, 3, 2).unfold(4, 3, 1)  # batch, channels, out depth, out high, out wide, 3, 3, 3
    right = view.permute(0, 2, 3, 4, 1, 5, 6, 7).contiguous()
    od, oh, ow = right.shape[1:4]
    taps = 27
    row = channels * taps
    numbers = [batch, channels, depth, high, wide, 1, 3, 3, 3, od, oh, ow, oh * ow, taps, depth * high * wide, 9, high * wide,
               channels * depth * high * wide, row, ow * taps, od * oh * ow * row, oh * ow * row, ow * row, batch * od * oh, od * oh,
               depth * high * wide, high * wide, wide, 1, 1, 2, 1, 1, 1, 1, 1, 1, 1]  # fmt: skip
    return Case((1, ow, batch * od * oh), (row,), [x, empty(F, *right.shape), *numbers], {1: right}, EXACT, "float")


def pooled(kind: str) -> Case:
    x = random(F, 2, 3, 14, 17)
    call = functional.max_pool2d if kind == "MAX" else functional.avg_pool2d
    right = call(x.double(), (4, 3), stride=(2, 3), padding=(2, 1))
    h, w = right.shape[2:]
    numbers = [14, 17, h, w, 4, 3, 2, 3, 2, 1, right.numel()]
    arguments = [*numbers, x, empty(F, *right.shape), 0 if kind == "MAX" else 1]
    return Case((blocks(right.numel(), 256),), (256,), arguments, {12: right}, CLOSE, "float, float")


def rms_normed(fused: bool) -> Case:
    x, mul, add, eps = random(F, 2, 3, 5, 300), random(F, 300), random(F, 5, 300), 1e-5
    wide = x.double()
    right = wide * (wide.square().mean(3, keepdim=True) + eps).rsqrt()
    rest: list[object] = [None, 0, 0, 0, *[bytes(12)] * 4] * 2
    if fused:
        right = right * mul.double() + add.double()
        one = fast_divisor(1)
        rest = [mul, 300, 300, 300, fast_divisor(300), one, one, one, add, 300, 1500, 1500, fast_divisor(300), fast_divisor(5), one, one]
    arguments = [x, empty(F, *x.shape), 300, 300, 1500, 4500, eps, *rest]
    return Case((5, 3, 2), (256,), arguments, {1: right}, 1e-5, "256, true, true" if fused else "256, false, false", 128)


def soft_max(with_mask: bool, block: int = 0) -> Case:
    width = 300 if not block else 256
    x, mask, scale = random(F, 2, 4, 5, width), random(H, 5, width), 0.25
    right = x.double() * scale
    if with_mask:
        right = right + mask.double()
    right = right.softmax(3)
    whole = np.array([4, 4, width, 40, 5, width, 5, 4, 2, 2 * width, 10 * width, 10 * width, 1, 1], np.int64)
    record = np.zeros(1, [("heads", "i8"), ("log", "u4"), ("pad", "u4"), ("sizes", "i8", 12), ("factors", "f4", 4)])
    record["heads"], record["log"], record["sizes"] = 4, 4, whole[2:]
    record["factors"] = [scale, 0.0, 1.0, 1.0]
    arguments = [x, mask if with_mask else None, None, empty(F, *x.shape), record.tobytes()]
    instance = f"true, {block}, {block}, half" if block else "true, 0, 0, half"
    return Case((5, 4, 2), (256,), arguments, {3: right}, 1e-5, instance, 4 * (320 + 32))


def soft_max_of_all_blocks() -> Case:
    """Return a case of rows that all blocks share, which meet at the grid's barrier."""
    x = random(F, 3, 5000)
    record = np.zeros(1, [("heads", "i8"), ("log", "u4"), ("pad", "u4"), ("sizes", "i8", 12), ("factors", "f4", 4)])
    record["sizes"] = [5000, 3, 1, 5000, 3, 1, 1, 0, 0, 0, 1, 1]
    record["factors"] = [1.0, 0.0, 1.0, 1.0]
    arguments = [x, empty(F, 3, 5000), torch.zeros(4), torch.zeros(4), record.tobytes()]
    return Case((4,), (256,), arguments, {1: x.double().softmax(1)}, 1e-5)


def angles_of(positions: torch.Tensor, pairs: int, base: float = 10000.0) -> torch.Tensor:
    """Return position times frequency, a row a position."""
    return positions.double()[:, None] * base ** (-torch.arange(pairs, dtype=torch.float64) / pairs)


def turned(x: torch.Tensor, angles: torch.Tensor, pairs: int, halves: bool) -> torch.Tensor:
    """Return x (tokens, heads, width) with its first `2 * pairs` elements turned: pairs side by side, or a half apart."""
    y = x.double().clone()
    one, two = (slice(0, pairs), slice(pairs, 2 * pairs)) if halves else (slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2))
    cos, sin = angles.cos()[:, None], angles.sin()[:, None]
    y[..., one], y[..., two] = x.double()[..., one] * cos - x.double()[..., two] * sin, x.double()[..., one] * sin + x.double()[..., two] * cos
    return y


def rotated(kind: str) -> Case:
    """Return a case of rotary embeddings: 6 tokens, 3 heads of 64 elements, 48 of which turn (all 64 for vision)."""
    tokens, heads, width = 6, 3, 64
    x = random(F, tokens, heads, width)
    whole = kind == "vision"
    pairs = 32 if whole else 24
    several = kind in ("multi", "vision")
    position = torch.randint(0, 40, (4, tokens) if several else (tokens,), dtype=WORDS)
    size = heads * width
    head = [x, empty(F, *x.shape), width, heads, tokens, width, size, tokens * size, width, size, tokens * size]
    factors = [1.0, 0.0, 1.0, np.zeros(2, np.float32).tobytes(), 10000.0 ** (-1.0 / pairs)]
    template = "true, false, float" if several else "true, false, float, float"
    if kind in ("norm", "neox"):
        right = turned(x, angles_of(position, pairs), pairs, kind == "neox")
        arguments = [*head, 2 * pairs, 0, position, *factors, None, None, 0, False]
    elif kind == "multi":
        sections = np.array([8, 6, 6, 4], np.int32)
        which = torch.from_numpy(np.repeat(np.arange(4), sections))
        frequencies = 10000.0 ** (-torch.arange(pairs, dtype=torch.float64) / pairs)
        right = turned(x, position.double()[which].T * frequencies, pairs, True)
        arguments = [*head, 2 * pairs, 0, position, *factors, None, sections.tobytes(), False, False]
    else:  # vision: each half of the pairs has a position of its own and counts its frequencies anew
        sections = np.array([16, 16, 0, 0], np.int32)
        local = 10000.0 ** (-torch.arange(16, dtype=torch.float64) / pairs)
        right = turned(x, torch.cat([position[0].double()[:, None] * local, position[1].double()[:, None] * local], 1), pairs, True)
        arguments = [*head, pairs, position, *factors, None, sections.tobytes()]
    return Case((heads * tokens, 1), (1, 64), arguments, {1: right}, 2e-5, template)


def normed_and_rotated(halves: bool) -> Case:
    tokens, heads, width, pairs, eps = 6, 3, 64, 24, 1e-5
    x, mul = random(F, tokens, heads, width), random(F, width)
    position = torch.randint(0, 40, (tokens,), dtype=WORDS)
    wide = x.double() * (x.double().square().mean(2, keepdim=True) + eps).rsqrt() * mul.double()
    right = turned(wide, angles_of(position, pairs), pairs, halves)
    size, one = heads * width, fast_divisor(1)
    row = [width, size, tokens * size]
    arguments = [x, empty(F, *x.shape), width, *row, *row, eps, mul, width, width, width, fast_divisor(width), one, one, one, 2 * pairs, position,
                 1.0, 0.0, 1.0, bytes(8), 10000.0 ** (-1.0 / pairs), None, None, 0, halves]  # fmt: skip
    return Case((heads, tokens, 1), (256,), arguments, {1: right}, 2e-5, "256, false, float", 128)


def activated(name: str, right: Callable[[torch.Tensor], torch.Tensor], dtype: torch.dtype = F, low: float = -3.0) -> Case:
    x = random(dtype, 1000, low=low, high=3)
    tolerance = CLOSE if dtype == F else 2e-3
    arguments = [x, empty(dtype, 1000), 1000]
    return Case((4,), (256,), arguments, {1: right(x.double())}, tolerance, f"{name}, {'float' if dtype == F else 'half'}")


def gated(name: str, right: Callable[[torch.Tensor], torch.Tensor]) -> Case:
    """Return a case of an activation of one half of each row times the other half."""
    x = random(F, 12, 100)
    wanted = right(x[:, :50].double()) * x[:, 50:].double()
    arguments = [x, x.data_ptr() + 200, empty(F, 12, 50), 600, 50, 100, 100]
    return Case((3,), (256,), arguments, {2: wanted}, CLOSE, f"{name}, float")


def swiglu_oai() -> Case:
    x, gate, alpha, limit = random(F, 12, 50, low=-9, high=9), random(F, 12, 50, low=-9, high=9), 1.7, 7.0
    a, b = x.double().clamp(max=limit), gate.double().clamp(-limit, limit)
    right = a * (alpha * a).sigmoid() * (1 + b)
    return Case((3,), (256,), [x, gate, empty(F, 12, 50), 600, 50, 50, 50, alpha, limit], {2: right}, CLOSE, "float")


def xielu() -> Case:
    x, an, ap, beta, eps = random(F, 1000), 0.8, 0.6, 0.5, -1e-6
    wide = x.double()
    right = torch.where(wide > 0, ap * wide**2 + beta * wide, (wide.clamp(max=eps).expm1() - wide) * an + beta * wide)
    return Case((4,), (256,), [x, empty(F, 1000), 1000, an, ap, beta, eps], {1: right}, CLOSE, "float")


def snake() -> Case:
    x, a, inverse = random(F, 6, 70), random(F, 6, low=0.5), random(F, 6, low=0.5)
    right = x.double() + (a.double()[:, None] * x.double()).sin() ** 2 * inverse.double()[:, None]
    return Case((2,), (256,), [x, a, inverse, empty(F, 6, 70), 420, fast_divisor(70)], {3: right}, CLOSE, "float")


def resized(how: str) -> Case:
    x = random(F, 2, 3, 8, 10)
    if how == "antialias":
        right = functional.interpolate(x.double(), size=(5, 7), mode="bilinear", antialias=True)
    else:
        right = functional.interpolate(x.double(), size=(20, 17), mode=how, align_corners=False)
    h, w = right.shape[2:]
    arguments = [x, empty(F, *right.shape), *strides(10, 8, 3, 2, element=4), 10, 8, w, h, 3, 2, w / 10, h / 8, 1.0, 1.0, 0.5]
    return Case((blocks(right.numel(), 256),), (256,), arguments, {1: right}, 1e-4, "")


def experts_chosen(bias: bool) -> Case:
    """Return a case of the 4 best of 64 experts a token, by softmax, weights normed to a sum of 1."""
    tokens, count, used = 10, 64, 4
    logits, offset = random(F, tokens, count), random(F, count, low=-0.02, high=0.02)
    weights = logits.double().softmax(1)
    best = (weights + offset.double() * bias).topk(used, 1).indices
    chosen = weights.gather(1, best)
    right = chosen / chosen.sum(1, keepdim=True)
    indices = torch.full((tokens, count), -77, dtype=torch.float64)
    indices[:, :used] = best
    config = bytes([0, 0, 1, 0])
    arguments = [logits, empty(F, tokens, used), torch.full((tokens, count), -77, dtype=WORDS), offset if bias else None, tokens, used, 1e-6, 1.0, config]
    return Case((blocks(tokens, 4),), (32, 4), arguments, {1: right, 2: indices}, 1e-5, f"{count}, {'true' if bias else 'false'}")


def hadamard() -> Case:
    x, n = random(F, 10, 128), 128
    matrix = torch.ones(1, 1, dtype=torch.float64)
    while len(matrix) < n:
        matrix = torch.cat([torch.cat([matrix, matrix], 1), torch.cat([matrix, -matrix], 1)], 0)
    scale = 1 / math.sqrt(n)
    return Case((3,), (32, 4), [x, empty(F, 10, n), 10, scale], {1: x.double() @ matrix * scale}, 1e-5, "128")


def triangular_solve() -> Case:
    n, k = 40, 10
    a, b = random(F, 6, n, n, low=-0.2, high=0.2), random(F, 6, n, k)
    a += 2 * torch.eye(n)
    a = a.tril()
    right = torch.linalg.solve_triangular(a.double(), b.double(), upper=False)
    arguments = [a, b, empty(F, 6, n, k), fast_divisor(3), n * n, 3 * n * n, n * k, 3 * n * k, n * k, 3 * n * k, n, k]
    return Case((6,), (32, k), arguments, {2: right}, 1e-4, "0, 0")


def matrix_times_vector(dtype: torch.dtype) -> Case:
    rows, n = 30, 200
    matrix, x = random(dtype, rows, n), random(F, n)
    one = fast_divisor(1)
    arguments = [matrix, x, None, bytes(48), empty(F, rows), n // 2, one, n, n // 2, rows, one, rows * n, n, rows, one, rows * n, n, rows, 0]
    name = {F: "float", H: "half", torch.bfloat16: "nv_bfloat16"}[dtype]
    return Case((rows,), (64,), arguments, {4: matrix.double() @ x.double()}, 1e-5, f"{name}, float, 1, 64", 128)


def parts_combined() -> Case:
    """Return a case of attention's partial results, each with its largest score and its sum."""
    columns, heads, parts, width = 5, 4, 3, 64
    pieces, meta = random(F, columns, heads, parts, width), random(F, columns, heads, parts, 2, low=0.5)
    weight = (meta[..., 0].double() - meta[..., 0].double().amax(2, keepdim=True)).exp()
    right = (weight[..., None] * pieces.double()).sum(2) / (weight * meta[..., 1].double()).sum(2)[..., None]
    return Case((columns, heads), (width,), [pieces, meta, empty(F, columns, heads, width), parts], {2: right}, 1e-5, str(width), 8 * parts)


UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "op_abs": torch.abs, "op_sgn": torch.sign, "op_neg": torch.neg, "op_step": lambda x: (x > 0).double(), "op_gelu_erf": functional.gelu,
    "op_gelu": lambda x: functional.gelu(x, approximate="tanh"), "op_gelu_quick": lambda x: x * (1.702 * x).sigmoid(), "op_silu": functional.silu,
    "op_tanh": torch.tanh, "op_relu": torch.relu, "op_sigmoid": torch.sigmoid, "op_hardsigmoid": functional.hardsigmoid,
    "op_hardswish": functional.hardswish, "op_exp": torch.exp, "op_sqr": torch.square, "op_sin": torch.sin, "op_cos": torch.cos,
    "op_elu": functional.elu, "op_floor": torch.floor, "op_ceil": torch.ceil, "op_round": torch.round, "op_trunc": torch.trunc,
    "op_expm1": torch.expm1, "op_softplus": functional.softplus,
}  # fmt: skip

LAYERS: dict[str, Callable[[], Case | list[Case]]] = {
    "conv2d_kernel": all_of(lambda: convolved(F), lambda: convolved(H)),
    "conv2d_dw_kernel": all_of(lambda: convolved_by_channel(False), lambda: convolved_by_channel(True)),
    "conv2d_transpose_kernel": all_of(lambda: transposed(F), lambda: transposed(H)),
    "im2col_kernel": all_of(lambda: patches(F), lambda: patches(H)), "im2col_3d_kernel": patches_3d,
    "pool2d_nchw_kernel": all_of(lambda: pooled("MAX"), lambda: pooled("AVG")),
    "rms_norm_f32": all_of(lambda: rms_normed(False), lambda: rms_normed(True)),
    "soft_max_f32": all_of(lambda: soft_max(False), lambda: soft_max(True), lambda: soft_max(True, 256)),
    "soft_max_f32_parallelize_cols": soft_max_of_all_blocks,
    "rope_norm": lambda: rotated("norm"), "rope_neox": lambda: rotated("neox"), "rope_multi": lambda: rotated("multi"),
    "rope_vision": lambda: rotated("vision"),
    "rms_norm_mul_rope_f32": all_of(lambda: normed_and_rotated(False), lambda: normed_and_rotated(True)),
    "unary_op_kernel": all_of(*(lambda name=name, right=right: activated(name, right) for name, right in UNARY.items()),
                              lambda: activated("op_sqrt", torch.sqrt, low=0.1), lambda: activated("op_log", torch.log, low=0.1),
                              lambda: activated("op_silu", functional.silu, H)),
    "unary_gated_op_kernel": all_of(lambda: gated("op_silu", functional.silu), lambda: gated("op_gelu_erf", functional.gelu)),
    "swiglu_oai_kernel": swiglu_oai, "xielu_kernel": xielu, "snake_kernel": snake,
    "upscale_f32_bilinear": lambda: resized("bilinear"), "upscale_f32_bicubic": lambda: resized("bicubic"),
    "upscale_f32_bilinear_antialias": lambda: resized("antialias"),
    "topk_moe_cuda": all_of(lambda: experts_chosen(False), lambda: experts_chosen(True)), "fwht_cuda": hadamard,
    "solve_tri_f32_fast": triangular_solve,
    "mul_mat_vec_f": all_of(lambda: matrix_times_vector(F), lambda: matrix_times_vector(H), lambda: matrix_times_vector(torch.bfloat16)),
    "flash_attn_combine_results": parts_combined,
}  # type: ignore[misc]  # fmt: skip
