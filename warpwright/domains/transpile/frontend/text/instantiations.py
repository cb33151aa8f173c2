"""Explicit instantiations and specialisations of kernels: `template __global__ void k<float>(float*, int);` and `template <> __global__ ...`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit


@dataclass(frozen=True)
class Instantiation:
    """An explicit instantiation of a kernel at [start, end)."""

    kernel: str
    """As it is written, with namespaces."""
    arguments: str
    """Of the template, as written; empty where they are deduced."""
    parameters: str
    start: int
    end: int
    extern: bool

    @property
    def name(self) -> str:
        """The kernel's name alone."""
        return self.kernel.rpartition("::")[2]


def found(source: Source) -> list[Instantiation]:
    """Return the explicit instantiations of kernels, in order."""
    return [one for one in _found(source.text, source.tokens) if one is not None]


def _found(text: str, tokens: Sequence[scan.Token]) -> Iterator[Instantiation | None]:
    for index, token in enumerate(tokens):
        if token.text != "template" or index + 1 >= len(tokens) or tokens[index + 1].text == "<":
            continue
        end = next((at for at in range(index + 1, len(tokens)) if tokens[at].text in (";", "{")), index)
        if tokens[end].text == ";" and any(one.text == "__global__" for one in tokens[index:end]):
            yield _read(text, tokens, index, end)


def _read(text: str, tokens: Sequence[scan.Token], index: int, end: int) -> Instantiation | None:
    extern = index > 0 and tokens[index - 1].text == "extern"
    opening = _parameters(tokens, index, end)
    if opening is None:
        return None
    last = opening - 1
    arguments = ""
    if tokens[last].text in (">", ">>>"):
        first = next((at for at in range(index, last) if tokens[at].text == "<" and scan.angles(tokens, at) == last), None)
        if first is None:
            return None
        arguments = text[tokens[first].end : tokens[last].start].strip()
        last = first - 1
    begin = last
    while begin - 2 > index and tokens[begin - 1].text == "::":
        begin -= 2
    kernel = text[tokens[begin].start : tokens[last].end]
    parameters = text[tokens[opening].end : tokens[scan.matching(tokens, opening)].start].strip()
    start = tokens[index - 1].start if extern else tokens[index].start
    return Instantiation(kernel, arguments, "" if parameters == "void" else parameters, start, tokens[end].end, extern)


def _parameters(tokens: Sequence[scan.Token], index: int, end: int) -> int | None:
    """Return the index of the parenthesis that opens the parameters: the last one that none encloses."""
    at, opening = index, None
    while at < end:
        if tokens[at].text == "(":
            opening = at
            at = scan.matching(tokens, at)
        at += 1
    return opening


def edits(source: Source, host: bool) -> list[Edit]:
    """Return the instantiations as those of what launches the kernel, which a program's other sources call; without a host they are left out."""
    known = {kernel.name for kernel in source.kernels}
    return [Edit(one.start, one.end, _launcher(one) if host and one.name in known else "") for one in found(source)]


def _launcher(one: Instantiation) -> str:
    arguments = f"<{one.arguments}>" if one.arguments else ""
    parameters = f"const ww::Launch&{', ' if one.parameters else ''}{one.parameters}"
    return f"{'extern ' if one.extern else ''}template void {one.kernel}_launch{arguments}({parameters});"


def specialised(source: Source) -> frozenset[str]:
    """Return the names of kernels that have an explicit specialisation."""
    tokens = source.tokens
    names: set[str] = set()
    for index, token in enumerate(tokens[:-2]):
        if token.text != "template" or tokens[index + 1].text != "<" or tokens[index + 2].text != ">":
            continue
        end = next((at for at in range(index, len(tokens)) if tokens[at].text in (";", "{")), index)
        if any(one.text == "__global__" for one in tokens[index:end]):
            names |= {one.text for one in tokens[index:end] if one.kind == "word"}
    return frozenset(names & {kernel.name for kernel in source.kernels})
