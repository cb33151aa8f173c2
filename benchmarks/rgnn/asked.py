"""What a host asks before it replays a recording: are all parameters and edges as they were? From Python, and by one call (rgnn/tensors.py).

    python -m benchmarks.rgnn.asked --out FOLDER          # a CPU, some 20 s, of which a compiler takes most; no GPU

HGT's parameters and edge tensors on graphs with the counts of four data sets; medians of 200 questions, in us. Tensors are on the CPU: they are asked
what tensors on a GPU are asked.
"""

from __future__ import annotations

import argparse
import statistics
import time
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.rgnn.forward_training import layer_of
from benchmarks.rgnn.noted import rows_file
from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn import synth, tensors
from warpwright.domains.rgnn.nn import launches
from warpwright.domains.rgnn.nn.members import Members


def median_us(question: Callable[[], Any], times: int = 200) -> float:
    """Return how long a question takes."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        question()
        taken.append((time.perf_counter() - started) * 1e6)
    return round(statistics.median(taken), 1)


def row(name: str, library: Any) -> dict[str, Any]:
    """Return the times of one graph's layer."""
    graph = synth.synthetic(name, 0.05)
    layer = layer_of("hgt", graph, 64, torch.device("cpu"))
    members = Members()
    parameters, edges = members.parameters(layer), list(graph.hetero()[2].values())
    known, seen = launches.Layout(parameters), tensors.Seen(library, parameters)
    refs = [weakref.ref(t) for t in edges]
    versions, at_once = indices.Versions.of(edges), tensors.Versions(library, refs, [t.detach() for t in edges])
    tables = [module._parameters for module in layer.modules()] + [module._modules for module in layer.modules()]
    known_values = tables, [tuple(table.values()) for table in tables]
    assert known.holds(parameters) and seen.holds(parameters) and versions.same() and at_once.same()
    questions: dict[str, Callable[[], Any]] = {
        "parameters found, from Python, us": lambda: members.parameters(layer),
        "parameters found, in one call, us": lambda: tensors.hold_values(library, *known_values),
        "parameters, from Python, us": lambda: known.holds(parameters),
        "parameters, in one call, us": lambda: seen.holds(parameters), "edges, from Python, us": versions.same,
        "edges, in one call, us": at_once.same,
    }  # fmt: skip
    counts = {"table": "asked", "graph": name, "parameters": len(parameters), "edge tensors": len(edges)}
    return counts | {what: median_us(question) for what, question in questions.items()}


def main(argv: Sequence[str] | None = None) -> None:
    """Ask."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    library = tensors.loaded()
    with rows_file(args.out) as write:
        for name in ("aifb", "mutag", "fb15k", "bgs"):
            found = row(name, library)
            write(found)


if __name__ == "__main__":
    main()
