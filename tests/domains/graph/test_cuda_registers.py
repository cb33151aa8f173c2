"""What fused kernels need of a multiprocessor, by the machine code that NVRTC makes for Hopper: no GPU is needed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from benchmarks.kernels.without_gpu import Needs, needs_of
from tests.domains.graph.techniques.exactness import captured
from tests.domains.graph.test_cpp import Several
from warpwright.domains.graph.cuda.kernel import CudaKernel, source_of
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.native.standalone_cuda import _CudaKernels

pytest.importorskip("triton", reason="cuobjdump comes with Triton")


@pytest.fixture(autouse=True)
def with_nvrtc() -> None:
    """Skip without the compiler."""
    try:
        _CudaKernels.compiler()
    except RuntimeError as error:
        pytest.skip(str(error))


def _needs(call: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> tuple[str, Needs]:
    """Return the text and the needs of the one kernel that a call becomes, a block of which has 1,024 threads."""
    after = FuseCuda().apply(captured(Several([call]), *inputs), fuse_cuda(1, DEFAULT))
    [kernel] = [node.target for node in after.graph.nodes if isinstance(node.target, CudaKernel)]
    assert kernel.shape[2] == 1024
    text, shapes = source_of([kernel])
    [needs] = needs_of(_CudaKernels(text, shapes).machine_code("90")).values()
    return text, needs


def test_a_block_that_keeps_much_is_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """ptxas would halve its registers, so that two are resident, and spill more than a hundred values for it."""
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    x = torch.empty(10, 240, 56, 56, device="meta")
    w = torch.empty(240, device="meta")

    def call(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, y: torch.Tensor, v: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        first = F.batch_norm(x, None, None, w, b, training=True)
        return torch.relu(first) + F.batch_norm(y, None, None, v, c, training=True)

    text, needs = _needs(call, x, w, w.clone(), x.clone(), w.clone(), w.clone())
    assert "__launch_bounds__(1024, 1)" in text and needs.registers > 32 and needs.local_bytes < 256


def test_two_blocks_that_keep_little_may_be_resident(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    x, w = torch.empty(512, 128, 17, 17, device="meta"), torch.empty(128, device="meta")
    text, needs = _needs(lambda x, w, b: F.group_norm(torch.tanh(x), 8, w, b), x, w, w.clone())
    assert "__launch_bounds__(1024) " in text and needs.local_bytes <= 16
