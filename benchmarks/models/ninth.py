"""A ninth set: the models that the second draw gave (`drawn_12.txt`), at the sizes they are used at, for a GPU.

    python -m benchmarks.third_party --ninth --budget "45s, 2 proposals, until faster" --device cuda --baselines eager,compile,cuda_graph --jobs 5 ...

Every model in float32, and every second one in bfloat16 too, called NAME_bf16. The order spreads kinds and halves, so that a run that ends early has
some of each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import zip_longest
from typing import Any

import torch

from benchmarks.models import draw
from benchmarks.models.small_configs import NotMade

Maker = Callable[[], tuple[torch.nn.Module, dict[str, Any] | tuple[Any, ...]]]
SEED = 12


def _lines() -> list[tuple[str, str, str]]:
    """Return half, kind and name of each model: in turn one of each kind and half."""
    lines = [line.split() for line in draw.list_of(SEED).read_text().splitlines() if not line.startswith("#")]
    groups: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
    for half, kind, name in lines:
        groups.setdefault((half, kind), []).append((half, kind, name))
    return [line for turn in zip_longest(*groups.values()) for line in turn if line is not None]


def _maker(kind: str, name: str, half_precision: bool) -> Maker:
    def make() -> tuple[torch.nn.Module, dict[str, Any] | tuple[Any, ...]]:
        try:
            model, inputs = draw.make(kind, name, real=True)
        except Exception as error:  # of the library, as where another version has no such model
            raise NotMade(f"{type(error).__name__}: {str(error)[:200]}") from error
        if half_precision:
            model = model.to(torch.bfloat16)
            inputs = {key: value.to(torch.bfloat16) if value.is_floating_point() else value for key, value in inputs.items()}
        return model, (inputs["0"],) if "0" in inputs else inputs

    return make


def _models() -> Iterator[tuple[str, Maker]]:
    for number, (_, kind, name) in enumerate(_lines()):
        yield name, _maker(kind, name, False)
        if number % 2:
            yield f"{name}_bf16", _maker(kind, name, True)


MODELS = dict(_models())
