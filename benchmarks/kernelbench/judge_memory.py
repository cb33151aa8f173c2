"""How much memory a judge holds, request by request, in eager peaks of its task: counted in tensors that are alive, on a CPU, at a small scale.

    python -m benchmarks.kernelbench.judge_memory --kernelbench KB --tasks 1:19,1:94,1:76 --scale 0.001 [--out OUT]

What a GPU's judge does differently is done so here too: its last inputs alone are kept, shipments stay where they are, and what it decides by bytes
(answers that are remembered, outputs that wait, shipments that are large, pieces that are worked through) is scaled with the task. Not counted: what
an operator allocates inside itself (workspaces, sorts), and what torch's allocator caches. One row a request and case in OUT/rows.jsonl:

    peak    at most while the request is answered         held    when it was answered: what stays beside other processes
"""

from __future__ import annotations

import argparse
import json
import tempfile
import warnings
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch.utils._pytree import tree_leaves

from benchmarks.kernelbench.first import found, name_of
from warpwright.base import Case, Task, from_json, to_json
from warpwright.run import Settings
from warpwright.tasks import footprint
from warpwright.tasks.mode import Mode
from warpwright.verifier.judge import distributions, judge_worker, oracle, parts
from warpwright.verifier.judge.original import held, reference
from warpwright.verifier.judge.original.answers import leaves_of
from warpwright.verifier.judge_client import TIMED_STATE, cases
from warpwright.workers.inside import team
from warpwright.workers.tensors import exchange

SECRET = 20261129
GPU_BYTES = 139 << 30
"""Of an H200: a judge remembers answers up to a twelfth of it."""


class Ledger(Mode):  # type: ignore[no-untyped-call]
    """Counts the bytes of storages from their making to their end."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: dict[int, int] = {}
        self.now = self.peak = 0

    def _gone(self, key: int) -> None:
        self.now -= self.alive.pop(key)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided and not leaf.is_meta:
                storage = leaf.untyped_storage()
                if (key := storage._cdata) not in self.alive:
                    self.alive[key] = storage.nbytes()
                    self.now += storage.nbytes()
                    weakref.finalize(storage, self._gone, key)
                    self.peak = max(self.peak, self.now)
        return result


class Shelf(exchange.Shelf):
    """Keeps what is put, as it is on a GPU, and says where it would lie."""

    def put(self, tensor: Any, owner: str = "") -> exchange.Descriptor:
        self._alive.setdefault(owner, []).append(tensor)
        return {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape), "stride": list(tensor.stride()), "device": "cpu"}


def main() -> None:
    """Print the rows of each task, and what they come to."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernelbench", required=True, type=Path)
    parser.add_argument("--tasks", required=True, help="level:number pairs or files, comma-separated")
    parser.add_argument("--footprints", type=Path, help="eager peaks of the whole tasks in bytes; by default KB/footprints.json")
    parser.add_argument("--scale", type=float, default=0.001)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    whole = json.loads((options.footprints or options.kernelbench / "footprints.json").read_text())
    for name in options.tasks.split(","):
        for file in found(options.kernelbench, name):
            rows = list(rows_of(file, options.scale, float(whole[name])))
            if options.out is not None:
                options.out.mkdir(parents=True, exist_ok=True)
                with (options.out / "rows.jsonl").open("a") as out:
                    out.writelines(json.dumps(row) + "\n" for row in rows)
            print(summarised(rows), flush=True)


def summarised(rows: list[dict[str, Any]]) -> str:
    """Return, in a line each, the most that each kind of request took and left."""
    lines = [f"{rows[0]['task']}: eager peak {rows[0]['whole GB']:.1f} GB"]
    for request in dict.fromkeys(row["request"] for row in rows):
        own = [row for row in rows if row["request"] == request]
        most = max(own, key=lambda row: row["peak"])
        lines.append(f"  {request:16} peak {most['peak']:5.2f} ({most['case']})  held {max(row['held'] for row in own):5.2f}")
    return "\n".join(lines)


