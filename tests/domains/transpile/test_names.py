"""A kernel may call its own things as the output calls its: parameters, variables, constants of the file and template parameters."""

from __future__ import annotations

import numpy as np
import pytest
from executables import PLAIN

from warpwright.domains import transpile
from warpwright.domains.transpile.frontend.parse import RESERVED

SHEET = """__global__ void sheet(const int* in, int* out, int width, int height) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < width && y < height) out[x * height + y] = in[y * width + x];
}
template <int given> __device__ int last_of_block(int value, int* s) {
  const int size = given == 0 ? blockDim.x : given;  // the kernel's template has a size too
  s[threadIdx.x] = value; __syncthreads();
  return s[size - 1];
}
template <int size> __global__ void lasts(int* x) { __shared__ int s[64]; x[threadIdx.x] += last_of_block<size>(x[threadIdx.x], s); }
"""

USES = """  __shared__ int s[64];
  int i = threadIdx.x; int sum = in[i];
  s[i] = sum; __syncthreads();
  for (int k = 0; k < 4; ++k) sum += s[(i + k * NAME) % 64];
  __syncthreads();
  out[i] = sum * NAME + s[63 - i];
"""
FORMS = {
    "parameter": "__global__ void kNAME(const int* in, int* out, int NAME) {\n" + USES + "}\n",
    "constant": "constexpr int NAME = 3;\n__global__ void kNAME(const int* in, int* out, int) {\n" + USES + "}\n",
    "variable": "__global__ void kNAME(const int* in, int* out, int n) {\n  int NAME = n;\n" + USES + "}\n",
}
NAMES = (*RESERVED, "sum_t", "sum_r", "k_begun", "part_1", "row_1", "taken_1", "mask_1", "i_2", "index")


@pytest.mark.compiler
def test_sheets_have_a_width_and_a_height_and_templates_a_size() -> None:
    kernels = transpile.compile_text(SHEET, instances=["lasts<0>", "lasts<32>"]).load(PLAIN)
    values, out = np.arange(48 * 40, dtype=np.int32), np.zeros(48 * 40, np.int32)
    kernels["sheet"][(2, 5), (32, 8)](values, out, 48, 40)
    assert np.array_equal(out.reshape(48, 40), values.reshape(40, 48).T)
    for size in (0, 32):
        x = np.arange(64, dtype=np.int32)
        kernels[f"lasts<{size}>"][1, 64](x)
        assert np.array_equal(x, np.arange(64) + (size or 64) - 1)


@pytest.mark.compiler
@pytest.mark.parametrize(
    ("form", "names"), [("constant", ("BX", "threads", "row_x", "sum_t")), *(pytest.param(f, NAMES, marks=pytest.mark.slow) for f in FORMS)]
)
def test_no_name_changes_what_a_kernel_does(form: str, names: tuple[str, ...]) -> None:
    names = tuple(name for name in dict.fromkeys(names) if form != "constant" or name != "index")  # the C library has one
    text = "\n".join(f"namespace of_{name} {{ {FORMS[form].replace('NAME', name)} }}" for name in names)
    program = transpile.compile_text(text)
    kernels = program.load(PLAIN)
    values = np.arange(64, dtype=np.int32) % 7
    s, sums = values, values + sum(values[(np.arange(64) + 3 * k) % 64] for k in range(4))
    for name in names:
        out = np.zeros(64, np.int32)
        kernels[f"k{name}"][1, 64](values, out, 3)
        assert np.array_equal(out, sums * 3 + s[::-1]), (name, program.kernels[f"k{name}"])


@pytest.mark.compiler
def test_types_may_be_called_as_what_the_output_has() -> None:
    names = ("launch", "index", "one_row")
    kernel = """namespace of_NAME { struct NAME { int a, b; };
__global__ void kNAME(const int* in, int* out, int n) { int i = threadIdx.x; NAME both = {in[i], n}; out[i] = both.a * both.b; } }"""
    kernels = transpile.compile_text("\n".join(kernel.replace("NAME", name) for name in names)).load(PLAIN)
    values = np.arange(64, dtype=np.int32)
    for name in names:
        out = np.zeros(64, np.int32)
        kernels[f"k{name}"][1, 64](values, out, 3)
        assert np.array_equal(out, values * 3), name
