"""cuDNN's convolution with a ReLU at its end, on one GPU: has it a kernel for a form, does that keep NaN, is it faster than torch's calls?

    timeout -k 2 20 python -m benchmarks.kernels.epilogues --out OUT [--seconds 12] [--dry]

A row a form in OUT/rows.jsonl. "one call": what the generated file decides (`cudnn_keeps_nan`), and why not; times are medians of batches of
calls back to back, by CUDA events. --dry: on a CPU, with torch's own calls in place of cuDNN's and no times.
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
from warpwright.domains.graph.techniques.convolutions.activated import ACTIVATED


@dataclass(frozen=True)
class Form:
    """relu(conv2d(x) + more) of x [batch, channels, size, size]."""

    batch: int
    channels: int
    size: int
    outputs: int
    kernel: int = 3
    stride: int = 1
    more: bool = False
    last: bool = False
    """Do the channels come last?"""


FORMS = (
    Form(2, 64, 56, 64), Form(2, 64, 56, 64, more=True), Form(2, 64, 56, 64, last=True), Form(2, 64, 56, 64, more=True, last=True),
    Form(2, 256, 14, 256, more=True), Form(2, 3, 224, 64, kernel=7, stride=2), Form(16, 128, 28, 128, last=True), Form(2, 512, 7, 512, kernel=1),
    Form(2, 48, 20, 33), Form(16, 64, 56, 256, kernel=1, more=True, last=True),
)  # fmt: skip


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=12.0, help="no form is begun after that many")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    run([(vars(form), partial(measured, form, options.dry)) for form in FORMS], options.out, options.seconds)


def measured(form: Form, dry: bool) -> Iterator[dict[str, Any]]:
    """Yield the row of a form."""
    device = "cpu" if dry else "cuda"
    names: dict[str, Any] = {"torch": torch}
    exec(ACTIVATED.python_text(), names)
    if dry:
        names["convolved_in_one"] = names["convolved_apart"]
    layout = torch.channels_last if form.last else torch.contiguous_format
    x = torch.randn(form.batch, form.channels, form.size, form.size, device=device).contiguous(memory_format=layout)
    weight = torch.randn(form.outputs, form.channels, form.kernel, form.kernel, device=device).contiguous(memory_format=layout)
    bias, padding = torch.randn(form.outputs, device=device), [form.kernel // 2] * 2
    rest = ([form.stride] * 2, padding, [1, 1], 1)
    more = torch.randn_like(torch.nn.functional.conv2d(x, weight, bias, *rest)) if form.more else None
    given = (x, weight, bias, more, *rest)
    row: dict[str, Any] = {"table": "epilogues", **vars(form), "one call": names["cudnn_keeps_nan"](*given), "why not": ""}
    try:
        holding = names["convolved_in_one"](torch.full_like(x, float("nan")), *given[1:])
        row["NaN kept"] = round(float(holding.isnan().float().mean()), 4)
        row["difference"] = float((names["convolved_in_one"](*given) - names["convolved_apart"](*given)).abs().max())
    except RuntimeError as error:
        yield row | {"why not": str(error).splitlines()[0][:200]}
        return
    if not dry:
        calls = {name: partial(names[f"convolved_{way}"], *given) for name, way in (("us in one", "in_one"), ("us apart", "apart"))}
        row |= {name: round(1e3 * spent, 2) for name, spent in milliseconds(calls).items()}
    yield row


if __name__ == "__main__":
    with torch.no_grad():
        main()
