"""Judge a HeCBench program that prints no results by its arrays: each one copied back from the device has to be in its OpenMP twin's memory.

Both programs are linked with arrays.cpp. Ours keeps the arrays that cudaMemcpy brought back, as they are when freed or at the end;
the twin keeps its blocks of those sizes. A program that brings nothing back is judged by all its arrays of the device (in the twin, run on the host,
the same block is host and device memory). An array agrees when the twin has one of its size with the same bytes, or the same floats or doubles: each
element within 1e-3 of its value or 1e-5 of the array's root mean square, in all elements (of the first 32 MiB).
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

TOLERANCE = 1e-3
SOURCE = Path(__file__).with_suffix(".cpp")
_HEAD, _COPY = "cudaMemcpy(void* to, const void* from, size_t n, int) {", "  if (n) std::memmove(to, from, n);"


def told(source: str) -> str:
    """Return a translated source in which copies to the host are told to ww_back, arrays of the device to ww_made."""
    if _HEAD not in source:
        return source
    declared = 'extern "C" void ww_back(void*, size_t);\nextern "C" void ww_made(void*, size_t);\nenum cudaMemcpyKind'
    allocated = "if (*p) return cudaSuccess;"
    source = source.replace(allocated, "if (*p) { ww_made(*p, bytes); return cudaSuccess; }", 1)
    source = source.replace(_HEAD, _HEAD.replace("int)", "int kind)")).replace(_COPY, f"{_COPY} if (kind == 2 || kind == 4) ww_back(to, n);", 1)
    return source.replace("enum cudaMemcpyKind", declared, 1)


def read(folder: Path) -> list[tuple[int, np.ndarray]]:
    """Return (size in bytes, the first bytes) of each array that a program kept, in order."""
    found = sorted(folder.iterdir(), key=lambda file: int(file.name.partition("_")[0]))
    return [(int(file.name.partition("_")[2]), np.fromfile(file, np.uint8)) for file in found]


def agree(a: np.ndarray, b: np.ndarray) -> bool:
    """Say whether two arrays of bytes are the same, as bytes or as the floats or doubles that they hold."""
    if np.array_equal(a, b):
        return True
    kind = held(a)
    if kind is None:
        return False
    with np.errstate(all="ignore"):
        x, y = a.view(kind).astype(np.float64), b.view(kind).astype(np.float64)
        gone = np.isnan(x) & np.isnan(y)
        x, y = np.where(gone, 0, x), np.where(gone, 0, y)
        near = np.abs(x - y) <= TOLERANCE * np.maximum(np.abs(x), np.abs(y)) + 1e-5 * np.sqrt(np.mean(x * x))
    return bool(np.isfinite(x).all() and np.isfinite(y).all() and near.all())


def held(a: np.ndarray) -> type[np.float32] | type[np.float64] | None:
    """Return what an array of bytes holds: floats if nearly all have a common size, else doubles; None for whole numbers, which are to be equal.

    Doubles seen as floats have random sizes at every second place, unless their lower halves are 0. Whole numbers seen as floats are tiny."""
    for kind in (np.float32, np.float64):
        if len(a) % kind().itemsize:
            continue
        with np.errstate(all="ignore"):
            values = a.view(kind)
            sizes = np.abs(values[(values != 0) & ~np.isnan(values)].astype(np.float64))
            halved = kind is np.float32 and len(values) % 2 == 0 and not values[::2].any() and values[1::2].any()
        if len(sizes) and not halved and np.mean((sizes > 1e-20) & (sizes < 1e20)) > 0.98:
            return kind
    return None


def beside(mine: Path, twin: Path) -> tuple[str, str]:
    """Return (`same`, `differs` or `nothing`, reason) for the arrays that both kept in these folders."""
    ours, theirs = read(mine), read(twin)
    if not any(len(np.unique(data[:1_000_000])) > 1 for _, data in ours):
        return "nothing", "its arrays hold nothing"
    found = lambda size, data: any(size <= s <= size + 8192 and agree(data, b[: len(data)]) for s, b in theirs if len(b) >= len(data))  # noqa: E731
    missing = [size for size, data in ours if not found(size, data)]
    if missing:
        return "differs", f"{len(missing)} of {len(ours)} arrays that it brings back are not among the twin's"
    return "same", f"{len(ours)} arrays, {sum(size for size, _ in ours)} bytes"


def sizes(folder: Path) -> str:
    """Return the sizes of the kept arrays for WW_SIZES."""
    return ",".join(re.findall(r"_(\d+)", " ".join(sorted({"_" + file.name.partition("_")[2] for file in folder.iterdir()}))))
