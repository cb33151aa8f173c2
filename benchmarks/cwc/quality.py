"""What the preset gentle leaves of photographs: PSNR and SSIM, photo by photo, at 32 pixels with k=3 and at 224 pixels with k=9.

    python -m benchmarks.cwc.quality [OPTIONS] PHOTO...

The two photographs that scikit-learn bundles are added to the files named. A whole photograph is shrunk to each side: a patch of 32
pixels would be far smoother than the small pictures that a data set holds. Figures are medians over ten classes, then means over three keys.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from scipy import ndimage
from sklearn.datasets import load_sample_images

from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import FilterBank, FilterSpec
from warpwright.domains.unlearnable.cwc.operator import Operator
from warpwright.domains.unlearnable.protect import PRESETS
from warpwright.domains.unlearnable.verification import quality

CLASSES = tuple(str(i) for i in range(10))
SIZES = ((32, FilterSpec(3, 0.3)), (224, FilterSpec(9, 0.06)))
SEEDS = 3
PILLOW = {"box": Image.Resampling.BOX, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
RESAMPLES = (*PILLOW, "gaussian")
CUTS = ("corner", "centre", "whole")


@dataclass(frozen=True)
class Shrink:
    """How a photograph becomes a small square."""

    cut: str = "corner"
    """The square at the upper left, the square in the middle, or the `whole` with its sides made equal."""
    resample: str = "box"
    """A filter of Pillow, widened to the scale, or `gaussian`: what scikit-image's `resize` does."""

    def __call__(self, photo: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
        """Return `[3, side, side]` of `[H, W, 3]`."""
        square = self._square(photo)
        if self.resample == "gaussian":
            small = blurred(square, side)
        else:
            small = np.asarray(Image.fromarray(square).resize((side, side), PILLOW[self.resample]))
        return np.ascontiguousarray(small.transpose(2, 0, 1))

    def _square(self, photo: NDArray[np.uint8]) -> NDArray[np.uint8]:
        if self.cut == "whole":
            return photo
        height, width, least = *photo.shape[:2], min(photo.shape[:2])
        top, left = ((height - least) // 2, (width - least) // 2) if self.cut == "centre" else (0, 0)
        return np.ascontiguousarray(photo[top : top + least, left : left + least])


def blurred(photo: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """Return `[side, side, 3]`: a Gaussian of sigma (scale - 1) / 2, then linear interpolation."""
    scales = [length / side for length in photo.shape[:2]]
    soft = ndimage.gaussian_filter(photo.astype(np.float64), [max(scale - 1, 0) / 2 for scale in scales] + [0], mode="mirror")
    small = ndimage.zoom(soft, [1 / scale for scale in scales] + [1], order=1, mode="mirror", grid_mode=True)
    return np.asarray(np.clip(small + 0.5, 0, 255), np.uint8)


def main() -> None:
    """Print a row a photograph, their medians, and the means over those that `--mean` names."""
    options = parsed()
    shrink = Shrink(options.cut, options.resample)
    photos = photographs(options.photos)
    rows = {name: [figure for size in SIZES for figure in gentle(photo, *size, shrink)] for name, photo in photos}
    named = [rows[name] for name in options.mean.split(",") if name]
    rows["median"] = list(np.median(list(rows.values()), axis=0))
    if named:
        rows[f"mean of {options.mean.replace(',', ', ')}"] = list(np.mean(named, axis=0))
    words = " ".join(word if word.startswith("--") else Path(word).stem for word in sys.argv[1:])
    print(f"# What `gentle` leaves of photographs\n\n{datetime.date.today()}. `python -m benchmarks.cwc.quality {words}`\n")
    print("| photograph | 32 px, k=3: PSNR dB | SSIM | 224 px, k=9: PSNR dB | SSIM |\n| --- | --- | --- | --- | --- |")
    for name, (small, small_likeness, large, large_likeness) in rows.items():
        print(f"| {name} | {small:.1f} | {small_likeness:.3f} | {large:.1f} | {large_likeness:.3f} |")


def parsed() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="*", metavar="PHOTO")
    parser.add_argument("--cut", choices=CUTS, default="corner")
    parser.add_argument("--resample", choices=RESAMPLES, default="box")
    parser.add_argument("--mean", default="", help="comma-separated names of photographs, as in the table")
    return parser.parse_args()


def photographs(paths: list[str]) -> list[tuple[str, NDArray[np.uint8]]]:
    """Return names and `[H, W, 3]`."""
    bundled = load_sample_images()
    found = [(Path(name).stem, image) for name, image in zip(bundled.filenames, bundled.images, strict=True)]
    return found + [(Path(path).stem, np.asarray(Image.open(path).convert("RGB"))) for path in paths]


def gentle(photo: NDArray[np.uint8], side: int, spec: FilterSpec, shrink: Shrink) -> tuple[float, float]:
    """Return PSNR and SSIM at a side."""
    keys = [bytes([seed + 1]) * 32 for seed in range(SEEDS)]
    figures = [[np.median(figure) for figure in of_classes(photo, side, spec, key, shrink)] for key in keys]
    noise, likeness = np.mean(figures, axis=0)
    return float(noise), float(likeness)


def of_classes(
    photo: NDArray[np.uint8], side: int, spec: FilterSpec, key: bytes, shrink: Shrink | None = None, operator: Operator = PRESETS["gentle"].operator
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return PSNR (dB) and SSIM of a photograph with each class's filter, `[classes]` each."""
    clean = np.repeat((shrink or Shrink())(photo, side)[None], len(CLASSES), 0)
    after = backends.cpp(clean, np.arange(len(CLASSES)), FilterBank.from_key(key, CLASSES, spec), operator)
    return quality.psnr(clean, after), quality.ssim(clean, after)


if __name__ == "__main__":
    main()
