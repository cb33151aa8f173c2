"""The program in a model's answer, whatever form it has: fences in fences, fences left open, quotes, JSON, escaped letters, patches, two files.

    text = program_of(answer, marks, source=what_the_question_showed)
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from warpwright.search.llm.edits import edited, is_patch

PROSE = frozenset({"markdown", "md", "text", "txt", "plaintext"})
"""Languages whose blocks hold other blocks."""

DEEPER = 3
"""Columns that a closing fence may stand further to the right than its opening one: beyond, it is part of a comment."""

_FENCE = re.compile(r"^(?P<before>[^`~\n]*?)(?P<fence>`{3,}|~{3,})[ \t]*(?P<info>[^`\n]*)$")
_LANGUAGE = re.compile(r"^\{?[ \t]*\.?([A-Za-z][\w+#.-]*)")
_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?(</\1>|\Z)", re.S)
_QUOTED = re.compile(r"^[ \t]*>[ \t]?", re.M)
_NUMBERED = re.compile(r"^[ \t]*\d+(?:[ \t]*[|:]|\t)[ \t]?")
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|apos|#39|#x27);")
_FIRST_LINE = re.compile(
    r"^(#[ \t]*(include|define|pragma|ifndef)|extern|__\w+__|template|static|struct|using|constexpr|inline|typedef|namespace|//|/\*"
    r"|import |from \w+ import|@\w+|class \w+.*:|def \w+\()", re.M,
)  # fmt: skip
_C_LIKE = re.compile(r"^[ \t]*#[ \t]*include|\b__global__\b|;[ \t]*$", re.M)


@dataclass
class _Block:
    fence: str
    indent: int
    language: str
    lines: list[str] = field(default_factory=list)
    closed: bool = True
    holder: bool = False
    """Another block stands in it."""

    def ended_by(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= len(self.fence) and not bare.strip(self.fence[0]) and len(line) - len(line.lstrip()) <= self.indent + DEEPER

    @property
    def holds_blocks(self) -> bool:
        return self.language in PROSE or (not self.language and not any(re.search(r"[;{}()]", line) for line in self.lines))

    @property
    def code(self) -> str:
        margin = re.compile(rf"^[ \t]{{0,{self.indent}}}")
        return "\n".join(margin.sub("", line) for line in self.lines).strip("\n") + "\n"


def code_blocks(text: str) -> list[tuple[str, str]]:
    """Return (language, code) of each fenced block, in order; of one that is cut off, what there is. Fences inside longer fences are code.

    One that begins inside another of the same length ends it, or stands in it where that one is prose.
    """
    return [(block.language, block.code) for block in _blocks(_plain(text))]


def program_of(answer: str, marks: Sequence[str], other_marks: Sequence[str] = (), source: str = "") -> str:
    """Return the program in a model's answer; "" where there is none.

    It is the last fenced block with all `marks`, else what the answer's edits make of `source`, else its files joined, else a text in JSON, else,
    where nothing is fenced, all that looks like code. A block without some marks is taken where there is nothing better: its failure is told.

    `other_marks`: of a program in another language. `source`: what the question showed; it is the answer only where there is no other.
    """
    text = _plain(answer)
    blocks = _unfolded(_blocks(text))
    plain = [block for block in blocks if not is_patch(block.code, block.language) and not _is_json(block.code)]
    ways: tuple[Callable[[], Iterator[str]], ...] = (
        lambda: map(_tidy, reversed(plain)),
        lambda: edited(text, [(block.language, block.code) for block in blocks], source),
        lambda: iter([_joined([_tidy(block) for block in plain])]),
        lambda: _in_json([text, *(block.code for block in blocks)]),
        lambda: iter([_bare(text)] if not blocks or _FIRST_LINE.match(text.lstrip()) else []),
    )
    same = ""
    for code in (legible(code) for way in ways for code in way()):
        if not (_has(code, marks) or (other_marks and _has(code, other_marks))):
            continue
        if code.split() != source.split():
            return code
        same = code
    part = [legible(_tidy(block)) for block in plain if marks and _has(block.code, marks[:1])]
    return same or max(part, key=len, default="")


def _has(code: str, marks: Sequence[str]) -> bool:
    """Does a text have all marks, as words of their own: `run`, and not `cuda_runtime.h` alone?"""
    return all(re.search(rf"(?<!\w){re.escape(mark)}(?!\w)" if mark else "", code) for mark in marks)


# --- fences -----------------------------------------------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """Return an answer with line ends of one kind, without quote marks, and without thoughts where something is fenced outside of them."""
    text = text.encode(errors="replace").decode().replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "").replace("\u200b", "")
    if "```" not in text:
        text = text.replace(r"\`\`\`", "```")
    if re.search(r"^[ \t]*>[ \t>]*(```|~~~)", text, re.M):
        text = _QUOTED.sub("", text)
    told = _THOUGHT.sub("", text)
    return told if "```" in told or "~~~" in told else text


def _opened(line: str, inside: bool) -> _Block | None:
    """Return the block that a line opens. Words in front of its fence are a list's mark, or a sentence if a language follows."""
    match = _FENCE.match(line)
    if match is None:
        return None
    before, info = match["before"], match["info"].strip()
    language = _LANGUAGE.match(info)
    sentence = before.strip() and not re.fullmatch(r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+", before)
    if (inside or sentence) and language is None:
        return None
    block = _Block(match["fence"], 0 if sentence else len(before), language[1].lower() if language and not _FIRST_LINE.match(info) else "")
    if _FIRST_LINE.match(info):
        block.lines.append(info)
    return block


def _blocks(text: str) -> list[_Block]:
    blocks: list[_Block] = []
    around: list[_Block] = []
    """What is open: blocks of prose, and the innermost one."""
    for line in text.split("\n"):
        opened = _opened(line, bool(around))
        if not around:
            around += [opened] if opened else []
            continue
        block = around[-1]
        if block.ended_by(line):
            blocks.append(around.pop())
        elif opened and opened.fence.startswith(block.fence) and opened.indent <= block.indent + DEEPER:
            if block.holds_blocks:
                block.holder = True
            else:
                blocks.append(around.pop())
            around.append(opened)
        elif line.rstrip().endswith(block.fence) and line.count(block.fence) == 1 and line.strip(f" \t{block.fence[0]}"):  # }```
            block.lines.append(line.rstrip().removesuffix(block.fence))
            blocks.append(around.pop())
        else:
            block.lines.append(line)
    for block in around:
        block.closed = False
    return [block for block in [*blocks, *around] if block.lines and not block.holder]


def _unfolded(blocks: Sequence[_Block]) -> list[_Block]:
    """Return the blocks, with those inside of longer fences in the place of what holds them."""
    unfolded: list[_Block] = []
    for block in blocks:
        inner = _blocks(block.code) if block.holds_blocks or block.language in PROSE else []
        unfolded += _unfolded(inner) if inner else [block]
    return unfolded


# --- texts ------------------------------------------------------------------------------------------------------------------------------


def _tidy(block: _Block) -> str:
    """Return a block's code; of one that was left open, without the prose that follows the last brace."""
    code = block.code
    if block.closed or not _C_LIKE.search(code):
        return code
    end = code.rfind("\n}")
    rest = code[end + 2 :].partition("\n")[2] if end >= 0 else ""
    return code[: len(code) - len(rest)] if re.search(r"^[A-Z*_-].*[^;{}>\\]$", rest, re.M) else code


def legible(code: str) -> str:
    """Return code as a compiler reads it: entities, escaped line ends, typographic quotes and blanks, and lines' numbers are undone."""
    if code.count("\n") <= 1 and code.count("\\n") > 2:
        code = code.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    if _ENTITY.search(code) and not re.search(r'"[^"\n]*&(?:lt|gt|amp);', code):
        code = html.unescape(code)
    code = code.replace("\u00a0", " ").replace("\u202f", " ")
    if '"' not in code:
        code = re.sub("[“”„]", '"', code)
    lines = code.split("\n")
    written = [line for line in lines if line.strip()]
    if len(written) > 2 and all(_NUMBERED.match(line) for line in written):
        code = "\n".join(_NUMBERED.sub("", line) for line in lines)
    return code


def _joined(codes: Sequence[str]) -> str:
    """Return the C files of an answer as one, those first that others include; "" for one file. Its own headers are not looked for."""
    files = [code for code in dict.fromkeys(codes) if _C_LIKE.search(code)]
    if len(files) < 2:
        return ""
    own = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"(?!cuda|cooperative|mma|cub|thrust)[^"\n]*"[^\n]*\n?', re.M)
    ordered = sorted(files, key=lambda code: own.search(code) is not None)
    return "\n".join(re.sub(r"^[ \t]*#[ \t]*pragma[ \t]+once[^\n]*\n?", "", own.sub("", code), flags=re.M) for code in ordered)


def _in_json(texts: Sequence[str]) -> Iterator[str]:
    """Yield the strings of those texts that are JSON, the longest first."""
    for text in texts:
        begins, ends = text.find("{"), text.rfind("}")
        try:
            document = json.loads(text[begins : ends + 1], strict=False) if begins >= 0 else None
        except (ValueError, RecursionError):
            continue
        strings = sorted(_strings(document), key=len, reverse=True)
        for string in strings:
            fenced = [] if _FIRST_LINE.match(string.lstrip()) else code_blocks(string)
            yield fenced[-1][1] if fenced else string.strip("\n") + "\n"


def _is_json(code: str) -> bool:
    try:
        return code.lstrip().startswith(("{", "[")) and isinstance(json.loads(code, strict=False), dict | list)
    except (ValueError, RecursionError):
        return False


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def _bare(text: str) -> str:
    """Return what looks like code of an answer without fences: from its first line of code to its last brace, or to its end where it has none."""
    first = _FIRST_LINE.search(text)
    if first is None:
        return ""
    code = text[first.start() :]
    end = max(code.rfind("}"), code.rfind("&#125;"))
    return (code[: end + 1] if end > 0 and _C_LIKE.search(code) else code).strip("\n") + "\n"
