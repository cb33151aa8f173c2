"""Cases of ggml's kernels that go through a sequence step by step: state spaces, linear attention, gated delta rules, mixed residual streams."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from benchmarks.real_cuda.families import Case, blocks, empty, random
from benchmarks.real_cuda.named_layout import CLOSE, EXACT, WORDS, F, H
from benchmarks.real_cuda.named_quantised import all_of, fast_divisor

D = torch.float64


def short_convolution(long: bool, silu: bool) -> Case:
    """Return a case of a causal convolution of each of 256 channels with 4 weights."""
    sequences, channels, taps, steps = 2, 256, 4, 70 if long else 9
    x, weight, bias = random(F, sequences, channels, steps + taps - 1), random(F, channels, taps), random(F, channels)
    right = functional.conv1d(x.double(), weight.double()[:, None], bias.double(), groups=channels).transpose(1, 2)
    right = functional.silu(right) if silu else right
    width = 4 * (steps + taps - 1)
    arguments = [x, weight, bias, 4, width, channels * width, 4 * taps, empty(F, sequences, steps, channels), 4, 4 * channels, 4 * channels * steps, steps]
    head = "true" if silu else "false"
    if long:
        return Case((sequences, 2, 3), (128,), arguments, {7: right}, 1e-5, f"{head}, 128, 4, 32", 4 * 128 * 35)
    return Case((sequences, 2), (128,), arguments, {7: right}, 1e-5, f"{head}, 128, 4")


def scanned(heads: int, head_size: int, state: int, groups: int, by_group: bool) -> Case:
    """Return a case of the selective scan: each channel has `state` numbers that decay and take in dt x B."""
    sequences, steps = 2, 7
    inner = heads * head_size
    s0, x, dt = random(F, 3, heads, head_size, state), random(F, sequences, steps, heads, head_size), random(F, sequences, steps, heads)
    decay = random(F, heads, 1, low=-2, high=-0.1) if by_group else random(F, heads, state, low=-2, high=-0.1)
    b, c = random(F, sequences, steps, groups, state), random(F, sequences, steps, groups, state)
    ids = torch.tensor([2, 0], dtype=WORDS)
    now, outputs = s0.double()[ids.long()], []
    for t in range(steps):
        step = functional.softplus(dt[:, t].double())  # sequences, heads
        keep = (step[..., None] * decay.double()).exp()  # sequences, heads, state or 1
        of_b, of_c = (one[:, t].double().repeat_interleave(heads // groups, 1)[:, :, None] for one in (b, c))
        now = now * keep[:, :, None] + of_b * (x[:, t].double() * step[..., None])[..., None]
        outputs.append((now * of_c).sum(3).reshape(sequences, inner))
    right = torch.cat([torch.stack(outputs, 1).reshape(-1), now.reshape(-1)])
    offset, of_state = 4 * sequences * steps * inner, 4 * state * head_size
    rest = [of_state, of_state * heads, 4 * inner, 4 * inner * steps, 4 * heads, 4 * heads * steps, 4 * decay.shape[1], 4 * groups * state,
            4 * groups * state * steps, 4 * groups * state, 4 * groups * state * steps, offset]  # fmt: skip
    arguments = [s0, x, dt, decay, b, c, ids, empty(F, right.numel()), *rest]
    if by_group:
        arguments += [heads, head_size, groups, steps, 1]
        return Case((inner // (state // 32), sequences), (state,), arguments, {7: right}, 1e-5, f"{state // 32}, {state}")
    return Case((sequences, heads // 128), (128,), [*arguments, heads, steps], {7: right}, 1e-5, f"128, {state}, 0")


def steps_prepared() -> Case:
    heads, steps, sequences = 3, 300, 2
    dt = random(F, sequences, steps, heads, low=-5, high=25)
    right = functional.softplus(dt.double(), threshold=20)
    arguments = [dt, empty(F, *dt.shape), empty(F, *dt.shape), heads, steps, heads, steps * heads]
    return Case((heads, sequences), (128,), arguments, {1: right, 2: right.cumsum(1)}, 1e-5, "128, 8")


def chunk(dtype: torch.dtype = H) -> Case:
    """Return a case of what the products of a chunk of a scan need."""
    heads, size, groups, state, length, offset, sequences = 4, 8, 2, 16, 20, 20, 2
    steps = 2 * length
    dt = random(F, sequences, steps, heads, low=0.1, high=0.3)
    total, decay = dt.double().cumsum(1).float(), random(F, heads, low=-1, high=-0.1)
    x, b, c = random(F, sequences, steps, heads, size), random(F, sequences, steps, groups, state), random(F, sequences, steps, groups, state)
    cb = random(F, sequences, groups, length, length)
    part, wide = slice(offset, offset + length), decay.double()
    local = (total[:, part] - total[:, offset - 1 : offset]).double().transpose(1, 2)  # sequences, heads, length
    last = local[..., -1:]
    of_b, of_c = (one[:, part].double().repeat_interleave(heads // groups, 2).transpose(1, 2) for one in (b, c))
    scaled = (x.double() * dt.double()[..., None])[:, part].transpose(1, 2)
    weighted = of_b * (wide[:, None] * (last - local)).exp()[..., None]
    of_c = of_c * (wide[:, None] * local).exp()[..., None]
    between = (wide[:, None, None] * (local[:, :, None, :] - local[:, :, :, None])).exp()  # from the row's step to the column's
    mixed = between * cb.double().repeat_interleave(heads // groups, 1) * torch.ones(length, length, dtype=D).triu()
    outputs = [empty(dtype, *scaled.shape), empty(dtype, *weighted.shape), empty(F, *of_c.shape)]
    arguments = [total, dt, decay, x, b, c, *outputs, cb, empty(H, *mixed.shape), length, size, heads, groups, state, 1, heads * size,
                 steps * heads * size, groups * state, steps * groups * state, groups * state, steps * groups * state, offset, steps]  # fmt: skip
    right = {6: scaled, 7: weighted, 8: of_c, 10: mixed}
    return Case((blocks(max(length * state, length * length), 128), heads, sequences), (128,), arguments, right, 1e-3, "128, half")


def state_scaled() -> Case:
    heads, size, state, steps, sequences, offset, length = 4, 8, 16, 40, 2, 20, 20
    s, decay = random(F, sequences, heads, size, state), random(F, heads, low=-1, high=-0.1)
    total = random(F, sequences, steps, heads, low=0.1, high=0.3).double().cumsum(1).float()
    passed = total.double()[:, offset + length - 1] - total.double()[:, offset - 1]
    right = s.double() * (decay.double() * passed).exp()[..., None, None]
    arguments = [s, total, decay, state, size, heads, offset, length, steps, 1]
    return Case((1, heads, sequences), (128,), arguments, {0: right}, 1e-5, "128")


def state_taken() -> Case:
    s, ids = random(F, 5, 300), torch.tensor([4, 1, 2], dtype=WORDS)
    return Case((3, 3), (128,), [s, ids, empty(F, 3, 300), 300, 300], {2: s.double()[ids.long()]}, EXACT, "128")


def linear_attention(kind: str) -> Case:
    """Return a case of RWKV's sixth or seventh time mixing or of gated linear attention: 2 sequences, 2 heads of 64."""
    sequences, steps, heads, size = 2, 1 if kind == "wkv7 one" else 5, 2, 64
    shape = (sequences * steps, heads, size)
    r, k, v = (random(F, *shape, low=-1, high=1) for _ in range(3))
    w = random(F, *shape, low=0.2, high=1.0)
    a, b = random(F, *shape, low=-0.2, high=0.2), random(F, *shape, low=-0.2, high=0.2)
    first, s0, scale = random(F, heads, size), random(F, sequences, heads, size, size, low=-1, high=1), 0.25
    now, outputs = s0.double(), torch.empty(sequences, steps, heads, size, dtype=D)
    of = [one.double().reshape(sequences, steps, heads, size) for one in (r, k, v, w, a, b)]
    for t in range(steps):
        rt, kt, vt, wt, at, bt = (one[:, t] for one in of)
        if kind == "wkv6":  # the state's first axis is the key's
            outer = kt[..., :, None] * vt[..., None, :]
            outputs[:, t] = (rt[..., :, None] * (first.double()[..., :, None] * outer + now)).sum(2)
            now = now * wt[..., :, None] + outer
        elif kind == "gla":
            now = now * wt[..., :, None] + kt[..., :, None] * vt[..., None, :]
            outputs[:, t] = (rt[..., :, None] * now).sum(2) * scale
        else:  # the state's first axis is the value's
            removed = (now * at[..., None, :]).sum(3)
            now = now * wt[..., None, :] + vt[..., :, None] * kt[..., None, :] + removed[..., :, None] * bt[..., None, :]
            outputs[:, t] = (now * rt[..., None, :]).sum(3)
    right = torch.cat([outputs.reshape(-1), now.reshape(-1)])
    numbers, out = [sequences, sequences * steps, heads * size, heads], empty(F, right.numel())
    if kind == "wkv7 one":
        return Case((sequences * heads, 16), (32, 4), [*numbers[1:], r, w, k, v, a, b, s0, out], {10: right}, 1e-5, "4")
    if kind == "wkv7":
        return Case((sequences * heads,), (size,), [*numbers, r, w, k, v, a, b, s0, out], {11: right}, 1e-5, "64")
    given = [k, v, r, first, w, s0, out] if kind == "wkv6" else [scale, k, v, r, w, s0, out]
    return Case((sequences * heads,), (size,), [*numbers, *given], {10: right}, 1e-5, "64")


