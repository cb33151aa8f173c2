"""What no tier translates is refused with file, line, code and reason."""

from __future__ import annotations

import pytest

from warpwright.domains import transpile
from warpwright.errors import UsageError

REFUSED = {
    "dynamic-parallelism": "__global__ void child();\n__global__ void k() {\n  child<<<1, 1, 0, cudaStreamTailLaunch>>>();\n}",
    "library-call": "__global__ void k(float* x) {\n  // cute::Layout in a comment is nothing\n  x[0] = cutlass::half_t(x[0]);\n}",
    "tma": "__global__ void k(float* x) {\n  int y = 0;\n  cuda::barrier<0> b; mbarrier_init(b);\n}",
    "texture": "__device__ float f(float);\n__global__ void k(float* x,\n    cudaTextureObject_t image) { x[0] = tex2DLod<float>(image, 0, 0, 1); }",
    "cluster": "__global__ void k(float* x) {\n  int i = 0;\n  auto c = cooperative_groups::this_cluster();\n}",
    "ptx": '__global__ void k(float* x) {\n  const char* text = "asm";\n  asm volatile("wgmma.fence.sync.aligned;");\n}',
    "divergent-barrier": "__global__ void k(float* x) {\n  if (threadIdx.x % 2 == 0) {\n    __syncthreads();\n  }\n}",
}


GOOD = "__global__ void good(int* x) { x[0] = 1; }\n"
NOT_CUDA = {
    "the host's function": "int add(int a) { return a + 1; }\n" + GOOD + "__global__ void k(int* x) { x[0] = add(1); }",
    "the host's constructor": "struct P { int a; P(int v) : a(v) {} };\n" + GOOD + "__global__ void k(int* x) { P p(1); }",
    "a shared value": GOOD + "__global__ void k(int* x) {\n  __shared__ int n = 3; x[0] = n; }",
    "a result": GOOD + "\n__global__ int k(int* x) { return x[0]; }",
    "a vector": GOOD + "__global__ void k(int* x) {\n  std::vector<int> v(3); x[0] = v.size(); }",
}


@pytest.mark.parametrize("what", NOT_CUDA)
def test_what_no_cuda_compiler_takes_is_refused(what: str) -> None:
    with pytest.raises(transpile.Refusal) as caught:
        transpile.compile_text(NOT_CUDA[what], name="kernel.cu", host=True)
    assert (caught.value.line, caught.value.code) == (3, "not-cuda")
    program = transpile.compile_text(NOT_CUDA[what], name="kernel.cu", broken=[caught.value])
    assert {name: info.tier == "refused" for name, info in program.kernels.items()} == {"good": False, "k": True}


def test_what_may_run_on_both_sides_is_not_refused() -> None:
    text = """constexpr int three() { return 3; }
        struct Q { int a; Q() = default; constexpr int twice() const { return 2 * a; } };
        __host__ __device__ int both(int n) { std::vector<int>* none = nullptr; return none ? 1 : n; }
        template <class F> __global__ void with(int* x, F f) { __shared__ Q q; q.a = 2; x[0] = f(x[1]) + three() + q.twice() + both(2); }
        void run(int* x) { with<<<1, 1>>>(x, [] __device__ (int v) { return v; }); }"""
    transpile.compile_text(text, host=True)


@pytest.mark.parametrize("code", REFUSED)
def test_refused_with_its_line(code: str) -> None:
    with pytest.raises(transpile.Refusal) as caught:
        transpile.compile_text(REFUSED[code], name="kernel.cu")
    assert (caught.value.file, caught.value.line, caught.value.code) == ("kernel.cu", 3, code)
    assert "kernel.cu:3:" in str(caught.value)


@pytest.mark.parametrize(
    "branch",
    [
        "if (n > 3) __syncthreads();", "if (threadIdx.x < n) __syncthreads();", "if (threadIdx.x < blockDim.x) __syncthreads();",
        "if (threadIdx.x < 2048) __syncthreads();", "if (threadIdx.x < 16) { __syncthreads(); } else { __syncthreads(); }",
        "if (threadIdx.x >= 16) return; if (threadIdx.x < 16) __syncthreads();",
        "if (threadIdx.x < 16) __syncthreads();",
        "for (int i = 0; i < n; ++i) { if (threadIdx.x == 1) return; if (threadIdx.x == 0) __syncthreads(); }",
        "int t = threadIdx.x; int& r = t; r = 0; if (t == 0) __syncthreads();", "if (threadIdx.x - 1 >= 0) __syncthreads();",
        "int y = threadIdx.y; if (threadIdx.x == 0 && y >= 0) __syncthreads();",
    ],
)  # fmt: skip
def test_a_barrier_that_may_be_reached_by_all_is_not_refused(branch: str) -> None:
    transpile.compile_text(f"__global__ void k(int n) {{ {branch} }}")


