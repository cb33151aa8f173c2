"""Counters of calls begin elsewhere where the program takes that, and nowhere else; small changes of a state are small and stay in range."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus import task

from warpwright.base import Case, to_json
from warpwright.tasks import taskfile
from warpwright.verifier.judge import counters, distributions
from warpwright.verifier.judge.judge_worker import JudgeWorker
from warpwright.verifier.judge.original import reference
from warpwright.verifier.judge.original.answers import Answer, key_of
from warpwright.verifier.judge.original.reference import Original

torch = pytest.importorskip("torch")

TASK = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.register_buffer("cache", torch.zeros({rows}, 8))
        self.register_buffer("calls", torch.zeros({shape}, dtype=torch.{dtype}))

    def forward(self, x):
        self.cache[{place}] = self.layer(x)
        self.calls += 1
        return {result}

def get_inputs():
    return [torch.randn(8)]

def get_init_inputs():
    return []
"""

CACHE = {"rows": 512, "shape": "()", "dtype": "int64", "place": "self.calls", "result": "self.cache.sum(0) * 1.0"}
MEAN = {**CACHE, "rows": 4, "place": "0", "result": "self.cache[0] / self.calls"}


def opened(folder: Path, values: dict[str, object], secret: str = "7") -> Original:
    (folder / "task.py").write_text(TASK.format(**values))
    judging = JudgeWorker({"device": "cpu", "exchange": "", "isolation": {}})
    judging.open(to_json(taskfile.describe(folder / "task.py")), secret, False)
    return judging._original


@pytest.mark.parametrize("secret", ["1", "2", "3"])
def test_a_place_in_a_cache_begins_where_the_program_has_it(tmp_path: Path, secret: str) -> None:
    original = opened(tmp_path, CACHE, secret)
    assert original.counters == () and original.strength == 2.0
    for which in range(3):
        assert int(original.state(which)["calls"]) == 0 and original.answer(Case("nominal", 3), which).conditioned


@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (MEAN, True),
        ({**CACHE, "place": "self.calls % 512"}, True),
        ({**CACHE, "shape": "1"}, False),
        ({**CACHE, "rows": 1500}, False),  # no draw is beyond its end; one and some hundreds of calls are
        ({**CACHE, "place": "0", "result": "self.cache[:self.calls].sum(0)"}, True),
        ({**CACHE, "place": "0", "result": "self.cache[0, : self.calls + 2]"}, False),  # of another shape there
        ({**CACHE, "place": "0", "result": "self.cache[0] * (self.calls < 500)"}, False),  # nothing but zeros there
        ({**MEAN, "dtype": "uint8"}, False),
    ],
)
def test_counters_begin_elsewhere_where_the_program_answers_as_usual(tmp_path: Path, change: dict[str, object], moved: bool) -> None:
    original = opened(tmp_path, change)
    assert original.counters == (("calls",) if moved else ()) and original.strength == 2.0
    assert (int(original.state(1)["calls"].sum()) > 0) == moved


def test_an_answer_that_is_a_part_of_a_cache_is_kept(tmp_path: Path) -> None:
    original = opened(tmp_path, {**CACHE, "result": "self.cache[:1]"})
    answer = original.answer(Case("nominal", 3), 0)
    kept = answer.leaves[0].exact.clone()
    original.set_state(1)
    assert original.strength == 2.0 and answer.conditioned and bool(kept.any()) and torch.equal(answer.leaves[0].exact, kept)


def test_a_trial_touches_nothing_but_the_cpu() -> None:
    with counters._OnCpuAlone():
        assert int(torch.ones(3).sum()) == 3
        with pytest.raises(RuntimeError, match="stays on the CPU"):
            torch.ones(3, device="meta")
    there = torch.ones(3, device="meta")
    with counters._OnCpuAlone(), pytest.raises(RuntimeError, match="stays on the CPU"):
        there[torch.tensor(1)].add_(1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_a_nudge_is_as_small_as_it_says_in_every_precision(dtype: str) -> None:
    before = torch.linspace(0.5, 2, 99).to(getattr(torch, dtype)) * (-1 if dtype != "complex64" else 1j)
    eps, wide = torch.finfo(before.dtype).eps, torch.complex128 if before.is_complex() else torch.float64
    for seed in range(4):
        after = distributions.nudged(before, seed)
        moved = (after.to(wide) - before.to(wide)).abs() / before.to(wide).abs() / eps
        least, most = (4, 4) if before.element_size() == 2 else (64, 512)
        assert after.dtype is before.dtype and least - 1 <= float(moved.min()) and float(moved.max()) <= most + 1


def test_a_nudge_leaves_the_upper_half_of_each_value() -> None:
    before = torch.randn(4000)
    after = distributions.nudged(before, 3)
    assert torch.equal(before.view(torch.int32) >> 16, after.view(torch.int32) >> 16) and not bool((before == after).any())


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "int64"])
def test_a_nudge_keeps_integers_in_range_and_in_order(dtype: str) -> None:
    of = getattr(torch, dtype)
    for fixed in (torch.zeros(9, dtype=of), torch.arange(9, dtype=of), torch.tensor(3, dtype=of), torch.zeros(0, dtype=of)):
        assert torch.equal(distributions.nudged(fixed, 5), fixed)
    table = torch.tensor([[0, 5, 2], [100, 1, 0]], dtype=of).t()
    for seed in range(6):
        moved = distributions.nudged(table, seed)
        assert int((moved.long() - table.long()).abs().sum()) == 1 and int(moved.min()) >= 0 and int(moved.max()) <= 100
    assert not torch.equal(distributions.random_state({"t": table}, {"t"}, 3)["t"], table)


def test_a_case_that_is_forgotten_counts_once_among_the_usual_errors(tmp_path: Path) -> None:
    original = opened(tmp_path, MEAN)
    case = Case("normal", 5)
    first = original.answer(case, 0)
    before = len(original.usual["out"])
    for _ in range(2):
        original.answers.clear()
        again = original.answer(case, 0)
    assert len(original.usual["out"]) == before and again.leaves[0].allowed == first.leaves[0].allowed


def test_a_round_that_does_not_fit_finds_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    judging = JudgeWorker({"device": "cpu", "exchange": "", "isolation": {}})
    judging.open(to_json(task("relu")), "7", False)
    original, cases = judging._original, [Case("normal", seed) for seed in range(5)]
    original.answer(cases[0], 0)
    monkeypatch.setattr(reference, "KNOWN_BYTES", 4 * original.worked_out[key_of(cases[0], 0)].bytes)
    original.worked_out.clear()
    for seed in range(20, 25):  # calls with a case of their own come first
        original.answer(Case("normal", seed), 0)
    anew: list[Case] = []
    work = original._answer_anew

    def counted(case: Case, which: int) -> Answer:
        anew.append(case)
        return work(case, which)

    monkeypatch.setattr(original, "_answer_anew", counted)
    for _ in range(4):
        anew.clear()
        for case in cases:
            original.answers.clear()
            original.answer(case, 0)
    assert len(anew) <= 2
