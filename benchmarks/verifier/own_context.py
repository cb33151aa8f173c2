"""How much work can a program hide in a CUDA context of its own, and does anything outside the process show that it has one?

    python -m benchmarks.verifier.own_context --device cuda:0 --limit 30 --out $OUT
    python -m benchmarks.verifier.own_context --dry

`second_context` of the cheats, whose kernel first waits for so many microseconds (0, 20, 100 ...) by the GPU's own clock: a row says whether the
verifier accepts it, and with which reason not. Two more rows count the files of the driver and the threads of a worker that holds an honest program
and of one that holds this: before the build, after it, and after the verification.
"""

from __future__ import annotations

import argparse
import json
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.verifier.programs import corpus
from benchmarks.verifier.repeated import conditions, limits_on, write
from warpwright.base import Source
from warpwright.verifier import verify
from warpwright.workers.procfs import threads_of
from warpwright.workers.sandbox import Worker, up

WAITS_US = (0, 100, 1000, 20, 5000, 20000, 300)

SPIN = """long long began, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(began));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - began < {nanoseconds}LL);
  int i = """

SECRET = 20261123


def delayed(text: str, microseconds: int) -> Source:
    """Return the program with a kernel that waits first."""
    assert text.count("int i = ") == 1
    return Source("python", (("candidate.py", text.replace("int i = ", SPIN.format(nanoseconds=1000 * microseconds))),))


def signs_of(pid: int) -> dict[str, Any]:
    """Return what a process shows from outside: its files of the driver, and its threads by name."""
    files: Counter[str] = Counter()
    for number in os.listdir(f"/proc/{pid}/fd"):
        try:
            files[os.readlink(f"/proc/{pid}/fd/{number}")] += 1
        except OSError:  # closed meanwhile
            continue
    names = Counter(Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip()[:12] for thread in threads_of(pid))
    return {"files": {name: count for name, count in files.items() if "/dev/nvidia" in name}, "threads": dict(names)}


def asked(judge: verify.Judge, source: Source, device: str, signs: bool) -> dict[str, Any]:
    """Build and verify a program; return what came of it, and what its process showed at each step."""
    seen: dict[str, Any] = {}
    began = time.monotonic()
    try:
        with up(lambda: Worker("candidate", device, limits_on(device))) as worker:
            look: Callable[[str], None] = (lambda when: seen.__setitem__(when, signs_of(worker.pid))) if signs else lambda when: None
            worker.greet()
            look("before")
            _, rejected = verify.build(judge, worker, "candidate", source)
            look("built")
            verdict = rejected or verify.verify(judge, worker, "candidate", corpus.task("relu"))
            if worker.alive:
                look("verified")
    except Exception:
        return {"status": "error", "reason": traceback.format_exc()[-600:], **seen}
    seconds = round(time.monotonic() - began, 2)
    return {"status": verdict.status, "check": verdict.check, "case": verdict.case, "reason": verdict.reason[:300], "seconds": seconds, **seen}


def main() -> None:
    """Ask for one wait after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which no program is begun")
    parser.add_argument("--dry", action="store_true", help="print the longest program instead")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    [cheat] = [one for one in corpus.programs("cheats") if one.name == "second_context"]
    [honest] = [one for one in corpus.programs("honest") if one.task == "relu" and not one.needs][:1]
    text = cheat.source.text
    if given.dry:
        print(honest.name, delayed(text, WAITS_US[-1]).text)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + given.limit
    write(given.out, conditions(given.device, 1))
    plan = [(honest.name, 0, honest.source, True), *(("second_context", wait, delayed(text, wait), wait == 0) for wait in WAITS_US)]
    with verify.Judge(corpus.task("relu"), given.device, secret=SECRET) as judge:
        for name, wait, source, signs in plan:
            if time.monotonic() > end:
                break
            row = {"program": name, "kernel waits us": wait, **asked(judge, source, given.device, signs)}
            write(given.out, row)
            print(json.dumps(row)[:500], flush=True)


if __name__ == "__main__":
    main()
