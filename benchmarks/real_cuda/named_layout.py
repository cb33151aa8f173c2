"""Cases of ggml's kernels that move, sort, sum or combine elements: copies, rows by index, padding, broadcasts, scans."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn import functional

from benchmarks.real_cuda.families import Case, blocks, empty, random
from benchmarks.real_cuda.named_quantised import all_of, fast_divisor

F, H, WORDS = torch.float32, torch.float16, torch.int32
EXACT, CLOSE = 0.0, 2e-5


def strides(*sizes: int, element: int = 1) -> list[int]:
    """Return the strides of contiguous sizes, fastest first."""
    made = [element]
    for size in sizes[:-1]:
        made.append(made[-1] * size)
    return made


def add_by_index() -> Case:
    x, bias, index = random(F, 4, 5, 40), random(F, 9, 40), torch.randint(0, 9, (4, 5), dtype=WORDS)
    arguments = [x, bias, index, empty(F, 4, 5, 40), 40, 5, 160, 800, 160, 20]
    return Case((5, 4), (40,), arguments, {3: x.double() + bias.double()[index.long()]}, CLOSE)


def numbered() -> Case:
    right = torch.arange(300, dtype=torch.float64).expand(7, 300)
    return Case((2, 7), (256,), [empty(WORDS, 7, 300), 300, 7], {0: right}, EXACT)


def sorted_indices(order: str) -> Case:
    x = random(F, 9, 200)
    right = x.argsort(1, descending=order == "DESC").double()
    return Case((9,), (256,), [x, empty(WORDS, 9, 200), 200, 256], {1: right}, EXACT, f"GGML_SORT_ORDER_{order}", 1024)


def broadcast(unravelled: bool) -> Case:
    """Return a case of an operation of (3, 4, 5, 24) and (1, 4, 1, 24) elements."""
    x, y = random(F, 3, 4, 5, 24), random(F, 1, 4, 1, 24)
    sizes = [24, 5, 4, 3]
    of_dst, of_x, of_y = strides(*sizes), strides(*sizes), strides(24, 1, 4, 1)
    small = [fast_divisor(n) for n in (24, 1, 4, 1)]
    tail = [*of_dst[1:], *of_x, *of_y]
    instance = "op_mul, float, float, float"
    if unravelled:
        head: list[object] = [*(fast_divisor(n) for n in sizes[:3]), 3, fast_divisor(24 * 5 * 4), fast_divisor(24 * 5), *small]
        shape: tuple[tuple[int, ...], tuple[int, ...]] = (blocks(1440, 128),), (128,)
    else:
        head = [24, 5, 4, fast_divisor(3), *small]
        shape = (1, 2, 6), (24, 4, 2)
    return Case(*shape, [x, y, empty(F, *x.shape), *head, *tail], {2: x.double() * y.double()}, CLOSE, instance)


def repeated_back() -> Case:
    x = random(F, 6, 4, 9, 40)
    right = x.double().reshape(2, 3, 2, 2, 3, 3, 2, 20).sum((0, 2, 4, 6))
    arguments = [x, empty(F, 3, 2, 3, 20), 40, 9, 4, 6, *strides(40, 9, 4, 6), 20, 3, 2, 3]
    return Case((1, 3, 6), (32, 1, 1), arguments, {1: right}, CLOSE, "float")


def columns_to_signal(dtype: torch.dtype) -> Case:
    """Return a case of the adjoint of im2col in one dimension."""
    steps, channels, width, stride = 21, 5, 6, 2
    x = random(dtype, steps, channels * width)
    right = functional.fold(x.double().T[None], (1, (steps - 1) * stride + width), (1, width), stride=(1, stride))[0, :, 0]
    n = right.shape[1]
    arguments = [x, empty(dtype, channels, n), steps, fast_divisor(n), channels, width, channels * width, stride, 0, channels * n]
    name, tolerance = ("float", CLOSE) if dtype == F else ("half", 2e-3)
    return Case((blocks(channels * n, 256),), (256,), arguments, {1: right}, tolerance, name)


def joined() -> Case:
    x, y = random(F, 2, 3, 5, 30), random(F, 2, 3, 4, 30)
    of_x, of_y, of_dst = (strides(30, rows, 3, 2, element=4) for rows in (5, 4, 9))
    arguments = [x, y, empty(F, 2, 3, 9, 30), 30, 5, 3, 2, *of_x, 30, 4, 3, 2, *of_y, 30, 9, 3, 2, *of_dst]
    return Case((9, 3, 2), (64,), arguments, {2: torch.cat([x, y], 2).double()}, EXACT, "float, 1")


def converted() -> Case:
    x = random(H, 2, 3, 5, 70)
    wide = x[..., :50].double()
    return Case((1, 5, 6), (256,), [x, empty(F, *wide.shape), 50, 5, 6, fast_divisor(3), 70, 350, 1050], {1: wide}, EXACT, "half, float")


def copied() -> Case:
    """Return a case of a transposed copy, elements one by one."""
    x = random(F, 2, 3, 20, 30)
    right = x.double().transpose(2, 3).half().double()
    arguments = [x, empty(H, 2, 3, 30, 20), x.numel(), 20, 30, 3, 120, 4, 2400, 7200, 20, 30, 3, 2, 40, 1200, 3600]
    return Case((blocks(x.numel(), 64),), (64,), arguments, {1: right}, EXACT, "cpy_1_scalar<float, half>")


def copied_in_tiles() -> Case:
    x = random(F, 10, 70, 50)
    right = x.double().transpose(1, 2)
    rest = [0] * 14
    rest[0], rest[1], rest[2] = 70, 50, 10
    return Case((2, 3, 2), (32, 8), [x, empty(F, 10, 50, 70), x.numel(), *rest], {1: right}, EXACT, "float")


def copied_flat() -> Case:
    x = random(F, 1000)
    return Case((blocks(1000, 64),), (64,), [x, empty(H, 1000), 1000], {1: x.half().double()}, EXACT, "float, half")


def running_sum(with_cub: bool) -> Case:
    x = random(F, 2, 3, 4, 1500)
    sizes = strides(1500, 4, 3, 2)[1:]
    given = [1500, 4, 3, 2, *sizes, *sizes] if with_cub else [1500, 4, 3, 2, 1, *sizes, 1, *sizes]
    right = x.double().cumsum(3)
    return Case((4, 3, 2), (256,), [x, empty(F, *x.shape), *given], {1: right}, 1e-5, "float, 256" if with_cub else "float", 4 * (256 + 8 + 2))


def rows_taken(vectors: bool) -> Case:
    x, index = random(F, 2, 10, 48), torch.randint(0, 10, (2, 7), dtype=WORDS)
    right = torch.stack([x[plane].double()[index[plane].long()] for plane in range(2)])
    where = [48, 7 * 48, 14 * 48, 192, 1920, 3840, 1, 7, 14]
    head = [12, 2, fast_divisor(1)] if vectors else [48, 2, fast_divisor(1)]
    return Case((7, 1, 2), (32,), [x, index, empty(F, 2, 7, 48), *head, *where], {2: right}, EXACT, "float" if vectors else "float, float")


def rows_taken_back() -> Case:
    grad, index = random(F, 20, 48), torch.randint(0, 9, (20,), dtype=WORDS)
    right = torch.zeros(9, 48, dtype=torch.float64).index_add_(0, index.long(), grad.double())
    return Case((2, 9), (32,), [grad, index, empty(F, 9, 48), 48, 20, 9], {2: right}, CLOSE, "float, float")


def rows_stored() -> Case:
    x, index = random(F, 5, 40), torch.randperm(9)[:5].contiguous()
    right = torch.zeros(9, 40, dtype=torch.float64)
    right[index] = x.half().double()
    arguments = [x, index, torch.zeros(9, 40, dtype=H), 200, 5, 1, 1, 1, 40, 200, 200, 1, 5, 5, 40, 360, 360, fast_divisor(40), fast_divisor(5),
                 fast_divisor(1), fast_divisor(1), fast_divisor(1)]  # fmt: skip
    return Case((2,), (128,), arguments, {2: right}, EXACT, "float, int64_t, half")


def padded(circular: bool) -> Case:
    x = random(F, 2, 3, 4, 20)
    left, right_ = (3, 1, 0, 1), (2, 2, 1, 0)
    around = [n for pair in zip(left, right_, strict=True) for n in pair]
    sizes = [n + a + b for n, a, b in zip((20, 4, 3, 2), left, right_, strict=True)]
    wide = x.double()
    if circular:
        for axis, (a, n) in enumerate(zip(left, (20, 4, 3, 2), strict=True)):
            wide = wide.index_select(3 - axis, (torch.arange(sizes[axis]) - a) % n)
    else:
        wide = functional.pad(wide, around)
    arguments = [x, *strides(20, 4, 3, 2), empty(F, *wide.shape), *around, *sizes, circular]
    return Case((1, sizes[1], sizes[2] * sizes[3]), (64,), arguments, {5: wide}, EXACT)


def reflected() -> Case:
    x = random(F, 2, 3, 4, 30)
    right = functional.pad(x.double().reshape(1, 24, 30), (3, 5), mode="reflect").reshape(2, 3, 4, 38)
    arguments = [x, empty(F, 2, 3, 4, 38), 38, 30, fast_divisor(4), 3, 2, *strides(30, 4, 3, 2, element=4), *strides(38, 4, 3, 2, element=4), 3, 5]
    return Case((4, 3, 2), (64,), arguments, {1: right}, EXACT)


def triangle(lower: bool) -> Case:
    x = random(F, 2, 3, 40, 40)
    sizes = strides(40, 40, 3, 2)
    right = x.double().tril(-1) if lower else x.double().triu(1)
    instance = "float, true, 0" if lower else "float, false, 1"
    return Case((40, 3, 2), (64,), [x, empty(F, *x.shape), 40, 40, 3, 2, *sizes, *sizes], {1: right}, EXACT, instance)


def addresses() -> Case:
    """Return a case of the addresses of a batch of products, counted from 0."""
    wide, tall = torch.meshgrid(torch.arange(4), torch.arange(6), indexing="ij")
    right = {3: 4 * (wide // 2 * 900 + tall // 3 * 100), 4: 4 * (wide * 1800 + tall * 300), 5: 4 * (wide * 240 + tall * 40)}
    outputs = [torch.full((4, 6), -1, dtype=torch.int64) for _ in range(3)]
    arguments = [None, None, None, *outputs, 6, 4, 3, 2, 100, 900, 300, 1800, 40, 240]
    return Case((1, 1), (16, 16), arguments, {index: one.double() for index, one in right.items()}, EXACT)


def two_addresses() -> Case:
    index = torch.arange(24)
    right = {2: 4 * (index // 6 * 900 + index % 6 * 100), 3: 4 * (index // 6 * 240 + index % 6 * 40)}
    outputs = [torch.full((24,), -1, dtype=torch.int64) for _ in range(2)]
    return Case((1,), (256,), [None, None, *outputs, 6, 24, 100, 900, 40, 240], {at: one.double() for at, one in right.items()}, EXACT)


def experts(used: int, template: int) -> Case:
    """Return a case of the rows of tokens sorted by expert."""
    tokens, count = 37, 8
    ids = torch.stack([torch.randperm(count)[:used] for _ in range(tokens)]).to(WORDS)
    flat = [(int(ids[token, slot]), token, slot) for token in range(tokens) for slot in range(used)]
    order = sorted(flat, key=lambda one: one[:2])
    rows = torch.tensor([token * used + slot for _, token, slot in order], dtype=torch.float64)
    sources = torch.tensor([token * used + slot % used for _, token, slot in order], dtype=torch.float64)
    bounds = torch.tensor([sum(expert < e for expert, *_ in flat) for e in range(count + 1)], dtype=torch.float64)
    outputs = [empty(WORDS, tokens * used), empty(WORDS, tokens * used), empty(WORDS, count + 1)]
    arguments = [ids, *outputs, tokens, used, used, used, used, False]
    return Case((count,), (32,), arguments, {1: sources, 2: rows, 3: bounds}, EXACT, str(template), 4 * tokens)


def divided() -> Case:
    return Case((1,), (1,), [torch.tensor([21.0]), 6], {0: torch.tensor([3.5], dtype=torch.float64)}, CLOSE, "float")

def offsets() -> Case:
    return Case((1,), (256,), [empty(WORDS, 101), 37, 100], {0: 37 * torch.arange(101, dtype=torch.float64)}, EXACT)


def batch_addresses() -> Case:
    """Return a case of where a batched product's matrices lie, counted from 0: 3 planes of 4; the left factor has half as many a plane."""
    plane, matrix = torch.arange(3)[:, None], torch.arange(4)
    sources = torch.stack([16 * (matrix // 2) + 32 * plane, 24 * matrix + 96 * plane]).double()
    outputs = [torch.full((count, 3, 4), -1, dtype=torch.int64) for count in (2, 1)]
    arguments = [None, None, None, *outputs, 4, 3, 12, 16, 32, 24, 96, 32, 128, 2, 1]
    return Case((1, 1), (16, 16), arguments, {3: sources, 4: (32 * matrix + 128 * plane).double()[None]}, EXACT)


def reduced(wire: str) -> Case:
    """Return a case of one of two devices' sums: it keeps what it sends, and the other's part has arrived in every block."""
    n, blocks_of, token = 1003, 8, 7
    kind = {"float": F, "half": H, "nv_bfloat16": torch.bfloat16}[wire]
    x, other, mine = random(F, n), random(kind, n), torch.zeros(blocks_of * 16, dtype=WORDS)
    flags = torch.zeros(blocks_of * 16, dtype=torch.float64)
    flags[::16] = token
    arguments = [x, empty(F, n), empty(kind, n), other, n, mine, torch.full((blocks_of * 16,), token, dtype=WORDS), token]
    right = {1: x.to(kind).double() + other.double(), 2: x.to(kind).double(), 5: flags}
    return Case((blocks_of,), (64,), arguments, right, 1e-6, f"float, {wire}")


def added(wire: str) -> Case:
    kind = {"float": F, "half": H, "nv_bfloat16": torch.bfloat16}[wire]
    x, other = random(F, 1003), random(kind, 1003)
    return Case((3,), (128,), [x, other, 1003], {0: x.to(kind).double() + other.double()}, 1e-6, f"float, {wire}")



LAYOUT: dict[str, Callable[[], Case | list[Case]]] = {
    "add_id_kernel": add_by_index, "init_indices": numbered, "k_repeat_back": repeated_back, "concat_non_cont": joined, "convert_unary": converted,
    "k_argsort_f32_i32": all_of(lambda: sorted_indices("ASC"), lambda: sorted_indices("DESC")), "k_bin_bcast": lambda: broadcast(False),
    "k_bin_bcast_unravel": lambda: broadcast(True), "col2im_1d_kernel": all_of(lambda: columns_to_signal(F), lambda: columns_to_signal(H)),
    "cpy_scalar": copied, "cpy_scalar_transpose": copied_in_tiles, "cpy_scalar_contiguous": copied_flat, "cumsum_kernel": lambda: running_sum(False),
    "cumsum_cub_kernel": lambda: running_sum(True), "k_get_rows_float": lambda: rows_taken(False), "k_get_rows_float_vec": lambda: rows_taken(True),
    "k_get_rows_back_float": rows_taken_back, "k_set_rows": rows_stored, "pad_f32": all_of(lambda: padded(False), lambda: padded(True)),
    "pad_reflect_1d_kernel_f32": reflected, "tri_kernel": all_of(lambda: triangle(True), lambda: triangle(False)),
    "k_compute_out_prod_ptrs": addresses, "get_batch_pointers": two_addresses, "divide_by_count": divided,
    "init_offsets": offsets, "k_compute_batched_ptrs": batch_addresses,
    "ggml_cuda_ar_kernel": all_of(lambda: reduced("float"), lambda: reduced("nv_bfloat16")),
    "ggml_cuda_ar_add_kernel": all_of(lambda: added("float"), lambda: added("nv_bfloat16")),
    "mm_ids_helper": all_of(lambda: experts(3, 0), lambda: experts(2, 2), lambda: experts(4, 4)),
}  # fmt: skip
