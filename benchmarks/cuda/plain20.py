"""Twenty plain kernels, and what the rewrites alone make of them: verified, and timed beside the text as it was given.

    python -m benchmarks.cuda.plain20 --prepare                                        anywhere: writes plain20.json.gz, the programs; needs libclang
    python -m benchmarks.cuda.plain20 --seconds 125 --out OUT                          on the GPU

Each kernel is a task of the cuda domain; no model is asked. Three parts share the seconds: the probe times programs by CUDA events in one process and
compares them with the reference; the winner of each kernel goes through the verifier (`audit`, in processes of its own); in what is left winners go
through verifier and timer once more, beside the text as given (`timed`). `--parts` picks some; `--dry` does them at small sizes on the CPU.
`--winners` verifies and times what an earlier probe found.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import gzip
import json
import math
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.cuda.plain import Plain, grids, products, reductions, rows
from warpwright import bench, domains, jobs
from warpwright.archive import Archive
from warpwright.base import Action, Budget, Candidate, Task, target_of
from warpwright.domains.cuda import program
from warpwright.errors import TaskError
from warpwright.loop import Course, optimize
from warpwright.run import Settings, open_evaluator
from warpwright.search.moves import Proposer, ask
from warpwright.space import Space, Traits
from warpwright.templates.device import parameters
from warpwright.timing.device_lock import DeviceLock

PREPARED = Path(__file__).with_name("plain20.json.gz")

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


def searched(paths: Sequence[Path], target: str, options: argparse.Namespace, out: Path, seconds: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each task, as its programs are judged."""
    budget = f"{max(1.0, seconds):.0f}s,{options.proposals} proposals"
    settings = Settings(device=target, budget=budget, timing_seconds=options.timing, regime=options.regime)
    end, archive = time.time() + seconds, str(out / "archive.db")
    plan = bench.Plan(archive, jobs=options.jobs, deadline=end, programs=str(out / "programs"), run="benchmarks.cuda.plain20:job")
    began = time.monotonic()
    done: list[dict[str, Any]] = []

    def tell(line: dict[str, Any]) -> None:
        done.append(line)
        speedup, spent, reason = _speedup(line), time.monotonic() - began, line.get("reason") or ""
        print(f"{spent:6.1f} s  timed {line['task']:20} {line['status']:9} {speedup:7.2f}x  {line.get('candidates')} {reason[-300:]}", flush=True)

    bench.run_bench(paths, settings, plan, tell)
    for line in done:
        yield {"table": "plain20", **line}


def job(data: dict[str, Any]) -> dict[str, Any]:
    """Judge a task's prepared programs, in their order; return the task's line."""
    given = bench.Job.from_json(data)
    began = time.monotonic()
    try:
        task = given.describe()
        with Archive(given.archive) as archive, open_evaluator(given.settings, task) as evaluator:
            stop = None if given.deadline is None else lambda: time.time() > given.deadline  # type: ignore[operator]
            space = prepared_space(task, json.loads(recipes_file(Path(given.path)).read_text()), given.settings.device)
            outcome = optimize(task, space, evaluator, in_order, Budget.parse(given.settings.budget), archive, Course(should_stop=stop))
            failed = [f"{[str(a) for a in r.candidate.actions]}: {r.detail[-300:]}" for r in outcome.records if r.status not in ("ok", "unscored")]
            return {**bench.outcome_line(outcome), "failed": failed, "seconds": round(time.monotonic() - began, 3)}
    except Exception:
        return bench.plain_line(Path(given.path).stem, "crashed", traceback.format_exc()[-1500:], time.monotonic() - began)


def recipes_file(path: Path) -> Path:
    """Return where a task's prepared programs lie."""
    return path.with_suffix(".recipes.json")


@dataclass(frozen=True)
class Listed:
    """A technique that is legal where a list of programs says so. Its IR is the recipe so far."""

    name: str
    programs: tuple[tuple[Action, ...], ...]
    traits: Traits = field(default_factory=lambda: Traits("S"))

    def sites(self, ir: tuple[Action, ...]) -> Iterator[Action]:
        """Yield what the list goes on with."""
        after = (one[len(ir)] for one in self.programs if len(one) > len(ir) and one[: len(ir)] == ir)
        yield from dict.fromkeys(action for action in after if action.technique == self.name)

    def apply(self, ir: tuple[Action, ...], action: Action) -> tuple[Action, ...]:
        """Return the longer recipe."""
        return (*ir, action)


