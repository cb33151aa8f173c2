// Products of rows with the weight of their node's type, in float32, for small graphs: one launch for all types, where a library takes one for each.
// Rows lie by type. A table has, for each block's rows: type, first row, rows. Weights are [types][out][in], side by side. See kinds.py.
//
// Products are made by tensor cores (tensor.cu): a block has up to TILES times SIDE rows and SIDE columns of the result, so that a weight is put into
// shared memory once for all of them. In sums over rows a thread has four rows and four columns of the result.
#define TILES 2
#define SIDE 64
#define STEP 16
#define PITCH 68  // floats between the rows of a step: four threads that write a column meet no bank twice
#define THREADS 256

__device__ inline float active(float x) { return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f)); }

__device__ inline float slope(float x) {
  return 0.5f * (1.0f + erff(x * 0.70710678118654752f)) + x * expf(-0.5f * x * x) * 0.39894228040143268f;
}

__device__ inline float share_of(float gate) { return 1.0f / (1.0f + expf(-gate)); }

__device__ inline float4 four(const float* from, bool inside) {
  return inside ? *(const float4*)from : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
}

// Adds the products of a step: rows `left` with columns `right`.
__device__ inline void add_step(float* sums, const float* left, const float* right, int rows_at, int columns_at) {
  for (int k = 0; k < STEP; ++k) {
    float4 a = *(const float4*)(left + k * PITCH + rows_at), b = *(const float4*)(right + k * PITCH + columns_at);
    float row[4] = {a.x, a.y, a.z, a.w}, column[4] = {b.x, b.y, b.z, b.w};
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) sums[4 * i + j] += row[i] * column[j];
  }
}

// A thread's results, for each of the tiles: those of tensor.cu.
struct Results {
  float of[TILES][4][4];
};

// The products x W^T (`turned`: x W) for the columns from `across` on, of the sum over `parts` of x; `pitch`: numbers between rows of W, `apart`: between
// parts. `room`: fragments of a weight, and SIDE rows.
__device__ inline Results product(float* room, const float* x_0, const float* x_1, const float* x_2, const float* weight, int parts, int apart, int rows,
                                  int width, int pitch, int columns, int across, bool turned, bool activate) {
  uint4* fragments = (uint4*)room;
  float* held = room + 8 * 8 * 32 * 4;
  int row = threadIdx.x >> 4, at = 4 * (threadIdx.x & 15), steps = (width + SIDE - 1) / SIDE;
  Results sums;
#pragma unroll
  for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
    for (int i = 0; i < 16; ++i) sums.of[tile][i >> 2][i & 3] = 0.0f;
  for (int step = 0; step < parts * steps; ++step) {
    int part = step / steps, k = (step - part * steps) * SIDE;
    const float* x = (part == 0 ? x_0 : part == 1 ? x_1 : x_2) + k;
    const float* own = weight + part * apart + (turned ? k * pitch + across : across * pitch + k);
#pragma unroll
    for (int tile = 0; tile < TILES; ++tile) {
      if (tile * SIDE >= rows) continue;
      float4 given[4];
      for (int i = 0; i < 4; ++i) {
        int from = tile * SIDE + row + 16 * i;
        given[i] = four(x + (i64)from * width + at, from < rows && k + at < width);
        if (activate) given[i].x = active(given[i].x), given[i].y = active(given[i].y), given[i].z = active(given[i].z), given[i].w = active(given[i].w);
      }
      __syncthreads();
      for (int i = 0; i < 4; ++i) *(float4*)(held + (row + 16 * i) * HELD_PITCH + at) = given[i];
      if (tile == 0) put_weight(fragments, own, width - k, columns - across, turned ? pitch : 1, turned ? 1 : pitch);
      __syncthreads();
      float added[4][4];
      multiply_rows(added, held, fragments);
#pragma unroll
      for (int i = 0; i < 16; ++i) sums.of[tile][i >> 2][i & 3] += added[i >> 2][i & 3];
    }
  }
  return sums;
}

