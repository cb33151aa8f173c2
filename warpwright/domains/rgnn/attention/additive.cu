// Additive attention over the edges into each node: softmax and weighted sum in one pass over the edges. See additive.py.
//
// Edges are in the order of their destinations, in spans as in attend.cu. Each edge names its (source, relation) pair, which has a row of `values` and
// a number, and its (destination, relation) pair, which has a number: its score is leaky_relu of their sum. Scores and maxima are float64.
#define NO_SCORE __longlong_as_double(0xfff0000000000000LL)  // minus infinity

__device__ inline double leaky(double x, double slope) { return x > 0.0 ? x : slope * x; }

// The sum of a number over the sixteen threads, in all of them.
__device__ inline double all_of(double sum) {
  for (int far = GROUP / 2; far > 0; far /= 2) sum += __shfl_xor_sync(EVERY, sum, far);
  return sum;
}

// The numbers of a node's pairs of one side: the inner product of the node's row and the relation's vector.
__device__ inline void numbers_of(const double* own, const int* starts, const int* pairs, const int* kinds, const double* vectors, double* out,
                                  int node, int depth, int column, int lane) {
  int at = node >= 0 ? starts[node] : 0, left = node >= 0 ? starts[node + 1] - at : 0;
  int beside = __shfl_xor_sync(EVERY, left, GROUP);  // both halves of a warp go through as many steps
  int steps = left > beside ? left : beside;
  for (int done = 0; done < steps; done += 2) {
    double sum[2];
    for (int i = 0; i < 2; ++i) {
      sum[i] = 0.0;
      if (done + i < left && column < depth) {
        const double2* by = (const double2*)(vectors + (i64)kinds[at + done + i] * depth + column);
        double2 first = by[0], second = by[1];
        sum[i] = own[0] * first.x + own[1] * first.y + own[2] * second.x + own[3] * second.y;
      }
    }
    for (int i = 0; i < 2; ++i) {
      double whole = all_of(sum[i]);
      if (lane == 0 && done + i < left) out[pairs[at + done + i]] = whole;
    }
  }
}

// Numbers of pairs of both sides, in float64. `starts` [nodes + 1]: where each node's pairs begin in `pairs`, whose relations are `kinds`.
extern "C" __global__ void __launch_bounds__(THREADS)
    pair_numbers(const float* rows, const int* to_starts, const int* to_pairs, const int* to_kinds, const double* to_vectors, double* to_numbers,
                 const int* of_starts, const int* of_pairs, const int* of_kinds, const double* of_vectors, double* of_numbers, i64 nodes, i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 place = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = place < nodes ? (int)place : -1;
  float4 row = row_of(rows, node, depth, column);
  double own[4] = {row.x, row.y, row.z, row.w};
  numbers_of(own, to_starts, to_pairs, to_kinds, to_vectors, to_numbers, node, (int)depth, column, lane);
  numbers_of(own, of_starts, of_pairs, of_kinds, of_vectors, of_numbers, node, (int)depth, column, lane);
}

// out[node] = base + sum of softmax(leaky_relu(to + of)) value; `most` and `total`: the largest score and the sum of exp(score - most).
extern "C" __global__ void __launch_bounds__(THREADS)
    additive(const double* to_numbers, const double* of_numbers, const float* values, const int* to_of, const int* pair_of, const int* nodes,
             const int* begins, const int* ends, const int* slots, const float* base, float* out, double* most, float* total, float* part_sums,
             double* part_most, float* part_total, double slope, i64 spans, i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 span = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = span < spans ? nodes[span] : -1;
  if (node < 0) return;
  int at = begins[span], left = ends[span] - at;
  double top = NO_SCORE;
  float whole = 0.0f;
  float4 sum = zero();
  for (int done = 0; done < left; done += AT_ONCE) {
    int of[AT_ONCE];
    float4 value[AT_ONCE];
    double score[AT_ONCE], next = top;
    for (int i = 0; i < AT_ONCE; ++i) of[i] = done + i < left ? pair_of[at + done + i] : -1;
    for (int i = 0; i < AT_ONCE; ++i) {
      value[i] = row_of(values, of[i], depth, column);
      score[i] = of[i] >= 0 ? leaky(to_numbers[to_of[at + done + i]] + of_numbers[of[i]], slope) : NO_SCORE;
    }
    for (int i = 0; i < AT_ONCE; ++i) next = score[i] > next ? score[i] : next;
    float kept = whole == 0.0f ? 0.0f : expf((float)(top - next));
    top = next, whole *= kept;
    sum.x *= kept, sum.y *= kept, sum.z *= kept, sum.w *= kept;
    for (int i = 0; i < AT_ONCE; ++i) {
      float power = of[i] >= 0 ? expf((float)(score[i] - top)) : 0.0f;
      whole += power;
      add_times(sum, power, value[i]);
    }
  }
  int slot = slots[span];
  float share = slot >= 0 ? 1.0f : whole == 0.0f ? 0.0f : 1.0f / whole;
  float* to = slot >= 0 ? part_sums + (i64)slot * depth : out + (i64)node * depth;
  float4 start = slot < 0 && base ? row_of(base, 0, depth, column) : zero();
  add_times(start, share, sum);
  if (column < depth) *(float4*)(to + column) = start;
  if (lane == 0) {
    (slot >= 0 ? part_most + slot : most + node)[0] = top;
    (slot >= 0 ? part_total + slot : total + node)[0] = whole;
  }
}

