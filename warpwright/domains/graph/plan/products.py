"""Products and attention: small ones by loops of the runtime, large ones by torch's library."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from warpwright.domains.graph.cpp.program import Unsupported
from warpwright.domains.graph.plan.memory import Place

SMALL = 1 << 20
"""Multiplications below which a loop of ours is faster than a call of torch's library, which costs about 2 us."""
LARGEST, MANY_ROWS = 1 << 27, 192
"""Multiplications up to which it may be on an AMD processor too, and rows from which on: with fewer, reading b takes longest, which MKL does better
where the caches do not hold it (64 x 512 x 512 took MKL 733 us and ours 880; 197 x 768 x 192 took 872 and 865, and 808 and 574 with b at hand)."""
SMALL_CONVOLUTION = 1 << 21
"""Of a convolution, all images together, where oneDNN's call costs 30 us or more: it lays weights out anew in each."""
DEEPEST = 2048
"""Inner size up to which the runtime has room (DEEPEST in runtime.cpp)."""
KEYS, WIDTH = 1024, 128
"""Largest number of keys and of numbers a head of the runtime's attention."""

LEAST_ROWS = 4
"""Filters of a group below which a product is too narrow to gain: depthwise convolutions are oneDNN's."""

Contiguous = Callable[[Place], Place]
"""Gives a contiguous copy of a tensor."""
Handle = Callable[[Place], str]
"""Gives the C++ expression of a tensor as torch's library takes it."""


def as_matrix(place: Place, contiguous: Contiguous) -> Place:
    """Return a tensor as [all dimensions but the last, the last], copied where that is no view."""
    run = place.joined(0, len(place.sizes) - 1)
    if run is None:
        return as_matrix(contiguous(place), contiguous)
    return place.viewed((run[0], place.sizes[-1]), (run[1], place.strides[-1]))


def as_row(bias: Place, columns: int, contiguous: Contiguous) -> Place:
    """Return a bias as `columns` numbers one after the other, as the runtime reads them, copied where they do not lie so."""
    row = bias.broadcast((columns,))
    return row if row.contiguous else contiguous(row)


def product(to: Place, a: Place, b: Place, bias: Place | None, handle: Handle) -> list[str]:
    """Return the lines of to = a b + bias, all of two dimensions but the bias of columns, a row (`as_row`)."""
    if any(place.dtype != torch.float32 for place in (to, a, b)):
        raise Unsupported(f"a product of {a.dtype}")
    (rows, inner), columns = a.sizes, b.sizes[1]
    if rows * inner * columns <= SMALL and inner <= DEEPEST and to.strides[1] in (0, 1):
        return [_call(to, a, b, bias)]
    own = _wide(to, a, b, bias) if rows * inner * columns <= LARGEST and rows >= MANY_ROWS else []
    if bias is None:
        return [*own, f"if (f_mm_out({handle(to)}, {handle(a)}, {handle(b)})) throw Failure{{@STEP}};"]
    return [*own, f"if (f_addmm_out({handle(to)}, {handle(bias)}, {handle(a)}, {handle(b)}, 1., 1.)) throw Failure{{@STEP}};"]


def _wide(to: Place, a: Place, b: Place, bias: Place | None) -> list[str]:
    """Return the line of a large product of ours, and "else"; nothing where the runtime has no room for it, or would write out of order."""
    if a.sizes[1] > DEEPEST or to.strides[1] not in (0, 1):
        return []
    arguments = [a.pointer, a.strides[0], a.strides[1], b.pointer, b.strides[0], b.strides[1], "nullptr" if bias is None else bias.pointer]
    arguments += [to.pointer, to.strides[0], to.sizes[0], to.sizes[1], a.sizes[1], "threads"]
    return [f"if (ours_is_faster) wide_product({', '.join(map(str, arguments))});", "else"]


def _call(to: Place, a: Place, b: Place, bias: Place | None, at: tuple[str, str, str] = ("", "", ""), by: str = "nullptr") -> str:
    """Return one call of the runtime's product; `at` are texts to add to the three pointers."""
    arguments = [f"{a.pointer}{at[1]}", a.strides[0], a.strides[1], f"{b.pointer}{at[2]}", b.strides[0], b.strides[1]]
    arguments += ["nullptr" if bias is None else bias.pointer, by, f"{to.pointer}{at[0]}", to.strides[0], to.sizes[0], to.sizes[1], a.sizes[1]]
    return f"product({', '.join(map(str, arguments))});"


