"""Reads the corpus of candidates (tests/cheats, tests/honest, tests/limits) and runs them through the verifier in real workers."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpwright.base import Source, Task
from warpwright.tasks import taskfile

HERE = Path(__file__).parents[1]
CONSTANTS = ("ROW", "TASK", "EXPECT_STATUS", "EXPECT_CHECK", "NEEDS", "LIMIT")


@dataclass(frozen=True)
class Program:
    """One file of the corpus. It is parsed here, never imported."""

    name: str
    path: Path
    task: str
    row: str = ""
    """Row of the table of known hacks that it stands for."""
    status: str = "ok"
    checks: tuple[str, ...] = ()
    """Checks any of which may be the one that rejects it; `status` is that of the first."""
    needs: frozenset[str] = frozenset()
    """Of "cuda", "cpu", "compiler", "timing" and "slow". "cpu": it, or its task, works on the host's memory and means nothing on a GPU."""
    doc: str = ""
    limit: str = ""
    """The row of docs/trust.md's last table that it stands for, if it is accepted though wrong."""

    @property
    def source(self) -> Source:
        """The program as a candidate's source: without the header, which tells what it is up to, and under a name that does not."""
        return Source("python", (("candidate.py", _without_header(self.path.read_text())),))


def _without_header(text: str) -> str:
    """Return a file's text with its docstring and its header's constants blanked out."""
    lines = text.splitlines()
    for number, node in enumerate(ast.parse(text).body):
        named = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in CONSTANTS
        if named or (number == 0 and isinstance(node, ast.Expr)):
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(lines).strip() + "\n"


def read(path: Path) -> Program:
    """Return the program in `path` with the constants of its header."""
    tree = ast.parse(path.read_text())
    found: dict[str, Any] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in CONSTANTS:
            found[node.targets[0].id] = ast.literal_eval(node.value)
    checks = found.get("EXPECT_CHECK", ())
    return Program(
        name=path.stem,
        path=path,
        task=found["TASK"],
        row=found.get("ROW", ""),
        status=found.get("EXPECT_STATUS", "ok"),
        checks=(checks,) if isinstance(checks, str) else tuple(checks),
        needs=frozenset(filter(None, found.get("NEEDS", "").split(","))),
        doc=ast.get_docstring(tree) or "",
        limit=found.get("LIMIT", ""),
    )


@functools.cache
def programs(folder: str) -> tuple[Program, ...]:
    """Return the programs of tests/<folder>, read once, sorted by task (so that judges are kept) and name."""
    return tuple(sorted((read(path) for path in (HERE / folder).glob("*.py")), key=lambda program: (program.task, program.name)))


def task(name: str) -> Task:
    """Return the task in tests/tasks/<name>.py."""
    return taskfile.describe(HERE / "tasks" / f"{name}.py")
