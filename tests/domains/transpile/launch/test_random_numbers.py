"""Random numbers in device code: Philox4_32_10 as cuRAND has it, against the known answers of its authors and a second writing in Python."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile
from warpwright.domains.transpile.errors import Refusal

TEXT = r"""
#include <curand_kernel.h>
__device__ float dropped(float x, float p, curandStatePhilox4_32_10_t* state) { return curand_uniform(state) < p ? 0.f : x; }
__global__ void numbers(unsigned* y, unsigned long long seed, unsigned long long sequence, unsigned long long offset, int n) {
  curandStatePhilox4_32_10_t state;
  curand_init(seed, sequence + threadIdx.x, offset, &state);
  for (int i = 0; i < n; ++i) y[threadIdx.x * n + i] = curand(&state);
}
__global__ void uniforms(float4* y, float* z) {
  curandStatePhilox4_32_10_t state;
  curand_init(7, threadIdx.x, 0, &state);
  y[threadIdx.x] = curand_uniform4(&state);
  z[threadIdx.x] = dropped(1.f, 0.25f, &state);
}
"""


def philox(counter: int, key: int) -> list[int]:
    """Return the four numbers of a counter of 128 bits."""
    c, k = [counter >> 32 * i & 0xFFFFFFFF for i in range(4)], [key & 0xFFFFFFFF, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return c


@pytest.mark.compiler
def test_philox_gives_the_known_numbers() -> None:
    assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # Random123's known answers
    assert philox(2**128 - 1, 2**64 - 1) == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    kernels = transpile.compile_text(TEXT).load()
    y = np.zeros((4, 11), np.uint32)
    for seed, sequence, offset in ((0, 0, 0), (2**40 + 3, 2**33, 6), (5, 1, 4 * (2**62) - 3)):
        kernels["numbers"][1, 4](y, seed, sequence, offset, 11)
        for thread in range(4):
            first = ((sequence + thread) << 64) + offset // 4
            wanted = [number for block in range(4) for number in philox((first + block) % 2**128, seed)]
            assert y[thread].tolist() == wanted[offset % 4 :][:11]


@pytest.mark.compiler
def test_uniform_numbers_are_above_zero_and_at_most_one() -> None:
    kernels = transpile.compile_text(TEXT).load()
    y, z = np.zeros((256, 4), np.float32), np.zeros(256, np.float32)
    kernels["uniforms"][1, 256](y, z)
    wanted = np.array([philox(thread << 64, 7) for thread in range(256)]) * 2.0**-32 + 2.0**-33
    assert np.abs(y - wanted).max() < 1e-7 and y.min() > 0 and y.max() <= 1
    assert 0.6 < z.mean() < 0.9  # a quarter is dropped


def test_other_generators_are_refused() -> None:
    with pytest.raises(Refusal, match="curandStateScrambledSobol32"):
        transpile.compile_text("__global__ void k(float* x) { curandStateScrambledSobol32 s; curand_init(1, 0, 0, &s); x[0] = curand_uniform(&s); }")
