"""Kernels of other libraries beside ours and torch's: what each library takes of a program, how long it takes, and how exact it is.

    python -m benchmarks.kernels.libraries --out OUT [--cases NAME,...] [--seconds 100] [--dry]

Each case is a module of one or two calls. `ours` is the first program that the ladder proposes for it, without a library's; a library's is its
technique's alone, as a candidate is before other techniques join; torch's is the module. Times are medians of batches of calls back to back, by
events, and of replays of a CUDA graph, which leave out what a call costs on the host. Errors are root mean squares against float64, over torch's.
What a program warns of (cuDNN declined a graph, say) is that row's reason: no row but torch's is torch's time. --dry says which libraries take a
case, and times none.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from benchmarks.kernelbench.first import first
from benchmarks.kernels import row_file
from benchmarks.kernels.beside import in_a_graph
from warpwright.base import Action
from warpwright.domains.graph.ir import find
from warpwright.domains.graph.libraries import LIBRARIES
from warpwright.domains.graph.techniques.kernels.libraries import ROOTS, LibraryKernels
from warpwright.run import Settings, open_space
from warpwright.tasks import taskfile
from warpwright.tf32 import tf32_flags


@dataclass(frozen=True)
class Case:
    """A module: `text` of inputs a, b, c of `sizes`, and what its __init__ makes."""

    text: str
    sizes: tuple[tuple[int, ...], ...]
    kind: str = "float32"
    made: str = "pass"
    strict: bool = False
    """Are convolutions to stay in float32?"""


def _attention(batch: int, heads: int, shared: int, length: int, size: int, end: str = "", queries: int = 0) -> Case:
    sizes = [(batch, count, n, size) for count, n in ((heads, queries or length), (shared, length), (shared, length))]
    grouped = ", enable_gqa=True" if shared != heads else ""
    return Case(f"F.scaled_dot_product_attention(a, b, c{grouped}{end})", tuple(sizes), "bfloat16")


CASES: dict[str, Case] = {
    "attention": _attention(2, 16, 16, 4096, 128),
    "causal attention": _attention(2, 16, 16, 4096, 128, ", is_causal=True"),
    "causal attention, heads of 64": _attention(4, 16, 16, 2048, 64, ", is_causal=True"),
    "one sequence, shared keys": _attention(1, 32, 8, 4096, 128, ", is_causal=True"),
    "one token, shared keys": _attention(1, 32, 8, 32768, 128, "", 1),
    "convolution, relu": Case("torch.relu(self.conv(a))", ((64, 128, 56, 56),), made="self.conv = nn.Conv2d(128, 128, 3, padding=1)"),
    "convolution, relu, strict": Case(
        "torch.relu(self.conv(a))", ((64, 128, 56, 56),), made="self.conv = nn.Conv2d(128, 128, 3, padding=1)", strict=True
    ),
    "convolution, relu, bf16": Case("torch.relu(self.conv(a))", ((64, 128, 56, 56),), "bfloat16", "self.conv = nn.Conv2d(128, 128, 3, padding=1)"),
    "convolution, silu, bf16, channels last": Case(
        "F.silu(self.conv(a))", ((64, 128, 56, 56),), "bfloat16",
        "self.conv = nn.Conv2d(128, 128, 3, padding=1).to(memory_format=torch.channels_last)",
    ),
    "product, gelu, bf16": Case("F.gelu(self.product(a))", ((8192, 4096),), "bfloat16", "self.product = nn.Linear(4096, 4096)"),
    "layer norm": Case("self.norm(a)", ((16384, 4096),), made="self.norm = nn.LayerNorm(4096)"),
    "layer norm, bf16": Case("self.norm(a)", ((32768, 4096),), "bfloat16", "self.norm = nn.LayerNorm(4096)"),
    "rms norm": Case("self.norm(a)", ((16384, 4096),), made="self.norm = nn.RMSNorm(4096)"),
    "rms norm, bf16": Case("self.norm(a)", ((32768, 4096),), "bfloat16", "self.norm = nn.RMSNorm(4096)"),
    "softmax": Case("torch.softmax(a, -1)", ((16384, 4096),)),
    "softmax of long rows, bf16": Case("torch.softmax(a, -1)", ((4096, 32768),), "bfloat16"),
    "cross entropy": Case("F.cross_entropy(a, b[:, 0].abs().long() % 32000)", ((8192, 32000), (8192, 1))),
    "topk": Case("torch.topk(a, 8)[0]", ((65536, 1024),)),
    "gated halves, bf16": Case("F.silu(a.chunk(2, -1)[0]) * a.chunk(2, -1)[1]", ((8192, 22016),), "bfloat16"),
}  # fmt: skip

FILE = """import torch
from torch import nn
from torch.nn import functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {made}
        self.to(torch.{kind})

    def forward(self, {names}):
        return {text}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--cases", default="")
    parser.add_argument("--seconds", type=float, default=100.0, help="no case is begun after that many")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    os.environ.setdefault("WARPWRIGHT_CACHE", tempfile.mkdtemp())
    chosen = [name for name in CASES if not options.cases or any(part in name for part in options.cases.split(","))]
    row_file.run((({"case": name}, partial(rows, name, options.dry)) for name in chosen), options.out, options.seconds)


