"""Find kernels, launches and top-level pieces in CUDA text by its tokens alone, without types."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<string>(?:u8|[LuUR])?"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])+')
      | (?P<word>[A-Za-z_]\w*)
      | (?P<number>\.?\d(?:[eEpP][+-]|'(?=\d)|[\w.])*)
      | (?P<mark><<<|>>>|::|->\*?|\+\+|--|\.\.\.|&&|\|\||[-+*/%&|^=!<>]=|<<=?|[#\S])""",
    re.X | re.S,
)

ATTRIBUTES = {"__global__", "__device__", "__host__", "__forceinline__", "__noinline__", "inline", "static", "extern", "constexpr", "__inline__"}

PARENTHESISED = re.compile(
    r"\b(?:alignas|__align__|__builtin_align__|__launch_bounds__)\s*\((?:[^()]|\([^()]*\))*\)|\b__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)"
)
"""Attributes with parentheses, which are no parameters and no name: `struct alignas(4) S`."""


class Token(NamedTuple):
    """A token of the text, at [start, end). A tuple: a long source has tens of thousands, which take a third of the time to make."""

    kind: str
    text: str
    start: int
    end: int


class Piece(NamedTuple):
    """A top-level declaration at [start, end)."""

    start: int
    brace: int
    """Offset of its opening brace; -1 without one."""
    end: int


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel: text as written, and its name."""

    text: str
    name: str
    pack: bool = False


@dataclass(frozen=True)
class Kernel:
    """A definition or declaration of a kernel in the text."""

    name: str
    template: str
    """`template <...>`, as written, or empty."""
    template_names: tuple[str, ...]
    """Names of the template's parameters, a pack with dots."""
    parameters: tuple[Parameter, ...]
    start: int
    """Offset of the template header or of the first specifier."""
    head_end: int
    """Offset after the closing parenthesis of the parameters."""
    end: int
    """Offset after the body or the semicolon."""
    defined: bool
    bounds: str = ""
    """First argument of __launch_bounds__, as written."""
    scope: str = ""
    """Namespace that it is in, as `a::b::`, or empty."""
    open_parenthesis: int = 0
    friend: bool = False
    """Whether a class declares it as its friend."""


@dataclass(frozen=True)
class LaunchSite:
    """A launch `callee<<<grid, block, shared, stream>>>(arguments)` at [start, end)."""

    callee: str
    template_arguments: str
    configuration: str
    start: int
    end: int
    """Offset of the opening parenthesis of the arguments."""
    inside_kernel: bool = False


def tokens(text: str) -> tuple[Token, ...]:
    """Return the tokens of a text without blanks and comments."""
    return tuple([Token(match.lastgroup or "", match[0], *match.span()) for match in _TOKEN.finditer(text) if match.lastgroup != "space"])


def matching(tokens: Sequence[Token], at: int, opening: str = "(", closing: str = ")") -> int:
    """Return the index of the token that closes the one at index `at`; the last token when nothing does."""
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index].text == opening) - (tokens[index].text == closing)
        if depth == 0:
            return index
    return len(tokens) - 1


