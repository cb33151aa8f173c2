"""Attention in one kernel: the scores are never written to memory (Dao et al., arXiv 2205.14135). What the technique of that name puts in.

    y[i] = sum over j of w[i, j] v[j],   w = softmax, relu or sigmoid of  scale q[i] k[j] + bias[i, j] - slope |i - j|,  over the j that row i sees

With a soft cap c tanh(scale q[i] k[j] / c) stands in the product's place; with a sink exp(sink[i]) is added to what the softmax of row i divides by.

Ladder:
1. 16-bit operands: products on tensor cores, sums in float32.
2. float32 operands by halves: a tile is scaled by a power of two to below 2^15 and written as high + low, two float16 numbers (22 bits; what is
   smaller than 2^-40 of the tile's largest is lost). Three products of halves, the small ones first, are a float32 product at the rate of three
   float16 ones; one (`products=1`) is TF32's. A tensor core cuts its running sum off at each step, so each tile's sum begins anew, and is added to
   the others' by a rounded fused multiply-add.
3. q, k and v cut into halves once, by a kernel before (`cut`), not k and v by each block of rows anew: what comes from memory as it is, tensor
   cores read from shared memory.
4. Tiles that no row of a block sees are not visited: by place (causal, window), or by a list worked out from the mask's values.
5. Few rows: the keys are divided among blocks (`splits`), whose sums a second kernel joins; queries that share a key head are rows of one block.

Parameters: ROWS 16 to 256 and KEYS 16 to 256 (powers of two), warps 4 or 8, stages 1 to 4; D and DV up to 256.

Achieved on an H200 (benchmarks/results/attention_h200): 151 TFLOP/s in float32 with heads of 128 (450 of float16 products), 201 with one product,
453 in bfloat16, where cuDNN has 669. Blocks of 128 x 64 with 8 warps take 164 registers a thread in float32 with heads of 64, 255 with 128; with 256
registers spill, and the library is faster.
"""

# mypy: ignore-errors
from warpwright.domains.graph.kernels.sound import _launched  # noqa: I001

# --- generated programs hold what follows

import torch
import triton
import triton.language as tl


@triton.jit
def _flash_power(largest):
    """Return powers of two: one that takes `largest` to [2^14, 2^15), and the one that undoes it, which is NaN where `largest` is infinite: beside
    that all that is finite was scaled to 0, and must not pass for a result."""
    exponent = tl.maximum((largest.to(tl.int32, bitcast=True) >> 23) & 255, 15)
    back = tl.where(exponent == 255, 0x7FC00000, (exponent - 14) << 23)
    return ((268 - exponent) << 23).to(tl.float32, bitcast=True), back.to(tl.float32, bitcast=True)


@triton.jit
def _flash_halves(x):
    """Return x as (high + low) times a power of two."""
    scale, factor = _flash_power(tl.max(tl.max(tl.abs(x), 1), 0))
    x = x * scale
    high = x.to(tl.float16)
    return high, (x - high.to(tl.float32)).to(tl.float16), factor


