"""The Python file beside a CUDA source: `reference`, `get_inputs` and `launch`. It is parsed here; workers run it, and `operations.py` records it.

    def get_inputs(): return [torch.randn(1 << 24), torch.randn(1 << 24)]
    def reference(x, y): return 2.0 * x + y                # any torch program: float64 of it decides what is right
    def launch(kernel, x, y):                              # how the entry of the .cu is called, and what it gives
        out = torch.empty_like(x)
        kernel.saxpy(x.numel(), 2.0, x, y, out)
        return out
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

from warpwright.errors import TaskError

FUNCTIONS: Mapping[str, str] = {
    "get_inputs": "returns a list of nominal inputs",
    "reference": "returns what the kernel has to compute, from the same inputs, in torch",
    "launch": "takes the kernels and the inputs, calls an entry and returns its outputs",
}


_FORMS = "give a .cu file and the Python file beside it"

_WORDS = re.compile(r"""//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z)|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'""", re.S)
"""Comments, and what looks like one in a string."""

_FOREIGN = re.compile("[\udc80-\udcff]")
"""Bytes that are no UTF-8, as `surrogateescape` reads them."""


def read(path: Path) -> str:
    """Return a file's text; raise TaskError where there is none."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{path} cannot be read as text: {error}", _FORMS) from error


def read_cuda(path: Path) -> str:
    """Return a CUDA source's text. Its comments may be in any encoding, as for nvcc: letters there that are no UTF-8 become question marks."""
    try:
        text = path.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise TaskError(f"{path} cannot be read as text: {error}", _FORMS) from error
    if _FOREIGN.search(text):
        text = _WORDS.sub(lambda word: _FOREIGN.sub("?", word[0]) if word[0].startswith("/") else word[0], text)
    foreign = _FOREIGN.search(text)
    if foreign:
        line = text.count("\n", 0, foreign.start()) + 1
        seen = f"saw the byte {ord(foreign[0]) - 0xDC00:#x}"
        raise TaskError(f"{path}, line {line}: expected UTF-8 outside of comments, {seen}", "store the file as UTF-8")
    return text


_OWN = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"[^\n]*$', re.M)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*$", re.M)


def whole(path: Path, seen: set[Path] | None = None) -> str:
    """Return a CUDA source with its own headers, those in quotes that lie beside it, in their places: each once, as a program has to stand alone."""
    seen = seen if seen is not None else set()

    def one(match: re.Match[str]) -> str:
        header = (path.parent / match[1]).resolve()
        if not header.is_file():
            return match[0]
        if header in seen:
            return ""
        seen.add(header)
        return f"// {match[1]}\n{_ONCE.sub('', whole(header, seen))}"

    return _OWN.sub(one, read_cuda(path))


def check(text: str, path: Path) -> None:
    """Raise TaskError where a task file does not define what it should."""
    try:
        tree = ast.parse(text, str(path))
    except SyntaxError as error:
        raise TaskError(f"{path}, line {error.lineno}: syntax error: {error.msg}", "make it run under python first") from error
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    missing = [name for name in FUNCTIONS if name not in defined]
    if missing:
        wanted = "; ".join(f"def {name}: {FUNCTIONS[name]}" for name in missing)
        raise TaskError(f"{path} has no function {' and no '.join(missing)}", wanted)


def statement(text: str) -> str:
    """Return the task in words: the file's docstring, or nothing."""
    return ast.get_docstring(ast.parse(text)) or ""
