"""Training steps: the gradients of a differentiated graph are those of the model, and the program that comes of it trains as the model does."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.domains.graph import models
from warpwright.base import Action
from warpwright.domains import graph
from warpwright.domains.graph.capture.training import MOST_AGAIN
from warpwright.domains.graph.text.autograd import halves, kept_between
from warpwright.errors import NotApplicable
from warpwright.tasks import taskfile

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n\n"

BLOCK = HEAD + '''class Model(nn.Module):
    """A gated block with norms, a frozen parameter, a region without gradients and two results."""

    def __init__(self, width):
        super(Model, self).__init__()
        self.norm, self.gate, self.up = nn.LayerNorm(width), nn.Linear(width, width), nn.Linear(width, width, bias=False)
        self.frozen = nn.Parameter(torch.randn(width), requires_grad=False)
        self.unused = nn.Parameter(torch.randn(3))

    def forward(self, x, mask):
        h = self.norm(x)
        with torch.no_grad():
            scale = h.abs().amax(-1, keepdim=True) + 1.0
        y = F.silu(self.gate(h)) * self.up(h) * self.frozen / scale
        return {"y": (x + F.gelu(y)).masked_fill(mask, 0.0), "weights": torch.softmax(y, -1), "best": y.argmax(-1)}


def get_inputs():
    return [torch.randn(64, 80), torch.rand(64, 80) > 0.9]


def get_init_inputs():
    return [80]
'''

WRITTEN = HEAD + '''class Model(nn.Module):
    """A pool whose result torch lays out by as_strided, the gradient of which is a write."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        return F.adaptive_avg_pool2d(self.layer(x).permute(0, 3, 1, 2), 1).flatten(1)


def get_inputs():
    return [torch.randn(4, 10, 12, 16)]


def get_init_inputs():
    return []
'''

NET = HEAD + '''class Model(nn.Module):
    """Convolutions with norms in training mode, pooling, and a loss; only the image has a gradient."""

    def __init__(self):
        super().__init__()
        self.a, self.n = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.b, self.g, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.Linear(8, 5)

    def forward(self, image, level, target):
        x = F.relu(self.n(self.a(image * level)), inplace=True)
        x = F.max_pool2d(F.leaky_relu(self.g(self.b(x))) + x, 2)
        return F.cross_entropy(self.head(x.mean((2, 3))), target, label_smoothing=0.1)


def get_inputs():
    return [torch.randn(4, 3, 16, 16, requires_grad=True), torch.rand(4, 1, 1, 1), torch.randint(0, 5, (4,))]


def get_init_inputs():
    return []
