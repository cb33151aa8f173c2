// Sums of rows over the edges of a (relation, node) pair, times the relation's weight, added to a node's or the pair's row; in float32 by
// three TF32 products. See gathered.py.
//
// A block has one tile of the work list: chunks of one relation, ROWS at a time. Sixteen threads sum a chunk's rows, four chunks at once, into shared
// memory, and eight warps multiply what is there with the weight, which lies split in shared memory in the order of the fragments. RESIDENT blocks
// are on a multiprocessor, so that some gather while others multiply. Which numbers of a row meet in a product is free, and so is the order of its
// results: a thread takes and gives four neighbours at once.
#define ROWS 64
#define THREADS 256
#ifndef RESIDENT
#define RESIDENT 3  // blocks of a multiprocessor: 80 registers a thread
#endif

__device__ inline float4 zero() { return make_float4(0.0f, 0.0f, 0.0f, 0.0f); }

// `scaled`: 0 without a factor of each row, 1 with it, 2 with one over it (0 for 0), and 4 more where `sums` are kept without it. A weight's number for
// row's number k and result n is at k * k_step + n * n_step. `sums` gets the sums of a pair's rows: rows of `most` edges, those of a chunk, or more have
// to be zero there. A shorter chunk that is a row's first is the whole row. `rider` (null: none): a number of each row, times the relation's row of `vector`
// [relations, width], is added to the product once.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    typed_gather(const float* x, const int* x_of, const float* number, const int* number_of, const float* scale, const int* scale_of,
                 const float* weight, float* sums, float* out, const int* out_of, const float* rider, const float* vector,
                 const int* chunk_row, const int* chunk_begin, const int* chunk_end, const int* chunk_first, const int* tile_relation,
                 const int* tile_begin, const int* tile_end, i64 scaled, i64 depth, i64 width, i64 k_step, i64 n_step, i64 most) {
  extern __shared__ __align__(16) float room[];
  uint4* fragments = (uint4*)room;              // [8 steps of k][8 tiles of n][32 lanes]: high and low parts of two numbers
  float* held = room + 8 * 8 * 32 * 4;          // [ROWS][HELD_PITCH]
  int* places = (int*)(held + ROWS * HELD_PITCH);    // [ROWS]: where the results go, -1: nowhere
  float* extra = (float*)(places + ROWS);       // [ROWS]: the riders
  int me = threadIdx.x, lane = me & 31, g = lane >> 2, t = lane & 3, warp = me >> 5;
  int first = tile_begin[blockIdx.x], last = tile_end[blockIdx.x];
  if (first >= last) return;
  const float* matrix = weight + (i64)tile_relation[blockIdx.x] * depth * width;
  int group = me >> 4, column = 4 * (me & 15), mine = me & 3;  // of its four chunks, a thread asks for the place and the factor of one
  bool inside = column < depth;
  // Of four chunks: the next edge, and the end, later the edges that are left. They are asked for a step ahead, so that they are there when the rows
  // before have been multiplied.
  int row, opening, at[4], left[4];
  auto ask = [&](int base) {
    int own = base + 4 * group + mine;
    row = own < last ? chunk_row[own] : -1;
    opening = own < last ? chunk_first[own] : 0;
    for (int i = 0; i < 4; ++i) {
      int chunk = base + 4 * group + i;
      at[i] = chunk < last ? chunk_begin[chunk] : 0;
      left[i] = chunk < last ? chunk_end[chunk] : 0;
    }
  };
  ask(first);
  put_weight(fragments, matrix, (int)depth, (int)width, k_step, n_step);

  for (int base = first; base < last; base += ROWS) {
    float4 sum[4];
    int of[4];
    float factor[4];
    int longest = 0;
    unsigned whole = 0;
    for (int i = 0; i < 4; ++i) {
      left[i] -= at[i];
      whole |= (__shfl_sync(0xffffffffu, opening, i, 4) != 0 && left[i] < most ? 1u : 0u) << i;
      sum[i] = zero();
      factor[i] = 1.0f;
      of[i] = 0;
      longest = left[i] > longest ? left[i] : longest;
      if (left[i] > 0) {
        of[i] = x_of[at[i]];
        if (number) factor[i] = number[number_of ? number_of[at[i]] : at[i]];
      }
    }
    int place = row < 0 ? -1 : out_of ? out_of[row] : row;
    float by_row = scaled && row >= 0 ? scale[scale_of ? scale_of[row] : row] : 1.0f;
    float ridden = rider && opening != 0 ? rider[row] : 0.0f;
    for (int step = 0; step < longest; ++step) {
      float4 given[4];
      float by[4];
      for (int i = 0; i < 4; ++i) {
        given[i] = inside && left[i] > 0 ? *(const float4*)(x + (i64)of[i] * depth + column) : zero();
        by[i] = factor[i];
      }
      for (int i = 0; i < 4; ++i) {
        --left[i], ++at[i];
        if (left[i] > 0) {
          of[i] = x_of[at[i]];
          if (number) factor[i] = number[number_of ? number_of[at[i]] : at[i]];
        }
      }
      for (int i = 0; i < 4; ++i) {
        sum[i].x += by[i] * given[i].x, sum[i].y += by[i] * given[i].y;
        sum[i].z += by[i] * given[i].z, sum[i].w += by[i] * given[i].w;
      }
    }
    if (scaled & 2) by_row = by_row == 0.0f ? 0.0f : 1.0f / by_row;
    for (int i = 0; i < 4; ++i) {
      float own = __shfl_sync(0xffffffffu, by_row, i, 4);
      int to_row = __shfl_sync(0xffffffffu, row, i, 4);
      float before = scaled & 4 ? 1.0f : own, after = scaled & 4 ? own : 1.0f;
      sum[i].x *= before, sum[i].y *= before, sum[i].z *= before, sum[i].w *= before;
      if (sums && to_row >= 0 && inside) {
        float* to = sums + (i64)to_row * depth + column;
        if ((whole >> i) & 1u)
          *(float4*)to = sum[i];
        else
          add_4(to, sum[i].x, sum[i].y, sum[i].z, sum[i].w);
      }
      sum[i].x *= after, sum[i].y *= after, sum[i].z *= after, sum[i].w *= after;
      *(float4*)(held + (4 * group + i) * HELD_PITCH + column) = sum[i];
    }
    if (column < 16) {
      places[4 * group + mine] = place;
      extra[4 * group + mine] = ridden;
    }
    __syncthreads();
    if (base + ROWS < last) ask(base + ROWS);
    float result[4][4];
    for (int n = 0; n < 4; ++n)
      for (int i = 0; i < 4; ++i) result[n][i] = 0.0f;
    int own = 16 * (warp >> 1) + g, tiles = 4 * (warp & 1);
    for (int j = 0; j < 4; ++j) {
      float4 upper = *(const float4*)(held + own * HELD_PITCH + 16 * j + 4 * t), lower = *(const float4*)(held + (own + 8) * HELD_PITCH + 16 * j + 4 * t);
      float a[2][4] = {{upper.x, lower.x, upper.y, lower.y}, {upper.z, lower.z, upper.w, lower.w}};
      for (int half = 0; half < 2; ++half) {
        unsigned high[4], low[4];
        for (int i = 0; i < 4; ++i) split(a[half][i], &high[i], &low[i]);
        for (int n = 0; n < 4; ++n) {
          uint4 b = fragments[((2 * j + half) * 8 + tiles + n) * 32 + lane];
          multiply(result[n], low, b.x, b.y);
          multiply(result[n], high, b.z, b.w);
          multiply(result[n], high, b.x, b.y);
        }
      }
    }
    for (int pair = 0; pair < 2; ++pair) {
      int n = 16 * (tiles / 2 + pair) + 4 * t;
      if (n >= width) continue;
      float4 with = rider ? *(const float4*)(vector + (i64)tile_relation[blockIdx.x] * width + n) : zero();
      for (int half = 0; half < 2; ++half) {
        int place = places[own + 8 * half];
        if (place < 0) continue;
        float by = extra[own + 8 * half];
        float* to = out + (i64)place * width + n;
        float* even = result[2 * pair] + 2 * half;
        float* odd = result[2 * pair + 1] + 2 * half;
        add_4(to, even[0] + by * with.x, even[1] + by * with.y, odd[0] + by * with.z, odd[1] + by * with.w);
      }
    }
    __syncthreads();
  }
}
