"""`ops.matmul_fp32` beside cuBLAS float32 at sixty shapes from 64 to 16,384, in pairs, with errors against float64, on one H200.

    timeout -k 2 100 python -m benchmarks.kernels.sixty_products --out OUT [--seconds 80] [--dry] [--page FOLDER]

A row a shape. Each call of ours and cuBLAS's take turns, a batch of calls back to back each (CUDA events), and once more as single calls from idle
(the host's clock); a figure is the median of the turns' quotients, with their quartiles in brackets for the batches. `b` is stored [n, k], as
torch.nn.Linear's weight is: prepared, or cut in the call; then [k, n]. Errors are root mean squares over cuBLAS float32's, of six kinds of values.
"plain": the kernel of plain sums forced, at sizes around those that it is chosen for. "host": what a small call costs a host.

`--dry`: the same on the CPU, sizes and batches small: that the script runs. `--page FOLDER`: put the rows of OUT into the rows of a page instead.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch

from benchmarks.kernels.int8_product import DISTRIBUTIONS, Shape, draw
from benchmarks.kernels.row_file import Case, Row, run
from benchmarks.timing.events import batch
from warpwright import ops
from warpwright.templates import plain_product

Call = Callable[[], object]
SIXTY: tuple[Shape, ...] = (
    *((s, s, s) for s in (64, 128, 192, 256, 384, 512, 640, 768, 1024, 1280, 1536, 2048, 2560, 3072, 4096, 6144, 8192)),
    *((m, n, k) for m in (64, 128, 256, 512, 1024) for n, k in ((1024, 1024), (4096, 4096), (16384, 4096), (4096, 16384)) if (m, n) != (1024, 1024)),
    *((m, n, k) for m, n in ((2048, 2048), (4096, 4096), (8192, 8192)) for k in (64, 128, 256, 512, 1024)),
    (16384, 64, 1024), (16384, 128, 4096), (16384, 512, 512), (16384, 16384, 256),
    (1000, 1000, 1000), (2047, 4095, 3001), (3000, 500, 7000), (64, 64, 16384), (1023, 1025, 1027),
)  # fmt: skip
BEYOND: tuple[Shape, ...] = (
    (16, 16, 16), (1, 4096, 4096), (1, 1024, 1024), (8, 1024, 4096), (32768, 32768, 32), (32768, 32768, 64), (2048, 4096, 8192), (64, 64, 4096),
)  # fmt: skip
"""Tiny, vectors, and KernelBench's 1:9, 1:7 and 1:16 to 18: beside the sixty."""
PLAIN: tuple[Shape, ...] = (
    *((s, s, s) for s in (64, 128, 256, 384, 512, 640, 768, 1024)), (64, 1024, 1024), (128, 1024, 1024), (256, 1024, 1024), (512, 1024, 1024),
    (64, 4096, 4096), (2048, 2048, 64), (16384, 64, 1024), (64, 64, 4096), (1000, 1000, 1000),
)  # fmt: skip
TURNS, BATCH_MS = 9, 1.5


