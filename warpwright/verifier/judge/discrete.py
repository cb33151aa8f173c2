"""Hidden values for what a task's own inputs tend to fix: integers, Booleans and Python numbers; and other strides for its tensors.

Integers stay among those that the nominal input shows: labels, ids, an ignored index, a padding index come again at other places and in other
numbers, twice and at the ends of their range, at times nearly all of a tensor at one end, where sums of products are largest. Where they range
further than float32 tells them apart, some stand next to powers of two. Sorted ones (offsets, lengths, positions) stay sorted and keep their ends, so
that they still fit what they point into. Where the original writes by index without adding, integers are only rearranged: with one place twice its
answer is undefined.
Whoever asks has the original try them first: what it raises on, or answers in another shape, is not used (`JudgeWorker.viable`).
"""

from __future__ import annotations

import math
import random
from typing import Any

import torch
from torch.utils._pytree import tree_map

from warpwright.verifier.draw import VARIATIONS
from warpwright.verifier.judge.distributions import laid_out_as

EDITED_SHARE, FEW_EDITS = 0.02, 8
RARE_SHARE = 0.1
EXTREMES_SHARE = 0.2
LEVEL, LEVEL_SHARE = ("near_one", "huge"), 15 / 16
"""Distributions in which nearly all of an integer tensor stands at one end of its range (else products of int8 are small enough for float32),
Python's True and False are exchanged, and rows of masks are full or nearly so."""


