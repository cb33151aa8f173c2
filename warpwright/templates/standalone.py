"""Templates as text for generated files, which run with torch alone: the driver, a template's Python and its CUDA sources in one."""

from __future__ import annotations

import ast
import re
import sys
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
@IMPORTS
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


def tf32x3() -> str:
    """Return Python text that binds `_tf32x3` to a module with `matmul` and what it needs."""
    return _module("tf32x3", "_tf32x3", {"tf32x3.cu": text("tf32x3.cu")})


def _module(name: str, bound: str, texts: Mapping[str, str]) -> str:
    """Return Python text that binds `bound` to a module of the driver and a template, with the CUDA texts that it builds."""
    folder = Path(__file__).parent
    (_, driver), (before, template) = ((folder / file).read_text().split(MARK) for file in ("driver.py", f"{name}.py"))
    head = _HEAD.replace("@IMPORTS\n", f"{_imports(before)}\n")
    body = head + kept.text() + driver.strip("\n") + "\n\n\n" + re.sub(r"\bdriver\.(?=\w)", "", template.strip("\n"))
    sources = "".join(f"    {file!r}: r'''{text}''',\n" for file, text in texts.items())
    lines = ["import types as _types", "", f'{bound} = _types.ModuleType("{name}")', f"{bound}.SOURCES = {{\n{sources}}}"]
    return "\n".join([*lines, f"exec(r'''{body}''', {bound}.__dict__)", "", ""])


def _imports(head: str) -> str:
    """Return the lines of a template's head that import from the standard library, which what follows them may need."""
    found = [node for node in ast.parse(head).body if isinstance(node, ast.Import | ast.ImportFrom)]
    roots = [(node.module or "" if isinstance(node, ast.ImportFrom) else node.names[0].name).split(".")[0] for node in found]
    return "".join(f"{ast.unparse(node)}\n" for node, root in zip(found, roots, strict=True) if root in sys.stdlib_module_names - {"__future__"})
