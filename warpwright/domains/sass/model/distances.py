"""How many cycles fixed-latency instructions must be apart, learnt from compilers' own output, and kept as JSON for each architecture.

The least distance that occurs between a class of producers and an operand slot of a class of consumers is what the hardware needs, or more; slots
must be told apart, for an addend is read later than a factor. What was never seen gets the worst distance that is known of its producer. Where the
hardware was asked (a planted distance one cycle shorter, benchmarks/sass/faults.py), docs/sass.md says what it answered.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path

from warpwright.domains.sass.code.kernel import Kernel
from warpwright.domains.sass.model.hazards import Key, learn_from
from warpwright.errors import UsageError

FLOORS: Mapping[str, Mapping[str, int]] = {
    "RAW": {"R": 6, "P": 13, "UR": 12, "UP": 13},
    "WAW": {"R": 6, "P": 4, "UR": 8, "UP": 8},
    "WAR": {"R": 2, "P": 4, "UR": 4, "UP": 4},
    "SET": {"SB": 2},
    "AFTER": {"M": 6},
}
"""Cycles that an unseen pair needs at least: as much as the worst of what was seen on sm_90."""


@dataclass(frozen=True)
class Distances:
    """Least distances by key, and how often each key was seen."""

    least: Mapping[Key, int]
    seen: Mapping[Key, int] = field(default_factory=dict)

    def needed(self, key: Key) -> int:
        """Return the cycles that a key needs."""
        return self.least[key] if key in self.least else self._unseen(key[0], key[1], key[3])

    def _unseen(self, hazard: str, producer: str, file: str) -> int:
        known = self._worst.get((hazard, producer, file), 0)
        return max(known, FLOORS[hazard][file])

    @property
    def _worst(self) -> Mapping[tuple[str, str, str], int]:
        worst: dict[tuple[str, str, str], int] = self.__dict__.get("_worst_known", {})
        if not worst:
            for (hazard, producer, _, file), cycles in self.least.items():
                worst[hazard, producer, file] = max(cycles, worst.get((hazard, producer, file), 0))
            self.__dict__["_worst_known"] = worst
        return worst

    def with_kernel(self, kernel: Kernel) -> Distances:
        """Return the distances with those of a compiler's schedule taken in: what the compiler wrote is legal."""
        return learnt([kernel], self)

    def to_json(self) -> str:
        """Return them as text, one key a line."""
        rows = [json.dumps([*key, self.least[key], self.seen.get(key, 0)]) for key in sorted(self.least)]
        return "[\n" + ",\n".join(rows) + "\n]\n"

    @classmethod
    def from_json(cls, text: str) -> Distances:
        """Return what `to_json` wrote."""
        rows = json.loads(text)
        return cls({tuple(row[:4]): row[4] for row in rows}, {tuple(row[:4]): row[5] for row in rows})


def learnt(kernels: Iterable[Kernel], before: Distances | None = None) -> Distances:
    """Return the least distances in the compilers' schedules of some kernels, and in what was learnt before."""
    least, seen = (dict(before.least), dict(before.seen)) if before else ({}, {})

    def learn(key: Key, cycles: int) -> None:
        least[key] = min(cycles, least.get(key, cycles))
        seen[key] = seen.get(key, 0) + 1

    for kernel in kernels:
        learn_from(kernel, learn)
    return Distances(least, seen)


LEARNT = "WARPWRIGHT_SASS_LEARNT"
"""Names a folder with sm_90.json and the like, as `warpwright sass learn` writes them: for its architectures they stand in for the package's."""


def shipped(arch: int) -> Distances:
    """Return the distances for an architecture: one's own, else those that come with the package; none for one that was never learnt."""
    return _kept(arch, os.environ.get(LEARNT, ""))


@cache
def _kept(arch: int, folder: str) -> Distances:
    own = Path(folder, f"sm_{arch}.json")
    file = own if folder and own.is_file() else files("warpwright.domains.sass.model").joinpath("learnt", f"sm_{arch}.json")
    if not file.is_file():
        return Distances({})
    try:
        return Distances.from_json(file.read_text())
    except (ValueError, TypeError, IndexError) as error:
        raise UsageError(f"expected distances in {file}, saw: {error}", f"write it by `warpwright sass learn`, or unset {LEARNT}") from error
