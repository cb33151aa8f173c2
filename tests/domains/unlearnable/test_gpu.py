"""The GPU kernels: the tensor-core one translated to the CPU and on a GPU, both bit-equal to the definition; its operands' layout."""

from __future__ import annotations

import ctypes
import shutil
from fractions import Fraction

import numpy as np
import pytest

from warpwright import native
from warpwright.domains.unlearnable.cwc import gpu, toeplitz
from warpwright.domains.unlearnable.cwc.bank import FilterBank, FilterSpec
from warpwright.domains.unlearnable.cwc.operator import PADS, SCALES, Operator, reference

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


LONG = ((3, 0.3, 0), (4, 0.2, 0), (9, 0.06, 0))
"""All borders in one build, of a filter that takes a compiler up to half a minute."""


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(("k", "pb", "size"), [(9, 0.06, 64), *(pytest.param(*case, marks=pytest.mark.slow) for case in LONG)])
def test_tensor_core_kernel_translated_to_the_cpu(k: int, pb: float, size: int) -> None:
    """Its products go through lane exchange there; all else is the text that a GPU runs."""
    pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")
    from warpwright.domains import transpile

    text = gpu.source("cwc_mma")
    pads = ("reflect",) if size else PADS  # a build for a size has one border, the other takes all
    fixed = [f"HEIGHT={size}", f"WIDTH={size}", f"PAD={PADS.index('reflect')}"] if size else []
    program = transpile.compile_text(text, "cwc_mma.cu", defines=[f"K={k}", *fixed], host=True)
    library = native.load(native.build(program.source, (), (*transpile.FLAGS, "-O1")))
    filters = bank(k, pb)
    for shape in ((2, 2, size, size),) if size else SHAPES:
        labels = np.arange(shape[0], dtype=np.int64) % 3
        for x in extremes(shape):
            for operator in (Operator(pad, scale) for pad in pads for scale in SCALES):  # type: ignore[arg-type]
                out = np.full_like(x, 170)
                arrays = (x, out, labels, toeplitz.bands(filters.weights), filters.sums)
                pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
                assert library.cwc_mma_cuda(*pointers, *shape, PADS.index(operator.pad), int(operator.scale == "max"), None) == 0
                assert (out == reference(x, labels, filters.weights, operator)).all(), (shape, operator)


def test_halves_hold_every_weight_at_its_place() -> None:
    """The products of a window of 16 pixels, in the order in which the kernel's permutation takes them, are the correlation of one row."""
    for k in range(1, 4):
        weights = bank(k, 0.3).weights
        assert toeplitz.suits_halves(weights)
        words = toeplitz.halves(weights).view(np.float16).astype(np.int64).reshape(3, k, 2, 8, 4, 2)  # [class, row, even or odd, output, t, place]
        window = np.random.default_rng(k).integers(0, 256, 16)
        pixels = window.reshape(4, 2, 2).transpose(2, 0, 1)  # [even or odd, t, place]
        for n in range(toeplitz.OUTPUTS):
            start = toeplitz.BEFORE + n - k // 2
            assert ((words[:, :, :, n] * pixels).sum(axis=(2, 3, 4)) == weights @ window[start : start + k]).all()


def test_what_half_precision_can_take() -> None:
    whole = bank(3, 0.3).weights
    odd = whole.copy()
    odd[0, 0, 0] = 2049  # between two halves
    assert toeplitz.suits_halves(whole) and not toeplitz.suits_halves(odd) and not toeplitz.suits_halves(whole * 2)
    assert not toeplitz.suits_halves(bank(4, 0.2).weights)


LARGEST_MAXIMUM = 255 * toeplitz.LARGEST_SUM