def batched(to: Place, a: Place, b: Place, contiguous: Contiguous, handle: Handle) -> list[str]:
    """Return the lines of to = a b for each of the leading dimensions, which are broadcast."""
    if any(place.dtype != torch.float32 for place in (to, a, b)):
        raise Unsupported(f"a product of {a.dtype}")
    batch = to.sizes[:-2]
    a, b = a.broadcast((*batch, *a.sizes[-2:])), b.broadcast((*batch, *b.sizes[-2:]))
    one = math.prod(to.sizes[-2:]) * a.sizes[-1]
    if one <= SMALL and a.sizes[-1] <= DEEPEST and to.strides[-1] in (0, 1):
        parallel = one * math.prod(batch) > SMALL
        lines = _batch_loops(batch, parallel)
        at = [_batch_offset(place) for place in (to, a, b)]
        two = [place.viewed(place.sizes[-2:], place.strides[-2:]) for place in (to, a, b)]
        return [*lines, _call(two[0], two[1], two[2], None, (at[0], at[1], at[2]))]
    three = [_as_three(place, contiguous) for place in (to, a, b)]
    if three[0].memory is not to.memory:
        raise Unsupported("results of a large product that do not lie as one batch")
    return [f"if (f_bmm_out({', '.join(handle(place) for place in three)})) throw Failure{{@STEP}};"]


def _batch_loops(batch: tuple[int, ...], parallel: bool) -> list[str]:
    count = len(batch)
    if not parallel or not count:
        return [f"for (long i{d} = 0; i{d} < {size}; ++i{d})" for d, size in enumerate(batch)]
    collapse = f" collapse({count})" if count > 1 else ""
    return [f"#pragma omp parallel for schedule(static){collapse} num_threads(threads)"] + [
        f"for (long i{d} = 0; i{d} < {size}; ++i{d})" for d, size in enumerate(batch)
    ]


def _batch_offset(place: Place) -> str:
    """Return the text to add to a pointer inside of the loops over all dimensions but the last two."""
    return " + ".join(["", *(f"i{d} * {stride}L" for d, stride in enumerate(place.strides[:-2]) if stride)])


def _as_three(place: Place, contiguous: Contiguous) -> Place:
    run = place.joined(0, len(place.sizes) - 2)
    if run is None or 0 in place.strides[-2:]:
        return _as_three(contiguous(place), contiguous)
    return place.viewed((run[0], *place.sizes[-2:]), (run[1], *place.strides[-2:]))


def convolution(to: Place, x: Place, weight: Place, bias: Place | None, stride: Sequence[int], padding: Sequence[int], dilation: Sequence[int],
                groups: int, room: Callable[[Sequence[int]], Place]) -> list[str]:  # fmt: skip
    """Return the lines of a convolution as one product an image and a group; `room` gives a place for its columns.

        columns[c k, p] = x[c, p stride + k dilation - padding], zero outside        to[image] = weight columns + bias
    """
    kernel, outs = weight.sizes[2:], to.sizes[2:]
    inner, pixels = math.prod(weight.sizes[1:]), math.prod(outs)
    rows, channels = to.sizes[1] // groups, x.sizes[1] // groups
    flat = all(k == 1 and s == 1 and p == 0 for k, s, p in zip(kernel, stride, padding, strict=True))
    columns = None if flat else room((inner, pixels))
    lines = [f"for (long image = 0; image < {to.sizes[0]}; ++image)", f"for (long group = 0; group < {groups}; ++group) {{"]
    source = f"{x.pointer} + image * {x.strides[0]}L + group * {channels * x.strides[1]}L"
    if columns is not None:
        lines.append(f"const float* const from = {source}; float* to = {columns.pointer};")
        lines += [f"for (long c = 0; c < {channels}; ++c)"]
        lines += [f"for (long k{d} = 0; k{d} < {size}; ++k{d})" for d, size in enumerate(kernel)]
        last = len(kernel) - 1
        lines.append("{")
        for d, size in enumerate(outs[:last]):
            lines.append(f"for (long o{d} = 0; o{d} < {size}; ++o{d}) {{")
            lines.append(f"const long i{d} = o{d} * {stride[d]} + k{d} * {dilation[d]} - {padding[d]};")
            rest = math.prod(outs[d + 1 :])
            if padding[d]:
                lines.append(f"if ((unsigned long)i{d} >= {x.sizes[2 + d]}) {{ std::fill(to, to + {rest}, 0.f); to += {rest}; continue; }}")
        lines += _row_of_columns(outs[last], x.sizes[-1], stride[last], padding[last], dilation[last], last, x.strides)
        lines += [f"to += {outs[last]};", *["}"] * (last + 1)]
        source = columns.pointer
    filters = f"{weight.pointer} + group * {rows * inner}L"
    by = "nullptr" if bias is None else f"{bias.pointer} + group * {rows}"
    result = f"{to.pointer} + image * {to.strides[0]}L + group * {rows * to.strides[1]}L"
    arguments = [filters, inner, 1, source, pixels, 1, "nullptr", by, result, to.strides[1], rows, pixels, inner]
    return [*lines, f"product({', '.join(map(str, arguments))});", "}"]


