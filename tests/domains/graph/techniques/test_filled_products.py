"""Products whose tiles do not fill a GPU's multiprocessors: what is chosen for them, and that pieces of their terms make the whole."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import hopper
import pytest
import torch
from exactness import assert_equal_in_double, captured, randomised
from interpreter import INTERPRETER
from torch import fx, nn
from torch.nn import functional as F

from benchmarks.kernels import fused_products as benchmark
from benchmarks.kernels.without_gpu import Record, recorded
from warpwright.base import Action
from warpwright.domains.graph import kernels
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques.products import fused_product, tiles
from warpwright.domains.graph.techniques.products.fused_product import FILLED, FusedProduct, FusedProducts
from warpwright.errors import NotApplicable

TECHNIQUE = FusedProducts()
ACTION = Action(TECHNIQUE.name)
_FILE = Path(benchmark.__file__).parents[1] / "results" / "fused_product_h200" / "rows.jsonl"
ROWS = [row for line in _FILE.read_text().splitlines() if "shapes" in (row := json.loads(line))["table"] and "TF32" not in row["case"]]
SEEN: dict[tuple[str, str], float] = {}
"""Case and blocks -> the least milliseconds of two runs, of what took the GPU longer than the host."""
for one in ROWS:
    for blocks, ms in one["ms"].items() if benchmark.CASES[one["case"]].flops > 3e10 else ():
        if list(map(int, blocks.split())) in tiles.BLOCKS:
            SEEN[one["case"], blocks] = min(ms, SEEN.get((one["case"], blocks), ms))


class Layer(nn.Module):
    """A product and what follows it."""

    def __init__(self, k: int, n: int) -> None:
        super().__init__()
        self.linear = nn.Linear(k, n)

    def forward(self, x):
        return F.silu(self.linear(x))


def _calls(ir: GraphIR) -> list[fx.Node]:
    return [node for node in ir.graph.nodes if isinstance(node.target, FusedProduct)]


def _on_meta(m: int, k: int, n: int) -> GraphIR:
    with torch.device("meta"):
        return captured(Layer(k, n).bfloat16(), torch.empty(m, k, dtype=torch.bfloat16))


def test_waves_of_tiles_take_what_an_h200_took() -> None:
    """Within a fifth, as do ends that take longer than others."""
    assert len(SEEN) > 15
    for (case, blocks), ms in SEEN.items():
        of = benchmark.CASES[case]
        guess = 1e3 * tiles.seconds(of.m, of.n, of.k, list(map(int, blocks.split())))
        assert 0.8 < guess / ms < 1.2, (case, blocks, guess, ms)


def test_what_fills_the_multiprocessors_is_legal_and_quicker(request: pytest.FixtureRequest) -> None:
    draw, cut = random.Random(request.config.getoption("--seed")), 0
    for _ in range(500):
        m, n, k = (8 * draw.randint(1, 1 << draw.randint(1, 11)) for _ in range(3))
        blocks = fused_product.block_shape(m, n, 2)
        found = tiles.filling(m, n, k, blocks)
        if found is None:
            continue
        pieces, steps = found[6], -(-k // found[2])
        cut += pieces > 1
        assert found[:6] in tiles.BLOCKS and 1 <= pieces <= tiles.MOST_PIECES[found[1]] and (pieces == 1 or pieces * tiles.LEAST_STEPS <= steps)
        assert tiles.seconds(m, n, k, [*found[:6], 2, 1, pieces]) <= tiles.WORTH * tiles.seconds(m, n, k, blocks)
    assert cut > 5


@pytest.mark.parametrize(
    ("size", "pieces"),
    [
        ((1024, 8192, 512), 4),  # 32 tiles of many terms
        ((4096, 4096, 1280), 2),  # 320 tiles, of which 56 are left over
        ((512, 4096, 4096), 1),  # 128 tiles of 128 x 128, in whose place 256 would be of half the size and take two waves
        ((8192, 768, 3072), None), ((4096, 4096, 4096), None), ((512, 1000, 1000), None),
    ],
)  # fmt: skip
def test_what_is_chosen(size: tuple[int, int, int], pieces: int | None) -> None:
    m, k, n = size
    ir = _on_meta(m, k, n)
    sites = list(TECHNIQUE.sites(ir))
    assert sites == ([ACTION] if pieces is None else [ACTION, FILLED])
    if pieces is None:
        with pytest.raises(NotApplicable):
            TECHNIQUE.apply(ir, FILLED)
        return
    plain, filled = (TECHNIQUE.apply(ir, action) for action in sites)
    [call] = _calls(filled)
    assert call.target.pieces == pieces and _calls(plain)[0].target.pieces == 1  # type: ignore[union-attr]
    graphs = [ir.with_schedule(Action("cuda_graph")) for ir in (filled, plain)]
    assert cost_model.seconds(graphs[0], "cuda") < cost_model.seconds(graphs[1], "cuda")


def test_a_filled_product_computes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_product, "_LEAST_FLOPS", 0.0)
    monkeypatch.setattr(tiles, "filling", lambda *_: [32, 32, 16, 2, 4, 2, 3])
    model, x = randomised(Layer(64, 24), 0).bfloat16(), torch.randn(5, 64, generator=torch.Generator().manual_seed(0)).bfloat16()
    before = captured(model, x)
    after = TECHNIQUE.apply(before, FILLED)
    assert_equal_in_double(before, after, [x], model)
    [call] = _calls(after)
    assert call.target.blocks[-1] == 3 and "2, 1, 3]" in call.target.python_text()  # type: ignore[union-attr]


DRAWN = '''
import random

from triton.runtime.interpreter import interpreter_builder


@triton.jit
def end(v0, row, column, m, n, q0, q1, q2, q3, q4, q5, q6, q7):
    return tl.maximum(v0 + tl.load(q0 + column, mask=column < n, other=0.0)[None, :].to(tl.float32), -1.0)


def product(x, w, by_rows, bias, shape, reduce=None, backwards=False):
    """`backwards`: the programs run from the last to the first, so that pieces come in another order."""
    there = interpreter_builder.set_grid_idx
    if backwards:
        interpreter_builder.set_grid_idx = lambda x, y, z: there(interpreter_builder.grid_dim[0] - 1 - x, y, z)
    try:
        return fused_product(x, w, by_rows, end, (bias,), shape, torch.float32, reduce)
    finally:
        interpreter_builder.set_grid_idx = there


draw = random.Random(SEED)
torch.manual_seed(SEED)
for _ in range(12):
    by_rows, batches = draw.random() < 0.5, draw.choice((1, 1, 2, 3))
    m = 16 * draw.randint(1, 5) if batches > 1 else draw.randint(1, 80)
    n, k = 8 * draw.randint(1, 12), 16 * draw.randint(1, 11) if batches > 1 else 8 * draw.randint(1, 22)
    kind, reduce = draw.choice((torch.float32, torch.float16)), draw.choice((None, None, "sum", "logsumexp"))
    parts, together, pieces = draw.choice((2, 4)), draw.choice((1, 2)), draw.randint(1, 8)
    lead = (batches,) if batches > 1 else ()
    x, bias = torch.randn(*lead, m, k).to(kind), torch.randn(n).to(kind)
    w = torch.randn(*lead, *((n, k) if by_rows else (k, n))).to(kind)
    shape = [16, 32, 16, 2, 4, 2, parts, together, pieces]
    said = lambda text: f"{(m, n, k, batches, by_rows, kind, reduce, shape)}: {text}"
    seen = product(x, w, by_rows, bias, shape, reduce)
    assert torch.equal(seen, product(x, w, by_rows, bias, shape, reduce, backwards=True)), said("the order counts")
    y = (x.double() @ (w.double().mT if by_rows else w.double()) + bias.double()).clamp_min(-1.0)
    if reduce:
        seen = seen.sum(-1) if reduce == "sum" else seen.logsumexp(-1)
        y = y.sum(-1) if reduce == "sum" else y.logsumexp(-1)
    torch.testing.assert_close(seen.double(), y, rtol=1e-4, atol=1e-3, msg=said)
'''


@INTERPRETER
def test_pieces_make_the_whole_whichever_comes_last(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Of any size: terms that are no multiple of the pieces, fewer steps than pieces, one row, batches, and rows that are reduced; bit by bit the
    same where programs run the other way round."""
    path = tmp_path / "drawn.py"
    path.write_text("import torch\n" + kernels.text("fused_product") + DRAWN.replace("SEED", str(request.config.getoption("--seed"))))
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


