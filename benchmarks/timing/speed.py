"""How long an answer takes: a cold audit and a warm server, for a wrong program and a right one; wall time, CPU time, processes started.

    python -m benchmarks.timing.speed --device cuda --out $OUT
    python -m benchmarks.timing.speed --device cpu --out /tmp/speed --parts warm

Cold is the command `warpwright audit` with its default baselines, everything in it, with an archive and a cache folder of its own; "cold, caches" is
the same once more, when what compilers and probes have kept on the disk is there. Warm is a resident evaluator that has answered a program of each
kind before; its programs differ from one another, and none is answered from an archive. Rows go to OUT/rows.jsonl as they are known.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
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

SIZES = {"cpu": {"rows": 256, "columns": 1024, "part": 16}, "cuda": {"rows": 4096, "columns": 4096, "part": 256}}
SLICE = 0.05


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

    def __init__(self, device: str, out: Path, folder: Path, seconds: float) -> None:
        self.device, self.out, self.folder, self.seconds = device, out, folder, seconds
        self.sizes = SIZES[device.partition(":")[0]]
        self.task = folder / "task.py"
        self.task.write_text(TASK.format(**self.sizes))
        self.taken: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._number = 0

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
        began = time.monotonic()
        try:
            with Watch() as watch:
                said = step()
        except Exception:
            self.write({"state": state, "program": kind, "error": traceback.format_exc()[-600:]})
            return
        interval = (said.get("speedup") or {}).get("interval")
        row = {
            "state": state, "program": kind, "seconds": round(time.monotonic() - began, 2), **watch.row, "status": said["status"],
            "verdict": said.get("verdict"), "interval": interval, "reason": str(said.get("reason", ""))[:120],
        }  # fmt: skip
        self.write(row)
        self.taken.setdefault((state, kind), []).append(row)

    def audit(self, kind: str) -> dict[str, Any]:
        """Run the command on a program; return the line that it prints."""
        file = self.folder / f"{kind}.py"
        file.write_text(self.program(kind))
        command = [sys.executable, "-m", "warpwright.cli", "audit", str(file), "--task", str(self.task), "--target", self.device.partition(":")[0]]
        archive = self.folder / f"archive{self._number}.db"
        environment = {**os.environ, "WARPWRIGHT_CACHE": str(self.folder / "cache")}
        done = subprocess.run([*command, "--json", "--archive", str(archive)], capture_output=True, text=True, timeout=400, env=environment)
        lines = done.stdout.splitlines()
        if not lines:
            raise RuntimeError(done.stderr[-500:])
        said: dict[str, Any] = json.loads(lines[-1])
        return said

    def warm(self, session: Session, kind: str) -> dict[str, Any]:
        """Ask the resident evaluator for a program."""
        return session.evaluate(self.task, self.program(kind), device=self.device, seconds=self.seconds, deadline=300)

    def summarise(self) -> None:
        """Write the rows of the table."""
        for (state, kind), rows in self.taken.items():
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
    given.add_argument("--parts", default="cold,warm,rate", help="of cold, warm, rate (%(default)s)")
    given.add_argument("--runs", type=int, default=4, help="warm answers of each kind")
    given.add_argument("--seconds", type=float, default=5.0, help="of timing, at most, for a warm answer")
    given.add_argument("--rate-seconds", type=float, default=60.0)
    chosen = given.parse_args()
    out, parts = Path(chosen.out), chosen.parts.split(",")
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(chosen.device, out, Path(name), chosen.seconds)
        facts = device_facts(chosen.device)
        bench.write({"part": "conditions", "when": datetime.now(UTC).isoformat(timespec="seconds"), "load": os.getloadavg()[0], **facts})
        if "cold" in parts:
            for state in ("cold", "cold, caches"):
                for kind in ("wrong", "right"):
                    bench.noted(state, kind, lambda kind=kind: bench.audit(kind))  # type: ignore[misc]
        if {"warm", "rate"} & set(parts):
            os.environ["WARPWRIGHT_CACHE"] = str(Path(name, "cache of the server"))
            with Service(Path(name, "server")) as service:
                session = service.session()
                for kind in ("wrong", "right"):
                    bench.noted("first of a server", kind, lambda kind=kind: bench.warm(session, kind))  # type: ignore[misc]
                for kind in ("wrong", "right") * chosen.runs if "warm" in parts else ():
                    bench.noted("warm", kind, lambda kind=kind: bench.warm(session, kind))  # type: ignore[misc]
                if "rate" in parts:
                    _rate(bench, session, chosen.rate_seconds)
        bench.summarise()


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
