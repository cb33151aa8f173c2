"""topk of short rows by a warp a row, on one GPU: index for index against torch, with ties and special values, and timed beside it.

    timeout -k 2 40 python -m benchmarks.kernels.top_k --out OUT [--seconds 30]

A row each in OUT/rows.jsonl as it is known. Times are medians of batches of calls back to back, by CUDA events; the least is reading the rows once
and writing the results at 4.19 TB/s.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernels.int8_product import milliseconds
from benchmarks.kernels.row_file import run
from warpwright.base import Action
from warpwright.domains.graph.capture.model import from_module
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.top_k import TOP_K

COPY = 4.19e12
TEXT = "import torch\nclass Model(torch.nn.Module):\n    pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"


@dataclass(frozen=True)
class Case:
    """topk of [rows, length]."""

    rows: int
    length: int
    k: int
    dtype: str = "float32"


CASES = (
    Case(65536, 64, 8), Case(65536, 8, 2), Case(65536, 128, 8), Case(16384, 256, 8), Case(8192, 512, 16), Case(8192, 1024, 32), Case(4096, 1000, 5),
    Case(65536, 64, 8, "bfloat16"), Case(65536, 32, 32), Case(20000, 100, 1),
)  # fmt: skip
KINDS = ("normal", "ties", "constant", "special")


class Top(torch.nn.Module):
    """The call."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k

    def forward(self, x: torch.Tensor) -> Any:
        """Return values and indices."""
        values, indices = torch.topk(x, self.k)
        return values, indices


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=30.0, help="no case is begun after that many")
    options = parser.parse_args()
    run([(vars(case), partial(measured, case)) for case in CASES], options.out, options.seconds)


def draw(kind: str, case: Case) -> torch.Tensor:
    """Return rows of a kind: ties are halves, special values NaN, infinities and both zeros."""
    x = torch.randn(case.rows, case.length, device="cuda", generator=torch.Generator("cuda").manual_seed(case.length))
    if kind == "ties":
        x = (2 * x).round() / 2
    if kind == "constant":
        x = torch.zeros_like(x)
    if kind == "special":
        values = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-42, 3.3e38], device="cuda")
        x = torch.where(torch.rand_like(x) < 0.5, values[torch.randint(len(values), x.shape, device="cuda")], x.round())
    return x.to(getattr(torch, case.dtype))


def measured(case: Case) -> Iterator[dict[str, Any]]:
    """Compare with torch and time both; yield the row."""
    x = draw("normal", case)
    ir = from_module(Top(case.k), [torch.empty(x.shape, dtype=x.dtype)])
    text = lower(TOP_K.apply(ir, Action("top_k_cuda")), (), Original("top_k", TEXT, target="cuda")).source.text
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "optimized.py", "exec"), names)
    row: dict[str, Any] = {"table": "top_k", **vars(case)}
    for kind in KINDS:
        given = draw(kind, case)
        (values, indices), (own, theirs) = names["optimized"](given), torch.topk(given, case.k)
        row[f"{kind} wrong"] = int((indices != theirs).sum() + (values.nan_to_num(7.0) != own.nan_to_num(7.0)).sum())
    spent = milliseconds({"ours": partial(names["optimized"], x), "torch": partial(torch.topk, x, case.k)})
    least = 1e3 * (x.numel() * x.element_size() + case.rows * case.k * (x.element_size() + 8)) / COPY
    row |= {"us": round(1e3 * spent["ours"], 2), "torch us": round(1e3 * spent["torch"], 2), "least us": round(1e3 * least, 2)}
    yield row | {"of torch": round(spent["torch"] / spent["ours"], 2)}


if __name__ == "__main__":
    with torch.no_grad():
        main()
