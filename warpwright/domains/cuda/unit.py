"""A CUDA text as the techniques see it: its kernels as IR, its launches, and its entries, the host functions that a task calls.

Everything is read from the text alone, by the transpile domain's front end, and kept for each text: a technique takes a text and returns one.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from warpwright.domains.transpile import ir
from warpwright.domains.transpile.frontend import scan
from warpwright.domains.transpile.frontend import source as reading
from warpwright.domains.transpile.frontend.parse import parse
from warpwright.domains.transpile.frontend.scan import Kernel, LaunchSite
from warpwright.domains.transpile.frontend.text import edits
from warpwright.domains.transpile.frontend.text.edits import Edit
from warpwright.errors import NotApplicable, TaskError

ENTRY_CODES: Mapping[str, str] = {
    "bool": "?", "char": "b", "signed char": "b", "unsigned char": "B", "uint8_t": "B", "int8_t": "b", "short": "h", "unsigned short": "H",
    "int": "i", "int32_t": "i", "unsigned": "I", "unsigned int": "I", "uint32_t": "I", "long": "l", "long long": "l", "int64_t": "l",
    "unsigned long": "L", "unsigned long long": "L", "uint64_t": "L", "size_t": "L", "float": "f", "double": "d",
}  # fmt: skip
"""C type of an entry's parameter -> its code in ctypes and struct."""


@dataclass(frozen=True)
class Launch:
    """A launch in a host function: `kernel<<<configuration>>>(arguments)`."""

    kernel: str
    configuration: tuple[str, ...]
    """Grid, block, and dynamic shared memory and stream where they are given."""
    arguments: tuple[str, ...]
    inside: tuple[int, int]
    """Where the text between <<< and >>> begins and ends."""
    start: int
    end: int
    """Offset after the closing parenthesis of the arguments."""
    instance: str = ""
    """Arguments of the kernel's template, as written between < and >."""


@dataclass(frozen=True)
class Unit:
    """A CUDA text, read."""

    text: str
    """After the preprocessor: own macros are expanded."""
    head: str
    """Include lines of the original, where an #if's branch is taken."""
    kernels: Mapping[str, Kernel]
    """Those that are launched."""
    functions: Mapping[str, ir.Function]
    """The kernels, and the device functions, as IR; those that the parser understands."""
    launches: tuple[Launch, ...]
    entries: Mapping[str, str]
    """Host function of C linkage, or the only ones there are -> codes of its parameters."""
    templates: Mapping[str, Kernel] = field(default_factory=dict)
    """Template kernels that are launched."""

    def launches_of(self, kernel: str) -> tuple[Launch, ...]:
        """Return the launches of a kernel."""
        return tuple(launch for launch in self.launches if launch.kernel == kernel)

    def changed(self, changes: list[Edit]) -> str:
        """Return the whole text with edits of `text` made, as nvcc reads it: without the front end's marks of shifts."""
        return self.head + edits.apply(self.text, changes).replace("ww::by(", "(")


OURS = "ww_"
"""How the kernels of a template (templates/device) begin: nothing is rewritten in them."""


@functools.lru_cache(maxsize=512)
def read(text: str) -> Unit:
    """Return a text, read. Raise NotApplicable where the front end refuses it."""
    from warpwright.domains.transpile.errors import Refusal

    try:
        source = reading.read(text, "kernels.cu")
        functions = {f.name: f for f in parse(source) if not f.problem and not f.template}
    except Refusal as refusal:
        raise NotApplicable(f"the CUDA text cannot be read: {refusal}") from refusal
    launches = tuple(_launch(source.text, site) for site in source.launches if not site.inside_kernel)
    launched = {launch.kernel.partition("<")[0].strip() for launch in launches} & _reached(source.text)
    launched = {name for name in launched if not name.startswith(OURS)}
    kernels = {k.name: k for k in source.kernels if k.defined and not k.template and k.name in launched}
    templates = {k.name: k for k in source.kernels if k.defined and k.template and k.name in launched}
    head = "".join(f"#include {header}\n" for header in source.headers)
    return Unit(source.text, head, kernels, functions, launches, entries(source.text), templates)


def _reached(text: str) -> set[str]:
    """Return the words of all that the entries come to: a kernel that only other functions or classes launch is nothing to make faster."""
    bare = without_directives(text)
    tokens = scan.tokens(bare)
    mentions: dict[str, set[str]] = {}
    everything: set[str] = set()
    for piece in scan.pieces(tokens):
        own = [t.text for t in tokens if piece.start <= t.start < piece.end and t.kind == "word"]
        everything |= set(own)
        mentions.setdefault(_defined(tokens, piece), set()).update(own)
    reached = set(entries(text))
    todo = list(reached)
    while todo:
        more = mentions.get(todo.pop(), set()) - reached
        reached |= more
        todo += more
    return reached or everything


