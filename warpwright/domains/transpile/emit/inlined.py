"""Device functions that the loops of tier vectors inline: they keep their text, but for the elementary functions without branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from warpwright.domains.transpile import vmath
from warpwright.domains.transpile.analysis.callees import Device
from warpwright.domains.transpile.analysis.lockstep import relies_on_lockstep
from warpwright.domains.transpile.frontend.scan import Token
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.frontend.text.host_code import is_type


def inlined_edits(source: Source, device: Device) -> list[Edit]:
    """Return what changes in the device functions that loops inline."""
    starts = {f.start for f in device.functions if f.name in device.simple and not relies_on_lockstep(f)}
    pieces = [piece for piece in source.pieces if any(piece.start <= at < piece.end for at in starts)]
    text = source.text
    inside = [(low, high) for low, brace, high in pieces if not is_type(text[low:brace]) and "__noinline__" not in text[low:high]]
    handed = _handed(source.tokens, {f.name for f in device.functions if f.start in starts})
    called = [f.start for f in device.functions if f.start in starts and f.name in handed]
    pointed = [(low, high) for low, high in inside if any(low <= at < high for at in called)]
    return _edits(source.tokens, inside, pointed, vmath.calls(device.functions))


def _handed(tokens: Sequence[Token], names: Set[str]) -> set[str]:
    """Return the functions whose name is a value somewhere, as in `reduce(warp, x, larger)`: compilers cannot always inline what is called by it."""
    between = zip(tokens, tokens[1:], tokens[2:], strict=False)
    return {name.text for before, name, after in between if name.text in names and before.text in _BEFORE and after.text in _BEHIND}


_BEFORE, _BEHIND = frozenset("(,=&?:{") | {"return"}, frozenset("),;:}")


def _edits(tokens: Sequence[Token], inside: Sequence[tuple[int, int]], pointed: Sequence[tuple[int, int]], known: Mapping[str, str]) -> list[Edit]:
    """Return what changes in the functions that lie `inside`; `pointed`: those among them that are called by a pointer too; `known`: library
    function -> what is called instead."""
    edits = []
    for at in range(len(tokens) - 1):
        token, before = tokens[at], tokens[at - 1].text if at else ""
        if token.text == "__device__" and any(low <= token.start < high for low, high in inside):
            head = {near.text for near in tokens[max(at - 4, 0) : at + 4]}
            if any(low <= token.start < high for low, high in pointed):
                continue
            word = "" if head & {"inline", "__inline__", "__forceinline__"} else "inline "  # with -fPIC, others may be replaced when linked
            used = ", used" if word and "__host__" in head else ""  # another source of the program may call it
            edits.append(Edit(token.start, token.end, f"{word}__attribute__((always_inline{used}))"))
        if token.text not in known or tokens[at + 1].text != "(" or before in (".", "->"):
            continue
        start = token.start
        if before == "::":
            if tokens[at - 2].kind == "word" and tokens[at - 2].text != "std":
                continue
            start = tokens[at - 2].start if tokens[at - 2].text == "std" else tokens[at - 1].start
        if any(low <= token.start < high for low, high in inside):
            edits.append(Edit(start, token.end, known[token.text]))
    return edits
