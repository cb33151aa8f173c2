"""What a call returns: named tuples, dataclasses, plain objects and dictionaries of tensors, taken apart for the graph and written as Python."""

from __future__ import annotations

import dataclasses
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any

import torch

from warpwright.errors import CaptureError
from warpwright.workers.tensors.objects import constant, state_of

RESTORED = """def _restored(kind, /, **held):
    \"\"\"Return an object of `kind` that holds this, as copy makes it: without its constructor.\"\"\"
    made = object.__new__(kind)
    made.__dict__.update(held)
    return made

"""
"""What a generated file makes plain objects with."""


@dataclass(frozen=True)
class Constant:
    """A dtype, a class or a size in a plain object."""

    value: Any

    @property
    def written(self) -> str:
        """Its Python text."""
        return f"_{self.value.__name__}" if isinstance(self.value, type) else str(self.value)

    @property
    def imported(self) -> str:
        """The line that imports it, or ""."""
        return f"from {self.value.__module__} import {self.value.__name__} as {self.written}" if isinstance(self.value, type) else ""


@dataclass(frozen=True)
class DeviceOf:
    """The device of a plain object's tensor, which is where the call runs: the graph was read on the meta device."""

    leaf: int


@dataclass(frozen=True)
class Built:
    """A result of a class of its own. `parts` are the arguments of its constructor, with indices into the flat results."""

    kind: type
    form: str
    """named (keywords), fields (positional), sequence (one tuple), items (one list of pairs) or state (a plain object's attributes)."""
    parts: tuple[tuple[Any, Any], ...]

    def make(self, parts: Sequence[Any]) -> Any:
        """Return an object of the class with these parts."""
        names = [name for name, _ in self.parts]
        if self.form == "named":
            return self.kind(**dict(zip(names, parts, strict=True)))
        if self.form == "fields":
            return self.kind(*parts)
        if self.form == "state":
            return _restored(self.kind, **dict(zip(names, parts, strict=True)))
        return self.kind(parts) if self.form == "sequence" else self.kind(list(zip(names, parts, strict=True)))

    def text(self, parts: Sequence[str]) -> str:
        """Return the Python text of an object with these parts."""
        names = [name for name, _ in self.parts]
        joined = ", ".join(parts)
        if self.form in ("named", "state"):
            joined = ", ".join(f"{name}={part}" for name, part in zip(names, parts, strict=True))
        if self.form == "state":
            return f"_restored({self.name}, {joined})"
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


Seen = dict[int, tuple[Any, Any]]
"""By the identity of each object that a result holds: the object, so that no other has its identity, and its structure, None until that is read."""


def flatten(item: Any, leaves: list[Any], seen: Seen | None = None) -> Any:
    """Append the tensors and plain values of a result to `leaves`, and return its structure with their indices. What is one object in two places is
    one in the structure too. CaptureError for other objects, and for what holds itself."""
    if item is None or isinstance(item, torch.Tensor | bool | int | float | str | torch.SymInt):
        leaves.append(item)
        return len(leaves) - 1
    seen = {} if seen is None else seen
    if id(item) in seen:
        structure = seen[id(item)][1]
        if structure is None:
            hint = "return its tensors, or an object without that reference"
            raise CaptureError(f"the result holds a {type(item).__name__} that holds itself", hint)
        return structure
    seen[id(item)] = item, None
    structure = _structure(item, leaves, seen)
    if isinstance(item, tuple):  # cannot be changed: two equal ones are as good as one
        del seen[id(item)]
    else:
        seen[id(item)] = item, structure
    return structure


def _structure(item: Any, leaves: list[Any], seen: Seen) -> Any:
    """Return the structure of a container or an object."""
    kind = type(item)
    if kind in (tuple, list):
        return kind(flatten(child, leaves, seen) for child in item)
    if kind is dict:
        return {name: flatten(child, leaves, seen) for name, child in item.items()}
    form, parts = _parts(item)
    if "." in kind.__qualname__:
        raise CaptureError(f"the result is a {kind.__qualname__}, a class inside another or a function: define it at the top of its file")
    if form == "state":
        return Built(kind, form, _state(parts, leaves, seen))
    return Built(kind, form, tuple((name, flatten(child, leaves, seen)) for name, child in parts))