def _angles_back(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the `<` that the `>` at index `at` closes."""
    depth = 0
    for index in range(at, -1, -1):
        text = tokens[index].text
        depth += {">": 1, "<": -1, ">>>": 3}.get(text, 0)
        if text in (";", "{", "}"):
            return None
        if depth == 0:
            return index
    return None


def angles(tokens: Sequence[Token], at: int) -> int | None:
    """Return the index of the token that closes the `<` at index `at`, parentheses respected."""
    depth, index = 0, at
    while index < len(tokens):
        text = tokens[index].text
        if text in "([{":
            index = matching(tokens, index, text, {"(": ")", "[": "]", "{": "}"}[text])
        depth += {"<": 1, ">": -1, ">>>": -3}.get(text, 0)
        if text == ";":
            return None
        if depth <= 0:
            return index
        index += 1
    return None


def closing(text: str, at: int, brackets: str = "()") -> int:
    """Return the offset after the bracket that closes the one at `at`, strings skipped."""
    opening, close = brackets[0], brackets[1]
    depth = 0
    for piece in re.finditer(rf'"(?:\\.|[^"\\])*"|[\{opening}\{close}]', text[at:]):
        depth += {opening: 1, close: -1}.get(piece[0], 0)
        if depth == 0:
            return at + piece.end()
    return len(text)


def split_commas(text: str) -> list[str]:
    """Return the parts of the text between its top-level commas; brackets and template angles are respected."""
    parts: list[str] = []
    depth, start = 0, 0
    for token in tokens(text):
        if token.text in ("(", "[", "{"):
            depth += 1
        elif token.text in (")", "]", "}"):
            depth -= 1
        elif token.text == "," and depth == 0 and _balanced_angles(text[start : token.start]):
            parts.append(text[start : token.start].strip())
            start = token.end
    last = text[start:].strip()
    return [*parts, last] if last or parts else []


def _balanced_angles(text: str) -> bool:
    depth = 0
    for token in tokens(text):
        depth += {"<": 1, ">": -1, ">>>": -3, "<<<": 3}.get(token.text, 0)
        if token.text in ("(", "[") and depth < 0:
            return True
    return depth <= 0 or not re.search(r"\w\s*<", text)


def parameter(text: str, index: int) -> Parameter:
    """Return a parameter of a kernel; one without a name gets one."""
    text = " ".join(re.sub(r"//[^\n]*|/\*.*?\*/", " ", text, flags=re.S).split())
    bare = text.partition("=")[0].strip() if "=" in text and "<" not in text.partition("=")[0] else text
    pointer = re.search(r"\(\s*[*&]\s*(?:__restrict__\s*|const\s*)?(\w+)\s*\)", bare)
    if pointer:
        return Parameter(text, pointer[1])
    named = re.search(r"(?:^|[\s*&>.])([A-Za-z_]\w*)\s*((?:\[[^\]]*\]\s*)*)$", bare)
    words = re.findall(r"[A-Za-z_]\w*", re.sub(r"<.*>", "", bare))
    kinds = {
        "const",
        "volatile",
        "unsigned",
        "signed",
        "int",
        "long",
        "short",
        "char",
        "float",
        "double",
        "bool",
        "__restrict__",
        "struct",
        "typename",
    }
    if (
        named
        and named[1] not in kinds
        and (len([w for w in words if w not in {"const", "volatile", "struct", "typename"}]) > 1 or "*" in bare or ">" in bare)
    ):
        return Parameter(text, named[1], "..." in bare)
    return Parameter(f"{text} unnamed_{index}", f"unnamed_{index}")


def renamed(parameter: Parameter, name: str) -> Parameter:
    """Return a parameter with another name."""
    head, old, tail = parameter.text.partition("=")[0].rpartition(parameter.name)
    return replace(parameter, text=f"{head}{name}{tail}{parameter.text[len(head + old + tail) :]}", name=name) if old else parameter


def kernels(text: str, tokens: Sequence[Token]) -> list[Kernel]:
    """Return every kernel that the text declares or defines, in order."""
    scopes = _scopes(tokens)
    result: list[Kernel] = []
    end = -1
    for index, token in enumerate(tokens):
        if token.text == "__global__" and token.start >= end:
            kernel = _kernel(text, tokens, index, scopes)
            if kernel is not None:
                result.append(kernel)
                end = kernel.end
    return result


def _kernel(text: str, tokens: Sequence[Token], index: int, scopes: dict[int, str]) -> Kernel | None:
    at, bounds, name = index + 1, "", ""
    while at < len(tokens) and tokens[at].text not in (";", "{"):
        if tokens[at].text == "(":
            close = matching(tokens, at)
            before = tokens[at - 1].text
            if before == "__launch_bounds__":
                bounds = split_commas(text[tokens[at].end : tokens[close].start])[0]
            elif before not in ("__attribute__", "__maxnreg__", "__cluster_dims__", "(") and tokens[at - 1].kind == "word":
                name = before
                break
            at = close
        at += 1
    if not name:
        return None
    close = matching(tokens, at)
    inside = text[tokens[at].end : tokens[close].start]
    parameters = tuple(parameter(p, i) for i, p in enumerate(split_commas(inside)) if p and p != "void")
    body = close + 1
    while body < len(tokens) and tokens[body].text not in ("{", ";"):
        body += 1
    defined = body < len(tokens) and tokens[body].text == "{"
    last = matching(tokens, body, "{", "}") if defined else min(body, len(tokens) - 1)
    first, template, names = _head(text, tokens, index)
    if first > 0 and tokens[first - 1].text == "template":  # an explicit instantiation
        return None
    scope = scopes.get(index, "")
    start, head_end, end = tokens[first].start, tokens[close].end, tokens[last].end
    friend = any(token.text == "friend" for token in tokens[first:at])
    return Kernel(name, template, names, parameters, start, head_end, end, defined, bounds, scope, tokens[at].start, friend)


def _head(text: str, tokens: Sequence[Token], index: int) -> tuple[int, str, tuple[str, ...]]:
    """Return the first token of the declaration that has `__global__` at `index`, its template header and the header's names."""
    first = _specifiers(tokens, index)
    while first > 0 and tokens[first - 1].text == ")":  # an attribute before: __launch_bounds__(n), __attribute__((...))
        opening = first - 1
        depth = 0
        while opening >= 0:
            depth += (tokens[opening].text == ")") - (tokens[opening].text == "(")
            if depth == 0:
                break
            opening -= 1
        if opening < 1 or tokens[opening - 1].text not in ("__launch_bounds__", "__attribute__"):
            break
        first = _specifiers(tokens, opening - 1)
    if first > 0 and tokens[first - 1].text == ">":
        opening_angle = _angles_back(tokens, first - 1)
        if opening_angle is not None and opening_angle > 0 and tokens[opening_angle - 1].text == "template":
            inside = _COMMENTS.sub(" ", text[tokens[opening_angle].end : tokens[first - 1].start])
            header = _COMMENTS.sub(" ", text[tokens[opening_angle - 1].start : tokens[first - 1].end])
            names = tuple(_template_name(part) for part in split_commas(inside))
            return opening_angle - 1, header, tuple(n for n in names if n)
    return first, "", ()


_COMMENTS = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)


