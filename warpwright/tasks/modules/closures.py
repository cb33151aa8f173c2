"""Functions that a module holds and that hold parts of it: `copy.deepcopy` takes functions over as they are, and a copy would call the original's."""

from __future__ import annotations

import copy
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


class Functions:
    """The functions of a module that reach its parts: by closures, by defaults, in lists and by other functions.

    Their twins stand in `memo` for deepcopy; `fill`, when the module was copied, gives them the copy's parts.
    """

    def __init__(self, model: torch.nn.Module, memo: dict[int, Any]) -> None:
        self._memo = memo
        self._own = {id(item) for part in model.modules() for item in (part, *part._parameters.values(), *part._buffers.values()) if item is not None}
        self._cells: dict[int, tuple[types.CellType, types.CellType]] = {}
        self._twins: list[tuple[types.FunctionType, types.FunctionType]] = []
        for part in model.modules():
            for value in vars(part).values():
                self._visit(value, set())

    def _visit(self, value: Any, seen: set[int]) -> None:
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, types.FunctionType) and id(value) not in self._memo and self._reaches(value, set()):
            self._begin(value)
        for inner in _held(value):
            self._visit(inner, seen)

    def _reaches(self, value: Any, seen: set[int]) -> bool:
        if id(value) in self._own:
            return True
        if id(value) in seen:
            return False
        seen.add(id(value))
        return any(self._reaches(inner, seen) for inner in _held(value))

    def _begin(self, function: types.FunctionType) -> None:
        for cell in function.__closure__ or ():
            self._cells.setdefault(id(cell), (cell, types.CellType()))  # one that several functions share stays shared
        cells = tuple(self._cells[id(cell)][1] for cell in function.__closure__ or ())
        twin = types.FunctionType(function.__code__, function.__globals__, function.__name__, None, cells)
        for name in ("__qualname__", "__module__", "__doc__", "__annotations__"):
            setattr(twin, name, getattr(function, name))
        self._twins.append((function, twin))
        self._memo[id(function)] = twin

    def _copied(self, value: Any) -> Any:
        return copy.deepcopy(value, self._memo) if self._reaches(value, set()) else value

    def fill(self) -> None:
        """Give the twins what they hold: copies of parts, all else as it is."""
        for cell, twin in self._cells.values():
            for content in _contents(cell):
                twin.cell_contents = self._copied(content)
        for function, other in self._twins:
            defaults, named = function.__defaults__, function.__kwdefaults__
            other.__defaults__ = tuple(map(self._copied, defaults)) if defaults is not None else None
            other.__kwdefaults__ = {name: self._copied(value) for name, value in named.items()} if named is not None else None  # type: ignore[assignment]
            other.__dict__.update((name, self._copied(value)) for name, value in function.__dict__.items())


def _contents(cell: types.CellType) -> Iterator[Any]:
    try:
        yield cell.cell_contents
    except ValueError:  # nothing was put in yet
        return


def _held(value: Any) -> list[Any]:
    """Return what a function or a plain container holds."""
    if isinstance(value, types.FunctionType):
        cells = [content for cell in value.__closure__ or () for content in _contents(cell)]
        return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values(), *value.__dict__.values()]
    if isinstance(value, types.MethodType):
        return [value.__self__, value.__func__]
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple | set) else []
