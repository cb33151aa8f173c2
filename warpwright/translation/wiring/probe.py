"""Recover the size of each buffer by running: a program whose parameters are replaced by recording pointers reports the largest index of each.

HPCTransEval's files do not say which parameter has which size. Grids are recovered in the same way (`footprint`, `grids`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from warpwright import native
from warpwright.errors import WarpwrightError
from warpwright.translation.c_source import C_NAMES
from warpwright.translation.errors import one_line
from warpwright.translation.items import Buffer
from warpwright.translation.judge.program import Program

FLAGS = ("-O1", "-std=gnu++17", "-shared", "-fPIC", "-w", "-fpermissive")
PROBE_SECONDS = 60.0
COMMON = """#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <algorithm>
using std::max; using std::min;
template <class A, class B> auto max(A a, B b) -> decltype(a + b) { return a > b ? a : b; }
template <class A, class B> auto min(A a, B b) -> decltype(a + b) { return a < b ? a : b; }
template <class T> struct Recorded {
  T* data; long size; long top; unsigned char* seen; long count; long bad; T value, none; long wanted;
  T& operator[](long i) {
    if (i < 0 || i >= size) { bad = 1; none = T(1); return none; }
    if (i > top) top = i;
    if (!seen[i]) { seen[i] = 1; data[i] = value; count += i < wanted; }  // filled on first touch: filling all of it takes a second
    return data[i];
  }
};
template <class T> Recorded<T> recorded(long size, T value, long wanted) {
  return {(T*)malloc(size * sizeof(T)), size, -1, (unsigned char*)calloc(size, 1), 0, 0, value, value, wanted};
}
"""
CUDA = """
#define __global__
#define __device__
#define __restrict__
#define __shared__ static
#define __syncthreads()
#define __launch_bounds__(...)
#define __expf expf
#define __logf logf
#define __log2f log2f
#define __log10f log10f
#define __exp10f exp10f
#define __sinf sinf
#define __cosf cosf
#define __tanf tanf
#define __powf powf
#define __ldg(p) (*(p))
static float __fdividef(float a, float b) { return a / b; }
static float rsqrtf(float a) { return 1 / sqrtf(a); }
#define __shfl_sync(mask, value, ...) (value)
#define __shfl_up_sync(mask, value, ...) (value)
#define __shfl_down_sync(mask, value, ...) (value)
#define __shfl_xor_sync(mask, value, ...) (value)
#define __activemask() 0xffffffffu
struct Dim { unsigned x, y, z; };
static Dim threadIdx, blockIdx, blockDim, gridDim;
static float atomicAdd(float* a, float b) { float old = *a; *a += b; return old; }
static int atomicAdd(int* a, int b) { int old = *a; *a += b; return old; }
"""


def recording(text: str, entry: str, parameters: Sequence[tuple[str, str]]) -> str:
    """Return a C or CUDA function with its pointer parameters replaced by references to recording pointers."""
    listed = ", ".join(f"Recorded<{C_NAMES[dtype]}>& {name}" for name, dtype in parameters)
    return re.sub(rf"void\s+((?:__launch_bounds__\([^)]*\)\s*)?){re.escape(entry)}\s*\([^)]*\)", f"void {entry}({listed})", text, count=1)


def recording_pointers(parameters: Sequence[tuple[str, str]], capacity: int, wanted: Mapping[str, int]) -> list[str]:
    """Return the C++ lines that declare the recording pointers. `wanted`: parameter -> how many elements from the first are counted when touched."""
    return [
        f"  auto {name} = recorded<{C_NAMES[dtype]}>({capacity}, {'0.5f' if dtype.startswith('f') else '0'}, {wanted.get(name, capacity)});"
        for name, dtype in parameters
    ]


def kernel_with_recording(text: str, kernel: str, parameters: Sequence[tuple[str, str]]) -> list[str]:
    """Return the C++ text of a CUDA kernel that takes recording pointers, after the definitions that it needs."""
    return [COMMON, CUDA, recording(text.replace('extern "C"', ""), kernel, parameters)]


def call_of(function: str, parameters: Sequence[tuple[str, str]]) -> str:
    """Return the C++ call of a function with its recording pointers."""
    return f"{function}({', '.join(name for name, _ in parameters)})"


def bad_of(parameters: Sequence[tuple[str, str]]) -> str:
    """Return the C++ expression that is above 0 if an access was outside a recording pointer's memory."""
    return " + ".join(f"{name}.bad" for name, _ in parameters)


def c_sizes(c: str, entry: str, parameters: Sequence[tuple[str, str]], capacity: int) -> dict[str, int] | str:
    """Return the largest index + 1 of every parameter of a C function, or why it could not be recovered."""
    body = recording(c.replace("restrict ", ""), entry, parameters)
    lines = [COMMON, body, 'extern "C" void probe(long* results_) {', *recording_pointers(parameters, capacity, {})]
    lines += [f"  {call_of(entry, parameters)};"]
    for number, (name, _) in enumerate(parameters):
        lines.append(f"  results_[{2 * number}] = {name}.top + 1; results_[{2 * number + 1}] = {name}.bad;")
    results = _run("\n".join([*lines, "}", ""]), 2 * len(parameters))
    if isinstance(results, str):
        return results
    bad = [name for number, (name, _) in enumerate(parameters) if results[2 * number + 1]]
    return f"{bad[0]} is read or written beyond {capacity} elements" if bad else {n: results[2 * k] for k, (n, _) in enumerate(parameters)}


def _run(text: str, results: int) -> list[int] | str:
    try:
        library = native.build(text, flags=FLAGS)
        with Program(library, "probe", [Buffer("results", "int64", results, "output")]) as program:
            program.fill({})
            program.call(timeout=PROBE_SECONDS)
            return [int(value) for value in program.outputs()["results"]]
    except WarpwrightError as error:
        return one_line(error)
