"""Twenty plain kernels, and what the rewrites alone make of them: verified, and timed beside the text as it was given.

    python -m benchmarks.cuda.plain20 --target cuda --out OUT [--seconds 140] [--jobs 12] [--kernels row_sum,matmul] [--probe] [--dry]

Each kernel is a task of the cuda domain; the search is the ladder, no model is asked. `--probe` times single rewrites by CUDA events in one process
instead, without the verifier, to see which of them gain; `--dry` does either at small sizes on the CPU.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import math
import tempfile
import time
import traceback
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cuda.plain import Plain, grids, products, reductions, rows
from warpwright import bench, domains
from warpwright.base import Action
from warpwright.run import Settings

KERNELS: tuple[Plain, ...] = (*rows.KERNELS, *reductions.KERNELS, *grids.KERNELS, *products.KERNELS)


def write(folder: Path, kernels: Sequence[Plain], target: str) -> list[Path]:
    """Write the tasks at the sizes of a target; return their files."""
    paths = []
    for kernel in kernels:
        path = folder / f"{kernel.name}.cu"
        path.write_text(kernel.cuda.lstrip())
        path.with_name(f"{kernel.name}_task.py").write_text(kernel.task_text(target))
        paths.append(path)
    return paths


def searched(paths: Sequence[Path], target: str, options: argparse.Namespace, out: Path) -> Iterator[dict[str, Any]]:
    """Yield a row for each task, as the search ends."""
    settings = Settings(device=target, budget=f"{options.seconds}s,{options.proposals}", timing_seconds=options.timing)
    plan = bench.Plan(str(out / "archive.db"), jobs=options.jobs, deadline=time.time() + options.seconds, programs=str(out / "programs"))
    began = time.monotonic()
    done: list[dict[str, Any]] = []

    def tell(line: dict[str, Any]) -> None:
        done.append(line)
        speedup = _speedup(line)
        spent, reason = time.monotonic() - began, line.get("reason") or ""
        print(f"{spent:6.1f} s  {line['task']:20} {line['status']:9} {speedup:7.2f}x  {reason}"[:220], flush=True)

    bench.run_bench(paths, settings, plan, tell)
    for line in done:
        yield {"table": "plain20", **line}


def _speedup(line: dict[str, Any]) -> float:
    value = (line.get("speedup") or {}).get("eager")
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 1.0


# --- the probe -------------------------------------------------------------------------------------------------------------------------


def recipes(space: Any) -> list[tuple[Action, ...]]:
    """Return the given text, what is always done, and on top of that each single rewrite, and block shapes and unrolling on some of those."""
    base: tuple[Action, ...] = ()
    for _ in range(4):
        step = next((a for a in space.actions(space.replay(base)) if space.traits(a).legality == "E"), None)
        if step is None:
            break
        base = (*base, step)
    singles = [(*base, action) for action in space.actions(space.replay(base))]
    more = []
    for recipe in singles:
        if space.traits(recipe[-1]).tried_first:
            following = [action for action in space.actions(space.replay(recipe)) if action.technique in ("unroll", "fast_math")]
            more += [(*recipe, action) for action in following]
    return list(dict.fromkeys([(), base, *singles, *more]))


def probed(path: Path, target: str, pool: concurrent.futures.Executor, seconds: float) -> list[dict[str, Any]]:
    """Return a row for each recipe of a task: its time, and its error against the reference beside that of the text as given."""
    import torch

    task = domains.describe(path)
    space = domains.space(task, "cuda")
    modules = {}
    for recipe in recipes(space):
        module = types.ModuleType("candidate")
        exec(compile(space.candidate(recipe).source.text, path.name, "exec"), module.__dict__)
        modules[recipe] = module
    device = torch.device("cuda:0" if target == "cuda" else "cpu")
    builds = {recipe: pool.submit(module._kernels_on, device) for recipe, module in modules.items()}
    torch.manual_seed(0)
    with torch.device(device):
        inputs = next(iter(modules.values())).get_inputs()
    wide = [x.double() if x.is_floating_point() else x for x in inputs]
    exact = _flat(next(iter(modules.values())).reference(*wide))
    made, given = [], 0.0
    end = time.monotonic() + seconds
    for recipe, module in modules.items():
        row: dict[str, Any] = {"table": "probe", "task": path.stem, "recipe": [str(action) for action in recipe]}
        try:
            builds[recipe].result(timeout=120)
            if time.monotonic() > end and recipe:
                row["note"] = "not begun"
                continue
            model = module.ModelNew()
            outputs = _flat(model(*[x.clone() for x in inputs]))
            row["error"] = max(_error(seen, want) for seen, want in zip(outputs, exact, strict=True))
            row["us"] = _microseconds(lambda m=model: m(*inputs), target)
            given = given or row["us"]
            row["speedup"] = round(given / row["us"], 3)
        except Exception:
            row["failure"] = traceback.format_exc()[-1500:]
        made.append(row)
    return made


def _flat(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def _error(seen: Any, want: Any) -> float:
    scale = float(want.double().abs().max()) or 1.0
    return float((seen.double() - want.double()).abs().max()) / scale


def _microseconds(call: Any, target: str) -> float:
    import torch

    call()
    if target != "cuda":
        began = time.perf_counter()
        call()
        return (time.perf_counter() - began) * 1e6
    flush = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    times = []
    for _ in range(7):
        flush.zero_()
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(100_000)  # so that the launch is under way before the first event
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) * 1e3)
    return sorted(times)[len(times) // 2]


def probe(paths: Sequence[Path], target: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of every task."""
    end = time.monotonic() + options.seconds
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for path in paths:
            try:
                made = probed(path, target, pool, max(1.0, end - time.monotonic()))
            except Exception:
                made = [{"table": "probe", "task": path.stem, "failure": traceback.format_exc()[-1500:]}]
            best = max(made, key=lambda row: row.get("speedup", 0.0))
            gain, given = f"{best.get('speedup', 0.0):8.2f}x", f"{made[0].get('us', 0.0):9.1f} us"
            print(f"{end - time.monotonic():6.1f} s left  {path.stem:20} {gain} of {given}  {best.get('recipe')}", flush=True)
            for row in made:
                if "failure" in row:
                    print("   ", row.get("recipe"), row["failure"].splitlines()[-1][:200], flush=True)
            yield from made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the suite and write its rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--out", required=True, help="folder for rows.jsonl")
    parser.add_argument("--seconds", type=float, default=140.0, help="no candidate is begun after that many (%(default)s)")
    parser.add_argument("--proposals", type=int, default=14, help="candidates of a task (%(default)s)")
    parser.add_argument("--timing", type=float, default=1.0, help="seconds for which a candidate is timed at most (%(default)s)")
    parser.add_argument("--jobs", type=int, default=12, help="tasks, or builds, at once (%(default)s)")
    parser.add_argument("--kernels", default="", help="only these, by name")
    parser.add_argument("--probe", action="store_true", help="time single rewrites, without the verifier")
    parser.add_argument("--dry", action="store_true", help="on the CPU at its small sizes")
    options = parser.parse_args(arguments)
    target = "cpu" if options.dry else options.target
    chosen = [kernel for kernel in KERNELS if not options.kernels or kernel.name in options.kernels.split(",")]
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, open(out / "rows.jsonl", "a") as file:
        paths = write(Path(folder), chosen, target)
        done = []
        for row in probe(paths, target, options) if options.probe else searched(paths, target, options, out):
            done.append(row)
            file.write(json.dumps(row, default=str) + "\n")
            file.flush()
    if not options.probe:
        speedups = [_speedup(row) for row in done]
        mean = math.exp(sum(map(math.log, speedups)) / len(speedups)) if speedups else 0.0
        print(f"{len(done)} kernels, geometric mean {mean:.2f}x of the text as given")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
