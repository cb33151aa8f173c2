"""Recurrent networks with their weights on chip, on one GPU: right against float64, timed beside cuDNN and reading the weights from L2.

    timeout -k 2 60 python -m benchmarks.kernels.recurrent --out OUT [--seconds 40] [--jobs 8] [--dry]

First the kernels of all cases are compiled, `--jobs` at a time. Then every network of CHECKED is compared with float64 beside torch's own error,
called again for the same bits, recorded in a CUDA graph, and given a NaN. Then each of TIMED is timed whole, the product of its inputs included:
medians of batches of calls back to back, by CUDA events. `of 1.3` is 1.3 times what reading the weights from the L2 cache takes, over a step.
A row each in OUT/rows.jsonl as it is known. `--dry` lists the plans, without a GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.kernels.int8_product import milliseconds
from benchmarks.kernels.row_file import run
from benchmarks.timing.events import batch as seconds_of
from warpwright.templates import driver, recurrent
from warpwright.templates.recurrent import KINDS, PLAIN, Chip, Network, Tiles, Way
from warpwright.templates.sources import text

H200 = Chip(132, 227 * 1024, "90a")

_READ = """
extern "C" __global__ void read(const float4* x, float* out, int count, int rounds) {
    float4 sum = make_float4(0, 0, 0, 0);
    const int all = gridDim.x * blockDim.x, own = blockIdx.x * blockDim.x + threadIdx.x;
    for (int r = 0; r < rounds; ++r) {
        const int first = (own + r * 4099) % all;
#pragma unroll 8
        for (int i = first; i < count; i += all) {
            float4 v;
            asm volatile("ld.relaxed.gpu.global.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(x + i));
            sum.x += v.x; sum.y += v.y; sum.z += v.z; sum.w += v.w;
        }
    }
    out[own] = sum.x + sum.y + sum.z + sum.w;
}
"""


@dataclass(frozen=True)
class Case:
    """A network and its input; steps, batch, size and hidden as torch names them."""

    kind: str
    steps: int
    batch: int
    size: int
    hidden: int
    layers: int = 1
    both: bool = False
    batch_first: bool = False
    bias: bool = True
    ways: tuple[Way, ...] = (PLAIN,)

    def network(self, meta: bool = False) -> Any:
        """Return torch's module, on the GPU or nowhere."""
        made = {"lstm": nn.LSTM, "gru": nn.GRU}.get(self.kind) or partial(nn.RNN, nonlinearity=self.kind.removeprefix("rnn_"))
        options = {"bidirectional": self.both, "batch_first": self.batch_first, "bias": self.bias}
        return made(self.size, self.hidden, self.layers, device="meta" if meta else "cuda", **options).eval()

    def launches(self, chip: Chip, way: Way = PLAIN) -> list[tuple[int, Tiles]] | None:
        """Return the plan of a call."""
        net = self.network(meta=True)
        states = [torch.empty(net.num_layers * (2 if self.both else 1), self.batch, self.hidden, device="meta")] * (2 if self.kind == "lstm" else 1)
        call = Network(KINDS.index(self.kind), states, net._flat_weights, self.bias, self.layers, self.both, self.batch_first)
        return recurrent.groups(call, self.batch, chip, way)

    def inputs(self, seed: int = 0) -> tuple[torch.Tensor, list[torch.Tensor]]:
        """Return x and the first states."""
        draw = torch.Generator("cuda").manual_seed(seed)
        sizes = (self.batch, self.steps) if self.batch_first else (self.steps, self.batch)
        x = torch.randn(*sizes, self.size, device="cuda", generator=draw)
        cells = self.layers * (2 if self.both else 1)
        return x, [torch.randn(cells, self.batch, self.hidden, device="cuda", generator=draw) for _ in range(2 if self.kind == "lstm" else 1)]

    def ours(self, net: Any, x: torch.Tensor, hx: list[torch.Tensor], way: Way = PLAIN) -> tuple[torch.Tensor, ...]:
        """Call the persistent kernel."""
        options = (self.bias, self.layers, 0.0, False, self.both, self.batch_first)
        return recurrent.network(self.kind, x, hx, net._flat_weights, *options, way=way)

    def torchs(self, net: Any, x: torch.Tensor, hx: list[torch.Tensor]) -> list[torch.Tensor]:
        """Call torch's network."""
        y, state = net(x, tuple(hx) if self.kind == "lstm" else hx[0])
        return [y, *(state if isinstance(state, tuple) else [state])]


CHECKED = (
    Case("lstm", 64, 10, 128, 256, 6, batch_first=True), Case("gru", 64, 10, 128, 256, 6, both=True), Case("lstm", 33, 10, 128, 256, 3, both=True),
    Case("gru", 50, 10, 128, 256, 6), Case("rnn_tanh", 40, 5, 20, 300, 2), Case("rnn_relu", 9, 3, 8, 33, 2), Case("lstm", 20, 1, 100, 1000),
    Case("lstm", 24, 32, 64, 1024), Case("gru", 24, 16, 64, 1500), Case("lstm", 17, 64, 40, 100, 2, both=True, bias=False),
)  # fmt: skip
WAYS = (PLAIN, Way(1, True), Way(1, False, 12), Way(1, True, 12), Way(2), Way(2, True))
TIMED = (
    Case("lstm", 512, 10, 128, 256, 6, batch_first=True, ways=WAYS), Case("gru", 512, 10, 128, 256, 6, ways=WAYS),
    Case("lstm", 512, 10, 128, 256, 6, both=True, batch_first=True, ways=WAYS), Case("gru", 512, 10, 128, 256, 6, both=True, ways=WAYS),
    Case("lstm", 512, 1, 1024, 1024), Case("lstm", 512, 8, 1024, 1024, ways=WAYS), Case("lstm", 256, 32, 1024, 1024, ways=WAYS[:2]),
    Case("lstm", 512, 1, 512, 512), Case("lstm", 512, 16, 512, 512, 2, ways=WAYS), Case("gru", 512, 1, 1024, 1024),
    Case("gru", 512, 4, 1536, 1536, ways=WAYS[:4]), Case("rnn_tanh", 512, 8, 1024, 1024, ways=WAYS[:2]),
    Case("lstm", 128, 64, 512, 512, 2, ways=WAYS[:2]), Case("lstm", 512, 1, 64, 64),
)  # fmt: skip


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=40.0, help="no case is begun after that many")
    parser.add_argument("--jobs", type=int, default=8, help="compilers at once")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    if options.dry:
        todo = [partial(_planned, case) for case in (*CHECKED, *TIMED)]
    else:
        todo = [partial(_compiled, options.jobs), *(partial(check, case) for case in CHECKED), *(partial(timed, case) for case in TIMED)]
    run([({"case": str(one)}, one) for one in todo], options.out, options.seconds)


