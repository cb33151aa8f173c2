"""What messages of derived datatypes cost on this machine, as measured: which method the shims choose, and why.

    library     the MPI library packs and sends the datatype itself
    packed      our loops pack, the library sends the bytes

`warpwright mpi measure` times both between two processes over sizes and block lengths (probe.py) and keeps the times in a file by machine, driver and
MPI library. Between the measured points a time is linear in the logarithms of bytes and block; it never falls as bytes grow. Blocks lie four times
their length apart in the measurement. For other objects the shims correct it while a program runs, by trials of the program's own objects within one
process (shim/choice.hpp), which is why the same trials are part of the measurement.
"""

from __future__ import annotations

import bisect
import json
import math
import os
import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright import native
from warpwright.errors import UsageError
from warpwright.files import write_whole

METHODS = ("library", "packed")
"""In the order of simplicity: a tie goes to the first."""
ALONE = ("library alone", "packed alone")
"""The same of a process that sends to itself: what a trial tells."""
_WORTH = 1.1
"""The library's time over ours from which on packing is chosen (shim/choice.hpp)."""
_SIZES, _BLOCKS = range(9, 24), range(3, 14)
"""The logarithms that the shims' table is for (shim/choice.hpp)."""
NOT_MEASURED = "by two thresholds: no measurement of this machine and library (`warpwright mpi measure`), and no trial yet"
_ENOUGH = 3
"""Trials from which on they decide."""


def path() -> Path:
    """Return the file of measurements (WARPWRIGHT_MPI_MODEL, else in the cache folder)."""
    return Path(os.environ.get("WARPWRIGHT_MPI_MODEL") or native.cache_folder() / "mpi_model.json")


def key(library: Path) -> str:
    """Return what measurements are kept by: the processor, NVIDIA's driver, the MPI library's file."""
    cpu = re.search(r"model name\s*: (.*)", _text("/proc/cpuinfo"))
    driver = re.search(r"Module +(\d[\d.]+)", _text("/proc/driver/nvidia/version"))
    content = library.read_bytes()
    file = f"{library.name} {len(content)} {zlib.crc32(content):08x}"
    return " | ".join((cpu[1] if cpu else "unknown processor", f"driver {driver[1]}" if driver else "no GPU", file))


def _text(file: str) -> str:
    try:
        return Path(file).read_text()
    except OSError:
        return ""


@dataclass(frozen=True)
class Time:
    """Microseconds of half a ping-pong: the median, and the quarter that was faster and the quarter that was slower."""

    low: float
    us: float
    high: float


@dataclass(frozen=True)
class Point:
    """What was measured of one method."""

    method: str
    bytes: int
    block: int
    time: Time


class Model:
    """The times of one machine and library."""

    def __init__(self, points: Iterable[Point]) -> None:
        """Lay the points out by method and block; times that fall as bytes grow are lifted."""
        self._curves: dict[str, dict[int, list[tuple[float, Time]]]] = {}
        for point in sorted(points, key=lambda one: one.bytes):
            curve = self._curves.setdefault(point.method, {}).setdefault(point.block, [])
            before = curve[-1][1] if curve else Time(0, 0, 0)
            time = Time(max(before.low, point.time.low), max(before.us, point.time.us), max(before.high, point.time.high))
            curve.append((math.log2(point.bytes), time))

    @staticmethod
    def read(name: str, file: Path | None = None) -> Model | None:
        """Return the measurements of a key, or None where there are none. Raises UsageError for a file that is none of ours."""
        file = file or path()
        if not file.exists():
            return None
        try:
            kept = json.loads(file.read_text())
            rows = kept.get(name, {}).get("points", [])
            points = [Point(row["method"], row["bytes"], row["block"], Time(*row["us"])) for row in rows]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            expected = f"{file}: expected measurements of `warpwright mpi measure`, saw {error!r}"
            raise UsageError(expected, "delete the file and measure again") from error
        return Model(points) if points else None

    def predict(self, bytes_: int, block: int) -> dict[str, Time]:
        """Return the time of half a ping-pong by each method."""
        return {method: _between_blocks(self._curves[method], math.log2(max(bytes_, 1)), block) for method in METHODS if method in self._curves}

    def chosen(self, bytes_: int, block: int) -> str:
        """Return the faster method; the library where it does not take 10 % longer."""
        times = self.predict(bytes_, block)
        if set(times) != set(METHODS):
            return METHODS[0]
        return "packed" if times["library"].low >= _WORTH * times["packed"].low else "library"

    def table(self) -> str | None:
        """Return the shims' table: microseconds by each of METHODS and of ALONE, by bytes and block. None without trials.

        They are the lower quartiles, which what else runs disturbs least.
        """
        methods = (*METHODS, *ALONE)
        if not all(method in self._curves for method in methods):
            return None
        points = [(size, 2**block) for size in _SIZES for block in _BLOCKS]
        return " ".join(f"{_between_blocks(self._curves[method], size, block).low:.4g}" for size, block in points for method in methods)


