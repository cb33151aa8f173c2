"""The nouns of a suite: an item is one program, with its CUDA text, its reference in C, and what is known of its buffers and launches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from warpwright.translation.launch import Launch

Role = Literal["input", "output"]


@dataclass(frozen=True)
class Buffer:
    """One parameter of the C function, `size` elements. `low`, `high`: the domain of an input; equal where it is not known."""

    name: str
    dtype: str
    size: int
    role: Role
    low: float = 0.0
    high: float = 0.0
    values: Literal["uniform", "index", "permutation"] = "uniform"


@dataclass(frozen=True)
class Item:
    """One program of a suite."""

    name: str
    suite: str
    family: str
    cuda: str
    c: str
    """Reference in C; empty where the suite has none."""
    entry: str
    """Name of the C function, whose parameters are `buffers` in order."""
    buffers: tuple[Buffer, ...] = ()
    temporaries: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """Buffers that only kernels use: element type and number of elements."""
    launches: tuple[Launch, ...] = ()
    unwired: str = ""
    """Why the CUDA side has no launches; empty where it has."""
    unscored: str = ""
    """Why nothing can be judged by this item; empty where it can."""
    extents: Mapping[str, int] = field(default_factory=dict)
    """Elements of each buffer that the reference touches, where that is known."""
    padded: Mapping[str, int] = field(default_factory=dict)
    """Elements needed by kernels without a guard, whose last block reads or writes past the end of a buffer."""

    @property
    def prototype(self) -> str:
        """The head of the C function; empty where the reference has none."""
        match = re.search(rf"void\s+{self.entry}\s*\([^)]*\)", self.c)
        return match[0] if match else ""
