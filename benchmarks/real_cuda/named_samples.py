"""Cases of kernels of NVIDIA's cuda-samples, known by their whole name."""

from __future__ import annotations

from collections.abc import Callable

import torch

from benchmarks.real_cuda.families import Case, blocks, empty, random

F, WORDS = torch.float32, torch.int32
CLOSE = 2e-5


def added() -> Case:
    a, b = random(F, 1000), random(F, 1000)
    return Case((4,), (256,), [a, b, empty(F, 1000), 1000], {2: a.double() + b.double()}, CLOSE)


def product() -> Case:
    a, b = random(F, 32, 48), random(F, 48, 64)
    return Case((4, 2), (16, 16), [empty(F, 32, 64), a, b, 48, 64], {0: a.double() @ b.double()}, CLOSE, "16")


def moved(turned: bool) -> Case:
    """Return a case of a copy, or of a transposition, of 64 rows of 96, in tiles of 32 by 32."""
    x = random(F, 64, 96)
    right = x.double().T if turned else x.double()
    return Case((3, 2), (32, 16), [empty(F, *right.shape), x, 96, 64], {0: right}, 0.0)


def tiles_turned(inside: bool) -> Case:
    """Return a case of a transposition of the tiles alone, or of what is inside each; both want a square."""
    x = random(F, 64, 64)
    tiles = x.double().reshape(2, 32, 2, 32)
    right = tiles.permute(0, 3, 2, 1) if inside else tiles.permute(2, 1, 0, 3)
    return Case((2, 2), (32, 16), [empty(F, 64, 64), x, 64, 64], {0: right.reshape(64, 64)}, 0.0)


def reduced(per_thread: int, instance: str = "int", threads: int = 128) -> Case:
    """Return a case of a sum of each block."""
    n = 1000
    x = torch.randint(-50, 50, (n,), dtype=WORDS)
    count = blocks(n, threads * per_thread)
    padded = torch.zeros(count * threads * per_thread, dtype=torch.float64)
    padded[:n] = x.double()
    right = padded.reshape(count, -1).sum(1)
    return Case((count,), (threads,), [x, torch.full((count,), -7777, dtype=WORDS), n], {1: right}, 0.0, instance, 4 * max(threads, 64))


def scanned() -> Case:
    x = torch.randint(0, 50, (6, 1024), dtype=WORDS)
    right = x.double().cumsum(1) - x.double()
    return Case((6,), (256,), [torch.full_like(x, -7), x, 1024], {0: right}, 0.0)


def updated() -> Case:
    x, more = torch.randint(0, 50, (6, 1024), dtype=WORDS), torch.randint(1, 50, (6,), dtype=WORDS)
    return Case((6,), (256,), [x, more], {0: x.double() + more.double()[:, None]}, 0.0)


def counted() -> Case:
    """Return a case of histograms of bytes, one a block of 192 threads."""
    x = torch.randint(0, 256, (3000, 4), dtype=torch.int64)
    words = (x * torch.tensor([1, 1 << 8, 1 << 16, 1 << 24])).sum(1)
    words = torch.where(words >= 1 << 31, words - (1 << 32), words).to(WORDS)
    right = torch.zeros(4, 256, dtype=torch.float64)
    for block in range(4):
        mine = [at for at in range(3000) if at // 192 % 4 == block]
        right[block] = torch.bincount(x[mine].reshape(-1), minlength=256).double()
    return Case((4,), (192,), [torch.full((4, 256), -7, dtype=WORDS), words, 3000], {0: right}, 0.0)


def merged() -> Case:
    parts = torch.randint(0, 50, (300, 256), dtype=WORDS)
    return Case((256,), (256,), [torch.full((256,), -7, dtype=WORDS), parts, 300], {0: parts.double().sum(0)}, 0.0)


def sorted_pairs() -> Case:
    keys = torch.stack([torch.randperm(1024) for _ in range(3)]).to(WORDS)
    values = keys * 3 + 1
    right = keys.sort(1).values.double()
    arguments = [torch.full_like(keys, -7), torch.full_like(keys, -7), keys, values, 1024, 1]
    return Case((3,), (512,), arguments, {0: right, 1: right * 3 + 1}, 0.0)


def copied_square() -> Case:
    x = random(F, 64, 64)
    return Case((2, 2), (32, 16), [empty(F, 64, 64), x, 64, 64], {0: x.double()}, 0.0)


SAMPLES: dict[str, Callable[[], Case | list[Case]]] = {
    "vectorAdd": added, "MatrixMulCUDA": product, "copy": lambda: moved(False), "copySharedMem": copied_square,
    "transposeNaive": lambda: moved(True), "transposeCoalesced": lambda: moved(True), "transposeNoBankConflicts": lambda: moved(True),
    "transposeDiagonal": lambda: moved(True), "transposeFineGrained": lambda: tiles_turned(True),
    "transposeCoarseGrained": lambda: tiles_turned(False),
    "reduce0": lambda: reduced(1), "reduce1": lambda: reduced(1), "reduce2": lambda: reduced(1), "reduce3": lambda: reduced(2),
    "reduce4": lambda: reduced(2, "int, 128"), "reduce5": lambda: reduced(2, "int, 128"),
    "scanExclusiveShared": scanned, "uniformUpdate": updated, "histogram256Kernel": counted, "mergeHistogram256Kernel": merged,
    "bitonicSortShared": sorted_pairs,
}  # fmt: skip
