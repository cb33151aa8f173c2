"""Halo exchanges on one to eight GPUs: `python -m benchmarks.mpi.scaling --out FOLDER [--gpus N] [--mpi PREFIX]`, for a host with as many.

For every number of processes (1, 2, 4, 8) and of GPUs up to N: blocks of 512^3 doubles each (weak) and of 1024^3 in all (strong), 3 wide, periodic,
the 26 regions by each method, the model's prediction (halo_model.py) beside each time, then a plot. Methods: `arrays` and `slots` (HaloPlan into the
neighbours' memory), `host` (a HaloPlan through pinned memory), `messages` (26 Isend and Irecv of subarrays; --peer), `by_hand` (torch copies into
contiguous buffers, messages of bytes, copies back). With `--mpi`, an Open MPI that knows GPUs (openmpi_cuda.sh), `by_hand` sends from GPU memory, and
with `--library` its own types are run without the shim, once. Every element holds a number made of its place in the whole, so that each halo is
checked in every rank after each method. `--dry` runs all of it on NumPy arrays of 24^3 on the CPU.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.mpi.gpu_programs import MPIEXEC, environment_of, path, run
from benchmarks.mpi.halo_model import block_of, grid_of, predicted_us

WIDTH = 3
METHODS = ("arrays", "slots", "host", "messages", "by_hand")
LIMIT_S = 120


class Halo:
    """One rank's block of a periodic array, its values made of their places."""

    def __init__(self, block: tuple[int, ...], dry: bool) -> None:
        """Make the communicator and the block; the halo holds -1."""
        from mpi4py import MPI

        self.mpi, self.dry = MPI, dry
        grid = grid_of(MPI.COMM_WORLD.Get_size())
        self.comm = MPI.COMM_WORLD.Create_cart(grid, [True] * 3)
        if dry:
            import numpy

            self.numbers: Any = numpy
        else:
            import torch

            self.numbers = torch
            torch.cuda.set_device(self.comm.Get_rank() % torch.cuda.device_count())
            torch.set_default_device("cuda")
        inner = [size - 2 * WIDTH for size in block]
        axes = [
            (self.numbers.arange(size) - WIDTH + at * own) % (own * ranks)
            for size, own, at, ranks in zip(block, inner, self.comm.Get_coords(self.comm.Get_rank()), grid, strict=True)
        ]
        whole = [own * ranks for own, ranks in zip(inner, grid, strict=True)]
        self.expected = ((axes[0][:, None, None] * whole[1] + axes[1][None, :, None]) * whole[2] + axes[2][None, None, :]) * 1.0
        if not dry:
            self.expected = self.expected.double()
        self.array = self.expected * 0 - 1
        self.reset()

    def reset(self) -> None:
        """Put the block back as it was before an exchange."""
        inside = (slice(WIDTH, -WIDTH),) * 3
        self.array[...] = -1
        self.array[inside] = self.expected[inside]
        self.wait()

    def wait(self) -> None:
        """Wait for the GPU."""
        if not self.dry:
            self.numbers.cuda.synchronize()

    def right(self) -> bool:
        """Whether every element of every rank is what it should be."""
        return bool(self.comm.allreduce(int((self.array == self.expected).all())) == self.comm.Get_size())

    def regions(self) -> Iterator[tuple[Any, Any, int, int, int]]:
        """Yield what goes to each of 26 neighbours, what comes from there, its rank, and the tags of both."""
        directions = [where for where in itertools.product((-1, 0, 1), repeat=3) if any(where)]
        dims, _, here = self.comm.Get_topo()
        for number, where in enumerate(directions):
            peer = self.comm.Get_cart_rank([(at + step) % size for at, step, size in zip(here, where, dims, strict=True)])
            own = tuple({-1: slice(WIDTH, 2 * WIDTH), 0: slice(WIDTH, -WIDTH), 1: slice(-2 * WIDTH, -WIDTH)}[step] for step in where)
            halo = tuple({-1: slice(0, WIDTH), 0: slice(WIDTH, -WIDTH), 1: slice(-WIDTH, None)}[step] for step in where)
            yield self.array[own], self.array[halo], peer, number, len(directions) - 1 - number

    def messages(self) -> Callable[[], None]:
        """The exchange by datatypes: what an application writes."""
        from warpwright.domains.mpi.exchange.views import message

        made = [(message(send), message(halo), peer, tag, back) for send, halo, peer, tag, back in self.regions()]

        def exchange() -> None:
            self.wait()
            requests = [self.comm.Irecv(halo, peer, back) for _, halo, peer, _, back in made]
            requests += [self.comm.Isend(send, peer, tag) for send, _, peer, tag, _ in made]
            self.mpi.Request.Waitall(requests)

        return exchange

    def by_hand(self, on_gpu: bool) -> Callable[[], None]:
        """The exchange by contiguous buffers: of the GPU where the MPI takes them, else pinned."""
        made = []
        for send, halo, peer, tag, back in self.regions():
            if self.dry:
                buffers = [self.numbers.empty(send.shape) for _ in range(2)]
                addresses = [one.ctypes.data for one in buffers]
            else:
                place: dict[str, Any] = {} if on_gpu else {"device": "cpu", "pin_memory": True}
                buffers = [self.numbers.empty(tuple(send.shape), dtype=self.numbers.float64, **place) for _ in range(2)]
                addresses = [one.data_ptr() for one in buffers]
            wires = [[self.mpi.buffer.fromaddress(one, 8 * math.prod(send.shape)), self.mpi.BYTE] for one in addresses]
            made.append((send, halo, buffers, wires, peer, tag, back))

        def exchange() -> None:
            requests = [self.comm.Irecv(wires[1], peer, 100 + back) for *_, wires, peer, _, back in made]
            for send, _, buffers, *_ in made:
                self.copy(buffers[0], send)
            self.wait()
            requests += [self.comm.Isend(wires[0], peer, 100 + tag) for *_, wires, peer, tag, _ in made]
            self.mpi.Request.Waitall(requests)
            for _, halo, buffers, *_ in made:
                self.copy(halo, buffers[1])
            self.wait()

        return exchange

    def copy(self, to: Any, source: Any) -> None:
        """Copy an array, on a GPU without waiting."""
        to[...] = source if self.dry else to.copy_(source, non_blocking=True)

    def time_us(self, exchange: Callable[[], None], repeats: int) -> float:
        """Return the median of what the slowest rank takes."""
        times = []
        for _ in range(repeats):
            self.comm.Barrier()
            start = time.perf_counter()
            exchange()
            times.append(time.perf_counter() - start)
        slowest = self.comm.allreduce(times, lambda one, other: [max(pair) for pair in zip(one, other, strict=True)])
        return statistics.median(slowest) * 1e6


