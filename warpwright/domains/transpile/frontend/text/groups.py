"""Cooperative groups of known size as the warp and block operations that they stand for, so that every tier and the sanitizer read plain CUDA.

    cg::thread_block cta = cg::this_thread_block(); cg::sync(cta);      ->   __syncthreads();
    auto tile = cg::tiled_partition<8>(cta); v = tile.shfl_down(v, 4);  ->   v = __shfl_down_sync(<the tile's lanes>, v, 4, 8);
    cg::reduce(tile, v, cg::plus<float>())                              ->   ww_reduce_plus_8<float>(<the tile's lanes>, v)

Variables of groups are found by their declarations: blocks, tiles of a size up to 32 that is a number (or a constant one), the grid. What is left
keeps its text and runs on fibers, by the classes of runtime/device/groups.hpp: coalesced groups, groups whose size only the run shows, `grid.sync()`,
scans and matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend.text.edits import Edit, apply
from warpwright.domains.transpile.integers import RANK, THREADS

TYPES: Mapping[str, str] = {
    "thread_block": "block", "thread_block_tile": "tile", "grid_group": "grid", "coalesced_group": "other", "thread_group": "other",
}  # fmt: skip
MAKERS: Mapping[str, str] = {"this_thread_block": "block", "tiled_partition": "tile", "this_grid": "grid", "coalesced_threads": "other"}

BLOCK_RANK = "((unsigned long long)blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z))"
BLOCKS = "((unsigned long long)gridDim.x * gridDim.y * gridDim.z)"

OPERATIONS: Mapping[str, str] = {
    "plus": "v += {0}", "less": "const T b = {0}; v = b < v ? b : v", "greater": "const T b = {0}; v = v < b ? b : v", "bit_and": "v &= {0}",
    "bit_or": "v |= {0}", "bit_xor": "v ^= {0}",
}  # fmt: skip
"""How `cg::reduce` joins a value with that of another lane."""

_BLOCK: Mapping[str, str] = {
    "sync": "__syncthreads()", "thread_rank": RANK, "size": THREADS, "num_threads": THREADS, "group_index": "blockIdx", "thread_index": "threadIdx",
    "group_dim": "blockDim", "dim_threads": "blockDim",
}  # fmt: skip
_GRID: Mapping[str, str] = {
    "thread_rank": f"({BLOCK_RANK} * {THREADS} + {RANK})", "size": f"({BLOCKS} * {THREADS})", "num_threads": f"({BLOCKS} * {THREADS})",
    "block_rank": BLOCK_RANK, "num_blocks": BLOCKS, "group_dim": "gridDim", "dim_blocks": "gridDim", "block_index": "blockIdx",
}  # fmt: skip


@dataclass(eq=False)
class _Group:
    """A variable that holds a group."""

    kind: str
    """block, tile, grid or other."""
    size: int = 0
    """Threads of a tile."""
    parent: int = 0
    """Threads of the tile that a tile is a part of; 0: of the block."""
    statement: tuple[int, int] | None = None
    """Tokens [first, last] of its declaration, where that can be left out."""
    kept: bool = False
    """Whether its name stands where no operation could be put in its place."""
    name: str = ""
    parts: list[_Group] = field(default_factory=list)
    """The variables that are made from it."""

    def needed(self) -> bool:
        return self.kept or self.statement is None or any(part.statement is None and part.needed() for part in self.parts)


def desugar(text: str) -> str:
    """Return the text with the operations of known groups written out; its lines stay where they are."""
    if "cooperative_groups" not in text:
        return text
    return _Rewriter(text).rewritten()


class _Rewriter:
    """One pass over the tokens, with the groups of the scopes that are open."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = scan.tokens(text)
        self.spaces = {"cooperative_groups", *re.findall(r"\bnamespace\s+(\w+)\s*=\s*(?:::\s*)?cooperative_groups\s*;", text)}
        self.bare = re.search(r"\busing\s+namespace\s+(?:::\s*)?cooperative_groups\s*;", text) is not None
        kind = r"(?:unsigned\s+int|unsigned|int|size_t|uint32_t)"
        self.numbers = dict(re.findall(rf"\b(?:constexpr|const)\s+(?:static\s+)?{kind}\s+(\w+)\s*=\s*(\d+)[uU]?\s*;", text))
        self.scopes: list[dict[str, _Group]] = [{}]
        self.pending: dict[str, _Group] = {}
        """Parameters of the function whose body comes next."""
        self.parentheses = 0
        self.edits: list[Edit] = []
        self.groups: list[_Group] = []
        self.reductions: set[tuple[str, int]] = set()

    def rewritten(self) -> str:
        at = 0
        while at < len(self.tokens):
            at = self.step(at)
        for group in self.groups:
            if group.statement is not None:
                self.replace(*group.statement, _handle(group) if group.needed() else "")
        text = apply(self.text, self.edits)
        return "".join(_reduction(*one) for one in sorted(self.reductions)) + "\n" * bool(self.reductions) + text

    def step(self, at: int) -> int:
        """Look at the token at an index and return the index to go on with."""
        word = self.tokens[at].text
        if word == "{":
            self.scopes.append(self.pending)
            self.pending = {}
        elif word == "}" and len(self.scopes) > 1:
            self.scopes.pop()
        elif word == ";" and not self.parentheses:
            self.pending = {}
        self.parentheses += (word == "(") - (word == ")")
        if self.tokens[at].kind != "word":
            return at + 1
        return self.declaration(at) or self.operation(at) or self.free_function(at) or self.use(at)

    # --- reading ------------------------------------------------------------------------------------------------------------------

    def word(self, at: int) -> str:
        return self.tokens[at].text if at < len(self.tokens) else ""

    def of_groups(self, at: int, names: Mapping[str, str]) -> int | None:
        """Return the index of the name at `at`, the namespace passed over, if it is one of the namespace's `names`."""
        if at and self.word(at - 1) in (".", "->"):
            return None
        if self.word(at) in self.spaces and self.word(at + 1) == "::":
            return at + 2 if self.word(at + 2) in names else None
        return at if self.bare and self.word(at) in names and self.word(at - 1) != "::" else None

    def number(self, words: Sequence[str]) -> int:
        """Return the value of a template argument, 0 if it is not known to be 1 to 32."""
        value = self.numbers.get(words[0], words[0]) if len(words) == 1 else ""
        digits = re.fullmatch(r"(\d+)[uU]?", value)
        return int(digits[1]) if digits and int(digits[1]) in (1, 2, 4, 8, 16, 32) else 0

    def first_argument(self, opening: int) -> tuple[list[str], int] | None:
        """Return the words of the first template argument after the `<` at an index, and the index after the closing `>`."""
        close = scan.angles(self.tokens, opening)
        if close is None:
            return None
        words: list[str] = []
        for token in self.tokens[opening + 1 : close]:
            if token.text == ",":
                break
            words.append(token.text)
        return words, close + 1

    def construction(self, at: int) -> tuple[_Group, int] | None:
        """Return the group that an expression such as `cg::tiled_partition<8>(cta)` makes, and the index after it."""
        name = self.of_groups(at, MAKERS)
        if name is None:
            return None
        kind, size, after = MAKERS[self.word(name)], 0, name + 1
        if self.word(after) == "<":
            argument = self.first_argument(after)
            if argument is None:
                return None
            size, after = self.number(argument[0]), argument[1]
        if self.word(after) != "(":
            return None
        close = scan.matching(self.tokens, after)
        if kind == "block" and close != after + 1:
            kind = "other"  # with memory for tiles of several warps
        source = self.known(after + 1) if close == after + 2 else (nested[0] if (nested := self.construction(after + 1)) else None)
        if kind == "tile" and (not size or source is None or source.kind not in ("block", "tile")):
            if source is not None:
                source.kept = True
            kind = "other"
        group = _Group(kind, size, source.size if source is not None and source.kind == "tile" else 0)
        if source is not None:
            source.parts.append(group)
        return group, close + 1

    def known(self, at: int) -> _Group | None:
        """Return the group of the variable that the token at an index names."""
        if at and self.word(at - 1) in (".", "->", "::"):
            return None
        return next((scope[self.word(at)] for scope in (self.pending, *reversed(self.scopes)) if self.word(at) in scope), None)

    # --- rewriting ----------------------------------------------------------------------------------------------------------------

    def declaration(self, at: int) -> int | None:
        """Take the declaration of a group; return the index of what follows it."""
        first, name = at, self.of_groups(at, TYPES)
        if name is None:
            return self.automatic(at)
        group, after = _Group(TYPES[self.word(name)]), name + 1
        if self.word(after) == "<":
            argument = self.first_argument(after)
            if argument is None:
                return None
            group.size, after = self.number(argument[0]), argument[1]
        if group.kind == "tile" and not group.size:
            group.kind = "other"
        while self.word(after) in ("const", "&", "&&"):
            after += 1
        if after >= len(self.tokens) or self.tokens[after].kind != "word" or self.word(after + 1) not in ("=", "(", ",", ")", ";", "{"):
            return None
        while first and self.word(first - 1) in ("const", "static"):
            first -= 1
        return self.declared(group, first, after)

    def automatic(self, at: int) -> int | None:
        """Take `auto tile = cg::tiled_partition<32>(cta)`."""
        if self.word(at) != "auto":
            return None
        name = at + 1
        while self.word(name) in ("&", "&&", "const"):
            name += 1
        group_made = self.construction(name + 2) if self.word(name + 1) == "=" else None
        return None if group_made is None else self.declared(group_made[0], at - (self.word(at - 1) == "const"), name, group_made)

    def declared(self, group: _Group, first: int, name: int, initial: tuple[_Group, int] | None = None) -> int:
        """Enter a variable; its declaration can be left out if it is a statement of its own that only makes the group."""
        after = name + 1
        if self.word(after) in ("=", "(", "{") and not self.parentheses:
            initial = initial or self.construction(after + 1)
            if initial is not None:
                last = initial[1] + (self.word(after) != "=")
                if group is not initial[0]:
                    group.parent = initial[0].parent
                    initial[0].parts.append(group)
                    if initial[0].kind == "other" or initial[0].size != group.size:
                        group.kind = "other"
                if group.kind != "other" and self.word(last) == ";" and self.word(first - 1) in (";", "{", "}", ":", ")"):
                    group.statement = initial[0].statement = (first, last)
                after = last if group.statement else initial[1]
        elif self.word(after) == "=" and self.parentheses:
            group.kept = True
        group.name = self.word(name)
        self.groups.append(group)
        (self.pending if self.parentheses else self.scopes[-1])[self.word(name)] = group
        return after

    def operation(self, at: int) -> int | None:
        """Write out `group.operation(...)`; return the index of what follows its opening parenthesis, or of the whole."""
        new_group = self.construction(at) if self.known(at) is None else None
        group, dot = (self.known(at), at + 1) if new_group is None else new_group
        if group is None or self.word(dot) != "." or self.word(dot + 2) != "(":
            return None
        close, method = scan.matching(self.tokens, dot + 2), self.word(dot + 1)
        if self.whole(group, method, at, close):
            return close + 1
        written = _with_value(group, method)
        if written is None:
            group.kept = True
            return dot + 2 if new_group is not None else at + 1
        self.replace(at, dot + 2, written[0])
        self.replace(close, close, written[1])
        return dot + 3 - self.counted("(")

    def counted(self, word: str) -> int:
        """Count a parenthesis that was passed over."""
        self.parentheses += word == "("
        return 0

    def whole(self, group: _Group, method: str, at: int, close: int, free: bool = False) -> bool:
        """Write out an operation that takes no value; `free`: one that takes the group."""
        written = {"block": _BLOCK, "grid": _GRID, "tile": _of_tile(group) if group.kind == "tile" else {}}.get(group.kind, {}).get(method)
        if written is None or not (free or self.word(close - 1) == "("):
            return False
        self.replace(at, close, written)
        return True

    def free_function(self, at: int) -> int | None:
        """Write out `cg::sync(group)` and `cg::reduce(tile, value, cg::plus<T>())`."""
        name = self.of_groups(at, {"sync": "", "wait": "", "reduce": ""})
        if name is None or self.word(name + 1) != "(":
            return None
        close = scan.matching(self.tokens, name + 1)
        new_group = self.construction(name + 2)
        group, after = (self.known(name + 2), name + 3) if new_group is None else new_group
        if group is None:
            return None
        if self.word(name) != "reduce":
            return close + 1 if after == close and self.whole(group, "sync", at, close, True) else None
        joined = self.joined(name + 1, close) if group.kind == "tile" and self.word(after) == "," else None
        if joined is None:
            return None
        comma, operation, kind = joined
        self.reductions.add((operation, group.size))
        self.replace(at, after, f"ww_reduce_{operation}_{group.size}<{kind}>({_mask(group.size)}, ")
        self.replace(comma, close, ")")
        return after + 1 - self.counted("(")

    def joined(self, opening: int, close: int) -> tuple[int, str, str] | None:
        """Return the comma before the operation of a reduction, the operation and its type."""
        depth, comma = 0, -1
        for index in range(opening, close):
            depth += (self.word(index) in ("(", "[", "{")) - (self.word(index) in (")", "]", "}"))
            if depth == 1 and self.word(index) == "," and self.of_groups(index + 1, OPERATIONS) is not None:
                comma = index
        if comma < 0:
            return None
        name = self.of_groups(comma + 1, OPERATIONS)
        assert name is not None
        if self.word(name + 1) != "<" or (end := scan.angles(self.tokens, name + 1)) is None or self.word(end + 1) not in ("(", "{"):
            return None
        if end + 3 != close:
            return None
        return comma, self.word(name), self.text[self.tokens[name + 1].end : self.tokens[end].start].strip()

    def use(self, at: int) -> int:
        """Note that a group's name stands for itself."""
        group = self.known(at)
        if group is not None:
            group.kept = True
        return at + 1

    def replace(self, first: int, last: int, text: str) -> None:
        """Put a text in place of the tokens [first, last]; the lines between them stay."""
        start, end = self.tokens[first].start, self.tokens[last].end
        self.edits.append(Edit(start, end, text + "\n" * self.text.count("\n", start, end)))


