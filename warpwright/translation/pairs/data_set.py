"""The folder of a data set: parquet shards, the state from which `--resume` continues, and a data card."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import warpwright
from warpwright import native
from warpwright.errors import MissingExtra, UsageError
from warpwright.files import make_folder
from warpwright.translation.pairs.build import C_FLAGS
from warpwright.translation.pairs.draft import Options

STATE = "state.json"
TEST_SHARE = 0.1
"""Share of the operators that are held out, whole, so that no test pair is a training pair of another size."""


def parquet() -> tuple[Any, Any]:
    """Return pyarrow and its parquet module. Raises MissingExtra."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "pairs", "writing and reading pairs") from error
    return pyarrow, pyarrow.parquet


def split_of(name: str) -> str:
    """Return "test" for about a tenth of the operators, by a hash of the name, else "train"."""
    first = int(hashlib.sha256(name.removeprefix("graph_").encode()).hexdigest()[:8], 16)
    return "test" if first / 16**8 < TEST_SHARE else "train"


def read_pairs(path: Path) -> list[dict[str, Any]]:
    """Return the pairs of a parquet file, or of all shards of a folder. Raises UsageError where there are none."""
    _, files = parquet()
    shards = sorted(path.glob("part-*.parquet")) if path.is_dir() else [path]
    if not shards or not all(shard.exists() for shard in shards):
        raise UsageError(f"expected a parquet file or a folder of part-*.parquet, saw {path}", "write one with `warpwright pairs --out`")
    return [row for shard in shards for row in files.read_table(shard).to_pylist()]


@dataclass
class Folder:
    """A data set that is being written."""

    path: Path
    options: Options
    next_index: int = 0
    total: int = 0
    shards: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    known: set[str] = field(default_factory=set)
    pending: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, options: Options, resume: bool) -> Folder:
        """Begin a data set, or resume one. Raises UsageError where the folder or the options do not fit."""
        parquet()
        state = path / STATE
        if state.exists() != resume:
            hint = "add --resume, or name another folder" if state.exists() else "leave --resume out to begin one"
            raise UsageError(f"expected {'a' if resume else 'no'} data set in {path}, saw {'none' if resume else 'one'}", hint)
        make_folder(path)
        if not resume:
            return cls(path, options)
        saved = json.loads(state.read_text())
        if saved["options"] != json.loads(json.dumps(asdict(options))):
            raise UsageError(
                f"expected the options that the data set was begun with, {saved['options']}, saw {asdict(options)}", "give the same --seed"
            )
        known = {row["id"] for row in read_pairs(path)} if saved["shards"] else set()
        return cls(path, options, saved["next"], saved["total"], saved["shards"], Counter(saved["rejected"]), known)

    def add(self, pair: Mapping[str, Any], shard: int) -> None:
        """Add a pair; write a shard when `shard` of them are pending."""
        self.known.add(pair["id"])
        self.pending.append({**pair, "split": split_of(pair["name"])})
        self.total += 1
        if len(self.pending) >= shard:
            self.flush()

    def flush(self) -> None:
        """Write the pending pairs, then the state: a run that is killed in between writes the shard again."""
        if self.pending:
            arrow, files = parquet()
            name = self.path / f"part-{self.shards:05d}.parquet"
            files.write_table(arrow.Table.from_pylist(self.pending), f"{name}.tmp", compression="zstd")
            os.replace(f"{name}.tmp", name)
            self.shards += 1
            self.pending = []
        state = {
            "options": asdict(self.options), "next": self.next_index, "total": self.total, "shards": self.shards, "rejected": dict(self.rejected),
        }  # fmt: skip
        temporary = self.path / f"{STATE}.tmp"
        temporary.write_text(json.dumps(state))
        os.replace(temporary, self.path / STATE)

    def card(self, rejected: Mapping[str, int]) -> None:
        """Add to the counts of rejected drafts, and write the data card, README.md."""
        self.rejected.update(rejected)
        self.flush()
        if self.shards:
            (self.path / "README.md").write_text(card_text(read_pairs(self.path), self.options, self.rejected))


