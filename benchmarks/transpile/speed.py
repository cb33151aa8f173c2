"""Translated kernels against hand-written OpenMP, torch and one fiber a thread, interleaved in one run; peers run before.

    python -m benchmarks.transpile.speed [--repeats 30] [--threads 1] [--cpu-time] [--kept] [--only NAME,...] [--without NAME,...]
        [--outside] [--peer NAME=LIBRARY ...] [--markdown FILE] [--write FOLDER | --texts FOLDER]

The kernels are in speed.cu, speed_ladder.cu (products of matrices), speed_shared.cu and speed_llm.cu (training of a language model, first
courses), the twins in speed_hand.cpp, speed_shared_hand.cpp and speed_llm_hand.cpp, data and answers in speed_works.py, speed_works_shared.py and
speed_works_llm.py. With --outside it is other kernels, of common kinds that the compiler was not built on: speed_outside.cu,
speed_unopened.cu and speed_works_outside.py; a mean over them is a guess at what code that nobody has tuned for gets.

A peer is a shared library of the same kernels, built with another tool: functions peer_saxpy, peer_gemm ... with the kernel's arguments and the
grid's three numbers; the block is that of BLOCKS. A kernel that a peer lacks or gets wrong has no time for it. A peer starts its threads
itself: it runs in a forked process, where OpenMP's threads are missing once torch has used them, and a parallel region hangs. It has to
count its cores by the process's affinity: std::thread::hardware_concurrency() is 2 for a process that may use one core of two, and two threads that
spin for each other on one core wait for time slices of 4 ms.

Every program runs unmeasured for 0.2 s first: Linux may start two threads on one core, and separate them only after 100 ms. The output is cleared
before each call, by one core: with two threads, half of it is then in the other core's cache. With --kept only outputs are
cleared that a kernel adds to.

Every answer but torch's is checked against numpy in float64 before anything is timed. Times are wall clock, minimum and median over the repeats; with
--cpu-time the process's own, which others on a busy machine change less (one thread only, and without peers).
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch

from benchmarks.transpile import speed_works_outside
from benchmarks.transpile.speed_works import CORE, works
from benchmarks.transpile.speed_works_shared import INSTANCES
from benchmarks.transpile.work import Work
from warpwright import native
from warpwright.domains import transpile
from warpwright.domains.transpile import launch
from warpwright.timing import facts

HERE = Path(__file__).parent
SOURCES = {  # a CUDA text -> its twins, and the instances of its templates
    "speed": ("speed_hand", ()), "speed_ladder": ("speed_shared_hand", INSTANCES), "speed_shared": ("speed_shared_hand", ()),
    "speed_llm": ("speed_llm_hand", ()), "speed_outside": ("speed_outside_hand", ()),
    "speed_unopened": ("speed_unopened_hand", ()),
}  # fmt: skip
HAND_FLAGS = (*native.FLAGS, "-fno-math-errno", "-fno-trapping-math")  # what the translated text asks for by itself
TWINS = tuple(dict.fromkeys(twins for twins, _ in SOURCES.values()))
TIERS = ("vectors", "loops", "fibers")

LARGEST_ERROR = 2e-4
WARMING = 0.2
"""Seconds for which a program runs before it is measured."""


class Twins:
    """The functions of several libraries."""

    def __init__(self, libraries: Sequence[ctypes.CDLL]) -> None:
        self.libraries = libraries

    def __getattr__(self, name: str) -> Any:
        return next(getattr(library, name) for library in self.libraries if hasattr(library, name))


def written(tier: str, chosen: Sequence[Work], folder: Path | None) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Yield the sources that the works need, their C++ in one tier, and its kernels' numbers; `folder`: where an earlier call has put them."""
    blocks = {(work.kernel or work.name).partition("<")[0]: work.block for work in chosen}
    for source, (_, instances) in SOURCES.items():
        text = (HERE / f"{source}.cu").read_text()
        if not any(f" {name}(" in text for name in blocks):
            continue
        if folder is not None:
            yield source, (folder / f"{source}.{tier}.cpp").read_text(), json.loads((folder / f"{source}.{tier}.json").read_text())
        else:
            program = transpile.compile_text(text, f"{source}.cu", tier=tier, instances=instances, blocks=blocks)
            yield source, program.source, dict(program.exports)


def loaded(tier: str, chosen: Sequence[Work], folder: Path | None) -> dict[str, Any]:
    """Return the kernels of the sources that the works need, in one tier."""
    kernels: dict[str, Any] = {}
    for _, text, exports in written(tier, chosen, folder):
        kernels |= launch.load(text, exports)
    return kernels


