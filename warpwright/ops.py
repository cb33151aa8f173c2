"""Operators usable alone: `matmul_fp32`, a float32 matrix product on INT8 tensor cores with float32's error (docs/ops.md)."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any, cast

import torch

from warpwright import tf32
from warpwright.errors import UsageError
from warpwright.templates import int8_product, plain_product
from warpwright.templates.int8_product import LONGEST, SlicedMatrix

SHORTEST = 512
"""Inner sizes below this go to torch: ordinary values need four slices there, and the passes around the product weigh more than it gains."""


@dataclass(frozen=True)
class Costs:
    """What a product takes on an H200, in microseconds, for the choice between slices and cuBLAS; normal values (level 3)."""

    launches: float = 60.0
    """Host and gaps of a call whose b is prepared."""
    cut: float = 15.0
    """More for a call that cuts b too: 13 us at 2048 x 2048 x 512."""
    across: float = 10.0
    """More where b is transposed on the way: 12 us there."""
    step: float = 2.35
    """128 of k for 132 tiles of 128 x 128: 0.597 ms for 8 waves of 32 steps at 2048 x 8192 x 4096."""
    wave: float = 3.0
    """Writing the results of 132 tiles."""
    row_element: float = 2.6e-6
    """Cutting an element of contiguous rows: 163 us for 8192 x 8192, 754 for 16384 x 16384."""
    column_element: float = 5.6e-6
    """Cutting an element of a matrix that is transposed on the way: 373 us for 8192 x 8192, 1,463 for 16384 x 16384."""
    cublas: float = 52e6
    """Operations of cuBLAS in float32: 50 to 51 TFLOP/s were the most seen."""
    batch: float = 6.8
    """More for a wave of a product of batches: 4.2, 6.8 and 9.4 us in three that have 63 to 125 waves; each batch brings its own slices."""
    pieces: float = 45.0
    """More for the host of a call in pieces: 39, 46 and 55 us in three of 170 to 198 us, which the host takes."""
    added: float = 1.0e-6
    """Adding an element of a piece's result, 4 bytes at the speed of memory."""
    gain: float = 0.9
    """An inner size is cut in pieces where that should take at most this share of the whole product's time."""
    margin: float = 0.9
    """Slices are taken where they should need at most this share of cuBLAS's time."""
    beside: float = 0.0
    """More for a product of cuBLAS, whatever its size."""


COSTS = Costs()
RECORDED = Costs(launches=14.0, cut=5.0, across=3.0, pieces=8.0, beside=12.0)
"""The same within a CUDA graph: five launches with gaps of 1 to 2 us between them, and no host. There 1,024 cubed takes 30 us (the product) and 61 in
cuBLAS, which has 64 tiles for 132 multiprocessors; from 64 x 4,096 x 4,096 to 2,048 cubed cuBLAS took 18 to 42 us more than its best rate says."""

SPLITS = (2, 4, 8, 16, 32, 64)
"""Numbers of pieces of an inner size."""

SMALL = int(COSTS.launches / COSTS.margin * COSTS.cublas / 2)
"""m * n * k up to which cuBLAS is faster than the launches of a sliced product: 1,200 cubed. Such a call has no time for checks."""

NEVER_SLICED = 16 * SHORTEST * SMALL
"""Bytes of a times bytes of b (16 m n k^2) up to which a product is small or its k is short, without asking for the sizes."""

MOST_PLAIN = 16 * 132 * 32**2 * 1024**2
"""The same up to which a product may be one of `plain_product`'s: a tile of 32 x 32 and 1,024 terms for each multiprocessor."""

_Ways = dict[tuple[object, ...], "plain_product.Launch | None"]
_WAYS: dict[tuple[object, ...], _Ways | None] = {}
"""By the shapes of two matrices on a GPU: None where their product is torch's; else what to launch, by all else that this follows from."""
_UNKNOWN: Any = object()
_SLICED: dict[tuple[object, ...], bool] = {}
"""Of larger ones, by all that it follows from: whether slices make their product."""
MOST_WAYS = 4096
"""Kept, of shapes and of each shape; then they are forgotten."""


