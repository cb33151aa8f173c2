"""The benchmark of products with other ends: its programs are what it says they are, and what it measured is what the estimate says of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.kernels import product_ends
from benchmarks.kernels.product_ends import CASES, FUSED
from warpwright.base import Action
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.techniques.products.fused_product import FusedProduct
from warpwright.domains.graph.techniques.schedule import CudaGraph

_FILE = Path(product_ends.__file__).parents[1] / "results" / "product_ends_h200" / "rows.jsonl"
ROWS = [json.loads(line) for line in _FILE.read_text().splitlines()]


@pytest.mark.parametrize("name", [name for name in CASES if "2:75" in name or "4096 x 1024" in name])
def test_each_case_ends_in_the_kernel_that_it_is_about(name: str) -> None:
    case = CASES[name]
    ours, two = (product_ends.written(case, way) for way in ("ours", "two kernels"))
    kind = "fused_product" if case.technique is FUSED else "symmetric_product"
    assert f"def {kind}(" in ours and f"def {kind}(" not in two


def test_a_case_counts_the_operations_of_its_product() -> None:
    assert CASES["bf16 x x^T of 8192 x 4096"].flops == 2.0 * 8192 * 8192 * 4096
    assert CASES["bf16 16384 x 1024 -> 4096, gelu, mean"].flops == 2.0 * 16384 * 1024 * 4096


def test_few_terms_are_timed_as_two_programs_too() -> None:
    case = CASES["bf16 8192 x 768 -> 3072, gelu"]
    texts = [product_ends.written(case, way) for way in case.ways]
    assert [str(product_ends._FEW_SHAPE) in text for text in texts] == [False, False, True]


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.filled])
def test_few_tiles_are_timed_in_other_blocks_too(name: str) -> None:
    """Of each such case the filled program is another one, and quicker by the estimate where a host's launches are left out."""
    irs = [product_ends.program(CASES[name], way)[0] for way in ("ours", product_ends.FILL)]
    blocks = [node.target.blocks for ir in irs for node in ir.graph.nodes if isinstance(node.target, FusedProduct)]
    assert len(blocks) == 2 and blocks[0] != blocks[1]
    ours, filled = (cost_model.seconds(CudaGraph().apply(ir, Action("cuda_graph")), "cuda") for ir in irs)
    assert filled < ours


@pytest.mark.parametrize("row", [row for row in ROWS if row["case"] in CASES], ids=lambda row: row["case"])
def test_the_estimate_puts_first_what_was_faster_on_an_h200(row: dict) -> None:
    """Norms and reductions by instructions a result, small products by what a host takes to launch Triton's kernels."""
    ours, two = (cost_model.seconds(product_ends.program(CASES[row["case"]], way)[0], "cuda") for way in ("ours", "two kernels"))
    assert (ours < two) == (row["ours ms"] < row["two kernels ms"]), (ours, two)


def test_a_small_product_is_the_librarys_and_a_cuda_graphs() -> None:
    """1024 x 1024 -> 4096 with gelu took 0.070 to 0.107 ms on an H200 whatever the kernel's shape, and eager 0.025."""
    case = product_ends.Case(product_ends._linear(1024, 4096), "return F.gelu(self.linear(x))", (1024, 1024), 4096, FUSED)
    ours, two = (product_ends.program(case, way)[0] for way in ("ours", "two kernels"))
    assert cost_model.seconds(ours, "cuda") > 1.5 * cost_model.seconds(two, "cuda")
    graphs = [CudaGraph().apply(ir, Action("cuda_graph")) for ir in (ours, two)]
    assert cost_model.seconds(graphs[0], "cuda") < cost_model.seconds(graphs[1], "cuda") < cost_model.seconds(two, "cuda")
