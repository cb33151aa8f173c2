"""Input files for Rodinia's programs, generated from a seed in the form that each program reads; Rodinia's own data is not used.

Each function returns the content of one file; `RNG` is reseeded for each program, so that a program's files do not depend on the others'."""

from __future__ import annotations

import struct

import numpy as np

from benchmarks.hecbench import data as hecbench

SEED = 20261122
lines = hecbench.lines


def seeded(seed: int = SEED) -> np.random.Generator:
    """Set the generator of this module and of the one for HeCBench anew."""
    hecbench.RNG = np.random.default_rng(seed)
    return hecbench.RNG


def graph() -> str:
    seeded()
    return hecbench.graph(nodes=20000, degree=3)


def mesh() -> str:
    """Return a mesh of 48 x 48 cells for cfd."""
    return hecbench.mesh(48)


def keys() -> str:
    """Return the numbers that b+tree stores, in random order."""
    return "20000\n" + "\n".join(map(str, seeded().permutation(20000))) + "\n"


def points() -> str:
    """Return 3,000 points of 34 features around eight centres for kmeans, each with its number."""
    rng = seeded()
    centres = rng.uniform(0, 10, (8, 34))
    rows = centres[rng.integers(0, 8, 3000)] + rng.normal(0, 1, (3000, 34))
    return "".join(f"{i} {row}" for i, row in enumerate(lines(rows, "%.3f").splitlines(True)))


def cells(count: int, low: float, high: float, seed: int) -> str:
    """Return one number a line, as hotspot and hotspot3D read their grids."""
    return lines(seeded(seed).uniform(low, high, (count, 1)), "%.6f")


def hurricanes(seed: int, count: int = 500) -> str:
    """Return records of 48 letters and a new line for nn, in the form of its own generator: latitude at 27, longitude at 33."""
    rng = seeded(seed)
    rows = []
    for lat, long in zip(rng.uniform(7, 70, count), rng.uniform(0, 358, count), strict=True):
        day = (1950 + rng.integers(0, 55), 1 + rng.integers(0, 12), 1 + rng.integers(0, 28), 6 * rng.integers(0, 4), 1 + rng.integers(0, 28))
        when = f"{day[0]:4d} " + " ".join(f"{part:2d}" for part in day[1:])
        rows.append(f"{when} {'STORM':9s} {lat:5.1f} {long:5.1f} {rng.integers(10, 165):4d} {rng.integers(0, 900):4d}\n")
    return "".join(rows)


def system(size: int = 48) -> str:
    """Return gaussian's form of a linear system: a matrix with a heavy diagonal (it does not pivot) and a right side."""
    rng = seeded()
    matrix = rng.uniform(-1, 1, (size, size)) + np.diag(np.where(rng.random(size) < 0.5, -1.0, 1.0) * size / 2)
    return f"{size}\n\n{lines(matrix, '%.4f')}\n{lines(rng.uniform(-1, 1, (1, size)), '%.4f')}"


def avi(frames: np.ndarray) -> bytes:
    """Return an AVI file of uncompressed frames, `[frames, rows, columns]` bytes with the first row at the bottom."""
    count, rows, columns = frames.shape

    def chunk(name: bytes, content: bytes) -> bytes:
        return name + struct.pack("<I", len(content)) + content + b"\0" * (len(content) % 2)

    def listed(name: bytes, content: bytes) -> bytes:
        return b"LIST" + struct.pack("<I", len(content) + 4) + name + content

    size = rows * columns
    main = struct.pack("<14I", 33333, size * 30, 0, 0x10, count, 0, 1, size, columns, rows, 0, 0, 0, 0)
    stream = b"vidsDIB " + struct.pack("<10I4H", 0, 0, 0, 1, 30, 0, count, size, 0, 0, 0, 0, columns, rows)
    form = struct.pack("<IiiHHIIiiII", 40, columns, rows, 1, 8, 0, size, 0, 0, 0, 0)
    head = listed(b"hdrl", chunk(b"avih", main) + listed(b"strl", chunk(b"strh", stream) + chunk(b"strf", form)))
    body = b"".join(chunk(b"00db", frame.tobytes()) for frame in frames)
    places = b"".join(b"00db" + struct.pack("<3I", 0x10, 4 + i * (8 + size + size % 2), size) for i in range(count))
    content = b"AVI " + head + listed(b"movi", body) + chunk(b"idx1", places)
    return b"RIFF" + struct.pack("<I", len(content)) + content


