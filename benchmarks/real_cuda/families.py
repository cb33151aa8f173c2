"""What kernels of a kind compute, by their names and parameters: arguments at random, how they are launched, and the answer in float64.

A family is a regular expression of kernels' names and a function that makes a Case of a kernel. It knows neither repositories nor files: the layout
of the parameters and the template parameters' names (BM, TM, MMA_TILE_N, NUM_THREADS) say the rest. Outputs hold NaN, or zeros where a kernel adds to
them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

TYPES = {
    "float": torch.float32, "half": torch.float16, "__half": torch.float16, "__nv_bfloat16": torch.bfloat16, "int": torch.int32,
    "int32_t": torch.int32, "int8_t": torch.int8, "__nv_fp8_storage_t": torch.uint8,
}  # fmt: skip


@dataclass(frozen=True)
class Kernel:
    """What the text says of a kernel."""

    name: str
    parameters: Sequence[tuple[str, str]]
    """Name and text of each."""
    template: Mapping[str, str]
    """Template parameter -> its default, or empty."""

    @property
    def elements(self) -> int:
        """Return how many elements a thread takes, by the name: 4 of `relu_f32x4_kernel`."""
        match = re.search(r"(?:f32|f16|bf16|i8|i32|e\dm\d)x(\d+)|_(?:vec|x)(\d)", self.name)
        return int(match[1] or match[2]) if match else 1

    def number(self, name: str, otherwise: int = 1) -> int:
        """Return the default of a template parameter; it may name those before it."""
        text = self.template.get(name, "")
        return (
            int(eval(text.replace("/", "//"), {}, {"true": 1, "false": 0} | {one: self.number(one) for one in self.template if one in text}))
            if text
            else otherwise
        )

    def element(self, index: int) -> torch.dtype:
        """Return what a pointer points to."""
        word = re.sub(r"\b(const|__restrict__|unsigned)\b|[*&]", " ", self.parameters[index][1]).split()[0]
        return TYPES[word]

    @property
    def half_sums(self) -> bool:
        """Say whether a reduction is kept in halves: `..._f16_f16_kernel`, or a product of halves."""
        return re.search(r"f16(x\d+)?(_pack)?_f16|fp8_\w+_f16|^hgem[mv]", self.name) is not None


@dataclass(frozen=True)
class Case:
    """One call of a kernel."""

    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: list[Any]
    wanted: Mapping[int, torch.Tensor]
    """Index of an output -> the right answer."""
    tolerance: float
    """Of the largest wanted value."""
    instance: str = ""
    """The template's arguments, where there are any."""
    shared: int = 0
    notes: str = field(default="", compare=False)


def random(dtype: torch.dtype, *shape: int, low: float = -2.0, high: float = 2.0) -> torch.Tensor:
    """Return values of a type, uniformly between two bounds."""
    values = torch.rand(shape, dtype=torch.float64) * (high - low) + low
    return values.round().to(dtype) if dtype in (torch.int32, torch.int8, torch.uint8) else values.to(dtype)


