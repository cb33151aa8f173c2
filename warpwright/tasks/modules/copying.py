"""Copies of modules: also of those that hold tensors with a history, which torch does not copy."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from warpwright.tasks.modules.closures import Functions
from warpwright.tasks.modules.part_modes import give_modes, modes_of

if TYPE_CHECKING:
    import torch


def copied(model: torch.nn.Module) -> torch.nn.Module:
    """Return a copy of a module, its parts in their modes of training: some are constructed anew when they are copied, as einops's layers are.

    What a part computed from its parameters and keeps (torch.nn.utils.weight_norm) loses its history. Functions that a part keeps and that hold parts
    (`self.mlpf = lambda x: m.c_proj(m.c_fc(x))`) hold the copy's.
    """
    import torch

    held = [item for part in model.modules() for item in vars(part).values() if isinstance(item, torch.Tensor) and not item.is_leaf]
    memo: dict[int, object] = {id(item): item.detach().clone() for item in held}
    functions = Functions(model, memo)
    twin = copy.deepcopy(model, memo)
    functions.fill()
    give_modes(twin, modes_of(model))
    return twin
