"""Choices of a translation: written, read, offered where they change something, and without effect on the answers."""

from __future__ import annotations

import numpy as np
import pytest

from warpwright.domains import transpile
from warpwright.domains.transpile import choices, tuning
from warpwright.domains.transpile.choices import BY_RULE, VALUES, Choices
from warpwright.errors import NotApplicable, UsageError

GEMM = """
template <int T> __global__ void __launch_bounds__(256) gemm(const float* A, const float* B, float* C, int n) {
  __shared__ float As[T][T], Bs[T][T];
  const int row = blockIdx.y * T + threadIdx.y, col = blockIdx.x * T + threadIdx.x;
  float acc = 0;
  for (int k0 = 0; k0 < n; k0 += T) {
    As[threadIdx.y][threadIdx.x] = A[row * n + k0 + threadIdx.x];
    Bs[threadIdx.y][threadIdx.x] = B[(k0 + threadIdx.y) * n + col];
    __syncthreads();
    for (int k = 0; k < T; ++k) acc += As[threadIdx.y][k] * Bs[k][threadIdx.x];
    __syncthreads();
  }
  C[row * n + col] = acc;
}
__global__ void scale(float* x, float f, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) for (int j = 0; j < 3; ++j) x[i] = x[i] * f + j;
}
"""

PROGRAM = f'''import torch
from torch.utils.cpp_extension import load_inline

CUDA = """{GEMM}
torch::Tensor forward(torch::Tensor a, torch::Tensor b) {{
  auto c = torch::empty_like(a);
  const int n = a.size(0);
  gemm<16><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), n);
  scale<<<(n * n + 255) / 256, 256>>>(c.data_ptr<float>(), 0.5f, n * n);
  return c;
}}
"""
built = load_inline("both", "torch::Tensor forward(torch::Tensor a, torch::Tensor b);", CUDA, functions=["forward"])


class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        return built.forward(a, b)
'''


def test_a_comment_chooses_for_its_kernel() -> None:
    text = choices.chosen(choices.chosen(GEMM, "scale", choices.parse("unroll=4 coalesce=0")), "gemm", choices.parse("rows=8"))
    assert choices.of_kernels(text) == {"gemm": Choices(rows=8), "scale": Choices(unroll=4, coalesce=0)}
    assert choices.chosen(text, "gemm", Choices(rows=2)).count("rows=") == 1
    assert choices.without(text) == GEMM and choices.chosen(choices.chosen(text, "scale", BY_RULE), "gemm", BY_RULE) == GEMM
    made = transpile.compile_text(text, instances=["gemm<16>"], blocks={"gemm": (16, 16, 1)}).source
    assert "BY % 8 == 0 ? 8" in made and "#pragma GCC unroll 4" in made and "each_stretch(launch, [&]" not in made.partition("scale_block")[2]


@pytest.mark.parametrize("words", ["rows=3", "rows", "speed=1", "rows=-1"])
def test_a_wrong_choice_says_what_there_is(words: str) -> None:
    with pytest.raises(UsageError, match=r"rows=1\|2\|4\|8"):
        transpile.compile_text(f"/* warpwright: {words} */ __global__ void k(int* x) {{ *x = 1; }}")


def test_a_tier_can_be_chosen() -> None:
    made = transpile.compile_text(choices.chosen(GEMM, "scale", Choices(tier=0)), instances=["gemm<16>"])
    assert (made.kernels["scale"].tier, made.kernels["scale"].reason) == ("fibers", "line 15: chosen") and made.kernels["gemm"].tier == "vectors"


@pytest.mark.compiler
def test_no_choice_changes_an_answer() -> None:
    text, made = "", []
    for name, values in VALUES.items():  # all in one program: the compiler reads the runtime once
        for value in values:
            text += choices.chosen(choices.chosen(GEMM, "gemm", Choices(**{name: value})), "scale", Choices(**{name: value}))
            text = text.replace("gemm(", f"gemm_{name}_{value}(").replace("scale(", f"scale_{name}_{value}(")
            made.append(f"{name}_{value}")
    instances, blocks = [f"gemm_{one}<16>" for one in made], {f"gemm_{one}": (16, 16, 1) for one in made}
    kernels = transpile.compile_text(text, instances=instances, blocks=blocks).load(("-O1", *transpile.FLAGS))
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, (64, 64)).astype(np.float32) for _ in range(2))
    whole = (((a @ b) * 0.5) * 0.5 + 1) * 0.5 + 2
    for one in made:
        c = np.zeros_like(a)
        kernels[f"gemm_{one}<16>"][(4, 4), (16, 16)](a, b, c, 64)
        assert np.array_equal(c, a @ b), one
        kernels[f"scale_{one}"][17, 256](c, 0.5, 4000)
        assert np.array_equal(c.ravel()[:4000], whole.ravel()[:4000]) and np.array_equal(c.ravel()[4000:], (a @ b).ravel()[4000:]), one


def test_what_changes_nothing_is_not_offered() -> None:
    space = tuning.space("class Model: pass", PROGRAM)
    assert [str(a) for a in space.actions(space.start)] == ["translate()"]
    plan = space.apply(space.start, space.actions(space.start)[0])
    offered = {(action.technique, action.at) for action in space.actions(plan)}
    assert {("rows", "gemm"), ("vectors", "gemm"), ("unroll", "scale"), ("coalesce", "scale"), ("lanes", "scale"), ("tier", "gemm")} <= offered
    assert not {("rows", "scale"), ("coalesce", "gemm"), ("recompute", "scale")} & offered
    before = tuning.translation(plan.text)
    for action in space.actions(plan):
        again = space.apply(plan, action)
        assert tuning.translation(again.text) != before and again.text.count("warpwright:") == 1
        assert choices.without(space.lower(again, (action,)).source.text) == PROGRAM
    with pytest.raises(NotApplicable, match="translate"):
        space.apply(space.start, space.actions(plan)[0])


def test_a_program_without_kernels_is_refused() -> None:
    with pytest.raises(UsageError, match="__global__"):
        tuning.space("", "import torch")
