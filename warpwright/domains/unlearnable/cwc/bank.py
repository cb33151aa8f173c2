"""Filters of class-wise convolution (CWC): one small filter per class, drawn from a key and the class's name.

Source: arXiv 2303.04278, section 4: k*k weights from U(0, p_b), one of them set to 1. Ours differ where the paper's
form does harm: weights are multiples of 1/4096, so that every partial sum of a convolution is an exact integer in float32;
the tap may be centred; filters are keyed by class name, so that adding a class changes no other class's filter (unless they are kept
apart, where a filter depends on those of the classes before it).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from warpwright.errors import UsageError

Tap = Literal["centre", "random"]

SCHEME = "cwc-1"
"""Changes whenever the same key would give other filters."""

UNIT = 4096
"""A weight w is stored as the integer w * UNIT (Q12)."""

MAX_SUM = 16
"""With sum(w) <= 16 every partial sum 255 * 16 * 4096 stays below 2**24 and is exact in float32, in any order."""

_GRID = 64
"""Frequencies a side at which min |F| is sought; 224-pixel images see the same minimum to 1 %."""

_ATTEMPTS = 10_000


@dataclass(frozen=True)
class FilterSpec:
    """How filters are drawn."""

    k: int = 3
    """Side in pixels, odd or even."""
    pb: float = 0.3
    """Blur parameter p_b: weights are uniform on [0, pb]."""
    tap: Tap = "centre"
    """Where the weight 1 is: `random` is the paper's."""
    min_response: float = 0.0
    """Draw again until the smallest magnitude of the frequency response exceeds this, which `recover` needs."""
    candidates: int = 1
    """Filters drawn for each class, of which the one stays that is farthest (`distance`) from those of the classes before it."""

    def __post_init__(self) -> None:
        if not 1 <= self.k <= 31:
            raise UsageError(f"expected a filter side k from 1 to 31, saw {self.k}", "the paper uses 3 and 9")
        if not 0.0 <= self.pb <= 1.0:
            raise UsageError(f"expected p_b from 0 to 1, saw {self.pb}", "the paper uses 0.3 (k=3) and 0.06 (k=9)")
        if 1 + self.pb * (self.k * self.k - 1) > MAX_SUM:
            raise UsageError(f"expected 1 + pb*(k*k-1) <= {MAX_SUM}, saw k={self.k}, pb={self.pb}", "lower p_b or k: sums would not stay exact")
        if not 1 <= self.candidates <= 1000:
            raise UsageError(f"expected from 1 to 1000 candidates, saw {self.candidates}", "1 takes filters as they are drawn")


@dataclass(frozen=True)
class FilterBank:
    """Filters of all classes of one data set."""

    classes: tuple[str, ...]
    weights: NDArray[np.int32]
    """`[classes, k, k]`, in units of 1/4096."""
    spec: FilterSpec
    fingerprint: str
    """Of the key: safe to publish, unlike the key."""

    @property
    def sums(self) -> NDArray[np.int32]:
        """`[classes]` the sum of each filter, in units of 1/4096."""
        return self.weights.sum(axis=(1, 2), dtype=np.int32)

    @classmethod
    def from_key(cls, key: bytes, classes: Sequence[str], spec: FilterSpec | None = None, dataset: str = "") -> FilterBank:
        """Return the filters of `classes`: the same for ever for the same key, spec, data set and class names."""
        spec = spec or FilterSpec()
        if len(key) < 16:
            raise UsageError(f"expected a key of at least 16 bytes, saw {len(key)}", "make one with `warpwright key new`")
        if len(set(classes)) != len(classes):
            raise UsageError("expected distinct class names", "give each class its own name")
        weights = np.zeros((len(classes), spec.k, spec.k), np.int32)
        shapes = np.zeros((len(classes) if spec.candidates > 1 else 0, _GRID, _GRID))
        for i, name in enumerate(classes):
            weights[i] = _farthest(_filters(key, name, spec, dataset), shapes[:i])
            if spec.candidates > 1:
                shapes[i] = _shapes(weights[i])
        return cls(tuple(classes), weights, spec, fingerprint(key))


def fingerprint(key: bytes) -> str:
    """Return 16 hexadecimal digits that identify a key without revealing it."""
    return hashlib.blake2b(key, digest_size=8, person=b"cwc-fingerprint").hexdigest()


