"""A plain function as a module, so that it is captured, saved and loaded as one. Saved tasks name this file: it stays where it is."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import torch


class Function(torch.nn.Module):
    """Calls a function. It is saved by the function's name, and by nothing else: whoever loads it imports the function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = inspect.unwrap(function)

    @property
    def importable(self) -> bool:
        """Can another process import the function by its name?"""
        module, name = self._place
        if module in ("__main__", "__mp_main__"):
            return False
        try:
            return _find(module, name) is self.function
        except (ImportError, AttributeError):
            return False

    @property
    def _place(self) -> tuple[str, str]:
        return getattr(self.function, "__module__", "") or "", getattr(self.function, "__qualname__", "")

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function does."""
        return self.function(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "function": self._place}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["function"] = _find(*state["function"])


def _find(module: str, name: str) -> Any:
    """Return the function of that name, without what a decorator put around it."""
    piece_value: Any = importlib.import_module(module)
    for piece in name.split("."):
        piece_value = getattr(piece_value, piece)
    return inspect.unwrap(piece_value)
