"""Rewrites that others need: instances of templates, and block sizes written as numbers."""

from __future__ import annotations

import pytest

from warpwright.base import Action
from warpwright.domains.cuda import constants, unit
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques import techniques
from warpwright.domains.cuda.techniques.constant_block import ConstantBlock
from warpwright.domains.cuda.techniques.specialise import Specialise
from warpwright.errors import NotApplicable

pytest.importorskip("clang")

TEMPLATE = """template <typename T, int N>
__global__ void scale(T* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = (T)N * x[i];
}
extern "C" void run(float* x, double* y, int n) {
    scale<float, 4><<<(n + 63) / 64, 64>>>(x, n);
    SECOND
}
"""


def sites(technique: object, text: str) -> list[str]:
    return [action.at for action in technique.sites(Plan(text))]  # type: ignore[attr-defined]


def test_an_instance_becomes_a_kernel_that_others_read() -> None:
    text = TEMPLATE.replace("SECOND", "scale<double, -3><<<1, 64>>>(y, n);")
    assert sites(Specialise(), text) == ["scale"]
    made = Specialise().apply(Plan(text), Action("specialise", "scale"))
    assert set(made.unit.kernels) == {"scale_float_4", "scale_double__3"} and not made.unit.templates
    assert "(float)4 * x[i]" in made.text and "(double)(-3) * x[i]" in made.text and "scale_float_4<<<" in made.text
    assert {action.at for action in techniques("cpu")[-1].sites(made)} <= set(made.unit.kernels)
    assert any(technique.name == "coarsen" and list(technique.sites(made)) for technique in techniques("cpu"))


@pytest.mark.parametrize(
    "launch",
    [f"scale<{names}><<<1, 64>>>(x, n);" for names in ("T2, 4", "float, SIZE", "float", "float, 2 + 2")],
)
def test_launches_that_do_not_name_all_arguments_plainly_leave_a_template_alone(launch: str) -> None:
    text = "typedef float T2;\nconst int SIZE = 3;\n" + TEMPLATE.replace("SECOND", launch)
    assert sites(Specialise(), text) == []
    with pytest.raises(NotApplicable):
        Specialise().apply(Plan(text), Action("specialise", "scale"))


def test_members_of_the_same_name_stay() -> None:
    text = TEMPLATE.replace("SECOND", "").replace("if (i < n)", "struct { int N; } s; s.N = 1; if (i < n && s.N)")
    made = Specialise().apply(Plan(text), Action("specialise", "scale"))
    assert "s.N = 1" in made.text and "&& s.N)" in made.text


KERNEL = """__global__ void k(float* x, int n) {
    int i = INDEX;
    if (i < n) x[i] = 0;
}
extern "C" void run(float* x, int n) { LAUNCH }
"""


@pytest.mark.parametrize(
    ("index", "launch", "legal"),
    [
        ("blockIdx.x * 128 + threadIdx.x", "k<<<n, 128>>>(x, n);", True),
        ("threadIdx.x + 128 * blockIdx.x", "k<<<n, dim3(128)>>>(x, n);", True),
        ("(blockIdx.x * 128) + threadIdx.x", "const int t = 64 * 2; k<<<n, t>>>(x, n);", True),
        ("blockIdx.y * 8 + threadIdx.y", "dim3 b(16, 8); k<<<n, b>>>(x, n);", True),
        ("blockIdx.x * 128 + threadIdx.x", "k<<<n, 64>>>(x, n);", False),
        ("blockIdx.x * 128 + threadIdx.x", "k<<<n, n>>>(x, n);", False),
        ("blockIdx.x * 128 + threadIdx.x", "k<<<n, 128>>>(x, n); k<<<n, 64>>>(x, n);", False),
        ("blockIdx.x * 128 + threadIdx.x", "int t = 128; t = 64; k<<<n, t>>>(x, n);", False),
        ("blockIdx.x * 128 + threadIdx.x", "int t = 128; t += 64; k<<<n, t>>>(x, n);", False),
        ("blockIdx.x * 128 + threadIdx.x", "dim3 b(128); b.x = 64; k<<<n, b>>>(x, n);", False),
        ("blockIdx.x * 128 + threadIdx.y", "k<<<n, 128>>>(x, n);", False),
        ("blockIdx.x * 128 * 2 + threadIdx.x", "k<<<n, 128>>>(x, n);", False),
        ("blockIdx.x * 128", "k<<<n, 128>>>(x, n);", False),
    ],
)
def test_a_number_is_the_blocks_size_where_every_launch_says_so(index: str, launch: str, legal: bool) -> None:
    text = KERNEL.replace("INDEX", index).replace("LAUNCH", launch)
    assert (sites(ConstantBlock(), text) == ["k"]) is legal
    if legal:
        made = ConstantBlock().apply(Plan(text), Action("constant_block", "k"))
        assert "blockDim." in made.text and "128 +" not in made.text and sites(ConstantBlock(), made.text) == []


@pytest.mark.parametrize(
    ("before", "block", "shape"),
    [
        ("", "256", (256, 1, 1)), ("", "dim3(8, 4, 2)", (8, 4, 2)), ("", "{32, 4}", (32, 4, 1)), ("const int a = 8;", "dim3(a, a * 2)", (8, 16, 1)),
        ("dim3 b = dim3(32, 2);", "b", (32, 2, 1)), ("dim3 b(32u);", "b", (32, 1, 1)), ("int a = n;", "a", None), ("int a = 8; f(&a);", "a", None),
        ("", "n", None), ("", "2048", None), ("", "0", None), ("auto b = n > 3 ? 8 : 16;", "b", None),
    ],
)  # fmt: skip
def test_a_blocks_shape_is_read_where_it_is_constant(before: str, block: str, shape: tuple[int, int, int] | None) -> None:
    text = KERNEL.replace("INDEX", "threadIdx.x").replace("LAUNCH", f"{before} k<<<1, {block}>>>(x, n);")
    read = unit.read(text)
    assert constants.block_shape(read, read.launches[0]) == shape


def test_a_constant_of_the_file_is_one_where_it_is_const() -> None:
    body = KERNEL.replace("INDEX", "threadIdx.x").replace("LAUNCH", "k<<<1, SIZE>>>(x, n);")
    for head, shape in (("const int SIZE = 64;\n", (64, 1, 1)), ("int SIZE = 64;\n", None), ("static constexpr int SIZE = 96;\n", (96, 1, 1))):
        read = unit.read(head + body)
        assert constants.block_shape(read, read.launches[0]) == shape