def rows_of(file: Path, scale: float, whole: float) -> Iterator[dict[str, Any]]:
    """Yield a row for each request that an audit and a timing make, in their order."""
    task = Settings(device="cpu", scale=scale).describe(file)
    peak = footprint.peak_bytes(task)
    row = {"table": "judge memory", "task": name_of(file), "scale": scale, "whole GB": round(whole / 1e9, 2), "eager MB": round(peak / 1e6, 2)}
    with ExitStack() as stack:
        for patch in _scaled(peak / whole):
            stack.enter_context(patch)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ledger = stack.enter_context(Ledger())
        judge = judge_worker.JudgeWorker({"device": "cpu", "exchange": folder, "isolation": {}})
        judge.shelf = Shelf(folder)
        for request, case, call in _requests(judge, to_json(task)):
            ledger.peak = ledger.now
            call()
            yield {**row, "request": request, "case": case, "peak": round(ledger.peak / peak, 3), "held": round(ledger.now / peak, 3)}


def _scaled(ratio: float) -> list[Any]:
    """Return what makes of this process the judge of a GPU, for a task that is this share of itself."""
    of_cpu = held.Held.__init__
    return [
        mock.patch.object(judge_worker, "_budget_bytes", lambda device: int(ratio * GPU_BYTES / 12)),
        mock.patch.object(judge_worker, "LARGE_BYTES", int(ratio * judge_worker.LARGE_BYTES)),
        mock.patch.object(team, "settle", lambda call: None),
        mock.patch.object(held, "DIGEST_BYTES", 1 << 16),
        mock.patch.object(reference, "KNOWN_BYTES", int(ratio * reference.KNOWN_BYTES)),
        mock.patch.object(distributions, "SINES", 1 << 13),
        mock.patch.object(distributions, "PIECE", 1 << 13),
        mock.patch.object(held.Held, "__init__", lambda self, budget: of_cpu(self, 0)),
        mock.patch.object(parts, "SQUARED", 0),
        mock.patch.dict(oracle.CHUNKS, {"cpu": 1 << 13}),
    ]


def _requests(judge: Any, task: dict[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield the requests of one program's audit and timing, by name, with the case that each is of."""
    wanted = cases(from_json(Task, task), SECRET)
    yield "open", "", lambda: judge.open(task, f"{SECRET:x}", False)
    certified = [asdict(case) for case in cases(judge.original.task, SECRET + 1) if case.name in ("nominal", "normal", "spikes")]
    yield "certify", "", lambda: judge.certify(certified)
    kept = [wanted[0]]
    for case in wanted[1:]:

        def ask(case: Case = case) -> None:
            if not judge.viable(asdict(case), 0)["problem"]:
                kept.append(case)

        yield "viable", case.name, ask
    with _answers(judge):
        for thread in (1, 2):  # the candidate's and the baselines'
            for number, case in enumerate(kept):
                data = asdict(case)
                yield "ship", case.name, lambda data=data, thread=thread: judge.ship(data, thread)
                yield "compare", case.name, lambda data=data: judge.compare({}, data, 0, "", [])
                if not number:
                    yield "unchanged", case.name, lambda: judge.unchanged({}, "")
        for seed in range(4):
            data = asdict(Case("nominal", 7919 * seed + 13))
            yield "timed", "nominal", lambda data=data: (judge.ship(data, 1), judge.compare({}, data, TIMED_STATE, "", []))
            yield "typical", "nominal", lambda data=data: judge.compare({}, data, TIMED_STATE, "", [], typical=True)
        yield "forget", "", judge.forget
        yield "trim", "", judge.trim


@contextmanager
def _answers(judge: Any) -> Iterator[None]:
    """Have the outputs that are judged be copies of the original's own, of the inputs at hand."""
    original = judge.original

    def outputs(tree: Any, folder: str) -> Any:
        inputs, which = next(iter(original.held._kept.values()))[0], original.current or 0
        return [value.clone() for _, value in leaves_of(original.run_own(inputs, which))]

    with mock.patch.object(judge, "_outputs", outputs), mock.patch.object(judge, "_elsewhere", lambda tree, answer: ""):
        yield


if __name__ == "__main__":
    main()
