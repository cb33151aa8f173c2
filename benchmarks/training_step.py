"""Training steps through `warpwright.optimize(backward=True)`: forward and backward of ours beside eager, torch.compile and a CUDA graph.

    python -m benchmarks.training_step [NAME ...] --out FOLDER [--device cuda] [--budget 60s] [--jobs 6] [--seconds 150]
    python -m benchmarks.training_step --dry --out FOLDER      on the CPU, at small sizes: one program each

Ten modules (benchmarks/training_modules.py), each in a process of its own, `--jobs` of them at once: one alone is timed, the others wait meanwhile.
A step is the module's results, and the gradients of its parameters and of its real inputs; verdict, speed-up and times are the judge's, over eager
and torch.compile. A CUDA graph of the step is no baseline: its results and gradients lie where the next step's will. So on a GPU four ways are timed
by hand after the verdict, in turns, on inputs that stay in place: eager and ours, each as it is (`hand_eager_ms`, `hand_ours_ms`) and as one CUDA
graph of forward and backward (`eager_graph_ms`, `ours_graph_ms`); and that the graph of ours gives what ours gives.
"""

from __future__ import annotations

import copy
import json
import statistics
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from benchmarks import front_door
from benchmarks.training_modules import EARLIER, STEPS
from warpwright.timing.device_lock import DeviceLock

ROUNDS, BATCH_SECONDS = 7, 0.02
"""Batches of each of the four ways, and about how long one takes."""

CALIBRATED = ("residual_convolutions",)
"""Never trained, it is off by more than 1 % in its own gradients on hidden inputs, and unscored without drawn, well-scaled parameters."""

Call = Callable[[], list[torch.Tensor]]
KEYS = ("module", "verdict", "speedup", "interval", "eager_ms", "compile_ms", "ours_ms", "seconds", "reason")


def step_row(name: str, budget: str, device: str, small: bool) -> front_door.Row:
    """Return the row of one training step: in this process."""
    torch.manual_seed(0)
    model, args = {**STEPS, **EARLIER}[name](small)
    by_hand = (lambda result: hand(model, result.module, args)) if device == "cuda" else lambda result: {}
    baselines = ("eager",) if small else ("eager", "compile")
    calibrate = name in CALIBRATED
    return front_door.optimized(model, args, device, by_hand, backward=True, budget=budget, baselines=baselines, calibrate=calibrate)


# --- by hand: as they are, and as CUDA graphs ----------------------------------------------------------------------------------------


def hand(model: nn.Module, new: nn.Module, args: Sequence[Any]) -> front_door.Row:
    """Return milliseconds of a step of both modules on the GPU, called and as CUDA graphs; in place of a number why there is none."""
    inputs = [arg.cuda() for arg in args]
    calls = {"hand_eager_ms": step_of(copy.deepcopy(model).cuda().train(), inputs), "hand_ours_ms": step_of(new.cuda(), inputs)}
    row: front_door.Row = {}
    with DeviceLock("cuda:0").exclusive():
        for name, key in (("hand_eager_ms", "eager_graph_ms"), ("hand_ours_ms", "ours_graph_ms")):
            try:
                calls[key] = graph_of(calls[name])
            except RuntimeError as error:
                row[key] = str(error).strip().splitlines()[0][:60]
        if "ours_graph_ms" in calls:
            row["graph_error"] = f"{farthest(calls['hand_ours_ms'](), calls['ours_graph_ms']()):.0e}"
        return {**row, **in_turns(calls)}


def step_of(module: nn.Module, inputs: Sequence[torch.Tensor]) -> Call:
    """Return the function of one step: the module's results, and the gradients of its real inputs and parameters."""
    given = [x.detach().requires_grad_() if x.is_floating_point() else x for x in inputs]
    sources = [x for x in (*given, *module.parameters()) if x.requires_grad]
    tangents: list[torch.Tensor] = []

    def step() -> list[torch.Tensor]:
        found = module(*given)
        results = [found] if isinstance(found, torch.Tensor) else list(found)
        tangents[:] = tangents or [torch.randn_like(result) for result in results]
        return [*(result.detach() for result in results), *torch.autograd.grad(results, sources, tangents)]

    return step


def graph_of(step: Call) -> Call:
    """Return a step recorded as one CUDA graph. Its results are overwritten by the next call."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = step()

    def replay() -> list[torch.Tensor]:
        graph.replay()
        return results

    return replay


def farthest(found: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> float:
    """Return the largest difference of two steps' tensors, each as a part of the largest number in it."""
    pairs = [(a.double(), b.double()) for a, b in zip(found, other, strict=True)]
    return max(((a - b).abs().max() / a.abs().max().clamp_min(1e-30)).item() for a, b in pairs)


def in_turns(calls: Mapping[str, Call]) -> front_door.Row:
    """Return the median milliseconds of a call of each, batches of calls in turns."""
    each = {name: max(1, round(BATCH_SECONDS / max(_seconds(call, 3), 1e-6))) for name, call in calls.items()}
    taken: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            taken[name].append(_seconds(call, each[name]))
    return {name: round(1000 * statistics.median(seconds), 4) for name, seconds in taken.items()}


def _seconds(call: Call, times: int) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(times):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / times


# --- the table -----------------------------------------------------------------------------------------------------------------------


def main() -> None:
    """Print and write a row a step."""
    options = front_door.command_line(__doc__ or "", [*STEPS, *EARLIER], "60s").parse_args()
    if options.one:
        print(json.dumps(step_row(options.names[0], options.budget, options.device, options.dry)))
        return

    def written(found: list[front_door.Row], conditions: str) -> None:
        front_door.keep(options.out, "training_step", found, page(found, conditions))

    front_door.table("benchmarks.training_step", options.names or list(STEPS), KEYS, options, written)


def page(found: Sequence[front_door.Row], conditions: str) -> str:
    """Return the README of the rows' folder, its table still empty."""
    faster = sum(row["verdict"] == "FASTER" for row in found)
    said = textwrap.fill(f"{faster} of {len(found)} training steps FASTER than the best of eager and torch.compile, forward and backward.", 100)
    return f"# Training steps\n\n## Conditions\n\n{conditions}\n\n## Headline\n\n{said}\n\n<!-- table: training_step -->\n<!-- end -->\n"


if __name__ == "__main__":
    from benchmarks import training_step  # so that what is pickled belongs to a module that can be imported

    training_step.main()
