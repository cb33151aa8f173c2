"""Kernels of training steps, translated for the CPU: what torch's derivatives are written out as, that kernels take it in, and that it is right."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.domains.graph import models
from tests.domains.graph.test_cuda import OnCpu
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.domains.graph.capture import derivatives
from warpwright.domains.graph.cuda.kernel import CudaKernel
from warpwright.domains.graph.ir.effects import is_random

pytestmark = pytest.mark.compiler

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"
CLASS = """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, {names}):
        {does}
"""
INPUTS = "\n\ndef get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return []\n"

ROTATED = HEAD + CLASS.format(
    made="self.norm, self.turn = nn.RMSNorm(64), nn.Parameter(torch.randn(40, 1, 32))",
    names="x",
    does="(a, b), t = self.norm(x).chunk(2, -1), self.turn\n        return torch.cat([a * t.cos() - b * t.sin(), a * t.sin() + b * t.cos()], -1)",
) + INPUTS.format(inputs="torch.randn(2, 40, 3, 64)")
LOSS = HEAD + CLASS.format(
    made='self.norm, self.head, self.w = nn.LayerNorm(32), nn.Linear(32, 200), nn.Parameter(torch.rand(200) + 0.1, requires_grad=False)',
    names="x, t",
    does="y, loss = self.head(self.norm(x)), F.cross_entropy\n        "
    "return loss(y, t, label_smoothing=0.1), loss(y * 2, t, ignore_index=3, reduction='sum'), loss(y, t, weight=self.w.detach())",
) + INPUTS.format(inputs="torch.randn(100, 32), torch.cat([torch.full((20,), 3), torch.randint(0, 200, (80,))])")
PIXELS = HEAD + CLASS.format(
    made="self.conv = nn.Conv2d(3, 20, 1)", names="x, t", does="return F.cross_entropy(self.conv(x), t, reduction='none')"
) + INPUTS.format(inputs="torch.randn(4, 3, 15, 17), torch.randint(0, 20, (4, 15, 17))")
ROWS = HEAD + CLASS.format(
    made="self.table, self.other = nn.Embedding(70, 64, padding_idx=5), nn.Embedding(60, 64)",
    names="rows, more, x, index",
    does="return F.normalize(self.table(rows).mean(1), dim=-1) + self.other(more), x[index].exp() * 2",
) + INPUTS.format(inputs="torch.randint(0, 70, (100, 6)), torch.randint(0, 60, (100,)), torch.randn(80, 64), torch.randint(-80, 80, (300,))")
TEXTS = {"rotated": ROTATED, "loss": LOSS, "pixels": PIXELS, "rows": ROWS}
RECIPE = ["differentiate(norms=true, again=false)", "fuse_cuda(calls=1, block=256, vector=4, unroll=1)"]


def step(tmp_path: Path, text: str, recipe: list[str]) -> tuple[Any, dict[str, Any]]:
    """Return the IR after a recipe, and what its file defines, its kernels on the CPU."""
    space = graph.space(models.task(tmp_path, text, "text", backward=True), "cuda")
    actions = [Action.parse(action) for action in recipe]
    ir = space.replay(actions)
    names: dict[str, Any] = {"__name__": "generated", "_copy": copy}
    exec(compile(space.candidate(actions).source.text, "optimized.py", "exec"), names)
    kernels = list({n.target.__name__: n.target for n in ir.graph.nodes if isinstance(n.target, CudaKernel)}.values())
    names["CUDA_KERNELS"] = OnCpu(kernels) if kernels else None
    names["VERIFIED"]["device"] = "cpu"
    return ir, names


def gradients(model: Any, inputs: list[Any], dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    """Return the results, and the gradients of real inputs and of parameters."""
    given = [x.detach().to(dtype).requires_grad_() if x.is_floating_point() else x for x in inputs]
    results = model(*given)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    torch.manual_seed(1)
    tangents = [torch.randn(result.shape).to(dtype) for result in results]
    sources = [x for x in (*given, *model.parameters()) if x.requires_grad]
    return [x.detach() for x in (*results, *torch.autograd.grad(results, sources, tangents))]


def both(names: dict[str, Any]) -> tuple[Any, Any, list[torch.Tensor]]:
    """Return a model and its program with the same parameters, and inputs."""
    torch.manual_seed(0)
    model, new = names["Model"](), names["ModelNew"]()
    new.load_state_dict(model.state_dict())
    inputs = names["get_inputs"]()
    return model, new, inputs


def expect_the_models_step(names: dict[str, Any]) -> None:
    """A program's results and gradients are its model's."""
    model, new, inputs = both(names)
    for seen, plain in zip(gradients(new, inputs), gradients(model, inputs), strict=True):
        torch.testing.assert_close(seen, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] if name in ("rotated", "loss") else []) for name in TEXTS])
def test_the_step_by_kernels_is_the_models_step(tmp_path: Path, name: str) -> None:
    ir, names = step(tmp_path, TEXTS[name], RECIPE)
    model, new, inputs = both(names)
    plain, exact = gradients(model, inputs), gradients(copy.deepcopy(model).double(), inputs, torch.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        seen = gradients(new, inputs)
    for ours, torchs, truth in zip(seen, plain, exact, strict=True):
        assert (ours - truth).abs().max() <= 3 * (torchs - truth).abs().max() + 1e-6 * truth.abs().max()
    called = {str(node.target) for node in ir.graph.nodes if node.op == "call_function" and not isinstance(node.target, CudaKernel)}
    assert not {one for one in called if "loss_backward" in one or "dense_backward" in one or "index_put" in one}


def test_a_gradient_in_halves_keeps_its_kernels(tmp_path: Path) -> None:
    """All of a rotation's gradient can be one kernel but for the sum over rows, which is no kernel of what lies in halves."""
    ir, _ = step(tmp_path, ROTATED, RECIPE)
    assert not [node for node in ir.graph.nodes if str(node.target).partition(".")[2].partition(".")[0].endswith("_")], "nothing is written over"
    left = [node for node in ir.graph.nodes if node.op == "call_function" and "aten.mul" in str(node.target) and node.meta["val"].numel() > 8000]
    assert not left


