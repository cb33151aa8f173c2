"""Build many drafts at once: one C translation unit and one CUDA text for all; each alone where the batch does not build."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright import native
from warpwright.domains import transpile
from warpwright.errors import WarpwrightError
from warpwright.native import repeat
from warpwright.translation.pairs.draft import Draft, renamed

C_FLAGS = ("-O3", "-march=native", "-shared", "-fPIC", "-fopenmp", "-x", "c", "-std=c11")
"""Flags of the C half. No -ffast-math."""

FIBER_FLAGS = ("-O1", "-std=c++17", "-shared", "-fPIC", "-fopenmp")
"""Flags of the CUDA half on fibers, which is run for its answers and never timed: -O3 would take 1.6 times as long to build."""

Run = Callable[[Mapping[str, Any]], None]
"""Runs a program on arrays by name, in place."""


def build_c(drafts: Sequence[Draft]) -> dict[int, tuple[CHalf, ...] | str]:
    """Return index -> the candidates for the C half, or why they could not be built."""
    parts = []
    for draft in drafts:
        for number, text in enumerate(draft.c):
            name = f"w{draft.index}_{number}"
            parts.append(f"#define {draft.entry} {name}\n{text}#undef {draft.entry}\n")
    try:
        library = _load_once("\n".join(parts))
    except native.BuildError as error:
        return _one_by_one(drafts, build_c, str(error))
    return {draft.index: tuple(_c_half(draft, library[f"w{draft.index}_{number}"]) for number in range(len(draft.c))) for draft in drafts}


def build_cuda(drafts: Sequence[Draft]) -> dict[int, tuple[Run, ...] | str]:
    """Return index -> the CUDA half, translated to run on fibers, or why it could not be built."""
    prefixed = [renamed(draft, f"w{draft.index}_") for draft in drafts]
    try:
        program = transpile.compile_text("\n".join(draft.cuda.text for draft in prefixed), "pairs.cu", tier="fibers")
        kernels = program.load(FIBER_FLAGS)
    except WarpwrightError as error:
        return _one_by_one(drafts, build_cuda, str(error))
    Path(native.build(program.source, flags=[*FIBER_FLAGS, "-w"])).unlink(missing_ok=True)  # used once: not worth caching
    return {draft.index: (_cuda_run(draft, kernels),) for draft in prefixed}


def _one_by_one(drafts: Sequence[Draft], build: Callable[[Sequence[Draft]], dict[int, Any]], why: str) -> dict[int, Any]:
    if len(drafts) == 1:
        return {drafts[0].index: why}
    return {index: half for draft in drafts for index, half in build([draft]).items()}


def _load_once(text: str) -> Any:
    """Build and load a library, and remove its file: every text is used once."""
    path = native.build(text, flags=C_FLAGS)
    library = native.load(path)
    os.unlink(path)
    return library


@dataclass(frozen=True)
class CHalf:
    """A built candidate of the C half."""

    function: Any
    order: tuple[str, ...]
    """Names of the arrays, by parameter."""

    def __call__(self, arrays: Mapping[str, Any]) -> None:
        """Run it once."""
        self.repeat(arrays, 1)

    def repeat(self, arrays: Mapping[str, Any], count: int) -> float:
        """Run it `count` times and return the mean seconds of one call."""
        pointers = (ctypes.c_void_p * len(self.order))(*(arrays[name].ctypes.data for name in self.order))
        call = repeat.function()
        start = time.perf_counter()
        call(self.function, pointers, len(self.order), ctypes.c_long(count))
        return (time.perf_counter() - start) / count


def _c_half(draft: Draft, function: Any) -> CHalf:
    return CHalf(function, (*(b.name for b in draft.graph.inputs), *draft.graph.outputs))


def _cuda_run(draft: Draft, kernels: Mapping[str, Any]) -> Run:
    def run(arrays: Mapping[str, Any]) -> None:
        for one in draft.cuda.launches:
            kernels[one.kernel][one.grid, one.block, one.shared](*(arrays[name] for name in one.args))

    return run
