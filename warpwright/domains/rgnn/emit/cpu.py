"""The CPU emitter: builds the kernels of a schedule (cpp_text.py) into one library and calls them."""

from __future__ import annotations

import ctypes
import functools
import sys
import warnings
from typing import Any

import torch

from warpwright import native
from warpwright.domains.rgnn.emit.cpp_head import HEAD
from warpwright.domains.rgnn.emit.cpp_text import Writer
from warpwright.domains.rgnn.emit.launch import Argument, Runner, array_of
from warpwright.domains.rgnn.emit.rows import Kernel, Schedule
from warpwright.domains.rgnn.emit.units import units
from warpwright.domains.rgnn.index import Index
from warpwright.errors import UsageError

TYPES = {torch.float32: "float", torch.float64: "double"}

OPTIMISED = (*native.FLAGS, "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi")

SMALLEST = 4096
"""Edges below which building a library costs more than it gains."""


LARGE = 1 << 22
"""Bytes from which a result is asked to lie in large pages: its first write then takes 6 ms instead of 23 for 50 MB."""


def in_large_pages(tensor: torch.Tensor) -> torch.Tensor:
    """Ask the system for large pages for new memory, where it knows them (madvise, Linux)."""
    if tensor.nbytes >= LARGE and sys.platform == "linux":
        page, huge = 4096, 14  # MADV_HUGEPAGE
        first = -(-tensor.data_ptr() // page) * page
        size = (tensor.data_ptr() + tensor.nbytes) // page * page - first
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(size), huge)
    return tensor


@functools.cache
def available() -> bool:
    """Is there a C++ compiler? Warns once where there is none."""
    try:
        native.compiler()
    except UsageError as problem:
        warnings.warn(f"relational layers run by torch calls, which is slower: {problem}", stacklevel=2)
        return False
    return True


def source(schedule: Schedule, dtype: torch.dtype) -> tuple[str, dict[int, tuple[Argument, ...]]]:
    """Return the C++ text of a schedule, one function `step<n>` for each kernel, and what is passed to each."""
    texts, arguments = [HEAD.replace("@T", TYPES[dtype])], {}
    for number, step in enumerate(schedule.steps):
        if isinstance(step, Kernel):
            writer = Writer(schedule, step, f"step{number}")
            texts.append(writer.text())
            arguments[number] = tuple(writer.arguments.values())
    return "\n\n".join(texts) + "\n", arguments


class Native(Runner):
    """Runs a schedule by C++ kernels."""

    def __init__(self, schedule: Schedule, dtype: torch.dtype, donated: tuple[str, ...] = (), flags: tuple[str, ...] = OPTIMISED) -> None:
        super().__init__(schedule, donated)
        text, self.arguments = source(schedule, dtype)
        self.library = native.load(native.build(text, flags=flags)) if self.arguments else None

    def memory(self, like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        """Return memory for a result, in large pages."""
        return in_large_pages(like.new_empty(shape))

    def launch(self, kernel: Kernel, number: int, index: Index, values: list[Any]) -> None:
        """Run one kernel."""
        if not index.rows[kernel.rows]:
            return
        threads = torch.get_num_threads()
        work = units(index, kernel.rows, threads)
        tensors = [array_of(argument, kernel, index, values) for argument in self.arguments[number]]  # keeps copies alive
        addresses = (ctypes.c_void_p * len(tensors))(*(tensor.data_ptr() for tensor in tensors))
        pointers = [ctypes.c_void_p(tensor.data_ptr()) for tensor in (index.start(kernel.rows), work.cut, work.table)]
        numbers = [ctypes.c_long(n) for n in (len(work.table), work.relations, index.edges)]
        self.library[f"step{number}"](addresses, *pointers, *numbers, ctypes.c_int(threads))  # type: ignore[index]
