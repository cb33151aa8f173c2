"""Names of a program that its original has given to something else: what stands below the original must not take its place.

The original's own forward is what the program falls back to, and its get_inputs() draws what it is tested with: both look their names up in the file
when they are called.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

from warpwright.tasks.sources import syntax_tree

KEPT = frozenset({"ModelNew", "StepNew"})
"""What others look for under these names."""

_BLOCK = re.compile(r"^(?:try|except|finally|if|elif|else|for|while|with)\b.*(?:\n(?:[ \t].*)?)*", re.MULTILINE)
"""In a file, outside of its functions and classes."""

_BOUND = r"(?:def|class)[ \t]+(\w+)|(\w[\w, \t]*?)[ \t]*(?::[^=\n]*)?=(?!=)|((?:import|from)[ \t].*)$"
_OUTSIDE, _ANYWHERE = (re.compile(rf"^{indent}(?:{_BOUND})", re.MULTILINE) for indent in ("", "[ \t]+"))
_COMPREHENSION = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

Names = frozenset[str]
Edit = tuple[int, int, str, str]
"""A line, a column in bytes of UTF-8, what stands there and what shall."""


def apart(original: str, text: str) -> str:
    """Return the text of what stands below the original, with names of its own where the original means something else by them."""
    taken = _meanings(original)
    if not _may_clash(text, taken):
        return text
    tree, own = syntax_tree(text), _meanings(text)
    clashing = {name for name in own.keys() & taken.keys() if None in own[name] | taken[name] or own[name] != taken[name]} - KEPT
    if not clashing:
        return text
    words = {*re.findall(r"\w+", text), *re.findall(r"\w+", original)}
    new = {name: _free(name, words) for name in sorted(clashing)}
    rows = [line.encode() for line in text.split("\n")]
    for line, column, old, other in sorted(set(_edits(tree.body, new, frozenset(), frozenset(), rows)), reverse=True):
        row, at = rows[line - 1], column + len(old)
        if row[column:at] != old.encode():
            raise AssertionError(f"expected {old} in column {column}, saw {row.decode()}")
        rows[line - 1] = row[:column] + other.encode() + row[at:]
    return b"\n".join(rows).decode()


def _may_clash(text: str, taken: Mapping[str, frozenset[str | None]]) -> bool:
    """Does a line of the text seem to bind a name of the original to something else? To parse the text takes several times as long."""
    found = [*_OUTSIDE.findall(text), *(one for block in _BLOCK.findall(text) for one in _ANYWHERE.findall(block))]
    for defined, assigned, imported in dict.fromkeys(found):
        if not taken.keys().isdisjoint(re.findall(r"\w+", f"{defined} {assigned}")):
            return True
        try:
            meanings = _bound(syntax_tree(imported).body)
            if any(taken[name] != {meaning} for name, meaning in meanings if name in taken):
                return True
        except (SyntaxError, ValueError):  # it goes on in other lines
            return True
    return False


def _free(name: str, words: set[str]) -> str:
    """Return a name that is no word of either text."""
    while name in words:
        name += "_"
    words.add(name)
    return name


# --- what a text binds --------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=8)
def _meanings(text: str) -> Mapping[str, frozenset[str | None]]:
    """Return what a text's names mean outside of its functions and classes: for an import what is imported, else None."""
    found: dict[str, frozenset[str | None]] = {}
    for name, meaning in _bound(syntax_tree(text).body):
        found[name] = found.get(name, frozenset()) | {meaning}
    return found


def _bound(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str | None]]:
    """Yield the names that statements bind in their own scope, each with what is imported by it."""
    for node in nodes:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                whole = alias.asname or isinstance(node, ast.ImportFrom)
                shown = alias.name if whole else alias.name.partition(".")[0]
                yield alias.asname or shown, f"{getattr(node, 'module', '')}.{shown}"
        elif isinstance(node, _Definition):
            yield node.name, None
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                yield node.id, None
        elif not isinstance(node, ast.Lambda | _COMPREHENSION):
            if isinstance(node, ast.ExceptHandler) and node.name:
                yield node.name, None
            yield from _bound(ast.iter_child_nodes(node))


# --- where a text's names are written ----------------------------------------------------------------------------------------------------


def _edits(nodes: Iterable[ast.AST | None], new: Mapping[str, str], here: Names, inside: Names, rows: list[bytes]) -> Iterator[Edit]:
    """Yield the edits for names of the file. `here`: names that mean something else in this scope; `inside`: in functions of this scope."""
    for node in nodes:
        if isinstance(node, ast.Name):
            if node.id in new and node.id not in here:
                yield node.lineno, node.col_offset, node.id, new[node.id]
        elif isinstance(node, ast.JoinedStr):
            yield from _in_text(node, new, here, rows)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from _imported(node, new, here, rows)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            if not isinstance(node, ast.Lambda):
                yield from _named(node, new, here, rows)
                yield from _edits([*node.decorator_list, node.returns], new, here, inside, rows)
            given = [*ast.walk(node.args)]
            yield from _edits([node.args], new, here, inside, rows)
            body = node.body if isinstance(node.body, list) else [node.body]
            own = inside | {arg.arg for arg in given if isinstance(arg, ast.arg)} | {name for name, _ in _bound(body)}
            yield from _edits(body, new, own, own, rows)
        elif isinstance(node, ast.ClassDef):
            yield from _named(node, new, here, rows)
            yield from _edits([*node.decorator_list, *node.bases, *node.keywords], new, here, inside, rows)
            yield from _edits(node.body, new, inside | {name for name, _ in _bound(node.body)}, inside, rows)
        elif isinstance(node, _COMPREHENSION):
            targets = {name for name, _ in _bound(child.target for child in node.generators)}
            yield from _edits(ast.iter_child_nodes(node), new, here | targets, inside | targets, rows)
        elif node is not None:
            yield from _edits(ast.iter_child_nodes(node), new, here, inside, rows)


def _named(node: _Definition, new: Mapping[str, str], here: Names, rows: list[bytes]) -> Iterator[Edit]:
    if node.name in new and node.name not in here:
        yield node.lineno, rows[node.lineno - 1].index(node.name.encode(), node.col_offset + len("def ")), node.name, new[node.name]


def _imported(node: ast.Import | ast.ImportFrom, new: Mapping[str, str], here: Names, rows: list[bytes]) -> Iterator[Edit]:
    for alias in node.names:
        name = alias.asname or alias.name
        if name in new and name not in here and alias.end_col_offset is not None:
            written = rows[alias.lineno - 1][alias.col_offset : alias.end_col_offset].decode()
            yield alias.lineno, alias.col_offset, written, f"{alias.name} as {new[name]}"


def _in_text(node: ast.JoinedStr, new: Mapping[str, str], here: Names, rows: list[bytes]) -> Iterator[Edit]:
    """Yield the edits of the names in an f-string, of whose insides Python 3.11 does not know the columns."""
    names = {child.id for child in ast.walk(node) if isinstance(child, ast.Name)} & (new.keys() - here)
    last = node.end_lineno or node.lineno
    for line in range(node.lineno, last + 1) if names else ():
        begin, end = node.col_offset if line == node.lineno else 0, node.end_col_offset if line == last else None
        for match in re.finditer(rf"(?<![\w.])({'|'.join(names)})\b".encode(), rows[line - 1][:end]):
            if match.start() >= begin:
                yield line, match.start(), (name := match[0].decode()), new[name]
