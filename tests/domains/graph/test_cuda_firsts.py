"""argmax, argmin, max and min along a dimension in fused CUDA kernels, translated for the CPU: torch's indices to the last one, whatever ties."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import Several
from tests.domains.graph.test_cuda import fused
from warpwright import templates
from warpwright.domains.graph.cpp import firsts, regions
from warpwright.domains.graph.cuda import plan
from warpwright.domains.graph.cuda.kernel import CudaKernel, source_of
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda

pytestmark = pytest.mark.compiler

Call = Callable[[torch.Tensor], torch.Tensor | tuple[torch.Tensor, ...]]

FORMS: dict[str, Call] = {
    "largest": lambda x: x.argmax(-1),
    "smallest, kept": lambda x: x.argmin(-1, keepdim=True),
    "with its value": lambda x: tuple(x.max(-1)),
    "smallest with its value": lambda x: tuple(x.min(1, keepdim=True)),
    "columns": lambda x: (x.argmax(0), *x.min(0)),
    "of all": lambda x: (x.argmax(), x.argmin()),
    "after calls": lambda x: (torch.relu(x * 2 - 1).argmax(-1), x.abs().argmin(-1)),
    "masked": lambda x: x.masked_fill(x > 0.5, -float("inf")).argmax(-1),
    "turned": lambda x: (x.t().argmax(), x.t().argmin(1)),
    "one part of it": lambda x: x.min(-1)[1],
}
SIZES = ((3, 20000), (301, 14), (64, 129), (4, 1025))
"""The first has rows in parts, whose kernels take seconds to translate: one form of it is in the fast part, and one other size of each form."""


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take small calls too."""
    for where in (firsts, regions):
        monkeypatch.setattr(where, "LEAST_ELEMENTS", 1)


def _special(size: tuple[int, ...], kind: torch.dtype = torch.float32) -> torch.Tensor:
    """Rows of few different numbers: with NaN once and twice, infinite ones, all equal, all -inf, zeros of either sign."""
    torch.manual_seed(0)
    x = torch.randint(-3, 4, size).to(kind) / 2
    half = size[1] // 2
    x[0, half], x[0, -1] = torch.nan, torch.nan
    x[1] = -torch.inf
    x[2] = torch.where(torch.arange(size[1]) % 3 == 1, 0.0, -0.0)
    if size[0] > 6:
        x[3] = 1.0
        x[4, half] = torch.inf
        x[5, 1], x[5, half] = torch.nan, -torch.inf
    return x


def _check(call: Call, x: torch.Tensor, kernels: int | None = None) -> list[CudaKernel]:
    model = Several([call])
    made, optimized = fused(captured(model, x))
    for given in (x, torch.randn(x.shape, generator=torch.Generator().manual_seed(1)).to(x.dtype), torch.zeros_like(x)):
        flat, seen = tree_leaves(model(given)), tree_leaves(optimized(given))
        assert len(seen) == len(flat)
        for one, own in zip(seen, flat, strict=True):
            assert one.dtype == own.dtype and one.shape == own.shape
            assert torch.equal(one.nan_to_num(7.25), own.nan_to_num(7.25))
            assert not one.is_floating_point() or torch.equal(one.signbit() | one.isnan(), own.signbit() | own.isnan()), "the first zero's sign"
    assert kernels is None or len(made) == kernels
    return made


@pytest.mark.parametrize(
    ("name", "size"),
    [
        pytest.param(name, size, id=f"{size}-{name}", marks=[pytest.mark.slow] * (at != (1 + number % 3 if number else 0)))
        for at, size in enumerate(SIZES)
        for number, name in enumerate(FORMS)
    ],
)
def test_forms(name: str, size: tuple[int, ...]) -> None:
    made = _check(FORMS[name], _special(size))
    assert sum("first(" in kernel.text for kernel in made) >= 1


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16], ids=str)
def test_halves(kind: torch.dtype) -> None:
    """Chains in 16 bits round after each call, so ties are torch's only where nothing is computed before."""
    [kernel] = _check(lambda x: x.max(-1), _special((40, 264), kind), kernels=1)
    assert "first(" in kernel.text
    made = _fused_calls(lambda x: (x * 3 + 1).argmax(-1), torch.empty(64, 264, dtype=kind))
    assert len(made) == 2 and all("mul" not in calls or "argmax" not in calls for calls in made)


