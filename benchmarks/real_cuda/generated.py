"""Headers that a CMakeLists.txt makes: `configure_file` and `file(WRITE)`, by the values that it sets itself.

They are written into GENERATED in the repository's folder, where programs.py finds them as it finds the others. What is known only to CMake, as a
commit's number, is empty, as it is where a source has no .git.
"""

from __future__ import annotations

import re
from pathlib import Path

GENERATED = "generated_by_cmake"
_HEADER = re.compile(r"\.(h|hpp|hxx|cuh|hh|inl|inc)$")


def write(files: list[Path], root: Path) -> None:
    """Write the headers that these CMakeLists.txt make and that are not there."""
    values: dict[str, str] = {}
    for file in files:
        text = re.sub(r"^\s*#[^\n]*", "", file.read_text(errors="replace"), flags=re.M)
        values |= _values(text)
        made: dict[str, str] = {}
        for name, rest in re.findall(r'\bfile\s*\(\s*WRITE\s+("[^"\n]+"|\S+)((?:\s+(?:"(?:\\.|[^"\\])*"|[^\s()"]+))*)\s*\)', text):
            made[name.strip('"')] = _words(rest, values)
        for name, rest in re.findall(r'\bfile\s*\(\s*APPEND\s+("[^"\n]+"|\S+)((?:\s+(?:"(?:\\.|[^"\\])*"|[^\s()"]+))*)\s*\)', text):
            made[name.strip('"')] = made.get(name.strip('"'), "") + _words(rest, values)
        for source, name in re.findall(r'\bconfigure_file\s*\(\s*"?([^"\s()]+)"?\s+"?([^"\s()]+)"?', text):
            template = _below(source, file.parent, root)
            if template.is_file():
                made[name] = configured(template.read_text(errors="replace"), values)
        for name, content in made.items():
            path = _target(name, values)
            if _HEADER.search(path) and not _below(name, file.parent, root).is_file():
                (root / GENERATED / path).parent.mkdir(parents=True, exist_ok=True)
                (root / GENERATED / path).write_text(content)


def configured(text: str, values: dict[str, str]) -> str:
    """Return what `configure_file` makes of a text."""

    def defined(match: re.Match[str]) -> str:
        name, rest = match[2], match[3]
        value = values.get(name, "")
        true = value.upper() not in ("", "0", "OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND")
        if match[1]:
            return f"#define {name} {int(true)}"
        return f"#define {name}{rest}" if true else f"/* #undef {name} */"

    text = re.sub(r"^[ \t]*#[ \t]*cmakedefine(01)?[ \t]+(\w+)([^\n]*)$", defined, text, flags=re.M)
    return re.sub(r"\$\{(\w+)\}|@(\w+)@", lambda match: values.get(match[1] or match[2], ""), text)


def _values(text: str) -> dict[str, str]:
    """Return the variables that a CMakeLists.txt sets to something that can be read."""
    values: dict[str, str] = {}
    for name, rest in re.findall(r"\bproject\s*\(\s*([\w.-]+)([^()]*)\)", text, re.I):
        values |= {"PROJECT_NAME": name, "CMAKE_PROJECT_NAME": name}
        if version := re.search(r"\bVERSION\s+([\d.]+)", rest):
            parts = [*version[1].split("."), "0", "0", "0"]
            for prefix in ("PROJECT", name, "CMAKE_PROJECT"):
                values |= {f"{prefix}_VERSION": version[1]}
                values |= {f"{prefix}_VERSION_{part}": parts[at] for at, part in enumerate(("MAJOR", "MINOR", "PATCH", "TWEAK")) if at < len(parts)}
    for name, value in re.findall(r"\boption\s*\(\s*(\w+)\s+\"[^\"]*\"\s*(\w*)\s*\)", text, re.I):
        values[name] = value or "OFF"
    for name, value in re.findall(r"\bset\s*\(\s*(\w+)\s+(\"[^\"]*\"|[^\s()]+)", text, re.I):
        values[name] = re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], ""), value.strip('"'))
    return values


def _words(rest: str, values: dict[str, str]) -> str:
    """Return what the words of a `file(WRITE)` are together."""
    words = (quoted if quoted else plain for quoted, plain in re.findall(r'"((?:\\.|[^"\\])*)"|([^\s()"]+)', rest))
    text = "".join(re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], ""), word) for word in words)
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "t": "\t"}.get(match[1], match[1]), text)


_FOLDER = re.compile(r"\$\{(?:CMAKE_(?:CURRENT_)?(?:SOURCE|BINARY)_DIR|PROJECT_(?:SOURCE|BINARY)_DIR|\w+_(?:SOURCE|BINARY)_DIR)\}/?")


def _below(word: str, here: Path, root: Path) -> Path:
    """Return a path of a CMakeLists.txt."""
    return (root if "{CMAKE_SOURCE_DIR}" in word else here) / _FOLDER.sub("", word)


def _target(word: str, values: dict[str, str]) -> str:
    """Return where a made header goes, from GENERATED: what follows an `include` folder, as its users include it."""
    path = re.sub(r"\$\{(\w+)\}", lambda match: values.get(match[1], ""), _FOLDER.sub("", word)).lstrip("/")
    return re.sub(r"^(?:.*/)?include/", "", path.replace("../", ""))
