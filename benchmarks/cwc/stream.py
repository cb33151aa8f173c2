"""A million generated images through `warpwright protect`: memory, speed, and kill -9 with --resume to the same bytes.

    python -m benchmarks.cwc.stream --work FOLDER > cwc_stream.md

Needs 9.3 GB under FOLDER for a million images: the input and two outputs, each one images.npy of 3.1 GB. It is emptied afterwards.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from warpwright.domains.unlearnable.cwc.keys import new_key, read_key
from warpwright.domains.unlearnable.cwc.operator import reference
from warpwright.domains.unlearnable.protect import Options
from warpwright.timing import facts

LIMIT_MIB = 800
"""Beyond what importing torch takes: 218 MiB of a build for CPUs, 527 of one for CUDA."""

CHUNK = 20_000
SHAPE = (32, 32, 3)
CLASSES = 100


@dataclass(frozen=True)
class Run:
    """One process: seconds, peak resident memory in MiB (the kernel's count), and whether it was killed."""

    seconds: float
    peak_mib: float
    killed: bool


def torch_mib() -> float:
    """Return the peak resident memory, in MiB, of a process that imports torch and does nothing else."""
    script = "import resource, torch; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)"
    return float(subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, timeout=300).stdout)


def generate(folder: Path, count: int) -> None:
    """Write images.npy and labels.npy of random bytes, made chunk by chunk."""
    folder.mkdir()
    rng = np.random.Generator(np.random.Philox(0))
    np.save(folder / "labels.npy", rng.integers(0, CLASSES, count))
    header = {"descr": "|u1", "fortran_order": False, "shape": (count, *SHAPE)}
    with (folder / "images.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, count, CHUNK):
            file.write(rng.bytes(min(CHUNK, count - start) * int(np.prod(SHAPE))))


def protect(source: Path, out: Path, key: Path, manifest: Path, kill_after: float | None = None) -> Run:
    """Run the command, resuming what is there; with `kill_after`, kill -9 it after so many seconds unless it ends before."""
    command = [sys.executable, "-m", "warpwright.cli", "protect", str(source), str(out), "--key", str(key), "--preset", "gentle"]
    command += ["--manifest", str(manifest)]
    started = time.monotonic()
    process = subprocess.Popen([*command, *(["--resume"] if out.exists() else [])], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    timer = threading.Timer(kill_after if kill_after is not None else 1e6, process.send_signal, [signal.SIGKILL])
    timer.daemon = True
    timer.start()
    said = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    timer.cancel()
    killed = process.returncode == -signal.SIGKILL
    if process.returncode and not killed:
        raise SystemExit(f"protect failed with {process.returncode}: {said}")
    return Run(time.monotonic() - started, usage.ru_maxrss / 1024, killed)


def digests(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every file, read in pieces."""
    found = {}
    for path in sorted(folder.rglob("*")):
        with path.open("rb") as file:
            found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def judged(source: Path, out: Path, key: Path, samples: int) -> int:
    """Return how many of `samples` random images are as the int64 definition says."""
    images, labels, done = (np.load(path, mmap_mode="r") for path in (source / "images.npy", source / "labels.npy", out / "images.npy"))
    options = Options("gentle")
    bank = options.bank(read_key(key), [str(i) for i in range(int(labels.max()) + 1)])
    chosen = np.sort(np.random.default_rng(1).choice(len(images), samples, replace=False))
    expected = reference(np.ascontiguousarray(images[chosen].transpose(0, 3, 1, 2)), labels[chosen], bank.weights, options.chosen.operator)
    return int((expected == done[chosen].transpose(0, 3, 1, 2)).all((1, 2, 3)).sum())


def stream(work: Path, count: int, kills: int, seed: int = 0, samples: int = 500) -> tuple[list[Run], list[Run], bool, int]:
    """Return the undisturbed run, the runs of the killed one, whether their outputs are equal, and how many samples are right."""
    source, whole, cut, key = work / "in", work / "whole", work / "cut", work / "my.key"
    generate(source, count)
    new_key(key)
    undisturbed = [protect(source, whole, key, work / "whole.jsonl")]
    chance = random.Random(seed)
    disturbed: list[Run] = []
    while sum(run.killed for run in disturbed) < kills:
        disturbed.append(protect(source, cut, key, work / "cut.jsonl", chance.uniform(0.1, 0.2) * undisturbed[0].seconds))
        if not disturbed[-1].killed:
            break
    else:
        disturbed.append(protect(source, cut, key, work / "cut.jsonl"))
    same = digests(whole) == digests(cut)
    return undisturbed, disturbed, same, judged(source, whole, key, samples)


def main() -> int:
    """Print the page; the exit code is 1 when a bound was missed."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--work", type=Path, help="folder for 9.3 GB (a temporary one)")
    options.add_argument("--count", type=int, default=1_000_000)
    options.add_argument("--kills", type=int, default=5)
    given = options.parse_args()
    work = Path(tempfile.mkdtemp(dir=given.work))
    try:
        undisturbed, disturbed, same, right = stream(work, given.count, given.kills)
    finally:
        shutil.rmtree(work)
    peak, imports = max(run.peak_mib for run in [*undisturbed, *disturbed]), torch_mib()
    within = peak - imports < LIMIT_MIB
    killed = sum(run.killed for run in disturbed)
    print(f"# {given.count:,} images through `warpwright protect`\n")
    print(f"- {datetime.date.today()}, {facts.machine_name('cpu')}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}")
    shape = "x".join(map(str, SHAPE))
    print(f"- random bytes as {shape} images of {CLASSES} classes, one images.npy in, one out; preset gentle, with manifest\n")
    print("| run | seconds | peak memory, MiB |\n| --- | --- | --- |")
    print(f"| undisturbed ({given.count / undisturbed[0].seconds:,.0f} images/s) | {undisturbed[0].seconds:.1f} | {undisturbed[0].peak_mib:.0f} |")
    for number, run in enumerate(disturbed, 1):
        how = "killed with SIGKILL" if run.killed else "to the end"
        print(f"| {number}: {how}{' (--resume)' if number > 1 else ''} | {run.seconds:.1f} | {run.peak_mib:.0f} |")
    print(f"\n- peak memory {peak:.0f} MiB, {imports:.0f} of them torch's import; {LIMIT_MIB} allowed beyond: {'within' if within else 'MISSED'}")
    print(f"- output after {killed} kills byte-identical to the undisturbed one: {'yes' if same else 'NO'}")
    print(f"- of 500 random images of the output, equal to the int64 definition: {right}")
    return 0 if within and same and right == 500 and killed else 1


if __name__ == "__main__":
    sys.exit(main())