@INTERPRETER
def test_pieces_are_added_from_the_first_to_the_last(tmp_path: Path) -> None:
    """Bit by bit what products of their terms alone add up to in that order, and of numbers whose sum depends on it."""
    path = tmp_path / "order.py"
    path.write_text("import torch\n" + kernels.text("fused_product") + """

x, w = torch.randn(16, 96, generator=torch.Generator().manual_seed(0)), torch.randn(32, 96, generator=torch.Generator().manual_seed(1))
x[:, :32] *= 1e6
x[:, 64:] *= 1e-3
shape = [16, 32, 16, 2, 4, 2, 2, 1]
first, second, third = (fused_product(x[:, at : at + 32].contiguous(), w[:, at : at + 32].contiguous(), True, None, (), shape) for at in (0, 32, 64))
seen = fused_product(x, w, True, None, (), [*shape, 3])
assert torch.equal(seen, (first + second) + third)
assert not torch.equal(seen, first + (second + third))
""")
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


@pytest.mark.parametrize("blocks", [[128, 256, 64, 8, 8, 3, 4, 1, 2], pytest.param([128, 128, 64, 8, 8, 4, 2, 1, 4], marks=pytest.mark.slow)])
def test_the_kernel_fits_an_h200(blocks: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As compiled for sm_90a: nothing is spilled, and products of both loops run beside the copies of what they take next."""
    hopper.ptxas()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    of = hopper.names_of("import torch\n" + kernels.text("fused_product") + benchmark._ENDS, tmp_path)
    x, w, b, r = (torch.empty(size, device="meta", dtype=torch.bfloat16) for size in ((8192, 3072), (768, 3072), (768,), (8192, 768)))
    with recorded(record := Record()):
        of["fused_product"](x, w, True, of["end_residual"], (b, r), blocks)
    [launch] = record.launches
    assert not launch.problems and not launch.local_bytes and launch.blocks == (132,)