def test_blocks_together_and_rows_in_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A softmax beside it makes a second phase, so that a row is kept by several blocks; each joins what the others found."""
    monkeypatch.setattr(plan, "MULTIPROCESSORS", 2)
    monkeypatch.setattr(plan, "HELD", 4)
    x = torch.randint(-3, 4, (3, 9000)) / 2.0
    kernels, optimized = fused(captured(Several([lambda x: (x.argmax(-1), x - x.amax(-1, keepdim=True))]), x))
    assert len(kernels) == 1 and kernels[0].generated.together
    seen = tree_leaves(optimized(x))
    assert torch.equal(seen[0], x.argmax(-1)) and torch.equal(seen[1], x - x.amax(-1, keepdim=True))


def test_strides() -> None:
    """A slice, every second element, another order of dimensions, the channels of an image: the index counts as torch's does."""
    x = torch.randint(-3, 4, (6, 40, 12)) / 2.0

    def call(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x[:, 3:31].argmax(1), x[..., ::2].argmin(-1), x.transpose(1, 2).argmax(), x.argmax(1, keepdim=True), x.permute(2, 0, 1).argmin(0)

    _check(call, x)


def _fused_calls(call: Call, x: torch.Tensor) -> list[list[str]]:
    """Return the names of the calls of each kernel."""
    after = FuseCuda().apply(captured(Several([call]), x), fuse_cuda(1, DEFAULT))
    kernels = [node.target for node in after.graph.nodes if isinstance(node.target, CudaKernel)]
    return [[str(node.target).split(".")[1] for node in kernel.calls.nodes if node.op == "call_function"] for kernel in kernels]


def test_what_a_kernel_takes_in() -> None:
    """Calls whose bits are torch's; the index that follows from how exp rounds is found in what another kernel wrote."""
    x = torch.empty(64, 300)
    assert _fused_calls(lambda x: torch.relu(x * x + 1).argmax(-1), x) == [["mul", "add", "relu", "argmax"]]
    assert _fused_calls(lambda x: (x.exp() * 2).argmax(-1), x) == [["exp", "mul"], ["argmax"]]
    for inexact in (lambda x: (x / 3).argmax(-1), lambda x: torch.add(x, x, alpha=3).argmax(-1), lambda x: x.softmax(-1).argmax(-1)):
        assert ["argmax"] in _fused_calls(inexact, x)
    assert _fused_calls(lambda x: x.max(1), x) == [["argmax", "amax"]]
    assert _fused_calls(lambda x: (x.argmin(1), x.max(1)), x) == [["argmin", "argmax", "amax"]]
    square = _fused_calls(lambda x: (x.argmax(1), x.amax(0)), torch.empty(300, 300))
    assert sorted(square) == [["amax"], ["argmax"]], "another dimension's maximum is another reduction"


def test_what_is_left_to_torch() -> None:
    """Integers, doubles, a dimension of one element, arithmetic on an index."""

    def call(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        whole = (x * 4).long()
        return whole.argmax(-1), whole.max(-1)[1], x.double().argmin(-1), x[:, :1].argmax(1), x[:, :1].max(1)[0], x.argmax(1) + 1, x.argmax(1).float()

    x = torch.randint(-3, 4, (50, 30)) / 2.0
    made = _check(call, x)
    assert not any("float o" in kernel.text and "first(" in kernel.text for kernel in made)
    with pytest.raises((IndexError, RuntimeError)):
        torch.empty(3, 0).argmax(1)


class Sampled(nn.Module):
    """A step of greedy decoding, whose one index is read by an embedding."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(500, 16)

    def forward(self, logits: torch.Tensor, allowed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        chosen = logits.masked_fill(~allowed, -torch.inf).argmax(-1)
        return chosen, self.embedding(chosen) * 2


def test_an_index_that_is_read_again() -> None:
    torch.manual_seed(0)
    model, logits, allowed = Sampled(), torch.randn(12, 500).round(), torch.rand(12, 500) > 0.5
    _, optimized = fused(captured(model, logits, allowed))
    weights = [p.detach() for p in model.parameters()]
    for seen, plain in zip(optimized(logits, allowed, *weights), model(logits, allowed), strict=True):
        assert torch.equal(seen, plain)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
def test_nvcc_takes_them_for_hopper(tmp_path: Path) -> None:
    def call(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (*x.max(-1), x.argmin(1), torch.relu(x - 1).argmax(0), x.argmax())

    ir = captured(Several([call]), torch.empty(2048, 65536, device="meta"))
    after = FuseCuda().apply(ir, fuse_cuda(1, DEFAULT))
    kernels = [node.target for node in after.graph.nodes if isinstance(node.target, CudaKernel)]
    source = tmp_path / "kernels.cu"
    source.write_text(source_of(kernels)[0])
    command = ["nvcc", "-std=c++17", "-O3", "-fmad=false", "-arch=sm_90a", "-Xptxas", "-v", "-cubin", "-o", str(tmp_path / "made.cubin"), str(source)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stderr
    spilled = [int(count) for count in re.findall(r"(\d+) bytes spill stores", said)]
    assert len(spilled) == len(kernels) and not any(spilled), said


def test_a_place_is_found_without_a_branch_and_truly_for_every_pair() -> None:
    """Behind a branch the next element is read only when it is decided; and the plain statement of the rule is the same as the one without."""
    text = (Path(templates.__file__).parent / "fused_math.h").read_text()
    body = text[text.index("void first(float& top") :].partition("\n}")[0]
    assert "||" not in body and "&&" not in body and "if" not in body.partition("{")[2]
    numbers = [float("nan"), -float("inf"), -1.0, -0.0, 0.0, 2.0, float("inf")]
    rule = body.partition("const bool taken = ")[2].partition(";")[0].replace("!missing", "(not missing)")
    for top, x, place, at in product(numbers, numbers, (3, 7), (2, 5)):
        missing, absent, before = top != top, x != x, at < place
        plain = (not missing or before) if absent else (not missing and (x > top or (x == top and before)))
        assert bool(eval(rule, {"missing": missing, "absent": absent, "before": before, "x": x, "top": top})) == plain
