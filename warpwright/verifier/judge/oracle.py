"""The error arithmetic: how far an output is from float64, and how far it may be.

    tolerance = 2 x error(original in its own precision) + floor,   for each output tensor, as maximum, RMS and centred RMS

Where the original was more exact than it usually is (the median of its relative error over the cases), its usual error stands in for it.
The floor, in units in the last place of the output's dtype, is there because the original is sometimes exact by luck or by nature: 4 of the
largest value for the maximum, 2 of the RMS for the RMS. Of a type of 16 bits it is 2 and 1/2: a single rounding is 0.15 to 0.3 off there, and with
the wider floor partial sums in bfloat16, seven times as far off as the original, passed. Over few elements luck weighs more (one sum over a million
terms may be off by 0.1 or by 10 ulp), so the floor grows by 1 + 7 / sqrt(elements); and where all outputs are small, the original is also run on
inputs moved by one ulp, and the worst of the runs counts. Where the answer is zero to rounding (`is_noise`), 8 x the original's error is allowed.
For comparison, in ulp of float32: TF32 8192, fp16 8192, bf16 65536.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from warpwright.base import Errors

SLACK = 2.0
FLOOR_MAX_ULPS, FLOOR_RMS_ULPS, FLOOR_MEAN_ULPS = 4.0, 2.0, 0.5
HALF_EPS = 2.0**-10
HALF_SHARE = (0.5, 0.25, 0.25)
"""Of these floors, for float16 and bfloat16."""
SMALL_SAMPLE = 7.0
NOISE, NOISE_SLACK = 1e4, 8.0
"""Where the original's error is this many times the float64 answer, the answer is zero and what comes out is rounding: the gradient of a bias before
a BatchNorm. Programs round in other orders, so that one's noise may be some times another's."""
FLUSHING, FLUSHED = frozenset({torch.float32, torch.complex64}), 32
"""A GPU's additions to memory in float32 (atom.add.f32, red.add.f32 of PTX) take numbers below the smallest normal one, and sums below it, for zero:
a sum by index is off by that number for each of its terms at worst. 15 times were seen over 8 terms and draws, on an H200."""
CHUNKS = {"cpu": 1 << 18, "cuda": 1 << 26}  # elements compared at once: 2 MiB of float64 stay in a core's cache, 512 MiB fill a GPU


@dataclass(frozen=True)
class Scale:
    """Size of the float64 answer."""

    max: float
    rms: float
    deviation: float
    elements: int
    on_gpu: bool = False
    """Whether it was computed there."""


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.reshape(-1)


def pieces(tensor: torch.Tensor) -> Iterator[slice]:
    """Yield the pieces in which a flat tensor is worked through."""
    size = CHUNKS.get(tensor.device.type, CHUNKS["cpu"])
    return (slice(at, at + size) for at in range(0, tensor.numel(), size))


def _moments(values: Any) -> tuple[float, float, float, int]:
    """Return max |v|, RMS, RMS about the mean, and the count of float64 chunks, which are overwritten. NaN and Inf give Inf."""
    largest = total = squares = 0.0
    count = 0
    first: float | None = None
    for chunk in values:
        if chunk.numel() == 0:
            continue
        # Sums are taken about the first value met: the variance of a nearly constant tensor survives.
        shift = float(chunk[0]) if first is None else first
        shift = shift if math.isfinite(shift) else 0.0
        first = shift
        low, high = torch.aminmax(chunk)
        moved = chunk.sub_(shift) if shift else chunk
        sums = torch.stack([torch.maximum(-low, high), moved.sum(), torch.dot(moved, moved)]).tolist()
        largest = max(largest, sums[0]) if math.isfinite(sums[0]) else math.inf
        total += sums[1]
        squares += sums[2]
        count += chunk.numel()
    if count == 0:
        return 0.0, 0.0, 0.0, 0
    if not (math.isfinite(largest) and math.isfinite(squares)):
        return math.inf, math.inf, math.inf, count
    mean = total / count
    variance = max(0.0, squares / count - mean * mean)
    return largest, math.sqrt(variance + (mean + (first or 0.0)) ** 2), math.sqrt(variance), count


CACHED = 1 << 22
"""Elements that a GPU works on at once: 32 MiB of float64 stay in its cache for all that is asked of them."""

NEARLY_CONSTANT = 1e-6
"""Share of the mean's square: of a smaller variance, found without a shift, too few digits are left."""


