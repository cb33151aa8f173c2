"""Attention on Hopper's tensor cores in 16 bits, plain or causal (flash_hopper.cu)."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch

from warpwright.errors import UsageError
from warpwright.templates import driver
from warpwright.templates.sources import text

# --- generated programs hold what follows

WIDEST = 256
"""Numbers a head."""
MOST_CAP = 1000.0
"""Of scores: the kernel's tanh is off by 2^-22, which of a score of that size is 2^-12, as much as float16 rounds a weight by."""
L2 = 32 << 20
"""Bytes of keys and values that blocks of a causal attention walk over at once: of the 50 MB that an H100's or H200's L2 holds."""


class Shape(NamedTuple):
    """Parameters of the kernel (their meaning is in flash_hopper.cu)."""

    d: int
    keys: int
    consumers: int = 2
    stages: int = 2
    causal: bool = False
    half: bool = False
    turns: bool = True
    capped: bool = False
    sinks: bool = False
    used: int = 0
    """Numbers of a head that are multiplied, a multiple of 16; 0: `d`."""
    watchdog: bool = False

    @property
    def rows(self) -> int:
        """A tile's."""
        return 64 * self.consumers

    @property
    def shared(self) -> int:
        """Dynamic shared memory, bytes."""
        return (self.rows + 2 * self.stages * self.keys) * self.d * 2 + 1024

    def defines(self) -> list[str]:
        """Return the macros."""
        left, given = (24, 240) if self.consumers == 2 else (32, 160)
        values = {
            "D": self.d, "USED": self.used or self.d, "BN": self.keys, "CONSUMERS": self.consumers, "STAGES": self.stages,
            "CAUSAL": int(self.causal), "TURNS": int(self.turns), "HALF": int(self.half), "CAPPED": int(self.capped),
            "SINKS": int(self.sinks), "PRODUCER_REGISTERS": left, "CONSUMER_REGISTERS": given,
        }  # fmt: skip
        return [*(f"{name}={value}" for name, value in values.items()), *(["WATCHDOG=1"] if self.watchdog else [])]

    def source(self) -> str:
        """Return the kernel's text, with the products of its sizes before it."""
        kind = "f16" if self.half else "bf16"
        return _scores(self.keys, kind) + _values(self.used or self.d, kind) + text("flash_hopper.cu")


