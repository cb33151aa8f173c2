"""Run in a process of its own: random layouts through the kernels, on the driver that runs them thread by thread, and by an expansion of their own.

    python random_layouts.py DRIVER COUNT

Prints how many were packed and unpacked, how many by nests and by trees, and the first that was wrong.
"""

from __future__ import annotations

import random
import sys

import numpy as np
from fakegpu import FakeGpu

from warpwright.domains.mpi.explain import plan
from warpwright.domains.mpi.layout import Layout

ROOM = 1 << 15


def drawn(rng: random.Random, depth: int, unit: int) -> tuple[Layout, list[int]]:
    """Return a layout and the place of each of its bytes, in order; all places and steps are multiples of `unit`."""
    if depth == 0:
        size = unit * rng.randint(1, 6)
        return Layout.dense(size), list(range(size))
    child, places = drawn(rng, depth - 1, unit)
    if rng.random() < 0.75:
        count, step = rng.randint(1, 4), unit * rng.randint(1, 40) * rng.choice((1, 1, -1))
        return child.strided(count, step), [i * step + place for i in range(count) for place in places]
    offsets = [unit * rng.randint(-30, 60) for _ in range(rng.choice((2, 3, 70)) if depth == 1 else rng.randint(2, 3))]
    other, others = drawn(rng, depth - 1, unit)
    parts = [(offset, rng.choice(((child, places), (other, others)))) for offset in offsets]
    return Layout.concat((offset, part) for offset, (part, _) in parts), [offset + place for offset, (_, at) in parts for place in at]


def main() -> None:
    gpu, rng, numbers = FakeGpu(sys.argv[1]), random.Random(11), np.random.default_rng(11)
    base, end = gpu.allocate(ROOM), gpu.allocate(ROOM)
    content = numbers.integers(0, 256, ROOM, dtype=np.uint8)
    packed = unpacked = trees = 0
    for number in range(int(sys.argv[2])):
        layout, places = drawn(rng, rng.randint(0, 5), rng.choice((1, 2, 4, 8, 16)))
        where = np.array(places)
        where += (start := 16 - int(where.min()) + rng.choice((0, 0, 1, 8)))  # the object begins at `start`
        if where.max() >= ROOM or len(where) > ROOM - 16:
            continue
        after = rng.choice((0, 0, 4))
        trees += any(kind == "tree" for kind in plan(layout)["kernels"])
        gpu.write(base, content)
        gpu.write(end, np.zeros(ROOM, np.uint8))
        layout.pack_to(base + start, end + after)
        expected = np.zeros(ROOM, np.uint8)
        expected[after : after + len(where)] = content[where]
        packed += 1
        if not np.array_equal(gpu.read(end, ROOM), expected):
            print("wrong: pack", number, layout.canonical())
            return
        if len(np.unique(where)) < len(where):
            continue  # the order in which bytes overwrite each other is open
        gpu.write(base, np.zeros(ROOM, np.uint8))
        layout.unpack_from(end + after, base + start)
        expected = np.zeros(ROOM, np.uint8)
        expected[where] = content[where]
        unpacked += 1
        if not np.array_equal(gpu.read(base, ROOM), expected):
            print("wrong: unpack", number, layout.canonical())
            return
    print(packed, unpacked, trees)


if __name__ == "__main__":
    main()
