"""cuBLAS against NumPy: steps that are negative, and its calls of before CUDA 4, without a handle."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from executables import executable

from warpwright.domains import transpile

TEXT = """
#include <cublas.h>
#include <cstdio>
static void show(const float* p, int n) { for (int i = 0; i < n; ++i) printf("%g ", p[i]); printf("\\n"); }
int main() {
  float h[6] = {1, 2, 3, 4, 5, 6}, r[6], *a, *c, two = 2, one = 1, zero = 0;
  cublasInit(); cublasAlloc(6, sizeof(float), (void**)&a); cublasAlloc(6, sizeof(float), (void**)&c);
  cublasSetVector(6, sizeof(float), h, 1, a, 1); cublasSetVector(6, sizeof(float), h, 1, c, 1);
  cublasSgemm('n', 'T', 2, 2, 3, 2.f, a, 2, a, 2, 0.f, c, 2); cublasGetVector(4, sizeof(float), c, 1, r, 1); show(r, 4);
  cublasSetVector(6, sizeof(float), h, 1, c, 1);
  cublasSaxpy(3, 10.f, a, -2, c, 1); cublasGetVector(3, sizeof(float), c, 1, r, 1); show(r, 3);
  r[0] = cublasSdot(6, a, 1, a, -1); r[1] = cublasSasum(6, a, 1); r[2] = cublasIsamax(6, a, 1); r[3] = cublasIsamax(6, a, -1);
  r[4] = cublasSnrm2(2, a, 3); show(r, 5);
  cublasSgemm('x', 'n', 2, 2, 2, 1.f, a, 2, a, 2, 0.f, c, 2); const int bad = cublasGetError(), good = cublasGetError();
  printf("%d %d\\n", bad == CUBLAS_STATUS_INVALID_VALUE, good);
  cublasHandle_t handle; cublasCreate(&handle);
  r[0] = cublasSgemv(handle, CUBLAS_OP_N, 2, 3, &two, a, 2, h, -1, &zero, c, -2); r[1] = c[2]; r[2] = c[0]; show(r, 3);
  cublasScopy(handle, 6, h, -1, c, 1); cublasSscal(handle, 6, &two, c, -1); cublasSger(handle, 2, 3, &one, h, -1, h, 1, c, 2); show(c, 6);
  cublasFree(a); cublasFree(c); cublasShutdown();
}
"""


@pytest.mark.compiler
def test_old_calls_and_negative_steps() -> None:
    done = subprocess.run([executable(transpile.compile_text(TEXT, host=True).source)], capture_output=True, text=True, timeout=60)
    assert not done.returncode, done.stderr
    seen = [np.array(line.split(), float) for line in done.stdout.splitlines()]
    h = np.arange(1.0, 7)
    a = h.reshape(3, 2).T
    assert np.allclose(seen[0], (2 * a @ a.T).T.ravel())
    assert np.allclose(seen[1], h[:3] + 10 * h[:5][::-2])
    assert np.allclose(seen[2], [h @ h[::-1], h.sum(), 6, 0, np.hypot(1, 4)])
    assert seen[3].tolist() == [1, 0]
    assert np.allclose(seen[4], [0, *(2 * a @ h[2::-1])])
    assert np.allclose(seen[5], (h[::-1].reshape(3, 2) + np.outer(h[:3], h[1::-1])).ravel())
