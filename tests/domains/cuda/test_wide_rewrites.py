"""Vectors of four, flat grids, joined sums: which kernels they are offered for; right at every size, and wherever arrays begin."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
import torch
from cuda_texts import once

from benchmarks.cuda.plain20 import KERNELS
from benchmarks.fsr20 import run
from warpwright.base import Action
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import techniques
from warpwright.space import Space

pytest.importorskip("clang")

TEXTS = {kernel.name: kernel.cuda for kernel in (*KERNELS, *run.KERNELS)}


def space(text: str) -> Space[Plan]:
    return Space(Plan(text), techniques("cuda"), lambda ir, actions: None)  # type: ignore[arg-type, return-value]


def offered(text: str) -> set[str]:
    made = space(text)
    return {str(action).partition("(")[0] + ("_wide" if "wide=4" in str(action) else "") for action in made.actions(made.start)}


def element(body: str, head: str = "const float* x, float* y, int n, int m", guard: str = "i < n") -> str:
    names = ", ".join(part.split()[-1].lstrip("*") for part in head.split(","))
    return (
        f"__global__ void k({head}) {{\n    int i = blockIdx.x * blockDim.x + threadIdx.x;\n    if ({guard}) {{ {body} }}\n}}\n\n"
        f'extern "C" void run({head}) {{\n    k<<<(n + 63) / 64, 64>>>({names});\n}}\n'
    )


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = x[i];", "y[i] += x[i];", "float a = x[i]; y[i] = a > 0 ? a : x[m];", "if (x[i] > 0) y[i] = 1;", "y[m + i] = x[i];",
        "y[i] = m; y[i] *= 2;",
    ],
)
def test_elements_at_the_index_go_by_vectors(body: str) -> None:
    assert "vectorise" in offered(element(body))


@pytest.mark.parametrize(
    ("body", "guard"),
    [
        ("y[m] = 1;", "i < n"), ("y[m + i] = x[m - i];", "i < n"), ("if (i < m) y[i] = x[i];", "i < n"),
        ("y[i] = i < m ? x[i] : 0; y[0] = 1;", "i < n"),
        ("y[i] = x[i]; atomicAdd(&y[m], 1.0f);", "i < n"), ("y[i] = x[i];", "i != n"), ("y[i] = x[i];", "i < n && i < m"),
        ("y[i] = x[i];", "x[i] < n"),
        ("for (int j = 0; j < m; ++j) y[i] += x[j];", "i < n"),
    ],
)  # fmt: skip
def test_elements_that_need_not_be_there_do_not(body: str, guard: str) -> None:
    assert "vectorise" not in offered(element(body, guard=guard))


def test_an_array_that_may_overlap_another_is_read_one_by_one() -> None:
    text = element("y[i] = x[i];")
    assert "vectorise" not in offered(text.replace(">>>(x, y, n, m)", ">>>(y, y + 1, n, m)"))


@pytest.mark.parametrize(
    "change",
    [
        ("sum += samples[i];", "sum += samples[i] + t;"), ("sum += samples[i];", "sum = sum * 0.5f + samples[i];"),
        ("float sum = 0.0f;", "float sum = 1.0f;"), ("sum * (b - a) / n", "sum + a"), ("sum * (b - a) / n", "sum * t"),
        ("int i = t;", "int i = t + 1;"),
        ("i += gridDim.x * blockDim.x", "i += blockDim.x"), ("atomicAdd(integral,", "atomicAdd(integral + t,"),
        ("sum += samples[i];", "sum += integral[0];"),
    ],
)  # fmt: skip
def test_sums_that_depend_on_how_many_threads_there_are_stay(change: tuple[str, str]) -> None:
    text = TEXTS["monte_carlo"]
    assert {"join_sums", "join_sums_wide"} <= offered(text) and change[0] in text
    assert not {"join_sums", "join_sums_wide"} & offered(text.replace(*change))


@pytest.mark.parametrize(
    ("change", "legal"),
    [
        (("half = 128", "half = 64"), False), (("half = 128", "half = blockDim.x / 2"), True), (("? x[i] : 0.0f", "? x[i] : 1.0f"), None),
        (("part[0])", "part[0] / n)"), True), (("part[0])", "part[0] + 1.0f)"), False), (("part[0])", "part[0] * part[0])"), False),
    ],
)  # fmt: skip
def test_a_tree_is_one_of_the_whole_block_and_its_sum_is_added_in_proportion(change: tuple[str, str], legal: bool | None) -> None:
    text = TEXTS["reduction"]
    assert change[0] in text
    found = offered(text.replace(*change))
    assert ("shuffle_tree" in found) == (legal is not False) and ("shuffle_tree_wide" in found) == (legal is True)


@pytest.mark.parametrize(
    "change",
    [
        ("to[row * columns + column]", "to[row * columns + column + 1 - row]"), ("from[row * columns", "from[row * rows"),
        ("row < rows &&", "row <= rows &&"),
        ("row < rows && column < columns", "row < rows && column < columns && row < 7"),
    ],
)  # fmt: skip
def test_a_grid_is_flat_where_nothing_else_is_known_of_it(change: tuple[str, str]) -> None:
    text = TEXTS["matrix_copy"]
    assert "flatten" in offered(text) and change[0] in text and "flatten" not in offered(text.replace(*change))


def strided(loop: str, before: str = "", head: str = "const float* x, float* y, int n") -> str:
    names = ", ".join(part.split()[-1].lstrip("*") for part in head.split(","))
    return f'''__global__ void k({head}) {{\n    {before}\n    {loop}\n}}\nextern "C" void run({head}) {{ k<<<64, 128>>>({names}); }}\n'''


INDEX = "blockIdx.x * blockDim.x + threadIdx.x"
LOOP = f"for (int i = {INDEX}; i < n; i += blockDim.x * gridDim.x) {{ y[i] = x[i]; }}"


def test_a_grid_stride_loop_is_spread_where_its_turns_are_apart() -> None:
    assert "spread" in offered(strided(LOOP)) and "spread" in offered(strided(LOOP.replace("i < n", "i < m"), "int m = n - 2;"))
    for old, new in (
        ("i < n", "i <= n"), ("i += blockDim.x * gridDim.x", "i += blockDim.x"), (INDEX, "threadIdx.x"), ("i < n", "i < y[0]"),
        ("y[i] = x[i];", "y[i] = x[i]; n -= 1;"), ("y[i] = x[i];", "if (x[i] < 0) break; y[i] = x[i];"), ("= x[i];", "= x[i] + threadIdx.x;"),
    ):  # fmt: skip
        assert "spread" not in offered(strided(LOOP.replace(old, new))), new
    assert "spread" not in offered(strided(LOOP.replace("y[i] = x[i];", "s += x[i]; y[i] = s;"), "float s = 0;"))
    made = space(strided(LOOP))
    first = next(action for action in made.actions(made.start) if action.technique == "spread")
    assert any(action.technique == "vectorise" for action in made.actions(made.apply(made.start, first)))


# --- right at every size ----------------------------------------------------------------------------------------------------------------

WIDE = {
    "reduction": "shuffle_tree(reduction_kernel, each=16, wide=4)", "mse": "shuffle_tree(mse_kernel, each=16, wide=4)",
    "dot": "shuffle_tree(dot_kernel, each=16, wide=4)", "monte_carlo": "join_sums(integrate_kernel, wide=4)",
    "inside_circle": "gather_atomics(inside_kernel, each=16, wide=4)", "relu": "vectorise(relu_kernel, each=4)",
    "saxpy": "vectorise(saxpy_kernel, each=8)", "reverse": "vectorise(reverse_kernel, each=4)",
    "histogram": "privatise(histogram_kernel, each=16, wide=4)",
}  # fmt: skip
SIZES = (1, 2, 3, 4, 5, 31, 33, 255, 257, 1000, 5003)


@pytest.fixture(scope="module")
def library() -> Any:
    from warpwright.targets import cuda_on_cpu

    parts = [space(TEXTS[name]).replay([Action.parse(action)]).text for name, action in WIDE.items()]
    flat = space(TEXTS["matrix_copy"])
    parts.append(flat.replay([Action.parse(a) for a in ("flatten(copy_kernel)", "vectorise(copy_kernel_flat, each=4)")]).text)
    return cuda_on_cpu.library(once("\n".join(parts)), "wide.cu")


def placed(x: torch.Tensor, offset: int) -> torch.Tensor:
    """Return a copy that begins so many elements behind a multiple of 16 bytes."""
    room = torch.full((x.numel() + 16,), torch.nan if x.is_floating_point() else -1, dtype=x.dtype)
    start = (-(room.data_ptr() // 4) % 4) + offset
    room[start : start + x.numel()] = x.flatten()
    return room[start : start + x.numel()].view(x.shape)


def call(function: Any, *values: Any) -> None:
    function(*[ctypes.c_void_p(v.data_ptr()) if isinstance(v, torch.Tensor) else ctypes.c_float(v) if isinstance(v, float) else v for v in values])


@pytest.mark.slow
@pytest.mark.compiler
@pytest.mark.parametrize("offset", [0, 1])
def test_wide_rewrites_are_right_at_every_size_and_place(library: Any, offset: int) -> None:
    for n in SIZES:
        torch.manual_seed(n)
        x, y, out, one = (placed(torch.rand(n), offset), placed(torch.rand(n), 0), placed(torch.zeros(n), offset), torch.zeros(1))
        for name, exact in (("reduction", x.double().sum()), ("monte_carlo", x.double().mean() * 20)):
            call(getattr(library, name), x, one, *((-10.0, 10.0) if name == "monte_carlo" else ()), n)
            assert abs(float(one) - float(exact)) <= 1e-5 * float(exact), (name, n)
        for name, exact in (("mse", (x - y).double().square().mean()), ("dot", (x.double() * y.double()).sum())):
            call(getattr(library, name), x, y, one, n)
            assert abs(float(one) - float(exact)) <= 1e-5 * float(exact) + 1e-9, (name, n)
        hits = torch.zeros(1, dtype=torch.int32)
        call(library.inside_circle, x, y, hits, n)
        assert int(hits) == int((x * x + y * y <= 1).sum()), n
        values, bins = placed(torch.randint(-3, 12, (n,), dtype=torch.int32), offset), torch.zeros(9, dtype=torch.int32)
        call(library.histogram, values, bins, n, 9)
        assert torch.equal(bins, values[(values >= 0) & (values < 9)].bincount(minlength=9).int()), n
        call(library.relu, placed(x - 0.5, offset), out, n)
        assert torch.equal(out, (x - 0.5).clamp(min=0)), n
        call(library.saxpy, n, 2.0, x, y, out)
        assert torch.allclose(out, 2 * x + y), n
        call(library.reverse, x, out, n)
        assert torch.equal(out, x.flip(0)), n
        call(library.matrix_copy, x, out, 1, n)
        assert torch.equal(out, x), n
