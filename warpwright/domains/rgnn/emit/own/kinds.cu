// Products of rows with the weight of their node's type, in float32, for small graphs: one launch for all types, where a library takes one for each.
// Rows lie by type. A table has, for each block's rows: type, first row, rows. Weights are [types][out][in], side by side. See kinds.py.
//
// Products are made by tensor cores (tensor.cu): a block goes through its rows SIDE at a time, for SIDE columns of the result; rows of up to SIDE numbers
// leave the weight in shared memory. In sums over rows a thread has four rows and four columns of the result.
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

// What is multiplied: up to three parts of rows [rows][width], whose products with as many weights are summed; `activate`: GELU of them.
struct Rows {
  const float* of[3];
  int parts, rows, width;
  bool activate;
};

// Four numbers of each of four rows of a step: SIDE rows from `base` on, and SIDE numbers of one part.
__device__ inline void ask(float4* given, const Rows& x, int base, int step) {
  int steps = (x.width + SIDE - 1) / SIDE, part = step / steps, at = (step - part * steps) * SIDE + 4 * (threadIdx.x & 15);
  const float* from = part == 0 ? x.of[0] : part == 1 ? x.of[1] : x.of[2];
  for (int i = 0; i < 4; ++i) {
    int row = base + (threadIdx.x >> 4) + 16 * i;
    given[i] = four(from + (i64)row * x.width + at, row < x.rows && at < x.width);
  }
}

// The products x W^T (`turned`: x W) for the columns from `across` on; `pitch`: numbers between rows of W, `apart`: between parts. For each four results
// of a thread: do(row of the block, column of the result, results). `room`: fragments of a weight, and SIDE rows. Rows are asked for a step ahead.
template <typename Do>
__device__ inline void products(float* room, const Rows& x, const float* weight, int apart, int pitch, int columns, int across, bool turned, Do with) {
  uint4* fragments = (uint4*)room;
  float* held = room + 8 * 8 * 32 * 4;
  int row = threadIdx.x >> 4, at = 4 * (threadIdx.x & 15), of_part = (x.width + SIDE - 1) / SIDE, steps = x.parts * of_part;
  float4 given[4];
  ask(given, x, 0, 0);
  for (int base = 0; base < x.rows; base += SIDE) {
    float sums[4][4];
    for (int step = 0; step < steps; ++step) {
      int part = step / of_part, k = (step - part * of_part) * SIDE;
      __syncthreads();
      if (steps > 1 || base == 0)
        put_weight(fragments, weight + part * apart + (turned ? k * pitch + across : across * pitch + k), x.width - k, columns - across,
                   turned ? pitch : 1, turned ? 1 : pitch);
      for (int i = 0; i < 4; ++i) {
        float4 own = given[i];
        if (x.activate) own.x = active(own.x), own.y = active(own.y), own.z = active(own.z), own.w = active(own.w);
        *(float4*)(held + (row + 16 * i) * HELD_PITCH + at) = own;
      }
      __syncthreads();
      if (step + 1 < steps)
        ask(given, x, base, step + 1);
      else if (base + SIDE < x.rows)
        ask(given, x, base + SIDE, 0);
      float added[4][4];
      multiply_rows(added, held, fragments);
#pragma unroll
      for (int i = 0; i < 16; ++i) sums[i >> 2][i & 3] = step ? sums[i >> 2][i & 3] + added[i >> 2][i & 3] : added[i >> 2][i & 3];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int pair = 0; pair < 2; ++pair) {
        int to = base + first_row() + 8 * half, column = across + first_column(pair);
        if (to < x.rows && column < columns) with(to, column, four_results(sums, pair, half));
      }
  }
}

// out[part][row] = x W_part^T (`turned`: x W_part) + bias (null: none), for rows x [rows][in] and parts of `columns` numbers. Blocks: rows of the table,
// parts, tiles of columns. Without a table there is one type, and blocks have `each` rows. A type's weight has `kept` parts, of which `begin` is first.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    kind_products(const int* table, Places x, const float* weight, const float* bias, float* out, i64 rows, i64 width, i64 columns, i64 parts,
                  i64 turned, i64 each, i64 kept, i64 begin) {
  extern __shared__ __align__(16) float room[];
  int tiles = (int)((columns + SIDE - 1) / SIDE), part = blockIdx.x / tiles % (int)parts, across = blockIdx.x % tiles * SIDE;
  int block = blockIdx.x / (tiles * (int)parts), kind = 0, first = block * (int)each;
  int count = (int)(rows - first < each ? rows - first : each);
  if (table) kind = table[3 * block], first = table[3 * block + 1], count = table[3 * block + 2];
  i64 of_part = (kind * kept + begin + part) * columns;
  const float* from = rows_of(x, kind) + first * width;
  Rows given = {{from, from, from}, 1, count, (int)width, false};
  products(room, given, weight + of_part * width, 0, (int)(turned ? columns : width), (int)columns, across, turned, [&](int row, int column, float4 sum) {
    float4 start = four(bias + of_part + column, bias != nullptr);
    *(float4*)(out + (part * rows + first + row) * columns + column) =
        make_float4(sum.x + start.x, sum.y + start.y, sum.z + start.z, sum.w + start.w);
  });
}

