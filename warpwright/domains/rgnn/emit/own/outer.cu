// Weight gradients of a graph's relations: out[r] = sum over the rows of relation r of scale * left^T right, in float32 by three TF32 products.
// Each operand is a row of numbers in memory, found through an index or as it lies. Right rows may lie in up to three parts, each in memory of its
// own; the tiles of one span, which read the same left rows, are neighbours, so that all but the first find them in the second cache. See outer.py.
//
// A block has a span of rows, sorted by relation, and a tile of SIDE x SIDE of the results; each of its four warps has a quarter of it. Rows are
// copied to shared memory STAGES - 1 steps ahead. Which numbers of a row meet in a product is free, so a thread takes four neighbours in one read.
// Numbers of rows are kept in 32 bits: of 64, with 128 registers a thread, they were spilled at every step.
#define SIDE 64
#define ROWS 32
#define PITCH 72  // floats between rows: reads of 16 bytes by eight threads, four rows of two, meet no bank twice
#define STAGES 3
#define THREADS 128

struct Sums {
  float of[2][4][4];  // [16 rows][8 columns][places of the fragment]
};

__device__ inline void copy_16(float* to, const float* from, int bytes) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes));
}

__device__ inline void copy_4(float* to, const float* from, int bytes) {
  unsigned at = (unsigned)__cvta_generic_to_shared(to);
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(bytes));
}

// Adds the products of rows [from, to) of a step. `whole`: of all, without a mask. `summing`: the right rows to `columns` too.
__device__ inline void add_rows(Sums& sums, float* columns, const float* left, const float* right, const float* scales, int scaled, int down,
                                int across, int t, bool whole, int from, int to, bool summing) {
  // A tensor core cuts what it adds where it rounds elsewhere: sums of 3,600 rows in one register were 4e-5 too small. So a step has sums of its own.
  Sums part;
  for (int m = 0; m < 2; ++m)
    for (int n = 0; n < 4; ++n)
      for (int i = 0; i < 4; ++i) part.of[m][n][i] = 0.0f;
  for (int k = 0; k < ROWS; k += 8) {
    float a[2][4], b[2][4];
    for (int half = 0; half < 2; ++half) {
      int row = k + 4 * half + t;
      float4 x = *(const float4*)(left + row * PITCH + down), y = *(const float4*)(right + row * PITCH + across);
      a[half][0] = x.x, a[half][1] = x.y, a[half][2] = x.z, a[half][3] = x.w;
      b[half][0] = y.x, b[half][1] = y.y, b[half][2] = y.z, b[half][3] = y.w;
      if (scaled) {
        float scale = scales[row];
        scale = scaled == 1 ? scale : scale == 0.0f ? 0.0f : __fdividef(1.0f, scale);
        for (int i = 0; i < 4; ++i) a[half][i] *= scale;
      }
      bool inside = whole || (row >= from && row < to);
      for (int i = 0; i < 4; ++i) {
        a[half][i] = inside ? a[half][i] : 0.0f;
        b[half][i] = inside ? b[half][i] : 0.0f;
      }
      if (summing)
        for (int i = 0; i < 4; ++i) columns[i] += b[half][i];
    }
    unsigned high[2][4], low[2][4], b_high[4][2], b_low[4][2];
    for (int tile = 0; tile < 2; ++tile)
      for (int i = 0; i < 4; ++i) split(a[i / 2][2 * tile + i % 2], &high[tile][i], &low[tile][i]);
    for (int tile = 0; tile < 4; ++tile)
      for (int i = 0; i < 2; ++i) split(b[i][tile], &b_high[tile][i], &b_low[tile][i]);
    for (int m = 0; m < 2; ++m)
      for (int n = 0; n < 4; ++n) {
        multiply(part.of[m][n], low[m], b_high[n][0], b_high[n][1]);
        multiply(part.of[m][n], high[m], b_low[n][0], b_low[n][1]);
        multiply(part.of[m][n], high[m], b_high[n][0], b_high[n][1]);
      }
  }
  for (int m = 0; m < 2; ++m)
    for (int n = 0; n < 4; ++n)
      for (int i = 0; i < 4; ++i) sums.of[m][n][i] += part.of[m][n][i];
}

