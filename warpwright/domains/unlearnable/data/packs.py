"""A labelled image set in one file: the encoded images as they are, one behind the other, and an index; read through a memory map.

Sixty thousand small files take a disk longer to open than to read. A pack is opened in milliseconds, whatever it holds:

    "WWPACK1\\n"            8 bytes
    offset of the index     uint64, little-endian, as all numbers here
    images                  each one's bytes as its file had them (what came as pixels is a PNG)
    index                   uint64 length of a JSON object {"size", "classes", "shape", "names", "sha256"}, the object,
                            int64 [size] lengths of the images, int32 [size] labels, their names in UTF-8, a line each

`shape` is null, or [channels, height, width] of a pack whose images are bare pixels: three times as large for photographs of 32 x 32, and
nothing is left to decode. `names` is the length of the last part, `sha256` that of all images, which tells whether two packs hold the same.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.errors import UsageError

SUFFIX = ".pack"
NAME = "images.pack"
"""Of the pack in a folder that `protect` writes."""

_MAGIC = b"WWPACK1\n"
_START = len(_MAGIC) + 8


@dataclass(frozen=True)
class Packed:
    """One image to put into a pack."""

    name: str
    """Its path without suffix; unlike all others'."""
    label: int
    data: bytes
    """An encoded image, or its pixels."""


Shape = tuple[int, int, int]
"""Channels, height and width."""


def write(path: Path, classes: Sequence[str], images: Iterable[Packed], shape: Shape | None = None) -> int:
    """Write a pack, completely or not at all, in one pass; return the number of images. Raise UsageError where the file exists.

    With a `shape`, images are pixels of that shape.
    """
    if path.exists():
        raise UsageError(f"expected a new file, saw that {path} exists", "choose another name")
    temporary = path.with_name(f".{path.name}.part")
    lengths, labels, names, sha = list[int](), list[int](), list[str](), hashlib.sha256()
    try:
        with temporary.open("wb") as file:
            file.write(_MAGIC + struct.pack("<Q", 0))
            for image in images:
                if "\n" in image.name or not 0 <= image.label < len(classes):
                    raise UsageError(f"expected a name of one line and a label below {len(classes)}, saw {image.name!r}, {image.label}", "rename it")
                if shape is not None and len(image.data) != shape[0] * shape[1] * shape[2]:
                    raise UsageError(f"expected images of {shape}, saw {len(image.data)} bytes in {image.name}", "pack them as they are")
                file.write(image.data)
                sha.update(image.data)
                lengths.append(len(image.data))
                labels.append(image.label)
                names.append(image.name)
            if len(set(names)) != len(names):
                raise UsageError("expected names that differ, saw one twice", "rename the images")
            place, text = file.tell(), "\n".join(names).encode()
            facts = {"size": len(names), "classes": list(classes), "shape": shape, "names": len(text), "sha256": sha.hexdigest()}
            head = json.dumps(facts).encode()
            file.write(struct.pack("<Q", len(head)) + head)
            file.write(np.array(lengths, "<i8").tobytes() + np.array(labels, "<i4").tobytes() + text)
            file.seek(len(_MAGIC))
            file.write(struct.pack("<Q", place))
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"cannot write the pack {path}: {error.strerror}", "check the path and the space") from error
    finally:
        temporary.unlink(missing_ok=True)
    return len(names)


class Pack:
    """An open pack. Images are slices of the memory map: nothing is read before it is asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            start = file.read(_START)
            size = os.fstat(file.fileno()).st_size
            if len(start) < _START or not start.startswith(_MAGIC):
                raise UsageError(f"expected a pack, saw something else in {path}", "write it with `warpwright pack`")
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (place,) = struct.unpack("<Q", start[len(_MAGIC) :])
        try:
            (length,) = struct.unpack_from("<Q", self._map, place)
            head: dict[str, Any] = json.loads(self._map[place + 8 : place + 8 + length])
            self.size, self.classes, self.sha256 = int(head["size"]), tuple(map(str, head["classes"])), str(head["sha256"])
            self.shape: Shape | None = None if head["shape"] is None else tuple(map(int, head["shape"]))  # type: ignore[assignment]
            at = place + 8 + length
            self._lengths: NDArray[np.int64] = np.frombuffer(self._map, "<i8", self.size, at)
            self.labels: NDArray[np.int64] = np.frombuffer(self._map, "<i4", self.size, at + 8 * self.size).astype(np.int64)
            text = self._map[at + 12 * self.size :]
            self.names = tuple(text.decode().split("\n")) if self.size else ()
            whole = len(text) == head["names"] and len(self.names) == self.size and _START + int(self._lengths.sum()) == place
        except (struct.error, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"expected a whole pack, saw {type(error).__name__} in the index of {path}", "write it again") from error
        if not whole or size < place or (self.size and (int(self.labels.min()) < 0 or int(self.labels.max()) >= len(self.classes))):
            raise UsageError(f"expected a whole pack, saw an index that does not fit its images in {path}", "write it again")
        self._starts = _START + np.concatenate([[0], np.cumsum(self._lengths)[:-1]]) if self.size else np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self.size

    @property
    def pixels(self) -> NDArray[np.uint8] | None:
        """`[N, C, H, W]` all images of a pack of pixels, in place; None for one of encoded images."""
        if self.shape is None:
            return None
        flat = np.frombuffer(self._map, np.uint8, int(self._lengths.sum()), _START)
        return flat.reshape(self.size, *self.shape)

    def data(self, index: int) -> bytes:
        """Return an image's bytes: encoded, or its pixels."""
        start = int(self._starts[index])
        return self._map[start : start + int(self._lengths[index])]
