"""benchmarks/kernels/sixty_products.py on a CPU: sixty shapes, a row each, and what they say together on a page."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from benchmarks.kernels import sixty_products
from benchmarks.kernels.int8_product import DISTRIBUTIONS
from benchmarks.kernels.row_file import Case, run
from benchmarks.kernels.sixty_products import SIXTY


def test_there_are_sixty_shapes_from_64_to_16384() -> None:
    assert len(set(SIXTY)) == 60 and {64, 16384} == {min(map(min, SIXTY)), max(map(max, SIXTY))}


def test_rows_and_what_they_say_together(tmp_path: Path) -> None:
    cases: list[Case] = [({}, partial(sixty_products.beside, "sixty", shape, True)) for shape in SIXTY[:2]]
    with torch.no_grad():
        run([({}, partial(sixty_products.host, True)), ({}, partial(sixty_products.plain, (512, 512, 512), True)), *cases], tmp_path / "out", 60)
    page = tmp_path / "page"
    page.mkdir()
    (page / "rows.jsonl").write_text('{"table": "sixty", "old": 1}\n{"table": "speed"}\n')
    sixty_products.into_page(tmp_path / "out" / "rows.jsonl", page)
    rows = [json.loads(line) for line in (page / "rows.jsonl").read_text().splitlines()]
    tables = [row["table"] for row in rows]
    assert tables == ["speed", "host-cost", "plain", "sixty", "sixty", *["sixty-summary"] * 6, *["sixty-errors"] * len(DISTRIBUTIONS)]
    shapes = [row for row in rows if row["table"] == "sixty"]
    assert [row["m x n x k"] for row in shapes] == ["64 x 64 x 64", "128 x 128 x 128"] and shapes[0]["errors"] == "1.00 1.00 1.00 1.00 1.00 1.00"


def test_a_summary_counts_what_is_below_and_what_errs_more() -> None:
    def row(shape: str, gain: float, error: float) -> dict[str, object]:
        ways = dict.fromkeys(("prepared", "[n, k]", "[k, n]"), f"{gain:.3f} [0.9, 1.1]")
        singles = {f"{name}, single": 1.0 for name in ways}
        return {"table": "sixty", "m x n x k": shape, **ways, **singles, **{f"error, {kind}": error for kind in DISTRIBUTIONS}}

    made = list(sixty_products.summaries([row("a", 0.97, 1.2), row("b", 4.0, 0.5)]))
    assert [line["below 0.98"] for line in made[:6]] == [1, 0, 1, 0, 1, 0] and made[0]["least"] == "a: 0.970, b: 4.000"
    assert all(line["above cuBLAS's"] == 1 and line["most"].startswith("a: 1.2") for line in made[6:])


def test_an_error_is_over_theirs() -> None:
    exact = torch.zeros(2, 2, dtype=torch.float64)
    one, two, none = torch.ones(2, 2), 2 * torch.ones(2, 2), torch.zeros(2, 2)
    assert [sixty_products.over(*pair, exact) for pair in ((one, two), (two, one), (none, none), (one, none))] == [0.5, 2, 1, float("inf")]
    with pytest.raises(RuntimeError):
        sixty_products.over(torch.ones(3), one, exact)
