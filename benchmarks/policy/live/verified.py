"""The policy beside other searches in whole spaces on a GPU, and the verifier's word: the best of 16 is the best that passes.

    python -m benchmarks.policy.live.verified --out OUT --files FOLDER[,FOLDER] --found ROWS.jsonl[.gz][,ROWS] [--done ROWS] [--limit 320]

A process takes one task after the other, and a task is done before the next begins: what the time cuts off is whole tasks. First its searches are
followed, each proposal answered by the probe (probed.py), supposing that what that calls right would pass. Then the best program of each search goes
to the verifier (verdicts.py). What it refuses counts as wrong: every search that had made it is followed once more from its beginning and told of it,
which measures only what is new, until its best has passed. `--found`: in place of a longer run, the fastest programs of one in earlier rows,
the fastest first until one passes. `--longer SECONDS`: such a run is made now, after each task's searches, until so long after the beginning.

How many tasks go on side by side is what the GPU's memory holds (sharing.py); who finds too little free waits. Who verifies steps aside for who
times, so processes search together and then verify together. OUT/rows.jsonl has the lines of probed, one for each verdict with what its steps took,
and one for each task that is done; `--done` leaves out those that earlier rows have. `--dry` runs all paths on the CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from benchmarks import spawned
from benchmarks.kernelbench.first import DRY_SCALE
from benchmarks.policy.live import longer, probed
from benchmarks.policy.live.longer import LONGER, parsed, shown_as
from benchmarks.policy.live.sharing import MOST, SEARCHED_MOST, Memory, Waves, to_search, to_verify
from benchmarks.policy.live.verdicts import AGAIN_SECONDS, NoScore, Turns, Verdicts
from benchmarks.policy.recording import graph_rows, probe, records
from benchmarks.policy.recording.sample import gigabytes
from warpwright.policy.answering import Written
from warpwright.policy.model import Policy
from warpwright.search import SEARCHES

LAST = 4.0
"""Seconds before the limit after which no verdict is asked for."""

A_TASK = 60.0
"""Seconds before the end after which no task is begun: its searches took 25 to 40 where fourteen were followed side by side, its verdicts as long."""

TRIES = 3
"""How often a task is begun that finds too little memory free."""

SEED = 0

UNKNOWN = 0.5
"""GB of a task of which it is not known."""


def main() -> None:
    """Write rows.jsonl."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--files", required=True, help="folders of task files, comma-separated; those in the rows of --found come first")
    parser.add_argument("--found", default="", help="rows of earlier runs, comma-separated")
    parser.add_argument("--longer", type=float, default=0.0, help="seconds from the beginning in which evolve's longer runs are made (none)")
    parser.add_argument("--searches", default="policy,random,greedy")
    parser.add_argument("--evaluations", type=int, default=probed.EVALUATIONS, help="of each search, the original not counted (%(default)s)")
    parser.add_argument("--model", type=Path, help="folder of a trained policy; the one that ships where it is not given")
    parser.add_argument("--done", default="", help="rows of earlier calls, comma-separated: tasks that are done there are left out")
    parser.add_argument("--jobs", type=int, default=14, help="tasks side by side at most (%(default)s)")
    parser.add_argument("--limit", type=float, default=320.0, help="seconds after which it ends, whatever is left (%(default)s)")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    began = time.monotonic()
    end = began + options.limit
    options.earlier = longer.fastest(_lines(options.found))
    options.longer_end = began + options.longer if options.longer else 0.0
    options.out.mkdir(parents=True, exist_ok=True)
    before = {line["task"] for line in _lines(options.done) if line["row"] == "done"}
    files = [file for folder in options.files.split(",") for file in Path(folder).glob("*.py") if file.stem not in before]
    files.sort(key=partial(order, options.earlier))
    with (options.out / "rows.jsonl").open("a") as out:
        for line in spawned.lines(work, files, options.jobs, end, options, end - LAST, daemon=False, loaded=probed.LOADED):
            out.write(json.dumps(line) + "\n")
            out.flush()
            if line["row"] != "evaluation":
                print(f"{time.monotonic() - began:.0f} s", line, flush=True)