Moments = tuple[float, float, float, int]


def _moments_on_gpu(values: torch.Tensor, less: torch.Tensor | None = None) -> Moments | None:
    """Return `_moments` of flat values, or of what they differ from `less` by, in float64: in few passes over memory, and with one wait for the GPU.

    None where something is not finite, or too little of the variance would be left: then the longer way is gone.
    """
    return _moments_at_once([(values, less)])[0]


def _moments_at_once(asked: Sequence[tuple[torch.Tensor, torch.Tensor | None]]) -> list[Moments | None]:
    """Return `_moments_on_gpu` of each: with one wait for all."""
    sums = [_sums(values, less) for values, less in asked]
    rows = torch.cat(sums).tolist() if sums else []
    ends = itertools.accumulate(len(one) for one in sums)
    return [_read(rows[end - len(one) : end], values.numel()) for one, end, (values, _) in zip(sums, ends, asked, strict=True)]


def _sums(values: torch.Tensor, less: torch.Tensor | None) -> torch.Tensor:
    """Return least, largest, sum and sum of squares of each piece: [pieces, 4]. Nothing is waited for."""
    found = [values.new_empty(0, 4, dtype=torch.float64)]
    for at in range(0, values.numel(), CACHED):
        piece = values[at : at + CACHED]
        piece = piece.double() if less is None else torch.sub(piece, less[at : at + CACHED])  # float64, whatever the values are
        found.append(torch.stack([*torch.aminmax(piece), piece.sum(), torch.dot(piece, piece)])[None])
    return torch.cat(found)


def _read(rows: list[list[float]], count: int) -> Moments | None:
    if count == 0:
        return 0.0, 0.0, 0.0, 0
    low, high = min(row[0] for row in rows), max(row[1] for row in rows)
    total, squares = math.fsum(row[2] for row in rows if math.isfinite(row[2])), math.fsum(row[3] for row in rows if math.isfinite(row[3]))
    if not all(math.isfinite(number) for row in rows for number in row):
        return None
    mean = total / count
    variance = squares / count - mean * mean
    if variance < NEARLY_CONSTANT * mean * mean:
        return None
    return max(-low, high), math.sqrt(variance + mean * mean), math.sqrt(max(0.0, variance)), count


def scale_of(reference: torch.Tensor) -> Scale:
    """Return the size of a float64 answer, its non-finite elements left out."""
    flat = _flat(reference)
    if flat.is_cuda and (quick := _moments_on_gpu(flat)) is not None:
        return Scale(*quick, on_gpu=True)
    largest, rms, deviation, _ = _moments(_finite(flat[piece]) for piece in pieces(flat))
    return Scale(largest, rms, deviation, flat.numel(), reference.is_cuda)


def _finite(piece: torch.Tensor) -> torch.Tensor:
    """Return a float64 copy of the finite elements."""
    copied = piece.to(torch.float64, copy=True)
    return copied if math.isfinite(float(copied.sum())) else copied[torch.isfinite(copied)]


