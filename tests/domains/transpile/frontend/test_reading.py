"""What the front end reads: guards of CUDA's headers in sources of the host's compiler, and parameters without names."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile
from warpwright.domains.transpile.frontend import source

pytestmark = pytest.mark.compiler

ASKS = """#ifdef __CUDACC__
int by_nvcc;
#endif
#ifdef __DRIVER_TYPES_H__
int before;
#endif
#include <{header}>
#ifdef __DRIVER_TYPES_H__
int runtime;
#endif
#ifdef __cuda_cuda_h__
int driver;
#endif
{more}
"""


@pytest.mark.parametrize(
    ("name", "header", "more", "seen"),
    [
        ("host.cpp", "cuda_runtime.h", "", {"runtime"}),
        ("host.cpp", "cublas_v2.h", "", {"runtime"}),
        ("host.cc", "cuda.h", "", {"driver"}),
        ("host.cpp", "nvrtc.h", "", set()),
        ("device.cpp", "cuda.h", "__global__ void k() {}", {"by_nvcc", "before", "runtime", "driver"}),
        ("device.cu", "cuda.h", "", {"by_nvcc", "before", "runtime", "driver"}),
    ],
)
def test_guards_stand_for_what_was_included(name: str, header: str, more: str, seen: set[str]) -> None:
    read = source.read(ASKS.format(header=header, more=more), name)
    assert {word for word in ("by_nvcc", "before", "runtime", "driver") if word in read.text} == seen
    for word, line in (("runtime", 9), ("driver", 12)):
        if word in seen:
            assert read.line(read.text.index(word)) == line


def test_parameters_without_names() -> None:
    text = "__global__ void k(float* x, int /*rows*/, int n, int /*columns*/) { x[threadIdx.x] = n; }"
    made = transpile.compile_text(text)
    assert made.kernels["k"].tier == "vectors"
    x = np.zeros(4, np.float32)
    made.load()["k"][1, 4](x, 1, 2, 3)
    assert x.tolist() == [2.0] * 4