def _specifiers(tokens: Sequence[Token], first: int) -> int:
    """Return the first of the specifiers that end in front of an index."""
    while first > 0 and (tokens[first - 1].text in ATTRIBUTES or tokens[first - 1].kind == "string" or tokens[first - 1].text in ("void", "friend")):
        first -= 1
    return first


def _template_name(part: str) -> str:
    """Return the name of a template's parameter, also of `float (*op)(float, float)`, a pack with dots."""
    bare = re.split(r"(?<![<>=!])=(?!=)", part)[0].strip()
    named = re.search(r"\(\s*[*&]\s*(\.\.\.)?\s*([A-Za-z_]\w*)\s*\)", bare) or re.search(r"(\.\.\.)?\s*([A-Za-z_]\w*)\s*$", bare)
    return (named[2] + ("..." if "..." in bare else "")) if named else ""


def _scopes(tokens: Sequence[Token]) -> dict[int, str]:
    """Return, for each index of `__global__`, the named namespaces around it, as `a::b::`."""
    stack: list[str] = []
    result: dict[int, str] = {}
    pending = ""
    for index, token in enumerate(tokens):
        if token.text == "namespace":
            ahead = index + 1
            names = []
            while ahead < len(tokens) and tokens[ahead].text not in ("{", ";", "="):
                if tokens[ahead].kind == "word":
                    names.append(tokens[ahead].text)
                ahead += 1
            pending = "::".join(names) + "::" if names and ahead < len(tokens) and tokens[ahead].text == "{" else ""
        elif token.text == "{":
            stack.append(pending)
            pending = ""
        elif token.text == "}" and stack:
            stack.pop()
        elif token.text == "__global__":
            result[index] = "".join(stack)
    return result