def _handle(group: _Group) -> str:
    """Return the declaration of a group that is handed on: it says all by its type."""
    tile = f"cooperative_groups::thread_block_tile<{group.size}"
    within = f", cooperative_groups::thread_block_tile<{group.parent}>" if group.parent else ""
    kind = {"block": "cooperative_groups::thread_block", "grid": "cooperative_groups::grid_group", "tile": f"{tile}{within}>"}[group.kind]
    return f"{kind} {group.name};"


def _mask(size: int) -> str:
    """Return the lanes of a thread's tile as a mask of its warp."""
    return "0xffffffffu" if size == 32 else f"({hex((1 << size) - 1)}u << ({RANK} % 32u / {size}u * {size}u))"


def _of_tile(tile: _Group) -> Mapping[str, str]:
    """Return what a tile's operations without values are."""
    rank = RANK if not tile.parent else f"({RANK} % {tile.parent}u)"
    above = THREADS if not tile.parent else f"{tile.parent}u"
    return {
        "sync": f"__syncwarp({_mask(tile.size)})", "thread_rank": f"({RANK} % {tile.size}u)", "size": f"{tile.size}u", "num_threads": f"{tile.size}u",
        "meta_group_rank": f"({rank} / {tile.size}u)", "meta_group_size": f"(({above} + {tile.size - 1}u) / {tile.size}u)",
    }  # fmt: skip


