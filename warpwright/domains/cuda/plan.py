"""The IR of the cuda domain: a CUDA text with the compiler's flags, or a Triton text, which no rewrite reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from warpwright.domains.cuda import unit
from warpwright.domains.cuda.triton_text import is_triton
from warpwright.errors import NotApplicable

Found = TypeVar("Found")


@dataclass(frozen=True)
class Plan:
    """The IR."""

    text: str
    """The whole source."""
    flags: tuple[str, ...] = ()
    """For nvcc, beside the usual ones."""
    done: tuple[str, ...] = ()
    """What has been done where, as `technique kernel`: most techniques are done once in a kernel."""

    @property
    def unit(self) -> unit.Unit:
        """The CUDA text, read. Raise NotApplicable for a text that is none."""
        if self.triton:
            raise NotApplicable("expected CUDA C++, saw Triton, which is not rewritten")
        return unit.read(self.text)

    @property
    def triton(self) -> bool:
        """Is it a Triton text?"""
        return is_triton(self.text)

    def matching(self, match: Callable[[Plan, str], Found]) -> Iterator[tuple[str, Found]]:
        """Yield the kernels that `match` does not raise NotApplicable for, and what it finds."""
        for kernel in self.unit.kernels:
            try:
                found = match(self, kernel)
            except NotApplicable:
                continue
            yield kernel, found

    def has(self, technique: str, kernel: str) -> bool:
        """Was a technique applied to a kernel?"""
        return f"{technique} {kernel}" in self.done

    def then(self, text: str, technique: str, kernel: str) -> Plan:
        """Return the plan with another text, which a technique made of a kernel."""
        unit.read(text)  # a text that cannot be read again is refused here
        return replace(self, text=text, done=(*self.done, f"{technique} {kernel}"))
