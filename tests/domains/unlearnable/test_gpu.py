"""The GPU kernels: the tensor-core one translated to the CPU and on a GPU, both bit-equal to the definition; its operands' layout."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import numpy as np
import pytest

from warpwright import native
from warpwright.domains.unlearnable import gpu, toeplitz
from warpwright.domains.unlearnable.bank import FilterBank, FilterSpec
from warpwright.domains.unlearnable.operator import PADS, SCALES, Operator, reference

KEY = bytes(range(32))
SHAPES = ((3, 3, 32, 32), (2, 1, 8, 8), (3, 2, 9, 24), (1, 3, 37, 40))
"""One warp an image; the least size; rows that no step divides; several groups."""


def bank(k: int, pb: float, tap: str = "random") -> FilterBank:
    return FilterBank.from_key(KEY, ("ant", "bee", "cat"), FilterSpec(k, pb, tap))  # type: ignore[arg-type]


def extremes(shape: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(sum(shape))
    corner = np.zeros(shape, np.uint8)
    corner[..., 0, 0], corner[..., -1, -1] = 255, 1
    return [rng.integers(0, 256, shape, dtype=np.uint8), np.zeros(shape, np.uint8), np.full(shape, 255, np.uint8), corner]


def test_bands_hold_every_weight_at_its_place() -> None:
    """Multiplying a window of 16 bytes with the bands is the correlation of one row."""
    for k in range(1, 10):
        weights = bank(k, 0.02).weights
        lanes = toeplitz.bands(weights).view(np.uint8).astype(np.int64).reshape(3, k, 2, 8, 16)  # [class, row, byte, output, window]
        dense = lanes[:, :, 0] + 256 * lanes[:, :, 1]
        window = np.random.default_rng(k).integers(0, 256, 16)
        for n in range(toeplitz.OUTPUTS):
            start = toeplitz.BEFORE + n - k // 2
            assert (dense[:, :, n] @ window == weights @ window[start : start + k]).all()


def test_what_the_tensor_cores_can_take() -> None:
    assert toeplitz.fits(bank(9, 0.06).weights, (1, 3, 224, 224))
    assert not toeplitz.fits(bank(9, 0.18).weights, (1, 3, 224, 224))  # sums beyond 16384
    assert not toeplitz.fits(bank(11, 0.02).weights, (1, 3, 224, 224))
    assert not toeplitz.fits(bank(3, 0.3).weights, (1, 3, 32, 33))
    assert not toeplitz.fits(bank(3, 0.3).weights, (1, 3, 7, 32))


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(("k", "pb", "size"), [(3, 0.3, 0), (4, 0.2, 0), (9, 0.06, 0), (9, 0.06, 64)])
def test_tensor_core_kernel_translated_to_the_cpu(k: int, pb: float, size: int) -> None:
    """Its products go through lane exchange there; all else is the text that a GPU runs."""
    pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")
    from warpwright.domains import transpile

    text = Path(gpu.__file__).with_name("classwise_mma.cu").read_text()
    pads = ("reflect",) if size else PADS  # a build for a size has one border, the other takes all
    fixed = [f"HEIGHT={size}", f"WIDTH={size}", f"PAD={PADS.index('reflect')}"] if size else []
    program = transpile.compile_text(text, "classwise_mma.cu", defines=[f"K={k}", *fixed], host=True)
    library = native.load(native.build(program.source, (), (*transpile.FLAGS, "-O1")))
    filters = bank(k, pb)
    for shape in ((2, 2, size, size),) if size else SHAPES:
        labels = np.arange(shape[0], dtype=np.int64) % 3
        for x in extremes(shape):
            for operator in (Operator(pad, scale) for pad in pads for scale in SCALES):  # type: ignore[arg-type]
                out = np.full_like(x, 170)
                arrays = (x, out, labels, toeplitz.bands(filters.weights), filters.sums)
                pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
                assert library.classwise_mma_cuda(*pointers, *shape, PADS.index(operator.pad), int(operator.scale == "max"), None) == 0
                assert (out == reference(x, labels, filters.weights, operator)).all(), (shape, operator)


@pytest.mark.cuda
@pytest.mark.parametrize("kernel", ["mma", "fma"])
@pytest.mark.parametrize(("k", "pb"), [(1, 0.3), (3, 0.3), (9, 0.06)])
def test_kernels_on_a_gpu(kernel: str, k: int, pb: float) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    for shape in (*SHAPES, (2, 3, 224, 224)):
        labels = np.arange(shape[0]) % 3
        for x in extremes(shape):
            for operator in (Operator(border, scale) for border in PADS for scale in SCALES):
                out = torch.full(shape, 170, dtype=torch.uint8, device="cuda")
                images = torch.from_numpy(x).cuda()
                gpu.cuda(images, torch.from_numpy(labels).cuda(), bank(k, pb), operator, out, tuning=gpu.GpuTuning(kernel))
                assert (out.cpu().numpy() == reference(x, labels, bank(k, pb).weights, operator)).all(), (shape, operator)
