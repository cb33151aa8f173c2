"""Attention in a training step: one call forward and one back, whose gradients are autograd's; the kernels by Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from interpreter import INTERPRETER

from tests.domains.graph import models
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.domains.graph import kernels
from warpwright.domains.graph.costs import cost_model
from warpwright.domains.graph.ir import run
from warpwright.domains.graph.techniques.kernels.attention import technique
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_BACKWARD, FLASH_FORWARD

STEP = models.HEAD + '''class Model(nn.Module):
    """Two heads with projections; what is done with the scores stands in BODY."""

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.table, self.sinks = nn.Parameter(torch.randn(2, 20, 20)), nn.Parameter(torch.randn(2))
        self.register_buffer("below", torch.ones(20, 20).tril())

    def forward(self, x):
        b, n, _ = x.shape
        q = self.q(x).view(b, n, 2, 8).transpose(1, 2)
        k, v = (y.view(b, n, 2, 4).transpose(1, 2) for y in self.kv(x).split(8, -1))
        k = torch.cat((k, k.flip(-1)), -1)
        BODY
        return self.out(F.pad(y.transpose(1, 2).reshape(b, n, 8), (0, 8)))


def get_inputs():
    return [torch.randn(3, 20, 16, requires_grad=True)]


def get_init_inputs():
    return []
'''

BODIES = {
    "minGPT": "y = F.softmax((q @ k.transpose(-2, -1) * 0.3).masked_fill(self.below == 0, float('-inf')), dim=-1) @ v",
    "library, causal": "y = F.scaled_dot_product_attention(q, k, v, is_causal=True)",
    "a number in hidden places": "y = F.softmax((q @ k.mT * 0.3).masked_fill(self.below == 0, -2.0), dim=-1) @ v",
    "heads that share keys": "y = F.scaled_dot_product_attention(q, k[:, :1], v[:, :1], is_causal=True, enable_gqa=True)",
    "a bias without a gradient": "y = (q @ k.mT + self.below.log1p()).softmax(-1) @ v",
    "a cap": "y = (torch.tanh(q @ k.mT * 0.3 / 2.0) * 2.0).masked_fill(self.below == 0, float('-inf')).softmax(-1) @ v",
    "sinks that learn, and a cap": "s = torch.cat((torch.tanh(q @ k.mT) * 2.0, self.sinks.view(1, 2, 1, 1).expand(b, -1, n, -1)), -1); "
                                   "y = (s - s.max(-1, keepdim=True).values).softmax(-1)[..., :-1] @ v",
    "sinks that are computed": "y = torch.cat((q @ k.mT, q[..., :1]), -1).softmax(-1)[..., :-1] @ v",
}
ACTION, KEPT = (f"differentiate(norms=true, again={again}, attention=true)" for again in ("true", "false"))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(technique, "LEAST_FLOPS", 0.0)


def space_of(folder: Path, body: str) -> Any:
    return graph.space(models.task(folder, STEP.replace("BODY", body), "attention", backward=True), "cuda")


@pytest.mark.parametrize("name", BODIES)
def test_the_gradients_are_autograds(name: str, tmp_path: Path) -> None:
    space = space_of(tmp_path, BODIES[name])
    assert Action.parse(ACTION) in space.actions(space.start)
    ir = space.replay([Action.parse(KEPT)])
    assert [sum(node.target is target for node in ir.graph.nodes) for target in (FLASH_FORWARD, FLASH_BACKWARD)] == [1, 1]
    names: dict[str, Any] = {}
    exec(STEP.replace("BODY", BODIES[name]), names)
    model, (x,) = names["Model"]().double(), names["get_inputs"]()
    x = x.detach().double().requires_grad_()
    y = model(x)
    dy = torch.randn_like(y)
    wanted = {"x": x, **dict(model.named_parameters())}
    exact = dict(zip(wanted, torch.autograd.grad(y, list(wanted.values()), dy, allow_unused=True), strict=True))
    result, *gradients = run(ir, [x.detach(), dy], model.state_dict(), torch.float64, flat=True)
    torch.testing.assert_close(result, y.detach(), rtol=1e-10, atol=1e-12)
    for own, gradient in zip(ir.training.wanted, gradients, strict=True):
        truth = exact[ir.state.get(own, own)]
        assert (gradient is None) == (truth is None), own
        if truth is not None:
            torch.testing.assert_close(gradient, truth, rtol=1e-9, atol=1e-11, msg=own)
    assert cost_model.call_seconds(next(node for node in ir.graph.nodes if node.target is FLASH_BACKWARD), cost_model.RATES["cuda"]) > 0.0


WIDER = "q, k = (F.pad(x, (0, 152)) for x in (q, k)); y = (q @ k.mT).softmax(-1) @ v"
"""Heads of 160 numbers, in float32: the kernels took twice as long as torch's calls on an H200."""


