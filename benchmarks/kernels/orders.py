"""What orders or counts, on one GPU: topk of long rows, sort and argsort, histc; compared with torch element for element, and timed.

    timeout -k 2 70 python -m benchmarks.kernels.orders --out OUT [--seconds 55] [--dry]
    timeout -k 2 70 python -m benchmarks.kernels.orders --long --out OUT         long rows, rows of integers, and short ones by digits

A row each in OUT/rows.jsonl as it is known. "wrong": elements that differ from torch's, indices included, with ties, equal numbers only, special
values and rows in order. Times are medians of batches of calls back to back, by CUDA events; the least is the bytes of input and results at 4.19
TB/s.
--dry: on a CPU, the kernels' text and nothing else.
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
from benchmarks.kernels.top_k import COPY, TEXT
from warpwright.base import Action
from warpwright.domains.graph.capture.model import from_module
from warpwright.domains.graph.cuda.orders import digits, sorts
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.top_k import HISTOGRAM, SELECT, SORT


@dataclass(frozen=True)
class Case:
    """A call on [rows, length]: `number` is k or the bins, `form` what is asked of a sort."""

    call: str
    rows: int
    length: int
    number: int = 0
    form: str = ""
    dtype: str = "float32"


CASES = (
    Case("topk", 64, 128000, 50), Case("sort", 65536, 256), Case("histc", 1, 1 << 26, 100), Case("topk", 1, 1 << 24, 100), Case("sort", 16384, 1024),
    Case("topk", 4096, 4096, 8), Case("topk", 1024, 32000, 64), Case("topk", 16, 256000, 1000), Case("sort", 4096, 4096), Case("sort", 262144, 64),
    Case("argsort", 65536, 128, form="descending"), Case("sort", 100000, 20), Case("sort", 100000, 30, form="stable"),
    Case("sort", 20000, 1000, form="descending"),
    Case("topk", 8192, 1024, 64), Case("topk", 2048, 10000, 256, "unsorted"), Case("topk", 64, 128000, 50, dtype="bfloat16"),
    Case("sort", 32768, 512, dtype="bfloat16"), Case("histc", 1, 1 << 26, 4096), Case("histc", 1, 1 << 22, 256), Case("topk", 10, 1000000, 10),
    Case("argsort", 1000, 2000), Case("topk", 32, 50257, 1024),
)  # fmt: skip
LONG = (
    Case("sort", 1, 1 << 24), Case("argsort", 1, 1 << 20, dtype="int64"), Case("sort", 64, 32000, form="descending"), Case("sort", 1024, 8192),
    Case("sort", 4096, 4096, form="by digits"), Case("sort", 8192, 2048), Case("sort", 8192, 2048, form="by digits"),
    Case("sort", 16384, 1024, form="by digits"), Case("sort", 1, 1 << 24, dtype="int64"), Case("argsort", 1, 1 << 16, dtype="int64"),
    Case("sort", 1, 1 << 24, dtype="int32"), Case("sort", 1, 1 << 24, dtype="bfloat16"), Case("sort", 16384, 1024, dtype="int64"),
    Case("sort", 65536, 256, dtype="int32"), Case("sort", 100000, 30, dtype="int32"), Case("argsort", 8, 131072, form="stable"),
    Case("sort", 16, 1 << 20, dtype="uint8"), Case("sort", 256, 10000, form="values"), Case("sort", 1, 1 << 22, dtype="float64"),
)  # fmt: skip
AGAIN = (
    *(Case("sort", 1, 1 << 24, form=f"by digits,{each},{resident}") for each, resident in ((16, 3), (16, 2), (12, 4), (12, 3), (8, 4))),
    *(Case("sort", 1, 1 << 24, form=f"by digits,{each},{resident}", dtype="int64") for each, resident in ((8, 4), (8, 3))),
    Case("sort", 4096, 4096), Case("sort", 1024, 8192), Case("sort", 1, 1 << 22, dtype="float64"), Case("sort", 8192, 2048, form="by digits"),
)  # fmt: skip
"""Those that lost, with other numbers of elements a thread and blocks a multiprocessor."""
SMALL_NUMBERS = 512
"""Integers are below it where they are few, as the experts or nodes that rows are sorted by."""
KINDS = ("normal", "ties", "constant", "special", "raised", "fallen")


class Model(torch.nn.Module):
    """The call."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self.case = case

    def forward(self, x: torch.Tensor) -> Any:
        """Return its results."""
        case = self.case
        if case.call == "histc":
            return torch.histc(x, case.number, -3.0, 3.0)
        if case.call == "topk":
            values, indices = torch.topk(x, case.number, sorted=case.form != "unsorted")
            return values, indices
        options: dict[str, Any] = {"descending": case.form == "descending", "stable": case.form == "stable"}
        if case.form == "values":
            return torch.sort(x, dim=-1).values
        if case.call == "argsort":
            return torch.argsort(x, dim=-1, **options)
        values, indices = torch.sort(x, dim=-1, **options)
        return values, indices


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=55.0, help="no case is begun after that many")
    parser.add_argument("--dry", action="store_true", help="write the programs only")
    parser.add_argument("--again", action="store_true", help="the longest rows, in several tunings")
    parser.add_argument("--long", action="store_true", help="long rows and rows of integers")
    options = parser.parse_args()
    cases = AGAIN if options.again else LONG if options.long else CASES
    run([(vars(case), partial(written if options.dry else measured, case)) for case in cases], options.out, options.seconds)


