"""Which four photographs give the PSNR and SSIM that were recorded, with the goals of quality, on "four real photos" without their names?

    python -m benchmarks.cwc.photos PHOTO...

Every set of four of the given photographs (and the two of scikit-learn), four ways to shrink them: the mean over the four is compared with the
sixteen recorded figures. An inference, not a proof: a set may fit by chance, and the record does not say how its pictures were made.
"""

from __future__ import annotations

import itertools
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.cwc.quality import CLASSES, RESAMPLES, Shrink, of_classes, photographs
from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import FilterBank, FilterSpec
from warpwright.domains.unlearnable.cwc.operator import Operator

KEYS = {32: 3, 224: 1}
"""Keys a side, of ten filters each: 32-pixel pictures cost little."""

TOLERANCE = (0.5, 0.015)
"""dB and SSIM: what another draw of filters moves the figures of the random tap by."""

SHOWN = 10


@dataclass(frozen=True)
class Recorded:
    """One form of the method, and the means recorded for it."""

    name: str
    side: int
    spec: FilterSpec
    operator: Operator
    psnr: float
    ssim: float


PAPER, CENTRED, GENTLE = Operator("zero", "max"), Operator("reflect", "max"), Operator("reflect", "sum")
RECORDS = (
    Recorded("32 px k=3 paper", 32, FilterSpec(3, 0.3, "random"), PAPER, 18.8, 0.81),
    Recorded("32 px k=3 centred, reflect", 32, FilterSpec(3, 0.3), CENTRED, 21.5, 0.94),
    Recorded("32 px k=3 gentle", 32, FilterSpec(3, 0.3), GENTLE, 29.8, 0.95),
    Recorded("224 px k=9 paper", 224, FilterSpec(9, 0.06, "random"), PAPER, 20.9, 0.65),
    Recorded("224 px k=9 centred, reflect", 224, FilterSpec(9, 0.06), CENTRED, 24.4, 0.85),
    Recorded("224 px k=9 gentle", 224, FilterSpec(9, 0.06), GENTLE, 27.0, 0.84),
    Recorded("224 px k=3 paper", 224, FilterSpec(3, 0.3, "random"), PAPER, 25.4, 0.89),
    Recorded("224 px k=3 gentle", 224, FilterSpec(3, 0.3), GENTLE, 33.8, 0.97),
)
WANTED = np.array([(record.psnr, record.ssim) for record in RECORDS])


def main() -> None:
    """Print the sets that fit best, each with its best way to shrink, and the figures of the first."""
    names, photos = zip(*photographs(sys.argv[1:]), strict=True)
    shrinks = [Shrink("centre", resample) for resample in RESAMPLES]
    figures = np.array([[measured(photo, shrink) for photo in photos] for shrink in shrinks])
    sets = np.array(list(itertools.combinations(range(len(names)), 4)))
    means = figures[:, sets].mean(2)
    misfit = np.sqrt((((means - WANTED) / TOLERANCE) ** 2).mean((2, 3)))
    order = np.argsort(misfit.min(0))
    print(f"{len(sets)} sets, {len(shrinks)} ways to shrink. Misfit: rms of the 16 deviations, in units of {TOLERANCE[0]} dB or {TOLERANCE[1]}.\n")
    print("| rank | photographs | resampling | misfit | max brightens by, 224 and 32 px |\n| --- | --- | --- | --- | --- |")
    with_both = [rank for rank, one in enumerate(order) if {"china", "flower"} <= {names[i] for i in sets[one]}]
    for rank in [*range(SHOWN), *with_both[:1]]:
        way = int(misfit[:, order[rank]].argmin())
        chosen = ", ".join(names[i] for i in sets[order[rank]])
        large, small = (np.mean([brightening(photos[i], shrinks[way], side) for i in sets[order[rank]]]) for side in (224, 32))
        print(f"| {rank + 1} | {chosen} | {shrinks[way].resample} | {misfit[way, order[rank]]:.2f} | {large:.0%}, {small:.0%} |")
    show(means[misfit[:, order[0]].argmin(), order[0]])


def measured(photo: NDArray[np.uint8], shrink: Shrink) -> list[tuple[float, float]]:
    """Return mean PSNR and SSIM over filters, record by record."""
    found = []
    for record in RECORDS:
        keys = [bytes([seed + 1]) * 32 for seed in range(KEYS[record.side])]
        figures = [of_classes(photo, record.side, record.spec, key, shrink, record.operator) for key in keys]
        noise, likeness = np.mean(figures, axis=(0, 2))
        found.append((float(noise), float(likeness)))
    return found


def brightening(photo: NDArray[np.uint8], shrink: Shrink, side: int) -> float:
    """Return by what share dividing by the maximum brightens, k=3: recorded as "5-21 %", and left out of the misfit as a check."""
    clean = np.repeat(shrink(photo, side)[None], len(CLASSES), 0)
    banks = [FilterBank.from_key(bytes([seed + 1]) * 32, CLASSES, FilterSpec(3, 0.3)) for seed in range(KEYS[side])]
    return float(np.mean([backends.cpp(clean, np.arange(len(CLASSES)), bank, CENTRED).mean() for bank in banks]) / clean.mean() - 1)


def show(means: NDArray[np.float64]) -> None:
    """Print one set's figures beside the recorded ones."""
    print("\n| first set | PSNR dB | recorded | SSIM | recorded |\n| --- | --- | --- | --- | --- |")
    for record, (noise, likeness) in zip(RECORDS, means, strict=True):
        print(f"| {record.name} | {noise:.1f} | {record.psnr:.1f} | {likeness:.3f} | {record.ssim:.2f} |")


if __name__ == "__main__":
    main()
