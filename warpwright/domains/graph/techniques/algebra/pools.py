"""Adaptive average pools whose windows are all alike, as the average pools that they are."""

from __future__ import annotations

import math

from torch import fx

from warpwright.domains.graph.ir import Edit, is_tensor, shape
from warpwright.domains.graph.techniques.reduction import ADAPTIVE, AVERAGE_POOLS
from warpwright.domains.graph.techniques.rewrite import Rewrite
from warpwright.space import Traits


def _match(node: fx.Node) -> list[int] | None:
    """Return the sizes of the windows, if they part the tensor evenly; one window in all is a mean, and stays."""
    x = node.args[0]
    if not is_tensor(x):
        return None
    d = ADAPTIVE.index(node.target) + 1
    before, after = shape(x)[-d:], shape(node)[-d:]  # type: ignore[arg-type]
    if 0 in (*shape(x), *after) or math.prod(after) == 1 or before == after:  # type: ignore[arg-type]
        return None
    return None if any(n % m for n, m in zip(before, after, strict=True)) else [n // m for n, m in zip(before, after, strict=True)]


def _emit(e: Edit, node: fx.Node, windows: list[int]) -> None:
    pool = AVERAGE_POOLS[ADAPTIVE.index(node.target)]
    e.replace(node, e.before(node).call(pool, node.args[0], windows, windows))


EVEN_POOL = Rewrite(
    "even_pool", Traits("E"), ADAPTIVE, _match, _emit,
    "adaptive_avg_pool2d(x, [7, 7]) of 28 x 28, and interpolate(x, scale_factor=1/4, mode='area')  ->  avg_pool2d(x, [4, 4]): the same windows, "
    "for which there are rules and kernels.",
    together=True,
)  # fmt: skip

TECHNIQUES = (EVEN_POOL,)
