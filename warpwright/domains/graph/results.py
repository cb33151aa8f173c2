"""What a call returns: named tuples, dataclasses and dictionaries of tensors, taken apart for the graph and written as Python."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpwright.errors import CaptureError


@dataclass(frozen=True)
class Built:
    """A result of a class of its own. `parts` are the arguments of its constructor, with indices into the flat results."""

    kind: type
    form: str
    """named (keywords), fields (positional), sequence (one tuple) or items (one list of pairs)."""
    parts: tuple[tuple[Any, Any], ...]

    def make(self, parts: Sequence[Any]) -> Any:
        """Return an object of the class with these parts."""
        names = [name for name, _ in self.parts]
        if self.form == "named":
            return self.kind(**dict(zip(names, parts, strict=True)))
        if self.form == "fields":
            return self.kind(*parts)
        return self.kind(parts) if self.form == "sequence" else self.kind(list(zip(names, parts, strict=True)))

    def text(self, parts: Sequence[str]) -> str:
        """Return the Python text of an object with these parts."""
        names = [name for name, _ in self.parts]
        joined = ", ".join(parts)
        if self.form == "named":
            joined = ", ".join(f"{name}={part}" for name, part in zip(names, parts, strict=True))
        if self.form == "sequence":
            joined = f"({joined},)"
        if self.form == "items":
            joined = "[" + ", ".join(f"({name!r}, {part})" for name, part in zip(names, parts, strict=True)) + "]"
        return f"{self.name}({joined})"

    @property
    def own(self) -> bool:
        """Is the class defined in the task's own text?"""
        return self.kind.__module__.startswith("warpwright_task_")

    @property
    def name(self) -> str:
        """The name of the class in the generated file."""
        if self.kind.__module__ == "torch.return_types":
            return f"torch.return_types.{self.kind.__name__}"
        return self.kind.__name__ if self.own else f"_{self.kind.__name__}"

    @property
    def imported(self) -> str:
        """The line that imports the class, or ""."""
        if self.own or self.kind.__module__ == "torch.return_types":
            return ""
        return f"from {self.kind.__module__} import {self.kind.__name__} as {self.name}"


def flatten(item: Any, leaves: list[Any]) -> Any:
    """Append the tensors and plain values of a result to `leaves`, and return its structure with their indices. CaptureError for other objects."""
    if item is None or isinstance(item, torch.Tensor | bool | int | float | str | torch.SymInt):
        leaves.append(item)
        return len(leaves) - 1
    kind = type(item)
    if kind in (tuple, list):
        return kind(flatten(child, leaves) for child in item)
    if kind is dict:
        return {name: flatten(child, leaves) for name, child in item.items()}
    form, parts = _parts(item)
    if "." in kind.__qualname__:
        raise CaptureError(f"the result is a {kind.__qualname__}, a class inside another or a function: define it at the top of its file")
    return Built(kind, form, tuple((name, flatten(child, leaves)) for name, child in parts))


def _parts(item: Any) -> tuple[str, list[tuple[Any, Any]]]:
    """Return how an object of a class of its own is built, and from what."""
    kind = type(item)
    if kind.__module__ == "torch.return_types":
        return "sequence", list(enumerate(item))
    if isinstance(item, tuple) and hasattr(kind, "_fields"):
        return "fields", list(zip(kind._fields, item, strict=True))
    if isinstance(item, dict) and dataclasses.is_dataclass(item):  # transformers' ModelOutput: what is None is no item
        return "named", list(item.items())
    if isinstance(item, OrderedDict):
        return "items", list(item.items())
    if dataclasses.is_dataclass(item) and all(field.init for field in dataclasses.fields(item)):
        return "named", [(field.name, getattr(item, field.name)) for field in dataclasses.fields(item)]
    remedy = "; call the model with use_cache=False" if "Cache" in kind.__name__ else ""
    raise CaptureError(f"the result holds a {kind.__name__}, which is no tensor and not made of tensors alone{remedy}")


def text(structure: Any, leaves: Sequence[str]) -> str:
    """Return the Python text of a structure whose leaves are these texts."""
    if isinstance(structure, int):
        return leaves[structure]
    if isinstance(structure, Built):
        return structure.text([text(child, leaves) for _, child in structure.parts])
    if isinstance(structure, dict):
        return "{" + ", ".join(f"{name!r}: {text(child, leaves)}" for name, child in structure.items()) + "}"
    shown = [text(child, leaves) for child in structure]
    if isinstance(structure, list):
        return "[" + ", ".join(shown) + "]"
    return f"({shown[0]},)" if len(shown) == 1 else f"({', '.join(shown)})"


def nest(structure: Any, leaves: Sequence[Any]) -> Any:
    """Return `structure` with each index replaced by the leaf of that index."""
    if isinstance(structure, Built):
        return structure.make([nest(child, leaves) for _, child in structure.parts])
    if isinstance(structure, dict):
        return {name: nest(item, leaves) for name, item in structure.items()}
    if isinstance(structure, tuple | list):
        return type(structure)(nest(item, leaves) for item in structure)
    return leaves[structure]


def imports(structure: Any) -> list[str]:
    """Return the lines that import the classes of a structure."""
    if isinstance(structure, int):
        return []
    lines, children = [], structure.values() if isinstance(structure, dict) else structure
    if isinstance(structure, Built):
        lines, children = [line for line in (structure.imported,) if line], [child for _, child in structure.parts]
    return list(dict.fromkeys([*lines, *(line for child in children for line in imports(child))]))