class Prepared:
    """A right factor [k, n], with its slices where slices can be used; `matmul_fp32` cuts it again when it has changed."""

    def __init__(self, source: torch.Tensor) -> None:
        """Cut `source` at once; it is kept, not copied (where its rows or its columns are contiguous)."""
        self.source = source
        self.slices: SlicedMatrix | None = None
        self._seen = (0, 0)
        self.refresh()

    def refresh(self) -> None:
        """Cut `source` again, on the current stream: into the same memory where it has not moved, so that a CUDA graph goes on to read there."""
        before, self._seen = self._seen, _state(self.source)
        usable = _on_hopper(self.source) and SHORTEST <= self.source.shape[0] <= LONGEST and self.source.shape[1] > 0
        if not usable:
            self.slices = None
            return
        with torch.cuda.device(self.source.device):
            if self.slices is None or before[0] != self._seen[0] or not _lies_in(self.slices.source, self.source):
                self.slices = int8_product.cut(self.source.detach().T)
            else:
                int8_product.fill(self.slices)

    def current(self) -> SlicedMatrix | None:
        """Return the slices, cut again where the source lies elsewhere or was written since; writes past torch's version counter are not seen.

        What a CUDA graph captures is not done until it is replayed: a changed source is cut in the graph, at each replay, and nothing is kept.
        """
        if _state(self.source) != self._seen:
            if _captures(self.source):
                return int8_product.cut(self.source.detach().T)
            self.refresh()
        return self.slices


def prepare(b: torch.Tensor) -> Prepared:
    """Return b [k, n] with its slices, for many products with the same right factor; raise UsageError as `matmul_fp32` does.

    A weight stored [n, k] (torch.nn.Linear's) is given as `weight.T`. In-place updates (an optimiser's step) are seen at the next product; a tensor
    made in inference mode has no version, so call `refresh` after you change one, and prepare again after `weight.data = other`.
    """
    _check("b", b)
    return Prepared(b)


def matmul_fp32(a: torch.Tensor, b: torch.Tensor | Prepared) -> torch.Tensor:
    """Return a @ b, float32 [m, n], for float32 matrices a [m, k] and b [k, n] of any strides.

    On a Hopper GPU, products that are large enough are summed exactly from INT8 slices; the number of slices of each tile of the result follows from
    its rows on the device, so that the root mean square error is no larger than float32's (docs/ops.md has the bound and what was measured). Products
    so small that a GPU is done before a host could call cuBLAS are float32 sums of a kernel of ours. All others (CPUs, other GPUs, k below 512 or
    above 24,576, where slicing costs more than it gains) are torch.matmul with TF32 off. Rows of a and columns of b that hold Inf or NaN are plain
    float32 sums, so they spread as in torch.matmul.

    Raises UsageError for other dtypes, other than two dimensions, unequal inner sizes or devices, for gradients (call it under torch.no_grad()), and
    where slices are wanted and NVIDIA's run-time compiler is missing.
    """
    right = b.source if isinstance(b, Prepared) else b  # all on the way to a small product is as cheap as it can be: torch takes 12 us for one
    sliced = False
    try:
        most = a.nbytes * right.nbytes
        if most <= MOST_PLAIN and a.is_cuda and not torch.compiler.is_compiling():
            launch = _launch(a, right)
            if launch is not None:
                return launch(a, right)
        sliced = most > NEVER_SLICED and most > 16 * SMALL * right.shape[0] and a.is_cuda and _by_slices(a, right, right is not b)
        if not sliced and a.layout is right.layout is torch.strided and a.is_meta is right.is_meta and not torch._C._get_cublas_allow_tf32():
            made = torch.mm(a, right)
            if made.dtype is torch.float32 and not made.requires_grad:  # as its operands are
                return made
    except (RuntimeError, AttributeError):  # what is no such product, which the checks below put into words; or no memory, as there
        pass
    _check_both(a, right)
    if not sliced:
        return _plain(a, right)
    with torch.cuda.device(a.device):
        return _sliced(a.detach(), b)


