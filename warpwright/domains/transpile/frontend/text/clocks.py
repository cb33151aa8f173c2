"""`clock()` in device code counts the device's cycles; the host's is the C library's, with another unit: the first gets a name of its own."""

from __future__ import annotations

import re

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.text import shifts


def insertions(text: str) -> list[tuple[int, str]]:
    """Return what is put in where, so that `clock()` of device code is `ww_clock()`: (offset, text), ascending."""
    if not re.search(r"\bclock\s*\(\s*\)", text):
        return []
    tokens = scan.tokens(text)
    calls = (at for low, high in shifts.device_bodies(tokens) for at in range(low, high) if tokens[at].text == "clock")
    return [(tokens[at].start, "ww_") for at in calls if tokens[at - 1].text not in (".", "->", "::") and tokens[at + 1].text == "("]
