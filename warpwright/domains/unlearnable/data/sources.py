"""Labelled image data sets, read item by item: folders, CSV lists, packs, CIFAR-10/100 batches, Tiny-ImageNet zip, arrays, Hugging Face.

A source has class names, a length, and items in a fixed order; decoding happens in `load`, so that workers can share it.
"""

from __future__ import annotations

import csv
import io
import os
import pickle
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.data import images, packs
from warpwright.domains.unlearnable.data.images import Picture
from warpwright.errors import ImageError, MissingExtra, UsageError


@dataclass(frozen=True)
class Item:
    """One image of a source: `name` is its path in the output, without suffix; `load` decodes it or raises ImageError."""

    name: str
    label: int
    load: Callable[[], Picture]
    raw: Callable[[], bytes] | None = None
    """Returns the encoded image, or raises ImageError; None where the source holds pixels."""


@dataclass(frozen=True)
class Source:
    """A labelled data set. `items()` yields the same items in the same order each time."""

    kind: str
    classes: tuple[str, ...]
    size: int
    items: Callable[[], Iterator[Item]]
    note: str = ""
    """What part of the data set is left out."""
    decodes: bool = True
    """Has `load` an image to decode? Then several threads load faster than one."""


def open_source(path: Path, labels: str = "auto") -> Source:
    """Return the data set at `path`.

    `labels`: "auto" (by what is there), "folders" (one folder a class), a CSV file of `file,label` lines, or "hf:COLUMN".
    """
    path = Path(path)
    if not path.exists():
        raise UsageError(f"expected a data set, saw nothing at {path}", "give a folder, an archive or an .npz file")
    try:
        return _open(path, labels)
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, tarfile.TarError) as error:  # what numpy, zip and tar raise for broken files
        raise UsageError(f"expected a whole data set, saw {type(error).__name__} in {path}: {error}", "download or write it again") from error


def _open(path: Path, labels: str) -> Source:
    if labels.startswith("hf:"):
        return _hugging_face(path, labels.removeprefix("hf:"))
    if labels not in ("auto", "folders"):
        return _listed(path, Path(labels))
    if path.suffix == ".npz":
        return _arrays(path)
    if path.suffix == packs.SUFFIX:
        return _pack(path)
    if path.is_dir() and (path / packs.NAME).exists():
        return _pack(path / packs.NAME)
    if path.is_dir() and (path / "images.npy").exists():
        return _memory_mapped(path)
    cifar = _cifar_files(path)
    if cifar and labels == "auto":
        return _cifar(path, cifar)
    if path.suffix == ".zip":
        return _tiny_imagenet(path)
    if path.is_dir():
        return _folders(path)
    raise UsageError(
        f"expected a folder, a .pack, CIFAR batches, a Tiny-ImageNet .zip or an .npz, saw {path}",
        "unpack it into one folder a class, or give --labels",
    )


def _file_item(root: Path, relative: str, label: int) -> Item:
    path = root / relative
    return Item(str(PurePosixPath(relative).with_suffix("")), label, lambda: images.read(path, relative), lambda: images.raw(path, relative))


