"""Native plans: every kind of call against float64 and against torch, random programs, the text, and what a caller may do with them."""

from __future__ import annotations

import inspect
import os
import random
import re
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_ahead_of_time import SMALL, space_of
from warpwright.base import Action
from warpwright.domains.graph.ir import GraphIR, run
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.plan.convolutions import sums, turns
from warpwright.domains.graph.plan.memory import Memory, Place, arrange
from warpwright.domains.graph.plan.program import parameters, plan
from warpwright.domains.graph.plan.shim import BASE
from warpwright.domains.graph.techniques.schedule import NativePlan
from warpwright.errors import NotApplicable
from warpwright.tasks import taskfile

PLAN = Action("plan")
TEXT = "import torch\n\nclass Model(torch.nn.Module):\n    pass\n"


def planned(ir: GraphIR) -> Any:
    """Return `optimized` of the graph as a plan; it has to run natively."""
    after = NativePlan().apply(ir, PLAN)
    text = lower(after, (), Original("test", TEXT)).source.text
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "optimized.py", "exec"), names)
    optimized = names["optimized"]
    assert optimized.run is not None

    def unexpected(*given: Any) -> Any:
        raise AssertionError("the plan failed, and the plain calls ran")

    optimized.function = unexpected
    optimized.paths = [after.state[node.name] for node in parameters(after) if node.name in after.state]
    return optimized


def agree(model: nn.Module, ir: GraphIR, optimized: Any, *given: torch.Tensor) -> None:
    """Compare a plan with torch and with float64, result by result."""
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    held = [state[path].detach() for path in optimized.paths]
    with torch.no_grad():
        plain = model(*given)
        seen = optimized(*given, *held)
    wide = [t.double() if t.is_floating_point() else t for t in given]
    truth = run(ir, wide, {path: state[path].detach() for path in ir.state.values()}, torch.float64, flat=True)
    assert len(seen) == len(plain)
    for number, (found, old, exact) in enumerate(zip(seen, plain, truth, strict=True)):
        where = f"result {number}"
        assert found.shape == old.shape and found.dtype == old.dtype and found.stride() == old.stride(), where
        if not old.is_floating_point():
            assert torch.equal(found, old), where
            continue
        allowed = 2 * (old.double() - exact).abs().max() + 8 * torch.finfo(torch.float32).eps * exact.abs().max()
        assert (found.double() - exact).abs().max() <= allowed, where


class Several(nn.Module):
    """All of some functions, each a result, of the same inputs; and parameters for them."""

    def __init__(self, functions: list[Callable[..., Any]]) -> None:
        super().__init__()
        self.functions = functions
        self.narrow, self.wide, self.row = nn.Linear(24, 7), nn.Linear(24, 40, bias=False), nn.Linear(24, 24)
        self.table = nn.Embedding(11, 24)
        self.conv, self.depth = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(4, 4, 3, groups=4, stride=2)
        self.up = nn.ConvTranspose2d(4, 3, 2, stride=2)
        self.norm = nn.BatchNorm2d(4)
        self.columns, self.batch = nn.Parameter(torch.randn(7, 0)), nn.Parameter(torch.randn(3, 0, 7))

    def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(function(self, *given[: function.__code__.co_argcount - 1]) for function in self.functions)


