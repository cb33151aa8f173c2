"""Which of the user's own files a program is made of: an edited one makes another task of it, whose old results answer nothing.

Imports are read from the text, and nothing is run. Packages that were installed, and the standard library, are known by their versions.
"""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from warpwright.base import digest

KNOWN_BY_VERSION = frozenset({"warpwright", "torch", "numpy"})
"""Also where they are imported from a checkout."""

MOST_FILES = 2000


TRIES = 8
"""Of a parse that another thread's came between."""


def syntax_tree(text: str, path: str = "<unknown>") -> ast.Module:
    """Return the syntax tree of a text; raise SyntaxError or ValueError where it is no Python.

    Python 3.11 counts how deep it is in a tree for all threads together: where two parse at once one may end in "AST constructor recursion depth
    mismatch", a SystemError, which says nothing of the text.
    """
    for _ in range(TRIES - 1):
        with contextlib.suppress(SystemError):
            return ast.parse(text, path)
    return ast.parse(text, path)


def imported(text: str, package: str = "") -> set[str]:
    """Return the modules that a text imports, relative ones by their names in `package`; none for a text that is no Python."""
    try:
        tree = syntax_tree(text)
    except (SyntaxError, ValueError):
        return set()
    return {name for node in ast.walk(tree) for name in _names(node, package)}


def _names(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        base = ".".join(filter(None, [*above, node.module or ""]))
        yield base
        yield from (f"{base}.{alias.name}" for alias in node.names)  # which may be a module too


def digest_of(modules: Iterable[str]) -> str:
    """Return a digest of the user's own files among `modules` and of whatever those import; "" where there are none."""
    folders = own_folders(sys.path)
    todo = [name for name in modules if name]
    files: dict[str, Path] = {}
    seen: set[str] = set()
    while todo and len(files) < MOST_FILES:
        name = todo.pop()
        if name in seen or name.partition(".")[0] in KNOWN_BY_VERSION or name.partition(".")[0] in sys.stdlib_module_names:
            continue
        seen.add(name)
        todo += [name.rpartition(".")[0]] if "." in name else []  # the package is run first
        path = _file(name, folders)
        if path is not None:
            files[name] = path
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            todo += imported(path.read_text(errors="replace"), package)
    return digest(*(part for name in sorted(files) for part in (name, files[name].read_text(errors="replace")))) if files else ""


def places(modules: Iterable[str]) -> tuple[str, ...]:
    """Return the files that the packages of `modules` are imported from in this process, installed ones too; none for what cannot be found."""
    paths: set[str] = set()
    for name in {name.partition(".")[0] for name in modules} - {""} - sys.stdlib_module_names:
        loaded = getattr(sys.modules.get(name), "__file__", None)
        with contextlib.suppress(ImportError, ValueError):
            spec = None if loaded else importlib.util.find_spec(name)
            loaded = loaded or (spec and (spec.origin or next(iter(spec.submodule_search_locations or ()), None)))
        paths |= {str(loaded)} if loaded and Path(loaded).exists() else set()
    return tuple(sorted(paths))


def own_folders(path: Iterable[str]) -> tuple[Path, ...]:
    """Return the folders of `path` (`sys.path`) that hold no installed packages."""
    installed = {Path(place).resolve() for place in sysconfig.get_paths().values()}
    whole = [Path(folder).resolve() for folder in path]  # an empty one is the working folder
    return tuple(folder for folder in whole if folder.is_dir() and folder not in installed and "site-packages" not in folder.parts)


def _file(name: str, folders: Iterable[Path]) -> Path | None:
    place = Path(*name.split("."))
    both = (folder / inner for folder in folders for inner in (place.with_suffix(".py"), place / "__init__.py"))
    return next((file for file in both if file.is_file()), None)
