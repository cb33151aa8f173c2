"""How kernels of convolutions end (pools, parts of a larger tensor), and those of one tap: the rewrite by torch's calls, the kernels by Triton's
interpreter where Triton is installed."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from exactness import captured, randomised
from interpreter import INTERPRETER
from torch import fx, nn

from warpwright.base import Action
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR, run
from warpwright.domains.graph.techniques.convolutions import implicit, pointwise, statistics
from warpwright.domains.graph.techniques.convolutions.implicit import ImplicitConvolutions
from warpwright.domains.graph.techniques.convolutions.pointwise import PointwiseConvolution
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.domains.graph.text import straight

TECHNIQUE = ImplicitConvolutions()
FLOAT32, HALF = (Action(TECHNIQUE.name, params=(("precision", precision),)) for precision in ("float32", "half"))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implicit, "_LEAST_FLOPS", 0.0)
    monkeypatch.setattr(pointwise, "LEAST_BYTES", 0)


class Fire(nn.Module):
    """A layer of SqueezeNet: one tap, then one tap and nine side by side."""

    def __init__(self) -> None:
        super().__init__()
        self.squeeze, self.one, self.nine = nn.Conv2d(24, 16, 1), nn.Conv2d(16, 24, 1), nn.Conv2d(16, 20, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.squeeze(x))
        return torch.cat([torch.relu(self.one(x)), torch.relu(self.nine(x))], 1)


class Pooled(nn.Module):
    """What a pool follows, before or after what is done to each element."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.then = nn.Conv2d(16, 24, 3, padding=1), nn.Conv2d(24, 16, 1)
        self.scale = nn.Parameter(torch.randn(24, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(torch.max_pool2d(torch.tanh(self.first(x)), 2) * self.scale)
        return torch.relu(nn.functional.avg_pool2d(self.then(x), (1, 2)))


class Strided(nn.Module):
    """Convolutions of one tap in groups and with strides, the last without an end."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(24, 40, 1, bias=False), nn.Conv2d(40, 32, 1, stride=2, groups=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(torch.sigmoid(self.first(x)))


MODELS = {
    "fire": (Fire, (2, 24, 7, 6), ["implicit_convolution", "implicit_cut", "pointwise_convolution", "pointwise_convolution"]),
    "pooled": (Pooled, (2, 16, 9, 8), ["implicit_convolution", "implicit_cut", "pointwise_convolution"]),
    "strided": (Strided, (2, 24, 9, 8), ["pointwise_convolution", "pointwise_convolution"]),
}


def _kernels(ir: GraphIR) -> list[fx.Node]:
    return [node for node in ir.graph.nodes if hasattr(node.target, "shared_text")]


def _names(ir: GraphIR) -> list[str]:
    return sorted("_".join(node.target.__name__.split("_")[:2]) for node in _kernels(ir))  # type: ignore[union-attr]


@pytest.mark.parametrize("name", MODELS)
def test_kernels_end_with_what_follows(name: str) -> None:
    torch.manual_seed(0)
    kind, size, expected = MODELS[name]
    model, x = randomised(kind(), 0), torch.randn(size)
    exact = kind().double().requires_grad_(False)
    exact.load_state_dict(model.state_dict())
    for action, most in ((FLOAT32, 2e-6), (HALF, 3e-3)):
        after = TECHNIQUE.apply(captured(model, x), action)
        assert _names(after) == expected
        left = [node for node in after.graph.nodes if node.op == "call_function" and node not in _kernels(after) and not _is_weights(node)]
        assert not left, left
        seen, right = run(after, [x], dict(model.named_parameters())), exact(x.double())
        assert (seen - right).abs().max() < most * right.abs().max()


def _is_weights(node: fx.Node) -> bool:
    return all(source.meta.get("role") != "input" for source in _sources(node))


def _sources(node: fx.Node) -> set[fx.Node]:
    if node.op == "placeholder":
        return {node}
    return {found for source in node.all_input_nodes for found in _sources(source)}


def test_parts_of_a_cat_are_written_where_they_belong() -> None:
    with torch.device("meta"):
        after = TECHNIQUE.apply(captured(Fire(), torch.empty(2, 24, 7, 6)), HALF)
    calls = [node for node in _kernels(after) if hasattr(node.target, "place_of_into") and node.args[node.target.place_of_into + 1]]
    given = [call.args[call.target.place_of_into : call.target.place_of_into + 2] for call in calls]  # type: ignore[union-attr]
    assert given == [(None, [44, 0]), (calls[0], [44, 24])] and after.results == (calls[1],)


class Normed(nn.Module):
    """Norms of what convolutions give, one of them between two readers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.then, self.last = nn.Conv2d(16, 24, 3, padding=1), nn.Conv2d(24, 32, 1), nn.Conv2d(32, 32, 3, groups=2)
        self.batch, self.instance, self.group = nn.BatchNorm2d(24), nn.InstanceNorm2d(32, affine=True), nn.GroupNorm(4, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x) + 100
        x = torch.relu(self.batch(x)) + x * 0.01
        return torch.sigmoid(self.group(self.last(self.instance(self.then(x)))))


def test_norms_take_statistics_of_the_convolutions_before_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics, "LONGEST_HELD", 8)
    monkeypatch.setattr(implicit, "_FEW", 1)
    torch.manual_seed(0)
    model, x = randomised(Normed(), 0), torch.randn(3, 16, 7, 6)
    exact = copy.deepcopy(model).double()
    before = TECHNIQUE.apply(captured(model, x), FLOAT32)
    after = FuseCuda().apply(before, fuse_cuda(1, DEFAULT, 0))
    assert [node.target.statistics for node in _kernels(after) if hasattr(node.target, "statistics")] == ["all", "each", "each"]  # type: ignore[union-attr]
    assert not any("norm.default" in str(node.target) for node in after.graph.nodes)
    state = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
    seen, right = run(after, [x], state), exact(x.double())
    assert (seen - right).abs().max() < 1e-5 * right.abs().max()
    for name, buffer in exact.named_buffers():
        torch.testing.assert_close(state[name], buffer.to(state[name].dtype), rtol=1e-5, atol=1e-5)


def test_norms_whose_rows_are_held_in_registers_stay_as_they_are() -> None:
    class Short(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(16, 24, 3, padding=1), nn.InstanceNorm2d(24)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.norm(self.conv(x))

    with torch.device("meta"):
        after = TECHNIQUE.apply(captured(Short(), torch.empty(2, 16, 9, 9)), HALF)
        assert statistics.expand(after) is after
        evaluated = TECHNIQUE.apply(captured(nn.Sequential(nn.Conv2d(16, 8, 3), nn.BatchNorm2d(8)).eval(), torch.empty(2, 16, 9, 9)), HALF)
        assert statistics.expand(evaluated) is evaluated


def test_what_rises_comes_before_a_maximum_that_the_kernel_cannot_form() -> None:
    class Behind(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.bias = nn.Conv2d(16, 24, 3), nn.Parameter(torch.randn(24, 1, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(torch.max_pool2d(self.conv(x), 3, 2) + self.bias)

    class Falling(Behind):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 1 - torch.max_pool2d(self.conv(x), 3, 2)

    model, x = randomised(Behind(), 0), torch.randn(2, 16, 10, 9)
    after = TECHNIQUE.apply(captured(model, x), FLOAT32)
    assert after.results[0].target is torch.ops.aten.max_pool2d.default and len(_kernels(after)) == 2
    torch.testing.assert_close(run(after, [x], dict(model.named_parameters())), model(x), rtol=1e-5, atol=1e-5)
    left = TECHNIQUE.apply(captured(Falling(), x), FLOAT32)
    assert left.results[0].target is not torch.ops.aten.max_pool2d.default


class Ending(nn.Module):
    """A convolution, and what is done to its result and a bias."""

    def __init__(self, conv: nn.Module, body: Any, *sizes: int) -> None:
        super().__init__()
        self.conv, self.body, self.bias = conv, body, nn.Parameter(torch.randn(sizes))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(self.conv(x), self.bias)


def _ending(conv: nn.Module, body: Any, x: torch.Tensor, *sizes: int) -> GraphIR:
    model = randomised(Ending(conv, body, *sizes), 0)
    after = TECHNIQUE.apply(captured(model, x), FLOAT32)
    torch.testing.assert_close(run(after, [x], dict(model.named_parameters())), model(x), rtol=1e-5, atol=1e-5)
    return after


def test_a_pool_after_a_transposed_convolution_stays() -> None:
    for stride in (1, 2):  # its blocks hold every other place: 2 x 2 of those are no window
        conv = nn.ConvTranspose2d(16, 8, 3, stride=stride, padding=1, output_padding=stride - 1)
        after = _ending(conv, lambda y, b: torch.max_pool2d(torch.tanh(y), 2), torch.randn(2, 16, 4, 4), 1)
        assert any("pool" in node.name for node in after.graph.nodes) and not any(node.target.end.windows for node in _kernels(after)[1:])  # type: ignore[union-attr]


@pytest.mark.parametrize("pool", [lambda y, b: nn.functional.max_pool2d(y, [2]), lambda y, b: nn.functional.avg_pool2d(y, 2)])
def test_a_pool_of_more_axes_than_the_convolution_stays(pool: Any) -> None:
    after = _ending(nn.Conv1d(16, 8, 3), pool, torch.randn(2, 16, 10), 1)  # a sample without a batch, to the pool: channels are pooled, too
    assert any("pool" in node.name for node in after.graph.nodes)


def test_a_number_a_channel_is_read_by_channel_before_a_pool_of_the_same_sizes() -> None:
    after = _ending(nn.Conv2d(16, 8, 3, padding=1), lambda y, b: torch.relu(torch.max_pool2d(y, 3) + b), torch.randn(1, 16, 3, 3), 1, 8, 1, 1)
    [call] = _kernels(after)[1:]
    assert after.results[0].target is torch.ops.aten.max_pool2d.default
    assert "q0 + row" in call.target.python_text() and "q0 + target" not in call.target.python_text()  # type: ignore[union-attr]


def test_a_cat_of_a_cat_keeps_the_parts_of_both() -> None:
    class Nested(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.three = nn.Conv2d(16, 8, 3), nn.Conv2d(16, 7, 3), nn.Conv2d(16, 5, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([torch.cat([self.one(x), torch.relu(self.two(x))], 1), self.three(x)], 1)

    model, x = randomised(Nested(), 0), torch.randn(2, 16, 5, 5)
    after = TECHNIQUE.apply(captured(model, x), FLOAT32)
    torch.testing.assert_close(run(after, [x], dict(model.named_parameters())), model(x), rtol=1e-5, atol=1e-5)


def test_a_weight_that_is_nan_stays_so_in_tf32() -> None:
    model, x = nn.Sequential(nn.Conv2d(16, 8, 1), nn.Tanh()), torch.randn(2, 16, 5, 5)
    with torch.no_grad():
        model[0].weight[2, 3] = torch.tensor(0x7FFFFFFF, dtype=torch.int32).view(torch.float32)  # what a GPU's own arithmetic makes
    seen = run(TECHNIQUE.apply(captured(model, x), HALF), [x], dict(model.named_parameters()))
    assert seen[:, 2].isnan().all() and seen.isnan().sum() == seen[:, 2].numel()


def test_a_cat_of_other_things_stays() -> None:
    class Dense(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(16, 8, 3, padding=1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(self.conv(x))
            return torch.cat([x, y], 1) + torch.cat([y, y, y], 1)

    with torch.device("meta"):
        after = TECHNIQUE.apply(captured(Dense(), torch.empty(2, 16, 4, 4)), HALF)
    assert len([node for node in after.graph.nodes if node.target is torch.ops.aten.cat.default]) == 2


def test_pools_that_a_block_cannot_hold_stay() -> None:
    with torch.device("meta"):
        x = torch.empty(2, 16, 12, 12)
        others = (nn.MaxPool2d(3), nn.MaxPool2d(2, 1), nn.MaxPool2d(2, padding=1), nn.MaxPool2d(8), nn.MaxPool2d(2, dilation=2))
        for pool in (*others, nn.AvgPool2d(2, divisor_override=3)):
            after = TECHNIQUE.apply(captured(nn.Sequential(nn.Conv2d(16, 16, 3), pool), x), HALF)
            assert any("pool" in node.name for node in after.graph.nodes), pool
        after = TECHNIQUE.apply(captured(nn.Sequential(nn.Conv2d(16, 16, 2), nn.MaxPool2d(2)), x), HALF)  # eleven places: the last is left out
        assert not any("pool" in node.name for node in after.graph.nodes) and after.results[0].meta["val"].shape == (2, 16, 5, 5)


def test_long_sums_of_one_tap_are_cut_first() -> None:
    def names(inputs: int, outputs: int, action: Action) -> list[str]:
        with torch.device("meta"):
            return _names(TECHNIQUE.apply(captured(nn.Sequential(nn.Conv2d(inputs, outputs, 1), nn.ReLU()), torch.empty(2, inputs, 8, 8)), action))

    assert names(1024, 1024, HALF) == names(2048, 64, HALF) == names(256, 256, FLOAT32) == ["pointwise_convolution"]
    assert names(2048, 2048, HALF) == names(512, 512, FLOAT32) == ["implicit_convolution", "implicit_cut"]


INTERPRETED = """
import random, sys, torch
from warpwright.domains.graph.techniques.convolutions.pointwise import PointwiseConvolution
names = {"__name__": "generated", "__file__": sys.argv[1]}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
rng = random.Random(int(sys.argv[2]))
for done in range(int(sys.argv[3])):
    d, groups = rng.choice([1, 2, 3]), rng.choice([1, 1, 2])
    ci, co, size = groups * rng.choice([5, 16, 40]), groups * rng.choice([5, 16, 70]), [rng.randint(3, 7) for _ in range(d)]
    stride, precision = [rng.randint(1, 2) for _ in range(d)], rng.choice(["tf32", "tf32x3"])
    torch.manual_seed(done)
    x, w, b = torch.randn(3, ci, *size), torch.randn(co, ci // groups), rng.choice([None, torch.randn(co)])
    places = [(s - 1) // step + 1 for s, step in zip(size, stride)]
    if precision == "tf32":  # as the graph rounds it
        w = ((w.view(torch.int32) + 0x1000) & -0x2000).view(torch.float32)
    pool = [rng.choice([1, 2]) if p > 1 else 1 for p in places]
    pooled = rng.choice(["max", "avg"]) if max(pool) > 1 else ""
    within, statistics = rng.choice([([co + 7, 3], ""), ([], ""), ([], "each"), ([], "all")])
    shape = rng.choice([[16, 64, 16, 4, 2], [64, 128, 32, 4, 2], [16, 64, 16, 4, 2, 1], [64, 128, 32, 4, 2, 1]])
    given = (precision, stride, places, shape, groups)
    pools = [] if max(pool) == 1 else pool
    seen = names["pointwise_convolution"](x, w, b, *given, pools, pooled, None, within, statistics=statistics)
    wide = (x.double(), w.double(), None if b is None else b.double())
    exact = PointwiseConvolution(None)(*wide, *given, pools, "", None, [])
    if pooled:
        exact = getattr(torch.nn.functional, f"{pooled}_pool{d}d")(exact, pool)
    if statistics:
        seen, blocks = seen
        units, per = (3, exact[0, 0].numel()) if statistics == "each" else (1, exact[:, 0].numel())
        variance, mean = names["norm_of_blocks"](blocks, units, per, co // groups, shape[1] // int(torch.tensor(pool).prod()), d + 2)
        own = seen.double().unflatten(1, (groups, co // groups))
        axes = [a for a in range(own.dim()) if a != 1 and (a != 0 or statistics == "all")]
        for one, other in ((mean, own.mean(axes, keepdim=True)), (variance, own.var(axes, correction=0, keepdim=True))):
            other = other.expand(-1, -1, co // groups, *[1] * d).reshape(one.shape)
            torch.testing.assert_close(one.double(), other, rtol=2e-6, atol=2e-6 * float(own.abs().max()))
    seen = seen[:, 3 : 3 + co] if within else seen
    most = 2e-3 if precision == "tf32" else 2e-6
    assert seen.shape == exact.shape and (seen - exact).abs().max() < most * exact.abs().max(), (sys.argv, done, (seen - exact).abs().max())
"""


@INTERPRETER
@pytest.mark.parametrize(("seed", "count"), [(0, 2), pytest.param(1, 40, marks=pytest.mark.slow)])
def test_the_kernel_of_one_tap_by_the_interpreter(seed: int, count: int, tmp_path: Path) -> None:
    path = tmp_path / "generated.py"
    path.write_text("import torch\n" + PointwiseConvolution(None).shared_text)
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", INTERPRETED, str(path), str(seed), str(count)], env=environment, check=True, timeout=250)


@INTERPRETER
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_whole_programs_by_the_interpreter(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    kind, size, _ = MODELS[name]
    model, x = randomised(kind(), 0), torch.randn(size)
    after: Any = TECHNIQUE.apply(captured(model, x), FLOAT32)
    names = straight.names_of(after)
    nodes = [node for node in after.graph.nodes if node.op == "call_function"]
    given = [node for node in after.graph.nodes if node.op == "placeholder"]
    lines = straight.body(after, nodes, after.results, names)
    state = dict(model.named_parameters())
    held = {names[node]: state[after.state[node.name]].detach() for node in given if node.name in after.state}
    torch.save((x, held, model(x).detach()), tmp_path / "given.pt")
    path = tmp_path / "generated.py"
    path.write_text("import torch\nfrom torch.nn import functional as F\n" + "\n".join(straight.kernels(after)) + f"""
def program({', '.join(names[node] for node in given)}):
    {chr(10).join('    ' + line for line in lines).strip()}

if __name__ == "__main__":
    x, state, plain = torch.load({str(tmp_path / 'given.pt')!r}, weights_only=False)
    with torch.no_grad():
        torch.testing.assert_close(program(x=x, **state)[0], plain, rtol=1e-5, atol=1e-5)
""")
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)
