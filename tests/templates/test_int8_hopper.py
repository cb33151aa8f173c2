"""int8_product.cu on an emulated Hopper (hopper_cpu.py) gives the bits of the numpy definition, whatever happens first."""

from __future__ import annotations

from typing import Any

import hopper_cpu
import numpy as np
import pytest

from warpwright.templates import driver, int8_product, int8_reference
from warpwright.templates.int8_product import Tiles
from warpwright.templates.int8_reference import Slices

pytestmark = pytest.mark.compiler


def cut(rows: int, k: int) -> Slices:
    return int8_reference.cut((np.random.standard_normal((rows, k)) * np.exp(2 * np.random.standard_normal((rows, 1)))).astype(np.float32))


def product(a: Slices, b: Slices, level: int, tiles: Tiles, blocks: int, seed: int, batches: int = 1) -> np.ndarray[Any, Any]:
    """Return what the kernel makes of them."""
    return product_and_suspects(a, b, level, tiles, blocks, seed, batches)[0]


def words(chunks: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return bits as the kernels hold them."""
    padded = np.pad(chunks, ((0, 0), (0, -chunks.shape[1] % 32)))
    return np.ascontiguousarray(np.packbits(padded, axis=1, bitorder="little")).view(np.uint32)


def product_and_suspects(
    a: Slices, b: Slices, level: int, tiles: Tiles, blocks: int, seed: int, batches: int = 1
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return what the kernel makes of them, and which 16 rows of tiles it finds suspect."""
    (_, m, k), n = a.digits.shape, b.digits.shape[1] // batches
    padded = -(-k // 128) * 128
    sides: list[Any] = [np.ascontiguousarray(np.pad(side.digits, ((0, 0), (0, 0), (0, padded - k)))) for side in (a, b)]
    inverse: list[Any] = [2.0**-8 / side.scale for side in (a, b)]
    described: list[Any] = [side.blocks for side in (a, b)]
    with hopper_cpu.in_place_of_a_gpu(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(hopper_cpu.Kernel, "seed", seed)
        int8_product.product_kernel.cache_clear()
        kernel = int8_product.product_kernel(0, tiles)
        int8_product.product_kernel.cache_clear()
        maps = [
            driver.tensor_map(side.ctypes.data, side.shape[::-1], (padded, padded * side.shape[1]), (128, rows, 1))
            for side, rows in zip(sides, (128, tiles.columns), strict=True)
        ]
        out = np.full((m + 2, n), 7, np.float32)
        floors = np.array([int8_reference.floor(b.norms[start : start + 128]) for start in range(0, len(b.norms), 128)], np.float32)
        suspects, some = np.full((-(-m // 128), -(-n // tiles.columns), 8), 7, np.uint8), np.zeros(1, np.float32)
        parts = (*inverse, *described, words(a.chunks), words(b.chunks), a.norms, b.norms, floors, suspects, some)
        kernel(blocks, 0, *maps, out[1:].ctypes.data, n, *(part.ctypes.data for part in parts), m, n, k, level, batches)
    assert (out[0] == 7).all() and (out[-1] == 7).all(), "memory around the result was written"
    assert suspects.max() <= 1 and some[0] == suspects.max()
    return out[1:-1], suspects.transpose(0, 2, 1).reshape(-1, suspects.shape[1])[: -(-m // 16)] != 0


@pytest.mark.parametrize(
    ("m", "n", "k", "level", "columns", "slots"), [(200, 130, 300, 3, 128, 6), (129, 100, 200, 4, 64, 8), (60, 129, 130, 5, 64, 5)]
)
def test_product_is_the_definition(m: int, n: int, k: int, level: int, columns: int, slots: int) -> None:
    a, b = cut(m, k), cut(n, k)
    for seed in range(3):
        np.testing.assert_array_equal(product(a, b, level, Tiles(columns, slots), 2, seed), int8_reference.multiply(a, b, level))


def test_each_tile_has_its_own_level() -> None:
    a, b = cut(200, 256), cut(64, 256)
    a.stats[128:] = 1e6, 0  # as if the second tile's rows were sparse
    levels = [int8_reference.tile_level(block, b.blocks[0], 256) for block in a.blocks]
    made = product(a, b, 0, Tiles(64, 8), 1, 1)
    assert levels[0] < levels[1]
    for rows, level in zip((slice(0, 128), slice(128, 200)), levels, strict=True):
        np.testing.assert_array_equal(made[rows], int8_reference.multiply(a, b, level)[rows])


def test_several_products_at_once() -> None:
    a, b = cut(2 * 128, 130), cut(2 * 128, 130)
    both = int8_reference.multiply(a, b, 3)
    np.testing.assert_array_equal(product(a, b, 3, Tiles(64, 8), 3, 1, batches=2), np.concatenate([both[:128, :128], both[128:, 128:]]))


def triangles(size: int, dense: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return A and the transpose of B, upper triangles, the last rows of B 1e-9 of the others."""
    a, b = (np.triu(np.random.default_rng(seed).random((size, size), np.float32)) for seed in (1, 2))
    b[-dense:] *= np.float32(1e-9)
    return a, np.ascontiguousarray(b.T)


def test_zero_chunks_are_left_out_and_small_rows_found() -> None:
    """A chunk of zeros does not change a bit; what it saves is time. 384 cubed in tiles of 128: three of nine tiles are zeros throughout."""
    a, b = (int8_reference.cut(x) for x in triangles(384, 1))
    assert a.chunks.sum() == b.chunks.sum() == 6
    for seed in range(2):
        made, suspects = product_and_suspects(a, b, 0, Tiles(128, 6), 2, seed)
        np.testing.assert_array_equal(made, int8_reference.multiply(a, b, 3))
        np.testing.assert_array_equal(suspects, int8_reference.suspects(a, b))
    assert suspects[23, 2] and not suspects[:7, 2].any() and not suspects[8:, 0].any()


@pytest.mark.parametrize("columns", [64, 128])
def test_columns_that_are_small_are_found(columns: int) -> None:
    """By each warp in its 16 rows, with every column of B in the place of the one that is small."""
    draw = np.random.default_rng(3)
    x, y = draw.standard_normal((128, 256)).astype(np.float32), draw.standard_normal((128, 256)).astype(np.float32)
    x[:, 64:] *= np.float32(1e-9)
    for at in (0, 1, 63, 77, 127):
        lone = y.copy()
        lone[at, :64] = 0
        a, b = int8_reference.cut(x), int8_reference.cut(lone)
        _, suspects = product_and_suspects(a, b, 3, Tiles(columns, 6), 1, 1)
        assert (suspects == [tile * columns <= at < (tile + 1) * columns for tile in range(128 // columns)]).all()
