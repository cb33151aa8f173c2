"""Convolutions by a kernel of our own: the rewrite in float64, the kernel by Triton's interpreter where Triton is installed."""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from exactness import assert_equal_in_double, captured, randomised
from interpreter import INTERPRETER
from shapes import Apply
from torch import fx, nn
from torch.nn import functional as F

from warpwright.base import Action
from warpwright.domains.graph import kernels
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.techniques import schedule
from warpwright.domains.graph.techniques.convolutions import conv_transpose, direct_convolution
from warpwright.domains.graph.techniques.convolutions.direct_convolution import DIRECT_CONVOLUTION, DirectConvolutions
from warpwright.domains.graph.text import straight

TECHNIQUE = DirectConvolutions()
EXACT = Action(TECHNIQUE.name, params=(("precision", "tf32x3"),))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(direct_convolution, "_LEAST_FLOPS", 0.0)


def _calls(ir: object) -> list[tuple[object, ...]]:
    return [node.args for node in ir.graph.nodes if node.target is DIRECT_CONVOLUTION]  # type: ignore[attr-defined]


def test_long_sums_over_two_axes_are_the_librarys_and_those_over_three_are_not() -> None:
    with torch.device("meta"):
        assert not list(TECHNIQUE.sites(captured(nn.Conv2d(3, 96, 11, stride=4, padding=2), torch.empty(2, 3, 224, 224))))  # L1-50
        assert list(TECHNIQUE.sites(captured(nn.Conv2d(8, 64, 3), torch.empty(2, 8, 128, 128))))
        assert list(TECHNIQUE.sites(captured(nn.Conv3d(16, 16, 3), torch.empty(2, 16, 8, 8, 8))))


@pytest.mark.parametrize(
    ("layers", "size", "outer", "axis"),
    [
        (nn.Conv3d(3, 20, (1, 2, 3), stride=(1, 2, 1), padding=(0, 1, 2), dilation=(1, 2, 1)), (2, 3, 4, 7, 6), None, None),
        (nn.Conv2d(5, 7, 6, stride=4, padding=1, bias=False), (2, 5, 23, 14), None, None),
        (nn.Sequential(nn.Conv2d(3, 16, 3), Apply(lambda y: y.amin(1))), (2, 3, 6, 7), 1, 2),
        (nn.Sequential(nn.Conv1d(3, 18, 3), Apply(lambda y: y.logsumexp(1, keepdim=True))), (2, 3, 9), 1, 2),
        (nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), Apply(lambda y: y.reshape(2, 4, 6, 6, 7).amax(1))), (2, 3, 6, 7), 4, 1),
        (nn.Sequential(nn.Conv2d(3, 24, 3), Apply(lambda y: y.reshape(2, 4, 6, 4, 5).logsumexp(-3, keepdim=True))), (2, 3, 6, 7), 4, 2),
    ],
)  # fmt: skip
def test_convolutions_and_reductions(layers: nn.Module, size: tuple[int, ...], outer: int | None, axis: int | None) -> None:
    model = randomised(layers, 0)
    before = captured(model, torch.zeros(size))
    assert [dict(action.params)["precision"] for action in TECHNIQUE.sites(before)] == ["tf32x3", "tf32"]
    after = TECHNIQUE.apply(before, EXACT)
    [call] = _calls(after)
    assert call[8:10] == (() if outer is None else (outer, axis))
    assert_equal_in_double(before, after, [torch.randn(size)], model)
    assert list(schedule.Compile().sites(after)) and not list(TECHNIQUE.sites(after))