def _defined(tokens: tuple[scan.Token, ...], piece: scan.Piece) -> str:
    """Return the name of the function, class or variable that a piece of a text defines."""
    words = [t for t in tokens if piece.start <= t.start < (piece.brace if piece.brace >= 0 else piece.end)]
    texts = [t.text for t in words]
    kept = [at for at, word in enumerate(texts) if word in ("struct", "class", "union", "enum")]
    if kept and "(" not in texts and kept[-1] + 1 < len(texts):
        return texts[kept[-1] + 1]
    at = next((at for at, word in enumerate(texts) if word in ("(", "=", "[", ";")), len(texts))
    return texts[at - 1] if at else ""


def _launch(text: str, site: LaunchSite) -> Launch:
    opening = text.index("<<<", site.start) + 3
    inside = (opening, opening + len(site.configuration))
    close = scan.closing(text, site.end)
    arguments = tuple(scan.split_commas(text[site.end + 1 : close - 1]))
    return Launch(site.callee.strip(), tuple(scan.split_commas(site.configuration)), arguments, inside, site.start, close, site.template_arguments)


def entries(text: str) -> dict[str, str]:
    """Return the host functions whose parameters are addresses and numbers, with a code for each; where some have C linkage, those alone."""
    by_name: dict[str, str] = {}
    linked: set[str] = set()
    text = without_directives(text)
    tokens = scan.tokens(text)
    for piece in scan.pieces(tokens):
        words = [t for t in tokens if piece.start <= t.start < (piece.brace if piece.brace >= 0 else piece.end)]
        texts = [t.text for t in words]
        if piece.brace < 0 or "(" not in texts or {"__global__", "__device__", "template", "struct", "class"} & set(texts):
            continue
        at = texts.index("(")
        inside = text[words[at].end : words[scan.matching(words, at)].start]
        codes = [_code(scan.parameter(p, i).text) for i, p in enumerate(scan.split_commas(inside)) if p and p != "void"]
        if at > 0 and words[at - 1].kind == "word" and all(codes) and "static" not in texts:
            by_name[texts[at - 1]] = "".join(codes)
            if '"C"' in texts or _in_c_block(text, piece.start):
                linked.add(texts[at - 1])
    by_name.pop("main", None)
    return {name: codes for name, codes in by_name.items() if name in linked} if linked else by_name


_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\.)*$", re.M | re.S)


def without_directives(text: str) -> str:
    """Return a text with blanks in place of the preprocessor's lines: every other letter stays where it is."""
    return _DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _in_c_block(text: str, offset: int) -> bool:
    return any(start <= offset < end for start, end in scan.c_blocks(scan.tokens(text)))


def _code(parameter: str) -> str:
    """Return the code of a parameter of an entry; "" for a type that no caller from Python can give."""
    if "*" in parameter or "[" in parameter:
        return "P" if "&" not in parameter and "(" not in parameter else ""
    words = re.sub(r"\b(const|restrict|__restrict__|std::)\b|std::", " ", parameter.rpartition(" ")[0])
    return ENTRY_CODES.get(" ".join(words.split()), "")


def expect_entries(text: str, name: str) -> dict[str, str]:
    """Return the entries of a CUDA source as its author wrote it; raise TaskError where it has none."""
    known = entries(text)
    if not known:
        from warpwright.domains.cuda import skeleton

        shown = skeleton.entry(text) or 'extern "C" void run(float* out, ...) { ... }\n'
        raise TaskError(f"expected a host function in {name} that launches the kernels, saw none", f"add one, such as\n\n{shown}")
    return known


def trimmed(text: str, wanted: Mapping[str, str]) -> str:
    """Return a text without the host functions and classes that no entry comes to: a `main`, what checks its results, a wrapper of a library.

    A program neither calls nor builds them, and a kernel that only they launch is nothing to make faster. A name that is mentioned anywhere else
    counts as a call.
    """
    bare = without_directives(text)
    tokens = scan.tokens(bare)
    functions: dict[tuple[int, int], str] = {}
    mentions: dict[tuple[int, int], set[str]] = {}
    for piece in scan.pieces(tokens):
        own = [t.text for t in tokens if piece.start <= t.start < piece.end and t.kind == "word"]
        mentions[piece.start, piece.end] = set(own)
        name = _host_function(bare, tokens, piece) or _class(bare, tokens, piece)
        if name:
            functions[piece.start, piece.end] = name
    kept = {place for place in mentions if place not in functions or functions[place] in wanted}
    todo = list(kept)
    while todo:
        words = mentions[todo.pop()]
        more = [place for place, name in functions.items() if place not in kept and name in words]
        kept |= set(more)
        todo += more
    gone = [place for place in functions if place not in kept and _balanced(text[slice(*place)])]
    return edits.apply(text, [Edit(start, end, "") for start, end in gone])


