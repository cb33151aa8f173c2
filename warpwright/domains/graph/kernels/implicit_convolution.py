"""A convolution of many channels as a product of matrices that is never laid out (implicit GEMM), with what follows it as its end.

    y[n, co, place] = end(sum over taps and ci of w[co, tap, ci] x[n, ci, place * stride - padding + tap * dilation])
    transposed        end(the same of              x[n, ci, (place + padding - tap * dilation) / stride], where that is a whole number)

The operands of the tensor cores are float16 numbers. A float32 number times a power of two is cut into one of them, whose 10 bits of mantissa are
TF32's, or into two, whose 22 bits and three products (high x high, high x low, low x high) err as float32 does. x is cut by a pass that also turns
it to channels last; the result is float32 and channels first at once.

Ladder:
1. A block of channels x places in registers; operands through shared memory, 16 bytes a copy, as the loop runs ahead (`num_stages`).
2. A step of DEPTH terms lies in one tap where DEPTH divides the channels: then places and zeros around x are worked out once a step, not an element.
3. x is cut by 2^9 while each sample's largest element is looked for; a second pass cuts those samples again whose element says so (the host never
   waits). So what a small sample, or a channel of small weights, loses is relative to its own largest element.
4. A transposed convolution's places are taken in phases, whose places see the same taps; nothing is multiplied by zeros between x's elements.
5. Two halves: sums of a step are added outside of the tensor cores, whose own additions cut off, which adds up in terms of one sign.

Achieved on an H200, with the pass that cuts x and what follows (results/implicit_convolution_h200): one number an operand 544 TFLOP/s of 512
channels to 512 (989 is float16's peak; cuDNN's float16 kernel alone 549), 317 of 64 to 128; two 148 and 122. Two phases of a row written together
(a transposed convolution with stride 2) have not run on a GPU.

Parameters: CHANNELS 64 or 128, PLACES 64 to 256, DEPTH 16 to 128 (powers of two), warps 4 or 8, stages 2 to 5.
"""

# mypy: ignore-errors
# --- generated programs hold what follows

import torch
import triton
import triton.language as tl


@triton.jit
def _cut_power(bits):
    """Return the power of two for a sample of x, of the bits of its largest element: 9, where that leaves it in [2^8, 2^15)."""
    e = (bits >> 23) - 127
    return tl.where(((e >= -1) & (e <= 5)) | (bits == 0), 9, tl.minimum(14 - e, 120))


@triton.jit
def _two_to(power):
    return ((power + 127) << 23).to(tl.float32, bitcast=True)


@triton.jit
def _cut(
    x, cut, largest, apart, samples, tiles, channels, places,
    WIDE: tl.constexpr, PARTS: tl.constexpr, AGAIN: tl.constexpr, CHANNELS: tl.constexpr, PLACES: tl.constexpr,
):  # fmt: skip
    blocks, across = tl.cdiv(places, PLACES), tl.cdiv(WIDE, CHANNELS)
    factor, others = 512.0, 1
    if AGAIN:
        others = 0
        for first in range(0, samples, 128):
            sample = first + tl.arange(0, 128)
            found = _cut_power(tl.load(largest + sample, mask=sample < samples, other=0))
            others += tl.max(tl.where(found == 9, 0, 1), 0)
    if others > 0:
        for tile in range(tl.program_id(0), tiles, tl.num_programs(0)):
            sample = tile // (blocks * across)
            n = sample.to(tl.int64)
            if AGAIN:
                factor = _two_to(_cut_power(tl.load(largest + sample)))
            if not AGAIN or factor != 512.0:
                c, p = tile // blocks % across * CHANNELS + tl.arange(0, CHANNELS), tile % blocks * PLACES + tl.arange(0, PLACES)
                inside = (c < channels)[:, None] & (p < places)[None, :]
                seen = tl.load(x + n * channels * places + c.to(tl.int64)[:, None] * places + p[None, :], mask=inside, other=0.0)
                if not AGAIN:
                    bits = seen.to(tl.int32, bitcast=True) & 0x7FFFFFFF
                    bits = tl.where(bits < 0x7F800000, bits, 0)  # Inf and NaN stay what they are, whatever the power
                    tl.atomic_max(largest + sample, tl.max(tl.max(bits, 1), 0), sem="relaxed")
                scaled = seen * factor
                high = scaled.to(tl.float16)
                at = cut + (n * places + p.to(tl.int64)[None, :]) * WIDE + c[:, None]
                kept = (c < WIDE)[:, None] & (p < places)[None, :]
                tl.store(at, high, mask=kept)
                if PARTS == 2:
                    tl.store(at + apart, (scaled - high.to(tl.float32)).to(tl.float16), mask=kept)


