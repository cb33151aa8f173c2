"""An autoresearch pack: program.md for the agent, one file that it edits, a fixed bench with metrics to grep, results.tsv, keep or revert in git."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warpwright.adapters.judge import Judge, Judged, Where, instruction
from warpwright.adapters.openevolve import suffix
from warpwright.base import now
from warpwright.errors import UsageError

RESULTS = "results.tsv"
COLUMNS = ("when", "commit", "decision", "status", "verdict", "score", "description")


def bench(where: Where, folder: Path, editable: str, description: str) -> Judged:
    """Judge the editable file, print its metrics, add a row to results.tsv, and commit the file where it is the best so far, else restore it."""
    if not _git(folder, "status", "--porcelain", "--", editable) and _rows(folder):
        raise UsageError(f"expected a change of {editable}, saw none", "edit it first")
    judged = Judge(where).score((folder / editable).read_text())
    better = judged.correct and judged.score > max((float(row["score"]) for row in _rows(folder) if row["decision"] == "keep"), default=0.0)
    decision = "keep" if better else "revert"
    words = " ".join(description.split()) or "no description"
    if better:
        _git(folder, "add", "--", editable)
        _git(folder, "commit", "--quiet", "--allow-empty", "-m", f"{judged.score:.3f}x: {words}")
    else:
        _git(folder, "checkout", "--quiet", "--", editable)
    commit = _git(folder, "rev-parse", "--short", "HEAD")
    row = (now(), commit, decision, str(judged.answer.get("status", judged.verdict)), judged.verdict, f"{judged.score:.4f}", words)
    with (folder / RESULTS).open("a") as file:
        file.write("\t".join(row) + "\n")
    print(judged.feedback)
    print(f"status: {row[3]}\nverdict: {row[4]}\nscore: {row[5]}\ndecision: {decision}")
    return judged


def begin(folder: Path) -> None:
    """Put a fresh pack under git."""
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "-m", "The pack as exported")):
        _git(folder, *words)


def _rows(folder: Path) -> list[dict[str, str]]:
    lines = (folder / RESULTS).read_text().splitlines()[1:]
    return [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in lines]


def _git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=autoresearch", "-c", "user.email=autoresearch@localhost")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, timeout=60)
    if done.returncode:
        complaint = done.stderr.strip()[:500]
        raise UsageError(f"expected git {words[0]} to work in {folder}, saw: {complaint}", "is it under git? `python bench.py --begin`")
    return done.stdout.strip()


BENCH = '''"""The fixed bench: judges {editable}, keeps it or restores it. Do not edit it."""

import sys
from pathlib import Path

from warpwright.adapters import autoresearch
from warpwright.adapters.judge import Where

WHERE = {where!r}

if __name__ == "__main__":
    if sys.argv[1:] == ["--begin"]:
        autoresearch.begin(Path(__file__).parent)
    else:
        autoresearch.bench(WHERE, Path(__file__).parent, {editable!r}, " ".join(sys.argv[1:]))
'''

PROGRAM = """# {name}

You improve one file, `{editable}`, again and again. Nothing else is edited.

{task}

## The loop

Once: `python bench.py --begin`, and `python bench.py baseline` for the file as it stands.

Then, until you are stopped:

1. Read `results.tsv`: what was tried, and what was kept. Have one idea that is not there.
2. Edit `{editable}`.
3. `python bench.py WHAT YOU CHANGED > run.log 2>&1; grep -E "^(status|verdict|score|decision):" run.log`
4. The bench has decided. With `decision: keep` the file is committed and is where you go on from; with `decision: revert` it is
   as it was. When it did not pass, `run.log` says why.

`score` is the speed-up over the best baseline; 0 for a program that did not pass. The verifier looks at inputs that you do not see.
"""


def files(where: Where, described: Mapping[str, Any]) -> dict[str, str]:
    """Return the pack."""
    program = described["program"]
    editable = f"candidate{suffix(program)}"
    name = described["task"]["name"]
    return {
        "program.md": PROGRAM.format(name=name, editable=editable, task=instruction(described)),
        editable: program["source"].strip() + "\n",
        "bench.py": BENCH.format(where=where, editable=editable),
        RESULTS: "\t".join(COLUMNS) + "\n",
        ".gitignore": f"run.log\n{RESULTS}\n__pycache__/\n.warpwright/\n",
    }
