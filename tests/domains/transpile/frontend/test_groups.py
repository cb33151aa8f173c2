"""Cooperative groups are written out as the operations that they stand for; what cannot be keeps its text."""

from __future__ import annotations

import pytest

from warpwright.domains import transpile
from warpwright.domains.transpile.frontend.text.groups import desugar
from warpwright.domains.transpile.integers import RANK

HEAD = "namespace cg = cooperative_groups;\n"
RANK_OF = "threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)"


def written(body: str, head: str = HEAD) -> str:
    return " ".join(desugar(f"{head}__global__ void k(int* x, int v) {{\n{body}\n}}").partition("{\n")[2].rpartition("\n}")[0].split())


@pytest.mark.parametrize(
    ("body", "plain"),
    [
        ("cg::thread_block b = cg::this_thread_block(); cg::sync(b);", "__syncthreads();"),
        ("auto b = cg::this_thread_block(); b.sync(); x[b.thread_rank()] = b.group_index().x;", f"__syncthreads(); x[({RANK_OF})] = blockIdx.x;"),
        ("cg::this_thread_block().sync();", "__syncthreads();"),
        ("auto t = cg::tiled_partition<32>(cg::this_thread_block()); v += t.shfl_down(v, 4);", "v += __shfl_down_sync(0xffffffffu, v, 4, 32);"),
        ("cg::thread_block_tile<32> t = cg::tiled_partition<32>(cg::this_thread_block()); v = t.any(v > 1) + t.size();",
         "v = __any_sync(0xffffffffu, v > 1) + 32u;"),
        ("auto b = cg::this_thread_block(); auto t = cg::tiled_partition<32>(b); auto s = cg::tiled_partition<8>(t); v = s.meta_group_rank();",
         f"v = (({RANK_OF} % 32u) / 8u);".replace("((", "((").replace(f"({RANK_OF}", f"(({RANK_OF})")),
        ("auto g = cg::this_grid(); v = g.num_blocks();", "v = ((unsigned long long)gridDim.x * gridDim.y * gridDim.z);"),
    ],
)  # fmt: skip
def test_known_groups_are_written_out(body: str, plain: str) -> None:
    assert written(body) == plain


def test_the_namespace_may_be_used_or_named_in_full() -> None:
    assert written("thread_block b = this_thread_block(); sync(b);", "using namespace cooperative_groups;\n") == "__syncthreads();"
    full = "auto b = cooperative_groups::this_thread_block(); cooperative_groups::sync(b);"
    assert written(full, "") == "__syncthreads();"


def test_a_group_that_is_handed_on_says_all_by_its_type() -> None:
    text = written("auto t = cg::tiled_partition<16>(cg::this_thread_block()); f(t);")
    assert text == "cooperative_groups::thread_block_tile<16> t; f(t);"


def test_parameters_of_functions_are_groups() -> None:
    text = desugar(HEAD + "__device__ void f(const cg::thread_block& b, cg::thread_block_tile<32> t) { b.sync(); t.sync(); }")
    assert "{ __syncthreads(); __syncwarp(0xffffffffu); }" in text


@pytest.mark.parametrize(
    "body",
    [
        "auto g = cg::coalesced_threads(); v = g.shfl(v, 0);", "cg::thread_group g = cg::tiled_partition(cg::this_thread_block(), 16); g.sync();",
        "auto g = cg::this_grid(); g.sync();", "auto t = cg::tiled_partition<v>(cg::this_thread_block()); t.sync();",
        "auto t = cg::tiled_partition<32>(cg::this_thread_block()); v = t.match_any(v);",
    ],
)  # fmt: skip
def test_what_is_not_known_keeps_its_operation_and_stays_on_fibers(body: str) -> None:
    assert written(body).split("; ")[-1] == body.split("; ")[-1]
    head = "template <int v> " if "<v>" in body else ""
    value = "" if head else "int v = x[0];"
    program = transpile.compile_text(f"#include <cooperative_groups.h>\n{HEAD}{head}__global__ void k(int* x) {{ {value} {body} }}")
    assert program.kernels["k"].tier == "fibers"
    assert "of a cooperative group" in program.kernels["k"].reason


def test_variables_of_other_things_and_scopes_are_left_alone() -> None:
    inner = "{ cg::thread_block b = cg::this_thread_block(); }"
    text = f"struct Other {{ void sync(); }}; void f(Other b) {{ b.sync(); }} __device__ void g() {{ {inner} Other b; b.sync(); }}"
    assert desugar(HEAD + text).count("b.sync();") == 2


def test_lines_stay_where_they_are() -> None:
    text = HEAD + "__global__ void k() {\n  cg::thread_block b =\n    cg::this_thread_block();\n  cg::sync(\n    b);\n}\n"
    assert desugar(text).count("\n") == text.count("\n")


def test_a_reduction_is_a_device_function_that_is_inlined() -> None:
    kernel = (
        "__global__ void k(float* x) { auto t = cg::tiled_partition<32>(cg::this_thread_block()); float v = x[threadIdx.x]; "
        "x[threadIdx.x] = cg::reduce(t, v, cg::plus<float>()); }"
    )
    program = transpile.compile_text("#include <cooperative_groups/reduce.h>\n" + HEAD + kernel)
    assert program.kernels["k"].tier == "vectors"
    assert RANK not in program.source.partition("// ---- input.cu")[2]
