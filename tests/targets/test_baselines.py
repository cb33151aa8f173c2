"""Tests of the baseline programs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from warpwright import targets
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
    assert targets.names_for("cuda:1") == ("eager", "eager_tf32", "compile", "compile_max_autotune", "cuda_graph")


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