def delta_rule(by_key: bool) -> Case:
    """Return a case of the gated delta rule, with a gate a head or a gate a key."""
    sequences, steps, heads, size, scale = 2, 5, 3, 64, 0.125
    q, k, v = (random(F, sequences, steps, heads, size, low=-0.3, high=0.3) for _ in range(3))
    gate = random(F, sequences, steps, heads, size if by_key else 1, low=-1, high=0)
    beta, s0 = random(F, sequences, steps, heads, low=0), random(F, sequences, heads, size, size, low=-1, high=1)
    now, outputs = s0.double(), torch.empty(sequences, steps, heads, size, dtype=D)  # state: value's axis first
    for t in range(steps):
        qt, kt, vt, gt = (one[:, t].double() for one in (q, k, v, gate))
        now = now * gt.exp()[..., None, :]
        change = (vt - (now * kt[..., None, :]).sum(3)) * beta[:, t].double()[..., None]
        now = now + change[..., :, None] * kt[..., None, :]
        outputs[:, t] = (now * qt[..., None, :]).sum(3) * scale
    row = [size, heads * size, steps * heads * size]
    arguments = [q, k, v, gate, beta, s0, empty(F, *outputs.shape), empty(F, *s0.shape), heads, steps, sequences, *row, *row, 1, heads, steps * heads,
                 fast_divisor(heads), fast_divisor(1), scale, 0, 1]  # fmt: skip
    instance = f"64, {'true' if by_key else 'false'}, false"
    return Case((heads, sequences, 16), (32, 4), arguments, {6: outputs, 7: now}, 1e-5, instance)