HALVES = HEAD + CLASS.format(
    made="self.turn = nn.Parameter(torch.randn(40, 1, 64))",
    names="x",
    does="a, b = x[..., :32], x[..., 32:]\n        y = torch.cat([-b, a], -1) * self.turn + x\n        "
    "return y, torch.tanh(x[:, 0]) * x[:, 2], x[:, 5:9] * 2 + x[:, 30:34] + x[:, 8:12]",
) + INPUTS.format(inputs="torch.randn(2, 40, 3, 64)")
STEPS = HEAD + CLASS.format(
    made="self.w = nn.Linear(64, 64)",
    names="x",
    does="h = torch.zeros_like(x[:, 0])\n        for t in range(6):\n            h = torch.tanh(self.w(h) + x[:, t])\n        return h",
) + INPUTS.format(inputs="torch.randn(80, 6, 64)")


@pytest.mark.parametrize("text", [HALVES, STEPS], ids=["halves", "steps"])
def test_the_gradient_of_parts_is_put_together(tmp_path: Path, text: str) -> None:
    """No tensor of zeros for each slice or step that was read: but for those that overlap."""
    ir, names = step(tmp_path, text, RECIPE[:1])
    scattered = [node for node in ir.graph.nodes if "scatter" in str(node.target)]
    assert len(scattered) == (1 if text is HALVES else 0)
    assert any("stack" in str(node.target) or "cat" in str(node.target) for node in ir.graph.nodes)
    expect_the_models_step(names)


def test_a_means_gradient_is_not_written_out(tmp_path: Path) -> None:
    """f(expand(x)) is expand(f(x)): what reads it reads the small tensor."""
    ir, _ = step(tmp_path, ROWS, RECIPE)
    kernels = [node for node in ir.graph.nodes if isinstance(node.target, CudaKernel) and "index_put" in node.target.summary]
    assert len(kernels) == 3
    assert min(sum(arg.meta["val"].numel() for arg in kernel.all_input_nodes) for kernel in kernels) < 100 * 6 * 64 / 2


POOLED = HEAD + CLASS.format(
    made="self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)", names="x", does="return self.b(torch.tanh(self.a(x))).mean(1)"
) + INPUTS.format(inputs="torch.randn(8, 10, 64)")


def test_a_product_takes_the_gradient_of_a_mean_over_its_rows(tmp_path: Path) -> None:
    """It views what was an element-wise call's result and is an expansion now, of which there is no such view."""
    _, names = step(tmp_path, POOLED, RECIPE[:1])
    expect_the_models_step(names)


def test_a_means_gradient_may_be_written_to(tmp_path: Path) -> None:
    """It is no expansion of what there is of it: torch's own is not, and whoever asked for it may clip it in place."""
    text = HEAD + CLASS.format(made="self.w = nn.Parameter(torch.randn(64))", names="x", does="return (x + self.w).mean(1)")
    _, names = step(tmp_path, text + INPUTS.format(inputs="torch.randn(8, 10, 64)"), RECIPE[:1])
    x = names["get_inputs"]()[0].requires_grad_()
    results = names["ModelNew"]()(x)
    [gradient] = torch.autograd.grad(results, x, torch.ones_like(results))
    torch.testing.assert_close(gradient.mul_(20), torch.full_like(x, 2.0))


def test_attentions_gradient_draws_nothing() -> None:
    """torch tags it as random on a GPU: as a call with an effect it came to stand in the forward, which has no gradients yet."""
    ops, traced = torch.ops.aten, torch.fx.Graph()
    q = traced.placeholder("q")
    backward = traced.call_function(ops._scaled_dot_product_efficient_attention_backward.default, (q,) * 9)
    forward = traced.call_function(ops._scaled_dot_product_efficient_attention.default, (q, q, q, None, True))
    dropping = traced.call_function(ops._scaled_dot_product_efficient_attention.default, (q, q, q, None, True, 0.1))
    assert [is_random(node) for node in (backward, forward, dropping)] == [False, False, True]


def test_the_gradient_of_a_loss_is_torchs() -> None:
    torch.manual_seed(0)
    x, target, weight = torch.randn(30, 7).log_softmax(1), torch.randint(0, 7, (30,)), torch.rand(7)
    for reduction, of, ignored in [(1, None, -100), (2, weight, 3), (0, weight, 3), (1, weight, -100)]:
        _, total = torch.ops.aten.nll_loss_forward(x, target, of, reduction, ignored)
        grad = torch.randn(30) if reduction == 0 else torch.randn(())
        torch.testing.assert_close(
            derivatives.nll_loss_backward(grad, x, target, of, reduction, ignored, total),
            torch.ops.aten.nll_loss_backward(grad, x, target, of, reduction, ignored, total),
        )
    assert derivatives.nll_loss_backward(torch.ones(()), torch.zeros(7), torch.tensor(1), None, 1, -100, torch.ones(())) is NotImplemented
    assert derivatives.embedding_dense_backward(x, target, 7, -1, True) is NotImplemented
