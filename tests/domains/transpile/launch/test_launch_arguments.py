"""What a launch from Python takes: arrays of every kind of memory, numbers, structs; from several threads at once."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from warpwright.domains import transpile
from warpwright.errors import UsageError

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")]

TEXT = """
struct Pair { float low; char more[5]; };
__global__ void add(const float* x, float* y, int n, float a, bool twice) { int i = threadIdx.x; if (i < n) y[i] = a * x[i] + (twice ? y[i] : 0.f); }
__global__ void spread(Pair p, float* y) { y[threadIdx.x] = p.low + p.more[threadIdx.x]; }
"""


@pytest.fixture(scope="module")
def kernels() -> dict[str, transpile.LoadedKernel]:
    return transpile.compile_text(TEXT).load()


def test_arrays_that_are_read_only_or_empty(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    x.flags.writeable = False
    kernels["add"][1, 32](x, y, np.int64(8), np.float32(2), np.True_)
    assert np.array_equal(y, 2 * x)
    kernels["add"][1, 32](np.zeros(0, np.float32), y, 0, 2, False)
    assert np.array_equal(y, 2 * x)
    kernels["add"][1, 32](x[4:], y[4:], 4, 0.5, False)
    assert np.array_equal(y[4:], x[4:] / 2)


def test_tensors_addresses_and_none(kernels: dict[str, transpile.LoadedKernel]) -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.arange(8.0), torch.zeros(8)
    kernels["add"][1, 32](x, y.data_ptr(), 8, 3.0, False)
    kernels["add"][1, 32](None, y, 0, 3.0, False)
    assert torch.equal(y, 3 * x)


def test_a_struct_is_given_as_bytes_or_a_record(kernels: dict[str, transpile.LoadedKernel]) -> None:
    y = np.zeros(5, np.float32)
    record = np.array((0.5, [1, 0, 3, 0, 5], b""), np.dtype("f4, 5i1, V3"))
    launcher = kernels["spread"][1, 5]
    launcher(np.array(1, np.float32).tobytes() + bytes([9, 8, 7, 6, 5, 0, 0, 0]), y)
    assert y.tolist() == [10, 9, 8, 7, 6]
    launcher(record, y)  # zeros inside, and what the call before left is gone
    assert y.tolist() == [1.5, 0.5, 3.5, 0.5, 5.5]


@pytest.mark.parametrize("wrong", [np.zeros(8), np.zeros(8, np.int32), np.zeros((8, 2), np.float32)[:, 0], "text"])
def test_another_element_or_stride_is_refused_each_time(kernels: dict[str, transpile.LoadedKernel], wrong: object) -> None:
    for _ in range(2):
        with pytest.raises(UsageError, match="for argument 0 of add"):
            kernels["add"][1, 32](wrong, np.zeros(8, np.float32), 8, 1.0, False)


def test_a_prepared_call_looks_at_its_arguments_once(kernels: dict[str, transpile.LoadedKernel]) -> None:
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    launcher = kernels["add"][1, 32]
    with pytest.raises(UsageError, match="expected 5 arguments of add, saw 2"):
        launcher.prepared(x, y)
    launch = launcher.prepared(x, y, 8, 2.0, False)
    assert not y.any()
    del x
    launch()
    assert np.array_equal(y, 2 * np.arange(8))
    launcher(y, y, 8, 1.0, True)  # a call between has arguments of its own
    launch()
    assert np.array_equal(y, 2 * np.arange(8))


def test_one_launcher_from_several_threads(kernels: dict[str, transpile.LoadedKernel]) -> None:
    launcher, x = kernels["add"][1, 32], np.arange(8, dtype=np.float32)

    def many(factor: int) -> bool:
        y = np.zeros(8, np.float32)
        good = True
        for _ in range(500):
            launcher(x, y, 8, factor, False)
            good &= np.array_equal(y, factor * x)
        return good

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(many, range(4)))
