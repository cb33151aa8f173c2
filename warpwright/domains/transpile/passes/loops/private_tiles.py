"""Private tiles: a thread's own array that a region's loops come back to is copied for the region, and may be in registers there.

    for (threads) for (k...) for (i, j...) sum_t[thread][i * 8 + j] += ...   ->   for (threads) { sum = sum_t[thread]; for (k...) ...;
    sum_t[thread] = sum; }

In memory that others might see, each product loads and stores its sum. Where the innermost loop runs along the array, and along what else it reads,
the vectors are those of one thread, and the loop over threads is left alone. (A product of matrices in tiles of 8 by 8 a thread, 128 x 128 x 8 at a
time, AVX2: 5.9 GFLOP/s with each thread's sums in memory, 56 with a copy; the matrix product of MKL reaches 76.)
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.analysis.arrays import tiles
from warpwright.domains.transpile.analysis.regions import Plan
from warpwright.domains.transpile.ir import Stmt


def kept(stmts: Sequence[Stmt], plan: Plan) -> frozenset[int]:
    """Return the keys of the per-thread arrays that are copied while a region runs."""
    named = {place[0] for place in tiles.elements(stmts)} & plan.arrays
    return frozenset(key for key in named if _fits(stmts, plan, key))


def _fits(stmts: Sequence[Stmt], plan: Plan, key: int) -> bool:
    var = plan.variables[key]
    if not var.dims or var.type not in tiles.PLAIN or key in plan.facts.addressed:
        return False
    if any(isinstance(s, ir.Declare) and s.var.key == key for s in ir.walk(tuple(stmts))):
        return False
    return tiles.used_by_element(stmts, var) and tiles.reused(stmts, var)


def along(stmts: Sequence[Stmt], keys: frozenset[int], plan: Plan) -> bool:
    """Say whether the innermost loops run along the copied arrays."""
    return bool(keys) and tiles.along_the_array(stmts, {key: plan.variables[key] for key in keys})
