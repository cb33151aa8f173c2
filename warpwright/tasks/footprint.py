"""How much memory one eager call of a task takes, found on the meta device: decides how many tasks share one GPU."""

from __future__ import annotations

import weakref
from typing import Any

from warpwright.base import Task
from warpwright.tasks.reference import call
from warpwright.tasks.taskfile import load


def peak_bytes(task: Task) -> int:
    """Return the greatest number of bytes alive at once in one eager call: state, inputs and results not yet freed.

    Workspaces of libraries and what one operator allocates inside itself are not seen.
    """
    import torch

    reference = load(task)
    model, inputs = reference.make_meta_model(), reference.make_inputs(0, "meta")
    ledger = _ledger()
    for tensor in [*model.parameters(), *model.buffers(), *(value for value in inputs if isinstance(value, torch.Tensor))]:
        ledger.note(tensor)
    with torch.no_grad(), torch.device("meta"), ledger:
        call(task.path, "forward", lambda: model(*inputs))
    return int(ledger.peak)


def _ledger() -> Any:
    """Return a mode that counts the bytes of storages from their making to their end."""
    import torch
    from torch.utils._pytree import tree_leaves

    from warpwright.tasks.mode import Mode

    alive: dict[int, int] = {}

    class Ledger(Mode):  # type: ignore[no-untyped-call]
        peak = 0

        def note(self, tensor: torch.Tensor) -> None:
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key not in alive:
                alive[key] = storage.nbytes()
                weakref.finalize(storage, alive.pop, key, None)
                self.peak = max(self.peak, sum(alive.values()))

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    self.note(leaf)
            return result

    return Ledger()  # type: ignore[no-untyped-call]