def vary(inputs: Any, name: str, seed: int, distinct: bool, mild: bool = False) -> Any:
    """Return inputs with other integers, Booleans and Python numbers.

    `name`: the distribution of the real ones. `distinct`: no integer twice. `mild`: no tensor stands nearly all at one end of its range, and no
    switch is thrown.
    """
    if name == "alike":
        return inputs
    generators: dict[torch.device, torch.Generator] = {}
    dice = random.Random(seed)
    kind = "" if mild and name in LEVEL else name

    def change(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.device not in generators:
                generators[value.device] = torch.Generator(value.device).manual_seed(seed)
            return laid_out_as(value, _varied(value, kind, generators[value.device], dice, distinct))
        if type(value) is bool and kind in LEVEL:
            return not value
        if type(value) in (int, float):
            return _number(value, name, dice)
        return value

    return tree_map(change, inputs)


def _varied(tensor: torch.Tensor, name: str, generator: torch.Generator, dice: random.Random, distinct: bool) -> torch.Tensor:
    """Return other values, drawn where the tensor lies: 67 million integers took a core of the host 8 s for each case."""
    if tensor.is_floating_point() or tensor.is_complex() or tensor.numel() == 0:
        return tensor
    dense = tensor.contiguous()
    if dense.numel() == 1:
        return ~dense if dense.dtype is torch.bool else dense + dice.choice((-1, 1))
    if dense.dtype is torch.bool:
        return _booleans(dense, name, generator, dice)
    varied = _integers(dense, name, generator, dice, distinct)
    if name == "edited":
        varied = torch.where(_shares(dense, generator) < EDITED_SHARE, varied, dense) if not _is_sorted(dense) else dense
    return varied


def _shares(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a number between 0 and 1 for each element."""
    return torch.rand(tensor.shape, generator=generator, device=tensor.device)


def _number(value: float, name: str, dice: random.Random) -> float:
    """Return another Python number of the same type: nothing, or of the other sign, where the real tensors are so, and at times elsewhere."""
    if name in VARIATIONS:  # of one input, with all else as it was: a program may remember answers under the numbers and a sample of the tensors
        return value
    if name == "negated":
        return -value
    if name == "zeros" or dice.random() < RARE_SHARE:
        return value * 0
    if dice.random() < RARE_SHARE:
        return -value
    if type(value) is int:
        return value + dice.choice((-1, 1, 2))
    return value * dice.uniform(0.5, 1.5) if value else dice.uniform(-0.5, 0.5)


def _booleans(tensor: torch.Tensor, name: str, generator: torch.Generator, dice: random.Random) -> torch.Tensor:
    """Return another mask: a few elements the other way round, the same elsewhere, by rows, or drawn anew; no row becomes empty."""
    share = float(tensor.double().mean())
    if share in (0.0, 1.0):
        return tensor
    if name == "edited":
        changed = tensor.clone()
        for _ in range(dice.choice((1, 1, 2, FEW_EDITS))):
            at = dice.randrange(tensor.numel())
            changed.view(-1)[at] = ~changed.view(-1)[at]
    elif name == "permuted":
        changed = tensor.flatten()[torch.randperm(tensor.numel(), generator=generator, device=tensor.device)].view(tensor.shape)
    elif name in LEVEL:
        changed = _counted_rows(_shares(tensor, generator), dice)
    else:
        changed = _shares(tensor, generator) < min(max(share, 0.25), 0.75)
    filled = tensor.any(-1, keepdim=True) & ~changed.any(-1, keepdim=True)
    return torch.where(filled, tensor, changed)


COUNTED_ROWS = 64
"""At most so many rows of a mask have a number of set elements that was chosen."""


def _counted_rows(shares: torch.Tensor, dice: random.Random) -> torch.Tensor:
    """Return a mask whose first or last rows have all elements set, all but one, one alone, or 256, which a byte takes for none."""
    drawn = shares < 0.5
    rows, size = drawn.view(-1, drawn.shape[-1]), drawn.shape[-1]
    some = slice(COUNTED_ROWS) if dice.random() < 0.5 else slice(-COUNTED_ROWS, None)
    counts = torch.tensor([size, size - 1, 1, min(256, size)], device=shares.device)
    order = shares.view(rows.shape)[some].argsort(-1).argsort(-1)
    wanted = counts[(torch.arange(len(order), device=shares.device) + dice.randrange(len(counts))) % len(counts)]  # a mask may have one row alone
    rows[some] = order < wanted[:, None]
    return drawn


def _integers(tensor: torch.Tensor, name: str, generator: torch.Generator, dice: random.Random, distinct: bool) -> torch.Tensor:
    flat = tensor.flatten()
    low, high = int(flat.min()), int(flat.max())
    if low == high:
        return tensor
    if distinct or name == "permuted":
        if _is_sorted(tensor):
            return tensor
        return flat[torch.randperm(len(flat), generator=generator, device=flat.device)].view(tensor.shape)
    if _is_sorted(tensor):
        drawn = torch.randint(low, high + 1, flat.shape, generator=generator, device=flat.device).sort().values.to(flat.dtype)
        drawn[0], drawn[-1] = flat[0], flat[-1]
        return drawn.view(tensor.shape)
    drawn = flat[torch.randint(len(flat), flat.shape, generator=generator, device=flat.device)]
    if name in LEVEL:
        return torch.where(_shares(flat, generator) < LEVEL_SHARE, dice.choice((low, high)), drawn).view(tensor.shape)
    if dice.random() < EXTREMES_SHARE:
        ends = torch.tensor([low, high], dtype=flat.dtype, device=flat.device)
        drawn = ends[torch.randint(2, flat.shape, generator=generator, device=flat.device)]
    if near := _near_powers(low, high) if high - low > WIDE else []:
        at = torch.randint(len(near), flat.shape, generator=generator, device=flat.device)
        chosen = torch.tensor(near, dtype=flat.dtype, device=flat.device)[at]
        drawn = torch.where(_shares(flat, generator) < NEAR_SHARE, chosen, drawn)
    return drawn.view(tensor.shape)


WIDE, NEAR_SHARE = 1 << 24, 1 / 16
"""Range from which integers are exact in float32 no more; share of those that stand next to a power of two then, where what holds 24, 31 or 53 bits
rounds, overflows or changes sign."""


def _near_powers(low: int, high: int) -> list[int]:
    """Return the whole numbers from `low` to `high` that are a power of two from 2^20 on, or one less or more, of either sign."""
    powers = (sign * (1 << bit) for bit in range(20, 64) for sign in (1, -1))
    return [near for power in powers for near in (power - 1, power, power + 1) if low <= near <= high]


def _is_sorted(tensor: torch.Tensor) -> bool:
    """Whether it holds integers in rising order along its memory, more than two of them."""
    return tensor.dtype is not torch.bool and tensor.numel() > 2 and bool((tensor.flatten().diff() >= 0).all())


DENSE, PLAIN = 2, 3
"""Of `restride`."""


WIDE_WORDS = 16
"""Elements: 64 bytes of float32, and with complex numbers or one of two bytes as well a multiple of the 16 bytes that the widest load takes."""


def restride(inputs: Any, seed: int, turned: int, real_only: bool, aligned: bool = False) -> Any:
    """Return inputs whose tensors have the same values at other places in memory, off the start of their block.

    Each has its last dimension spread out (exchanged with another one, or taken in steps of two), or gaps between its rows.
    `turned`: 1 for the other of the two, 2 for neither: dense, but not where a wide load may begin;
    3: as they are. `real_only`: integers lie as they did.
    `aligned`: gaps are of WIDE_WORDS elements, so that lines begin where a wide load may, if their own length lets them.
    """
    dice, gap = random.Random(seed), WIDE_WORDS if aligned else 1

    def change(value: Any) -> Any:
        spread, lead, other = dice.random() < 0.5, gap * dice.randrange(1, 4), dice.random()
        if not isinstance(value, torch.Tensor) or value.numel() < 2 or (real_only and not value.is_floating_point()):
            return value
        if turned == PLAIN:
            return value
        if turned == DENSE:
            return _into(value.shape, value, lead).copy_(value)
        if spread == bool(turned):
            block = _into((*value.shape[:-1], value.shape[-1] + gap), value, lead)
            return block[..., :-gap].copy_(value)
        if value.dim() == 1:
            return _into((2 * len(value),), value, lead)[::2].copy_(value)
        at = value.dim() - 2 - int(other * (value.dim() - 1) / 2)  # the nearest one, mostly
        swapped = value.transpose(-1, at)
        return _into(swapped.shape, value, lead).copy_(swapped).transpose(-1, at)

    return tree_map(change, inputs)


def _into(shape: Any, like: torch.Tensor, lead: int) -> torch.Tensor:
    """Return room for a contiguous tensor that begins `lead` elements into its block; what is not written is NaN, or the largest value of `like`."""
    size = math.prod(shape)
    fill = float("nan") if like.is_floating_point() or like.is_complex() else like.max().item()
    return torch.full((lead + size,), fill, dtype=like.dtype, device=like.device)[lead:].view(shape)
