"""Results of a class of their own (a dataclass, transformers' ModelOutput), taken apart without running what the class defines.

A class is read if it and its metaclass are those of an installed package (transformers gives its ModelOutput a metaclass since 5.24), or if its
namespace holds nothing but what `dataclass` writes: then what was verified is what an attribute gives whoever uses the result. The items are read
from the object's own storage, so that they are there when the call ends, whatever the class would answer; a class that is forged gains no time by it.

So are objects of an installed package that are plain Python (transformers' DynamicCache, a distribution of torch): what `copy` would take of them,
their `__dict__`. What is in it and no tensor, number or container of these (a dtype, a class, a word) is part of the name under which the
class is compared: `DynamicLayer(dtype=torch.float32, device=cpu)`.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from warpwright.errors import TaskError

PLAIN = frozenset(
    ("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__annotate__", "__annotate_func__",
     "__annotations_cache__", "__dataclass_fields__", "__dataclass_params__", "__init__", "__repr__", "__eq__", "__hash__", "__lt__", "__le__",
     "__gt__", "__ge__", "__match_args__", "__replace__", "__setattr__", "__delattr__", "__slots__", "__getstate__", "__setstate__",
     "__post_init__", "__firstlineno__", "__static_attributes__"),
)  # fmt: skip
"""What the namespace of a dataclass without methods may hold, beside its fields."""

DEFAULTS = (type(None), bool, int, float, str, types.MemberDescriptorType)
"""Kinds of what a field's name may stand for in the class: a default that is not computed, or the place of a slot."""

PLAIN_BYTES = object.__basicsize__ + 2 * tuple.__itemsize__
"""Of an object of a class written in Python: its dictionary and its weak references. One of an extension has more, which nobody sees."""

HEAP_TYPE = 1 << 9
"""The flag of classes that a class statement made."""

REDUCED = ("__reduce__", "__reduce_ex__", "__getstate__", "__setstate__", "__copy__", "__deepcopy__", "__getnewargs__", "__getnewargs_ex__")
"""Methods by which a class says itself what it consists of: then its `__dict__` is not all, or not what is copied."""

MODULE_OF, NAME_OF = (type.__dict__[name].__get__ for name in ("__module__", "__qualname__"))
"""What `type` itself says of a class."""

Taken = tuple[str, dict[str, Any]]


def installed_folders() -> tuple[str, ...]:
    """Return the folders of installed packages and of the standard library."""
    paths = sysconfig.get_paths()
    named = [paths[name] for name in ("purelib", "platlib", "stdlib", "platstdlib")]
    named += [path for path in sys.path if os.path.basename(path.rstrip("/")) in ("site-packages", "dist-packages")]
    return tuple(sorted({os.path.realpath(path) + os.sep for path in named}))


def taker() -> Callable[[Any], Taken | str]:
    """Return the function that takes an object apart: the name of its class and its items, or why it cannot be read."""
    forms: dict[type, tuple[str, tuple[str, ...]]] = {}
    folders, modules, attributes, items = installed_folders(), sys.modules, object.__getattribute__, dict.items
    bases_of, namespace_of = type.mro, type.__dict__["__dict__"].__get__
    flags_of, size_of = type.__dict__["__flags__"].__get__, type.__dict__["__basicsize__"].__get__

    def is_installed(kind: type) -> bool:
        module = modules.get(namespace_of(kind).get("__module__"))
        file = getattr(module, "__file__", None)
        return module is not None and vars(module).get(kind.__name__) is kind and type(file) is str and os.path.realpath(file).startswith(folders)

    def is_plain(kind: type) -> bool:
        inside = namespace_of(kind)
        fields = inside.get("__dataclass_fields__")
        if type(kind) is not type or type(fields) is not dict or not inside.keys() <= PLAIN | fields.keys():
            return False
        return all(type(inside[name]) in DEFAULTS for name in fields if name in inside)

    def form_of(kind: type) -> tuple[str, tuple[str, ...]]:
        bases = bases_of(kind) if all(base in (type, object) or is_installed(base) for base in bases_of(type(kind))) else []
        if not all(base in (object, dict, OrderedDict) or is_installed(base) or is_plain(base) for base in bases) or not bases:
            return "", ()
        fields = next((namespace_of(base)["__dataclass_fields__"] for base in bases if "__dataclass_fields__" in namespace_of(base)), None)
        if fields is None:
            plain = kind.__dictoffset__ and all(base is object or (is_installed(base) and is_python(base)) for base in bases)
            return ("state" if plain else "", ())
        return ("items", ()) if dict in bases else ("fields", tuple(name for name, field in fields.items() if field._field_type.name == "_FIELD"))

    def is_python(kind: type) -> bool:
        inside, slot = namespace_of(kind), types.MemberDescriptorType
        whole = flags_of(kind) & HEAP_TYPE and size_of(kind) <= PLAIN_BYTES and not any(type(value) is slot for value in inside.values())
        return bool(whole) and not any(name in inside for name in REDUCED)

    def take(value: Any) -> Taken | str:
        kind = type(value)
        if kind not in forms:
            forms[kind] = form_of(kind)
        form, names = forms[kind]
        if not form and kind.__module__ == "builtins":
            return f"a {kind.__qualname__}"
        if not form:
            return f"a {kind.__module__}.{kind.__qualname__}, which is no dataclass without methods and no plain object of an installed package"
        if form == "state":
            return _state(kind.__qualname__, attributes(value, "__dict__"), modules["torch"])
        if form == "fields":
            held = _held(value, names, attributes, namespace_of(kind))
            return f"a {kind.__qualname__} with a field that is not set" if held is None else (kind.__qualname__, held)
        members = dict(items(value))
        inside = attributes(value, "__dict__")
        if not all(type(name) is str and inside.get(name) is item for name, item in members.items()):
            return f"a {kind.__qualname__} whose attributes are not its items"
        return kind.__qualname__, members

    return take


