"""The templates of whole operations, on the CPU target: parameters, edge sizes, awkward values; and nvcc takes each for Hopper."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from warpwright.errors import NotApplicable
from warpwright.templates import device

ENTRIES = """
extern "C" void scan(const float* x, float* out, int n) { ww_prefix_sum(x, out, n); }
extern "C" void sort(const float* x, float* out, int n) { ww_sort(x, out, n); }
extern "C" void top(const float* x, float* out, int n, int k) { ww_top(x, out, n, k); }
extern "C" void multiply(const float* a, const float* b, float* c, int m, int n, int k) { ww_product(a, b, c, m, n, k); }
extern "C" void solve(const float* x, const float* y, float* beta, int n, int m) { ww_least_squares(x, y, beta, n, m); }
extern "C" void slide(const float* x, const float* filter, float* out, int height, int width) { ww_window_product(x, filter, out, height, width); }
extern "C" void attend(const float* q, const float* k, const float* v, float* out, int rows, int keys, int heads, int depth) {
    ww_att_sizes s;
    s.rows = rows; s.keys = keys; s.depth = depth;
    s.q_head = s.k_head = s.v_head = s.o_head = depth;
    s.q_row = s.k_row = s.v_row = s.o_row = heads * depth;
    s.scale = 1.0f / sqrtf((float)depth);
    ww_attention(q, k, v, out, heads, s);
}
"""

OF_TENSOR_CORES = ("product_tf32", "normal_equations_tensor", "attention_tf32")
"""Fragments of tensor cores, translated, take minutes to build: these are compiled here, and verified on GPUs alone."""

TRANSLATED = tuple(name for name in device.NAMES if name not in OF_TENSOR_CORES)

EDGES = (1, 2, 3, 31, 32, 33, 255, 256, 257, 1000, 4095, 4096, 4097, 10001)
KINDS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nominal": lambda x: x, "ties": lambda x: (2 * x).round() / 2, "denormal": lambda x: x * 1e-40, "constant": lambda x: torch.full_like(x, 3),
    "ascending": lambda x: x.sort().values, "descending": lambda x: x.sort(descending=True).values,
}  # fmt: skip


def test_parameters_are_read_from_the_text_and_set_within_their_ranges() -> None:
    for name in device.NAMES:
        known = device.parameters(name)
        assert known and all(len(values) > 1 for values in known.values()), "each has a choice"
        for parameter, values in known.items():
            made = device.text(name, {parameter: values[-1]})
            assert re.search(rf"^#define {parameter} {values[-1]}\b", made, re.M) and device.text(name) == device.original(name)
            with pytest.raises(NotApplicable, match=parameter):
                device.text(name, {parameter: 77})
    with pytest.raises(NotApplicable, match="template"):
        device.text("no_such_operation")


def built(names: dict[str, dict[str, int]]) -> Any:
    from warpwright.targets import cuda_on_cpu

    pytest.importorskip("clang")
    functions = dict(zip(TRANSLATED, ("scan", "sort", "top", "attend", "solve", "multiply", "slide"), strict=True))
    wanted = [functions[name] for name in names]
    entries = [entry for entry in re.split(r"(?=^extern)", ENTRIES.strip(), flags=re.M) if any(f"void {one}(" in entry for one in wanted)]
    return cuda_on_cpu.library("\n".join([*(device.text(name, values) for name, values in names.items()), *entries]), "device.cu")


@pytest.fixture(scope="module")
def library() -> Any:
    return built({name: {} for name in TRANSLATED})


def call(function: Any, *values: Any) -> None:
    function(*[ctypes.c_void_p(value.data_ptr()) if isinstance(value, torch.Tensor) else value for value in values])


def errors(seen: torch.Tensor, exact: torch.Tensor) -> float:
    return float((seen.double() - exact).abs().max()) / max(float(exact.abs().max()), 1e-30)


def vector(size: int, kind: str, seed: int, offset: int = 0) -> torch.Tensor:
    """Return a vector; `offset`: elements from a multiple of 16 bytes."""
    made = KINDS[kind](torch.randn(size, generator=torch.Generator().manual_seed(seed)))
    room = torch.empty(size + 8)
    start = (-(room.data_ptr() // 4) % 4) + offset
    room[start : start + size] = made
    return room[start : start + size]


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.parametrize("kind", KINDS)
def test_vectors_at_their_edges(library: Any, kind: str) -> None:
    for size in EDGES:
        x, out = vector(size, kind, size), torch.full((size,), torch.nan)
        call(library.sort, x, out, size)
        assert torch.equal(out, x.sort().values), ("sort", size)
        for k in {1, min(size, 7), min(size, 1024)}:
            best = torch.full((k,), torch.nan)
            call(library.top, x, best, size, k)
            assert torch.equal(best, x.topk(k).values), ("top", size, k)
        positive = x.abs()
        call(library.scan, positive, out, size)
        assert errors(out, positive.double().cumsum(0)) <= 3e-7 or kind == "denormal", ("scan", size)


@pytest.mark.slow
@pytest.mark.compiler
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 9000), st.sampled_from(sorted(KINDS)), st.integers(0, 3), st.integers(0, 1 << 20))
def test_any_vector_wherever_it_begins(library: Any, size: int, kind: str, offset: int, seed: int) -> None:
    x, out = vector(size, kind, seed, offset), torch.full((size,), torch.nan)
    call(library.sort, x, out, size)
    assert torch.equal(out, x.sort().values)
    k = 1 + seed % min(size, 1024)
    best = torch.full((k,), torch.nan)
    call(library.top, x, best, size, k)
    assert torch.equal(best, x.topk(k).values)
    call(library.scan, x, out, size)
    exact = x.double().cumsum(0)
    assert float((out.double() - exact).abs().max()) <= 3e-7 * float(x.double().abs().sum()) + 1e-42


@pytest.mark.slow
@pytest.mark.compiler
def test_values_out_of_the_ordinary(library: Any) -> None:
    x = torch.tensor([1.0, float("inf"), -0.0, float("-inf"), 0.0, float("nan"), -1.0, 3e38])
    out = torch.empty(8)
    call(library.sort, x, out, 8)
    assert out[:7].tolist() == x.sort().values[:7].tolist() and bool(out[7].isnan())
    call(library.top, x, out, 8, 3)
    assert bool(out[0].isnan()) and out[1:3].tolist() == [float("inf"), float(torch.tensor(3e38))]
    hidden = torch.full((1 << 20,), -1.0)  # all that is large lies where the sample does not look, and is more than there is room for
    rest = torch.ones(1 << 20, dtype=torch.bool)
    rest[:: (1 << 20) // 32768] = False
    hidden[rest] = torch.rand(int(rest.sum()), generator=torch.Generator().manual_seed(0))
    best = torch.empty(32)
    call(library.top, hidden, best, 1 << 20, 32)
    assert torch.equal(best, hidden.topk(32).values)


@pytest.mark.slow
@pytest.mark.compiler
def test_integers_are_sorted_where_they_lie() -> None:
    made = built({"radix_sort": {"WW_SORT_WHOLE": 1}})
    for size in EDGES:
        x = torch.randint(-(1 << 31), (1 << 31) - 1, (size,), generator=torch.Generator().manual_seed(size)).to(torch.int32)
        wanted = x.sort().values
        call(made.sort, x, x, size)
        assert torch.equal(x, wanted), size


@pytest.mark.slow
@pytest.mark.compiler
def test_matrices_at_their_edges(library: Any) -> None:
    random = torch.Generator().manual_seed(0)
    for m, n, k in ((1, 1, 1), (2, 3, 1), (33, 5, 17), (128, 128, 16), (129, 127, 31), (256, 128, 48)):
        a, b, c = torch.randn(m, k, generator=random), torch.randn(k, n, generator=random), torch.full((m, n), torch.nan)
        call(library.multiply, a, b, c, m, n, k)
        assert errors(c, a.double() @ b.double()) <= 2e-6, (m, n, k)
    for height, width in ((9, 9), (10, 33), (41, 17), (73, 137), (150, 300)):
        image, weights = torch.randn(height, width, generator=random), torch.randn(9, 9, generator=random)
        out = torch.full((height - 8, width - 8), torch.nan)
        call(library.slide, image, weights, out, height, width)
        assert errors(out, torch.nn.functional.conv2d(image.double()[None, None], weights.double()[None, None])[0, 0]) <= 2e-6, (height, width)
    for n, m in ((1, 1), (3, 1), (5, 2), (33, 3), (257, 31), (70, 63), (1000, 64), (5000, 16)):
        x, y, beta = torch.randn(n, m, generator=random), torch.randn(n, generator=random), torch.full((m,), torch.nan)
        call(library.solve, x, y, beta, n, m)
        wide = x.double()
        assert errors(beta, torch.linalg.solve(wide.mT @ wide, wide.mT @ y.double())) <= 1e-6, (n, m)
    for rows, keys, heads, depth in ((1, 1, 1, 1), (2, 2, 2, 4), (31, 33, 4, 16), (33, 31, 2, 33), (65, 64, 1, 64), (64, 130, 2, 7)):
        q, k, v = (torch.randn(count, heads * depth, generator=random) for count in (rows, keys, keys))
        out = torch.full((rows, heads * depth), torch.nan)
        call(library.attend, q, k, v, out, rows, keys, heads, depth)
        wide_q, wide_k, wide_v = (one.double().reshape(len(one), heads, depth).transpose(0, 1) for one in (q, k, v))
        exact = torch.softmax(wide_q @ wide_k.mT / depth**0.5, 2) @ wide_v
        assert errors(out, exact.transpose(0, 1).reshape(rows, -1)) <= 2e-6, (rows, keys, heads, depth)


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.parametrize("which", [-1, 1])
def test_other_parameters_do_the_same(which: int) -> None:
    """Of each the last, and the second value; of a product's tile one at a time, since not all fit into shared memory together; a filter of 2 x 5."""
    chosen = {name: {p: values[which] for p, values in device.parameters(name).items()} for name in ("prefix_sum", "radix_sort")}
    chosen["radix_sort"]["WW_SORT_WHOLE"] = 0
    chosen["window_product"] = {"WW_WIN_ROWS": 2, "WW_WIN_COLUMNS": 5, "WW_WIN_EACH": 4}
    made = built({**chosen, "product": {"WW_MM_STEP": 16} if which == 1 else {"WW_MM_ROWS": 256}})
    image, weights, slid = torch.randn(70, 201), torch.randn(2, 5), torch.full((69, 197), torch.nan)
    call(made.slide, image, weights, slid, 70, 201)
    assert errors(slid, torch.nn.functional.conv2d(image.double()[None, None], weights.double()[None, None])[0, 0]) <= 2e-6
    for size in (1, 33, 257, 4097, 20001):
        x, out = vector(size, "nominal", size), torch.full((size,), torch.nan)
        call(made.sort, x, out, size)
        assert torch.equal(out, x.sort().values)
        call(made.scan, x.abs(), out, size)
        assert errors(out, x.abs().double().cumsum(0)) <= 3e-7
    for m, n, k in ((129, 127, 31), (256, 128, 48)):
        a, b, c = torch.randn(m, k), torch.randn(k, n), torch.full((m, n), torch.nan)
        call(made.multiply, a, b, c, m, n, k)
        assert errors(c, a.double() @ b.double()) <= 2e-6


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("name", device.NAMES)
def test_nvcc_takes_them_for_hopper(name: str, tmp_path: Path) -> None:
    source = tmp_path / f"{name}.cu"
    source.write_text(device.text(name))
    command = ["nvcc", "-std=c++17", "-O3", "-arch=sm_90a", "-Xptxas", "-v", "-cubin", "-o", str(tmp_path / "made.cubin"), str(source)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stderr
    spilled = [int(count) for count in re.findall(r"(\d+) bytes spill stores", said)]
    assert spilled and max(spilled) <= 16, said
