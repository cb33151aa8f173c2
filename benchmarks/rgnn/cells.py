"""The table of all graphs and layers: a run of benchmarks.rgnn.together beside torch.pairs, PyG and the floors, for benchmarks/results/rgnn_h200.

    python -m benchmarks.rgnn.cells RUN/rows.jsonl --rows benchmarks/results/rgnn_h200/rows.jsonl

What the run lacks of torch.pairs and PyG (whose times change from host to host, so a ratio of two runs is marked ~) is taken from the rows that are
there. Prints rows with "table": "cells".
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

Row = dict[str, Any]
GRAPHS = ("aifb", "mutag", "bgs", "fb15k", "biokg", "am", "mag", "wikikg2")
LAYERS = ("rgcn", "rgat", "hgt")
ASKED = {"rgcn": 2.0, "rgat": 2.5, "hgt": 2.5}
"""Floors that a forward may take; a training step may take 2.5."""
TRAINING = 2.5
RUNS = ("today", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth")
"""Of the rows that are there, the older ones first."""
SMALL = {"aifb", "mutag", "bgs", "fb15k"}
"""Graphs that floors say nothing of: 0.15 ms forward and 0.5 ms a training step are asked there."""


def loaded(path: Path) -> list[Row]:
    """Return the rows of a file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def of(rows: list[Row], tables: tuple[str, ...], graph: str, layer: str, program: str) -> Row | None:
    """Return the last row of a program that has times."""
    chosen = [r for r in rows if r["table"] in tables and (r.get("graph"), r.get("model"), r.get("implementation")) == (graph, layer, program)]
    return next((r for r in reversed(chosen) if "forward_ms" in r), None)


def cell(run: list[Row], kept: list[Row], graph: str, layer: str) -> Row | None:
    """Return one line."""
    own = of(run, ("times",), graph, layer, "ours")
    if own is None:
        return None
    row: Row = {"table": "cells", "graph": graph, "layer": layer}
    runs = ("times", *(f"{run}_times" for run in RUNS))
    beside = {"torch.pairs": runs, "pyg": ("pyg_times",)}
    for part, asked, small in (("forward", ASKED[layer], 0.15), ("training", TRAINING, 0.5)):
        time, floors = own[f"{part}_ms"], own[f"{part}_ms"] / own[f"{part}_floor_ms"]
        row[f"{part} ms"], row[f"{part}, floors"] = f"{time:.3g}", f"{floors:.1f}"
        row[f"{part}, as asked"] = "yes" if (time <= small if graph in SMALL else floors <= asked) else "no"
        for name, tables in beside.items():
            other = of(run, ("times",), graph, layer, name)
            sign, other = ("", other) if other else ("~", of(kept, tables, graph, layer, name))
            row[f"{name}, {part}"] = f"{sign}{other[f'{part}_ms'] / time:.2g}x" if other and f"{part}_ms" in other else ""
    row["error"] = f"{own['error']:.1e}" if "error" in own else ""
    return row


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--rows", type=Path, required=True)
    args = parser.parse_args()
    run, kept = loaded(args.run), loaded(args.rows)
    for graph in GRAPHS:
        for layer in LAYERS:
            if (row := cell(run, kept, graph, layer)) is not None:
                print(json.dumps(row))


if __name__ == "__main__":
    main()
