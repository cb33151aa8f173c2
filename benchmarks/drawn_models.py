"""Models that a seed drew and nobody tuned for, on the CPU: are they captured, is what is written right, can a judge score them?

    python -m benchmarks.models.draw > benchmarks/models/drawn.txt                what was drawn, and how
    python -m benchmarks.drawn_models opened --out FOLDER [--table NAME]          the opened half; `aside` for the other, or names
    python -m benchmarks.drawn_models opened --seed 12 ...                        of the second draw (drawn_12.txt)
    python -m benchmarks.drawn_models NAME ... --optimize | --backward | --shapes --out FOLDER

Each model is read in a process of its own as `optimize` reads it (saved, captured, rewritten by exact rewrites, run from its text) and compared with
float64; its results are shown to the check that says whether a judge can score them. With `--optimize`, `warpwright.optimize` is given it with
drawn, well-scaled parameters, eager as baseline and no more than `--budget`, and what generates does so with the result; with `--backward` its
training step; with `--shapes` batches of 1 and 3, and half the words. A row says what came of it.
"""

from __future__ import annotations

import argparse
import copy
import json
import os
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from benchmarks.models import draw
from benchmarks.third_party import error_of, exact_steps, leaves
from warpwright.domains import graph
from warpwright.errors import WarpwrightError
from warpwright.tasks import taskfile
from warpwright.tasks.modules import saved_module
from warpwright.verifier.judge import readable

SEEDS = (10, 12, 14, 15, 16, 17)
SECONDS = 600
"""After which a model's process is given up."""


def drawn(*seeds: int) -> dict[str, tuple[str, str]]:
    """Return the half and the kind of each name that was drawn by some seeds (all)."""
    lines = [line.split() for seed in seeds or SEEDS for line in draw.list_of(seed).read_text().splitlines() if not line.startswith("#")]
    return {name: (half, kind) for half, kind, name in lines}


def called(model: torch.nn.Module, inputs: Mapping[str, Any]) -> Any:
    """Return what a call of `model` gives; an input named "0" is positional."""
    fresh = copy.deepcopy(dict(inputs))
    with torch.no_grad():
        return model(fresh["0"]) if "0" in fresh else model(**fresh)


