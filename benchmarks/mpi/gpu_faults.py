"""What goes wrong in programs on GPU memory, and what must come of it: `python -m benchmarks.mpi.gpu_faults --out FOLDER [--mpi PREFIX]`.

Jobs of two processes with a time limit. A case is right where the bytes are those of the message, or the call fails with the library's own error;
where a process is killed the launcher has to end the job. Processes share a GPU where there are fewer than two. `--dry` needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.mpi.calls import Case
from benchmarks.mpi.gpu_programs import MPIEXEC, environment_of, path, run
from benchmarks.mpi.pack_gpu import DryGpu, Gpu, case_places

LIMIT_S = 30
COLUMN = Case("column", (128,), (1024,), 24)


class Job:
    """One of the two processes of a case."""

    def __init__(self, dry: bool) -> None:
        """Load the shim, unless WITHOUT names this process, then MPI."""
        rank = os.environ.get("OMPI_COMM_WORLD_RANK", os.environ.get("PMI_RANK", "0"))
        if os.environ.get("WITHOUT") == rank:
            os.environ["WARPWRIGHT_MPI"] = "off"
        import warpwright.mpi

        # isort: split
        from mpi4py import MPI

        self.counts = warpwright.mpi.counts
        self.mpi, self.comm = MPI, MPI.COMM_WORLD
        self.rank, self.dry = self.comm.Get_rank(), dry
        self.peer = 1 - self.rank
        self.gpu: Any = DryGpu() if dry else Gpu(self.rank)

    def made(self, case: Case, seed: int) -> tuple[Any, Any, Any]:
        """Return memory of the GPU with bytes of a seed, the message of its object, and those bytes."""
        content = np.random.default_rng(seed).integers(0, 256, case.room, dtype=np.uint8)
        memory = self.put(content)
        buffer = self.mpi.buffer.fromaddress(self.gpu.pointer(memory), case.room)
        return memory, [buffer, 1, case.datatype(self.mpi)], content

    def put(self, content: Any) -> Any:
        """Return memory of the GPU with these bytes."""
        return self.gpu.put(content) if self.dry else self.gpu.torch.from_numpy(content).cuda()

    def holds(self, memory: Any, case: Case, before: Any, arrived: Any) -> bool:
        """Whether the object's bytes are those that arrived, and all others are as before."""
        expected = before.copy()
        expected[case_places(case)] = arrived
        return bool(np.array_equal(self.gpu.host(memory), expected))


def packed(case: Case, seed: int) -> Any:
    """Return the packed bytes of an object of a seed."""
    return np.random.default_rng(seed).integers(0, 256, case.room, dtype=np.uint8)[case_places(case)]


def freed(job: Job) -> bool:
    """Types freed while messages are on their way."""
    memory, message, before = job.made(COLUMN, 10 + job.rank)
    source, sent, _ = job.made(COLUMN, job.rank)
    requests = [job.comm.Irecv(message, job.peer, 1), job.comm.Isend(sent, job.peer, 1)]
    message[2].Free(), sent[2].Free()
    job.mpi.Request.Waitall(requests)
    del source
    return job.holds(memory, COLUMN, before, packed(COLUMN, job.peer))


def truncated(job: Job) -> bool:
    """A message longer than the receiver's type is the library's own error, and the next message is right."""
    memory, message, before = job.made(COLUMN, 10 + job.rank)
    if job.rank == 0:
        job.comm.Send(message, 1, 1)
        job.comm.Send(message, 1, 2)
        return True
    shorter = Case("short", (64,), (1024,), 24)
    try:
        job.comm.Recv([message[0], 1, shorter.datatype(job.mpi)], 0, 1)
        good = False
    except job.mpi.Exception as error:
        good = error.Get_error_class() == job.mpi.ERR_TRUNCATE
    before = job.gpu.host(memory).copy()
    job.comm.Recv(message, 0, 2)
    return good and job.holds(memory, COLUMN, before, packed(COLUMN, 10))


def threads(job: Job) -> bool:
    """MPI_THREAD_MULTIPLE: eight threads with a communicator each, messages all at once."""
    comms = [job.comm.Dup() for _ in range(8)]

    def work(number: int) -> bool:
        if not job.dry:
            job.gpu.torch.cuda.set_device(job.rank % job.gpu.count)
        else:
            job.gpu.driver.cuCtxSetCurrent(job.gpu.context)
        good = True
        for turn in range(10):
            case = Case("", (128,), (1024,), 8 * (1 + (turn + number) % 3))
            source, sent, _ = job.made(case, 100 * number + 2 * turn + job.rank)
            memory, message, before = job.made(case, 7)
            requests = [comms[number].Irecv(message, job.peer, turn), comms[number].Isend(sent, job.peer, turn)]
            job.mpi.Request.Waitall(requests)
            del source
            good = good and job.holds(memory, case, before, packed(case, 100 * number + 2 * turn + job.peer))
        return good

    with ThreadPoolExecutor(8) as pool:
        return job.mpi.Query_thread() == job.mpi.THREAD_MULTIPLE and all(pool.map(work, range(8)))


def exhausted(job: Job) -> bool:
    """GPU memory is full when the messages need some: right bytes, through pinned memory."""
    case = Case("", (1 << 15,), (1024,), 512)  # 16 MiB
    source, sent, _ = job.made(case, job.rank)
    memory, message, before = job.made(case, 10 + job.rank)
    blocks = []
    if not job.dry:
        job.comm.Barrier()
        if job.rank == 0:
            for size in (1 << 30, 1 << 26, 1 << 22, 1 << 20):
                try:
                    while True:
                        blocks.append(job.gpu.torch.empty(size, dtype=job.gpu.torch.uint8, device="cuda"))
                except RuntimeError:  # until the next byte is refused
                    continue
    job.comm.Barrier()
    requests = [job.comm.Irecv(message, job.peer, 1), job.comm.Isend(sent, job.peer, 1)]
    job.mpi.Request.Waitall(requests)
    job.comm.Barrier()
    blocks.clear()
    del source
    return job.holds(memory, case, before, packed(case, job.peer))


