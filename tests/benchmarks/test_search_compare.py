"""The comparison of searches: every search is answered from rows, and none finds more than there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.search import compare


def test_every_search_is_compared_and_none_is_better_than_the_best(tmp_path: Path) -> None:
    assert compare.main(["--out", str(tmp_path), "--seeds", "1"]) == 0
    space, *rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert space["kernels"] == 20 and [row["search"] for row in rows] == list(compare.ASKED)
    for row in rows:
        shares = [float(row[f"after {count}"]) for count in compare.COUNTS]
        assert shares == sorted(shares) and shares[0] > 0 and shares[-1] <= 1


@pytest.mark.parametrize("search", compare.ASKED)
def test_an_evaluation_is_counted_once(search: str) -> None:
    kernel = compare.kernels(compare.MEASURED)[0]
    line = compare.followed(kernel, search, 0, 12)
    assert len(line) == 13 and line[0] == 1.0 and line == sorted(line)
