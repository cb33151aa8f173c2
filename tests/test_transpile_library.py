"""`warpwright.transpile`: the kernels of a file as functions, and the errors of Python's kinds; the verb's errors at their place in the .cu."""

from __future__ import annotations

import inspect
import re
import shutil
import textwrap
from pathlib import Path

import numpy as np
import pytest

import warpwright.transpile
from warpwright.cli import main

needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
pytestmark = [pytest.mark.usefixtures("quick_builds"), pytest.mark.compiler, needs_compiler]

TEXT = """
#include "scale.h"
#include <cub/cub.cuh>
#include <cooperative_groups.h>
__global__ void scale(const float* x, float* y, int n, unsigned char times, bool twice) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = FACTOR * times * x[i] * (twice ? 2 : 1);
}
template <class T> __global__ void fill(T* y, T value) { y[threadIdx.x] = value; }
__device__ float add(const float a, const float b) { return a + b; }
template <float (*op)(const float, const float), int times, class T, class... More> __global__ void fold(T* y, const T* x, More... more) {
  float sum = 0;
  for (int i = 0; i < times; ++i) sum = op(sum, x[i]);
  if constexpr (sizeof...(more) > 0) sum += (... + more);
  *y = sum;
}
template <class T> void launch(T* y) { unknown_to_all(y); fold<add, 3><<<1, 1>>>(y, y); }
extern template void launch<int>(int*);
void after(float* y, int times = 3);
void elsewhere(float*);
void after(float* y, int times) { elsewhere(y); }
template <> void launch<float>(float* y) { fold<add, 3><<<1, 1>>>(y, y); }
void all(float* y) { launch<float>(y); }
template void launch<double>(double*);
int helper(int n);
__host__ __device__ int also(int n) { return helper(n); }
int helper(int n) { return n; }
template <class T> static __device__ void share(T* x, T* sums) {
  const cooperative_groups::grid_group grid = cooperative_groups::this_grid();
  if (threadIdx.x == 0) sums[blockIdx.x] = x[blockIdx.x];
  grid.sync();
  T sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += sums[i];
  if (threadIdx.x == 0) x[blockIdx.x] /= sum;
}
__global__ void shares(double* x, double* sums) { share(x, sums); }
void run(float* y) { scale<<<1, 32>>>(y, y, 1, 2, false); fill<<<1, 1>>>(y, 1.f); fold<add, 3><<<1, 1>>>(y, y); printf("host"); }
"""


@pytest.fixture(scope="module")
def kernels(quick_builds: None, tmp_path_factory: pytest.TempPathFactory) -> warpwright.transpile.Kernels:
    folder = tmp_path_factory.mktemp("library")
    (folder / "include").mkdir()
    (folder / "include" / "scale.h").write_text("#define FACTOR 10\n")
    (folder / "kernels.cu").write_text(TEXT)
    instances = ["fill<double>", "fold<add, FACTOR, float, float>"]
    return warpwright.transpile.load(folder / "kernels.cu", include=[folder / "include"], instances=instances)


