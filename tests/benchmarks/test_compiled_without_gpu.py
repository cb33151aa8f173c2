"""Programs called on meta tensors, their launches compiled for Hopper: what is taken down of a launch, and what is found wrong with one."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from benchmarks.kernelbench import compiled
from benchmarks.kernels import without_gpu
from benchmarks.kernels.without_gpu import CudaWithoutGpu, Needs, Record, problems_of, recorded, tables_of
from warpwright.native.standalone_cuda import _CudaKernels

PRINTED = """
Resource usage:
 Common:
  GLOBAL:0
 Function fused_0_add:
  REG:34 STACK:8 SHARED:1024 LOCAL:16 CONSTANT[0]:560 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function other:
  REG:255 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
"""

TASK = """
import torch

class Model(torch.nn.Module):
    def __init__(self, features):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(features))

    def forward(self, x):
        return torch.relu(x * self.scale + 1).sum(-1)

def get_inputs():
    return [torch.rand(16384, 4096)]

def get_init_inputs():
    return [4096]
"""


def _has_nvrtc() -> bool:
    try:
        return bool(_CudaKernels.compiler())
    except RuntimeError:
        return False


def test_what_cuobjdump_prints_is_read() -> None:
    assert list(without_gpu._said(PRINTED)) == [("fused_0_add", 8, 34, 1024, 16), ("other", 0, 255, 0, 0)]


@pytest.mark.parametrize(
    ("needs", "blocks", "threads", "shared", "part"),
    [
        (Needs(64, 0, 0, 1), (1,), 256, 233_000, "shared memory"), (Needs(255, 0, 0, 1), (1,), 512, 0, "registers"),
        (Needs(16, 0, 0, 1), (1,), 2048, 0, "threads a block"), (Needs(16, 0, 0, 1), (2, 70_000), 128, 0, "a grid"),
        (Needs(16, 0, 0, 1), (0,), 128, 0, "a grid"),
    ],
)  # fmt: skip
def test_what_an_h200_would_refuse(needs: Needs, blocks: tuple[int, ...], threads: int, shared: int, part: str) -> None:
    [problem] = problems_of(needs, blocks, threads, shared, without_gpu.SHARED_BYTES)
    assert part in problem


def test_what_an_h200_would_take() -> None:
    assert not problems_of(Needs(128, 0, 0, 1), (2**31 - 1, 65535), 512, 227 << 10, without_gpu.SHARED_BYTES)


def test_pointers_have_to_fit_text_table_and_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(without_gpu, "needs_of", lambda code: {"add": Needs(16, 0, 0, 3), "mul": Needs(16, 0, 0, 2)})
    real = SimpleNamespace(shapes={"add": (3, 4, 256), "mul": (3, 4, 256), "gone": (1, 1, 32)}, machine_code=lambda arch: b"")
    record = Record()
    kernels = CudaWithoutGpu(real, record)
    x = torch.empty(3, device="meta")
    for name, pointers in (("add", (0, 0, 0)), ("add", (0, 0)), ("mul", (0, 0, 0)), ("gone", (0,)), ("add", (0, 0, 0))):
        kernels.launch(name, x, *pointers)
    assert record.count == 5 and len(record.launches) == 4
    right, *wrong = record.launches
    assert not right.problems and right.blocks == (4,) and right.threads == 256
    assert ["pointers" in wrong[0].problems[0], "the kernel takes 2" in wrong[1].problems[0], "no such kernel" in wrong[2].problems[0]] == [True] * 3
    plan = SimpleNamespace(steps=(("", 4, ((0, 0),)), ("add", 0, ((0, 0), (1, 0))), ("", 0, ((0, 0),))))
    said = [text for _, text in tables_of({"CUDA_KERNELS": kernels, "plan_0_table": plan})]
    assert said == ["add is given 2 pointers and takes 3", "0 bytes at 1 pointers are set to zero"]


def test_a_triton_launch_is_compiled_as_its_launcher_would_have_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    from triton import knobs
    from triton_source import twice

    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    x, record = torch.empty(4096, device="meta"), Record()
    with recorded(record):
        assert x.is_cuda
        made = twice[(4,)](x, torch.empty_like(x), 4096, 1024, num_warps=2)
        made[(4, 1, 1)](x, x, 4096, 1024)
        with pytest.raises(TypeError, match="SIZE"):
            twice[(4,)](x, x, 4096)
        with pytest.raises(TypeError, match="3 arguments and takes 4"):
            made[(4, 1, 1)](x, x, 4096)
    launch = record.launches[0]
    assert (launch.kernel, launch.language, launch.blocks, launch.threads) == ("twice", "triton", (4,), 64) and record.count == 2
    assert launch.registers > 8 and not launch.problems and not launch.local_bytes
    assert 'divisibility' in str(made.asm["ttir"]) and "f32" in str(made.asm["ttir"]), "as a launch with such arguments"
    assert not x.is_cuda


@pytest.mark.skipif(not _has_nvrtc(), reason="needs NVRTC")
def test_a_tasks_first_programs_are_compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("triton")
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path / "cache"))
    file = tmp_path / "relu_sum.py"
    file.write_text(TASK)
    options = argparse.Namespace(precision="strict", proposals=1)
    with torch.no_grad():
        rows = list(compiled.task_rows("relu_sum", file, options))
    [launch] = [row for row in rows if row["table"] == "launch"]
    assert launch["language"] == "cuda" and launch["registers"] > 8 and not launch["problems"] and not launch["local_bytes"]
    assert rows[-2]["launches"] == 1 and not rows[-2]["reason"] and rows[-1]["programs"] == 1
    assert compiled.summary(rows).startswith("1 tasks, 1 programs, 1 launches")


def test_a_program_that_fails_is_a_row_and_one_that_asks_for_a_value_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(text: str, reference: Any, record: Record) -> None:
        raise RuntimeError("Tensor.item() cannot be called on meta tensors" if text == "asks" else "no such kernel")

    monkeypatch.setattr(compiled, "called", failing)
    found = []
    for text in ("asks", "fails"):
        space = SimpleNamespace(replay=lambda recipe: None, lower=lambda ir, recipe, text=text: SimpleNamespace(source=SimpleNamespace(text=text)))
        found += list(compiled.program_rows("task", space, ("identity()",), None))
    assert [row["not reached"] for row in found] == [True, False]
    assert "no such kernel" in compiled.summary(found) and "not reached: 1 programs" in compiled.summary(found)


def test_what_records_a_graph_is_left_out_wherever_it_stands() -> None:
    recipe = ("fuse_cuda(calls=1)", "cuda_graph()", "convolution_as_matmul(conv2d_1)")
    assert compiled.without_a_gpu(recipe) == ("fuse_cuda(calls=1)", "convolution_as_matmul(conv2d_1)")


def _compiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, *more: str) -> Any:
    """Return a template as a module, whose kernels are compiled anew."""
    pytest.importorskip("triton")
    from triton import knobs

    from benchmarks.kernels.beside import module
    from warpwright.domains.graph import kernels

    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    path = tmp_path / "kernel.py"
    path.write_text(kernels.text(name) + "".join(more))
    return module(path)


def _only_kernel(monkeypatch: pytest.MonkeyPatch, call: Callable[[], object]) -> Any:
    """Return the one kernel that a call launches, compiled."""
    made = list[Any]()
    monkeypatch.setattr(without_gpu, "_triton_launch", lambda one, *_: made.append(one))
    monkeypatch.setattr(Record, "add", lambda *_: None)
    with recorded(Record()):
        call()
    [kernel] = made
    return kernel


def _order_of_stores(kernel: Any) -> str:
    """Return the line that says in which order threads lie where the result is stored."""
    lines = kernel.asm["ttgir"].splitlines()
    [store] = [line for line in lines if "tt.store" in line]
    layout = store.split(", #")[-1].split(">")[0]
    [order] = [line for line in lines if line.startswith(f"#{layout} =")]
    return str(order)


@pytest.mark.parametrize(("size", "stride", "hints"), [(15, 1, 2), (8, 1, 0), (16, 2, 1)])
def test_a_warp_takes_neighbours_where_the_compiler_sees_none(
    size: int, stride: int, hints: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of odd numbers of places, and with strides, Triton 3.6 gave a warp one place of 32 channels each: eight times the sectors."""
    template = _compiled(monkeypatch, tmp_path, "pointwise_convolution")
    x, w, out = torch.empty(2, 32, size, size, device="meta"), torch.empty(24, 32, device="meta"), -(-size // stride)
    call = partial(template.pointwise_convolution, x, w, None, "tf32x3", [stride, stride], [out, out], [32, 64, 32, 4, 1])
    kernel = _only_kernel(monkeypatch, call)
    assert kernel.asm["ttir"].count("tt.contiguity = dense<2>") == hints
    assert "order = [1, 0]" in _order_of_stores(kernel), "places lie in the last axis"
    assert size % 2 == 0 or "st.global.b32" in kernel.asm["ptx"], "one by one"


def test_a_warp_takes_neighbours_in_a_direct_convolution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it sees none Triton 3.8 takes the axis of the terms: 234 registers in place of 154, and twice the instructions."""
    template = _compiled(monkeypatch, tmp_path, "direct_convolution")
    x, w = torch.empty(2, 2, 7, 7, device="meta"), torch.empty(16, 2, 3, 3, device="meta")
    kernel = _only_kernel(monkeypatch, partial(template.direct_convolution, x, w, None, [1, 1], [0, 0], [5, 5], [1, 1], "tf32"))
    assert kernel.asm["ttir"].count("tt.contiguity = dense<2>") == 2
    assert "order = [0, 1]" in _order_of_stores(kernel), "places lie in the first axis"


@pytest.mark.slow
def test_convolutions_have_few_registers_where_places_are_odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With an address for each sum it was 255 by Triton 3.6, and one block a multiprocessor."""
    from benchmarks.kernels import implicit_convolution

    template = _compiled(monkeypatch, tmp_path, "implicit_convolution", implicit_convolution._END)
    case, record = implicit_convolution.CASES["half odd 64 x 64 x 31^2 -> 256, 3x3"], Record()
    with recorded(record):
        implicit_convolution.Called(case, "meta", template).ours(None)
    launch = record.launches[-1]
    assert launch.registers <= 128 and not launch.local_bytes and not launch.problems and launch.blocks[0] == 481 * 2