def card_text(rows: list[dict[str, Any]], options: Options, rejected: Mapping[str, int]) -> str:
    """Return the data card of a data set."""
    families, splits = Counter(row["family"] for row in rows), Counter(row["split"] for row in rows)
    strategies = Counter(one["strategy"] for row in rows for one in json.loads(row["cuda_schedule"]))
    gains = sorted(row["c_first_seconds"] / row["c_seconds"] for row in rows)
    how = "both halves against float64" if options.verify_cuda else "the C half against float64; the CUDA half was NOT run"
    names, texts = len({row["name"] for row in rows}), len({row["skeleton"] for row in rows})
    lines = [
        "# CUDA and C pairs",
        "",
        f"{len(rows)} pairs of equal programs, one in CUDA and one in C11 with OpenMP, printed from one tensor expression by warpwright"
        f" {warpwright.__version__}, seed {options.seed}.",
        f"Verified: {how}, on {len(json.loads(rows[0]['cases']))} draws of inputs from each pair's own domain, with guard zones around every array.",
        "",
        f"Operators and graphs: {names} names, {texts} CUDA texts that differ in more than sizes.",
        f"Splits: {', '.join(f'{name} {count}' for name, count in sorted(splits.items()))}; whole operators are held out.",
        f"C half: the fastest of up to {options.tune} loop schedules, {gains[len(gains) // 2]:.2f}x the usual guess (median), measured with"
        f" {rows[0]['threads']} thread(s) on {platform.machine()}, compiled by {Path(native.compiler()[0]).name} {' '.join(C_FLAGS)}.",
        f"Rejected on the way: {', '.join(f'{name} {count}' for name, count in sorted(rejected.items())) or 'none'}.",
        "",
        *_table("family", "pairs", families),
        *_table("CUDA strategy of a kernel", "kernels", strategies),
        "## Columns",
        "",
        *(f"- `{name}`: {what}" for name, what in COLUMNS.items()),
        "",
    ]
    return "\n".join(lines)


def _table(what: str, counted: str, rows: Counter[str]) -> list[str]:
    return [f"| {what} | {counted} |", "|---|---|", *(f"| {name} | {count} |" for name, count in rows.most_common()), ""]


COLUMNS = {
    "id": "hash of both texts, names and blanks left out: unique",
    "skeleton": "hash of the CUDA text without numbers: equal for pairs that differ in sizes only",
    "format": "version of these columns",
    "seed": "of the data set",
    "index": "number of the draft: seed and index make it again",
    "name": "operator, or graph_OPERATOR",
    "family": "kind of operator",
    "provenance": "the operator and the mutations that made the graph, in order",
    "cuda": "CUDA text: one kernel a stage",
    "c": "C11 text with OpenMP: one function of the inputs, then the outputs",
    "c_entry": "its name",
    "reference": "numpy text: `reference(inputs..., real=np.float64)` returns the outputs",
    "launches": "JSON: kernel, grid, block, dynamic shared bytes, arguments",
    "buffers": "JSON: name, role (input, output, temporary), dtype, shape and, of inputs, the domain",
    "cases": "JSON: seed and value range of each draw",
    "absolute_tolerance": "of each output: |seen - exact| <= absolute + relative |exact|",
    "relative_tolerance": "of each output",
    "cuda_schedule": "JSON: how each stage became a kernel",
    "c_schedule": "JSON: how each stage became a loop nest",
    "c_candidates": "loop schedules tried",
    "c_seconds": "median time of one call of the C half",
    "c_first_seconds": "that of the usual guess",
    "cuda_verified": "whether the CUDA half was run",
    "threads": "OpenMP threads while timing",
    "work": "evaluations of bodies",
    "split": "train or test",
}
