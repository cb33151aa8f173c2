"""What goes wrong in programs on GPU memory, and what must come of it: `python -m benchmarks.mpi.gpu_faults --out FOLDER [--mpi PREFIX]`.

Every case is a job of its own of two processes with a time limit. `right`: the bytes are those of the message, or the call failed with the library's
own error; a case that must end in an error says so. Processes share a GPU where there are fewer than two. `--dry` needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable
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
    """Messages of 16 MiB both ways, as with IPC refused by the library's own switch."""
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


CASES: dict[str, tuple[Callable[[Job], bool], dict[str, str], bool]] = {
    "type freed in flight": (freed, {}, True),
    "message too long": (truncated, {}, True),
    "eight threads": (threads, {}, True),
    "GPU memory exhausted": (exhausted, {}, True),
    "peer without the shim": (without, {"WITHOUT": "1"}, True),
    "IPC refused": (large, {"OMPI_MCA_btl_smcuda_use_cuda_ipc": "0"}, True),
    "a process is killed": (dies, {}, False),
}
"""Name -> (what each process does, environment, whether the job ends well)."""


def child(case: str, dry: bool) -> int:
    """One process of a case; process 0 says whether both are content."""
    job = Job(dry)
    right = CASES[case][0](job)
    if job.comm.allreduce(int(right)) == 2 and job.rank == 0:
        counts = job.counts().values()
        print("right", sum(kind["served"] for kind in counts), flush=True)
    return not right


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="where rows.jsonl is written")
    parser.add_argument("--mpi", type=Path, metavar="PREFIX", help="where an Open MPI that knows GPUs is installed")
    parser.add_argument("--dry", action="store_true", help="without a GPU")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        return child(options.case, options.dry)
    options.out.mkdir(parents=True, exist_ok=True)
    environment = environment_of(options.mpi)
    environment["PYTHONPATH"] = path(environment)
    failed = 0
    with (options.out / "rows.jsonl").open("a") as file:
        for name, (_, more, ends_well) in CASES.items():
            process = [sys.executable, "-m", "benchmarks.mpi.gpu_faults", "--out", ".", "--case", name, *(["--dry"] if options.dry else [])]
            told = run(["mpiexec", *MPIEXEC, "-n", "2", *process], {**environment, **more}, LIMIT_S)
            said = told["out"].split()
            good = said[:1] == ["right"] and int(said[1]) > 0 if ends_well else told["code"] not in (0, "time limit") and not said
            row = {"table": "faults", "case": name, "as_expected": good, "code": told["code"], "seconds": told["seconds"], "said": " ".join(said)}
            failed += not good
            print(json.dumps({**row, **({} if good else {"error": told["err"]})}), file=file, flush=True)
            print(row, "" if good else told["err"], flush=True)
    print(f"{failed} failed", flush=True)
    return bool(failed)


if __name__ == "__main__":
    raise SystemExit(main())