def _between_blocks(curves: dict[int, list[tuple[float, Time]]], log_bytes: float, block: int) -> Time:
    blocks = sorted(curves)
    after = bisect.bisect_left(blocks, block)
    if after == 0 or after == len(blocks):
        return _between_sizes(curves[blocks[min(after, len(blocks) - 1)]], log_bytes)
    low, high = blocks[after - 1], blocks[after]
    part = math.log2(block / low) / math.log2(high / low)
    return _mixed(_between_sizes(curves[low], log_bytes), _between_sizes(curves[high], log_bytes), part)


def _between_sizes(curve: Sequence[tuple[float, Time]], at: float) -> Time:
    places = [place for place, _ in curve]
    after = bisect.bisect_left(places, at)
    if after == 0:
        return curve[0][1]
    if after == len(curve):  # beyond the largest: as fast a byte as there
        factor = 2 ** (at - places[-1])
        last = curve[-1][1]
        return Time(last.low * factor, last.us * factor, last.high * factor)
    (before, one), (behind, other) = curve[after - 1], curve[after]
    return _mixed(one, other, (at - before) / (behind - before))


def _mixed(one: Time, other: Time, part: float) -> Time:
    def mix(a: float, b: float) -> float:
        return math.exp((1 - part) * math.log(max(a, 1e-3)) + part * math.log(max(b, 1e-3)))

    return Time(mix(one.low, other.low), mix(one.us, other.us), mix(one.high, other.high))


def keep(name: str, points: Sequence[Point], when: str, file: Path | None = None) -> Path:
    """Write the measurements of a key beside those of others; return the file."""
    file = file or path()
    kept = json.loads(file.read_text()) if file.exists() else {}
    rows = [{"method": p.method, "bytes": p.bytes, "block": p.block, "us": [p.time.low, p.time.us, p.time.high]} for p in points]
    kept[name] = {"when": when, "points": rows}
    write_whole(file, json.dumps(kept, indent=1))
    return file


def environment(library: Path) -> dict[str, str]:
    """Return what tells the shims of this machine's times; nothing where it was not measured, or where the user has set what is packed."""
    model = Model.read(key(library))
    table = model.table() if model else None
    return {} if table is None or {"WARPWRIGHT_MPI_LEAST", "WARPWRIGHT_MPI_BLOCK"} & os.environ.keys() else {"WARPWRIGHT_MPI_TIMES": table}


@dataclass(frozen=True)
class Trials:
    """What the shim knows by now of messages of one type and size, and what it does with them."""

    packs: bool
    uses: int = 0
    trials: int = 0
    library_us: float = 0
    packed_us: float = 0
    differs: bool = False
    """The library sent other bytes than the type says."""


def explanation(model: Model | None, bytes_: int, block: int, trials: Trials | None) -> dict[str, Any]:
    """Return the method for a message, what each method was measured to take, and the reason. `trials` is None for contiguous bytes."""
    if trials is None:
        return {"bytes": bytes_, "block": block, "method": "library", "why": "its bytes are contiguous: there is nothing to pack"}
    result: dict[str, Any] = {"bytes": bytes_, "block": block, "method": "packed" if trials.packs else "library", "why": NOT_MEASURED}
    if model is not None:
        times = model.predict(bytes_, block)
        result["fastest"] = model.chosen(bytes_, block)
        result["us"] = {name: [round(time.low, 2), round(time.us, 2), round(time.high, 2)] for name, time in times.items()}
        result["why"] = "measured faster" if result["fastest"] == "packed" else "the library is as fast or faster, and a tie goes to it"
    if trials.trials >= _ENOUGH:
        alone = {"library": round(trials.library_us, 2), "packed": round(trials.packed_us, 2)}
        result["here"] = {"uses": trials.uses, "trials": trials.trials, "us": alone}
        result["why"] = "by trials of this program's objects" + (", which correct what was measured" if model else "")
        if trials.differs:
            result["why"] = "the library sent other bytes than the type says"
    return result
