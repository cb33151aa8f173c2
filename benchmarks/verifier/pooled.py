"""How often is a program refused over a whole audit, where one element makes up the error? The rule, and statistics that pool the calls of an audit.

    python -m benchmarks.verifier.pooled --out /tmp/pooled

`luck.py` asks this of one judgement. An audit makes dozens: about 24 on the hidden cases and states. Errors of the original are normal with a width
for each call (`spread`: the logarithm's deviation, which nobody knows beforehand); those of the program are `factor` times as wide.

    any call        an error beyond SLACK times the worst of the original's runs, in any call (and beyond its usual one)
    seen again      the same, but one that is beyond it by less than MARGINAL has to be seen again on one of six other draws
    typical error   the rule (`warpwright/verifier/luck.py`): the same, but on DRAWS other draws the RMS of the program's errors, each as a share of
                    twice the RMS of the original's runs there, is above 1, or REFUSED of them are beyond the worst of the runs
    sum of squares  over the calls that get a second look: (error / RMS of the original's runs)^2, added up; no run more than the rule makes
    ratio of sums   over all calls, with the original's one run of each: no second look at all
    ratio of medians the same with medians, which one call cannot spoil

The limits of the pooled ones are those at which a program with 1.4 times the original's error (half again as many roundings) is refused in one audit
of 10,000.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from benchmarks.verifier.luck import tell
from warpwright.verifier.judge.original.conditioning import FEW
from warpwright.verifier.luck import DRAWS, MARGINAL, REFUSED

SLACK = 2.0
RUNS = FEW[0][1]
FACTORS = (1.0, 1.4, 2.0, 2.5, 3.0, 4.0, 8.0)
HONEST, LUCK = 1.4, 1e-4
SIX = 6
DECIDED = ("any call", "seen again", "typical error")
"""Rules that say yes or no by themselves."""


def audits(calls: int, spread: float, trials: int, seed: int = 1) -> dict[float, dict[str, torch.Tensor]]:
    """Return each rule's statistic in every audit drawn, by the factor of the program; "any call" is 0 or 1."""
    generator = torch.Generator().manual_seed(seed)
    widths = torch.exp(spread * torch.randn(trials, calls, generator=generator))
    own = (widths * torch.randn(trials, calls, generator=generator)).abs()
    worst, squares = own.clone(), own.square()
    for _ in range(RUNS):
        run = (widths * torch.randn(trials, calls, generator=generator)).abs()
        worst, squares = torch.maximum(worst, run), squares + run.square()
    usual, size = own.median(1, keepdim=True).values, (squares / (RUNS + 1)).sqrt()
    drawn = (widths * torch.randn(trials, calls, generator=generator)).abs()
    found = {}
    for factor in FACTORS:
        error = factor * drawn
        looked = error > SLACK * torch.maximum(own, usual)
        excess = torch.where(looked, error / (SLACK * torch.maximum(worst, usual)), 0.0)
        marginal = (excess > 1) & (excess < MARGINAL)
        another = torch.rand(excess.shape, generator=generator) < 1 - (1 - float((excess > 1).double().mean())) ** SIX
        typical = torch.zeros_like(marginal)
        typical[marginal] = refused_on_draws(factor, int(marginal.sum()), spread, generator)
        found[factor] = {
            "any call": (excess > 1).any(1).double(),
            "seen again": ((excess >= MARGINAL) | (marginal & another)).any(1).double(),
            "typical error": ((excess >= MARGINAL) | typical).any(1).double(),
            "sum of squares": torch.where(looked, error / size, 0.0).square().sum(1),
            "ratio of sums": error.square().sum(1) / own.square().sum(1),
            "ratio of medians": error.median(1).values / own.median(1).values,
        }
    return found


def refused_on_draws(factor: float, cases: int, spread: float, generator: torch.Generator) -> torch.Tensor:
    """Return which of so many marginal refusals stand when a program has made calls on other draws."""
    widths = torch.exp(spread * torch.randn(cases, DRAWS, generator=generator))
    squares, worst = torch.zeros_like(widths), torch.zeros_like(widths)
    for _ in range(RUNS + 1):
        run = (widths * torch.randn(cases, DRAWS, generator=generator)).abs()
        squares, worst = squares + run.square(), torch.maximum(worst, run)
    error = factor * (widths * torch.randn(cases, DRAWS, generator=generator)).abs()
    shares = error.square() / (SLACK**2 * squares / (RUNS + 1))
    return (shares.mean(1) > 1) | ((error > SLACK * worst).sum(1) >= REFUSED)


def table(calls: int, spread: float, trials: int) -> list[dict[str, Any]]:
    """Return a row for each rule: in what share of audits a program is refused."""
    found, rows = audits(calls, spread, trials), []
    for rule in found[HONEST]:
        honest = found[HONEST][rule].double().sort().values
        limit = 0.5 if rule in DECIDED else float(honest[int(len(honest) * (1 - LUCK)) - 1])
        shares = {f"refused at {factor:g}x": round(float((found[factor][rule] > limit).double().mean()), 4) for factor in FACTORS}
        rows.append({"table": "pooled", "calls": calls, "spread": spread, "rule": rule, "limit": round(limit, 2), **shares})
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=50_000, help="audits of each row")
    parser.add_argument("--out", type=Path, help="folder for rows.jsonl")
    given = parser.parse_args()
    torch.set_num_threads(1)
    tell([row for calls in (12, 24, 40) for spread in (0.0, 0.7) for row in table(calls, spread, given.trials)], given.out)


if __name__ == "__main__":
    main()
