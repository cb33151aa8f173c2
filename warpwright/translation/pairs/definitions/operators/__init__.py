"""The table of operators: name -> a function that draws sizes and returns a graph.

The order of the table is part of the meaning of a seed: append new operators, and do not sort.
"""

from warpwright.translation.pairs.definitions.operators import (
    attention,
    indexed,
    layout,
    matmul,
    norms,
    pointwise,
    quantised,
    reductions,
    scans,
    transforms,
    windows,
)
from warpwright.translation.pairs.definitions.operators.table import Operator

OPERATORS: dict[str, Operator] = {
    **pointwise.TABLE, **reductions.TABLE, **layout.TABLE, **scans.TABLE, **matmul.TABLE, **windows.TABLE, **norms.TABLE, **attention.TABLE,
    **quantised.TABLE, **indexed.TABLE, **transforms.TABLE,
}  # fmt: skip
