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

// The inner product of two rows, in all sixteen threads.
__device__ inline float inner(float4 a, float4 b) {
  float sum = a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
  for (int far = GROUP / 2; far > 0; far /= 2) sum += __shfl_xor_sync(EVERY, sum, far);
  return sum;
}

__device__ inline void add_times(float4& sum, float by, float4 row) {
  sum.x += by * row.x, sum.y += by * row.y, sum.z += by * row.z, sum.w += by * row.w;
}