@pytest.mark.parametrize("drawn", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_division_by_the_maximum_is_exact(drawn: int) -> None:
    """cwc_half.h's Divisor, rounded as doubles are, wherever the quotient changes: powers of two, small, large and random maxima."""
    near_powers = [2**i + j for i in range(4, 22) for j in (-1, 0, 1)]
    some = np.random.default_rng(0).integers(1, LARGEST_MAXIMUM, drawn).tolist()
    start, unit = 0x3F400000, Fraction(1, 2**64)
    for m in (*range(1, 40), *near_powers, LARGEST_MAXIMUM, *some):
        rough = float(np.float32(1) / np.float32(m))
        ratio = 255 * (rough * float(2 - m * Fraction(rough)))  # of a Fraction: rounded once, as a fused multiply-add is
        offset = float(Fraction(float(Fraction(ratio) / 2048 + Fraction(1048576.5))) - start * Fraction(ratio))
        for step in range(1, 256):
            first = ((2 * step - 1) * m + 509) // 510  # of the sums that give a step
            for z in (first - 1, first):
                made = float((start + z) * Fraction(ratio) + Fraction(offset))
                assert int(made) - 2**20 == (510 * z + m) // (2 * m), (m, z)
        factor, scaled = ratio * 2.0**1010, offset * 2.0**-64  # what the kernel holds: the same, exactly
        subnormal = float(np.array(start + m).view(np.float64))
        assert Fraction(factor) * Fraction(subnormal) + Fraction(scaled) == unit * ((start + m) * Fraction(ratio) + Fraction(offset))


HALF = (
    # side, k, border, images, warps, slots, the rest
    (32, 3, "reflect", 5, 2, 3, "ALONE=1 KEEP=1 STAGED=0"),
    (32, 3, "zero", 5, 2, 3, "ALONE=1 KEEP=1 STAGED=1"),
    (32, 2, "circular", 5, 1, 4, "ALONE=1 KEEP=0 STAGED=1"),
    (64, 1, "circular", 2, 4, 4, "ALONE=0 KEEP=1 STAGED=0"),
    (96, 3, "reflect", 1, 5, 4, "ALONE=0 KEEP=0 STAGED=0"),
    (96, 3, "zero", 1, 4, 3, "ALONE=0 KEEP=0 STAGED=0"),
)
"""Whole images a warp, and planes shared by a block: with one, two and three groups a warp."""


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    ("side", "k", "pad", "n", "warps", "slots", "ways"),
    [case if place % 3 == 1 else pytest.param(*case, marks=pytest.mark.slow) for place, case in enumerate(HALF)],
)
def test_half_precision_kernel_translated_to_the_cpu(side: int, k: int, pad: str, n: int, warps: int, slots: int, ways: str) -> None:
    """Products go through lane exchange there, copies are made at once; all else is the text that a GPU runs."""
    pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")
    from warpwright.domains import transpile

    text = gpu.source("cwc_half")
    sizes = [f"K={k}", f"HEIGHT={side}", f"WIDTH={side}", f"PAD={PADS.index(pad)}", f"WARPS={warps}", "BLOCKS=1", f"SLOTS={slots}"]  # type: ignore[arg-type]
    program = transpile.compile_text(text, "cwc_half.cu", defines=[*sizes, *ways.split()], host=True)
    library = native.load(native.build(program.source, (), (*transpile.FLAGS, "-O1")))
    filters, shape, labels = bank(k, 0.3), (n, 3, side, side), np.arange(n, dtype=np.int64) % 3
    for x in extremes(shape):
        for operator in (Operator(pad, scale) for scale in SCALES):  # type: ignore[arg-type]
            out = np.full_like(x, 170)
            arrays = (x, out, labels, toeplitz.halves(filters.weights), filters.sums)
            pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
            assert library.cwc_half_cuda(*pointers, *shape, PADS.index(operator.pad), int(operator.scale == "max"), None) == 0
            assert (out == reference(x, labels, filters.weights, operator)).all(), operator


CLUSTER = (
    # side, k, border, images, blocks an image, warps, slots
    (32, 3, "reflect", 3, 1, 3, 2),
    (32, 1, "zero", 3, 1, 2, 2),
    (64, 3, "zero", 5, 4, 2, 3),
    (64, 2, "circular", 3, 2, 5, 2),
    (64, 3, "reflect", 5, 6, 1, 2),
    (96, 3, "zero", 2, 3, 4, 2),
    (96, 3, "reflect", 3, 4, 3, 2),
)
"""Parts of whole images, of bands of rows and of planes; a warp with one unit, with several and with none; half a unit at the end (96 in 4 bands)."""

LIGHT = 128
"""Side by width of the filter up to which a case takes about a second; the others take three to five."""