def _folders(root: Path) -> Source:
    folders = sorted(entry.name for entry in root.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    files = [(label, relative) for label, name in enumerate(folders) for relative in _files_under(root, name)]
    listing = [(label, relative) for label, relative in files if _is_image(relative)]
    others = [root / relative for _, relative in files if not _is_image(relative)]
    others += sorted(path for path in root.iterdir() if path.is_file())
    if not listing:
        seen = f"{len(folders)} folders and no image"
        raise UsageError(f"expected one folder a class with image files under {root}, saw {seen}", "or give --labels file.csv")
    _refuse_clashes(relative for _, relative in listing)
    note = f"{len(others)} files are left out: no image by their ending, or in no class's folder; the first is {others[0]}" if others else ""
    return Source("folders", tuple(folders), len(listing), lambda: (_file_item(root, relative, label) for label, relative in listing), note)


def _files_under(root: Path, folder: str) -> list[str]:
    """Return the files under a folder, relative to the root, in the order of their parts; 50,000 in 0.1 s, since none is asked for its size."""
    paths = [os.path.join(here, name) for here, _, names in os.walk(root / folder) for name in names]
    return sorted((os.path.relpath(path, root).replace(os.sep, "/") for path in paths), key=lambda path: path.split("/"))


def _is_image(relative: str) -> bool:
    return os.path.splitext(relative)[1].lower() in images.SUFFIXES


def _refuse_clashes(names: Iterator[str]) -> None:
    seen: dict[str, str] = {}
    for name in names:
        stem = str(PurePosixPath(name).with_suffix(""))
        if stem in seen:
            raise UsageError(f"expected file names that differ in more than their ending, saw {seen[stem]} and {name}", "rename one of them")
        seen[stem] = name


def open_listed_as_written(root: Path, listing: Path) -> Source:
    """Return the images of a CSV as `protect` wrote them under `root`: with the ending of their new format; absent ones are left out."""
    source = _listed(root, listing)

    def written() -> Iterator[Item]:
        for item in source.items():
            ending = next((suffix for suffix in (".png", ".webp", ".jpg") if (root / f"{item.name}{suffix}").exists()), None)
            if ending is not None:
                yield _file_item(root, f"{item.name}{ending}", item.label)

    return Source(source.kind, source.classes, source.size, written)


def _listed(root: Path, listing: Path) -> Source:
    try:
        with listing.open(newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except OSError as error:
        raise UsageError(f"cannot read the label file {listing}: {error.strerror}", "give a CSV of file,label lines") from error
    if rows and [cell.strip().lower() for cell in rows[0][:2]] in (["file", "label"], ["filename", "label"], ["path", "label"]):
        rows = rows[1:]
    short = next((number for number, row in enumerate(rows, 1) if len(row) < 2), None)
    if short is not None or not rows:
        raise UsageError(f"expected file,label lines in {listing}, saw {'none' if not rows else f'one cell in data line {short}'}", "check the file")
    names = [PurePosixPath(row[0].strip()) for row in rows]
    outside = next((name for name in names if name.is_absolute() or ".." in name.parts), None)
    if outside is not None:
        raise UsageError(f"expected paths inside {root}, saw {outside} in {listing}", "make them relative")
    classes = tuple(sorted({row[1].strip() for row in rows}))
    number = {name: i for i, name in enumerate(classes)}
    pairs = [(str(name), number[row[1].strip()]) for name, row in zip(names, rows, strict=True)]
    _refuse_clashes(name for name, _ in pairs)
    return Source("csv", classes, len(pairs), lambda: (_file_item(root, name, label) for name, label in pairs))


def _pack(path: Path) -> Source:
    pack = packs.Pack(path)

    pixels = pack.pixels

    def item(index: int, name: str) -> Item:
        if pixels is not None:
            return Item(name, int(pack.labels[index]), lambda: Picture(pixels[index]))
        return Item(name, int(pack.labels[index]), lambda: images.decode(pack.data(index), name), lambda: pack.data(index))

    return Source("pack", pack.classes, len(pack), lambda: (item(index, name) for index, name in enumerate(pack.names)), decodes=pixels is None)


# --- arrays ----------------------------------------------------------------------------------------------------------


def _array_source(kind: str, pixels: Any, labels: NDArray[np.integer[Any]], classes: tuple[str, ...]) -> Source:
    """`pixels` `[N, H, W]` or `[N, H, W, C]` uint8, with 1 or 3 channels and at least one pixel."""
    if pixels.dtype != np.uint8 or pixels.ndim not in (3, 4) or len(pixels) != len(labels):
        raise UsageError(f"expected uint8 [N, H, W] or [N, H, W, C] with N labels, saw {pixels.dtype} {pixels.shape} and {len(labels)} labels")
    if 0 in pixels.shape[1:] or (pixels.ndim == 4 and pixels.shape[3] not in (1, 3)):
        raise UsageError(f"expected images with pixels and 1 or 3 channels, saw {pixels.shape[1:]}", "put the channels last")

    def load(index: int) -> Picture:
        image = np.asarray(pixels[index])
        planes = image[None] if image.ndim == 2 else np.ascontiguousarray(image.transpose(2, 0, 1))
        return Picture(planes)

    def items() -> Iterator[Item]:
        for index, label in enumerate(labels):
            yield Item(f"{classes[label]}/{index:08d}", int(label), lambda index=index: load(index))  # type: ignore[misc]

    return Source(kind, classes, len(labels), items, decodes=False)


def _checked_labels(labels: NDArray[Any], names: Any) -> tuple[NDArray[np.integer[Any]], tuple[str, ...]]:
    if not np.issubdtype(labels.dtype, np.integer) or (len(labels) and labels.min() < 0):
        raise UsageError(f"expected non-negative integer labels, saw {labels.dtype}", "number the classes from 0")
    count = int(labels.max()) + 1 if len(labels) else 0
    classes = tuple(str(name) for name in names) if names is not None else tuple(str(i) for i in range(count))
    if len(classes) < count:
        raise UsageError(f"expected at least {count} class names, saw {len(classes)}")
    return labels, classes


def _arrays(path: Path) -> Source:
    with np.load(path, allow_pickle=False) as data:
        missing = {"images", "labels"} - set(data.files)
        if missing:
            raise UsageError(f"expected arrays images and labels in {path}, saw {data.files}", "name them so")
        labels, classes = _checked_labels(data["labels"], data["classes"] if "classes" in data.files else None)
        return _array_source("npz", data["images"], labels, classes)


def _memory_mapped(path: Path) -> Source:
    labels = np.load(path / "labels.npy", mmap_mode="r", allow_pickle=False)
    names = (path / "classes.txt").read_text().splitlines() if (path / "classes.txt").exists() else None
    labels, classes = _checked_labels(labels, names)
    return _array_source("npy", _FileArray(path / "images.npy"), labels, classes)


class _FileArray:
    """A .npy file of uint8 read row by row with pread: the pages of a memory map would count as this process's memory."""

    def __init__(self, path: Path) -> None:
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        if not mapped.flags.c_contiguous:
            raise UsageError(f"expected C order in {path}, saw Fortran order", "save np.ascontiguousarray(images)")
        self.shape, self.dtype, self.ndim, self._start = mapped.shape, mapped.dtype, mapped.ndim, mapped.offset
        self._row = int(np.prod(self.shape[1:]))
        self._file = path.open("rb", buffering=0)  # open for as long as the source is

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: int) -> NDArray[np.uint8]:
        data = os.pread(self._file.fileno(), self._row, self._start + index * self._row)
        if len(data) != self._row:
            raise ImageError(f"image {index}: expected {self._row} bytes, saw {len(data)}", "the file was cut short")
        return np.frombuffer(data, np.uint8).reshape(self.shape[1:])


# --- CIFAR -----------------------------------------------------------------------------------------------------------


class _PlainUnpickler(pickle.Unpickler):
    """Reads the published CIFAR batches, and refuses anything that could run code."""

    _ALLOWED = frozenset(
        {("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype")}
        | {("_codecs", "encode")}  # how protocol 2 writes bytes
    )

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._ALLOWED:
            raise UsageError(f"expected plain arrays in a CIFAR batch, saw {module}.{name}", "take the file from its publisher")
        return super().find_class(module, name)


def _unpickle(data: bytes, name: str) -> Mapping[Any, Any]:
    try:
        loaded = _PlainUnpickler(io.BytesIO(data), encoding="bytes").load()
    except UsageError:
        raise
    except Exception as error:  # a pickle can raise anything
        raise UsageError(f"expected a CIFAR batch, saw {type(error).__name__} in {name}: {error}", "download it again") from error
    return {key.decode() if isinstance(key, bytes) else key: value for key, value in loaded.items()}


def _cifar_files(path: Path) -> dict[str, Callable[[], bytes]]:
    """Return the training batches and the name files at `path` (a folder or the published .tar.gz), by base name."""
    wanted = {*(f"data_batch_{i}" for i in range(1, 6)), "train", "batches.meta", "meta"}
    if path.is_dir():
        files = {entry.name: entry.read_bytes for entry in path.iterdir() if entry.is_file() and entry.name in wanted}
    elif path.name.endswith((".tar.gz", ".tgz", ".tar")):
        with tarfile.open(path) as tar:
            members = [m for m in tar.getmembers() if m.isfile() and PurePosixPath(m.name).name in wanted]
        files = {PurePosixPath(m.name).name: (lambda m=m: _tar_member(path, m.name)) for m in members}  # type: ignore[misc]
    else:
        return {}
    return files if {"data_batch_1", "train"} & set(files) else {}


def _tar_member(path: Path, name: str) -> bytes:
    with tarfile.open(path) as tar:
        file = tar.extractfile(name)
        assert file is not None, name
        return file.read()


def _cifar(path: Path, files: Mapping[str, Callable[[], bytes]]) -> Source:
    hundred = "train" in files
    batches = ["train"] if hundred else sorted(name for name in files if name.startswith("data_batch_"))
    pixels, labels = [], []
    for name in batches:
        batch = _unpickle(files[name](), name)
        data = np.asarray(batch["data"], np.uint8)
        if data.ndim != 2 or data.shape[1] != 3072:
            raise UsageError(f"expected rows of 3072 bytes in {name}, saw {data.shape}", "take the python version of CIFAR")
        pixels.append(data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        labels.append(np.asarray(batch["fine_labels" if hundred else "labels"], np.int64))
    meta = "meta" if hundred else "batches.meta"
    names = _unpickle(files[meta](), meta)["fine_label_names" if hundred else "label_names"] if meta in files else None
    checked, classes = _checked_labels(np.concatenate(labels), [n.decode() if isinstance(n, bytes) else n for n in names] if names else None)
    return _array_source("cifar-100" if hundred else "cifar-10", np.concatenate(pixels), checked, classes)


# --- Tiny-ImageNet, Hugging Face -------------------------------------------------------------------------------------


def _tiny_imagenet(path: Path) -> Source:
    """Read `*/train/<wnid>/images/*.JPEG` out of the published zip without unpacking it."""
    archive = zipfile.ZipFile(path)
    names = sorted(name for name in archive.namelist() if "/train/" in f"/{name}" and PurePosixPath(name).suffix.lower() in images.SUFFIXES)
    wnid = [f"/{name}".split("/train/", 1)[1].split("/")[0] for name in names]
    if not names:
        raise UsageError(f"expected train/<class>/images/*.JPEG in {path}, saw none", "give tiny-imagenet-200.zip, or unpack other zips")
    classes = tuple(sorted(set(wnid)))
    number = {name: i for i, name in enumerate(classes)}

    def raw(name: str) -> bytes:
        try:
            return archive.read(name)
        except (zipfile.BadZipFile, OSError, EOFError) as error:
            raise ImageError(f"{name}: cannot be read from the zip: {error}", "download it again") from error

    def item(name: str, folder: str) -> Item:
        return Item(f"{folder}/{PurePosixPath(name).stem}", number[folder], lambda: images.decode(raw(name), name), lambda: raw(name))

    def items() -> Iterator[Item]:
        for name, folder in zip(names, wnid, strict=True):
            yield item(name, folder)

    return Source("tiny-imagenet", classes, len(names), items)


def _hugging_face(path: Path, column: str) -> Source:
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra("datasets", "hf", "reading a Hugging Face data set") from error
    data = datasets.load_from_disk(str(path))
    if column not in data.column_names or "image" not in data.column_names:
        raise UsageError(f"expected columns image and {column}, saw {data.column_names}", "give --labels hf:COLUMN")
    feature = data.features[column]
    names = getattr(feature, "names", None)
    labels, classes = _checked_labels(np.asarray(data[column]), names)
    raw = data.cast_column("image", datasets.Image(decode=False))

    def load(index: int) -> Picture:
        entry = raw[index]["image"]
        content = entry["bytes"] if entry["bytes"] is not None else Path(entry["path"]).read_bytes()
        return images.decode(content, f"row {index}")

    def items() -> Iterator[Item]:
        for index, label in enumerate(labels):
            yield Item(f"{classes[label]}/{index:08d}", int(label), lambda index=index: load(index))  # type: ignore[misc]

    return Source("hugging-face", classes, len(labels), items)
