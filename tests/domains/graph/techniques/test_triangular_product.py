"""Products of which one side of the diagonal is kept: the rewrite in float64, the kernel by Triton's interpreter where Triton is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hopper
import pytest
import torch
from exactness import assert_equal_in_double, captured, run
from interpreter import INTERPRETER
from torch import fx, nn
from torch.nn import functional as F

from benchmarks.kernels.without_gpu import Record, recorded
from warpwright.base import Action
from warpwright.domains.graph import kernels
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques.products import fused_product, symmetric_product
from warpwright.domains.graph.techniques.products.triangular_product import TriangularProduct, TriangularProducts
from warpwright.domains.graph.text import straight

TECHNIQUE = TriangularProducts()
ACTION = Action(TECHNIQUE.name)


class Of(nn.Module):
    """What `form` makes of x and y."""

    def __init__(self, form) -> None:
        super().__init__()
        self.form = form

    def forward(self, x, y):
        return self.form(x, y)


FORMS = {
    "lower": (lambda x, y: torch.tril(x @ y), (40, 48), (48, 40)),
    "upper": (lambda x, y: torch.triu(torch.mm(x, y), 2), (40, 16), (16, 40)),
    "below": (lambda x, y: F.linear(x, y).tril(-1), (72, 16), (72, 16)),
    "batches": (lambda x, y: torch.triu(x @ y.mT * 0.5), (3, 64, 32), (3, 64, 32)),
    "with an end": (lambda x, y: torch.tril(torch.exp(x @ y.T - 1.0) * x[:, :1]), (40, 16), (40, 16)),
    "of triangles": (lambda x, y: torch.triu(torch.triu(x) @ torch.triu(y)), (48, 48), (48, 48)),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symmetric_product, "is_worth_it", lambda *_: True)
    monkeypatch.setattr(symmetric_product, "SIDE", 32)
    monkeypatch.setattr(symmetric_product, "DEPTH", 16)
    monkeypatch.setattr(fused_product, "_LEAST_FLOPS", 0.0)
    monkeypatch.setattr(fused_product, "KINDS", (torch.float32,))


def _calls(ir: GraphIR) -> list[fx.Node]:
    return [node for node in ir.graph.nodes if isinstance(node.target, TriangularProduct)]


def _replaced(name: str) -> tuple[GraphIR, fx.Node, list[torch.Tensor]]:
    form, *sizes = FORMS[name]
    draw = torch.Generator().manual_seed(0)
    given = [torch.randn(size, generator=draw) * 0.2 for size in sizes]
    before = captured(Of(form), *given)
    after = TECHNIQUE.apply(before, ACTION)
    assert_equal_in_double(before, after, given, Of(form))
    [call] = _calls(after)
    return after, call, given


@pytest.mark.parametrize("name", FORMS)
def test_one_side_of_a_product_is_half_of_one(name: str) -> None:
    after, call, _ = _replaced(name)
    left = [str(node.target) for node in after.graph.nodes if node.op == "call_function"]
    assert not {"aten.mm.default", "aten.matmul.default", "aten.linear.default", "aten.exp.default"} & {*left}
    assert sum("tri" in one for one in left if one.startswith("aten")) == (2 if name == "of triangles" else 0)
    assert call.target.kept == ("upper" if name in ("upper", "batches", "of triangles") else "lower")  # type: ignore[union-attr]


def test_what_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def sites(form, *sizes: tuple[int, ...]) -> bool:
        return bool(list(TECHNIQUE.sites(captured(Of(form), *map(torch.randn, sizes)))))

    assert sites(lambda x, y: torch.tril(x @ y), (32, 16), (16, 32))
    assert not sites(lambda x, y: torch.tril(x @ y), (32, 16), (16, 40))  # no square
    assert not sites(lambda x, y: torch.tril(x @ y, 1), (32, 16), (16, 32))  # tiles above the diagonal would be needed
    assert not sites(lambda x, y: torch.triu(x @ y, -1), (32, 16), (16, 32))
    assert not sites(lambda x, y: (lambda z: torch.tril(z) + z)(x @ y), (32, 16), (16, 32))
    assert not sites(lambda x, y: torch.tril(x @ y), (3, 48, 16), (3, 16, 48))  # a tile would lie in two of a batch
    assert not sites(lambda x, y: torch.tril(x @ y), (3, 32, 24), (3, 24, 32))  # terms of two
    assert not sites(lambda x, y: torch.tril(x @ y), (3, 32, 16), (16, 32))
    monkeypatch.setattr(fused_product, "KINDS", (torch.bfloat16,))
    assert not sites(lambda x, y: torch.tril(x @ y), (32, 16), (16, 32))


def test_the_estimate_is_half_of_a_product(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    for m, gains in ((8192, True), (4096, True), (1024, False)):
        given = [torch.empty(m, m, dtype=torch.bfloat16, device="meta") for _ in range(2)]
        before = captured(Of(lambda x, y: torch.triu(x @ y)), *given)
        assert bool(list(TECHNIQUE.sites(before))) == gains
        if gains:
            ours, library = (cost_model.seconds(ir, "cuda") for ir in (TECHNIQUE.apply(before, ACTION), before))
            assert 0.4 < ours / library < 0.9, (m, ours, library)


@INTERPRETER
@pytest.mark.parametrize("name", ["with an end", *(pytest.param(name, marks=pytest.mark.slow) for name in FORMS)])
def test_the_kernel_by_the_interpreter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, for the interpreter has no bfloat16 products."""
    after, call, inputs = _replaced(name)
    given: list[torch.Tensor] = []
    interpreted = TriangularProduct.__call__
    monkeypatch.setattr(TriangularProduct, "__call__", lambda self, *tensors: (given.extend(tensors), interpreted(self, *tensors))[1])
    run(after, inputs, {}, flat=True)
    torch.save((given, interpreted(call.target, *given)), tmp_path / "given.pt")  # type: ignore[arg-type]
    path = tmp_path / "generated.py"
    path.write_text("import torch\n" + "\n".join(straight.kernels(after)) + f"""
given, plain = torch.load({str(tmp_path / "given.pt")!r}, weights_only=False)
torch.testing.assert_close({call.target.__name__}(*given), plain, rtol=1e-5, atol=1e-5)
""")  # type: ignore[union-attr]
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


