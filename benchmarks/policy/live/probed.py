"""`--search policy` beside other searches on a GPU, in the whole space of a task, each proposal answered by the probe: no verdicts.

    python -m benchmarks.policy.live.probed --out OUT --files FOLDER[,FOLDER] [--searches policy,random,greedy,evolve,ladder] [--limit 150]

`unasked` among the searches is the policy's without its model.

A recorded space holds what searches proposed while it was recorded, so that drawing at random in it is drawing among proposals of searches.
Here nothing is recorded beforehand: what is legal may be proposed, and is compiled, compared with float64 and timed (probe.py) when it is. The
searches of a task are a process; what one of them had measured is not measured again for another, but counts as an evaluation of each. A program
that the same search made before costs it none. A run of each search of 16 evaluations, one of evolve of 256 (`--apart`: by a process of its own
beside the others, which measures the original and all its programs itself), then the other `--seeds`.
OUT/rows.jsonl has a line for each evaluation as it comes. Without torch.compile, as graph_rows. `--dry` runs all paths on the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import spawned
from benchmarks.policy.recording import graph_rows, probe
from benchmarks.policy.recording.choice import body

EVALUATIONS = 16
"""Of a search; a longer run has more."""

LAST = 5.0
"""Seconds before the limit after which no program is begun."""

PARTS = ("longer", "searches")
"""Of a task, where the longer run is made apart; it takes longest, and begins first."""

FREED = 8
"""Programs after which the memory that they held is given back."""

ASKING: Mapping[str, Mapping[str, Any]] = {"policy": {}, "unasked": {"width": 0}}
"""The policy's searches: as it is, and without its model, choosing from variants and walks alone."""

IDLE, IDLE_ASKING = 300, 60
"""Proposals without a new program after which a search is at its end; the policy's proposes no program twice that it can tell."""

LOADED = ("torch", "transformers", "warpwright.policy.model", "warpwright.policy.search", "benchmarks.policy.recording.graph_rows")
"""What every process needs."""

COPIED = 4250.0
"""GB/s that copying moves on an H200, for a task's place under the roof."""


def main() -> None:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--files", required=True, help="folders of task files, comma-separated")
    parser.add_argument("--searches", default="policy,random,greedy,evolve,ladder")
    parser.add_argument("--evaluations", type=int, default=EVALUATIONS, help="of each search, the original not counted (%(default)s)")
    parser.add_argument("--seeds", type=int, default=2, help="runs of each search (%(default)s)")
    parser.add_argument("--whole", type=int, default=256, help="evaluations of one more run of evolve; 0 for none (%(default)s)")
    parser.add_argument("--apart", action="store_true", help="that run by a process of its own")
    parser.add_argument("--model", type=Path, help="folder of a trained policy; the one that ships where it is not given")
    parser.add_argument("--jobs", type=int, default=14)
    parser.add_argument("--limit", type=float, default=150.0, help="seconds after which it ends, whatever is left (%(default)s)")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    end = time.monotonic() + options.limit
    options.out.mkdir(parents=True, exist_ok=True)
    files = sorted((file for folder in options.files.split(",") for file in Path(folder).glob("*.py")), key=lambda file: Random(file.stem).random())
    with (options.out / "rows.jsonl").open("a") as out:
        jobs = [(file, part) for part in (PARTS if options.apart and options.whole else ("",)) for file in files]
        for line in spawned.lines(work, jobs, options.jobs, end, options, end - LAST, loaded=LOADED):
            out.write(json.dumps(line) + "\n")
            out.flush()
            if line["row"] != "evaluation":
                print(f"{options.limit - (end - time.monotonic()):.0f} s", line, flush=True)


def work(todo: Any, lines: Any, options: argparse.Namespace, end: float) -> None:
    """Do tasks until none is left or the end has come. An error that ends the GPU's context ends this process."""
    graph_rows.alone_on_a_core()
    for file, part in spawned.taken(todo, end):
        try:
            one_task(file, part, options, lines, end)
        except Exception:  # one task must not end the others
            reason = traceback.format_exc()[-600:]
            lines.put({"row": "failure", "task": file.stem, "reason": reason})
            if "CUDA error" in reason:
                return
        spawned.free()


@dataclass
class Bench:
    """A task on the GPU, and what is known of its programs."""

    space: Any
    reference: Any
    model: Any
    inputs: Any
    truth: probe.Truth
    turns: probe.Taken
    eager: float
    dry: bool
    known: dict[str, tuple[str, float]] = field(default_factory=dict)
    """Text of a program -> what is wrong with it or "ok", and its seconds."""
    refused: dict[str, str] = field(default_factory=dict)
    """Text of a program that the probe called right -> why the verifier refused it."""

    def measured(self, recipe: Any) -> tuple[str, str, float]:
        """Return the text of a recipe's program, what is wrong with it or "ok", and its seconds."""
        try:
            text = self.space.candidate(recipe).source.text
        except Exception as error:  # a recipe without a program is an evaluation that failed
            return f"none {recipe}", f"{type(error).__name__}: {error}"[:160], 0.0
        name = body(text)
        if name not in self.known:
            maker = partial(graph_rows.rewritten_on, self.space, recipe) if self.dry else graph_rows.compiled(text)
            self.known[name] = self._probed(maker)
            if len(self.known) % FREED == 0:
                spawned.free()
        return name, *self.known[name]

    def name(self, recipe: Any) -> str:
        """Return the text of a recipe's program without its comments: what it is known by."""
        try:
            return body(self.space.candidate(recipe).source.text)
        except Exception:
            return f"none {recipe}"

    def judged(self, recipe: Any) -> tuple[str, str, float]:
        """Return the text of a recipe's program, what is wrong with it or "ok", and its speed-up; 0 for what is wrong or was refused."""
        name, told, seconds = self.measured(recipe)
        if name in self.refused:
            return name, f"refused, {self.refused[name]}", 0.0
        return name, told, self.eager / seconds if told == "ok" else 0.0

    def _probed(self, maker: graph_rows.Maker, tries: int = 2) -> tuple[str, float]:
        """Return what is wrong with a program or "ok", and its seconds; begun again where others hold the memory."""
        import torch

        try:
            with self.turns.checking():
                told, program = graph_rows.checked(maker, self.model, self.reference, self.truth)
            if program is None:
                return told, 0.0
            with self.turns.timing():
                return "ok", probe.seconds(partial(program, *self.inputs))
        except torch.OutOfMemoryError:
            if tries < 2:
                raise
        except RuntimeError:  # of CUDA: what else a program raises so is told of it
            raise
        except Exception as error:  # the program's own fault
            return f"{type(error).__name__}: {error}"[:160], 0.0
        spawned.free()
        time.sleep(graph_rows.AGAIN_SECONDS)
        return self._probed(maker, tries - 1)


