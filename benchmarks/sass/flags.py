"""Which flags of the compiler make a kernel fastest: compile it under each, glance at all, measure the best in epochs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.sass.build import PLAIN, VARIANTS, Flags, build, joined
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.errors import WorkerError
from warpwright.targets.cubin.evaluator import CubinEvaluator

WORTH = 1.003
"""Flags that gain less are left at what everybody uses."""

TOGETHER = 3
BUILD_SECONDS = 4.0


@dataclass(frozen=True)
class Found:
    """The best flags of a kernel."""

    cubin: Path | None
    """None where -O3 as it is was not beaten."""
    row: dict[str, Any] | None
    tried: dict[str, float]
    """Flags -> speed-up at a glance; 0 for other words, or a cubin that does not launch."""


def best_flags(kernel: str, evaluator: CubinEvaluator, folder: Path, arch: str) -> Found:
    """Return the flags that beat -O3 beyond doubt, bit by bit as it."""
    tried: dict[Flags, float] = {}
    cubins: dict[Flags, Path] = {}
    known = {Cubin(evaluator.kernel.cubin.data).code_of(evaluator.kernel.name)}
    with ThreadPoolExecutor(4) as pool:
        built = zip(VARIANTS, pool.map(lambda flags: _built(kernel, folder, arch, flags), VARIANTS), strict=True)
    _glance([(flags, path) for flags, path in built if path], evaluator, known, tried, cubins)
    helpful = sorted((flags for flags, speedup in tried.items() if speedup > WORTH), key=lambda flags: -tried[flags])
    both = [joined(helpful[:count]) for count in range(2, TOGETHER + 1) if count <= len(helpful)]
    _glance([(flags, path) for flags in both if (path := _built(kernel, folder, arch, flags))], evaluator, known, tried, cubins)
    named = {str(flags): round(speedup, 5) for flags, speedup in tried.items()}
    best = max(tried, key=lambda flags: tried[flags], default=PLAIN)
    if tried.get(best, 0.0) <= WORTH:
        return Found(None, None, named)
    (speedup, low, high), differ = evaluator.against(cubins[best].read_bytes())
    if differ or low <= 1.0:
        return Found(None, None, named)
    return Found(cubins[best], {"name": str(best), "speedup": speedup, "interval": (low, high)}, named)


def _glance(
    built: list[tuple[Flags, Path]], evaluator: CubinEvaluator, known: set[bytes], tried: dict[Flags, float], cubins: dict[Flags, Path]
) -> None:
    """Time those whose code is new."""
    for flags, path in built:
        code = Cubin(path.read_bytes()).code_of(evaluator.kernel.name)
        if code in known:
            continue
        known.add(code)
        try:
            tried[flags] = evaluator.glance(path.read_bytes(), max(1.0, 0.998 * max(tried.values(), default=1.0)))[0]
        except WorkerError:  # more shared memory or registers than there are, say
            tried[flags] = 0.0
        cubins[flags] = path


def _built(kernel: str, folder: Path, arch: str, flags: Flags) -> Path | None:
    try:
        return build(kernel, folder, arch, flags, BUILD_SECONDS)
    except (RuntimeError, OSError):  # a combination that the compiler refuses, or unrolls for too long
        return None