// What a thread has of the results: for each four of them do(row of the block, column of the result, results).
template <typename Do>
__device__ inline void each_four(const Results& sums, int rows, int across, int columns, Do with) {
#pragma unroll
  for (int tile = 0; tile < TILES; ++tile)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        int row = tile * SIDE + first_row() + 8 * half, column = across + first_column(pair);
        if (row < rows && column < columns) with(row, column, four_results(sums.of[tile], pair, half));
      }
}

// out[part][row] = x W_part^T (`turned`: x W_part) + bias (null: none), for rows x [rows][in] and parts of `columns` numbers. Blocks: rows of the table,
// parts, tiles of columns. Without a table there is one type, and blocks have `each` rows.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    kind_products(const int* table, const float* x, const float* weight, const float* bias, float* out, i64 rows, i64 width, i64 columns, i64 parts,
                  i64 turned, i64 each) {
  extern __shared__ __align__(16) float room[];
  int tiles = (int)((columns + SIDE - 1) / SIDE), part = blockIdx.x / tiles % (int)parts, across = blockIdx.x % tiles * SIDE;
  int block = blockIdx.x / (tiles * (int)parts), kind = 0, first = block * (int)each;
  int count = (int)(rows - first < each ? rows - first : each);
  if (table) kind = table[3 * block], first = table[3 * block + 1], count = table[3 * block + 2];
  i64 of_part = (kind * parts + part) * columns;
  const float* from = x + first * width;
  Results sums = product(room, from, from, from, weight + of_part * width, 1, 0, count, (int)width, (int)(turned ? columns : width), (int)columns,
                         across, turned, false);
  each_four(sums, count, across, (int)columns, [&](int row, int column, float4 sum) {
    float4 start = four(bias + of_part + column, bias != nullptr);
    *(float4*)(out + (part * rows + first + row) * columns + column) =
        make_float4(sum.x + start.x, sum.y + start.y, sum.z + start.z, sum.w + start.w);
  });
}

// out[row] = the sum over parts of g_part W_part: the gradient of x above; g [rows][in], columns of x.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    kind_sums(const int* table, const float* g_0, const float* g_1, const float* g_2, const float* weight, float* out, i64 width, i64 columns,
              i64 parts) {
  extern __shared__ __align__(16) float room[];
  int tiles = (int)((columns + SIDE - 1) / SIDE), across = blockIdx.x % tiles * SIDE;
  const int* own = table + 3 * (blockIdx.x / tiles);
  int kind = own[0], first = own[1], count = own[2];
  i64 from = first * width;
  Results sums = product(room, g_0 + from, g_1 + from, g_2 + from, weight + kind * parts * width * columns, (int)parts, (int)(width * columns), count,
                         (int)width, (int)columns, (int)columns, across, true, false);
  each_four(sums, count, across, (int)columns,
            [&](int row, int column, float4 sum) { *(float4*)(out + (first + row) * columns + column) = sum; });
}

// Adds to matrix[kind][part] [columns][width] the sums over rows of g_part^T x, and to total[kind][part] those of g_part. `gates`: g is multiplied by
// the type's share. `activate`: x is GELU's argument.
extern "C" __global__ void __launch_bounds__(THREADS)
    kind_gradients(const int* table, const float* g_0, const float* g_1, const float* g_2, const float* x, const float* gates, float* matrix,
                   float* total, i64 width, i64 columns, i64 parts, i64 activate) {
  __shared__ __align__(16) float left[STEP * PITCH], right[STEP * PITCH];
  int tiles = (int)((columns + SIDE - 1) / SIDE), across_tiles = (int)((width + SIDE - 1) / SIDE);
  int place = blockIdx.x, across = place % across_tiles * SIDE;
  place /= across_tiles;
  int down_at = place % tiles * SIDE;
  place /= tiles;
  int part = place % (int)parts;
  const int* own = table + 3 * (place / (int)parts);
  int kind = own[0], first = own[1], count = own[2], me = threadIdx.x, row = me >> 4, at = 4 * (me & 15);
  const float* g = part == 0 ? g_0 : part == 1 ? g_1 : g_2;
  float sums[16] = {0.0f}, added = 0.0f, share = gates ? share_of(gates[kind]) : 1.0f;
  for (int k = 0; k < count; k += STEP) {
    __syncthreads();
    bool inside = k + row < count;
    *(float4*)(left + row * PITCH + at) = four(g + (i64)(first + k + row) * columns + down_at + at, inside && down_at + at < columns);
    float4 given = four(x + (i64)(first + k + row) * width + across + at, inside && across + at < width);
    if (activate) given.x = active(given.x), given.y = active(given.y), given.z = active(given.z), given.w = active(given.w);
    *(float4*)(right + row * PITCH + at) = given;
    __syncthreads();
    add_step(sums, left, right, 4 * row, at);
    if (across == 0 && me < SIDE)
      for (int i = 0; i < STEP; ++i) added += left[i * PITCH + me];
  }
  i64 of_part = (kind * parts + part) * columns + down_at;
  for (int i = 0; i < 4 && down_at + 4 * row + i < columns && across + at < width; ++i)
    add_4(matrix + (of_part + 4 * row + i) * width + across + at, share * sums[4 * i], share * sums[4 * i + 1], share * sums[4 * i + 2],
          share * sums[4 * i + 3]);
  if (across == 0 && me < SIDE && down_at + me < columns) atomicAdd(total + of_part + me, share * added);
}

