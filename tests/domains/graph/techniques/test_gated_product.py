"""Two products that are joined element by element: the rewrite in float64, the kernel by Triton's interpreter where Triton is installed."""

from __future__ import annotations

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

from benchmarks.kernels.without_gpu import Record, recorded
from warpwright.base import Action
from warpwright.domains.graph import cost_model, kernels
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques.kernels import fused_product, gated_product, half_products
from warpwright.domains.graph.techniques.kernels.gated_product import GatedProduct, GatedProducts
from warpwright.domains.graph.techniques.kernels.half_products import HalfProducts
from warpwright.domains.graph.text import straight

TECHNIQUE = GatedProducts()
ACTION = Action(TECHNIQUE.name)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_product, "_LEAST_FLOPS", 0.0)
    monkeypatch.setattr(fused_product, "KINDS", (torch.float32, torch.float16))
    monkeypatch.setattr(gated_product, "block_shape", lambda m, n, reads: [32, 32, 16, 2, 4, 2])


class Gated(nn.Module):
    """Two layers, one of both together, and what joins them."""

    def __init__(self, end, bias: bool = True, n: int = 24) -> None:
        super().__init__()
        self.gate, self.up, self.both = nn.Linear(16, n, bias), nn.Linear(16, n, bias), nn.Linear(16, 2 * n, bias)
        self.left, self.right, self.end = nn.Parameter(torch.randn(16, n)), nn.Parameter(torch.randn(16, n)), end

    def forward(self, x):
        return self.end(self, x)


def _halves(m, x):
    a, b = m.both(x).chunk(2, -1)
    return a * F.gelu(b)


def _split(m, x):
    a, b = m.both(x).split(24, dim=-1)
    return F.relu(b) * a


ENDS = {
    "swiglu": lambda m, x: F.silu(m.gate(x)) * m.up(x),
    "the other first": lambda m, x: m.up(x) * torch.sigmoid(m.gate(x)),
    "clamped": lambda m, x: (m.up(x).clamp(-1.0, 1.0) + 1.0) * F.silu(m.gate(x).clamp(max=2.0)),
    "plus a residual": lambda m, x: torch.tanh(m.gate(x)) * m.up(x) + torch.cat((x, x[..., :8]), -1),
    "columns": lambda m, x: F.gelu(x @ m.left) * (x @ m.right),
    "halves": _halves,
    "split": _split,
}


def _calls(ir: GraphIR) -> list[fx.Node]:
    return [node for node in ir.graph.nodes if getattr(node.target, "__name__", "").startswith("gated_product_")]


def _replaced(name: str, bias: bool) -> tuple[nn.Module, GraphIR, fx.Node, torch.Tensor]:
    model, x = randomised(Gated(ENDS[name], bias), 0), torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0))
    before = captured(model, x)
    after = TECHNIQUE.apply(before, ACTION)
    assert_equal_in_double(before, after, [x], model)
    [call] = _calls(after)
    return model, after, call, x


@pytest.mark.parametrize("name", ENDS)
@pytest.mark.parametrize("bias", [True, False])
def test_two_products_and_what_joins_them_are_one_kernel(name: str, bias: bool) -> None:
    _, after, call, _ = _replaced(name, bias)
    left = {str(node.target) for node in after.graph.nodes if node.op == "call_function"}
    assert not left & {"aten.linear.default", "aten.matmul.default", "aten.mul.Tensor", "aten.chunk.default", "aten.split.Tensor"}
    assert call.target.biases == ((0, 1) if bias and name != "columns" else ())  # type: ignore[union-attr]


def test_both_of_two_layers_are_replaced() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = Gated(ENDS["swiglu"], n=16), Gated(ENDS["halves"])

        def forward(self, x):
            return self.second(self.first(x))

    model, x = randomised(Two(), 0), torch.randn(5, 16, generator=torch.Generator().manual_seed(0))
    before = captured(model, x)
    after = TECHNIQUE.apply(before, ACTION)
    assert_equal_in_double(before, after, [x], model)
    assert len(_calls(after)) == 2 and not list(TECHNIQUE.sites(after))


