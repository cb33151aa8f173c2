"""Cases of what lies around ggml's attention: how far a mask reaches, partial answers put together, tiles, and the scores of an indexer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from benchmarks.real_cuda.families import Case, empty, random
from benchmarks.real_cuda.named_layout import F, H
from benchmarks.real_cuda.named_quantised import QUANTISED, fast_divisor, random_blocks, values_of

SIZE, ACROSS, HEADS_ACROSS = 64, 2, 2
"""Of a head; tokens and heads of a tile."""
STEP = 256
"""Columns of a mask that are looked at together."""


def mask_reach() -> Case:
    """Return a case of the last columns of a mask that some row of a tile of 4 lets through: in all, in none and in between."""
    tiles, sequences, steps = 3, 2, 3
    mask = torch.full((sequences, tiles * 4, steps * STEP), -torch.inf, dtype=H)
    for sequence, row, column in ((0, 0, 767), (0, 5, 300), (1, 2, 0), (1, 7, 255), (1, 11, 256)):
        mask[sequence, row, column] = -1.5
    seen = (~mask.isinf()).reshape(sequences, tiles, 4, steps, STEP).any(4).any(2)
    right = (seen * torch.arange(1, steps + 1)).amax(2) * STEP
    width = steps * STEP // 2
    arguments = [mask, torch.full((sequences, tiles), -77, dtype=torch.int32), steps, width, width * tiles * 4]
    return Case((tiles, sequences), (STEP // 2,), arguments, {1: right.double()}, 0.0, "4")


def joined(parts: Sequence[Sequence[int]], blocks: int, last: Sequence[int]) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return partial answers, what is kept beside them, and the answers.

    `parts`: for each tile the blocks that did its beginning; `last`: the block that wrote the rest, or -1 where one
    did all."""
    columns = ACROSS * HEADS_ACROSS
    tokens, heads, sequences = 3, 4, 2
    written = random(F, sequences, tokens, heads, SIZE)
    largest, total = random(F, 2, blocks, columns), random(F, 2, blocks, columns, low=1, high=3)  # of the last of a tile, of the others
    others = random(F, blocks, columns, SIZE)
    right = written.double().clone()
    for tile, (cut, one) in enumerate(zip(parts, last, strict=True)):
        sequence, shared, of_tokens = tile // 4, tile // 2 % 2, tile % 2
        for j in range(ACROSS):
            for c in range(HEADS_ACROSS):
                token, head, column = of_tokens * ACROSS + j, shared * HEADS_ACROSS + c, j * HEADS_ACROSS + c
                if one < 0 or token >= tokens:
                    continue
                top = torch.stack([largest[0, one, column], *(largest[1, b, column] for b in cut)]).double()
                weight = (top - top.max()).exp()
                values = torch.stack([written[sequence, token, head], *(others[b, column] for b in cut)]).double()
                sums = torch.stack([total[0, one, column], *(total[1, b, column] for b in cut)]).double()
                right[sequence, token, head] = (weight[:, None] * values).sum(0) / (weight * sums).sum()
    kept = torch.cat([torch.stack([largest, total], 3).reshape(-1), others.reshape(-1)])
    return written, kept, right


def parts_joined() -> Case:
    """Return a case of tiles that three blocks did each."""
    each, tiles = 3, 8
    written, kept, right = joined([range(each * t, each * t + 2) for t in range(tiles)], each * tiles, [each * t + 2 for t in range(tiles)])
    arguments = [written, kept, 3, 4, 2, each * tiles, 2, each, fast_divisor(4), fast_divisor(2), fast_divisor(2)]
    return Case((tiles, ACROSS, HEADS_ACROSS), (SIZE,), arguments, {0: right}, 2e-5, f"{SIZE}, {ACROSS}, {HEADS_ACROSS}")


