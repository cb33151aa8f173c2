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
        self.name = name
        file = unit.get_file(name)
        start, end = (int(cindex.SourceLocation.from_offset(unit, file, at).int_data) for at in (0, len(text)))
        self.start, self.end = (start, end) if end - start == len(text) else (1, 0)
        """The numbers of the main file's locations, which follow one another; if they did not, each offset would be asked for."""
        self.spellings: dict[tuple[int, ...], str] = {}
        """Of each type that was met."""
        self.declarations: dict[int | None, tuple[str, str, int | None]] = {}
        """Address of a declaration -> its spelling, its kind, and its offset in the main file."""
        self.visit = cindex.conf.lib.clang_visitChildren
        self.collect = cindex.callbacks["cursor_visit"](_collected)
        self.extent_of = _question("clang_getCursorExtent", cindex.SourceRange)
        self.location_of = _question("clang_getCursorLocation", cindex.SourceLocation)
        self.type_of = _question("clang_getCursorType", cindex.Type)
        self.referenced_by = _question("clang_getCursorReferenced", cindex.Cursor)
        self.template_of = _question("clang_getSpecializedCursorTemplate", cindex.Cursor)

    def children(self, cursor: Any) -> list[Any]:
        """Return the cursors directly inside one, in order."""
        inside: list[Any] = []
        self.visit(cursor, self.collect, inside)
        for child in inside:
            child._tu = self.unit
        return inside

    def extent(self, cursor: Any) -> tuple[int, int]:
        """Return where a cursor's text begins and ends."""
        known = self.extent_of(cursor)
        low, high, start, end = known.begin_int_data, known.end_int_data, self.start, self.end
        if start <= low <= end and start <= high <= end:
            return low - start, high - start
        return known.start.offset, known.end.offset

    def own_offset(self, cursor: Any) -> int | None:
        """Return where a cursor's name stands in the main file; None where it is in another."""
        location = self.location_of(cursor)
        if self.start <= location.int_data <= self.end:
            return int(location.int_data) - self.start
        if self.end and location.int_data < _IN_A_MACRO:
            return None  # as the thousand declarations of the header that comes before: asking for their file takes a fifth of the time
        return location.offset if location.file is not None and location.file.name == self.name else None

    def is_instance(self, cursor: Any) -> bool:
        """Say whether a function is one that the parser made of a template: it stands where the template does, a specialisation elsewhere."""
        template = self.template_of(cursor)
        template._tu = self.unit
        return self.own_offset(template) == self.own_offset(cursor)

    def type(self, cursor: Any) -> str:
        """Return a cursor's type as the parser spells it."""
        known = self.type_of(cursor)
        key = (known._kind_id, *known.data)
        text = self.spellings.get(key)
        if text is None:
            text = self.spellings[key] = known.spelling
        return text

    def declaration(self, name: Any) -> tuple[str, str, int | None]:
        """Return how the cursor of a name is spelled, and the kind and the offset in the main file of what it means."""
        declared = self.referenced_by(name)
        address = declared.data[0]
        known = self.declarations.get(address)
        if known is None:
            declared._tu = self.unit
            known = (name.spelling, kind(declared), self.own_offset(declared))
            if known[1] in ("VAR_DECL", "PARM_DECL"):
                self.declarations[address] = known
        return known


_IN_A_MACRO = 1 << 31
"""Numbers of locations from here on are of what a macro wrote, wherever that was; those below count through the files, one after another."""


def _collected(child: Any, _parent: Any, children: list[Any]) -> int:
    children.append(child)
    return 1  # go on with the next


def _question(name: str, answer: Any) -> Any:
    """Return a function of libclang without what clang.cindex does with its answers: a null cursor or type is returned as it is."""
    from clang import cindex

    asked = cindex.conf.lib[name]
    asked.argtypes, asked.restype = [cindex.Cursor], answer
    return asked
