"""KernelBench_c: CUDA files of PyTorch extensions. They have no C reference and no buffers of their own, so only translation is judged.

Host code written against PyTorch's C++ API makes a file's launches. A row says whether the file contains kernels, whether the transpiler
translates them, and whether a C++ compiler accepts the translation. Nothing is claimed of correctness or speed.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from warpwright import native
from warpwright.domains import transpile
from warpwright.errors import UsageError, WarpwrightError
from warpwright.translation.errors import one_line
from warpwright.translation.judge.judge import Row

NOT_RUN = "translated, not run: its launches are in host code for PyTorch"


def files_of(path: Path, only: str = "", limit: int | None = None) -> list[Path]:
    """Return the .cu files of a KernelBench_c folder (with level1, level2, level3), or of its repository. Raises UsageError without any."""
    root = path / "KernelBench_c" if (path / "KernelBench_c").is_dir() else path
    files = sorted(root.glob("level*/*.cu"), key=lambda f: (f.parent.name, int(re.match(r"\d*", f.name)[0] or 0), f.name))  # type: ignore[index]
    if not files:
        raise UsageError(f"expected level1/*.cu and so on in {path}, saw none", "give the folder KernelBench_c of the HPCTransCompile repository")
    return [file for file in files if re.search(only, f"{file.parent.name}/{file.stem}")][:limit]


def run(path: Path, only: str, limit: int | None, jobs: int, tell: Callable[[str], None] = lambda _: None) -> list[Row]:
    """Return one row a file."""
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        rows = []
        for row in pool.map(judge_file, files_of(path, only, limit)):
            tell(f"{row.item}: {'translated' if row.built else row.status} {row.reason[:100]}")
            rows.append(row)
    return rows


def judge_file(file: Path) -> Row:
    """Return the row of one file."""
    name, text = file.stem, file.read_text(errors="replace")
    if "__global__" not in text:
        return Row(name, file.parent.name, "compiler", "unscored", "the file holds no kernel")
    try:
        program = transpile.compile_text(text, file.name)
    except WarpwrightError as error:
        return Row(name, file.parent.name, "compiler", "not_built", f"refused: {one_line(error)}")
    command = [native.compiler()[0], "-std=gnu++17", "-fopenmp", "-march=native", "-fsyntax-only", "-w", "-x", "c++", "-"]
    process = subprocess.run(command, input=program.source, capture_output=True, text=True, timeout=600)
    if process.returncode:
        first = next((line for line in process.stderr.splitlines() if "error:" in line), process.stderr[-200:])
        return Row(name, file.parent.name, "compiler", "not_built", f"the translation does not compile: {first.partition('error:')[2].strip()}")
    kinds = ", ".join(sorted({info.tier for info in program.kernels.values()}))
    return Row(name, file.parent.name, "compiler", "unscored", f"{NOT_RUN}; tiers: {kinds}", built=True)