apart = taker()
"""Takes an object apart. Made before any candidate is imported: what it needs of Python is taken now."""


def _held(value: Any, names: tuple[str, ...], attributes: Callable[[Any, str], Any], inside: Any) -> dict[str, Any] | None:
    """Return the fields of a dataclass's object from its own dictionary or slots; None where one is missing."""
    try:
        if type(inside.get(names[0] if names else "")) is types.MemberDescriptorType:
            return {name: inside[name].__get__(value) for name in names}
        own = attributes(value, "__dict__")
        return {name: own[name] for name in names}
    except (KeyError, AttributeError):
        return None


def _state(name: str, held: dict[str, Any], torch: Any) -> Taken:
    """Return the items of a plain object by its dictionary, and its name with what is neither tensors nor numbers."""
    items: dict[str, Any] = {}
    said = []
    for key, item in dict.items(held):
        word = constant(item, torch)
        if word:
            said.append(f"{key}={word}")
        elif type(item) is dict and item and all(type(inner) is int for inner in item):
            said.append(f"{key}=by number")
            items[key] = {str(inner): value for inner, value in item.items()}
        else:
            items[key] = item
    return f"{name}({', '.join(said)})" if said else name, items


def constant(item: Any, torch: Any) -> str:
    """Return a word for what a plain object holds beside tensors and numbers, "" for anything else. Of a device its kind: no copy is on another."""
    kind = type(item)
    if kind is str:
        return repr(item)
    if kind is torch.dtype or kind is torch.Size:
        return str(item)
    if kind is torch.device:
        return str(item.type)
    if not isinstance(item, type):
        return ""
    module, name = MODULE_OF(item), NAME_OF(item)  # a metaclass may answer one thing to one who asks and another to the next
    if type(module) is not str or type(name) is not str:
        return ""
    there: object = getattr(sys.modules.get(module), name, None)
    return f"{module}.{name}" if there is item else ""  # a class that says to be another is none of these


class Named(dict[str, Any]):
    """The items of an object of a class of its own, as a worker described it."""

    def __init__(self, kind: str, items: dict[str, Any]) -> None:
        super().__init__(items)
        self.kind = kind


def kinds_of(value: Any, path: str = "out", around: tuple[int, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield the classes of a nested output's parts that are none of Python's own, with their places. Named tuples count as tuples. `around`: what
    the value is in, by identity. TaskError for what holds itself."""
    around = inside_of(value, path, around)
    children: Any = {}
    if isinstance(value, Named):
        yield path, value.kind
        children = value
    elif isinstance(value, dict):
        if type(value) not in (dict, OrderedDict):
            yield path, type(value).__qualname__
        children = value
    elif isinstance(value, list | tuple):
        children = dict(enumerate(value))
    elif hasattr(type(value), "__dataclass_fields__"):
        yield path, type(value).__qualname__
        children = fields_of(value)
    elif (inside := state_of(value)) is not None:
        yield path, inside.kind
        children = inside
    for name, item in children.items():
        yield from kinds_of(item, f"{path}[{name!r}]", around)


def inside_of(value: Any, path: str, around: tuple[int, ...]) -> tuple[int, ...]:
    """Return the identities of a value and of what it is in. TaskError where it is in itself."""
    if id(value) in around:
        hint = "return its tensors, or an object without that reference"
        raise TaskError(f"expected outputs that end, saw a {type(value).__name__} that holds itself, at {path}", hint)
    return (*around, id(value))


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass's object that we trust."""
    import dataclasses

    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def state_of(value: Any) -> Named | None:
    """Return what a plain object of an installed package holds; None for tensors, numbers and anything else."""
    if value is None or isinstance(value, bool | int | float | str):
        return None
    taken = apart(value)
    return None if isinstance(taken, str) else Named(*taken)