def prepared_space(task: Task, programs: Sequence[dict[str, Any]], device: str) -> Space[tuple[Action, ...]]:
    """Return the space of a task's prepared programs: no text is rewritten, so no parser is needed."""
    by_recipe = {tuple(map(Action.parse, one["recipe"])): one for one in programs}
    names = dict.fromkeys(action.technique for recipe in by_recipe for action in recipe)
    python = program.texts(task)[1]

    def lower(recipe: tuple[Action, ...], actions: tuple[Action, ...]) -> Candidate:
        one = by_recipe[recipe]
        return program.candidate(task, python, one["text"], tuple(one["flags"]), target_of(device), actions)

    return Space((), tuple(Listed(name, tuple(by_recipe)) for name in names), lower, writing=None) if names else Space((), (), lower)


def in_order(space: Space[Any], rng: Random, batch: int) -> Proposer:
    """Propose every program in the order of the list: the recipe of one is in no other's way."""
    recipes: list[tuple[Action, ...]] = list(dict.fromkeys(one for technique in space.techniques for one in technique.programs))  # type: ignore[attr-defined]
    yield from ask([one for one in recipes if one], batch)


def _speedup(line: dict[str, Any]) -> float:
    value = (line.get("speedup") or {}).get("eager")
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 1.0


# --- the probe -------------------------------------------------------------------------------------------------------------------------


def recipes(space: Any) -> list[tuple[Action, ...]]:
    """Return, likeliest first: what is always done with each great rewrite on top, and smaller ones on those; then the smaller ones alone."""
    base: tuple[Action, ...] = ()
    for _ in range(4):
        step = next((a for a in space.actions(space.replay(base)) if space.traits(a).legality == "E"), None)
        if step is None:
            break
        base = (*base, step)
    singles = [(*base, action) for action in space.actions(space.replay(base)) if action.technique != "operate"]
    whole = [(action,) for action in space.actions(space.start) if action.technique == "operate"]
    great = [recipe for recipe in singles if space.traits(recipe[-1]).tried_first]
    more = [
        (*recipe, action)
        for recipe in great
        for action in space.actions(space.replay(recipe))
        if action.technique in ("unroll", "fast_math") and action.technique != recipe[-1].technique
    ]
    small = [recipe for recipe in singles if recipe not in great]
    pairs = [(*recipe, action) for recipe in small if recipe[-1].technique == "fast_math" for action in space.actions(space.replay(recipe))]
    fast = [recipe for recipe in more if recipe[-1].technique == "fast_math"]
    order = [*whole, *great, *fast, *small, *more, *pairs] if great else [*whole, base, *small, *pairs]
    return list(dict.fromkeys([*order, base, ()]))


def prepare(paths: Sequence[Path], file: Path, target: str = "cuda") -> None:
    """Write every program of every task to a JSON file."""
    made: dict[str, list[dict[str, Any]]] = {}
    for path in paths:
        space = domains.space(domains.describe(path), target)
        programs = [(recipe, space.replay(recipe)) for recipe in recipes(space)]
        made[path.stem] = [{"recipe": [str(a) for a in recipe], "text": plan.text, "flags": list(plan.flags)} for recipe, plan in programs]
        print(f"{path.stem:20} {len(made[path.stem])} programs", flush=True)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(gzip.compress(json.dumps(made).encode(), mtime=0))


Beside = Callable[[str, Sequence[Any], Sequence[Any], Callable[[Callable[[], Any]], float]], dict[str, Any]]
"""Kernel, inputs, outputs and a clock -> what else is to be said of it in the row of the text as given."""


def probed(
    path: Path, target: str, modules: dict[tuple[Action, ...], types.ModuleType], builds: dict[int, Any], beside: Beside | None = None
) -> list[dict[str, Any]]:
    """Return a row for each recipe of a task: its time, and its error against the reference beside that of the text as given."""
    import torch

    first = next(iter(modules.values()))
    torch.manual_seed(0)
    with torch.device("cuda:0" if target == "cuda" else "cpu"):
        inputs = first.get_inputs()
    exact = _flat(first.reference(*[x.double() if x.is_floating_point() else x for x in inputs]))
    made, given = [], 0.0
    for recipe, module in modules.items():
        row: dict[str, Any] = {"table": "probe", "task": path.stem, "recipe": [str(action) for action in recipe]}
        made.append(row)
        try:
            builds[id(module)].result(timeout=60)
            if module._kernels_on.cache_info().currsize == 0:
                row["note"] = "not built in time"
                continue
            model = module.ModelNew()
            outputs = _flat(model(*[x.clone() for x in inputs]))
            row["error"] = max(_error(seen, want) for seen, want in zip(outputs, exact, strict=True))
            row["us"] = _microseconds(lambda m=model: m(*inputs), target)
            given = given or row["us"]
            row["speedup"] = round(given / row["us"], 3)
        except Exception:
            row["failure"] = traceback.format_exc()[-1500:]
    if target == "cuda":
        made[0]["reference_us"] = _microseconds(lambda: first.reference(*inputs), target)
        best = max(made, key=lambda row: row.get("speedup", 0.0))
        best["kernels"] = kernel_times(list(modules.values())[made.index(best)], inputs)
    if beside is not None:
        made[0] |= beside(path.stem, inputs, exact_as(exact, inputs), lambda call: _microseconds(call, target))
    return made


