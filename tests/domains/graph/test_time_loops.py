"""Loops over time as CUDA kernels, translated for the CPU: forms, torch's own bits for linear ones, and which loops are left alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import TEXT
from tests.domains.graph.test_cuda import OnCpu
from warpwright.base import Action
from warpwright.domains.graph.cuda.kernel import RecurrenceKernel, source_of
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.scans import LoopsCuda

pytestmark = pytest.mark.compiler

Step = Callable[..., torch.Tensor]
T = torch.Tensor


class Loop(nn.Module):
    """h = step(h, a at t, b at t, d), with time in dimension `dim`; how it begins and how results are kept are the program's choice."""

    def __init__(self, step: Step, dim: int = 1, begin: str = "zeros", kept: str = "stack", last: bool = False) -> None:
        super().__init__()
        self.step, self.dim, self.begin, self.kept, self.last = step, dim, begin, kept, last

    def forward(self, a: T, b: T, d: T) -> Any:
        h = torch.zeros_like(b.select(self.dim, 0)) if self.begin == "zeros" else b.select(self.dim, 0)
        states, out = [h] if self.begin == "first" else [], torch.empty_like(b)
        for t in range(len(states), b.size(self.dim)):
            h = self.step(h, a.select(self.dim, t), b.select(self.dim, t), d)
            states.append(h)
            if self.kept == "written":
                out.select(self.dim, t).copy_(h)
        result = out if self.kept == "written" else torch.stack(states, self.dim)
        return (result, h * 2, h) if self.last else result


class Before(nn.Module):
    """A decay that is computed once, and read elsewhere too; time comes first, in a transposed tensor."""

    def forward(self, a: T, b: T, d: T) -> tuple[T, T]:
        decay, a, b = torch.exp(-d), a.transpose(0, 1), b.transpose(0, 1)
        h, states = a.new_zeros(a.shape[1:]), []
        for one, other in zip(a.unbind(0), b, strict=True):
            h = decay * h + one * other
            states.append(h)
        return torch.stack(states), decay


def linear(h: T, a: T, b: T, d: T) -> T:
    return a * h + b


FORMS: dict[str, nn.Module] = {
    "linear": Loop(linear),
    "linear, its last state too": Loop(linear, last=True),
    "turned round": Loop(lambda h, a, b, d: b + h * a),
    "written in place": Loop(linear, kept="written"),
    "from the first": Loop(lambda h, a, b, d: 0.9 * h + 0.1 * b, begin="first"),
    "time first": Loop(linear, dim=0, begin="first"),
    "time last": Loop(linear, dim=2),
    "with a parameter": Loop(lambda h, a, b, d: d * h + (1 - d) * b),
    "with what was computed before": Before(),
    "gated": Loop(lambda h, a, b, d: torch.sigmoid(a) * h + (1 - torch.sigmoid(a)) * torch.tanh(b)),
    "not linear": Loop(lambda h, a, b, d: torch.relu(a * h + b)),
    "reset": Loop(lambda h, a, b, d: torch.where(a > 0.5, b, a * h + b)),
}
EXACT = [name for name in FORMS if name != "gated"]


def _given(size: tuple[int, ...] = (3, 21, 40), last: int | None = None) -> tuple[T, T, T]:
    torch.manual_seed(0)
    a, b = torch.rand(size), torch.randn(size)
    b[0, 2, 5], b[1, 1, 7], a[2, 2, 2] = torch.nan, torch.inf, -0.0
    return a, b, torch.rand(last or size[-1])


def _of(name: str) -> tuple[T, T, T]:
    return _given(last=21) if name == "time last" else _given((21, 3, 40)) if name == "time first" else _given()


def _optimized(ir: GraphIR) -> tuple[list[RecurrenceKernel], Any]:
    after = LoopsCuda().apply(ir, Action("loops_cuda"))
    kernels: list[Any] = [node.target for node in after.graph.nodes if isinstance(node.target, RecurrenceKernel)]
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (), Original("test", TEXT, target="cuda")).source.text, "optimized.py", "exec"), names)
    names["CUDA_KERNELS"] = OnCpu(kernels)
    return kernels, names["optimized"]


