"""Where the time of one call goes, from the start message to the answer, compared with a plain timer in one process.

    python -m benchmarks.timing.split --device cuda --kernelbench out/kb --minutes 5 --out $OUT

For each task and program (eager, compile) one worker; no other process uses the device, but for the last part. Ways of timing:

    asleep      prepare, then go: worker and parent sleep while they wait (as warpwright timed until November 2026)
    spin        both wait busily
    warm        both wait busily, and the program is called once on other inputs before the cache is flushed
    warm apart  the same, after the parent has waited 5 ms before it sends go
    stream      one turn of many calls on inputs of their own; the parent's clock around it
    device      the same as one CUDA graph
    plain       a loop in the worker, by its own clock: single from idle with a flushed L2, stream with three inputs in turn

Each of the first four is split: go -> the call begins (message, wake-up) -> it returns (host) -> the device is idle -> the parent has the answer.
Rows go to OUT/rows.jsonl as they are known, a table is printed last. Then, while time is left: the same programs as the evaluator times them (a judge
beside the worker, inputs by CUDA IPC), and a program of some microseconds against itself in two workers.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.timing.aa import TEXT
from warpwright import targets
from warpwright.tasks import taskfile
from warpwright.timing.facts import device_facts, machine_name
from warpwright.timing.sequential import median_interval, spread
from warpwright.verifier import timed, verify
from warpwright.workers.sandbox import Worker

SPIN = 5e-3
CALLS = 41
TURNS = 11
SPAN = 10e-3
"""Of a turn of the stream."""
STAMPS = struct.Struct("=qqq")

SMALL = {
    "softmax_small": ("torch.softmax(x, dim=1)", "torch.rand(256, 1024)"),
    "add_small": ("x + 1", "torch.rand(256, 1024)"),
    "matmul_small": ("x @ x.T", "torch.rand(256, 256)"),
}

TASKS = (  # the fastest of an earlier run first: their host time counts most
    "level2/71_", "level1/81_", "level1/59_", "level2/43_", "level2/9_", "level2/86_", "level2/76_", "level2/12_", "level2/64_", "level2/50_",
    "level2/96_", "level2/82_", "level1/64_", "level2/53_", "level1/75_", "level2/58_", "level2/77_", "level1/61_", "level2/13_", "level2/41_",
)  # fmt: skip

WRAPPER = '''
import importlib.util as _util, mmap as _mmap, struct as _struct, sys as _sys, time as _time
import torch

_spec = _util.spec_from_file_location("task_text", {path!r})
_task = _util.module_from_spec(_spec)
_sys.modules["task_text"] = _task
_spec.loader.exec_module(_task)
_file = open({stamps!r}, "r+b")
_stamps = _mmap.mmap(_file.fileno(), 4096)
_device, _clock, _pack = {device!r}, _time.perf_counter_ns, _struct.Struct("=qqq").pack_into
_synchronize = torch.cuda.synchronize if _device != "cpu" else (lambda: None)


class Timed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        with torch.device(_device):
            self.model = _task.Model(*_task.get_init_inputs()).to(_device)
            self.sets = [[t.to(_device) if isinstance(t, torch.Tensor) else t for t in _task.get_inputs()] for _ in range(3)]
        self.step = torch.compile(self.model) if {compiled!r} else self.model
        self.scratch = torch.zeros({flush} // 4, dtype=torch.int32, device=_device)
        self.turn = 0
        for inputs in self.sets:
            self.step(*inputs)
        _synchronize()

    def forward(self, mode, count):
        self.turn += 1
        inputs = self.sets[self.turn % 3]
        if mode == "call":
            return self.step(*inputs)
        if mode == "nothing":
            return None
        if mode == "stamped":
            began = _clock()
            output = self.step(*inputs)
            host = _clock()
            _synchronize()
            _pack(_stamps, 0, began, host, _clock())
            return output
        return torch.tensor(self.single(count) if mode == "single" else self.stream(count), dtype=torch.float64)

    def single(self, count):
        found = []
        for number in range(count):
            inputs, output = self.sets[number % 3], None
            self.scratch.add_(1)
            _synchronize()
            began = _time.perf_counter()
            output = self.step(*inputs)
            _synchronize()
            found.append(_time.perf_counter() - began)
        return found

    def stream(self, count):
        for number in range(3):
            self.step(*self.sets[number])
        _synchronize()
        began = _time.perf_counter()
        for number in range(count):
            self.step(*self.sets[number % 3])
        _synchronize()
        return [(_time.perf_counter() - began) / count]
'''


class Subject:
    """One program in a worker of its own."""

    def __init__(self, text: str, device: str, compiled: bool) -> None:
        self.device = device
        self.worker = Worker("baseline", device)
        folder = Path(self.worker.folder)
        stamps, task = folder / "stamps", folder / "task_text.py"
        stamps.write_bytes(bytes(4096))
        task.write_text(text)
        flush = int(self.worker.request("device_facts")["flush_bytes"])
        wrapper = WRAPPER.format(path=str(task), stamps=str(stamps), device=device, compiled=compiled, flush=flush)
        with stamps.open("r+b") as file:
            self.stamps = mmap.mmap(file.fileno(), 4096)
        files = [["program.py", wrapper]]
        checked(self.worker.request("build", 300, entry="program", files=files, class_name="Timed", init={"list": []}, training=None, stateful=False))

    def prepare(self, mode: str, count: int = 0, entry: str | None = "program", **options: Any) -> None:
        """Lay out one call."""
        inputs = {"list": [{"value": mode}, {"value": count}]}
        checked(self.worker.request("prepare", 300, entry=entry, inputs=inputs, **options))

    def line_up(self, calls: int, graph: bool, spin: float) -> str:
        """Lay out a turn; return why it cannot be captured, or ""."""
        inputs = {"list": [{"value": "call"}, {"value": 0}]}
        reply = checked(self.worker.request("line_up", 300, entry="program", inputs=inputs, seeds=list(range(calls)), graph=graph, spin=spin))
        return str(reply.get("refused", ""))

    def plain(self, mode: str, count: int) -> list[float]:
        """Return the seconds that the plain timer in the worker reads."""
        self.prepare(mode, count)
        self.worker.go(300)
        tree = checked(self.worker.request("export"))["tree"]["tensor"]
        from warpwright.workers.tensors import exchange

        return [float(value) for value in exchange.take(tree, "cpu", folder=self.worker.exchange)]

    def close(self) -> None:
        self.stamps.close()
        self.worker.close()


def checked(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a reply that is no error."""
    if "error" in reply:
        raise RuntimeError(str(reply["error"])[-1500:])
    return reply


