"""Macros of the system's headers that a source asks for in its conditions, as `#if _POSIX_VERSION >= 200112L`: those headers are not read with it."""

from __future__ import annotations

import functools
import re
import subprocess
from collections.abc import Collection, Mapping

from warpwright import native

_CONDITION = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b((?:[^\n]|\\\\\n)*)", re.M)
_OURS = {"defined", "assert", "NULL", "errno"}
"""What the runtime has its own of, or what stays a name to the tiers."""
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+ww_include[ \t]+<([^>\n]+)>", re.M)
_MACRO = re.compile(r"^#define (\w+)(\([^)]*\))? ?(.*)$", re.M)


def asked(text: str, known: Collection[str]) -> list[str]:
    """Return the macros, as NAME=VALUE, that the system's headers of a source define and its own conditions name; `known` are others' names."""
    names = {name for match in _CONDITION.finditer(text) for name in re.findall(r"[A-Za-z_]\w*", match[1])}
    names -= {*_OURS, *known}
    headers = tuple(sorted(set(_INCLUDED.findall(text))))
    if not names or not headers:
        return []
    table = _macros(headers)
    wanted, todo = set[str](), [name for name in sorted(names) if name in table]
    while todo:
        name = todo.pop()
        wanted.add(name)
        todo += [one for one in re.findall(r"[A-Za-z_]\w*", table[name][1]) if one in table and one not in wanted]
    return [f"{name}{table[name][0]}={table[name][1]}" for name in sorted(wanted)]


@functools.cache
def _macros(headers: tuple[str, ...]) -> Mapping[str, tuple[str, str]]:
    """Return what headers define beyond what the compiler does: name -> parameters, value."""
    found = _told("".join(f"#if __has_include(<{header}>)\n#include <{header}>\n#endif\n" for header in headers))
    return {name: rest for name, rest in found.items() if name not in _told("")}


@functools.cache
def _told(text: str) -> Mapping[str, tuple[str, str]]:
    path, _ = native.compiler()
    command = [path, "-E", "-dM", "-std=c++17", "-x", "c++", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, errors="replace")
    return {name: (parameters, value) for name, parameters, value in _MACRO.findall(done.stdout)} if done.returncode == 0 else {}