@pytest.mark.compiler
@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize(
    ("side", "k", "pad", "n", "cluster", "warps", "slots"),
    [pytest.param(*case, marks=pytest.mark.slow) if case[0] * case[1] > LIGHT else case for case in CLUSTER],
)
def test_cluster_kernel_translated_to_the_cpu(side: int, k: int, pad: str, n: int, cluster: int, warps: int, slots: int) -> None:
    """Maxima go through global memory there, in two launches; parts, borders, the ring, sums and division are the text that a GPU runs."""
    pytest.importorskip("clang", reason="libclang is not installed: pip install 'warpwright[transpile]'")
    from warpwright.domains import transpile

    operator = Operator(pad, "max")  # type: ignore[arg-type]
    tuning = gpu.GpuTuning("cluster", warps=warps, blocks=1, slots=slots, cluster=cluster)
    defines = [define for define in gpu.cluster_defines(k, side, operator, tuning) if define != "TENSOR_CORES"]
    program = transpile.compile_text(gpu.source("cwc_cluster"), "cwc_cluster.cu", defines=defines, host=True)
    library = native.load(native.build(program.source, (), (*transpile.FLAGS, "-O1")))
    filters, shape, labels = bank(k, 0.3), (n, 3, side, side), np.arange(n, dtype=np.int64) % 3
    for x in extremes(shape):
        x[-1, 2, -1, -1] = 255  # another maximum in the last part
        out = np.full_like(x, 170)
        arrays = (x, out, labels, toeplitz.halves(filters.weights), filters.sums)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        assert library.cwc_cluster_cuda(*pointers, *shape, PADS.index(pad), 1, None) == 0  # type: ignore[arg-type]
        assert (out == reference(x, labels, filters.weights, operator)).all()


@pytest.mark.parametrize(
    ("side", "scale", "capability", "kernel"),
    [
        (224, "max", (9, 0), "cluster"),
        (224, "sum", (9, 0), "half"),
        (32, "max", (9, 0), "half"),
        (224, "max", (8, 0), "mma"),
        (224, "max", (7, 5), "fma"),
    ],
)
def test_the_fastest_kernel_that_takes_the_images(side: int, scale: str, capability: tuple[int, int], kernel: str) -> None:
    import torch

    images = torch.from_numpy(np.zeros(3 * side * side + 16, np.uint8))
    first = -images.data_ptr() % 16
    x = images[first : first + 3 * side * side].view(1, 3, side, side)
    filters = gpu.bank_to_cuda(bank(3, 0.3), "cpu")
    assert gpu.choose(filters, x, x, Operator("zero", scale), capability, gpu.GpuTuning()) == kernel  # type: ignore[arg-type]


@pytest.mark.cuda
@pytest.mark.parametrize("pad", PADS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_cluster_kernel_on_a_gpu(pad: str, k: int) -> None:
    """More images than clusters are resident, so that every slot of the ring is filled again."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    if torch.cuda.get_device_capability()[0] not in (9, 10):
        pytest.skip("needs thread-block clusters and 227 KB of shared memory a multiprocessor")
    operator, few, times = Operator(pad, "max"), 7, 50  # type: ignore[arg-type]
    labels = np.arange(few) % 3
    for x in extremes((few, 3, 224, 224)):
        images, repeated = torch.from_numpy(x).cuda().repeat(times, 1, 1, 1), torch.from_numpy(labels).cuda().repeat(times)
        out = torch.full_like(images, 170)
        gpu.cuda(images, repeated, bank(k, 0.3), operator, out, tuning=gpu.GpuTuning("cluster"))
        expected = torch.from_numpy(reference(x, labels, bank(k, 0.3).weights, operator)).cuda()
        assert bool((out.view(times, *x.shape) == expected).all())


@pytest.mark.cuda
@pytest.mark.parametrize(
    ("side", "k", "pads"),
    [(32, 3, PADS), (224, 3, PADS), *((side, 3, ("zero",)) for side in (64, 96, 128)), (32, 1, ("reflect",)), (32, 2, ("circular",))],
)
def test_half_precision_kernel_on_a_gpu(side: int, k: int, pads: tuple[str, ...]) -> None:
    """A build a border takes seconds: all borders at the two measured sides, one elsewhere."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs an NVIDIA GPU")
    if torch.cuda.get_device_capability()[0] not in (9, 10):
        pytest.skip("needs 227 KB of shared memory a multiprocessor")
    shape = (7, 3, side, side)
    labels = np.arange(shape[0]) % 3
    for x in extremes(shape):
        for operator in (Operator(border, scale) for border in pads for scale in SCALES):  # type: ignore[arg-type]
            out = torch.full(shape, 170, dtype=torch.uint8, device="cuda")
            gpu.cuda(torch.from_numpy(x).cuda(), torch.from_numpy(labels).cuda(), bank(k, 0.3), operator, out, tuning=gpu.GpuTuning("half"))
            assert (out.cpu().numpy() == reference(x, labels, bank(k, 0.3).weights, operator)).all(), operator


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
