"""Schedules: how each stage becomes a CUDA kernel and a C loop nest. A strategy is drawn only where its predicate says that it applies."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

from warpwright.translation.pairs.definitions.expr import Expr, Graph, Stage, names, walk

MOST_SHARED_ELEMENTS = 4096
"""Of a shared array that a kernel declares: 16 KiB of float32, a third of what every GPU has."""


@dataclass(frozen=True)
class KernelSchedule:
    """How one stage becomes one kernel."""

    strategy: str = "thread"
    block: tuple[int, int] = (256, 1)
    grid_stride: int = 1
    """Elements a thread takes in a grid-stride loop; 1: no loop."""
    shuffle: bool = False
    """Reduce by warp shuffles instead of a tree in shared memory."""
    unroll: int = 0
    rows: int = 1
    """Output rows a thread computes, of a tiled product."""


@dataclass(frozen=True)
class LoopSchedule:
    """How one stage becomes one C loop nest."""

    strategy: str = "loops"
    collapse: int = 1
    simd: bool = True
    lanes: int = 16
    """Outputs of the last axis that are accumulated together (strategy `lanes`)."""
    rows: int = 1
    unroll: int = 0


@dataclass(frozen=True)
class Schedule:
    """One schedule for each stage of a graph, for each half."""

    kernels: tuple[KernelSchedule, ...]
    loops: tuple[LoopSchedule, ...]

    def as_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


# --- what applies to a stage -----------------------------------------------------------------------------------------------------------


def product_of(stage: Stage) -> tuple[Expr, Expr] | None:
    """Return (a, b) where the stage is a sum over k of a[.., i, k] * b[.., k, j], i and j its last two axes; None otherwise."""
    if len(stage.reductions) != 1 or len(stage.axes) < 2 or stage.inner or stage.scan or stage.scatter:
        return None
    one = stage.reductions[0]
    if one.combine != "sum" or len(one.axes) != 1 or one.body.value not in ("multiply", "imul"):
        return None
    i, j, k = stage.axes[-2][0], stage.axes[-1][0], one.axes[0][0]
    a, b = one.body.args
    used_a, used_b = set(names(a, "index")), set(names(b, "index"))
    if j in used_a and i in used_b:
        a, b, used_a, used_b = b, a, used_b, used_a
    fits = i in used_a and j not in used_a and k in used_a and j in used_b and i not in used_b and k in used_b
    return (a, b) if fits else None


def permutation_of(stage: Stage) -> tuple[str, str] | None:
    """Return the axis that is contiguous in the input and the one contiguous in the output, where the stage only permutes axes."""
    body = stage.body
    if stage.reductions or stage.scan or stage.scatter or body.kind != "load" or len(stage.axes) < 2:
        return None
    if any(arg.kind != "index" for arg in body.args) or sorted(str(a.value) for a in body.args) != sorted(name for name, _ in stage.axes):
        return None
    read, written = str(body.args[-1].value), stage.axes[-1][0]
    return (read, written) if read != written else None


def flat(stage: Stage, graph: Graph) -> bool:
    """Whether every load is at the very place that is stored to, all float32, and the size is a multiple of 4."""
    at = tuple(name for name, _ in stage.axes)
    if stage.reductions or stage.scan or stage.scatter or stage.body.dtype != "float32" or names(stage.body, "index") != at:
        return False
    found = [node for node in walk(stage.body) if node.kind == "load"]
    same = all(tuple(str(arg.value) for arg in node.args) == at and node.dtype == "float32" for node in found)
    inside = all(arg.kind == "index" for node in found for arg in node.args)
    bare = sum(node.kind == "index" for node in walk(stage.body)) == len(found) * len(at)
    return bool(found) and same and inside and bare and math.prod(e for _, e in stage.axes) % 4 == 0


def _plain_reductions(stage: Stage) -> bool:
    return bool(stage.reductions) and all(r.combine not in ("argmax", "argmin") for r in stage.reductions)


def _long_reductions(stage: Stage) -> bool:
    return bool(stage.reductions) and max(math.prod(e for _, e in r.axes) for r in stage.reductions) >= 32


def kernel_strategies(stage: Stage, graph: Graph) -> tuple[str, ...]:
    """Return the strategies that apply, each name as often as it is to be drawn."""
    if stage.scan:
        return ("thread", "block", "block") if stage.axes[-1][1] <= 1024 else ("thread",)
    if stage.scatter:
        small = stage.scatter == "add" and len(stage.at) == 1 and graph.buffer(stage.out).size <= MOST_SHARED_ELEMENTS
        return ("thread", "shared", "shared") if small else ("thread",)
    found = ["thread"]
    if (len(stage.axes) >= 2 and not stage.inner) or (not stage.reductions and len(stage.axes) >= 2):
        found.append("thread2d")
    if flat(stage, graph):
        found += ["vector"] * 2
    if permutation_of(stage):
        found += ["transpose"] * 3
    if product_of(stage):
        found += ["tile"] * 5
    elif _long_reductions(stage):
        found += ["block"] * 4
        if _plain_reductions(stage):
            found += ["warp"] * 3
    return tuple(found)


def loop_strategies(stage: Stage) -> tuple[str, ...]:
    """Return the strategies that apply to the C half."""
    if stage.scatter:
        return ("loops", "atomic") if stage.scatter == "add" else ("loops",)
    if stage.scan or not _plain_reductions(stage) or stage.inner or not stage.outer or stage.outer[-1][1] < 4:
        return ("loops",)
    return ("loops", "lanes", "lanes", "lanes")


# --- drawing ---------------------------------------------------------------------------------------------------------------------------


def _block(rng: Random, strategy: str) -> tuple[int, int]:
    choices: Mapping[str, Callable[[], tuple[int, int]]] = {
        "thread2d": lambda: rng.choice(((16, 16), (32, 8), (32, 4), (8, 8), (64, 4))),
        "tile": lambda: rng.choice(((16, 16), (16, 16), (32, 32), (8, 8))),
        "transpose": lambda: (32, rng.choice((4, 8, 16))),
        "warp": lambda: (32, rng.choice((2, 4, 8))),
        "block": lambda: (rng.choice((32, 64, 128, 256, 512)), 1),
    }
    return choices.get(strategy, lambda: (rng.choice((64, 128, 192, 256, 512, 1024)), 1))()


def draw_kernel(rng: Random, stage: Stage, graph: Graph) -> KernelSchedule:
    """Draw how a stage becomes a kernel."""
    strategy = rng.choice(kernel_strategies(stage, graph))
    block = _block(rng, strategy)
    if strategy == "block" and stage.scan:
        block = (max(32, 1 << (stage.axes[-1][1] - 1).bit_length()), 1)
    plain = _plain_reductions(stage)
    stride = rng.choice((1, 1, 1, 2, 4)) if strategy in ("thread", "vector", "shared") else 1
    rows = rng.choice((1, 1, 2, 4)) if strategy == "tile" else 1
    return KernelSchedule(strategy, block, stride, plain and rng.random() < 0.6, rng.choice((0, 0, 2, 4, 8)), rows)


def draw_loops(rng: Random, stage: Stage) -> LoopSchedule:
    """Draw how a stage becomes a loop nest."""
    strategy = rng.choice(loop_strategies(stage))
    rows = 1
    if strategy == "lanes" and len(stage.outer) >= 2:
        rows = rng.choice([r for r in (1, 2, 4, 6) if stage.outer[-2][1] % r == 0])
    collapse = rng.randint(1, max(1, min(3, len(stage.outer or stage.axes) - 1)))
    return LoopSchedule(strategy, collapse, rng.random() < 0.85, rng.choice((8, 16, 16, 32, 64)), rows, rng.choice((0, 0, 2, 4)))


def best_guess(stage: Stage) -> LoopSchedule:
    """Return the loop nest that is usually good: vectors over the last output axis, two rows of them where that divides."""
    strategy = loop_strategies(stage)[-1]
    rows = 4 if strategy == "lanes" and len(stage.outer) >= 2 and stage.outer[-2][1] % 4 == 0 else 1
    return LoopSchedule("loops" if strategy == "atomic" else strategy, 1, True, 16, rows, 0)


def draw(rng: Random, graph: Graph, candidates: int) -> tuple[tuple[KernelSchedule, ...], tuple[tuple[LoopSchedule, ...], ...]]:
    """Draw one kernel schedule and `candidates` different loop schedules, the first of them the usual guess."""
    kernels = tuple(draw_kernel(rng, stage, graph) for stage in graph.stages)
    loops = [tuple(best_guess(stage) for stage in graph.stages)]
    for _ in range(4 * candidates):
        if len(loops) >= candidates:
            break
        more = tuple(draw_loops(rng, stage) for stage in graph.stages)
        if more not in loops:
            loops.append(more)
    return kernels, tuple(loops)