@pytest.mark.parametrize("stride", [2, 3])
def test_phases_of_a_transposed_convolution(stride: int) -> None:
    """What L2-58 and 96 become: the zeros round the input are the kernel's own."""
    layers = nn.Sequential(nn.ConvTranspose3d(2, 5, 3, stride=stride, padding=1), Apply(lambda y: y.logsumexp(1)))
    model, size = randomised(layers, 1), (2, 2, 3, 4, 3)
    before = captured(model, torch.zeros(size))
    [action] = conv_transpose.CHANNELS_BEFORE_INTERLEAVING.sites(before)
    in_phases = conv_transpose.CHANNELS_BEFORE_INTERLEAVING.apply(before, action)
    after = TECHNIQUE.apply(in_phases, EXACT)
    [call] = _calls(after)
    assert call[0].op == "placeholder" and call[8:11] == (stride**3, 2, "logsumexp")  # type: ignore[attr-defined]
    assert_equal_in_double(before, after, [torch.randn(size)], model)


@pytest.mark.parametrize(
    "layers",
    [
        nn.Conv2d(32, 8, 3),  # the library is good at it
        nn.Conv3d(4, 6, 3, groups=2),
        nn.Conv3d(3, 300, 2),  # more channels than a block holds
        nn.Conv3d(16, 4, 4),  # 1,024 terms
        nn.ConvTranspose3d(3, 6, 3),
    ],
)
def test_what_is_left_to_the_library(layers: nn.Module) -> None:
    channels = layers.in_channels
    assert not list(TECHNIQUE.sites(captured(layers, torch.zeros(2, channels, *[6] * (layers.weight.dim() - 2)))))


def test_a_convolution_that_others_read_is_not_reduced_away() -> None:
    model = randomised(nn.Sequential(nn.Conv2d(32, 16, 3), Apply(lambda y: (y, y.amax(1)))), 0)
    assert not list(TECHNIQUE.sites(captured(model, torch.zeros(2, 32, 6, 7))))


def test_a_reduction_of_a_number() -> None:
    model = nn.Sequential(nn.Conv2d(32, 3, 2), Apply(lambda y: y.sum().amax(0)))
    assert not list(TECHNIQUE.sites(captured(model, torch.zeros(1, 32, 3, 3))))


def test_sizes_beyond_32_bits_are_left_to_the_library() -> None:
    conv, x = nn.Conv3d(3, 64, 3, device="meta"), torch.empty(1, 3, 408, 408, 408, device="meta")
    assert not list(TECHNIQUE.sites(captured(conv, x)))


def test_the_text_is_a_program() -> None:
    tree = ast.parse(kernels.text("direct_convolution"))
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)][-1] == DIRECT_CONVOLUTION.__name__


class Followed(nn.Module):
    """A convolution and what can be at the end of its kernel: a graph of calls, with numbers a channel and one number in all."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 20, 3, padding=1)
        self.shift, self.factor = nn.Parameter(torch.randn(20, 1, 1)), nn.Parameter(torch.randn(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.conv(x))
        x = x * torch.clamp((x + 3) / 6, 0, 1)
        x = torch.tanh(x - 0.5) * self.shift + self.factor
        x = F.leaky_relu(F.gelu(F.mish(x)), 0.1) - x.sigmoid()
        return x * F.hardswish(x)


def _followed() -> tuple[nn.Module, torch.Tensor, GraphIR, GraphIR, fx.Node]:
    model, x = randomised(Followed(), 0), torch.randn(2, 3, 9, 8)
    before = captured(model, x)
    after = TECHNIQUE.apply(before, EXACT)
    [call] = [node for node in after.graph.nodes if node.op == "call_function"]
    return model, x, before, after, call


def test_a_kernel_ends_with_what_follows() -> None:
    model, x, before, after, call = _followed()
    assert call.target.__name__.startswith("direct_convolution_")
    assert_equal_in_double(before, after, [x], model)
    text = "\n".join(straight.kernels(after))
    assert text.count("def direct_convolution(") == 1 and "epilogue=_end_of_" in text


def test_what_others_read_is_a_result() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 16, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = torch.relu(self.conv(x)) * 2
            return (y.sigmoid() + 1) * y.sum()  # the sum needs all of y first

    model, x = randomised(Twice(), 0), torch.randn(2, 3, 9, 8)
    before = captured(model, x)
    after = TECHNIQUE.apply(before, EXACT)
    assert_equal_in_double(before, after, [x], model)
    [call] = [node for node in after.graph.nodes if "direct_convolution" in getattr(node.target, "__name__", "")]
    assert len(call.users) == 2


@INTERPRETER
def test_the_end_by_the_interpreter(tmp_path: Path) -> None:
    model, x, _, after, call = _followed()
    state = {node.name: model.get_parameter(after.state[node.name]).detach() for node in call.all_input_nodes if node.name in after.state}
    given = [x if name == "x" else state.get(name, name) for name in (a.name if isinstance(a, fx.Node) else a for a in call.args)]  # type: ignore[call-overload]
    torch.save((given, model(x).detach()), tmp_path / "given.pt")
    path = tmp_path / "generated.py"
    path.write_text("import torch\n" + "\n".join(straight.kernels(after)) + f"""