def response(weights: NDArray[np.int32], size: tuple[int, int] = (_GRID, _GRID)) -> NDArray[np.float64]:
    """Return `[..., h, w]` the magnitude of filters' frequency response under circular padding."""
    return np.abs(np.fft.fft2(weights / UNIT, s=size))  # a shift of the tap changes the phase only


def _filters(key: bytes, name: str, spec: FilterSpec, dataset: str) -> list[NDArray[np.int32]]:
    """Return the first `spec.candidates` filters of a class whose response is large enough."""
    fitting: list[NDArray[np.int32]] = []
    for attempt in range(_ATTEMPTS):
        weights = draw(key, name, spec, dataset, attempt)
        if not spec.min_response or response(weights).min() > spec.min_response:
            fitting.append(weights)
        if len(fitting) == spec.candidates:
            return fitting
    raise UsageError(
        f"expected {spec.candidates} filters with |F| > {spec.min_response}, saw {len(fitting)} in {_ATTEMPTS} draws at k={spec.k}, pb={spec.pb}",
        "lower --min-response or --pb",
    )


def farthest(candidates: Sequence[NDArray[np.int32]], others: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Return the candidate whose nearest of `others` is farthest away (Mitchell 1991); the first of equals, or where there are no others."""
    return _farthest(candidates, _shapes(np.stack(others))) if others else candidates[0]


def _farthest(candidates: Sequence[NDArray[np.int32]], taken: NDArray[np.float64]) -> NDArray[np.int32]:
    """Return the candidate farthest from the shapes `taken`, `[others, grid, grid]`.

    A matrix product rules out most of the candidates, as its error (3e-8 at most, where filters are equal) permits; sums of squared differences, the
    definition, choose among the rest.
    """
    if len(candidates) == 1 or not len(taken):
        return candidates[0]
    shapes = _shapes(np.stack(candidates))
    rows, others = shapes.reshape(len(shapes), -1), taken.reshape(len(taken), -1)
    squares = (rows**2).sum(1)[:, None] + (others**2).sum(1) - 2 * rows @ others.T
    about = np.sqrt(squares.clip(0).min(1) / rows.shape[1])
    left = np.flatnonzero(about >= about.max() - 1e-6)
    nearest = [np.sqrt(((shapes[i] - taken) ** 2).mean((1, 2))).min() for i in left]
    return candidates[left[int(np.argmax(np.round(nearest, 9)))]]


def distance(a: NDArray[np.int32], b: NDArray[np.int32]) -> float:
    """Return the root mean square difference of two filters' magnitude responses, each scaled to 1 at frequency 0."""
    one, other = _shapes(a), _shapes(b)
    return float(np.sqrt(((one - other) ** 2).mean()))


def _shapes(weights: NDArray[np.int32]) -> NDArray[np.float64]:
    return response(weights) * UNIT / weights.sum((-2, -1), keepdims=True)


def draw(key: bytes, name: str, spec: FilterSpec, dataset: str = "", attempt: int = 0) -> NDArray[np.int32]:
    """Return `[k, k]` the filter of a class that one attempt gives, in units of 1/4096."""
    return _draw(_stream(key, name, spec, dataset, attempt), spec)


def _stream(key: bytes, name: str, spec: FilterSpec, dataset: str, attempt: int) -> np.random.Philox:
    """A counter-based generator keyed by everything that may change a filter (fields are length-prefixed)."""
    fields = (SCHEME, dataset, name, str(spec.k), repr(float(spec.pb)), spec.tap, str(attempt))
    hasher = hashlib.blake2b(key=key[:64], digest_size=16)
    for text in fields:
        data = text.encode()
        hasher.update(len(data).to_bytes(4, "little") + data)
    return np.random.Philox(key=int.from_bytes(hasher.digest(), "little"))


def _draw(stream: np.random.Philox, spec: FilterSpec) -> NDArray[np.int32]:
    """k*k weights, then the tap: the raw 64-bit stream only, since numpy promises that to be stable."""
    raw = stream.random_raw(spec.k * spec.k + 1)
    uniform = (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53
    weights = np.floor(uniform[:-1] * spec.pb * UNIT + 0.5).astype(np.int32).reshape(spec.k, spec.k)
    place = int(uniform[-1] * spec.k * spec.k) if spec.tap == "random" else (spec.k // 2) * spec.k + spec.k // 2
    weights.flat[place] = UNIT
    return weights