KINDS: list[Callable[..., Any]] = [
    lambda m, x, i, y: m.narrow(x),
    lambda m, x, i, y: F.gelu(m.wide(x[0, :1])) * 2,
    lambda m, x, i, y: m.row(x.transpose(0, 1)),
    lambda m, x, i, y: x @ x.transpose(1, 2),
    lambda m, x, i, y: x.transpose(1, 2) @ x[0],
    lambda m, x, i, y: torch.bmm(x, x[:, :24].transpose(1, 2)).softmax(-1),
    lambda m, x, i, y: x @ x[0, 0],
    lambda m, x, i, y: torch.addmm(m.row.bias, x[0], m.row.weight),
    lambda m, x, i, y: torch.addmm(x[0, :, :7], x[0], m.narrow.weight.t(), beta=0.5),
    lambda m, x, i, y: F.scaled_dot_product_attention(*(x.view(3, 26, 4, 6).transpose(1, 2) for _ in range(3))).contiguous(),
    lambda m, x, i, y: F.scaled_dot_product_attention(*(x.view(3, 26, 4, 6).transpose(1, 2) for _ in range(3)), is_causal=True).contiguous(),
    lambda m, x, i, y: F.scaled_dot_product_attention(x[:, :5], x, x[..., :9], attn_mask=i[:, :1, None] > torch.arange(26) - 4).contiguous(),
    lambda m, x, i, y: F.scaled_dot_product_attention(x, x, x, attn_mask=x @ x.transpose(1, 2), scale=0.3).contiguous(),
    lambda m, x, i, y: m.table(i) + x[:, :5],
    lambda m, x, i, y: m.table.weight[i, i],
    lambda m, x, i, y: x[:, i[0], 3] + x[:, i[1], -2],
    lambda m, x, i, y: x.gather(1, i[:, :, None].expand(-1, -1, 24)),
    lambda m, x, i, y: x.index_select(1, i[0]),
    lambda m, x, i, y: torch.cat([x[:, ::2], torch.relu(x[:, 1::3])], 1),
    lambda m, x, i, y: torch.stack([x[0], x[1].t().reshape(26, 24)], -1),
    lambda m, x, i, y: F.pad(y, (1, 2, 0, 3), value=0.5),
    lambda m, x, i, y: torch.where(i > 3, i * 2, -i),
    lambda m, x, i, y: (i[:, :, None] == i[:, None]) & (i[:, :, None] >= 2),
    lambda m, x, i, y: torch.cos(x) + torch.sin(x).transpose(0, 1).reshape(3, 26, 24),
    lambda m, x, i, y: F.relu(m.norm(m.conv(y)[:, :4])),
    lambda m, x, i, y: m.depth(y),
    lambda m, x, i, y: F.conv2d(y, m.conv.weight[:, :2, :, :2].contiguous(), groups=2, stride=(1, 2), padding=(2, 1), dilation=(1, 2)),
    lambda m, x, i, y: F.conv2d(y, m.conv.weight[:, :, :1, :1].contiguous(), m.conv.bias),
    lambda m, x, i, y: F.conv1d(x.transpose(1, 2).contiguous(), m.row.weight[:, :, None], padding=1),
    lambda m, x, i, y: m.up(y),
    lambda m, x, i, y: F.conv_transpose2d(y, m.conv.weight[:4, :, :, :2].contiguous(), stride=(2, 3), padding=(1, 0), output_padding=(1, 2)),
    lambda m, x, i, y: F.conv_transpose2d(y, m.conv.weight[:4, :, :2].contiguous(), m.conv.bias, stride=3, groups=2),
    lambda m, x, i, y: F.conv_transpose3d(y.view(2, 4, 3, 3, 8), m.table.weight[:4, :24].reshape(4, 4, 3, 2, 1), stride=(2, 2, 1), padding=(1, 0, 0)),
    lambda m, x, i, y: F.conv_transpose1d(x, torch.cat([m.table.weight] * 3)[:26].reshape(26, 8, 3), stride=2, padding=2),
    lambda m, x, i, y: F.conv2d(torch.cat([torch.cat([y] * 8, 2)] * 4, 1), torch.cat(8 * [m.conv.weight], 1).view(16, 16, 3, 3), None, 1, 1, (2, 1)),
    lambda m, x, i, y: F.linear(torch.cat([x] * 8, 1), torch.cat([m.wide.weight] * 3)),
    lambda m, x, i, y: F.conv2d(y, m.conv.weight, m.row.weight[:8, 1]),
    lambda m, x, i, y: F.conv_transpose2d(y, m.conv.weight[:4].contiguous(), m.row.weight[:4, 2], stride=2),
    lambda m, x, i, y: F.linear(torch.cat([x] * 8, 1), torch.cat([m.wide.weight] * 3), m.narrow.bias[2:3].expand(120)),
    lambda m, x, i, y: F.linear(x, m.narrow.weight, m.row.weight[:7, 3]),
    lambda m, x, i, y, z: F.linear(z, m.columns, m.narrow.bias),
    lambda m, x, i, y, z: torch.bmm(z, m.batch),
    lambda m, x, i, y: F.max_pool2d(m.conv(y), 2) + F.avg_pool2d(y, 2).mean(),
    lambda m, x, i, y: F.adaptive_avg_pool2d(y, 1).flatten(1),
    lambda m, x, i, y: F.adaptive_avg_pool2d(y, (3, 2)),
    lambda m, x, i, y: torch.softmax(y.permute(0, 2, 3, 1), -1),
    lambda m, x, i, y: F.layer_norm(x.transpose(1, 2).contiguous(), (26,)).transpose(1, 2) + x,
    lambda m, x, i, y: torch.cumsum(i, 1),
    lambda m, x, i, y: x.to(torch.float64) * 2,
    lambda m, x, i, y: x.unflatten(2, (4, 6)).sum(-1).squeeze(),
    lambda m, x, i, y: torch.chunk(x, 3, -1)[1] * torch.tril(torch.ones(26, 26))[:, :8],
]  # fmt: skip


