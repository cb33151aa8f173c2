"""A child process that draws, builds and checks batches of drafts: a pair that crashes takes down this process, not the run.

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
from warpwright.translation.errors import Rejected
from warpwright.translation.pairs.build import build_c, build_cuda
from warpwright.translation.pairs.check import Checked, check
from warpwright.translation.pairs.dedup import identity, skeleton
from warpwright.translation.pairs.draft import Draft, Options, make

FORMAT = 1
"""Version of a pair's record: raise it with every change of its fields."""


def work(indices: Sequence[int], options: Options) -> Iterator[dict[str, Any]]:
    """Yield the outcome of each draft."""
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
    for tensor in (*graph.inputs, *graph.shapes.values()):
        row = {"name": tensor.name, "role": roles[tensor.name], "dtype": tensor.dtype, "shape": list(tensor.shape)}
        domain = {"low": tensor.low, "high": tensor.high, "values": tensor.values} if row["role"] == "input" else {}
        buffers.append({**row, **domain})
    c = draft.c[checked.best]
    return {
        "id": identity(draft.cuda.text, c), "skeleton": skeleton(draft.cuda.text), "format": FORMAT, "seed": options.seed, "index": draft.index,
        "name": graph.name, "family": graph.family, "provenance": list(graph.provenance), "cuda": draft.cuda.text, "c": c, "c_entry": draft.entry,
        "reference": draft.reference, "launches": json.dumps([one.as_json() for one in draft.cuda.launches]), "buffers": json.dumps(buffers),
        "cases": json.dumps([{"seed": seed, "range": where} for seed, where in checked.seeds]),
        "absolute_tolerance": [one.absolute for one in checked.tolerances], "relative_tolerance": [one.relative for one in checked.tolerances],
        "cuda_schedule": json.dumps([asdict(one) for one in draft.kernels]),
        "c_schedule": json.dumps([asdict(one) for one in draft.loops[checked.best]]),
        "c_candidates": len(draft.c), "c_seconds": min(checked.seconds), "c_first_seconds": checked.seconds[0], "cuda_verified": options.verify_cuda,
        "threads": int(os.environ.get("OMP_NUM_THREADS", "0")), "work": graph.work,
    }  # fmt: skip


def options_of(fields: Mapping[str, Any]) -> Options:
    """Read options from JSON."""
    return Options(**{**fields, "operators": tuple(fields["operators"])})


def main() -> None:
    """Serve batches until standard input ends. Whatever a program prints goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        batch = json.loads(line)
        for outcome in work(batch["indices"], options_of(batch["options"])):
            print(json.dumps(outcome), file=out, flush=True)
        print('{"done": true}', file=out, flush=True)


if __name__ == "__main__":
    main()
