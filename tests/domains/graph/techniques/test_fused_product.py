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
from warpwright.domains.graph import kernels
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.domains.graph.techniques.products import fused_product, half_products
from warpwright.domains.graph.techniques.products.fused_product import FusedProduct, FusedProducts
from warpwright.domains.graph.techniques.products.half_products import HalfProducts
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
        self.norm = nn.GroupNorm(n // 4, n)

    def forward(self, x):
        return self.end(self, self.linear(x), x)


ENDS = {
    "gelu": lambda m, y, x: F.gelu(y),
    "scaled, shifted, silu": lambda m, y, x: F.silu(y * m.factor + 0.5),
    "gated": lambda m, y, x: y * torch.sigmoid(y),
    "residual": lambda m, y, x: F.relu(y) + torch.cat((x, x[..., :8]), -1),
}
REDUCED = {
    "sum": lambda m, y, x: F.gelu(y).sum(-1),
    "mean": lambda m, y, x: torch.sigmoid(y).mean(-1, keepdim=True),
    "amax": lambda m, y, x: (y * m.factor).amax(2),
    "amin": lambda m, y, x: (y * y).amin(-1, keepdim=True),
    "logsumexp": lambda m, y, x: torch.logsumexp(y, -1),
    "norm": lambda m, y, x: F.silu(m.norm(m.linear(x[0]))),
    "least of a norm": lambda m, y, x: m.norm(F.gelu(m.linear(x[1]))).amin(1),
}
"""Ends that are not element by element."""
BATCHED = {
    "batches": lambda m, y, x: F.relu(torch.bmm(_rows(x), _rows(x)[:, 3:19].contiguous())) + 1.0,
    "batches by rows": lambda m, y, x: (lambda r: F.silu(torch.bmm(r, (r + 1.0).transpose(1, 2))) * r[:, :, :1])(_rows(x)),
    "sums of batches": lambda m, y, x: (lambda r: (r @ (r * 2.0).mT).abs().sum(-1))(_rows(x)),
}
"""Products of each of two batches, of 32 rows."""
MORE = {**ENDS, **REDUCED, **BATCHED}


def _rows(x):
    return torch.cat((x, x + 0.5, x - 0.5, x * 2.0, x * x, x, x), 1)[:, :32].contiguous()


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


@pytest.mark.parametrize("name", REDUCED)
def test_a_product_ends_with_a_norm_of_groups_or_reduced_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_product, "KINDS", (torch.float32,))
    after, call, _ = _replaced(Block(REDUCED[name]), torch.float32)
    left = [node for node in after.graph.nodes if node.op == "call_function" and "norm" in str(node.target)]
    assert not left and (call.target.reduce is None) == (name == "norm")  # type: ignore[union-attr]


@pytest.mark.parametrize("name", BATCHED)
def test_a_batched_product_takes_in_what_follows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_product, "KINDS", (torch.float32,))
    monkeypatch.setattr(fused_product, "block_shape", lambda m, n, size: [32, 32, 16, 2, 4, 2])
    after, call, _ = _replaced(Block(BATCHED[name]), torch.float32)
    assert not [node for node in after.graph.nodes if str(node.target) in ("aten.bmm.default", "aten.matmul.default", "aten.relu.default")]
    assert call.target.by_rows == (name != "batches")  # type: ignore[union-attr]


def test_batches_that_a_tile_would_lie_between_are_left_to_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused_product, "KINDS", (torch.float32,))
    monkeypatch.setattr(fused_product, "block_shape", lambda m, n, size: [32, 32, 16, 2, 4, 2])

    def sites(form, *sizes: tuple[int, ...]) -> bool:
        class Of(nn.Module):
            def forward(self, x, y):
                return form(x, y)

        return bool(list(TECHNIQUE.sites(captured(Of(), *map(torch.randn, sizes)))))

    def relu(x, y):
        return torch.relu(x @ y)

    assert sites(relu, (3, 32, 16), (3, 16, 24)) and sites(relu, (2, 3, 64, 16), (2, 3, 16, 24))
    assert not sites(relu, (3, 48, 16), (3, 16, 24))  # rows of two batches in a tile
    assert not sites(relu, (3, 32, 24), (3, 24, 24)) and sites(lambda x, y: torch.relu(x @ y.mT), (3, 32, 24), (3, 24, 24))  # terms
    assert not sites(relu, (3, 32, 16), (1, 16, 24))  # one for all
    assert not sites(lambda x, y: torch.relu(x.transpose(0, 1) @ y), (32, 3, 16), (3, 16, 24))  # it would be copied
    assert not sites(lambda x, y: torch.softmax(x @ y * 0.5, -1), (3, 32, 16), (3, 16, 24))


