"""Programs with inline CUDA on a machine without a GPU: every form of import, and one through the front door."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from warpwright.domains.transpile import inline_cuda

MODULE = inline_cuda.MODULE
Run = Callable[..., tuple[int, dict[str, Any], str]]

FORMS = [
    ("from torch.utils.cpp_extension import load_inline", f"from {MODULE} import load_inline"),
    ("import torch.utils.cpp_extension", f"import {MODULE}"),
    ("m = torch.utils.cpp_extension.load_inline(", f"m = {MODULE}.load_inline("),
    ("import torch.utils.cpp_extension as ext", f"import {MODULE} as ext"),
    ("from torch.utils import cpp_extension", "from warpwright.targets import cuda_on_cpu as cpp_extension"),
    ("from torch.utils import cpp_extension as ext", "from warpwright.targets import cuda_on_cpu as ext"),
]


@pytest.mark.parametrize(("before", "after"), FORMS)
def test_every_form_of_import(before: str, after: str) -> None:
    assert inline_cuda.adapt(before) == after


def test_only_programs_with_cuda_are_changed() -> None:
    assert inline_cuda.has_cuda("from torch.utils.cpp_extension import load_inline\nCUDA = '__global__ void f() {}'")
    assert not inline_cuda.has_cuda("from torch.utils.cpp_extension import load_inline\nload_inline('x', 'int f();')")
    assert not inline_cuda.has_cuda("import torch\n# __global__")


TASK = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 3 + 1
def get_inputs():
    return [torch.randn(64, 100)]
def get_init_inputs():
    return []
"""

CANDIDATE = """
import torch
from torch.utils.cpp_extension import load_inline
CUDA = r'''
__global__ void act(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = fmaxf(x[i], 0.0f) * 3.0f + OFFSET;
}
torch::Tensor forward(torch::Tensor x) {
  TORCH_CHECK(x.is_cuda(), "expected a CUDA tensor");
  auto y = torch::empty_like(x);
  act<<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
'''
built = load_inline("act", "torch::Tensor forward(torch::Tensor x);", CUDA, functions=["forward"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return built.forward(x.contiguous())
"""


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(("offset", "status", "code"), [("1.0f", "ok", 0), ("1.001f", "wrong", 1)])
def test_a_cuda_candidate_is_audited_without_a_gpu(command: Run, offset: str, status: str, code: int) -> None:
    pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")
    Path("task.py").write_text(TASK)
    Path("candidate.py").write_text(CANDIDATE.replace("OFFSET", offset))
    seen, said, err = command("audit", "candidate.py", "--task", "task.py", "--target", "cpu", "--baselines", "eager", "--archive", "a.db")
    assert seen == code, err[-2000:]
    assert said["status"] == status
    assert "translated and run on the CPU" in err
