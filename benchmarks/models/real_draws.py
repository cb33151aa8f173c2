"""The models that draws gave, at the sizes they are used at, for a GPU: `drawn_12.txt` and later ones.

    python -m benchmarks.third_party --drawn 12 --budget "75s, 2 proposals, until faster" --device cuda --jobs 5 --together --out ROWS

First every model of a draw once, one half in float32 and the other in bfloat16 (NAME_bf16; 5 opened, 7 put aside of seed 12); then those in float32
that were in bfloat16. The order spreads kinds and halves, so that a run that ends early has some of each. Seed 14 was drawn without asking whether a
model can be made at the size that it is used at: one that cannot is small.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import torch

from benchmarks.models import draw
from benchmarks.models.small_configs import NotMade

Maker = Callable[[], tuple[torch.nn.Module, dict[str, Any] | tuple[Any, ...]]]


def _models_in_turn(seed: int) -> list[tuple[str, str, bool]]:
    """Return kind and name of each model of a draw, and whether it is in bfloat16 first: in turn one of each kind and half."""
    lines = [line.split() for line in draw.list_of(seed).read_text().splitlines() if not line.startswith("#")]
    groups: dict[tuple[str, str], list[str]] = {}
    for half, kind, name in lines:
        groups.setdefault((kind, half), []).append(name)
    turns = enumerate(zip_longest(*groups.values()))
    spread = ((turn + place, kind, name) for turn, names in turns for place, ((kind, _), name) in enumerate(zip(groups, names, strict=True)))
    return [(kind, name, bool(number % 2)) for number, kind, name in spread if name is not None]


def _maker(kind: str, name: str, half_precision: bool, or_small: bool) -> Maker:
    def make() -> tuple[torch.nn.Module, dict[str, Any] | tuple[Any, ...]]:
        try:
            model, inputs = _made(kind, name, or_small)
        except Exception as error:  # of the library, as where another version has no such model
            raise NotMade(f"{type(error).__name__}: {str(error)[:200]}") from error
        if half_precision:
            model = model.to(torch.bfloat16)
            inputs = {key: value.to(torch.bfloat16) if value.is_floating_point() else value for key, value in inputs.items()}
        return model, (inputs["0"],) if "0" in inputs else inputs

    return make


def _made(kind: str, name: str, or_small: bool) -> draw.Made:
    try:
        return draw.make(kind, name, real=True)
    except Exception as error:  # of the library, of whatever kind
        if not or_small:
            raise
        print(f"{name} is small: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr)
        return draw.make(kind, name)


def of_draw(seed: int, or_small: bool = False) -> Iterator[tuple[str, Maker]]:
    """Yield name and maker of each model of a draw in each of its precisions; with `or_small` small ones of those that cannot be made otherwise."""
    every = _models_in_turn(seed)
    for kind, name, narrow in every:
        yield (f"{name}_bf16" if narrow else name), _maker(kind, name, narrow, or_small)
    for kind, name, narrow in every:
        if narrow:
            yield name, _maker(kind, name, False, or_small)


DRAWS = {seed: dict(of_draw(seed, or_small=seed == 14)) for seed in (16, 15, 14, 12)}
MODELS = {name: maker for models in reversed(DRAWS.values()) for name, maker in models.items()}
