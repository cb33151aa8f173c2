"""Fused C++ kernels: every function, reduction, layout and special value against float64 and against torch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured, draw
from warpwright.base import Action
from warpwright.domains.graph.cpp.regions import regions
from warpwright.domains.graph.ir import GraphIR, aten, is_op, run
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.fuse import FuseCpp

pytestmark = pytest.mark.compiler
Function = Callable[..., torch.Tensor]

ELEMENTWISE: list[Function] = [
    F.relu, F.relu6, torch.neg, torch.abs, torch.exp, torch.expm1, torch.sigmoid, torch.tanh, F.silu, F.mish, F.gelu, torch.erf, F.hardswish,
    F.hardsigmoid, torch.sign, F.selu, F.softsign, F.logsigmoid, F.elu, F.leaky_relu, F.softplus, F.hardtanh, torch.square,
    lambda x: F.gelu(x, approximate="tanh"), lambda x: F.softplus(x, beta=2.0, threshold=3.0), lambda x: F.elu(x, alpha=0.5),
    lambda x: torch.clamp(x, min=-0.5), lambda x: torch.clamp(x, -1.0, 2.0), lambda x: x**3, lambda x: 2.0 - x, lambda x: x / 3.0,
    lambda x: 3.0 / x,
    lambda x: torch.where(x > 0.5, x, -1.0 * x), lambda x: x.masked_fill(x < 0, -2.0) + 1, lambda x: (x > 0).float() * x,
    lambda x: torch.sqrt(torch.abs(x)) + torch.rsqrt(torch.abs(x) + 1), lambda x: torch.log(torch.abs(x)), lambda x: torch.log1p(torch.abs(x)),
    lambda x: torch.maximum(x, -x * 0.5), lambda x: torch.min(x, torch.tensor(0.25)), lambda x: torch.add(x, x * x, alpha=0.5),
]  # fmt: skip

ROWS: list[Function] = [
    lambda x: torch.softmax(x, -1), lambda x: torch.log_softmax(x, 1), lambda x: torch.logsumexp(x, -1), lambda x: x.sum(-1),
    lambda x: x.mean(1, keepdim=True),
    lambda x: torch.amax(x, -1), lambda x: torch.amin(x, 1, keepdim=True) * 2, lambda x: F.layer_norm(x, x.shape[1:]),
    lambda x: F.rms_norm(x, x.shape[1:]),
    lambda x: x / torch.linalg.vector_norm(x, dim=1, keepdim=True), lambda x: x / x.abs().mean(1, keepdim=True), lambda x: torch.var(x, 1) + 1,
    lambda x: x.std(1, correction=0), lambda x: torch.tanh(F.gelu(x).sum(1)) * 3 + x.mean(1), lambda x: (x * x).sum(),
    lambda x: x.abs().max() + x.min(),
    lambda x: F.mse_loss(x, torch.relu(x)), lambda x: F.smooth_l1_loss(x, -x), lambda x: F.huber_loss(x, x * 0.5, delta=0.7),
    lambda x: F.l1_loss(torch.sin(x), x, reduction="sum"), lambda x: torch.softmax(x, 0).sum(1),
    lambda x: F.kl_div(torch.log_softmax(x, 1), torch.softmax(-x, 1), reduction="sum"),
    lambda x: x.std() * x.mean(1), lambda x: x.var(unbiased=False) + x.var(1, unbiased=False),
]  # fmt: skip

IMAGES: list[Function] = [
    lambda x: torch.softmax(x, 1), lambda x: F.group_norm(x, 2), lambda x: F.instance_norm(x), lambda x: F.layer_norm(x, x.shape[2:]),
    lambda x: torch.logsumexp(x, 1, keepdim=True) + 1, lambda x: x / torch.sqrt(x.square().mean(1, keepdim=True) + 1e-5), lambda x: x.mean((2, 3)),
    lambda x: x.sum((0, 2, 3)), lambda x: (x - x.mean((0, 2, 3), keepdim=True)) * 2, lambda x: torch.amax(x, 1).tanh(), lambda x: x.std(1),
    lambda x: x.sum(2) * 2,
    lambda x: x.amin((1, 2)), lambda x: torch.relu(F.group_norm(x, 2)) + x, lambda x: x.mean((0, 1)), lambda x: x.var((0, 1), keepdim=True) * x,
    lambda x: (x - x.mean((1, 2), keepdim=True)) / (x.std((1, 2), keepdim=True) + 1e-5),
]  # fmt: skip


@pytest.mark.parametrize(
    "function",
    [lambda x: (x - x.mean((1, 2), keepdim=True)) / x.std((1, 2), keepdim=True), lambda x: x * x.var(unbiased=False), lambda x: x / x.std(),
     lambda x: x / x.std(-1, correction=0, keepdim=True)],
)  # fmt: skip
def test_no_overload_of_a_variance_stays_outside(function: Function) -> None:
    after, _, _ = fused(captured(Several([function]), torch.randn(64, 33, 40)))
    assert not [node for node in after.graph.nodes if is_op(node, aten.var, aten.std)]


class Several(nn.Module):
    """All functions of one list, each a result."""

    def __init__(self, functions: list[Function]) -> None:
        super().__init__()
        self.functions = functions

    def forward(self, *x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(function(*x) for function in self.functions)


TEXT = "import torch\n\nclass Model(torch.nn.Module):\n    pass\n"


def fused(ir: GraphIR, least: int = 1) -> tuple[GraphIR, Callable[..., Any], str]:
    """Return the fused graph, its compiled `optimized`, and the text."""
    technique = FuseCpp()
    after = technique.apply(ir, Action("fuse_cpp", params=(("calls", least),)))
    text = lower(after, (), Original("test", TEXT)).source.text
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "optimized.py", "exec"), names)
    assert names["KERNELS"] is not None
    return after, names["optimized"], text


def errors(x: torch.Tensor, truth: torch.Tensor) -> float:
    both = x.double().isfinite() & truth.isfinite()
    return float((x.double() - truth)[both].abs().max()) if both.any() else 0.0


def moved(ir: GraphIR, given: Sequence[torch.Tensor], truth: Sequence[torch.Tensor]) -> list[float]:
    """Return how far each result goes, in float64, where every input is one rounding to float32 away.

    No kernel can do better than that by design: a norm of groups of three values near 100 has its largest error in the one group with hardly any
    variance, and whether torch's there is half or twice as much is chance, which differs between instruction sets. Of two such moves the smaller
    counts, so that an element that passes a threshold allows nothing.
    """
    moves = []
    for seed in range(2):
        signs = torch.Generator().manual_seed(seed)
        near = [
            t.double() * (1 + (torch.randint(0, 2, t.shape, generator=signs) * 2 - 1) * 2.0**-24) if t.is_floating_point() else t
            for t in given
        ]  # fmt: skip
        moves.append([errors(x, y) for x, y in zip(run(ir, near, {}, torch.float64, flat=True), truth, strict=True)])
    return [min(pair) for pair in zip(*moves, strict=True)]


def check(
    functions: list[Function], size: tuple[int, ...], kinds: tuple[str, ...], more: tuple[torch.Tensor, ...] = (), specials: bool = False,
    but: Function | None = None,
) -> None:  # fmt: skip
    """Compare the fused kernels with torch and with float64, result by result; that of `but` is left out."""
    model = Several(functions)
    ir = captured(model, torch.randn(size), *more)
    after, optimized, _ = fused(ir)
    kernels = [n for n in after.graph.nodes if hasattr(n.target, "python_text")]
    assert len(kernels) >= len(functions) - 1
    for seed, kind in enumerate(kinds):
        x = draw(kind, size, seed)
        if specials:
            x.view(-1)[100:107] = torch.tensor([float("inf"), -float("inf"), float("nan"), 0.0, -0.0, 1e-42, 3e38])
        given = (x, *more)
        truth = run(ir, [t.double() if t.is_floating_point() else t for t in given], {}, torch.float64, flat=True)
        near = moved(ir, given, truth)
        for number, (seen, plain, exact) in enumerate(zip(optimized(*given), model(*given), truth, strict=True)):
            if functions[number] is but:
                continue
            where = f"result {number}, {kind}"
            assert seen.shape == plain.shape and seen.dtype == plain.dtype and seen.is_contiguous(), where
            if specials:
                # With AVX-512, torch's gelu of inf is NaN in float32, and inf in float64.
                plain = torch.where(plain.isnan() & ~exact.isnan(), exact.to(plain.dtype), plain)
                assert torch.equal(seen.isnan(), plain.isnan()), where
                assert torch.equal(seen[seen.isinf()], plain[seen.isinf()]) or kind == "scaled", where
            scale = float(exact[exact.isfinite()].abs().max()) if exact.isfinite().any() else 0.0
            floor = 4 * torch.finfo(torch.float32).eps * min(scale, 3e38)
            allowed = 2 * (errors(plain, exact) + near[number]) + floor
            assert errors(seen, exact) <= allowed, f"{where}: {errors(seen, exact)} {errors(plain, exact)} {near[number]} {scale}"


def test_elementwise_functions():
    check(ELEMENTWISE, (37, 131), ("normal", "scaled", "offset", "negated", "zeros", "heavy"))


def test_special_values():
    check(ELEMENTWISE, (37, 131), ("normal",), specials=True, but=F.hardswish)  # the kernels of the test above, compiled once


@pytest.mark.parametrize("size", [(33, 257), (3, 70001)], ids=str)
def test_rows(size):
    check(ROWS, size, ("normal", "offset", "heavy"))


@pytest.mark.parametrize("size", [(3, 64, 20, 12), (1, 2, 200, 300)], ids=str)
def test_images(size):
    check(IMAGES, size, ("normal", "offset"))


def test_broadcasts_and_integers():
    torch.manual_seed(0)  # a column of heavy values times 3 passed the bound in one draw of many
    row, column, mask = torch.randn(129), torch.randn(37, 1), torch.randint(0, 3, (37, 129))
    functions: list[Function] = [
        lambda x, r, c, m: torch.sigmoid(x + r) * c,
        lambda x, r, c, m: (x * m.float() * r).sum(1) / m.to(torch.float32).sum(1).clamp(min=1.0),
        lambda x, r, c, m: torch.where(m == 0, x, r).sum(0) * r,
        lambda x, r, c, m: torch.softmax(x * r + c, 1) * r,
        lambda x, r, c, m: (r - x).masked_fill(m != 0, 0.0),
        lambda x, r, c, m: (x - x.mean(1, keepdim=True) + c.exp()).amax(1).unsqueeze(1).squeeze(1) * 2,
    ]
    check(functions, (37, 129), ("normal", "heavy"), (row, column, mask))


def test_one_region_spans_what_belongs_together():
    def forward(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.relu(x) + 1
        return torch.softmax(total, 1) * 2, total

    model = Several([])
    model.forward = forward  # type: ignore[method-assign]
    ir = captured(model, torch.randn(64, 128))
    assert [len(region) for region in regions(ir)] == [4]
    x = torch.randn(64, 128)
    _, optimized, text = fused(ir)
    torch.testing.assert_close(optimized(x), forward(x))
    assert text.count("extern") == 1


def test_what_is_not_fused():
    functions: list[Function] = [
        lambda x: x.clone(), lambda x: torch.cumsum(x, 1), lambda x: x.double() + 1, lambda x: x[:2, :2] + 1, lambda x: x.t().contiguous(),
    ]  # fmt: skip
    model = Several(functions)
    ir = captured(model, torch.randn(64, 128))
    assert regions(ir) == []
    assert not list(FuseCpp().sites(ir))


def test_arguments_that_are_not_contiguous():
    ir = captured(Several([lambda x: torch.tanh(x) + 1]), torch.randn(64, 128))
    _, optimized, _ = fused(ir)
    x = torch.randn(128, 64).t()
    torch.testing.assert_close(optimized(x)[0], torch.tanh(x) + 1)


def test_without_a_compiler_torch_runs_instead(monkeypatch):
    ir = captured(Several([lambda x: torch.softmax(torch.tanh(x), 1) + 1]), torch.randn(64, 128))
    after = FuseCpp().apply(ir, Action("fuse_cpp", params=(("calls", 1),)))
    text = lower(after, (), Original("test", TEXT)).source.text
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CXX", raising=False)
    names: dict[str, Any] = {"__name__": "generated"}
    with pytest.warns(UserWarning, match="no C\\+\\+ compiler"):
        exec(compile(text, "optimized.py", "exec"), names)
    x = torch.randn(64, 128)
    torch.testing.assert_close(names["optimized"](x)[0], torch.softmax(torch.tanh(x), 1) + 1)


def test_the_interpreter_runs_kernels_too():
    model = Several([lambda x: torch.softmax(x, 1) * 2])
    ir = captured(model, torch.randn(64, 128))
    after, _, _ = fused(ir)
    x = torch.randn(64, 128, dtype=torch.float64)
    torch.testing.assert_close(run(after, [x], {})[0], run(ir, [x], {})[0])
    assert copy.copy(after) is not after


def test_text_is_deterministic(golden):
    ir = captured(Several([lambda x: torch.softmax(x / 1.5, 1) * 2, lambda x: x.amax(0)]), torch.randn(64, 128))
    first, second = (fused(ir)[2] for _ in range(2))
    assert first == second
    kernels = first[first.index('extern "C"') : first.index("def load_kernels")]
    golden("graph/kernels.txt", kernels + first[first.index("KERNELS = load") : first.index("class ModelNew")])


@pytest.mark.parametrize("layer", [nn.BatchNorm2d(8), nn.BatchNorm2d(8, affine=False, momentum=0.3)], ids=["affine", "plain"])
def test_batch_norm_in_training_mode_updates_its_buffers(layer):
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = layer

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.norm(x * 2.0)) + 1.0

    model = Model()
    ir = captured(model, torch.randn(3, 8, 20, 20))
    after, _, text = fused(ir)
    assert text.count('extern "C"') == 1 and "running_mean.mul_(" in text
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "optimized.py", "exec"), names)
    other = copy.deepcopy(model)
    by_name = dict(ir.state)
    x = torch.randn(3, 8, 20, 20) + 3
    parameters = [node.name for node in after.graph.nodes if node.op == "placeholder" and node.users and node.name in by_name]
    state = {**dict(other.named_parameters()), **dict(other.named_buffers())}
    with torch.no_grad():
        torch.testing.assert_close(names["optimized"](x, *(state[by_name[name]] for name in parameters)), model(x))
    for (name, seen), expected in zip(other.named_buffers(), model.buffers(), strict=True):
        torch.testing.assert_close(seen, expected, msg=name)


def test_equal_regions_share_one_kernel():
    ir = captured(Several([lambda x: torch.cumsum(torch.tanh(torch.cumsum(torch.tanh(x) + 1, 1)) + 1, 1)]), torch.randn(64, 128))
    _, optimized, text = fused(ir)
    assert text.count('extern "C"') == 1
    x = torch.randn(64, 128)
    torch.testing.assert_close(optimized(x)[0], torch.cumsum(torch.tanh(torch.cumsum(torch.tanh(x) + 1, 1)) + 1, 1))