def order(found: Mapping[str, object], file: Path) -> tuple[bool, float]:
    """Return when a task's turn comes: those with an earlier longer run first, otherwise drawn."""
    return file.stem not in found, Random(file.stem).random()


def _lines(names: str) -> list[dict[str, Any]]:
    return list(records.read(Path(one) for one in names.split(",") if one))


def work(todo: Any, lines: Any, options: argparse.Namespace, end: float) -> None:
    """Do tasks until none is left or the end is near. After an error of the GPU's context none is begun: others take what is left."""
    graph_rows.alone_on_a_core()
    memory, waves, last = Memory(options.out, *_memory_of(options)), Waves(options.out), end - A_TASK
    for file in spawned.taken(todo, last):
        reason = ""
        try:
            one_task(file, options, lines, (memory, waves), end)
        except NoScore as unscored:
            reason = f"no score: {unscored}"
        except Exception:  # one task must not end the others
            reason = traceback.format_exc()[-600:]
        if reason:
            lines.put({"row": "failure", "task": file.stem, "reason": reason})
        if "CUDA error" in reason:
            return
        spawned.free()


def _memory_of(options: argparse.Namespace) -> tuple[float, Callable[[], float] | None]:
    """Limit what this process may hold; return the GPU's memory in GB, and what tells how much is free."""
    if options.dry:
        return 128.0, None
    import torch

    total = torch.cuda.mem_get_info()[1] / 1e9
    torch.cuda.set_per_process_memory_fraction(min(MOST, max(SEARCHED_MOST / total, MOST / options.jobs)))
    return total, lambda: torch.cuda.mem_get_info()[0] / 1e9


def size(file: Path) -> float:
    """Return the GB of a task's inputs, outputs and parameters, or what stands for them."""
    try:
        return gigabytes(file)
    except Exception:  # a package's own code, which the meta device cannot run
        return UNKNOWN


def one_task(file: Path, options: argparse.Namespace, lines: Any, shared: tuple[Memory, Waves], end: float) -> None:
    """Follow the searches of a task, then have what they found verified."""
    (memory, waves), taken, task, began = shared, size(file), None, time.monotonic()
    try:
        with memory.reserved(to_search(taken), end - A_TASK) as there, waves.at("probing"):
            if not there:
                return
            searching_from = time.monotonic()
            task = opened(file, options, end)
            task.begin(options)
            searched = task.follow_all(options, lines, end)
            task.bench.let_go()
        if not searched:
            return
        searched_at = time.monotonic()
        with memory.reserved(to_verify(taken), end) as there, waves.at("verifying"):
            verifying_from = time.monotonic()
            passed = task.settle(lines, end) if there else False
        told = {"verdicts": len(task.verdicts.known) if task.verdicts else 0, "waited s": round(searching_from - began, 1),
                "searched s": round(searched_at - searching_from, 1), "waited then s": round(verifying_from - searched_at, 1),
                "verified s": round(time.monotonic() - verifying_from, 1)}  # fmt: skip
        lines.put({"row": "done" if passed else "cut", "task": task.name, **told})
    finally:
        if task is not None:
            task.close()


def opened(file: Path, options: argparse.Namespace, end: float) -> Task:
    """Return a task with its original measured, begun again where others hold the memory."""
    import torch

    for tries in range(TRIES):
        try:
            return Task.opened(file, options)
        except torch.OutOfMemoryError:
            if tries + 1 == TRIES or time.monotonic() > end:
                raise
        spawned.free()
        time.sleep(AGAIN_SECONDS)
    raise AssertionError("unreachable")


@dataclass
class Bench(probed.Bench):
    """A task on the GPU that can leave it and come back."""

    def let_go(self) -> None:
        """Give back the GPU's memory; what is known stays known."""
        self.model = self.inputs = self.truth = None  # type: ignore[assignment]
        spawned.free()

    def _probed(self, maker: graph_rows.Maker, tries: int = 2) -> tuple[str, float]:
        if self.truth is None:
            self.model, self.inputs, self.truth = graph_rows.placed(self.reference, self.turns, self.dry)
        return super()._probed(maker, tries)