// Adds what was summed to a relation's matrix, and begins anew. `down`, `across`: the first row and column of a thread's quarter; `pitch`: numbers
// between rows.
__device__ inline void flush(Sums& sums, float* out, int height, int width, int pitch, int down, int across, int g, int t) {
  for (int m = 0; m < 2; ++m)
    for (int i = 0; i < 4; ++i) {
      int row = down + 4 * g + 2 * m + i / 2, column = across + 4 * (2 * t + i % 2);
      if (row < height && column < width)
        add_4(out + (i64)row * pitch + column, sums.of[m][0][i], sums.of[m][1][i], sums.of[m][2][i], sums.of[m][3][i]);
      for (int n = 0; n < 4; ++n) sums.of[m][n][i] = 0.0f;
    }
}

// Adds the sums of the right rows to a relation's, and begins anew. `across`: a thread's first column.
__device__ inline void flush_columns(float* columns, float* total, int width, int across, int t) {
  for (int i = 0; i < 4; ++i) {
    float sum = columns[i];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    if (t == 0 && across + i < width) atomicAdd(total + across + i, sum);
    columns[i] = 0.0f;
  }
}

// `scaled`: 0 without a factor of each row, 1 with it, 2 with one over it (0 for 0). `total` gets each relation's sum of the right rows. `each`:
// rows of a block. `width`: numbers of a right row in each of the `parts`.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    typed_outer(const float* left, const int* left_of, const float* right, const float* right_1, const float* right_2, const int* right_of,
                const float* scale, const int* scale_of, const int* relation_of, float* out, float* total, i64 rows, i64 left_step, i64 right_step,
                i64 height, i64 width, i64 each, i64 scaled, i64 parts) {
  extern __shared__ __align__(16) float room[];
  int me = threadIdx.x, lane = me & 31, g = lane >> 2, t = lane & 3, warp = me >> 5;
  int tiles_of_part = (int)((width + SIDE - 1) / SIDE), tiles_across = tiles_of_part * (int)parts;
  int tiles = tiles_across * (int)((height + SIDE - 1) / SIDE), pitch = (int)(width * parts);
  int tile = blockIdx.x % tiles;
  int part = tile % tiles_across / tiles_of_part;
  int first_down = tile / tiles_across * SIDE, first_across = tile % tiles_of_part * SIDE;
  out += part * width;
  int first = (int)((blockIdx.x / tiles) * each), last = first + each < rows ? first + (int)each : rows;
  if (first >= last) return;
  int steps = (last - first + ROWS - 1) / ROWS;
  int column = 4 * (me & 15), own = me >> 4;  // what the thread copies: four numbers of every eighth row
  int left_bytes = first_down + column < height ? 16 : 0, right_bytes = first_across + column < width ? 16 : 0;
  const float* left_from = left + (left_bytes ? first_down + column : 0);
  const float* right_from = (part == 0 ? right : part == 1 ? right_1 : right_2) + (right_bytes ? first_across + column : 0);
  int lefts[4], rights[4], of_scale = 0;  // rows, of which there are fewer than 2^31
  int low = 0, high = 0, now = 0, next_low = 0, next_high = 0;
  Sums sums;
  float columns[4] = {0.0f, 0.0f, 0.0f, 0.0f};
  for (int m = 0; m < 2; ++m)
    for (int n = 0; n < 4; ++n)
      for (int i = 0; i < 4; ++i) sums.of[m][n][i] = 0.0f;
  now = relation_of ? relation_of[first] : 0;

  for (int step = 1 - STAGES; step < steps; ++step) {
    int ahead = step + STAGES - 1;  // the step whose rows are asked for
    if (step >= 0) {
      asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2));
      __syncthreads();
    }
    if (step == 1 - STAGES) {
      for (int i = 0; i < 4; ++i) {
        int row = first + own + 8 * i;
        bool ok = row < last;
        lefts[i] = !ok ? -1 : left_of ? left_of[row] : row;
        rights[i] = !ok ? -1 : right_of ? right_of[row] : row;
      }
      of_scale = me < ROWS && first + me < last ? (scale_of ? scale_of[first + me] : first + me) : -1;
    }
    float* stage = room + (ahead % STAGES) * (2 * ROWS * PITCH + ROWS);
    if (ahead < steps) {
      for (int i = 0; i < 4; ++i) {
        int row = own + 8 * i;
        bool ok = lefts[i] >= 0;
        copy_16(stage + row * PITCH + column, left_from + (ok ? (i64)lefts[i] * left_step : 0), ok ? left_bytes : 0);
        copy_16(stage + (ROWS + row) * PITCH + column, right_from + (ok ? (i64)rights[i] * right_step : 0), ok ? right_bytes : 0);
      }
      if (scaled && me < ROWS) copy_4(stage + 2 * ROWS * PITCH + me, scale + (of_scale >= 0 ? of_scale : 0), of_scale >= 0 ? 4 : 0);
    }
    asm volatile("cp.async.commit_group;");
    int coming = first + (ahead + 1) * ROWS;  // where the rows of the step after it are, asked for a step early
    if (ahead + 1 < steps) {
      for (int i = 0; i < 4; ++i) {
        int row = coming + own + 8 * i;
        bool ok = row < last;
        lefts[i] = !ok ? -1 : left_of ? left_of[row] : row;
        rights[i] = !ok ? -1 : right_of ? right_of[row] : row;
      }
      of_scale = me < ROWS && coming + me < last ? (scale_of ? scale_of[coming + me] : coming + me) : -1;
    }
    low = next_low, high = next_high;
    int begin = first + step * ROWS;
    if (relation_of && step + 1 >= 0 && step + 1 < steps) {
      int end = begin + 2 * ROWS < last ? begin + 2 * ROWS : last;
      next_low = relation_of[begin + ROWS], next_high = relation_of[end - 1];
    }
    if (step < 0) continue;
    const float* held = room + (step % STAGES) * (2 * ROWS * PITCH + ROWS);
    const float* rights_held = held + ROWS * PITCH;
    const float* scales = held + 2 * ROWS * PITCH;
    int down = 32 * (warp >> 1) + 4 * g, across = 32 * (warp & 1) + 4 * g;
    int count = last - begin < ROWS ? last - begin : ROWS;
    for (int from = 0; from < count;) {
      int relation = low, to = count;
      if (low != high) {  // relations end within the step: one after another
        relation = relation_of[begin + from];
        to = from + 1;
        while (to < count && relation_of[begin + to] == relation) ++to;
      }
      if (relation != now) {
        flush(sums, out + (i64)now * height * pitch, (int)height, (int)width, pitch, first_down + 32 * (warp >> 1),
              first_across + 32 * (warp & 1), g, t);
        if (total && first_down == 0 && warp < 2)
          flush_columns(columns, total + now * pitch + part * (int)width, (int)width, first_across + 32 * (warp & 1) + 4 * g, t);
        now = relation;
      }
      if (low == high)
        add_rows(sums, columns, held, rights_held, scales, (int)scaled, down, across, t, true, 0, ROWS, total != nullptr);
      else
        add_rows(sums, columns, held, rights_held, scales, (int)scaled, down, across, t, false, from, to, total != nullptr);
      from = to;
    }
  }
  flush(sums, out + (i64)now * height * pitch, (int)height, (int)width, pitch, first_down + 32 * (warp >> 1), first_across + 32 * (warp & 1), g, t);
  if (total && first_down == 0 && warp < 2)
    flush_columns(columns, total + now * pitch + part * (int)width, (int)width, first_across + 32 * (warp & 1) + 4 * g, t);
}