def main() -> None:
    """Write rows.jsonl, and print each row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=80.0, help="no shape is begun after that many")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    if options.page:
        into_page(options.out / "rows.jsonl", options.page)
        return
    torch.backends.cuda.matmul.allow_tf32 = False
    cases: list[Case] = [({"part": "host"}, partial(host, options.dry))]
    cases += [({"m x n x k": named(shape)}, partial(plain, shape, options.dry)) for shape in PLAIN]
    cases += [({"m x n x k": named(shape)}, partial(beside, "sixty", shape, options.dry)) for shape in SIXTY]
    cases += [({"m x n x k": named(shape)}, partial(beside, "sixty-beyond", shape, options.dry)) for shape in BEYOND]
    run(cases, options.out, options.seconds)
    with (options.out / "rows.jsonl").open() as file:
        print(*summaries([json.loads(line) for line in file]), sep="\n")


def named(shape: Shape) -> str:
    """Return a shape as a row has it."""
    return " x ".join(map(str, shape))


def sized(shape: Shape, dry: bool) -> tuple[Shape, str]:
    """Return the sizes to draw, and where."""
    m, n, k = (max(1, size >> 5) for size in shape) if dry else shape
    return (m, n, k), "cpu" if dry else "cuda"


def beside(table: str, shape: Shape, dry: bool) -> Iterator[Row]:
    """Yield the row of a shape: ours over cuBLAS's, in three ways."""
    (m, n, k), device = sized(shape, dry)
    x, y = draw("normal", m, k, 21, device), draw("normal", n, k, 22, device)
    right, stored, prepared = y.T, y.T.contiguous(), ops.prepare(y.T)
    mm, mm_stored = partial(torch.mm, x, right), partial(torch.mm, x, stored)
    ways: dict[str, tuple[Call, Call]] = {
        "prepared": (mm, partial(ops.matmul_fp32, x, prepared)),
        "[n, k]": (mm, partial(ops.matmul_fp32, x, right)),
        "[k, n]": (mm_stored, partial(ops.matmul_fp32, x, stored)),
    }
    row: Row = {"table": table, "m x n x k": named(shape), "by": way(x, right)}
    least = []
    for name, (theirs, ours) in ways.items():
        pairs = in_turns(theirs, ours, dry)
        quotients = sorted(a / b for a, b in pairs)
        row |= {"cuBLAS us": micro(pairs, 0)} if "cuBLAS us" not in row else {}
        row |= {f"{name} us": micro(pairs, 1), name: spread(quotients), f"{name}, single": round(single(theirs, ours, dry), 3)}
        least.append(statistics.median(quotients))
    row |= {"least": round(min(least), 3), "TFLOP/s, prepared": round(2e-6 * m * n * k / row["prepared us"], 1)}
    yield row | errors((m, n, k), device)


def way(x: torch.Tensor, right: torch.Tensor) -> str:
    """Say what `matmul_fp32` chooses, b not prepared."""
    if ops.worthwhile(x, right, False):
        return "slices"
    m, n, k = x.shape[0], right.shape[1], x.shape[1]
    return "plain" if plain_product.worthwhile(m, n, k) else "slices, prepared" if ops.worthwhile(x, right, True) else "cuBLAS"


def in_turns(theirs: Call, ours: Call, dry: bool) -> list[tuple[float, float]]:
    """Return the seconds of a call of both, of batches back to back that take turns; which begins takes turns too."""
    took = by_clock if dry else batch
    counts = []
    for call in (theirs, ours):
        call()
        counts.append(1 if dry else max(1, min(200, int(BATCH_MS / 1e3 / max(took(call, 3), 1e-7)) + 1)))
    pairs = []
    for turn in range(2 if dry else TURNS):
        if turn % 2:
            second = took(ours, counts[1])
            pairs.append((took(theirs, counts[0]), second))
        else:
            pairs.append((took(theirs, counts[0]), took(ours, counts[1])))
    return pairs


def by_clock(call: Call, count: int) -> float:
    """Return the seconds of a call, of `count` back to back, by the host's clock."""
    began = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - began) / count


def single(theirs: Call, ours: Call, dry: bool) -> float:
    """Return how many times as fast ours is from idle to idle: the median of turns."""
    wait = (lambda: None) if dry else torch.cuda.synchronize

    def alone(call: Call) -> float:
        wait()
        began = time.perf_counter()
        call()
        wait()
        return time.perf_counter() - began

    alone(theirs), alone(ours)
    few = alone(theirs) > 1e-3
    return statistics.median(alone(theirs) / alone(ours) for _ in range(2 if dry else 5 if few else 31))


