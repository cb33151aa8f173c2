"""Kernels that memory binds: how many loads are on their way at once, by NVRTC's machine code for Hopper, and what an element costs. Needs no GPU."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import Several
from tests.domains.graph.test_cuda import fused
from warpwright.base import Action
from warpwright.domains import transpile
from warpwright.domains.graph.cuda import plan
from warpwright.domains.graph.cuda.kernel import CudaKernel, head, source_of
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.domains.graph.techniques.kernels.windows import WindowsCuda
from warpwright.native.standalone_cuda import _CudaKernels

pytestmark = pytest.mark.compiler


def kernel_of(call: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> CudaKernel:
    """Return the one kernel that a call becomes."""
    after = FuseCuda().apply(captured(Several([call]), *inputs), fuse_cuda(1, DEFAULT))
    [kernel] = [node.target for node in after.graph.nodes if isinstance(node.target, CudaKernel)]
    return kernel


def instructions(kernel: CudaKernel, tmp_path: Path) -> list[str]:
    """Return the kernel's machine code, line by line."""
    triton = pytest.importorskip("triton", reason="nvdisasm comes with Triton")
    kernels = _CudaKernels(*source_of([kernel]))
    try:
        kernels.compiler()
    except RuntimeError as error:
        pytest.skip(str(error))
    (tmp_path / "kernel.cubin").write_bytes(kernels.machine_code("90"))
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "nvdisasm"
    text = subprocess.run([tool, "-c", tmp_path / "kernel.cubin"], capture_output=True, text=True, check=True, timeout=60).stdout
    return re.findall(r"^\s+/\*[0-9a-f]{4,5}\*/\s+(?:@!?U?P\w+\s+)?(.*?);", text, re.MULTILINE)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))


def l1(x: torch.Tensor) -> torch.Tensor:
    return x / x.abs().mean(1, keepdim=True)


def test_a_windows_copies_wait_for_no_register(tmp_path: Path) -> None:
    """By loads and stores one vector of a thread was on its way; a copy of a result in 16 bits is widened, and goes through registers."""
    ir = captured(torch.nn.MaxPool2d(4, 1, 1), torch.empty(16, 64, 512, 512, device="meta"))
    [kernel] = [node.target for node in WindowsCuda().apply(ir, Action("windows_cuda")).graph.nodes if isinstance(node.target, CudaKernel)]
    code = instructions(kernel, tmp_path)
    assert any(line.startswith("LDGSTS") for line in code) and not any(line.startswith("LDG.") for line in code)
    assert sum(line.startswith("FMNMX.NAN") for line in code) > 60, "a maximum that keeps NaN is one instruction"
    ir = captured(torch.nn.MaxPool2d(4, 1, 1), torch.empty(16, 64, 512, 512, dtype=torch.bfloat16, device="meta"))
    [kernel] = [node.target for node in WindowsCuda().apply(ir, Action("windows_cuda")).graph.nodes if isinstance(node.target, CudaKernel)]
    assert "copy_ahead" not in kernel.text


def test_weights_of_a_window_are_read_by_fours(tmp_path: Path) -> None:
    """Each thread read all 21 from global memory, for eight outputs."""
    call = torch.nn.Conv2d(128, 128, (3, 7), groups=128, bias=False).to("meta")
    ir = captured(call, torch.empty(32, 128, 128, 256, device="meta"))
    [kernel] = [node.target for node in WindowsCuda().apply(ir, Action("windows_cuda")).graph.nodes if isinstance(node.target, CudaKernel)]
    code = instructions(kernel, tmp_path)
    assert sum(line.startswith("LDG.") for line in code) <= 8 and sum(line.startswith("LDS.128") for line in code) >= 5


def test_a_thread_walks_far_where_blocks_are_many_and_weights_are_read() -> None:
    """A pool has no weights to read once for more rows: with 16 in place of 8 it took 2 % longer (L1-42)."""
    far = {}
    for batch in (32, 1):
        for module in (torch.nn.MaxPool2d(4, 1, 1), torch.nn.Conv2d(32, 32, (3, 7), groups=32)):
            ir = captured(module.to("meta"), torch.empty(batch, 32, 256, 256, device="meta"))
            [kernel] = [node.target for node in WindowsCuda().apply(ir, Action("windows_cuda")).graph.nodes if isinstance(node.target, CudaKernel)]
            far[batch, type(module).__name__] = "sums[1][16]" in kernel.text
    assert far == {(32, "MaxPool2d"): False, (32, "Conv2d"): True, (1, "MaxPool2d"): False, (1, "Conv2d"): False}


def test_rows_of_halves_have_as_many_bytes_on_their_way() -> None:
    blocks = {
        kind: kernel_of(lambda x: torch.softmax(x, -1), torch.empty(32768, 4096, dtype=kind, device="meta")).generated.launch.block
        for kind in (torch.float32, torch.bfloat16, torch.float16)
    }
    assert blocks == {torch.float32: 512, torch.bfloat16: 256, torch.float16: 256}


def test_a_division_by_a_rows_value_has_no_branch(tmp_path: Path) -> None:
    """`/` has a way of its own for what a reciprocal cannot do, and a branch there for each element."""
    code = instructions(kernel_of(l1, torch.empty(4096, 32768, device="meta")), tmp_path)
    assert sum(line.startswith("CALL") for line in code) <= 1  # the mean's


def test_a_sigmoid_linear_unit_has_no_branch(tmp_path: Path) -> None:
    code = instructions(kernel_of(lambda x: F.silu(x), torch.empty(4096, 4096, device="meta")), tmp_path)
    assert not any(line.startswith("CALL") for line in code)