def uneven_parts_joined(blocks: int) -> Case:
    """Return a case of 8 tiles of 5 steps that so many blocks share evenly, wherever a tile ends."""
    tiles, steps = 8, 5
    begin = [b * tiles * steps // blocks for b in range(blocks + 1)]
    parts, last = [], []
    for tile in range(tiles):
        ours = [b for b in range(blocks) if begin[b] < (tile + 1) * steps and begin[b + 1] > tile * steps]
        parts.append(ours[:-1])
        last.append(ours[-1] if len(ours) > 1 else -1)
    written, kept, right = joined(parts, blocks, last)
    divisors = [fast_divisor(steps * count) for count in (4, 2, 2, 1)]
    arguments = [written, kept, 3, 4, 2, tiles * steps, *divisors]
    return Case((blocks, ACROSS, HEADS_ACROSS), (SIZE,), arguments, {0: right}, 2e-5, f"{SIZE}, {ACROSS}, {HEADS_ACROSS}")


def tile_of_attention() -> Case:
    """Return a case of attention of 3 tokens, 4 heads, on 256 keys of 2 heads, by tiles of two tokens and two heads."""
    tokens, heads, shared, length, scale = 3, 4, 2, 256, 0.125
    q, k, v = random(F, heads, tokens, SIZE), random(H, shared, length, SIZE), random(H, shared, length, SIZE)
    mask = random(H, tokens, length)
    wide_k, wide_v = (one.double().repeat_interleave(heads // shared, 0) for one in (k, v))
    scores = q.double() @ wide_k.transpose(1, 2) * scale + mask.double()
    right = (scores.softmax(2) @ wide_v).transpose(0, 1)
    of_kv = [2 * SIZE, length * 2 * SIZE, shared * length * 2 * SIZE]
    arguments = [q, k, v, mask, None, None, empty(F, *right.shape), None, scale, 0.0, 1.0, 1.0, heads, 0.0, SIZE, fast_divisor(tokens), heads, 1,
                 4 * SIZE, 4 * SIZE * tokens, 4 * SIZE * tokens * heads, SIZE, length, shared, 1, *of_kv, *of_kv, tokens, 1, 1, 2 * length,
                 2 * length * tokens, 2 * length * tokens]  # fmt: skip
    return Case((2, 1, heads // HEADS_ACROSS), (32, 4), arguments, {6: right}, 1e-2, f"{SIZE}, {SIZE}, {ACROSS}, {HEADS_ACROSS}, false")


def indexed(kind: str, tensor_cores: bool) -> Case:
    """Return a case of an indexer's scores: over 32 heads, weighted sums of what is positive of the products of queries and a key."""
    streams, tokens, length, heads, size = 2, 3, 100, 32, 128
    q, weight, mask = random(F, streams, tokens, heads, size), random(F, streams, tokens, heads), random(H, 1, tokens, length)
    if kind == "Q8_0":
        k = random_blocks(kind, streams * length * size // 32)
        k[:, :2] = torch.full((len(k), 1), 0.01, dtype=H).view(torch.uint8)
        values = values_of(k, kind).reshape(streams, length, size)
    else:
        k = random(F if kind == "F32" else H, streams, length, size)
        values = k.double()
    given = (q.half() if tensor_cores else q).double()
    products = torch.einsum("sthd,skd->sthk", given, values).clamp(min=0)
    right = (products * weight.double()[..., None]).sum(2) + mask.double()
    row = {"F32": 4 * size, "F16": 2 * size, "Q8_0": size // 32 * 34}[kind]
    of_q = [4 * size, 4 * size * heads, 4 * size * heads * tokens]
    of_dst = [4 * length, 4 * length * tokens, 4 * length * tokens]
    of_k, of_w = [row, row, row * length], [4 * heads, 4 * heads * tokens, 4 * heads * tokens]
    of_m = [2 * length, 2 * length * tokens, 2 * length * tokens]
    arguments = [q, k.view(torch.uint8), weight, mask, empty(F, streams, tokens, length), streams, tokens, length,
                 *of_dst, *of_q, *of_k, *of_w, *of_m, 1]  # fmt: skip
    keys = 32 if tensor_cores else 64
    instance = f"8, {keys}, {size}, {heads}, GGML_TYPE_{kind}"
    return Case((-(-length // keys), tokens, streams), (32, 8), arguments, {4: right}, 2e-3 if tensor_cores else 1e-4, instance)


ATTENTION: dict[str, Callable[[], Case | list[Case]]] = {
    "flash_attn_mask_to_KV_max": mask_reach, "flash_attn_stream_k_fixup_uniform": parts_joined,
    "flash_attn_stream_k_fixup_general": lambda: [uneven_parts_joined(6), uneven_parts_joined(30)], "flash_attn_tile": tile_of_attention,
    "lightning_indexer_kernel_vec": lambda: [indexed("F32", False), *([indexed("Q8_0", False)] if QUANTISED else [])],
    "lightning_indexer_kernel_wmma": lambda: indexed("F16", True),
}  # fmt: skip