def errors(sizes: Shape, device: str) -> Row:
    """Return, by kind of values, the RMS error of ours over cuBLAS's, against float64, over several draws of a small shape.

    Of exp(4 N) one element is nearly all of the squares of a result: one draw says how that one happened to be rounded.
    """
    m, n, k = sizes
    few, draws = min(m, 4096), (2 if device == "cpu" else 40) if m * n * k < 2**29 else 3 if m * n * k < 2**34 else 1
    found: Row = {}
    for kind in DISTRIBUTIONS:
        squares = [0.0, 0.0]
        for seed in range(31, 31 + 2 * draws, 2):
            x, y = draw(kind, few, k, seed, device), draw(kind, n, k, seed + 1, device)
            exact = x.double() @ y.double().T
            size = exact.square().sum()
            for which, seen in enumerate((ops.matmul_fp32(x, y.T), torch.mm(x, y.T))):
                squares[which] += float((exact.sub(seen).square().sum() / size).nan_to_num())
        found[f"error, {kind}"] = 1.0 if squares[0] == squares[1] else round((squares[0] / squares[1]) ** 0.5, 3) if squares[1] else float("inf")
    return found


def over(ours: torch.Tensor, theirs: torch.Tensor, exact: torch.Tensor) -> float:
    """Return the RMS error of ours over theirs."""
    seen, own = exact.sub(ours).norm().item(), exact.sub(theirs).norm().item()
    return 1.0 if seen == own else round(seen / own, 3) if own else float("inf")


def plain(shape: Shape, dry: bool) -> Iterator[Row]:
    """Yield the row of the kernel of plain sums, forced, with each of its tiles."""
    (m, n, k), device = sized(shape, dry)
    x, y = draw("normal", m, k, 21, device), draw("normal", n, k, 22, device)
    row: Row = {"table": "plain", "m x n x k": named(shape), "chosen": plain_product.worthwhile(*shape)}
    for layout, right in (("[n, k]", y.T), ("[k, n]", y.T.contiguous())):
        exact, theirs = x.double() @ right.double(), torch.mm(x, right)
        for name, tile in (("many", plain_product.MANY), ("wide", plain_product.WIDE)):
            ours: Callable[[], torch.Tensor] = partial(torch.mm, x, right) if dry else partial(plain_product.product, x, right, tile)
            pairs = in_turns(partial(torch.mm, x, right), ours, dry)
            row |= {f"cuBLAS {layout} us": micro(pairs, 0), f"{name} {layout} us": micro(pairs, 1)}
            if not dry:
                row |= {f"{name} {layout}, GPU alone us": replayed(ours)}
            row[f"{name} {layout}, error"] = over(ours(), theirs, exact)
        if not dry:
            row[f"cuBLAS {layout}, GPU alone us"] = replayed(partial(torch.mm, x, right))
    yield row


def replayed(call: Call, count: int = 20) -> float:
    """Return the microseconds of a call within a CUDA graph: without the host."""
    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            call()
    graph.replay()
    return round(1e6 / count * min(batch(graph.replay, 1) for _ in range(5)), 2)


def host(dry: bool) -> Iterator[Row]:
    """Yield what calls cost a host at 64 cubed, and what they consist of: microseconds, the least of turns of 100."""
    device = "cpu" if dry else "cuda"
    x, y = draw("normal", 64, 64, 1, device), draw("normal", 64, 64, 2, device)
    large = draw("normal", 640, 640, 1, device)
    out, prepared = torch.empty(64, 64, device=device), ops.prepare(y)

    def into_new() -> torch.Tensor:
        return torch.mm(x, y, out=x.new_empty_strided((64, 64), (64, 1)))

    calls: dict[str, Call] = {
        "mm": partial(torch.mm, x, y), "mm into out": partial(torch.mm, x, y, out=out), "mm into a new tensor": into_new,
        "matmul_fp32": partial(ops.matmul_fp32, x, y), "matmul_fp32, prepared": partial(ops.matmul_fp32, x, prepared),
        "new_empty": partial(x.new_empty, (64, 64)), "new_empty_strided": partial(x.new_empty_strided, (64, 64), (64, 1)),
        "mm, 640": partial(torch.mm, large, large), "matmul_fp32, 640": partial(ops.matmul_fp32, large, large),
    }  # fmt: skip
    if not dry:
        calls["_launch"] = partial(ops._launch, x, y)
        calls["Launch"] = partial(plain_product.Launch(x, y, plain_product.Side(64, True, True), plain_product.Side(64, False, True)), x, y)
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(2 if dry else 15):
        for name, call in calls.items():
            if not dry:
                torch.cuda.synchronize()
            best[name] = min(best[name], by_clock(call, 2 if dry else 100))
    about = {"device": "cpu" if dry else torch.cuda.get_device_name(), "torch": torch.__version__}
    yield {"table": "host-cost", **about, **{name: round(1e6 * seconds, 2) for name, seconds in best.items()}}


