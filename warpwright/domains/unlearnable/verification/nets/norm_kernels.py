"""Batch normalisation in training, what is added to it, and the ReLU behind it, in as few passes over memory as there can be (Triton).

Images are `[M, C]` here: M = batch * height * width pixels, their C channels side by side (channels last). Forward reads the images twice and
writes once, backward reads images and gradients twice and writes once; torch's own kernels, which normalise, add and cut off one by one, make 13
passes of these 8. Sums are float32, in an order that the shape alone fixes: the same images give the same bits.
"""

# mypy: ignore-errors
from __future__ import annotations

import torch
import triton
import triton.language as tl

ROWS, COLUMNS = 64, 64
"""Of a tile; 64 channels in bfloat16 are a line of memory."""

PROGRAMS = 528
"""That sum, at most: four for each of an H100's or H200's 132 multiprocessors."""


@triton.jit
def _tile(block, rows, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Places and mask of a block of rows, of the columns of this program."""
    row = block * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (row[:, None] < rows) & (column[None, :] < width)
    return row[:, None].to(tl.int64) * width + column[None, :], inside


@triton.jit
def _columns(width, COLUMNS: tl.constexpr):
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    return column, column < width


@triton.jit
def sums(x, partial, rows, width, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """partial[0, program, c] = sum of x, [1, ...] = sum of its squares, over every n-th block of rows."""
    first = tl.zeros((ROWS, COLUMNS), tl.float32)
    second = tl.zeros((ROWS, COLUMNS), tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):
        at, inside = _tile(block, rows, width, ROWS, COLUMNS)
        value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
        first += value
        second += value * value
    column, real = _columns(width, COLUMNS)
    own = partial + tl.program_id(0) * width + column
    tl.store(own, tl.sum(first, 0), mask=real)
    tl.store(own + tl.num_programs(0) * width, tl.sum(second, 0), mask=real)


@triton.jit
def _totals(partial, programs, width, column, real, PROGRAMS: tl.constexpr, COLUMNS: tl.constexpr):
    program = tl.arange(0, PROGRAMS)[:, None]
    inside = (program < programs) & real[None, :]
    at = partial + program * width + column[None, :]
    first = tl.sum(tl.load(at, mask=inside, other=0.0), 0)
    second = tl.sum(tl.load(at + programs * width, mask=inside, other=0.0), 0)
    return first, second


@triton.jit
def moments(
    partial, weight, bias, running_mean, running_var, found, programs, rows, width, eps, momentum, PROGRAMS: tl.constexpr, COLUMNS: tl.constexpr
):
    """found[0..3, c] = mean, 1 / deviation, scale, shift: the image normalised is x * scale + shift. The running mean and variance move on."""
    column, real = _columns(width, COLUMNS)
    first, second = _totals(partial, programs, width, column, real, PROGRAMS, COLUMNS)
    mean = first / rows
    variance = tl.maximum(second / rows - mean * mean, 0.0)
    inverse = 1.0 / tl.sqrt(variance + eps)
    scale = tl.load(weight + column, mask=real, other=0.0) * inverse
    shift = tl.load(bias + column, mask=real, other=0.0) - mean * scale
    tl.store(found + column, mean, mask=real)
    tl.store(found + width + column, inverse, mask=real)
    tl.store(found + 2 * width + column, scale, mask=real)
    tl.store(found + 3 * width + column, shift, mask=real)
    before = tl.load(running_mean + column, mask=real, other=0.0)
    tl.store(running_mean + column, before + momentum * (mean - before), mask=real)
    before = tl.load(running_var + column, mask=real, other=0.0)
    tl.store(running_var + column, before + momentum * (variance * rows / (rows - 1) - before), mask=real)


@triton.jit
def normalise(x, plus, y, found, rows, width, ADDS: tl.constexpr, RELU: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """y = relu(x * scale + shift + plus)"""
    at, inside = _tile(tl.program_id(0), rows, width, ROWS, COLUMNS)
    column, real = _columns(width, COLUMNS)
    scale = tl.load(found + 2 * width + column, mask=real, other=0.0)
    shift = tl.load(found + 3 * width + column, mask=real, other=0.0)
    z = tl.load(x + at, mask=inside, other=0.0).to(tl.float32) * scale[None, :] + shift[None, :]
    if ADDS:
        z += tl.load(plus + at, mask=inside, other=0.0).to(tl.float32)
    if RELU:
        z = tl.where(z <= 0.0, 0.0, z)  # NaN stays NaN
    tl.store(y + at, z.to(y.dtype.element_ty), mask=inside)


@triton.jit
def _gradients(x, y, gradient, found, at, inside, width, MASK: tl.constexpr, COLUMNS: tl.constexpr):
    """The gradient of what went into the ReLU, and x without its mean, divided by its deviation.

    MASK says by what the ReLU is known: 0 there was none, 1 by x, 2 by its result y, where something was added before it.
    """
    column, real = _columns(width, COLUMNS)
    value = tl.load(x + at, mask=inside, other=0.0).to(tl.float32)
    moved = tl.load(gradient + at, mask=inside, other=0.0).to(tl.float32)
    if MASK == 1:
        scale = tl.load(found + 2 * width + column, mask=real, other=0.0)
        shift = tl.load(found + 3 * width + column, mask=real, other=0.0)
        moved = tl.where(value * scale[None, :] + shift[None, :] <= 0.0, 0.0, moved)
    if MASK == 2:
        moved = tl.where(tl.load(y + at, mask=inside, other=0.0).to(tl.float32) <= 0.0, 0.0, moved)
    mean = tl.load(found + column, mask=real, other=0.0)
    inverse = tl.load(found + width + column, mask=real, other=0.0)
    return moved, (value - mean[None, :]) * inverse[None, :]


@triton.jit
def gradient_sums(x, y, gradient, found, partial, rows, width, MASK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """partial[0, program, c] = sum of the gradient, [1, ...] = sum of gradient * standard x."""
    column, real = _columns(width, COLUMNS)
    first = tl.zeros((ROWS, COLUMNS), tl.float32)
    second = tl.zeros((ROWS, COLUMNS), tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(rows, ROWS), tl.num_programs(0)):
        at, inside = _tile(block, rows, width, ROWS, COLUMNS)
        moved, standard = _gradients(x, y, gradient, found, at, inside, width, MASK, COLUMNS)
        first += moved
        second += moved * standard
    own = partial + tl.program_id(0) * width + column
    tl.store(own, tl.sum(first, 0), mask=real)
    tl.store(own + tl.num_programs(0) * width, tl.sum(second, 0), mask=real)


@triton.jit
def totals(partial, of_bias, of_weight, programs, width, PROGRAMS: tl.constexpr, COLUMNS: tl.constexpr):
    """The gradients of bias and weight."""
    column, real = _columns(width, COLUMNS)
    first, second = _totals(partial, programs, width, column, real, PROGRAMS, COLUMNS)
    tl.store(of_bias + column, first, mask=real)
    tl.store(of_weight + column, second, mask=real)


@triton.jit
def differentiate(
    x, y, gradient, found, of_bias, of_weight, of_x, of_plus, rows, width,
    ADDS: tl.constexpr, MASK: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """of_x = scale * (g - mean of g - standard x * mean of g * standard x), of_plus = g; g is the gradient of what went into the ReLU."""
    at, inside = _tile(tl.program_id(0), rows, width, ROWS, COLUMNS)
    column, real = _columns(width, COLUMNS)
    moved, standard = _gradients(x, y, gradient, found, at, inside, width, MASK, COLUMNS)
    if ADDS:
        tl.store(of_plus + at, moved.to(of_plus.dtype.element_ty), mask=inside)
    level = tl.load(of_bias + column, mask=real, other=0.0) / rows
    slope = tl.load(of_weight + column, mask=real, other=0.0) / rows
    scale = tl.load(found + 2 * width + column, mask=real, other=0.0)
    result = (moved - level[None, :] - standard * slope[None, :]) * scale[None, :]
    tl.store(of_x + at, result.to(of_x.dtype.element_ty), mask=inside)


class Normalised(torch.autograd.Function):
    """relu(batch_norm(x) + plus) in training; x and plus `[B, C, H, W]`, channels last, of one type."""

    @staticmethod
    def forward(ctx, x, weight, bias, running_mean, running_var, plus, relu, eps, momentum):
        """Return an image of x's shape and type; the running mean and variance change in place."""
        rows, width, columns, programs = _shape(x)
        partial = torch.empty(2, programs, width, dtype=torch.float32, device=x.device)
        found = torch.empty(4, width, dtype=torch.float32, device=x.device)
        y = torch.empty_like(x)
        sums[(programs, columns)](x, partial, rows, width, ROWS, COLUMNS, num_warps=4)
        few, each = _reducing(programs, width)
        moments[(1, few)](partial, weight, bias, running_mean, running_var, found, programs, rows, width, eps, momentum, *each, num_warps=8)
        blocks = triton.cdiv(rows, ROWS)
        normalise[(blocks, columns)](x, x if plus is None else plus, y, found, rows, width, plus is not None, relu, ROWS, COLUMNS, num_warps=4)
        ctx.adds, ctx.mask = plus is not None, 0 if not relu else 1 if plus is None else 2
        ctx.save_for_backward(x, y if ctx.mask == 2 else x, found)
        return y

    @staticmethod
    def backward(ctx, gradient):
        """Return the gradients of x, weight, bias and plus."""
        x, y, found = ctx.saved_tensors
        gradient = gradient.contiguous(memory_format=torch.channels_last)
        rows, width, columns, programs = _shape(x)
        partial = torch.empty(2, programs, width, dtype=torch.float32, device=x.device)
        of_bias, of_weight = torch.empty(2, width, dtype=torch.float32, device=x.device)
        of_x = torch.empty_like(x)
        of_plus = torch.empty_like(x) if ctx.adds else None
        gradient_sums[(programs, columns)](x, y, gradient, found, partial, rows, width, ctx.mask, ROWS, COLUMNS, num_warps=4)
        few, each = _reducing(programs, width)
        totals[(1, few)](partial, of_bias, of_weight, programs, width, *each, num_warps=8)
        into = x if of_plus is None else of_plus
        grid = (triton.cdiv(rows, ROWS), columns)
        differentiate[grid](x, y, gradient, found, of_bias, of_weight, of_x, into, rows, width, ctx.adds, ctx.mask, ROWS, COLUMNS, num_warps=4)
        return of_x, of_weight, of_bias, None, None, of_plus, None, None, None


def _shape(x: torch.Tensor) -> tuple[int, int, int, int]:
    """Return rows, width, blocks of columns, and programs that sum each block of columns."""
    width = x.shape[1]
    rows = x.numel() // width
    columns = triton.cdiv(width, COLUMNS)
    return rows, width, columns, min(triton.cdiv(rows, ROWS), max(PROGRAMS // columns, 1))


_FEW = 16


def _reducing(programs: int, width: int) -> tuple[int, tuple[int, int]]:
    """Return how many programs add partial sums up, and the sides of their tiles."""
    return triton.cdiv(width, _FEW), (triton.next_power_of_2(programs), _FEW)