def test_a_barrier_is_judged_by_the_block_shapes_that_are_known() -> None:
    text = "__global__ void k() {\n  int t = threadIdx.x;\n  if (t < 48) __syncthreads();\n}"
    transpile.compile_text(text)
    transpile.compile_text(text, blocks={"k": (48, 1, 1)})
    with pytest.raises(transpile.Refusal, match="t < 48"):
        transpile.compile_text(text, blocks={"k": (64, 1, 1)})


def test_a_broken_preprocessor_line_is_named() -> None:
    with pytest.raises(transpile.Refusal, match=r"kernel.cu:2: .*needs N") as caught:
        transpile.compile_text("\n#error needs N\n__global__ void k() {}", name="kernel.cu")
    assert caught.value.code == "front-end"


def test_a_source_without_kernels_is_refused() -> None:
    with pytest.raises(transpile.Refusal, match="at least one __global__"):
        transpile.compile_text("int main() {}")


def test_every_code_is_documented_and_tested() -> None:
    from warpwright.domains.transpile.errors import CODES

    assert set(CODES) == set(REFUSED) | {"front-end", "compiler", "not-cuda"}


def test_wrong_tier_and_instance_are_named() -> None:
    with pytest.raises(UsageError, match="expected a tier"):
        transpile.compile_text("__global__ void k() {}", tier="fast")
    with pytest.raises(UsageError, match="expected an instance"):
        transpile.compile_text("__global__ void k() {}", instances=["other<int>"])


def test_a_barrier_that_some_threads_miss_is_named_when_it_runs() -> None:
    """There is another behind it: a kernel's last barriers wait for the threads that reach them (test_corners.py)."""
    import numpy as np

    text = "__global__ void k(int* x) {\n  if (x[threadIdx.x] > 3) {\n    x[threadIdx.x] = 0;\n    __syncthreads();\n  }\n  __syncthreads();\n}"
    kernel = transpile.compile_text(text).load()["k"]
    kernel[1, 32](np.full(32, 9, np.int32))
    kernel[1, 32](np.zeros(32, np.int32))
    with pytest.raises(transpile.LaunchFailed, match="line 2"):
        kernel[1, 32](np.arange(32, dtype=np.int32))


def test_what_kernels_alone_do_not_reach_refuses_nothing() -> None:
    text = (
        "#include <vector>\n__device__ float helper(float x) { return cutlass::half_t(x); }\n"
        "__global__ void bad(float* x) { x[0] = helper(x[0]); }\ntemplate <class T> __global__ void old(T* x) { asm(\"wgmma.fence;\"); }\n"
        "__global__ void good(float* x) { x[0] = 1; }\nvoid run(float* x) { bad<<<1, 1>>>(x); good<<<1, 1>>>(x); }\n"
    )
    program = transpile.compile_text(text, "k.cu")
    assert {name: kernel.tier for name, kernel in program.kernels.items()} == {"good": "vectors", "old": "refused", "bad": "refused"}
    assert "cutlass" not in program.source.partition("// ---- k.cu")[2]
    assert list(program.exports) == ["good"]
    with pytest.raises(transpile.Refusal, match=r"k.cu:4: .*inline PTX"):
        transpile.compile_text(text, "k.cu", instances=["old<float>"])
    with pytest.raises(transpile.Refusal, match="cutlass::"):
        transpile.compile_text(text, "k.cu", host=True)


def test_a_refused_template_takes_with_it_who_calls_it_and_no_one_else() -> None:
    program = transpile.compile_text("""
template <class T> __device__ T bad(T x) { asm("wgmma.fence;"); return x; }
template <class T> __device__ T good(T x) { return x + 1; }
__global__ void calls(unsigned* x) { x[0] = bad(x[0]); }
__global__ void other(unsigned* x) { x[0] = good(x[0]); }
""")
    assert {name: info.tier == "refused" for name, info in program.kernels.items()} == {"calls": True, "other": False}


def test_a_header_that_is_nowhere_is_named_where_it_is_asked_for() -> None:
    text = "#if 0\n#include <windows.h>\n#endif\n#include <cstdio>\n#include \"nowhere.h\"\n__global__ void k() {}"
    with pytest.raises(transpile.Refusal, match=r"kernel.cu:5: expected the header nowhere.h.*--include"):
        transpile.compile_text(text, name="kernel.cu")


def test_an_exchange_without_a_barrier_is_told_of() -> None:
    text = "__global__ void k(float* x) {{ __shared__ float s[32]; int i = threadIdx.x; s[i] = x[i]; __syncthreads();\n{} x[i] = s[i]; }}"
    kernel = transpile.compile_text(text.format("s[i] += s[i ^ 8];")).kernels["k"]
    assert (kernel.tier, kernel.reason.partition(":")[0]) == ("fibers", "line 2")
    assert "lockstep" in kernel.reason
    fine = "float v = s[i ^ 8]; __syncthreads(); s[i] += v; if (i < 8) s[i] += s[i + 8];"
    assert transpile.compile_text(text.format(fine)).kernels["k"].tier != "fibers"
