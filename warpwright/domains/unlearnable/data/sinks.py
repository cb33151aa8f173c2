"""Where protected images go: a new folder, each file is written completely or not at all; arrays as growing .npy files.

A pack comes out as a pack.

A sink is resumed by asking it which items are already there. The bytes of an item depend on nothing but the item, so a run that was
interrupted and resumed gives the same folder as one that was not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from warpwright.domains.unlearnable.data import packs
from warpwright.domains.unlearnable.data.images import Format, Picture, encode
from warpwright.domains.unlearnable.data.packs import Packed, Shape
from warpwright.errors import UsageError

MARK = ".warpwright-unfinished"
"""A file in the output folder until the run is complete; its first line names the run's settings."""


class Sink(Protocol):
    """Takes protected pictures in any order."""

    def has(self, index: int, name: str) -> bool:
        """Is this item already written?"""
        ...

    def prepare(self, picture: Picture) -> bytes:
        """Return what will be written: the slow part, called from several threads."""
        ...

    def write(self, index: int, name: str, label: int, data: bytes) -> str:
        """Write an item and return its path relative to the output folder."""
        ...

    def finish(self) -> None:
        """Make everything durable."""
        ...


def begin(folder: Path, settings: str, resume: bool) -> None:
    """Create the output folder, or check that it belongs to this run and is unfinished."""
    mark = folder / MARK
    if not resume:
        try:
            folder.mkdir(parents=True)
        except FileExistsError as error:
            raise UsageError(f"expected a new output folder, saw that {folder} exists", "choose another, or --resume an unfinished run") from error
        except OSError as error:
            raise UsageError(f"cannot create the output folder {folder}: {error.strerror}", "check the path") from error
        write_whole(mark, (settings + "\n").encode())
        return
    if not folder.is_dir():
        raise UsageError(f"expected an unfinished output folder to resume, saw none at {folder}", "leave out --resume")
    if not {entry.name for entry in folder.iterdir()} - {_part(mark).name}:
        write_whole(mark, (settings + "\n").encode())  # killed after creating the folder, before marking it
    if not mark.exists():
        raise UsageError(f"expected an unfinished run in {folder}, saw a finished one", "choose another output folder")
    seen = mark.read_text().splitlines()[0]
    if seen != settings:
        raise UsageError(f"expected the settings of the unfinished run ({seen}), saw {settings}", "resume with the same key, preset and format")


def end(folder: Path) -> None:
    """Declare the output folder complete, and remove what only an unfinished one needs."""
    for name in ("parts.jsonl", "parts.bin", MARK):
        (folder / name).unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it exists completely or not at all."""
    temporary = _part(path)
    with temporary.open("wb") as file:
        file.write(data)
    os.replace(temporary, path)


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


class FileSink:
    """One image file an item, under its class's folder."""

    def __init__(self, folder: Path, form: Format) -> None:
        self.folder, self.form = folder, form
        self._made: set[Path] = set()

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}{self.form.suffix}"

    def has(self, index: int, name: str) -> bool:
        """Is this item already written?"""
        return self._path(name).exists()

    def prepare(self, picture: Picture) -> bytes:
        """Return the encoded file."""
        return encode(picture, self.form)

    def write(self, index: int, name: str, label: int, data: bytes) -> str:
        """Write an item and return its path relative to the output folder."""
        path = self._path(name)
        if path.parent not in self._made:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._made.add(path.parent)
        write_whole(path, data)
        return path.relative_to(self.folder).as_posix()

    def finish(self) -> None:
        """Flush the file system's buffers."""
        os.sync()


