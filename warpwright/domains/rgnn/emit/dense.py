"""Products of many rows with one weight in float32 on a GPU: three TF32 products, and a weight's gradient with the bias's in one pass.

On an H200 a product of 1,939,743 rows of 64 numbers with a weight of 64 x 64 takes about 0.55 ms so, as torch.mm does (0.57); the bytes would take
0.24. What it gains is precision: the largest error of RGCN's gradients on mag's graph, that of the root weight, was 1.6e-6 and is below 7e-7.
Elsewhere, and for fewer rows or wider ones, torch's products are used.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
import torch.nn.functional as F

from warpwright.domains.rgnn.emit.gpu import load
from warpwright.domains.rgnn.emit.own import kinds as by_kind
from warpwright.domains.rgnn.emit.own import outer as rows_outer
from warpwright.domains.rgnn.emit.triton import direct
from warpwright.tf32 import permits

MANY, SOME = 1 << 17, 1 << 15
"""Rows from which a GPU is full; and those from which a node type of a large graph, and a weight's gradient, go the same way: am has three
node types of 38,000 to 94,000 nodes."""
FEW = 1 << 12
"""Rows from which a product is one of kinds.cu, up to MANY: torch.addmm takes 34 us for bgs' 94,806 rows, 18 for 50,000 (an H200)."""
WIDEST = 64
"""Numbers of a row, in and out: in wider ones a program would spill registers."""

