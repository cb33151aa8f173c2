"""Messages of derived datatypes between two processes, in every mode and with every way of completion."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest
from interpreters import GAINS, HERE, environment, last_line, launcher

pytestmark = pytest.mark.compiler


def exchanged(python: str, rounds: int, fake: str | None = None, **more: str) -> dict[str, Any]:
    """Return what rank 0 says after so many rounds."""
    command = [*launcher(python, 2), python, str(HERE / "exchange.py"), str(rounds)]
    told = last_line(subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(fake, **more)))
    assert told["wrong"] == [[], []], told
    return told


def test_messages_arrive_byte_for_byte(python: str) -> None:
    counts = exchanged(python, 24, **GAINS)["counts"]
    assert min(counts[kind]["served"] for kind in ("send", "receive", "persistent")) > 3, counts


def test_a_peer_without_the_shim_understands(python: str) -> None:
    exchanged(python, 20, WITHOUT="1", **GAINS)


def test_objects_on_a_gpu(python: str, fake_cuda: str) -> None:
    assert exchanged(python, 20, fake_cuda)["launches"] > 5


def test_objects_on_a_gpu_stay_there_for_a_library_that_takes_them(python: str, fake_cuda: str) -> None:
    chosen = {"FAKE_CUDA_OPEN": "1", "WARPWRIGHT_MPI_DEVICE": "64"}
    assert exchanged(python, 20, fake_cuda, **chosen)["launches"] > 5


RING = {"MODES": "Send Ssend Sendrecv", "WARPWRIGHT_MPI_PEER": "113", "WARPWRIGHT_MPI_RING": str(4 << 20)}


def test_objects_on_a_gpu_through_the_receiver_s_ring(python: str, fake_cuda: str) -> None:
    counts = exchanged(python, 24, fake_cuda, WARPWRIGHT_MPI_JOB=uuid.uuid4().hex, **RING)["counts"]
    assert counts["ring"]["served"] > 3, counts


def test_a_process_that_probes_gets_its_bytes_through_the_host(python: str, fake_cuda: str) -> None:
    chosen = {**RING, "MODES": "Probe"}
    counts = exchanged(python, 12, fake_cuda, WARPWRIGHT_MPI_JOB=uuid.uuid4().hex, **chosen)["counts"]
    assert counts["ring"]["forwarded"] > 3, counts


def test_where_ipc_is_refused_messages_go_through_the_host(python: str, fake_cuda: str) -> None:
    counts = exchanged(python, 12, fake_cuda, WARPWRIGHT_MPI_JOB=uuid.uuid4().hex, FAKE_CUDA_NO_IPC="1", **RING)["counts"]
    assert counts["ring"]["served"] == 0 and counts["ring"]["forwarded"] > 3, counts


def test_eight_threads_at_once(python: str) -> None:
    command = [*launcher(python, 2), python, str(HERE / "threads.py")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(**GAINS))
    answer, served = process.stdout.split()
    assert answer == "exact" and int(served) > 200, process.stderr


def built(python: str, source: str, program: Path) -> Path:
    """Return a C program of this folder, compiled against the headers of the MPI library beside an interpreter."""
    prefix = Path(python).parents[1]
    link = [f"-I{prefix}/include", f"-L{prefix}/lib", "-lmpi", f"-Wl,-rpath,{prefix}/lib", "-pthread"]
    compiler = ["g++", "-x", "c++", "-fpermissive", "-w", str(HERE / source), *link, "-o", str(program)]
    process = subprocess.run(compiler, capture_output=True, text=True, timeout=60)
    if process.returncode:
        pytest.skip(f"no C headers of the MPI library: {process.stderr[-200:]}")
    return program


def test_eight_threads_of_a_c_program(python: str, tmp_path: Path) -> None:
    command = [*launcher(python, 2), str(built(python, "threads.c", tmp_path / "threads")), "200"]
    verb = [sys.executable, "-m", "warpwright", "mpi", "run", "--report", "--", *command]
    process = subprocess.run(verb, capture_output=True, text=True, timeout=120, env=environment(**GAINS))
    assert process.stdout == "exact\n", process.stdout + process.stderr[-2000:]
    sent, left = re.findall(r"send (\d+)\+(\d+)", process.stderr)[0]
    assert int(sent) > 3100 and left == "0", process.stderr  # a count lost between two threads does no harm


def test_an_unmodified_c_program_prints_the_same(python: str, tmp_path: Path) -> None:
    program = built(python, "stencil.c", tmp_path / "stencil")
    command = [*launcher(python, 2), str(program)]
    plain = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment())
    for peer in ([], ["--peer"]):  # with it every receive is looked at
        verb = [sys.executable, "-m", "warpwright", "mpi", "run", "--report", *peer, "--", *command]
        chosen = environment(WARPWRIGHT_MPI_LEAST="512")  # all from there on, whatever a trial would say
        faster = subprocess.run(verb, capture_output=True, text=True, timeout=120, env=chosen)
        assert plain.stdout.startswith("checksum") and faster.stdout == plain.stdout, (plain, faster)
        assert "2 processes" in faster.stderr and "send 30+0 receive 30+0" in faster.stderr, faster.stderr
