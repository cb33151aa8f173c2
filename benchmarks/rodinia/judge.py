"""Compare what a Rodinia program wrote with what its OpenMP twin, or a reference of our own, gives for the same input: number by number."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\b[-+]?(?:nan|inf)\b", re.I)
PRINTED = "printed.txt"
"""The file that holds what a program printed."""


@dataclass(frozen=True)
class Answer:
    """Numbers that a program leaves in a file."""

    file: str
    kind: str = "text"
    """text, or the numpy type of a file of plain numbers: f4, f8, i4, u1."""
    after: str = ""
    """Of a text: only the numbers that follow this expression, one each."""
    last: int = 0
    """Of a text: only so many, from the end."""
    column: tuple[int, int] = (0, 1)
    """Of a text: (first, step), for numbers in columns."""
    sort: bool = False
    """The order is the program's own affair."""
    floor: float = 1.0
    """What is added to |b| in the error, in root mean squares of the numbers: small for numbers of many sizes."""


def numbers(folder: Path, answer: Answer) -> np.ndarray:
    """Return the numbers of an answer, `[count]` in double precision; a file that is not there has none."""
    file = folder / answer.file
    if not file.is_file():
        return np.zeros(0)
    if answer.kind != "text":
        found = np.fromfile(file, answer.kind).astype(np.float64)
    else:
        text = file.read_text(errors="replace")
        words = re.findall(answer.after + rf"({NUMBER.pattern})", text, re.I) if answer.after else NUMBER.findall(text)
        found = np.array([float(word) for word in words])
        found = found[-answer.last :] if answer.last else found
        found = found[answer.column[0] :: answer.column[1]]
    return np.sort(found) if answer.sort else found


@dataclass(frozen=True)
class Finding:
    """How two lists of numbers compare."""

    same: bool
    reason: str
    count: int = 0
    error: float = 0.0
    """The largest |a - b| / (|b| + floor * rms(b))."""


def beside(mine: np.ndarray, other: np.ndarray, tolerance: float, floor: float = 1.0) -> Finding:
    """Compare: as many numbers, all finite, not all one value, and |a - b| <= tolerance * (|b| + floor * rms(b)) for each; 0 asks for equality."""
    if mine.size != other.size or not mine.size:
        return Finding(False, f"{mine.size} numbers, the other has {other.size}")
    if not (np.isfinite(mine).all() and np.isfinite(other).all()):
        return Finding(False, f"{int((~np.isfinite(mine)).sum())} numbers are not finite, of the other {int((~np.isfinite(other)).sum())}")
    if np.unique(other).size < 2:
        return Finding(False, f"all {other.size} numbers of the other are {other[0]:g}: nothing to compare")
    error = np.abs(mine - other) / (np.abs(other) + floor * np.sqrt(np.mean(other * other)))
    worst = int(error.argmax())
    if error[worst] > tolerance:
        wrong = int((error > tolerance).sum())
        reason = f"{wrong} of {mine.size} numbers differ, number {worst + 1} is {mine[worst]:g}, the other's {other[worst]:g}"
        return Finding(False, reason, mine.size, float(error[worst]))
    return Finding(True, f"{mine.size} numbers", mine.size, float(error[worst]))


def all_beside(pairs: list[tuple[np.ndarray, np.ndarray]], tolerance: float, floor: float = 1.0) -> Finding:
    """Compare each pair; the same only if all are."""
    count, error = 0, 0.0
    for place, (mine, other) in enumerate(pairs):
        found = beside(mine, other, tolerance, floor)
        if not found.same:
            return Finding(False, f"answer {place + 1}: {found.reason}", found.count, found.error)
        count, error = count + found.count, max(error, found.error)
    return Finding(bool(pairs), f"{count} numbers" if pairs else "nothing to compare", count, error)