// out[row] = the sum over parts of g_part W_part (`added`: added to it): the gradient of x above; g [rows][in], columns of x.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    kind_sums(const int* table, const float* g_0, const float* g_1, const float* g_2, const float* weight, float* out, i64 width, i64 columns,
              i64 parts, i64 added) {
  extern __shared__ __align__(16) float room[];
  int tiles = (int)((columns + SIDE - 1) / SIDE), across = blockIdx.x % tiles * SIDE;
  const int* own = table + 3 * (blockIdx.x / tiles);
  int kind = own[0], first = own[1], count = own[2];
  i64 from = first * width;
  Rows given = {{g_0 + from, g_1 + from, g_2 + from}, (int)parts, count, (int)width, false};
  const float* own_weight = weight + kind * parts * width * columns;
  products(room, given, own_weight, (int)(width * columns), (int)columns, (int)columns, across, true, [&](int row, int column, float4 sum) {
    float* to = out + (first + row) * columns + column;
    float4 before = four(to, added != 0);
    *(float4*)to = make_float4(before.x + sum.x, before.y + sum.y, before.z + sum.z, before.w + sum.w);
  });
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

// moved (or none) = gelu(out) W^T + bias - x, and result = x + share moved.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    kind_mixed(const int* table, Places x, const float* out, const float* weight, const float* bias, const float* gates, float* moved,
               float* result, i64 width) {
  extern __shared__ __align__(16) float room[];
  int tiles = (int)((width + SIDE - 1) / SIDE), across = blockIdx.x % tiles * SIDE;
  const int* own = table + 3 * (blockIdx.x / tiles);
  int kind = own[0], first = own[1], count = own[2];
  const float *from = out + first * width, *own_x = rows_of(x, kind);
  Rows given = {{from, from, from}, 1, count, (int)width, true};
  float share = share_of(gates[kind]);
  products(room, given, weight + kind * width * width, 0, (int)width, (int)width, across, false, [&](int row, int column, float4 sum) {
    i64 place = (first + row) * width + column;
    float4 before = *(const float4*)(own_x + place), start = *(const float4*)(bias + kind * width + column);
    float4 by = make_float4(sum.x + start.x - before.x, sum.y + start.y - before.y, sum.z + start.z - before.z, sum.w + start.w - before.w);
    if (moved) *(float4*)(moved + place) = by;
    *(float4*)(result + place) = make_float4(before.x + share * by.x, before.y + share * by.y, before.z + share * by.z, before.w + share * by.w);
  });
}

// The gradients of x and out above for that of the result, and, added to of_gates, those of the gates.
extern "C" __global__ void __launch_bounds__(THREADS, 3)
    kind_unmixed(const int* table, const float* g, const float* out, const float* moved, const float* weight, const float* gates, float* of_x,
                 float* of_out, float* of_gates, i64 width) {
  extern __shared__ __align__(16) float room[];
  int tiles = (int)((width + SIDE - 1) / SIDE), across = blockIdx.x % tiles * SIDE;
  const int* own = table + 3 * (blockIdx.x / tiles);
  int kind = own[0], first = own[1], count = own[2];
  float added = 0.0f, share = share_of(gates[kind]), rest = 1.0f - share;
  const float* from = g + first * width;
  Rows gradients = {{from, from, from}, 1, count, (int)width, false};
  products(room, gradients, weight + kind * width * width, 0, (int)width, (int)width, across, true, [&](int row, int column, float4 sum) {
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

// out = the rows of all types, one after another: torch takes 22 us for the 27 types of bgs' graph (24 MB; an H200), and 58 by torch.cat.
extern "C" __global__ void __launch_bounds__(THREADS) kind_together(const int* table, Places from, float* out, i64 width) {
  const int* own = table + 3 * blockIdx.x;
  int kind = own[0], first = own[1], all = (int)(own[2] * width / 4);
  const float4* source = (const float4*)(rows_of(from, kind) + first * width);
  float4* to = (float4*)(out + first * width);
  for (int at = threadIdx.x; at < all; at += 4 * THREADS) {
    float4 x[4];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (at + i * THREADS < all) x[i] = source[at + i * THREADS];
#pragma unroll
    for (int i = 0; i < 4; ++i)
      if (at + i * THREADS < all) to[at + i * THREADS] = x[i];
  }
}