def without(job: Job) -> bool:
    """The other process has no shim: it gets the packed bytes into host memory, and sends such."""
    if job.rank == 1:
        host = np.empty(COLUMN.bytes, np.uint8)
        job.comm.Recv([host, job.mpi.BYTE], 0, 1)
        job.comm.Send([packed(COLUMN, 5), job.mpi.BYTE], 0, 2)
        return bool(np.array_equal(host, packed(COLUMN, 0)))
    source, sent, _ = job.made(COLUMN, 0)
    memory, message, before = job.made(COLUMN, 10)
    job.comm.Send(sent, 1, 1)
    job.comm.Recv(message, 1, 2)
    del source
    return job.holds(memory, COLUMN, before, packed(COLUMN, 5))


def large(job: Job) -> bool:
    """Messages of 16 MiB both ways; also where the library is told not to use IPC."""
    case = Case("", (1 << 15,), (1024,), 512)
    source, sent, _ = job.made(case, job.rank)
    memory, message, before = job.made(case, 10 + job.rank)
    job.mpi.Request.Waitall([job.comm.Irecv(message, job.peer, 1), job.comm.Isend(sent, job.peer, 1)])
    del source
    return job.holds(memory, case, before, packed(case, job.peer))


def dies(job: Job) -> bool:
    """A process is killed while the other waits: the launcher ends the job."""
    _memory, message, _ = job.made(COLUMN, 1)
    job.comm.Barrier()
    if job.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    job.comm.Recv(message, 1, 1)
    return False


CASES: dict[str, Callable[[Job], bool]] = {
    "type freed in flight": freed, "message too long": truncated, "eight threads": threads, "GPU memory exhausted": exhausted,
    "16 MiB both ways": large, "peer without the shim": without, "a process is killed": dies,
}  # fmt: skip
JOBS: tuple[tuple[tuple[tuple[str, ...], dict[str, str]], ...], ...] = (
    (
        (("type freed in flight", "message too long", "eight threads", "16 MiB both ways"), {}),
        (("16 MiB both ways",), {"OMPI_MCA_btl_smcuda_use_cuda_ipc": "0"}),
        (("peer without the shim",), {"WITHOUT": "1"}),
        (("a process is killed",), {}),
    ),
    ((("GPU memory exhausted",), {}),),
)
"""Jobs of some cases with an environment; those of a row run at once, the rows one after the other."""


def child(cases: list[str], dry: bool) -> int:
    """One process of a job; process 0 says of each case whether both are content."""
    job = Job(dry)
    wrong = 0
    for case in cases:
        right = job.comm.allreduce(int(CASES[case](job))) == 2
        wrong += not right
        if job.rank == 0:
            counts = job.counts()
            served = sum(kind["served"] for kind in counts.values())
            print(json.dumps({"case": case, "right": right, "served": served, "by_ring": counts["ring"]["served"]}), flush=True)
    return bool(wrong)


def rows(environment: dict[str, str], dry: bool, only: list[str]) -> Iterator[dict[str, Any]]:
    """Yield a row for each case, or for some only."""
    chosen = [[(tuple(case for case in cases if case in only), more) for cases, more in jobs] for jobs in JOBS]
    with ThreadPoolExecutor(4) as pool:
        for jobs in ([job for job in row if job[0]] for row in chosen):
            start = ["mpiexec", *MPIEXEC, "-n", "2", sys.executable, "-m", "benchmarks.mpi.gpu_faults", "--out", ".", *(["--dry"] if dry else [])]
            commands = [[*start, "--cases", *cases] for cases, _ in jobs]
            told = list(pool.map(lambda command, more: run(command, {**environment, **more}, LIMIT_S), commands, [more for _, more in jobs]))
            for (cases, more), answer in zip(jobs, told, strict=True):
                lines = [json.loads(line) for line in answer["out"].splitlines() if line.startswith("{")]
                said = {line["case"]: line for line in lines}
                for case in cases:
                    line = said.get(case, {})
                    good = bool(line.get("right") and line["served"]) if case != "a process is killed" else answer["code"] not in (0, "time limit")
                    set_to = " ".join(f"{key}={value}" for key, value in more.items())
                    ring = environment.get("WARPWRIGHT_MPI_PEER", "off")
                    row = {"table": "faults", "case": case, "environment": set_to, "ring": ring, "by_ring": line.get("by_ring"), "as_expected": good}
                    yield {**row, "code": answer["code"], "seconds": answer["seconds"], **({} if good else {"error": answer["err"]})}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--mpi", type=Path, metavar="PREFIX", help="where an Open MPI that knows GPUs is installed")
    parser.add_argument("--dry", action="store_true", help="without a GPU")
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES), metavar="CASE", help="some cases of them")
    parser.add_argument("--cases", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cases:
        return child(options.cases, options.dry)
    options.out.mkdir(parents=True, exist_ok=True)
    environment = environment_of(options.mpi)
    environment["PYTHONPATH"] = path(environment)
    failed = 0
    with (options.out / "rows.jsonl").open("a") as file:
        for row in rows(environment, options.dry, options.only):
            failed += not row["as_expected"]
            print(json.dumps(row), file=file, flush=True)
            print(row, flush=True)
    print(f"{failed} failed", flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
