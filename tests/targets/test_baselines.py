"""Tests of the baseline programs."""

from __future__ import annotations

import gc
import shutil
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from warpwright import targets
from warpwright.domains.graph.libraries import LIBRARIES
from warpwright.errors import UsageError
from warpwright.tasks import taskfile

TASKS = Path(__file__).parents[1] / "tasks"
NAMES = ("linear_chain", "batchnorm", "multi_output", "inplace_original", "buffers")


def built(task_name: str, baseline: str, device: str) -> tuple[taskfile.Reference, torch.nn.Module, torch.nn.Module]:
    """Return the task, its original, and a baseline program with the same state."""
    reference = taskfile.load(taskfile.describe(TASKS / f"{task_name}.py"))
    source = targets.baselines(reference.source_text, device, [baseline])[baseline]
    module = taskfile.run_text(source.text, f"<{baseline} of {task_name}>", f"{baseline}_{task_name}")
    original = reference.make_model().to(device)
    program = module.ModelNew(*reference.init_inputs).to(device)
    program.load_state_dict(original.state_dict())
    return reference, original, program


def agree(task_name: str, baseline: str, device: str, tolerance: float = 1e-4) -> None:
    """Call original and baseline on three fresh inputs, with a change of parameters between; outputs and state have to agree."""
    reference, original, program = built(task_name, baseline, device)
    kept: list[tuple[Any, Any]] = []
    with torch.no_grad():
        for seed in range(3):
            ours, theirs = reference.make_inputs(seed, device), reference.make_inputs(seed, device)
            kept.append((program(*ours), original(*theirs)))
            torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)
            for module in (program, original):
                for parameter in module.parameters():
                    parameter.mul_(1.25)
    for seen, wanted in kept:  # compared at the end: a later call must not have changed an earlier result
        torch.testing.assert_close(seen, wanted, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(program.state_dict(), original.state_dict(), rtol=tolerance, atol=tolerance)


def test_names_by_device() -> None:
    assert targets.names_for("cpu") == ("eager", "compile", "compile_max_autotune")
    names = [name for name in targets.names_for("cuda:1") if name not in LIBRARIES]  # which may be installed
    assert names == ["eager", "eager_tf32", "compile", "compile_max_autotune", "cuda_graph"]


def test_all_baselines_are_one_file_with_the_task_in_it() -> None:
    text = (TASKS / "softmax.py").read_text()
    sources = targets.baselines(text, "cuda:0")
    assert list(sources) == list(targets.names_for("cuda"))
    for source in sources.values():
        assert source.entry == "ModelNew" and source.text.startswith(text.rstrip())
        compile(source.text, "baseline.py", "exec")
    assert '"max-autotune-no-cudagraphs"' in sources["compile_max_autotune"].text
    assert '"max-autotune"' in targets.baselines(text, "cpu")["compile_max_autotune"].text


def test_unknown_names_are_an_error() -> None:
    with pytest.raises(UsageError, match=r"'cuda_graph' on cpu.*eager, compile"):
        targets.baselines("", "cpu", ["eager", "cuda_graph"])


@pytest.mark.parametrize("task_name", NAMES)
def test_eager_agrees(task_name: str) -> None:
    agree(task_name, "eager", "cpu")


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None, reason="no C++ compiler")
def test_compile_agrees_and_compiles_once() -> None:
    agree("linear_chain", "compile", "cpu")
    reference, _, program = built("linear_chain", "compile", "cpu")
    with torch.no_grad():
        program(*reference.make_inputs(0))
        first = sys.modules[type(program).__module__]._compiled
        program(*reference.make_inputs(1))
    assert sys.modules[type(program).__module__]._compiled is first


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
@pytest.mark.parametrize("task_name", NAMES)
@pytest.mark.parametrize("baseline", ["eager_tf32", "compile", "cuda_graph"])
def test_cuda_baselines_agree(task_name: str, baseline: str) -> None:
    agree(task_name, baseline, "cuda", 2e-2 if baseline == "eager_tf32" else 1e-3)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
