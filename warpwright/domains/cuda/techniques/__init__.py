"""The rewrites of CUDA texts, in the order in which the ladder tries them."""

from __future__ import annotations

from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import (
    constant_block,
    flatten,
    guard,
    launches,
    loops,
    qualifiers,
    specialise,
    spread,
    strided,
    tiles,
    vector,
)  # fmt: skip
from warpwright.domains.cuda.techniques.sums import cooperate, grid_stride, in_memory, tree
from warpwright.space import Technique


def techniques(target: str) -> tuple[Technique[Plan], ...]:
    """Return the techniques that make sense on a target."""
    always: tuple[Technique[Plan], ...] = (
        specialise.Specialise(),
        constant_block.ConstantBlock(),
        in_memory.LocalSum(idle=target == "cpu"),
        guard.Guard(),
        spread.Spread(),
        tiles.ProductTile(),
        tiles.TransposeTile(),
        tree.ShuffleTree(),
        strided.GatherAtomics(),
        strided.Privatise(),
        grid_stride.JoinSums(),
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