def _by_slices(a: torch.Tensor, b: torch.Tensor, prepared: bool) -> bool:
    """Say whether slices make the product of two matrices on a GPU; decided once for such matrices."""
    key = (a.shape, b.shape, a.stride(), b.stride(), a.get_device(), b.get_device(), a.dtype, b.dtype, prepared)
    found = _SLICED.get(key)
    if found is None:
        _check_both(a, b)
        if len(_SLICED) >= MOST_WAYS:
            _SLICED.clear()
        found = _SLICED[key] = _on_hopper(a) and worthwhile(a, b, prepared)
    return found


def _launch(a: torch.Tensor, b: torch.Tensor) -> plain_product.Launch | None:
    """Return how to launch the product of two matrices on a GPU as plain sums; None where it is torch's."""
    ways = _WAYS.get((a.shape, b.shape), _UNKNOWN)
    if ways is _UNKNOWN:
        ways = _ways(a, b)
    if ways is None:
        return None
    key = (a.stride(), b.stride(), a.get_device(), b.get_device(), a.dtype, b.dtype, type(a), type(b))
    launch = ways.get(key, _UNKNOWN)
    if launch is _UNKNOWN:
        launch = _way(a, b, ways, key)
    if launch is None or launch.device != torch._C._cuda_getDevice() or (torch.is_grad_enabled() and (a.requires_grad or b.requires_grad)):
        return None
    if a.is_neg() or b.is_neg():  # z.conj().imag: the memory holds the numbers with the other sign
        return None
    return cast(plain_product.Launch, launch)


def _ways(a: torch.Tensor, b: torch.Tensor) -> _Ways | None:
    """Decide once for two shapes."""
    _check_both(a, b)
    if len(_WAYS) >= MOST_WAYS:
        _WAYS.clear()
    return _WAYS.setdefault((a.shape, b.shape), {} if plain_product.worthwhile(a.shape[0], b.shape[1], a.shape[1]) else None)


def _way(a: torch.Tensor, b: torch.Tensor, ways: _Ways, key: tuple[object, ...]) -> plain_product.Launch | None:
    """Decide once for all products of such matrices."""
    _check_both(a, b)
    if torch.cuda.is_current_stream_capturing():  # no time to load a kernel
        return None
    launch = None
    if _on_hopper(a) and {type(a), type(b)} <= {torch.Tensor, torch.nn.Parameter}:
        with contextlib.suppress(UsageError, OSError):  # without NVIDIA's run-time compiler, or a folder for what it makes, it is torch's
            launch = plain_product.launch(a, b)
    if len(ways) >= MOST_WAYS:
        ways.clear()
    ways[key] = launch
    return launch


def worthwhile(a: torch.Tensor, b: torch.Tensor, prepared: bool, pieces: int = 1, costs: Costs = COSTS) -> bool:
    """Say whether slices should be faster than cuBLAS for a [m, k] and b [k, n], from shapes and strides alone; or for batches of both.

    `pieces`: of the inner size of one product, each a product of a batch.
    """
    return estimate(a, b, prepared, pieces, costs) <= costs.margin * (2 * a.numel() * b.shape[-1] / costs.cublas + costs.beside)


