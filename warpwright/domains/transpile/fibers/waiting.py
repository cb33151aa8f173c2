"""Kernels that wait for what another thread writes: `while (atomicAdd(&flag[i], 0) == 0) {}` reads a place until it changes.

Blocks that run one after another would wait for ever where the other block comes later, or goes on in a later turn of its loop. Such a kernel runs
on fibers, and its blocks at once, each on a thread of the machine, as of a cooperative launch; a wait gives the processor to the other threads of
its block and then to other blocks. With one block, or more than a cooperative launch may have, blocks run as before. Locks (`while (atomicCAS(&lock,
0, 1)) {}`) are no such wait: a block gives its lock back before it ends. A wait may stand in a function that the kernel calls.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from warpwright.domains.transpile.fibers.together import is_call, name_of
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Kernel, Token
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.domains.transpile.frontend.text.shifts import device_bodies

_ATOMIC = re.compile(r"atomic(Add|Sub|Or|Xor|Max|And|CAS)(_system|_block)?$")
_ZERO = re.compile(r"0([xX]0+)?[uUlL]*$")
_ONES = re.compile(r"~ ?0[uUlL]*$|- ?1$|0[xX][fF]+[uUlL]*$")
_LOADS = frozenset(["__ldcv", "__ldcg", "volatile"])
_IDLE = frozenset(["__nanosleep", "__threadfence", "__threadfence_system", "__threadfence_block"])
"""Calls of a loop that does nothing but wait."""
_VOLATILE = re.compile(r"\bvolatile\b[^;(){}=]*?(\w+)\s*[=;,)\[]")
TOGETHER = "if (1 < {0}.blocks() && {0}.blocks() <= ww::most_blocks_together) ww::together() = ww::run_together;"
"""In front of a launch on fibers."""
_GIVES = " ww::step(ww::spins); std::this_thread::yield(); }"


class _Loop(NamedTuple):
    """A loop, as indices of tokens: its body [first, last], and its condition [low, high)."""

    first: int
    last: int
    low: int
    high: int


class _Function(NamedTuple):
    """A function of the device: where its body begins, the bodies of its own waiting loops, and the functions that it calls."""

    start: int
    loops: tuple[tuple[int, int], ...]
    calls: frozenset[str]


def waits(source: Source, kernel: Kernel) -> list[tuple[int, int]]:
    """Return where the bodies of a kernel's waiting loops, and of those of functions that it calls, begin and end."""
    if not any(word in source.text for word in ("atomic", *_LOADS)):
        return []
    functions = _functions(source.text)
    reached, new = set[str](), {name for name, function in functions.items() if kernel.start <= function.start < kernel.end}
    while new:
        reached |= new
        new = {callee for name in new for callee in functions[name].calls} - reached
    return sorted(body for name in reached for body in functions[name].loops)


def edits(source: Source) -> list[Edit]:
    """Give the processor to others wherever a kernel waits."""
    bodies = {body for kernel in source.kernels if kernel.defined for body in waits(source, kernel)}
    return [edit for low, high in sorted(bodies) for edit in (Edit(low, low, "{ "), Edit(high, high, _GIVES))]


@functools.lru_cache(maxsize=4)  # asked for once for each kernel
def _functions(text: str) -> Mapping[str, _Function]:
    """Return the functions of the device by name; overloads have numbers behind theirs, and whoever calls one may call each."""
    tokens = scan.tokens(text)
    volatile = frozenset(_VOLATILE.findall(text))
    bodies = [(name_of(tokens, low), low, high) for low, high in device_bodies(tokens)]
    names: dict[str, list[str]] = {}
    for name, low, _ in bodies:
        names.setdefault(name, []).append(f"{name} {low}")
    found = {}
    for name, low, high in bodies:
        called = {tokens[at].text for at in range(low, high) if is_call(tokens, at, names.keys())} - {name}
        loops = tuple((tokens[loop.first].start, tokens[loop.last].end) for loop in _loops(tokens, low, high) if _waits(tokens, loop, volatile))
        found[f"{name} {low}"] = _Function(tokens[low].start, loops, frozenset(one for callee in called for one in names[callee]))
    return found