TEXT = '''
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows", "out_part"])
def product(x, weight, bias, out, rows, x_step, w_down, w_across, out_step, w_part, out_part, WIDTH: tl.constexpr, RESULT: tl.constexpr,
            BIASED: tl.constexpr, ADDED: tl.constexpr, PARTS: tl.constexpr, K: tl.constexpr, M: tl.constexpr, STEP: tl.constexpr,
            STAGES: tl.constexpr):
    k, m = tl.arange(0, K), tl.arange(0, M)
    part = (tl.program_id(0) % PARTS).to(tl.int64)
    weight += part * w_part
    bias += part * RESULT
    out += part * out_part
    whole = tl.load(weight + k[:, None] * w_down + m[None, :] * w_across, mask=(k[:, None] < WIDTH) & (m[None, :] < RESULT), other=0.0)
    start = tl.zeros((1, M), tl.float32)
    if BIASED:
        start = tl.load(bias + m, mask=m < RESULT, other=0.0)[None, :]
    for tile in tl.range(tl.program_id(0) // PARTS, tl.cdiv(rows, STEP), tl.num_programs(0) // PARTS, num_stages=STAGES):
        row = tile * STEP + tl.arange(0, STEP)
        at = row[:, None].to(tl.int64)
        given = tl.load(x + at * x_step + k[None, :], mask=(row[:, None] < rows) & (k[None, :] < WIDTH), other=0.0)
        value = tl.dot(given, whole, input_precision="tf32x3") + start
        place, ok = out + at * out_step + m[None, :], (row[:, None] < rows) & (m[None, :] < RESULT)
        if ADDED:
            value += tl.load(place, mask=ok, other=0.0)
        tl.store(place, value, mask=ok)


@triton.jit(do_not_specialize=["rows"])
def summed(a, b, c, weight, out, rows, w_part, WIDTH: tl.constexpr, RESULT: tl.constexpr, K: tl.constexpr, M: tl.constexpr, STEP: tl.constexpr,
           STAGES: tl.constexpr):
    k, m = tl.arange(0, K), tl.arange(0, M)
    at, inside = k[:, None] * RESULT + m[None, :], (k[:, None] < WIDTH) & (m[None, :] < RESULT)
    first, second = tl.load(weight + at, mask=inside, other=0.0), tl.load(weight + w_part + at, mask=inside, other=0.0)
    third = tl.load(weight + 2 * w_part + at, mask=inside, other=0.0)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, STEP), tl.num_programs(0), num_stages=STAGES):
        row = tile * STEP + tl.arange(0, STEP)
        place, ok = row[:, None].to(tl.int64) * WIDTH + k[None, :], (row[:, None] < rows) & (k[None, :] < WIDTH)
        value = tl.dot(tl.load(a + place, mask=ok, other=0.0), first, input_precision="tf32x3")
        value = tl.dot(tl.load(b + place, mask=ok, other=0.0), second, value, input_precision="tf32x3")
        value = tl.dot(tl.load(c + place, mask=ok, other=0.0), third, value, input_precision="tf32x3")
        tl.store(out + row[:, None].to(tl.int64) * RESULT + m[None, :], value, mask=(row[:, None] < rows) & (m[None, :] < RESULT))


@triton.jit(do_not_specialize=["rows", "each"])
def outer(x, g, matrix, total, rows, x_step, g_step, each, WIDTH: tl.constexpr, RESULT: tl.constexpr, K: tl.constexpr, M: tl.constexpr,
          STEP: tl.constexpr, STAGES: tl.constexpr, ACTIVE: tl.constexpr,
          PRECISION: tl.constexpr):
    first = tl.program_id(0) * each
    k, m = tl.arange(0, K), tl.arange(0, M)
    value, added = tl.zeros((K, M), tl.float32), tl.zeros((STEP, M), tl.float32)
    for low in tl.range(0, each, STEP, num_stages=STAGES):
        row = first + low + tl.arange(0, STEP)
        at, ok = row[:, None].to(tl.int64), row[:, None] < rows
        left = tl.load(x + at * x_step + k[None, :], mask=ok & (k[None, :] < WIDTH), other=0.0)
        right = tl.load(g + at * g_step + m[None, :], mask=ok & (m[None, :] < RESULT), other=0.0)
        if ACTIVE:
            left = 0.5 * left * (1.0 + tl.erf(left * 0.7071067811865476))
        value += tl.dot(tl.trans(left), right, input_precision=PRECISION)
        added += right
    tl.atomic_add(matrix + k[:, None] * RESULT + m[None, :], value, mask=(k[:, None] < WIDTH) & (m[None, :] < RESULT), sem="relaxed")
    tl.atomic_add(total + m, tl.sum(added, 0), mask=m < RESULT, sem="relaxed")


@triton.jit(do_not_specialize=["rows"])
def mixed(x, out, share, weight, bias, result, rows, x_step, out_step, WIDTH: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr,
          STAGES: tl.constexpr):
    k, m = tl.arange(0, K), tl.arange(0, K)
    whole = tl.load(weight + k[:, None] + m[None, :] * WIDTH, mask=(k[:, None] < WIDTH) & (m[None, :] < WIDTH), other=0.0)
    start = tl.load(bias + m, mask=m < WIDTH, other=0.0)[None, :]
    part = tl.load(share)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, STEP), tl.num_programs(0), num_stages=STAGES):
        row = tile * STEP + tl.arange(0, STEP)
        at, ok = row[:, None].to(tl.int64), (row[:, None] < rows) & (m[None, :] < WIDTH)
        given = tl.load(out + at * out_step + k[None, :], mask=(row[:, None] < rows) & (k[None, :] < WIDTH), other=0.0)
        own = tl.load(x + at * x_step + m[None, :], mask=ok, other=0.0)
        active = 0.5 * given * (1.0 + tl.erf(given * 0.7071067811865476))
        value = tl.dot(active, whole, input_precision="tf32x3") + start
        tl.store(result + at * WIDTH + m[None, :], own + part * (value - own), mask=ok)


@triton.jit(do_not_specialize=["rows"])
def unmixed(x, out, share, weight, g, of_x, of_out, total, rows, x_step, out_step, WIDTH: tl.constexpr, K: tl.constexpr, STEP: tl.constexpr,
            STAGES: tl.constexpr):
    k, m = tl.arange(0, K), tl.arange(0, K)
    whole = tl.load(weight + k[:, None] * WIDTH + m[None, :], mask=(k[:, None] < WIDTH) & (m[None, :] < WIDTH), other=0.0)
    part = tl.load(share)
    added = tl.zeros((STEP,), tl.float32)
    for tile in tl.range(tl.program_id(0), tl.cdiv(rows, STEP), tl.num_programs(0), num_stages=STAGES):
        row = tile * STEP + tl.arange(0, STEP)
        at, ok = row[:, None].to(tl.int64), (row[:, None] < rows) & (m[None, :] < WIDTH)
        given = tl.load(g + at * WIDTH + k[None, :], mask=(row[:, None] < rows) & (k[None, :] < WIDTH), other=0.0)
        inner = tl.dot(given * part, whole, input_precision="tf32x3")
        before = tl.load(out + at * out_step + m[None, :], mask=ok, other=0.0)
        slope = 0.5 * (1.0 + tl.erf(before * 0.7071067811865476)) + before * tl.exp(-0.5 * before * before) * 0.3989422804014327
        tl.store(of_out + at * WIDTH + m[None, :], inner * slope, mask=ok)
        own = tl.load(x + at * x_step + k[None, :], mask=(row[:, None] < rows) & (k[None, :] < WIDTH), other=0.0)
        added += tl.sum(given * own, 1)
        tl.store(of_x + at * WIDTH + k[None, :], given - given * part, mask=(row[:, None] < rows) & (k[None, :] < WIDTH))
    tl.atomic_add(total, tl.sum(added, 0), sem="relaxed")
'''



