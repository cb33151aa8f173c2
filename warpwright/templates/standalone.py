"""The INT8-sliced product as text for generated files, which run with torch alone: the driver, the product and their CUDA sources in one."""

from __future__ import annotations

import re
from pathlib import Path

from warpwright.templates import int8_product

MARK = "# --- generated programs hold what follows\n"
SOURCES = ("int8_product.cu", "int8_slices.cu")
_HEAD = """
from __future__ import annotations

import ctypes, ctypes.util, functools, hashlib, os, pathlib, re, struct, sys, tempfile, threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch


class WarpwrightError(Exception):
    pass


UsageError = BuildError = WarpwrightError


def digest(*parts):
    return hashlib.sha256("\\0".join(parts).encode()).hexdigest()[:24]


@functools.cache
def cache_folder():
    for folder in (os.environ.get("WARPWRIGHT_CACHE"), Path.home() / ".cache" / "warpwright", tempfile.gettempdir()):
        try:
            if folder:
                Path(folder).mkdir(parents=True, exist_ok=True)
                with tempfile.TemporaryFile(dir=folder):
                    return Path(folder)
        except OSError:
            continue  # a folder that cannot be written
    raise WarpwrightError("there is no folder to build kernels in: set WARPWRIGHT_CACHE")


def text(name):
    return SOURCES[name]


"""


def int8() -> str:
    """Return Python text that binds `_int8` to a module with `linear`, `cut` and what they need."""
    folder = Path(__file__).parent
    driver, product = ((folder / name).read_text().split(MARK)[-1] for name in ("driver.py", "int8_product.py"))
    body = _HEAD + driver.strip("\n") + "\n\n\n" + re.sub(r"\bdriver\.(?=\w)", "", product.strip("\n"))
    sources = "".join(f"    {name!r}: r'''{int8_product.text(name)}''',\n" for name in SOURCES)
    lines = ["import types as _types", "", "_int8 = _types.ModuleType(\"int8_product\")", f"_int8.SOURCES = {{\n{sources}}}"]
    return "\n".join([*lines, f"exec(r'''{body}''', _int8.__dict__)", "", ""])
