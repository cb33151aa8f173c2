"""Where blocks share a row, L2 is told to read what a later block will load: memory is busy while blocks wait for one another's sums.

A row of 65,536 took two blocks of a multiprocessor through draw, load, wait and store; nothing was read while both waited or stored, and on an H200
such kernels moved 0.63 to 0.70 of what a copy does.
"""

from __future__ import annotations

from collections.abc import Sequence

from warpwright.domains.graph.cuda.plan import MULTIPROCESSORS, Plan

AHEAD = MULTIPROCESSORS * 2 // 3
"""Blocks between the one that runs and the one whose elements are asked for: a third of those that run at once; of 100 KB each, 9 MB of an L2 of 50.
0: nothing is asked for."""


def fetched(shape: Plan, index: str, places: Sequence[str], tensors: Sequence[int]) -> list[str]:
    """Return the lines that ask for the part of each of `tensors` that the block AHEAD later will load, where there are such.

    `places`: the lines that declare its pointers p from `row`; `shown` is the number that this block has drawn.
    """
    if not AHEAD or not tensors:
        return []
    share = shape.items * shape.group * shape.vector
    lines = [f"const int later = shown + {AHEAD};", f"const {index} row = later / {shape.parts}, first = ({index})(later % {shape.parts}) * {share};"]
    lines += ["(void)row;", *places, f"const int count = (int)({shape.length} - first < {share} ? {shape.length} - first : {share});"]
    lines += [f"fetch_ahead(p{t} + first, count);" for t in tensors]
    return [f"if (threadIdx.x == 0 && shown < {shape.units * shape.parts - AHEAD}) {{", *(f"    {line}" for line in lines), "}"]
