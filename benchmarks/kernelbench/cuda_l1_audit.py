"""CUDA-L1's released programs through `warpwright audit`, at the shapes they were written for.

    python -m benchmarks.kernelbench.cuda_l1_audit --cuda-l1 ~/CUDA-L1 --target cuda --out results          # the five known to be wrong
    python -m benchmarks.kernelbench.cuda_l1_audit --cuda-l1 ~/CUDA-L1 --which all --minutes 9 --resume     # as many of the 250 as time allows

The repository is given by path; what `cuda_l1_release` writes of it is not kept. A verdict is about what the program computes: parameters that it
renamed are found, and cudnn.benchmark is restored.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.kernelbench import cuda_l1_release as release
from benchmarks.kernelbench.cuda_l1_release import Program
from warpwright.archive import Archive
from warpwright.run import kind_of_machine

ROOT = Path(__file__).resolve().parents[2]

KNOWN_BAD = {
    (1, 9): ("lazy tensor subclass", {"output_type"}),
    (1, 13): ("inputs cached by id(), shared output buffer, fp16", {"cached", "output_reuse", "values", "global_flags"}),
    (2, 42): ("drops the bias of the convolution", {"values", "state_names", "stale_state"}),
    (2, 43): ("drops the bias of the convolution", {"values", "state_names", "stale_state"}),
    (2, 44): ("multiplies two means where a border correction is needed", {"values"}),
}
"""(level, task) -> what is wrong with the program released for the A100, and the checks that may say so."""

def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    began = time.time()
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    results = out / "cuda_l1_audit.jsonl"
    done = {line["program"] for line in _read(results)} if options.resume else set()
    if not options.resume:
        results.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        programs = [program for program in _programs(options, Path(folder)) if program.name not in done]
        with ThreadPoolExecutor(options.jobs) as pool:
            running = [pool.submit(_audit, program, options, out / "cuda_l1.db", began + 60 * options.minutes) for program in programs]
            for future in as_completed(running):
                line = future.result()
                if line is None:
                    continue
                with results.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(f"{line['program']}: {line['status']} {line['check']} {line['reason'][:160]}", file=sys.stderr, flush=True)
    lines = sorted(_read(results), key=lambda line: (line["level"], line["number"]))
    (out / "cuda_l1_audit.md").write_text(_document(options, lines))
    unexpected = [line["program"] for line in lines if line["as_expected"] is False]
    print(f"{len(lines)} programs; known bad ones not rejected for the right reason: {', '.join(unexpected) or 'none'}", file=sys.stderr)
    return 1 if unexpected else 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cuda-l1", required=True, help="the repository's folder")
    parser.add_argument("--gpu", default="a100", help="whose programs: a100 h100 l40 3090 h20")
    parser.add_argument("--which", default="known", help="known, all, or level:task pairs such as 1:9,2:44")
    parser.add_argument("--target", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--baselines", default="eager", help="what a program that passes is timed beside")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=9.0, help="no program is begun after this")
    parser.add_argument("--program-minutes", type=float, default=4.0, help="limit for one program")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--out", default="results")
    return parser.parse_args(arguments)


def _read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- the release -> files ----------------------------------------------------------------------------------------------------------


def _programs(options: argparse.Namespace, folder: Path) -> Iterator[Program]:
    rows = release.rows(Path(options.cuda_l1), options.gpu)
    for pair in _chosen(options.which, list(rows)):
        yield release.written(rows[pair], folder)


def _chosen(which: str, known: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if which == "known":
        return sorted(KNOWN_BAD)
    if which == "all":
        return sorted(known, key=lambda pair: (pair not in KNOWN_BAD, pair))
    return [(int(level), int(number)) for level, _, number in (piece.partition(":") for piece in which.split(","))]


# --- the audit ---------------------------------------------------------------------------------------------------------------------


def _audit(program: Program, options: argparse.Namespace, archive: Path, deadline: float) -> dict[str, Any] | None:
    """Return the line of one program, None when time is up."""
    if time.time() > deadline:
        return None
    line: dict[str, Any] = {"program": program.name, "level": program.level, "number": program.number, "published": program.published}
    if program.candidate is None:
        return {**line, "status": "no program", "check": "", "reason": "the release has none for this task", "speedup": None, "as_expected": None}
    command = [sys.executable, "-m", "warpwright.cli", "audit", str(program.candidate), "--task", str(program.task)]
    command += ["--target", options.target, "--baselines", options.baselines, "--archive", str(archive), "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60 * options.program_minutes, env=environment, check=False)
        said = json.loads(ran.stdout) if ran.stdout.strip() else {"status": "crashed", "reason": f"audit said nothing: {ran.stderr[-500:]}"}
    except subprocess.TimeoutExpired:
        said = {"status": "timeout", "reason": f"not finished in {options.program_minutes:g} minutes"}
    if "error" in said and "status" not in said:
        said = {"status": "crashed", "reason": f"audit failed: {said['error']}; {said.get('hint', '')}"}
    check, lacks = _detail(archive, said.get("record"))
    line |= {"status": said["status"], "check": check, "reason": said.get("reason") or "", "lacks": lacks}
    line |= {"speedup": said.get("speedup"), "error": said.get("error"), "error_original": said.get("error_original")}
    _, checks = KNOWN_BAD.get((program.level, program.number), ("", set()))
    return {**line, "as_expected": (said["status"] != "ok" and check in checks) if checks and options.gpu == "a100" else None}


def _detail(archive: Path, key: str | None) -> tuple[str, list[str]]:
    """Return the name of the check that decided, and the parameters that the program lacks."""
    if not key or not archive.exists():
        return "", []
    with Archive(archive, readonly=True) as opened:
        record = opened.get(key)
    if record is None:
        return "", []
    log = record.build.log if record.build is not None else ""
    return record.verdict.check if record.verdict is not None else "", sorted(set(re.findall(r"^lacks (\S+)$", log, re.M)))


# --- the page ----------------------------------------------------------------------------------------------------------------------


def _document(options: argparse.Namespace, lines: Sequence[dict[str, Any]]) -> str:
    import torch

    counts: dict[str, int] = {}
    for line in lines:
        counts[line["status"]] = counts.get(line["status"], 0) + 1
    facts = [
        f"date {datetime.now(UTC):%Y-%m-%d}; {kind_of_machine(options.target)}; torch {torch.__version__}, Python {platform.python_version()}",
        f"programs released for {options.gpu}, at the shapes of the release, target {options.target}",
        "; ".join(f"{count} {status}" for status, count in sorted(counts.items(), key=lambda item: -item[1])),
    ]
    head = "| program | known to be wrong | published | status | check | speed-up over eager | lacks | reason |\n|" + " --- |" * 8
    return "# CUDA-L1 programs through the audit\n\n" + "".join(f"- {fact}\n" for fact in facts) + f"\n{head}\n" + "".join(map(_row, lines))


def _row(line: dict[str, Any]) -> str:
    known = KNOWN_BAD.get((line["level"], line["number"]), ("", set()))[0]
    eager = (line.get("speedup") or {}).get("eager")
    reason = " ".join(line["reason"].replace("|", "\\|").split())[:200]
    published = f"{line['published']:.2f}x" if line["published"] else ""
    cells = [line["program"], known, published, line["status"], line["check"], f"{eager:.2f}x" if eager else "", ", ".join(line.get("lacks", []))]
    return "| " + " | ".join([*cells, reason]) + " |\n"


if __name__ == "__main__":
    raise SystemExit(main())