def rank_rows(kind: str, block: tuple[int, ...], methods: list[str], repeats: int, on_gpu: bool, dry: bool) -> Iterator[dict[str, Any]]:
    """Yield one rank's row for each method; each begins with a block of its own and is checked."""
    import warpwright.mpi

    halo = Halo(block, dry)
    ranks = halo.comm.Get_size()
    gpus = min(ranks, 1 if dry else halo.numbers.cuda.device_count())
    predicted = predicted_us(block, WIDTH, ranks, gpus)
    for method in methods:
        halo.reset()
        row: dict[str, Any] = {
            "table": "scaling", "scaling": kind, "processes": ranks, "gpus": gpus, "block": "x".join(map(str, block)), "method": method,
        }  # fmt: skip
        if method in ("arrays", "slots", "host"):
            direct: Any = {"arrays": "arrays", "slots": True, "host": False}[method]
            with warpwright.mpi.HaloPlan.grid(halo.array, WIDTH, halo.comm, direct=direct) as plan:
                plan.exchange()
                row |= {"exact": halo.right(), "us": round(halo.time_us(plan.exchange, repeats), 1), "regions_direct": plan.direct}
        else:
            exchange = halo.by_hand(on_gpu) if method == "by_hand" else halo.messages()
            exchange()
            row |= {"exact": halo.right(), "us": round(halo.time_us(exchange, 1 if method == "library" else repeats), 1)}
        if method in predicted:
            row["predicted_us"] = round(predicted[method], 1)
        yield row


def plot(rows: list[dict[str, Any]], title: str) -> str:
    """Return an SVG of time over processes, both logarithmic: a line a method, dashed what was predicted, a panel a kind of scaling."""
    colours = dict(zip((*METHODS, "library"), ("#06c", "#393", "#c60", "#906", "#888", "#000"), strict=True))
    times = [value for row in rows for value in (row["us"], row.get("predicted_us", row["us"]))]
    low, high = min(times) / 1.5, max(times) * 1.5
    parts = [f'<text x="60" y="16">{title}; dashed: predicted</text>']
    for panel, kind in enumerate(("weak", "strong")):
        left = 60 + 330 * panel

        def place(processes: int, us: float, left: int = left) -> str:
            return f"{left + 80 * math.log2(processes):.1f},{300 - 250 * math.log(us / low) / math.log(high / low):.1f}"

        parts += [f'<text x="{left + 80 * i - 4}" y="318">{1 << i}</text>' for i in range(4)]
        parts.append(f'<text x="{left}" y="34">{kind} scaling: us over processes, one GPU each</text>')
        for method, colour in colours.items():
            mine = sorted((row["processes"], row["us"], row.get("predicted_us")) for row in rows if
                          (row["scaling"], row["method"]) == (kind, method) and row["processes"] == row["gpus"])  # fmt: skip
            for dash, line in (("", [(n, us) for n, us, _ in mine]), (' stroke-dasharray="4"', [(n, us) for n, _, us in mine if us])):
                if line:
                    points = " ".join(place(*point) for point in line)
                    parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}"{dash}/>')
            if mine:
                x, y = place(mine[-1][0], mine[-1][1]).split(",")
                parts.append(f'<text x="{x}" y="{y}" fill="{colour}">{method} {mine[-1][1]:.0f}</text>')
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 330"><style>text{{font:11px sans-serif}}</style>{"".join(parts)}</svg>\n'