def judged_at_once(triples: Sequence[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> list[tuple[Errors, Errors, Scale] | None]:
    """Return the errors of a program's real values and of the original's own against float64, and the size of that, for tensors on a GPU: [(values,
    own, float64)]. With one wait for all; None where something is not finite, or the longer way has to be gone for another reason."""
    asked: list[tuple[torch.Tensor, torch.Tensor | None]] = []
    for values, own, exact in triples:
        flat = exact.reshape(-1)
        asked += [(values.reshape(-1), flat), (own.reshape(-1), flat), (flat, None)]
    found = iter(_moments_at_once(asked))
    return [
        (Errors(*one[:3]), Errors(*two[:3]), Scale(*three, on_gpu=True)) if one and two and three else None
        for one, two, three in zip(found, found, found, strict=True)
    ]


def all_finite(values: torch.Tensor) -> bool:
    """Whether neither Inf nor NaN is among some values.

    A sum that is finite says so in a pass without a copy: `isfinite` makes three, and took a third of the time that a judge of 2^20 elements needs to
    get to know a case. A sum that overflows says nothing.
    """
    if (values.is_floating_point() or values.is_complex()) and not bool(torch.isfinite(values.sum())):
        return bool(torch.isfinite(values).all())
    return True


def errors_of(values: torch.Tensor, reference: torch.Tensor) -> Errors:
    """Return the error of `values` against a float64 answer; infinite where a finite element came out as Inf or NaN."""
    flat, exact = _flat(values), _flat(reference)
    if exact.is_cuda and flat.is_cuda and exact.dtype is torch.float64 and (quick := _moments_on_gpu(flat, exact)) is not None:
        return Errors(*quick[:3])

    def differences() -> Any:
        for piece in pieces(exact):
            difference = flat[piece].to(torch.float64, copy=True).sub_(exact[piece])
            if not math.isfinite(float(difference.sum())):  # one pass in place of two for the usual case
                difference = difference[torch.isfinite(exact[piece])]
            yield difference

    largest, rms, centred, _ = _moments(differences())
    return Errors(largest, rms, centred)


def errors_apart(values: torch.Tensor, reference: torch.Tensor, there: torch.Tensor) -> tuple[Errors, Errors]:
    """Return the errors of `values` where the mask `there` is not set, and of those where it is: `errors_of` each part.

    Of 524,288 elements on a CPU with 1 in 1,000 set: 5 ms, and 18 where both tensors are indexed with both masks.
    """
    if reference.is_cuda or reference.is_complex() or values.is_complex():
        return errors_of(values[~there], reference[~there]), errors_of(values[there], reference[there])
    flat, exact, mask = _flat(values), _flat(reference), there.reshape(-1)

    def differences(of: torch.Tensor) -> Any:
        for piece in pieces(exact):
            difference = flat[piece].to(torch.float64, copy=True).sub_(exact[piece])
            finite = math.isfinite(float(difference.sum()))
            yield difference.masked_select(of[piece] if finite else of[piece] & torch.isfinite(exact[piece]))

    rest, apart = (Errors(*_moments(differences(of))[:3]) for of in (~mask, mask))
    return rest, apart


def worst(first: Errors, second: Errors) -> Errors:
    """Return the larger of each error."""
    return Errors(max(first.max, second.max), max(first.rms, second.rms), max(first.centred, second.centred))


def relative(error: Errors, scale: Scale) -> Errors:
    """Return an error in units of the answer's size, which is not zero."""
    return Errors(error.max / scale.max, error.rms / scale.rms, error.centred / scale.rms)


def absolute(error: Errors, scale: Scale) -> Errors:
    """Return what a relative error means for an answer of this size."""
    return Errors(error.max * scale.max, error.rms * scale.rms, error.centred * scale.rms)


def median(errors: Sequence[Errors]) -> Errors:
    """Return the median of each kind of error."""
    return Errors(*(statistics.median(getattr(error, kind) for error in errors) for kind in ("max", "rms", "centred")))


def root_mean_square(errors: Sequence[Errors]) -> Errors:
    """Return the root mean square of each kind of error; of none, 0."""
    size = math.sqrt(max(1, len(errors)))
    return Errors(*(math.hypot(*(getattr(error, kind) for error in errors)) / size for kind in ("max", "rms", "centred")))


def is_noise(original: Errors, scale: Scale) -> bool:
    """Is the answer zero to rounding, so that the original's output is nothing but its error?"""
    return original.rms > NOISE * scale.rms


def smallest(dtype: torch.dtype, on_gpu: bool) -> float:
    """Return the error that is no error, however small the answer is."""
    if not (dtype.is_floating_point or dtype.is_complex):
        return 0.0
    return torch.finfo(dtype).tiny * (FLUSHED if on_gpu and dtype in FLUSHING else 1)


def tolerance(original: Errors, scale: Scale, dtype: torch.dtype) -> Errors:
    """Return how large an error may be, given the original's own."""
    slack = NOISE_SLACK if is_noise(original, scale) else SLACK
    eps = torch.finfo(dtype).eps if dtype.is_floating_point or dtype.is_complex else torch.finfo(torch.float32).eps
    tiny = smallest(dtype, scale.on_gpu)
    few = 1 + SMALL_SAMPLE / math.sqrt(max(1, scale.elements))
    of_max, of_rms, of_mean = HALF_SHARE if eps >= HALF_EPS else (1.0, 1.0, 1.0)
    return Errors(
        slack * original.max + few * of_max * FLOOR_MAX_ULPS * eps * scale.max + tiny,
        slack * original.rms + few * of_rms * FLOOR_RMS_ULPS * eps * scale.rms + tiny,
        slack * original.centred + few * eps * (of_rms * FLOOR_RMS_ULPS * scale.deviation + of_mean * FLOOR_MEAN_ULPS * scale.rms) + tiny,
    )


def shares(error: Errors, allowed: Errors) -> dict[str, float]:
    """Return the ratio of each kind of error to what is allowed."""
    pairs = {"max": (error.max, allowed.max), "rms": (error.rms, allowed.rms), "centred": (error.centred, allowed.centred)}
    return {
        kind: math.inf if not math.isfinite(seen) else seen / limit if limit > 0 else (math.inf if seen > 0 else 0.0)
        for kind, (seen, limit) in pairs.items()
    }  # fmt: skip


def excess(error: Errors, allowed: Errors) -> float:
    """Return the largest ratio of an error to what is allowed: at most 1 for a pass."""
    return max(shares(error, allowed).values())


def describe(error: Errors, scale: Scale) -> str:
    """Say in words what an error of this size looks like."""
    relative = error.rms / scale.rms if scale.rms > 0 else math.inf
    for name, low, high in (("TF32 or fp16 rounding", 5e-5, 1.5e-3), ("bf16 rounding", 1.5e-3, 8e-3)):
        if low <= relative < high:
            return f"RMS error {relative:.1e} of the output's RMS, about the size of {name}"
    return f"RMS error {relative:.1e} of the output's RMS" if math.isfinite(relative) else "the answer is zero and the output is not"


def same_places(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether Inf, -Inf and NaN each stand in the same places in two tensors."""
    for here, there in zip(_flat(one).split(CHUNKS["cuda"]), _flat(other).split(CHUNKS["cuda"]), strict=True):
        same = (here.isnan() == there.isnan()) & (here.isposinf() == there.isposinf()) & (here.isneginf() == there.isneginf())
        if not bool(same.all()):
            return False
    return True


def same_non_finite(values: torch.Tensor, own: torch.Tensor, reference: torch.Tensor) -> bool:
    """Whether Inf and NaN stand where the original has them; where only the original overflowed, the float64 answer may stand instead."""
    flat, kept, exact = _flat(values), _flat(own), _flat(reference)
    for piece in pieces(flat):
        new, old, wide = flat[piece], kept[piece], exact[piece]
        same = (new.isnan() & old.isnan()) | (new.isinf() & old.isinf() & ((new > 0) == (old > 0)))
        if not bool((same | (new.isfinite() & (old.isfinite() | wide.isfinite()))).all()):
            return False
    return True