@triton.jit
def _flash_cut(
    x, high, low, factor, x_b, x_h, x_n, heads, rows, tile, of, count,
    D: tl.constexpr, DP: tl.constexpr, BLOCK: tl.constexpr, PRODUCTS: tl.constexpr,
):  # fmt: skip
    """Cut one tile [BLOCK, D] into halves [BLOCK, DP] with zeros behind."""
    n, d = tile * BLOCK + tl.arange(0, BLOCK), tl.arange(0, DP)
    at = (of // heads).to(tl.int64) * x_b + (of % heads).to(tl.int64) * x_h + n[:, None].to(tl.int64) * x_n + d[None, :]
    a, b, f = _flash_halves(tl.load(x + at, mask=(n < rows)[:, None] & (d < D)[None, :], other=0.0))
    to = (of.to(tl.int64) * count + tile) * (BLOCK * DP) + tl.arange(0, BLOCK)[:, None] * DP + d[None, :]
    tl.store(high + to, a)
    if PRODUCTS == 3:
        tl.store(low + to, b)
    tl.store(factor + of * count + tile, f)


@triton.jit
def _flash_cut_all(
    q, k, v, q_high, q_low, q_factor, k_high, k_low, k_factor, v_high, v_low, v_factor, q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n,
    heads, kv, nq, nk, blocks, count, of_keys,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, PRODUCTS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    if program < of_keys:
        _flash_cut(k, k_high, k_low, k_factor, k_b, k_h, k_n, kv, nk, program % count, program // count, count, D, DP, KEYS, PRODUCTS)
    elif program < 2 * of_keys:
        program -= of_keys
        _flash_cut(v, v_high, v_low, v_factor, v_b, v_h, v_n, kv, nk, program % count, program // count, count, DV, DVP, KEYS, PRODUCTS)
    else:
        program -= 2 * of_keys
        _flash_cut(q, q_high, q_low, q_factor, q_b, q_h, q_n, heads, nq, program % blocks, program // blocks, blocks, D, DP, ROWS, PRODUCTS)


@triton.jit
def _flash_product(a, a_low, b, b_low, PRODUCTS: tl.constexpr):
    if PRODUCTS == 3:
        total = tl.dot(a, b, tl.dot(a, b_low, tl.dot(a_low, b)))
    else:
        total = tl.dot(a, b)
    return total


@triton.jit
def _flash_fetch(
    x, x_low, factors, x_n, first, tile, nk, D: tl.constexpr, DP: tl.constexpr, KEYS: tl.constexpr, HALVES: tl.constexpr, CUT: tl.constexpr,
    PRODUCTS: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    """Return a tile of k or v: its high half, its low one, and the factor of both."""
    d, n = tl.arange(0, DP), tl.arange(0, KEYS)
    at = first * x_n + n[:, None] * x_n + d[None, :]
    if CUT:
        high, factor = tl.load(x + at), tl.load(factors + tile)
        low = tl.load(x_low + at) if PRODUCTS == 3 else high
    else:
        if EDGE:
            whole = tl.load(x + at, mask=(first + n < nk)[:, None] & (d < D)[None, :], other=0.0)
        elif D != DP:
            whole = tl.load(x + at, mask=(d < D)[None, :], other=0.0)
        else:
            whole = tl.load(x + at)
        if HALVES:
            high, low, factor = _flash_halves(whole)
        else:
            high, low, factor = whole, whole, 1.0
    return high, low, factor


@triton.jit
def _flash_tanh(x):
    """Return tanh(x), relative error below 3e-7: below 0.625 by Cephes' polynomial (tanhf), where the other form loses digits."""
    z = x * x
    near = -0.0537397155531 + z * (0.0206390887954 + z * -0.00570498872745)
    near = x + x * z * (-0.333332819422 + z * (0.133314422036 + z * near))
    return tl.where(tl.abs(x) < 0.625, near, 1.0 - 2.0 / (tl.exp2(x * 2.8853900817779268) + 1.0))


@triton.jit
def _flash_begun(sinks, of_sink, real, first, SHIFT: tl.constexpr):
    """Return rows' largest scores and sums as they are before any key: those of a sink, whose weight no value has. `first`: not of later parts."""
    sink = tl.load(sinks + of_sink, mask=real, other=0.0).to(tl.float32)
    scaled = sink * 1.4426950408889634
    scaled = tl.where((scaled < -3e38) & (sink != float("-inf")), -3e38, scaled)
    m = tl.where(first, scaled, float("-inf"))
    return tl.where(m == float("-inf"), 0.0, 16384.0 if SHIFT > 0 else 1.0), m


@triton.jit
def _flash_seen(
    s, f, tile, mask, m_k, bias, a_k, slope, row, real, nk, offset, window, fill, KEYS: tl.constexpr, FORM: tl.constexpr, CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr, MASK: tl.constexpr, BIAS: tl.constexpr, SLOPES: tl.constexpr, EDGE: tl.constexpr,
):  # fmt: skip
    """Return a tile's scores and the factor that they have yet to be multiplied with, biased and masked."""
    col = tile * KEYS + tl.arange(0, KEYS)
    inside = real[:, None] & (col < nk)[None, :]
    if BIAS or SLOPES or MASK > 0 or FORM != "softmax":
        s = s * f
        f = 1.0
        if BIAS:
            more = tl.load(bias + col[None, :] * a_k, mask=inside, other=0.0).to(tl.float32)
            if FORM == "softmax":
                scaled = more * 1.4426950408889634
                more = tl.where((scaled < -3e38) & (more != float("-inf")), -3e38, scaled)  # the lowest number stays one
            s = s + more
        if SLOPES:
            s = s - slope * tl.abs(row[:, None] + offset - col[None, :]).to(tl.float32)
        if MASK > 0:
            seen = tl.load(mask + col[None, :] * m_k, mask=inside, other=0)
            s = tl.where((seen != 0) if MASK == 1 else (seen == 0), s, fill)
    if EDGE:
        seen = (col < nk)[None, :] & real[:, None]
        if CAUSAL:
            seen = seen & (col[None, :] <= row[:, None] + offset)
        if WINDOW:
            seen = seen & (col[None, :] > row[:, None] + offset - window)
        s = tl.where(seen, s, float("-inf"))
    return s, f


@triton.jit
def _flash_weights(s, f, norm, m, FORM: tl.constexpr, SHIFT: tl.constexpr):
    """Return a tile's weights, what the sums so far are to be multiplied with, and the rows' sums and largest scores with this tile."""
    decay = norm
    if FORM == "softmax":
        new = tl.max(s, 1) * f
        if SHIFT > 0:  # scores that float32 holds to a half or less well: the product in p is exact, and may be above its rounded self
            new -= tl.where(tl.abs(new) > 4194304.0, tl.abs(new) * 1.1920928955078125e-07, 0.0)
        largest = tl.maximum(m, new, propagate_nan=tl.PropagateNan.ALL)
        known = tl.where(largest == float("-inf"), 0.0, largest)
        power = tl.fma(s, f, (SHIFT - known)[:, None])
        if SHIFT > 0:  # below float16's largest
            power = tl.minimum(power, SHIFT + 1.0, propagate_nan=tl.PropagateNan.ALL)
        p = tl.exp2(power)
        decay = tl.exp2(m - known)
        norm = norm * decay + tl.sum(p, 1)
        m = largest
    elif FORM == "relu":
        p = tl.maximum(s, 0.0, propagate_nan=tl.PropagateNan.ALL)
    else:
        p = 1.0 / (1.0 + tl.exp(-s))
    return p, decay, norm, m


@triton.jit
def _flash_add(acc, p, b, b_low, b_factor, HALVES: tl.constexpr, PRODUCTS: tl.constexpr, FORM: tl.constexpr):
    """Add a tile's weights times its values."""
    if HALVES:
        if FORM != "softmax":
            scale, back = _flash_power(tl.max(p, 1))
            p = p * scale[:, None]
            b_factor = (b_factor * back)[:, None]
        high = p.to(tl.float16)
        low = (p - high.to(tl.float32)).to(tl.float16) if PRODUCTS == 3 else high
        acc = tl.fma(_flash_product(high, low, b, b_low, PRODUCTS), b_factor, acc)
    else:
        acc = tl.dot(p.to(b.dtype), b, acc)
    return acc


@triton.jit
def _flash_tile(
    q, q_low, q_factor, acc, norm, m, tile,
    k, k_low, k_factor, v, v_low, v_factor, k_n, v_n, mask, m_k, bias, a_k, slope, row, real, nk, offset, window, fill, cap,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr, KEYS: tl.constexpr, HALVES: tl.constexpr, CUT: tl.constexpr,
    PRODUCTS: tl.constexpr, FORM: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, BIAS: tl.constexpr,
    SLOPES: tl.constexpr, CAPPED: tl.constexpr, EDGE: tl.constexpr, SHIFT: tl.constexpr,
):  # fmt: skip
    """Add one tile of keys to the sums of a block of rows."""
    first = tl.cast(tile, tl.int64) * KEYS
    a, a_low, a_factor = _flash_fetch(k, k_low, k_factor, k_n, first, tile, nk, D, DP, KEYS, HALVES, CUT, PRODUCTS, EDGE)
    s = _flash_product(q, q_low, tl.trans(a), tl.trans(a_low), PRODUCTS)
    f = q_factor * a_factor
    if HALVES and FORM == "softmax":
        f = tl.maximum(f, 1.1754943508222875e-38, propagate_nan=tl.PropagateNan.ALL)  # 0, of tiles that are 0 or next to it, times -Inf would be NaN
    if CAPPED:
        s = _flash_tanh(s * f) * cap
        f = 1.0
    s, f = _flash_seen(
        s, f, tile, mask, m_k, bias, a_k, slope, row, real, nk, offset, window, fill, KEYS, FORM, CAUSAL, WINDOW, MASK, BIAS, SLOPES, EDGE
    )  # fmt: skip
    b, b_low, b_factor = _flash_fetch(v, v_low, v_factor, v_n, first, tile, nk, DV, DVP, KEYS, HALVES, CUT, PRODUCTS, EDGE)
    p, decay, norm, m = _flash_weights(s, f, norm, m, FORM, SHIFT)
    if FORM == "softmax":
        acc = acc * decay[:, None]
    acc = _flash_add(acc, p, b, b_low, b_factor, HALVES, PRODUCTS, FORM)
    return acc, norm, m


@triton.jit
def _flash_attention(
    q, q_low, q_factor, k, k_low, k_factor, v, v_low, v_factor, mask, bias, slopes, sinks, tiles, y, kept, ends,
    q_b, q_h, q_n, k_b, k_h, k_n, v_b, v_h, v_n, y_b, y_h, y_n, m_b, m_h, m_n, m_k, a_b, a_h, a_n, a_k, t_b, t_h, t_n,
    s_b, s_h, s_n, heads, nq, nk, blocks, count, scale, offset, window, fill, cap,
    D: tl.constexpr, DP: tl.constexpr, DV: tl.constexpr, DVP: tl.constexpr, GROUP: tl.constexpr, PACK: tl.constexpr,
    ROWS: tl.constexpr, KEYS: tl.constexpr, HALVES: tl.constexpr, CUT: tl.constexpr, PRODUCTS: tl.constexpr, FORM: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr, MASK: tl.constexpr, BIAS: tl.constexpr, SLOPES: tl.constexpr, CAPPED: tl.constexpr,
    SINKS: tl.constexpr, LISTED: tl.constexpr, SPLITS: tl.constexpr, DEAD: tl.constexpr, SHIFT: tl.constexpr, STAGES: tl.constexpr,
    EVEN: tl.constexpr, KEEP: tl.constexpr,
):  # fmt: skip
    block, of = tl.program_id(0) % blocks, tl.program_id(0) // blocks
    if CAUSAL:
        block = blocks - 1 - block  # the longest first
    n_b, n_g = (of // heads).to(tl.int64), of % heads  # heads: of keys where PACK > 1, of queries else
    r = block * ROWS + tl.arange(0, ROWS)
    row, head, real = r // PACK, n_g * PACK + r % PACK, r < nq * PACK
    of_k = n_g if PACK > 1 else n_g // GROUP
    d = tl.arange(0, DP)
    at = n_b * q_b + head.to(tl.int64) * q_h + row.to(tl.int64) * q_n
    if CUT:
        x = tl.load(q + at[:, None] + d[None, :])
        x_low = tl.load(q_low + at[:, None] + d[None, :]) if PRODUCTS == 3 else x
        x_factor = tl.load(q_factor + of * blocks + block) * scale
    else:
        x = tl.load(q + at[:, None] + d[None, :], mask=real[:, None] & (d < D)[None, :], other=0.0)
        if HALVES:
            x, x_low, x_factor = _flash_halves(x)
            x_factor = x_factor * scale
        else:
            x_low, x_factor = x, scale
    k += n_b * k_b + of_k.to(tl.int64) * k_h
    k_low += n_b * k_b + of_k.to(tl.int64) * k_h
    v += n_b * v_b + of_k.to(tl.int64) * v_h
    v_low += n_b * v_b + of_k.to(tl.int64) * v_h
    if CUT:
        here = (n_b * (heads if PACK > 1 else heads // GROUP) + of_k) * count
        k_factor += here
        v_factor += here
    mask += (n_b * m_b + head.to(tl.int64) * m_h + row.to(tl.int64) * m_n)[:, None]
    bias += (n_b * a_b + head.to(tl.int64) * a_h + row.to(tl.int64) * a_n)[:, None]
    slope = tl.load(slopes + head)[:, None] * 1.4426950408889634 if SLOPES else 0.0
    acc = tl.zeros((ROWS, DVP), tl.float32)
    norm, m = tl.zeros((ROWS,), tl.float32), tl.full((ROWS,), float("-inf"), tl.float32)
    if SINKS:
        of_sink = n_b * s_b + head.to(tl.int64) * s_h + row.to(tl.int64) * s_n
        norm, m = _flash_begun(sinks, of_sink, real, tl.program_id(1) == 0, SHIFT)

    first_row, last_row = block * ROWS // PACK + offset, tl.minimum((block * ROWS + ROWS - 1) // PACK, nq - 1) + offset
    low, high, full_low, full_high = 0, count, 0, nk // KEYS
    if LISTED:
        tiles += n_b * t_b + n_g.to(tl.int64) * t_h + block * t_n
        high = tl.load(tiles)
    if CAUSAL:
        high = tl.maximum(tl.minimum(high, (last_row + KEYS) // KEYS), 0)
        full_high = tl.maximum(tl.minimum(full_high, (first_row + 1) // KEYS), 0)
    if WINDOW:
        low = tl.maximum(first_row - window + 1, 0) // KEYS
        full_low = tl.minimum((tl.maximum(last_row - window + 1, 0) + KEYS - 1) // KEYS, high)
    full_high = tl.minimum(tl.maximum(full_high, full_low), high)
    if SPLITS > 1:
        each = (tl.maximum(high - low, 0) + SPLITS - 1) // SPLITS
        low += tl.program_id(1) * each
        high = tl.minimum(low + each, high)
        full_low, full_high = tl.minimum(tl.maximum(full_low, low), high), tl.minimum(tl.maximum(full_high, low), high)
    if LISTED:
        for place in tl.range(low, high, num_stages=STAGES):
            acc, norm, m = _flash_tile(
                x, x_low, x_factor, acc, norm, m, tl.load(tiles + 1 + place),
                k, k_low, k_factor, v, v_low, v_factor, k_n, v_n, mask, m_k, bias, a_k, slope, row, real, nk, offset, window, fill, cap,
                D, DP, DV, DVP, KEYS, HALVES, CUT, PRODUCTS, FORM, CAUSAL, WINDOW, MASK, BIAS, SLOPES, CAPPED, True, SHIFT)  # fmt: skip
    else:
        if WINDOW:
            for tile in tl.range(low, full_low, num_stages=STAGES):
                acc, norm, m = _flash_tile(
                    x, x_low, x_factor, acc, norm, m, tile,
                    k, k_low, k_factor, v, v_low, v_factor, k_n, v_n, mask, m_k, bias, a_k, slope, row, real, nk, offset, window, fill, cap,
                    D, DP, DV, DVP, KEYS, HALVES, CUT, PRODUCTS, FORM, CAUSAL, WINDOW, MASK, BIAS, SLOPES, CAPPED, True, SHIFT)  # fmt: skip
        for tile in tl.range(full_low if WINDOW else low, full_high, num_stages=STAGES):
            acc, norm, m = _flash_tile(
                x, x_low, x_factor, acc, norm, m, tile,
                k, k_low, k_factor, v, v_low, v_factor, k_n, v_n, mask, m_k, bias, a_k, slope, row, real, nk, offset, window, fill, cap,
                D, DP, DV, DVP, KEYS, HALVES, CUT, PRODUCTS, FORM, CAUSAL, WINDOW, MASK, BIAS, SLOPES, CAPPED, False, SHIFT)  # fmt: skip
        if CAUSAL or WINDOW or not EVEN:
            for tile in tl.range(full_high, high, num_stages=STAGES):
                acc, norm, m = _flash_tile(
                    x, x_low, x_factor, acc, norm, m, tile,
                    k, k_low, k_factor, v, v_low, v_factor, k_n, v_n, mask, m_k, bias, a_k, slope, row, real, nk, offset, window, fill, cap,
                    D, DP, DV, DVP, KEYS, HALVES, CUT, PRODUCTS, FORM, CAUSAL, WINDOW, MASK, BIAS, SLOPES, CAPPED, True, SHIFT)  # fmt: skip

    dv = tl.arange(0, DVP)
    if SPLITS > 1:
        line = (tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)).to(tl.int64) * ROWS + tl.arange(0, ROWS)
        tl.store(kept + line[:, None] * DVP + dv[None, :], acc)
        tl.store(ends + line * 2, m)
        tl.store(ends + line * 2 + 1, norm)
    else:
        if KEEP:
            line = (of.to(tl.int64) * nq + row) * 2
            tl.store(ends + line, m, mask=real)
            tl.store(ends + line + 1, norm, mask=real)
        if FORM == "softmax":
            acc = acc / norm[:, None]
            if DEAD == "zero":
                acc = tl.where((norm == 0.0)[:, None], 0.0, acc)
        at = n_b * y_b + head.to(tl.int64) * y_h + row.to(tl.int64) * y_n
        tl.store(y + at[:, None] + dv[None, :], acc.to(y.dtype.element_ty), mask=real[:, None] & (dv < DV)[None, :])


@triton.jit
def _flash_join(
    kept, ends, y, y_b, y_h, y_n, heads, nq, blocks, DV: tl.constexpr, DVP: tl.constexpr, PACK: tl.constexpr, ROWS: tl.constexpr,
    SPLITS: tl.constexpr, FORM: tl.constexpr, CAUSAL: tl.constexpr, DEAD: tl.constexpr,
):  # fmt: skip
    """Join what the blocks of one row have summed over parts of the keys."""
    program, r = tl.program_id(0) // ROWS, tl.program_id(0) % ROWS
    block, of = program % blocks, program // blocks
    if CAUSAL:
        block = blocks - 1 - block
    r_all = block * ROWS + r
    if r_all < nq * PACK:
        dv, m, norm = tl.arange(0, DVP), float("-inf"), 0.0
        total = tl.num_programs(0).to(tl.int64)
        line = tl.program_id(0).to(tl.int64)
        acc = tl.zeros((DVP,), tl.float32)
        for s in range(SPLITS):
            at = s * total + line
            part = tl.load(kept + at * DVP + dv)
            if FORM == "softmax":
                its_m, its_sum = tl.load(ends + at * 2), tl.load(ends + at * 2 + 1)
                largest = tl.maximum(m, its_m)
                known = tl.where(largest == float("-inf"), 0.0, largest)
                old, new = tl.exp2(m - known), tl.exp2(its_m - known)
                acc, norm, m = acc * old + part * new, norm * old + its_sum * new, largest
            else:
                acc += part
        if FORM == "softmax":
            acc = acc / norm
            if DEAD == "zero":
                acc = tl.where(norm == 0.0, 0.0, acc)
        head, row = (of % heads) * PACK + r_all % PACK, r_all // PACK
        to = (of // heads).to(tl.int64) * y_b + head.to(tl.int64) * y_h + row.to(tl.int64) * y_n
        tl.store(y + to + dv, acc.to(y.dtype.element_ty), mask=dv < DV)


def flash_tiles(mask, hidden, sizes, rows, keys):
    """Return of each block of `rows` rows of a mask, expanded to `sizes` [b, h, i, j] or [b, i, j], how many tiles of `keys` columns some row sees.

    And which: int32 [b, h, blocks, 1 + tiles], where b and h may be 1.
    """
    seen = (~mask if hidden else mask).expand(sizes)
    seen = seen if seen.dim() == 4 else seen[:, None]
    b, h, nq, nk = seen.shape
    seen = torch.nn.functional.pad(seen, (0, -nk % keys, 0, -nq % rows))
    seen = seen.view(b, h, seen.shape[2] // rows, rows, seen.shape[3] // keys, keys).any(5).any(3)
    order = torch.sort(seen.to(torch.int32), dim=-1, descending=True, stable=True)[1]
    return torch.cat((seen.sum(-1, keepdim=True), order), -1).to(torch.int32)


def _flash_expanded(x, lead, sizes):
    return x.expand(sizes) if lead == 4 else x.expand(sizes[0], *sizes[2:])[:, None]


def flash_attention(
    q, k, v, scale, causal=False, offset=0, window=0, mask=None, hidden=False, fill=None, bias=None, tiles=None, form="softmax", dead="nan",
    products=3, turned=False, shape=(128, 64, 8, 2, 1), cap=0.0, sinks=None, slopes=None, keep=False,
):  # fmt: skip
    """Return attention [b, h, nq, dv] of q [b, h, nq, d], k [b, kv heads, nk, d] and v [b, kv heads, nk, dv]; with three axes, of one head.

    Row i sees j <= i + offset where `causal`, and j > i + offset - window where `window`; where `mask` is False (True with `hidden`), `fill`
    (None: -Inf) stands in the score's place. `tiles` are flash_tiles of the mask, for `shape`. A row that sees nothing is NaN, or 0 with
    dead="zero". `turned`: rows of the result lie as [b, nq, h, dv]. `cap`: above 0, scores are cap tanh(scale q k / cap) before biases and masks.
    `sinks` [b, h, nq, 1], or what broadcasts to that: of each row one score more, of no value. `slopes` [h]: what is taken off a score for each place
    away.
    `keep`: return [b, h, nq, 2] with it, each row's largest score in powers of two and the sum of what its weights are before they are divided by it.
    """
    if q.is_cuda and q.get_device() != torch.cuda.current_device():  # Triton launches on the current one, by its stream
        with torch.cuda.device(q.device):
            return flash_attention(
                q, k, v, scale, causal, offset, window, mask, hidden, fill, bias, tiles, form, dead, products, turned, shape, cap, sinks, slopes,
                keep,
            )  # fmt: skip
    lead = q.dim()
    if lead == 3:
        q, k, v = (x[:, None] for x in (q, k, v))
    b, h, nq, d = q.shape
    kv, nk, dv = k.shape[1], k.shape[2], v.shape[3]
    q, k, v = (x if (x.stride(3) == 1 or x.shape[3] == 1) and x.stride(2) < 1 << 23 else x.contiguous() for x in (q, k, v))
    mask, bias = (x if x is None or x.stride(-1) * nk < 1 << 31 else x.contiguous() for x in (mask, bias))  # places in a tile are of 32 bits
    y = q.new_empty((b, nq, h, dv)).transpose(1, 2) if turned else q.new_empty((b, h, nq, dv))
    ends = q.new_empty((b, h, nq, 2), dtype=torch.float32) if keep else y
    if y.numel() == 0:
        y = y[:, 0] if lead == 3 else y
        return (y, ends) if keep else y
    halves = q.dtype == torch.float32
    products = products if halves else 1
    pack = h // kv if nq * (h // kv) <= 64 and tiles is None and not keep else 1
    rows, keys, warps, stages, cut = shape
    cut = cut and halves and pack == 1
    heads, blocks, count = h // pack, triton.cdiv(nq * pack, rows), triton.cdiv(nk, keys)
    dp, dvp = max(triton.next_power_of_2(d), 16), max(triton.next_power_of_2(dv), 16)
    mask, bias = (x if x is None else _flash_expanded(x, lead, (b, h, nq, nk)) for x in (mask, bias))
    sinks, base = sinks if sinks is None else sinks.expand(b, h, nq, 1), 1.4426950408889634 if form == "softmax" else 1.0
    arrays = [q, q, q, k, k, k, v, v, v]
    if cut:
        arrays = []
        for of, n, wide in ((b * h, blocks * rows, dp), (b * kv, count * keys, dp), (b * kv, count * keys, dvp)):
            high, low = q.new_empty((2, of, n, wide), dtype=torch.float16)
            arrays += [high.view(b, -1, n, wide), low, q.new_empty(of * (blocks if not arrays else count))]
        _launched(_flash_cut_all, (2 * count * b * kv + blocks * b * h,), (
            q, k, v, *arrays, *(stride for x in (q, k, v) for stride in x.stride()[:3]), h, kv, nq, nk, blocks, count, count * b * kv,
            d, dp, dv, dvp, rows, keys, products,
        ), 4)  # fmt: skip
    few = b * heads * blocks
    splits = 1
    while not keep and splits < 64 and few * splits < 132 and count // (2 * splits) >= 4:
        splits *= 2
    kept = q.new_empty((splits, few * rows, dvp), dtype=torch.float32) if splits > 1 else y
    ends = q.new_empty((splits, few * rows, 2), dtype=torch.float32) if splits > 1 else ends
    of_tiles = (0, 0, 0)
    if tiles is not None:
        of_tiles = (tiles.stride(0) * (tiles.shape[0] > 1), tiles.stride(1) * (tiles.shape[1] > 1), tiles.stride(2))
    _launched(_flash_attention, (few, splits), (
        *arrays, q if mask is None else mask.view(torch.uint8), q if bias is None else bias, q if slopes is None else slopes,
        q if sinks is None else sinks, q if tiles is None else tiles, y, kept, ends,
        *(stride for x in (arrays[0], arrays[3], arrays[6], y) for stride in x.stride()[:3]),
        *((0,) * 4 if mask is None else mask.stride()), *((0,) * 4 if bias is None else bias.stride()), *of_tiles,
        *((0,) * 3 if sinks is None else sinks.stride()[:3]), heads, nq, nk, blocks, count, scale / cap if cap else scale * base, offset, window,
        float("-inf") if fill is None else max(fill * base, -3e38), cap * base,
        d, dp, dv, dvp, h // kv, pack, rows, keys, halves, cut, products, form, causal, window > 0,
        0 if mask is None else 2 if hidden else 1, bias is not None, slopes is not None, cap > 0, sinks is not None, tiles is not None,
        splits, dead, 0.0 if q.dtype == torch.bfloat16 else 14.0, stages, nk % keys == 0, keep,
    ), warps, stages)  # fmt: skip
    if splits > 1:
        _launched(_flash_join, (few * rows,), (
            kept, ends, y, *y.stride()[:3], heads, nq, blocks, dv, dvp, pack, rows, splits, form, causal, dead,
        ), 1)  # fmt: skip
    y = y[:, 0] if lead == 3 else y
    return (y, ends) if keep else y
