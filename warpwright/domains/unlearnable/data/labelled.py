"""A labelled data set in memory, for training and probing: images of any sizes, decoded."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import FilterBank
from warpwright.domains.unlearnable.cwc.operator import Operator
from warpwright.domains.unlearnable.data import images
from warpwright.domains.unlearnable.data.sources import Item, Source, open_source
from warpwright.errors import ImageError, UsageError

_CHUNK = 256
"""Images that one thread decodes at a time."""

Pictures = Sequence[NDArray[np.uint8]]
"""Images `[C, H, W]`, each with its own height and width."""


@dataclass(frozen=True)
class Labelled:
    """Images with labels; clean and protected sets are matched by `names`."""

    names: tuple[str, ...]
    pictures: Pictures
    labels: NDArray[np.int64]
    """`[N]`"""
    classes: tuple[str, ...]

    def common_side(self) -> int:
        """Return the side of the square that no image is smaller than in both directions, at most 64."""
        return min(64, max(min(max(picture.shape[1:]) for picture in self.pictures), 1))

    def at_side(self, side: int) -> NDArray[np.uint8]:
        """Return `[N, C, h, w]`: as they are where all have one shape of at most `side`, else shrunk to `side` x `side`."""
        return stack(self.pictures, side)

    def take(self, index: NDArray[np.intp]) -> Labelled:
        """Return the images of that index."""
        return Labelled(tuple(self.names[i] for i in index), [self.pictures[i] for i in index], self.labels[index], self.classes)


def load_labelled(path: Path, labels: str = "auto", limit: int = 0) -> Labelled:
    """Return the data set at `path`; with `limit`, every n-th image so that at most that many are read."""
    source = open_source(path, labels)
    return read_labelled(source, path, max(1, -(-source.size // limit)) if limit else 1)


def read_labelled(source: Source, path: Path, every: int = 1) -> Labelled:
    """Return every n-th image of a source; UsageError where one cannot be read."""
    names, pictures, numbers, refused = [], [], [], []
    load = _loaded if source.decodes else _in_place
    for item, picture in load(itertools.islice(source.items(), 0, None, every)):
        if isinstance(picture, ImageError):
            refused.append(str(picture))
            continue
        pictures.append(picture)
        names.append(item.name)
        numbers.append(item.label)
    if refused:
        raise UsageError(f"expected readable images, saw {len(refused)} that are not; the first: {refused[0]}", "leave them out")
    if not pictures:
        raise UsageError(f"expected images in {path}, saw none", "check the path")
    return Labelled(tuple(names), pictures, np.array(numbers, np.int64), source.classes)


def _loaded(items: Iterator[Item]) -> Iterator[tuple[Item, NDArray[np.uint8] | ImageError]]:
    """Yield items with their pixels, decoded by several threads: Pillow works without the interpreter's lock."""

    def load(chunk: list[Item]) -> list[tuple[Item, NDArray[np.uint8] | ImageError]]:
        return [(item, _colour(item)) for item in chunk]

    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        for chunk in pool.map(load, iter(lambda: list(itertools.islice(items, _CHUNK)), [])):
            yield from chunk


def _in_place(items: Iterator[Item]) -> Iterator[tuple[Item, NDArray[np.uint8] | ImageError]]:
    for item in items:
        yield item, _colour(item)


def _colour(item: Item) -> NDArray[np.uint8] | ImageError:
    try:
        return item.load().colour
    except ImageError as error:
        return error


def stack(pictures: Pictures, side: int) -> NDArray[np.uint8]:
    """Return `[N, C, h, w]` uint8; grey images among colour ones are repeated in three channels, large or uneven ones resized (bilinear)."""
    shapes = {picture.shape for picture in pictures}
    if len(shapes) == 1 and max(next(iter(shapes))[1:]) <= side:
        return np.stack(pictures)
    channels = max(picture.shape[0] for picture in pictures)
    image_module = images.pillow()

    def resized(picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        planes = np.broadcast_to(picture, (channels, *picture.shape[1:]))
        scaled = [image_module.fromarray(np.ascontiguousarray(plane)).resize((side, side), image_module.Resampling.BILINEAR) for plane in planes]
        return np.stack([np.asarray(plane) for plane in scaled])

    return np.stack([resized(picture) for picture in pictures])


def filtered(pictures: Pictures, labels: NDArray[np.integer], bank: FilterBank, operator: Operator) -> list[NDArray[np.uint8]]:
    """Return the pictures convolved with the filters of `labels`, images of one shape together."""
    out: list[NDArray[np.uint8]] = list(pictures)
    shapes: dict[tuple[int, ...], list[int]] = {}
    for index, picture in enumerate(pictures):
        shapes.setdefault(picture.shape, []).append(index)
    for members in shapes.values():
        done = backends.protect(np.stack([pictures[i] for i in members]), labels[members], bank, operator)
        for place, index in enumerate(members):
            out[index] = done[place]
    return out
