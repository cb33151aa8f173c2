"""Functions within functions, and lambdas, saved by value: a module that keeps one as a hook or an attribute can be saved all the same.

Python's pickle knows functions by name only. Here the code of one that has no name in its module is written with what it encloses; its globals are
its module's, which is imported when it is read. (transformers hooks such functions into a model at its first call that asks for hidden states.)
Reading takes nothing but the standard library, and the Python version that wrote it.
"""

from __future__ import annotations

import importlib
import marshal
import pickle
import sys
import types
from typing import Any

NAMELESS = ("<locals>", "<lambda>")


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
        return NotImplemented


class _Globals:
    def __init__(self, module: str) -> None:
        self.module = module


def _is_local(function: types.FunctionType) -> bool:
    """Whether a function has no name in its module, which another process can import."""
    module = sys.modules.get(function.__module__)
    if module is None or function.__module__ in ("__main__", "__mp_main__") or function.__globals__ is not vars(module):
        return False
    return any(part in function.__qualname__ for part in NAMELESS)