def runs(options: argparse.Namespace) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Yield the command line and the environment of every run, the most telling first."""
    environment = {**environment_of(options.mpi), "WARPWRIGHT_MPI_PEER": "on"}
    environment["PYTHONPATH"] = path(environment)
    launcher = [options.mpiexec, *([] if options.plain_launcher else MPIEXEC)]
    fitting = [gpus for gpus in (8, 4, 2, 1) if gpus <= options.gpus]
    pairs = [(ranks, gpus) for gpus in fitting for ranks in options.processes if ranks == gpus or (ranks > gpus and (ranks == 8 or options.share))]
    for ranks, gpus in pairs:
        for kind in ("weak", "strong") if ranks == gpus else ("weak",):
            child = [sys.executable, "-m", "benchmarks.mpi.scaling", "--out", str(options.out), "--rank", kind, "--repeats", str(options.repeats)]
            child += ["--dry"] if options.dry else []
            seen = {} if options.dry else {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus)))}
            start = [*launcher, "-n", str(ranks), *child]
            yield [*start, *(["--on-gpu"] if options.mpi else []), "--methods", *options.methods], {**environment, **seen}
            if options.library and kind == "weak":
                yield [*start, "--methods", "library"], {**environment, **seen, "WARPWRIGHT_MPI": "off"}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl and scaling.svg are written")
    parser.add_argument("--gpus", type=int, default=8, help="the most GPUs that are used")
    parser.add_argument("--mpi", type=Path, metavar="PREFIX", help="where an Open MPI that knows GPUs is installed")
    parser.add_argument("--processes", type=int, nargs="+", default=[8, 4, 2, 1])
    parser.add_argument("--share", action="store_true", help="let two and four processes share a GPU too, not only eight")
    parser.add_argument("--library", action="store_true", help="run the MPI's own types too, some 20 s a run: it has to know GPUs")
    parser.add_argument("--mpiexec", default="mpiexec", help="the launcher")
    parser.add_argument("--plain-launcher", action="store_true", help="give the launcher none of Open MPI's options")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--dry", action="store_true", help="small arrays of the host")
    parser.add_argument("--rank", choices=("weak", "strong"), help=argparse.SUPPRESS)
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="NAME", help=f"some of {', '.join(METHODS)}")
    parser.add_argument("--on-gpu", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "rows.jsonl"
    if options.rank:
        import warpwright.mpi  # noqa: F401  before mpi4py

        # isort: split
        from mpi4py import MPI

        block = block_of(options.rank, MPI.COMM_WORLD.Get_size(), 24 if options.dry else 512)
        for row in rank_rows(options.rank, block, options.methods, 3 if options.dry else options.repeats, options.on_gpu, options.dry):
            if MPI.COMM_WORLD.Get_rank() == 0:
                with file.open("a") as out:
                    print(json.dumps({"library": MPI.Get_library_version().split(",")[0].splitlines()[0], **row}), file=out)
                print(row, flush=True)
        return 0
    failed = 0
    for command, environment in runs(options):
        told = run(command, environment, LIMIT_S)
        print(told["out"], end="", flush=True)
        if told["code"]:
            failed += 1
            row = {"table": "failed", "command": " ".join(command[-9:]), "code": told["code"], "error": told["err"][-400:]}
            with file.open("a") as out:
                print(json.dumps(row), file=out)
            print(row, flush=True)
    rows = [row for row in map(json.loads, file.read_text().splitlines()) if row["table"] == "scaling"] if file.exists() else []
    if rows:
        (options.out / "scaling.svg").write_text(plot(rows, rows[0]["library"]))
    failed += sum(not row["exact"] for row in rows)
    print(f"{len(rows)} rows, {failed} failed")
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
