"""What a call of `optimize` asks for, checked before anything is written: a mistake is said in the caller's words, and costs no budget."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from warpwright.base import PRECISIONS, Budget
from warpwright.errors import UsageError
from warpwright.search import by_name

CALL = "as in optimize(model, (x,), {'mask': mask})"


def check(budget: Any, search: str, precision: Any, callback: Any) -> None:
    """Raise UsageError for options that no run could have."""
    if not isinstance(budget, str):
        raise UsageError(f"expected a budget as text, saw {budget!r:.40}", f"write '{budget}s' for seconds or '{budget} proposals'")
    Budget.parse(budget)
    by_name(search)
    if precision not in PRECISIONS:
        raise UsageError(f"expected a precision, saw {precision!r:.40}", f"choose one of {', '.join(PRECISIONS)}")
    if callback is not None and not callable(callback):
        raise UsageError(f"expected a callback that can be called with a record, saw a {type(callback).__name__}")


def arguments(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the example arguments; a single tensor is one argument, and a dictionary alone is taken as keywords."""
    if isinstance(args, torch.Tensor):
        args = (args,)
    if isinstance(args, Mapping) and kwargs is None:
        args, kwargs = (), args
    if not isinstance(args, tuple | list):
        raise UsageError(f"expected the example arguments as a tuple, saw a {type(args).__name__}", CALL)
    if not isinstance(kwargs, Mapping | None):
        raise UsageError(f"expected the example arguments that are given by name as a dictionary, saw a {type(kwargs).__name__}", CALL)
    for value in pytree.tree_leaves((args, kwargs)):
        if type(value).__module__.partition(".")[0] == "numpy":
            raise UsageError(f"expected tensors and numbers as example arguments, saw a numpy {type(value).__name__}", "torch.as_tensor(it)")
        if isinstance(value, torch.Tensor) and value.layout != torch.strided:
            layout = str(value.layout).removeprefix("torch.")
            raise UsageError(f"expected dense tensors as example arguments, saw one of {layout}", "give its indices and values, or make it dense")
    return tuple(args), dict(kwargs or {})


def shapes_of(model: torch.nn.Module, shapes: Sequence[Mapping[str, Any]]) -> None:
    """Raise UsageError for declared shapes of arguments that the model does not have."""
    try:
        known = inspect.signature(model.forward).parameters
    except ValueError:  # of a module without Python
        return
    if any(parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL) for parameter in known.values()):
        return
    for name in (name for entry in shapes if isinstance(entry, Mapping) for name in entry if name not in known):
        raise UsageError(f"expected shapes of arguments among {', '.join(known)}, saw {name!r}")


def names(baselines: str | Sequence[str]) -> tuple[str, ...]:
    """Return names of baselines; a text has commas between, as on the command line."""
    return tuple(filter(None, baselines.split(","))) if isinstance(baselines, str) else tuple(baselines)