def estimate(a: torch.Tensor, b: torch.Tensor, prepared: bool, pieces: int = 1, costs: Costs = COSTS) -> float:
    """Return the microseconds of a product by slices: a [m, k], b [k, n], or batches of both; infinite where slices cannot be used."""
    if pieces > 1:
        added = pieces * a.shape[0] * b.shape[1] * costs.added
        return estimate(*split(a, b, pieces), prepared, 1, costs) + costs.pieces + added
    (batches, m, k), n = (1, *a.shape)[-3:], b.shape[-1]
    if not SHORTEST <= k <= LONGEST or not batches * m * n or (batches > 1 and (m % 128 or n % 128)):
        return math.inf
    waves = -(-batches * -(-m // 128) * -(-n // 128) // 132)
    wave = -(-k // 128) * costs.step + costs.wave + costs.batch * (batches > 1)
    ours = costs.launches + (0.0 if prepared else costs.cut + costs.across * _is_across(b.mT)) + waves * wave
    return ours + _cutting(a, costs) + (0.0 if prepared else _cutting(b.mT, costs))


def split(a: torch.Tensor, b: torch.Tensor, pieces: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return views [pieces, m, k / pieces] and [pieces, k / pieces, n] of a [m, k] and b [k, n]: the sum of their products is a @ b."""
    size = a.shape[1] // pieces
    return a.unflatten(1, (pieces, size)).transpose(0, 1), b.unflatten(0, (pieces, size))


def best_split(a: torch.Tensor, b: torch.Tensor, prepared: bool, costs: Costs = COSTS) -> int:
    """Return into how many pieces of the inner size a product should be cut: 1 for none, more where its result has too few tiles for the GPU.

    A product of 128 x 4,096 has 32 tiles of 128 x 128 for 132 multiprocessors. The pieces' results are added in float32.
    """
    best, least = 1, costs.gain * estimate(a, b, prepared, 1, costs)
    for pieces in SPLITS:
        if a.shape[1] % pieces == 0 and a.shape[0] % 128 == b.shape[1] % 128 == 0:
            ours = estimate(a, b, prepared, pieces, costs)
            best, least = (pieces, ours) if ours < least else (best, least)
    return best


def _is_across(rows: torch.Tensor) -> bool:
    return rows.stride(-2) == 1 < rows.stride(-1)


def _cutting(rows: torch.Tensor, costs: Costs) -> float:
    return rows.numel() * (costs.column_element if _is_across(rows) else costs.row_element)


def _sliced(a: torch.Tensor, b: torch.Tensor | Prepared) -> torch.Tensor:
    left = SlicedMatrix(a)
    if isinstance(b, Prepared):
        right = b.current()
        int8_product.fill(left)
    else:
        right = SlicedMatrix(b.detach().T)
        int8_product.fill(left, right)
    assert right is not None, "worthwhile() takes no inner size that prepare() leaves uncut"
    return int8_product.product(left, right, torch.empty(left.rows, right.rows, device=a.device))


def _plain(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    flags = tf32.tf32_flags(False, convolutions=False) if a.is_cuda and tf32.permits("matmul") else contextlib.nullcontext()
    with flags, torch.autocast(a.device.type, enabled=False):  # which would make it 16 bits
        return a.detach() @ b.detach()


def _check_both(a: torch.Tensor, b: torch.Tensor) -> None:
    _check("a", a)
    _check("b", b)
    if a.shape[1] != b.shape[0] or a.device != b.device:
        raise UsageError(f"expected a [m, k] and b [k, n] on one device, saw {tuple(a.shape)} on {a.device} and {tuple(b.shape)} on {b.device}")


def _check(name: str, x: torch.Tensor) -> None:
    if not isinstance(x, torch.Tensor) or x.dtype != torch.float32 or x.dim() != 2 or x.layout != torch.strided:
        seen = f"{x.dtype} of shape {tuple(x.shape)}" if isinstance(x, torch.Tensor) else type(x).__name__
        raise UsageError(f"expected {name} to be a dense float32 matrix, saw {seen}", "use torch.matmul for other dtypes and for batches")
    if x.requires_grad and torch.is_grad_enabled():
        raise UsageError(f"expected {name} without gradients, saw requires_grad=True", "call matmul_fp32 under torch.no_grad()")


def _on_hopper(x: torch.Tensor) -> bool:
    return x.is_cuda and torch.version.hip is None and torch.cuda.get_device_capability(x.device) == (9, 0)


def _lies_in(view: torch.Tensor, x: torch.Tensor) -> bool:
    return view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def _captures(x: torch.Tensor) -> bool:
    return x.is_cuda and torch.cuda.is_current_stream_capturing()


def _state(x: torch.Tensor) -> tuple[int, int]:
    return x.data_ptr(), 0 if x.is_inference() else x._version
