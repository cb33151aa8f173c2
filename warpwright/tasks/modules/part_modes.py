"""Modes of training, part by part: a model may have parts in evaluation while it trains, and copying builds some parts anew, in training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


def modes_of(model: torch.nn.Module) -> dict[str, bool]:
    """Return whether each part is in training, by path; what torch.jit.freeze made has no mode."""
    return {path: part.training for path, part in model.named_modules() if hasattr(part, "training")}


def give_modes(model: torch.nn.Module, modes: Mapping[str, bool]) -> None:
    """Put the parts of these paths into these modes, as far as there are any."""
    for path, part in model.named_modules():
        if path in modes:
            part.training = modes[path]


def apart(model: torch.nn.Module) -> list[str]:
    """Return the paths of the parts that are not in the model's own mode."""
    return [path for path, training in modes_of(model).items() if training != model.training]
