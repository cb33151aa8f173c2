// Rows of pairs, each the row of a node times the weight of the pair's relation, in float32 by tensor cores (tensor.cu). See products.py.
//
// Pairs lie by relation. A table has, for each block: relation, first pair, pairs (0: none). A block keeps its relation's weight in shared memory and
// goes through its pairs 64 at a time; the next 64 rows are on their way meanwhile.
// Without gradients HGT's pairs come from the nodes' own rows: a block makes the product of the node type's weight and the relation's itself, which takes
// as long as 64 rows more, and no key or value of a node is made.
#define ROWS 64
#define THREADS 256
#ifndef RESIDENT
#define RESIDENT 4  // blocks of a multiprocessor
#endif

// What a thread has asked for: four numbers of four rows, and which rows are next.
struct Ahead {
  float4 given[4];
  int next[4];
};

__device__ inline float4 four(const float* from, bool inside) {
  return inside ? *(const float4*)from : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// Asks for the nodes of the rows from `ahead` on, of `count` pairs.
__device__ inline void ask_nodes(Ahead& asked, const int* of, int ahead, int count) {
  int row = ahead + (threadIdx.x >> 4);
  for (int i = 0; i < 4; ++i) asked.next[i] = row + 16 * i < count ? of[row + 16 * i] : -1;
}

// Asks for the rows of these nodes.
__device__ inline void ask_rows(Ahead& asked, const float* x, i64 depth) {
  int column = 4 * (threadIdx.x & 15);
  for (int i = 0; i < 4; ++i) asked.given[i] = four(x + asked.next[i] * depth + column, asked.next[i] >= 0 && column < depth);
}

// out[pair] = by (row of the pair's node) W + start, for the block's pairs; W is in `fragments`, the first rows and the nodes of the next are asked for.
__device__ inline void go_through(const uint4* fragments, float* held, Ahead& asked, const int* of, int count, const float* x, float* out, i64 depth,
                                  i64 width, float by, const float4* start) {
  int row = threadIdx.x >> 4, column = 4 * (threadIdx.x & 15);
  for (int done = 0; done < count; done += ROWS) {
    __syncthreads();
    for (int i = 0; i < 4; ++i) *(float4*)(held + (row + 16 * i) * HELD_PITCH + column) = asked.given[i];
    __syncthreads();
    ask_rows(asked, x, depth);
    ask_nodes(asked, of, done + 2 * ROWS, count);
    float result[4][4];
    multiply_rows(result, held, fragments);
    for (int half = 0; half < 2; ++half) {
      int at = done + first_row() + 8 * half;
      for (int pair = 0; pair < 2; ++pair) {
        if (at >= count || first_column(pair) >= width) continue;
        float4 r = four_results(result, pair, half);
        *(float4*)(out + at * width + first_column(pair)) =
            make_float4(by * r.x + start[pair].x, by * r.y + start[pair].y, by * r.z + start[pair].z, by * r.w + start[pair].w);
      }
    }
  }
}

// out_p[pair] = scale_p[relation] x_p[node of the pair] weight_p[relation] + base_p[relation], for `parts` of 1 or 2. Scale and base may be null.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    pair_products(const int* table, const int* of, const float* x_0, const float* x_1, const float* weight_0, const float* weight_1,
                  const float* base_0, const float* base_1, const float* scale_0, const float* scale_1, float* out_0, float* out_1, i64 depth,
                  i64 width, i64 parts) {
  extern __shared__ __align__(16) float room[];
  uint4* fragments = (uint4*)room;
  int part = blockIdx.x % (int)parts;
  const int* own = table + 3 * (blockIdx.x / (int)parts);
  int relation = own[0], first = own[1], count = own[2];
  if (count == 0) return;
  const float* x = part ? x_1 : x_0;
  const float* base = part ? base_1 : base_0;
  const float* scale = part ? scale_1 : scale_0;
  Ahead asked;
  ask_nodes(asked, of + first, 0, count);
  ask_rows(asked, x, depth);
  ask_nodes(asked, of + first, ROWS, count);
  put_weight(fragments, (part ? weight_1 : weight_0) + relation * depth * width, (int)depth, (int)width, width, 1);
  float4 start[2];
  for (int pair = 0; pair < 2; ++pair) start[pair] = four(base + relation * width + first_column(pair), base && first_column(pair) < width);
  go_through(fragments, room + 8 * 8 * 32 * 4, asked, of + first, count, x, (part ? out_1 : out_0) + first * width, depth, width,
             scale ? scale[relation] : 1.0f, start);
}