class ArraySink:
    """images.npy, labels.npy and classes.txt for sources that are arrays: all images of one shape, written in place.

    `done.npy` holds one byte an item and is set after the item's pixels, so that a cut run knows where to go on. Pixels are written to the
    file and not to a map of it: a map would count as this process's memory, 3 GB for a million images of 32x32.
    """

    def __init__(self, folder: Path, size: int, shape: tuple[int, ...], classes: tuple[str, ...]) -> None:
        self.folder, self.shape = folder, shape
        self.bytes = int(np.prod(shape))
        self.start = self._create("images", (size, *shape), np.uint8)
        self._create("labels", (size,), np.int64)
        self._create("done", (size,), np.uint8)
        self.handle = os.open(folder / "images.npy", os.O_RDWR)
        self.labels = np.lib.format.open_memmap(folder / "labels.npy", mode="r+")
        self.done = np.lib.format.open_memmap(folder / "done.npy", mode="r+")
        write_whole(folder / "classes.txt", "".join(f"{name}\n" for name in classes).encode())

    def _create(self, name: str, shape: tuple[int, ...], dtype: type) -> int:
        """Create a file of zeros unless it exists; return where its data start."""
        path = self.folder / f"{name}.npy"
        if not path.exists():
            temporary = _part(path)
            np.lib.format.open_memmap(temporary, mode="w+", dtype=dtype, shape=shape)
            os.replace(temporary, path)
        return path.stat().st_size - int(np.prod(shape)) * np.dtype(dtype).itemsize

    def has(self, index: int, name: str) -> bool:
        """Is this item already written?"""
        return bool(self.done[index])

    def prepare(self, picture: Picture) -> bytes:
        """Return the pixels in the source's layout."""
        planes = picture.colour
        return np.ascontiguousarray(planes[0] if len(self.shape) == 2 else planes.transpose(1, 2, 0)).tobytes()

    def write(self, index: int, name: str, label: int, data: bytes) -> str:
        """Write an item and return its position."""
        if os.pwrite(self.handle, data, self.start + index * self.bytes) != self.bytes:
            raise OSError(f"expected to write {self.bytes} bytes to {self.folder / 'images.npy'}, saw a short write")
        self.labels[index] = label
        self.done[index] = 1
        return f"images.npy[{index}]"

    def finish(self) -> None:
        """Make the arrays durable and, where every item is written, drop the progress file."""
        os.fsync(self.handle)
        os.close(self.handle)
        self.labels.flush()
        self.done.flush()
        if self.done.all():
            (self.folder / "done.npy").unlink()


class PackSink:
    """images.pack for a source that is a pack.

    Until all is there, images lie in `parts.bin` in the order in which they came, and `parts.jsonl` has a line for each, written after it; a cut
    run knows from them where to go on. `finish` then writes the pack in the source's order, so that its bytes do not depend on interruptions.
    """

    def __init__(self, folder: Path, classes: Sequence[str], form: Format, shape: Shape | None = None) -> None:
        """`shape`: of a pack of pixels."""
        self.folder, self.classes, self.form, self.shape = folder, tuple(classes), form, shape
        self.lines = folder / "parts.jsonl"
        self.known: dict[int, dict[str, Any]] = {}
        end = 0
        for text in self.lines.read_text().splitlines() if self.lines.exists() else []:
            try:
                line = json.loads(text)
            except ValueError:
                continue  # cut in the middle: its image is written again
            self.known[line["index"]] = line
            end = max(end, line["start"] + line["length"])
        self.handle = os.open(folder / "parts.bin", os.O_RDWR | os.O_CREAT, 0o644)
        self.end = end
        self.log = self.lines.open("a")
        if self.log.tell():
            self.log.write("\n")  # behind a line that may have been cut

    def has(self, index: int, name: str) -> bool:
        """Is this item already written?"""
        return index in self.known

    def prepare(self, picture: Picture) -> bytes:
        """Return the encoded file, or the pixels."""
        return encode(picture, self.form) if self.shape is None else picture.colour.tobytes()

    def write(self, index: int, name: str, label: int, data: bytes) -> str:
        """Write an item and return its place."""
        if os.pwrite(self.handle, data, self.end) != len(data):
            raise OSError(f"expected to write {len(data)} bytes to {self.folder / 'parts.bin'}, saw a short write")
        line = {"index": index, "name": name, "label": label, "start": self.end, "length": len(data)}
        self.log.write(json.dumps(line) + "\n")
        self.log.flush()
        self.known[index] = line
        self.end += len(data)
        return f"{packs.NAME}[{index}]"

    def finish(self) -> None:
        """Write the pack; its parts stay until the run is declared complete."""

        def images() -> Iterator[Packed]:
            for index in sorted(self.known):
                line = self.known[index]
                yield Packed(line["name"], line["label"], os.pread(self.handle, line["length"], line["start"]))

        self.log.close()
        (self.folder / packs.NAME).unlink(missing_ok=True)  # of an earlier run that could not do all images
        packs.write(self.folder / packs.NAME, self.classes, images(), self.shape)
        os.close(self.handle)