READ_WHOLE = "y = F.scaled_dot_product_attention(*(x.bfloat16() for x in (q, k, v)), self.below != 0).float()"
"""In 16 bits, where the library reads a mask as quickly."""


@pytest.mark.parametrize("body", ["y = (q @ k.mT + self.table).softmax(-1) @ v", "y = F.relu(q @ k.mT) @ v", "y = q @ (k.mT @ v)", WIDER, READ_WHOLE])
def test_what_is_left_to_autograd(body: str, tmp_path: Path) -> None:
    space = space_of(tmp_path, body)
    actions = [str(action) for action in space.actions(space.start) if action.technique == "differentiate"]
    assert actions and not any("attention" in action for action in actions)


def test_no_attention_is_taken_out_of_a_step_on_a_cpu(tmp_path: Path) -> None:
    space = graph.space(models.task(tmp_path, STEP.replace("BODY", BODIES["minGPT"]), "attention", backward=True), "cpu")
    assert not [action for action in space.actions(space.start) if action.technique == "differentiate" and "attention" in str(action)]


WHOLE = """
import copy, sys, torch
text = open(sys.argv[1]).read().replace('device="cuda"', 'device="cpu"').replace('"device": "cuda"', '"device": "cpu"')
names = {"__name__": "generated", "__file__": sys.argv[1], "_copy": copy}
exec(compile(text, sys.argv[1], "exec"), names)
torch.manual_seed(0)
model, new = names["Model"](), names["ModelNew"]()
new.load_state_dict(model.state_dict())
(x,) = names["get_inputs"]()
for one in (model, new):
    one(x).square().sum().backward()
assert new.fits((x,))
for (name, a), b in zip(model.named_parameters(), new.parameters()):
    torch.testing.assert_close(b.grad if b.grad is not None else a.grad, a.grad, rtol=2e-5, atol=2e-5, msg=name)
"""


@INTERPRETER
@pytest.mark.slow
@pytest.mark.parametrize(("name", "action"), [("minGPT", ACTION), ("sinks that learn, and a cap", KEPT)])
def test_a_whole_step_by_the_interpreter(name: str, action: str, tmp_path: Path) -> None:
    space = space_of(tmp_path, BODIES[name])
    path = tmp_path / "optimized.py"
    path.write_text(space.candidate([Action.parse(action)]).source.text)
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", WHOLE, str(path)], env=environment, check=True, timeout=250)