'''

SOURCES = {"block": BLOCK, "net": NET}
FORMS = ["", "differentiate(norms=true, again=true)", "differentiate(norms=false, again=true)", "differentiate(norms=true, again=false)",
         "differentiate(norms=false, again=false)"]  # fmt: skip
FUSED = ["differentiate(norms=true, again=true)", "fuse_cpp(calls=1)"]


@pytest.fixture(scope="module", params=SOURCES)
def space(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return graph.space(models.task(tmp_path_factory.mktemp("task"), SOURCES[request.param], request.param, backward=True))


def program(space: Any, recipe: list[str]) -> dict[str, Any]:
    candidate = space.candidate([Action.parse(text) for text in recipe])
    names: dict[str, Any] = {"__name__": "generated", "_copy": copy}
    exec(compile(candidate.source.text, "optimized.py", "exec"), names)
    return names


@pytest.mark.parametrize("form", FORMS)
def test_the_step_is_the_models_step(space: Any, form: str) -> None:
    program(space, [form] if form else [])["self_test"](seeds=1)


def test_it_may_be_fused(space: Any) -> None:
    names = program(space, FUSED)
    assert names["KERNELS"] is not None
    names["self_test"](seeds=2)


def test_no_kernel_is_in_both_halves(space: Any) -> None:
    ir = space.replay([Action.parse(text) for text in FUSED])
    early, late = halves(ir)
    assert any(hasattr(node.target, "python_text") for node in early)
    assert any(hasattr(node.target, "python_text") for node in late)
    assert not {arg for node in early for arg in node.all_input_nodes} & {node for node in ir.graph.nodes if node.name in ir.training.tangents}


def test_what_is_computed_again_is_not_kept(space: Any) -> None:
    kept, again = (kept_between(space.replay([Action.parse(f"differentiate(norms=true, again={again})")])) for again in ("false", "true"))
    assert sum(node.meta["val"].numel() for node in again) < sum(node.meta["val"].numel() for node in kept)


LOOP = HEAD + '''class Model(nn.Module):
    """An LSTM as a loop."""

    def __init__(self):
        super().__init__()
        self.inner, self.hidden = nn.Linear(5, 20), nn.Linear(5, 20, bias=False)

    def forward(self, x):
        h = c = torch.zeros_like(x[:, 0])
        for t in range(6):
            i, f, g, o = (self.inner(x[:, t]) + self.hidden(h)).chunk(4, -1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return h


def get_inputs():
    return [torch.randn(3, 6, 5)]


def get_init_inputs():
    return []
'''


def test_a_loop_is_not_computed_again_from_its_first_step(tmp_path: Path) -> None:
    """The cell's state is an element-wise function of all steps: it is kept now and then."""
    loop = graph.space(models.task(tmp_path, LOOP, backward=True))
    ir = loop.replay([Action.parse("differentiate(norms=true, again=true)")])
    again = {node for node in ir.graph.nodes if node.meta.get("again")}
    behind: dict[Any, set[Any]] = {}
    for node in ir.graph.nodes:
        behind[node] = {node}.union(*(behind[arg] for arg in node.all_input_nodes if arg in again)) if node in again else set()
    assert max(map(len, behind.values())) <= MOST_AGAIN < len(again)
    program(loop, ["differentiate(norms=true, again=true)"])["self_test"](seeds=1)


def test_kernels_come_after_the_gradients(space: Any) -> None:
    assert not [action for action in space.actions(space.start) if action.technique in ("fuse_cpp", "fold_parameters")]
    with pytest.raises(NotApplicable):
        space.replay([Action.parse("fuse_cpp(calls=1)")])


@pytest.mark.parametrize("recipe", [[], FUSED], ids=["autograd", "fused"])
def test_it_trains_as_the_model_does(space: Any, recipe: list[str]) -> None:
    names = program(space, recipe)
    torch.manual_seed(0)
    model = names["Model"](*names["get_init_inputs"]())
    new = names["ModelNew"](*names["get_init_inputs"]())
    new.load_state_dict(model.state_dict())
    for one in (model, new):
        torch.manual_seed(1)
        # Steps in proportion to the gradient: that of a bias before a batch norm is rounding alone, and Adam would make a whole step of it.
        optimizer = torch.optim.SGD(one.parameters(), lr=0.05, momentum=0.9)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for _ in range(3):
                result = one(*[x.detach() for x in names["get_inputs"]()])
                loss = result if isinstance(result, torch.Tensor) else result["y"].square().mean() + result["weights"].std()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(new.state_dict()[name], tensor, rtol=1e-5, atol=1e-6, msg=name)


def test_what_was_not_verified_takes_the_original(space: Any) -> None:
    names = program(space, FUSED)
    new = names["ModelNew"](*names["get_init_inputs"]())
    first, second, *rest = names["get_inputs"]()
    if second.is_floating_point():
        with pytest.warns(RuntimeWarning, match="gradient of level is wanted"):
            new(first, second.requires_grad_(), *rest).backward()
        assert second.grad is not None
    names["_Watch"].told.clear()
    with pytest.warns(RuntimeWarning, match="verified for"):
        new(first[:2], second[:2], *(x[:2] for x in rest))
    with torch.no_grad():
        assert new.fits((first.detach(), second.detach(), *rest))


def test_gradients_of_gradients_are_refused(space: Any) -> None:
    names = program(space, FUSED)
    new = names["ModelNew"](*names["get_init_inputs"]())
    inputs = [x.detach() for x in names["get_inputs"]()]
    inputs[0].requires_grad_()
    result = new(*inputs)
    loss = result if isinstance(result, torch.Tensor) else result["y"].square().sum()
    [gradient] = torch.autograd.grad(loss, inputs[:1], create_graph=True)
    with pytest.raises(RuntimeError, match=r"once_differentiable|does not require grad"):
        gradient.sum().backward()


RECURRENT = HEAD + '''class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(4, 4)

    def forward(self, x):
        return torch.tanh(self.rnn(x)[0])


def get_inputs():
    return [torch.randn(3, 2, 4)]


def get_init_inputs():
    return []
'''


def test_what_torch_cannot_differentiate_as_a_graph_is_left_to_autograd(tmp_path: Path) -> None:
    space = graph.space(models.task(tmp_path, RECURRENT, backward=True))
    assert space.limited or not [a for a in space.actions(space.start) if a.technique == "differentiate" and _applies(space, a)]
    program(space, ["compile(mode=\"default\")"] if space.limited else [])


def _applies(space: Any, action: Action) -> bool:
    try:
        space.apply(space.start, action)
    except NotApplicable:
        return False
    return True


def test_the_task_is_another_one(tmp_path: Path) -> None:
    plain, step = (models.task(tmp_path, BLOCK, backward=wanted) for wanted in (False, True))
    assert plain.key != step.key
    assert plain.options == taskfile.describe(plain.path).options
    inputs = taskfile.load(step).make_inputs(0)
    assert [tuple(t.shape) for t in inputs[-1]] == [(64, 80), (64, 80)]


CACHED = HEAD + '''import argparse


class Model(nn.Module):
    """Returns its keys in a plain object, as models with a cache do."""

    def __init__(self):
        super().__init__()
        self.keys = nn.Linear(8, 8)

    def forward(self, x):
        keys = self.keys(x)
        return keys.sum(-1), argparse.Namespace(layers=[argparse.Namespace(keys=keys, device=keys.device, dtype=keys.dtype)], name="dynamic")


def get_inputs():
    return [torch.randn(4, 8)]


def get_init_inputs():
    return []
'''


@pytest.mark.parametrize("form", ["", "differentiate(norms=false, again=false)"])
def test_gradients_flow_to_the_tensors_of_a_plain_object(tmp_path: Path, form: str) -> None:
    space = graph.space(models.task(tmp_path, CACHED, backward=True))
    assert not space.limited
    program(space, [form] if form else [])["self_test"](seeds=1)


def test_a_write_of_what_comes_back_is_of_the_backward(tmp_path: Path) -> None:
    space = graph.space(models.task(tmp_path, WRITTEN, "written", backward=True), "cpu")
    recipe = [Action.parse("differentiate(norms=true, again=false)")]
    names: dict[str, Any] = {"__name__": "generated", "_copy": copy}
    exec(compile(space.candidate(recipe).source.text, "optimized.py", "exec"), names)
    early, late = halves(space.replay(recipe))
    assert [node for node in late if "copy_" in str(node.target)] and not [node for node in early if "copy_" in str(node.target)]
    torch.manual_seed(0)
    model, new = names["Model"](), names["ModelNew"]()
    new.load_state_dict(model.state_dict())
    [x], gradients = names["get_inputs"](), []
    for one in (model, new):
        given = x.clone().requires_grad_()
        one(given).square().sum().backward()
        gradients.append([given.grad, *(parameter.grad for parameter in one.parameters())])
    torch.testing.assert_close(*gradients)
