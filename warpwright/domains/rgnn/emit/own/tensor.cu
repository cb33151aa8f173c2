// Products of float32 by tensor cores: three TF32 products of numbers split in two. What gathered.cu, outer.cu, kinds.cu and products.cu share.
#define HELD_PITCH 80  // floats between rows: reads of 16 bytes by eight threads, two rows of four, meet no bank twice

__device__ inline void multiply(float* d, const unsigned* a, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// A number as two of TF32: the nearest one, and what is left.
__device__ inline void split(float x, unsigned* high, unsigned* low) {
  *high = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
  *low = __float_as_uint(x - __uint_as_float(*high));
}

// Puts a matrix of up to 64 x 64 numbers, split, into the order of the fragments: [8 steps of k][8 tiles of n][32 lanes], high and low parts of two
// numbers. Number k of a row meets result n at k * k_step + n * n_step. By 256 threads.
__device__ inline void put_weight(uint4* fragments, const float* matrix, int depth, int width, i64 k_step, i64 n_step) {
  for (int i = threadIdx.x; i < 8 * 8 * 32; i += 256) {
    int k = 16 * (i >> 9) + 4 * (i & 3) + 2 * ((i >> 8) & 1);
    int c = (i >> 2) & 7, tile = (i >> 5) & 7, n = 16 * (tile >> 1) + 4 * (c >> 1) + 2 * (tile & 1) + (c & 1);
    bool ok = k < depth && n < width;
    uint4 part;
    split(ok ? matrix[k * k_step + n * n_step] : 0.0f, &part.x, &part.z);
    split(ok ? matrix[(k + 1) * k_step + n * n_step] : 0.0f, &part.y, &part.w);
    fragments[i] = part;
  }
}

// The products of 64 rows in shared memory [64][HELD_PITCH] with a weight that `put_weight` put. Which numbers of a row meet in a product is free, and so is
// the order of its results: a thread takes and gives four neighbours at once. Of eight warps each has 16 rows and 32 results; a thread's are those of
// `first_row` and eight rows on, see `four_results`.
__device__ inline void multiply_rows(float result[4][4], const float* held, const uint4* fragments) {
  int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, warp = threadIdx.x >> 5;
  int own = 16 * (warp >> 1) + g, tiles = 4 * (warp & 1);
  for (int n = 0; n < 4; ++n)
    for (int i = 0; i < 4; ++i) result[n][i] = 0.0f;
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
}

__device__ inline int first_row() { return 16 * (threadIdx.x >> 6) + ((threadIdx.x & 31) >> 2); }

// The first of four neighbouring results that a thread has, of two such groups.
__device__ inline int first_column(int pair) { return 16 * (2 * (threadIdx.x >> 5 & 1) + pair) + 4 * (threadIdx.x & 3); }

// The results of `first_row() + 8 * half` from `first_column(pair)` on.
__device__ inline float4 four_results(const float result[4][4], int pair, int half) {
  const float* even = result[2 * pair] + 2 * half;
  const float* odd = result[2 * pair + 1] + 2 * half;
  return make_float4(even[0], even[1], odd[0], odd[1]);
}
