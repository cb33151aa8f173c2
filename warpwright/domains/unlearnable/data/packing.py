"""Put a data set into a pack: encoded images byte by byte as they are, pixels as PNG, unreadable ones left out and named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from warpwright.domains.unlearnable.data import images, packs
from warpwright.domains.unlearnable.data.images import Format
from warpwright.domains.unlearnable.data.packs import Pack, Packed, Shape
from warpwright.domains.unlearnable.data.sources import Item, Source
from warpwright.errors import ImageError, UsageError


@dataclass(frozen=True)
class Done:
    """What was packed."""

    images: int
    refused: tuple[str, ...]
    """One line for each image that cannot be read."""
    sha256: str
    """Of all images' bytes, one behind the other."""


def pack_data_set(source: Source, out: Path, pixels: bool = False) -> Done:
    """Write a source to the new file `out`.

    Encoded images are not decoded, so that a broken one is found when it is used; with `pixels` they are, and must all have one shape.
    """
    refused: list[str] = []
    shape: Shape | None = None

    def packed() -> Iterator[Packed]:
        for item in source.items():
            try:
                yield Packed(item.name, item.label, item.load().colour.tobytes() if pixels else _bytes(item))
            except ImageError as error:
                refused.append(str(error))

    if pixels:
        shape = _first_shape(source)
    count = packs.write(out, source.classes, packed(), shape)
    if not count:
        out.unlink()
        raise UsageError("expected images to pack, saw none that can be read", refused[0] if refused else "check the path")
    return Done(count, tuple(refused), Pack(out).sha256)


def _first_shape(source: Source) -> Shape | None:
    for item in source.items():
        try:
            channels, height, width = item.load().colour.shape
        except ImageError:
            continue
        return channels, height, width
    return None


def _bytes(item: Item) -> bytes:
    data = item.raw() if item.raw is not None else images.encode(item.load(), Format())
    if not data:
        raise ImageError(f"{item.name}: expected an image, saw an empty file")
    return data
