"""What a candidate that breaks its child process costs: seconds until the next one can be measured, with a spare that waits and without.

    python -m benchmarks.sass.restarts --out OUT --rounds 5 --limit 40

One kernel, and beside it such candidates: one that writes to an address that is not there, one with an instruction that is none, one that never
ends (it is asked with a limit of a second, which is not counted), one that gives other words (which breaks nothing). After each the original is
compared once more: a new child must say that it keeps its bits. A row for each kind of candidate, with a spare and without.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warpwright.domains.sass import domain
from warpwright.domains.sass.code.cubin import Cubin
from warpwright.errors import WorkerDied, WorkerTimeout
from warpwright.targets.cubin.process import Child, Job
from warpwright.templates.driver import machine_code

KERNEL = """
extern "C" __global__ void scale(float a, const float* x, float* y, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) BODY;
}
"""

HARNESS = """
from warpwright.domains.sass.harness import Launch, given, output


def launch():
    return Launch("scale", (256, 1, 1), (256, 1, 1), (2.0, given("f32", 1 << 20), output("f32", 1 << 20), 1 << 20))
"""

RIGHT = "y[i] = a * x[i]"
BODIES = {
    "other words": "y[i] = a * x[i] + 1.0f",
    "an address that is not there": "*(volatile float*)(size_t)(1024 + 4 * i) = x[i]",
    "never ends": "while (*(volatile const float*)(x + i) == *(volatile const float*)(x + i)) y[i] = a",
}
NO_INSTRUCTION = "no instruction"

HANG_SECONDS = 1.0
READY_SECONDS = 20.0


def main() -> None:
    """Write a row for each kind of candidate."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=40.0, help="seconds: nothing begins later")
    parser.add_argument("--arch", default="90")
    parser.add_argument("--driver", default="libcuda.so.1")
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    until = time.monotonic() + given.limit
    with tempfile.TemporaryDirectory() as folder, (given.out / "rows.jsonl").open("a") as rows:
        job, images = written(Path(folder), given.arch, given.driver)
        for kind in images:
            for spare in (True, False):
                if time.monotonic() > until:
                    return
                row = row_of(job, Path(folder), images, kind, spare, given.rounds)
                rows.write(json.dumps(row) + "\n")
                rows.flush()
                print(row, flush=True)


def written(folder: Path, arch: str, driver: str) -> tuple[Job, dict[str, Path]]:
    """Write the original, the harness and the candidates; return the job, and the file of each kind of candidate."""

    def compiled(body: str) -> Cubin:
        return Cubin(machine_code(KERNEL.replace("BODY", body), arch))

    original, images = compiled(RIGHT), {kind: compiled(body) for kind, body in BODIES.items()}
    code = original.words("scale")
    images[NO_INSTRUCTION] = original.with_words("scale", (*code[:4], (1 << 128) - 1, *code[5:]))
    files = {"original": original, **images}
    for name, cubin in files.items():
        (folder / f"{name}.cubin").write_bytes(cubin.data)
    (folder / "harness.py").write_text(HARNESS)
    helpers = folder / "helpers.bin"
    helpers.write_bytes(machine_code(Path(domain.__file__).with_name("device.cu").read_text(), arch))
    job = Job(folder / "original.cubin", folder / "harness.py", helpers, driver)
    return job, {kind: folder / f"{kind}.cubin" for kind in images}


def row_of(job: Job, folder: Path, images: dict[str, Path], kind: str, spare: bool, rounds: int) -> dict[str, Any]:
    """Return what some candidates of one kind cost."""
    child = Child(job, folder)
    try:
        said = list(asked(child, images[kind], job.original, spare, rounds))
        first, replaced = child.starts[0], child.replacements
        times = {"seconds": f"{statistics.median(replaced):.3f}", "at most": f"{max(replaced):.3f}"} if replaced else {}
        begun = {"of which the next one's beginning": f"{statistics.median(child.starts[1:]):.3f}"} if replaced else {}
    finally:
        child.end()
    told = {"table": "restarts", "candidate": kind, "spare": spare, "said": ", ".join(dict.fromkeys(said)), "replaced": len(replaced)}
    return told | times | begun | {"the first start": f"{first:.3f}"}


def asked(child: Child, image: Path, original: Path, spare: bool, rounds: int) -> Iterator[str]:
    """Yield what is said of a candidate, each time it is asked about; raise AssertionError where the original is not itself afterwards."""
    child.start()
    for turn in range(rounds):
        if spare:
            child.keep_spare()
            ready(child)
        try:
            differ = sum(child.ask(question(image, turn), HANG_SECONDS)["differ"])
            yield "other words" if differ else "the same words"
        except (WorkerDied, WorkerTimeout) as error:
            yield str(error)[:80]
        assert child.ask(question(original, turn))["differ"] == [0, 0]


def question(image: Path, turn: int) -> dict[str, Any]:
    """Return the question that compares a cubin on two sets of inputs and times nothing."""
    return {"do": "evaluate", "image": str(image), "seeds": [2 * turn + 1, 2 * turn + 2], "rounds": [], "worth": 0.0}


def ready(child: Child) -> None:
    """Wait until the spare holds its context."""
    end = time.monotonic() + READY_SECONDS
    while child.spare is not None and not child.spare.has_answered and time.monotonic() < end:
        time.sleep(0.005)


if __name__ == "__main__":
    main()
