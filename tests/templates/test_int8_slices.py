"""The passes of int8_slices.cu, translated for the CPU, give the bits of the numpy definition."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from warpwright.domains import transpile
from warpwright.templates import int8_product, int8_reference
from warpwright.templates.int8_product import MATRIX, NO_MATRIX, Layout

pytestmark = pytest.mark.compiler
BLOCKS = {"slice_rows": (256, 1, 1), "slice_columns": (512, 1, 1), "summarise": (256, 1, 1), "slice_more": (256, 1, 1), "plain_rows": (256, 1, 1)}


@pytest.fixture(scope="module", params=[1, 8])
def warps(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def compiled(warps: int, text: str) -> dict[str, Any]:
    kernels = transpile.compile_text(f"#define WARPS {warps}\n{text}", "int8_slices.cu", blocks=BLOCKS)
    return kernels.load(["-O1" if flag == "-O3" else flag for flag in transpile.FLAGS])


@pytest.fixture(scope="module")
def kernels(warps: int) -> dict[str, Any]:
    return compiled(warps, int8_product.text("int8_slices.cu"))


class Sliced:
    """A matrix in the memory of the host, poisoned, as the kernels take it."""

    def __init__(self, x: np.ndarray[Any, Any]) -> None:
        self.batches, self.per, self.k = (1, *x.shape)[-3:]
        self.x, self.rows = x, self.batches * self.per
        self.padded = -(-self.k // 128) * 128
        self.layout = Layout.of(self.rows, self.padded)
        self.memory = np.full(self.layout.end, 0x5A, np.uint8)
        at, layout, strides = self.memory.ctypes.data, self.layout, [stride // 4 for stride in (0, *x.strides)[-3:]]
        parts = [at + part for part in layout[:-1]]
        self.record = struct.pack(MATRIX, x.ctypes.data, *strides, *parts, self.rows, self.padded, self.per, self.batches)

    def part(self, name: str, after: str, kind: Any) -> np.ndarray[Any, Any]:
        return self.memory[getattr(self.layout, name) : getattr(self.layout, after)].view(kind)

    @property
    def digits(self) -> np.ndarray[Any, Any]:
        return self.part("slices", "inverse", np.int8).reshape(5, self.rows, self.padded)


def rows_of(rows: int, k: int, seed: int) -> np.ndarray[Any, Any]:
    """Rows of several magnitudes: some zero, one of subnormals, one huge, one with Inf, one with NaN, one with a lone element."""
    draw = np.random.default_rng(seed)
    x = (draw.standard_normal((rows, k)) * np.exp(3 * draw.standard_normal((rows, k)))).astype(np.float32)
    x[0] = 0
    x[1 % rows] *= np.float32(1e-40)
    x[2 % rows] *= np.float32(1e30)
    x[3 % rows, k // 2] = np.inf
    x[4 % rows, 0] = np.nan
    x[5 % rows, 1:] = 0
    return x


def check(sliced: Sliced, count: int) -> None:
    want = int8_reference.cut(np.ascontiguousarray(sliced.x).reshape(sliced.rows, sliced.k))
    np.testing.assert_array_equal(sliced.digits[:count, :, : sliced.k], want.digits[:count])
    assert not sliced.digits[:count, :, sliced.k :].any()
    np.testing.assert_array_equal(sliced.part("inverse", "stats", np.float64), 2.0**-8 / want.scale)
    np.testing.assert_array_equal(sliced.part("flags", "done", np.int32)[: sliced.rows], want.flags)
    np.testing.assert_allclose(sliced.part("stats", "blocks", np.float32).reshape(-1, 2), want.stats, rtol=1e-5)
    np.testing.assert_allclose(sliced.part("blocks", "worst", np.float32).reshape(-1, 2), want.blocks, rtol=1e-5)
    np.testing.assert_allclose(sliced.part("norms", "floors", np.float32), want.norms, rtol=1e-5)
    floors = [int8_reference.floor(want.norms[start : start + 128]) for start in range(0, sliced.rows, 128)]
    np.testing.assert_allclose(sliced.part("floors", "row_chunks", np.float32), floors, rtol=1e-5)
    words = sliced.part("chunks", "end", np.uint8).reshape(len(floors), -1)
    np.testing.assert_array_equal(np.unpackbits(words, axis=1, bitorder="little")[:, : sliced.padded // 128], want.chunks)


@pytest.mark.parametrize(("m", "n", "k"), [(8, 6, 128), (7, 1, 37), (133, 9, 130), (6, 130, 4)])
def test_rows_of_both_sides_in_one_launch(kernels: dict[str, Any], warps: int, m: int, n: int, k: int) -> None:
    a, b = Sliced(rows_of(m, k, 1)), Sliced(rows_of(n, k, 2))
    a_grid, b_grid = (-(-side.rows // (8 // warps)) for side in (a, b))
    kernels["slice_rows"][a_grid + b_grid, 256](a.record, b.record, k)
    kernels["summarise"][2, 256](a.record, b.record)
    check(a, 3)
    check(b, 3)


@pytest.mark.parametrize(("rows", "k"), [(16, 128), (21, 131), (1, 5), (130, 300)])
def test_columns_are_cut_without_a_copy(kernels: dict[str, Any], rows: int, k: int) -> None:
    across = Sliced(np.ascontiguousarray(rows_of(rows, k, 3).T).T)
    kernels["slice_columns"][-(-rows // 16), 512](across.record, k)
    kernels["summarise"][1, 256](across.record, NO_MATRIX)
    check(across, 3)


@pytest.mark.parametrize("across", [False, True])
def test_last_slices_follow_and_are_not_written_twice(kernels: dict[str, Any], warps: int, across: bool) -> None:
    x, k = rows_of(37, 70, 4), 70
    a, b = Sliced(np.ascontiguousarray(x.T).T if across else x), Sliced(rows_of(5, k, 5))
    for side in (b,) if across else (a, b):
        kernels["slice_rows"][-(-side.rows // (8 // warps)), 256](side.record, NO_MATRIX, k)
    if across:
        kernels["slice_columns"][3, 512](a.record, k)
    kernels["summarise"][2, 256](a.record, b.record)
    kernels["slice_more"][4, 256](a.record, b.record, k, 4)
    check(a, 5)
    check(b, 5)
    a.digits[4] = 1
    kernels["slice_more"][4, 256](a.record, b.record, k, 4)
    assert (a.digits[4] == 1).all()


def test_last_slices_are_written_for_tiles_that_are_not_left_out(kernels: dict[str, Any], warps: int) -> None:
    """Of rows whose few elements need them, but for those that meet zeros alone."""
    draw = np.random.default_rng(10)
    x, y = np.zeros((384, 256), np.float32), np.zeros((256, 256), np.float32)
    x[:128, :4], x[128:256, 128:132], x[256:, 128:] = draw.random((128, 4)), draw.random((128, 4)), draw.random((128, 128))
    y[:, 128:] = draw.standard_normal((256, 128))
    a, b = Sliced(x), Sliced(y)
    kernels["slice_rows"][-(-384 // (8 // warps)) + -(-256 // (8 // warps)), 256](a.record, b.record, 256)
    kernels["summarise"][2, 256](a.record, b.record)
    kernels["slice_more"][24 + 16, 256](a.record, b.record, 256, 0)
    left, right = int8_reference.cut(x), int8_reference.cut(y)
    levels = np.array([[int8_reference.tile_level(p, q, 256) for q in right.blocks] for p in left.blocks])
    met = (left.chunks[:, None] & right.chunks[None]).any(2)
    assert levels[0].min() > 3 and not met[0].any() and met[1:].all()
    for side, needed in ((a, (met & (levels > 3)).any(1)), (b, (met & (levels > 3)).any(0))):
        np.testing.assert_array_equal(side.part("done", "norms", np.int32), np.repeat(needed, 8))


def test_rows_with_inf_and_nan_are_plain_sums(kernels: dict[str, Any], warps: int) -> None:
    a, b = Sliced(rows_of(40, 33, 6)), Sliced(np.random.default_rng(7).standard_normal((35, 33)).astype(np.float32))
    kernels["slice_rows"][-(-40 // (8 // warps)) + -(-35 // (8 // warps)), 256](a.record, b.record, 33)
    kernels["summarise"][2, 256](a.record, b.record)
    out = np.full((40, 35), 7, np.float32)
    kernels["plain_rows"][3, 256](a.record, b.record, out, 35, 33, np.zeros(4, np.uint16), 128, 0)
    with np.errstate(invalid="ignore", over="ignore"):
        want = a.x @ b.x.T
    np.testing.assert_array_equal(np.isnan(out[3:5]), np.isnan(want[3:5]))
    np.testing.assert_array_equal(np.isinf(out[3:5]), np.isinf(want[3:5]))
    assert (np.delete(out, (3, 4), 0) == 7).all()


def test_several_matrices_are_cut_where_they_lie(kernels: dict[str, Any], warps: int) -> None:
    pieces = rows_of(128, 3 * 36, 8).reshape(128, 3, 36).transpose(1, 0, 2)  # of a long inner size: the rows of a piece are apart
    across = rows_of(3 * 36, 128, 9).reshape(3, 36, 128).transpose(0, 2, 1)  # [k, n]
    a, b = Sliced(pieces), Sliced(across)
    kernels["slice_rows"][-(-384 // (8 // warps)), 256](a.record, NO_MATRIX, 36)
    kernels["slice_columns"][-(-384 // 16), 512](b.record, 36)
    kernels["summarise"][2, 256](a.record, b.record)
    kernels["slice_more"][48, 256](a.record, b.record, 36, 5)
    check(a, 5)
    check(b, 5)


def test_each_of_several_has_its_own_plain_sums(kernels: dict[str, Any], warps: int) -> None:
    x, y = (np.random.default_rng(seed).standard_normal((2, 128, 20)).astype(np.float32) for seed in (1, 2))
    x[0, 7, 3], y[1, 100, 0] = np.inf, np.nan
    a, b = Sliced(x), Sliced(y)
    kernels["slice_rows"][2 * 256 // (8 // warps), 256](a.record, b.record, 20)
    kernels["summarise"][2, 256](a.record, b.record)
    out = np.full((256, 128), 7, np.float32)
    kernels["plain_rows"][3, 256](a.record, b.record, out, 128, 20, np.zeros(8, np.uint16), 128, 0)
    with np.errstate(invalid="ignore"):
        want = np.full((2, 128, 128), 7, np.float32)
        want[0, 7], want[1, :, 100] = x[0, 7] @ y[0].T, x[1] @ y[1, 100]
    np.testing.assert_allclose(out.reshape(2, 128, 128), want, rtol=1e-4, atol=1e-5)


def test_rows_of_zeros_between_others_have_no_chunks(kernels: dict[str, Any], warps: int) -> None:
    """One element in 5,000, alone in its chunk of 128, past the first word of bits; and by columns as by rows."""
    x = np.zeros((150, 5000), np.float32)
    x[3, 4999], x[140, 130], x[149, 4100] = 1, 2, -3
    rows, across = Sliced(x), Sliced(np.ascontiguousarray(x.T).T)
    kernels["slice_rows"][-(-150 // (8 // warps)), 256](rows.record, NO_MATRIX, 5000)
    kernels["slice_columns"][10, 512](across.record, 5000)
    kernels["summarise"][2, 256](rows.record, across.record)
    check(rows, 3)
    check(across, 3)


@pytest.mark.parametrize("columns", [64, 128])
def test_small_rows_of_suspect_tiles_are_plain_sums(kernels: dict[str, Any], warps: int, columns: int) -> None:
    """Triangles, the last rows of B small: what is replaced is what the definition says, and nothing where nothing is suspect."""
    x, y = (np.triu(np.random.default_rng(seed).standard_normal((150, 150))).astype(np.float32) for seed in (1, 2))
    y[140:] *= np.float32(1e-9)
    a, b = Sliced(x), Sliced(np.ascontiguousarray(y.T))
    kernels["slice_rows"][2 * -(-150 // (8 // warps)), 256](a.record, b.record, 150)
    kernels["summarise"][2, 256](a.record, b.record)
    kernels["slice_more"][20, 256](a.record, b.record, 150, 0)
    assert a.part("worst", "flags", np.float32)[3] == 0
    left, right = int8_reference.cut(x), int8_reference.cut(np.ascontiguousarray(y.T))
    found, small = int8_reference.suspects(left, right), int8_reference.small(left, right, by_slices := int8_reference.by_slices(left, right))
    suspects = np.zeros((2, 8, -(-150 // columns)), np.uint8)
    suspects.reshape(16, -1)[:10] = np.repeat(found, 128 // columns, 1)[:, : suspects.shape[2]]
    for any_suspect in (0, 1):
        a.part("worst", "flags", np.float32)[3] = any_suspect
        out = by_slices.copy()
        kernels["plain_rows"][3, 256](a.record, b.record, out, 150, 150, suspects.transpose(0, 2, 1).copy().view(np.uint16), columns, 0)
        np.testing.assert_array_equal(out[~small | (any_suspect == 0)], by_slices[~small | (any_suspect == 0)])
    assert small[140:, 140:][np.triu_indices(10)].all() and not small[:64].any()
    np.testing.assert_allclose(out[small], (x @ y)[small], rtol=1e-4, atol=1e-14)


def test_long_plain_sums_err_no_more_than_short_ones(kernels: dict[str, Any], warps: int) -> None:
    """Of 8,192 terms: one after another in float32 they are off by 1e-6."""
    k, draw = 8192, np.random.default_rng(1)
    x, y = draw.random((32, k), np.float32), draw.standard_normal((32, k)).astype(np.float32)
    x[5, 0], y[:, 0] = 1e9, 0  # beside that the slices hold nothing of the row
    a, b = Sliced(x), Sliced(y)
    kernels["slice_rows"][2 * -(-32 // (8 // warps)), 256](a.record, b.record, k)
    kernels["summarise"][2, 256](a.record, b.record)
    kernels["slice_more"][4, 256](a.record, b.record, k, 0)
    a.part("worst", "flags", np.float32)[3] = 1
    out = int8_reference.by_slices(int8_reference.cut(x), int8_reference.cut(y))
    kernels["plain_rows"][3, 256](a.record, b.record, out, 32, k, np.ones(4, np.uint16), 128, 0)
    exact = x[5].astype(np.float64) @ y.T.astype(np.float64)
    assert np.sqrt(np.square(out[5] - exact).mean() / np.square(exact).mean()) < 1.5e-7


def test_only_what_small_rows_and_columns_meet_is_looked_at(kernels: dict[str, Any], warps: int) -> None:
    """Two small rows, and a column that is small in the lower half of the square: NaN in the chunks that they do not meet is not read."""
    x, y = (np.random.default_rng(seed).standard_normal((32, 640)).astype(np.float32) for seed in (1, 2))
    y[:, 256:384] *= np.float32(1e-9)
    y[7, :384] = 0
    y[7, 640 - 3 :] *= np.float32(1e-9)
    x[5, :256] = x[5, 257:] = 0  # meets small elements alone
    x[9] = 0
    x[9, 300] = 2
    x[16:, 512:637] = x[16:, 384:512] = 0
    x[:16, 637:] = 0
    y[7, 384:637] *= x[0, 384:637] != 0
    a, b = Sliced(x), Sliced(y)
    kernels["slice_rows"][2 * -(-32 // (8 // warps)), 256](a.record, b.record, 640)
    kernels["summarise"][2, 256](a.record, b.record)
    kernels["slice_more"][4, 256](a.record, b.record, 640, 0)
    left, right = int8_reference.cut(x), int8_reference.cut(y)
    by_slices = int8_reference.by_slices(left, right)
    small = int8_reference.small(left, right, by_slices)
    assert small[[5, 9]].all() and small[:, 7].all() and small.sum() == 2 * 32 + 30
    a.part("worst", "flags", np.float32)[3] = 1
    suspects, wanted = np.full((1, 1, 8), 1, np.uint8), x @ y.T
    x[:, :256] = np.nan
    out = by_slices.copy()
    kernels["plain_rows"][3, 256](a.record, b.record, out, 32, 640, suspects.view(np.uint16), 128, 0)
    np.testing.assert_array_equal(out[~small], by_slices[~small])
    np.testing.assert_allclose(out[small], wanted[small], rtol=1e-4, atol=1e-12)


WATCHED = {
    "        ++walked;\n": "        ++walked;\n        if (threadIdx.x == 0) atomicAdd(&a.worst[3], 1.0f);\n",
    "if (!__syncthreads_or(open)) return;": "if (!__syncthreads_or(open || a.worst[0] < 0.0f)) return;",
    "if (round == 0 && suspect && cleared(": "if (round == 0 && suspect && a.worst[1] >= 0.0f && cleared(",
}
WHOLE, EARLY, CLEARED = range(3)


@pytest.fixture(scope="module")
def watched() -> dict[str, Any]:
    """The kernels, but plain_rows counts the steps of walks in worst[3], ends none early if worst[0] is negative, clears nothing if worst[1] is."""
    text = int8_product.text("int8_slices.cu")
    for line, other in WATCHED.items():
        assert text.count(line) == 1
        text = text.replace(line, other)
    return compiled(8, text)


def nearly_alike(draw: np.random.Generator, rows: int, k: int) -> np.ndarray[Any, Any]:
    """Rows that differ by a twentieth of their norm, as in late layers of a deep network that was never trained. Half of their elements are zeros."""
    return np.maximum(draw.standard_normal(k) + 0.05 * draw.standard_normal((rows, k)), 0).astype(np.float32)


def structured(kind: str, m: int, n: int, k: int, seed: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Rows of A and of B of which some results are small: by chance, or because what is large meets zeros."""
    draw = np.random.default_rng(seed)
    x, y = (draw.standard_normal((rows, k)).astype(np.float32) for rows in (m, n))
    if kind == "alike":
        return nearly_alike(draw, m, k), draw.uniform(-1, 1, (n, k)).astype(np.float32)
    if kind == "normal":  # as trained weights are, and those that a verdict draws; uniform ones are large in each row more often
        return nearly_alike(draw, m, k), y
    small = np.where(draw.random(k) < 0.5, np.float32(10.0) ** -draw.uniform(3, 12, k).astype(np.float32), np.float32(1))
    if kind == "half":  # of each square's rows meets only what is small of every fourth column
        x[np.arange(m) % 32 > 15, ::2] = 0
        y[::4, 1::2] *= np.float32(1e-6)
    elif kind == "quarter":  # of a strip's columns meets only what is small of every fourth row
        y[32:64, ::2] = 0
        x[::4, 1::2] *= np.float32(1e-6)
    elif kind == "triangles":
        x, y = np.triu(x), np.tril(y * small)
    elif kind == "sparse":
        x, y = x * (draw.random(x.shape) < 0.02), y * small * (draw.random(y.shape) < 0.1)
    elif kind == "tails":
        x, y = x * np.exp(3 * draw.standard_normal(x.shape)), y * np.exp(3 * draw.standard_normal(y.shape)) * small
        x[::5] *= small < 0.1
    elif kind == "chunks":  # left out where zeros are on either side; elements that are lost beside others of their row; rows of zeros, and with Inf
        x, y = nearly_alike(draw, m, k), draw.uniform(-1, 1, (n, k))
        x[:, 128:256], y[::3, k // 2 :] = 0, 0
        x[7, 1:] *= 1e-38
        x[7, 0], x[3], x[17, 5], y[9] = 1e30, 0, np.inf, 0
        y[11, : k // 2] *= 1e-9
        y[11, k // 2 :], x[16:32, k // 2 :] = 1, 0
    return x.astype(np.float32), y.astype(np.float32)


def plain(watched: dict[str, Any], x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], level: int, look: int) -> tuple[np.ndarray[Any, Any], int]:
    """Return the product where every square is suspect, NaN for results by slices that stay, and how many steps were walked."""
    (m, k), n, a, b = x.shape, len(y), Sliced(x), Sliced(y)
    watched["slice_rows"][m + n, 256](a.record, b.record, k)
    watched["summarise"][2, 256](a.record, b.record)
    worst = a.part("worst", "flags", np.float32)
    worst[3], worst[:2] = 1, (1 if look >= EARLY else -1, 1 if look >= CLEARED else -1)
    out = int8_reference.by_slices(int8_reference.cut(x), int8_reference.cut(y))
    before = out.copy()
    grid = 3 if m == 64 else 1  # of three blocks and few strips each does all of its strips, else squares of a strip fall to several
    watched["plain_rows"][grid, 256](a.record, b.record, out, n, k, np.ones(4 * -(-m // 128) * -(-n // 128), np.uint16), 128, level)
    return np.where(out == before, np.float32(np.nan), out), int(worst[3]) - 1


@pytest.mark.parametrize("level", [3, 4, 5])
@pytest.mark.parametrize("kind", ["alike", "normal", "half", "quarter", "triangles", "sparse", "tails", "chunks"])
def test_looks_that_end_early_mark_what_whole_ones_mark(watched: dict[str, Any], kind: str, level: int) -> None:
    for m, n, k in ((64, 64, 640), (50, 70, 333)):
        x, y = structured(kind, m, n, k, level)
        (out, most), (early, fewer), (cleared, least) = (plain(watched, x, y, level, look) for look in (WHOLE, EARLY, CLEARED))
        np.testing.assert_array_equal(early, out)
        np.testing.assert_array_equal(cleared, out)
        assert 0 < fewer < most or (fewer <= most and kind not in ("alike", "normal", "chunks"))
        assert least <= fewer
        assert np.isfinite(out).any() or kind in ("alike", "normal") or level > 3


@pytest.mark.parametrize("turned", [False, True])
def test_lines_at_the_border_are_marked_as_by_a_whole_walk(watched: dict[str, Any], turned: bool) -> None:
    """One side is large where the other has zeros. Most of what meets is there in the first step, from strip to strip a tenth of a decade more."""
    draw, k = np.random.default_rng(0), 512
    x, y = (draw.choice(np.array([-1, 1], np.float32), (rows, k)) for rows in (32, 1024))
    x[:, k // 2 :] = 0
    y[:, : k // 2] *= np.repeat(10 ** np.linspace(-1.1, -0.75, 8), 128)[:, None].astype(np.float32)
    y[:, 32 : k // 2] *= np.float32(0.1)
    (out, most), (early, fewer), (cleared, least) = (plain(watched, *((y, x) if turned else (x, y)), 3, look) for look in (WHOLE, EARLY, CLEARED))
    np.testing.assert_array_equal(early, out)
    np.testing.assert_array_equal(cleared, out)
    marked = np.isfinite(out.T if turned else out).reshape(32, 8, 128).any((0, 2))
    assert marked[:2].all() and not marked[-2:].any()
    assert least < fewer < most == 32 * 8


def test_more_terms_tell_it_where_weights_are_normal(watched: dict[str, Any]) -> None:
    """128 of k cleared five of six of such strips not, and each of their squares was walked."""
    for seed in range(6):
        x, y = structured("normal", 64, 64, 1024, seed)
        (out, fewer), (cleared, least) = (plain(watched, x, y, 3, look) for look in (EARLY, CLEARED))
        assert np.isnan(out).all() and np.isnan(cleared).all()
        assert fewer > 0 == least


def test_few_terms_tell_that_small_columns_are_right_where_rows_are_nearly_alike(watched: dict[str, Any]) -> None:
    for m in (64, 96):
        x, y = structured("alike", m, 64, 1024, 0)
        (out, most), (_, fewer), (_, least) = (plain(watched, x, y, 3, look) for look in (WHOLE, EARLY, CLEARED))
        assert np.isnan(out).all()
        assert most == m // 16 * 32 and fewer <= m // 16 * 2 and least == 0  # of m / 16 squares


TILES = """
%s
extern "C" __global__ void walk(const float* a, const float* b, int* seen, int m, int n, int batches, float k) {
    const int number = blockIdx.x;
    const Tile tile = tile_of(number, m, n, batches, k, (const float2*)a, (const float2*)b, 0);
    seen[4 * number] = tile.row, seen[4 * number + 1] = tile.column, seen[4 * number + 2] = tile.b_row, seen[4 * number + 3] = tile.level;
}
"""


@pytest.mark.parametrize("columns", [pytest.param(64, marks=pytest.mark.slow), 128])
def test_every_tile_of_every_batch_is_done_once(columns: int) -> None:
    text = f"#define BM 128\n#define BN {columns}\n#define GROUP 8\n{TILES % int8_product.text('int8_tile.h')}"
    walk = transpile.compile_text(text, "tiles.cu").load(["-O1" if flag == "-O3" else flag for flag in transpile.FLAGS])["walk"]
    for batches, m, n in [(1, 300, 200), (1, 2000, 130), (3, 256, 384), (5, 1280, 128)]:
        down, across = -(-m // 128), -(-n // columns)
        a_blocks, b_blocks = (np.zeros((batches * -(-size // 128), 2), np.float32) for size in (m, n))
        a_blocks[-1] = 1e6, 0  # the last rows of the last batch need more slices, and they alone
        seen = np.zeros((batches * down * across, 4), np.int32)
        walk[len(seen), 1](a_blocks, b_blocks, seen, batches * m, n, batches, 512.0)
        most = int(seen[:, 3].max())
        want = {
            (batch * m + 128 * row, columns * column, batch * n + columns * column, most if (batch, row) == (batches - 1, down - 1) else 3)
            for batch in range(batches) for row in range(down) for column in range(across)
        }  # fmt: skip
        assert most > 3 and {tuple(int(part) for part in row) for row in seen} == want
