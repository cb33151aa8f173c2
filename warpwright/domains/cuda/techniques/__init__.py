"""The rewrites of CUDA texts, in the order in which the ladder tries them."""

from __future__ import annotations

from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import (
    constant_block,
    cooperate,
    flatten,
    guard,
    launches,
    loops,
    memory_sums,
    qualifiers,
    specialise,
    spread,
    strided,
    strided_sums,
    tiles,
    tree,
    vector,
)  # fmt: skip
from warpwright.space import Technique


def techniques(target: str) -> tuple[Technique[Plan], ...]:
    """Return the techniques that make sense on a target."""
    always: tuple[Technique[Plan], ...] = (
        specialise.Specialise(),
        constant_block.ConstantBlock(),
        memory_sums.LocalSum(idle=target == "cpu"),
        guard.Guard(),
        spread.Spread(),
        tiles.ProductTile(),
        tiles.TransposeTile(),
        tree.ShuffleTree(),
        strided.GatherAtomics(),
        strided.Privatise(),
        strided_sums.JoinSums(),
        vector.Vectorise(),
        cooperate.Cooperate(),
        flatten.Flatten(),
        launches.Swap(),
        launches.Block(),
        strided.Coarsen(),
        loops.Unroll(),
    )
    return always if target == "cpu" else (*always, *_OF_NVCC)


_OF_NVCC: tuple[Technique[Plan], ...] = (qualifiers.Restrict(), qualifiers.FastMath())
"""What a translation makes nothing of: it has one kind of load, and exact functions."""