WAYS: dict[str, dict[str, Any]] = {
    "asleep": {"prepare": {}, "spin": 0.0, "wait": 0.0},
    "spin": {"prepare": {"spin": SPIN}, "spin": SPIN, "wait": 0.0},
    "warm": {"prepare": {"spin": SPIN, "warm": True}, "spin": SPIN, "wait": 0.0},
    "warm apart": {"prepare": {"warm": True}, "spin": SPIN, "wait": 5e-3},
}


def split(subject: Subject, way: str, calls: int) -> dict[str, float]:
    """Return medians in microseconds: the parent's span, and its parts."""
    options, rows = WAYS[way], []
    for _ in range(calls + 3):
        subject.prepare("stamped", flush=True, slot="same", **options["prepare"])
        time.sleep(options["wait"])
        start = time.perf_counter_ns()
        seconds = subject.worker.go(60, spin=options["spin"])
        end = time.perf_counter_ns()
        began, host, idle = STAMPS.unpack_from(subject.stamps, 0)
        rows.append((seconds * 1e6, (began - start) / 1e3, (host - began) / 1e3, (idle - host) / 1e3, (end - idle) / 1e3))
    middle = [statistics.median(column) for column in zip(*rows[3:], strict=True)]
    return dict(zip(("span", "wake", "host", "device", "answer"), (round(value, 1) for value in middle), strict=True))