def test_a_divergence_has_no_branch(tmp_path: Path) -> None:
    """The logarithm of a share that may be zero stood behind one: an element's instructions waited for those of the one before."""
    x = torch.empty(4096, 4096, device="meta")
    code = instructions(kernel_of(lambda x, y: F.kl_div(x.log(), y, reduction="sum"), x, x.clone()), tmp_path)
    first, last = (f(i for i, line in enumerate(code) if line.startswith(name)) for f, name in ((min, "LDG.E.128"), (max, "F2F.F64.F32")))
    assert not any(line.startswith("BSSY") for line in code[first:last])


def test_a_long_softmax_takes_one_exponential_an_element(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = kernel_of(lambda x: torch.softmax(x, -1), torch.empty(2048, 65536, device="meta"))
    assert kernel.generated.together and kernel.text.count("vexp(") == 1 + 1, "of an element, and of a thread"
    both = kernel_of(lambda x: torch.softmax(x, -1) + x, torch.empty(2048, 65536, device="meta"))
    assert both.text.count("vexp(") == 2 and "= c0[i][e] * z" not in both.text, "x is read again beside it"


def test_special_values_of_a_long_softmax(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread whose elements are all -Inf has no maximum; rows of -Inf, with Inf or with NaN are NaN, as torch has them."""
    monkeypatch.setattr(plan, "MULTIPROCESSORS", 2)
    monkeypatch.setattr(plan, "HELD", 4)
    torch.manual_seed(5)
    x = torch.randn(7, 9000)
    x[0, ::2], x[1], x[2, 17], x[3, 17], x[4] = -torch.inf, -torch.inf, torch.inf, torch.nan, x[4] * 80 - 3000
    x[5, :4096] = -torch.inf
    x[5, 4096:] -= 500
    kernels, optimized = fused(captured(Several([lambda x: torch.softmax(x, -1)]), x))
    assert kernels[0].generated.together and any(" * z" in kernel.text for kernel in kernels)
    [seen] = optimized(x)
    torch.testing.assert_close(seen, torch.softmax(x.double(), -1).float(), equal_nan=True)


QUOTIENTS = """
extern "C" __global__ void quotients(const float* x, const float* y, float* one, float* any, int count) {
    for (int i = 0; i < count; ++i) one[i] = quotient_at_least_one(x[i], y[i]), any[i] = quotient(x[i], y[i]);
}
"""
NEAR = """
__device__ __forceinline__ float near_reciprocal(float y, float x) {  // off by a unit in the last place, up or down; no subnormal number in or out
    const float r = 1.f / y, size = fabsf(r);
    if (fabsf(y) < 1.17549435e-38f) return 1.f / (y < 0.f || 1.f / y < 0.f ? -0.f : 0.f);
    if (size < 1.17549435e-38f) return r < 0.f ? -0.f : 0.f;
    return size < INF ? __int_as_float(__float_as_int(r) + (__float_as_int(x) & 1 ? 1 : -1)) : r;
}
"""


def test_quotients_round_as_divisions_do() -> None:
    """The text that a GPU gets, with a reciprocal as far off as its instruction's."""
    text = head().replace("#ifdef __CUDA_ARCH__", "#if 1")
    text, count = re.subn(r'asm\("rcp\.approx\.ftz\.f32.*?\);', "r = near_reciprocal(y, x);", text)
    text, squares = re.subn(r"__fma_rn\(\(double\)x, \(double\)x, sum\)", "sum + (double)x * (double)x", text)
    assert count == squares == 1
    text = text.replace("// Quotients without", NEAR + "// Quotients without").replace("__fmaf_rn", "fmaf") + QUOTIENTS
    torch.manual_seed(3)
    x, y = torch.randn(40000) * 2.0 ** torch.randint(-40, 40, (40000,)), torch.randn(40000) * 2.0 ** torch.randint(-60, 60, (40000,))
    odd = torch.tensor([0.0, -0.0, torch.inf, -torch.inf, torch.nan, 1e-42, -1e-42, 3e38, -3e38, 1.0, -7.0, 2e-38, 6e37])
    x, y = torch.cat([x, odd.repeat(len(odd))]), torch.cat([y, odd.repeat_interleave(len(odd))])
    one, quotients = torch.empty_like(x), torch.empty_like(x)
    flags = ["-O1" if flag == "-O3" else flag for flag in transpile.FLAGS]
    kernel = transpile.compile_text(text, "quotients.cu").load(flags)["quotients"]
    kernel[1, 1](x.data_ptr(), y.data_ptr(), one.data_ptr(), quotients.data_ptr(), len(x))
    exact = x / y
    assert torch.equal(quotients.isnan(), exact.isnan()) and torch.equal(quotients.isinf(), exact.isinf())
    there = exact.isfinite()
    away = (quotients[there].view(torch.int32) - exact[there].view(torch.int32)).abs()
    assert int(away.max()) <= 1 and int((away > 0).sum()) <= 4, "a sign of zero too"
    large = ((y >= 1) | y.isnan()) & (x.isfinite() | (y == torch.inf))  # Inf above 1 + exp(-x) is 1 or Inf
    assert torch.equal(one[large].isnan(), exact[large].isnan())
    there = large & exact.isfinite() & ((y < 8e37) | (y == torch.inf))
    assert int((one[there].view(torch.int32) - exact[there].view(torch.int32)).abs().max()) <= 1
    assert bool((one[(y > 8e37) & x.isfinite()].abs() <= 4).all())
