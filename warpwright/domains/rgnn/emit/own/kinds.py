"""Products of rows with the weight of their node's type on small graphs: one launch for all types (kinds.cu), where torch takes one for each.

HGT's layer on aifb's graph, of seven types, has 44 such products in a training step; five launches stand for them and for what is done with their
results. Weights are given side by side, [types, parts * out, in]; rows lie by type.
"""

from __future__ import annotations

import functools
import itertools
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from warpwright.domains.rgnn import index as indices
from warpwright.domains.rgnn.emit.own import outer as rows_outer
from warpwright.domains.rgnn.emit.own.kernel import ALIGNED, Launch, Own, dense, loaded_together, numbers_of_a_check, unless_ordered, with_the_others

WIDEST = 256
"""Numbers of a row."""
SIDE, THREADS = 64, 256
"""Those of kinds.cu."""
PLACES = 32
"""Types whose rows may lie apart."""
FULL, MOST, SET_UP = 396, 8, 0.5
"""Blocks that an H200 runs at once, how many times SIDE rows a block takes at most, and what it takes besides (its weight), in times of SIDE rows.

So much fits its times: bgs' 94,806 rows with one weight take 33.5, 27.0, 29.0 and 24.4 us by blocks of 64, 128, 192 and 256 rows.
"""
BLOCKS = 512
"""Blocks of rows that a gradient is summed in, about: each adds its matrix to memory."""


@dataclass(frozen=True)
class Table:
    """What the blocks of a launch have of the rows: type, first row and rows of each, int32."""

    rows: torch.Tensor
    count: int


@functools.lru_cache(maxsize=64)
def _table(counts: tuple[int, ...], chosen: tuple[int, ...], each: int, device: torch.device) -> Table:
    starts = [0, *itertools.accumulate(counts)]
    spans = [(place, starts[kind] + at, min(each, counts[kind] - at)) for place, kind in enumerate(chosen) for at in range(0, counts[kind], each)]
    return Table(torch.tensor(spans, dtype=torch.int32).reshape(-1, 3).to(device), len(spans))


def table(counts: tuple[int, ...], chosen: tuple[int, ...], each: int, device: torch.device) -> Table:
    """Return the rows of the chosen types, of types of so many nodes, in blocks of at most `each`. A recording that is being made keeps it."""
    return indices.mention(_table(counts, chosen, each, device))


