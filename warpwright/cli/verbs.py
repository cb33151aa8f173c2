"""What the modules of this folder use to add their verbs."""

from __future__ import annotations

import argparse
from collections.abc import Callable

Verb = Callable[..., argparse.ArgumentParser]
"""verb(name, function, *parents, under=...): adds a verb whose help is the function's docstring."""


def positive(text: str) -> int:
    if not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, saw {text!r}")
    return int(text)
