"""Questions to many tensors in one call (tensors.cpp): are they as they were, where they were, and at their versions?

A recorded call is replayed only where its parameters lie as they did and its edges are as they were. HGT's layer on fb15k's graph has 481 parameters
and 474 edge tensors; to ask them from Python takes a host longer than the call's kernels take an H200. The library is built by the system's C++
compiler from torch's headers, about ten seconds in a thread of its own, once for each torch; until it is there, and where it cannot be, Python asks.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sysconfig
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from warpwright.errors import UsageError
from warpwright.native import BuildError, build

_READY: list[ctypes.PyDLL] = []


@functools.cache
def _building() -> threading.Thread:
    thread = threading.Thread(target=_build, name="warpwright tensors", daemon=True)
    thread.start()
    return thread


def _build() -> None:
    with contextlib.suppress(BuildError, UsageError, OSError, AttributeError):
        made = loaded()
        if right(made):
            _READY.append(made)


def loaded() -> ctypes.PyDLL:
    """Return the library, built if it has to be."""
    torch_folder, python = Path(torch.__file__).parent, sysconfig.get_paths()["include"]
    includes = torch_folder / "include", torch_folder / "include" / "torch" / "csrc" / "api" / "include", python
    flags = ["-O1", "-std=c++20", "-shared", "-fPIC", *(f"-I{folder}" for folder in includes), f"-L{torch_folder / 'lib'}"]
    defines = [f"FOR_TORCH={torch.__version__}", f"_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    path = build(Path(__file__).with_suffix(".cpp").read_text(), defines, [*flags, "-Wl,--no-as-needed", "-lc10", "-ltorch_cpu", "-ltorch_python"])
    library = ctypes.PyDLL(str(path))
    library.remember.restype, library.remember.argtypes = ctypes.c_void_p, [ctypes.py_object]
    library.forget.restype, library.forget.argtypes = None, [ctypes.c_void_p]
    library.holds.argtypes = [ctypes.c_void_p, ctypes.py_object]
    library.at_versions.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
    library.hold_values.argtypes = [ctypes.py_object, ctypes.py_object]
    return library


def right(library: ctypes.PyDLL) -> bool:
    """Does the library see each way in which a parameter may become another, and each write?"""
    changes: list[Any] = [
        lambda x: x.data.view(2, 3), lambda x: x.data.as_strided((3, 2), (1, 3)), lambda x: x.data.clone(),
        lambda x: x.data.view(torch.int32).view(torch.float16)[:, :2],
    ]  # fmt: skip
    for change in [*changes, None]:
        given = [torch.nn.Parameter(torch.zeros(3, 2)) for _ in range(3)]
        seen = Seen(library, given)
        others = [given[2].data, torch.nn.Parameter(given[2].data)]  # in the same memory
        if not seen.holds(given) or seen.holds(given[:2]) or any(seen.holds([*given[:2], other]) for other in others):
            return False
        if change is None:
            given[1].requires_grad_(False)
        else:
            given[1].data = change(given[1])
        if seen.holds(given):
            return False
    return sees_writes(library) and sees_values(library)


def sees_writes(library: ctypes.PyDLL) -> bool:
    """Does the library see each way in which edges become others?"""
    changes: list[Any] = [
        lambda x: x.add_(1.0), lambda x: setattr(x, "data", x.data.clone()), lambda x: setattr(x, "data", x.data[:2]),
        lambda x: setattr(x, "data", x.data.view(3, 1)), lambda x: setattr(x, "data", x.data.as_strided((3,), (0,))),
    ]  # fmt: skip
    for change in [*changes, None]:
        one, x = torch.zeros(3), torch.zeros(3)
        versions = Versions(library, [weakref.ref(one), weakref.ref(x)], [one.detach(), x.detach()])
        before = versions.same()
        if change is None:
            del x
        else:
            change(x)
        if not before or versions.same():
            return False
    return True


def sees_values(library: ctypes.PyDLL) -> bool:
    """Does the library see each way in which a module's parameters and modules become others?"""
    one, other, third = object(), object(), object()
    changed: tuple[dict[str, Any], ...] = {"a": one, "b": third}, {"a": one}, {"a": one, "b": other, "c": third}, {"b": other, "a": one}, {}
    held = [hold_values(library, [{}, table, {"d": None}], [(), (one, other), (None,)]) for table in ({"a": one, "b": other}, *changed)]
    return held == [True, False, False, False, False, False]


def hold_values(library: ctypes.PyDLL, tables: list[dict[str, Any]], values: list[tuple[Any, ...]]) -> bool:
    """Have these dictionaries the very values that are beside them, in their order?"""
    return bool(library.hold_values(tables, values))


class Seen:
    """What tensors were. They are not kept alive."""

    def __init__(self, library: ctypes.PyDLL, tensors: Sequence[torch.Tensor]) -> None:
        self.library, self.memory = library, library.remember(list(tensors))
        if self.memory is not None:
            weakref.finalize(self, library.forget, self.memory)

    def holds(self, tensors: Sequence[torch.Tensor]) -> bool:
        """Are these those tensors, as they were: of their shapes, types and strides, at their places, and with or without gradients?"""
        return self.memory is not None and bool(self.library.holds(self.memory, tensors if type(tensors) is list else list(tensors)))


class Versions:
    """Tensors, by weak references, with their versions and places of now, which other names of them have."""

    def __init__(self, library: ctypes.PyDLL, refs: list[Any], others: list[torch.Tensor]) -> None:
        self.library, self.refs, self.others = library, refs, others
        self.versions = (ctypes.c_int64 * len(others))(*(x._version for x in others))

    def same(self) -> bool:
        """Are all there, at these versions and places? `others` may be given back with the first that goes."""
        return len(self.others) == len(self.refs) and bool(self.library.at_versions(self.versions, self.refs, self.others))


def library(like: torch.Tensor) -> ctypes.PyDLL | None:
    """Return the library for tensors on a GPU; None where it is not built yet, cannot be or is wrong. The first call begins to build it."""
    if not like.is_cuda:
        return None
    if not _READY:
        _building()
        return None
    return _READY[0]


def built() -> ctypes.PyDLL | None:
    """Return the library where it has been built for some tensor; None elsewhere."""
    return _READY[0] if _READY else None


def awaited(like: torch.Tensor, seconds: float) -> bool:
    """Wait for the library; return whether it is there. For measurements."""
    if like.is_cuda:
        _building().join(seconds)
    return library(like) is not None