def _planned(case: Case) -> Iterator[dict[str, Any]]:
    for way in case.ways:
        launches = case.launches(H200, way) or []
        plans = [tiles._asdict() | {"places": tiles.places, "shared": tiles.shared} for _, tiles in launches[:1]]
        yield {"table": "plans", **_sizes(case), "way": _said(way), "layers": [count for count, _ in launches], "first plan": plans}


def _compiled(jobs: int) -> Iterator[dict[str, Any]]:
    start, chip = time.monotonic(), recurrent.chip(0)
    assert chip is not None
    plans = {tiles for case in (*CHECKED, *TIMED) for way in case.ways for _, tiles in case.launches(chip, way) or []}
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(lambda tiles: driver.machine_code(text("recurrent.cu"), chip.arch, tiles.defines()), sorted(plans)))
    yield {"table": "compiled", "gpu": torch.cuda.get_device_name(), "kernels": len(plans), "seconds": round(time.monotonic() - start, 1)}


def _said(way: Way) -> str:
    return " ".join([f"share {way.share}", *(["sampled"] if way.sampled else []), f"{way.warps} warps"])


def _sizes(case: Case) -> dict[str, Any]:
    kept = ("kind", "steps", "batch", "size", "hidden", "layers", "both")
    return {name: getattr(case, name) for name in kept}


