"""Protect a data set: read, convolve and write in bounded memory; a run can stop and resume anywhere, and nothing is skipped silently."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable.cwc import backends
from warpwright.domains.unlearnable.cwc.bank import SCHEME, FilterBank, FilterSpec
from warpwright.domains.unlearnable.cwc.operator import Operator
from warpwright.domains.unlearnable.data import sinks
from warpwright.domains.unlearnable.data.images import Format, Picture
from warpwright.domains.unlearnable.data.sinks import ArraySink, FileSink, PackSink, Sink
from warpwright.domains.unlearnable.data.sources import Item, Source
from warpwright.errors import ImageError, UsageError

BATCH_BYTES = 16 << 20
"""Decoded pixels held for one call of the operator: memory stays bounded whatever the images' size."""

BATCH_ITEMS = 1024

CHUNK = 32
"""Images that one thread decodes or encodes at a time."""

Converted = TypeVar("Converted")


@dataclass(frozen=True)
class Preset:
    """A named form of the method."""

    spec: FilterSpec
    operator: Operator
    warning: str = ""


# A manifest names the preset, k and p_b: what else a name stands for may never change, or what was protected cannot be recovered.
PRESETS: dict[str, Preset] = {
    "gentle": Preset(FilterSpec(), Operator("reflect", "sum")),
    "apart": Preset(FilterSpec(pb=0.4, candidates=64), Operator("reflect", "sum")),
    "paper": Preset(
        FilterSpec(tap="random"),
        Operator("zero", "max"),
        "zero padding gives every class its own dark border, which names the class (docs/unlearnable.md: what cropping it does)",
    ),
    "recoverable": Preset(FilterSpec(min_response=0.25), Operator("circular", "sum")),
}


@dataclass
class Summary:
    """What a run did. `failed` holds one line for each image that could not be protected."""

    written: int = 0
    present: int = 0
    """Items that an earlier, interrupted run wrote."""
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Options:
    """Options of a run; `settings` names those that change the output."""

    preset: str = "apart"
    k: int | None = None
    """Side of the filters; None: the preset's."""
    pb: float | None = None
    """Their blur parameter; None: the preset's."""
    dataset: str = ""
    form: Format = field(default_factory=Format)
    backend: str = "auto"
    workers: int = 2
    resume: bool = False
    dry_run: bool = False
    """Read, convolve and count, write nothing."""
    version: str = ""
    """Of the program, for the manifest."""

    def bank(self, key: bytes, classes: Iterable[str]) -> FilterBank:
        """Return the filters of this run."""
        return FilterBank.from_key(key, tuple(classes), self.spec, self.dataset)

    @property
    def spec(self) -> FilterSpec:
        """How filters are drawn: as the preset says, with another side or blur where one is asked for."""
        usual = self.chosen.spec
        return replace(usual, k=usual.k if self.k is None else self.k, pb=usual.pb if self.pb is None else self.pb)

    @property
    def chosen(self) -> Preset:
        """The preset of that name."""
        if self.preset not in PRESETS:
            raise UsageError(f"there is no preset {self.preset!r}", f"known: {', '.join(PRESETS)}")
        return PRESETS[self.preset]

    def header(self, source: Source, bank: FilterBank) -> dict[str, Any]:
        """Return the manifest's first line: what `recover` needs besides the key."""
        method: dict[str, Any] = {"scheme": SCHEME, "fingerprint": bank.fingerprint, "preset": self.preset}
        method |= {"k": self.spec.k, "pb": self.spec.pb, "dataset": self.dataset}
        files = {"format": self.form.name, "lossless": self.form.lossless, "metadata": self.form.metadata}
        return {"warpwright": self.version, **method, **files, "source": source.kind, "size": source.size, "classes": list(source.classes)}

    def settings(self, source: Source, bank: FilterBank) -> str:
        """Return one line that names everything the output's bytes depend on: no key, only its fingerprint."""
        classes = hashlib.sha256("\n".join(source.classes).encode()).hexdigest()[:16]
        return f"{self.method(bank)} {source.kind} {source.size} {classes}"

    def method(self, bank: FilterBank) -> str:
        """Return the part of `settings` that does not depend on the data set."""
        method = [SCHEME, bank.fingerprint, self.preset, f"k={self.spec.k}", f"pb={self.spec.pb!r}", self.dataset]
        return " ".join([*method, self.form.name, str(self.form.quality), self.form.metadata])


