"""Executables of translated programs: built once for each text and kept, as kernels are."""

from __future__ import annotations

from pathlib import Path

from warpwright import native

FLAGS = ("-O0", "-std=c++17", "-fopenmp", "-w")
"""The same for all, so that they share a precompiled header."""


def executable(text: str, *more: str) -> Path:
    """Return the program built from C++ `text`."""
    return native.build(text, flags=(*FLAGS, *more))


def unit(text: str, level: str = "-O0") -> Path:
    """Return the object file built from C++ `text`, to be linked with others."""
    return native.build(text, flags=(level, *FLAGS[1:], "-c"))
