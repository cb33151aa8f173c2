"""Launch plans on one GPU: the host's time of a call and the time from idle to idle, beside eager, torch.compile and CUDA graphs; and are they right?

    timeout -k 2 60 python -m benchmarks.kernels.launch_plan --out OUT [--seconds 50] [--dry]

A row a program in OUT/rows.jsonl: for each way of running it the microseconds of the host in calls back to back on a quick core, with an idle GPU
before them (BURST calls, so that the queue is never full), and from an idle GPU to an idle GPU behind a call of the same, medians of many and the
least. "optimized" is the plan without the checks before a call, "in turn" the same with kernels that begin when the one before has ended, "one by
one" the plan without a graph of its kernels, "one empty kernel" a launch of nothing. "back to back us" is of a call among many that are not waited
for: the host's time or the GPU's, whichever is more. A row more says of what a plan's time consists. `right`: streams, threads, changed weights, a
caller's CUDA graph, results that are kept, all compared with eager and float64. --dry: on the CPU, with translated kernels and no times.
"""

from __future__ import annotations

import argparse
import copy
import itertools
import os
import random
import statistics
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.kernels.row_file import run
from warpwright.workers import placement

BURST, BURSTS, IDLE_CALLS, LONG_BURST = 20, 60, 200, 200

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
"""
TAIL = """

def get_inputs():
    return [torch.randn(256, 1024)]


def get_init_inputs():
    return []
"""
PROGRAMS = {
    "3 kernels": ("        self.scale = nn.Parameter(torch.rand(1024))\n", """
        x = torch.softmax(x * self.scale, dim=1)
        x = (x - x.mean(dim=0)) * 3
        return F.layer_norm(torch.sigmoid(x), (1024,))
"""),
    "1 kernel": ("        self.scale = nn.Parameter(torch.rand(1024))\n", """
        x = torch.relu(x * self.scale + 1) * 2
        return torch.tanh(x) - x
"""),
    "6 kernels": ("        self.scale = nn.Parameter(torch.rand(1024))\n", """
        for _ in range(3):
            x = torch.softmax(x * self.scale, dim=1)
            x = x - x.mean(dim=0)
        return x
"""),
    "two layers": ("        self.one, self.norm, self.two = nn.Linear(1024, 1024), nn.LayerNorm(1024), nn.Linear(1024, 1024)\n", """
        return torch.softmax(self.two(F.gelu(self.norm(self.one(x)))) / 8, dim=1)
