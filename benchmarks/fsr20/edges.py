"""Naive kernels against their references at edge sizes and on edge values, translated for the CPU: a suite whose own kernels are wrong is none."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from benchmarks.fsr20 import Kernel

CHANGES: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "nominal": lambda x: x,
    "zeros": torch.zeros_like,
    "negative": lambda x: -x.abs(),
    "ties": lambda x: (2 * x).round() / 2,
    "denormal": lambda x: x * 1e-40,
    "large": lambda x: x * 1e30,
    "skewed": lambda x: torch.where(torch.rand_like(x) < 0.02, 100 * x, 0.01 * x),
    "constant": lambda x: torch.full_like(x, 3),
}
"""Kind of values -> what it makes of nominal ones. Integers are changed by `constant` alone."""


DENORMAL = 64 * 1.4e-45
"""Of the steps between denormal numbers, which each addition may miss by one."""


def changed(inputs: Sequence[torch.Tensor], kind: str) -> list[torch.Tensor]:
    """Return inputs with another kind of values."""
    change = CHANGES[kind]
    return [change(x) if x.is_floating_point() or kind == "constant" else x for x in inputs]


def namespace(kernel: Kernel, n: int, m: int) -> dict[str, Any]:
    """Return what the task file of a kernel defines at other sizes."""
    module = types.ModuleType(kernel.name)
    text = "import torch\n" + kernel.task.replace("@N", str(n)).replace("@M", str(m))
    exec(compile(text, f"{kernel.name}_task.py", "exec"), module.__dict__)
    return vars(module)


def compared(kernel: Kernel, library: Any) -> Iterator[dict[str, Any]]:
    """Yield a row for each edge size, and for each kind of values at the last of them. `library`: the kernels, as `launch` calls them."""
    cases = [(size, "nominal") for size in kernel.edges] + [(kernel.edges[-1], kind) for kind in kernel.values if kind != "nominal"]
    for (n, m), kind in cases:
        torch.manual_seed(n + m)
        task = namespace(kernel, n, m)
        inputs = changed(task["get_inputs"](), kind)
        wanted = task["reference"](*[x.double() if x.is_floating_point() else x for x in inputs])
        seen = task["launch"](library, *[x.clone() for x in inputs])
        row = {"table": "edges", "kernel": kernel.name, "n": n, "m": m, "values": kind}
        if seen.shape != wanted.shape:
            yield {**row, "ok": False, "error": f"shape {tuple(seen.shape)} for {tuple(wanted.shape)}"}
            continue
        if not seen.is_floating_point():
            yield {**row, "ok": bool(torch.equal(seen, wanted.to(seen.dtype))), "error": int((seen != wanted).sum())}
            continue
        error, scale = float((seen.double() - wanted).abs().max()), float(wanted.abs().max())
        yield {**row, "ok": error <= kernel.tolerance * scale + DENORMAL, "error": error}