def test_what_is_left_alone() -> None:
    def sites(end, size: tuple[int, ...] = (5, 16), n: int = 24) -> bool:
        return bool(list(TECHNIQUE.sites(captured(Gated(end, n=n), torch.randn(size)))))

    assert sites(ENDS["swiglu"])
    assert not sites(lambda m, x: (F.silu(m.gate(x)), m.up(x)))  # nothing joins them
    assert not sites(lambda m, x: (lambda u: (F.silu(m.gate(x)) * u, u))(m.up(x)))  # one is a result
    assert not sites(lambda m, x: F.silu(m.gate(x)) * m.up(x + 1.0))
    assert not sites(lambda m, x: F.silu(m.gate(x)) * m.gate(x + 1.0))
    assert not sites(lambda m, x: F.silu(m.gate(x)) @ m.up(x).mT)
    assert not sites(ENDS["swiglu"], n=22)  # rows that are no multiples of 16 bytes
    assert not sites(lambda m, x: (lambda h: h[0] * h[1] + h[2])(m.both(x).chunk(3, -1)))
    assert not sites(lambda m, x: (lambda h: F.silu(h[0]) * h[1])(m.both(x).chunk(4, -1)), n=32)  # quarters, of which two are read


@pytest.mark.parametrize("scale", [1.0, 1e20])
def test_products_of_halves_are_joined_with_their_scales(scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """In TF32's track: each product's scales, bias and the rest are in the end of one kernel."""
    monkeypatch.setattr(half_products, "_LEAST_FLOPS", 1)
    monkeypatch.setattr(half_products, "_LEAST_INTENSITY", 0)
    monkeypatch.setattr(half_products, "FOLD", SimpleNamespace(sites=lambda ir: []))
    model, x = randomised(Gated(lambda m, x: F.relu(m.gate(x)) * torch.sigmoid(m.up(x))), 0), torch.randn(5, 16) * scale
    before = HalfProducts(tf32=True).apply(captured(model, x), Action("half_products"))
    assert sum(node.target is torch.ops.aten.amax.default for node in before.graph.nodes) == 3  # of x once, and of both parameters
    after = TECHNIQUE.apply(before, ACTION)
    [call] = _calls(after)
    assert call.target.wide  # type: ignore[union-attr]
    [seen], [wanted] = (run(ir, [x], state_of(model), flat=True) for ir in (after, before))
    torch.testing.assert_close(seen, wanted, rtol=1e-5, atol=1e-5 * scale)


def test_the_estimate_puts_one_kernel_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with torch.device("meta"):
        model = nn.ModuleList([nn.Linear(4096, 11008, False), nn.Linear(4096, 11008, False)]).bfloat16()

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layers = model

            def forward(self, x):
                return F.silu(self.layers[0](x)) * self.layers[1](x)

        before = captured(Block(), torch.empty(4096, 4096, dtype=torch.bfloat16))
    after = TECHNIQUE.apply(before, ACTION)
    [call] = _calls(after)
    assert call.target.blocks == [128, 128, 64, 8, 8, 4]  # type: ignore[union-attr]
    assert cost_model.seconds(after, "cuda") < 0.95 * cost_model.seconds(before, "cuda")


@INTERPRETER
@pytest.mark.parametrize("name", ["clamped", *(pytest.param(name, marks=pytest.mark.slow) for name in ENDS)])
def test_the_kernel_by_the_interpreter(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, for the interpreter has no bfloat16 products."""
    model, after, call, x = _replaced(name, True)
    given: list[torch.Tensor] = []
    interpreted = GatedProduct.__call__
    monkeypatch.setattr(GatedProduct, "__call__", lambda self, *tensors: (given.extend(tensors), interpreted(self, *tensors))[1])
    run(after, [x], state_of(model), flat=True)
    torch.save((given, interpreted(call.target, *given)), tmp_path / "given.pt")  # type: ignore[arg-type]
    path = tmp_path / "generated.py"
    path.write_text("import torch\n" + "\n".join(straight.kernels(after)) + f"""
given, plain = torch.load({str(tmp_path / "given.pt")!r}, weights_only=False)
torch.testing.assert_close({call.target.__name__}(*given), plain, rtol=1e-5, atol=1e-5)
""")  # type: ignore[union-attr]
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


def test_the_kernel_fits_an_h200(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hopper.ptxas()
    monkeypatch.undo()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    text = """

@triton.jit
def end(v0, v1, row, column, m, n, q0, q1, q2, q3, q4, q5, q6, q7):
    return v0 * _sigmoid(v0) * v1
"""
    of = hopper.names_of("import torch\n" + kernels.text("gated_product") + text, tmp_path)
    x, w, v = (torch.empty(size, device="meta", dtype=torch.bfloat16) for size in ((4096, 1024), (2816, 1024), (2816, 1024)))
    with recorded(record := Record()):
        of["gated_product"](x, w, v, True, of["end"], (), gated_product.block_shape(4096, 2816, False))
    [launch] = record.launches
    assert not launch.problems and not launch.local_bytes and launch.blocks == (132,)
