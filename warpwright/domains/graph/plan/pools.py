"""Pools of a plan: loops of the runtime (pool.cpp) in place of torch's, which take the windows one by one."""

from __future__ import annotations

from typing import Any

import torch

from warpwright.domains.graph.cuda.windows import Window
from warpwright.domains.graph.cuda.windows import read as windows_of
from warpwright.domains.graph.ir import value
from warpwright.domains.graph.plan.memory import Place

LONGEST = 2048
"""Numbers of a row that its windows reach over, at most: half of what pool.cpp holds."""
WIDEST = 16
"""Largest stride along the rows, and largest reach of a window: what is read beyond the end of what is held."""
SMALL = 1 << 15
"""Numbers that are read, below which one thread does it."""


def read(node: Any) -> Window | None:
    """Return the windows of a pool that the runtime has; None for any other call, for half precision, and where a mean counts what lies inside."""
    window = windows_of(node)
    if window is None or window.kind == "sum" or value(node).dtype != torch.float32 or (window.kind == "mean" and not window.divisor):
        return None
    reach = (window.kernel[2] - 1) * window.dilation[2] + 1
    fits = max(window.stride[2], reach) <= WIDEST and (window.out[2] - 1) * window.stride[2] + reach <= LONGEST and value(node).is_contiguous()
    return window if fits else None


def lines(window: Window, to: Place, x: Place) -> list[str]:
    """Return the lines that write a pool of contiguous x to `to`."""
    lists = (window.sizes, window.out, window.kernel, window.stride, window.padding, window.dilation)
    text = ", ".join(f"{{{', '.join(map(str, items))}}}" for items in lists)
    kind, threads = ("Largest" if window.kind == "max" else "Mean"), ("threads" if x.count >= SMALL else "1")
    return ["{", f"const Pool windows = {{{window.planes}, {text}, {float(window.divisor or 1)!r}f}};",
            f"pool<{kind}>({x.pointer}, windows, {to.pointer}, {threads});", "}"]  # fmt: skip