def launches(text: str, tokens: Sequence[Token], known: Sequence[Kernel]) -> list[LaunchSite]:
    """Return every launch in the text, in order."""
    inside = [(k.head_end, k.end) for k in known if k.defined]
    return [site for index, token in enumerate(tokens) if token.text == "<<<" and (site := _launch(text, tokens, index, inside)) is not None]


def _launch(text: str, tokens: Sequence[Token], index: int, kernels_at: Sequence[tuple[int, int]]) -> LaunchSite | None:
    close, depth = index + 1, 0
    while close < len(tokens) and not (tokens[close].text == ">>>" and depth == 0):
        depth += (tokens[close].text in "([{") - (tokens[close].text in ")]}")
        close += 1
    if close + 1 >= len(tokens) or tokens[close + 1].text != "(":
        return None
    first, arguments = index - 1, ""
    if tokens[first].text in (">", ">>>"):
        opening = _angles_back(tokens, first)
        if opening is None:
            return None
        inside_end = tokens[first].start if tokens[first].text == ">" else tokens[index - 1].end - 1
        arguments = text[tokens[opening].end : inside_end]
        first = opening - 1
    if tokens[first].text == ")":
        depth = 0
        while first >= 0:
            depth += (tokens[first].text == ")") - (tokens[first].text == "(")
            if depth == 0:
                break
            first -= 1
        callee_end = index - 1
        callee = text[tokens[first].start : tokens[callee_end].end]
    else:
        last = first
        while first >= 2 and tokens[first - 1].text == "::":
            first -= 2
        if first >= 1 and tokens[first - 1].text == "::":
            first -= 1
        callee = text[tokens[first].start : tokens[last].end]
    start = tokens[first].start
    within = any(a <= start < b for a, b in kernels_at)
    return LaunchSite(callee, arguments, text[tokens[index].end : tokens[close].start], start, tokens[close + 1].start, within)


def pieces(tokens: Sequence[Token]) -> tuple[Piece, ...]:
    """Return each top-level declaration; blocks of namespaces and `extern "C"` are looked into."""
    return tuple(_pieces(tokens))


def _pieces(tokens: Sequence[Token]) -> Iterator[Piece]:
    at = 0
    while at < len(tokens):
        start = at
        if tokens[at].text == "}" or tokens[at].text == ";":
            at += 1
            continue
        inline = tokens[at].text == "inline" and at + 1 < len(tokens) and tokens[at + 1].text == "namespace"
        if inline or tokens[at].text == "namespace" or (
            tokens[at].text == "extern" and at + 2 < len(tokens) and tokens[at + 1].kind == "string" and tokens[at + 2].text == "{"
        ):
            while at < len(tokens) and tokens[at].text not in ("{", ";"):
                at += 1
            at += 1
            continue
        brace = -1
        while at < len(tokens):
            word = tokens[at].text
            if word in ("(", "["):
                at = matching(tokens, at, word, ")" if word == "(" else "]")
            elif word == "{":
                if brace < 0:
                    brace = tokens[at].start
                at = matching(tokens, at, "{", "}")
                if not _continues(tokens, start, at):
                    break
            elif word == ";":
                break
            elif word == "<" and tokens[at - 1].text == "template":
                at = angles(tokens, at) or at
            at += 1
        at = min(at, len(tokens) - 1)
        yield Piece(tokens[start].start, brace, tokens[at].end)
        at += 1


def c_blocks(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Return [start, end) of each `extern "C" { ... }`."""
    blocks = []
    for at in range(len(tokens) - 2):
        if tokens[at].text == "extern" and tokens[at + 1].text == '"C"' and tokens[at + 2].text == "{":
            blocks.append((tokens[at].start, tokens[matching(tokens, at + 2, "{", "}")].end))
    return blocks


def _continues(tokens: Sequence[Token], start: int, close: int) -> bool:
    """Say whether a declaration goes on after its closing brace: a type or an initialiser does, up to the semicolon."""
    while tokens[start].text == "template" and (header := angles(tokens, start + 1)) is not None:
        start = header + 1  # its defaults are no initialisers
    words = [t.text for t in tokens[start:close]]
    head = words[: words.index("{")]
    function = "(" in head and not ("=" in head and head.index("=") < head.index("("))
    return not function