@dataclass(frozen=True)
class Schedule:
    """How a kernel goes through the rows."""

    step: int
    """Rows of one step."""
    warps: int
    stages: int
    """Steps whose reads are under way."""
    programs: int
    """For each multiprocessor."""
    precision: str = "tf32x3"
    """Of a weight's gradient: three products of TF32, or six of bfloat16 (bf16x6), each of which keep float32's."""


PRODUCT, OUTER, MIXED, UNMIXED = Schedule(64, 4, 3, 2), Schedule(32, 4, 3, 3), Schedule(64, 4, 2, 2), Schedule(64, 4, 2, 2)
SUMMED = Schedule(64, 8, 2, 1)
"""On an H200 the product of 1,939,743 rows takes 0.33 ms so (torch.addmm 0.53, the bytes 0.24), the weight's gradient 0.57 (0.72)."""

def product(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, out: torch.Tensor | None = None, add: bool = False
) -> torch.Tensor:
    """Return x @ weight (+ bias); `out` is written where it is given (`add`: it is added to). Without gradients."""
    if not add and FEW <= x.shape[0] < MANY and not torch.compiler.is_compiling() and not _tf32():
        done = by_kind.product(x, weight, bias, out)
        if done is not None:
            return done
    if not _fits(x, weight.shape[1]) or not _usable(x.device):
        if add and out is not None:
            return out.addmm_(x, weight)
        return torch.mm(x, weight, out=out) if bias is None else torch.addmm(bias, x, weight, out=out)
    return _product(x, weight, bias, x.new_empty(x.shape[0], weight.shape[1]) if out is None else out, add)


def products(x: torch.Tensor, weights: torch.Tensor, biases: torch.Tensor, out: torch.Tensor) -> None:
    """Write x @ weights[i].t() + biases[i] to out[i], for weights [parts, result, width] and out [parts, rows, result].

    The parts are one launch that goes through the rows once: all but the first reading of a row is from the second cache.
    """
    if not _fits(x, out.shape[2]) or not _usable(x.device):
        for weight, bias, place in zip(weights, biases, out, strict=True):
            torch.addmm(bias, x, weight.t(), out=place)
        return
    _product(x, weights[0].t(), biases, out, parts=out.shape[0], apart=(weights.stride(0), out.stride(0)))