def write(tiers: Sequence[str], chosen: Sequence[Work], folder: Path) -> None:
    """Put the C++ of the works' sources into a folder, for --texts."""
    folder.mkdir(parents=True, exist_ok=True)
    for tier in tiers:
        for source, text, exports in written(tier, chosen, None):
            (folder / f"{source}.{tier}.cpp").write_text(text)
            (folder / f"{source}.{tier}.json").write_text(json.dumps(exports))


def converted(arguments: Iterable[Any]) -> list[Any]:
    """Return the arguments as C takes them: arrays as pointers, real numbers as float."""
    return [ctypes.c_void_p(v.ctypes.data) if isinstance(v, np.ndarray) else ctypes.c_float(v) if isinstance(v, float) else v for v in arguments]


def peer_caller(work: Work, library: ctypes.CDLL) -> Callable[[], Any] | None:
    """Return the call of the peer's kernel, None where it has none."""
    function = getattr(library, f"peer_{work.name}", None)
    grid = (*work.grid, 1, 1)[:3]
    arguments = [*converted(work.arguments), *grid]
    return None if function is None else lambda: function(*arguments)


def callers(work: Work, tiers: dict[str, Any], hand: Twins, with_torch: bool = True) -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name, without the peers."""
    by_name: dict[str, Callable[[], Any]] = {}
    for tier, kernels in tiers.items():
        launcher = kernels[work.kernel or work.name][work.grid, work.block, work.shared]
        by_name[tier] = launcher.prepared(*work.arguments)  # as the twin's: 2 to 5 us of Python are not the kernel's
    arguments = converted(work.hand_arguments)
    function = getattr(hand, work.twin or work.kernel or work.name)
    by_name["hand OpenMP"] = lambda: function(*arguments)
    if with_torch and work.torch is not None:
        by_name["torch"] = work.torch
    return by_name


def error_of(work: Work, name: str, call: Callable[[], Any]) -> float:
    """Return the largest error over the largest value, 0 for torch, which writes elsewhere."""
    ready(work)
    call()
    scale = max(1.0, float(np.abs(work.expected).max()))
    return 0.0 if name == "torch" else float(np.abs(work.output - work.expected).max()) / scale


def ready(work: Work) -> None:
    """Clear the output, and set what else the kernel changes."""
    work.output[...] = 0
    if work.prepare is not None:
        work.prepare()


def warm(call: Callable[[], Any]) -> None:
    """Run a program until its threads have cores of their own."""
    begun = time.perf_counter()
    while time.perf_counter() - begun < WARMING:
        call()


def peer_times(work: Work, call: Callable[[], Any], repeats: int, kept: bool) -> list[float] | str:
    """Return the times of a peer's kernel in ms, or what is wrong with its answer.

    In a process of its own that is then dropped: HIP-CPU's fibers stay out of step after a kernel that it gets wrong, and spoil more; and its thread
    that waits for launches keeps a core busy: beside it, two threads of others took ten times as long.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        error = max(error_of(work, "peer", call) for _ in range(2))
        taken = measure(work, {"peer": call}, repeats, 10, kept)["peer"] if error <= LARGEST_ERROR else f"wrong: relative error {error:.2g}"
        os.write(writing, json.dumps(taken).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    status = os.waitpid(child, 0)[1]
    return json.loads(text) if text and not status else f"stopped: wait status {status}"


def measure(
    work: Work, calls: dict[str, Callable[[], Any]], repeats: int, slow_share: int, kept: bool, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Return the times of each program in ms, in a new order each round; one that takes over 50 ms runs in every `slow_share`-th round."""
    for call in calls.values():
        warm(call)
    times: dict[str, list[float]] = {name: [] for name in calls}
    order, random = list(calls.items()), Random(0)
    for round_number in range(repeats):
        random.shuffle(order)  # behind a program on the same data, another finds it in the caches
        for name, call in order:
            if round_number % slow_share and times[name][0] > 50:
                continue
            if not kept or work.adds or work.prepare is not None:
                ready(work)
            begun = clock()
            call()
            times[name].append((clock() - begun) * 1e3)
    return times


def rows(work: Work, times: dict[str, list[float]], best: dict[str, float]) -> list[str]:
    """Return the table's rows of one kernel."""
    made = []
    for name, taken in times.items():
        against = f"{best['torch'] / best[name]:.2f}" if "torch" in best else "-"
        hand = best["hand OpenMP"] / best[name]
        made.append(f"| {work.name} | {work.size} | {name} | {best[name]:.3f} | {statistics.median(taken):.3f} | {hand:.2f} | {against} |")
    return made


def means(best: dict[tuple[str, str], dict[str, float]], threads: int) -> list[str]:
    """Return a table of geometric means of each program's time over that of tier vectors, with the number of rows: of all and of the core ones."""
    names = list(dict.fromkeys(name for row in best.values() for name in row if name != "vectors"))
    lines = ["| threads | rows | " + " | ".join(names) + " |", "|" + "---|" * (len(names) + 2)]
    for label, wanted in (("all", None), ("the five core kernels", CORE)):
        cells = []
        for name in names:
            shares = [row[name] / row["vectors"] for (kernel, _), row in best.items() if name in row and (wanted is None or kernel in wanted)]
            cells.append(f"{statistics.geometric_mean(shares):.3g} ({len(shares)})" if shares else "-")
        lines.append(f"| {threads} | {label} | " + " | ".join(cells) + " |")
    return lines


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--cpu-time", action="store_true")
    parser.add_argument("--kept", action="store_true", help="clear outputs between calls only where a kernel adds to them")
    parser.add_argument("--outside", action="store_true", help="the kernels of speed_works_outside.py in place of the suite's")
    parser.add_argument("--only", help="kernels, with commas between")
    parser.add_argument("--without", default="", help="tiers that are not timed, or torch, with commas between")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=LIBRARY")
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="only write the kernels' C++ there")
    parser.add_argument("--texts", type=Path, metavar="FOLDER", help="take the kernels' C++ from there, as another version wrote it")
    given = parser.parse_args()
    if given.cpu_time and (given.threads > 1 or given.peer):
        parser.error("--cpu-time is for one thread, without peers")
    return given


def timed_peers(chosen: list[Work], given: argparse.Namespace) -> tuple[dict[tuple[str, str], dict[str, list[float]]], list[str]]:
    """Return the peers' times by kernel and size, and a row of the table for each answer that is wrong."""
    times: dict[tuple[str, str], dict[str, list[float]]] = {(work.name, work.size): {} for work in chosen}
    lines = []
    for name, path in (peer.split("=", 1) for peer in given.peer):
        library = ctypes.CDLL(path)
        for work in chosen:
            call = peer_caller(work, library)
            taken = "not built" if call is None else peer_times(work, call, given.repeats, given.kept)
            if isinstance(taken, str):
                lines.append(f"| {work.name} | {work.size} | {name} | {taken} | | | |")
            else:
                times[work.name, work.size][name] = taken
    return times, lines


def main() -> None:
    given = options()
    suite = speed_works_outside.works(np.random.default_rng(0)) if given.outside else works()
    chosen = [work for work in suite if given.only is None or work.name in given.only.split(",")]
    left_out = given.without.split(",")
    kept = [tier for tier in TIERS if tier not in left_out]
    if given.write:
        return write(kept, chosen, given.write)
    peers, faults = timed_peers(chosen, given)  # first: the forked processes need one that has started no threads
    torch.set_num_threads(given.threads)
    tiers = {tier: loaded(tier, chosen, given.texts) for tier in kept}
    hand = Twins([ctypes.CDLL(str(native.build((HERE / f"{name}.cpp").read_text(), flags=HAND_FLAGS))) for name in TWINS])
    ctypes.CDLL("libgomp.so.1").omp_set_num_threads(given.threads)
    lines = ["| kernel | size | program | min ms | median ms | hand / this | torch / this |", "|---|---|---|---|---|---|---|", *faults]
    best = {}
    for work in chosen:
        calls = callers(work, tiers, hand, "torch" not in left_out)
        for name, call in calls.items():
            error = error_of(work, name, call)
            if error > LARGEST_ERROR:
                raise SystemExit(f"{work.name} by {name} is wrong: relative error {error}")
        clock = time.process_time if given.cpu_time else time.perf_counter
        times = measure(work, calls, given.repeats, 10, given.kept, clock) | peers[work.name, work.size]
        best[work.name, work.size] = {name: min(taken) for name, taken in times.items()}
        lines += rows(work, times, best[work.name, work.size])
        print("\n".join(lines[-len(times) :]), flush=True)
    summary = means(best, given.threads)
    print("\n".join(summary))
    if given.markdown:
        compiler = subprocess.run([native.compiler()[0], "--version"], capture_output=True, text=True, timeout=60).stdout.splitlines()[0]
        machine = facts.machine_name("cpu")
        head = f"{machine}, {given.threads} thread(s), {given.repeats} rounds; {compiler}, torch {torch.__version__}, numpy {np.__version__}"
        given.markdown.write_text("\n".join([head, "", *summary, "", *lines]) + "\n")


if __name__ == "__main__":
    main()
