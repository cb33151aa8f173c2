"""What pickle cannot save of a module: functions within functions and lambdas, saved by value, and parts whose parameters are computed.

Python's pickle knows functions by name only. Here the code of one that has no name in its module is written with what it encloses; its globals are
its module's, which is imported when it is read. (transformers hooks such functions into a model at its first call that asks for hidden states.)
A part with parametrizations (weight_norm, spectral_norm, orthogonal, one's own) has a class of its own, which torch makes when the first is
registered and does not pickle; it is made again of the class that the part had before. Reading takes nothing but the standard library and torch, and
the Python version that wrote it.
"""

from __future__ import annotations

import importlib
import marshal
import pickle
import sys
import types
from typing import Any

NAMELESS = ("<locals>", "<lambda>")
TORCHS = "torch.nn.utils.parametrize"
"""The module that such classes are made in."""
OF_TORCH = ("__module__", "__doc__", "__getstate__", "__deepcopy__", "__firstlineno__", "__static_attributes__")
"""What they hold of torch and of Python."""


class Pickler(pickle.Pickler):
    """Pickles as Python does, and local functions of modules that can be imported as well."""

    def reducer_override(self, item: Any) -> Any:
        """Say how an item is made again; NotImplemented leaves it to Python."""
        if item is types.FunctionType or item is types.CellType:  # which their own module does not name
            return getattr, (types, "FunctionType" if item is types.FunctionType else "CellType")
        if isinstance(item, types.FunctionType) and _is_local(item):
            about = {name: getattr(item, name) for name in ("__kwdefaults__", "__qualname__", "__module__")}
            made_of = item.__code__, _Globals(item.__module__), item.__name__, item.__defaults__, item.__closure__
            return types.FunctionType, made_of, (vars(item) or None, about)
        if isinstance(item, types.CodeType):
            return marshal.loads, (marshal.dumps(item),)
        if isinstance(item, types.CellType):
            return types.CellType, (item.cell_contents,)
        if isinstance(item, _Globals):
            return vars, (sys.modules[item.module],)
        if isinstance(item, types.ModuleType):
            return importlib.import_module, (item.__name__,)
        if base := parametrized(item):
            return _builder(), (base, list(item.parametrizations)), vars(item)
        return NotImplemented


def parametrized(item: Any) -> type | None:
    """Return the class that a part of a module had before torch gave it one with computed parameters; None for all else, and where something else
    was put into that class, which would be lost."""
    made = type(item)
    if made.__module__ != TORCHS or made.__name__ != f"Parametrized{made.__mro__[1].__name__}":
        return None
    return made.__mro__[1] if vars(made).keys() <= {*OF_TORCH, *item.parametrizations} else None


def _builder() -> types.FunctionType:
    """Return what makes a part without its attributes, by torch's own two functions; whoever reads it has it by value."""

    def build(base: Any, names: list[str]) -> Any:
        part = base.__new__(base)
        _inject_new_class(part)  # type: ignore[name-defined]  # noqa: F821
        made = type(part)
        made.__getattr__ = Module.__getattr__  # type: ignore[attr-defined,name-defined]  # noqa: F821  # torch asks whether there is a name already
        for name in names:
            _inject_property(part, name)  # type: ignore[name-defined]  # noqa: F821
        del made.__getattr__  # type: ignore[attr-defined]  # the base's own may ask its parts, of which there are none yet
        return part

    found = types.FunctionType(build.__code__, vars(sys.modules[TORCHS]), build.__name__)
    found.__module__, found.__qualname__ = TORCHS, build.__qualname__
    return found


class _Globals:
    def __init__(self, module: str) -> None:
        self.module = module


def _is_local(function: types.FunctionType) -> bool:
    """Whether a function has no name in its module, which another process can import."""
    module = sys.modules.get(function.__module__)
    if module is None or function.__module__ in ("__main__", "__mp_main__") or function.__globals__ is not vars(module):
        return False
    return any(part in function.__qualname__ for part in NAMELESS)
