"""Call a compiled function of pointers many times from C: a call through ctypes takes as long as a small kernel."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from warpwright import native

MOST_PARAMETERS = 40


def text() -> str:
    """Return the C text of `repeat(function, pointers, parameters, count)`."""
    cases = []
    for count in range(1, MOST_PARAMETERS + 1):
        kinds, arguments = ", ".join(["void*"] * count), ", ".join(f"a[{k}]" for k in range(count))
        cases.append(f"    case {count}: for (long i = 0; i < n; ++i) ((void (*)({kinds}))f)({arguments}); break;")
    return "\n".join(["void repeat(void* f, void** a, int parameters, long n) {", "  switch (parameters) {", *cases, "  }", "}", ""])


@functools.cache
def library() -> Path:
    """Return the built library."""
    return native.build(text(), flags=("-O1", "-shared", "-fPIC", "-x", "c"))


@functools.cache
def function() -> Any:
    """Return the function, loaded."""
    repeat = native.load(library()).repeat
    repeat.restype = None
    return repeat
