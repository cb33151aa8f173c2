"""How long an answer takes: a cold audit and a warm server, for a wrong program and a right one; wall time, CPU time, processes started.

    python -m benchmarks.timing.speed --device cuda --out $OUT
    python -m benchmarks.timing.speed --device cpu --out /tmp/speed --parts warm
    python -m benchmarks.timing.speed --device cuda --out $OUT --parts warm,rate --limit 85 --rate-seconds 20 --compile-threads 8

Cold is the command `warpwright audit` with its default baselines, everything in it, with an archive and a cache folder of its own; "cold, caches" is
the same once more, when what compilers and probes have kept on the disk is there. Warm is a resident evaluator that has answered a program of each
kind before; its programs differ from one another, and none is answered from an archive. Rows go to OUT/rows.jsonl as they are known; those of a
server say which steps took how long, and how the program was timed. `--limit` is for everything: what is late is cancelled and a row says so, and
what comes last is left out. An answer of a server that needs more time than is left is not begun: cut short it says nothing of how long it takes.
A command's events, with the seconds since its start, go to OUT/events.jsonl, and are printed: of one that was cut off, too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.timing.phases import text
from warpwright.archive import Archive
from warpwright.server import Service, Session
from warpwright.timing.facts import device_facts
from warpwright.workers.procfs import descendants, stat_fields

TASK = """import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand({columns}) + 0.5)

    def forward(self, x):
        return torch.cat([torch.softmax(part * self.weight, dim=1) for part in x.split({part})])


def get_inputs():
    return [torch.randn({rows}, {columns})]


def get_init_inputs():
    return []
"""

PROGRAM = """import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones({columns}))

    def forward(self, x):  # {number}
        y = x * self.weight
        return {answer}
"""

ANSWERS = {"right": "torch.softmax(y, dim=1)", "wrong": "torch.softmax(y.half(), dim=1).float()"}
"""The right one takes all rows at once where the task takes them part by part: another program with the same rounding, on every device."""

SIZES = {"cpu": {"rows": 256, "columns": 1024, "part": 16}, "cuda": {"rows": 2048, "columns": 4096, "part": 512}}
"""On a GPU 32 MiB in four parts: each part is a kernel of its own to torch.compile, and each is tuned for seconds."""

SLICE = 0.05
LEAST_SECONDS = 1.0
"""Nothing is begun with less time left."""

NEEDS = {
    ("cpu", "first of a server", "wrong"): 20.0, ("cpu", "first of a server", "right"): 90.0, ("cpu", "warm", "right"): 15.0,
    ("cuda", "first of a server", "wrong"): 20.0, ("cuda", "first of a server", "right"): 75.0, ("cuda", "warm", "right"): 15.0,
}  # fmt: skip
"""Seconds that have to be left for it: the first right answer beside all baselines took 51 s on an H200, and was cancelled twice after 31."""

WITHOUT_AUTOTUNING = 0.4
"""Of that where no baseline tries kernels out: 28 s on an H200."""

TIMED = (
    "regime", "pairs", "spread_of_pairs", "correlation_time", "checked_calls", "calls_in_a_turn", "seconds", "second_process",
    "disturbed_passes", "note",
)  # fmt: skip
"""What a row says of the conditions of a timing."""

STEP = re.compile(r"(\d{4}-\S+T\S+) \d+ (.+)")
"""Of a lane's log: when something was begun, and what."""


