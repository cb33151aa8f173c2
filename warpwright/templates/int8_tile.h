// Which part of the result is the tile of a number: bands of GROUP rows of tiles are walked together, for L2, one batch after another. Plain C++.
//
// m: rows of A and of the result, of all batches; n: columns of the result, and rows of B a batch; BM = 128, BN = 64 or 128.

#include "int8_level.h"

struct Tile {
    int row, column, b_row, level;  // its first row of A and of the result, its first column, that column's row of B
};

__device__ __forceinline__ int tiles_of(int m, int n, int batches) { return batches * ((m / batches + BM - 1) / BM) * ((n + BN - 1) / BN); }

__device__ __forceinline__ Tile tile_of(int number, int m, int n, int batches, float k, const float2* a_blocks, const float2* b_blocks, int fixed) {
    const int down = (m / batches + BM - 1) / BM, across = (n + BN - 1) / BN, batch = number / (down * across), index = number % (down * across);
    const int band = index / (GROUP * across), rows = min(GROUP, down - band * GROUP), within = index % (GROUP * across);
    const int block = batch * down + band * GROUP + within % rows, column = within / rows * BN, b_row = batch * n + column;
    if (fixed) return {block * BM, column, b_row, fixed};
    const float2 a = a_blocks[block], b = b_blocks[b_row / 128];
    return {block * BM, column, b_row, tile_level(a.x, a.y, b.x, b.y, k)};
}
