"""Numbers behind types that a template leaves open: their operators are operators, and the loops over them are vectorised."""

from __future__ import annotations

import pytest

from warpwright.domains import transpile

HEAD = """template <int T> __global__ void k(float* out, const float* in) {{
  __shared__ {type} s[T][T]; s[0][threadIdx.x] = in[threadIdx.x]; __syncthreads(); """


def translated(type_name: str, rest: str) -> transpile.KernelInfo:
    text = HEAD.format(type=type_name) + rest + " }"
    return transpile.compile_text(text, instances=["k<8>"]).kernels["k"]


@pytest.mark.parametrize(
    "rest",
    [
        "float a = 0; for (int i = 0; i < T; ++i) a += s[0][i] * s[0][threadIdx.x]; out[threadIdx.x] = a;",
        "out[threadIdx.x] = (s[0][threadIdx.x] + 1.0f) / (s[0][0] - 2) * in[0];",
        "out[threadIdx.x] = s[0][threadIdx.x] > s[0][0] ? s[0][threadIdx.x] : s[0][0];",
        "s[0][threadIdx.x] *= s[0][threadIdx.x]; out[threadIdx.x] = s[0][threadIdx.x];",
    ],
)
def test_numbers(rest: str) -> None:
    for name in ("float", "int"):
        found = translated(name, rest)
        assert (found.tier, found.reason) == ("vectors", "")