def empty(subject: Subject, way: str, calls: int = CALLS) -> float:
    """Return the median microseconds of a call of nothing, in this way of waiting."""
    options, found = WAYS[way], []
    for _ in range(calls):
        spin = options["prepare"].get("spin", 0.0)
        subject.prepare("call", entry=None, spin=spin)
        time.sleep(options["wait"])
        found.append(subject.worker.go(60, spin=options["spin"]) * 1e6)
    return round(statistics.median(found), 1)


def hollow(subject: Subject, way: str, calls: int = CALLS) -> float:
    """Return the same of a program that does nothing, prepared as any other: the cache is flushed before it."""
    options, found = WAYS[way], []
    for _ in range(calls):
        subject.prepare("nothing", flush=True, slot="same", **options["prepare"])
        time.sleep(options["wait"])
        found.append(subject.worker.go(60, spin=options["spin"]) * 1e6)
    return round(statistics.median(found), 1)


def turns(subject: Subject, calls: int, graph: bool, overhead: float) -> float | str:
    """Return the median microseconds of a call in a turn of `calls`, or why they cannot be captured."""
    found = []
    for _ in range(TURNS):
        refused = subject.line_up(calls, graph, SPIN)
        if refused:
            return refused
        found.append((subject.worker.go(60, spin=1.0) * 1e6 - overhead) / calls)
    return round(statistics.median(found[1:]), 2)


def measure_task(name: str, text: str, device: str, compiled: bool) -> dict[str, Any]:
    """Return one row of the table."""
    began = time.monotonic()
    subject = Subject(text, device, compiled)
    row: dict[str, Any] = {"task": name, "program": "compile" if compiled else "eager", "build_seconds": round(time.monotonic() - began, 1)}
    try:
        subject.plain("single", 5)
        row["plain_single"] = round(statistics.median(subject.plain("single", CALLS)) * 1e6, 1)
        count = max(6, min(400, round(SPAN * 4 / (row["plain_single"] * 1e-6))))
        row["plain_stream"] = round(statistics.median([subject.plain("stream", count)[0] for _ in range(5)]) * 1e6, 2)
        for way in WAYS:
            row[f"empty {way}"], row[f"hollow {way}"] = empty(subject, way), hollow(subject, way)
            row[way] = split(subject, way, CALLS)
        for label, span in (("stream", SPAN), ("stream short", SPAN / 4)):
            calls = max(4, min(200, round(span / (row["plain_stream"] * 1e-6))))
            row[f"calls {label}"] = calls
            row[label] = turns(subject, calls, False, row["empty spin"])
        if device != "cpu":
            row["device"] = turns(subject, max(4, min(200, round(SPAN / 4 / (row["plain_stream"] * 1e-6)))), True, row["empty spin"])
        row["plain_single_again"] = round(statistics.median(subject.plain("single", CALLS)) * 1e6, 1)
    finally:
        subject.close()
    row["seconds"] = round(time.monotonic() - began, 1)
    return row


