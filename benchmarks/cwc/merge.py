"""CIFAR-100 from a copy that was divided among the clients of a federated run: one set of files, split anew into 500 and 100 images a class.

    python -m benchmarks.cwc.merge IN OUT --quality 75

IN holds train/N.npz and test/N.npz as PFLlib writes them: `data` is a dictionary of x, float32 `[n, 3, 32, 32]` = pixel / 127.5 - 1, and y. That
copy has thrown CIFAR-100's training and test images together, so the published split cannot be had back: the order by SHA-256 of the pixels draws
one, which whoever quotes figures has to say. Files are JPEG, so that the set can travel.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

TEST = 100
"""Images of each class that are kept for testing, as in the published set."""


def read(source: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return all clients' images `[N, 3, H, W]` and labels."""
    images, labels = [], []
    for path in sorted(source.glob("*/*.npz")):
        with np.load(path, allow_pickle=True) as file:
            kept = file["data"].item()
        pixels = (kept["x"].astype(np.float64) + 1) * 127.5
        whole = np.rint(pixels)
        if np.abs(pixels - whole).max() > 1e-3:
            raise SystemExit(f"{path}: expected pixel / 127.5 - 1, saw other values")
        images.append(whole.astype(np.uint8))
        labels.append(kept["y"].astype(np.int64))
    return np.concatenate(images), np.concatenate(labels)


def order(images: NDArray[np.uint8]) -> list[int]:
    """Return the places of the different images by the SHA-256 of their pixels."""
    digests = {hashlib.sha256(image.tobytes()).digest(): place for place, image in reversed(list(enumerate(images)))}
    return [digests[digest] for digest in sorted(digests)]


def write(images: NDArray[np.uint8], labels: NDArray[np.int64], target: Path, quality: int) -> dict[str, int]:
    """Write the images into train/CLASS and test/CLASS; return how many of each."""
    seen: dict[int, int] = {}
    count = {"train": 0, "test": 0}
    for place in order(images):
        label = int(labels[place])
        seen[label] = seen.get(label, 0) + 1
        part = "test" if seen[label] <= TEST else "train"
        folder = target / part / f"{label:02}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(images[place].transpose(1, 2, 0)).save(folder / f"{seen[label]:04}.jpg", "JPEG", quality=quality)
        count[part] += 1
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge a copy."""
    options = parser().parse_args(arguments)
    images, labels = read(options.source)
    classes, each = np.unique(labels, return_counts=True)
    print(f"{len(images):,} images of {len(classes)} classes, {each.min()} to {each.max()} of each")
    count = write(images, labels, options.target, options.quality)
    print(f"{count['train']:,} to train on, {count['test']:,} to test on in {options.target}; {len(images) - sum(count.values())} twice")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the options."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("source", type=Path, metavar="IN")
    made.add_argument("target", type=Path, metavar="OUT")
    made.add_argument("--quality", type=int, default=75, help="of JPEG (%(default)s)")
    return made


if __name__ == "__main__":
    raise SystemExit(main())
