// Rows of pairs, each the row of a node times the weight of the pair's relation, in float32 by tensor cores (tensor.cu). See products.py.
//
// Pairs lie by relation. A table has, for each block: relation, first pair, pairs (0: none). A block keeps its relation's weight in shared memory and
// goes through its pairs 64 at a time; the next 64 rows are on their way meanwhile.
#define ROWS 64
#define THREADS 256
#ifndef RESIDENT
#define RESIDENT 4  // blocks of a multiprocessor
#endif

// out_p[pair] = scale_p[relation] x_p[node of the pair] weight_p[relation] + base_p[relation], for `parts` of 1 or 2. Scale and base may be null.
extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    pair_products(const int* table, const int* of, const float* x_0, const float* x_1, const float* weight_0, const float* weight_1,
                  const float* base_0, const float* base_1, const float* scale_0, const float* scale_1, float* out_0, float* out_1, i64 depth,
                  i64 width, i64 parts) {
  extern __shared__ __align__(16) float room[];
  uint4* fragments = (uint4*)room;
  float* held = room + 8 * 8 * 32 * 4;  // [ROWS][HELD_PITCH]
  int part = blockIdx.x % (int)parts;
  const int* own = table + 3 * (blockIdx.x / (int)parts);
  int relation = own[0], first = own[1], count = own[2];
  if (count == 0) return;
  const float* x = part ? x_1 : x_0;
  const float* base = part ? base_1 : base_0;
  const float* scale = part ? scale_1 : scale_0;
  float by = scale ? scale[relation] : 1.0f;
  float* out = part ? out_1 : out_0;
  int row = threadIdx.x >> 4, column = 4 * (threadIdx.x & 15), done = 0;
  bool inside = column < depth;
  float4 given[4];
  int next[4];
  for (int i = 0; i < 4; ++i) next[i] = row + 16 * i < count ? of[first + row + 16 * i] : -1;
  for (int i = 0; i < 4; ++i)
    given[i] = next[i] >= 0 && inside ? *(const float4*)(x + next[i] * depth + column) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (int i = 0; i < 4; ++i) next[i] = ROWS + row + 16 * i < count ? of[first + ROWS + row + 16 * i] : -1;
  put_weight(fragments, (part ? weight_1 : weight_0) + relation * depth * width, (int)depth, (int)width, width, 1);
  float4 start[2];
  for (int pair = 0; pair < 2; ++pair)
    start[pair] = base && first_column(pair) < width ? *(const float4*)(base + relation * width + first_column(pair)) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  for (; done < count; done += ROWS) {
    __syncthreads();
    for (int i = 0; i < 4; ++i) *(float4*)(held + (row + 16 * i) * HELD_PITCH + column) = given[i];
    __syncthreads();
    for (int i = 0; i < 4; ++i)
      given[i] = next[i] >= 0 && inside ? *(const float4*)(x + next[i] * depth + column) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    int ahead = done + 2 * ROWS + row;
    for (int i = 0; i < 4; ++i) next[i] = ahead + 16 * i < count ? of[first + ahead + 16 * i] : -1;
    float result[4][4];
    multiply_rows(result, held, fragments);
    for (int half = 0; half < 2; ++half) {
      int at = done + first_row() + 8 * half;
      for (int pair = 0; pair < 2; ++pair) {
        if (at >= count || first_column(pair) >= width) continue;
        float4 r = four_results(result, pair, half);
        *(float4*)(out + (i64)(first + at) * width + first_column(pair)) =
            make_float4(by * r.x + start[pair].x, by * r.y + start[pair].y, by * r.z + start[pair].z, by * r.w + start[pair].w);
      }
    }
  }
}
