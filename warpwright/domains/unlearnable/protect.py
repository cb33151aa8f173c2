"""Protect a data set: read, convolve, write, in bounded memory; stop and resume anywhere; nothing is skipped silently."""

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
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from warpwright.domains.unlearnable import backends, sinks
from warpwright.domains.unlearnable.bank import SCHEME, FilterBank, FilterSpec
from warpwright.domains.unlearnable.images import Format, ImageError, Picture
from warpwright.domains.unlearnable.operator import Operator
from warpwright.domains.unlearnable.sinks import ArraySink, FileSink, Sink
from warpwright.domains.unlearnable.sources import Item, Source
from warpwright.errors import UsageError

BATCH_BYTES = 16 << 20
"""Decoded pixels held for one call of the operator: memory stays bounded whatever the images' size."""

BATCH_ITEMS = 1024


@dataclass(frozen=True)
class Preset:
    """A named form of the method."""

    spec: FilterSpec
    operator: Operator
    warning: str = ""


PRESETS: dict[str, Preset] = {
    "gentle": Preset(FilterSpec(), Operator("reflect", "sum")),
    "paper": Preset(
        FilterSpec(tap="random"),
        Operator("zero", "max"),
        "zero padding gives every class its own dark border: cropping one pixel may undo the protection",
    ),
    "recoverable": Preset(FilterSpec(min_response=0.25), Operator("circular", "sum")),
}


@dataclass
class Summary:
    """What a run did. `failed` holds one line for each image that could not be protected."""

    written: int = 0
    present: int = 0
    """Items that an earlier, cut run had written."""
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Options:
    """How a run goes; what of it changes the output stands in `settings`."""

    preset: str = "gentle"
    k: int = 3
    pb: float = 0.3
    dataset: str = ""
    form: Format = field(default_factory=Format)
    backend: str = "auto"
    workers: int = 2
    resume: bool = False
    dry_run: bool = False
    """Read, convolve and count, write nothing."""

    def bank(self, key: bytes, classes: Iterable[str]) -> FilterBank:
        """Return the filters of this run."""
        return FilterBank.from_key(key, tuple(classes), replace(self.chosen.spec, k=self.k, pb=self.pb), self.dataset)

    @property
    def chosen(self) -> Preset:
        """The preset of that name."""
        if self.preset not in PRESETS:
            raise UsageError(f"there is no preset {self.preset!r}", f"known: {', '.join(PRESETS)}")
        return PRESETS[self.preset]

    def settings(self, source: Source, bank: FilterBank) -> str:
        """Return one line that names everything the output's bytes depend on: no key, only its fingerprint."""
        classes = hashlib.sha256("\n".join(source.classes).encode()).hexdigest()[:16]
        method = [SCHEME, bank.fingerprint, self.preset, f"k={self.k}", f"pb={self.pb!r}", self.dataset]
        return " ".join([*method, self.form.name, str(self.form.quality), self.form.metadata, source.kind, str(source.size), classes])


def protect_data_set(
    source: Source, out: Path, key: bytes, options: Options, manifest: Path | None = None, on_progress: Callable[[Summary], None] | None = None
) -> Summary:
    """Write the protected data set to the new folder `out`; return what was done.

    `manifest`: private JSON lines (hashes, class, scale) for `recover`; it must not lie inside `out`.
    An image that cannot be protected is reported in the summary, and the rest goes on.
    """
    bank = options.bank(key, source.classes)
    if manifest is not None and out.resolve() in manifest.resolve().parents:
        raise UsageError(f"expected the manifest outside the output folder, saw {manifest}", "it is private: keep it with the key")
    summary, started = Summary(), time.monotonic()
    if options.dry_run:
        for batch in _convolved(source.items(), enumerate_all, bank, options, summary):
            summary.written += len(batch)
            _tick(summary, started, on_progress)
        return summary
    sinks.begin(out, options.settings(source, bank), options.resume)
    sink = _sink(source, out, options)
    with ThreadPoolExecutor(options.workers) as pool, _open_manifest(manifest, options.resume) as log:

        def missing(items: Iterator[Item]) -> Iterator[tuple[int, Item]]:
            for index, item in enumerate(items):
                if sink.has(index, item.name):
                    summary.present += 1
                else:
                    yield index, item

        for batch in _convolved(source.items(), missing, bank, options, summary, pool):
            _write(sink, batch, pool, log, source)
            summary.written += len(batch)
            _tick(summary, started, on_progress)
    sink.finish()
    if not summary.failed:
        sinks.end(out)
    return summary


@dataclass(frozen=True)
class _Done:
    index: int
    item: Item
    clean: Picture
    protected: Picture
    top: int
    """Maximum of z where the operator divides by it, else 0."""