def _row_of_columns(size: int, width: int, stride: int, padding: int, dilation: int, last: int, strides: Sequence[int]) -> list[str]:
    """Return the lines that copy what one row of results reads at one place of the kernel: a stretch, with zeros before and after it."""
    at = " + ".join([f"c * {strides[1]}L", *(f"i{d} * {strides[2 + d]}L" for d in range(last))])
    lines = [f"const float* const row = from + {at}; const long shift = k{last} * {dilation} - {padding};"]
    if not padding:
        return [*lines, f"for (long o = 0; o < {size}; ++o) to[o] = row[o * {stride} + shift];"]
    lines.append(f"const long first = std::min({size}L, std::max(0L, ({stride - 1} - shift) / {stride}));")
    lines.append(f"const long end = std::max(first, std::min({size}L, ({width + stride - 1} - shift) / {stride}));")
    lines.append("for (long o = 0; o < first; ++o) to[o] = 0.f;")
    lines.append(f"for (long o = first; o < end; ++o) to[o] = row[o * {stride} + shift];")
    return [*lines, f"for (long o = end; o < {size}; ++o) to[o] = 0.f;"]


def attention(to: Place, q: Place, k: Place, v: Place, mask: Place | None, causal: bool, scale: float, contiguous: Contiguous) -> list[str] | None:
    """Return the lines of attention over [batch, heads, queries, numbers]; None where it is too large for the runtime's."""
    heads = to.sizes[:-2]
    queries, keys, width, value_width = to.sizes[-2], k.sizes[-2], q.sizes[-1], v.sizes[-1]
    if any(place.dtype != torch.float32 for place in (q, k, v)) or keys > KEYS or max(width, value_width) > WIDTH:
        return None
    if mask is not None and mask.dtype not in (torch.bool, torch.float32):
        return None
    q, k, v = (place if place.strides[-1] == 1 or place.sizes[-1] == 1 else contiguous(place) for place in (q, k, v))
    q, k, v = (place.broadcast((*heads, *place.sizes[-2:])) for place in (q, k, v))
    room = (width + 4) * (-(-keys // 16) * 16)
    parallel = math.prod(heads) * queries * keys * (width + value_width) > SMALL
    lines = ["{", *_batch_loops(heads, parallel), "{", f"alignas(64) float room[{room}];"]
    seen = mask.broadcast((*heads, queries, keys)) if mask is not None else None
    at = [_batch_offset(place) for place in (q, k, v, to, seen or to)]
    hidden = ["(const float*)nullptr", 0, 0] if seen is None else [f"(const {seen.type}*)({seen.pointer}{at[4]})", seen.strides[-2], seen.strides[-1]]
    arguments: list[Any] = [f"{q.pointer}{at[0]}", q.strides[-2], f"{k.pointer}{at[1]}", k.strides[-2], f"{v.pointer}{at[2]}", v.strides[-2], *hidden]
    arguments += ["true" if causal else "false", f"{scale!r}f", f"{to.pointer}{at[3]}", to.strides[-2], "room", queries, keys, width, value_width]
    return [*lines, f"attend({', '.join(map(str, arguments))});", "}", "}"]
