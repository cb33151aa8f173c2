"""Programs whose product ends with more than element-wise calls, on one GPU: norms of groups, reduced rows; and halves of symmetric products, and of
those of which one side of the diagonal is kept.

    timeout -k 2 70 python -m benchmarks.kernels.product_ends --out OUT [--cases "group norm|x x^T"] [--no-compile] [--seconds 58] [--jobs 12] [--dry]

A row a case: milliseconds of eager, torch.compile, the library's product with our kernel after it ("two kernels"), our kernel that ends so ("ours",
with few terms also as two programs of a multiprocessor, with few tiles also in blocks and pieces that fill the multiprocessors), and cuBLAS's product
with nothing after it; medians of five batches in turns, calls back to back, of cases with few tiles also as CUDA graphs. Errors of a part of the
result against float64, over eager's. "gain": of the fastest other program. TF32 is permitted in float32 products. Programs are written and compiled
by other processes first.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest import mock

import torch

from benchmarks.kernels.beside import compile_all, error, in_a_graph, in_turns, module, options_of
from benchmarks.kernels.row_file import Row, run
from warpwright.base import Action
from warpwright.domains.graph.capture.model import from_module
from warpwright.domains.graph.cuda.plan import DEFAULT
from warpwright.domains.graph.ir import GraphIR
from warpwright.domains.graph.lower import Original, lower
from warpwright.domains.graph.techniques.kernels.fuse import FuseCuda, fuse_cuda
from warpwright.domains.graph.techniques.products import fused_product
from warpwright.domains.graph.techniques.products.fused_product import FILLED, FusedProducts
from warpwright.domains.graph.techniques.products.half_products import HalfProducts
from warpwright.domains.graph.techniques.products.symmetric_product import SymmetricProducts
from warpwright.domains.graph.techniques.products.triangular_product import TriangularProducts

FILE = """import torch
from torch import nn
from torch.nn import functional as F


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {layers}
        self.to({kind})

    def forward(self, x):
        {body}


def get_inputs():
    return [torch.randn({size}).to({kind})]


def get_init_inputs():
    return []
"""
FUSED, SYMMETRIC, TRIANGULAR = FusedProducts(), SymmetricProducts(), TriangularProducts()
WAYS = ("two kernels", "ours")
TWO_PROGRAMS = "ours, two programs"
"""Of a multiprocessor, one of which ends while the other sums."""
FILL = "ours, filled"
"""As `fused_product(fill=1)`, where that is another program."""
_FEW_SHAPE = [128, 128, 64, 8, 8, 3, 4, 2]


@dataclass(frozen=True)
class Case:
    """A model of one input."""

    layers: str
    body: str
    size: tuple[int, ...]
    columns: int
    """Of the product."""
    technique: Any
    kind: torch.dtype = torch.bfloat16
    few: bool = False
    """Has it few terms, so that ours is timed as two programs of a multiprocessor as well?"""

    filled: bool = False
    """Has it tiles that do not fill the multiprocessors, so that ours is timed with other blocks and pieces as well?"""

    @property
    def text(self) -> str:
        """Return the task's file."""
        return FILE.format(layers=self.layers, body=self.body, size=self.size, kind=self.kind)

    @property
    def flops(self) -> float:
        """Of the product, both halves of a symmetric one."""
        return 2.0 * self.columns * torch.Size(self.size).numel()

    @property
    def ways(self) -> tuple[str, ...]:
        """Return our programs' names."""
        return (*WAYS, *([TWO_PROGRAMS] if self.few else []), *([FILL] if self.filled else []))

    @property
    def part(self) -> slice:
        """Of the input and the result, what errors are worked out of."""
        return slice(None) if "right" in self.layers else slice(1) if len(self.size) == 3 else slice(64)


def _linear(k: int, n: int, more: str = "") -> str:
    return f"self.linear = nn.Linear({k}, {n}){more}"


