"""Products with a fused end: the rewrite in float64, the kernel by Triton's interpreter where Triton is installed."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import hopper
import pytest
import torch
from exactness import assert_equal_in_double, captured, randomised, run, state_of
from interpreter import INTERPRETER
from torch import fx, nn
from torch.nn import functional as F

from benchmarks.kernels import fused_products as benchmark
from benchmarks.kernels.without_gpu import Record, recorded
from warpwright.base import Action
from warpwright.domains.graph import cost_model, kernels
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques.kernels import fused_product, half_products
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.domains.graph.techniques.kernels.fused_product import FusedProduct, FusedProducts
from warpwright.domains.graph.techniques.kernels.half_products import HalfProducts
from warpwright.domains.graph.text import straight
from warpwright.search import ladder

TECHNIQUE = FusedProducts()
ACTION = Action(TECHNIQUE.name)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_product, "_LEAST_FLOPS", 0.0)


class Block(nn.Module):
    """A product and what follows it; `end(module, y, x)`."""

    def __init__(self, end, bias: bool = True, n: int = 24) -> None:
        super().__init__()
        self.linear, self.end = nn.Linear(16, n, bias), end
        self.factor, self.other = nn.Parameter(torch.randn(n)), nn.Parameter(torch.randn(16, n))

    def forward(self, x):
        return self.end(self, self.linear(x), x)


ENDS = {
    "gelu": lambda m, y, x: F.gelu(y),
    "scaled, shifted, silu": lambda m, y, x: F.silu(y * m.factor + 0.5),
    "gated": lambda m, y, x: y * torch.sigmoid(y),
    "residual": lambda m, y, x: F.relu(y) + torch.cat((x, x[..., :8]), -1),
}


def _calls(ir: GraphIR) -> list[fx.Node]:
    return [node for node in ir.graph.nodes if getattr(node.target, "__name__", "").startswith("fused_product_")]


def _replaced(model: nn.Module, kind: torch.dtype = torch.bfloat16) -> tuple[GraphIR, fx.Node, torch.Tensor]:
    model, x = randomised(model, 0).to(kind), torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0)).to(kind)
    before = captured(model, x)
    after = TECHNIQUE.apply(before, ACTION)
    assert_equal_in_double(before, after, [x], model)
    [call] = _calls(after)
    return after, call, x


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("bias", [True, False])
def test_a_product_takes_in_what_follows(name: str, bias: bool) -> None:
    after, call, _ = _replaced(Block(ENDS[name], bias))
    assert not [node for node in after.graph.nodes if node.op == "call_function" and "linear" in str(node.target)]
    assert len(call.args) == 2 + bias + (name in ("scaled, shifted, silu", "residual"))


def test_products_of_other_calls() -> None:
    _, call, _ = _replaced(Block(lambda m, y, x: (x @ m.other).relu()))
    assert not call.target.by_rows  # type: ignore[union-attr]
    _, call, _ = _replaced(Block(lambda m, y, x: torch.addmm(m.factor, x[0], m.other).relu()))
    assert call.target.biased  # type: ignore[union-attr]


def test_what_is_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def sites(model: nn.Module, kind: torch.dtype = torch.bfloat16, size: tuple[int, ...] = (5, 16)) -> list[Action]:
        return list(TECHNIQUE.sites(captured(model.to(kind), torch.randn(size).to(kind))))

    assert not sites(Block(lambda m, y, x: y))  # a bias is the library's too
    assert not sites(Block(ENDS["gelu"]), torch.float32)
    assert not sites(Block(ENDS["gelu"], n=20))  # rows of 40 bytes
    assert not sites(Block(lambda m, y, x: (F.gelu(y), y)))  # the product is a result
    assert not sites(Block(lambda m, y, x: (x[:, None] @ x[:, :, None]).relu()))
    monkeypatch.setattr(fused_product, "_LEAST_FLOPS", 1e9)
    assert not sites(Block(ENDS["gelu"]))


def test_the_text_is_a_program() -> None:
    after, call, _ = _replaced(Block(ENDS["gelu"]))
    text = "\n".join(straight.kernels(after))
    names = [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    assert names.count("fused_product") == 1 and "_gelu" in names and call.target.__name__ in names  # type: ignore[union-attr]
    assert "fused_product" in kernels.text("fused_product")


@INTERPRETER
@pytest.mark.parametrize(
    ("name", "parts"), [("residual", 4), *(pytest.param(name, 2, marks=pytest.mark.slow) for name in ENDS)]
)  # fmt: skip
def test_the_kernel_by_the_interpreter(name: str, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, for the interpreter has no bfloat16 products."""
    monkeypatch.setattr(fused_product, "KINDS", (torch.float32,))
    monkeypatch.setattr(fused_product, "block_shape", lambda m, n, size: [32, 32, 16, 2, 4, 2])
    monkeypatch.setattr(fused_product, "parts_of", lambda *_: parts)
    model = randomised(Block(ENDS[name]), 0)
    after, call, x = _replaced(model, torch.float32)
    state = {node.name: model.get_parameter(after.state[node.name]).detach() for node in call.all_input_nodes if node.name in after.state}
    more = torch.cat((x, x[..., :8]), -1)
    given = [x if arg.name == "x" else state.get(arg.name, more) for arg in call.args]  # type: ignore[union-attr]
    torch.save((given, model(x).detach()), tmp_path / "given.pt")
    path = tmp_path / "generated.py"
    path.write_text("import torch\n" + "\n".join(straight.kernels(after)) + f"""
given, plain = torch.load({str(tmp_path / "given.pt")!r}, weights_only=False)
torch.testing.assert_close({call.target.__name__}(*given), plain, rtol=1e-5, atol=1e-5)
""")  # type: ignore[union-attr]
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


