"""Programs of one case beside each other: error, time, why one failed; and the processes that compile them first."""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernels.row_file import run
from benchmarks.timing.events import batch

Row = dict[str, Any]


def options_of(doc: str | None, seconds: float) -> argparse.Namespace:
    """Return the options of a benchmark whose programs `compile_all` compiles first."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--cases", default="", help="parts of names, divided by |")
    parser.add_argument("--ways", default="chosen", choices=("chosen", "all"))
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--seconds", type=float, default=seconds, help="no case is begun after that many")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--compile-part", default="", help=argparse.SUPPRESS)
    parser.add_argument("--dry", action="store_true")
    return parser.parse_args()


def cases_of(cases: Iterable[str], options: argparse.Namespace) -> list[str]:
    """Return the names of the cases that the options want."""
    return [name for name in cases if not options.cases or any(part in name for part in options.cases.split("|"))]


def module(path: Path) -> Any:
    """Return the module of this file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def compile_all(name: str, jobs: int, seconds: float) -> None:
    """Call the benchmark `name` anew, `jobs` times, with its own options and `--compile-part I/JOBS`; whichever is not done in time is ended."""
    start = time.monotonic()
    command = [sys.executable, "-m", name, *sys.argv[1:]]
    running = [subprocess.Popen([*command, "--compile-part", f"{part}/{jobs}"], stdout=subprocess.DEVNULL) for part in range(jobs)]
    for job in running:
        with suppress(subprocess.TimeoutExpired):
            job.wait(max(start + seconds - time.monotonic(), 0.1))
        if job.poll() is None:
            job.kill()
    print(f"compiled in {time.monotonic() - start:.1f} s", flush=True)


def call_once(
    todo: Sequence[tuple[str, Any, bool]], options: argparse.Namespace, called: Callable[[str, bool], Any],
    within: Callable[[str], AbstractContextManager[Any]] = lambda name: nullcontext(),
) -> None:  # fmt: skip
    """Call each program of `--compile-part` once, so that it is compiled; what fails says so when it is timed.

    `todo`: a case, a way of ours, and whether torch.compile's program is meant instead; `called`: what makes both of a case, for which of them;
    `within`: the settings of a case.
    """
    part, parts = map(int, options.compile_part.split("/"))
    for name, way, baseline in todo[part::parts]:
        with suppress(Exception), within(name):
            programs = called(name, baseline)
            (programs.baselines()["compile"] if baseline else partial(programs.ours, way))()


def beside_others(
    benchmark: str, kernel: str, text: str, cases: Iterable[str], options: argparse.Namespace,
    compiled: Callable[[list[str], argparse.Namespace, Any], None], rows: Callable[[str, argparse.Namespace, Any], Iterable[Row]],
) -> None:  # fmt: skip
    """Write the template's text, compile all cases' programs in processes of their own, then write and print the rows of one case after another.

    `benchmark`: its module; `kernel`: names the template; `compiled`: calls the programs of `--compile-part` once; `rows`: of a case. Both are given
    the template as a module.
    """
    names = cases_of(cases, options)
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out.resolve() / f"{kernel}_text.py"
    if options.compile_part:
        compiled(names, options, module(path))
        return
    path.write_text(text)
    start = time.monotonic()
    if not options.dry:
        compile_all(benchmark, options.jobs, 0.6 * options.seconds)
    template = module(path)
    todo = [({"case": name}, partial(rows, name, options, template)) for name in names]
    run(todo, options.out, options.seconds - (time.monotonic() - start))


def error(seen: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the root mean square of the difference, over that of the exact values."""
    return float((seen.double() - exact).square().mean().sqrt() / exact.square().mean().sqrt())


def timed(row: Row, name: str, call: Callable[[], torch.Tensor], exact: torch.Tensor, dry: bool, part: Any = (0, 0)) -> None:
    """Add a program's milliseconds and the error of a part of its result to the row, or why there are none."""
    try:
        row["error"][name] = error(call()[part], exact)
        if not dry:
            once = max(batch(call, 1), 1e-6)
            once = max(batch(call, max(1, min(20, int(0.005 / once)))), 1e-6)
            count = max(1, min(200, int(0.02 / once)))
            row["ms"][name] = round(1e3 * statistics.median(batch(call, count) for _ in range(3)), 4)
    except Exception as failure:  # one program must not end the others
        row["failed"][name] = f"{type(failure).__name__}: {failure}"[:150]


def in_turns(row: Row, calls: Mapping[str, Callable[[], Any]], rounds: int = 5) -> None:
    """Add the programs' milliseconds to the row, the median of `rounds` batches of each, a batch of one after a batch of the other.

    At its power limit a GPU is slower after others' products than after a pause: torch's attention (2,048 rows, heads of 128) took 0.43 ms on an H200
    after a kernel that mostly waited, and 0.49 after five that were as busy as itself, when one program was timed after the other.
    """
    once = {name: max(batch(call, 3), 1e-6) for name, call in calls.items()}
    counts = {name: max(1, min(200, int(0.01 / one))) for name, one in once.items()}
    taken = [{name: batch(call, counts[name]) for name, call in calls.items()} for _ in range(rounds)]
    row["ms"] |= {name: round(1e3 * statistics.median(each[name] for each in taken), 4) for name in calls}


def in_a_graph(call: Callable[[], object]) -> torch.cuda.CUDAGraph:
    """Return a CUDA graph of a call: its replay costs the host little, so that batches of it take what the GPU does."""
    graph, stream = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        call()
    torch.cuda.current_stream().wait_stream(stream)
    with torch.cuda.graph(graph):
        call()
    return graph


def said(row: Row, flops: float, own_error: float, more: Row | None = None) -> list[Row]:
    """Return what follows from a row as two: our fastest program beside the others, and all shapes of a block with what failed.

    "gain" is over the fastest other program whose error is at most 2.5 of `own_error`.
    """
    ms, errors = row["ms"], row["error"]
    ours = [name for name in errors | row["failed"] if name[0].isdigit() or name == "ours"]
    own = [name for name in ours if name in ms]
    others = [name for name in ms if name not in own]
    about = {key: row[key] for key in ("case", "device", "torch")}
    found: Row = {"table": row["table"], **about, "tflop": round(row["tflop"], 5), "error of eager": f"{own_error:.1e}"}
    if own:
        best = min(own, key=ms.__getitem__)
        found |= {"shape": best, "ms": ms[best], "TFLOP/s": round(flops / ms[best] / 1e9, 1), "times its error": round(errors[best] / own_error, 2)}
        near = [name for name in others if errors[name] <= 2.5 * own_error]
        if near:
            beside = min(near, key=ms.__getitem__)
            found |= {"beside": beside, "gain": round(ms[beside] / ms[best], 3)}
    found |= {f"{name} ms": ms[name] for name in others}
    shapes = {name: ms.get(name, "") for name in ours} | row["failed"]
    times = {name: round(errors[name] / own_error, 2) for name in errors}
    return [found | (more or {}), {"table": f"{row['table']}-shapes", "case": row["case"], "ms": shapes, "times eager's error": times}]
