"""Masks of literals, worked out when a program is read: what is causal, or a window, is said in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import fx

from warpwright.domains.graph.ir import is_parameter_only, shape
from warpwright.domains.graph.techniques.kernels.attention.forms import Attention, Mask

LOWEST = -1e30
"""A score that is this low or lower counts as hidden where each row is known to see another: no float16, bfloat16 or sensible float32 comes near."""
MOST_EVALUATED = 1 << 26
"""Elements of a mask of literals that is worked out to see what form it has."""


def by_their_form(found: Attention) -> Attention:
    """Return the attention with a causal mask, or one with a window, said in words where literals alone make it."""
    parts: tuple[Mask | fx.Node, ...] = (*found.masks, *found.biases)
    for one in parts:
        if found.causal:
            return found
        found = _said(found, one)
    return found


def _said(found: Attention, one: Mask | fx.Node) -> Attention:
    node = one.node if isinstance(one, Mask) else one
    if (isinstance(one, Mask) and one.fill is not None and one.fill > LOWEST) or (not isinstance(one, Mask) and found.form == "relu"):
        return found
    mask = _evaluated(node, found.sizes)
    if mask is None:
        return found
    if isinstance(one, Mask):
        low = one.fill is not None
        seen, bare = ~mask if one.hidden else mask, replace(found, masks=tuple(other for other in found.masks if other is not one))
    else:
        if not bool(((mask == 0) | (mask <= LOWEST)).all()):
            return found
        low = bool((mask.isfinite() & (mask != 0)).any())
        seen, bare = mask == 0, replace(found, biases=tuple(other for other in found.biases if other is not one))
    nq, nk = found.sizes[-2:]
    seen = seen.expand(*([1] * (4 - seen.dim())), *seen.shape).flatten(0, -3).expand(-1, nq, nk)
    if not bool((seen == seen[:1]).all()) or not bool(seen[0].any(-1).all()):
        return found
    band = seen[0]
    if bool(band.all()):
        return bare
    if any(mask.fill is not None for mask in bare.masks) or (low and (bare.masks or bare.biases)):
        return found  # a number that stands in a hidden place may be a row's largest: others decide what else the row sees
    offset = int(band[0].nonzero().max())
    away = torch.arange(nq)[:, None] + offset - torch.arange(nk)
    window = int(band[-1].sum())
    for size in (0, window):
        if torch.equal(band, (away >= 0) & ((away < size) if size else torch.ones_like(band))):
            return replace(bare, causal=True, offset=offset, window=size)
    return found


def _evaluated(node: fx.Node, sizes: Sequence[int]) -> torch.Tensor | None:
    """Return the value of a tensor that literals alone make, or None."""
    known, todo = dict[fx.Node, Any](), [node]
    if not fits(shape(node), sizes) or math.prod(shape(node)) > MOST_EVALUATED:
        return None
    while todo:
        current = todo[-1]
        if current.op != "call_function" or not isinstance(current.target, torch._ops.OpOverload) or current.target._schema.is_mutable:
            return None
        missing = [arg for arg in current.all_input_nodes if arg not in known]
        todo += missing
        if missing:
            continue
        args, keywords = fx.map_arg((current.args, dict(current.kwargs)), lambda arg: known[arg])
        if "device" in keywords:
            keywords = {**keywords, "device": torch.device("cpu")}
        if not is_parameter_only(current) or any(isinstance(arg, torch.device) for arg in args):
            return None
        known[todo.pop()] = current.target(*args, **keywords)
    found = known[node]
    return found if isinstance(found, torch.Tensor) else None


def fits(some: Sequence[int], sizes: Sequence[int]) -> bool:
    """Do sizes broadcast to these?"""
    return len(some) <= len(sizes) and all(a in (1, b) for a, b in zip(reversed(some), reversed(sizes), strict=False))
