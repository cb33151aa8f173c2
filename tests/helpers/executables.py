"""How the tests build translated programs: with few sets of flags, which share precompiled headers; what is built is kept."""

from __future__ import annotations

from pathlib import Path

from warpwright import native

EXACT = ("-march=native", "-std=c++17", "-shared", "-fPIC", "-fopenmp", "-fwrapv", "-ffp-contract=off")
"""Of kernels whose answers are compared to the bit. -fwrapv: CUDA's ints wrap in practice, and random kernels make them."""

OPTIMISED, PLAIN = ("-O1", *EXACT), ("-O0", *EXACT)
"""The latter for the definition that the former is compared with."""

FLAGS = ("-O0", "-std=c++17", "-fopenmp", "-w")
"""Of whole programs."""


def executable(text: str, *more: str) -> Path:
    """Return the program built from C++ `text`."""
    return native.build(text, flags=(*FLAGS, *more))


def unit(text: str, level: str = "-O0") -> Path:
    """Return the object file built from C++ `text`, to be linked with others."""
    return native.build(text, flags=(level, *FLAGS[1:], "-c"))
