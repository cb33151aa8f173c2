"""A child process that makes, builds and checks batches of drafts: a pair that crashes takes down this process, not the run.

One JSON line in: {"options": ..., "indices": [...]}. Lines out: {"begin": index} before a draft's code runs, then {"index", "pair"} or
{"index", "rejected"}, and {"done": true} at the end of the batch.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from warpwright.errors import WarpwrightError
from warpwright.translation.pairs.build import build_c, build_cuda
from warpwright.translation.pairs.check import Checked, Rejected, check
from warpwright.translation.pairs.dedup import identity, skeleton
from warpwright.translation.pairs.draft import Draft, Options, make
from warpwright.translation.pairs.printers.print_cuda import launches_json

FORMAT = 1
"""Of a pair's record; raise it with every change of its fields."""


def work(indices: Sequence[int], options: Options) -> Iterator[dict[str, Any]]:
    """Yield what became of each draft."""
    drafts = []
    for index in indices:
        draft = make(index, options)
        if draft is None:
            yield {"index": index, "rejected": "too_large: the graph drawn needs too much work"}
        else:
            drafts.append(draft)
    if not drafts:
        return
    halves = build_c(drafts)
    kernels = build_cuda(drafts) if options.verify_cuda else {}
    for draft in drafts:
        yield {"begin": draft.index}
        c, cuda = halves[draft.index], kernels.get(draft.index, (None,))
        if isinstance(c, str) or isinstance(cuda, str):
            yield {"index": draft.index, "rejected": f"not_built: {c if isinstance(c, str) else cuda}"}
            continue
        try:
            yield {"index": draft.index, "pair": record(draft, check(draft, c, cuda[0]), options)}
        except Rejected as error:
            yield {"index": draft.index, "rejected": str(error)}
        except WarpwrightError as error:
            yield {"index": draft.index, "rejected": f"failed: {error}"}


def record(draft: Draft, checked: Checked, options: Options) -> dict[str, Any]:
    """Return a pair as plain values: one row of the data set."""
    graph = draft.graph
    roles = {**dict.fromkeys(graph.temporaries, "temporary"), **dict.fromkeys(graph.outputs, "output"), **{b.name: "input" for b in graph.inputs}}
    buffers = []
    for buffer in (*graph.inputs, *graph.shapes.values()):
        row = {"name": buffer.name, "role": roles[buffer.name], "dtype": buffer.dtype, "shape": list(buffer.shape)}
        domain = {"low": buffer.low, "high": buffer.high, "values": buffer.values} if row["role"] == "input" else {}
        buffers.append({**row, **domain})
    c = draft.c[checked.best]
    return {
        "id": identity(draft.cuda.text, c), "skeleton": skeleton(draft.cuda.text), "format": FORMAT, "seed": options.seed, "index": draft.index,
        "name": graph.name, "family": graph.family, "provenance": list(graph.provenance), "cuda": draft.cuda.text, "c": c, "c_entry": draft.entry,
        "reference": draft.reference, "launches": json.dumps(launches_json(draft.cuda)), "buffers": json.dumps(buffers),
        "cases": json.dumps([{"seed": seed, "range": where} for seed, where in checked.seeds]),
        "absolute_tolerance": [one.absolute for one in checked.tolerances], "relative_tolerance": [one.relative for one in checked.tolerances],
        "cuda_schedule": json.dumps([asdict(one) for one in draft.kernels]),
        "c_schedule": json.dumps([asdict(one) for one in draft.loops[checked.best]]),
        "c_candidates": len(draft.c), "c_seconds": min(checked.seconds), "c_first_seconds": checked.seconds[0], "cuda_verified": options.verify_cuda,
        "threads": int(os.environ.get("OMP_NUM_THREADS", "0")), "work": graph.work,
    }  # fmt: skip


def options_of(given: Mapping[str, Any]) -> Options:
    """Read options from JSON."""
    return Options(**{**given, "operators": tuple(given["operators"])})


def main() -> None:
    """Answer batches until standard input ends. Whatever a program prints goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        given = json.loads(line)
        for said in work(given["indices"], options_of(given["options"])):
            print(json.dumps(said), file=out, flush=True)
        print('{"done": true}', file=out, flush=True)


if __name__ == "__main__":
    main()
