"""Numbers of the task's call as constants of a kernel: which, and that any other number runs the kernel as given."""

from __future__ import annotations

import ctypes

import pytest
import torch

from warpwright.base import Action
from warpwright.domains.cuda.plan import Plan
from warpwright.domains.cuda.techniques.bind import Bind
from warpwright.errors import NotApplicable

pytest.importorskip("clang")

TASK = """
def get_inputs():
    return [torch.randn(100)]


def reference(x):
    return x.unfold(0, 3, 1).sum(1)


def launch(kernel, x):
    out = torch.empty(98)
    kernel.run(x, out, x.numel(), 3)
    return out
"""

TEXT = """__global__ void k(const float* x, float* y, int n, const int taps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n - taps + 1) return;
    float sum = 0;
    for (int j = 0; j < taps; ++j) sum += x[i + j];
    y[i] = sum;
}

extern "C" void run(const float* x, float* y, int n, int taps) {
    k<<<(n + 63) / 64, 64>>>(x, y, n, taps);
}
"""


def bound(text: str, task: str = TASK) -> str:
    technique, plan = Bind(task, "task"), Plan(text)
    [action] = technique.sites(plan)
    return technique.apply(plan, action).text


def test_the_calls_numbers_become_constants_of_a_second_kernel() -> None:
    made = bound(TEXT)
    assert "k_bound(const float* x, float* y, int ww_given_n, const int ww_given_taps)" in made
    assert "const int n = 100;" in made and "const int taps = 3;" in made
    assert "if (n == 100 && taps == 3) { k_bound<<<(n + 63) / 64, 64>>>(x, y, n, taps); } else k<<<(n + 63) / 64, 64>>>(x, y, n, taps);" in made
    odd = TEXT.replace("    k<<<", '    const char* close = "}";  // }\n    k<<<')
    assert "k_bound<<<" in bound(odd), "a brace in a string or a comment ends no function"
    plan = Bind(TASK, "task").apply(Plan(TEXT), Action("bind", "k"))
    assert not list(Bind(TASK, "task").sites(plan)), "once"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    k<<<", "    taps = taps * 2;\n    n += 1;\n    k<<<"), ("(x, y, n, taps);\n}\n", "(x, y, n + 0, taps + 0);\n}\n"),
        ("j < taps", "j < 3"), ("const int taps", "float taps"),
        ("extern", "static void other(float* x, float* y) { k<<<1, 64>>>(x, y, 9, 3); }\nextern"),
    ],
)  # fmt: skip
def test_numbers_that_may_be_others_or_do_not_matter_are_left(old: str, new: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new)
    assert not list(Bind(TASK, "task").sites(Plan(text)))


def test_a_parameter_that_the_kernel_changes_stays_one() -> None:
    made = bound(TEXT.replace("    float sum = 0;", "    n -= 1;\n    float sum = 0;"))
    assert "const int taps = 3;" in made and "const int n" not in made


@pytest.mark.parametrize("task", [TASK.replace("kernel.run", "kernel.other"), TASK.replace("return out", "kernel.run(x, out, 9, 3)\n    return out")])
def test_a_launch_that_cannot_be_known_binds_nothing(task: str) -> None:
    with pytest.raises(NotApplicable):
        Bind(task, "task").apply(Plan(TEXT), Action("bind", "k"))


@pytest.mark.slow
@pytest.mark.compiler
def test_bound_or_not_the_sums_are_the_same() -> None:
    from warpwright.targets import cuda_on_cpu

    library = cuda_on_cpu.library(bound(TEXT), "bound.cu")
    for n, taps in ((100, 3), (100, 4), (57, 3)):
        x, out = torch.randn(n), torch.full((n - taps + 1,), torch.nan)
        library.run(ctypes.c_void_p(x.data_ptr()), ctypes.c_void_p(out.data_ptr()), n, taps)
        assert torch.allclose(out, x.unfold(0, taps, 1).sum(1)), (n, taps)