def inputs(seed: int) -> list[torch.Tensor]:
    torch.manual_seed(seed)
    return [torch.randn(3, 26, 24), torch.randint(0, 11, (3, 5)), torch.randn(2, 4, 9, 8), torch.randn(3, 26, 0)]


@pytest.mark.compiler
def test_every_kind_of_call() -> None:
    torch.manual_seed(0)
    model = Several(KINDS).eval()
    model.norm.running_mean, model.norm.running_var = torch.randn(4), torch.rand(4) + 0.5
    ir = captured(model, *inputs(0))
    optimized = planned(ir)
    source = plan(NativePlan().apply(ir, PLAN)).source
    assert source.count("\n    convolve(") == 6 and "wide_product(" in source.split("static void run(")[1]
    for seed in range(3):
        agree(model, ir, optimized, *inputs(seed))
    with torch.inference_mode():  # memory that was taken outside of it, and the other way round
        agree(model, ir, optimized, *inputs(1))
    agree(model, ir, optimized, *inputs(1))


@pytest.mark.compiler
def test_what_it_declares_is_what_torch_declares(tmp_path: Path) -> None:
    """A plan includes no header of torch; here the headers say whether the types of the functions that it takes are right."""
    chosen = [function for function in KINDS if any(word in inspect.getsource(function) for word in ("m.depth", "m.up", "pool", "cumsum"))]
    ir = captured(Several([*chosen, lambda m, x, i, y: torch.cat([x] * 40, 1) @ torch.cat([x] * 60, 1).transpose(1, 2)]).eval(), *inputs(0))
    made = plan(NativePlan().apply(ir, PLAN))
    declared = re.findall(r"^static (\w+ \(\*\w+\)\(.*\));$", made.source, re.M)
    assert len(declared) == len(made.symbols) >= len(BASE) + 4
    lines = ["#include <torch/csrc/inductor/aoti_torch/generated/c_shim_cpu.h>"]
    lines += [f"{text} = &{symbol};" for text, symbol in zip(declared, made.symbols, strict=True)]
    (tmp_path / "declared.cpp").write_text("\n".join(lines))
    include = Path(torch.__file__).with_name("include")
    command = [os.environ.get("CXX", "g++"), "-std=c++17", "-fsyntax-only", f"-I{include}", str(tmp_path / "declared.cpp")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[:2000]


# --- random programs -----------------------------------------------------------------------------------------------------

STEPS: list[Callable[[random.Random, list[torch.Tensor], list[torch.Tensor]], torch.Tensor]] = [
    lambda r, xs, ws: torch.tanh(r.choice(xs)),
    lambda r, xs, ws: r.choice(xs) + r.choice(xs).mean(-1, keepdim=True),
    lambda r, xs, ws: r.choice(xs) * r.choice(xs) * 0.5,
    lambda r, xs, ws: torch.softmax(r.choice(xs), r.choice([0, 1, 2])),
    lambda r, xs, ws: F.layer_norm(r.choice(xs), (12,), r.choice(ws)[0]),
    lambda r, xs, ws: F.linear(r.choice(xs), r.choice(ws), r.choice(ws)[1]),
    lambda r, xs, ws: r.choice(xs).transpose(0, 1).reshape(5, 4, 12),
    lambda r, xs, ws: torch.cat([r.choice(xs)[:, :2], r.choice(xs)[:, 2:]], 1),
    lambda r, xs, ws: r.choice(xs) @ torch.sigmoid(r.choice(ws)),
    lambda r, xs, ws: r.choice(xs).flip(0).abs() if False else r.choice(xs)[:, [3, 1, 0, 2]],
    lambda r, xs, ws: r.choice(xs).view(5, 2, 2, 12).permute(0, 2, 1, 3).reshape(5, 4, 12) - r.choice(xs),
    lambda r, xs, ws: torch.where(r.choice(xs) > 0, r.choice(xs), r.choice(xs) * 0.1),
    lambda r, xs, ws: F.scaled_dot_product_attention(r.choice(xs), r.choice(xs), r.choice(xs)).contiguous(),
    lambda r, xs, ws: r.choice(xs).sum(1, keepdim=True).expand(5, 4, 12).contiguous(),
]


class Random(nn.Module):
    """Some programs of random steps; each value is computed from any earlier ones, and several of them are results."""

    def __init__(self, seeds: range, length: int) -> None:
        super().__init__()
        self.seeds, self.length = seeds, length
        self.weights = nn.ParameterList([nn.Parameter(0.3 * torch.randn(12, 12)) for _ in range(3)])

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = []
        for seed in self.seeds:
            r, values = random.Random(seed), [x * 1.0]
            for _ in range(self.length):
                values.append(r.choice(STEPS)(r, values, list(self.weights)))
            results += [values[-1], r.choice(values).transpose(1, 2) + 0]
        return tuple(results)


def random_programs(seeds: range, length: int) -> None:
    torch.manual_seed(seeds.start)
    model = Random(seeds, length).eval()
    x = torch.randn(5, 4, 12)
    ir = captured(model, x)
    optimized = planned(ir)
    for _ in range(2):
        agree(model, ir, optimized, x)
        x = torch.randn(5, 4, 12) * 2


@pytest.mark.compiler
def test_random_programs() -> None:
    random_programs(range(3), 9)


@pytest.mark.compiler
@pytest.mark.slow
@pytest.mark.parametrize("start", range(100, 1300, 12))
def test_many_random_programs(start: int) -> None:
    random_programs(range(start, start + 12), 14)


# --- convolutions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_each_result_of_a_convolution_reads_its_taps(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(40):
        transposed, size, kernel, padding = draw.random() < 0.7, draw.randrange(1, 9), draw.randrange(1, 6), draw.randrange(3)
        stride, dilation = (draw.randrange(1, 5), 1) if transposed else (1, draw.randrange(1, 4))
        out = (size - 1) * stride - 2 * padding + kernel + draw.randrange(stride) if transposed else size + 2 * padding - dilation * (kernel - 1)
        if out < 1:
            continue
        seen = {
            (turn.first + turn.step * j, k, j + at)
            for turn in turns(kernel, stride, padding, dilation, out, transposed) for j in range(turn.places) for k, at in turn.taps
            if 0 <= j + at < size
        }  # fmt: skip
        wanted = {
            (o, k, i) for o in range(out) for k in range(kernel) for i in range(size)
            if (o == i * stride - padding + k if transposed else i == o - padding + k * dilation)
        }  # fmt: skip
        assert seen == wanted


def test_what_is_left_to_the_library() -> None:
    strided = ([2, 32, 8, 8, 8], [32, 32, 3, 3, 3], [2, 32, 15, 15, 15], [2] * 3, [1] * 3)
    assert sums(*strided, [1] * 3, True, 1) is not None
    assert sums(*strided, [2] * 3, True, 1) is None  # zeros in the kernel
    assert sums([2, 32, 8, 8, 8], [32, 32, 5, 5, 5], [2, 32, 12, 12, 12], [1] * 3, [0] * 3, [1] * 3, True, 1) is None  # mostly zeros round the image
    assert sums([4, 64, 16, 16], [64, 64, 3, 3], [4, 64, 7, 7], [2] * 2, [0] * 2, [1] * 2, False, 1) is None
    assert sums([4, 64, 16, 16], [64, 64, 3, 3], [4, 64, 14, 14], [1] * 2, [0] * 2, [1] * 2, False, 1) is not None


# --- memory --------------------------------------------------------------------------------------------------------------


def test_no_two_that_are_alive_together_share_memory() -> None:
    draw = random.Random(0)
    memories = []
    for number in range(200):
        first = draw.randrange(100)
        memories.append(Memory("arena", f"m{number}", bytes=draw.randrange(1, 5000), first=first, last=first + draw.randrange(20)))
    total = arrange(memories)
    for a in memories:
        assert a.offset % 64 == 0 and a.offset + a.bytes <= total
        for b in memories:
            if a is not b and a.first <= b.last and b.first <= a.last:
                assert a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
    assert total < sum(m.bytes for m in memories) / 3


def test_dimensions_join_where_they_are_one_stride() -> None:
    place = Place(Memory("arena", "m"), 0, (2, 3, 4, 5), (60, 20, 5, 1), torch.float32)
    assert place.joined(0, 3) == (24, 5) and place.contiguous
    assert place.viewed((3, 2, 4, 5), (20, 60, 5, 1)).joined(0, 3) is None
    assert place.viewed((2, 1, 5), (60, 7, 1)).joined(0, 2) == (2, 60)
    assert place.viewed((3, 5), (0, 1)).joined(0, 1) == (3, 0)


# --- the text, and the front door ----------------------------------------------------------------------------------------


def test_golden(golden: Any, tmp_path: Path) -> None:
    space = space_of(tmp_path, SMALL.replace("range(12)", "range(1)"))
    source = plan(space.replay((PLAN,))).source
    golden("graph/plan.cpp", source[source.index("static void kernel_0") :])


@pytest.mark.parametrize(
    ("before", "after"),
    [("return {", "x.add_(1)\n        return {"), ("torch.relu(self.first(x))", "torch.rand_like(x)"), ('"out": y', '"out": x'),
     ("y.sum(1)", "torch.linalg.svdvals(y)"), ("* 0.5", "* 0.5 + torch.fft.rfft(y).real.sum()")],
    ids=["writes", "random", "returns_its_input", "not_in_the_shim", "complex"],
)  # fmt: skip
def test_what_it_is_not_for(tmp_path: Path, before: str, after: str) -> None:
    space = space_of(tmp_path, SMALL.replace(before, after))
    assert PLAN not in space.actions(space.start)
    with pytest.raises(NotApplicable):
        space.replay((PLAN,))


def test_it_comes_before_what_takes_longer_to_build(tmp_path: Path) -> None:
    from warpwright.search.ladder import search

    space = space_of(tmp_path, SMALL)
    (first,) = next(search(space, random.Random(0), 1))
    assert PLAN in first
    assert Action("ahead_of_time") not in space.actions(space.replay((PLAN,)))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The module of a small model's plan."""
    folder = tmp_path_factory.mktemp("plan")
    text = space_of(folder, TABLE).candidate((PLAN,)).source.text
    (folder / "optimized.py").write_text(text)
    return taskfile.run_text(text, str(folder / "optimized.py"), "plan_test")


TABLE = SMALL.replace("def forward(self, x):", "def forward(self, x, index):").replace("* 0.5", "* 0.5 + self.first.weight[index]")
TABLE = TABLE.replace("[torch.randn(4, 8)]", "[torch.randn(4, 8), torch.tensor([0, 3, 7, 1])]")


@pytest.mark.compiler
def test_it_computes_the_same_with_the_state_of_now(program: ModuleType) -> None:
    model, faster, x = program.Model(8), program.ModelNew(8), torch.randn(4, 8)
    index = torch.tensor([0, 3, -1, 1])
    faster.load_state_dict(model.state_dict())
    with torch.no_grad():
        for _ in range(2):
            want, got = model(x, index), faster(x, index)
            torch.testing.assert_close(got["out"], want["out"])
            torch.testing.assert_close(got["parts"][0], want["parts"][0])
            assert got["parts"][1] is None
            for parameter, other in zip(model.parameters(), faster.parameters(), strict=True):
                parameter.mul_(0.5)
                other.mul_(0.5)
        with pytest.raises(IndexError, match="out of bounds"):
            faster(x, torch.tensor([0, 3, 8, 1]))


@pytest.mark.compiler
def test_threads_have_memory_of_their_own(program: ModuleType) -> None:
    model, wrong = program.ModelNew(8).requires_grad_(False), []
    xs = [torch.randn(4, 8) for _ in range(4)]
    index = torch.tensor([0, 1, 2, 3])
    want = [program.Model.forward(model, x, index)["out"] for x in xs]

    def call(number: int) -> None:
        for _ in range(200):
            if not torch.allclose(model(xs[number], index)["out"], want[number], atol=1e-6):
                wrong.append(number)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_without_a_compiler_the_plain_calls_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    text = space_of(tmp_path, SMALL.replace("range(12)", "range(1)")).candidate((PLAN,)).source.text
    with pytest.warns(UserWarning, match="no C\\+\\+ compiler"):
        new = taskfile.run_text(text, str(tmp_path / "optimized.py"), "plan_without")
    model, x = new.ModelNew(8).requires_grad_(False), torch.randn(4, 8)
    torch.testing.assert_close(model(x)["out"], new.Model.forward(model, x)["out"])


ENCODER = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)

    def forward(self, x):
        y = self.norm(x).relu()
        return {"pooled": y[:, 0], "all": y, "last": y.transpose(1, 2)[..., -1], "sums": y.sum(1), "again": y, "none": None}

