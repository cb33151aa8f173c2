"""Run with FAKE_CUDA: random pairs of nests, copied from one into the other, up to 15 by one kernel, against their runs; prints "exact"."""

from __future__ import annotations

import ctypes
import os
import random

import numpy as np
from fakegpu import FakeGpu

FAKE = FakeGpu(os.environ["FAKE_CUDA"])
os.environ["WARPWRIGHT_NVRTC"] = os.environ["FAKE_CUDA"]

from warpwright.domains.mpi import core  # noqa: E402
from warpwright.domains.mpi.exchange.links import _built  # noqa: E402
from warpwright.domains.mpi.layout import Layout  # noqa: E402

ROOM = 1 << 16
PRIMES = (2, 2, 2, 2, 3, 3, 5, 7)


def nest(rng: random.Random, factors: list[int]) -> Layout:
    """Return a nest of as many bytes as the product of the factors; some are its block, the others its levels, with gaps and sometimes backwards."""
    factors = rng.sample(factors, len(factors))
    cut = rng.randint(0, len(factors))
    layout = Layout.dense(int(np.prod(factors[:cut], dtype=int)))
    levels = [1] * rng.randint(1, 4)
    for factor in factors[cut:]:
        levels[rng.randrange(len(levels))] *= factor
    for count in levels:
        low, high = layout.span
        layout = layout.strided(count, (high - low + rng.choice((0, 0, 1, 8, 16))) * rng.choice((1, 1, 1, -1)))
    return layout


def places(layout: Layout) -> np.ndarray:
    """Return the offset of every byte, in the packed order."""
    offsets, lengths = layout.runs()
    return np.concatenate([np.arange(at, at + size) for at, size in zip(offsets.tolist(), lengths.tolist(), strict=True)])


def exact(rng: random.Random, pairs: int) -> bool:
    """Copy many pairs at once, each between places of its own in two allocations."""
    source, target = FAKE.allocate(pairs * ROOM, 0), FAKE.allocate(pairs * ROOM, 0)
    before = np.random.default_rng(rng.randrange(1 << 30)).integers(0, 256, pairs * ROOM, np.uint8)
    expected = np.zeros(pairs * ROOM, np.uint8)
    FAKE.write(source, before)
    FAKE.write(target, expected)
    links = []
    for pair in range(pairs):
        factors = rng.sample(PRIMES, rng.randint(1, 6))
        ends = []
        for layout in (nest(rng, factors), nest(rng, factors)):
            low, high = layout.span
            ends.append((layout, pair * ROOM + rng.choice((0, 1, 4, 16)) - low))
            assert high - low < ROOM - 16
        (here, at), (there, to) = ends
        expected[places(there) + to] = before[places(here) + at]
        links.append((here, source + at, there, target + to))
    made = _built(links, 0)
    good = core.library().warpwright_links_run(made, None) == 0 and np.array_equal(FAKE.read(target, len(expected)), expected)
    core.library().warpwright_links_free(made)
    FAKE.free(source)
    FAKE.free(target)
    return good


def refused() -> bool:
    """Objects of different length, and one that is more than a nest, have no link."""
    one, other = Layout.dense(8), Layout.dense(4)
    wild = Layout.concat([(0, other), (100, Layout.dense(3)), (200, Layout.dense(1))])
    return not _built([(one, 4096, other, 8192)], 0) and not _built([(one, 4096, wild, 8192)], 0)


if __name__ == "__main__":
    generator = random.Random(5)
    launches = FAKE.driver.fake_launches()
    assert isinstance(core.library(), ctypes.CDLL)
    results = [exact(generator, pairs) for pairs in (1, 15, 16, 40)] + [refused()]
    print("exact" if all(results) else "wrong", FAKE.driver.fake_launches() - launches)
