"""The decorator that marks a function as a task; taskfile.py reads it from the file's text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from warpwright.errors import TaskError

F = TypeVar("F", bound=Callable[..., Any])


def task(function: F | None = None, *, inputs: Any = (), special_values: bool = False) -> Any:
    """Mark a function as a task: `@warpwright.task(inputs=make_inputs)`.

    `inputs` is a function that returns the arguments, or a tuple of them; the expression is evaluated anew for every set of inputs, so
    write `inputs=(torch.randn(8, 8),)` or a function to have fresh values. `special_values=True` declares that Inf and NaN inputs are
    defined. The function itself is returned unchanged.
    """
    if function is not None:
        return function
    if not callable(inputs) and not isinstance(inputs, tuple | list):
        raise TaskError(f"expected inputs= a function or a tuple, saw {type(inputs).__name__}", "write @warpwright.task(inputs=(x, y))")
    return lambda decorated: decorated
