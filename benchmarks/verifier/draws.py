"""Are honest programs ever refused, and cheats ever passed, by the comparison of values? Many secrets, no processes, no timing.

    python -m benchmarks.verifier.draws --secrets 20 --workers 14 --out /tmp/draws

Each program of tests/honest is built in this process and called on every case of every secret, in states 0 and 1, on inputs that the judge's own
code makes; its outputs, and its state where calls change it, are judged by the judge's own code. A refusal is a row with the case, the check and
the reason. `--folder cheats` counts how often wrong programs are refused instead; only those whose answers alone give them away mean anything then.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.verifier.programs import corpus

SKIPPED = {"compiled": "compiles for minutes over many shapes and strides", "forked_and_joined": "forks"}
STATES = (0, 1)


def main() -> int:
    """Run all programs; print a line for each and the sum."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--secrets", type=int, default=5, help="draws for each program")
    parser.add_argument("--first", type=int, default=1, help="the first secret")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", default="honest", choices=("honest", "cheats"))
    parser.add_argument("--only", default="", help="programs whose name holds this")
    parser.add_argument("--out", type=Path, help="folder for rows.jsonl")
    given = parser.parse_args()
    programs = [one for one in corpus.programs(given.folder) if given.only in one.name and usable(one)]
    jobs = [(one, given.first + number) for one in programs for number in range(given.secrets)]
    rows = list(_all(jobs, given.workers))
    lines = [_line([row for row in rows if row["program"] == program.name]) for program in programs]
    refusals = [{"table": "refusals", "program": row["program"], "secret": row["secret"], "why": text} for row in rows for text in row["refused"][:1]]
    for line in lines:
        print(f"{line['program']:26} {line['secrets']:4} secrets, refused {line['refused']:3}, nearest to its tolerance {line['nearest']:.2f}")
    for refusal in refusals if given.folder == "honest" else ():
        print(f"{refusal['program']}, secret {refusal['secret']}: {refusal['why']}")
    print(f"{len(rows)} runs of {len(programs)} programs, {sum(row['calls'] for row in rows)} calls: {len(refusals)} runs refused")
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*lines, *refusals]))
    return int(bool(refusals) and given.folder == "honest")


def _line(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is said of one program."""
    return {
        "table": "programs", "program": rows[0]["program"], "task": rows[0]["task"], "secrets": len(rows), "calls": sum(row["calls"] for row in rows),
        "refused": sum(bool(row["refused"]) for row in rows), "nearest": round(max(row["nearest"] for row in rows), 2),
    }  # fmt: skip


def usable(program: corpus.Program) -> bool:
    """Whether a program can run in this process."""
    return program.name not in SKIPPED and not program.needs & {"timing", "cuda"}


def _all(jobs: list[Any], workers: int) -> Iterator[dict[str, Any]]:
    if workers == 1:
        yield from map(_row, jobs)
        return
    with multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=40) as pool:
        yield from pool.imap_unordered(_row, jobs)


def _row(job: tuple[corpus.Program, int]) -> dict[str, Any]:
    program, secret = job
    began = time.monotonic()
    row: dict[str, Any] = {"program": program.name, "task": program.task, "secret": secret, "calls": 0, "nearest": 0.0, "refused": []}
    try:
        _run(program, secret, row)
    except Exception as error:  # a program that raises is refused, whatever it raises
        row["refused"].append(f"raised {type(error).__name__}: {str(error)[:300]}")
    return {**row, "seconds": round(time.monotonic() - began, 2)}


def _run(program: corpus.Program, secret: int, row: dict[str, Any]) -> None:
    import torch

    from warpwright.base import to_json
    from warpwright.verifier.judge.judge_worker import JudgeWorker
    from warpwright.verifier.judge_client import cases

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    task = corpus.task(program.task)
    with tempfile.TemporaryDirectory(prefix="draws-") as folder:
        judge = JudgeWorker({"device": "cpu", "exchange": folder, "isolation": []})
        facts = judge.open(to_json(task), f"{secret:x}", host_only=True)
        certificate = judge.certify([_dict(case) for case in cases(task, secret + 1) if case.name in ("nominal", "normal", "spikes")])
        if not certificate["scored"]:
            row["refused"].append(f"unscored: {certificate['reason']}")
            return
        module = _built(program, judge, folder)
        for which in STATES:
            for case in cases(task, secret):
                _call(judge, facts, module, case, which, row)


def _dict(case: Any) -> dict[str, Any]:
    return {"name": case.name, "seed": case.seed, "params": dict(case.params)}


def _built(program: corpus.Program, judge: Any, folder: str) -> Any:
    path = Path(folder) / "candidate.py"
    path.write_text(program.source.files[0][1])
    spec = importlib.util.spec_from_file_location(f"draws_{program.name}_{os.getpid()}_{time.monotonic_ns()}", path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    module = found.ModelNew(*judge.original.reference.init_inputs)
    module.train(judge.original.model.training)
    return module


def _call(judge: Any, facts: dict[str, Any], module: Any, case: Any, which: int, row: dict[str, Any]) -> None:
    from dataclasses import replace

    from warpwright.verifier.judge.original.answers import leaves_of

    viable = judge.viable(_dict(case), which)
    if viable["problem"]:
        return
    case = replace(case, params=viable["params"])
    state = judge.original.state(which)
    if which == 0 or facts["mutated_state"]:
        module.load_state_dict(state)
    else:
        own = {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}
        for name, tensor in state.items():
            own[name].copy_(tensor)
    judge.original.held = None
    inputs = judge.original.inputs(case)
    judge.original.held = None
    row["calls"] += 1
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            values = list(leaves_of(module(*inputs)))
    except Exception as error:
        if case.name != "strided":
            row["refused"].append(f"{case.name}, state {which}: raised {type(error).__name__}: {str(error)[:200]}")
        return
    answer = judge.original.answer(case, which)
    if [path for path, _ in values] != [leaf.path for leaf in answer.leaves]:
        row["refused"].append(f"{case.name}, state {which}: other outputs")
        return
    result = judge.judgement.judge([value for _, value in values], case, which)
    if not result["check"] and facts["mutated_state"]:
        result = {**result, **judge.judgement.judge_state(module.state_dict(), case, which)}
    if result["check"]:
        row["refused"].append(f"{case.name}, state {which}: {result['check']}, excess {result['excess']:.3g}: {result['reason'][:300]}")
    else:
        row["nearest"] = max(row["nearest"], result["excess"])


if __name__ == "__main__":
    raise SystemExit(main())