def test_a_graph_is_recorded_anew_for_other_shapes_and_parameters() -> None:
    reference, original, program = built("linear_chain", "cuda_graph", "cuda")
    [x] = reference.make_inputs(0, "cuda")
    with torch.no_grad():
        for value in (x, x[: len(x) // 2].contiguous()):
            torch.testing.assert_close(program(value), original(value), rtol=1e-4, atol=1e-4)
        for module in (program, original):
            for parameter in module.parameters():
                parameter.data = parameter.data.clone() * 2
        torch.testing.assert_close(program(x), original(x), rtol=1e-4, atol=1e-4)


def test_tf32_flags_are_put_back() -> None:
    _, _, program = built("matmul", "eager", "cpu")
    source = targets.baselines((TASKS / "matmul.py").read_text(), "cuda", ["eager_tf32"])["eager_tf32"]
    program = taskfile.run_text(source.text, "<tf32>", "tf32").ModelNew()
    before = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    with pytest.raises(TypeError):
        program()  # the original raises: the flags have to be put back all the same
    assert (torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32) == before


KEEPS = """
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(64, 64)
        self.hidden, self.inner.rows = torch.zeros(64, 64), [torch.zeros(64, 64)]

    def forward(self, x):
        self.hidden = self.hidden.to(x.device)
        self.hidden.copy_(x)
        self.inner.rows[0].copy_(self.hidden.to(self.inner.rows[0].device))
        self.hidden, self.inner.rows = torch.tanh(self.inner(self.hidden)), [torch.empty_like(self.hidden)]
        return self.hidden + 1
"""


def test_what_a_recorded_call_lets_go_of_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph writes there in each replay."""
    module = taskfile.run_text(targets.baselines(KEEPS, "cuda", ["cuda_graph"])["cuda_graph"].text, "<keeps>", "keeps")
    anything: Any = SimpleNamespace(wait_stream=lambda _: None, record=lambda: None)
    names = {"get_rng_state": lambda: torch.zeros(1), "current_stream": lambda: anything, "Stream": lambda: anything, "CUDAGraph": lambda: anything}
    for name, stand_in in (names | {"stream": lambda _: nullcontext(), "Event": lambda: anything}).items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    held: list[weakref.ref[torch.Tensor]] = []

    @contextmanager
    def recording(_: Any) -> Iterator[None]:
        held.extend(weakref.ref(tensor) for tensor in (model.hidden, model.inner.rows[0]))
        yield

    monkeypatch.setattr(module, "_recording", recording)
    model = module.ModelNew()
    recorded = module._Recording(model, [torch.ones(64, 64)], torch.utils._pytree.tree_flatten(((torch.ones(64, 64),), {}))[1])
    gc.collect()
    assert len(held) == 2 and all(tensor() is not None for tensor in held) and recorded.graph is anything
    del recorded
    gc.collect()
    assert all(tensor() is None for tensor in held)


@pytest.mark.cuda
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA GPU")
def test_a_replay_writes_to_nobody_elses_memory() -> None:
    module = taskfile.run_text(targets.baselines(KEEPS, "cuda", ["cuda_graph"])["cuda_graph"].text, "<keeps>", "keeps")
    model, x = module.ModelNew().to("cuda"), torch.full((64, 64), 7.0, device="cuda")
    with torch.no_grad():
        wanted = torch.tanh(model.inner(x)) + 1
        for _ in range(2):
            torch.testing.assert_close(model(x), wanted, rtol=1e-4, atol=1e-4)
            others = [torch.zeros(64, 64, device="cuda") for _ in range(200)]  # whatever memory is free is one of theirs
        torch.testing.assert_close(model(x), wanted, rtol=1e-4, atol=1e-4)
        assert all(not other.any() for other in others)