def as_evaluated(name: str, path: Path, device: str, calls: int = 25) -> dict[str, Any]:
    """Time the original as the evaluator does: inputs come fresh from a judge. The span is not stamped."""
    began = time.monotonic()
    task = taskfile.describe(path)
    source = targets.baselines(taskfile.source_text(task), device, ["eager"])["eager"]
    row: dict[str, Any] = {"task": name, "program": "eager, evaluated"}
    with verify.Judge(task, device) as judge, Worker("baseline", device) as worker:
        row["judge_seconds"] = round(time.monotonic() - began, 1)
        _, rejected = verify.build(judge, worker, "program", source)
        if rejected:
            raise RuntimeError(rejected.reason)
        timed.load_timed_state(judge, worker, "program")
        shipments = [judge.fresh()]
        for way in ("asleep", "spin", "warm"):
            found, preparing = [], []
            for _ in range(calls):
                start = time.perf_counter()
                options = WAYS[way]["prepare"]
                verify_prepare(worker, shipments[0].inputs, options)
                preparing.append(time.perf_counter() - start)
                found.append(worker.go(60, spin=WAYS[way]["spin"]) * 1e6)
            row[way] = {"span": round(statistics.median(found[3:]), 1), "prepare": round(statistics.median(preparing[3:]) * 1e6)}
        start = time.perf_counter()
        judge.fresh()
        row["fresh_seconds"] = round(time.perf_counter() - start, 3)
    row["seconds"] = round(time.monotonic() - began, 1)
    return row


def verify_prepare(worker: Worker, inputs: Any, options: dict[str, Any]) -> None:
    """Lay out a shipment as `TimedProgram` does, with options of its own."""
    checked(worker.request("prepare", 300, entry="program", inputs=inputs, slot="new", flush=True, **options))


def against_itself(name: str, text: str, device: str, runs: int, pairs: int, regime: str, calls: int) -> dict[str, Any]:
    """Compare a program with itself in two workers, `runs` times: the ratios' medians, and how far their intervals reach."""
    began = time.monotonic()
    rng, ratios, widths, spreads, per_call = Random(0), [], [], [], 0.0
    subjects = [Subject(text, device, False) for _ in range(2)]
    try:
        overhead = empty(subjects[0], "spin")

        def once(subject: Subject) -> float:
            if regime == "single":
                subject.prepare("call", flush=True, slot="same", spin=SPIN, warm=True)
                return subject.worker.go(60, spin=SPIN) * 1e6 - overhead
            refused = subject.line_up(calls, regime == "device", SPIN)
            if refused:
                raise RuntimeError(refused)
            return (subject.worker.go(60, spin=1.0) * 1e6 - overhead) / calls

        for _ in range(3):
            for subject in subjects:
                once(subject)
        for _ in range(runs):
            found = []
            for _ in range(pairs):
                order = rng.sample(subjects, 2)
                seconds = {id(subject): once(subject) for subject in order}
                found.append(seconds[id(subjects[0])] / seconds[id(subjects[1])])
                per_call = seconds[id(subjects[0])]
            low, high = median_interval(found, 0.005)
            ratios.append(statistics.median(found))
            widths.append(max(high - 1, 1 - low))
            spreads.append(spread(found))
    finally:
        for subject in subjects:
            subject.close()
    within = sum(width <= 0.005 for width in widths)
    row = {
        "task": name, "program": f"A/A {regime}", "runs": runs, "pairs": pairs, "calls": calls, "call_us": round(per_call, 3),
        "ratios": [round(min(ratios), 5), round(statistics.median(ratios), 5), round(max(ratios), 5)], "interval_within_0.5%": within,
        "median_within_0.5%": sum(abs(ratio - 1) <= 0.005 for ratio in ratios), "spread": round(statistics.median(spreads), 5),
        "seconds": round(time.monotonic() - began, 1),
    }  # fmt: skip
    return row


