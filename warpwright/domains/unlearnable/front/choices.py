"""What can be chosen in class-wise convolution, and the protected images that a choice gives.

Three choices are no part of the presets: filters may be smoothed, kept apart from one another, or applied to the luminance alone.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import UNIT, FilterBank, FilterSpec, Tap, distance, draw, farthest, fingerprint
from warpwright.domains.unlearnable.cwc.operator import PADS, SCALES, Operator, Pad, Scale
from warpwright.errors import UsageError

_ATTEMPTS = 300
"""Draws of one class's filter before a distance is called out of reach."""


@dataclass(frozen=True)
class Choices:
    """One form of the method. The defaults are the preset `gentle`."""

    k: int = 3
    pb: float = 0.3
    tap: Tap = "centre"
    pad: Pad = "reflect"
    scale: Scale = "sum"
    smooth: float = 0.0
    """From 0, independent weights, to 1, each weight the mean of its 3x3 neighbourhood within the filter. The tap stays 1."""
    luminance: bool = False
    """Filter the luminance alone: its change is added to each channel."""
    distance: float = 0.0
    """Least root mean square between the magnitude responses of two classes' filters, each of sum 1; filters are drawn again until it holds."""
    candidates: int = 1
    """Filters drawn for each class, of which the one farthest from the classes before it stays: a distance that is in reach for any number."""

    def __post_init__(self) -> None:
        if self.pad not in PADS or self.scale not in SCALES or self.tap not in ("centre", "random"):
            raise UsageError(f"expected a pad of {PADS}, a scale of {SCALES} and a tap centre or random, saw {self}", "see docs/unlearnable.md")
        if not 0 <= self.smooth <= 1 or not 0 <= self.distance < 1:
            raise UsageError(f"expected smooth and distance from 0 to 1, saw {self.smooth}, {self.distance}", "0 leaves filters as they are drawn")
        FilterSpec(self.k, self.pb, self.tap, candidates=self.candidates)

    @property
    def operator(self) -> Operator:
        """Border and rescaling."""
        return Operator(self.pad, self.scale)

    def bank(self, key: bytes, classes: Sequence[str]) -> FilterBank:
        """Return the filters: a class's depends on those of the classes before it, where a distance is asked for."""
        spec = FilterSpec(self.k, self.pb, self.tap, candidates=self.candidates)
        drawn: list[NDArray[np.int32]] = []
        for name in classes:
            drawn.append(self._apart(key, name, spec, drawn))
        return FilterBank(tuple(classes), np.stack(drawn), spec, fingerprint(key))

    def _apart(self, key: bytes, name: str, spec: FilterSpec, others: list[NDArray[np.int32]]) -> NDArray[np.int32]:
        """Return the farthest of the first `candidates` filters that are far enough away; of fewer, where there are no more."""
        fitting: list[NDArray[np.int32]] = []
        for attempt in range(max(_ATTEMPTS, self.candidates)):
            weights = smoothed(draw(key, name, spec, attempt=attempt), self.smooth)
            if not self.distance or all(distance(weights, other) >= self.distance for other in others):
                fitting.append(weights)
            if len(fitting) == self.candidates:
                break
        if not fitting:
            seen = f"no filter at a distance of {self.distance} from {len(others)} others in {_ATTEMPTS} draws"
            raise UsageError(seen, "raise k or pb, or lower it")
        return farthest(fitting, others)

    def protect(self, images: NDArray[np.uint8], labels: NDArray[np.integer[Any]], bank: FilterBank) -> NDArray[np.uint8]:
        """Return the protected images `[N, C, H, W]`."""
        if not self.luminance or images.shape[1] != 3:
            return backends.protect(images, labels, bank, self.operator)
        light = luma(images)
        change = backends.protect(light, labels, bank, self.operator).astype(np.int16) - light
        return np.clip(images + change, 0, 255).astype(np.uint8)

    @property
    def text(self) -> str:
        """A Python file that holds the choices and nothing else."""
        body = json.dumps(asdict(self), indent=4).replace("true", "True").replace("false", "False")
        return f"# class-wise convolution: what was chosen, as warpwright.domains.unlearnable.front.choices.parse reads it\nCHOICES = {body}\n"


def parse(text: str) -> Choices:
    """Return the choices of a file's text, without running it."""
    try:
        [assignment] = ast.parse(text).body
        if not isinstance(assignment, ast.Assign):
            raise ValueError("no assignment")
        values: dict[str, Any] = ast.literal_eval(assignment.value)
        return Choices(**values)
    except (ValueError, SyntaxError, TypeError) as error:
        known = ", ".join(field.name for field in fields(Choices))
        raise UsageError(f"expected CHOICES = {{...}} and nothing else, saw {text[:60]!r}: {error}", f"known: {known}") from error


def smoothed(weights: NDArray[np.int32], share: float) -> NDArray[np.int32]:
    """Return a filter `[k, k]` whose weights are moved by `share` towards the mean of their neighbourhood; the tap stays."""
    if not share or len(weights) < 2:
        return weights
    padded, ones = np.pad(weights.astype(np.float64), 1), np.pad(np.ones(weights.shape), 1)
    k = len(weights)
    total, count = (sum(array[i : i + k, j : j + k] for i in range(3) for j in range(3)) for array in (padded, ones))
    moved = np.floor((1 - share) * weights + share * total / count + 0.5).astype(np.int32)
    moved.flat[int(np.argmax(weights))] = UNIT
    return moved


def luma(images: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return `[N, 1, H, W]` the luminance of colour images (ITU-R BT.601, in 256ths)."""
    red, green, blue = (images[:, channel].astype(np.uint32) for channel in range(3))
    return ((77 * red + 150 * green + 29 * blue + 128) >> 8).astype(np.uint8)[:, None]
