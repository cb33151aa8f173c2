"""The C++ core of native/, built at first use by the system's compiler, and its functions by ctypes.

ctypes rather than a binding generator: nothing to install, one text for the library, the shims and Python, and a call costs about a microsecond
only where Python calls it; programs reach the core through the interposed MPI functions.
"""

from __future__ import annotations

import ctypes
import functools
import os
import re
import sys
from pathlib import Path

from warpwright import native

FLAGS = ("-O3", "-march=native", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread")
_SOURCES = Path(__file__).parent / "native"
_INCLUDE = re.compile(r'^#include "([\w.]+)"$', re.M)


def text(name: str) -> str:
    """Return a file of native/ with its own headers written into it, each once; a .cu file becomes a string constant."""
    seen: set[str] = set()

    def inlined(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        body = (_SOURCES / name).read_text()
        if name.endswith(".cu"):
            return f'inline constexpr char kernel_source[] = R"kernel({body})kernel";'
        return _INCLUDE.sub(inlined, body.replace("#pragma once\n", ""))

    return _INCLUDE.sub(inlined, f'#include "{name}"')


def find_nvrtc() -> None:
    """Tell the core where NVIDIA's run-time compiler lies, if its registry package is installed (WARPWRIGHT_NVRTC)."""
    found = [path for folder in sys.path if folder for path in sorted(Path(folder, "nvidia").glob("*/lib/libnvrtc.so.*"))]
    if found:
        os.environ.setdefault("WARPWRIGHT_NVRTC", str(found[0]))


@functools.cache
def library() -> ctypes.CDLL:
    """Return the core without any MPI."""
    find_nvrtc()
    return bind(ctypes.CDLL(str(native.build(text("api.cpp"), flags=FLAGS))))


def bind(core: ctypes.CDLL) -> ctypes.CDLL:
    """Return the library with the types of the core's functions (native/api.cpp)."""
    pointer, count, place = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)
    signatures: dict[str, tuple[object, list[object]]] = {
        "dense": (pointer, [count]),
        "strided": (pointer, [count, count, pointer]),
        "concat": (pointer, [count, pointer, pointer]),
        "free": (None, [pointer]),
        "bytes": (count, [pointer]),
        "span": (None, [pointer, place, place]),
        "equal": (ctypes.c_int, [pointer, pointer]),
        "describe": (ctypes.c_size_t, [pointer, ctypes.c_char_p, ctypes.c_size_t]),
        "runs": (count, [pointer, pointer, pointer, count]),
        "copy": (None, [pointer, pointer, pointer, count, count, ctypes.c_int]),
        "copy_anywhere": (ctypes.c_int, [pointer, pointer, pointer, ctypes.c_int]),
        "enqueue": (ctypes.c_int, [pointer, pointer, pointer, ctypes.c_int]),
        "copy_group": (ctypes.c_int, [count, pointer, pointer, pointer, ctypes.c_int]),
        "configure": (ctypes.c_int, [ctypes.c_int, ctypes.c_int, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(core, f"warpwright_{name}")
        function.restype, function.argtypes = result, arguments
    return core
