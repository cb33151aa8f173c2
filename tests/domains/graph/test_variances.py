"""Variances of C++ kernels against float64, down columns and along rows, wherever the mean lies and whatever comes first."""

from __future__ import annotations

import pytest
import torch

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import Function, Several, fused
from warpwright.domains.graph.ir import aten, is_op

pytestmark = pytest.mark.compiler

MATRIX: list[Function] = [
    lambda x: x.var(0) * 2, lambda x: x.std(0, correction=0) + 1, lambda x: x.var(1) * 2, lambda x: x.var() * 2,
    lambda x: x.var(0, unbiased=False) + 1,
]  # fmt: skip
IMAGES: list[Function] = [
    lambda x: x.var(1) * 2, lambda x: x.var((0, 2, 3)) * 2, lambda x: x.std((1, 2)) * 2, lambda x: x.var((0, 1), correction=0) * 2,
]  # fmt: skip
MOST = 3e-6
"""Relative to the largest answer: 25 units in the last place. Torch sums in double: at most 1."""


@pytest.mark.parametrize(("functions", "size"), [(MATRIX, (333, 130)), (IMAGES, (5, 70, 9, 11))], ids=["matrix", "images"])
def test_a_variance_keeps_its_digits_wherever_the_mean_lies(functions: list[Function], size: tuple[int, ...]) -> None:
    after, optimized, _ = fused(captured(Several(functions), torch.randn(size)))
    assert not [node for node in after.graph.nodes if is_op(node, aten.var, aten.std)]
    drawn = torch.randn(size, generator=torch.Generator().manual_seed(7))
    last = torch.arange(drawn.numel()).reshape(size) / drawn.numel()
    some = {f"mean {mean:g}": drawn + mean for mean in (0, 1, 1e2, -1e4, 1e5, 1e6)}
    some |= {f"{mean:g} at the end": drawn + last * mean for mean in (1e2, 1e6)}
    some |= {f"first {first:g}": torch.where(last < 2e-2, torch.tensor(first), drawn + 1e4) for first in (0.0, -1e6)}
    some |= {"small": drawn * 1e-3 + 1, "one value": torch.full(size, 12345.678)}
    for what, x in some.items():
        for number, (seen, exact) in enumerate(zip(optimized(x), Several(functions)(x.double()), strict=True)):
            error = float((seen.double() - exact).abs().max()) / max(float(exact.abs().max()), 1e-30)
            assert error <= MOST, f"result {number} of {what}: {error:.1e}"
