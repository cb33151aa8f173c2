"""How a kernel is launched: what a harness file says. It is Python, run in the child process that measures, and defines `launch()`:

    from warpwright.domains.sass.harness import Launch, given, output

    def launch():
        n = 1 << 24
        return Launch("saxpy", grid=(n // 256, 1, 1), block=(256, 1, 1), arguments=(2.0, given("f32", n), output("f32", n), n))

Inputs are random: mean 0 and standard deviation 0.58, times `scale`, plus `offset`.
"""

from __future__ import annotations

import runpy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from warpwright.errors import TaskError

Role = Literal["given", "output", "updated"]
Shape = tuple[int, int, int]

SIZES: Mapping[str, int] = {"f32": 4, "f16": 2, "bf16": 2, "i32": 4, "e4m3": 1}
"""Bytes of an element, by kind. i32 holds numbers from 0 on below `scale`."""

KINDS = tuple(SIZES)


@dataclass(frozen=True)
class Buffer:
    """An array in the device's memory. `updated`: read and written."""

    kind: str
    count: int
    role: Role
    scale: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in SIZES or self.count < 1:
            raise TaskError(f"expected a kind out of {', '.join(SIZES)} and at least one element, saw {self.kind!r}, {self.count}")

    @property
    def bytes(self) -> int:
        """Its size."""
        return SIZES[self.kind] * self.count


Argument = Buffer | int | float


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel."""

    kernel: str
    grid: Shape
    block: Shape
    arguments: tuple[Argument, ...]
    shared: int = 0
    """Bytes of dynamic shared memory."""

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """The arrays among the arguments, in order."""
        return tuple(argument for argument in self.arguments if isinstance(argument, Buffer))


def given(kind: str, count: int, scale: float = 1.0, offset: float = 0.0) -> Buffer:
    """Return an array that the kernel only reads."""
    return Buffer(kind, count, "given", scale, offset)


def output(kind: str, count: int) -> Buffer:
    """Return an array that the kernel writes."""
    return Buffer(kind, count, "output")


def updated(kind: str, count: int, scale: float = 1.0, offset: float = 0.0) -> Buffer:
    """Return an array that the kernel reads and writes."""
    return Buffer(kind, count, "updated", scale, offset)


def load(path: str | Path, function: str = "launch") -> Launch:
    """Run a harness file and return what its function gives; raise TaskError where it cannot be run, or that is no launch."""
    try:
        names = runpy.run_path(str(path), run_name="harness")
    except OSError as error:
        raise TaskError(f"the harness {path} cannot be read: {error.strerror or error}", "give the path of a harness (docs/sass.md)") from error
    except Exception as error:  # the user's own Python: whatever it raises
        raise TaskError(f"the harness {path} raised {_said(error)}", "run it by itself with Python") from error
    if function not in names:
        defined = ", ".join(name for name in names if name[0] != "_")
        raise TaskError(f"expected a function {function}() in the harness {path}, saw {defined or 'nothing'}", "see docs/sass.md")
    try:
        launch = names[function]()
    except Exception as error:
        raise TaskError(f"{function}() of the harness {path} raised {_said(error)}", "see docs/sass.md for what a launch is") from error
    if not isinstance(launch, Launch):
        raise TaskError(f"expected {function}() to return a Launch, saw {type(launch).__name__}", "see docs/sass.md")
    return launch


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"
