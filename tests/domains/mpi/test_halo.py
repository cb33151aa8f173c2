"""Strided arrays become the right layouts by themselves; a planned halo exchange brings every element to its place."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interpreters import HERE, environment, launcher

from warpwright.domains.mpi.exchange.slots import spoken
from warpwright.domains.mpi.exchange.views import view
from warpwright.errors import UsageError

pytestmark = pytest.mark.compiler


def packed(array: Any) -> bytes:
    """Return the bytes of an array by its layout."""
    seen, room = view(array), bytearray(view(array).bytes)
    seen.layout.pack(seen.address, room)
    return bytes(room)


slices = st.tuples(*[st.builds(slice, st.none() | st.integers(-9, 9), st.none() | st.integers(-9, 9), st.sampled_from((None, 1, 2, -1, -3)))] * 3)


@settings(max_examples=30, deadline=None)
@given(slices, st.permutations(range(3)), st.sampled_from(("u1", "<f4", "<f8", "<c16")))
def test_any_slice_of_numpy_is_packed_in_its_order(part: tuple[slice, ...], order: list[int], dtype: str) -> None:
    array = np.arange(7 * 6 * 5).reshape(7, 6, 5).astype(dtype).transpose(order)[part]
    assert packed(array) == np.ascontiguousarray(array).tobytes()


def test_torch_by_dlpack() -> None:
    torch = pytest.importorskip("torch")
    array = torch.arange(60, dtype=torch.float32).reshape(3, 4, 5)[:, 1:3, ::2].transpose(0, 2)
    assert packed(array) == array.contiguous().numpy().tobytes() and view(array).device is None


def test_a_gpu_array_names_its_device() -> None:
    interface = {"data": (4096, False), "shape": (4, 3), "strides": (80, 8), "typestr": "<f8", "version": 3}
    array = SimpleNamespace(__cuda_array_interface__=interface, device=SimpleNamespace(id=1))
    seen = view(array)
    assert (seen.device, seen.bytes, seen.layout.canonical()) == (1, 96, "Strided(4, 80, Dense(24))")


def test_what_is_no_array_is_refused() -> None:
    with pytest.raises(UsageError, match="__dlpack__"):
        view([1, 2])


SLICES = """
import warpwright.mpi
import numpy as np
from mpi4py import MPI
comm, array, target = MPI.COMM_SELF, np.arange(900.0).reshape(30, 30), np.zeros((30, 30))
for part in ((slice(3, 20), slice(5, 8)), (slice(20, 3, -2), slice(None, None, 3)), (slice(0, 0), slice(None))):
    target[...] = 0
    here, there = warpwright.mpi.message(array[part]), warpwright.mpi.message(target[part])
    comm.Sendrecv(here, 0, 0, there, 0, 0)
    expected = np.zeros((30, 30))
    expected[part] = array[part]
    assert np.array_equal(target, expected), part
    here[2].Free(), there[2].Free()
print("exact")
"""


def test_a_slice_is_a_message(python: str) -> None:
    process = subprocess.run([python, "-c", SLICES], capture_output=True, text=True, timeout=60, env=environment())
    assert process.stdout == "exact\n", process.stderr


def exchanged(python: str, fake: str | None = None, **more: str) -> int:
    """Return the number of launches of an exchange that was exact."""
    command = [*launcher(python, 4), python, str(HERE / "halo_exchange.py")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(fake, **more))
    assert process.stdout.startswith("exact"), process.stdout + process.stderr[-3000:]
    return int(process.stdout.split()[1])


@pytest.mark.slow
def test_halos_of_host_arrays(python: str) -> None:
    exchanged(python)


def test_halos_on_a_gpu_take_one_launch_each_way(python: str, fake_cuda: str) -> None:
    assert exchanged(python, fake_cuda) <= 2 * 3 * 4  # there and back, three turns of four plans


@pytest.mark.parametrize("refused", ({}, {"FAKE_CUDA_NO_IPC": "1"}))
def test_halos_packed_straight_into_the_neighbours_memory(python: str, fake_cuda: str, refused: dict[str, str]) -> None:
    assert exchanged(python, fake_cuda, DIRECT="1", **refused) <= 2 * 3 * 4


@pytest.mark.parametrize("refused", ({}, {"FAKE_CUDA_NO_IPC": "1"}))
def test_halos_copied_straight_into_the_neighbours_arrays(python: str, fake_cuda: str, refused: dict[str, str]) -> None:
    launches = exchanged(python, fake_cuda, DIRECT="arrays", **refused)
    assert 0 < launches <= 3 * 4 * (2 if refused else 1)  # one each time: nothing is unpacked


def test_any_nest_is_copied_into_any_other(fake_cuda: str) -> None:
    command = [sys.executable, str(HERE / "linked.py")]
    process = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment(fake_cuda))
    assert process.stdout.split() == ["exact", "7"], process.stdout + process.stderr[-3000:]  # 1 + 1 + 2 + 3 launches of at most 15


def test_one_message_speaks_for_all_silent_ones_of_a_process() -> None:
    messages = [(1, 7), (2, 4), (1, 3), (1, 5), (2, 9)]
    assert spoken(messages, [True, True, True, False, True]) == [1, 2, 3]
    assert spoken(messages, [False] * 5) == [0, 1, 2, 3, 4]