def test_a_tile_ends_in_parts_that_fit_shared_memory() -> None:
    """As compiled for an H200: 213,016 bytes of float32 results in two parts, and 278,552 where the end reads a tensor like them, of 232,448."""
    wide = fused_product.block_shape(1024, 8192, 2)
    assert wide == [128, 256, 64, 8, 8, 3]
    assert [fused_product.parts_of(wide, 2, result, read) for result, read in ((4, 0), (2, 2), (4, 4), (2, 4))] == [2, 2, 4, 4]
    assert fused_product.parts_of(fused_product.block_shape(512, 8192, 2), 2, 4, 4) == 2


def test_a_residual_of_floats_is_read_in_four_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_product, "block_shape", lambda m, n, size: [128, 256, 64, 8, 8, 3])
    assert [len(_calls(_halved(monkeypatch, name)[3])[0].target.blocks) for name in ("residual", "gelu")] == [7, 6]  # type: ignore[union-attr]


@pytest.mark.parametrize("end", ["gelu", "residual"])
def test_two_programs_fit_a_multiprocessor(end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As compiled for sm_90a: half of its registers and of its shared memory each, of which a block takes 1,024 bytes more than it asks for."""
    hopper.ptxas()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    of = hopper.names_of("import torch\n" + kernels.text("fused_product") + benchmark._ENDS, tmp_path)
    x, w, b, r = (torch.empty(size, device="meta", dtype=torch.bfloat16) for size in ((8192, 768), (3072, 768), (3072,), (8192, 3072)))
    with recorded(record := Record()):
        of["fused_product"](x, w, True, of[f"end_{end}"], (b, r), [128, 128, 64, 8, 8, 3, 4, 2])
    [launch] = record.launches
    assert not launch.problems and launch.blocks == (264,) and not launch.local_bytes
    assert 2 * launch.registers * launch.threads <= 1 << 16 and 2 * (launch.shared_bytes + 1024) <= 228 << 10


class Halved(nn.Module):
    """A float32 product with a parameter, and what follows it."""

    def __init__(self, end=ENDS["gelu"]) -> None:
        super().__init__()
        self.linear, self.end = nn.Linear(64, 48), end
        self.factor, self.other = nn.Parameter(torch.randn(48)), nn.Parameter(torch.randn(64, 48))

    def forward(self, x):
        return self.end(self, self.linear(x), x)


HALVED = {
    "gelu": (ENDS["gelu"], 3), "scaled, shifted, silu": (ENDS["scaled, shifted, silu"], 4), "residual": (lambda m, y, x: y + x[..., :48] * 2, 4),
    "of columns": (lambda m, y, x: x @ m.other, 2),
}  # fmt: skip
"""Ends of a product in TF32's track, and how many tensors they read beside its operands: two scales, a bias, one more."""


def _halved(monkeypatch: pytest.MonkeyPatch, name: str) -> tuple[nn.Module, torch.Tensor, GraphIR, GraphIR]:
    monkeypatch.setattr(half_products, "_LEAST_FLOPS", 1)
    monkeypatch.setattr(half_products, "_LEAST_INTENSITY", 0)
    monkeypatch.setattr(half_products, "FOLD", SimpleNamespace(sites=lambda ir: []))
    model = randomised(Halved(HALVED[name][0]), 0)
    x = torch.randn(2, 5, 64, generator=torch.Generator().manual_seed(0))
    before = HalfProducts(tf32=True).apply(captured(model, x), Action("half_products"))
    return model, x, before, TECHNIQUE.apply(before, ACTION)


@pytest.mark.parametrize("name", HALVED)
def test_a_product_of_halves_takes_in_its_scales_and_what_follows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, x, before, after = _halved(monkeypatch, name)
    [call] = _calls(after)
    assert call.target.wide and len(call.args) == 2 + HALVED[name][1]  # type: ignore[union-attr]
    assert not [node for node in after.graph.nodes if "minimum" in str(node.target) or "maximum" in str(node.target)]
    for scale in (1.0, 1e30, 1e-30):
        [seen], [wanted] = (run(ir, [x * scale], state_of(model), flat=True) for ir in (after, before))
        torch.testing.assert_close(seen, wanted, rtol=1e-6, atol=0.0)


class Large(nn.Module):
    """A layer of KernelBench's level 2, and what follows it."""

    def __init__(self, features: int, out: int, end) -> None:
        super().__init__()
        self.linear, self.norm, self.end = nn.Linear(features, out), nn.GroupNorm(64, out), end

    def forward(self, x):
        return self.end(self, self.linear(x))


@pytest.mark.parametrize(
    ("sizes", "end", "ms"),
    [
        ((1024, 8192, 8192), lambda m, y: F.relu(y) / 2.0, (0.238, 0.270)),  # 2:63, by this kernel and without it, on an H200
        ((16384, 4096, 4096), lambda m, y: F.gelu(y) * 1.5, (1.327, 1.580)),  # 2:41
        ((1024, 8192, 8192), lambda m, y: F.silu(m.norm(y)), (0.279, 0.266)),  # 2:88
        ((32768, 1024, 4096), lambda m, y: m.norm(F.silu(y)), (0.942, 0.854)),  # 2:37
        ((1024, 8192, 512), lambda m, y: F.gelu(y), (0.244, 0.121)),  # 2:98
    ],
)  # fmt: skip
def test_the_estimate_puts_first_what_was_faster(sizes, end, ms) -> None:
    """What a norm reads after it anyway it does not spare, and Triton's launch and the unhidden end of a tile cost. It is an action more."""
    rows, features, out = sizes
    with torch.device("meta"):
        ir = captured(Large(features, out, end), torch.empty(rows, features))
    halved = HalfProducts(tf32=True).apply(ir, Action("half_products"))
    plans = [FuseCuda().apply(one, fuse_cuda(1, DEFAULT)) for one in (TECHNIQUE.apply(halved, ACTION), halved)]
    ours, library = (cost_model.seconds(one, "cuda") for one in plans)
    assert (ours * ladder.WORTH_A_STEP < library) == (ms[0] < ms[1]), (ours, library)


@INTERPRETER
@pytest.mark.parametrize("name", ["residual", pytest.param("of columns", marks=pytest.mark.slow)])
def test_the_kernel_from_halves_by_the_interpreter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_product, "block_shape", lambda m, n, size: [32, 32, 16, 2, 4, 2])
    model, x, _, after = _halved(monkeypatch, name)
    [call] = _calls(after)
    given, interpreted = [], FusedProduct.__call__
    monkeypatch.setattr(FusedProduct, "__call__", lambda self, *tensors: (given.extend(tensors), interpreted(self, *tensors))[1])
    run(after, [x], state_of(model), flat=True)
    torch.save((given, interpreted(call.target, *given), model(x).detach()), tmp_path / "given.pt")
    path = tmp_path / "generated.py"
    path.write_text("import torch\n" + "\n".join(straight.kernels(after)) + f"""
given, plain, exact = torch.load({str(tmp_path / "given.pt")!r}, weights_only=False)
seen = {call.target.__name__}(*given)
torch.testing.assert_close(seen, plain, rtol=1e-5, atol=1e-5)
torch.testing.assert_close(seen, exact, rtol=1e-2, atol=1e-2)
""")  # type: ignore[union-attr]
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)
