"""How a program of Rodinia is described: its sources, arguments, changes, answers and judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from benchmarks.rodinia.judge import Answer

Edit = tuple[str, str, str]
"""(file, text that is there, text that takes its place)."""
Content = Callable[[], str | bytes]


@dataclass(frozen=True)
class Side:
    """A program of Rodinia: the CUDA one, or its twin."""

    folder: str
    sources: tuple[str, ...]
    arguments: str
    answers: tuple[Answer, ...]
    edits: tuple[Edit, ...] = ()
    defines: tuple[str, ...] = ()
    folders: tuple[str, ...] = (".",)
    """For headers, from the folder."""
    flags: tuple[str, ...] = ()
    """Of the compiler, that its host code needs."""
    nvcc: tuple[str, ...] = ()
    """Sources beside .cu that its Makefile gives to nvcc."""


@dataclass(frozen=True)
class Program:
    """One way to run a program, and its judge."""

    name: str
    """`program` or `program/variant`."""
    cuda: Side
    judge: Side | Callable[[Mapping[str, np.ndarray]], list[np.ndarray]]
    """Its OpenMP twin, or a function that says what the answers are to be, given the content of `inputs` and the answers of the program."""
    judged_by: str
    files: Mapping[str, Content] = field(default_factory=dict)
    """Files that it reads, from Rodinia's folder."""
    tolerance: float = 0.0
    breaks: Edit | None = None
    fix: str = ""
    """What was fixed in its kernel, which is not valid CUDA without it; such a program is counted separately."""
    given: tuple[Answer, ...] = ()
    """For a reference: what the program wrote of its own input."""


def keep(name: str, place: str, count: str, kind: str = "float") -> str:
    """Return a statement that writes `count` values at `place`."""
    return f'{{ FILE* ww_file = fopen("{name}", "wb"); fwrite({place}, sizeof({kind}), {count}, ww_file); fclose(ww_file); }}\n'


def before(file: str, words: str, code: str) -> Edit:
    return file, words, code + words