@INTERPRETER
def test_every_number_of_tiles_and_diagonal_is_covered(tmp_path: Path) -> None:
    """Even and odd numbers of tiles a side, the last ones partly there; diagonals within a tile and beyond; NaN on the other side is a zero."""
    path = tmp_path / "direct.py"
    path.write_text("import torch\n" + kernels.text("symmetric_product") + """

draw = torch.Generator().manual_seed(0)
cases = (8, True, "lower", 0), (80, False, "upper", 0), (40, True, "upper", 20), (96, False, "lower", -3), (96, True, "upper", 99)
for m, by_rows, kept, diagonal in cases:
    x, w = torch.randn(m, 16, generator=draw), torch.randn(m, 16, generator=draw)
    x[0 if kept == "lower" else m - 1] = float("nan")  # of the row that has one number at most
    y = triangular_product(x, w if by_rows else w.mT.contiguous(), by_rows, None, (), [16, 16, 2, 4, 2, 2, 1], kept, diagonal)
    plain = x @ w.mT
    torch.testing.assert_close(y, plain.tril(diagonal) if kept == "lower" else plain.triu(diagonal), rtol=1e-5, atol=1e-5, equal_nan=True)
empty = torch.empty(0, 16)
assert triangular_product(empty, empty, True, None, (), [16, 16, 4, 4, 2, 2, 1], "lower", 0).shape == (0, 0)
""")
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


@pytest.mark.parametrize("kept", ["lower", "upper"])
def test_the_kernel_fits_an_h200(kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hopper.ptxas()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    of = hopper.names_of("import torch\n" + kernels.text("symmetric_product"), tmp_path)
    x, w = (torch.empty(size, device="meta", dtype=torch.bfloat16) for size in ((4096, 4096), (4096, 4096)))
    with recorded(record := Record()):
        of["triangular_product"](x, w, kept == "lower", None, (), [128, 64, 8, 8, 4, 2, 1], kept, 0)
    [launch] = record.launches
    assert not launch.problems and not launch.local_bytes and launch.blocks == (132,)
