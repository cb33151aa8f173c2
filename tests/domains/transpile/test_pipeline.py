"""The pipeline is a list: its passes, the files behind them and the page that describes them say the same."""

from __future__ import annotations

from pathlib import Path

from warpwright.domains import transpile
from warpwright.domains.transpile import pipeline

PAGE = Path(__file__).parents[3] / "docs" / "transpile.md"
ROOM = Path(pipeline.__file__).parent
KERNEL = """__global__ void k(const float* x, float* y, int n) {
  __shared__ float s[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = i < n ? x[i] : 0;
  __syncthreads();
  if (i < n) y[i] = s[63 - threadIdx.x];
}"""


def test_the_page_has_a_row_for_each_pass_in_order() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    # rows of blocks are cut by the same pass as blocks
    names = [step.name for step in pipeline.PASSES if step.name != "barrier fission of rows"]
    places = [next(at for at, row in enumerate(rows) if row.startswith(f"| {name}")) for name in names]
    assert places == sorted(places)


def test_the_page_names_every_technique() -> None:
    page = PAGE.read_text().replace("-", " ").replace("_", " ")
    for path in (ROOM / "passes" / "loops").glob("[a-z]*.py"):
        assert path.stem.replace("_", " ") in page, path.name


def test_passes_that_do_not_apply_leave_a_kernel_to_the_others() -> None:
    best = transpile.compile_text(KERNEL, blocks={"k": (64, 1, 1)})
    loops = transpile.compile_text(KERNEL, tier="loops", blocks={"k": (64, 1, 1)})
    assert best.kernels["k"].tier == "vectors" and loops.kernels["k"].tier == "loops"
    assert "#pragma omp simd" in best.source.partition("k_block")[2] and "#pragma omp simd" not in loops.source.partition("k_block")[2]
