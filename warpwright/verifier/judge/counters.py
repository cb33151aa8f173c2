"""Counters in a program's state: single integers that a call moves on. May they begin elsewhere than where the program has them?

A mean over all calls is one over many there. But a place in a cache is a counter too, and beyond its end the program raises; on a GPU that is an
assertion that takes the whole process along. So the program is tried first, in a copy that may touch nothing but the CPU.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

from warpwright.tasks.mode import Mode
from warpwright.tasks.modules.copying import copied
from warpwright.verifier.judge.original.answers import as_tensor, leaves_of
from warpwright.verifier.judge.original.reference import MOST_COUNTED, Original, load

TRIED = 2 * MOST_COUNTED
"""Where counters are tried besides where they are drawn: hundreds of calls follow, and no draw may decide whether a cache is long enough."""

Form = list[tuple[str, tuple[int, ...], torch.dtype, bool, bool]]


def is_counter(tensor: torch.Tensor) -> bool:
    """Whether it is a single integer that can count as far as `TRIED`."""
    if tensor.numel() != 1 or tensor.is_floating_point() or tensor.is_complex() or tensor.dtype is torch.bool:
        return False
    return torch.iinfo(tensor.dtype).max > TRIED


def form_of(output: Any) -> Form:
    """Return path, shape and dtype of the outputs, and whether they are finite and anything but zeros."""
    leaves = [(path, as_tensor(value)) for path, value in leaves_of(output)]
    return [(path, tuple(leaf.shape), leaf.dtype, bool(leaf.isfinite().all()), bool(leaf.any())) for path, leaf in leaves]


def movable(original: Original, names: tuple[str, ...], inputs: Any, form: Form) -> tuple[str, ...]:
    """Return those of the counters that may begin elsewhere: all where the program answers in `form` there, else those that only torch reads."""
    if set(names) <= (known := _of_batch_norms(original.model)):
        return names
    try:
        original.counters = names
        answers = _answers_there(original, inputs, form)
    except Exception:  # whatever a program raises: here it says where its counters may not be
        answers = False
    finally:
        original.counters, original.current = (), None
    return names if answers else tuple(name for name in names if name in known)


def _of_batch_norms(model: torch.nn.Module) -> set[str]:
    """Return the counters of torch's own batch norms. They divide by them, at most, and a trial of a large network on a CPU takes minutes."""
    parts = [name for name, part in model.named_modules() if type(part).__module__ == "torch.nn.modules.batchnorm"]
    return {f"{name}.num_batches_tracked".lstrip(".") for name in parts}


def _answers_there(original: Original, inputs: Any, form: Form) -> bool:
    """Whether a copy on the CPU answers in this form in states 0, 1 and 2, and with all counters at `TRIED`."""
    original.set_state(0)
    model = copied(original.model).cpu()
    states = [original.state(which) for which in range(3)]
    states.append({**states[0], **{name: torch.full_like(states[0][name], TRIED) for name in original.counters}})
    for state in states:
        load(model, state, original.extra)
        given = tree_map(lambda item: item.cpu().clone() if isinstance(item, torch.Tensor) else item, inputs)
        with torch.no_grad(), torch.random.fork_rng(devices=[]), _OnCpuAlone():
            output = model(*given)
        if form_of(output) != form:
            return False
    return True


class _OnCpuAlone(Mode):
    """Raises before an operator runs on another device than the CPU."""

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        keywords = keywords or {}
        tensors = [item for item in tree_leaves((arguments, keywords)) if isinstance(item, torch.Tensor)]
        devices = {tensor.device.type for tensor in tensors} | {torch.device(keywords.get("device") or "cpu").type}
        if devices != {"cpu"}:
            raise RuntimeError(f"expected a program that stays on the CPU, saw {function} on {sorted(devices)}")
        return function(*arguments, **keywords)
