"""Make HeCBench's programs small enough for a CPU: by one rule, in a copy of the program and of its OpenMP twin alike.

Sizes chosen for a GPU are in the arguments or in the source. At `shift` s, in every text of the copy:

- a named integer constant (`#define N (1 << 24)`, `const int N = 4096;`, `int rows = 4096;`) that is even, at least 256 and below 2**31, written
  in decimals, and whose name does not mention blocks, threads, seeds or moduli, is divided by 2**s, but not below 64;
- one whose name mentions repetitions or steps becomes `count` (at most itself);
- a loop with a decimal bound of at least 10 whose body launches a kernel (`<<<`, or in the twin `omp target`), itself or by a function of the same
  text, runs to `count`, and one whose variable is multiplied (`n *= 2`) has its bound and its first value, if at least 1024, divided by 2**s;
- sizes among the arguments are divided alike (run.reduced).

What was changed is kept in the result. Nothing else is: a program that works at no other size fails here and counts as a miss.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from benchmarks.hecbench import load

FLOOR = 64
BY_HAND = json.loads(Path(__file__).with_name("sizes.json").read_text())
"""For programs that the rule does not make small enough, or breaks: name -> `arguments`, and texts that are replaced in the program and its twin
(`source`: sizes, or results that neither prints), `files`, `libraries`, the `twin`'s own arguments, `lockstep` to translate with --lockstep."""
_VALUE = r"\(?[ \t]*(?:\d+(?![ \t]*[*<\d])|\(?[ \t]*\d+[ \t]*<<[ \t]*\d+(?:[ \t]*\))?|\d+(?:[ \t]*\*[ \t]*\d+)+)[uUlL]*(?:[ \t]*\))?"
_DEFINE = re.compile(rf"^([ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+)({_VALUE})(?=[ \t]*(?://|/\*|\r?$))", re.M)
_TYPE = r"(?:(?:static|const|constexpr|unsigned|signed|int|long|short|size_t|u?int(?:32|64)_t|uint|std::size_t|auto|__device__|__constant__)\s+)+"
_VARIABLE = re.compile(rf"(^[ \t]*{_TYPE}(\w+)\s*=\s*)({_VALUE})(?=\s*;)", re.M)
_LOOP = re.compile(r"\bfor\s*\(([^;{}()]*;\s*\w+\s*<=?\s*)(\d+)(\s*;\s*([^(){};]*)\))")
_LAUNCH = r"<<<|omp\s+target"
_FUNCTION = re.compile(r"\b(\w+)\s*\([^;{}]*\)\s*(?:const\s*)?\{")
_NOT_SIZE = re.compile(
    r"block|thread|nthr|warp|wave|tpb|wgs|local|work_?group|seed|prime|mod|mask|mult|rand|lcg|inc\b|hash|tile|version|chunk|histo|bin"
    r"|^tb|_tb|b_?size$|_b[xyz]$",
    re.I,
)


def number(text: str) -> int:
    """Return the value of a constant that `_VALUE` matched."""
    bare = re.sub(r"[()\suUlL]", "", text)
    if "<<" in bare:
        base, shift = bare.split("<<")
        return int(base) << int(shift)
    product = 1
    for factor in bare.split("*"):
        product *= int(factor, 8 if len(factor) > 1 and factor[0] == "0" and set(factor) <= set("01234567") else 10)
    return product


def smaller(text: str, shift: int, count: int, changes: list[str]) -> str:
    """Return a source with its sizes divided by 2**shift and its counts lowered to `count`; add `name: from -> to` to `changes`."""

    def constant(match: re.Match[str]) -> str:
        name, value = match[2], number(match[3])
        new = value
        if load.COUNT.search(name):
            new = min(value, count)
        elif 256 <= value < 1 << 31 and value % 2 == 0 and not _NOT_SIZE.search(name):
            new = min(value, max(value >> shift, FLOOR))
        if new == value:
            return match[0]
        changes.append(f"{name}: {value} -> {new}")
        return match[1] + str(new)

    def loop(match: re.Match[str]) -> str:
        bound, body, head = int(match[2]), _body(text_now, match.end()), match[1]
        new = bound
        first = re.search(r"=\s*(\d+)\s*;", head)
        if first and bound >= 1024 and re.search(r"\*=|<<=|=\s*\w+\s*\*", match[4]):
            begin = max(int(first[1]) >> shift, FLOOR) if int(first[1]) >= 1024 else int(first[1])
            head, new = head[: first.start(1)] + str(begin) + head[first.end(1) :], max(bound >> shift, FLOOR, begin)
        elif bound >= 10 and "++" in match[4] and (re.search(_LAUNCH, body) or launchers & set(re.findall(r"\w+", body))):
            new = count
        if new == bound:
            return match[0]
        changes.append(f"loop: {bound} -> {new}")
        return f"for ({head}{new}{match[3]}"

    launchers = {found[1] for found in _FUNCTION.finditer(text) if re.search(_LAUNCH, _body(text, found.end() - 1))} - {"if", "for", "while", "main"}
    text_now = _VARIABLE.sub(constant, _DEFINE.sub(constant, text))
    return _LOOP.sub(loop, text_now)


def _body(text: str, at: int) -> str:
    """Return the statement that begins at `at`."""
    depth = 0
    for end in range(at, len(text)):
        depth += (text[end] == "{") - (text[end] == "}")
        if depth <= 0 and text[end] in ";}":
            return text[at : end + 1]
    return text[at:]


def copy(folder: Path, into: Path, shift: int, count: int, by_hand: dict[str, dict[str, str]] | None = None) -> tuple[Path, list[str]]:
    """Copy `NAME-cuda` and its siblings `NAME-*` into `into`, texts made smaller, and link all else.

    With a negative shift `by_hand` says how: `source`, old text to new; `files`, the name of a file to its content.

    Return (the program's folder, what was changed in it)."""

    def smaller_or_by_hand(text: str, made: list[str]) -> str:
        if shift >= 0:
            return smaller(text, shift, count, made)
        for old, new in (by_hand or {}).get("source", {}).items():
            made += [f"{old} -> {new}"] if old in text else []
            text = text.replace(old, new)
        return text

    name = folder.name.rpartition("-")[0]
    changes: list[str] = []
    into.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.iterdir():
        if not other.name.startswith(f"{name}-"):
            (into / other.name).symlink_to(other)
            continue
        for file in sorted(other.rglob("*")):
            target = into / other.name / file.relative_to(other)
            if file.is_dir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.suffix in load.TEXTS and file.stat().st_size < 1_000_000:
                made: list[str] = []
                target.write_text(smaller_or_by_hand(file.read_text(errors="replace"), made))
                changes += made if other == folder else []
            elif file.name.startswith("Makefile"):
                target.write_text(smaller_or_by_hand(file.read_text(errors="replace"), []) if shift < 0 else file.read_text(errors="replace"))
            else:
                target.symlink_to(file)
    for name, content in (by_hand or {}).get("files", {}).items():
        for other in (into / folder.name, into / f"{folder.name.removesuffix('-cuda')}-omp"):
            if other.is_dir():
                (other / name).unlink(missing_ok=True)
                (other / name).parent.mkdir(parents=True, exist_ok=True)
                (other / name).write_text(content)
        changes.append(f"file {name}: {len(content)} letters")
    return into / folder.name, list(dict.fromkeys(changes))