class Elsewhere:
    """An array of a library that speaks DLPack alone."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: object) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_an_instance_has_functions_macros_and_packs_for_arguments(kernels: warpwright.transpile.Kernels) -> None:
    x, y = np.arange(10, dtype=np.float32), np.zeros(1, np.float32)
    kernels["fold<add, FACTOR, float, float>"][1, 1](y, x, 0.5)
    assert y[0] == 45.5
    with pytest.raises(warpwright.transpile.Refusal, match=r"instance fill<Unknown>:1:\d+: .Unknown. was not declared"):
        warpwright.transpile.loads("template <class T> __global__ void fill(T* y) { *y = 1; }", instances=["fill<Unknown>"])


def test_blocks_of_a_kernel_that_waits_for_its_grid_run_together(kernels: warpwright.transpile.Kernels) -> None:
    x = np.array([1.0, 2.0, 5.0])
    kernels.shares[3, 32](x, np.zeros(3))
    assert list(x) == [0.125, 0.25, 0.625]
    with pytest.raises(warpwright.transpile.LaunchFailed, match="expected at most 1024 blocks"):
        kernels.shares[1025, 32](np.ones(1025), np.zeros(1025))


def test_kernels_are_functions_with_signatures(kernels: warpwright.transpile.Kernels) -> None:
    assert list(kernels) == ["scale", "shares", "fill<double>", "fold<add, FACTOR, float, float>"]
    assert kernels.scale.signature == "void scale(const float* x, float* y, int n, unsigned char times, bool twice)"
    assert list(inspect.signature(kernels.scale).parameters) == ["x", "y", "n", "times", "twice"]
    with pytest.raises(AttributeError, match="expected one of the kernels scale"):
        _ = kernels.other


def test_arrays_of_all_kinds_change_in_place(kernels: warpwright.transpile.Kernels) -> None:
    torch = pytest.importorskip("torch")
    x, y, z, t = np.arange(4, dtype=np.float32), np.zeros(4, np.float32), np.zeros(4, np.float32), torch.zeros(4)
    kernels.scale[1, 32](x, y, 4, 3, False)
    kernels.scale[1, 32](Elsewhere(x), Elsewhere(z), 4, 3, np.True_)
    kernels.scale[(1, 1), (32, 1)](x, t, 4, 3, True)
    assert y.tolist() == [0, 30, 60, 90]
    assert (2 * y).tolist() == z.tolist() == t.tolist()
    doubles = np.zeros(3)
    kernels["fill<double>"][1, 3](doubles, 1.5)
    assert doubles.tolist() == [1.5, 1.5, 1.5]


@pytest.mark.parametrize(
    ("at", "wrong", "kind"),
    [
        (0, "text", TypeError), (0, np.zeros(4), TypeError), (2, 1.5, TypeError), (2, "4", TypeError), (4, 0.5, TypeError),
        (2, 2**31, ValueError), (3, 256, ValueError), (3, -1, ValueError), (0, np.zeros((4, 2), np.float32)[:, 0], ValueError),
        (1, np.broadcast_to(np.float32(1), (4,)).copy().view(), None), (1, np.frombuffer(bytes(16), np.float32), ValueError),
    ],
)  # fmt: skip
def test_wrong_arguments_are_errors_of_pythons_kinds(
    kernels: warpwright.transpile.Kernels, at: int, wrong: object, kind: type[Exception] | None
) -> None:
    arguments = [np.ones(4, np.float32), np.ones(4, np.float32), 4, 3, False]
    arguments[at] = wrong
    if kind is None:
        kernels.scale[1, 32](*arguments)
        return
    with pytest.raises(kind, match=f"for argument {at} of scale"):
        kernels.scale[1, 32](*arguments)


def test_shapes_that_no_gpu_takes_are_value_errors(kernels: warpwright.transpile.Kernels) -> None:
    for shape in ((0, 1), (1, 2048), (1, (64, 32)), ((1, 70000), 1)):
        with pytest.raises(ValueError, match="expected"):
            kernels.scale[shape]
    with pytest.raises(TypeError, match="expected 5 arguments"):
        kernels.scale[1, 32](1)


def test_a_docstring_is_a_kernel() -> None:
    @warpwright.transpile.kernel
    def twice() -> None:
        """__global__ void twice(float* x, int n) { int i = threadIdx.x; if (i < n) x[i] *= 2; }"""

    x = np.ones(3, np.float32)
    twice[1, 32](x, 3)
    assert x.tolist() == [2, 2, 2]


def test_the_example_of_the_page_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    section = (Path(__file__).parents[1] / "docs" / "transpile.md").read_text().partition("## Kernels as functions of Python")[2]
    code, _, said = section.partition("It prints `")
    exec(textwrap.dedent(code))
    assert capsys.readouterr().out.strip() == said.partition("`")[0]


BROKEN = {
    "#include <cstdio>\n\nstatic_assert(sizeof(int) == 8, \"ints are wide\");\n__global__ void k() {}":
        "app.cu:3:27: static assertion failed: ints are wide",
    "__global__ void k() {}\nint main() {\n  k<<<1, 1>>>();\n  undefined_call();\n}": "app.cu:4:3: .undefined_call. was not declared",
    "int main() { return 0; }": "expected CUDA in",
}


@pytest.mark.parametrize("text", BROKEN)
def test_the_verb_names_the_place_and_fails(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.cu").write_text(text)
    assert main(["transpile", "app.cu"]) != 0
    assert re.search(BROKEN[text], " ".join(capsys.readouterr().err.split()))
    assert not Path("app.cpp").exists()


@pytest.mark.compiler
def test_a_kernel_that_does_not_compile_is_left_out_with_the_compilers_words() -> None:
    kernels = warpwright.transpile.loads(
        "__device__ float worse(float v) { return v * factor; }\n"
        "__global__ void good(float* x) { x[threadIdx.x] *= 2; }\n"
        "__global__ void bad(float* x) { x[threadIdx.x] = missing[threadIdx.x]; }\n"
        "__global__ void through(float* x) { x[threadIdx.x] = worse(x[threadIdx.x]); }\n"
    )
    x = np.ones(4, np.float32)
    kernels.good[1, 4](x)
    assert x.tolist() == [2.0] * 4 and list(kernels) == ["good"]
    with pytest.raises(AttributeError, match=r"line 3: .missing. was not declared"):
        kernels.bad  # noqa: B018
    with pytest.raises(AttributeError, match=r"line 1: .factor. was not declared"):
        kernels.through  # noqa: B018
