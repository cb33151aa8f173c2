"""Recover a whole protected data set with the key and the private manifest: the reverse of `protect.py`, streamed the same way."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpwright.domains.unlearnable.cwc.bank import SCHEME, fingerprint
from warpwright.domains.unlearnable.cwc.inverse import recover
from warpwright.domains.unlearnable.data import images, packs, sinks
from warpwright.domains.unlearnable.data.images import Format, Picture
from warpwright.domains.unlearnable.data.sinks import ArraySink, FileSink, PackSink, Sink
from warpwright.domains.unlearnable.data.sources import Item, open_source
from warpwright.domains.unlearnable.protect import Options, Summary, batches, decoded, ended, missing, tick
from warpwright.errors import ImageError, UsageError


@dataclass(frozen=True)
class Manifest:
    """The private record of a run: the settings, and a line for each image that was written."""

    path: Path
    classes: tuple[str, ...]
    options: Options
    fingerprint: str
    """Of the key."""
    lossless: bool

    def lines(self) -> Iterator[dict[str, Any]]:
        """Yield the lines of the images; skip a line that a killed run left incomplete."""
        with self.path.open() as file:
            next(file)
            for text in file:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue  # its image was not written: a line is always written first, and the resumed run wrote it again
                yield line


def read_manifest(path: Path) -> Manifest:
    """Return the manifest that `protect` wrote."""
    try:
        with path.open() as file:
            header = json.loads(file.readline())
        options = Options(header["preset"], header["k"], header["pb"], header["dataset"], form=Format(header["format"], metadata=header["metadata"]))
        manifest = Manifest(path, tuple(header["classes"]), options, header["fingerprint"], header["lossless"])
        scheme = header["scheme"]
    except OSError as error:
        raise UsageError(f"cannot read the manifest {path}: {error.strerror}", "give what `warpwright protect` wrote: --manifest FILE") from error
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"expected a manifest that `warpwright protect` wrote, saw something else in {path}", "check --manifest") from error
    if scheme != SCHEME:
        raise UsageError(f"expected filters of scheme {SCHEME}, saw {scheme}", "use the version of warpwright that drew them")
    return manifest


def recover_data_set(
    folder: Path,
    out: Path,
    key: bytes,
    manifest: Manifest,
    best_effort: bool = False,
    workers: int = 2,
    resume: bool = False,
    on_progress: Callable[[Summary], None] | None = None,
) -> Summary:
    """Write the recovered images of `folder` to the new folder `out`.

    Image files stream; for an array data set the manifest's lines are kept in memory, about 1 kB an image.
    Refuses a wrong key, and lossy or changed files unless `best_effort`: the inverse amplifies compression errors.
    """
    if fingerprint(key) != manifest.fingerprint:
        raise UsageError(f"expected the key {manifest.fingerprint}, saw {fingerprint(key)}", "use the key that protected this data set")
    if not manifest.lossless and not best_effort:
        raise UsageError("expected lossless files, saw JPEG", "recovery from them is rough (about 34 dB): add --best-effort")
    bank = manifest.options.bank(key, manifest.classes)
    summary, started = Summary(), time.monotonic()
    items, shape, tops = _listed(folder, manifest, best_effort)
    sinks.begin(out, f"recovered {manifest.options.method(bank)}", resume)
    files = Format("png", metadata=manifest.options.form.metadata)
    sink = _sink(folder, out, files, shape, manifest.classes)

    def convert(group: list[tuple[int, Item, Picture]]) -> list[tuple[int, Item, Picture]]:
        stacked = np.stack([picture.colour for _, _, picture in group])
        labels = np.array([item.label for _, item, _ in group], np.int64)
        divisors = np.array([tops.pop(item.name) for _, item, _ in group])
        clean = recover(stacked, labels, bank, manifest.options.chosen.operator, divisors)
        return [(index, item, Picture(clean[i], picture.alpha, picture.icc, picture.exif)) for i, (index, item, picture) in enumerate(group)]

    with ThreadPoolExecutor(workers) as pool:
        for batch in batches(decoded(missing(items, sink, summary), workers, summary, pool), convert):
            for (index, item, _), data in zip(batch, pool.map(lambda done: sink.prepare(done[2]), batch), strict=True):
                sink.write(index, item.name, item.label, data)
            summary.written += len(batch)
            tick(summary, started, on_progress)
    return ended(sink, out, summary)


def _sink(folder: Path, out: Path, files: Format, shape: tuple[int, ...] | None, classes: tuple[str, ...]) -> Sink:
    if shape is not None:
        return ArraySink(out, shape[0], shape[1:], classes)
    packed = folder / packs.NAME
    return PackSink(out, classes, files, packs.Pack(packed).shape) if packed.exists() else FileSink(out, files)


def _listed(folder: Path, manifest: Manifest, best_effort: bool) -> tuple[Iterator[Item], tuple[int, ...] | None, dict[str, int]]:
    """Return the items that the manifest lists, the array's shape `(N, H, W[, C])` unless they are files, and the maxima of scale "max".

    The maxima are filled in as items are yielded.
    """
    number = {name: i for i, name in enumerate(manifest.classes)}
    tops: dict[str, int] = {}
    packed = (folder / packs.NAME).exists()
    arrays = {item.name: item for item in open_source(folder).items()} if packed or (folder / "images.npy").exists() else None

    def items() -> Iterator[Item]:
        seen: set[str] = set()
        for line in manifest.lines():
            name = line["name"]
            if name in seen:  # a resumed run may have written a line twice
                continue
            seen.add(name)
            tops[name] = line["top"]
            load = arrays[name].load if arrays is not None else _loader(folder, name, manifest.options.form)
            yield Item(name, number[line["class"]], _checked(load, name, "" if best_effort else line["out"]))

    if arrays is None:
        return items(), None, tops
    if packed:
        place = {name: i for i, name in enumerate(arrays)}
        return iter(sorted((item for item in items() if item.name in place), key=lambda item: place[item.name])), None, tops
    ordered = sorted((item for item in items() if item.name in arrays), key=lambda item: int(item.name.rsplit("/", 1)[1]))  # as in the data set
    if len(ordered) != len(arrays) or not ordered:
        raise UsageError(f"expected {len(arrays)} images of {folder} in the manifest, saw {len(ordered)}", "give the manifest of this data set")
    colour = ordered[0].load().colour
    channels, height, width = colour.shape
    shape = (len(ordered), height, width) if channels == 1 else (len(ordered), height, width, channels)
    return iter(ordered), shape, tops


def _loader(folder: Path, name: str, form: Format) -> Callable[[], Picture]:
    return lambda: images.read(folder / f"{name}{form.suffix}", f"{name}{form.suffix}")


def _checked(load: Callable[[], Picture], name: str, sha: str) -> Callable[[], Picture]:
    """Load an image and compare its pixels with what `protect` wrote."""

    def checked() -> Picture:
        picture = load()
        if sha and hashlib.sha256(picture.colour.tobytes()).hexdigest() != sha:
            raise ImageError(f"{name}: expected the pixels that protect wrote, saw others", "--best-effort recovers from changed files, less well")
        return picture

    return checked