def _with_value(tile: _Group, method: str) -> tuple[str, str] | None:
    """Return what stands before and after the values of a tile's operation."""
    if tile.kind != "tile":
        return None
    mask = _mask(tile.size)
    shuffles: Callable[[str], tuple[str, str]] = lambda name: (f"__{name}_sync({mask}, ", f", {tile.size})")  # noqa: E731
    votes = {
        "any": (f"((__ballot_sync({mask}, ", f") & {mask}) != 0)"),
        "all": (f"((__ballot_sync({mask}, !(", f")) & {mask}) == 0)"),
        "ballot": (f"((__ballot_sync({mask}, ", f") & {mask}) >> ({RANK} % 32u / {tile.size}u * {tile.size}u))"),
    }
    if tile.size == 32:
        votes = {name: (f"__{name}_sync({mask}, ", ")") for name in votes}
    return shuffles(method) if method in ("shfl", "shfl_up", "shfl_down", "shfl_xor") else votes.get(method)


def _reduction(name: str, size: int) -> str:
    """Return the device function of a reduction, on one line."""
    joined = OPERATIONS[name].format(f"__shfl_xor_sync(mask, v, d, {size})")
    loop = f"for (int d = {size // 2}; d > 0; d /= 2) {{ {joined}; }}"
    return f"template <class T> __device__ T ww_reduce_{name}_{size}(unsigned mask, T v) {{ {loop} return v; }} "
