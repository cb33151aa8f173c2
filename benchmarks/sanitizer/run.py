"""Bugs planted in kernels of our own, ten kinds of them, and the kernels without: what the sanitizer says of each.

    python -m benchmarks.sanitizer.run --out benchmarks/results/sanitizer [--only NAME,...]

kernels.cu says which text to change for which bug, and where it shows. All kernels are built as one library and run with 2 blocks of 64 threads on
100
values. A bug counts as found where the sanitizer names its kind at one of its lines; whatever else it says is counted too.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpwright.domains import transpile

HERE = Path(__file__).parent
TYPES: Mapping[str, type[np.generic]] = {"float": np.float32, "int": np.int32, "double": np.float64}
SHOWS = {
    "missing barrier": "race", "missing second barrier": "race", "missing syncwarp": "race", "missing atomic": "race", "missing block offset": "race",
    "missing guard": "out-of-bounds", "off by one": "out-of-bounds", "negative index": "out-of-bounds", "uninitialised": "uninitialised",
    "divergent barrier": "barrier",
}  # fmt: skip
"""Kind of bug -> kind of finding."""

VALUES = 100


@dataclass(frozen=True)
class Kernel:
    """A kernel as it is run: without a bug, or with one."""

    name: str
    text: str
    kind: type[np.generic]
    bug: str = ""
    lines: tuple[int, ...] = ()
    """Lines of the text, from 0 on, at which the bug may show."""


def kernels(only: Sequence[str] = ()) -> list[Kernel]:
    """Return each kernel for each type, and with each of its bugs for one type."""
    text = (HERE / "kernels.cu").read_text()
    made: list[Kernel] = []
    for base in re.findall(r"^__global__ .*?^}\n", text, re.M | re.S):
        match = re.search(r"void (\w+)\(", base)
        assert match is not None
        if not only or match[1] in only:
            made += [_clean(base, match[1], name) for name in TYPES]
            made += _planted(base, match[1], len(made))
    return made


def _clean(base: str, name: str, kind: str) -> Kernel:
    return Kernel(f"{name}_{kind}", _typed(base, name, f"{name}_{kind}", kind), TYPES[kind])


def _typed(text: str, name: str, new: str, kind: str) -> str:
    return re.sub(r"\bT\b", kind, re.sub(r" *//[@~].*", "", text)).replace(f"void {name}(", f"void {new}(")


def _planted(base: str, name: str, number: int) -> list[Kernel]:
    """Return the kernel once for each bug that its comments plant."""
    lines = base.splitlines()
    made: list[Kernel] = []
    for at, line in enumerate(lines):
        code = line.partition("  //")[0]
        for bug, old, new in re.findall(r"//~ ([^|]+?) \| (.+?) \|(?= )? ?(.*?)(?=\s*//[~@]|$)", line):
            assert code.count(old) == 1, (name, at, old, code)
            kind = list(TYPES)[(number + len(made)) % len(TYPES)]
            changed = [*lines[:at], code.replace(old, new), *lines[at + 1 :]]
            shown = tuple(i for i, other in enumerate(lines) if re.search(rf"//@ {bug}(?!\w| \w)", other)) or (at,)
            shown = (*shown, at) if bug == "missing atomic" else shown
            new_name = f"{name}_{re.sub(' ', '_', bug)}_{at}"
            made.append(Kernel(new_name, _typed("\n".join(changed) + "\n", name, new_name, kind), TYPES[kind], bug, shown))
    return made


def examine(chosen: Sequence[Kernel]) -> list[dict[str, Any]]:
    """Return a row for each kernel: what was planted, what was found and where."""
    first: dict[str, int] = {}
    texts: list[str] = []
    for kernel in chosen:
        first[kernel.name] = 1 + sum(text.count("\n") for text in texts)
        texts.append(kernel.text)
    loaded = transpile.compile_text("".join(texts), "kernels.cu", sanitize=True).load(("-O0", "-std=c++17", "-shared", "-fPIC", "-fopenmp"))
    return [_row(kernel, loaded[kernel.name], first[kernel.name]) for kernel in chosen]


def _row(kernel: Kernel, loaded: Any, first: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    x, y = (rng.uniform(-3, 9, VALUES).astype(kernel.kind), np.zeros(VALUES, kernel.kind))
    loaded[2, 64, 512](x, y, VALUES)
    found = [(finding.kind, finding.line - first) for finding in loaded.findings()]
    wanted = SHOWS.get(kernel.bug, "")
    hit = any(kind == wanted and line in kernel.lines for kind, line in found)
    others = sorted({f"{kind} at line {line}" for kind, line in found if not (kind == wanted and line in kernel.lines)})
    ok = hit if kernel.bug else not found
    return {"kernel": kernel.name, "type": kernel.kind.__name__, "bug": kernel.bug or "none", "ok": ok, "lines": list(kernel.lines), "others": others}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", default="", help="kernels, with commas between")
    given = parser.parse_args()
    rows = examine(kernels([name for name in given.only.split(",") if name]))
    for row in rows:
        if not row["ok"]:
            print(row)
    for bug in (*SHOWS, "none"):
        mine = [row for row in rows if row["bug"] == bug]
        print(f"{bug}: {sum(row['ok'] for row in mine)} of {len(mine)}; other findings in {sum(bool(row['others']) for row in mine)}")
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
