"""A kernel with its data, as the benchmarks of translated kernels run it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Work:
    """One kernel with its data; `hand_arguments` are those of the hand-written twin."""

    name: str
    size: str
    grid: tuple[int, ...]
    arguments: tuple[Any, ...]
    hand_arguments: tuple[Any, ...]
    output: np.ndarray
    expected: np.ndarray
    torch: Callable[[], Any] | None
    block: tuple[int, int, int] = (256, 1, 1)
    kernel: str = ""
    """The kernel or template instance; the work's name where empty."""
    twin: str = ""
    """The hand-written function; the kernel's name where empty."""
    shared: int = 0
    """Bytes of dynamic shared memory."""
    adds: bool = False
    """The kernel adds to what its output holds."""
    prepare: Callable[[], None] | None = None
    """Sets what the kernel changes besides its output."""


def normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)
