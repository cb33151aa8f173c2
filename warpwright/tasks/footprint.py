"""How much memory one eager call of a task takes, found on the meta device: decides how many tasks share one GPU."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from warpwright.base import Task
from warpwright.tasks.reference import call
from warpwright.tasks.taskfile import load


@dataclass(frozen=True)
class Sizes:
    """What a call holds, in bytes."""

    peak: int
    """At most at once: state, inputs and results not yet freed."""
    state: int
    """Of parameters and buffers."""
    inputs: int
    outputs: int
    convolves: bool
    """Whether it calls for convolutions, whose libraries take workspaces."""


def peak_bytes(task: Task) -> int:
    """Return the greatest number of bytes alive at once in one eager call: state, inputs and results not yet freed.

    Workspaces of libraries and what one operator allocates inside itself are not seen.
    """
    return sizes(task).peak


def sizes(task: Task) -> Sizes:
    """Return what one eager call takes. Raises TaskError where the program does not run on the meta device."""
    import torch
    from torch.utils._pytree import tree_leaves

    reference = load(task)
    model, inputs = reference.make_meta_model(), reference.make_inputs(0, "meta")
    ledger, state = _ledger(), [*model.parameters(), *model.buffers()]
    given = [value for value in tree_leaves(inputs) if isinstance(value, torch.Tensor)]
    for tensor in [*state, *given]:
        ledger.note(tensor)
    with torch.no_grad(), torch.device("meta"), ledger:
        result = call(task.path, "forward", lambda: model(*inputs))
    outputs = [value for value in tree_leaves(result) if isinstance(value, torch.Tensor)]
    return Sizes(int(ledger.peak), _bytes(state), _bytes(given), _bytes(outputs), ledger.convolves)


def _bytes(tensors: Iterable[Any]) -> int:
    """Return the bytes of the elements of tensors, those of one that comes twice once."""
    return sum(tensor.numel() * tensor.element_size() for tensor in {id(tensor): tensor for tensor in tensors}.values())


def _ledger() -> Any:
    """Return a mode that counts the bytes of storages from their making to their end."""
    import torch
    from torch.utils._pytree import tree_leaves

    from warpwright.tasks.mode import Mode

    alive: dict[int, int] = {}

    class Ledger(Mode):  # type: ignore[no-untyped-call]
        peak, convolves = 0, False

        def note(self, tensor: torch.Tensor) -> None:
            storage = tensor.untyped_storage()
            key = storage._cdata
            if key not in alive:
                alive[key] = storage.nbytes()
                weakref.finalize(storage, alive.pop, key, None)
                self.peak = max(self.peak, sum(alive.values()))

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            self.convolves |= "convolution" in str(func)
            for leaf in tree_leaves(result):
                if isinstance(leaf, torch.Tensor):
                    self.note(leaf)
            return result

    return Ledger()  # type: ignore[no-untyped-call]