def check(case: Case) -> Iterator[dict[str, Any]]:
    """Compare with float64, with a second call, with a recorded one, and spread a NaN as torch does."""
    net = case.network()
    x, hx = case.inputs()
    found, own = case.ours(net, x, hx), case.torchs(net, x, hx)
    again = [case.ours(net, x, hx) for _ in range(20)]
    exact = _exact(case, net, x, hx)
    errors = [max((seen - right).abs().max().item() for seen, right in zip(some, exact, strict=True)) for some in (found, own)]
    row = {"table": "checks", **_sizes(case), "by torch": bool(recurrent._refused), "error": errors[0], "torch's": errors[1]}
    row["again differ"] = sum(any(not torch.equal(a, b) for a, b in zip(one, found, strict=True)) for one in again)
    row["strides"] = all(a.stride() == b.stride() for a, b in zip(found, own, strict=True))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        recorded = case.ours(net, x, hx)
    for seed in (1, 0):
        fresh, states = case.inputs(seed)
        x.copy_(fresh), [a.copy_(b) for a, b in zip(hx, states, strict=True)]
        graph.replay()
    row["recorded differ"] = sum(not torch.equal(a, b) for a, b in zip(recorded, found, strict=True))
    x[tuple(0 if d < 2 else 3 for d in range(3))] = float("nan")
    row["NaN as torch"] = all(torch.equal(a.isnan(), b.isnan()) for a, b in zip(case.ours(net, x, hx), case.torchs(net, x, hx), strict=True))
    yield row


def _exact(case: Case, net: Any, x: torch.Tensor, hx: list[torch.Tensor]) -> list[torch.Tensor]:
    double = case.network().double()
    double.load_state_dict({name: value.double() for name, value in net.state_dict().items()})
    return case.torchs(double, x.double(), [h.double() for h in hx])


def timed(case: Case) -> Iterator[dict[str, Any]]:
    """Time a network whole, and what its steps would take by their weights alone."""
    net, chip = case.network(), recurrent.chip(0) or H200
    x, hx = case.inputs()
    calls: dict[str, Any] = {_said(way): partial(case.ours, net, x, hx, way) for way in case.ways if case.launches(chip, way)}
    calls["cuDNN"] = lambda: case.torchs(net, x, hx)
    torch.backends.cudnn.allow_tf32 = False
    strict = milliseconds({"cuDNN": calls["cuDNN"]}, 3, 3.0)["cuDNN"]
    torch.backends.cudnn.allow_tf32 = True
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        case.torchs(net, x, hx)
    calls["cuDNN graph"] = graph.replay
    spent = milliseconds(calls, 5, 3.0)
    best = min(ms for name, ms in spent.items() if not name.startswith("cuDNN"))
    weights = 4 * case.hidden * case.hidden * recurrent.GATES[KINDS.index(case.kind)] * case.layers * (2 if case.both else 1)
    row = {"table": "steps", **_sizes(case), "ms": {name: round(ms, 4) for name, ms in spent.items() if not name.startswith("cuDNN")}}
    row |= {"cuDNN ms": round(spent["cuDNN"], 4), "cuDNN float32 ms": round(strict, 4), "cuDNN graph ms": round(spent["cuDNN graph"], 4)}
    row["of the best"] = round(min(spent["cuDNN"], spent["cuDNN graph"], strict) / best, 2)
    whole = 1e3 * best / case.steps
    read = _from_l2(weights)
    row |= {"us a step": round(whole, 3), "us weights from L2": round(read, 3), "of 1.3": round(1.3 * read / whole, 2)}
    yield row | {"by torch": bool(recurrent._refused)}


def _from_l2(size: int) -> float:
    """Return the microseconds that all multiprocessors take to read so many bytes from the L2 cache."""
    chip = recurrent.chip(0)
    assert chip is not None
    kernel = driver.Kernel(driver.machine_code(_READ, chip.arch), "read", ("P", "P", "i", "i"), 1024)
    x, out = torch.zeros(size, dtype=torch.uint8, device="cuda"), torch.empty(2 * chip.multiprocessors * 1024, device="cuda")
    stream = torch.cuda.current_stream().cuda_stream

    def rounds(count: int) -> float:
        return min(seconds_of(lambda: kernel(2 * chip.multiprocessors, stream, x.data_ptr(), out.data_ptr(), size // 16, count), 1) for _ in range(5))

    return 1e6 * (rounds(401) - rounds(1)) / 400


if __name__ == "__main__":
    with torch.no_grad():
        main()
