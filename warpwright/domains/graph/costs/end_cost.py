"""How long the ends of products take that are part of the products' kernels: what `cost_model` adds to the products themselves.

    seconds(call, written) = max(written, issued)    element by element
                             written + issued        with a norm, or of reduced rows

No tensor core works while a tile ends (a program has a multiprocessor for itself), so an end is paid by its instructions; a kernel after the product
has them in the shadow of its bytes. So exponentials of all results pay off where that spares several passes over them, and GELU of 1,024 terms and a
mean does not (results/product_ends_h200: 1.09 and 0.85 of two kernels). That an element-wise end hides its instructions behind what it writes, and
one with a norm does not, is what the rows say (8192 x 4096 -> 16384 with gelu is 0.99 of cuBLAS alone); why was not looked into.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from torch import fx

from warpwright.domains.graph.ir import aten, shape
from warpwright.domains.graph.techniques.products.fused_product import FusedProduct

ISSUED = 132 * 128 * 1.98e9
"""Instructions of numbers that an H200 issues a second at its highest clock: no end is quicker. The rows' ends reach 0.4 to 0.6 of it."""
INSTRUCTIONS: Mapping[Any, int] = {
    aten.gelu.default: 22, aten.silu.default: 16, aten.sigmoid.default: 16, aten.tanh.default: 18, aten.mish.default: 18, aten.exp.default: 8,
    aten.group_norm.default: 15,
}  # fmt: skip
"""Of a result, in machine code for sm_90a less a product's without an end (gelu 31.0 less 8.6); a call that asks the unit of exponentials and
reciprocals counts at least 8 a time, for it takes an eighth of a multiprocessor's rate. mish was not counted: its parts are tanh's. Other calls
count 1."""
REDUCED = {"logsumexp": 13}
"""The same of a reduction of rows; others count 1."""


def seconds(node: fx.Node, written: float) -> float:
    """Return the estimate of a `fused_product`'s end, which takes `written` seconds to write its result."""
    target = node.target
    assert isinstance(target, FusedProduct)
    calls = [one.target for one in target.calls.nodes if one.op == "call_function"]
    count = sum(INSTRUCTIONS.get(call, 1) for call in calls) + (REDUCED.get(target.reduce, 1) if target.reduce else 0)
    columns = shape(node.args[1])[-2 if target.by_rows else -1]  # type: ignore[arg-type]
    issued = math.prod(shape(node.args[0])[:-1]) * columns * count / ISSUED  # type: ignore[arg-type]
    follow = target.reduce is not None or aten.group_norm.default in calls
    return written + issued if follow else max(written, issued)