def row_of(name: str, budget: str, how: str) -> dict[str, Any]:
    """Return one row: how it was captured, whether what was written is right, the verdict, and what became of generate()."""
    model, inputs = draw.make(drawn()[name][1], name)
    row: dict[str, Any] = {"model": name, "kind": drawn()[name][1], "inputs": " ".join(inputs), "captured": "", "operators": 0, "right": ""}
    row |= {"returns": type(called(model, inputs)).__name__}
    for step in (_captured,) if how == "path" else (_optimized,):
        try:
            row |= step(model, inputs, budget, how)
        except Exception as error:  # of whatever kind: a row says it
            traceback.print_exc()
            row |= {f"error{step.__name__}": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    return row


def _captured(model: torch.nn.Module, inputs: Mapping[str, Any], budget: str, how: str) -> dict[str, Any]:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.pt")
        args = tuple(inputs.values()) if "0" in inputs else ()
        saved_module.write(model, args, path, None if args else inputs)
        space = graph.space(taskfile.describe(path))
        row: dict[str, Any] = {"captured": "no", "reason": space.limited[:300]}
        if not space.limited:
            row = {"captured": "in parts" if space.note else "whole", "reason": space.note[:300]}
            pieces = [piece.programs[0] for piece in space.start.pieces for _ in piece.paths] if space.note else [space.start]
            row["operators"] = sum(node.op == "call_function" for piece in pieces for node in piece.graph.nodes)
            steps = exact_steps(space)
            new = taskfile.run_text(space.candidate(steps).source.text, "<drawn>", "drawn_model").ModelNew().eval()
            row["right"] = _compared(new, model, inputs)
            row |= _timed(new, model, inputs)
    row["scored"] = _scored(model, inputs)
    return row | {"capture_s": round(time.perf_counter() - began, 1)}


def _error(found: list[torch.Tensor], exact: list[torch.Tensor]) -> float:
    """Return the largest error of a result over its largest number, of the worst result; Inf and NaN have to stand where they stand."""
    if len(found) != len(exact) or not all(a.shape == b.shape for a, b in zip(found, exact, strict=True)):
        return float("inf")
    kept = [(a, b) for a, b in zip(found, exact, strict=True) if a.numel()]
    numbers = [torch.where(b.isfinite(), a, torch.where(_same(a, b), 0.0, torch.nan)) for a, b in kept]
    return error_of(numbers, [b.nan_to_num(0.0, 0.0, 0.0) for _, b in kept])


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return (a == b) | (a.isnan() & b.isnan())


def _compared(new: torch.nn.Module, model: torch.nn.Module, inputs: Mapping[str, Any]) -> str:
    """Return "yes" where each result is as near to float64 as twice the original, or 1e-6 of the largest number."""
    given = saved_module.in_order(model, *((tuple(inputs.values()), {}) if "0" in inputs else ((), inputs)))[0]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*takes the original's forward")  # such a call proves nothing
        torch.manual_seed(1)
        original = leaves(called(model, inputs))
        torch.manual_seed(1)
        found = leaves(new(*copy.deepcopy(list(given))))
        try:
            wide = {name: value.double() if value.is_floating_point() else value for name, value in inputs.items()}
            torch.manual_seed(1)
            exact = leaves(called(copy.deepcopy(model).double(), wide))
            allowed = max(2 * _error(original, exact), 1e-6)
        except RuntimeError:  # it names float32 itself
            allowed = float("nan")
        if not allowed < 1.0:  # as ProphetNet, whose masks overflow in float64 alone
            exact, allowed = original, 1e-5
    error = _error(found, exact)
    return f"{'yes' if error <= allowed else 'WRONG'} {error:.0e}"


def _scored(model: torch.nn.Module, inputs: Mapping[str, Any]) -> str:
    """Return "yes" where a judge can take what the original returns, else why not."""
    try:
        readable.expect_readable(list(inputs.values()), called(model, inputs))
    except WarpwrightError as error:
        return error.message[:200]
    return "yes"


def _timed(new: torch.nn.Module, model: torch.nn.Module, inputs: Mapping[str, Any]) -> dict[str, float]:
    """Return the medians of seven calls in turn, where the original takes over 5 ms: of text after exact rewrites alone, no search."""
    given = saved_module.in_order(model, *((tuple(inputs.values()), {}) if "0" in inputs else ((), inputs)))[0]
    seconds: dict[str, list[float]] = {"original_ms": [], "rewritten_ms": []}
    with torch.no_grad():
        for _ in range(7):
            for name, program in zip(seconds, (lambda: called(model, inputs), lambda: new(*given)), strict=True):
                began = time.perf_counter()
                program()
                seconds[name].append(1000 * (time.perf_counter() - began))
    medians = {name: round(sorted(taken)[3], 1) for name, taken in seconds.items()}
    return medians if medians["original_ms"] > 5 else {}


def _optimized(model: torch.nn.Module, inputs: Mapping[str, Any], budget: str, how: str) -> dict[str, Any]:
    import warpwright

    began = time.perf_counter()
    arguments: dict[str, Any] = {"args": tuple(inputs.values())} if "0" in inputs else {"kwargs": dict(inputs)}
    arguments |= {"calibrate": True, "baselines": ("eager",)} if how != "shapes" else {"shapes": _shapes(inputs), "baselines": ("eager",)}
    arguments |= {"backward": True} if how == "backward" else {}
    result = warpwright.optimize(model, **arguments, budget=budget, progress=False, again=True)
    line = result.line
    eager = (line["baselines"] or {}).get("eager")
    row = {"verdict": result.verdict, "speedup": round(result.speedup, 2), "eager_ms": eager and round(eager, 2)}
    row |= {"ours_ms": line["ours_ms"] and round(line["ours_ms"], 2), "candidates": line["candidates"]}
    row |= {"rejected": [" ".join(str(one).split())[:200] for one in line["rejected"][:2]], "said": result.reason[:400]}
    row |= {"optimize_s": round(time.perf_counter() - began, 1)}
    if how == "optimize":
        row |= {"same_type": type(called(result.module, inputs)) is type(called(model, inputs)), "generate": _generated(model, result.module, inputs)}
    return row


def _shapes(inputs: Mapping[str, Any]) -> list[dict[str, list[int]]]:
    """Return the example's shapes with batches of 1 and 3 and, where there are words, half the length."""
    sizes = {("x" if name == "0" else name): list(value.shape) for name, value in inputs.items()}
    found = [{name: [batch, *size[1:]] for name, size in sizes.items()} for batch in (1, 3)]
    words = {name for name in sizes if name.endswith(("ids", "mask"))}
    return found + ([{name: [2, size[1] // 2, *size[2:]] if name in words else size for name, size in sizes.items()}] if words else [])


def _generated(model: Any, new: Any, inputs: Mapping[str, Any]) -> str:
    """Return whether generate() of the result gives the original's tokens, "" where the model does not generate."""
    if not getattr(model, "can_generate", lambda: False)():
        return ""
    options = {"max_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    given = {name: value for name, value in inputs.items() if not name.startswith("decoder") and name != "token_type_ids"}
    try:
        expected = model.generate(**given, **options)
    except Exception as error:  # the library's
        return f"not by the original: {type(error).__name__}"
    try:
        return "same" if torch.equal(new.generate(**given, **options), expected) else "OTHER TOKENS"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:120]}"


def measured(name: str, budget: str, how: str, logs: Path | None) -> dict[str, Any]:
    """Return the row of a model from a process of its own, which is forked so that the packages are imported once."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder, "row.json")
        child = os.fork()
        if not child:
            _child(name, budget, how, answer, logs)
        end = time.monotonic() + SECONDS
        while os.waitpid(child, os.WNOHANG) == (0, 0):
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.2)
        if answer.exists():
            return dict(json.loads(answer.read_text()))
    return {"model": name, "kind": drawn()[name][1], "reason": f"its process gave no answer within {SECONDS} s"}


def _child(name: str, budget: str, how: str, answer: Path, logs: Path | None) -> None:
    """Write the row of a model; does not return."""
    try:
        os.chdir(answer.parent)
        if logs is not None:
            logs.mkdir(parents=True, exist_ok=True)
            sys.stdout = sys.stderr = (logs / f"{name}.{how}.txt").open("w")
        row = row_of(name, budget, how)
        answer.write_text(json.dumps(row))
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(0)


def main() -> None:
    """Print a row a model; with --out, add them to rows.jsonl as those of a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="+", help="opened, aside, or drawn names")
    parser.add_argument("--seed", type=int, choices=SEEDS, help="only those of this draw (all)")
    parser.add_argument("--budget", default="3 proposals, 120s")
    parser.add_argument("--optimize", action="store_true", help="give each to warpwright.optimize")
    parser.add_argument("--backward", action="store_true", help="training steps")
    parser.add_argument("--shapes", action="store_true", help="several shapes")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--table", default="opened", help="what the rows are called; earlier ones of the same name and model are replaced")
    parser.add_argument("--logs", type=Path, help="keep what each process printed in this folder")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    how = next((name for name in ("optimize", "backward", "shapes") if getattr(options, name)), "path")
    every = drawn(*[options.seed] if options.seed else [])
    names = [name for given in options.names for name in ([one for one in every if every[one][0] == given] or [given])]
    if any(every[name][1] == "transformers" for name in names):
        import_module("transformers")
    for name in names:
        row = {"table": options.table, **measured(name, options.budget, how, options.logs and options.logs.absolute())}
        print(json.dumps(row), flush=True)
        if options.out is not None:
            _added(row, options.out / "rows.jsonl")


def _added(row: dict[str, Any], file: Path) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    rows = [one for one in rows if (one["table"], one["model"]) != (row["table"], row["model"])]
    file.write_text("".join(json.dumps(one) + "\n" for one in [*rows, row]))


if __name__ == "__main__":
    main()
