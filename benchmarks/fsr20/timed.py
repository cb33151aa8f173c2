"""The suite's winners under the house's device timer, beside the naive kernel and beside the vendor's calls. On a GPU.

    python -m benchmarks.fsr20.timed --winners PROBE_ROWS... --cub LIBRARY --seconds 50 --out OUT
    python -m benchmarks.fsr20.timed --winners PROBE_ROWS... --dry --out OUT                         on the CPU at its small sizes
    python -m benchmarks.fsr20.timed --suite plain20 --winners PROBE_ROWS... --out OUT               plain kernels, beside the naive ones

One process, and `timing.device` for each pair: A B B A spans of the device's own clock, epochs whose median the interval is of, looks until it
decides. All programs are built at once; a kernel is timed when its two are there. Launches are queued behind a pause of the device, so that neither
compilers nor the host's launches are timed; a call that waits for the device by itself (`waits` in its row) is timed with that. The programs were
verified elsewhere; here outputs are compared with the reference once, after they were timed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import gzip
import itertools
import json
import tempfile
import time
import traceback
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.cuda import plain20
from benchmarks.fsr20 import beside, run
from warpwright.timing import device as device_timer
from warpwright.timing.device_lock import DeviceLock
from warpwright.timing.measure import BAND

SPAN_SECONDS, MOST_CALLS = 500e-6, 16
CYCLES_PER_SECOND = 1.98e9
"""Of an H200 at its highest clock: how `torch.cuda._sleep` is given."""
LONGEST_PAUSE = 0.3

SUITES: Mapping[str, tuple[Sequence[Any], Path]] = {"fsr20": (run.KERNELS, run.PREPARED), "plain20": (plain20.KERNELS, plain20.PREPARED)}
"""Name -> kernels and their prepared programs; the plain ones have no vendor's call beside them."""

Call = Callable[[], Any]


class QueueClock:
    """Launches are queued as they are, not captured: torch and CUB have calls that no graph takes. The pause at the front grows until all of a set of
    spans is queued before the first begins."""

    def __init__(self) -> None:
        self.pause = 0.01
        self.waits = False
        """A call waited for the device: no pause is long enough."""

    def capture(self, launch: device_timer.Launch, calls: int, rng: Random) -> Callable[[], None]:
        """Return what queues so many calls; what they allocate lies behind a block of another size each time."""
        import torch

        pad = torch.empty(rng.randrange(512, device_timer.PAD_BYTES), dtype=torch.uint8, device="cuda")

        def span(pad: Any = pad) -> None:
            for number in range(calls):
                launch(number)

        return span

    def timed(self, spans: list[Callable[[], None]]) -> list[float]:
        """Return the seconds of each by the device's clock."""
        import torch

        while True:
            events = [torch.cuda.Event(enable_timing=True) for _ in range(len(spans) + 1)]
            torch.cuda._sleep(int(self.pause * CYCLES_PER_SECOND))
            events[0].record()
            for span, event in zip(spans, events[1:], strict=True):
                span()
                event.record()
            in_time = not events[0].query()
            torch.cuda.synchronize()
            if not in_time and not self.waits:
                self.pause *= 2
                self.waits = self.pause > LONGEST_PAUSE
                if self.waits:
                    self.pause = 0.001
                continue
            return [one.elapsed_time(other) * 1e-3 for one, other in itertools.pairwise(events)]


def compared(ours: Call, other: Call, seconds: float, target: str) -> dict[str, Any]:
    """Return how much faster `ours` is than another call that computes the same."""
    clock = QueueClock() if target == "cuda" else device_timer.HostClock()
    slowest = max(plain20._microseconds(call, target) for call in (ours, other)) * 1e-6
    calls = max(1, min(MOST_CALLS, round(SPAN_SECONDS / slowest)))
    first, second = ((lambda epoch, call=call: lambda number: call()) for call in (ours, other))
    ratio = device_timer.compare(first, second, clock, seconds=seconds, band=BAND, calls=calls)
    low, high = ratio.interval
    row = {"speedup": round(ratio.speedup, 4), "interval": [round(low, 4), round(high, 4)], "verdict": ratio.verdict}
    row |= {"us": round(ratio.first * 1e6, 2), "other_us": round(ratio.second * 1e6, 2), "epochs": len(ratio.epochs), "calls": ratio.calls}
    return row | ({"waits": True} if getattr(clock, "waits", False) else {})


def others(name: str, inputs: Sequence[Any], outputs: Sequence[Any], given: Call, options: argparse.Namespace) -> Iterator[tuple[str, str, Call]]:
    """Yield (side, what is called, the call): the naive kernel, torch's own call, CUB's or cuBLAS's."""
    import torch

    yield "naive", "the text as given", given
    if options.suite == "plain20":
        return
    cub = options.cub
    called, call = beside.VENDOR[name]
    yield "torch", called, lambda: call(*inputs)
    if not inputs[0].is_cuda:
        return
    if name == "transpose" or (cub and name in beside.CUB):
        out = torch.empty(outputs[0].shape, dtype=inputs[0].dtype, device=inputs[0].device)
        if name == "transpose":
            yield "vendor", "cublasSgeam", beside.geam_call(inputs[0], out)
        else:
            called, function, _ = beside.CUB[name]
            yield "vendor", called, beside.cub_call(cub, function, inputs[0], out)