def summed(parts: Sequence[torch.Tensor], weights: torch.Tensor) -> torch.Tensor:
    """Return the sum of parts[i] @ weights[i], for three parts [rows, width] and weights [3, width, result]; the result is written once."""
    fits = all(part.is_contiguous() and _fits(part, weights.shape[2]) for part in parts) and weights.is_contiguous()
    if fits and _usable(parts[0].device):
        return _summed(parts, weights)
    result = product(parts[0], weights[0])
    for part, weight in zip(parts[1:], weights[1:], strict=True):
        result = product(part, weight, out=result, add=True)
    return result


def outer(x: torch.Tensor, g: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return x^T @ g, and the sum of the rows of g: the gradients of a weight and of a bias."""
    if torch.are_deterministic_algorithms_enabled() or not _fits(x, g.shape[1]) or g.stride(1) != 1 or not _usable(x.device):
        return x.t() @ g, g.sum(0)
    launch = rows_outer.launcher(x.device) if rows_outer.takes(x, g) else None
    if launch is None:
        return _outer(x, g)
    whole = x.new_zeros(x.shape[1] + 1, g.shape[1])
    rows_outer.add(launch, x, g, whole[:-1], whole[-1])
    return whole[:-1], whole[-1]


def outers(x: torch.Tensor, parts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return x^T @ [parts side by side], and the sums of their rows, for three parts of one shape; x is read once where a kernel can."""
    one = len({(g.shape, g.stride()) for g in parts}) == 1 and all(rows_outer.takes(x, g) for g in parts)
    fits = _fits(x, parts[0].shape[1]) and not torch.are_deterministic_algorithms_enabled()
    launch = rows_outer.launcher(x.device) if one and fits and _usable(x.device) else None
    if launch is None:
        pairs = [outer(x, g) for g in parts]
        return torch.cat([matrix for matrix, _ in pairs], 1), torch.cat([total for _, total in pairs])
    whole = x.new_zeros(x.shape[1] + 1, len(parts) * parts[0].shape[1])
    rows_outer.add(launch, x, parts[0], whole[:-1], whole[-1], more=parts[1:])
    return whole[:-1], whole[-1]


def mixed(x: torch.Tensor, out: torch.Tensor, share: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """Return x + share (gelu(out) weight^T + bias - x), for a weight [width, width]; one pass over the rows where a kernel can."""
    if not mixes(x, out, weight):
        return torch.lerp(x, product(F.gelu(out), weight.t(), bias), share)
    return _mixed(x, out, share, weight, bias)


def mixes(x: torch.Tensor, out: torch.Tensor, weight: torch.Tensor) -> bool:
    """Does a kernel compute `mixed`?"""
    plain = x.dtype is torch.float32 and x.shape == out.shape and weight.is_contiguous() and out.stride(1) == 1
    return plain and not torch.are_deterministic_algorithms_enabled() and _fits(x, x.shape[1]) and _usable(x.device)


def unmixed(
    x: torch.Tensor, out: torch.Tensor, share: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, g: torch.Tensor,
    place: torch.Tensor | None = None, rows: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    """Return the gradients of what `mixed` takes, in its order; two passes over the rows where kernels can. `place`, `rows`: for those of out, x."""
    if mixes(x, out, weight):
        return _unmixed(x, out, share, weight, bias, g, place=place, of_rows=rows)
    active, inner = F.gelu(out), g * share
    done = product(active, weight.t(), bias)
    of_share = torch.dot(g.flatten(), done.flatten()) - torch.dot(g.flatten(), x.flatten())
    matrix, total = outer(active, inner)
    of_out = torch.ops.aten.gelu_backward(product(inner, weight), out)
    return torch.sub(g, inner, out=rows), of_out if place is None else place.copy_(of_out), of_share, matrix.t(), total


def _fits(x: torch.Tensor, result: int, least: int = SOME) -> bool:
    plain = x.device.type == "cuda" and x.dtype is torch.float32 and x.stride(1) == 1 and not _tf32()
    return plain and x.shape[0] >= least and 0 < x.shape[1] <= WIDEST and 0 < result <= WIDEST


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _tf32() -> bool:
    """May torch's products use TF32? A constant where torch.compile traces, as torch's own flag is there."""
    return permits("matmul")


def _product(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor, add: bool = False, by: Schedule = PRODUCT,
    parts: int = 1, apart: tuple[int, int] = (0, 0),
) -> torch.Tensor:  # fmt: skip
    (rows, width), result = x.shape, weight.shape[1]
    assert out.stride(-1) == 1 and (bias is None or bias.is_contiguous())
    fixed = {"WIDTH": width, "RESULT": result, "BIASED": bias is not None, "ADDED": add, "PARTS": parts}
    fixed |= {"K": _padded(width), "M": _padded(result), "STEP": by.step, "STAGES": by.stages, "num_warps": by.warps, "num_stages": by.stages}
    steps = x.stride(0), weight.stride(0), weight.stride(1), out.stride(-2), *apart
    _launched("product", _grid(x, by, parts), (x, weight, x if bias is None else bias, out), (rows, *steps), **fixed)
    return out


def _summed(parts: Sequence[torch.Tensor], weights: torch.Tensor, by: Schedule = SUMMED) -> torch.Tensor:
    (rows, width), result = parts[0].shape, weights.shape[2]
    out = parts[0].new_empty(rows, result)
    fixed = {"WIDTH": width, "RESULT": result, "K": _padded(width), "M": _padded(result), "STEP": by.step, "STAGES": by.stages}
    fixed |= {"num_warps": by.warps, "num_stages": by.stages}
    _launched("summed", _grid(out, by), (*parts, weights, out), (rows, weights.stride(0)), **fixed)
    return out


def _mixed(x: torch.Tensor, out: torch.Tensor, share: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, by: Schedule = MIXED) -> torch.Tensor:
    rows, width = x.shape
    result = x.new_empty(rows, width)
    _launched("mixed", _grid(x, by), (x, out, share, weight, bias, result), (rows, x.stride(0), out.stride(0)), **_square(width, by))
    return result


def _unmixed(
    x: torch.Tensor, out: torch.Tensor, share: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, g: torch.Tensor, by: Schedule = UNMIXED,
    place: torch.Tensor | None = None, of_rows: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    rows, width = x.shape
    of_x, of_out = (x.new_empty(rows, width) if given is None else given for given in (of_rows, place))
    total = x.new_zeros(1)
    numbers = rows, x.stride(0), out.stride(0)
    _launched("unmixed", _grid(x, by), (x, out, share, weight, g, of_x, of_out, total), numbers, **_square(width, by))
    matrix, summed = _outer(out, g, active=True)
    of_share = (matrix.t() * weight).sum() + summed @ bias - total[0]  # the sum of g (gelu(out) weight^T + bias) by way of the weight's gradient
    return of_x, of_out, of_share, matrix.t() * share, summed * share


FREE = {"product": (0, 6), "outer": (0, 3)}
"""Numbers of each kernel that its text says are not to be specialised; of the others the first, the rows."""


def _launched(name: str, grid: int, tensors: Sequence[torch.Tensor], numbers: Sequence[int], **fixed: Any) -> None:
    """Launch a kernel of TEXT on its tensors' device."""
    with _on(tensors[0].device):
        direct.launch(lambda: getattr(_module(), name), name, grid, tensors, numbers, FREE.get(name, (0,)), **fixed)


def _grid(x: torch.Tensor, by: Schedule, parts: int = 1) -> int:
    return min(-(-x.shape[0] // by.step), max(1, _multiprocessors(x.device) * by.programs // parts)) * parts


def _square(width: int, by: Schedule) -> dict[str, int]:
    return {"WIDTH": width, "K": _padded(width), "STEP": by.step, "STAGES": by.stages, "num_stages": by.stages, "num_warps": by.warps}


def _outer(x: torch.Tensor, g: torch.Tensor, by: Schedule = OUTER, active: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    (rows, width), result = x.shape, g.shape[1]
    each = -(-rows // (_multiprocessors(x.device) * by.programs * by.step)) * by.step
    whole = x.new_zeros(width + 1, result)
    matrix, total = whole[:width], whole[width]
    padded: dict[str, int | str] = {"K": _padded(width), "M": _padded(result), "STEP": by.step, "STAGES": by.stages, "num_stages": by.stages}
    padded |= {"ACTIVE": active, "PRECISION": by.precision}
    steps = x.stride(0), g.stride(0), each
    fixed = {"WIDTH": width, "RESULT": result, **padded, "num_warps": by.warps}
    _launched("outer", -(-rows // each), (x, g, matrix, total), (rows, *steps), **fixed)
    return matrix, total


@functools.cache
def _multiprocessors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 2


def _on(device: torch.device) -> Any:
    """Make a device this thread's; of its own, and on a CPU, where Triton's interpreter runs, there is nothing to do."""
    elsewhere = device.type == "cuda" and device.index not in {None, torch._C._cuda_getDevice()}
    return torch.cuda.device(device) if elsewhere else contextlib.nullcontext()


def _padded(size: int) -> int:
    return max(16, 1 << (size - 1).bit_length())


def _module() -> Any:
    return load(TEXT)


@functools.cache
def _usable(device: torch.device) -> bool:
    """Does Triton compile the kernels here, and are their results right? Warns where not."""
    if find_spec("triton") is None:
        return False
    x, weight, bias = (torch.rand(shape, device=device) for shape in ((200, 64), (64, 64), (64,)))
    try:
        results = [result for _ in range(2) for result in _example(x, weight, bias)]  # by Triton's launches, then by the driver's
    except Exception as problem:  # Triton raises errors of many kinds
        warnings.warn(f"products of many rows are made by torch, which is slower: {type(problem).__name__}: {problem}", stacklevel=2)
        return False
    wide = x.double()
    turned = wide @ weight.double().t()
    wanted = [turned + bias.double(), wide + wide @ weight.double(), wide.t() @ wide, wide.sum(0)]
    wanted += [torch.stack([turned + bias.double(), 2 * turned + 3 * bias.double()]), 2 * (wide @ weight.double())]
    wanted += _wanted(wide, bias[0].double(), weight.double(), bias.double())
    if all(float((a.double() - b).norm()) <= 1e-5 * float(b.norm()) for a, b in zip(results, wanted * 2, strict=True)):
        return True
    warnings.warn("products of many rows are made by torch, which is slower: Triton's are wrong here", stacklevel=2)
    return False


def _example(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> list[torch.Tensor]:
    """Return results of all kernels."""
    matrix, total = _outer(x, x)
    results = [_product(x, weight.t(), bias, torch.empty_like(x)), _product(x, weight, None, x.clone(), add=True), matrix, total]
    two, biases = torch.stack([weight, 2 * weight]), torch.stack([bias, 3 * bias])
    results.append(_product(x, two[0].t(), biases, x.new_empty(2, *x.shape), parts=2, apart=(two.stride(0), x.numel())))
    results.append(_summed([x, 2 * x, 3 * x], torch.stack([weight, 2 * weight, -weight])))
    return [*results, _mixed(x, x, bias[0], weight, bias), *_unmixed(x, x, bias[0], weight, bias, x)]


def _wanted(x: torch.Tensor, share: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> list[torch.Tensor]:
    """Return `mixed` of x as the rows and as the aggregate, and its gradients for x as that of the result."""
    with torch.enable_grad():
        given = [y.clone().requires_grad_() for y in (x, x, share, weight, bias)]
        result = torch.lerp(given[0], F.linear(F.gelu(given[1]), *given[3:]), given[2])
        return [result.detach(), *torch.autograd.grad(result, given, x)]
