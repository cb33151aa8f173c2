"""What goes wrong in a program: right bytes or the library's own error, never wrong bytes, and never a wait without an end."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from interpreters import GAINS, HERE, ROOT, environment, launcher

pytestmark = pytest.mark.compiler


def run(python: str, case: str, processes: int = 2, fake: str | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    command = [*launcher(python, processes), python, str(HERE / "faults.py"), case]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment(fake, **more))


def right(python: str, case: str) -> None:
    """Check that a case ends well, and that the shim had a part in it."""
    process = run(python, case, **GAINS)
    assert process.stdout.startswith("right") and int(process.stdout.split()[1]) > 0, process.stdout + process.stderr[-2000:]


def test_a_truncated_message_is_the_library_s_error(python: str) -> None:
    right(python, "truncated")


@pytest.mark.slow
@pytest.mark.parametrize("case", ("cancelled", "freed", "collective", "threads"))
def test_the_bytes_are_right(python: str, case: str) -> None:
    right(python, case)


def test_gpu_memory_without_holes_is_served_where_the_library_takes_none(python: str, fake_cuda: str) -> None:
    process = run(python, "contiguous", fake=fake_cuda, WARPWRIGHT_NVRTC=fake_cuda)
    assert process.stdout.startswith("right"), process.stdout + process.stderr[-2000:]


def test_where_the_gpu_has_no_memory_left_the_bytes_are_right(python: str, fake_cuda: str) -> None:
    process = run(python, "exhausted", fake=fake_cuda, WARPWRIGHT_NVRTC=fake_cuda)
    assert process.stdout.startswith("right") and int(process.stdout.split()[1]) > 0, process.stdout + process.stderr[-2000:]


def test_what_cannot_be_copied_at_all_is_the_library_s_error(python: str, fake_cuda: str) -> None:
    process = run(python, "refused", fake=fake_cuda, WARPWRIGHT_NVRTC=fake_cuda)
    assert process.stdout.startswith("right"), process.stdout + process.stderr[-2000:]


def test_what_starts_or_completes_together_is_one_launch(python: str, fake_cuda: str) -> None:
    process = run(python, "grouped", fake=fake_cuda, WARPWRIGHT_NVRTC=fake_cuda)
    assert process.stdout.startswith("right"), process.stdout + process.stderr[-2000:]


@pytest.mark.parametrize("case", ("ring", "lost"))
def test_messages_in_a_ring_that_meet_other_receives_or_a_kernel_that_fails(python: str, fake_cuda: str, case: str) -> None:
    more = {"WARPWRIGHT_MPI_PEER": "on", "WARPWRIGHT_MPI_RING": str(4 << 20), "WARPWRIGHT_MPI_JOB": uuid.uuid4().hex}
    process = run(python, case, fake=fake_cuda, WARPWRIGHT_NVRTC=fake_cuda, **more)
    assert process.stdout.startswith("right") and int(process.stdout.split()[1]) > 0, process.stdout + process.stderr[-2000:]


@pytest.mark.slow
def test_a_process_without_the_shim_in_a_collective(python: str) -> None:
    assert run(python, "collective", 3, WITHOUT="1").stdout.startswith("right")


@pytest.mark.slow
def test_a_process_that_dies_ends_the_job(python: str) -> None:
    process = run(python, "dies")
    assert process.returncode != 0 and "right" not in process.stdout


DRIVER = """
import sys
from fakegpu import FakeGpu
import numpy as np
from warpwright.domains.mpi.errors import DeviceError
from warpwright.domains.mpi.layout import Layout
from warpwright.domains.mpi import core
gpu = FakeGpu(sys.argv[1])
layout, content = Layout.dense(8).strided(64, 32), np.arange(2048, dtype=np.uint8)
base, end = gpu.allocate(2048), gpu.allocate(512)
gpu.write(base, content)
expected = content.reshape(64, 32)[:, :8].reshape(-1)

def packs():
    gpu.write(end, np.zeros(512, np.uint8))
    try:
        layout.pack_to(base, end)
    except DeviceError:
        return "refused"
    return "exact" if np.array_equal(gpu.read(end, 512), expected) else "wrong"

told = [packs()]
gpu.driver.fake_refuse_after(0)        # a launch fails, as where memory is short: block by block then
told += [packs(), packs()]
gpu.driver.fake_attributes(999)        # the driver does not say what an address is
told += [packs()]
gpu.driver.fake_attributes(0)
told += [packs()]
host = np.zeros(512, np.uint8)
try:
    layout.pack_to(content.ctypes.data, host.ctypes.data)  # neither is a GPU's
    told += ["wrong"]
except DeviceError:
    told += ["refused"]
told += [core.library().warpwright_waiting(0) in (0, 1, 20, 21, 22), gpu.driver.fake_launches() > 63]
print(*told)
"""


def test_what_the_driver_refuses_is_an_error_and_the_next_call_is_right(fake_cuda: str) -> None:
    chosen = environment(fake_cuda, WARPWRIGHT_NVRTC=fake_cuda)
    chosen["PYTHONPATH"] += f":{HERE}"
    del chosen["WARPWRIGHT_MPI_WAIT"]  # the way is chosen by trial: some launches more, at the first call
    process = subprocess.run([sys.executable, "-c", DRIVER, fake_cuda], capture_output=True, text=True, timeout=100, env=chosen)
    told = ["exact", "exact", "exact", "refused", "exact", "refused", "True", "True"]
    assert process.stdout.split() == told, process.stdout + process.stderr[-2000:]


TOUCH = "import sys, ctypes\nfrom fakegpu import FakeGpu\nprint(ctypes.string_at(FakeGpu(sys.argv[1]).allocate(64), 8))"


def test_the_driver_of_the_tests_catches_a_host_that_touches_device_memory(fake_cuda: str) -> None:
    chosen = {**environment(), "PYTHONPATH": str(HERE)}
    process = subprocess.run([sys.executable, "-c", TOUCH, fake_cuda], capture_output=True, text=True, timeout=60, env=chosen)
    assert process.returncode == 97 and "memory of a device" in process.stderr


def test_every_function_of_the_driver_has_the_name_that_nvidia_s_header_gives_it() -> None:
    headers = [path for path in (Path("/usr/local/cuda/include/cuda.h"), Path("/usr/include/cuda.h")) if path.exists()]
    if not headers:
        pytest.skip("no cuda.h of a CUDA toolkit")
    header = headers[0].read_text(errors="replace")
    names = re.findall(r'find\(driver\.\w+, "(cu\w+)"\)', (ROOT / "warpwright/domains/mpi/native/driver.hpp").read_text())
    assert len(names) == 22
    for name in names:
        plain = name.removesuffix("_v2")
        assert re.search(rf"CUresult CUDAAPI {plain}\(", header), name
        newer = re.search(rf"#define {plain} +(?:__CUDA_API_PT[SD][ZS]\()?({plain}_v\d)", header)
        assert name == (newer[1] if newer else plain)
