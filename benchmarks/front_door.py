"""Modules in memory through `warpwright.optimize`, each in a process of its own and several at once: for the tables of training steps and of
declared shapes.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib import metadata
from pathlib import Path
from typing import Any

from torch import nn

from warpwright.errors import WarpwrightError
from warpwright.timing import facts

Row = dict[str, Any]
MOST_REASON = 300
"""Characters of a reason."""

SHORTEST = 25.0
"""Seconds that must be left for a module to be begun: less than a GPU's eager, torch.compile and one program take."""


class Phases(logging.Handler):
    """Notes when each phase of a run began."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.began, self.noted = time.monotonic(), list[str]()

    def emit(self, record: logging.LogRecord) -> None:
        """Take down one message of the run."""
        self.noted.append(f"{time.monotonic() - self.began:.0f} s {record.getMessage().partition(': ')[2][:70]}")


def optimized(model: nn.Module, args: Sequence[Any], device: str, after: Callable[[Any], Row], **options: Any) -> Row:
    """Return the row of a module, from this process: the verdict, the times, what `after` says of the result, and the phases of the run."""
    import warpwright

    phases, log = Phases(), logging.getLogger("warpwright")
    log.addHandler(phases)
    log.setLevel(logging.DEBUG)
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory() as folder:
            result = warpwright.optimize(
                model, tuple(args), target=device, progress=False, again=True, archive=Path(folder, "archive.db"), out=folder, **options
            )
            row = {**_told(result), "seconds": round(time.monotonic() - begun, 1)}
            try:
                row |= after(result)
            except Exception as error:  # what was judged is kept
                row["reason"] += f"; after the verdict: {type(error).__name__}: {' '.join(str(error).split())[:MOST_REASON]}"
    except WarpwrightError as error:
        row = {"verdict": "ERROR", "seconds": round(time.monotonic() - begun, 1), "reason": str(error)[:MOST_REASON]}
    return {**row, "phases": phases.noted}


def _told(result: Any) -> Row:
    line, low_high = result.line, result.interval
    row = {"verdict": result.verdict, "speedup": f"{result.speedup:.2f}"}
    row |= {"interval": f"[{low_high[0]:.2f}, {low_high[1]:.2f}]" if low_high else ""}
    row |= {f"{name}_ms": ms and round(ms, 3) for name, ms in (line["baselines"] or {}).items()}
    row |= {"ours_ms": line["ours_ms"] and round(line["ours_ms"], 3)}
    refused = [" ".join(str(one).split())[:MOST_REASON] for one in line["rejected"][:2]]
    said = "; ".join([*filter(None, [result.reason]), *(f"no time for {what}" for what in result.left_out)])
    return row | {"recipe": "; ".join(result.recipe), "candidates": line["candidates"], "reason": said[:MOST_REASON], "rejected": refused}


def command_line(said: str, names: Sequence[str], budget: str) -> argparse.ArgumentParser:
    """Return what a table's command reads."""
    parser = argparse.ArgumentParser(description=said.splitlines()[0])
    parser.add_argument("names", nargs="*", choices=[*names, []], default=[], help="the table's own if none is given")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--budget", default=budget, help="of each module")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="modules at once")
    parser.add_argument("--seconds", type=float, default=3600.0, help="after which what has not ended is ended")
    parser.add_argument("--dry", action="store_true", help="on the CPU, small, beside eager alone")
    parser.add_argument("--one", action="store_true", help="print the row as JSON, from this process")
    return parser


def table(module: str, names: Sequence[str], keys: Sequence[str], options: argparse.Namespace, written: Callable[[list[Row], str], None]) -> None:
    """Print each module's row as it comes, and have all that there are `written` with the conditions, where there is a folder for them."""
    arguments = ["--budget", options.budget, "--device", options.device, *(["--dry"] if options.dry else [])]
    arguments += ["--backward"] if getattr(options, "backward", False) else []
    command = f"python -m {module} {' '.join(arguments)} --jobs {options.jobs} --seconds {options.seconds:g}"
    found: list[Row] = []
    for row in rows(module, names, arguments, options.jobs, time.monotonic() + options.seconds):
        found.append(row)
        print(f"| {' | '.join(str(row.get(key, '')) for key in keys)} |", *row.get("phases", ()), sep="\n    ", flush=True)
        if options.out is not None:
            written(found, conditions(options.device, command))


def rows(module: str, names: Sequence[str], arguments: Sequence[str], jobs: int, end: float) -> Iterator[Row]:
    """Yield the row of each name as `python -m module NAME --one ARGUMENTS` prints it, `jobs` at once, until `end` (time.monotonic()).

    What has not ended by then is ended; what has not begun SHORTEST seconds before is not begun. Both have rows that say so.
    """
    with ThreadPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(_row, module, name, arguments, end) for name in names]):
            yield future.result()


def _row(module: str, name: str, arguments: Sequence[str], end: float) -> Row:
    most = end - time.monotonic()
    if most < SHORTEST:
        return {"module": name, "verdict": "", "reason": "not begun: the time was up"}
    command = [sys.executable, "-m", module, name, "--one", *arguments]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env={**os.environ}, start_new_session=True)
        try:
            printed, _ = process.communicate(timeout=most)
            row: Row = json.loads(printed.splitlines()[-1])
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            row = {"verdict": "ERROR", "reason": f"cut short after {most:.0f} s"}
        except (ValueError, IndexError):
            errors.seek(0)
            row = {"verdict": "ERROR", "reason": (errors.read().strip().splitlines() or ["nothing was printed"])[-1][:MOST_REASON]}
    return {"module": name, **row}


def keep(out: Path, table: str, found: Sequence[Row], page: str) -> None:
    """Write rows.jsonl, without phases, and README.md."""
    out.mkdir(parents=True, exist_ok=True)
    kept = [{"table": table, **{key: value for key, value in row.items() if key != "phases"}} for row in found]
    (out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in kept))
    (out / "phases.txt").write_text("".join("\n    ".join([row["module"], *row.get("phases", ())]) + "\n" for row in found))
    (out / "README.md").write_text(page)


def conditions(device: str, command: str) -> str:
    """Return a paragraph of where and by which command."""
    machine = f"{facts.machine_name(device)}; torch {metadata.version('torch')}, Python {platform.python_version()}, {time.strftime('%Y-%m-%d')}."
    return textwrap.fill(f"{machine} `{command}`.", 100, break_long_words=False, break_on_hyphens=False)
