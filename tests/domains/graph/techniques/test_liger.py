"""Liger-Kernel's calls as candidates and as a baseline: which calls of a program are its, what is given, and what happens where it is missing.

Without the package its module is stood in for by torch's own calls; with it, its kernels are compiled for an H200 (and softmax is run by Triton's
interpreter, which takes none of the others: they ask a Python number for its type).
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from warpwright import targets
from warpwright.base import Action
from warpwright.domains.graph import libraries
from warpwright.domains.graph.ir import run
from warpwright.domains.graph.kernels.others import calls, liger
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.libraries import LibraryCall, LibraryKernels
from warpwright.errors import MissingExtra, NotApplicable
from warpwright.reports import doctor
from warpwright.tasks import taskfile

LIGER = libraries.LIBRARIES["liger"]
HERE = LIGER.installed

FUNCTIONS = {
    "LigerSoftmaxFunction": lambda x: torch.softmax(x, -1),
    "LigerLayerNormFunction": lambda x, w, b, eps: F.layer_norm(x, w.shape, w, b, eps),
    "LigerRMSNormFunction": lambda x, w, eps, offset, casting, in_place: F.rms_norm(x, x.shape[-1:], w, eps),
    "LigerGroupNormFunction": lambda x, w, b, channels, groups, eps: F.group_norm(x, groups, w, b, eps),
    "LigerSiLUMulFunction": lambda a, b: F.silu(a) * b,
    "LigerGELUMulFunction": lambda a, b: F.gelu(a, approximate="tanh") * b,
    "LigerCrossEntropyFunction": lambda x, target, weight, ignored, square, smoothing, reduction: (
        F.cross_entropy(x, target, ignore_index=ignored, label_smoothing=smoothing, reduction=reduction), None, None, None,
    ),
    "LigerKLDivLossFunction": lambda x, target, reduction, logarithms: F.kl_div(x, target, reduction=reduction, log_target=logarithms),
}  # fmt: skip
MODEL = """import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.groups, self.table = nn.LayerNorm(32), nn.GroupNorm(2, 8), nn.Linear(32, 32)

    def forward(self, x, image, target):
        y = torch.softmax(F.rms_norm(self.norm(x), (32,)), -1)
        gated = F.silu(y) * self.table(x) + F.gelu(self.table(y), approximate="tanh") * x
        loss = F.cross_entropy(gated, target) + F.kl_div(torch.log_softmax(gated, 1), y, reduction="sum")
        return loss, gated.softmax(dim=-1), self.groups(image), F.softmax(image, 1)


def get_inputs():
    return [torch.randn(16, 32), torch.randn(2, 8, 5, 5), torch.randint(0, 32, (16,))]


def get_init_inputs():
    return []
"""
PLAIN = "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Stand in for the package, and for a GPU: every tensor says that it lies on one. The names of the functions that are called."""
    names: list[str] = []

    def function(name: str, computed: Callable[..., Any]) -> Any:
        return SimpleNamespace(apply=lambda *args: (names.append(name), computed(*args))[1])

    package, ops = ModuleType("liger_kernel"), ModuleType("liger_kernel.ops")
    for name, computed in FUNCTIONS.items():
        setattr(ops, name, function(name, computed))
    package.ops = ops  # type: ignore[attr-defined]
    package.__spec__ = importlib.util.spec_from_loader("liger_kernel", None)
    monkeypatch.setitem(sys.modules, "liger_kernel", package)
    monkeypatch.setitem(sys.modules, "liger_kernel.ops", ops)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(calls, "_LIBRARIES", {})
    yield names


def _model(text: str = MODEL, name: str = "liger_task") -> Any:
    return taskfile.run_text(text, f"<{name}>", name)


def test_each_call_of_a_program_becomes_one_of_the_library(asked: list[str]) -> None:
    module = _model()
    model, inputs = module.Model().eval(), module.get_inputs()
    ir = captured(model, *inputs)
    [action] = LibraryKernels(LIGER).sites(ir)
    after = LibraryKernels(LIGER).apply(ir, action)
    made = [node.target.call for node in after.graph.nodes if isinstance(node.target, LibraryCall)]
    every = ["layer_norm", "rms_norm", "softmax", "silu_mul", "gelu_mul", "cross_entropy", "kl_div", "softmax", "group_norm"]
    assert sorted(made) == sorted(every), "a softmax over channels is none of them"
    assert not list(LibraryKernels(LIGER).sites(after))
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(lower(after, (action,), Original("test", MODEL)).source.text, "optimized.py", "exec"), names)
    with torch.no_grad():
        expected = model(*inputs)
        torch.testing.assert_close(run(after, inputs, state), expected)
        program = names["ModelNew"]()
        program.load_state_dict(model.state_dict())
        torch.testing.assert_close(program.eval()(*inputs), expected)
    assert len(asked) == len(every) and {name.lower() for name in asked} == {name.lower() for name in FUNCTIONS}


