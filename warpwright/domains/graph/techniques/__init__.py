"""The graph domain's techniques: small checked rewrites, one family a file. The order is that in which a search tries them."""

from __future__ import annotations

from typing import Any

from warpwright.domains.graph.techniques import conv_pool, conv_reduce, dead, fold, identity, linear_reduce, precision, scalars, schedule

REWRITES: tuple[Any, ...] = (
    *dead.TECHNIQUES,
    *identity.TECHNIQUES,
    *scalars.TECHNIQUES,
    *linear_reduce.TECHNIQUES,
    *conv_reduce.TECHNIQUES,
    *conv_pool.TECHNIQUES,
)
"""What changes the graph, for any target."""

ON_CPU: tuple[Any, ...] = (*fold.TECHNIQUES, *schedule.TECHNIQUES)
ON_CUDA: tuple[Any, ...] = (*fold.TECHNIQUES, *precision.TECHNIQUES, *schedule.TECHNIQUES, *schedule.CUDA_TECHNIQUES)
"""How to run it, by target."""

TECHNIQUES: tuple[Any, ...] = (*REWRITES, *dict.fromkeys((*ON_CPU, *ON_CUDA)))


def techniques(target: str) -> tuple[Any, ...]:
    """Return the techniques for a target (cpu or cuda), in a fixed order."""
    return (*REWRITES, *(ON_CUDA if target == "cuda" else ON_CPU))