def micro(pairs: Sequence[tuple[float, float]], which: int) -> float:
    """Return the median of one side, microseconds."""
    return float(f"{1e6 * statistics.median(pair[which] for pair in pairs):.4g}")


def spread(quotients: Sequence[float]) -> str:
    """Return the median of sorted quotients and the quartiles."""
    count = len(quotients)
    return f"{statistics.median(quotients):.3f} [{quotients[count // 4]:.2f}, {quotients[-1 - count // 4]:.2f}]"


def summaries(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield what the sixty say together, a row each way."""
    sixty = [row for row in rows if row["table"] == "sixty"]
    for name in ("prepared", "[n, k]", "[k, n]") if sixty else ():
        for regime in ("back to back", "single"):
            gains = [float(row[name].split()[0]) if regime == "back to back" else row[f"{name}, single"] for row in sixty]
            order = sorted(zip(gains, (row["m x n x k"] for row in sixty), strict=True))
            mean = statistics.geometric_mean(gains)
            yield {"table": "sixty-summary", "b": name, "calls": regime, "shapes": len(gains), "geometric mean": f"{mean:.2f}x",
                   "below 0.98": sum(gain < 0.98 for gain in gains), "least": ", ".join(f"{shape}: {gain:.3f}" for gain, shape in order[:3]),
                   "most": f"{order[-1][0]:.2f}x"}  # fmt: skip
    for kind in DISTRIBUTIONS if sixty else ():
        order = sorted(((row[f"error, {kind}"], row["m x n x k"]) for row in sixty), reverse=True)
        yield {"table": "sixty-errors", "values": kind, "shapes": len(order), "above cuBLAS's": sum(error > 1.005 for error, _ in order),
               "median": statistics.median(error for error, _ in order),
               "most": ", ".join(f"{shape}: {error}" for error, shape in order[:3])}  # fmt: skip


def short(row: Row) -> Row:
    """Return a row of a shape as the page shows it: single calls in one column, and errors in one."""
    names = ("prepared", "[n, k]", "[k, n]")
    one = {"single calls": " / ".join(f"{row[f'{name}, single']:.2f}" for name in names), "least": row["least"],
           "TFLOP/s, prepared": row["TFLOP/s, prepared"], "errors": " ".join(f"{row[f'error, {kind}']:.2f}" for kind in DISTRIBUTIONS)}  # fmt: skip
    return {key: row[key] for key in ("table", "m x n x k", "by", "cuBLAS us", *names)} | one


def into_page(made: Path, page: Path) -> None:
    """Put the rows of a run, and what they say together, in place of the page's rows of the same tables."""
    rows = [json.loads(line) for line in made.read_text().splitlines()]
    rows = [row for row in rows if row["table"] != "failed"]
    rows = [short(row) if row["table"].startswith("sixty") else row for row in rows] + list(summaries(rows))
    tables, file = {row["table"] for row in rows}, page / "rows.jsonl"
    kept = [line for line in file.read_text().splitlines() if json.loads(line).get("table") not in tables] if file.exists() else []
    file.write_text("".join(f"{line}\n" for line in [*kept, *map(json.dumps, rows)]))


if __name__ == "__main__":
    with torch.no_grad():
        main()