def test_a_transposed_parameter_is_read_by_rows() -> None:
    _, call, _ = _replaced(Block(lambda m, y, x: F.silu(x @ m.linear.weight.T)))
    assert call.target.by_rows and call.args[1].op == "placeholder"  # type: ignore[union-attr]


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_rows_of_16_bits_are_reduced_in_float32(kind: torch.dtype) -> None:
    model, x = randomised(Block(REDUCED["sum"]), 0).to(kind), torch.randn(2, 5, 16, generator=torch.Generator().manual_seed(0)).to(kind)
    after = TECHNIQUE.apply(captured(model, x), ACTION)
    assert _calls(after)[0].meta["val"].dtype == torch.float32
    [seen] = run(after, [x], state_of(model), flat=True)
    assert seen.dtype == kind
    torch.testing.assert_close(seen, model(x).detach(), rtol=2e-2, atol=5e-2)


def test_what_no_tile_holds_is_left_behind_the_product() -> None:
    def left(end, groups: int = 6) -> list[str]:
        model, x = Block(end), torch.randn(2, 5, 16).bfloat16()
        model.norm = nn.GroupNorm(groups, 24)
        after = TECHNIQUE.apply(captured(model.bfloat16(), x), ACTION)
        assert len(_calls(after)) == 1
        return [str(node.target) for node in after.graph.nodes if isinstance(node.target, torch._ops.OpOverload)]

    def norm(m, y, x):
        return m.norm(torch.relu(m.linear(x[0])))

    assert "aten.group_norm.default" not in left(norm)
    assert "aten.group_norm.default" in left(norm, 8)  # groups of three columns
    assert "aten.group_norm.default" in left(lambda m, y, x: F.group_norm(y.relu(), 5))  # of rows
    assert "aten.sum.dim_IntList" in left(lambda m, y, x: y.relu().sum(1))
    assert "aten.sum.dim_IntList" in left(lambda m, y, x: y.relu().sum((0, 2)))
    assert "aten.amax.default" in left(lambda m, y, x: (lambda z: z + z.amax(-1, keepdim=True))(y.relu()))


def test_wide_groups_need_wide_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A group of four columns is taken in where a part of a tile has four, and not where it has two."""
    monkeypatch.setattr(fused_product, "block_shape", lambda m, n, size: [32, 8, 16, 2, 4, 2])
    for parts, inside in ((2, True), (4, False)):
        monkeypatch.setattr(fused_product, "parts_of", lambda *_, parts=parts: parts)
        after, _, _ = _replaced(Block(lambda m, y, x: m.norm(torch.relu(m.linear(x[0])))))
        assert (not [node for node in after.graph.nodes if "group_norm" in str(node.target)]) == inside


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
    ("name", "parts"), [("residual", 4), ("least of a norm", 2), ("batches", 2), *(pytest.param(name, 2, marks=pytest.mark.slow) for name in MORE)]
)  # fmt: skip
def test_the_kernel_by_the_interpreter(name: str, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float32, for the interpreter has no bfloat16 products."""
    monkeypatch.setattr(fused_product, "KINDS", (torch.float32,))
    monkeypatch.setattr(fused_product, "block_shape", lambda m, n, size: [32, 32, 16, 2, 4, 2])
    monkeypatch.setattr(fused_product, "parts_of", lambda *_: parts)
    model = randomised(Block(MORE[name]), 0)
    after, call, x = _replaced(model, torch.float32)
    given, interpreted = [], FusedProduct.__call__
    monkeypatch.setattr(FusedProduct, "__call__", lambda self, *tensors: (given.extend(tensors), interpreted(self, *tensors))[1])
    run(after, [x], state_of(model), flat=True)
    torch.save((given, interpreted(call.target, *given)), tmp_path / "given.pt")
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


