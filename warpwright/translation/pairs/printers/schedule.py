"""Schedules: how each stage becomes a CUDA kernel and a C loop nest. A strategy is drawn only where its predicate holds."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from warpwright.translation.pairs.definitions.expr import Expr, Graph, Stage, names, walk

MOST_SHARED_ELEMENTS = 4096
"""Of a __shared__ array: 16 KiB of float32, a third of what every GPU offers."""


@dataclass(frozen=True)
class KernelSchedule:
    """How one stage becomes one kernel."""

    strategy: str = "thread"
    block: tuple[int, int] = (256, 1)
    grid_stride: int = 1
    """Elements that a thread computes in a grid-stride loop; 1: no loop."""
    shuffle: bool = False
    """Whether to reduce by warp shuffles instead of a tree in shared memory."""
    unroll: int = 0
    rows: int = 1
    """Output rows that a thread of a tiled product computes."""


@dataclass(frozen=True)
class LoopSchedule:
    """How one stage becomes one C loop nest."""

    strategy: str = "loops"
    collapse: int = 1
    simd: bool = True
    lanes: int = 16
    """Outputs along the last axis that are accumulated together (strategy `lanes`)."""
    rows: int = 1
    unroll: int = 0


# --- predicates -----------------------------------------------------------------------------------------------------------


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
    """Whether the stage is elementwise on float32: every load has the indices of the store, and the size is a multiple of 4."""
    at = tuple(name for name, _ in stage.axes)
    if stage.reductions or stage.scan or stage.scatter or stage.body.dtype != "float32" or names(stage.body, "index") != at:
        return False
    reads = [node for node in walk(stage.body) if node.kind == "load"]
    same = all(tuple(str(arg.value) for arg in node.args) == at and node.dtype == "float32" for node in reads)
    inside = all(arg.kind == "index" for node in reads for arg in node.args)
    bare = sum(node.kind == "index" for node in walk(stage.body)) == len(reads) * len(at)
    return bool(reads) and same and inside and bare and math.prod(e for _, e in stage.axes) % 4 == 0


def _plain_reductions(stage: Stage) -> bool:
    return bool(stage.reductions) and all(r.combine not in ("argmax", "argmin") for r in stage.reductions)


def _long_reductions(stage: Stage) -> bool:
    return bool(stage.reductions) and max(math.prod(e for _, e in r.axes) for r in stage.reductions) >= 32


def kernel_strategies(stage: Stage, graph: Graph) -> tuple[str, ...]:
    """Return the strategies that apply to the CUDA half, each repeated as often as it is to be drawn."""
    if stage.scan:
        return ("thread", "block", "block") if stage.axes[-1][1] <= 1024 else ("thread",)
    if stage.scatter:
        small = stage.scatter == "add" and len(stage.at) == 1 and graph.tensor(stage.out).size <= MOST_SHARED_ELEMENTS
        return ("thread", "shared", "shared") if small else ("thread",)
    applicable = ["thread"]
    if (len(stage.axes) >= 2 and not stage.inner) or (not stage.reductions and len(stage.axes) >= 2):
        applicable.append("thread2d")
    if flat(stage, graph):
        applicable += ["vector"] * 2
    if permutation_of(stage):
        applicable += ["transpose"] * 3
    if product_of(stage):
        applicable += ["tile"] * 5
    elif _long_reductions(stage):
        applicable += ["block"] * 4
        if _plain_reductions(stage):
            applicable += ["warp"] * 3
    return tuple(applicable)


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
    """Draw the CUDA schedule of a stage."""
    strategy = rng.choice(kernel_strategies(stage, graph))
    block = _block(rng, strategy)
    if strategy == "block" and stage.scan:
        block = (max(32, 1 << (stage.axes[-1][1] - 1).bit_length()), 1)
    plain = _plain_reductions(stage)
    stride = rng.choice((1, 1, 1, 2, 4)) if strategy in ("thread", "vector", "shared") else 1
    rows = rng.choice((1, 1, 2, 4)) if strategy == "tile" else 1
    return KernelSchedule(strategy, block, stride, plain and rng.random() < 0.6, rng.choice((0, 0, 2, 4, 8)), rows)


def draw_loops(rng: Random, stage: Stage) -> LoopSchedule:
    """Draw the C schedule of a stage."""
    strategy = rng.choice(loop_strategies(stage))
    rows = 1
    if strategy == "lanes" and len(stage.outer) >= 2:
        rows = rng.choice([r for r in (1, 2, 4, 6) if stage.outer[-2][1] % r == 0])
    collapse = rng.randint(1, max(1, min(3, len(stage.outer or stage.axes) - 1)))
    return LoopSchedule(strategy, collapse, rng.random() < 0.85, rng.choice((8, 16, 16, 32, 64)), rows, rng.choice((0, 0, 2, 4)))


def best_guess(stage: Stage) -> LoopSchedule:
    """Return the default C schedule, which is usually good: vectors along the last output axis, four rows of them where 4 divides."""
    strategy = loop_strategies(stage)[-1]
    rows = 4 if strategy == "lanes" and len(stage.outer) >= 2 and stage.outer[-2][1] % 4 == 0 else 1
    return LoopSchedule("loops" if strategy == "atomic" else strategy, 1, True, 16, rows, 0)


def draw(rng: Random, graph: Graph, candidates: int) -> tuple[tuple[KernelSchedule, ...], tuple[tuple[LoopSchedule, ...], ...]]:
    """Draw one CUDA schedule and up to `candidates` different C schedules, the default first; one entry for each stage."""
    kernels = tuple(draw_kernel(rng, stage, graph) for stage in graph.stages)
    loops = [tuple(best_guess(stage) for stage in graph.stages)]
    for _ in range(4 * candidates):
        if len(loops) >= candidates:
            break
        more = tuple(draw_loops(rng, stage) for stage in graph.stages)
        if more not in loops:
            loops.append(more)
    return kernels, tuple(loops)
