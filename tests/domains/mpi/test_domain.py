"""Datatype files as tasks: the generated programs move the same bytes as the reference, their texts are golden, wrong files are refused."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from warpwright import native
from warpwright.base import Action
from warpwright.domains.mpi import domain
from warpwright.domains.mpi.lower import cuda_text
from warpwright.domains.mpi.techniques import Tuning
from warpwright.errors import TaskError

pytestmark = pytest.mark.compiler

TYPES: dict[str, Any] = {
    "halo": ["subarray", [16, 16, 16], [14, 14, 3], [1, 1, 1], "C", "double"],
    "transposed": ["vector", 6, 1, 1, ["hvector", 5, 1, 48, "double"]],
    "backwards": ["hvector", 4, 2, -40, "float"],
    "record": ["contiguous", 50, ["struct", [1, 3, 1], [0, 8, 40], ["int", "double", "short"]]],
    "list": ["indexed", [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5], [0, 9, 12, 20, 25, 31, 44, 50, 60, 70, 80], "int"],
}


def task_of(folder: Path, datatype: Any, **fields: Any) -> Any:
    """Write a datatype file and return its task."""
    path = folder / "one.mpi"
    path.write_text(json.dumps({"datatype": datatype, **fields}))
    task = domain.describe(path, {})
    assert task is not None
    return task


def namespace(text: str) -> dict[str, Any]:
    """Run a generated file."""
    names: dict[str, Any] = {}
    exec(compile(text, "optimized.py", "exec"), names)
    return names


@pytest.mark.parametrize("operation", ["pack", "unpack"])
@pytest.mark.parametrize("name", TYPES)
def test_generated_loops_move_the_same_bytes(name: str, operation: str, tmp_path: Path) -> None:
    space = domain.space(task_of(tmp_path, TYPES[name], operation=operation, count=2 if name == "record" else 1), "cpu")
    recipe = (Action("specialise"), Action("ahead", params=(("n", 8),)), Action("cores", params=(("n", 0),)))
    names = namespace(dict(space.candidate(recipe).source.files)["optimized.py"])
    assert names["KERNELS"] is not None
    (x,) = names["get_inputs"]()
    assert torch.equal(names["ModelNew"]()(x), names["Model"]()(x))


@pytest.mark.parametrize("width, words", [(16, 1), (4, 4), (1, 2)])
@pytest.mark.parametrize("name", TYPES)
def test_generated_kernels_move_the_same_bytes(name: str, width: int, words: int, tmp_path: Path) -> None:
    """The kernel runs thread by thread on the CPU."""
    task = task_of(tmp_path, TYPES[name])
    work = domain.work(task)
    text = cuda_text(work, Tuning(width=width, words=words, threads=128))
    blocks = -(-work.object.bytes // 128)
    emulated = """
        #define __global__
        #define __device__
        #define __forceinline__ inline
        struct alignas(8) uint2 { unsigned x, y; };
        struct alignas(16) uint4 { unsigned x, y, z, w; };
        static struct { unsigned x; } blockIdx, threadIdx;
        %s
        extern "C" void run(char* object, char* stream, int blocks) {
            for (blockIdx.x = 0; blockIdx.x < (unsigned)blocks; ++blockIdx.x)
                for (threadIdx.x = 0; threadIdx.x < 128; ++threadIdx.x) move(object, stream);
        }"""
    kernel = ctypes.CDLL(str(native.build(emulated % text, flags=("-O1", "-std=c++17", "-shared", "-fPIC"))))
    names = namespace(domain.reference(task))
    (x,) = names["get_inputs"]()
    object_, stream = (torch.empty(size + 16, dtype=torch.uint8) for size in (len(x), work.object.bytes))
    object_, stream = (one[-one.data_ptr() % 16 :] for one in (object_, stream))
    object_[: len(x)] = x
    kernel.run(ctypes.c_void_p(object_.data_ptr()), ctypes.c_void_p(stream.data_ptr()), blocks)
    assert torch.equal(stream[: work.object.bytes], names["Model"]()(x))


@pytest.mark.parametrize("name", ["halo", "list"])
@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_programs_are_as_they_were(name: str, target: str, tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    space = domain.space(task_of(tmp_path, TYPES[name]), target)
    text = dict(space.candidate((Action("specialise"),)).source.files)["optimized.py"]
    source = text.partition("SOURCE = r'''\n")[2].partition("'''")[0]
    golden(f"mpi/{name}_{target}.txt", source)


def test_actions_belong_to_their_target(tmp_path: Path) -> None:
    task = task_of(tmp_path, TYPES["halo"])
    for target, own in (("cpu", {"cores", "ahead"}), ("cuda", {"words", "threads", "width"})):
        space = domain.space(task, target)
        assert {action.technique for action in space.actions(space.start)} == {"specialise"}
        assert {action.technique for action in space.actions(space.replay([Action("specialise")]))} == own


WRONG = (
    '["vector"]', '{"count": 2}', '{"datatype": ["vector", 3, 1, 4, "double"], "count": 0}', '{"datatype": ["contiguous", 0, "int"]}',
    '{"datatype": ["vector", 3, 1, 4, "double"], "operation": "reduce"}', '{"datatype": ["hvector", 3, 1, 0, "int"], "operation": "unpack"}',
)  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_wrong_files_are_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.mpi"
    path.write_text(text)
    with pytest.raises(TaskError):
        domain.describe(path, {})


def test_a_file_of_another_kind_is_not_its_business(tmp_path: Path) -> None:
    assert domain.describe(tmp_path / "task.py", {}) is None


def test_the_reference_is_the_typemap(tmp_path: Path) -> None:
    names = namespace(domain.reference(task_of(tmp_path, TYPES["backwards"])))
    x = torch.arange(names["ROOM"], dtype=torch.uint8)
    expected = np.concatenate([np.arange(120 - 40 * i, 128 - 40 * i) for i in range(4)])
    assert np.array_equal(names["Model"]()(x).numpy(), expected)
