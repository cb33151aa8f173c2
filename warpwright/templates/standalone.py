"""Templates as text for generated files, which run with torch alone: the driver, a template's Python and its CUDA sources in one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from warpwright.native import kept
from warpwright.templates.sources import text

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
    for folder in _folders():
        try:
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder) as file:
                if _ours(file.name):
                    return folder
        except OSError:
            continue  # a folder that cannot be written
    raise WarpwrightError("there is no folder to build kernels in: set WARPWRIGHT_CACHE")


def text(name):
    return SOURCES[name]


"""


def int8() -> str:
    """Return Python text that binds `_int8` to a module with `linear`, `cut` and what they need."""
    return _module("int8_product", "_int8", {name: text(name) for name in SOURCES})


def recurrent() -> str:
    """Return Python text that binds `_recurrent` to a module with `network` and what it needs."""
    return _module("recurrent", "_recurrent", {"recurrent.cu": text("recurrent.cu")})


def flash() -> str:
    """Return Python text that binds `_flash` to a module with `attention`, `takes` and what they need."""
    return _module("flash_hopper", "_flash", {"flash_hopper.cu": text("flash_hopper.cu")})


def _module(name: str, bound: str, texts: Mapping[str, str]) -> str:
    """Return Python text that binds `bound` to a module of the driver and a template, with the CUDA texts that it builds."""
    folder = Path(__file__).parent
    driver, template = ((folder / file).read_text().split(MARK)[-1] for file in ("driver.py", f"{name}.py"))
    body = _HEAD + kept.text() + driver.strip("\n") + "\n\n\n" + re.sub(r"\bdriver\.(?=\w)", "", template.strip("\n"))
    sources = "".join(f"    {file!r}: r'''{text}''',\n" for file, text in texts.items())
    lines = ["import types as _types", "", f'{bound} = _types.ModuleType("{name}")', f"{bound}.SOURCES = {{\n{sources}}}"]
    return "\n".join([*lines, f"exec(r'''{body}''', {bound}.__dict__)", "", ""])
