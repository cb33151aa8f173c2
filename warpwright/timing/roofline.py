"""Bytes and flops of a task against the measured peaks of a device: the floor below which a time is not believed, and where a program stands.

The floor counts only what every correct program has to do: read each input element that can influence the output, write each output element.
Arithmetic is not in it, since an exact rewrite may avoid it, and neither are parameters, which may be folded. Both are in the position that the
report shows. `work` and `peaks` do their work in a process of their own, so that the caller needs neither torch nor a GPU.
"""

from __future__ import annotations

import functools
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from warpwright.base import Scalar, Task, digest, from_json, to_json
from warpwright.errors import RooflineError
from warpwright.files import write_whole
from warpwright.timing.facts import machine_name
from warpwright.timing.rates import Peaks, Work

SAFETY: Mapping[str, float] = {"cuda": 1.15, "cpu": 1.5}
"""The floor supposes bandwidths this much above the best ever measured. A CPU's memory is shared with strangers, so that a busy day looks slow."""

PROBE_SECONDS = 15.0
"""What measuring the peaks takes: 9 s on two idle cores, 6 s on an H200."""

MOST_TIMES = 3
"""Measurements of a machine's peaks at most: what is near the roof makes for another one, which a busy machine may have made too low."""


def floor_seconds(work: Work, peaks: Peaks) -> float:
    """Return a time that no correct program can beat: the bytes at the peaks, raised by SAFETY.

    As many bytes as the last-level cache holds are charged at its own rate, although it is flushed before a call: what a call writes
    may still be in the cache when it ends, and no flush is perfect.
    """
    cached = min(work.bytes, peaks.cache_bytes)
    return (cached / max(peaks.cache, peaks.memory) + (work.bytes - cached) / peaks.memory) / SAFETY[_kind(peaks.device)]


@dataclass(frozen=True)
class Position:
    """How near to the roofs a program is, each as a share of the peak that its time would need."""

    bandwidth: float
    arithmetic: float

    def __str__(self) -> str:
        if self.arithmetic > 1.0:
            return f"{self.bandwidth:.0%} of the bandwidth roof; the original's arithmetic is avoided or done at another precision".replace("%", " %")
        roof = "bandwidth" if self.bandwidth >= self.arithmetic else "arithmetic"
        return f"{100 * max(self.bandwidth, self.arithmetic):.0f} % of the {roof} roof"


def position(work: Work, peaks: Peaks, seconds: float, tf32: bool = False) -> Position:
    """Return where a program that takes `seconds` a call stands. `tf32`: float32 products may use TF32."""
    arithmetic = sum(flops / _rate(peaks, kind, tf32) for kind, flops in work.flops.items())
    return Position((work.bytes + work.parameter_bytes) / peaks.memory / seconds, arithmetic / seconds)


def facts(work: Work, peaks: Peaks) -> dict[str, Scalar]:
    """Return what a record keeps of the roofline: enough to draw it again."""
    flops = sum(work.flops.values())
    seconds = sum(count / _rate(peaks, kind, False) for kind, count in work.flops.items())
    known: dict[str, Scalar] = {
        "work_bytes": work.bytes,
        "parameter_bytes": work.parameter_bytes,
        "work_flops": flops,
        "peak_bytes_per_second": peaks.memory,
        "peak_flops_per_second": flops / seconds if seconds else max(peaks.flops.values(), default=0.0),
    }
    return {**known, "floor_note": work.note} if work.note else known


def bandwidth_share(known: Mapping[str, Any], seconds: float) -> float:
    """Return how much of the measured bandwidth a program that takes `seconds` needs to move only what every correct one moves; 0 if unknown.

    `known`: what `facts` returned, or a record that holds it.
    """
    moved, peak = (float(known.get(name, 0.0)) for name in ("work_bytes", "peak_bytes_per_second"))
    return moved / peak / seconds if peak > 0 and seconds > 0 else 0.0


def _rate(peaks: Peaks, kind: str, tf32: bool) -> float:
    name = "tf32" if tf32 and kind == "float32" and "tf32" in peaks.flops else kind
    return peaks.flops.get(name) or max(peaks.flops.values())


def _kind(device: str) -> str:
    return device.partition(":")[0]


# --- in a process of their own -----------------------------------------------------------------------------------------------------