def test_without_the_package_there_is_neither(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    module = _model()
    ir = captured(module.Model(), *module.get_inputs())
    assert not list(LibraryKernels(LIGER).sites(ir)) and "liger" not in targets.names_for("cuda")
    with pytest.raises(NotApplicable, match="and the package"):
        LibraryKernels(LIGER).apply(ir, Action("liger_kernels"))
    with pytest.raises(MissingExtra, match=r"the baseline 'liger' needs the package 'liger_kernel'.*\[libraries\]"):
        targets.baselines(MODEL, "cuda:0", ["eager", "liger"])


def test_the_doctor_says_whether_it_is_there(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert doctor._libraries().seen.startswith("liger-kernel") and "baselines and candidates on a GPU" in doctor._libraries().seen
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    seen = doctor._libraries()
    every = "liger-kernel, nvidia-cudnn-frontend, quack-kernels, flashinfer-python"
    assert seen.level == "OK" and seen.seen.startswith(f"not installed: {every} (pip install") and "[libraries]" in seen.seen


def test_a_program_that_outlives_the_package_calls_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "liger_kernel", None)
    monkeypatch.setattr(torch.Tensor, "is_cuda", True)
    monkeypatch.setattr(calls, "_LIBRARIES", {})
    x = torch.randn(4, 8)
    with pytest.warns(UserWarning, match="pip install liger-kernel"):
        torch.testing.assert_close(liger.liger("softmax", x, -1), torch.softmax(x, -1))


class Others(nn.Module):
    """What Liger has no kernel for: other dimensions and types, norms without weights, gates that others read, weighted losses."""

    def forward(self, x: torch.Tensor, wide: torch.Tensor, target: torch.Tensor) -> tuple[torch.Tensor, ...]:
        gate = F.silu(x)
        loss = F.cross_entropy(x, target, torch.ones(x.shape[1])), F.cross_entropy(x, target, reduction="none")
        norms = F.layer_norm(x, (8,)), F.layer_norm(x, (4, 8))
        return torch.softmax(x, 0), *norms, gate * x, gate, torch.softmax(wide, -1), x.double().softmax(-1), *loss


def test_what_it_has_no_kernel_for_stays(asked: list[str]) -> None:
    assert not list(LibraryKernels(LIGER).sites(captured(Others(), torch.randn(4, 8), torch.randn(1, 65537), torch.randint(0, 8, (4,)))))


def test_the_baseline_is_the_original_with_its_calls(asked: list[str]) -> None:
    assert targets.names_for("cuda")[-1] == "liger" and "liger" not in targets.names_for("cpu") and "liger" not in targets.names_for("cuda", True)
    program = _model(targets.baselines(MODEL, "cuda:0", ["liger"])["liger"].text, "liger_baseline")
    model, inputs = program.Model().eval(), program.get_inputs()
    new = program.ModelNew().eval()
    new.load_state_dict(model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(new(*inputs), model(*inputs))
    assert asked == [
        "LigerLayerNormFunction", "LigerRMSNormFunction", "LigerSoftmaxFunction", "LigerCrossEntropyFunction", "LigerKLDivLossFunction",
        "LigerSoftmaxFunction", "LigerGroupNormFunction",
    ]  # fmt: skip
    assert torch.softmax is not None and torch.softmax(torch.zeros(2), 0).sum() == 1 and len(asked) == 7, "torch is as it was"
    plain = _model(targets.baselines(PLAIN, "cuda:0", ["liger"])["liger"].text, "liger_plain")
    with pytest.raises(RuntimeError, match="none of the program's calls"):
        plain.ModelNew()(torch.ones(2))


@pytest.mark.skipif(not HERE, reason="needs the package liger-kernel")
@pytest.mark.slow
def test_its_kernels_compile_for_an_h200() -> None:
    from benchmarks.kernels.without_gpu import Record, recorded

    def meta(*sizes: int) -> torch.Tensor:
        return torch.empty(*sizes, device="meta")

    x, y, row = meta(4096, 4096), meta(4096, 4096), meta(4096)
    given: dict[str, tuple[Any, ...]] = {
        "softmax": (x, -1), "layer_norm": (x, (4096,), row, row, 1e-5), "rms_norm": (x, (4096,), row, None), "silu_mul": (x, y), "gelu_mul": (x, y),
        "group_norm": (meta(16, 64, 56, 56), 8, meta(64), meta(64), 1e-5), "kl_div": (x, y, 2, False),
    }  # fmt: skip
    for call, args in given.items():  # cross entropy asks the GPU for numbers
        record = Record()
        with recorded(record):
            assert liger.liger(call, *args).shape == calls.OWN[call](*args).shape
        assert [launch.problems for launch in record.launches] == [()], call


@pytest.mark.skipif(not HERE, reason="needs the package liger-kernel")
def test_its_softmax_and_cross_entropy_by_the_interpreter() -> None:
    text = """
import torch
from liger_kernel import ops
from warpwright.domains.graph.kernels.others.liger import LIGER
from warpwright.domains.graph.kernels.others.calls import OWN
torch.manual_seed(0)
for call, args in (("softmax", (torch.randn(6, 40), -1)), ("cross_entropy", (torch.randn(6, 40), torch.randint(0, 40, (6,)), 1, -100, 0.1))):
    fits, made = LIGER[call]
    assert fits(*args)
    torch.testing.assert_close(made(ops, *args), OWN[call](*args))
"""
    subprocess.run([sys.executable, "-c", text], env={**os.environ, "TRITON_INTERPRET": "1"}, check=True, timeout=300)