def streams_mixed(kind: str) -> Case:
    """Return a case of four residual streams that are joined ("pre"), renewed ("post"), or of the 4 by 4 weights between them ("comb")."""
    tokens, width = 9, 40
    x, streams, four = random(F, tokens, width), random(F, tokens, 4, width), random(F, tokens, 4)
    if kind == "pre":
        right = (streams.double() * four.double()[..., None]).sum(1)
        numbers = [width, 4, tokens, 1, width, 4 * width, 1, 4, 1, width]
        return Case((blocks(right.numel(), 128),), (128,), [streams, four, empty(F, tokens, width), *numbers], {2: right}, CLOSE)
    if kind == "post":
        weights = random(F, tokens, 4, 4)  # token, source, destination
        right = x.double()[:, None] * four.double()[..., None] + torch.einsum("tsd,tsw->tdw", weights.double(), streams.double())
        numbers = [width, 4, tokens, 1, width, 1, width, 4 * width, 1, 4, 1, 4, 16, 1, width, 4 * width]
        arguments = [x, streams, four, weights, empty(F, tokens, 4, width), *numbers]
        return Case((blocks(right.numel(), 128),), (128,), arguments, {4: right}, CLOSE)
    mixes, scale, base, eps = random(F, tokens, 24), random(F, 3), random(F, 24), 1e-3
    wide = (mixes.double()[:, 8:] * scale.double()[2] + base.double()[8:]).reshape(tokens, 4, 4).softmax(2) + eps
    for turn in range(3):
        wide = wide if turn == 0 else wide / (wide.sum(2, keepdim=True) + eps)
        wide = wide / (wide.sum(1, keepdim=True) + eps)
    arguments = [mixes, scale, base, empty(F, tokens, 4, 4), tokens, 1, 24, 1, 1, 1, 4, 16, eps, 3]
    return Case((1,), (32,), arguments, {3: wide}, CLOSE)


SEQUENCES: dict[str, Callable[[], Case | list[Case]]] = {
    "ssm_conv_f32": all_of(lambda: short_convolution(False, False), lambda: short_convolution(False, True)),
    "ssm_conv_long_token_f32": lambda: short_convolution(True, True), "ssm_scan_f32": lambda: scanned(128, 1, 16, 1, False),
    "ssm_scan_f32_group": lambda: scanned(4, 8, 128, 2, True), "ssm_ssd_prepare_dt_kernel": steps_prepared, "ssm_ssd_pre_matmul_kernel": chunk,
    "ssm_ssd_scale_state_kernel": state_scaled, "ssm_ssd_init_state_kernel": state_taken, "rwkv_wkv_f32": lambda: linear_attention("wkv6"),
    "rwkv_wkv7_f32": lambda: linear_attention("wkv7"), "rwkv_wkv7_f32_t1_warp_row": lambda: linear_attention("wkv7 one"),
    "gated_linear_attn_f32": lambda: linear_attention("gla"), "gated_delta_net_cuda": all_of(lambda: delta_rule(False), lambda: delta_rule(True)),
    "dsv4_hc_comb_f32": lambda: streams_mixed("comb"), "dsv4_hc_pre_f32": lambda: streams_mixed("pre"),
    "dsv4_hc_post_f32": lambda: streams_mixed("post"),
}  # fmt: skip
