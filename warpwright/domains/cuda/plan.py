"""The IR of the cuda domain: a CUDA text with the compiler's flags."""

from __future__ import annotations

from dataclasses import dataclass, replace

from warpwright.domains.cuda import unit


@dataclass(frozen=True)
class Plan:
    """The IR."""

    text: str
    """The whole CUDA source."""
    flags: tuple[str, ...] = ()
    """For nvcc, beside the usual ones."""
    done: tuple[str, ...] = ()
    """What has been done where, as `technique kernel`: most techniques are done once in a kernel."""

    @property
    def unit(self) -> unit.Unit:
        """The text, read."""
        return unit.read(self.text)

    def has(self, technique: str, kernel: str) -> bool:
        """Was a technique applied to a kernel?"""
        return f"{technique} {kernel}" in self.done

    def then(self, text: str, technique: str, kernel: str) -> Plan:
        """Return the plan with another text, which a technique made of a kernel."""
        unit.read(text)  # a text that cannot be read again is refused here
        return replace(self, text=text, done=(*self.done, f"{technique} {kernel}"))