@functools.lru_cache(maxsize=256)
def rows_of_block(rows: int, others: int, full: int) -> int:
    """Return how many rows a block takes, where each row is taken by `others` and `full` blocks run at once: those that are done first."""

    def time(times: int) -> float:
        blocks = -(-rows // (SIDE * times)) * others
        return -(-blocks // full) * (times + SET_UP)

    return SIDE * min(range(1, MOST + 1), key=time)


@functools.lru_cache(maxsize=16)
def _types_of(counts: tuple[int, ...], device: torch.device) -> torch.Tensor:
    return torch.repeat_interleave(torch.arange(len(counts), dtype=torch.int32), torch.tensor(counts)).to(device)


@dataclass(frozen=True)
class Kinds:
    """The kernels on one device, for node types of `counts` rows: for all of them, or those `chosen`, whose weights alone are given."""

    launches: tuple[Launch, ...]
    counts: tuple[int, ...]
    chosen: tuple[int, ...] | None = None
    full: int = FULL

    def _tiles(self, like: torch.Tensor, columns: int, parts: int = 1, each: int = 0) -> tuple[torch.Tensor, int]:
        across = -(-columns // SIDE)
        each = each or rows_of_block(like.shape[-2], across * parts, self.full)
        work = table(self.counts, self.types, each, like.device)
        return work.rows, work.count * across

    @property
    def types(self) -> tuple[int, ...]:
        """The types whose rows are read and written; others are left as they are."""
        return tuple(range(len(self.counts))) if self.chosen is None else self.chosen

    def places_of(self, x: torch.Tensor | Sequence[torch.Tensor]) -> bytes:
        """Return where dense rows of all types lie, or those of each, which `apart` finds fit."""
        if isinstance(x, torch.Tensor):
            return places([x.data_ptr()])
        starts, width, parts = [0, *itertools.accumulate(self.counts)], x[0].shape[1], x
        return places([x.data_ptr() - 4 * width * starts[kind] for x, kind in zip(parts, self.types, strict=True)], True)

    def products(
        self, x: torch.Tensor | Sequence[torch.Tensor], weight: torch.Tensor, bias: torch.Tensor, parts: int, alone: int | None = None
    ) -> torch.Tensor:
        """Return x weight^T + bias of each row's type, [parts, rows, out]; rows x of all types, or of each (see `apart`). `alone`: of this part."""
        x = dense(x) if isinstance(x, torch.Tensor) else x
        kept, begin, parts = parts, alone or 0, parts if alone is None else 1
        rows, width, columns = sum(self.counts), weight.shape[2], bias.shape[1] // kept
        out = bias.new_empty(parts, rows, columns)
        work, blocks = self._tiles(out, columns, parts)
        if blocks:
            self.launches[0](blocks * parts, work, self.places_of(x), weight, bias, out, rows, width, columns, parts, 0, 0, kept, begin)
        return out

    def sums(self, parts: Sequence[torch.Tensor], weight: torch.Tensor, onto: torch.Tensor | None = None) -> torch.Tensor:
        """Return the sum of parts[p] @ the p-th part of each row's weight, the gradient of `products`'s rows; added to rows `onto`, if given."""
        given, columns = [dense(g) for g in parts], weight.shape[2]
        out = given[0].new_empty(given[0].shape[0], columns) if onto is None else onto
        work, blocks = self._tiles(out, columns)
        three = [given[min(p, len(given) - 1)] for p in range(3)]
        if blocks:
            self.launches[1](blocks, work, *three, weight, out, given[0].shape[1], columns, len(given), int(onto is not None))
        return out

    def gradients(
        self, parts: Sequence[torch.Tensor], x: torch.Tensor, gates: torch.Tensor | None = None, more: int = 0
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return of each type the sums over rows of parts^T x [types, parts * out, width] and of parts [types, parts * out], and `more` zeros.

        `gates` [types]: parts times the sigmoid of the type's gate, and x is GELU's argument.
        """
        given, (rows, width), columns, kinds = [dense(g) for g in parts], x.shape, parts[0].shape[1], len(self.types)
        alone = rows_outer.launcher(x.device) if gates is None and all(rows_outer.takes(x, g) for g in given) else None
        if alone is not None:
            return *self._by_outer(alone, given, x), x[:0, 0]
        size = kinds * len(given) * columns
        whole = x.new_zeros(size * (width + 1) + more)
        matrix, total, zeros = whole.split([size * width, size, more])
        work, blocks = self._tiles(x, columns, each=SIDE * max(1, -(-rows // (SIDE * BLOCKS))))
        three = [given[min(p, len(given) - 1)] for p in range(3)]
        if blocks:
            launch, tiles = self.launches[2], -(-width // SIDE)
            launch(blocks * len(given) * tiles, work, *three, dense(x), gates, matrix, total, width, columns, len(given), int(gates is not None))
        return matrix.view(kinds, -1, width), total.view(kinds, -1), zeros

    def together(self, parts: Sequence[torch.Tensor]) -> torch.Tensor | None:
        """Return rows of the types, each at its place among all types' rows, of which others are not written; None for rows that do not fit."""
        if not apart(parts):
            return None
        width = parts[0].shape[1]
        out, work = parts[0].new_empty(sum(self.counts), width), table(self.counts, self.types, 2 * SIDE, parts[0].device)
        if work.count:
            self.launches[5](work.count, work.rows, self.places_of(parts), out, width)
        return out

    def _by_outer(self, launch: Launch, parts: Sequence[torch.Tensor], x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the sums of `gradients` by the kernel of relations' weight gradients: node types of rows are as good as relations of pairs."""
        (rows, width), columns, kinds = x.shape, sum(g.shape[1] for g in parts), len(self.counts)
        matrix, total = x.new_zeros(kinds * columns * (width + 1)).split([kinds * columns * width, kinds * columns])
        matrix, total = matrix.view(kinds, width, columns), total.view(kinds, columns)
        of = indices.mention(_types_of(self.counts, x.device))
        if rows:
            rows_outer.add(launch, x, parts[0], matrix, total, (None, None, None, of), more=parts[1:])
        return matrix.transpose(1, 2).contiguous(), total

    def mixed(
        self, x: torch.Tensor | Sequence[torch.Tensor], out: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, gates: torch.Tensor,
        kept: bool = True,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:  # fmt: skip
        """Return x + share moved, and moved = gelu(out) weight^T + bias - x, if it is kept, where a type's share is the sigmoid of its gate.

        Rows x of all types, or of each of the types whose rows are read (see `apart`).
        """
        x, out = dense(x) if isinstance(x, torch.Tensor) else x, dense(out)
        result, moved = torch.empty_like(out), torch.empty_like(out) if kept else None
        work, blocks = self._tiles(out, out.shape[1])
        if blocks:
            self.launches[3](blocks, work, self.places_of(x), out, weight, bias, gates, moved, result, out.shape[1])
        return result, moved

    def unmixed(
        self, g: torch.Tensor, out: torch.Tensor, moved: torch.Tensor, weight: torch.Tensor, gates: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return the gradients of what `mixed` takes, in its order."""
        g, out = dense(g), dense(out)
        of_x, of_out = torch.empty_like(g), torch.empty_like(g)
        of_weight, of_bias, of_gates = self.gradients([g], out, gates, more=len(self.types))
        work, blocks = self._tiles(g, g.shape[1])
        if blocks:
            self.launches[4](blocks, work, g, out, moved, weight, gates, of_x, of_out, of_gates, g.shape[1])
        return of_x, of_out, of_weight, of_bias, of_gates


def apart(parts: Sequence[torch.Tensor]) -> bool:
    """Do the kernels take these rows of so many types where they lie?"""
    width, device = parts[0].shape[1], parts[0].device
    plain = all(x.dtype is torch.float32 and x.is_contiguous() and not x.data_ptr() % ALIGNED for x in parts)
    return plain and not width % 4 and len(parts) <= PLACES and all(x.shape[1] == width and x.device == device for x in parts)


def places(addresses: Sequence[int], apart: bool = False) -> bytes:
    """Return the kernels' Places: of the rows of each type, or of all types' rows."""
    return struct.pack(f"{PLACES}Qq", *(address % (1 << 64) for address in addresses), *[0] * (PLACES - len(addresses)), apart)


def product(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor | None = None) -> torch.Tensor | None:
    """Return x @ weight (+ bias) for rows of one type, without a table, as sampled batches have none; None where another product is used."""
    turned = weight.is_contiguous()
    whole = (y is None or (y.dtype is torch.float32 and y.is_contiguous() and not y.data_ptr() % ALIGNED) for y in (bias, out))
    plain = all(whole) and weight.dtype is torch.float32
    found = _launches(x.device) if plain and takes(x, weight.shape[1]) and (turned or weight.t().is_contiguous()) else None
    return None if found is None else multiplied(found[0], x, weight, bias, x.new_empty(len(x), weight.shape[1]) if out is None else out)


def multiplied(
    launch: Launch, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, out: torch.Tensor, full: int = FULL
) -> torch.Tensor:
    """Write x @ weight (+ bias) to `out` by a launch; `full`: see FULL."""
    (rows, width), columns, turned = x.shape, weight.shape[1], weight.is_contiguous()
    across = -(-columns // SIDE)
    each = rows_of_block(rows, across, full)
    if rows:
        given, weight = dense(x), weight if turned else weight.t()
        launch(-(-rows // each) * across, None, places([given.data_ptr()]), weight, bias, out, rows, width, columns, 1, int(turned), each, 1, 0)
    return out


def kinds(x: torch.Tensor, counts: tuple[int, ...], columns: int) -> Kinds | None:
    """Return the kernels for rows x [nodes, width] and results of `columns` numbers; None where torch's products are used."""
    if not takes(x, columns) or torch.compiler.is_compiling():
        return None
    found = _launches(x.device)
    return None if found is None else Kinds(found, counts)


def takes(x: torch.Tensor, columns: int) -> bool:
    """Do the kernels take these rows?"""
    plain = x.device.type == "cuda" and x.dtype is torch.float32 and x.is_contiguous()
    return plain and all(0 < size <= WIDEST and size % 4 == 0 for size in (x.shape[1], columns))


def _launches(device: torch.device) -> tuple[Launch, ...] | None:
    return unless_ordered(device, _loaded)


@functools.cache
def _loaded(device: torch.device) -> tuple[Launch, ...] | None:
    otherwise = "products by node type are made by torch, which is slower"
    return loaded_together(OWN, device, lambda *launches: launches, right, otherwise)


CHECKED = (20, 12), (2 * SIDE + 4, SIDE + 4)
"""Widths of rows and results of the examples: in the second, rows and results take several steps and tiles, and so do a block's rows."""


def right(launches: tuple[Launch, ...], device: torch.device) -> bool:
    """Are the results of small examples right?"""
    return all(right_on(launches, device, *widths) for widths in CHECKED)


def right_on(launches: tuple[Launch, ...], device: torch.device, width: int = 20, columns: int = 12) -> bool:
    """Are the results of a small example right? A type has no nodes, and one has more than a block."""
    random, counts = numbers_of_a_check(), (70, 0, 5)

    def drawn(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=random).to(device)

    own = Kinds(launches, counts, full=1)  # a block goes through all rows of the first type
    rows = sum(counts)
    x, weight, bias, gates = drawn(rows, width), drawn(3, 3 * columns, width), drawn(3, 3 * columns), drawn(3)
    out, square, start, parts, g = (
        drawn(rows, width),
        drawn(3, width, width),
        drawn(3, width),
        [drawn(rows, columns) for _ in range(3)],
        drawn(rows, width),
    )
    result, moved = own.mixed(x, out, square, start, gates)
    assert moved is not None
    one = square[0], square[1].t()
    simple = [multiplied(launches[0], x, one[0], start[0], torch.empty_like(x), 1), multiplied(launches[0], x, one[1], None, torch.empty_like(x))]
    onto = own.sums(parts, weight, x.clone())
    lying = [y.clone() for y in x.split(counts)]
    beside = own.together(lying)
    simple += [x.new_zeros(1) if beside is None else beside, own.mixed(x, out, square, start, gates, False)[0] - result]
    simple += [own.products(lying, weight, bias, 3, alone) for alone in (None, 1)] + [own.mixed(lying, out, square, start, gates, False)[0] - result]
    found = [*simple, onto, own.products(x, weight, bias, 3), own.sums(parts, weight), *own.gradients(parts, x)[:2], result]
    found += own.unmixed(g, out, moved, square, gates)
    exact = plain(counts, x, weight, bias, parts)
    wide = x.double()
    wanted = [torch.addmm(start[0].double(), wide, one[0].double()), wide @ one[1].double(), wide, 0.0 * wide, exact[0], exact[0][1:2], 0.0 * wide]
    wanted += [wide + exact[1], *exact]
    wanted += plain_ends(counts, x, out, square, start, gates, g)
    return all(float((a.double() - b).norm()) <= 1e-5 * float(b.norm()) for a, b in zip(found, wanted, strict=True))


def plain(counts: Sequence[int], x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, parts: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return in float64 what `products`, `sums` and `gradients` give."""
    rows, whole = x.double().split(list(counts)), torch.cat(list(parts), 1).double().split(list(counts))
    done = torch.cat([F.linear(one, w, b) for one, w, b in zip(rows, weight.double(), bias.double(), strict=True)])
    sums = torch.cat([g @ w for g, w in zip(whole, weight.double(), strict=True)])
    matrix = torch.stack([g.t() @ one for g, one in zip(whole, rows, strict=True)])
    return [torch.stack(done.chunk(len(parts), 1)), sums, matrix, torch.stack([g.sum(0) for g in whole])]


def plain_ends(
    counts: Sequence[int], x: torch.Tensor, out: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, gates: torch.Tensor, g: torch.Tensor
) -> list[torch.Tensor]:
    """Return in float64 the result of `mixed`, and what `unmixed` gives."""
    with torch.enable_grad():
        given = [y.detach().double().requires_grad_() for y in (x, out, weight, bias, gates)]
        pairs = zip(*(y.split(list(counts)) for y in given[:2]), *given[2:], strict=True)
        result = torch.cat([torch.lerp(a, F.linear(F.gelu(b), w, start), gate.sigmoid()) for a, b, w, start, gate in pairs])
        return [result.detach(), *torch.autograd.grad(result, given, g.double())]


STRUCT = f"{8 * PLACES + 8}s"
"""Places."""
FORMATS: dict[str, str | tuple[str, ...]] = {
    "kind_products": ("P", STRUCT, *"P" * 3, *"q" * 8), "kind_sums": "P" * 6 + "q" * 4, "kind_gradients": "P" * 8 + "q" * 4,
    "kind_mixed": ("P", STRUCT, *"P" * 6, "q"), "kind_unmixed": "P" * 9 + "q", "kind_together": ("P", STRUCT, "P", "q"),
}  # fmt: skip
SHARED = (8 * 8 * 32 * 4 + SIDE * 80) * 4
"""Bytes of a block that multiplies: a weight's fragments, and rows."""
WITHOUT = "kind_gradients", "kind_together"
"""Those that multiply in registers alone, or not at all."""
OWN = tuple(
    Own("kinds.cu", entry, formats, THREADS, 0 if entry in WITHOUT else SHARED, with_the_others, "products by node type", ("tensor.cu",))
    for entry, formats in FORMATS.items()
)