INTERPRETED = """
import sys, torch
from warpwright.domains.graph.techniques.kernels.attention.calls import FLASH_ATTENTION as semantics
names = {"__name__": "generated", "__file__": sys.argv[1]}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
torch.manual_seed(0)
R = torch.randn

def check(q, k, v, mask=None, bias=None, hidden=False, fill=None, causal=False, offset=0, window=0, dead="nan", products=3, turned=False,
          shape=(32, 32, 4, 2, 1), times=4.0, floor=1e-6):
    given = (causal, offset, window, mask, hidden, fill, bias)
    y, ends = names["flash_forward"](q, k, v, 0.3, *given, None, "softmax", dead, products, turned, (32, 32, 4, 1, 0))
    dy = R(y.shape).to(q.dtype)
    seen = names["flash_backward"](dy, q, k, v, y, ends, 0.3, *given, dead, products, shape)

    def gradients(kind):
        own = [x.to(kind).requires_grad_() for x in (q, k, v)]
        of = semantics(*own, 0.3, *given[:6], None if bias is None else bias.to(kind), None, "softmax", dead, products, turned, [])
        return torch.autograd.grad(of, own, dy.to(kind))

    for name, x, exact, own in zip("qkv", seen, gradients(torch.float64), gradients(q.dtype)):
        assert x.shape == exact.shape and x.dtype == q.dtype and torch.equal(x.isnan(), exact.isnan()), name
        if x.numel():
            error, allowed = ((one.double() - exact).nan_to_num(0.0).abs().max() for one in (x, own))
            assert error <= times * allowed + floor * exact.nan_to_num(0.0).abs().max(), (name, float(error), float(allowed), shape)

mask = torch.rand(1, 1, 70, 90) < 0.4
mask[..., 5, :] = False  # a row that sees nothing
CASES = [
    lambda: check(R(2, 2, 70, 20), R(2, 2, 90, 20), R(2, 2, 90, 40)),
    lambda: check(R(1, 2, 70, 20), R(1, 2, 90, 20), R(1, 2, 90, 40), shape=(64, 16, 4, 1, 0)),
    lambda: check(R(1, 2, 70, 16), R(1, 2, 70, 16), R(1, 2, 70, 16), causal=True, turned=True),
    lambda: check(R(1, 2, 70, 16), R(1, 2, 90, 16), R(1, 2, 90, 16), causal=True, offset=20, window=30, shape=(16, 32, 4, 1, 0)),
    lambda: check(R(1, 1, 70, 16), R(1, 1, 40, 16), R(1, 1, 40, 16), causal=True, offset=-30, dead="zero"),
    lambda: check(R(1, 4, 70, 16), R(1, 2, 90, 16), R(1, 2, 90, 16), bias=R(1, 4, 70, 90)),
    lambda: check(R(1, 2, 70, 16), R(1, 2, 90, 16), R(1, 2, 90, 16), mask=~mask, hidden=True, fill=-2.0),
    lambda: check(R(1, 2, 70, 16), R(1, 2, 90, 16), R(1, 2, 90, 16), mask=mask, dead="zero"),
    lambda: check(R(70, 2, 16).transpose(0, 1), R(2, 90, 16), R(2, 90, 16)),
    lambda: check(R(1, 2, 70, 16).half(), R(1, 2, 90, 16).half(), R(1, 2, 90, 16).half(), shape=(32, 16, 4, 1, 0)),
    lambda: check(R(1, 2, 70, 16) * 1e4, R(1, 2, 90, 16) * 1e-4, R(1, 2, 90, 16) * 1e8),
    lambda: check(R(1, 1, 3, 1), R(1, 1, 5, 1), R(1, 1, 5, 1), shape=(16, 16, 4, 1, 1)),
    lambda: check(R(2, 2, 0, 16), R(2, 2, 90, 16), R(2, 2, 90, 16)),
    lambda: check(R(1, 1, 40, 16), R(1, 1, 40, 16), R(1, 1, 40, 16), products=1, floor=5e-3),
]
for case in CASES[int(sys.argv[2])::int(sys.argv[3])]:
    case()
"""


@INTERPRETER
@pytest.mark.parametrize(("part", "parts"), [(11, 99), *(pytest.param(part, 3, marks=pytest.mark.slow) for part in range(3))])
def test_the_kernels_by_the_interpreter(part: int, parts: int, tmp_path: Path) -> None:
    path = tmp_path / "generated.py"
    path.write_text("\n\n".join(["import torch", kernels.text("flash_attention"), kernels.text("flash_backward")]))
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", INTERPRETED, str(path), str(part), str(parts)], env=environment, check=True, timeout=250)


def test_a_window_in_16_bits_is_taken_out_of_a_step(tmp_path: Path) -> None:
    near = "torch.ones(20, 20, dtype=torch.bool).tril() & ~torch.ones(20, 20, dtype=torch.bool).tril(-4)"
    space = space_of(tmp_path, f"y = F.scaled_dot_product_attention(*(x.bfloat16() for x in (q, k, v)), {near}).float()")
    assert Action.parse(ACTION) in space.actions(space.start)
