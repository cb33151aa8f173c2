"""The benchmark of products with other ends: its programs are what it says they are."""

from __future__ import annotations

import pytest

from benchmarks.kernels import product_ends
from benchmarks.kernels.product_ends import CASES, FUSED, GATED


@pytest.mark.parametrize("name", [name for name in CASES if "2:75" in name or "swiglu" in name or "4096 x 1024" in name])
def test_each_case_ends_in_the_kernel_that_it_is_about(name: str) -> None:
    case = CASES[name]
    ours, two = (product_ends.written(case, way) for way in ("ours", "two kernels"))
    kind = "fused_product" if case.technique is FUSED else "gated_product" if case.technique is GATED else "symmetric_product"
    assert f"def {kind}(" in ours and f"def {kind}(" not in two


def test_a_case_counts_the_operations_of_its_product() -> None:
    assert CASES["bf16 x x^T of 8192 x 4096"].flops == 2.0 * 8192 * 8192 * 4096
    assert CASES["bf16 8192 x 1024 -> 2 x 2816, swiglu"].flops == 2.0 * 8192 * 1024 * 2 * 2816


def test_few_terms_are_timed_as_two_programs_too() -> None:
    case = CASES["bf16 8192 x 768 -> 3072, gelu"]
    texts = [product_ends.written(case, way) for way in case.ways]
    assert [str(product_ends._FEW_SHAPE) in text for text in texts] == [False, False, True]