def _product(columns: int, kind: str, given: str, then: str) -> str:
    """Return the instruction for 64 rows and its sums as assembler text: a B of `columns` columns and 16 terms."""
    sums = ", ".join(f"%{i}" for i in range(columns // 2))
    return f'"wgmma.mma_async.sync.aligned.m64n{columns}k16.f32.{kind}.{kind} {{{sums}}}, {given}, add, {then}; }}"'


def _sums(count: int) -> str:
    return ", ".join(f'"+f"(c[{i}])' for i in range(count))


def _scores(columns: int, kind: str) -> str:
    """Return `scores`: c = a b, or c += a b where ADD, both from shared memory, rows of terms."""
    n = columns // 2
    return (
        f"template <int ADD> __device__ __forceinline__ void scores(float (&c)[{n}], unsigned long long a, unsigned long long b) {{\n"
        f'    asm volatile("{{ .reg .pred add; setp.ne.b32 add, %{n + 2}, 0; " {_product(columns, kind, f"%{n}, %{n + 1}", "1, 1, 0, 0")}\n'
        f'                 : {_sums(n)} : "l"(a), "l"(b), "n"(ADD));\n}}\n'
    )


def _values(columns: int, kind: str) -> str:
    """Return `values`: c += a b, a from registers and b from shared memory, rows of columns."""
    n = columns // 2
    a = "{" + ", ".join(f"%{n + i}" for i in range(4)) + "}"
    return (
        f"__device__ __forceinline__ void values(float (&c)[{n}], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned long long b) {{\n"
        f'    asm volatile("{{ .reg .pred add; setp.ne.b32 add, 1, 0; " {_product(columns, kind, f"{a}, %{n + 4}", "1, 1, 1")}\n'
        f'                 : {_sums(n)} : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "l"(b));\n}}\n'
    )


def shapes(d: int, causal: bool, half: bool) -> list[Shape]:
    """Return what fits registers and shared memory of heads of `d` numbers, and is the fastest for some sizes; that for the largest first."""
    used = -(-d // 16) * 16
    if d <= 64:
        return [Shape(64, 128, consumers, causal=causal, half=half, used=used) for consumers in (3, 2)]
    if d <= 128:
        return [Shape(128, keys, causal=causal, half=half, used=used) for keys in ((128,) if causal else (176, 128))]
    wide, keys = (192, 112) if d <= 192 else (256, 80)
    return [Shape(wide, keys, causal=causal, half=half, turns=False, used=used)]


LARGER = 1.2
"""Times that a tile of 192 rows, or of 176 keys, takes of one of 128, for 1.5 and 1.375 times the pairs. On an H200 the ratios that were measured
follow from that, and from BESIDES, within 3 % in 12 of 16 cases and within 6 % in all (results/attention_h200)."""
BESIDES = 0.5
"""A tile's loads of q, last scaling and stores, in tiles of 128 keys by as many rows."""


@functools.lru_cache(maxsize=1024)
def shape_for(d: int, causal: bool, half: bool, nq: int, nk: int, offset: int, heads: int, grid: int) -> Shape:
    """Return the shape whose blocks end first on `grid` multiprocessors, of `heads` (batch, head)s in all.

    Few rows leave much of a tile of 192 empty, few keys much of one of 176, and few tiles of rows are one round however large they are.
    """

    def cost(shape: Shape) -> float:
        rows = shape.rows / 128
        costs = [keys * (LARGER if rows > 1 or shape.keys > 128 else 1.0) + BESIDES * rows for keys in key_tiles(shape, nq, nk, offset)]
        tiles = len(costs) * heads
        return max(sum(costs) * heads / min(grid, tiles), max(costs)) if causal else -(-tiles // grid) * costs[0]

    return min(shapes(d, causal, half), key=cost)


def key_tiles(shape: Shape, nq: int, nk: int, offset: int) -> list[int]:
    """Return how many tiles of keys each tile of rows sees."""
    ends = range(shape.rows, nq + shape.rows, shape.rows)
    return [-(-(min(nk, min(end, nq) + offset) if shape.causal else nk) // shape.keys) for end in ends]


@functools.lru_cache(maxsize=1024)
def together(shape: Shape, heads: int, fit: int, nq: int, nk: int, offset: int, grid: int) -> int:
    """Return of how many (batch, head)s a causal attention walks over all tiles before it comes to the next, so that blocks end as one.

    `fit`: as many as L2 has room for the keys of. Each section begins with its longest tiles, which may meet the same blocks each time: with one
    number for all the slowest block had 1.1 to 1.7 times the mean, with these 1.00 to 1.04 (simulated for 132 blocks, 512 to 16,384 rows).
    """
    most = min(fit, heads)
    tried = {1 << k for k in range(most.bit_length())} | {most} | ({heads} if 4 * heads <= grid else set())
    costs = [tiles + 1 for tiles in key_tiles(shape, nq, nk, offset)]  # one for what a tile begins and ends with
    worst = {count: _slowest(costs, heads, count, grid) for count in tried}
    return min(tried, key=lambda count: (round(worst[count], 2), count))


def _slowest(costs: list[int], heads: int, count: int, grid: int) -> float:
    """Return the longest time of a block over the mean, by the kernel's walk."""
    order = [cost for first in range(0, heads, count) for cost in reversed(costs) for _ in range(min(count, heads - first))]
    loads = [0] * grid
    for index, cost in enumerate(order):
        turn, at = divmod(index, grid)
        loads[grid - 1 - at if turn % 2 else at] += cost
    return max(loads) * grid / sum(loads)


@functools.cache
def kernel_of(device: int, shape: Shape) -> driver.Kernel:
    """Return the kernel, built and loaded once."""
    with torch.cuda.device(device):
        code = driver.machine_code(shape.source(), "90a", shape.defines())
        return driver.Kernel(code, "flash_hopper", ("128s", "128s", "128s", *"PqqqPqqqffiiiiiiiii"), 128 * (1 + shape.consumers), shape.shared)


@functools.cache
def _device(index: int) -> tuple[bool, int]:
    """Return whether it is a Hopper GPU, and its multiprocessors."""
    found = torch.cuda.get_device_properties(index)
    return (found.major, found.minor) == (9, 0), found.multi_processor_count


def takes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False, offset: int = 0) -> bool:
    """Does the kernel take these? [b, h, n, d] in 16 bits on a Hopper GPU, heads of up to WIDEST numbers, a multiple of 8, no row without a key."""
    d, alike = q.shape[-1], q.dtype == k.dtype == v.dtype and q.dtype in (torch.bfloat16, torch.float16)
    sizes = q.dim() == k.dim() == 4 and k.shape == v.shape and q.shape[0] == k.shape[0] and d == k.shape[3]
    if not (alike and sizes and 0 < d <= WIDEST and d % 8 == 0 and min(q.numel(), k.numel()) > 0 and q.shape[1] % k.shape[1] == 0):
        return False
    within = max(*q.shape[2:], *k.shape[2:]) < 1 << 30 and q.shape[0] * q.shape[1] * -(-q.shape[2] // 128) < 1 << 30
    return within and (offset >= 0 or not causal) and q.is_cuda and q.device == k.device == v.device and _device(q.device.index)[0]


def fetched(x: torch.Tensor) -> torch.Tensor:
    """Return x [b, h, n, d] as the copy engine takes it: rows contiguous, addresses and strides of 16 bytes. A copy where it lies otherwise."""
    steps = [step for step, size in zip(x.stride()[:3], x.shape[:3], strict=True) if size > 1]
    good = x.stride(3) == 1 and x.data_ptr() % 16 == 0 and all(step > 0 and step % 8 == 0 and step < 1 << 38 for step in steps)
    return x if good else x.clone(memory_format=torch.contiguous_format)


def _map(x: torch.Tensor, rows: int) -> bytes:
    """Return the copy engine's description of x [b, h, n, d] in boxes of 64 numbers of `rows` rows."""
    b, h, n, d = x.shape
    strides, least = [], 2 * d
    for step, size in zip(x.stride()[2::-1], (n, h, b), strict=True):  # of an axis of one element any stride does that is no overlap
        strides.append(2 * step if size > 1 else least)
        least = strides[-1] * size
    return driver.tensor_map(x.data_ptr(), (d, n, h, b), tuple(strides), (64, rows, 1, 1), 2)


def _lowered(sinks: torch.Tensor, cap: float) -> torch.Tensor:
    """Return sinks as the kernel has them: in powers of two, and beside capped scores, which it has less the cap."""
    return (sinks.float() - cap) * math.log2(math.e)


@driver.on_its_device
def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, causal: bool = False, offset: int = 0, turned: bool = False,
    cap: float = 0.0, sinks: torch.Tensor | None = None, shape: Shape | None = None,
) -> torch.Tensor:  # fmt: skip
    """Return softmax(scale q k^T) v [b, h, nq, d] of q [b, h, nq, d], k and v [b, kv heads, nk, d], as `takes` has them.

    Row i sees keys up to i + offset where `causal`. `scale` is above 0. `turned`: the result lies as [b, nq, h, d]. `cap`, up to MOST_CAP: above 0,
    scores are cap tanh(scale q k / cap). `sinks` [b, h, nq, 1], or what broadcasts to that: of each row one score more, of no value. `shape`: what
    `shape_for` chooses if None. Raises UsageError for other tensors.
    """
    if not takes(q, k, v, causal, offset) or not scale > 0 or not 0 <= cap <= MOST_CAP:
        said = f"saw {[tuple(x.shape) for x in (q, k, v)]} of {q.dtype} on {q.device}, scale {scale}, offset {offset}, cap {cap}"
        expected = f"expected heads of one size up to {WIDEST}, a multiple of 8, in 16 bits on a Hopper GPU, scale > 0, offset >= 0"
        raise UsageError(f"{expected}, a cap up to {MOST_CAP}; {said}")
    q, k, v = (fetched(x) for x in (q, k, v))
    (b, h, nq, d), kv, nk, device = q.shape, k.shape[1], k.shape[2], q.device.index
    offset, multiprocessors = min(offset, nk), _device(device)[1]
    shape = shape or shape_for(d, causal, q.dtype == torch.float16, nq, nk, offset, b * h, multiprocessors)
    shape = shape._replace(capped=cap > 0, sinks=sinks is not None)
    lowered = _lowered(sinks, cap).expand(b, h, nq, 1) if sinks is not None else None
    bend, factor = (2.0 * scale / cap, 2.0 * cap) if cap else (0.0, scale)
    y = q.new_empty((b, nq, h, d)).transpose(1, 2) if turned else q.new_empty((b, h, nq, d))
    blocks = -(-nq // shape.rows)
    tiles = blocks * b * h
    grid = min(multiprocessors, tiles)
    walked = together(shape, b * h, max(L2 // (4 * nk * d) * (h // kv), 1), nq, nk, offset, grid) if causal else 1
    with torch.cuda.device(device):
        kernel_of(device, shape)(
            grid, torch.cuda.current_stream().cuda_stream, _map(q, shape.rows), _map(k, shape.keys), _map(v, shape.keys),
            y.data_ptr(), *y.stride()[:3], *((0,) * 4 if lowered is None else (lowered.data_ptr(), *lowered.stride()[:3])),
            factor * math.log2(math.e), bend * math.log2(math.e), h, h // kv, nq, nk, offset, blocks, tiles, walked, d,
        )  # fmt: skip
    return y