@INTERPRETER
def test_rows_with_infinite_numbers_are_reduced_as_torch_does(tmp_path: Path) -> None:
    """Inf, -Inf and NaN among a row's numbers, and rows of nothing else; the last part of a row has columns that are not there."""
    path = tmp_path / "direct.py"
    path.write_text("import torch\n" + kernels.text("fused_product") + """

inf, nan = float("inf"), float("nan")
w = torch.eye(16).repeat(3, 1)[:40]
x = torch.randn(9, 16, generator=torch.Generator().manual_seed(0))
bias = torch.zeros(9, 1)
for i, row in enumerate(([inf], [-inf], [nan], [inf, -inf], [inf, nan])):
    x[i] = 0.0
    bias[i] = row[0] if len(row) == 1 else 0.0
last = torch.zeros(40)


@triton.jit
def end(v0, row, column, m, n, q0, q1, q2, q3, q4, q5, q6, q7):
    return v0 + tl.load(q0 + row, mask=row < m, other=0.0)[:, None] + tl.load(q1 + column, mask=column < n, other=0.0)[None, :]


for special in (0.0, inf, -inf, nan):
    last[39] = special
    y = x @ w.mT + bias + last
    for kind in ("amax", "amin", "logsumexp", "sum"):
        parts = fused_product(x, w, True, end, (bias, last), [16, 32, 16, 2, 4, 2], None, kind)
        assert parts.shape == (9, 3)
        one = getattr(torch, kind)
        torch.testing.assert_close(one(parts, -1), one(y, -1), rtol=1e-5, atol=1e-5, equal_nan=True, msg=lambda said: f"{kind} {special}: {said}")
""")
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


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

    def __init__(self, features: int, out: int, end, groups: int = 4) -> None:
        super().__init__()
        self.linear, self.norm, self.end = nn.Linear(features, out), nn.GroupNorm(groups, out), end

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
    """What a norm of wide groups reads after it anyway it does not spare, and Triton's launch and the unhidden end of a tile cost. It is an action
    more."""
    ours, library = _estimates(*sizes, end)
    assert (ours * ladder.WORTH_A_STEP < library) == (ms[0] < ms[1]), (ours, library)


def _estimates(rows: int, features: int, out: int, end, groups: int = 4) -> list[float]:
    """Return the estimates of a layer's programs in TF32's track that end in our kernel, and that do not."""
    with torch.device("meta"):
        ir = captured(Large(features, out, end, groups), torch.empty(rows, features))
    halved = HalfProducts(tf32=True).apply(ir, Action("half_products"))
    return [cost_model.seconds(FuseCuda().apply(one, fuse_cuda(1, DEFAULT)), "cuda") for one in (TECHNIQUE.apply(halved, ACTION), halved)]


@pytest.mark.parametrize(
    ("sizes", "groups", "end", "first"),
    [
        ((1024, 8192, 8192), 512, lambda m, y: m.norm(y).amin(1, keepdim=True), True),  # 2:75, 1.36 times two kernels on an H200
        ((8192, 1024, 32768), 4, lambda m, y: torch.logsumexp(y, 1), False),  # in bfloat16 1.09, less than an action more has to gain
        ((32768, 1024, 4096), 64, lambda m, y: m.norm(F.silu(y)), False),  # 2:37, 0.996
    ],
)  # fmt: skip
def test_the_estimate_puts_first_what_writes_less(sizes, groups: int, end, first: bool) -> None:
    """Few instructions a result, of many terms."""
    ours, library = _estimates(*sizes, end, groups)
    assert (ours * ladder.WORTH_A_STEP < library) == first, (ours, library)


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
