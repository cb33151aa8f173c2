"""Calls of other libraries' kernels, a file a library: which of a program's calls it takes, and what is called. None is imported unless it is called.

`calls.py` says what each call computes; a generated program that makes some of a library's holds it and the library's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warpwright.domains.graph.kernels.others import calls, cudnn, flashinfer, liger, quack

TABLES: Mapping[str, Mapping[str, tuple[Any, Any]]] = {
    "liger": liger.LIGER, "cudnn": cudnn.CUDNN, "quack": quack.QUACK, "flashinfer": flashinfer.FLASHINFER,
}  # fmt: skip
"""Library -> call -> does it take it, and the call of its kernel."""
OWN: Mapping[str, Any] = calls.OWN
"""Call -> the same by torch."""
