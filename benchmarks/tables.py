"""Write the tables of benchmarks/results/NAME/README.md from the rows beside them: `python -m benchmarks.tables [NAME ...] [--check]`.

A README marks where a table stands:

    <!-- table: speed -->          every row of rows.jsonl with "table": "speed", its other keys as columns
    <!-- table: kernelbench -->    a view of VIEWS, computed from all rows
    <!-- end -->

What lies between the two marks is replaced. `--check` writes nothing and fails where a README differs from its rows.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.kernelbench import choices, cuda_l1_beside, first_table, levels
from warpwright.reports import summary

RESULTS = Path(__file__).parent / "results"
_TABLE = re.compile(r"(<!-- table: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.S)

Row = Mapping[str, Any]
View = Callable[[Sequence[dict[str, Any]]], str]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a result's folder."""
    return [json.loads(line) for line in (folder / "rows.jsonl").read_text().splitlines()]


def kernelbench(rows: Sequence[Row], of: str | None = None) -> str:
    """Return the means, the counts, the unscored tasks and the table of all tasks of a KernelBench run; `of`: that of the rows called so."""
    lines = [row for row in rows if "task" in row and row.get("table") == of]
    unscored = [f"- {line['task']}: {line['reason']}" for line in lines if line["status"] == "unscored"]
    parts = [summary.paragraphs(summary.summarise(lines)), *(["Unscored:", "\n".join(unscored)] if unscored else []), summary.table(lines)]
    return "\n\n".join(parts)


VIEWS: Mapping[str, View] = {
    "kernelbench": kernelbench,
    "kernelbench-levels": levels.view,
    "kernelbench-cpu-level-2": partial(levels.view, of="level-2, 30 November"),
    "kernelbench-cpu-level-2-again": partial(levels.view, of=("level-2, 30 November", "level-2, mended, asked again"), brief=True),
    "kernelbench-cpu-evening": partial(levels.view, of="level-2, 30 November, evening"),
    "kernelbench-cpu-mended": partial(levels.view, of="level-2, mended, asked again"),
    "kernelbench-cpu-one-thread": partial(levels.view, of="level-2, asked again on one thread"),
    "kernelbench-levels-113": partial(levels.view, of="draw-113"),
    "kernelbench-levels-229": partial(levels.view, of="draw-229"),
    "kernelbench-levels-307": partial(levels.view, of="draw-307"),
    "kernelbench-levels-307-again": partial(levels.view, of="draw-307-again"),
    "kernelbench-levels-523": partial(levels.view, of="draw-523"),
    "kernelbench-levels-811": partial(levels.view, of="draw-811", cut="unfinished-811"),
    "kernelbench-levels-811-whole": partial(
        levels.view,
        of=("draw-811-second", "draw-811-third", "draw-811-again", "draw-811-fourth", "draw-811-restored", "draw-811-fifth", "draw-811-level-3",
            "draw-811-asked"),
    ),
    "kernelbench-levels-811-large": partial(levels.view, of="draw-811-large", brief=True),
    "kernelbench-levels-811-tf32": partial(levels.view, of="draw-811-tf32", cut="unfinished-811-tf32"),
    "kernelbench-levels-811-level-3": partial(levels.view, of="draw-811-level-3", cut="unfinished-811-level-3", brief=True),
    "kernelbench-levels-811-first-answers": partial(
        levels.view, of=("draw-811-second", "draw-811-third", "draw-811-fourth", "draw-811-fifth"), brief=True
    ),
    "whole-first": first_table.whole,
    "whole-first-int8": partial(first_table.whole, run="int8: "),
    "whole-first-tf32": partial(first_table.whole, run="tf32: "),
    "whole-first-tf32-third": partial(first_table.whole, run="tf32 third: "),
    "whole-first-tf32-fourth": partial(first_table.whole, run="tf32 fourth: "),
    "kernelbench-levels-307-3": partial(levels.view, of="draw-307-3"),
    "kernelbench-drawn": partial(kernelbench, of="drawn"),
    "first-kernelbench": partial(first_table.view, of="kernelbench"),
    "first-modules": partial(first_table.view, of="tasks"),
    "first-held-out": partial(first_table.view, of="held_out"),
    "second-modules": partial(first_table.view, of="tasks", table="second"),
    "second-held-out": partial(first_table.view, of="held_out", table="second"),
    "second-kernelbench": partial(first_table.view, of="kernelbench", table="second"),
    "reset-modules": partial(first_table.view, of="tasks", table="reset"),
    "reset-held-out": partial(first_table.view, of="held_out", table="reset"),
    "reset-chains": partial(first_table.view, of="chains", table="reset"),
    "mended-modules": partial(first_table.view, of="tasks,held_out", table="mended"),
    "mended-kernelbench": partial(first_table.view, of="kernelbench", table="mended"),
    "verdicts": partial(kernelbench, of="verdicts"),
    "cuda-l1-third": partial(cuda_l1_beside.view, table="third"),
    **{f"choices-{part}": partial(choices.view, part=part) for part in choices.PARTS},
}


def table(rows: Sequence[Row], name: str) -> str:
    """Return the Markdown table of the rows called `name`; raise ValueError when there is none."""
    chosen = [{key: value for key, value in row.items() if key != "table"} for row in rows if row.get("table") == name]
    if not chosen:
        raise ValueError(f'expected rows with "table": {name!r}, saw none: add them to rows.jsonl or remove the mark')
    columns = list(dict.fromkeys(key for row in chosen for key in row))
    lines = [_line(columns), _line(["---"] * len(columns))]
    return "\n".join([*lines, *(_line([row.get(column, "") for column in columns]) for row in chosen)])


def _line(cells: Sequence[Any]) -> str:
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def written(folder: Path) -> str:
    """Return the README of a result with its tables made from its rows."""
    rows = rows_of(folder)

    def replaced(match: re.Match[str]) -> str:
        view = VIEWS.get(match["name"])
        return f"{match[1]}{view(rows) if view is not None else table(rows, match['name'])}\n{match[3]}"

    return _TABLE.sub(replaced, (folder / "README.md").read_text())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="folders of benchmarks/results (all)")
    parser.add_argument("--check", action="store_true", help="fail where a README differs from its rows; write nothing")
    options = parser.parse_args(arguments)
    folders = [RESULTS / name for name in options.names] or sorted(path.parent for path in RESULTS.glob("*/README.md"))
    stale = []
    for folder in folders:
        text = written(folder)
        if text != (folder / "README.md").read_text():
            stale.append(folder.name)
            if not options.check:
                (folder / "README.md").write_text(text)
    if stale:
        print(f"{'differ from their rows' if options.check else 'written'}: {', '.join(stale)}")
    return int(options.check and bool(stale))


if __name__ == "__main__":
    raise SystemExit(main())
