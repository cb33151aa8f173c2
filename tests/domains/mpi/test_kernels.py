"""The kernels, thread by thread on the CPU and without an MPI: random layouts, and many objects in one launch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from interpreters import HERE, KERNELS, environment, fake_driver

pytestmark = pytest.mark.compiler

GROUPS = """
import sys
from fakegpu import FakeGpu
import numpy as np
from warpwright.domains.mpi.layout import Layout, pack_group, unpack_group
gpu, rng = FakeGpu(sys.argv[1]), np.random.default_rng(5)
room = 1 << 14
base, ends = gpu.allocate(room), [gpu.allocate(1024) for _ in range(60)]

def places(layout):
    offsets, lengths = layout.runs()
    return np.concatenate([np.arange(at, at + size) for at, size in zip(offsets, lengths)])

def exact(layouts, bases):
    before = gpu.driver.fake_launches()
    content = rng.integers(0, 256, room, dtype=np.uint8)
    gpu.write(base, content)
    pack_group(layouts, bases, ends[: len(layouts)])
    launches = gpu.driver.fake_launches() - before
    packed = [gpu.read(end, one.bytes) for end, one in zip(ends, layouts)]
    good = all(np.array_equal(content[places(one) + at - base], stream) for one, at, stream in zip(layouts, bases, packed))
    gpu.write(base, np.zeros(room, np.uint8))
    unpack_group(layouts, ends[: len(layouts)], bases)
    expected = np.zeros(room, np.uint8)
    for one, at, stream in zip(layouts, bases, packed):
        expected[places(one) + at - base] = stream
    return good and np.array_equal(gpu.read(base, room), expected), launches

def nests(count, block):
    return [Layout.dense(block).strided(3 + i % 2, 32) for i in range(count)]

def at(count):
    return [base + 192 * i for i in range(count)]

few = nests(5, 8)
tree = Layout.concat((64 * ((7 * i) % 66), Layout.dense(4 + 4 * (i % 3))) for i in range(66))
print(exact(few, at(5)), exact(few, at(5)), exact(nests(5, 16), at(5)), exact(few, at(6)[1:]))
mixed, where = [*nests(30, 8), tree, *nests(3, 4)], [*at(30), base + 6144, *[base + 11000 + 200 * i for i in range(3)]]
print(exact(nests(60, 8), at(60)), exact(mixed, where))
del few  # its handles may be those of the next
print(exact(nests(5, 24), at(5)))
"""


def test_groups_of_objects(fake_cuda: str) -> None:
    chosen = environment(fake_cuda, WARPWRIGHT_NVRTC=fake_cuda)
    chosen["PYTHONPATH"] += f":{HERE}"
    process = subprocess.run([sys.executable, "-c", GROUPS, fake_cuda], capture_output=True, text=True, timeout=100, env=chosen)
    told = ["(True, 1) (True, 1) (True, 1) (True, 1)", "(True, 3) (True, 4)", "(True, 1)"]
    assert process.stdout.splitlines() == told, process.stdout + process.stderr[-2000:]


def random_layouts(driver: str, count: int) -> str:
    """Return what random_layouts.py prints."""
    chosen = environment(driver, WARPWRIGHT_NVRTC=driver)
    command = [sys.executable, str(HERE / "random_layouts.py"), driver, str(count)]
    process = subprocess.run(command, capture_output=True, text=True, timeout=100, env=chosen)
    assert process.stdout, process.stderr[-2000:]
    return process.stdout


def test_random_layouts_are_packed_and_unpacked(fake_cuda: str) -> None:
    packed, unpacked, trees = map(int, random_layouts(fake_cuda, 400).split())
    assert packed > 300 and unpacked > 100 and trees > 20, (packed, unpacked, trees)


@pytest.mark.parametrize(("right", "wrong"), (
    pytest.param("i64 at = (i64)(word - index * nest.block.by) * width;", "i64 at = 0;", marks=pytest.mark.slow),
    ("u32 first = block * (blockDim.x * K) + threadIdx.x;", "u32 first = block * (blockDim.x * K) + threadIdx.x / 2 * 2;"),
))  # fmt: skip
def test_kernels_that_are_wrong_are_noticed(right: str, wrong: str, tmp_path: Path) -> None:
    text = KERNELS.read_text()
    assert right in text
    kernels = tmp_path / "kernels.cu"
    kernels.write_text(text.replace(right, wrong))
    assert random_layouts(fake_driver(kernels, "-O0"), 400).startswith("wrong: pack")