@triton.jit
def _of_tap(
    tap, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    LD: tl.constexpr, LH: tl.constexpr, LW: tl.constexpr, TRANSPOSED: tl.constexpr, kz, ky, kx, ny, nx,
):  # fmt: skip
    """Return where a tap stands in x, beside a place's first one, and in w. Of a transposed convolution taps are every S-th from kz, ky, kx."""
    if TRANSPOSED:
        jz, jy, jx = tap // (ny * nx), tap // nx % ny, tap % nx
        return -jz * LD, -jy * LH, -jx * LW, ((kz + jz * SD) * KH + ky + jy * SH) * KW + kx + jx * SW
    else:
        return tap // (KH * KW) * LD, tap // KW % KH * LH, tap % KW * LW, tap


@triton.jit
def _sums(
    x, w, corner, z0, y0, x0, seen, row, real, kz, ky, kx, ny, nx, taps, x_apart, w_apart,
    CI: tl.constexpr, ID: tl.constexpr, IH: tl.constexpr, IW: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,
    KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr, SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,
    PD: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr, LD: tl.constexpr, LH: tl.constexpr, LW: tl.constexpr,
    TRANSPOSED: tl.constexpr, PARTS: tl.constexpr, CHANNELS: tl.constexpr, PLACES: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Return the sums of CHANNELS rows of w at PLACES places, whose first tap stands at `corner` of x, at z0, y0, x0 of its axes."""
    width: tl.constexpr = KD * KH * KW * CI
    sums = tl.zeros((CHANNELS, PLACES), tl.float32)
    for step in range((taps * CI + DEPTH - 1) // DEPTH):
        if CI % DEPTH == 0:
            dz, dy, dx, in_w = _of_tap(step * DEPTH // CI, KH, KW, SD, SH, SW, LD, LH, LW, TRANSPOSED, kz, ky, kx, ny, nx)
            inside = seen
            if TRANSPOSED or PD != 0 or (OD - 1) * SD - PD + (KD - 1) * LD >= ID:
                inside &= (z0 + dz >= 0) & (z0 + dz < ID)
            if TRANSPOSED or PH != 0 or (OH - 1) * SH - PH + (KH - 1) * LH >= IH:
                inside &= (y0 + dy >= 0) & (y0 + dy < IH)
            if TRANSPOSED or PW != 0 or (OW - 1) * SW - PW + (KW - 1) * LW >= IW:
                inside &= (x0 + dx >= 0) & (x0 + dx < IW)
            first = step * DEPTH % CI
            at = (corner + tl.multiple_of(first + ((dz * IH + dy) * IW + dx) * CI, 8))[None, :] + tl.arange(0, DEPTH)[:, None]
            of_w_at = w + row[:, None] * width + (tl.multiple_of(first + in_w * CI, 8) + tl.arange(0, DEPTH))[None, :]
            known, of_rows = inside[None, :], real[:, None]
        else:
            k = step * DEPTH + tl.arange(0, DEPTH)
            dz, dy, dx, in_w = _of_tap(k // CI, KH, KW, SD, SH, SW, LD, LH, LW, TRANSPOSED, kz, ky, kx, ny, nx)
            known, of_rows = seen[None, :] & (k < taps * CI)[:, None], real[:, None] & (k < taps * CI)[None, :]
            if TRANSPOSED or PD != 0 or (OD - 1) * SD - PD + (KD - 1) * LD >= ID:
                known &= (z0[None, :] + dz[:, None] >= 0) & (z0[None, :] + dz[:, None] < ID)
            if TRANSPOSED or PH != 0 or (OH - 1) * SH - PH + (KH - 1) * LH >= IH:
                known &= (y0[None, :] + dy[:, None] >= 0) & (y0[None, :] + dy[:, None] < IH)
            if TRANSPOSED or PW != 0 or (OW - 1) * SW - PW + (KW - 1) * LW >= IW:
                known &= (x0[None, :] + dx[:, None] >= 0) & (x0[None, :] + dx[:, None] < IW)
            at = corner[None, :] + (k % CI + ((dz * IH + dy) * IW + dx) * CI)[:, None]
            of_w_at = w + row[:, None] * width + (k % CI + in_w * CI)[None, :]
        patch = tl.load(at, mask=known, other=0.0)
        weight = tl.load(of_w_at, mask=of_rows, other=0.0)
        if PARTS == 1:
            sums = tl.dot(weight, patch, sums)
        else:
            low_patch = tl.load(at + x_apart, mask=known, other=0.0)
            low_weight = tl.load(of_w_at + w_apart, mask=of_rows, other=0.0)
            part = tl.dot(low_weight, patch)
            part = tl.dot(weight, low_patch, part)
            sums += tl.dot(weight, patch, part)
    return sums


@triton.jit
def _implicit_convolution(
    x, w, b, y, largest, of_w, total, x_apart, w_apart,
    CI: tl.constexpr, ID: tl.constexpr, IH: tl.constexpr, IW: tl.constexpr,  # x [N, ID, IH, IW, CI]
    CO: tl.constexpr, OD: tl.constexpr, OH: tl.constexpr, OW: tl.constexpr,  # y [N, CO, OD, OH, OW]
    KD: tl.constexpr, KH: tl.constexpr, KW: tl.constexpr,  # w [CO, KD, KH, KW, CI]
    SD: tl.constexpr, SH: tl.constexpr, SW: tl.constexpr,  # stride
    PD: tl.constexpr, PH: tl.constexpr, PW: tl.constexpr,  # zeros before each axis of x; of a transposed one, places of y that are left out
    LD: tl.constexpr, LH: tl.constexpr, LW: tl.constexpr,  # dilation
    TRANSPOSED: tl.constexpr, PARTS: tl.constexpr, BIAS: tl.constexpr, q0, q1, q2, q3, EPILOGUE: tl.constexpr,
    CHANNELS: tl.constexpr, PLACES: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    across: tl.constexpr = (CO + CHANNELS - 1) // CHANNELS
    pair: tl.constexpr = 2 if TRANSPOSED and SW == 2 else 1  # phases of the last axis that one program forms: neighbours in y, in whole sectors
    of_x: tl.constexpr = SW // pair if TRANSPOSED else 1
    phases: tl.constexpr = SD * SH * of_x if TRANSPOSED else 1
    rows: tl.constexpr = (OH + SH - 1) // SH if TRANSPOSED else OH  # places of a phase, of which the last may lie outside
    columns: tl.constexpr = (OW + SW - 1) // SW if TRANSPOSED else OW
    planes: tl.constexpr = (OD + SD - 1) // SD if TRANSPOSED else OD
    block, phase = tl.program_id(0) // (across * phases), tl.program_id(0) // across % phases
    i = block * (PLACES // pair) + tl.arange(0, PLACES // pair)
    row = tl.program_id(0) % across * CHANNELS + tl.arange(0, CHANNELS)
    real, seen = row < CO, i < total
    n, qz, qy, qx = i // (planes * rows * columns), i // (rows * columns) % planes, i // columns % rows, i % columns
    rz, ry, rx = phase // (SH * of_x), phase // of_x % SH, phase % of_x
    if not TRANSPOSED:
        z0, y0, x0 = qz * SD - PD, qy * SH - PH, qx * SW - PW
        corner = x + (((n.to(tl.int64) * ID + z0) * IH + y0) * IW + x0) * CI
        sums = _sums(
            x, w, corner, z0, y0, x0, seen, row, real, 0, 0, 0, KH, KW, KD * KH * KW, x_apart, w_apart, CI, ID, IH, IW, OD, OH, OW,
            KD, KH, KW, SD, SH, SW, PD, PH, PW, LD, LH, LW, TRANSPOSED, PARTS, CHANNELS, PLACES, DEPTH,
        )  # fmt: skip
    else:
        z0, y0 = qz + (rz + PD) // SD, qy + (ry + PH) // SH
        kz, ky = (rz + PD) % SD, (ry + PH) % SH
        ny, lines = (KH - ky + SH - 1) // SH, (KD - kz + SD - 1) // SD * ((KH - ky + SH - 1) // SH)
        x0, kx = qx + (rx + PW) // SW, (rx + PW) % SW
        nx = (KW - kx + SW - 1) // SW
        corner = x + (((n.to(tl.int64) * ID + z0) * IH + y0) * IW + x0) * CI
        sums = _sums(
            x, w, corner, z0, y0, x0, seen, row, real, kz, ky, kx, ny, nx, lines * nx, x_apart, w_apart, CI, ID, IH, IW, OD, OH, OW,
            KD, KH, KW, SD, SH, SW, PD, PH, PW, LD, LH, LW, TRANSPOSED, PARTS, CHANNELS, PLACES // pair, DEPTH,
        )  # fmt: skip
        if pair == 2:
            x0, kx = qx + (1 + PW) // SW, (1 + PW) % SW
            nx = (KW - kx + SW - 1) // SW
            corner = x + (((n.to(tl.int64) * ID + z0) * IH + y0) * IW + x0) * CI
            more = _sums(
                x, w, corner, z0, y0, x0, seen, row, real, kz, ky, kx, ny, nx, lines * nx, x_apart, w_apart, CI, ID, IH, IW, OD, OH, OW,
                KD, KH, KW, SD, SH, SW, PD, PH, PW, LD, LH, LW, TRANSPOSED, PARTS, CHANNELS, PLACES // pair, DEPTH,
            )  # fmt: skip
            sums = tl.reshape(tl.join(sums, more), (CHANNELS, PLACES))
    i = block * PLACES + tl.arange(0, PLACES)  # of the places that are written, in y's order but for the phases
    n, qx = i // (planes * rows * columns * pair), i % (columns * pair)
    seen = i < total * pair
    if phases == 1 and columns * pair == OW:
        place = i % (OD * OH * OW)  # which says how many lie beside one another
    else:
        oz, oy, ox = i // (rows * columns * pair) % planes * SD + rz, i // (columns * pair) % rows * SH + ry, qx * of_x + rx
        seen &= (oz < OD) & (oy < OH) & (ox < OW)
        place = (oz * OH + oy) * OW + ox
    of_x_back = _two_to(-_cut_power(tl.load(largest + n, mask=seen, other=0)))[None, :]
    of_w_back = tl.load(of_w + row, mask=real, other=1.0)[:, None]
    sums = sums * tl.minimum(of_x_back, of_w_back) * tl.maximum(of_x_back, of_w_back)  # the other way round what is small in the end may overflow
    if BIAS:
        sums += tl.load(b + row, mask=real, other=0.0)[:, None]
    target = n.to(tl.int64)[None, :] * (CO * OD * OH * OW) + row.to(tl.int64)[:, None] * (OD * OH * OW) + place[None, :]
    kept = real[:, None] & seen[None, :]
    if EPILOGUE is not None:
        sums = EPILOGUE(sums, row, real, target, kept, q0, q1, q2, q3)
    tl.store(y + target, sums, mask=kept)


def implicit_cut(x, parts):
    """Return x [N, CI, *sizes] as [parts, N, *sizes, CI up to a multiple of 8] in float16; behind it stand the bits of samples' largest elements."""
    if x.is_cuda and x.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(x.device):
            return implicit_cut(x, parts)
    x, (n, ci) = x.contiguous(), x.shape[:2]
    wide, inside = ci + -ci % 8, x.numel() // (n * ci)
    size, some = n * inside * wide, min(64, triton.next_power_of_2(wide))
    cut = x.new_empty(parts * size + 2 * n, dtype=torch.float16)
    largest = cut[parts * size :].view(torch.int32).zero_()
    tiles = n * triton.cdiv(inside, 8192 // some) * triton.cdiv(wide, some)
    for again in (False, True):  # the second has few programs, which find that there is nothing to do, as a rule
        _cut[(min(tiles, 1024) if again else tiles,)](
            x, cut, largest, size, n, tiles, ci, inside, wide, parts, again, some, 8192 // some, num_warps=8
        )
    return cut


def implicit_convolution(x, cut, w, of_w, bias, parts, kernel, stride, padding, places, dilation, transposed, shape, epilogue=None, operands=()):
    """Return convolution(x, w * of_w) + bias [N, CO, *places] in float32, and what `epilogue` makes of it.

    `cut`: implicit_cut(x, parts); w [parts, CO, *kernel, CI up to a multiple of 8] float16, one part, or a high and a low one, and `of_w` [CO]
    the powers of two that undo its own. `padding` zeros stand before each axis of x, and as many after it as `places` ask for; of a transposed
    convolution it is what is left out before the result, and an axis has a stride or a dilation. `shape`: of a block.
    """
    if x.is_cuda and x.get_device() != torch.cuda.current_device():
        with torch.cuda.device(x.device):
            steps = (kernel, stride, padding, places, dilation)
            return implicit_convolution(x, cut, w, of_w, bias, parts, *steps, transposed, shape, epilogue, operands)
    w, lead, d = w.contiguous(), [1] * (5 - x.dim()), x.dim() - 2
    (n, ci), wide, co = x.shape[:2], w.shape[-1], w.shape[1]
    sizes, out, kernel = (*lead, *x.shape[2:]), (*lead, *places), (*lead, *kernel)
    stride, dilation, before = (*lead, *stride), (*lead, *dilation), (*[0] * (3 - d), *padding)
    size, pair = x.numel() // ci * wide, 2 if transposed and stride[2] == 2 else 1
    phases = stride[0] * stride[1] * stride[2] // pair if transposed else 1
    total = n * triton.cdiv(out[0], stride[0]) * triton.cdiv(out[1], stride[1]) * triton.cdiv(out[2], stride[2])
    total = total if transposed else n * out[0] * out[1] * out[2]
    y = x.new_empty((n, co, *places))
    channels, many, depth, warps, stages = shape
    _implicit_convolution[(triton.cdiv(total * pair, many) * triton.cdiv(co, channels) * phases,)](
        cut, w, x if bias is None else bias.contiguous(), y, cut[parts * size :].view(torch.int32), of_w, total, size, w.numel() // parts,
        wide, *sizes, co, *out, *kernel, *stride, *before, *dilation,
        transposed, parts, bias is not None, *(q.contiguous() for q in (*operands, *[y] * 4)[:4]), epilogue, channels, many, depth,
        num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return y