def opened(file: Path, options: argparse.Namespace, turns: probe.Taken | None = None) -> Bench:
    """Return a task with its original measured."""
    _, space, reference = graph_rows.opened(file, options.dry)
    turns = turns or probe.Turns(options.out)
    model, inputs, truth = graph_rows.placed(reference, turns, options.dry)
    with turns.timing():
        eager = probe.seconds(partial(model, *inputs))
    bench = Bench(space, reference, model, inputs, truth, turns, eager, options.dry)
    bench.known[body(space.candidate(()).source.text)] = "ok", eager
    return bench


def one_task(file: Path, part: str, options: argparse.Namespace, lines: Any, end: float) -> None:
    """Run the searches of one task, each as often as asked, and evolve longer; or a `part` of that."""
    began = time.monotonic()
    bench = opened(file, options)
    if bench.eager > graph_rows.SLOWEST and not options.dry:
        lines.put({"row": "task", "task": file.stem, "reason": f"the original takes {bench.eager:.3f} s"})
        return
    apart = " apart" if part == "longer" else ""
    lines.put({"row": f"task{apart}", "task": file.stem, f"eager{apart} us": round(1e6 * bench.eager, 2), "s": round(time.monotonic() - began, 1)})
    names = options.searches.split(",")
    runs = [(search, seed, options.evaluations) for seed in range(options.seeds) for search in names] if not apart else []
    longer = [("evolve", options.seeds, options.whole)] if options.whole and part != "searches" else []
    for search, seed, count in [*runs[: len(names)], *longer, *runs[len(names) :]]:
        if time.monotonic() > end:
            break
        one_run(bench, file.stem, (search, seed, count), options, lines, end)
    with bench.turns.timing():
        again = probe.seconds(partial(bench.model, *bench.inputs))
    lines.put({"row": f"again{apart}", "task": file.stem, "again us": round(1e6 * again, 2), "s": round(time.monotonic() - began, 1)})


def one_run(bench: Bench, task: str, run: tuple[str, int, int], options: argparse.Namespace, lines: Any, end: float) -> None:
    """Follow one search until it has made so many programs, and tell of each."""
    search, seed, count = run
    began, number, stopped = time.monotonic(), 0, "evaluations"
    chosen = search_of(bench, search, options.model)
    for recipe, told, speedup in followed(bench, task, chosen(bench.space, Random(f"{search} {seed}"), 1), count, end, idle(search)):
        number += 1
        lines.put({
            "row": "evaluation", "task": task, "search": search, "seed": seed, "of": count, "number": number, "told": told,
            "speedup": round(speedup, 4), "recipe": "; ".join(map(str, recipe)),
        })  # fmt: skip
    if number < count:
        stopped = "time" if time.monotonic() > end else "nothing new"
    lines.put({
        "row": "run", "task": task, "search": search, "seed": seed, "of": count, "evaluations": number, "stopped": stopped,
        "note": getattr(chosen, "note", ""), "s": round(time.monotonic() - began, 1),
    })  # fmt: skip


def followed(bench: Bench, task: str, proposer: Any, count: int, end: float, most_idle: int = IDLE) -> Iterator[tuple[Any, str, float]]:
    """Yield each new program's recipe, what is wrong with it or "ok", and its speed-up; 0 for what is wrong."""
    from warpwright.learn.policy.recorded import record_of

    made, idle, found = {body(bench.space.candidate(()).source.text)}, 0, 0
    asked: Sequence[Any] = next(proposer)
    try:
        while found < count and idle < most_idle and time.monotonic() < end:
            records = []
            for recipe in asked:
                name, told, speedup = bench.judged(recipe)
                records.append(record_of(task, recipe, speedup))
                idle += 1
                if name not in made:
                    made.add(name)
                    idle, found = 0, found + 1
                    yield recipe, told, speedup
            asked = proposer.send(records)
    except StopIteration:
        pass
    finally:
        proposer.close()


def idle(search: str) -> int:
    """Return after how many proposals without a new program a search is at its end."""
    return IDLE_ASKING if search in ASKING else IDLE


def search_of(bench: Bench, name: str, model: Path | None) -> Any:
    """Return a search by its name."""
    from warpwright.policy.model import SHIPPED, Policy
    from warpwright.policy.search import PolicySearch
    from warpwright.search import SEARCHES

    if name not in ASKING:
        return SEARCHES[name]
    roof = bench.truth.moved / (1e9 * COPIED) / bench.eager
    return PolicySearch(Policy.load(model or SHIPPED), roof, **ASKING[name])


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    main()