def protect_data_set(
    source: Source, out: Path, key: bytes, options: Options, manifest: Path | None = None, on_progress: Callable[[Summary], None] | None = None
) -> Summary:
    """Write the protected data set to the new folder `out`; return what was done.

    `manifest`: private JSON lines (hashes, class, scale) for `recover`; it must not lie inside `out`.
    An image that cannot be protected is reported in the summary, and the others are still written.
    """
    bank = options.bank(key, source.classes)
    if manifest is not None:
        _check_manifest(manifest, out, options.resume)
    summary, started = Summary(), time.monotonic()
    if options.dry_run:
        read = decoded(enumerate(source.items()), options.workers, summary)
        for batch in batches(read, lambda group: _convolve(group, bank, options)):
            summary.written += len(batch)
            tick(summary, started, on_progress)
        return summary
    sinks.begin(out, options.settings(source, bank), options.resume)
    sink = _sink(source, out, options)
    with ThreadPoolExecutor(options.workers) as pool, _open_manifest(manifest, options.resume) as log:
        if log.tell() == 0:
            log.write(json.dumps(options.header(source, bank)) + "\n")
        wanted = missing(source.items(), sink, summary)
        for batch in batches(decoded(wanted, options.workers, summary, pool), lambda group: _convolve(group, bank, options)):
            _write(sink, batch, pool, log, source)
            summary.written += len(batch)
            tick(summary, started, on_progress)
    return ended(sink, out, summary)


@dataclass(frozen=True)
class _Done:
    index: int
    item: Item
    clean: Picture
    protected: Picture
    top: int
    """Maximum of z where the operator divides by it, else 0."""


def ended(sink: Sink, out: Path, summary: Summary) -> Summary:
    """End what was written, for good if nothing failed; return the summary."""
    sink.finish()
    if not summary.failed:
        sinks.end(out)
    return summary


def missing(items: Iterator[Item], sink: Sink, summary: Summary) -> Iterator[tuple[int, Item]]:
    """Yield the items, with their numbers, that the output lacks; count the others."""
    for index, item in enumerate(items):
        if sink.has(index, item.name):
            summary.present += 1
        else:
            yield index, item


def tick(summary: Summary, started: float, on_progress: Callable[[Summary], None] | None) -> None:
    """Update the summary's time and show it."""
    summary.seconds = time.monotonic() - started
    if on_progress is not None:
        on_progress(summary)


def _sink(source: Source, out: Path, options: Options) -> Sink:
    if source.kind in ("folders", "csv", "tiny-imagenet", "hugging-face"):
        return FileSink(out, options.form)
    if source.kind == "pack":
        first = next(source.items())
        shape = first.load().colour.shape if first.raw is None else None
        return PackSink(out, source.classes, options.form, shape)  # type: ignore[arg-type]
    item = next(source.items(), None)
    colour = item.load().colour if item is not None else np.zeros((3, 1, 1), np.uint8)
    channels, height, width = colour.shape
    return ArraySink(out, source.size, (height, width) if channels == 1 else (height, width, channels), source.classes)


def _check_manifest(path: Path, out: Path, resume: bool) -> None:
    """Raise UsageError before anything is created."""
    if out.resolve() in path.resolve().parents:
        raise UsageError(f"expected the manifest outside the output folder, saw {path}", "it is private: keep it with the key")
    if path.exists() and not resume:
        raise UsageError(f"expected a new manifest file, saw that {path} exists", "name another, or --resume")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write the manifest {path}: there is no folder {path.parent}", "create it first")


def _open_manifest(path: Path | None, resume: bool) -> IO[str]:
    if path is None:
        return open(os.devnull, "w")
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_APPEND if resume else os.O_EXCL), 0o600)
    except FileExistsError as error:
        raise UsageError(f"expected a new manifest file, saw that {path} exists", "name another, or --resume") from error
    except OSError as error:
        raise UsageError(f"cannot write the manifest {path}: {error.strerror}", "check the path") from error
    size = os.fstat(handle).st_size
    if size and os.pread(handle, 1, size - 1) != b"\n":
        os.write(handle, b"\n")  # a killed run may have left a partial last line, which the reader skips
    return os.fdopen(handle, "a" if resume else "w")


