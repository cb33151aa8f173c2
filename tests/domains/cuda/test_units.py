"""What a CUDA file is made into before anything is rewritten: own headers in their places, host functions that no entry comes to left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from warpwright import domains
from warpwright.domains.cuda import taskfile, unit
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import techniques
from warpwright.errors import TaskError

pytest.importorskip("clang")

PROGRAM = """#include <cstdio>
#include <vector>
#include "own.h"

struct Pair { int a, b; };
static int helper(int n) { return n + SIZE - 1; }
void check(std::vector<float>& x) {
#ifdef LOUD
    printf("checked");
#endif
}
__global__ void scale(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = twice(x[i]);
}
__global__ void unused(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 0;
}
int main(int argc, char** argv) {
    float* x;
    cudaMalloc(&x, 4096);
    unused<<<8, 128>>>(x, 1024);
    std::vector<float> host(1024);
    check(host);
    return 0;
}
int count(int n) { return helper(n) / SIZE; }
extern "C" void run(float* x, int n) {
    scale<<<count(n), SIZE>>>(x, n);
}
"""

HEADER = """#pragma once
#include "size.h"
__device__ float twice(float x) { return x + x; }
"""

TASK = """import torch

def get_inputs(): return [torch.randn(1000)]
def reference(x): return 2 * x
def launch(kernel, x):
    out = x.clone()
    kernel.run(out, out.numel())
    return out
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("k.cu", PROGRAM), ("own.h", HEADER), ("size.h", "#define SIZE 128\n"), ("k_task.py", TASK)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_own_headers_stand_in_their_places_once(folder: Path) -> None:
    (folder / "k.cu").write_text(PROGRAM.replace('#include "own.h"', '#include "own.h"\n#include "size.h"\n#include "absent.h"'))
    text = taskfile.whole(folder / "k.cu")
    assert text.count("#define SIZE") == 1 and "twice(float x)" in text and "#pragma once" not in text and '#include "absent.h"' in text


def test_an_edited_header_is_another_task(folder: Path) -> None:
    task = domains.describe(folder / "k.cu")
    program = domains.space(task, "cpu").candidate(()).source.text
    assert "twice(float x)" in program and 'include "own.h"' not in program
    (folder / "size.h").write_text("#define SIZE 64\n")
    assert domains.describe(folder / "k.cu").key != task.key
    with pytest.raises(TaskError, match="header"):
        domains.space(task, "cpu")


def test_a_file_without_own_headers_keeps_its_key(folder: Path) -> None:
    (folder / "k.cu").write_text(PROGRAM.replace('#include "own.h"', "#define SIZE 32\n__device__ float twice(float x) { return x + x; }"))
    assert "headers" not in dict(domains.describe(folder / "k.cu").options)


def test_host_functions_that_no_entry_comes_to_are_left_out(folder: Path) -> None:
    whole = taskfile.whole(folder / "k.cu")
    text = unit.trimmed(whole, unit.expect_entries(whole, "k.cu"))
    assert "main" not in text and "void check" not in text and "vector<float>" not in text
    assert "struct Pair" not in text
    for kept in ("static int helper", "int count", "void run", "__global__ void scale", "__global__ void unused", "#include <vector>"):
        assert kept in text
    assert unit.trimmed(text, unit.expect_entries(text, "k.cu")) == text


def test_kernels_that_no_entry_launches_are_not_rewritten(folder: Path) -> None:
    space = domains.space(domains.describe(folder / "k.cu"), "cpu")
    places = {action.at for action in space.actions(space.start)}
    assert "scale" in places and "unused" not in places


@pytest.mark.parametrize("inside", ["#if A\n}\n#else\n}\n#endif\n", "#endif\n#if 1\n}\n"])
def test_a_function_that_the_preprocessor_cuts_in_two_stays(inside: str) -> None:
    kernel = '__global__ void k(float* x) { x[0] = 1; }\nextern "C" void run(float* x) { k<<<1, 1>>>(x); }\n'
    text = f"#if 1\nint main() {{\n    return 0;\n{inside}\n#endif\n{kernel}"
    assert unit.trimmed(text, {"run": "P"}).count("#endif") == text.count("#endif")


def test_classes_that_no_entry_comes_to_are_left_out() -> None:
    used = "struct Pair { int a; };\nstruct Twice : Pair { __device__ float of(float x) { return x + x; } };\nclass Kept { int size; } kept;\n"
    unused = "class Library {\n    handle_t handle;\npublic:\n    void launch(float* x) { k<<<1, 1>>>(x); }\n};\n"
    unused += "struct Timer final { double began; };\n"
    template = "template <class T> struct Any { T one; };\n"
    rest = '__global__ void k(float* x) { x[0] = Twice().of(1); }\nextern "C" void run(float* x) { k<<<1, 1>>>(x); }\n'
    left = unit.trimmed(used + unused + template + rest, {"run": "P"})
    assert left.split() == (used + template + rest).split()


def test_what_is_left_is_still_read() -> None:
    made = Plan(unit.trimmed(PROGRAM.replace('#include "own.h"', "#define SIZE 64\n__device__ float twice(float x) { return x; }"), {"run": "Pi"}))
    assert set(made.unit.kernels) == {"scale"}
    assert {technique.name for technique in techniques("cpu") if list(technique.sites(made))} >= {"block", "coarsen"}


def test_a_rewritten_text_includes_what_the_given_one_did() -> None:
    text = """#include "cuda_fp16.h"
#include <cstdio>
#include <cublas_v2.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <sys/time.h>
#endif
__global__ void k(half* x, int n) { if (threadIdx.x < n) x[threadIdx.x] = __float2half(1.0f); }
extern "C" void run(half* x, int n) { k<<<1, 32>>>(x, n); }
"""
    head = unit.read(text).head
    assert head.splitlines() == ['#include "cuda_fp16.h"', "#include <cstdio>", "#include <cublas_v2.h>", "#include <sys/time.h>"]
    assert unit.read(unit.read(text).changed([])).head == head