if __name__ == "__main__":
    given, plain = torch.load({str(tmp_path / "given.pt")!r}, weights_only=False)
    torch.testing.assert_close({call.target.__name__}(*given), plain, rtol=1e-5, atol=1e-6)
""")
    subprocess.run([sys.executable, "-W", "ignore", str(path)], env=os.environ | {"TRITON_INTERPRET": "1"}, check=True, timeout=250)


INTERPRETED = """
import random, sys, torch
from warpwright.domains.graph.techniques.convolutions.direct_convolution import DIRECT_CONVOLUTION as semantics
names = {"__name__": "generated", "__file__": sys.argv[1]}
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), names)
rng = random.Random(int(sys.argv[2]))
done = 0
while done < int(sys.argv[3]):
    d, ci, outer, inner = rng.choice([1, 2, 3]), rng.choice([1, 3, 5]), rng.choice([1, 2, 3, 8]), rng.choice([1, 4, 5, 16])
    size, kernel, stride, dilation, before = ([rng.randint(*ends) for _ in range(d)] for ends in ((4, 7), (1, 3), (1, 2), (1, 2), (0, 2)))
    places = [(size[a] + before[a] + rng.randint(0, 2) - (kernel[a] - 1) * dilation[a] - 1) // stride[a] + 1 for a in range(d)]
    if min(places) < 1:
        continue
    done += 1
    torch.manual_seed(done)
    x, w = torch.randn(3, ci, *size), torch.randn(outer * inner, ci, *kernel)
    b = rng.choice([None, torch.randn(outer * inner)])
    if rng.random() < 0.2:
        x.view(-1)[0] = float("nan")
    axis, precision = rng.choice([0, 1, 2]), rng.choice(["tf32x3", "tf32"])
    given = (stride, before, places, dilation, precision, outer if axis else 1, axis, rng.choice(["amax", "amin", "logsumexp"]))
    seen = names["direct_convolution"](x, w, b, *given)
    exact = semantics(x.double(), w.double(), None if b is None else b.double(), *given)
    assert seen.shape == exact.shape and torch.equal(seen.isnan(), exact.isnan()), given
    error = (seen.nan_to_num().double() - exact.nan_to_num()).abs().max()
    assert error < (2e-5 if precision == "tf32x3" else 5e-2), (given, error)
"""


@INTERPRETER
@pytest.mark.parametrize(("seed", "count"), [(0, 8), *(pytest.param(seed, 24, marks=pytest.mark.slow) for seed in (0, 1))])
def test_the_kernel_by_the_interpreter(seed: int, count: int, tmp_path) -> None:
    path = tmp_path / "generated.py"
    path.write_text("import torch\n" + kernels.text("direct_convolution"))
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "ignore", "-c", INTERPRETED, str(path), str(random.Random(seed).randrange(1000)), str(count)]
    subprocess.run(command, env=environment, check=True, timeout=250)
