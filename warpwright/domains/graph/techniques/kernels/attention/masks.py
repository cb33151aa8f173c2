"""Masks of literals, worked out when a program is read: what is causal, or a window, is said in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

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


class _Form(NamedTuple):
    """What a mask of literals hides, where each row sees a key."""

    low: bool
    """Does a low number stand in hidden places, not -Inf?"""
    whole: bool
    """Is nothing hidden?"""
    offset: int = 0
    window: int | None = None
    """Row i sees keys up to i + offset, and of those the last so many (0: all); None: it sees others."""


_FORMS: dict[tuple[Any, ...], _Form | None] = {}
"""Of masks that were looked at, by the calls that make them, the newest REMEMBERED: layers of a model share one, as do the graph's copies, and to
look at 2,048 rows and columns takes 0.3 s."""
REMEMBERED = 64


def _said(found: Attention, one: Mask | fx.Node) -> Attention:
    node, masks = (one.node, True) if isinstance(one, Mask) else (one, False)
    if (isinstance(one, Mask) and one.fill is not None and one.fill > LOWEST) or (not masks and found.form != "softmax"):
        return found
    calls = _calls(node) if fits(shape(node), found.sizes) and math.prod(shape(node)) <= MOST_EVALUATED else None
    if calls is None:
        return found
    key = (*calls, *found.sizes, *((one.hidden, one.fill is not None) if isinstance(one, Mask) else ()))
    if key not in _FORMS:
        _FORMS[key] = _form(one, found.sizes)
        for oldest in list(_FORMS)[:-REMEMBERED]:
            del _FORMS[oldest]
    form = _FORMS[key]
    if form is None:
        return found
    if isinstance(one, Mask):
        bare = replace(found, masks=tuple(other for other in found.masks if other is not one))
    else:
        bare = replace(found, biases=tuple(other for other in found.biases if other is not one))
    if form.whole:
        return bare
    if any(mask.fill is not None for mask in bare.masks) or (form.low and (bare.masks or bare.biases)):
        return found  # a number that stands in a hidden place may be a row's largest: others decide what else the row sees
    return found if form.window is None else replace(bare, causal=True, offset=form.offset, window=form.window)


def _form(one: Mask | fx.Node, sizes: Sequence[int]) -> _Form | None:
    """Return what a mask or a bias of literals hides; None where it adds other numbers, or differs among batch and heads."""
    mask = _evaluated(one.node if isinstance(one, Mask) else one)
    if mask is None:
        return None
    if isinstance(one, Mask):
        low, seen = one.fill is not None, ~mask if one.hidden else mask
    elif bool(((mask == 0) | (mask <= LOWEST)).all()):
        low, seen = bool((mask.isfinite() & (mask != 0)).any()), mask == 0
    else:
        return None
    nq, nk = sizes[-2:]
    seen = seen.expand(*([1] * (4 - seen.dim())), *seen.shape).flatten(0, -3).expand(-1, nq, nk)
    band = seen[0]
    if not bool((seen == seen[:1]).all()) or not bool(band.any(-1).all()):
        return None
    if bool(band.all()):
        return _Form(low, True)
    offset = int(band[0].nonzero().max())
    away = torch.arange(nq)[:, None] + offset - torch.arange(nk)
    window = int(band[-1].sum())
    for size in (0, window):
        if torch.equal(band, (away >= 0) & ((away < size) if size else torch.ones_like(band))):
            return _Form(low, False, offset, size)
    return _Form(low, False)


def _made_of(node: fx.Node) -> list[fx.Node] | None:
    """Return the calls that make a tensor of literals alone, each after those that it reads; None for another tensor."""
    known, todo = dict[fx.Node, None](), [node]
    while todo:
        current = todo[-1]
        if current.op != "call_function" or not isinstance(current.target, torch._ops.OpOverload) or current.target._schema.is_mutable:
            return None
        missing = [arg for arg in current.all_input_nodes if arg not in known]
        todo += missing
        if missing:
            continue
        if not is_parameter_only(current) or any(isinstance(arg, torch.device) for arg in current.args):
            return None
        known[todo.pop()] = None
    return list(known)


def _calls(node: fx.Node) -> tuple[str, ...] | None:
    """Return these calls in words, the same for every tensor that is made alike."""
    made = _made_of(node)
    if made is None:
        return None
    places = {one: f"%{at}" for at, one in enumerate(made)}
    return tuple(f"{one.target}{fx.map_arg((one.args, dict(one.kwargs)), lambda arg: places[arg])}" for one in made)  # type: ignore[arg-type, return-value]


def _evaluated(node: fx.Node) -> torch.Tensor | None:
    """Return the value of a tensor that literals alone make."""
    known = dict[fx.Node, Any]()
    for one in _made_of(node) or ():
        args, keywords = fx.map_arg((one.args, dict(one.kwargs)), lambda arg: known[arg])
        if "device" in keywords:
            keywords = {**keywords, "device": torch.device("cpu")}
        known[one] = one.target(*args, **keywords)  # type: ignore[operator]
    found = known.get(node)
    return found if isinstance(found, torch.Tensor) else None


def fits(some: Sequence[int], sizes: Sequence[int]) -> bool:
    """Do sizes broadcast to these?"""
    return len(some) <= len(sizes) and all(a in (1, b) for a, b in zip(reversed(some), reversed(sizes), strict=False))
