"""The C++ core of native/, and the shims of shim/ around it, built at first use by the system's compiler; the core's functions by ctypes.

ctypes rather than a binding generator: nothing to install, one text for the library, the shims and Python, and a call costs about a microsecond
only where Python calls it; programs reach the core through the interposed MPI functions.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from warpwright import native
from warpwright.base import digest

OPTIONAL = {"Pack_c": "WARPWRIGHT_LARGE", "Isendrecv": "WARPWRIGHT_ISENDRECV", "Request_get_status_all": "WARPWRIGHT_MANY_STATUSES"}
"""Functions that not every MPI library has, without their MPI_, and what a shim is compiled with where they are: mpi4py takes what is there for what
works."""
FLAGS = ("-O3", "-march=native", "-std=c++20", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread")
_ALONE = ("-static-libstdc++", "-static-libgcc")
"""A C++ library of its own: a process may hold several, and a shim, loaded first, must neither take another's symbols nor lend its own."""
_SOURCES = Path(__file__).parent / "native"
_FOLDERS = (_SOURCES, Path(__file__).parent / "shim")
_INCLUDE = re.compile(r'^#include "([\w.]+)"$', re.M)


def text(name: str, instead: Mapping[str, str] | None = None) -> str:
    """Return a file of native/ or shim/ with its own headers written into it, each once; a .cu file becomes a string constant.

    `instead` are texts that take the place of headers, by name.
    """
    seen: set[str] = set()

    def inlined(match: re.Match[str]) -> str:
        name = match[1]
        if name in seen:
            return ""
        seen.add(name)
        body = (instead or {}).get(name) or next(path for folder in _FOLDERS if (path := folder / name).exists()).read_text()
        if name.endswith(".cu"):
            return f'inline constexpr char kernel_source[] = R"kernel({body})kernel";'
        return _INCLUDE.sub(inlined, body.replace("#pragma once\n", ""))

    return _INCLUDE.sub(inlined, f'#include "{name}"')


def find_nvrtc() -> None:
    """Tell the core where NVIDIA's run-time compiler lies, if its registry package is installed (WARPWRIGHT_NVRTC)."""
    paths = [path for folder in sys.path if folder for path in sorted(Path(folder, "nvidia").glob("*/lib/libnvrtc.so.*"))]
    if paths:
        os.environ.setdefault("WARPWRIGHT_NVRTC", str(paths[0]))


def build(name: str, defines: Sequence[str] = (), instead: Mapping[str, str] | None = None) -> Path:
    """Return a file of native/ or shim/ as a shared library that exports what exports.map names, built at first use. Raises BuildError."""
    exports = _SOURCES / "exports.map"
    source = f"{text(name, instead)}\n// exports.map: {digest(exports.read_text())}\n"
    flags = (*FLAGS, f"-Wl,--version-script={exports}")
    try:
        return native.build(source, defines, (*flags, *_ALONE))
    except native.BuildError:
        return native.build(source, defines, flags)  # some systems have no static C++ library


_loaded: list[ctypes.CDLL] = []


def library() -> ctypes.CDLL:
    """Return the core: the shim's own where one is active, else the one without any MPI."""
    if not _loaded:
        find_nvrtc()
        _loaded.append(bind(ctypes.CDLL(str(build("api.cpp")))))
    return _loaded[0]


def adopt(shim: ctypes.CDLL) -> ctypes.CDLL:
    """Take a shim for the core from now on: a process has one state of its GPUs."""
    _loaded.insert(0, bind(shim))
    return shim


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
        "allocate": (pointer, [ctypes.c_size_t, ctypes.c_int]),
        "release": (None, [pointer, ctypes.c_int]),
        "share": (pointer, [ctypes.c_size_t, ctypes.c_int, ctypes.c_char_p]),
        "open_shared": (pointer, [ctypes.c_char_p, ctypes.c_int]),
        "unshare": (None, [pointer, ctypes.c_int, ctypes.c_int]),
        "group": (pointer, [count, pointer, pointer, pointer, ctypes.c_int]),
        "group_free": (None, [pointer]),
        "group_run": (ctypes.c_int, [pointer, ctypes.c_int, pointer]),
        "links": (pointer, [count, pointer, pointer, pointer, pointer, ctypes.c_int]),
        "links_free": (None, [pointer]),
        "links_run": (ctypes.c_int, [pointer, pointer]),
        "export": (ctypes.c_int, [pointer, ctypes.c_int, ctypes.c_char_p, place]),
        "wait": (ctypes.c_int, [ctypes.c_int, pointer]),
        "place": (ctypes.c_int, [pointer, place]),
        "ready": (ctypes.c_int, [ctypes.c_int]),
        "configure": (ctypes.c_int, [ctypes.c_int, ctypes.c_int, pointer, count]),
        "waiting": (ctypes.c_int, [ctypes.c_int]),
        "partition": (count, [count, pointer, count, pointer, pointer, pointer, pointer]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(core, f"warpwright_{name}")
        function.restype, function.argtypes = result, arguments
    return core
