"""Well-scaled values for a network that was never trained, so that its outputs depend on its inputs and a program can be judged by them.

Fresh networks often end in zeros: a last gain of 0, layer scales of 1e-6, signals that die away over the depth. Parameters are drawn anew, then
each layer is scaled to outputs of variance 1, layer by layer in the order of the calls (Mishkin and Matas 2016, LSUV).
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch

from warpwright.tasks.modules.copying import copied
from warpwright.tasks.modules.part_modes import give_modes, modes_of

SEED = 0
LEAST, MOST = 1e-3, 1e3
"""Factors beyond these are not applied: the layer's output hardly depends on its weight."""


def calibrated(model: torch.nn.Module, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> torch.nn.Module:
    """Return a copy of `model` with drawn parameters. torch's generator is left as it was found."""
    twin = copied(model)
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(SEED)
        for part in twin.modules():
            for name, parameter in part.named_parameters(recurse=False):
                _draw(name, parameter)
        with _scaling(twin):
            args, kwargs = _copied((tuple(inputs), dict(keywords)))
            twin.eval()(*args, **kwargs)
        give_modes(twin, modes_of(model))
    return twin


def _copied(value: Any) -> Any:
    """Return a copy of whatever can be saved: caches hold tensors with a history, which have no deepcopy."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=False)


def _draw(name: str, parameter: torch.Tensor) -> None:
    """Draw a parameter: matrices and filters by their fan-in, gains about 1, biases small."""
    if not parameter.is_floating_point():
        return
    if parameter.dim() >= 2:
        parameter.normal_(0.0, max(1, parameter[0].numel()) ** -0.5)
    elif "bias" in name or "beta" in name:
        parameter.normal_(0.0, 0.1)
    else:
        parameter.uniform_(0.5, 1.5)


@contextlib.contextmanager
def _scaling(model: torch.nn.Module) -> Iterator[None]:
    """Inside, each layer with a matrix or filters is scaled to outputs of variance 1 when it is first called."""
    done: set[int] = set()

    def scale(part: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        weight = getattr(part, "weight", None)
        if not isinstance(weight, torch.Tensor) or weight.dim() < 2 or id(weight) in done or not isinstance(output, torch.Tensor):
            return None
        done.add(id(weight))
        spread = float(output.detach().float().std()) if output.numel() > 1 else 1.0
        if not LEAST < spread < MOST:
            return None
        weight.data.div_(spread)  # a training step's forward runs with gradients, in which no parameter may be written
        return part.forward(*args, **kwargs)

    hooks = [part.register_forward_hook(scale, with_kwargs=True) for part in model.modules() if not list(part.children())]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