def _host_function(text: str, tokens: tuple[scan.Token, ...], piece: scan.Piece) -> str:
    """Return the name of a plain host function that a piece of a text defines; "" for anything else."""
    if piece.brace < 0:
        return ""
    words = [t for t in tokens if piece.start <= t.start < piece.brace]
    texts = [t.text for t in words]
    if "(" not in texts or not text[piece.start : piece.end].rstrip().endswith("}"):
        return ""
    at = texts.index("(")
    other = {"__global__", "__device__", "template", "union", "enum", "namespace", "operator", "=", "extern", "class"}
    member = at > 1 and texts[at - 2].endswith(":")
    return "" if other & set(texts[:at]) or member or at < 2 or words[at - 1].kind != "word" else texts[at - 1]


def _class(text: str, tokens: tuple[scan.Token, ...], piece: scan.Piece) -> str:
    """Return the name of the class that a piece of a text defines, and no variable with it; "" for anything else."""
    if piece.brace < 0 or not re.search(r"\}\s*;$", text[piece.start : piece.end].rstrip()):
        return ""
    texts = [t.text for t in tokens if piece.start <= t.start < piece.brace]
    plain = len(texts) > 1 and texts[0] in ("struct", "class") and texts[1].isidentifier() and (len(texts) == 2 or texts[2] in (":", "final"))
    return texts[1] if plain and texts[1] != "alignas" else ""


def _balanced(text: str) -> bool:
    """Does every #if within a text end there?"""
    opened = 0
    for word in re.findall(r"^[ \t]*#[ \t]*(if|ifdef|ifndef|else|elif|endif)\b", text, re.M):
        opened += word.startswith("if") - (word == "endif")
        if opened < 0 or (opened == 0 and word in ("else", "elif")):
            return False
    return opened == 0


def linked(text: str, wanted: Mapping[str, str]) -> str:
    """Return the text as a program needs it: entries with C linkage, launches and fills on the caller's stream.

    Raise NotApplicable where an entry is missing or takes other parameters.
    """
    seen = entries(text)
    for entry, codes in wanted.items():
        if seen.get(entry) != codes:
            has = f"one with parameters {seen[entry]}" if entry in seen else f"only {', '.join(seen) or 'kernels'}"
            raise NotApplicable(f"expected the host function {entry} with parameters {codes} (codes of ctypes), saw {has}", "keep its signature")
    bare = without_directives(text)
    tokens = scan.tokens(bare)
    changes = [*_streams(bare, tokens), *_linkage(bare, tokens, wanted)]
    return "#ifndef WW_STREAM\n#define WW_STREAM 0\n#endif\n" + edits.apply(text, changes)


ON_A_STREAM = ("cudaMallocAsync", "cudaFreeAsync", "cudaMemsetAsync", "cudaMemcpyAsync")
"""Calls whose last argument is a stream; where it is 0 they go where the launches go."""


def _streams(text: str, tokens: tuple[scan.Token, ...]) -> list[Edit]:
    changes = []
    for site in scan.launches(text, tokens, scan.kernels(text, tokens)):
        parts = scan.split_commas(site.configuration)
        if len(parts) < 4 and not site.inside_kernel:
            end = text.index("<<<", site.start) + 3 + len(site.configuration)
            changes.append(Edit(end, end, (", 0" if len(parts) == 2 else "") + ", WW_STREAM"))
    for at, token in enumerate(tokens):
        if token.text in ("cudaMemset", "cudaMemcpy") and tokens[at + 1].text == "(":
            close = tokens[scan.matching(tokens, at + 1)].start
            changes += [Edit(token.start, token.end, f"{token.text}Async"), Edit(close, close, ", WW_STREAM")]
        if token.text in ON_A_STREAM and tokens[at + 1].text == "(":
            last = tokens[scan.matching(tokens, at + 1) - 1]
            if last.text == "0":
                changes.append(Edit(last.start, last.end, "WW_STREAM"))
    return changes


def _linkage(text: str, tokens: tuple[scan.Token, ...], wanted: Mapping[str, str]) -> list[Edit]:
    """Return edits that give each entry C linkage, where it has none."""
    changes = []
    for piece in scan.pieces(tokens):
        words = [t for t in tokens if piece.start <= t.start < piece.brace]
        texts = [t.text for t in words]
        if "(" not in texts or "__global__" in texts or '"C"' in texts or _in_c_block(text, piece.start):
            continue
        at = texts.index("(")
        if at > 0 and texts[at - 1] in wanted:
            changes.append(Edit(piece.start, piece.start, 'extern "C" '))
    return changes