def empty(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Return an output that nobody has written."""
    return torch.full(shape, torch.nan if dtype.is_floating_point else -77, dtype=dtype)


def accuracy(kernel: Kernel, dtype: torch.dtype) -> float:
    """Return the tolerance that a type's arithmetic asks for."""
    if dtype == torch.bfloat16 or "bf16" in kernel.name:
        return 0.03
    return 0.03 if kernel.half_sums else {torch.float16: 0.004, torch.float32: 2e-5}.get(dtype, 0.0)


def blocks(count: int, size: int) -> int:
    return -(-count // size)


def threads_of(kernel: Kernel) -> tuple[int, str]:
    """Return the block of a kernel whose template says NUM_THREADS, and the template's arguments."""
    size = kernel.number("NUM_THREADS", 256 // kernel.elements)
    return size, str(size) if kernel.template else ""


UNARY: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu, "sigmoid": torch.sigmoid, "elu": torch.nn.functional.elu, "swish": torch.nn.functional.silu,
    "hardswish": torch.nn.functional.hardswish, "hardshrink": torch.nn.functional.hardshrink,
    "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
}  # fmt: skip


def unary(kernel: Kernel) -> Case:
    n, dtype = 4000, kernel.element(0)
    x = random(dtype, n, low=-4, high=4)
    right = UNARY[kernel.name.partition("_")[0]](x.double())
    tolerance = 0.01 if dtype == torch.float16 else 1e-5
    return Case((blocks(n, 256),), (256 // kernel.elements,), [x, empty(dtype, n), n], {1: right}, tolerance)


def add(kernel: Kernel) -> Case:
    n, dtype = 4000, kernel.element(0)
    a, b = random(dtype, n), random(dtype, n)
    return Case((blocks(n, 256),), (256 // kernel.elements,), [a, b, empty(dtype, n), n], {2: a.double() + b.double()}, accuracy(kernel, dtype))


def dot(kernel: Kernel) -> Case:
    n, dtype = 4096, kernel.element(0)
    a, b = random(dtype, n, low=0), random(dtype, n, low=0)
    size, instance = threads_of(kernel)
    right = (a.double() * b.double()).sum().reshape(1)
    return Case((n // (size * kernel.elements),), (size,), [a, b, torch.zeros(1), n], {2: right}, accuracy(kernel, dtype), instance)


def block_sum(kernel: Kernel) -> Case:
    n, dtype, out = 4096, kernel.element(0), kernel.element(1)
    if fp8 := re.search(r"e4m3|e5m2", kernel.name):
        kind = torch.float8_e4m3fn if fp8[0] == "e4m3" else torch.float8_e5m2
        values = random(torch.float32, n, low=0).to(kind)
        a, right = values.view(torch.uint8), values.double().sum()
    else:
        a = random(dtype, n, low=-100, high=100) if dtype == torch.int8 else random(dtype, n, low=0)
        right = a.double().sum()
    size = max(threads_of(kernel)[0], 64)  # a default of half a warp would have shuffles read lanes that are not there
    arguments = [a, torch.zeros(1, dtype=out), n]
    return Case((n // (size * kernel.elements),), (size,), arguments, {1: right.reshape(1)}, accuracy(kernel, dtype), str(size))


def histogram(kernel: Kernel) -> Case:
    n, bins = 4096, 37
    a = torch.randint(0, bins, (n,), dtype=torch.int32)
    right = torch.bincount(a, minlength=bins).double()
    return Case((n // 256,), (256 // kernel.elements,), [a, torch.zeros(bins, dtype=torch.int32), n], {1: right}, 0.0)


def embedding(kernel: Kernel) -> Case:
    n, rows, width, dtype = 48, 100, 512, kernel.element(1)
    index, weight = torch.randint(0, rows, (n,), dtype=torch.int32), random(dtype, rows, width)
    arguments = [index, weight, empty(dtype, n, width), n, width]
    return Case((n,), (width // kernel.elements,), arguments, {2: weight.double()[index.long()]}, 0.0)


def softmax(kernel: Kernel) -> Case:
    size, instance = threads_of(kernel)
    dtype, width = kernel.element(0), size * kernel.elements
    x = random(dtype, 24, width)
    return Case((24,), (size,), [x, empty(dtype, 24, width), x.numel()], {1: x.double().softmax(1)}, accuracy(kernel, dtype), instance)


def layer_norm(kernel: Kernel) -> Case:
    size, instance = threads_of(kernel)
    dtype, width = kernel.element(0), size * kernel.elements
    x, g, b = random(dtype, 24, width), 1.25, 0.5
    right = torch.nn.functional.layer_norm(x.double(), (width,)) * g + b
    return Case((24,), (size,), [x, empty(dtype, 24, width), g, b, 24, width], {1: right}, accuracy(kernel, dtype), instance)


def rms_norm(kernel: Kernel) -> Case:
    size, instance = threads_of(kernel)
    dtype, width = kernel.element(0), size * kernel.elements
    x, g = random(dtype, 24, width), 1.25
    right = x.double() * (x.double().square().mean(1, keepdim=True) + 1e-5).rsqrt() * g
    return Case((24,), (size,), [x, empty(dtype, 24, width), g, 24, width], {1: right}, accuracy(kernel, dtype), instance)


def rope(kernel: Kernel) -> Case:
    """Return a case of rotary embeddings: pairs side by side, `N` of the parameters is how many threads take a token."""
    tokens, pairs = 32, 128
    x = random(torch.float32, tokens, pairs, 2)
    angles = torch.arange(tokens, dtype=torch.float64)[:, None] / 10000.0 ** (torch.arange(pairs, dtype=torch.float64) / pairs)
    right = torch.view_as_real(torch.view_as_complex(x.double()) * torch.polar(torch.ones_like(angles), angles))
    threads = pairs // 2 if kernel.elements == 4 else pairs
    shape: tuple[tuple[int, ...], tuple[int, ...]]
    shape = ((tokens,), (threads,)) if "_v2_" in kernel.name else ((tokens * threads // 256,), (256,))
    return Case(*shape, [x, empty(torch.float32, tokens, pairs, 2), tokens, threads], {1: right}, 1e-4)


def transpose(kernel: Kernel) -> Case:
    rows, columns = (128, 128) if "diagonal" in kernel.name else (128, 192)
    dtype = kernel.element(0)
    x = random(dtype, rows, columns)
    if kernel.parameters[1][1].rstrip().endswith("M"):  # (in, M, N, out)
        return Case((columns // 32, rows // 32), (32, 32), [x, rows, columns, empty(dtype, columns, rows)], {3: x.double().T}, 0.0)
    wide = kernel.elements
    grid: tuple[int, ...]
    block: tuple[int, ...]
    if "2d" in kernel.name:
        by_row = "row2col" in kernel.name
        grid, block = (columns // (16 * (1 if by_row else wide)), rows // (16 * (wide if by_row else 1))), (16, 16)
    else:
        grid, block = (rows * columns // wide // 256,), (256,)
    return Case(grid, block, [x, empty(dtype, columns, rows), rows, columns], {1: x.double().T}, 0.0)


def with_sizes(kernel: Kernel) -> Kernel:
    """Return a kernel whose template gives no tile, with that of its name: `m16n8k16_mma2x4_warp4x4x2`, two stages."""
    parts = re.search(r"m(\d+)n(\d+)k(\d+)_mma(\d)x(\d)_warp(\d)x(\d)x(\d)", kernel.name)
    names = ("MMA_M", "MMA_N", "MMA_K", "MMA_TILE_M", "MMA_TILE_N", "WARP_TILE_M", "WARP_TILE_N", "WARP_TILE_K")
    if parts is None or kernel.template.get("MMA_M", "16"):
        return kernel
    told = {"A_PAD": "0", "B_PAD": "8", "K_STAGE": "2", **dict(zip(names, parts.groups(), strict=True))}
    return replace(kernel, template={name: told.get(name, "") for name in kernel.template})


def product(kernel: Kernel) -> Case:
    """Return a case of a matrix product; its tile and its block follow from the template's defaults."""
    kernel = with_sizes(kernel)
    t = kernel.template
    kind = next((one for one in ("MMA", "WMMA") if f"{one}_M" in t), "")
    if kind:
        tile_m = kernel.number(f"{kind}_M") * kernel.number(f"{kind}_TILE_M") * kernel.number("WARP_TILE_M")
        tile_n = kernel.number(f"{kind}_N") * kernel.number(f"{kind}_TILE_N") * kernel.number("WARP_TILE_N")
        block: tuple[int, ...] = (32 * kernel.number(f"{kind}_TILE_M") * kernel.number(f"{kind}_TILE_N"),)
    else:
        tile_m, tile_n = kernel.number("BM", 32), kernel.number("BN", 32)
        block = (tile_n // kernel.number("TN"), tile_m // kernel.number("TM"))
    m, n, k = 2 * tile_m, 3 * tile_n if tile_n < 128 else tile_n, 128
    dtype, out = kernel.element(0), kernel.element(2)
    a, b = random(dtype, m, k, low=-1, high=1), random(dtype, k, n, low=-1, high=1)
    given = b.T.contiguous() if "_tn_" in kernel.name else b
    instance = ", ".join("false" if name == "BLOCK_SWIZZLE" else str(kernel.number(name)) for name in t if not name.startswith("COLLECTIVE"))
    tolerance = 2e-3 if "tf32" in kernel.name or "m16n16k8" in kernel.name else accuracy(kernel, dtype)
    shared = 98304 if "dsmem" in kernel.name else 0
    return Case((n // tile_n, m // tile_m), block, [a, given, empty(out, m, n), m, n, k], {2: a.double() @ b.double()}, tolerance, instance, shared)


def matrix_vector(kernel: Kernel) -> Case:
    m, k, dtype = 64, 16 if "_k16_" in kernel.name else 256, kernel.element(0)
    a, x = random(dtype, m, k, low=-1, high=1), random(dtype, k, low=-1, high=1)
    rows = 4 * kernel.number("ROW_PER_WARP")
    instance = str(kernel.number("ROW_PER_WARP")) if kernel.template else ""
    return Case((m // rows,), (32, 4), [a, x, empty(dtype, m), m, k], {2: a.double() @ x.double()}, accuracy(kernel, dtype), instance)


def rounded(kernel: Kernel) -> Case:
    n = 4096
    x = random(torch.float32, n)
    return Case((n // 1024,), (256,), [x, empty(torch.float32, n), n], {1: x.double()}, 5e-4)


def merged(kernel: Kernel) -> Case:
    """Return a case of two partial attentions that become one."""
    tokens, heads, width = 20, 6, 64
    one, two = random(torch.float32, tokens, heads, width), random(torch.float32, tokens, heads, width)
    lse_one, lse_two = random(torch.float32, heads, tokens), random(torch.float32, heads, tokens)
    both = torch.stack([lse_one, lse_two]).double()
    weights = both.softmax(0).permute(0, 2, 1)[..., None]
    right = weights[0] * one.double() + weights[1] * two.double()
    arguments = [torch.full_like(one, torch.nan), torch.full_like(lse_one, torch.nan), one, lse_one, two, lse_two, tokens, heads, width]
    grid = blocks(tokens * heads * width // 4, 128)
    return Case((grid,), (128,), arguments, {0: right, 1: both.logsumexp(0)}, 1e-5, "float, 128")


def attention(kernel: Kernel) -> Case:
    """Return a case of attention over blocks of 64 rows and columns; a letter behind `swizzle_` names a tile that is swizzled instead of padded."""
    heads, rows, width = 4, 128, 64
    tiles = {"kMmaTileSeqLenQ": 4, "kMmaTileSeqLenP": 4, "kWarpTileSeqLenK": 8, "kWarpTileHeadDimV": width // 8, "kHeadDim": width}
    if "split_kv" in kernel.name:
        tiles |= {"kMmaTileSeqLenQ": 2, "kMmaTileSeqLenK": 4, "kMmaTileSeqLenP": 2, "kMmaTileHeadDimV": 4}
        tiles |= {"kWarpTileSeqLenQ": 2, "kWarpTileSeqLenK": 2, "kWarpTileSeqLenP": 2, "kWarpTileHeadDimV": width // 32}
    tiles |= {"kMmaAtomM": 16, "kMmaAtomN": 8, "kMmaAtomK": 16}
    swizzled = (re.search(r"swizzle_([qkv]+)", kernel.name) or ["", ""])[1]
    tiles |= {f"kPad{letter.upper()}": 0 if letter in swizzled else 8 for letter in "qkv"} | {"kPad": 8}
    q, k, v = (random(torch.float16, heads, rows, width, low=-1, high=1) for _ in range(3))
    right = torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double())
    threads = 32 * tiles["kMmaTileSeqLenQ"] * tiles.get("kMmaTileSeqLenK", 1)
    instance = ", ".join(str(tiles.get(name, 1)) for name in kernel.template)
    if swizzled.endswith("v") and "tiling_qkv" not in kernel.name:  # these take V by columns, as their folder's script hands it over
        v = v.transpose(1, 2).contiguous()
    arguments = [q, k, v, empty(torch.float16, heads, rows, width), rows, 2]
    return Case((rows // 64, heads), (threads,), arguments, {3: right}, 0.01 if "acc_f32" in kernel.name else 0.03, instance, 98304)


FAMILIES: tuple[tuple[str, Callable[[Kernel], Case]], ...] = (
    (rf"^({'|'.join(UNARY)})(_|$)", unary), (r"^elementwise_add", add), (r"^dot(_|$)", dot), (r"all_reduce_sum", block_sum),
    (r"^histogram", histogram), (r"^embedding_", embedding), (r"softmax\w*_per_token", softmax), (r"^layer_norm", layer_norm),
    (r"^rms_norm", rms_norm), (r"^rope_", rope), (r"^mat_trans", transpose), (r"^[sh]gemv_", matrix_vector), (r"^[sh]gemm|^mma_simple", product),
    (r"tf32x4_kernel", rounded), (r"^merge_attn", merged), (r"^flash_attn_mma", attention),
)  # fmt: skip


def case_of(kernel: Kernel) -> Case | None:
    """Return a case of a kernel; None where no family knows its name and as many parameters."""
    for pattern, make in FAMILIES:
        if re.search(pattern, kernel.name):
            torch.manual_seed(0)
            case = make(kernel)
            return case if len(case.arguments) == len(kernel.parameters) else None
    return None