def _loops(tokens: Sequence[Token], low: int, high: int) -> Iterator[_Loop]:
    """Yield the loops whose body is a simple statement, or a block."""
    ends = set[int]()  # the `while` of each `do`
    for at in range(low, high):
        word = tokens[at].text
        if word == "do":
            last = _statement(tokens, at + 1)
            if tokens[last + 1].text == "while":
                ends.add(last + 1)
                yield _Loop(at + 1, last, last + 3, scan.matching(tokens, last + 2))
        elif (word == "while" and at not in ends) or word == "for":
            close = scan.matching(tokens, at + 1)
            begin = at + 2 if word == "while" else next((i + 1 for i in range(at + 2, close) if tokens[i].text == ";"), close)
            end = close if word == "while" else next((i for i in range(begin, close) if tokens[i].text == ";"), close)
            if close + 1 < high and (word == "while" or end == close - 1):  # a step makes a loop that counts its turns
                yield _Loop(close + 1, _statement(tokens, close + 1), begin, end)


def _statement(tokens: Sequence[Token], at: int) -> int:
    """Return the index of the last token of the statement at an index: a block's brace, or the semicolon."""
    if tokens[at].text == "{":
        return scan.matching(tokens, at, "{", "}")
    return next((index for index in range(at, len(tokens)) if tokens[index].text in (";", "{", "}")), at)


def _waits(tokens: Sequence[Token], loop: _Loop, volatile: frozenset[str]) -> bool:
    """Does a loop nothing but read, until what it reads changes?"""
    if tokens[loop.last].text not in (";", "}"):
        return False
    words = {tokens[at].text for at in range(loop.low, loop.high)}
    reads = _read_in(tokens, loop.low, loop.high, volatile)
    at = loop.first + (tokens[loop.first].text == "{")
    while at < loop.last + (tokens[loop.first].text != "{"):
        end = next((index for index in range(at, loop.last + 1) if tokens[index].text == ";"), None)
        if end is None:
            return False
        if tokens[at].text in _IDLE or at == end:
            pass
        elif tokens[at].kind == "word" and tokens[at + 1].text == "=" and tokens[at].text in words and _read_in(tokens, at + 2, end, volatile):
            reads = True
        else:
            return False
        at = end + 1
    return reads


def _read_in(tokens: Sequence[Token], low: int, high: int, volatile: frozenset[str]) -> bool:
    """Is there a read of what others may write, by a volatile place or an operation that changes nothing, and no change but `(v = read)`?"""
    changes = (at for at in range(low, high) if tokens[at].text in ("=", "++", "--", "+=", "-="))
    if any(tokens[at].text != "=" or tokens[at - 1].kind != "word" or tokens[at - 2].text != "(" for at in changes):
        return False
    return any(tokens[at].text in _LOADS or tokens[at].text in volatile or _reads(tokens, at) for at in range(low, high))


def _reads(tokens: Sequence[Token], at: int) -> bool:
    """Say whether an atomic operation that changes nothing is called at an index."""
    named = _ATOMIC.match(tokens[at].text)
    if not named or tokens[at + 1].text != "(":
        return False
    given = _arguments(tokens, at + 1)
    if named[1] == "CAS":
        return len(given) == 3 and given[1] == given[2]
    return len(given) == 2 and (_ONES if named[1] == "And" else _ZERO).match(given[1]) is not None


def _arguments(tokens: Sequence[Token], at: int) -> list[str]:
    """Return the texts of the arguments of the call whose parenthesis opens at an index."""
    given: list[list[str]] = [[]]
    depth = 0
    for index in range(at + 1, scan.matching(tokens, at)):
        text = tokens[index].text
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if text == "," and depth == 0:
            given.append([])
        else:
            given[-1].append(text)
    return [" ".join(words) for words in given]
