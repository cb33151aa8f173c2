"""What fused kernels need of a multiprocessor, by the machine code that NVRTC makes for Hopper: no GPU is needed."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from benchmarks.kernels.without_gpu import needs_of
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


def test_a_row_of_1024_threads_keeps_its_elements_off_the_stack(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    """ptxas halves the registers, so that two blocks are resident, and spills for it, unless it is told that one will do."""
    monkeypatch.setenv("WARPWRIGHT_CACHE", str(tmp_path))
    x, of_channels = torch.empty(512, 128, 17, 17, device="meta"), torch.empty(128, device="meta")
    ir = captured(Several([lambda x, w, b: F.group_norm(torch.tanh(x), 8, w, b)]), x, of_channels, of_channels.clone())
    after = FuseCuda().apply(ir, fuse_cuda(1, DEFAULT))
    [kernel] = [node.target for node in after.graph.nodes if isinstance(node.target, CudaKernel)]
    assert kernel.shape[2] == 1024
    text, shapes = source_of([kernel])
    [needs] = needs_of(_CudaKernels(text, shapes).machine_code("90")).values()
    assert needs.local_bytes == 0 and needs.registers <= 64