def smooth(rng: np.random.Generator, rows: int, columns: int, width: int) -> np.ndarray:
    """Return noise from 0 to 1 that changes over about `width` pixels."""
    coarse = rng.random((rows // width + 3, columns // width + 3))
    y, x = np.mgrid[:rows, :columns] / width
    i, j = y.astype(int), x.astype(int)
    v, u = y - i, x - j
    return (1 - v) * ((1 - u) * coarse[i, j] + u * coarse[i, j + 1]) + v * ((1 - u) * coarse[i + 1, j] + u * coarse[i + 1, j + 1])


def heart(frames: int = 6) -> bytes:
    """Return a film of 656 x 744 with texture that moves by two pixels down and one to the right in each frame, for heartwall.

    The texture is coarse beside the five pixels that it looks around: the CUDA program takes the largest correlation by size, its twin by value."""
    rng = seeded()
    picture = 0.8 * smooth(rng, 760, 680, 30) + 0.2 * smooth(rng, 760, 680, 11)
    moved = [np.roll(picture, (2 * k, k), (0, 1))[:744, :656] for k in range(frames)]
    return avi(np.clip(np.stack(moved)[:, ::-1] * 250, 0, 255).astype(np.uint8))


def cells_in_blood(frames: int = 5) -> bytes:
    """Return a film of 640 x 480 for leukocyte: bright discs of radius 10 that roll to the right over a dark, faintly noisy ground."""
    rng = seeded()
    y, x = np.mgrid[:480, :640]
    made = []
    places = [(150, 100), (170, 300), (200, 450), (240, 180), (270, 380), (300, 520)]
    ground = 60 + 20 * smooth(rng, 480, 640, 40) + 6 * smooth(rng, 480, 640, 3)
    for k in range(frames):
        picture = ground.copy()
        for row, column in places:
            distance = np.hypot(y - row, x - column - 1.5 * k)
            picture += 55 * (1 - np.tanh((distance - 10) * 0.75))
        made.append(picture)
    return avi(np.clip(np.stack(made)[:, ::-1], 0, 255).astype(np.uint8))


def pgm(rows: int = 502, columns: int = 458) -> str:
    """Return a grey picture as text for srad_v1."""
    values = np.clip(255 * smooth(seeded(), rows, columns, 12) + hecbench.RNG.normal(0, 12, (rows, columns)), 0, 255).astype(int)
    return f"P2\n# made\n{columns} {rows}\n255\n" + lines(values, "%d")


def grey(side: int) -> bytes:
    """Return a picture of side x side bytes for dwt2d."""
    return np.clip(200 * smooth(seeded(), side, side, 20) + hecbench.RNG.normal(0, 8, (side, side)), 0, 255).astype(np.uint8).tobytes()


def bytes_of_letters(count: int = 1 << 18) -> bytes:
    """Return bytes of 40 kinds, eight of them common, for huffman: no code is longer than 8 bits.

    Four codes of over 32 bits make its kernel shift a 32-bit word by 32, which C++ leaves open, a GPU turns to 0 and a CPU does not."""
    often = np.where(np.arange(40) % 5 == 0, 8.0, 1.0)
    return (seeded().choice(40, count, p=often / often.sum()) * 6 + 3).astype(np.uint8).tobytes()


def floats(count: int = 1 << 17) -> str:
    """Return floats for hybridsort."""
    return lines(seeded().random((count, 1)) ** 2, "%.8f")


def genome(length: int = 6000) -> tuple[str, str]:
    """Return a reference and 400 reads of 30 letters from it, half of them with one letter changed, for mummergpu."""
    rng = seeded()
    letters = np.frombuffer(b"ACGT", np.uint8)
    whole = letters[rng.integers(0, 4, length)]
    reads = []
    for i in range(400):
        at = int(rng.integers(0, length - 30))
        read = whole[at : at + 30].copy()
        if i % 2:
            read[rng.integers(0, 30)] = letters[rng.integers(0, 4)]
        reads.append(f">read{i}\n{read.tobytes().decode()}\n")
    return f">made\n{whole.tobytes().decode()}\n", "".join(reads)


def muscle() -> tuple[str, str]:
    """Return 91 state values and 18 parameters for myocyte: a resting heart cell, rounded; those of calmodulin are made up."""
    state = [0.0014, 0.987, 0.992, 7.2e-6, 1.0, 0.0242, 0.0145, 0.00405, 0.9946, 0.00405, 0.9946, 0.00864, 0.00541, 0.888, 8.16e-7, 1.02e-7,
             3.54, 0.772, 0.00877, 0.108, 0.0152, 2.91e-4, 0.0013, 0.138, 0.00214, 0.00957, 0.111, 0.00735, 0.073, 1.243, 0.5545, 8.803, 8.807,
             8.809, 120.0, 1.737e-4, 1.032e-4, 8.6e-5, -85.57, 0.9946, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]  # fmt: skip
    state += list(seeded().uniform(0.01, 0.1, 45))
    # the last two are constants in the twin
    parameters = [418.0, 0.5, 120.0, 3.6, 96.5, 5.65, 24.2, 0.1, 0.003, 0.08, 5.65, 24.2, 0.1, 0.003, 0.08, 1000.0, 135.0, 1.0]
    return "".join(f"{v:.8g}\n" for v in state), "".join(f"{v:g}\n" for v in parameters)
