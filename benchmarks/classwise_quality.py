"""What the preset gentle leaves of photographs: PSNR and SSIM, photo by photo, at 32 pixels with k=3 and at 224 pixels with k=9.

    PYTHONPATH=. python benchmarks/classwise_quality.py PHOTO... > benchmarks/results/classwise_quality.md

Beside the files that are named it takes the two photographs that scikit-learn bundles. A photograph is cut to the square at its upper left and
shrunk by areas. Figures are medians over ten classes and the three channels, then means over three keys.
"""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.datasets import load_sample_images

from warpwright.domains.unlearnable import backends, quality
from warpwright.domains.unlearnable.bank import FilterBank, FilterSpec
from warpwright.domains.unlearnable.protect import PRESETS

CLASSES = tuple(str(i) for i in range(10))
SIZES = ((32, FilterSpec(3, 0.3)), (224, FilterSpec(9, 0.06)))
SEEDS = 3


def main() -> None:
    """Print a row a photograph, and their medians."""
    rows = [(name, [figure for size in SIZES for figure in gentle(photo, *size)]) for name, photo in photographs(sys.argv[1:])]
    rows.append(("median", list(np.median([figures for _, figures in rows], axis=0))))
    print(f"# What `gentle` leaves of photographs\n\n{datetime.date.today()}. `python benchmarks/classwise_quality.py PHOTO...`\n")
    print("| photograph | 32 px, k=3: PSNR dB | SSIM | 224 px, k=9: PSNR dB | SSIM |\n| --- | --- | --- | --- | --- |")
    for name, (small, small_likeness, large, large_likeness) in rows:
        print(f"| {name} | {small:.1f} | {small_likeness:.3f} | {large:.1f} | {large_likeness:.3f} |")


def photographs(paths: list[str]) -> list[tuple[str, NDArray[np.uint8]]]:
    """Return names and `[H, W, 3]`."""
    bundled = load_sample_images()
    found = [(f"scikit-learn {Path(name).stem}", image) for name, image in zip(bundled.filenames, bundled.images, strict=True)]
    return found + [(Path(path).stem, np.asarray(Image.open(path).convert("RGB"))) for path in paths]


def gentle(photo: NDArray[np.uint8], side: int, spec: FilterSpec) -> tuple[float, float]:
    """Return PSNR and SSIM at a side."""
    figures = [[np.median(figure) for figure in of_classes(photo, side, spec, bytes([seed + 1]) * 32)] for seed in range(SEEDS)]
    noise, likeness = np.mean(figures, axis=0)
    return float(noise), float(likeness)


def of_classes(photo: NDArray[np.uint8], side: int, spec: FilterSpec, key: bytes) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return PSNR (dB) and SSIM of a photograph with each class's filter, `[classes]` each."""
    least = min(photo.shape[:2])
    square = Image.fromarray(photo[:least, :least]).resize((side, side), Image.Resampling.BOX)
    clean = np.repeat(np.asarray(square).transpose(2, 0, 1)[None], len(CLASSES), 0)
    bank = FilterBank.from_key(key, CLASSES, spec)
    after = backends.cpp(np.ascontiguousarray(clean), np.arange(len(CLASSES)), bank, PRESETS["gentle"].operator)
    return quality.psnr(clean, after), quality.ssim(clean, after)


if __name__ == "__main__":
    main()
