"""The header that declares CUDA is parsed once: translations and refusals are the same, and a header that cannot be taken is made anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile
from warpwright.domains.transpile.frontend import units

TEXT = """
namespace own { __device__ float half(float v) { return v / 2; } }
#define EACH(name, by) __global__ void name(float* x, int n) { \\
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = own::half(sqrtf(x[i])) * by; }
EACH(first, 2)
EACH(second, 3.0f)
extern "C" __global__ void third(int* x) {
  __shared__ int s[32]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[31 - threadIdx.x]; }
template <class T> __global__ void fourth(T* x) { atomicAdd(x, T(1)); }
template <class T> __device__ T turned(T v) { for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(0xffffffffu, v, d); return v; }
namespace own { template <class T> __device__ constexpr T met(T v) { __syncthreads(); return v; } }
template <> __device__ int turned<int>(int v) { return __shfl_sync(0xffffffffu, v, 3); }
__global__ void fifth(float* x) { x[threadIdx.x] = own::met(turned(x[threadIdx.x])); }
__global__ void sixth(int* x) { x[threadIdx.x] = turned(x[threadIdx.x]); }
"""
WRONG = "void host() {}\n__global__ void k(int* x) { __shared__ int s = 3; x[0] = s; }"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    units._kept.cache_clear()
    yield tmp_path
    units._kept.cache_clear()


def translated() -> str:
    with pytest.raises(transpile.Refusal, match=r"input.cu:2.*expected s without a value"):
        transpile.compile_text(WRONG)
    return transpile.compile_text(TEXT, instances=["fourth<int>"]).source


def test_the_header_that_is_kept_says_what_the_header_does(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "_kept", lambda: None)
    plain = translated()
    monkeypatch.undo()
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(cache))
    kept = translated()
    assert kept == plain and len(list(cache.glob("*.pch"))) == 1


@pytest.mark.parametrize("content", [None, b"", b"CPCH", b"no header"])
def test_a_header_that_cannot_be_taken_is_made_anew(cache: Path, content: bytes | None) -> None:
    wanted = translated()
    [kept] = cache.glob("*.pch")
    size = kept.stat().st_size
    if content is None:
        kept.unlink()
    else:
        kept.write_bytes(content)
    assert translated() == wanted and kept.stat().st_size == size


def test_without_a_folder_to_keep_it_in_it_is_parsed_each_time(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cache / "file").touch()
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(cache / "file"))
    assert translated() and not list(cache.glob("*.pch"))