def sizes_of(device: str, rows: int = 0) -> dict[str, int]:
    """Return the sizes of the task on a device; `rows`: so many in place of the usual number, in as many parts."""
    usual = SIZES[device.partition(":")[0]]
    return {**usual, "rows": rows, "part": rows * usual["part"] // usual["rows"]} if rows else usual


class Watch:
    """Counts the processes below this one, and their CPU time, as far as they live longer than a twentieth of a second."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[int, str], float] = {}
        """CPU time of each process, at its latest sight."""
        self._glance()
        self._known = dict(self.seconds)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _glance(self) -> None:
        ticks = os.sysconf("SC_CLK_TCK")
        for pid in descendants(os.getpid()):
            with contextlib.suppress(OSError):
                fields = stat_fields(f"/proc/{pid}")
                self.seconds[pid, fields[19]] = (int(fields[11]) + int(fields[12])) / ticks  # with its start time: numbers come again

    def _look(self) -> None:
        while not self._end.wait(SLICE):
            self._glance()

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    @property
    def row(self) -> dict[str, Any]:
        """Return the CPU time since the beginning, and how many processes were not there before."""
        used = sum(seconds - self._known.get(name, 0.0) for name, seconds in self.seconds.items())
        return {"CPU s": round(used, 1), "processes": len(self.seconds.keys() - self._known.keys())}


class Bench:
    """Writes a row for each answer, and at the end one for each kind."""

    def __init__(
        self, device: str, out: Path, folder: Path, seconds: float, interval: float, baselines: str, limit: float, rows: int = 0
    ) -> None:  # fmt: skip
        self.device, self.out, self.folder, self.baselines = device, out, folder, baselines
        self.seconds, self.interval = seconds, interval
        self.within = 0.0
        """Seconds that are asked for."""
        self.end = time.monotonic() + limit
        self.sizes = sizes_of(device, rows)
        self.task = folder / "task.py"
        self.task.write_text(TASK.format(**self.sizes))
        self.taken: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._number = 0
        self._log_read = 0
        self._events = folder / "no events"
        """What the latest command did, and when."""

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return self.end - time.monotonic()

    def write(self, row: dict[str, Any]) -> None:
        """Append a row."""
        with (self.out / "rows.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    def program(self, kind: str) -> str:
        """Return a program that was not there before."""
        self._number += 1
        return PROGRAM.format(answer=ANSWERS[kind], number=self._number, **self.sizes)

    def noted(self, state: str, kind: str, step: Callable[[], dict[str, Any]]) -> None:
        """Time a step and write what it came to."""
        needs, left = NEEDS.get((self.device.partition(":")[0], state, kind), LEAST_SECONDS), self.left
        if state == "first of a server" and self.baselines and "max_autotune" not in self.baselines:
            needs *= WITHOUT_AUTOTUNING
        if left < needs:
            self.write({"state": state, "program": kind, "left out": f"it may take {needs:.0f} s, and {max(0.0, left):.0f} s are left"})
            return
        began = time.monotonic()
        try:
            with Watch() as watch:
                said = step()
        except Exception:
            seconds = round(time.monotonic() - began, 2)
            self.write({"state": state, "program": kind, "seconds": seconds, "error": traceback.format_exc()[-600:], "steps": self.steps()})
            self.show_events(state, kind)
            return
        interval = (said.get("speedup") or {}).get("interval")
        row = {
            "state": state, "program": kind, "seconds": round(time.monotonic() - began, 2), **watch.row, "status": said["status"],
            "verdict": said.get("verdict"), "interval": interval, "reason": str(said.get("reason", ""))[:120],
            "baselines": said.get("baselines"), "left out": said.get("left_out"), "built": said.get("built"), "steps": self.steps(),
            "timed": said.get("timed"),
        }  # fmt: skip
        self.write(row)
        self.show_events(state, kind)
        self.taken.setdefault((state, kind), []).append(row)

    def show_events(self, state: str, kind: str) -> None:
        """Keep and print what a command did, with the seconds since it began; one that was cut off as well."""
        with contextlib.suppress(OSError):
            events = [json.loads(line) for line in self._events.read_text().splitlines() if line.endswith("}")]
            self._events.unlink()
            with (self.out / "events.jsonl").open("a") as file:
                file.writelines(json.dumps({"state": state, "program": kind, **event}) + "\n" for event in events)
            print(text(events), flush=True)

    def steps(self) -> dict[str, float]:
        """Return the seconds of each step that a lane has noted since this was asked last; nothing of a command."""
        log, now = self.folder / "server" / "lanes.log", datetime.now(UTC)
        if not log.exists():
            return {}
        text = log.read_text(errors="replace")
        lines, self._log_read = text[self._log_read :].splitlines(), len(text)
        begun = [(datetime.fromisoformat(match[1]), match[2]) for match in map(STEP.fullmatch, lines) if match]
        taken: dict[str, float] = {}
        for (at, what), until in zip(begun, [*(at for at, _ in begun[1:]), now], strict=True):
            taken[what] = round(taken.get(what, 0.0) + (until - at).total_seconds(), 2)
        return taken

    def audit(self, kind: str) -> dict[str, Any]:
        """Run the command on a program; return the line that it prints."""
        file = self.folder / f"{kind}.py"
        file.write_text(self.program(kind))
        self._events = self.folder / f"events{self._number}.jsonl"
        command = [sys.executable, "-m", "benchmarks.timing.phases", str(self._events), "audit", str(file), "--task", str(self.task)]
        command += ["--target", self.device.partition(":")[0]]
        archive = self.folder / f"archive{self._number}.db"
        environment = {**os.environ, "WARPWRIGHT_CACHE": str(self.folder / "cache")}
        command += ["--baselines", self.baselines] if self.baselines else []
        command += ["--json", "--archive", str(archive)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=min(400.0, self.left), env=environment)
        lines = done.stdout.splitlines()
        if not lines:
            raise RuntimeError(done.stderr[-500:])
        said: dict[str, Any] = json.loads(lines[-1])
        with Archive(archive) as kept:
            said["built"] = {one.candidate.proposer: round(one.build.seconds, 2) for one in kept.records() if one.build is not None}
        return said

    def warm(self, session: Session, kind: str) -> dict[str, Any]:
        """Ask the resident evaluator for a program."""
        chosen = {"baselines": self.baselines.split(",")} if self.baselines else {}
        said = session.evaluate(
            self.task, self.program(kind), device=self.device, seconds=self.seconds, interval=self.interval, deadline=min(300.0, self.left), **chosen,
            **({"within": self.within} if self.within else {}),
        )  # fmt: skip
        measured = [record.measurement for record in session.archive.records() if record.key == said.get("record")]
        said["timed"] = {name: one.conditions[name] for one in measured if one is not None for name in TIMED if name in one.conditions}
        return said

    def summarise(self) -> None:
        """Write the rows of the table, and forget what they are made of."""
        taken, self.taken = self.taken, {}
        for (state, kind), rows in taken.items():
            seconds = [row["seconds"] for row in rows]
            self.write(
                {
                    "table": "speed", "state": state, "program": kind, "answers": len(rows), "median s": statistics.median(seconds),
                    "longest s": max(seconds), "CPU s": statistics.median(row["CPU s"] for row in rows),
                    "processes": statistics.median(row["processes"] for row in rows),
                    "statuses": ", ".join(sorted({row["status"] for row in rows})),
                }
            )  # fmt: skip


def main() -> None:
    """Run the parts that were asked for."""
    given = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    given.add_argument("--device", default="cpu")
    given.add_argument("--out", required=True)
    given.add_argument("--parts", default="cold,warm,rate", help="of cold (cold-once: without a second time), warm, rate (%(default)s)")
    given.add_argument("--kinds", default="wrong,right", help="programs that are asked for (%(default)s)")
    given.add_argument("--runs", type=int, default=4, help="warm answers of each kind")
    given.add_argument("--seconds", type=float, default=5.0, help="of timing, at most, for a warm answer")
    given.add_argument("--interval", type=float, default=0.0, help="share of the speed-up that a warm answer's interval may reach to either side")
    given.add_argument("--within", type=float, default=0.0, help="seconds that a warm answer may take (what --seconds of timing come to)")
    given.add_argument("--rows", type=int, default=0, help="of the task's input (2,048 on a GPU, 256 on a CPU)")
    given.add_argument("--rate-seconds", type=float, default=60.0)
    given.add_argument("--limit", type=float, default=1e9, help="seconds in all")
    given.add_argument("--baselines", default="", help="names, joined by commas (all that the device has)")
    given.add_argument("--compile-threads", default="", help="processes that torch.compile uses for the baselines (one)")
    chosen = given.parse_args()
    out, parts = Path(chosen.out), chosen.parts.split(",")
    out.mkdir(parents=True, exist_ok=True)
    if chosen.compile_threads:
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = chosen.compile_threads
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        bench = Bench(chosen.device, out, Path(name), chosen.seconds, chosen.interval, chosen.baselines, chosen.limit, chosen.rows)
        bench.within = chosen.within
        facts = device_facts(chosen.device)
        options = {"baselines": chosen.baselines or "all", "compile threads": chosen.compile_threads or "1", "sizes": str(bench.sizes)}
        options |= {"seconds": str(chosen.seconds), "interval": str(chosen.interval), "within": str(chosen.within)}
        bench.write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0], **options, **facts})
        if {"cold", "cold-once"} & set(parts):
            for state in ("cold", "cold, caches") if "cold" in parts else ("cold",):
                for kind in chosen.kinds.split(","):
                    bench.noted(state, kind, lambda kind=kind: bench.audit(kind))  # type: ignore[misc]
        if {"warm", "rate"} & set(parts):
            os.environ["WARPWRIGHT_CACHE"] = str(Path(name, "server-cache"))
            with Service(Path(name, "server")) as service:
                try:
                    _warm(bench, service.session(), parts, chosen.kinds.split(","), chosen.runs, chosen.rate_seconds)
                finally:
                    bench.summarise()  # before the server is closed, which may take longer than there is time
        bench.summarise()


def _warm(bench: Bench, session: Session, parts: list[str], kinds: list[str], runs: int, rate_seconds: float) -> None:
    """Ask a resident evaluator: the first of each kind, then those that are counted."""
    for kind in kinds:
        bench.noted("first of a server", kind, lambda kind=kind: bench.warm(session, kind))  # type: ignore[misc]
    if any(("first of a server", kind) not in bench.taken for kind in kinds):
        bench.write({"state": "warm", "left out": "a first answer of the server is missing, and what came next would be one"})
        return
    for kind in kinds * runs if "warm" in parts else ():
        bench.noted("warm", kind, lambda kind=kind: bench.warm(session, kind))  # type: ignore[misc]
    if "rate" in parts and bench.left > LEAST_SECONDS:
        _rate(bench, session, min(rate_seconds, bench.left))


def _rate(bench: Bench, session: Session, seconds: float) -> None:
    """Ask for as many programs as are answered in a time, three wrong ones to each right one, as a policy early in its training sends them."""
    began, count = time.monotonic(), 0
    try:
        while time.monotonic() - began < seconds:
            bench.warm(session, "right" if count % 4 == 3 else "wrong")
            count += 1
    except Exception:
        bench.write({"state": "rate", "error": traceback.format_exc()[-600:]})
    taken = time.monotonic() - began
    bench.write({"table": "rate", "programs": count, "seconds": round(taken, 1), "a minute": round(60 * count / taken, 1)})


if __name__ == "__main__":
    main()
