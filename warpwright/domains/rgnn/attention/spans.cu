// What kernels over spans of a node's edges share: sixteen threads have a span, four numbers of a row each.
#define THREADS 256
#define GROUP 16
#define AT_ONCE 4  // edges whose rows are asked for together
#define EVERY 0xffffffffu
#define LEAST __int_as_float(0xff800000)  // minus infinity

__device__ inline float4 zero() { return make_float4(0.0f, 0.0f, 0.0f, 0.0f); }

__device__ inline float4 row_of(const float* rows, i64 row, i64 depth, int column) {
  return row >= 0 && column < depth ? *(const float4*)(rows + row * depth + column) : zero();
}

// A thread's part of the inner product of two rows.
__device__ inline float part_of(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }

// The inner product of two rows, in all sixteen threads.
__device__ inline float inner(float4 a, float4 b) {
  float sum = part_of(a, b);
  for (int far = GROUP / 2; far > 0; far /= 2) sum += __shfl_xor_sync(EVERY, sum, far);
  return sum;
}

__device__ inline void add_times(float4& sum, float by, float4 row) {
  sum.x += by * row.x, sum.y += by * row.y, sum.z += by * row.z, sum.w += by * row.w;
}

// A number that one of the sixteen threads has, in all of them.
__device__ inline int told(int mine, int from) { return __shfl_sync(EVERY, mine, from, GROUP); }
__device__ inline float told(float mine, int from) { return __shfl_sync(EVERY, mine, from, GROUP); }

__device__ inline float sum_of(float mine) {
  for (int far = GROUP / 2; far > 0; far /= 2) mine += __shfl_xor_sync(EVERY, mine, far);
  return mine;
}

// The sums of four numbers over the sixteen threads: threads 4 i to 4 i + 3 get that of part[i], by five exchanges where one after another takes 16.
template <typename T>
__device__ inline T four_sums(const T* part, int lane) {
  bool upper = lane & 8, second = lane & 4;
  T first = (upper ? part[2] : part[0]) + __shfl_xor_sync(EVERY, upper ? part[0] : part[2], 8);
  T other = (upper ? part[3] : part[1]) + __shfl_xor_sync(EVERY, upper ? part[1] : part[3], 8);
  T sum = (second ? other : first) + __shfl_xor_sync(EVERY, second ? first : other, 4);
  sum += __shfl_xor_sync(EVERY, sum, 2);
  return sum + __shfl_xor_sync(EVERY, sum, 1);
}

// What each of the four numbers of `four_sums` is in one of sixteen threads, put together in all of them.
__device__ inline float largest_of_four(float mine) {
  float other = __shfl_xor_sync(EVERY, mine, 4);
  mine = other > mine ? other : mine;
  other = __shfl_xor_sync(EVERY, mine, 8);
  return other > mine ? other : mine;
}

__device__ inline float sum_of_four(float mine) {
  mine += __shfl_xor_sync(EVERY, mine, 4);
  return mine + __shfl_xor_sync(EVERY, mine, 8);
}