// out_p[pair] = scale_p[relation] (x[node of the pair] linear_p^T + bias_p) weight_p[relation] for two parts; rows x by node type, of which a relation has
// one, `kinds`. Of `linear` [types][3][width][depth] and `bias` the parts are the first and the last. Scale, times `factor`, is of the first part.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    pair_products_of_rows(const int* table, const int* of, const int* kinds, Places x, const float* linear, const float* bias, const float* weight_0,
                          const float* weight_1, const float* scale_0, float* out_0, float* out_1, i64 depth, i64 width,
                          float factor) {
  extern __shared__ __align__(16) float room[];
  uint4* fragments = (uint4*)room;
  float *held = room + 8 * 8 * 32 * 4, *sums = held + ROWS * HELD_PITCH;  // [ROWS][HELD_PITCH], [4][64]
  int part = blockIdx.x % 2;
  const int* own = table + 3 * (blockIdx.x / 2);
  int relation = own[0], first = own[1], count = own[2];
  if (count == 0) return;
  int kind = kinds[relation];
  const float* weight = (part ? weight_1 : weight_0) + relation * width * width;
  const float* own_linear = linear + (3 * kind + 2 * part) * width * depth;
  const float* own_bias = bias + (3 * kind + 2 * part) * width;
  float by = part ? 1.0f : factor * scale_0[relation];
  put_weight(fragments, weight, (int)width, (int)width, width, 1);
  int i = (threadIdx.x & 7) + 8 * (threadIdx.x >> 5), j = threadIdx.x >> 3 & 3;  // eight numbers of a row at once, and no more than four threads on a bank
  float taken[16], added = 0.0f;
#pragma unroll
  for (int k = 0; k < 16; ++k) taken[k] = i < depth && j + 4 * k < width ? own_linear[(j + 4 * k) * depth + i] : 0.0f;
#pragma unroll
  for (int k = 0; k < 16; ++k) held[i * HELD_PITCH + j + 4 * k] = taken[k];
  int n = threadIdx.x & 63, quarter = threadIdx.x >> 6;
#pragma unroll
  for (int k = 16 * quarter; k < 16 * quarter + 16; ++k)
    if (k < width && n < width) added += own_bias[k] * weight[k * width + n];
  sums[64 * quarter + n] = added;
  __syncthreads();
  float result[4][4];
  multiply_rows(result, held, fragments);
  float4 start[2];
  for (int pair = 0; pair < 2; ++pair) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int i = 0; i < 4; ++i) {
      float4 one = *(const float4*)(sums + 64 * i + first_column(pair));
      sum.x += by * one.x, sum.y += by * one.y, sum.z += by * one.z, sum.w += by * one.w;
    }
    start[pair] = sum;
  }
  __syncthreads();
  for (int half = 0; half < 2; ++half)
    for (int pair = 0; pair < 2; ++pair)
      *(float4*)(held + (first_row() + 8 * half) * HELD_PITCH + first_column(pair)) = four_results(result, pair, half);
  __syncthreads();
  put_weight(fragments, held, (int)depth, (int)width, HELD_PITCH, 1);
  const float* from = rows_of(x, kind);
  Ahead asked;
  ask_nodes(asked, of + first, 0, count);
  ask_rows(asked, from, depth);
  ask_nodes(asked, of + first, ROWS, count);
  go_through(fragments, held, asked, of + first, count, from, (part ? out_1 : out_0) + first * width, depth, width, by, start);
}
