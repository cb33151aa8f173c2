"""Products of a matrix and its own transpose: the rewrite in float64, the kernel by Triton's interpreter where Triton is installed."""

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
from warpwright.domains.graph.techniques.products.symmetric_product import SymmetricProduct, SymmetricProducts
from warpwright.domains.graph.text import straight

TECHNIQUE = SymmetricProducts()
ACTION = Action(TECHNIQUE.name)


class Of(nn.Module):
    """What `form` makes of x."""

    def __init__(self, form) -> None:
        super().__init__()
        self.form = form

    def forward(self, x):
        return self.form(x)


FORMS = {
    "mm": (lambda x: x @ x.T, (64, 48)),
    "of columns": (lambda x: x.T @ x, (40, 72)),
    "linear": (lambda x: F.linear(x, x), (24, 16)),
    "bmm": (lambda x: torch.bmm(x, x.transpose(1, 2)), (3, 64, 32)),
    "bmm of columns": (lambda x: x.mT @ x, (3, 32, 64)),
    "scaled": (lambda x: torch.exp((x @ x.T) / 0.07 - 2.0), (40, 16)),
    "gram of images": (lambda x: (lambda f: f @ f.transpose(1, 2) / 512)(x.flatten(2)), (2, 32, 4, 8)),
    "of rows and columns": (lambda x: 2.0 - x.mm(x.t()) * x[:, :1] + x[:, 1], (40, 16)),
    "with a residual": (lambda x: F.relu(x @ x.T) + torch.cat((x, x), 1), (32, 16)),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(symmetric_product, "is_worth_it", lambda *_: True)
    monkeypatch.setattr(fused_product, "KINDS", (torch.float32,))
    monkeypatch.setattr(symmetric_product, "SIDE", 32)
    monkeypatch.setattr(symmetric_product, "DEPTH", 16)


def _calls(ir: GraphIR) -> list[fx.Node]:
    return [node for node in ir.graph.nodes if getattr(node.target, "__name__", "").startswith("symmetric_product_")]


def _replaced(name: str) -> tuple[GraphIR, fx.Node, torch.Tensor]:
    form, size = FORMS[name]
    x = torch.randn(size, generator=torch.Generator().manual_seed(0)) * 0.2
    before = captured(Of(form), x)
    after = TECHNIQUE.apply(before, ACTION)
    assert_equal_in_double(before, after, [x], Of(form))
    [call] = _calls(after)
    return after, call, x


@pytest.mark.parametrize("name", FORMS)
def test_a_product_with_its_own_transpose_is_half_of_one(name: str) -> None:
    after, call, _ = _replaced(name)
    left = {str(node.target) for node in after.graph.nodes if node.op == "call_function"}
    assert not left & {"aten.mm.default", "aten.matmul.default", "aten.bmm.default", "aten.linear.default", "aten.div.Tensor", "aten.exp.default"}
    assert call.target.by_rows == ("columns" not in name or name == "of rows and columns")  # type: ignore[union-attr]


def test_what_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def sites(form, *size: int, kind: torch.dtype = torch.float32) -> bool:
        return bool(list(TECHNIQUE.sites(captured(Of(form), torch.randn(size).to(kind)))))

    assert sites(lambda x: x @ x.T, 64, 48)
    assert not sites(lambda x: x @ x.T, 64, 48, kind=torch.float64)
    assert not sites(lambda x: x @ (x + 0.0).T, 64, 48)
    assert not sites(lambda x: x @ x, 64, 64)
    assert not sites(lambda x: x @ x.T, 60, 48)  # rows of the result that are no multiples of 16 bytes in 16 bits
    assert not sites(lambda x: x @ x.mT, 3, 48, 32)  # a tile would lie in two of a batch
    assert not sites(lambda x: x.mT @ x, 3, 24, 64)
    assert not sites(lambda x: F.linear(x, x, x[0]), 48, 48)
    assert list(TECHNIQUE.sites(captured(Of(lambda x: (x @ x.mT)[:, None] * x[None]), torch.randn(3, 64, 64))))


def test_it_is_tried_where_tiles_fill_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    worth = symmetric_product.is_worth_it
    assert [worth(1, m, 4096) for m in (512, 2048, 4096, 8192, 16384)] == [False, False, True, True, True]
    assert worth(64, 512, 1024) and not worth(1, 4096, 128) and not worth(8, 128, 65536)
    assert symmetric_product.tiles(4096) == 528 and symmetric_product.tiles(100) == 1


def test_the_estimate_is_half_of_a_product() -> None:
    x = torch.empty(8192, 4096, dtype=torch.bfloat16, device="meta")
    with pytest.MonkeyPatch.context() as patched:
        patched.undo()
        patched.setattr(fused_product, "KINDS", (torch.bfloat16,))
        patched.setattr(symmetric_product, "SIDE", 128)
        before = captured(Of(lambda x: x @ x.T), x)
        after = TECHNIQUE.apply(before, ACTION)
        ours, library = (cost_model.seconds(ir, "cuda") for ir in (after, before))
    assert 0.5 < ours / library < 0.7


@INTERPRETER
@pytest.mark.parametrize("name", ["of rows and columns", *(pytest.param(name, marks=pytest.mark.slow) for name in FORMS)])
def test_the_kernel_by_the_interpreter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, for the interpreter has no bfloat16 products."""
    after, call, x = _replaced(name)
    given: list[torch.Tensor] = []
    interpreted = SymmetricProduct.__call__
    monkeypatch.setattr(SymmetricProduct, "__call__", lambda self, *tensors: (given.extend(tensors), interpreted(self, *tensors))[1])
    run(after, [x], {}, flat=True)
    torch.save((given, interpreted(call.target, *given)), tmp_path / "given.pt")  # type: ignore[arg-type]
    path = tmp_path / "generated.py"
    path.write_text("import torch\n" + "\n".join(straight.kernels(after)) + f"""
given, plain = torch.load({str(tmp_path / "given.pt")!r}, weights_only=False)
torch.testing.assert_close({call.target.__name__}(*given), plain, rtol=1e-5, atol=1e-5)
""")  # type: ignore[union-attr]
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


@INTERPRETER
def test_every_number_of_tiles_is_covered_once(tmp_path: Path) -> None:
    """Even and odd numbers of tiles a side, more and fewer than a group, the last ones partly there, one program and more."""
    path = tmp_path / "direct.py"
    path.write_text("import torch\n" + kernels.text("symmetric_product") + """

for m in (8, 32, 80, 96):
    x = torch.randn(m, 16, generator=torch.Generator().manual_seed(m))
    torch.testing.assert_close(symmetric_product(x, True, None, (), [16, 16, 2, 4, 2, 2, 1]), x @ x.mT, rtol=1e-5, atol=1e-5)
    x = torch.randn(2, 16, m, generator=torch.Generator().manual_seed(m))
    if m % 16 == 0:
        torch.testing.assert_close(symmetric_product(x, False, None, (), [16, 16, 2, 4, 2, 4, 2]), x.mT @ x, rtol=1e-5, atol=1e-5)
assert symmetric_product(torch.empty(0, 16), True, None, (), [16, 16, 4, 4, 2, 2, 1]).shape == (0, 0)
""")
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


@pytest.mark.parametrize("by_rows", [True, False])
def test_the_kernel_fits_an_h200(by_rows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hopper.ptxas()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    of = hopper.names_of("import torch\n" + kernels.text("symmetric_product"), tmp_path)
    x = torch.empty(4096, 1024, device="meta", dtype=torch.bfloat16)
    with recorded(record := Record()):
        of["symmetric_product"](x, by_rows, None, (), [128, 64, 8, 8, 4, 2, 1])
    [launch] = record.launches
    assert not launch.problems and not launch.local_bytes and launch.blocks == (132 if by_rows else 36,)
