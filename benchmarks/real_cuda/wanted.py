"""Programs that want arguments: how that shows in a run without any, and the calls that a repository itself shows."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.hecbench import judge
from benchmarks.real_cuda.programs import Program

USAGE = re.compile(
    r"\busage\b|\b(missing|too few|not enough|insufficient|(in|not )?correct|wrong|invalid|needs?|expect\w*|require[sd]?|provide|specify|enter)\b"
    r"[^\n]{0,40}\b(argument|parameter)s?\b|\b(argument|parameter)s?\b[^\n]{0,30}\b(missing|required|expected)\b",
    re.I,
)
TEXTS = ("README*", "readme*", "*.md", "*.sh", "[Mm]akefile", "*.txt")
"""Files in which calls are looked for, besides the sources."""


@dataclass(frozen=True)
class Call:
    """One way to call a program."""

    arguments: tuple[str, ...]
    where: str
    """File and line that show it."""


def why(program: Program, code: int, said: str) -> str:
    """Return why a run without arguments says that it wants some; empty where it does not."""
    usage = next((line for line in said.splitlines() if USAGE.search(line)), "")
    rest = "\n".join(line for line in said.splitlines() if line != usage)
    if usage and code >= 0 and not judge.own_check(rest) and not judge.own_errors(rest):
        return usage.strip()[:200]
    text = "\n".join(re.sub(r"//[^\n]*|/\*.*?\*/", "", one.read_text(errors="replace"), flags=re.S) for one in program.sources)
    if code and re.search(r"\bargv\s*\[\s*1\s*\]", text) and not re.search(r"\bargc\s*[<>=!]|[<>=!]\s*argc\b|\(\s*argc\s*\)", text):
        return f"it reads argv[1] unasked and ends with {signal.Signals(-code).name if code < 0 else code}"
    if code and re.search(r"\bscanf\s*\(|\bcin\s*>>|\bfgets\s*\([^;]*\bstdin\b|\bgetline\s*\(\s*(std::)?cin\b", text):
        return f"it reads standard input and ends with {signal.Signals(-code).name if code < 0 else code}"
    return ""


def call_of(program: Program) -> Call | None:
    """Return the first call with arguments that the repository shows, in the program's folder or those above it; None where it shows none."""
    own = program.name.rpartition("/")[2]
    for file in _files(program):
        names = f"{re.escape(own)}|a|{re.escape(file.stem)}" if file in program.sources else re.escape(own)
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            if (words := words_of(line, names)) and all(_meant(word, program.folder) for word in words):
                return Call(words, f"{file.name}:{number}")
    return None


def _files(program: Program) -> Iterator[Path]:
    yield from program.sources
    folder = program.folder
    for _ in range(4):
        yield from sorted({one for pattern in TEXTS for one in folder.glob(pattern) if one.is_file() and one.stat().st_size < 200_000})
        if (folder / ".git").exists() or folder.parent == folder or (folder / "LICENSE").exists():
            return
        folder = folder.parent


def words_of(line: str, names: str) -> tuple[str, ...]:
    """Return the arguments of a line that calls `./NAME ARGUMENTS`; nothing where it does not, or where they are for the reader to fill in.

    `names` is a regular expression."""
    match = re.search(rf"(?:^|[\s`$>\"'(])(?:\.{{1,2}}/)?(?:[\w.-]+/)*(?:{names})(?:\.(?:out|exe))?[ \t]+([^`|>&;#\"'\\]+)", line)
    words = tuple(match[1].split()) if match else ()
    return words if words and not re.search(r"[<>\[\]{}$(),*]|\.\.\.", match[1] if match else "") else ()


def _meant(word: str, folder: Path) -> bool:
    """Say whether a word can be an argument as it stands: a number, an option, or a file that is there; not `N` or `is`."""
    return bool(re.fullmatch(r"[-+]?\d[\w.+-]*|--?[A-Za-z][\w-]*(=[\w./+-]+)?", word)) or (folder / word).is_file()