@contextmanager
def busy(load: bool) -> Iterator[None]:
    """Inside, every core but one has a program of its own to run, if `load`."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(max(1, (os.cpu_count() or 2) - 1))] if load else []
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def subjects(kernelbench: Path | None) -> Iterator[tuple[str, str]]:
    """Yield name and text of each task."""
    for name, (function, inputs) in SMALL.items():
        yield name, TEXT.format(function=function, inputs=inputs)
    if kernelbench is None:
        return
    root = kernelbench / "KernelBench" if (kernelbench / "KernelBench").is_dir() else kernelbench
    for pattern in TASKS:
        level, _, start = pattern.partition("/")
        for path in sorted((root / level).glob(f"{start}*.py")):
            yield f"{level}_{path.stem}"[:40], path.read_text()


def table(rows: list[dict[str, Any]]) -> str:
    """Return the rows as text, in microseconds."""
    lines = ["plain: single stream | way: span-empty (wake host device answer) ... | stream  short  device"]
    for row in rows:
        head = f"{row['task'][:24]:24} {row['program']:8}"
        if "failed" in row:
            lines.append(f"{head} FAILED {row['failed'][-160:]}")
        elif "plain_single" in row:
            ways = " | ".join(
                f"{way} {row[way]['span'] - row[f'empty {way}']:.0f} ({row[way]['wake']:.0f} {row[way]['host']:.0f} {row[way]['device']:.0f} "
                f"{row[way]['answer']:.0f}; e{row[f'empty {way}']:.0f} h{row[f'hollow {way}']:.0f})"
                for way in WAYS
            )
            device = str(row.get("device", ""))[:60]
            plain = f"{row['plain_single']:.0f} {row['plain_stream']:.1f}"
            lines.append(f"{head} {plain} | {ways} | {row['stream']} x{row['calls stream']}  {row['stream short']}  {device}")
        else:
            lines.append(f"{head} " + ", ".join(f"{key} {value}" for key, value in row.items() if key not in ("task", "program")))
    return "\n".join(lines)


def main() -> None:
    """Read the command line, run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--kernelbench", type=Path)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--aa-runs", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", "benchmarks/results/timing_split_cpu")))
    chosen = parser.parse_args()
    device = "cuda:0" if chosen.device == "cuda" else chosen.device
    chosen.out.mkdir(parents=True, exist_ok=True)
    end, rows, few = time.monotonic() + 60 * chosen.minutes, [], max(1, chosen.aa_runs // 3)
    with tempfile.TemporaryDirectory() as folder, (chosen.out / "rows.jsonl").open("w") as file:

        def add(what: Callable[[], dict[str, Any]], name: str, program: str, share: float = 1.0) -> None:
            if time.monotonic() > end - 60 * chosen.minutes * (1 - share):
                return
            try:
                row = what()
            except Exception as error:  # one task's failure leaves the others
                row = {"task": name, "program": program, "failed": f"{error!r} {traceback.format_exc()[-300:]}"}
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"{time.monotonic() - end + 60 * chosen.minutes:.0f} s: {row['task']} {row['program']}", flush=True)

        named = list(subjects(chosen.kernelbench))
        for load in (False, True):
            with busy(load):
                for regime, calls, runs in (("device", 200, chosen.aa_runs), ("stream", 8 if device == "cpu" else 100, few), ("single", 1, few)):
                    program = f"{regime}{' busy' if load else ''}"
                    if regime == "device" and device == "cpu":
                        continue

                    def compared(regime: str = regime, calls: int = calls, runs: int = runs, program: str = program) -> dict[str, Any]:
                        found = against_itself("softmax_small", named[0][1], device, runs, 40, regime, calls)
                        return {**found, "program": f"A/A {program}"}

                    add(compared, "softmax_small", f"A/A {program}", 0.25)
        for number, (name, text) in enumerate(named):
            for compiled in (False, True):
                if not compiled or number in (3, 5):
                    add(lambda n=name, t=text, c=compiled: measure_task(n, t, device, c), name, "compile" if compiled else "eager", 0.85)  # type: ignore[misc]
        for name, text in [named[0], *named[len(SMALL) :]]:
            path = Path(folder, f"{name}.py")
            path.write_text(text)
            add(lambda n=name, p=path: as_evaluated(n, p, device), name, "evaluated")  # type: ignore[misc]
    facts = device_facts(device)
    print(f"\n{machine_name(device)}; torch {facts['torch']}, {facts['system']}, {os.cpu_count()} cores; microseconds")
    print(table(rows))


if __name__ == "__main__":
    main()