@pytest.mark.parametrize("name", FORMS)
def test_forms(name: str) -> None:
    model, given = FORMS[name], _of(name)
    ir = captured(model, *given)
    kernels, optimized = _optimized(ir)
    assert len(kernels) == 1
    left = sum(node.op == "call_function" for node in LoopsCuda().apply(ir, Action("loops_cuda")).graph.nodes)
    assert left <= 10, "no step is left to torch"
    for seen, plain in zip(tree_leaves(optimized(*given)), tree_leaves(model(*given)), strict=True):
        assert seen.shape == plain.shape and seen.dtype == plain.dtype and seen.is_contiguous()
        if name in EXACT:
            assert torch.equal(seen.nan_to_num(7.25), plain.nan_to_num(7.25))
        else:
            torch.testing.assert_close(seen, plain, equal_nan=True)


OTHERS: dict[str, nn.Module] = {
    "a product": Loop(lambda h, a, b, d: torch.relu(h @ h.t() @ b)),
    "the mean of a row": Loop(lambda h, a, b, d: a * h + b.mean(-1, keepdim=True)),
    "no h": Loop(lambda h, a, b, d: a * b),
}


class Uneven(nn.Module):
    """Steps that are not all the same, at other times, backwards, or kept twice; and doubles."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def forward(self, a: T, b: T, d: T) -> T:
        if self.kind == "double":
            a, b = a.double(), b.double()
        h, states, count = b[:, 0], [b[:, 0]], b.size(1)
        for t in range(1, count):
            scale = 1.0 if self.kind == "another number" and t == 7 else 0.5
            at = count - 1 - t if self.kind == "other times" else t
            h = a[:, at] * h * scale + b[:, t]
            states.append(h)
        if self.kind == "another order":
            states[3], states[4] = states[4], states[3]
        return torch.stack(states, 1)


@pytest.mark.parametrize("name", [*OTHERS, "double", "another number", "other times", "another order"])
def test_what_is_left_to_torch(name: str) -> None:
    ir = captured(OTHERS.get(name) or Uneven(name), *_given())
    assert not list(LoopsCuda().sites(ir))


@pytest.mark.parametrize("name", ["coupled", "second order"])
def test_what_depends_on_more_than_the_last_state(name: str) -> None:
    class Coupled(nn.Module):
        def forward(self, a: T, b: T, d: T) -> T:
            h, c, states = b[:, 0], b[:, 0], [b[:, 0]]
            for t in range(1, b.size(1)):
                c, before = (a[:, t] * c + h, h) if name == "coupled" else (h, c)
                h = b[:, t] * c + before
                states.append(h)
            return torch.stack(states, 1)

    assert not list(LoopsCuda().sites(captured(Coupled(), *_given((3, 80, 8)))))


def test_what_is_read_within_a_step_keeps_the_loop() -> None:
    class Seen(nn.Module):
        def forward(self, a: T, b: T, d: T) -> tuple[T, T]:
            h, states, products = b[:, 0], [b[:, 0]], []
            for t in range(1, b.size(1)):
                products.append(a[:, t] * h)
                h = products[-1] + b[:, t]
                states.append(h)
            return torch.stack(states, 1), torch.stack(products, 1)

    assert not list(LoopsCuda().sites(captured(Seen(), *_given())))


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_nvcc_takes_them_for_hopper(tmp_path: Path) -> None:
    kernels = [_optimized(captured(model, *_of(name)))[0][0] for name, model in FORMS.items()]
    for number, kernel in enumerate(kernels):
        kernel.text = kernel.text.replace("loop_0(", f"loop_{number}(")
    source = tmp_path / "kernels.cu"
    source.write_text(source_of(kernels)[0])
    command = ["nvcc", "-std=c++17", "-O3", "-fmad=false", "-arch=sm_90a", "-Xptxas", "-v", "-cubin", "-o", str(tmp_path / "made.cubin"), str(source)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stderr
    spilled = [int(count) for count in re.findall(r"(\d+) bytes spill stores", said)]
    assert len(spilled) == len(kernels) and not any(spilled), said