def enumerate_all(items: Iterator[Item]) -> Iterator[tuple[int, Item]]:
    """Return every item with its number."""
    return enumerate(items)


def _tick(summary: Summary, started: float, on_progress: Callable[[Summary], None] | None) -> None:
    summary.seconds = time.monotonic() - started
    if on_progress is not None:
        on_progress(summary)


def _sink(source: Source, out: Path, options: Options) -> Sink:
    if source.kind in ("folders", "csv", "tiny-imagenet", "hugging-face"):
        return FileSink(out, options.form)
    first = next(source.items(), None)
    colour = first.load().colour if first is not None else np.zeros((3, 1, 1), np.uint8)
    channels, height, width = colour.shape
    return ArraySink(out, source.size, (height, width) if channels == 1 else (height, width, channels), source.classes)


def _open_manifest(path: Path | None, resume: bool) -> IO[str]:
    if path is None:
        return open(os.devnull, "w")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | (os.O_APPEND if resume else os.O_EXCL), 0o600)
    except FileExistsError as error:
        raise UsageError(f"expected a new manifest file, saw that {path} exists", "name another, or --resume") from error
    return os.fdopen(handle, "a" if resume else "w")


def _convolved(
    items: Iterator[Item],
    wanted: Callable[[Iterator[Item]], Iterator[tuple[int, Item]]],
    bank: FilterBank,
    options: Options,
    summary: Summary,
    pool: ThreadPoolExecutor | None = None,
) -> Iterator[list[_Done]]:
    """Yield protected items in batches of images of one shape, in the source's order within a batch."""
    waiting: dict[tuple[int, ...], list[tuple[int, Item, Picture]]] = {}
    for index, item, picture in _decoded(wanted(items), options, summary, pool):
        shape = picture.colour.shape
        group = waiting.setdefault(shape, [])
        group.append((index, item, picture))
        if len(group) >= BATCH_ITEMS or len(group) * picture.colour.nbytes >= BATCH_BYTES:
            yield _convolve(waiting.pop(shape), bank, options)
        elif sum(g[0][2].colour.nbytes * len(g) for g in waiting.values()) >= 4 * BATCH_BYTES:  # many odd shapes: the oldest group goes first
            yield _convolve(waiting.pop(next(iter(waiting))), bank, options)
    for group in waiting.values():
        yield _convolve(group, bank, options)


def _decoded(
    items: Iterator[tuple[int, Item]], options: Options, summary: Summary, pool: ThreadPoolExecutor | None
) -> Iterator[tuple[int, Item, Picture]]:
    """Decode ahead in the pool (Pillow lets go of the interpreter lock), at most 4 chunks of 32 in flight."""

    def load(chunk: list[tuple[int, Item]]) -> list[tuple[int, Item, Picture | ImageError]]:
        out: list[tuple[int, Item, Picture | ImageError]] = []
        for index, item in chunk:
            try:
                out.append((index, item, item.load()))
            except ImageError as error:
                out.append((index, item, error))
        return out

    def results() -> Iterator[list[tuple[int, Item, Picture | ImageError]]]:
        chunks = iter(lambda: list(itertools.islice(items, 32)), [])
        if pool is None:
            yield from map(load, chunks)
            return
        flight: deque[Future[list[tuple[int, Item, Picture | ImageError]]]] = deque()
        for chunk in chunks:
            flight.append(pool.submit(load, chunk))
            if len(flight) >= 2 * options.workers:
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
    protected = np.asarray(backends.pick(options.backend)(images, labels, bank, operator))
    tops = np.zeros(len(group), np.int32)
    if operator.scale == "max":
        from warpwright.domains.unlearnable.recover import maxima  # imports torch, which the other presets do not need

        tops = maxima(images, labels, bank, operator)
    return [
        _Done(index, item, picture, replace(picture, colour=protected[i]), int(tops[i])) for i, (index, item, picture) in enumerate(group)
    ]


def _write(sink: Sink, batch: list[_Done], pool: ThreadPoolExecutor, log: Any, source: Source) -> None:
    """Write one batch; an item's manifest line goes first, so that every file that exists has one (a line may stand twice)."""
    encoded = list(pool.map(lambda done: sink.prepare(done.protected), batch, chunksize=32))
    lines = []
    for done in batch:
        line = {"name": done.item.name, "class": source.classes[done.item.label], "top": done.top}
        line |= {"in": _sha(done.clean.colour.tobytes()), "out": _sha(done.protected.colour.tobytes())}
        lines.append(json.dumps(line))
    log.write("".join(f"{line}\n" for line in lines))
    log.flush()
    for done, data in zip(batch, encoded, strict=True):
        sink.write(done.index, done.item.name, done.item.label, data)


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
