"""How often does luck refuse an honest program, where few elements of an output make up its error, and what does more runs of the original let pass?

    python -m benchmarks.verifier.luck --out /tmp/luck

The rule: a program's error may be twice the worst of the original's own over some runs on inputs moved by an ulp. Errors of the deciding elements
are normal with the same width in every run, and those of the program `factor` times as wide; an error is the largest, or the RMS, of the elements.
Probabilities are integrals, not samples; a second table draws the whole rule of `conditioning.py`, with its count of deciding elements.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import torch

from warpwright.verifier.judge.original.conditioning import FEW, NEAR_RUNS, runs_for

SLACK = 2.0
GRID = torch.linspace(0, 12, 120_001, dtype=torch.float64)
FACTORS = (1.0, 1.4, 4.0, 8.0)
"""Times the original's own error: as good, with one and a half times the roundings, twice the tolerance, four times the tolerance."""


def cdf_of_largest(elements: int, at: torch.Tensor) -> torch.Tensor:
    """Return the probability that the largest of so many errors is below `at`."""
    return torch.special.erf(at / math.sqrt(2)) ** elements


def cdf_of_rms(elements: int, at: torch.Tensor) -> torch.Tensor:
    """Return the probability that their RMS is below `at`."""
    return torch.special.gammainc(torch.tensor(elements / 2, dtype=torch.float64), elements * at.square() / 2)


def refused(cdf: Any, elements: int, runs: int, factor: float) -> float:
    """Return the probability that a program is refused: its own error beyond SLACK times the worst of `runs` and the unmoved one."""
    worst = cdf(elements, GRID) ** (runs + 1)
    beyond = 1 - cdf(elements, SLACK * GRID / factor)
    middle = (beyond[1:] + beyond[:-1]) / 2
    return float((middle * worst.diff()).sum()) + float(beyond[-1] * (1 - worst[-1]))


def runs_at(elements: int) -> int:
    """Return the runs that the rule makes for so many deciding elements of the same width."""
    return next((runs for fewer, runs in FEW if elements < fewer), NEAR_RUNS)


def integrals() -> list[dict[str, Any]]:
    """Return a row for each number of deciding elements."""
    rows = []
    for elements in (1, 2, 3, 4, 6, 8, 12, 16, 32, 128):
        runs = runs_at(elements)
        row: dict[str, Any] = {"table": "luck", "deciding": elements, "runs": runs}
        for factor in FACTORS:
            row[f"refused at {factor:g}x"] = float(f"{max(refused(cdf, elements, runs, factor) for cdf in (cdf_of_largest, cdf_of_rms)):.2g}")
        row["at 1x with 6 runs"] = float(f"{max(refused(cdf, elements, NEAR_RUNS, 1.0) for cdf in (cdf_of_largest, cdf_of_rms)):.2g}")
        rows.append(row)
    return rows


def drawn(trials: int, elements: int = 256) -> list[dict[str, Any]]:
    """Return a row for each steepness of the elements' widths: the rule itself, on errors drawn for one large element down to many alike."""
    generator, rows = torch.Generator().manual_seed(1), []
    for steepness in (8.0, 4.0, 2.0, 1.0, 0.5):
        widths = torch.arange(1, elements + 1, dtype=torch.float64) ** -steepness
        counts = dict.fromkeys(FACTORS, 0)
        used = 0
        for _ in range(trials):
            far = 4 * widths * torch.randn(6, elements, generator=generator, dtype=torch.float64)
            near = widths * torch.randn(1 + max(runs for _, runs in FEW), elements, generator=generator, dtype=torch.float64)
            runs = runs_for(torch.cat([far, near[: NEAR_RUNS + 1]]).abs().amax(0))
            used += runs
            program = widths * torch.randn(elements, generator=generator, dtype=torch.float64)
            limits = [SLACK * float(size(near[: runs + 1]).max()) for size in (largest, rms)]
            for factor in FACTORS:
                counts[factor] += any(factor * float(size(program)) > limit for size, limit in zip((largest, rms), limits, strict=True))
        rows.append(
            {"table": "drawn", "width of element k": f"k^-{steepness:g}", "mean runs": round(used / trials, 1), "trials": trials}
            | {f"refused at {factor:g}x": counts[factor] for factor in FACTORS}
        )
    return rows


def largest(errors: torch.Tensor) -> torch.Tensor:
    """Return the largest size along the last dimension."""
    return errors.abs().amax(-1)


def rms(errors: torch.Tensor) -> torch.Tensor:
    """Return the root of the mean square along the last dimension."""
    return errors.square().mean(-1).sqrt()


def tell(rows: list[dict[str, Any]], out: Path | None) -> None:
    """Print rows, and write them into a folder if there is one."""
    for row in rows:
        print(json.dumps(row))
    if out:
        out.mkdir(parents=True, exist_ok=True)
        (out / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--trials", type=int, default=20_000, help="of each row of the second table")
    parser.add_argument("--out", type=Path, help="folder for rows.jsonl")
    given = parser.parse_args()
    torch.set_num_threads(1)
    tell(integrals() + drawn(given.trials), given.out)


if __name__ == "__main__":
    main()
