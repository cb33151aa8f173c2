"""Kernels that wait for what another block writes: `while (atomicAdd(&flag[i], 0) == 0) {}` reads a place until it changes.

Blocks that run one after another would wait for ever where the other block comes later, or goes on in a later turn of its loop. Such a kernel runs
on fibers, and its blocks at once, each on a thread of the machine, as of a cooperative launch; a wait gives the processor to the others. With one
block, or more than a cooperative launch may have, blocks run as before. Locks (`while (atomicCAS(&lock, 0, 1)) {}`) are no such wait: a block gives
its lock back before it ends.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.scan import Kernel, Token
from warpwright.domains.transpile.frontend.source import Source
from warpwright.domains.transpile.frontend.text.edits import Edit

_READS = re.compile(r"atomic(Add|Sub|Or|Xor)(_system|_block)?$")
TOGETHER = "if (1 < {0}.blocks() && {0}.blocks() <= ww::most_blocks_together) ww::together() = ww::run_together;"
"""In front of a launch on fibers."""


def waits(source: Source, kernel: Kernel) -> list[tuple[int, int]]:
    """Return where the empty bodies of a kernel's waiting loops begin and end."""
    if "atomic" not in source.text[kernel.start : kernel.end]:
        return []
    tokens = [token for token in source.tokens if kernel.start <= token.start < kernel.end]
    return [body for at in range(len(tokens) - 3) if tokens[at].text == "while" and (body := _waits(tokens, at))]


def edits(source: Source) -> list[Edit]:
    """Give the processor to others wherever a kernel waits."""
    return [Edit(low, high, "{ std::this_thread::yield(); }") for kernel in source.kernels if kernel.defined for low, high in waits(source, kernel)]


def _waits(tokens: Sequence[Token], at: int) -> tuple[int, int] | None:
    """Return the empty body of the loop at an index if its condition reads a place atomically, by an operation that changes nothing."""
    close = scan.matching(tokens, at + 1)
    body = tokens[close + 1 : close + 3]
    empty = body[:1] if body and body[0].text == ";" else body if [one.text for one in body] == ["{", "}"] else []
    if not empty or tokens[at - 1].text == "}" or not any(_reads(tokens, one) for one in range(at + 2, close)):
        return None
    return empty[0].start, empty[-1].end


def _reads(tokens: Sequence[Token], at: int) -> bool:
    """Say whether an atomic operation by 0 is called at an index."""
    if not _READS.match(tokens[at].text) or tokens[at + 1].text != "(":
        return False
    close = scan.matching(tokens, at + 1)
    return tokens[close - 2].text == "," and tokens[close - 1].text in ("0", "0u", "0U")
