"""Results of a class of their own (a dataclass, transformers' ModelOutput), taken apart without running what the class defines.

A class is read if it is that of an installed package, or if its namespace holds nothing but what `dataclass` writes: then what was verified is
what an attribute gives whoever uses the result. The items are read from the object's own storage, so that they are there when the call ends,
whatever the class would answer; a class that is forged gains no time by it.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

PLAIN = frozenset(
    ("__module__", "__qualname__", "__doc__", "__dict__", "__weakref__", "__annotations__", "__annotate__", "__annotate_func__",
     "__annotations_cache__", "__dataclass_fields__", "__dataclass_params__", "__init__", "__repr__", "__eq__", "__hash__", "__lt__", "__le__",
     "__gt__", "__ge__", "__match_args__", "__replace__", "__setattr__", "__delattr__", "__slots__", "__getstate__", "__setstate__",
     "__post_init__", "__firstlineno__", "__static_attributes__"),
)  # fmt: skip
"""What the namespace of a dataclass without methods may hold, beside its fields."""

DEFAULTS = (type(None), bool, int, float, str, types.MemberDescriptorType)
"""Kinds of what a field's name may stand for in the class: a default that is not computed, or the place of a slot."""

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
        bases = bases_of(kind) if type(kind) is type else []
        if not all(base in (object, dict, OrderedDict) or is_installed(base) or is_plain(base) for base in bases) or not bases:
            return "", ()
        fields = next((namespace_of(base)["__dataclass_fields__"] for base in bases if "__dataclass_fields__" in namespace_of(base)), None)
        if fields is None:
            return "", ()
        return ("items", ()) if dict in bases else ("fields", tuple(name for name, field in fields.items() if field._field_type.name == "_FIELD"))

    def take(value: Any) -> Taken | str:
        kind = type(value)
        if kind not in forms:
            forms[kind] = form_of(kind)
        form, names = forms[kind]
        if not form and kind.__module__ == "builtins":
            return f"a {kind.__qualname__}"
        if not form:
            return f"a {kind.__module__}.{kind.__qualname__}, which is no dataclass without methods and in no installed package"
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


class Named(dict[str, Any]):
    """The items of an object of a class of its own, as a worker described it."""

    def __init__(self, kind: str, items: dict[str, Any]) -> None:
        super().__init__(items)
        self.kind = kind


def kinds_of(value: Any, path: str = "out") -> Iterator[tuple[str, str]]:
    """Yield the classes of a nested output's parts that are none of Python's own, with their places. Named tuples count as tuples."""
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
    for name, item in children.items():
        yield from kinds_of(item, f"{path}[{name!r}]")


def fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass's object that we trust."""
    import dataclasses

    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