Built = tuple[list[types.ModuleType], list[concurrent.futures.Future[None]]]
"""The text as given and the winner as modules, and their builds."""


def rows_of(path: Path, modules: Sequence[types.ModuleType], recipe: Sequence[str], options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Yield a row for each side of a kernel, and one of the errors."""
    import torch

    given, best = modules
    target = "cpu" if options.dry else "cuda"
    torch.manual_seed(0)
    with torch.device(target):
        inputs = given.get_inputs()
    exact = plain20._flat(given.reference(*[x.double() if x.is_floating_point() else x for x in inputs]))
    ours, naive = best.ModelNew(), given.ModelNew()
    about = {"table": "timed", "task": path.stem, "recipe": list(recipe)}
    for side, called, call in others(path.stem, inputs, plain20.exact_as(exact, inputs), lambda: naive(*inputs), options):
        try:
            yield {**about, "side": side, "called": called, **compared(lambda: ours(*inputs), call, options.each, target)}
        except Exception:
            yield {**about, "side": side, "called": called, "failure": traceback.format_exc()[-1500:]}
    errors = {}
    for name, model in (("ours", ours), ("naive", naive)):
        outputs = plain20._flat(model(*[x.clone() for x in inputs]))
        errors[name] = max(plain20._error(seen, want) for seen, want in zip(outputs, exact, strict=True))
    yield {**about, "side": "errors", **errors, "right": errors["ours"] <= 2 * errors["naive"] + 1e-6}


def begun(
    paths: Sequence[Path], winners: Mapping[str, list[str]], pool: concurrent.futures.Executor, options: argparse.Namespace, end: float
) -> dict[Path, Built]:
    """Begin to build the two programs of every kernel."""
    target, device = ("cpu", "cpu") if options.dry else ("cuda", "cuda:0")
    programs = json.loads(gzip.decompress(SUITES[options.suite][1].read_bytes()))
    builds = {}
    for path in paths:
        kept = [one for one in programs[path.stem] if one["recipe"] in ([], winners[path.stem])]
        plain20.recipes_file(path).write_text(json.dumps(kept))
        modules = list(plain20.modules_of(path, target, 1, winners[path.stem]).values())
        builds[path] = modules, [pool.submit(plain20._built, module, device, end) for module in modules]
    return builds


def as_built(builds: dict[Path, Built], end: float) -> Iterator[tuple[Path, list[types.ModuleType]]]:
    """Yield each kernel when its programs are there, until the time is over; what stays in `builds` was not begun."""
    while builds and time.monotonic() < end:
        path = next((path for path, (_, futures) in builds.items() if all(future.done() for future in futures)), None)
        if path is None:
            time.sleep(0.05)
        else:
            yield path, builds.pop(path)[0]


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return the options."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--winners", type=Path, nargs="+", required=True)
    parser.add_argument("--suite", choices=SUITES, default="fsr20")
    parser.add_argument("--cub", default="", type=lambda file: str(Path(file).resolve(strict=True)), help="the library of benchmarks/fsr20/cub.cu")
    parser.add_argument("--kernels", default="", help="only these, by name")
    parser.add_argument("--seconds", type=float, default=50.0, help="no kernel is begun after that many (%(default)s)")
    parser.add_argument("--each", type=float, default=0.5, help="seconds for a pair at most, beyond ten epochs (%(default)s)")
    parser.add_argument("--builds", type=int, default=16, help="builds at once (%(default)s)")
    parser.add_argument("--dry", action="store_true", help="on the CPU at its small sizes")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the rows."""
    options = parsed(arguments)
    end = time.monotonic() + options.seconds
    winners = plain20._earlier(options.winners)
    chosen = [k for k in SUITES[options.suite][0] if k.name in winners and (not options.kernels or k.name in options.kernels.split(","))]
    chosen.sort(key=lambda kernel: kernel.name == "least_squares")  # whose naive kernel takes 0.1 s
    options.out.mkdir(parents=True, exist_ok=True)
    import torch

    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    with (
        tempfile.TemporaryDirectory() as folder,
        open(options.out / "rows.jsonl", "a") as file,
        concurrent.futures.ThreadPoolExecutor(options.builds) as pool,
    ):
        builds = begun(plain20.write(Path(folder), chosen, "cpu" if options.dry else "cuda"), winners, pool, options, end)
        for path, modules in as_built(builds, end):
            try:
                with DeviceLock("cuda:0").exclusive() if not options.dry else contextlib.nullcontext():
                    made = list(rows_of(path, modules, winners[path.stem], options))
                for row in made:
                    file.write(json.dumps(row) + "\n")
                    file.flush()
                    said = f"{row.get('verdict', ''):8} {row.get('speedup', '')} {row.get('interval', '')} {row.get('failure', '').strip()[-200:]}"
                    print(f"{end - time.monotonic():6.1f} s left  {path.stem:15} {row['side']:8} {said}", flush=True)
            except Exception:
                file.write(json.dumps({"table": "timed", "task": path.stem, "failure": traceback.format_exc()[-1500:]}) + "\n")
        print(f"not begun: {', '.join(path.stem for path in builds) or 'none'}", flush=True)
        pool.shutdown(wait=False, cancel_futures=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
