"""The errors of this room.

    WarpwrightError
     +-- PairError     the pair generator got one of its own definitions or schedules wrong
     +-- Rejected      a draft is not a pair worth keeping; counted, and the run goes on
     +-- NotWired      the launches of an item could not be recovered; the item says why

What a translation gets wrong is no error but a row of the report.
"""

from __future__ import annotations

from warpwright.errors import WarpwrightError


class PairError(WarpwrightError):
    """A definition, a schedule or a printed program that the generator itself got wrong."""


class Rejected(WarpwrightError):
    """A draft that is no verified pair. The first word of the message, before the colon, is the class of the reason."""


class NotWired(WarpwrightError):
    """The launches of an item could not be recovered; the message says why."""


def one_line(error: Exception) -> str:
    """Return the first 300 characters of an error's message, on one line."""
    return " ".join(str(error).split())[:300]