def work(task: Task, timeout: float = 300.0, folder: Path | None = None, count: Callable[[], Mapping[str, Any]] | None = None) -> Work:
    """Return the work of a task at its own sizes. What cannot be counted has zero bytes, so that its floor is 0, and a note.

    `folder`: where an answer is kept, for it costs an import of torch (3 s of the processor's time), and a task is opened many times. `count`: asks a
    process that has loaded the task, in place of one of its own; it raises RooflineError where that cannot count.
    """
    kept = folder / "work" / f"{digest(task.key, *_counted_by())}.json" if folder is not None and task.source_digest else None
    try:
        if kept is not None:
            return Work(**json.loads(kept.read_text()))
    except (OSError, ValueError, TypeError):  # not there, or cut off
        pass
    try:
        counted = Work(**(count() if count is not None else _ask({"task": to_json(task)}, timeout)))
    except RooflineError as error:
        return Work(0, 0, note=f"not counted: {error}")
    if kept is not None:
        with suppress(OSError):  # a folder that cannot be written to keeps nothing
            kept.parent.mkdir(parents=True, exist_ok=True)
            write_whole(kept, json.dumps(asdict(counted)))
    return counted


@functools.cache
def _counted_by() -> tuple[str, str]:
    """Return what an answer depends on beside the task: torch and the rules."""
    return metadata.version("torch"), Path(__file__).with_name("counting.py").read_text()


Probe = subprocess.Popen[str]
"""A process that has imported what measuring takes, and waits for the question."""


def probe_ahead(device: str, folder: Path) -> Probe | None:
    """Start the process that will measure the peaks of a device, unless they are known: its imports are over by the time that it is asked."""
    return _start(device) if _read(_path(device, folder)) is None else None


def _path(device: str, folder: Path) -> Path:
    return folder / f"peaks-{_kind(device)}-{''.join(c if c.isalnum() else '_' for c in machine_name(device))}.json"


def peaks(device: str, folder: Path, measure_again: bool = False, seconds: float = math.inf, probe: Probe | None = None) -> Peaks:
    """Return the peaks of a device, measured once per kind of machine and kept in `folder`; a new measurement can only raise them.

    `measure_again`: unless they were measured MOST_TIMES before. `probe`: the process that `probe_ahead` started. Raise RooflineError where measuring
    them would take longer than `seconds`.
    """
    machine, path = machine_name(device), _path(device, folder)
    known = _read(path)
    if known is not None and (not measure_again or known.times >= MOST_TIMES):
        return replace(known, device=device)
    if seconds < PROBE_SECONDS:
        raise RooflineError(f"they are measured once, which takes about {PROBE_SECONDS:.0f} s: a longer budget, or a run without one, does it")
    ready = probe if probe is not None and probe.poll() is None else None  # one that has ended, for want of memory say, is replaced
    measured = replace(Peaks(**_ask({"device": device}, 300.0, ready)), machine=machine, when=datetime.now(UTC).isoformat(timespec="seconds"))
    best = measured if known is None else higher(measured, known)
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(asdict(best), indent=1))
    return best


def higher(new: Peaks, old: Peaks) -> Peaks:
    """Return `new` with every rate at least that of `old`, measured as often as both."""
    flops = {kind: max(new.flops.get(kind, 0.0), old.flops.get(kind, 0.0)) for kind in {**old.flops, **new.flops}}
    return replace(new, memory=max(new.memory, old.memory), cache=max(new.cache, old.cache), flops=flops, times=new.times + old.times)


def _read(path: Path) -> Peaks | None:
    try:
        return Peaks(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError):  # written by another version
        return None


def _start(device: str = "") -> Probe:
    """Start `python -m warpwright.timing.roofline`, with a device to be made ready, if any."""
    folders = [str(Path(__file__).resolve().parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    command = [sys.executable, "-m", "warpwright.timing.roofline", *filter(None, [device])]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)


def _ask(question: Mapping[str, Any], timeout: float, started: Probe | None = None) -> dict[str, Any]:
    """Put a question to a process that was `started`, or to a new one, and return the answer."""
    with started or _start() as process:
        try:
            stdout, stderr = process.communicate(json.dumps(question), timeout=timeout)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise RooflineError(f"they were not known after {timeout:.0f} s") from error
        except BaseException:
            process.kill()
            raise
    lines = stdout.splitlines()
    if process.returncode or not lines:
        last = (stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
        raise RooflineError(last)
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def main() -> None:
    """Answer the question on standard input, in JSON, on the last line of standard output."""
    from warpwright.timing import counting, peaks_probe

    for device in sys.argv[1:]:
        peaks_probe.make_ready(device)
    question = json.loads(sys.stdin.read())
    if "task" in question:
        answer = asdict(counting.count(from_json(Task, question["task"])))
    else:
        answer = asdict(peaks_probe.probe(question["device"]))
    print()
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
