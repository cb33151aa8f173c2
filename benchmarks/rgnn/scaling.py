"""Relational layers on several GPUs of one host beside one: time, memory, and how much of the messages' time is hidden behind computing.

    python -m benchmarks.rgnn.scaling --out FOLDER [--gpus 2] [--seconds 140]          # one process a GPU, NCCL
    python -m benchmarks.rgnn.scaling --dry --out FOLDER --gpus 3                      # the same paths on a CPU: gloo, tiny graphs
    python -m benchmarks.rgnn.scaling --one-card --out FOLDER                          # two processes on one card, by way of the host

First `check`: sums and exchanges over NCCL give what they should, and how fast they are. Then RGCN, RGAT and HGT on graphs with the statistics of AM,
MAG and wikikg2, each on one card and shared out by warpwright.domains.rgnn.partition (strong scaling), by two programs: `rows first` waits for the
others' rows and runs the layer once, `two runs` computes meanwhile what needs none of them. `beyond`: RGCN and RGAT on graphs that no card
holds, with as many edges as the cards do by the peak of a first try with a part of it; then the same graph on one card. Of their edges nine tenths
begin in the process that they end in, as after a partitioner, and each process draws its own. `wikikg2:hgt:256` is a layer of that width.

`forward_ms`, `step_ms`: a call among several, back to back, of the slowest process; a step is forward, backward and the sum of the parameters'
gradients. `silent_ms`: a step with nothing sent (rows of others are zeros, gradients are not added up). `messages_ms`: what a step sends, alone.
`hidden` = 1 - (step - silent) / messages. `profiled_*`: of one step of the first process, the time that NCCL's kernels take and how much of it other
kernels run. `error`: the largest relative difference of result and gradient of x from one card that has the whole graph; of `beyond`, where there is
none, of the results of 1,000 nodes of each process from float64. RGCN's `gradient_error` there: <gradient of x, x> and <gradients of weights,
weights> from <gradient of the result, result - bias>, over the root of the sum of its squares.

With `--one-card` all processes run on one GPU, each with its part of the memory, and messages go through the host: results, gradients and memory are
those of several cards, times are not.

Each cell has its seconds (`--cell-seconds`), and a row as soon as it is there. A cell that fails or hangs in one process ends all of them, leaves a
row that says so, and they begin anew after it; where `check` fails they do so without peer access between cards. scaling.svg has the parallel
efficiency in per cent.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from benchmarks.rgnn import shares
from benchmarks.rgnn.noted import Row, rows_file
from warpwright.reports import plots

CELLS = "check,am:rgcn,beyond:rgcn,mag:rgcn,am:rgat,am:hgt,mag:rgat,mag:hgt,wikikg2:rgcn,wikikg2:rgat,wikikg2:hgt,beyond:rgat"
HELD, LESS = 0.75, 0.55
"""Of a card's free memory, what `beyond` may take by the first try: the allocator's gaps are the rest. Where that fails, what it may take then."""
MINE = 0.94
"""Of a card that processes share, what all of them take; the rest is what CUDA and libraries take."""
STARTED = 60.0
"""Seconds that processes may take to start."""


def one_rank(options: argparse.Namespace) -> None:
    """Run cells as one process of several; the first process writes the rows, and the first to fail says why."""
    device = torch.device("cpu" if options.dry else f"cuda:{0 if options.one_card else options.rank}")
    if not options.dry:
        torch.cuda.set_device(device)
        torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_num_threads(1)
    apart = not (options.dry or options.one_card)
    dist.init_process_group(
        "nccl" if apart else "gloo", init_method=f"file://{options.store}", rank=options.rank, world_size=options.gpus,
        device_id=device if apart else None, timeout=timedelta(seconds=120),
    )  # fmt: skip
    if options.one_card:
        shares.through_the_host(device, MINE / options.gpus)
    meter = shares.Meter(device, MINE / options.gpus if options.one_card else 1.0)
    for cell in options.cells.split(","):
        begin(options.store, cell)
        common = row_of(cell, options.gpus) | {"device": "one card for all" if options.one_card else device.type}
        try:
            for row in rows_of(cell, meter, options.dry):
                if options.rank == 0:
                    write(options.out, common | row | {"seconds": round(time.time() - common["when"], 1)})
        except Exception as problem:  # a cell that does not fit is a row
            note = f"{type(problem).__name__}: {str(problem)[:500]}"
            print(options.rank, note, flush=True)
            if first_to_fail(options.store, cell):
                write(options.out, common | {"note": note})
            os._exit(1)  # the others may wait for this process in an exchange: whoever started them ends them all
        meter.clean()
    begin(options.store, "")
    dist.destroy_process_group()


def rows_of(cell: str, meter: shares.Meter, dry: bool) -> Iterator[Row]:
    """Give the rows of a cell: "graph:layer" or "graph:layer:width", "beyond:layer" or "beyond:layer:part of the card", or "check"."""
    name, model, more = (*cell.split(":"), "", "")[:3]
    if name == "check":
        yield from shares.checked(meter)
    elif name == "beyond":
        yield from shares.beyond(model, float(more or HELD), meter, 1e-5 if dry else 1.0)
    else:
        yield from shares.shared_out(name, model, min(int(more or shares.WIDTH), 64 if dry else 1 << 20), meter, 0.001 if dry else 1.0)


def begin(store: str, cell: str) -> None:
    """Say which cell is begun, to whoever watches the time."""
    Path(f"{store}-now").write_text(cell)


def first_to_fail(store: str, cell: str) -> bool:
    """Return whether no other process has failed in a cell yet. The others wait for one that ran out of memory, and its end may take seconds."""
    try:
        Path(f"{store}-{cell}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def row_of(cell: str, gpus: int) -> Row:
    """Return what a row begins with."""
    name, model, more = (*cell.split(":"), "", "")[:3]
    width = {"width": int(more or shares.WIDTH)} if name not in {"check", "beyond"} else {}
    return {"table": "scaling", "graph": name, "layer": model, "gpus": gpus, **width, "cell": cell, "when": time.time()}


def write(folder: Path, row: Row) -> None:
    """Append a row."""
    with rows_file(folder, append=True) as put:
        put(row)


def written(folder: Path, begun: float) -> list[Row]:
    """Return the rows since then."""
    file = folder / "rows.jsonl"
    rows = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [row for row in rows if row["when"] >= begun]


def processes(options: argparse.Namespace, store: Path, cells: Sequence[str], peers: bool) -> list[subprocess.Popen[bytes]]:
    """Start one process a GPU."""
    alone = {} if peers else {"NCCL_P2P_DISABLE": "1", "NCCL_SOCKET_IFNAME": "lo"}
    # multicast over NVLink may put the host's cards out of service
    safe = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
    environment = {**os.environ, "GLOO_SOCKET_IFNAME": "lo", "NCCL_DEBUG": "WARN", **safe, **alone}
    command = [sys.executable, "-u", "-m", "benchmarks.rgnn.scaling", "--out", str(options.out), "--gpus", str(options.gpus), "--store", str(store)]
    command += ["--cells", ",".join(cells), *(["--dry"] if options.dry else []), *(["--one-card"] if options.one_card else [])]
    return [subprocess.Popen([*command, "--rank", str(rank)], env=environment) for rank in range(options.gpus)]


def ended(running: Sequence[subprocess.Popen[bytes]], store: Path, options: argparse.Namespace, end: float) -> str:
    """Watch processes until they have ended, then end what is left of them; return why they did not end well, or nothing."""
    now, seen, since, why = "starting", "", time.time(), ""
    while any(process.poll() is None for process in running) and not why:
        time.sleep(0.1)
        file = Path(f"{store}-now")
        seen = file.read_text() if file.exists() else "starting"
        if seen != now:
            now, since = seen, time.time()
        if any(process.poll() for process in running):
            time.sleep(1.0)  # the first process may be about to write why
            why = "a process ended"
        elif time.time() > end:
            why = "the seconds were over"
        elif time.time() - since > (STARTED if now == "starting" else options.cell_seconds):
            why = f"nothing after {time.time() - since:.0f} s"
    for process in running:
        process.kill()
    for process in running:
        process.wait()
    return why or ("a process ended" if any(process.returncode for process in running) else "")


def run(options: argparse.Namespace, end: float) -> bool:
    """Run all cells until `end`, beginning anew after one that fails; return whether none did."""
    with tempfile.TemporaryDirectory() as folder:  # of what processes tell one another, none of which is a result
        return run_in(Path(folder), options, end)


def run_in(folder: Path, options: argparse.Namespace, end: float) -> bool:
    """Run all cells likewise, with a folder for what processes tell one another."""
    cells, peers, right, tries = options.cells.split(","), True, True, 0
    while cells and time.time() < end:
        begun, store = time.time(), folder / f"store-{tries}"
        tries += 1
        why = ended(processes(options, store, cells, peers), store, options, end)
        if not why:
            return right
        file = Path(f"{store}-now")
        now = file.read_text() if file.exists() else cells[0]
        right = False
        if now in cells and not any("note" in row and row["cell"] == now and row["gpus"] > 1 for row in written(options.out, begun)):
            write(options.out, row_of(now, options.gpus) | {"note": why})
        left = cells[cells.index(now) + 1 :] if now in cells else []
        if now == "check" or not file.exists():
            if not peers:
                return False
            peers, left = False, cells
        elif now in {"beyond:rgcn", "beyond:rgat"} and not any("peak_gb" in row for row in written(options.out, begun) if row["cell"] == now):
            left = [f"{now}:{LESS}", *left]
        cells = left
    return right and not cells


def efficiency(rows: Sequence[Row]) -> str:
    """Return a picture of each cell's parallel efficiency: the time of one GPU over GPUs times that of its fastest program on them."""
    cells: dict[str, dict[int, float]] = {}
    for row in rows:
        if "step_ms" in row and row["graph"] != "beyond":
            times = cells.setdefault(f"{row['graph']} {row['layer']}", {})
            times[row["gpus"]] = min(row["step_ms"], times.get(row["gpus"], row["step_ms"]))
    lines = [(name, [100 * times[1] / (gpus * times[gpus]) for gpus in sorted(times)]) for name, times in cells.items() if 1 in times]
    return plots.curves(lines, along="GPUs, doubled each time")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the cells; 1 if one failed or was ended."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--gpus", type=int, default=2, help="processes, one a GPU")
    parser.add_argument("--cells", default=CELLS, help="graph:layer or graph:layer:width, in order; by default those of most value first")
    parser.add_argument("--seconds", type=float, default=140.0, help="processes are ended then")
    parser.add_argument("--cell-seconds", type=float, default=40.0, help="a cell is ended then, and counts as failed")
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--one-card", action="store_true", help="all processes on one GPU")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    options.out = options.out.absolute()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.rank is not None:
        one_rank(options)
        return 0
    right = run(options, time.time() + options.seconds)
    if (file := options.out / "rows.jsonl").exists():
        (options.out / "scaling.svg").write_text(efficiency([json.loads(line) for line in file.read_text().splitlines()]))
    return int(not right)


if __name__ == "__main__":
    raise SystemExit(main())