@dataclass
class Remembering(Policy):
    """A policy that is not asked again what it has answered: a search that is followed once more begins as it did before."""

    answers: dict[Any, list[Written]] = field(default_factory=dict)

    def write(self, prompts: Sequence[str], writings: Any, known: Sequence[Iterable[Any]], seed: int, spreads: Any = ()) -> list[Written]:
        speedups: Any = known[0]
        asked = (*prompts, seed, *speedups.items())  # the spreads follow from what is known
        if asked not in self.answers:
            self.answers[asked] = super().write(prompts, writings, known, seed, spreads)
        return self.answers[asked]


@dataclass
class Run:
    """A search of a task: what it made, as recipe, text, what was told of it, speed-up."""

    search: str
    of: int
    made: list[tuple[Any, str, str, float]] = field(default_factory=list)
    stopped: str = ""
    note: str = ""
    followed: int = 0
    seconds: float = 0.0

    def best(self, count: int | None = None) -> tuple[Any, str] | None:
        """Return recipe and text of the fastest of the first `count`; None where the original is as fast."""
        recipe, text, _, speedup = max(self.made[:count], key=lambda one: one[3], default=((), "", "", 0.0))
        return (recipe, text) if speedup > 1 else None


@dataclass
class Task:
    """The searches of one task."""

    file: Path
    bench: Bench
    chosen: dict[str, Any]
    """Name -> search."""
    runs: list[Run] = field(default_factory=list)
    verdicts: Verdicts | None = None

    @property
    def name(self) -> str:
        """Tells it from the others."""
        return self.file.stem

    @classmethod
    def opened(cls, file: Path, options: argparse.Namespace) -> Task:
        """Return a task with its original measured."""
        one = probed.opened(file, options, Turns("cpu" if options.dry else "cuda:0"))
        bench = Bench(**vars(one))
        chosen = {name: probed.search_of(bench, name, options.model) for name in options.searches.split(",")}
        for search in chosen.values():
            if isinstance(getattr(search, "policy", None), Policy):
                search.policy = Remembering(**vars(search.policy))
        return cls(file, bench, chosen)

    def follow_all(self, options: argparse.Namespace, lines: Any, end: float) -> bool:
        """Follow every search for the first time and look at what an earlier longer run found; tell whether all came to their end."""
        if self.bench.eager > graph_rows.SLOWEST and not self.bench.dry:
            lines.put({"row": "task", "task": self.name, "reason": f"the original takes {self.bench.eager:.3f} s"})
            return False
        lines.put({"row": "task", "task": self.name, "eager us": round(1e6 * self.bench.eager, 2)})
        for search in self.chosen:
            self.runs.append(Run(search, options.evaluations))
            self.follow(self.runs[-1], end)
        if options.longer:
            self.runs.append(self.longer_run(options.longer_end))
        else:
            self.runs.append(self.found(options.earlier.get(self.name, ()), end))
        with self.bench.turns.timing():
            again = probe.seconds(partial(self.bench.model, *self.bench.inputs))
        lines.put({"row": "again", "task": self.name, "again us": round(1e6 * again, 2)})
        missed = [run.search for run in self.runs if run.stopped == "time"]
        if missed:
            lines.put({"row": "failure", "task": self.name, "reason": f"no time for {', '.join(missed)}"})
        return not missed

    def follow(self, run: Run, end: float) -> None:
        """Follow a search from its beginning."""
        began, search = time.monotonic(), self.chosen[run.search]
        proposer = search(self.bench.space, Random(f"{run.search} {SEED}"), 1)
        run.made = [(recipe, self.bench.name(recipe), told, speedup) for recipe, told, speedup in
                    probed.followed(self.bench, self.name, proposer, run.of, end, probed.idle(run.search))]  # fmt: skip
        run.stopped = "evaluations" if len(run.made) == run.of else "time" if time.monotonic() > end else "nothing new"
        run.note = getattr(search, "note", "")
        run.followed, run.seconds = run.followed + 1, run.seconds + time.monotonic() - began

    def found(self, recipes: Sequence[str], end: float) -> Run:
        """Look at the fastest programs that a longer run had earlier."""
        run = Run("evolve", LONGER, stopped="evaluations" if recipes else "none", followed=1)
        for recipe in map(parsed, recipes):
            if time.monotonic() > end:
                run.stopped = "time"
                break
            run.made.append((recipe, *self.bench.judged(recipe)))
        return run

    def longer_run(self, end: float) -> Run:
        """Follow evolve as far as it comes until `end`."""
        began, run = time.monotonic(), Run("evolve", LONGER, followed=1)
        proposer = SEARCHES["evolve"](self.bench.space, Random("evolve longer"), 1)
        run.made = [(recipe, self.bench.name(recipe), told, speedup) for recipe, told, speedup in
                    probed.followed(self.bench, self.name, proposer, run.of, end, probed.idle(run.search))]  # fmt: skip
        run.stopped = "evaluations" if len(run.made) == run.of else "its time" if time.monotonic() > end else "nothing new"
        run.seconds = time.monotonic() - began
        return run

    def begin(self, options: argparse.Namespace) -> None:
        """Have what the verifier's processes are forked from come up."""
        if self.verdicts is None:
            self.verdicts = Verdicts(self.file, "cpu" if options.dry else "cuda", DRY_SCALE if options.dry else 1.0)

    def settle(self, lines: Any, end: float) -> bool:
        """Have the best of each search verified, and follow those again that had made what is refused; tell whether all have passed in the end."""
        while (best := next(self.unverified(), None)) is not None and time.monotonic() < end:
            if self.ask(*best, lines):
                for run in self.runs:
                    if any(told == "ok" and text in self.bench.refused for _, text, told, _ in run.made):
                        self.tell(run, end)
        for run in self.runs:
            if next(self.unverified([run]), None) is not None:
                run.stopped = "time"
            self.put(run, lines)
        return all(run.stopped != "time" for run in self.runs)

    def unverified(self, runs: Sequence[Run] = ()) -> Iterator[tuple[Any, str]]:
        """Yield recipe and text of the best of each run, or of all, that the verifier has not been asked about."""
        assert self.verdicts is not None
        for run in runs or self.runs:
            best = run.best()
            if best is not None and best[1] not in self.verdicts.known:
                yield best

    def ask(self, recipe: Any, text: str, lines: Any) -> str:
        """Return why the verifier refuses a program, or ""."""
        assert self.verdicts is not None
        began, known, steps = time.monotonic(), text in self.verdicts.known, self.verdicts.steps
        steps.clear()
        why = self.verdicts.refused(text, self.bench.space.candidate(recipe))
        if why:
            self.bench.refused[text] = why
        if not known:
            shown = {"recipe": shown_as(recipe), "refused": why, "s": round(time.monotonic() - began, 1), "steps": steps.told()}
            lines.put({"row": "verdict", "task": self.name, **shown})
        return why

    def tell(self, run: Run, end: float) -> None:
        """Tell a search what was refused: of an earlier run it is known what else it had made, another one is followed once more."""
        if run.of < LONGER:
            self.follow(run, end)
        else:
            run.made = [(recipe, *self.bench.judged(recipe)) for recipe, *_ in run.made]

    def put(self, run: Run, lines: Any) -> None:
        """Write the lines of a run; of an earlier one of which nothing passed none."""
        shown = {"task": self.name, "search": run.search, "seed": SEED, "of": run.of}
        if run.of == LONGER and run.made and not any(told == "ok" for _, _, told, _ in run.made):
            run.stopped = "none passed"
        for number, (recipe, _, told, speedup) in enumerate(run.made if run.stopped not in ("none passed", "none") else (), 1):
            lines.put({"row": "evaluation", **shown, "number": number, "told": told, "speedup": round(speedup, 4), "recipe": shown_as(recipe)})
        how = {"evaluations": len(run.made), "stopped": run.stopped, "note": run.note, "followed": run.followed, "s": round(run.seconds, 1)}
        lines.put({"row": "run", **shown, **how})

    def close(self) -> None:
        """End its processes."""
        if self.verdicts is not None:
            self.verdicts.close()


if __name__ == "__main__":
    os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")
    main()