def kernel_times(module: types.ModuleType, inputs: Sequence[Any]) -> dict[str, Any]:
    """Return how long each kernel of one call of a built program takes, in microseconds, as CUPTI has it; why not, where it has nothing."""
    import torch

    try:
        model = module.ModelNew()
        model(*inputs)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
            model(*inputs)
            torch.cuda.synchronize()
        return {event.key[:60]: [event.count, round(event.device_time_total, 1)] for event in profile.key_averages() if event.device_time_total}
    except Exception as error:
        return {"failure": str(error)[:300]}


def exact_as(exact: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Return outputs in the inputs' precision, for their sizes."""
    real = next((x.dtype for x in inputs if x.is_floating_point()), None)
    return [x.to(real) if x.is_floating_point() and real is not None else x for x in exact]


def winners_of(rows_: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the recipe of the fastest right program of each task: one that errs at most twice as much as the text as given."""
    found: dict[str, list[str]] = {}
    for task in dict.fromkeys(row["task"] for row in rows_):
        timed = [row for row in rows_ if row["task"] == task and "us" in row]
        if timed:
            allowed = 2 * timed[0]["error"] + 1e-6
            found[task] = min((row for row in timed if row["error"] <= allowed), key=lambda row: row["us"])["recipe"]
    return found


def as_listed(recipe: Sequence[str]) -> list[str]:
    """Return a recipe without the parameters that have become their template's defaults since it was timed: no program names them any more."""
    return [str(_undefaulted(Action.parse(one))) for one in recipe]


def _undefaulted(action: Action) -> Action:
    template = dict(action.params).get("template")
    defaults = {name.removeprefix("WW_"): values[0] for name, values in parameters(str(template)).items()} if template else {}
    return replace(action, params=tuple((name, value) for name, value in action.params if name not in defaults or defaults[name] != value))


def _flat(outputs: Any) -> list[Any]:
    return list(outputs) if isinstance(outputs, tuple | list) else [outputs]


def _error(seen: Any, want: Any) -> float:
    scale = float(want.double().abs().max()) or 1.0
    return float((seen.double() - want.double()).abs().max()) / scale


def _microseconds(call: Any, target: str) -> float:
    import torch

    call()
    if target != "cuda":
        return min(map(_host_microseconds, [call] * 15))  # neighbours on the machine only add
    flush = torch.zeros(64 << 20, dtype=torch.int32, device="cuda")
    times = []
    for _ in range(7):
        flush.max()  # read, not written: what a write leaves in the cache is written back at the expense of what is timed
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda._sleep(2_000_000)  # a millisecond: the launches queue by then, although compilers keep the CPU busy
        first.record()
        call()
        last.record()
        torch.cuda.synchronize()
        times.append(first.elapsed_time(last) * 1e3)
    return sorted(times)[len(times) // 2]


def _host_microseconds(call: Any) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e6


def probe(
    paths: Sequence[Path], target: str, options: argparse.Namespace, end: float, earlier: dict[str, list[str]], beside: Beside | None = None
) -> Iterator[dict[str, Any]]:
    """Yield the rows of every task; every build is begun at once, the likeliest programs of all tasks first."""
    with concurrent.futures.ThreadPoolExecutor(options.builds) as pool:
        tasks = {path: modules_of(path, target, options.most, earlier.get(path.stem)) for path in paths}
        builds: dict[int, concurrent.futures.Future[Any]] = {}
        device = "cuda:0" if target == "cuda" else "cpu"
        for turn in range(max(map(len, tasks.values()))):
            for modules in tasks.values():
                if turn < len(modules):
                    module = list(modules.values())[turn]
                    builds[id(module)] = pool.submit(_built, module, device, end)
        for path, modules in tasks.items():
            try:
                for module in modules.values():
                    concurrent.futures.wait([builds[id(module)]], timeout=60)
                with DeviceLock(device).exclusive() if target == "cuda" else contextlib.nullcontext():
                    made = probed(path, target, modules, builds, beside)
            except Exception:
                made = [{"table": "probe", "task": path.stem, "failure": traceback.format_exc()[-1500:]}]
            best = max(made, key=lambda row: row.get("speedup", 0.0))
            gain, given = f"{best.get('speedup', 0.0):8.2f}x", f"{made[0].get('us', 0.0):9.1f} us"
            print(f"{end - time.monotonic():6.1f} s left  {path.stem:20} {gain} of {given}  {best.get('recipe')}", flush=True)
            for row in made:
                if "failure" in row:
                    print("   ", row.get("recipe"), row["failure"].strip().splitlines()[-1][:200], flush=True)
            yield from made


def _built(module: Any, device: str, end: float) -> None:
    import torch

    if time.monotonic() < end:
        module._kernels_on(torch.device(device))


def modules_of(path: Path, target: str, most: int, winner: Sequence[str] | None = None) -> dict[tuple[Action, ...], types.ModuleType]:
    """Return the programs of a task as modules: the text as given, then so many of the likeliest, an earlier winner among them."""
    task = domains.describe(path)
    space = prepared_space(task, json.loads(recipes_file(path).read_text()), target)
    listed = dict.fromkeys(one for technique in space.techniques for one in technique.programs)  # type: ignore[attr-defined]
    recipes_ = list(filter(None, listed))
    known = tuple(map(Action.parse, winner or ()))
    if known in recipes_:
        recipes_.remove(known)
        recipes_.insert(1, known)
    modules = {}
    for recipe in [(), *recipes_][: 1 + most]:
        module = types.ModuleType("candidate")
        exec(compile(space.candidate(recipe).source.text, path.name, "exec"), module.__dict__)
        modules[recipe] = module
    return modules


def audit(paths: Sequence[Path], winners: dict[str, list[str]], target: str, jobs_: int, end: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each task: what the verifier says of its winner."""
    orders = [{"path": str(path), "recipe": winners[path.stem], "target": target, "end": end} for path in paths if path.stem in winners]
    began = time.monotonic()
    for position, result in jobs.map_jobs("benchmarks.cuda.plain20:audited", orders, jobs_, "local"):
        name = Path(orders[position]["path"]).stem  # type: ignore[arg-type]
        row = {"status": "crashed", "reason": str(result)} if isinstance(result, Exception) else result
        print(f"{time.monotonic() - began:6.1f} s  audit {name:20} {row['status']:9} {row.get('reason', '')[-200:]}", flush=True)
        yield {"table": "audit", "task": name, "recipe": winners[name], **row}


def audited(order: dict[str, Any]) -> dict[str, Any]:
    """Put one program through the verifier."""
    from warpwright.verifier import verify

    if time.time() > order["end"]:
        return {"status": "not begun"}
    began = time.monotonic()
    try:
        path = Path(order["path"])
        task = domains.describe(path)
        space = prepared_space(task, json.loads(recipes_file(path).read_text()), order["target"])
        candidate = space.candidate([Action.parse(text) for text in order["recipe"]])
        build, verdict = verify.audit(task, candidate.source, "cuda:0" if order["target"] == "cuda" else "cpu")
        said: dict[str, Any] = {"status": verdict.status, "reason": verdict.reason or ("" if build.ok else build.log[-1000:]), "case": verdict.case}
        if verdict.error is not None and verdict.error_reference is not None:
            said |= {"error": verdict.error.max, "error_of_the_original": verdict.error_reference.max}
    except TaskError as error:
        said = {"status": "no task", "reason": str(error)}
    except Exception:
        said = {"status": "crashed", "reason": traceback.format_exc()[-1500:]}
    return {**said, "seconds": round(time.monotonic() - began, 1)}


def main(arguments: Sequence[str] | None = None, kernels: Sequence[Plain] = KERNELS, prepared: Path = PREPARED, beside: Beside | None = None) -> int:
    """Run a suite of kernels and write its rows."""
    options = parsed(arguments, prepared)
    target = "cpu" if options.dry else options.target
    chosen = [kernel for kernel in kernels if not options.kernels or kernel.name in options.kernels.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        if options.prepare:
            prepare(write(Path(folder), chosen, target), Path(options.prepared), target)
            return 0
        if not options.out:
            raise SystemExit("expected --out FOLDER, or --prepare")
        return run(write(Path(folder), chosen, target), target, options, beside)


def parsed(arguments: Sequence[str] | None, prepared: Path = PREPARED) -> argparse.Namespace:
    """Return the options of a run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--target", choices=("cpu", "cuda"), default="cuda")
    parser.add_argument("--out", help="folder for rows.jsonl")
    parser.add_argument("--prepare", action="store_true", help="write the programs, and run none of them")
    parser.add_argument("--prepared", metavar="FILE", default=str(prepared), help="what --prepare writes (%(default)s)")
    parser.add_argument("--regime", default="", help="the verdict's regime: single or stream (the target's own)")
    parser.add_argument("--seconds", type=float, default=125.0, help="nothing is begun after that many (%(default)s)")
    parser.add_argument("--proposals", type=int, default=14, help="candidates of a task (%(default)s)")
    parser.add_argument("--timing", type=float, default=0.7, help="seconds for which a candidate is timed at most (%(default)s)")
    parser.add_argument("--jobs", type=int, default=4, help="tasks under the timer at once; twice as many under the verifier alone (%(default)s)")
    parser.add_argument("--builds", type=int, default=16, help="builds at once (%(default)s)")
    parser.add_argument("--most", type=int, default=13, help="programs of a kernel that the probe builds and times (%(default)s)")
    parser.add_argument("--kernels", default="", help="only these, by name")
    told = "rows.jsonl of earlier probes, whose winners are tried early, or judged, where they are prepared"
    parser.add_argument("--winners", type=Path, nargs="+", default=[], help=told)
    parser.add_argument("--parts", default="probe,audit,timed", help="what is done (%(default)s)")
    parser.add_argument("--dry", action="store_true", help="on the CPU at its small sizes")
    return parser.parse_args(arguments)


def run(paths: Sequence[Path], target: str, options: argparse.Namespace, beside: Beside | None = None) -> int:
    """Run the parts; write the rows as they come."""
    parts = options.parts.split(",")
    shares = {part: share / sum(SHARES[one] for one in parts) for part, share in SHARES.items()}
    programs = json.loads(gzip.decompress(Path(options.prepared).read_bytes()))
    for path in paths:
        recipes_file(path).write_text(json.dumps(programs[path.stem]))
    out, began = Path(options.out), time.monotonic()
    out.mkdir(parents=True, exist_ok=True)
    made: list[dict[str, Any]] = []
    with open(out / "rows.jsonl", "a") as file:

        def keep(row: dict[str, Any]) -> None:
            made.append(row)
            file.write(json.dumps(row, default=str) + "\n")
            file.flush()

        earlier = _earlier(options.winners)
        if "probe" in parts:
            for row in probe(paths, target, options, began + shares["probe"] * options.seconds, earlier, beside):
                keep(row)
        listed = {path.stem: [one["recipe"] for one in programs[path.stem]] for path in paths}
        winners = {name: recipe for name, recipe in {**earlier, **winners_of(made)}.items() if recipe in listed.get(name, [])}
        gains = [float(row["speedup"]) for row in made if row.get("recipe") == winners.get(row["task"]) and "speedup" in row]
        print(f"probe: {len(gains)} kernels, geometric mean {_mean(gains):.2f}x of the text as given", flush=True)
        if "audit" in parts:
            share = shares["audit"] + (shares["probe"] if "probe" in parts else 0.0)
            end = time.time() + began + share * options.seconds - time.monotonic()
            pace = {row["task"]: row.get("us", 0.0) for row in [*made, *_rows(options.winners)] if row["table"] == "probe" and not row.get("recipe")}
            for row in audit(sorted(paths, key=lambda path: -pace.get(path.stem, 0.0)), winners, target, 2 * options.jobs, end):
                keep(row)
        for path in paths:  # the winner alone is left for the timer
            if path.stem in winners:
                kept = [one for one in programs[path.stem] if one["recipe"] in ([], winners[path.stem])]
                recipes_file(path).write_text(json.dumps(kept))
        left = options.seconds - (time.monotonic() - began)
        if "timed" in parts and left > 5:
            order = sorted(paths, key=lambda path: path.stem not in winners)
            for row in searched(order, target, options, out, left):
                keep(row)
    timed = [_speedup(row) for row in made if row["table"] == "plain20" and row["status"] == "ok" and row.get("candidates")]
    print(f"timer: {len(timed)} kernels, geometric mean {_mean(timed):.2f}x of the text as given")
    return 0


def _earlier(files: Sequence[Path]) -> dict[str, list[str]]:
    """Return the winners of earlier probes, the last that has a task."""
    found: dict[str, list[str]] = {}
    for file in files:
        found |= winners_of([row for row in _rows([file]) if row["table"] == "probe"])
    return {name: as_listed(recipe) for name, recipe in found.items()}


def _rows(files: Sequence[Path]) -> list[dict[str, Any]]:
    return [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]


SHARES = {"probe": 0.34, "audit": 0.33, "timed": 0.33}
"""Of the seconds, where all parts are done."""


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
