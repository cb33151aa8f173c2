"""Rows of action data: a task's words, a recipe, its verdict and its times. `warpwright collect` writes them, and a policy learns from them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from warpwright import loop
from warpwright.base import BASELINE, Record
from warpwright.errors import MissingExtra
from warpwright.files import reading


@dataclass(frozen=True)
class Row:
    """One recipe of one task on one device, and what became of it."""

    task: str
    task_key: str
    device: str
    """The machine's name where it is known, else the kind of device."""
    program: tuple[str, ...]
    """The task's words, its places by name (policy/words.py)."""
    roof: float | None
    """Share of the measured bandwidth that the original needs for what every program moves; None where it is not known."""
    recipe: tuple[str, ...]
    status: str
    speedup: float
    """Over the original; 0 for what did not pass."""
    low: float = 0.0
    high: float = 0.0
    """The speed-up's interval, where there is one."""
    seconds: float = 0.0
    """Of a call."""
    original_seconds: float = 0.0
    candidate: str = ""
    """Key of the program in its archive; rows of the same program of the same task on the same device are one."""
    check: str = ""
    """The check that decided, for what did not pass."""
    estimate: float = 0.0
    """Seconds of a call by the space's cost model, which searches may ask; 0 where there is none."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Identity of what was measured."""
        return self.task_key, self.device, self.candidate or ", ".join(self.recipe)


ORIGINAL = "eager"
"""The baseline that is the original as it is."""


def of_records(records: Sequence[Record], program: tuple[str, ...], machine: str = "") -> list[Row]:
    """Return the rows of one task's records: its recipes, speed-ups over the original. Baselines but for the original are left out."""
    first = next((one for one in records if one.candidate.proposer == BASELINE + ORIGINAL), None)
    roof = (loop.bandwidth_share(first) or None) if first is not None else None
    rows = [_row(record, program, machine, roof) for record in records if record is first or not record.candidate.proposer.startswith(BASELINE)]
    return [row for row in rows if row is not None]


def _row(record: Record, program: tuple[str, ...], machine: str, roof: float | None) -> Row | None:
    recipe = tuple(map(str, record.candidate.actions))
    about = (record.task.name, record.task.key, machine or record.device, program, roof, recipe, record.status)
    check = record.verdict.check if record.verdict is not None else ""
    measured = record.measurement
    if record.status != "ok":
        return Row(*about, 0.0, candidate=record.candidate.key, check=check)
    if measured is None or ORIGINAL not in measured.baselines:
        return None
    ours, original = measured.candidate.median, measured.baselines[ORIGINAL].median
    low, high = measured.interval if measured.best_baseline == ORIGINAL else (0.0, 0.0)
    return Row(*about, original / ours, low, high, ours, original, record.candidate.key)


def merged(rows: Iterable[Row]) -> list[Row]:
    """Return rows without repetitions, in the order in which each was seen first; of the same key the last counts."""
    newest: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        newest[row.key] = row
    return list(newest.values())


def read(path: Path) -> list[Row]:
    """Return the rows of a .jsonl or .parquet file."""
    with reading(path, "rows as `warpwright collect` writes them", "make them with `warpwright collect`"):
        lines = _parquet(path).read_table(path).to_pylist() if path.suffix == ".parquet" else map(json.loads, path.read_text().splitlines())
        return [Row(**{**line, "program": tuple(line["program"]), "recipe": tuple(line["recipe"])}) for line in lines]


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows to a .jsonl or .parquet file, whole or not at all."""
    lines = [asdict(row) for row in rows]
    partial = path.with_name(path.name + ".partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        _parquet(path).write_table(_table(lines), partial)
    else:
        partial.write_text("".join(json.dumps(line) + "\n" for line in lines))
    partial.replace(path)


def _parquet(path: Path) -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "pairs", f"{path.name}") from error
    return parquet


def _table(lines: list[dict[str, Any]]) -> Any:
    import pyarrow

    text, number, words = pyarrow.string(), pyarrow.float64(), pyarrow.list_(pyarrow.string())
    numbers = ("roof", "speedup", "low", "high", "seconds", "original_seconds", "estimate")
    kinds = {"program": words, "recipe": words, **dict.fromkeys(numbers, number)}
    schema = pyarrow.schema([(name, kinds.get(name, text)) for name in Row.__dataclass_fields__])
    return pyarrow.Table.from_pylist(lines, schema=schema)