def draw(kind: str, case: Case) -> torch.Tensor:
    """Return numbers of a kind: ties are quarters, special values NaN, infinities and both zeros."""
    x = torch.randn(case.rows, case.length, device="cuda", generator=torch.Generator("cuda").manual_seed(case.length))
    if not getattr(torch, case.dtype).is_floating_point:
        return whole(kind, case)
    if kind == "ties":
        x = (4 * x).round() / 4
    if kind == "constant":
        x = torch.zeros_like(x)
    if kind == "special":
        values = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-42, 3.3e38], device="cuda")
        x = torch.where(torch.rand_like(x) < 0.5, values[torch.randint(len(values), x.shape, device="cuda")], x.round())
    if kind in ("raised", "fallen"):
        x = x.sort(-1, descending=kind == "fallen").values
    return x.to(getattr(torch, case.dtype))


def whole(kind: str, case: Case) -> torch.Tensor:
    """Return integers of a kind: any of the type, few ("ties"), one, the type's ends among them, or in order."""
    dtype = getattr(torch, case.dtype)
    ends = torch.iinfo(dtype)
    few = kind in ("ties", "constant")
    generator = torch.Generator("cuda").manual_seed(case.length)
    low, high = (0, min(SMALL_NUMBERS, ends.max)) if few else (ends.min, ends.max)
    x = torch.randint(low, 1 if kind == "constant" else high, (case.rows, case.length), device="cuda", generator=generator, dtype=dtype)
    if kind == "special":
        x[:, ::3] = ends.max
        x[:, 1::5] = ends.min
    return x.sort(-1, descending=kind == "fallen").values if kind in ("raised", "fallen") else x


def text_of(case: Case) -> str:
    """Return the generated program."""
    technique = {"topk": SELECT, "histc": HISTOGRAM}.get(case.call, SORT)
    ir = from_module(Model(case), [torch.empty(case.rows, case.length, dtype=getattr(torch, case.dtype), device="meta")])
    usual = sorts.LONGEST, digits.EACH, digits.RESIDENT
    try:
        if case.form.startswith("by digits"):
            sorts.LONGEST = digits.SHORTEST - 1
        if "," in case.form:  # elements of a thread, and blocks of a multiprocessor
            each, resident = map(int, case.form.split(",")[1:])
            digits.EACH, digits.RESIDENT = dict.fromkeys(digits.EACH, each), (resident, resident)
        return lower(technique.apply(ir, Action(technique.name)), (), Original("orders", TEXT, target="cuda")).source.text
    finally:
        sorts.LONGEST, digits.EACH, digits.RESIDENT = usual


def written(case: Case) -> Iterator[dict[str, Any]]:
    """Yield how long the program is."""
    yield {"table": "dry", **vars(case), "lines": text_of(case).count("\n")}


def results_of(seen: Any) -> list[torch.Tensor]:
    """Return the results as a list."""
    return [seen] if isinstance(seen, torch.Tensor) else list(seen)


def measured(case: Case) -> Iterator[dict[str, Any]]:
    """Compare with torch and time both; yield the row."""
    names: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text_of(case), "optimized.py", "exec"), names)
    ours, theirs = names["optimized"], Model(case)
    row: dict[str, Any] = {"table": "orders", **vars(case)}
    for kind in KINDS:
        given = draw(kind, case)
        wrong = 0
        for one, other in zip(results_of(ours(given)), results_of(theirs(given)), strict=True):
            wrong += int(((one != other) & ~(one.isnan() & other.isnan())).sum()) if one.is_floating_point() else int((one != other).sum())
        row[f"{kind} wrong"] = wrong
        if kind == "raised" and case.call == "topk":  # the order that is worst for holding the largest
            row["raised us"] = round(1e3 * milliseconds({"ours": partial(ours, given)})["ours"], 2)
        del given
    if case.dtype.startswith("int") and case.length >= digits.SHORTEST:  # as experts or nodes are: most digits are the same
        x = draw("ties", case)
        spent = milliseconds({"ours": partial(ours, x), "torch": partial(theirs, x)})
        row |= {"few us": round(1e3 * spent["ours"], 2), "few torch us": round(1e3 * spent["torch"], 2)}
    x = draw("normal", case)
    spent = milliseconds({"ours": partial(ours, x), "torch": partial(theirs, x)})
    moved = sum(t.numel() * t.element_size() for t in [x, *results_of(theirs(x))])
    row |= {"us": round(1e3 * spent["ours"], 2), "torch us": round(1e3 * spent["torch"], 2), "least us": round(1e6 * moved / COPY, 2)}
    yield row | {"of torch": round(spent["torch"] / spent["ours"], 2)}


if __name__ == "__main__":
    with torch.no_grad():
        main()