def batches(read: Iterator[tuple[int, Item, Picture]], convert: Callable[[list[tuple[int, Item, Picture]]], Converted]) -> Iterator[Converted]:
    """Yield `convert` of groups of images of one shape, in the source's order within a group; at most 4 * BATCH_BYTES wait."""
    waiting: dict[tuple[int, ...], list[tuple[int, Item, Picture]]] = {}
    held = 0
    for entry in read:
        colour = entry[2].colour
        group = waiting.setdefault(colour.shape, [])
        group.append(entry)
        held += colour.nbytes
        full = len(group) >= BATCH_ITEMS or len(group) * colour.nbytes >= BATCH_BYTES
        if full or held >= 4 * BATCH_BYTES:  # many odd shapes: the oldest group goes first
            out = waiting.pop(colour.shape if full else next(iter(waiting)))
            held -= len(out) * out[0][2].colour.nbytes
            yield convert(out)
    for group in waiting.values():
        yield convert(group)


def decoded(
    items: Iterator[tuple[int, Item]], workers: int, summary: Summary, pool: ThreadPoolExecutor | None = None
) -> Iterator[tuple[int, Item, Picture]]:
    """Decode ahead in the pool (Pillow releases the interpreter lock), at most 2 chunks a worker in flight."""

    def load(chunk: list[tuple[int, Item]]) -> list[tuple[int, Item, Picture | ImageError]]:
        out: list[tuple[int, Item, Picture | ImageError]] = []
        for index, item in chunk:
            try:
                out.append((index, item, item.load()))
            except ImageError as error:
                out.append((index, item, error))
        return out

    def results() -> Iterator[list[tuple[int, Item, Picture | ImageError]]]:
        chunks = iter(lambda: list(itertools.islice(items, CHUNK)), [])
        if pool is None:
            yield from map(load, chunks)
            return
        flight: deque[Future[list[tuple[int, Item, Picture | ImageError]]]] = deque()
        for chunk in chunks:
            flight.append(pool.submit(load, chunk))
            if len(flight) >= 2 * workers:
                yield flight.popleft().result()
        while flight:
            yield flight.popleft().result()

    for chunk in results():
        for index, item, picture in chunk:
            if isinstance(picture, ImageError):
                summary.failed.append(str(picture))
            else:
                yield index, item, picture


def _convolve(group: list[tuple[int, Item, Picture]], bank: FilterBank, options: Options) -> list[_Done]:
    operator = options.chosen.operator
    images: NDArray[np.uint8] = np.stack([picture.colour for _, _, picture in group])
    labels = np.array([item.label for _, item, _ in group], np.int64)
    protected = backends.protect(images, labels, bank, operator, options.backend)
    tops = np.zeros(len(group), np.int32)
    if operator.scale == "max":
        from warpwright.domains.unlearnable.cwc.inverse import maxima  # imports torch, which the other presets do not need

        tops = maxima(images, labels, bank, operator)
    return [
        _Done(index, item, picture, replace(picture, colour=protected[i]), int(tops[i])) for i, (index, item, picture) in enumerate(group)
    ]


def _write(sink: Sink, batch: list[_Done], pool: ThreadPoolExecutor, log: Any, source: Source) -> None:
    """Write one batch; an item's manifest line goes first, so that every file that exists has one (a line may appear twice)."""

    def encode(part: list[_Done]) -> list[tuple[str, bytes]]:
        return [(_line(done, source), sink.prepare(done.protected)) for done in part]

    parts = [batch[start : start + CHUNK] for start in range(0, len(batch), CHUNK)]  # one future an image would cost more than a small image does
    encoded = [one for part in pool.map(encode, parts) for one in part]
    log.write("".join(line for line, _ in encoded))
    log.flush()
    for done, (_, data) in zip(batch, encoded, strict=True):
        sink.write(done.index, done.item.name, done.item.label, data)


def _line(done: _Done, source: Source) -> str:
    """Return an image's line of the manifest."""
    line = {"name": done.item.name, "class": source.classes[done.item.label], "top": done.top}
    return json.dumps(line | {"in": _sha(done.clean.colour.tobytes()), "out": _sha(done.protected.colour.tobytes())}) + "\n"


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
