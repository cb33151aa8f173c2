"""The comparison of searches: every search is answered from rows, and none finds more than there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.search import compare


@pytest.mark.slow
def test_every_search_is_compared_and_none_is_better_than_the_best(tmp_path: Path) -> None:
    assert compare.main(["--out", str(tmp_path), "--seeds", "1"]) == 0
    space, *rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    own = [row for row in rows if row["table"] == "comparison"]
    assert space["kernels"] == 20 and [row["search"] for row in own] == list(compare.ASKED)
    for row in own:
        shares = [float(row[f"after {count}"].split()[0]) for count in compare.COUNTS]
        assert shares == sorted(shares) and shares[0] > 0 and shares[-1] <= 1
    paired = [row for row in rows if row["table"] == "paired"]
    assert [row["search over random"] for row in paired] == list(compare.ASKED[1:])


def test_an_interval_holds_the_mean_and_narrows_with_more_kernels() -> None:
    few, many = ([float(word.strip("[],")) for word in compare.interval([0.0, 0.7] * count).split()] for count in (5, 100))
    assert few[1] < few[0] == many[0] < few[2] and few[1] < many[1] < many[0] < many[2] < few[2]
    assert compare.interval([0.0] * 4) == "1.00 [1.00, 1.00]"


@pytest.mark.parametrize("search", compare.ASKED)
def test_an_evaluation_is_counted_once(search: str) -> None:
    kernel = compare.kernels(compare.MEASURED)[0]
    line = compare.followed(kernel, search, 0, 12)
    assert len(line) == 13 and line[0] == 1.0 and line == sorted(line)


def test_money_buys_more_the_more_there_is_and_questions_cost_some() -> None:
    kernel, prices = compare.kernels(compare.MEASURED)[0], compare.PRICES["dollars"]
    budgets = [count * prices.evaluation for count in compare.COUNTS]
    for search in ("random", "fsr", "islands"):
        found = compare.bought(kernel, search, 0, prices, budgets)
        assert found == sorted(found) and found[0] >= 1.0 and found[-1] <= kernel.best
    spent = [dollars for dollars, _ in compare.steps(kernel, "random", 0, 4)]
    assert spent == pytest.approx([prices.evaluation * (count + 1) for count in range(4)])
    asked = [dollars for dollars, _ in compare.steps(kernel, "fsr", 0, 4)]
    assert all(more > dollars for more, dollars in zip(asked, spent, strict=True)), "a model's tokens are paid for, too"


def test_a_program_that_was_evaluated_before_costs_nothing() -> None:
    kernel, prices = compare.kernels(compare.MEASURED)[0], compare.PRICES["dollars"]
    spent = [dollars for dollars, _ in compare.steps(kernel, "anneal", 0, compare.PROPOSALS)]
    assert len(spent) == compare.PROPOSALS and spent[-1] <= len(kernel.speedups) * 2 * prices.evaluation
