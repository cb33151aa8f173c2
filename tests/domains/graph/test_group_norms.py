"""Group norms of features without places, [samples, channels], in fused kernels: with small groups, with what stands around them."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from tests.domains.graph import test_cpp, test_cuda

pytestmark = pytest.mark.compiler

KINDS = ("normal", "offset")
DRAWN = torch.Generator().manual_seed(0)
WEIGHT, BIAS = torch.rand(96, generator=DRAWN) + 0.5, torch.randn(96, generator=DRAWN)


@pytest.mark.parametrize("groups", [2, 6, 24, 32])
def test_a_group_norm_of_features_is_one_kernel_with_its_neighbours(groups: int) -> None:
    functions = [lambda x, w, b: F.leaky_relu(F.group_norm(x * 0.5 + b, groups, w, b), 0.01) * 2]
    kernels = test_cuda.check(functions, (40, 96), KINDS, (WEIGHT, BIAS))
    assert len(kernels) == 1
    assert all("group_norm" in str(kernel.calls) for kernel in kernels)


def test_one_without_parameters() -> None:
    assert len(test_cuda.check([lambda x: F.group_norm(x, 4) + 1], (33, 64), KINDS)) == 1


def test_on_a_cpu() -> None:
    test_cpp.check([lambda x: torch.relu(F.group_norm(x, 24)) + x], (700, 960), KINDS)
