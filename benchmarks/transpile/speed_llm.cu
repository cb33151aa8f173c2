// Kernels of a small language model's training, forwards and backwards, and of first courses on CUDA, in the forms that both give them.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;

__global__ void embed(const int* tokens, const float* words, const float* places, float* out, int B, int T, int C) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < B * T * C) {
    const int bt = i / C, b = bt / T, t = bt % T, c = i % C;
    const int token = tokens[b * T + t];
    out[i] = words[token * C + c] + places[t * C + c];
  }
}
__global__ void embed_backward(const int* tokens, float* dwords, float* dplaces, const float* dout, int B, int T, int C) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < B * T * C) {
    const int bt = i / C, b = bt / T, t = bt % T, c = i % C;
    const int token = tokens[b * T + t];
    atomicAdd(dwords + token * C + c, dout[i]);
    atomicAdd(dplaces + t * C + c, dout[i]);
  }
}
// a thread a row
__global__ void norm_naive(float* out, float* means, float* scales, const float* x, const float* weight, const float* bias, int N, int C) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < N) {
    const float* row = x + r * C;
    float mean = 0.0f;
    for (int i = 0; i < C; i++) mean += row[i];
    mean = mean / C;
    float squares = 0.0f;
    for (int i = 0; i < C; i++) {
      const float d = row[i] - mean;
      squares += d * d;
    }
    const float scale = 1.0f / sqrtf(squares / C + 1e-5f);
    for (int i = 0; i < C; i++) out[r * C + i] = (scale * (row[i] - mean)) * weight[i] + bias[i];
    means[r] = mean;
    scales[r] = scale;
  }
}
// a warp a row, by cooperative groups
__global__ void norm_groups(float* __restrict__ out, float* __restrict__ means, float* __restrict__ scales, const float* __restrict__ x,
                            const float* __restrict__ weight, const float* __restrict__ bias, int N, int C) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int r = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (r >= N) return;
  const float* row = x + r * C;
  float sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) sum += row[i];
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  const float mean = sum / C;
  if (warp.thread_rank() == 0) means[r] = mean;
  sum = 0.0f;
  for (int i = warp.thread_rank(); i < C; i += warp.size()) {
    const float d = row[i] - mean;
    sum += d * d;
  }
  sum = cg::reduce(warp, sum, cg::plus<float>{});
  const float scale = rsqrtf(sum / C + 1e-5f);
  if (warp.thread_rank() == 0) scales[r] = scale;
  for (int c = warp.thread_rank(); c < C; c += warp.size()) out[r * C + c] = scale * (row[c] - mean) * weight[c] + bias[c];
}
// a warp a row; a block adds up its share of the weights' gradients in shared memory
__global__ void norm_backward(float* dx, float* dweight, float* dbias, const float* dout, const float* x, const float* weight, const float* means,
                              const float* scales, int N, int C) {
  extern __shared__ float both[];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int r = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  float *bias_part = both, *weight_part = both + C;
  for (int i = threadIdx.x; i < C; i += blockDim.x) {
    bias_part[i] = 0.0f;
    weight_part[i] = 0.0f;
  }
  block.sync();
  if (r < N) {
    const float *d_row = dout + r * C, *row = x + r * C;
    const float mean = means[r], scale = scales[r];
    float first = 0.0f, second = 0.0f;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) {
      const float norm = (row[i] - mean) * scale, d = weight[i] * d_row[i];
      first += d;
      second += d * norm;
    }
    first = cg::reduce(warp, first, cg::plus<float>{}) / C;
    second = cg::reduce(warp, second, cg::plus<float>{}) / C;
    for (int i = warp.thread_rank(); i < C; i += warp.size()) {
      const float norm = (row[i] - mean) * scale, d = weight[i] * d_row[i];
      atomicAdd(&bias_part[i], d_row[i]);
      atomicAdd(&weight_part[i], norm * d_row[i]);
      dx[r * C + i] += (d - first - norm * second) * scale;
    }
  }
  block.sync();
  for (int i = threadIdx.x; i < C; i += blockDim.x) {
    atomicAdd(&dbias[i], bias_part[i]);
    atomicAdd(&dweight[i], weight_part[i]);
  }
}
// a thread a row
__global__ void softmax_naive(float* out, const float* x, int N, int C) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < N) {
    const float* row = x + r * C;
    float* o = out + r * C;
    float most = -INFINITY;
    for (int j = 0; j < C; j++)
      if (row[j] > most) most = row[j];
    double sum = 0.0;
    for (int j = 0; j < C; j++) {
      o[j] = expf(row[j] - most);
      sum += o[j];
    }
    for (int j = 0; j < C; j++) o[j] /= (float)sum;
  }
}
// causal, a warp a row, one pass for maximum and sum together
__global__ void softmax_online(float* out, float scale, const float* x, int N, int T) {
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);
  const int r = blockIdx.x * warp.meta_group_size() + warp.meta_group_rank();
  if (r >= N * T) return;
  const int own = r % T;
  const float* row = x + r * T;
  float most = -3.4e38f, sum = 0.0f;
  for (int i = warp.thread_rank(); i <= own; i += warp.size()) {
    const float old = most;
    most = fmaxf(most, row[i]);
    sum *= expf(scale * (old - most));
    sum += expf(scale * (row[i] - most));
  }
  const float all = cg::reduce(warp, most, cg::greater<float>{});
  sum *= expf(scale * (most - all));
  const float norm = 1.f / cg::reduce(warp, sum, cg::plus<float>{});
  for (int i = warp.thread_rank(); i <= own; i += warp.size()) out[r * T + i] = expf(scale * (row[i] - all)) * norm;
}
// what a position sees, weighed: a thread each head of a position
__global__ void attend_values(float* out, const float* weights, const float* qkv, int B, int T, int C, int NH) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < B * T * NH) {
    const int h = i % NH, t = (i / NH) % T, b = i / (NH * T);
    const int hs = C / NH;
    float* o = out + b * T * C + t * C + h * hs;
    const float* a = weights + b * NH * T * T + h * T * T + t * T;
    for (int j = 0; j < hs; j++) o[j] = 0.0f;
    for (int u = 0; u <= t; u++) {
      const float* v = qkv + b * T * C * 3 + u * C * 3 + h * hs + C * 2;
      const float w = a[u];
      for (int j = 0; j < hs; j++) o[j] += w * v[j];
    }
  }
}
// (B, T, 3, heads, size) -> three of (B, heads, T, size)
__global__ void split_heads(float* q, float* k, float* v, const float* x, int B, int N, int NH, int d) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < B * NH * N * d) {
    const int b = i / (NH * N * d);
    int rest = i % (NH * N * d);
    const int h = rest / (N * d);
    rest = rest % (N * d);
    const int n = rest / d, j = rest % d;
    const int from = b * N * 3 * NH * d + n * 3 * NH * d + 0 * NH * d + h * d + j;
    q[i] = x[from];
    k[i] = x[from + NH * d];
    v[i] = x[from + 2 * NH * d];
  }
}
__global__ void gelu_forward(float* out, const float* x, int N) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    const float v = x[i];
    const float cube = 0.044715f * v * v * v;
    out[i] = 0.5f * v * (1.0f + tanhf(sqrtf(2.0f / 3.14159265f) * (v + cube)));
  }
}
__global__ void gelu_backward(float* dx, const float* x, const float* dout, int N) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) {
    const float v = x[i], factor = sqrtf(2.0f / 3.14159265f);
    const float cube = 0.044715f * v * v * v;
    const float argument = factor * (v + cube);
    const float t = tanhf(argument), c = coshf(argument);
    const float sech = 1.0f / (c * c);
    const float local = 0.5f * (1.0f + t) + v * 0.5f * sech * factor * (1.0f + 3.0f * 0.044715f * v * v);
    dx[i] = local * dout[i];
  }
}
__global__ void residual(float* out, const float* a, const float* b, int N) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < N) out[i] = a[i] + b[i];
}
__global__ void losses_of(float* losses, const float* probs, const int* targets, int B, int T, int V) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < B * T) {
    const int b = i / T, t = i % T;
    const float* p = probs + b * T * V + t * V;
    losses[b * T + t] = -logf(p[targets[b * T + t]]);
  }
}
__global__ void logits_backward(float* dlogits, const float* dlosses, const float* probs, const int* targets, int B, int T, int V) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < B * T * V) {
    const int b = i / (T * V), t = (i / V) % T, v = i % V;
    const float p = probs[b * T * V + t * V + v];
    const float indicator = v == targets[b * T + t] ? 1.0f : 0.0f;
    dlogits[b * T * V + t * V + v] += (p - indicator) * dlosses[b * T + t];
  }
}
// out = x weight^T + bias, both operands row by row
__global__ void linear_forward(float* out, const float* x, const float* weight, const float* bias, int BT, int C, int OC) {
  const int bt = blockIdx.x * blockDim.x + threadIdx.x, oc = blockIdx.y * blockDim.y + threadIdx.y;
  if (bt < BT && oc < OC) {
    float sum = bias != NULL ? bias[oc] : 0.0f;
    const float *row = weight + oc * C, *in = x + bt * C;
    for (int i = 0; i < C; i++) sum += in[i] * row[i];
    out[bt * OC + oc] = sum;
  }
}
// a block a column
__global__ void bias_backward(float* dbias, const float* dout, int BT, int OC) {
  extern __shared__ float part[];
  const int o = blockIdx.x, t = threadIdx.x;
  const float* x = dout + o;
  double sum = 0.0;
  for (int i = t; i < BT; i += blockDim.x) sum += x[i * OC];
  part[t] = (float)sum;
  __syncthreads();
  for (int stride = blockDim.x / 2; stride >= 1; stride /= 2) {
    __syncthreads();
    if (t < stride) part[t] += part[t + stride];
  }
  if (t == 0) dbias[o] += part[0];
}
__device__ float between(float start, float end, float weight) { return fmaf(weight, end, fmaf(-weight, start, start)); }
__global__ void adamw(float* params, const float* grads, float* m, float* v, long n, float rate, float beta1, float beta2, float fix1, float fix2,
                      float eps, float decay) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float grad = grads[i];
  float first = m[i], second = v[i];
  first = between(grad, first, beta1);
  m[i] = first;
  second = between(grad * grad, second, beta2);
  v[i] = second;
  first /= fix1;
  second /= fix2;
  params[i] -= rate * (first / (sqrtf(second) + eps) + decay * params[i]);
}
__global__ void squares_sum(float* out, const float* data, size_t count) {
  __shared__ float parts[32];
  const size_t width = blockDim.x * gridDim.x;
  float sum = 0.f;
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += width) sum += data[i] * data[i];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (lane == 0) parts[warp] = sum;
  __syncthreads();
  float all = lane < warps ? parts[lane] : 0.f;
  for (int o = 16; o > 0; o /= 2) all += __shfl_xor_sync(0xffffffffu, all, o);
  if (threadIdx.x == 0) atomicAdd(out, all);
}
// inclusive sums of each block, each step doubling the distance, in two halves of shared memory
__global__ void scan_steps(const float* x, float* y, int n) {
  __shared__ float s[2 * 256];
  const int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  int out = 0, in = 1;
  s[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int d = 1; d < blockDim.x; d *= 2) {
    out = 1 - out;
    in = 1 - out;
    if (t >= d) s[out * 256 + t] = s[in * 256 + t] + s[in * 256 + t - d];
    else s[out * 256 + t] = s[in * 256 + t];
    __syncthreads();
  }
  if (i < n) y[i] = s[out * 256 + t];
}
// inclusive sums of each block by shuffles
__global__ void scan_warps(const float* x, float* y, int n) {
  __shared__ float sums[32];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float v = i < n ? x[i] : 0.f;
  for (int d = 1; d < 32; d <<= 1) {
    const float other = __shfl_up_sync(0xffffffff, v, d);
    if (lane >= d) v += other;
  }
  if (lane == 31) sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    float s = lane < blockDim.x / 32 ? sums[lane] : 0.f;
    for (int d = 1; d < 32; d <<= 1) {
      const float other = __shfl_up_sync(0xffffffff, s, d);
      if (lane >= d) s += other;
    }
    sums[lane] = s;
  }
  __syncthreads();
  if (warp > 0) v += sums[warp - 1];
  if (i < n) y[i] = v;
}
// a sum by a group of the block and its tiles
__global__ void reduce_groups(const float* x, float* out, int n) {
  __shared__ float part[32];
  cg::thread_block block = cg::this_thread_block();
  cg::thread_block_tile<32> tile = cg::tiled_partition<32>(block);
  float sum = 0.f;
  for (int i = blockIdx.x * blockDim.x + block.thread_rank(); i < n; i += gridDim.x * blockDim.x) sum += x[i];
  sum = cg::reduce(tile, sum, cg::plus<float>());
  if (tile.thread_rank() == 0) part[tile.meta_group_rank()] = sum;
  block.sync();
  if (tile.meta_group_rank() == 0) {
    sum = tile.thread_rank() < tile.meta_group_size() ? part[tile.thread_rank()] : 0.f;
    sum = cg::reduce(tile, sum, cg::plus<float>());
    if (tile.thread_rank() == 0) atomicAdd(out, sum);
  }
}
__global__ void transpose_naive(const float* in, float* out, int W, int H) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x < W && y < H) out[x * H + y] = in[y * W + x];
}
// one step of a sort of all numbers
__global__ void bitonic_step(float* s, int j, int k) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ j;
  if (other > i) {
    if ((i & k) == 0) {
      if (s[i] > s[other]) {
        const float t = s[i];
        s[i] = s[other];
        s[other] = t;
      }
    } else if (s[i] < s[other]) {
      const float t = s[i];
      s[i] = s[other];
      s[other] = t;
    }
  }
}
// compressed rows, a thread each
__global__ void spmv_rows(const int* start, const int* column, const float* value, const float* x, float* y, int rows) {
  const int r = blockIdx.x * blockDim.x + threadIdx.x;
  if (r < rows) {
    float sum = 0;
    for (int i = start[r]; i < start[r + 1]; i++) sum += value[i] * x[column[i]];
    y[r] = sum;
  }
}
// bodies one by one from memory
__global__ void nbody_naive(const float4* body, float3* force, int n, float soft) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float fx = 0.0f, fy = 0.0f, fz = 0.0f;
    for (int j = 0; j < n; j++) {
      const float dx = body[j].x - body[i].x, dy = body[j].y - body[i].y, dz = body[j].z - body[i].z;
      const float squared = dx * dx + dy * dy + dz * dz + soft;
      const float inverse = rsqrtf(squared);
      const float cube = inverse * inverse * inverse * body[j].w;
      fx += dx * cube, fy += dy * cube, fz += dz * cube;
    }
    force[i].x = fx, force[i].y = fy, force[i].z = fz;
  }
}
// seven points, a sheet of the block in shared memory and the ones before and behind in registers
__global__ void stencil_sheets(const float* in, float* out, int W, int H, int D) {
  __shared__ float s[10][34];
  const int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y, tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  const int sheet = W * H;
  int at = y * W + x;
  float before = 0.f, here = in[at], after = in[at + sheet];
  for (int z = 1; z < D - 1; z++) {
    at += sheet;
    before = here;
    here = after;
    after = in[at + sheet];
    __syncthreads();
    s[ty][tx] = here;
    if (threadIdx.x == 0 && x > 0) s[ty][0] = in[at - 1];
    if (threadIdx.x == 31 && x < W - 1) s[ty][33] = in[at + 1];
    if (threadIdx.y == 0 && y > 0) s[0][tx] = in[at - W];
    if (threadIdx.y == 7 && y < H - 1) s[9][tx] = in[at + W];
    __syncthreads();
    if (x > 0 && y > 0 && x < W - 1 && y < H - 1)
      out[at] = 0.4f * here + 0.1f * (s[ty][tx - 1] + s[ty][tx + 1] + s[ty - 1][tx] + s[ty + 1][tx] + before + after);
  }
}
