"""Functions of the host that what is kept needs, and those that are left out."""

from __future__ import annotations

import pytest

pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")

from warpwright.domains import transpile

KERNEL = "__global__ void k(float* p) { __shared__ float s[sizeof(float) == 4 ? 4 : 8]; s[0] = 1; p[threadIdx.x] = s[0]; }\n"


def source(text: str) -> str:
    return transpile.compile_text(text + KERNEL, "pieces.cu").source


def test_operators_and_what_values_are_made_of_stay() -> None:
    text = source("struct V { float x; };\ninline V operator+(V a, V b) { return {a.x + b.x}; }\n"
                  "template <class T> struct Op { T go(T a, T b) const { return a + b; } };\n"
                  "static int blocks(int n) { return (n + 31) / 32; }\nstruct Table { int n; Table(int m) : n(m) {} };\n"
                  "static Table table(blocks(70));\n")  # fmt: skip
    assert "operator+(V a, V b)" in text and "blocks(int n)" in text


def test_all_functions_of_a_kept_name_stay_and_others_do_not() -> None:
    text = source("static int size(int n);\nstatic int size(float n) { return 2; }\nstatic int size(int n) { return 1; }\n"
                  "struct S { int n = size(3); };\nvoid other(int);\nvoid other(int n) { n = 4; }\n")  # fmt: skip
    assert text.count("static int size(") == 3 and "n = 4" not in text


def test_a_type_with_an_alignment_stays_whatever_its_comments_say() -> None:
    text = source("/// Tensor Float\nstruct alignas(4) tf {\n  unsigned bits;\n  static unsigned of(float s) { return (unsigned)s; }\n};\n"
                  "template <class T> struct Tensor { T* p; };\ntypedef Tensor<float> Floats;\n"
                  "__device__ inline bool operator==(tf a, tf b) { return a.bits == b.bits; }\nvoid f() { torch::Tensor(); }\n")  # fmt: skip
    assert "struct alignas(4) tf {" in text and "typedef Tensor<float> Floats;" in text and "torch::" not in text


def test_a_refused_piece_takes_no_other_with_it_for_its_alignment() -> None:
    text = source('struct alignas(8) Bad { unsigned x; __device__ void f() { asm volatile("griddepcontrol.nothing;"); } };\n'
                  "struct alignas(8) Good { unsigned x; };\n__device__ inline Good made() { return {1}; }\n")  # fmt: skip
    assert "struct alignas(8) Good" in text and "Bad" not in text