_NORM = "; self.norm = nn.GroupNorm({}, {})".format
CASES: dict[str, Case] = {
    "TF32 32768 x 1024 -> 4096, silu, group norm (2:37)": Case(
        _linear(1024, 4096, _NORM(64, 4096)), "return self.norm(F.silu(self.linear(x)))", (32768, 1024), 4096, FUSED, torch.float32),
    "TF32 1024 x 8192 -> 8192, group norm, least (2:75)": Case(
        _linear(8192, 8192, _NORM(512, 8192)), "return self.norm(self.linear(x)).amin(1, keepdim=True)", (1024, 8192), 8192, FUSED, torch.float32),
    "TF32 1024 x 8192 -> 8192, logsumexp (2:64)": Case(
        _linear(8192, 8192), "return F.gelu(torch.logsumexp(self.linear(x), 1, keepdim=True))", (1024, 8192), 8192, FUSED, torch.float32),
    "bf16 8192 x 768 -> 3072, gelu": Case(_linear(768, 3072), "return F.gelu(self.linear(x))", (8192, 768), 3072, FUSED, few=True),
    "bf16 8192 x 1024 -> 32768, logsumexp": Case(
        _linear(1024, 32768), "return torch.logsumexp(self.linear(x), -1)", (8192, 1024), 32768, FUSED, few=True),
    "bf16 16384 x 1024 -> 4096, gelu, mean": Case(
        _linear(1024, 4096), "return F.gelu(self.linear(x)).mean(-1)", (16384, 1024), 4096, FUSED, few=True),
    "bf16 32 x 1024 x 1024 -> 1024, silu": Case(
        "self.right = nn.Parameter(torch.randn(32, 1024, 1024) / 32)", "return F.silu(torch.bmm(x, self.right))", (32, 1024, 1024), 1024, FUSED,
        few=True),
    "bf16 8192 x 3072 -> 768, residual": Case(
        _linear(3072, 768), "return self.linear(x) + x[:, :768]", (8192, 3072), 768, FUSED, filled=True),
    "bf16 4096 x 3072 -> 768, gelu": Case(_linear(3072, 768), "return F.gelu(self.linear(x))", (4096, 3072), 768, FUSED, filled=True),
    "bf16 4096 x 4096 -> 1280, silu": Case(_linear(4096, 1280), "return F.silu(self.linear(x))", (4096, 4096), 1280, FUSED, filled=True),
    "bf16 1024 x 8192 -> 512, silu": Case(_linear(8192, 512), "return F.silu(self.linear(x))", (1024, 8192), 512, FUSED, filled=True),
    "bf16 512 x 4096 -> 4096, silu": Case(_linear(4096, 4096), "return F.silu(self.linear(x))", (512, 4096), 4096, FUSED, filled=True),
    "bf16 x x^T of 8192 x 4096": Case("pass", "return x @ x.T", (8192, 4096), 8192, SYMMETRIC),
    "bf16 x x^T of 4096 x 1024, scaled, exponential": Case("pass", "return torch.exp(x @ x.T * 0.01 - 10.0)", (4096, 1024), 4096, SYMMETRIC),
    "fp16 x x^T of 64 x 512 x 4096, scaled": Case(
        "pass", "return torch.bmm(x, x.transpose(1, 2)) / 2048", (64, 512, 4096), 512, SYMMETRIC, torch.float16),
    "bf16 upper side of 4096 x 4096 -> 4096 (1:14)": Case(
        "self.right = nn.Parameter(torch.randn(4096, 4096) / 64)", "return torch.triu(x @ self.right)", (4096, 4096), 4096, TRIANGULAR),
    "bf16 lower side of 8192 x 4096 -> 8192, scaled": Case(
        "self.right = nn.Parameter(torch.randn(4096, 8192) / 64)", "return torch.tril(x @ self.right * 0.5)", (8192, 4096), 8192, TRIANGULAR),
}  # fmt: skip


def main() -> None:
    """Write rows.jsonl, and print each row."""
    options = options_of(__doc__, 58.0)
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = True
    names = [name for name in CASES if not options.cases or any(part in name for part in options.cases.split("|"))]
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("WARPWRIGHT_CACHE", str(options.out.resolve() / "cache"))
    if options.dry:
        run([({"case": name}, partial(_dry, name, options)) for name in names], options.out, options.seconds)
        return
    todo = [(name, way) for name in names for way in (*CASES[name].ways, *(() if options.no_compile else ("compile",)))]
    if options.compile_part:
        part, parts = map(int, options.compile_part.split("/"))
        for name, way in todo[part::parts]:
            with suppress(Exception):  # what fails says so when it is timed
                torch._dynamo.reset()
                case = CASES[name]
                model, x = _given(case, "cuda")
                _program(name, case, way, model, options)(x)
        return
    compile_all("benchmarks.kernels.product_ends", options.jobs, 0.5 * options.seconds)
    run([({"case": name}, partial(_rows, name, options)) for name in names], options.out, options.seconds)


def written(case: Case, way: str) -> str:
    """Return the text of a program."""
    ir, actions = program(case, way)
    return lower(ir, actions, Original("product_ends", case.text, target="cuda")).source.text


def program(case: Case, way: str) -> tuple[GraphIR, list[Action]]:
    """Return a program, and the actions that made it."""
    names: dict[str, Any] = {}
    exec(case.text, names)
    with torch.device("meta"):
        ir = from_module(names["Model"](), [torch.empty(case.size, dtype=case.kind)])
    actions, techniques = list[Action](), [HalfProducts(tf32=True)] if case.kind == torch.float32 else []
    shaped = mock.patch.object(fused_product, "_blocks", lambda *_: _FEW_SHAPE) if way == TWO_PROGRAMS else nullcontext()
    for technique in (*techniques, *([case.technique] if way != "two kernels" else [])):
        actions.append(FILLED if way == FILL and technique is FUSED else Action(technique.name))
        with shaped:
            ir = technique.apply(ir, actions[-1])
    if list(FuseCuda().sites(ir)):
        actions.append(fuse_cuda(1, DEFAULT))
        ir = FuseCuda().apply(ir, actions[-1])
    return ir, actions