// moved = gelu(out) W^T + bias - x, and result = x + share moved.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    kind_mixed(const int* table, const float* x, const float* out, const float* weight, const float* bias, const float* gates, float* moved,
               float* result, i64 width) {
  extern __shared__ __align__(16) float room[];
  int tiles = (int)((width + SIDE - 1) / SIDE), across = blockIdx.x % tiles * SIDE;
  const int* own = table + 3 * (blockIdx.x / tiles);
  int kind = own[0], first = own[1], count = own[2];
  const float* from = out + first * width;
  Results sums = product(room, from, from, from, weight + kind * width * width, 1, 0, count, (int)width, (int)width, (int)width, across, false, true);
  float share = share_of(gates[kind]);
  each_four(sums, count, across, (int)width, [&](int row, int column, float4 sum) {
    i64 place = (first + row) * width + column;
    float4 before = *(const float4*)(x + place), start = *(const float4*)(bias + kind * width + column);
    float4 by = make_float4(sum.x + start.x - before.x, sum.y + start.y - before.y, sum.z + start.z - before.z, sum.w + start.w - before.w);
    *(float4*)(moved + place) = by;
    *(float4*)(result + place) = make_float4(before.x + share * by.x, before.y + share * by.y, before.z + share * by.z, before.w + share * by.w);
  });
}

// The gradients of x and out above for that of the result, and, added to of_gates, those of the gates.
extern "C" __global__ void __launch_bounds__(THREADS, 2)
    kind_unmixed(const int* table, const float* g, const float* out, const float* moved, const float* weight, const float* gates, float* of_x,
                 float* of_out, float* of_gates, i64 width) {
  extern __shared__ __align__(16) float room[];
  int tiles = (int)((width + SIDE - 1) / SIDE), across = blockIdx.x % tiles * SIDE;
  const int* own = table + 3 * (blockIdx.x / tiles);
  int kind = own[0], first = own[1], count = own[2];
  float added = 0.0f, share = share_of(gates[kind]), rest = 1.0f - share;
  const float* from = g + first * width;
  Results sums = product(room, from, from, from, weight + kind * width * width, 1, 0, count, (int)width, (int)width, (int)width, across, true, false);
  each_four(sums, count, across, (int)width, [&](int row, int column, float4 sum) {
    i64 place = (first + row) * width + column;
    float4 given = *(const float4*)(g + place), before = *(const float4*)(out + place), by = *(const float4*)(moved + place);
    added += given.x * by.x + given.y * by.y + given.z * by.z + given.w * by.w;
    *(float4*)(of_x + place) = make_float4(rest * given.x, rest * given.y, rest * given.z, rest * given.w);
    *(float4*)(of_out + place) = make_float4(share * sum.x * slope(before.x), share * sum.y * slope(before.y), share * sum.z * slope(before.z),
                                             share * sum.w * slope(before.w));
  });
  for (int apart = 16; apart; apart /= 2) added += __shfl_xor_sync(0xffffffffu, added, apart);
  if (threadIdx.x % 32 == 0) atomicAdd(of_gates + kind, share * (1.0f - share) * added);
}