def rows(name: str, dry: bool = False) -> Iterator[dict[str, Any]]:
    """Yield one row of a case for torch, one for ours, and one for each library that is installed and takes it."""
    with tf32_flags(not CASES[name].strict, products=False):
        yield from _rows(name, dry)


def _rows(name: str, dry: bool) -> Iterator[dict[str, Any]]:
    space, text = opened(CASES[name])
    takes = [library.name for library in LIBRARIES.values() if any(LibraryKernels(library).read(node) for node in find(space.start, *ROOTS))]
    theirs = {library.technique for library in LIBRARIES.values()} | {"cuda_graph"}  # which is timed for all
    without = replace(space, techniques=[technique for technique in space.techniques if technique.name not in theirs])
    recipe = next(iter(first(without, 1, ("compile(",))), ())
    if dry:
        yield {"table": "takes", "case": name, "libraries": takes, "ours": [str(action) for action in recipe]}
        return
    programs: dict[str, Any] = {"ours": recipe}
    programs |= {library: (Action(LIBRARIES[library].technique),) for library in takes if LIBRARIES[library].installed}
    yield from timed_rows(name, text, {who: space.candidate(actions).source.text for who, actions in programs.items()})


def opened(case: Case) -> tuple[Any, str]:
    """Return a case's search space on a GPU, and its task's text."""
    inputs = ", ".join(f"torch.randn({size}, dtype=torch.{case.kind})" for size in case.sizes)
    text = FILE.format(names=", ".join("abc"[: len(case.sizes)]), text=case.text, inputs=inputs, kind=case.kind, made=case.made)
    path = Path(tempfile.mkdtemp()) / "case.py"
    path.write_text(text)
    return open_space(Settings(device="cuda").describe(path), "cuda"), text


def timed_rows(name: str, text: str, programs: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Yield the row of the module itself, and those of programs by who made them."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        module: Any = taskfile.run_text(text, "<case>", "case")
        model, inputs = module.Model(), module.get_inputs()
        exact = module.Model().double()
    exact.load_state_dict(model.state_dict())
    wide = exact(*(t.double() for t in inputs))
    own = model(*inputs)
    limit = max(_rms(own, wide), 1e-12)
    yield {"table": "libraries", "case": name, "by": "torch", **_times(partial(model, *inputs)), "error": limit}
    for who, program in programs.items():
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("error", message="torch makes the call|this call takes the original's forward")
                new = loaded(program).ModelNew().cuda()
                new.load_state_dict(model.state_dict())
                seen = new(*inputs)
            error = round(_rms(seen, wide) / limit, 3)
            yield {"table": "libraries", "case": name, "by": who, **_times(partial(new, *inputs)), "error of torch's": error}
        except Exception as reason:  # one library must not end the others
            yield {"table": "failed", "case": name, "by": who, "reason": f"{type(reason).__name__}: {reason}"[:500]}


def loaded(program: str) -> Any:
    """Return a program's module, from a file: Triton reads its kernels there."""
    path = Path(tempfile.mkdtemp()) / "optimized.py"
    path.write_text(program)
    spec = importlib.util.spec_from_file_location(f"optimized_{len(sys.modules)}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _times(call: Callable[[], object]) -> dict[str, Any]:
    from benchmarks.kernels.templates import timed

    seconds = {"us": round(1e6 * timed(call), 1)}
    try:
        return seconds | {"graph us": round(1e6 * timed(in_a_graph(call).replay), 1)}
    except RuntimeError as error:  # it asks the GPU for numbers, say
        return seconds | {"no graph": str(error).splitlines()[0][:200]}


def _rms(seen: torch.Tensor, exact: torch.Tensor) -> float:
    return float((seen.double() - exact).square().mean().sqrt())


if __name__ == "__main__":
    with torch.no_grad():
        main()
