"""What the reader asks libclang, in few calls: a question to clang.cindex is five to ten calls through ctypes, most of the time of a large kernel.

No answer here is another than clang.cindex gives: offsets in the text are read from the numbers that its locations carry, where these are shown to
be offsets (`Cursors.__init__`); how a type is spelled is asked once for each type; the children of a cursor come without a comparison for each.
"""

from __future__ import annotations

from typing import Any

LEAVES = frozenset(["INTEGER_LITERAL", "FLOATING_LITERAL", "CHARACTER_LITERAL", "CXX_BOOL_LITERAL_EXPR"])
"""Kinds of cursors that have no children."""

_KINDS: dict[int, str] = {}
"""Number of a kind -> its name: that of an enumeration's member is a property in Python, and slow."""


def kind(cursor: Any) -> str:
    """Return the name of a cursor's kind."""
    number = cursor._kind_id
    name = _KINDS.get(number)
    if name is None:
        name = _KINDS[number] = str(cursor.kind.name)
    return name


class Cursors:
    """The cursors of one translation unit, whose text is its main file."""

    def __init__(self, unit: Any, name: str, text: str) -> None:
        from clang import cindex

        self.unit = unit
        self.library = cindex.conf.lib
        file = unit.get_file(name)
        start, end = (int(cindex.SourceLocation.from_offset(unit, file, at).int_data) for at in (0, len(text)))
        self.start, self.end = (start, end) if end - start == len(text) else (1, 0)
        """The numbers of the main file's locations, which follow one another; if they did not, each offset would be asked for."""
        self.name = name
        self.types: dict[tuple[int, ...], str] = {}
        self.collect = cindex.callbacks["cursor_visit"](self._collected)
        self.found: list[Any] = []

    def _collected(self, child: Any, _parent: Any, _data: Any) -> int:
        child._tu = self.unit
        self.found.append(child)
        return 1

    def children(self, cursor: Any) -> list[Any]:
        """Return the cursors directly inside one, in order."""
        self.found = []
        self.library.clang_visitChildren(cursor, self.collect, None)
        return self.found

    def extent(self, cursor: Any) -> tuple[int, int]:
        """Return where a cursor's text begins and ends."""
        found = cursor.extent
        low, high = found.begin_int_data, found.end_int_data
        if self.start <= low <= self.end and self.start <= high <= self.end:
            return low - self.start, high - self.start
        return found.start.offset, found.end.offset

    def own_offset(self, cursor: Any) -> int | None:
        """Return where a cursor's name stands in the main file; None where it is in another."""
        location = cursor.location
        if self.start <= location.int_data <= self.end:
            return int(location.int_data) - self.start
        return location.offset if location.file is not None and location.file.name == self.name else None

    def spelled(self, of_type: Any) -> str:
        """Return a type as the parser spells it."""
        key = (of_type._kind_id, *of_type.data)
        text = self.types.get(key)
        if text is None:
            text = self.types[key] = of_type.spelling
        return text