"""),
}  # fmt: skip
RECIPES = {
    "kernels": ("fuse_cuda(calls=1, block=256, vector=4, unroll=1)",),
    "launch plan": ("fuse_cuda(calls=1, block=256, vector=4, unroll=1)", "launch_plan()"),
    "kernels, CUDA graph": ("fuse_cuda(calls=1, block=256, vector=4, unroll=1)", "cuda_graph()"),
}
BASELINES = ("compile", "cuda_graph")


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=50.0, help="no program is begun after that many")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    run([({"program": name}, partial(measured, name, options)) for name in PROGRAMS], options.out, options.seconds)


def measured(name: str, options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield the rows of a program."""
    from benchmarks.kernelbench.first import baselines, rewritten
    from warpwright.base import Action
    from warpwright.run import Settings, open_space
    from warpwright.tasks import taskfile

    device = "cpu" if options.dry else "cuda"
    made, forward = PROGRAMS[name]
    file = options.out / f"{name.replace(' ', '_')}.py"
    file.write_text(f"{HEAD}{made}\n    def forward(self, x):{forward}{TAIL}")
    task = Settings(device="cuda").describe(file)
    space, reference = open_space(task, "cuda"), taskfile.load(task)
    with torch.device(device):
        model = reference.make_model().to(device)
    x = torch.randn(256, 1024, device=device)
    programs: dict[str, Any] = {"eager": model}
    spaces = {way: tuple(map(Action.parse, texts)) for way, texts in RECIPES.items() if not (options.dry and way.endswith("graph"))}
    for way, recipe in spaces.items():
        programs[way] = rewritten(space, recipe, model, reference, device, options.dry)
    beside, problems = ({}, {}) if options.dry else baselines(task, reference, model, [x], ",".join(BASELINES), device)
    programs |= beside
    row: dict[str, Any] = {"table": "right", "program": name, **problems}
    plan = programs["launch plan"]
    row |= right(plan, model, x)
    row |= {"kernels": sum(len(table.steps) for table in tables(plan)), "begin early": sum(len(table.early) for table in tables(plan))}
    if options.dry:
        yield row
        return
    calls: dict[str, Callable[[], object]] = {way: partial(program, x) for way, program in programs.items()}
    calls["launch plan, optimized"] = straight(plan, x)
    turn: dict[str, Any] = {"overlaps": lambda index: False}
    single: dict[str, Any] = {"graphs": tuple}  # no functions of the driver's for graphs
    for way, changed in (("in turn", turn), ("one by one", single), ("one by one, in turn", turn | single)):
        other = rewritten(space, spaces["launch plan"], model, reference, device)
        vars(names_of(other)["CUDA_KERNELS"]).update(changed)
        other(x)
        calls[f"{way}, optimized"] = straight(other, x)
    calls["one empty kernel"] = partial(torch.cuda._sleep, 0)  # no way is quicker than the host and its device are with nothing to do
    for call in calls.values():
        for _ in range(20):
            call()
    torch.cuda.synchronize()
    yield row | {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    yield from ways(name, *timed(calls))
    yield {"table": "parts", "program": name, **parts(plan, x)}


def ways(name: str, host: dict[str, Any], idle: dict[str, Any], long: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each way of running a program."""
    for way in host:
        about = {"table": "ways", "program": name, "way": way, "host us": host[way][0], "eager / host": round(host["eager"][0] / host[way][0], 2)}
        about |= {"idle to idle us": idle[way][0], "eager / idle": round(idle["eager"][0] / idle[way][0], 2)}
        yield about | {"least host us": host[way][1], "least idle us": idle[way][1], "back to back us": long[way][0]}


def names_of(plan: Any) -> dict[str, Any]:
    """Return what a generated file defines."""
    return plan.fits.__func__.__globals__


def tables(plan: Any) -> list[Any]:
    """Return the plans of a generated file."""
    return [value for key, value in names_of(plan).items() if key.endswith("_table")]


def straight(plan: Any, x: torch.Tensor) -> Callable[[], object]:
    """Return a call of `optimized`, without the checks before it."""
    names = names_of(plan)
    watch = names["_Watch"].of(plan, names["VERIFIED"])
    given = watch.reads()
    return lambda: names["optimized"](x, *given)


def timed(calls: dict[str, Callable[[], object]]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return for each call the median microseconds of the host (and the least), those from idle to idle, and those in a long burst; the calls take
    turns."""
    hosts: dict[str, list[float]] = {way: [] for way in calls}
    idles: dict[str, list[float]] = {way: [] for way in calls}
    longs: dict[str, list[float]] = {way: [] for way in calls}
    quick = Quick()
    for _ in range(BURSTS):
        quick.move()
        for way, call in calls.items():
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(BURST):
                call()
            hosts[way].append((time.perf_counter() - began) / BURST)
    torch.cuda.synchronize()
    for number in range(IDLE_CALLS):
        if number % 10 == 0:
            quick.move()
        for way, call in random.sample(list(calls.items()), len(calls)):
            call()  # what the way before leaves in the host's caches took the next 5 us: one kernel 21.3 us behind a CUDA graph, 16.5 behind a plan
            torch.cuda.synchronize()
            began = time.perf_counter()
            call()
            torch.cuda.synchronize()
            idles[way].append(time.perf_counter() - began)
    for _ in range(9):
        quick.move()
        for way, call in calls.items():
            began = time.perf_counter()
            for _ in range(LONG_BURST):
                call()
            torch.cuda.synchronize()
            longs[way].append((time.perf_counter() - began) / LONG_BURST)
    return told(hosts), told(idles), told(longs)


def told(of: dict[str, list[float]]) -> dict[str, Any]:
    """Return for each way the median and the least in microseconds."""
    return {way: [round(1e6 * statistics.median(seen), 1), round(1e6 * min(seen), 1)] for way, seen in of.items()}


class Quick:
    """Keeps this thread on a core that is quick at the time (results/host_cores_h200: two thirds of the time a core is slow)."""

    def __init__(self) -> None:
        self.cores, self.place = placement.QuickCores(), -1.0

    def move(self) -> None:
        """Take another core where this one is slow by now."""
        if self.place < 0 or not self.cores.still(self.place):
            self.place = self.cores.place(random.random())
        placement.take(os.getpid(), self.place)


def parts(plan: Any, x: torch.Tensor) -> dict[str, float]:
    """Return the microseconds of what a plan's call does: the checks, memory, packing, the native call."""
    names = names_of(plan)
    watch, kernels = names["_Watch"].of(plan, names["VERIFIED"]), names["CUDA_KERNELS"]
    table = tables(plan)[0]
    spare = [torch.empty(1 << 22, device=x.device) for _ in range(table.pack.__self__.size // 8)]
    pointers = [t.data_ptr() for t in spare]
    found, others, turns = table.of(x), [t[1024:].data_ptr() for t in spare], itertools.cycle((0, 1))
    calls: dict[str, Callable[[], object]] = {
        "_Watch.of": lambda: names["_Watch"].of(plan, names["VERIFIED"]), "misfit": lambda: watch.misfit((x,)), "reads": watch.reads,
        "fresh": lambda: kernels.fresh((256, 1024), (1024, 1), torch.float32), "torch.empty": lambda: torch.empty((256, 1024), device="cuda"),
        "new_empty": lambda: x.new_empty((256, 1024)), "the table": lambda: table.of(x), "pack": lambda: table.pack(*pointers),
        "stream": lambda: kernels.stream(0), "launch": lambda: table.launch(found, *pointers),
        "launch, other pointers each time": lambda: table.launch(found, *(pointers if next(turns) else others)), "nothing": lambda: None,
    }  # fmt: skip
    seen, quick = {}, Quick()
    for way, call in calls.items():
        spent = []
        for number in range(40):
            if number % 10 == 0:
                quick.move()
            torch.cuda.synchronize()
            began = time.perf_counter()
            for _ in range(BURST):
                call()
            spent.append((time.perf_counter() - began) / BURST)
        seen[way] = round(1e6 * statistics.median(spent), 2)
    return seen


# --- is it right? ----------------------------------------------------------------------------------------------------


def right(plan: Any, model: nn.Module, x: torch.Tensor) -> dict[str, Any]:
    """Return what was found wrong, by the name of what was tried; "right": whether nothing was."""
    wrong = {}
    for one in (first_in_a_thread, plain, kept_results, other_streams, changed_weights, several_threads, odd_address, captured):
        if one is captured and not x.is_cuda:
            continue
        try:
            problem = one(plan, model, x)
        except Exception:
            problem = traceback.format_exc()[-500:]
        if problem:
            wrong[one.__name__] = problem
    return {"right": not wrong, "wrong": wrong}


def unlike(seen: torch.Tensor, model: nn.Module, x: torch.Tensor) -> str:
    """Return how a result differs from the model's, or "": four times eager's own error, and some rounding of the largest."""
    wanted = model(x)
    if seen.shape != wanted.shape or seen.stride() != wanted.stride() or seen.dtype != wanted.dtype:
        return f"{seen.shape} {seen.stride()} where {wanted.shape} {wanted.stride()} was expected"
    exact = copy.deepcopy(model).double()(x.double())
    far, own = (float((one - exact).abs().max()) for one in (seen, wanted))
    return "" if far <= 4 * own + 1e-6 * float(exact.abs().max()) else f"off by {far}, eager by {own}"


def plain(plan: Any, model: nn.Module, x: torch.Tensor) -> str:
    return unlike(plan(x), model, x) or unlike(plan(2 * x), model, 2 * x)


def first_in_a_thread(plan: Any, model: nn.Module, x: torch.Tensor) -> str:
    """The first call of all is made in a thread that has not used the GPU."""
    told: list[Any] = []

    def call() -> None:
        try:
            told.append(unlike(plan(x), model, x))
        except Exception:
            told.append(traceback.format_exc()[-500:])

    with torch.no_grad():
        thread = threading.Thread(target=torch.no_grad()(call))
        thread.start()
        thread.join()
    return str(told[0])


def kept_results(plan: Any, model: nn.Module, x: torch.Tensor) -> str:
    """Results of earlier calls stay what they are, and may be written to."""
    given = [x + number for number in range(6)]
    results = [plan(one) for one in given]
    if len({result.data_ptr() for result in results}) != len(results):
        return "two results lie in one place"
    results[0].zero_()
    return next((problem for one, result in list(zip(given, results, strict=True))[1:] if (problem := unlike(result, model, one))), "")


def other_streams(plan: Any, model: nn.Module, x: torch.Tensor) -> str:
    """Calls on other streams follow what these streams do before."""
    if not x.is_cuda:
        return ""
    for _ in range(8):
        stream, fresh = torch.cuda.Stream(), torch.zeros_like(x)
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            torch.cuda._sleep(2_000_000)  # 1 ms, so that who does not wait reads zeros
            fresh.copy_(x)
            seen = plan(fresh)
        stream.synchronize()
        if problem := unlike(seen, model, x):
            return problem
    return ""


def changed_weights(plan: Any, model: nn.Module, x: torch.Tensor) -> str:
    """Every kind of change of a parameter is seen by the next call."""
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    try:
        for number in range(4):
            for one in (plan, model):
                for parameter in one.parameters():
                    torch.manual_seed(number)
                    new = torch.rand_like(parameter) + number
                    if number == 0:
                        parameter.mul_(1.5)
                    elif number == 1:
                        parameter.data.copy_(new)
                    elif number == 2:
                        parameter.data = new
            if number == 3:
                state = {name: value * 0.5 for name, value in model.state_dict().items()}
                plan.load_state_dict(state)
                model.load_state_dict(state)
            if problem := unlike(plan(x), model, x):
                return f"change {number}: {problem}"
    finally:
        plan.load_state_dict(kept)
        model.load_state_dict(kept)
    return ""


def several_threads(plan: Any, model: nn.Module, x: torch.Tensor) -> str:
    """Four threads call at once, each on a stream of its own."""
    told: list[str] = []

    def call(number: int) -> None:
        with torch.no_grad(), torch.cuda.stream(torch.cuda.Stream()) if x.is_cuda else torch.no_grad():
            given = x + number
            for _ in range(50):
                if problem := unlike(plan(given), model, given):
                    told.append(problem)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return next(iter(told), "")


def odd_address(plan: Any, model: nn.Module, x: torch.Tensor) -> str:
    """An input whose address is no multiple of 16."""
    given = torch.cat([x.new_zeros(1), x.flatten()])[1:].view_as(x)
    return unlike(plan(given), model, given)


def captured(plan: Any, model: nn.Module, x: torch.Tensor) -> str:
    """In a CUDA graph of the caller's, replayed on other inputs."""
    from warpwright.timing.capturing import _recording

    given = x.clone()
    plan(given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with _recording(graph):
        seen = plan(given)
    for number in range(3):
        given.copy_(x * (number + 2))
        graph.replay()
        if problem := unlike(seen, model, given):
            return problem
    return ""


if __name__ == "__main__":
    main()
