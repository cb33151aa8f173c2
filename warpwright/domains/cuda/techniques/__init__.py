"""The rewrites of CUDA texts, in the order in which the ladder tries them."""

from __future__ import annotations

from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import constant_block, cooperate, launches, loops, qualifiers, specialise, strided, tiles, tree
from warpwright.space import Technique


def techniques(target: str) -> tuple[Technique[Plan], ...]:
    """Return the techniques that make sense on a target."""
    always: tuple[Technique[Plan], ...] = (
        specialise.Specialise(),
        constant_block.ConstantBlock(),
        tiles.ProductTile(),
        tiles.TransposeTile(),
        tree.ShuffleTree(),
        strided.GatherAtomics(),
        strided.Privatise(),
        cooperate.Cooperate(),
        launches.Swap(),
        launches.Block(),
        strided.Coarsen(),
        loops.Unroll(),
        qualifiers.Restrict(),
    )
    return always if target == "cpu" else (*always, qualifiers.FastMath())
