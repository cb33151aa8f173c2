// One product of matrices in eight forms, as courses on CUDA climb it: C = alpha A B + beta C, all row by row, sizes that the tiles divide.
__global__ void ladder_naive(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x, col = blockIdx.y * blockDim.y + threadIdx.y;
  if (row < M && col < N) {
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = alpha * sum + beta * C[row * N + col];
  }
}
__global__ void ladder_coalesced(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
  const int row = blockIdx.x * 32 + threadIdx.x / 32, col = blockIdx.y * 32 + threadIdx.x % 32;
  if (row < M && col < N) {
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += A[row * K + k] * B[k * N + col];
    C[row * N + col] = alpha * sum + beta * C[row * N + col];
  }
}
template <int S> __global__ void ladder_shared_form(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
  __shared__ float a[S * S], b[S * S];
  const unsigned x = threadIdx.x % S, y = threadIdx.x / S;
  A += blockIdx.x * S * K;
  B += blockIdx.y * S;
  C += blockIdx.x * S * N + blockIdx.y * S;
  float sum = 0;
  for (int at = 0; at < K; at += S) {
    a[y * S + x] = A[y * K + x];
    b[y * S + x] = B[y * N + x];
    __syncthreads();
    A += S;
    B += S * N;
    for (int k = 0; k < S; ++k) sum += a[y * S + k] * b[k * S + x];
    __syncthreads();
  }
  C[y * N + x] = alpha * sum + beta * C[y * N + x];
}
template <int BM, int BN, int BK, int TM>
__global__ void ladder_column_form(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
  __shared__ float a[BM * BK], b[BK * BN];
  const int x = threadIdx.x % BN, y = threadIdx.x / BN;
  A += blockIdx.y * BM * K;
  B += blockIdx.x * BN;
  C += blockIdx.y * BM * N + blockIdx.x * BN;
  const unsigned ax = threadIdx.x % BK, ay = threadIdx.x / BK, bx = threadIdx.x % BN, by = threadIdx.x / BN;
  float sums[TM] = {0.0f};
  for (unsigned at = 0; at < K; at += BK) {
    a[ay * BK + ax] = A[ay * K + ax];
    b[by * BN + bx] = B[by * N + bx];
    __syncthreads();
    A += BK;
    B += BK * N;
    for (unsigned k = 0; k < BK; ++k) {
      const float right = b[k * BN + x];
      for (unsigned m = 0; m < TM; ++m) sums[m] += a[(y * TM + m) * BK + k] * right;
    }
    __syncthreads();
  }
  for (unsigned m = 0; m < TM; ++m) C[(y * TM + m) * N + x] = alpha * sums[m] + beta * C[(y * TM + m) * N + x];
}
template <int BM, int BN, int BK, int TM, int TN>
__global__ void __launch_bounds__(BM * BN / (TM * TN))
    ladder_tile_form(int M, int N, int K, float alpha, const float* A, const float* B, float beta, float* C) {
  __shared__ float a[BM * BK], b[BK * BN];
  const unsigned all = BM * BN / (TM * TN);
  const int x = threadIdx.x % (BN / TN), y = threadIdx.x / (BN / TN);
  A += blockIdx.y * BM * K;
  B += blockIdx.x * BN;
  C += blockIdx.y * BM * N + blockIdx.x * BN;
  const unsigned ax = threadIdx.x % BK, ay = threadIdx.x / BK, bx = threadIdx.x % BN, by = threadIdx.x / BN;
  float sums[TM * TN] = {0.0f}, left[TM] = {0.0f}, right[TN] = {0.0f};
  for (unsigned at = 0; at < K; at += BK) {
    for (unsigned row = 0; row < BM; row += all / BK) a[(ay + row) * BK + ax] = A[(ay + row) * K + ax];
    for (unsigned row = 0; row < BK; row += all / BN) b[(by + row) * BN + bx] = B[(by + row) * N + bx];
    __syncthreads();
    A += BK;
    B += BK * N;
    for (unsigned k = 0; k < BK; ++k) {
      for (unsigned i = 0; i < TM; ++i) left[i] = a[(y * TM + i) * BK + k];
      for (unsigned i = 0; i < TN; ++i) right[i] = b[k * BN + x * TN + i];
      for (unsigned m = 0; m < TM; ++m)
        for (unsigned n = 0; n < TN; ++n) sums[m * TN + n] += left[m] * right[n];
    }
    __syncthreads();
  }
  for (unsigned m = 0; m < TM; ++m)
    for (unsigned n = 0; n < TN; ++n) {
      float& c = C[(y * TM + m) * N + x * TN + n];
      c = alpha * sums[m * TN + n] + beta * c;
    }
}
template <int BM, int BN, int BK, int TM, int TN>
__global__ void ladder_float4_form(int M, int N, int K, float alpha, float* A, float* B, float beta, float* C) {
  __shared__ float a[BM * BK], b[BK * BN];
  const int x = threadIdx.x % (BN / TN), y = threadIdx.x / (BN / TN);
  A += blockIdx.y * BM * K;
  B += blockIdx.x * BN;
  C += blockIdx.y * BM * N + blockIdx.x * BN;
  const unsigned ax = threadIdx.x % (BK / 4), ay = threadIdx.x / (BK / 4), bx = threadIdx.x % (BN / 4), by = threadIdx.x / (BN / 4);
  float sums[TM * TN] = {0.0f}, left[TM] = {0.0f}, right[TN] = {0.0f};
  for (unsigned at = 0; at < K; at += BK) {
    float4 four = reinterpret_cast<float4*>(&A[ay * K + ax * 4])[0];
    a[(ax * 4 + 0) * BM + ay] = four.x;
    a[(ax * 4 + 1) * BM + ay] = four.y;
    a[(ax * 4 + 2) * BM + ay] = four.z;
    a[(ax * 4 + 3) * BM + ay] = four.w;
    reinterpret_cast<float4*>(&b[by * BN + bx * 4])[0] = reinterpret_cast<float4*>(&B[by * N + bx * 4])[0];
    __syncthreads();
    A += BK;
    B += BK * N;
    for (unsigned k = 0; k < BK; ++k) {
      for (unsigned i = 0; i < TM; ++i) left[i] = a[k * BM + y * TM + i];
      for (unsigned i = 0; i < TN; ++i) right[i] = b[k * BN + x * TN + i];
      for (unsigned m = 0; m < TM; ++m)
        for (unsigned n = 0; n < TN; ++n) sums[m * TN + n] += left[m] * right[n];
    }
    __syncthreads();
  }
  for (unsigned m = 0; m < TM; ++m)
    for (unsigned n = 0; n < TN; n += 4) {
      float4 c = reinterpret_cast<float4*>(&C[(y * TM + m) * N + x * TN + n])[0];
      c.x = alpha * sums[m * TN + n] + beta * c.x;
      c.y = alpha * sums[m * TN + n + 1] + beta * c.y;
      c.z = alpha * sums[m * TN + n + 2] + beta * c.z;
      c.w = alpha * sums[m * TN + n + 3] + beta * c.w;
      reinterpret_cast<float4*>(&C[(y * TM + m) * N + x * TN + n])[0] = c;
    }
}
// a warp takes a tile of WM x WN in steps of WI x WJ threads' tiles
template <int BM, int BN, int BK, int step_a, int step_b>
__device__ void ladder_load(int N, int K, const float* A, const float* B, float* a, float* b, int ay, int ax, int by, int bx) {
  for (unsigned row = 0; row + step_a <= BM; row += step_a) {
    const float4 four = reinterpret_cast<const float4*>(&A[(ay + row) * K + ax * 4])[0];
    a[(ax * 4 + 0) * BM + ay + row] = four.x;
    a[(ax * 4 + 1) * BM + ay + row] = four.y;
    a[(ax * 4 + 2) * BM + ay + row] = four.z;
    a[(ax * 4 + 3) * BM + ay + row] = four.w;
  }
  for (unsigned row = 0; row + step_b <= BK; row += step_b)
    reinterpret_cast<float4*>(&b[(by + row) * BN + bx * 4])[0] = reinterpret_cast<const float4*>(&B[(by + row) * N + bx * 4])[0];
}
template <int BM, int BN, int BK, int WM, int WN, int WI, int WJ, int SM, int SN, int TM, int TN>
__device__ void ladder_multiply(float* left, float* right, float* sums, const float* a, const float* b, int wy, int wx, int ty, int tx) {
  for (unsigned k = 0; k < BK; ++k) {
    for (unsigned wi = 0; wi < WI; ++wi)
      for (unsigned i = 0; i < TM; ++i) left[wi * TM + i] = a[k * BM + wy * WM + wi * SM + ty * TM + i];
    for (unsigned wj = 0; wj < WJ; ++wj)
      for (unsigned i = 0; i < TN; ++i) right[wj * TN + i] = b[k * BN + wx * WN + wj * SN + tx * TN + i];
    for (unsigned wi = 0; wi < WI; ++wi)
      for (unsigned wj = 0; wj < WJ; ++wj)
        for (unsigned m = 0; m < TM; ++m)
          for (unsigned n = 0; n < TN; ++n) sums[(wi * TM + m) * (WJ * TN) + wj * TN + n] += left[wi * TM + m] * right[wj * TN + n];
  }
}
template <int BM, int BN, int BK, int WM, int WN, int WJ, int TM, int TN, int all>
__global__ void __launch_bounds__(all) ladder_warp_form(int M, int N, int K, float alpha, float* A, float* B, float beta, float* C) {
  __shared__ float a[BM * BK], b[BK * BN];
  constexpr unsigned WI = (WM * WN) / (32 * TM * TN * WJ), SM = WM / WI, SN = WN / WJ;
  const unsigned warp = threadIdx.x / 32, wx = warp % (BN / WN), wy = warp / (BN / WN);
  const unsigned lane = threadIdx.x % 32, tx = lane % (SN / TN), ty = lane / (SN / TN);
  A += blockIdx.y * BM * K;
  B += blockIdx.x * BN;
  C += (blockIdx.y * BM + wy * WM) * N + blockIdx.x * BN + wx * WN;
  const unsigned ax = threadIdx.x % (BK / 4), ay = threadIdx.x / (BK / 4), bx = threadIdx.x % (BN / 4), by = threadIdx.x / (BN / 4);
  constexpr unsigned step_a = all * 4 / BK, step_b = all / (BN / 4);
  float sums[WI * TM * WJ * TN] = {0.0f}, left[WI * TM] = {0.0f}, right[WJ * TN] = {0.0f};
  for (unsigned at = 0; at < K; at += BK) {
    ladder_load<BM, BN, BK, step_a, step_b>(N, K, A, B, a, b, ay, ax, by, bx);
    __syncthreads();
    ladder_multiply<BM, BN, BK, WM, WN, WI, WJ, SM, SN, TM, TN>(left, right, sums, a, b, wy, wx, ty, tx);
    A += BK;
    B += BK * N;
    __syncthreads();
  }
  for (unsigned wi = 0; wi < WI; ++wi)
    for (unsigned wj = 0; wj < WJ; ++wj) {
      float* tile = C + (wi * SM) * N + wj * SN;
      for (unsigned m = 0; m < TM; ++m)
        for (unsigned n = 0; n < TN; n += 4) {
          float4 c = reinterpret_cast<float4*>(&tile[(ty * TM + m) * N + tx * TN + n])[0];
          const int at = (wi * TM + m) * (WJ * TN) + wj * TN + n;
          c.x = alpha * sums[at] + beta * c.x;
          c.y = alpha * sums[at + 1] + beta * c.y;
          c.z = alpha * sums[at + 2] + beta * c.z;
          c.w = alpha * sums[at + 3] + beta * c.w;
          reinterpret_cast<float4*>(&tile[(ty * TM + m) * N + tx * TN + n])[0] = c;
        }
    }
}
// two stages of shared memory: the next tile is loaded while this one is multiplied
template <int BM, int BN, int BK, int TM, int TN>
__global__ void ladder_stages_form(int M, int N, int K, float alpha, float* A, float* B, float beta, float* C) {
  __shared__ float a[2][BK][BM], b[2][BK][BN];
  const int x = threadIdx.x % (BN / TN), y = threadIdx.x / (BN / TN);
  A += blockIdx.y * BM * K;
  B += blockIdx.x * BN;
  C += blockIdx.y * BM * N + blockIdx.x * BN;
  const int ax = threadIdx.x % (BK / 4) * 4, ay = threadIdx.x / (BK / 4), bx = threadIdx.x % (BN / 4) * 4, by = threadIdx.x / (BN / 4);
  float sums[TM][TN] = {}, left[TM], right[TN];
  float4 next_a = *reinterpret_cast<const float4*>(&A[ay * K + ax]), next_b = *reinterpret_cast<const float4*>(&B[by * N + bx]);
  int stage = 0;
  a[0][ax][ay] = next_a.x, a[0][ax + 1][ay] = next_a.y, a[0][ax + 2][ay] = next_a.z, a[0][ax + 3][ay] = next_a.w;
  *reinterpret_cast<float4*>(&b[0][by][bx]) = next_b;
  __syncthreads();
  for (int at = BK; at <= K; at += BK) {
    if (at < K) {
      next_a = *reinterpret_cast<const float4*>(&A[ay * K + at + ax]);
      next_b = *reinterpret_cast<const float4*>(&B[(at + by) * N + bx]);
    }
#pragma unroll
    for (int k = 0; k < BK; ++k) {
      for (int i = 0; i < TM; ++i) left[i] = a[stage][k][y * TM + i];
      for (int i = 0; i < TN; ++i) right[i] = b[stage][k][x * TN + i];
      for (int m = 0; m < TM; ++m)
        for (int n = 0; n < TN; ++n) sums[m][n] += left[m] * right[n];
    }
    if (at < K) {
      stage ^= 1;
      a[stage][ax][ay] = next_a.x, a[stage][ax + 1][ay] = next_a.y, a[stage][ax + 2][ay] = next_a.z, a[stage][ax + 3][ay] = next_a.w;
      *reinterpret_cast<float4*>(&b[stage][by][bx]) = next_b;
      __syncthreads();
    }
  }
  for (int m = 0; m < TM; ++m)
    for (int n = 0; n < TN; ++n) C[(y * TM + m) * N + x * TN + n] = alpha * sums[m][n] + beta * C[(y * TM + m) * N + x * TN + n];
}