def get_inputs():
    return [torch.randn(2, 3, 8)]

def get_init_inputs():
    return []
"""


def test_results_that_are_views_of_others_are_views_of_the_plans(tmp_path: Path) -> None:
    space = space_of(tmp_path, ENCODER)
    assert PLAN in space.actions(space.start)
    names: dict[str, Any] = {"__name__": "generated"}
    exec(space.candidate((PLAN,)).source.text, names)
    model, new, x = names["Model"](), names["ModelNew"](), torch.randn(2, 3, 8)
    with torch.no_grad():
        expected, found = model(x), new(x)
    assert names["optimized"].run is not None and list(found) == list(expected) and found["none"] is None
    for name in ("pooled", "all", "last", "sums", "again"):
        torch.testing.assert_close(found[name], expected[name])
        assert found[name].stride() == expected[name].stride(), name
    found["all"].zero_()
    assert not found["pooled"].any() and not found["last"].any() and not found["again"].any() and found["sums"].any(), "they share memory as before"


def test_a_view_of_what_is_no_result_has_no_plan() -> None:
    class Part(nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            y = x.relu()
            return y[:, :2], y[:, 1:]  # neither holds all of the memory that they share

    assert PLAN not in list(NativePlan().sites(captured(Part(), torch.empty(2, 3, 8))))