def _state(parts: list[tuple[Any, Any]], leaves: list[Any], seen: Seen) -> tuple[tuple[Any, Any], ...]:
    """Flatten the attributes of a plain object: those that `flatten` does not know are constants, and a device is that of its first tensor."""
    made: dict[str, Any] = {}
    for name, child in parts:
        if isinstance(child, torch.device):
            continue
        made[name] = flatten(child, leaves, seen) if isinstance(child, str) or not constant(child, torch) else Constant(child)
    tensor = next((place for child in made.values() for place in _places(child) if isinstance(leaves[place], torch.Tensor)), None)
    if tensor is None and len(made) < len(parts):
        raise CaptureError("the result holds an object with a device, but without a tensor that is on it")
    return tuple((name, made.get(name, DeviceOf(tensor or 0))) for name, _ in parts)


def _children(structure: Any) -> list[Any]:
    """Return the structures that a structure is made of."""
    if isinstance(structure, Built):
        return [child for _, child in structure.parts]
    if isinstance(structure, dict):
        return list(structure.values())
    return list(structure) if isinstance(structure, tuple | list) else []


def _places(structure: Any) -> Iterator[int]:
    """Yield the indices of a structure's leaves."""
    if isinstance(structure, int):
        yield structure
    for child in _children(structure):
        yield from _places(child)


def _restored(kind: type, /, **held: Any) -> Any:
    made: Any = object.__new__(kind)
    made.__dict__.update(held)
    return made


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
    if state_of(item) is not None and all(name.isidentifier() and not iskeyword(name) for name in vars(item)):
        return "state", list(vars(item).items())
    remedy = "; call the model with use_cache=False" if "Cache" in kind.__name__ else ""
    raise CaptureError(f"the result holds a {kind.__name__}, which is no tensor and not made of tensors alone{remedy}")


def text(structure: Any, leaves: Sequence[str]) -> str:
    """Return the Python text of a structure whose leaves are these texts: `(_same0 := [y]), _same0` of one list in two places."""
    counts: Counter[int] = Counter()
    _count(structure, counts)
    return _text(structure, leaves, {at: f"_same{number}" for number, at in enumerate(at for at, count in counts.items() if count > 1)}, set())


def _count(structure: Any, counts: Counter[int]) -> None:
    """Count the places of each list, dictionary and object in a structure."""
    if isinstance(structure, list | dict | Built):
        counts[id(structure)] += 1
    if counts[id(structure)] < 2:
        for child in _children(structure):
            _count(child, counts)


def _text(structure: Any, leaves: Sequence[str], names: Mapping[int, str], written: set[int]) -> str:
    """Return the text of a structure; what has a name is written where it is first, and named after that."""
    name = names.get(id(structure))
    if name is None:
        return _written(structure, leaves, names, written)
    if id(structure) in written:
        return name
    written.add(id(structure))
    return f"({name} := {_written(structure, leaves, names, written)})"


def _written(structure: Any, leaves: Sequence[str], names: Mapping[int, str], written: set[int]) -> str:
    if isinstance(structure, int):
        return leaves[structure]
    if isinstance(structure, Constant):
        return structure.written
    if isinstance(structure, DeviceOf):
        return f"{leaves[structure.leaf]}.device"
    shown = [_text(child, leaves, names, written) for child in _children(structure)]
    if isinstance(structure, Built):
        return structure.text(shown)
    if isinstance(structure, dict):
        return "{" + ", ".join(f"{name!r}: {child}" for name, child in zip(structure, shown, strict=True)) + "}"
    if isinstance(structure, list):
        return "[" + ", ".join(shown) + "]"
    return f"({shown[0]},)" if len(shown) == 1 else f"({', '.join(shown)})"


def nest(structure: Any, leaves: Sequence[Any], made: dict[int, Any] | None = None) -> Any:
    """Return `structure` with each index replaced by the leaf of that index; what is one object in it, as `made` knows, stays one."""
    if isinstance(structure, Constant):
        return structure.value
    if isinstance(structure, DeviceOf):
        return leaves[structure.leaf].device
    if isinstance(structure, int):
        return leaves[structure]
    made = {} if made is None else made
    if id(structure) not in made:
        parts = [nest(child, leaves, made) for child in _children(structure)]
        if isinstance(structure, Built):
            made[id(structure)] = structure.make(parts)
        else:
            made[id(structure)] = dict(zip(structure, parts, strict=True)) if isinstance(structure, dict) else type(structure)(parts)
    return made[id(structure)]


def imports(structure: Any) -> list[str]:
    """Return the lines that import the classes of a structure."""
    if isinstance(structure, Constant):
        return [structure.imported] if structure.imported else []
    lines = []
    if isinstance(structure, Built):
        lines = [line for line in (structure.imported, RESTORED if structure.form == "state" else "") if line]
    return list(dict.fromkeys([*lines, *(line for child in _children(structure) for line in imports(child))]))