def _given(case: Case, device: str) -> tuple[Any, torch.Tensor]:
    """Return a case's model and input."""
    names: dict[str, Any] = {}
    exec(case.text, names)
    torch.manual_seed(0)
    with torch.device(device):
        return names["Model"](), torch.randn(case.size).to(case.kind)


def _program(name: str, case: Case, way: str, model: Any, options: argparse.Namespace) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a program with the model's parameters; its text is written where no other process wrote it."""
    if way == "compile":
        return cast(Any, torch.compile)(model, dynamic=False)  # type: ignore[no-any-return]
    path = options.out.resolve() / f"{way.replace(' ', '_').replace(',', '')}_{list(CASES).index(name)}.py"
    if not path.exists():
        text = written(case, way)
        partly = Path(f"{path}.{os.getpid()}")
        partly.write_text(text)
        partly.rename(path)
    names = module(path)
    with torch.device("cuda"):
        new = names.ModelNew()
    new.load_state_dict(model.state_dict())
    misfit = names._Watch.of(new, names.VERIFIED).misfit([torch.empty(case.size, dtype=case.kind, device="cuda")])
    if misfit is not None:  # it would make the original's calls
        raise RuntimeError(f"expected a program for its own case, saw {misfit}")
    return new  # type: ignore[no-any-return]


def _rows(name: str, options: argparse.Namespace) -> Iterator[Row]:
    case = CASES[name]
    torch.cuda.empty_cache()
    model, x = _given(case, "cuda")
    torch._dynamo.reset()
    row: Row = {"table": "product-ends", "case": name, "device": torch.cuda.get_device_name(), "torch": torch.__version__, "ms": {}, "failed": {}}
    calls: dict[str, Callable[[], Any]] = {"eager": partial(model, x)}
    exact = _exact(case, model, x)
    errors = {"eager": error(_part(case, model(x)), exact)}
    for way in (*case.ways, *(() if options.no_compile else ("compile",))):
        try:
            program = _program(name, case, way, model, options)
            errors[way] = error(_part(case, program(x)), exact)
            calls[way] = partial(program, x)
        except Exception as failure:  # one program must not end the others
            row["failed"][way] = f"{type(failure).__name__}: {failure}"[:300]
    right = _right(case, model, x)
    if case.kind == torch.float32:
        calls["product alone"] = lambda: torch.mm(half, right.T, out_dtype=torch.float32)
        half, right = x.half(), right.half()
    else:
        calls["product alone"] = lambda: x @ right.mT
    if case.filled:  # some take a GPU less than a host takes to ask for them
        graphs: Row = {"ms": {}}
        in_turns(graphs, {way: in_a_graph(call).replay for way, call in calls.items() if way != "compile"})
        row["in a CUDA graph ms"] = graphs["ms"]
    in_turns(row, calls)
    ms, alone = row.pop("ms"), row.pop("failed")
    others = min(ms[way] for way in ("eager", "two kernels", "compile") if way in ms)
    row |= {f"{way} ms": ms[way] for way in ms}
    own = [ms[way] for way in ("ours", TWO_PROGRAMS, FILL) if way in ms]
    if own:
        row |= {"TFLOP/s": round(case.flops / min(own) / 1e9, 1), "gain": round(others / min(own), 3)}
        row |= {"of the product alone": round(ms["product alone"] / min(own), 3)}
    yield row | {"times eager's error": {way: round(one / errors["eager"], 3) for way, one in errors.items()}, "failed": alone}


def _right(case: Case, model: Any, x: torch.Tensor) -> torch.Tensor:
    """Return the product's right operand by rows."""
    if case.technique is SYMMETRIC:
        return x
    if hasattr(model, "right"):
        return model.right.mT  # type: ignore[no-any-return]
    return model.linear.weight  # type: ignore[no-any-return]


def _exact(case: Case, model: Any, x: torch.Tensor) -> torch.Tensor:
    """Return the part of the result in float64."""
    import copy

    return copy.deepcopy(model).double()(x[case.part].double())  # type: ignore[no-any-return]


def _part(case: Case, y: torch.Tensor) -> torch.Tensor:
    """Return that part of a result; of x x^T what the same rows give."""
    y = y[case.part]
    return y[..., : case.part.stop] if case.technique is SYMMETRIC and y.dim() == 2 else y


def _dry(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield what our programs hold, and that their kernels' functions are there; nothing is run."""
    case = CASES[name]
    for way in case.ways:
        text = written(case, way)
        held = [kind for kind in ("fused_product", "symmetric_product") if f"def {kind}(" in text]
        yield {"table": "dry", "case": name, "way": way, "lines": text.count("\n"), "kernels": held}


if __name__ == "__main__":
    main()