// Puts the slots of each cut node together; a node that has none, of those listed, is left as it is.
extern "C" __global__ void __launch_bounds__(THREADS)
    additive_joined(const int* nodes, const int* firsts, const int* counts, const float* part_sums, const double* part_most,
                    const float* part_total, const float* base, float* out, double* most, float* total, i64 cut, i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 place = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  if (place >= cut || counts[place] == 0) return;
  int node = nodes[place], first = firsts[place], count = counts[place];
  double top = NO_SCORE;
  for (int i = 0; i < count; ++i) top = part_most[first + i] > top ? part_most[first + i] : top;
  float whole = 0.0f;
  float4 sum = zero();
  for (int i = 0; i < count; ++i) {
    float kept = part_total[first + i] == 0.0f ? 0.0f : expf((float)(part_most[first + i] - top));
    whole += kept * part_total[first + i];
    add_times(sum, kept, row_of(part_sums, first + i, depth, column));
  }
  float4 start = base ? row_of(base, 0, depth, column) : zero();
  add_times(start, whole == 0.0f ? 0.0f : 1.0f / whole, sum);
  if (column < depth) *(float4*)(out + (i64)node * depth + column) = start;
  if (lane == 0) most[node] = top, total[node] = whole;
}

// For each edge its share, and the gradient of its two numbers. The softmax's own term, the mean of a share's gradient by the shares, is summed from
// the very numbers that it is taken from, so that a share of nearly all leaves next to nothing; of a node that is cut it is the inner product of
// `out` without `base` and its gradient. Each thread owns every sixteenth edge of its span, and reads back what it has written.
extern "C" __global__ void __launch_bounds__(THREADS)
    additive_back(const double* to_numbers, const double* of_numbers, const float* values, const float* gradient, const float* out,
                  const float* base, const double* most, const float* total, const int* to_of, const int* pair_of, const int* edge_of,
                  const int* nodes, const int* begins, const int* ends, const int* slots, float* shares, float* slopes, double slope, i64 spans,
                  i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 span = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = span < spans ? nodes[span] : -1;
  int at = node >= 0 ? begins[span] : 0, left = node >= 0 ? ends[span] - at : 0;
  float4 given = row_of(gradient, node, depth, column), own = row_of(out, node, depth, column);
  if (base) add_times(own, -1.0f, row_of(base, node < 0 ? -1 : 0, depth, column));
  float mean = inner(given, own), sum = 0.0f, whole = node >= 0 ? total[node] : 0.0f;
  double top = node >= 0 ? most[node] : 0.0;
  float scale = whole == 0.0f ? 0.0f : 1.0f / whole, all = 0.0f;
  unsigned rising = 0;  // which of the thread's edges have a positive score
  int beside = __shfl_xor_sync(EVERY, left, GROUP);
  int steps = left > beside ? left : beside;
  for (int done = 0; done < steps; done += AT_ONCE) {
    int of[AT_ONCE];
    float4 value[AT_ONCE];
    double score[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) of[i] = done + i < left ? pair_of[at + done + i] : -1;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      value[i] = row_of(values, of[i], depth, column);
      score[i] = of[i] >= 0 ? to_numbers[to_of[at + done + i]] + of_numbers[of[i]] : 0.0;
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      float along = inner(given, value[i]);
      if (lane == (done + i) % GROUP && of[i] >= 0) {
        float share = expf((float)(leaky(score[i], slope) - top)) * scale;
        int edge = edge_of ? edge_of[at + done + i] : at + done + i;
        shares[edge] = share, slopes[edge] = along;
        sum += share * along, all += share;
        rising |= (score[i] > 0.0 ? 1u : 0u) << ((done + i) / GROUP);
      }
    }
  }
  for (int far = GROUP / 2; far > 0; far /= 2) {
    sum += __shfl_xor_sync(EVERY, sum, far);
    all += __shfl_xor_sync(EVERY, all, far);
  }
  if (node >= 0 && slots[span] < 0 && all > 0.0f) mean = sum / all;
  for (int i = lane; i < left; i += GROUP) {
    int edge = edge_of ? edge_of[at + i] : at + i;
    slopes[edge] = shares[edge] * (slopes[edge] - mean) * ((rising >> (i / GROUP)) & 1u ? 1.0f : (float)slope);
  }
}

// The pairs of one side of a node: a number of each times a row of its relation, added to `sum`.
__device__ inline void rows_onto(float4& sum, const float* numbers, const int* starts, const int* pairs, const int* kinds, const float* vectors,
                                 int node, int depth, int column) {
  for (int at = starts[node], end = starts[node + 1]; at < end; ++at)
    add_times(sum, numbers[pairs[at]], row_of(vectors, kinds[at], depth, column));
}

// Adds to each node's row what its pairs' numbers times rows of their relations give, of both sides.
extern "C" __global__ void __launch_bounds__(THREADS)
    pair_rows(float* rows, const float* to_numbers, const int* to_starts, const int* to_pairs, const int* to_kinds, const float* to_vectors,
              const float* of_numbers, const int* of_starts, const int* of_pairs, const int* of_kinds, const float* of_vectors, i64 nodes, i64 depth) {
  int column = 4 * (threadIdx.x % GROUP);
  i64 node = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  if (node >= nodes || column >= depth) return;
  float4* to = (float4*)(rows + node * depth + column);
  float4 sum = *to;
  rows_onto(sum, to_numbers, to_starts, to_pairs, to_kinds, to_vectors, (int)node, (int)depth, column);
  rows_onto(sum, of_numbers, of_starts, of_pairs, of_kinds, of_vectors, (int)node, (int)depth, column);
  *to = sum;
}
