// Additive attention over the edges into each node: softmax and weighted sum in one pass over the edges. See additive.py.
//
// Edges are in the order of their destinations, in spans as in attend.cu. Each edge names its (source, relation) pair, which has a row of `values` and
// a number, and its (destination, relation) pair, which has a number: its score is leaky_relu of their sum. Scores and maxima are float64. Of sixteen
// edges, or pairs of a node, each thread of a span has one, whose number it reads and computes; the others are told by shuffles. With all of that in
// each thread am's forward took 1.08 ms and its backward 1.63 (5.7 million edges, an H200), where a kernel of twice the rows takes 1.15.
#define NO_SCORE __longlong_as_double(0xfff0000000000000LL)  // minus infinity

__device__ inline double leaky(double x, double slope) { return x > 0.0 ? x : slope * x; }

__device__ inline double largest(double mine) {
  for (int far = GROUP / 2; far > 0; far /= 2) {
    double other = __shfl_xor_sync(EVERY, mine, far);
    mine = other > mine ? other : mine;
  }
  return mine;
}

// The pairs of a node, those of destinations first: how many, and what one of the threads is told of the one that it has.
struct Pairs {
  int to_at, to, of_at, of;
};

__device__ inline Pairs pairs_of(const int* to_starts, const int* of_starts, int node) {
  Pairs own = {0, 0, 0, 0};
  if (node >= 0) {
    own.to_at = to_starts[node], own.of_at = of_starts[node];
    own.to = to_starts[node + 1] - own.to_at, own.of = of_starts[node + 1] - own.of_at;
  }
  return own;
}

// Numbers of pairs of both sides, in float64: the inner product of the node's row and the relation's vector, of `vectors` [2, relations, depth].
// `starts` [nodes + 1]: where each node's pairs begin in `pairs`, whose relations are `kinds`.
extern "C" __global__ void __launch_bounds__(THREADS)
    pair_numbers(const float* rows, const double* vectors, const int* to_starts, const int* to_pairs, const int* to_kinds, double* to_numbers,
                 const int* of_starts, const int* of_pairs, const int* of_kinds, double* of_numbers, i64 nodes, i64 relations, i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 place = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = place < nodes ? (int)place : -1;
  Pairs own = pairs_of(to_starts, of_starts, node);
  float4 row = row_of(rows, node, depth, column);
  int count = own.to + own.of, beside = __shfl_xor_sync(EVERY, count, GROUP);  // both halves of a warp go through as many steps
  int steps = count > beside ? count : beside;
  for (int base = 0; base < steps; base += GROUP) {
    int mine = base + lane, pair = -1, vector = 0;
    bool to = mine < own.to;
    if (mine < count) {
      int at = to ? own.to_at + mine : own.of_at + mine - own.to;
      pair = to ? to_pairs[at] : of_pairs[at];
      vector = to ? to_kinds[at] : of_kinds[at] + (int)relations;
    }
    for (int from = 0; from < GROUP && base + from < steps; from += 4) {
      double part[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        int of = told(vector, from + i);
        part[i] = 0.0;
        if (base + from + i < count && column < depth) {
          const double2* by = (const double2*)(vectors + (i64)of * depth + column);
          double2 first = by[0], second = by[1];
          part[i] = row.x * first.x + row.y * first.y + row.z * second.x + row.w * second.y;
        }
      }
      double sum = four_sums(part, lane);
      int which = told(pair, from + lane / 4);
      if (lane % 4 == 0 && base + from + lane / 4 < count) {
        if (base + from + lane / 4 < own.to)
          to_numbers[which] = sum;
        else
          of_numbers[which] = sum;
      }
    }
  }
}

// out[node] = base + sum of softmax(leaky_relu(to + of)) value; `most` and `total`: the largest score and the sum of exp(score - most).
extern "C" __global__ void __launch_bounds__(THREADS, 5)
    additive(const double* to_numbers, const double* of_numbers, const float* values, const int* to_of, const int* pair_of, const int* nodes,
             const int* begins, const int* ends, const int* slots, const float* base, float* out, double* most, float* total, float* part_sums,
             double* part_most, float* part_total, double slope, i64 spans, i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 span = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = span < spans ? nodes[span] : -1;
  int at = node >= 0 ? begins[span] : 0, left = node >= 0 ? ends[span] - at : 0;
  int beside = __shfl_xor_sync(EVERY, left, GROUP);
  int steps = left > beside ? left : beside;
  double top = NO_SCORE;
  float whole = 0.0f;
  float4 sum = zero();
  for (int done = 0; done < steps; done += GROUP) {
    int mine = done + lane < left ? pair_of[at + done + lane] : -1;
    int to = mine >= 0 ? to_of[at + done + lane] : 0;
    float4 value[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) value[i] = row_of(values, told(mine, i), depth, column);  // under way while scores are computed
    double score = mine >= 0 ? leaky(to_numbers[to] + of_numbers[mine], slope) : NO_SCORE, next = largest(score);
    next = next > top ? next : top;
    float power = mine >= 0 ? expf((float)(score - next)) : 0.0f, kept = whole == 0.0f ? 0.0f : expf((float)(top - next));
    top = next, whole = whole * kept + sum_of(power);
    sum.x *= kept, sum.y *= kept, sum.z *= kept, sum.w *= kept;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) add_times(sum, told(power, i), value[i]);
    for (int from = AT_ONCE; from < GROUP && done + from < steps; from += AT_ONCE) {
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) value[i] = row_of(values, told(mine, from + i), depth, column);
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) add_times(sum, told(power, from + i), value[i]);
    }
  }
  if (node < 0) return;
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
  int node = place < cut ? nodes[place] : 0, first = place < cut ? firsts[place] : 0, count = place < cut ? counts[place] : 0;
  double top = NO_SCORE;
  for (int i = lane; i < count; i += GROUP) top = part_most[first + i] > top ? part_most[first + i] : top;
  top = largest(top);
  float whole = 0.0f;
  float4 sum = zero();
  for (int done = 0; done < count; done += AT_ONCE) {
    double score[AT_ONCE];
    float part[AT_ONCE];
    float4 row[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      bool real = done + i < count;
      part[i] = real ? part_total[first + done + i] : 0.0f, score[i] = real ? part_most[first + done + i] : 0.0;
      row[i] = row_of(part_sums, real ? first + done + i : -1, depth, column);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      float kept = part[i] == 0.0f ? 0.0f : expf((float)(score[i] - top));
      whole += kept * part[i];
      add_times(sum, kept, row[i]);
    }
  }
  if (count == 0) return;
  float4 start = base ? row_of(base, 0, depth, column) : zero();
  add_times(start, whole == 0.0f ? 0.0f : 1.0f / whole, sum);
  if (column < depth) *(float4*)(out + (i64)node * depth + column) = start;
  if (lane == 0) most[node] = top, total[node] = whole;
}

// For each edge its share, and the gradient of its two numbers. The softmax's own term, the mean of a share's gradient by the shares, is summed from
// the very numbers that it is taken from, so that a share of nearly all leaves next to nothing; of a node that is cut it is the inner product of
// `out` without `base` and its gradient. Of a span of more than sixteen edges a thread reads back what it has written of its own.
extern "C" __global__ void __launch_bounds__(THREADS, 5)
    additive_back(const double* to_numbers, const double* of_numbers, const float* values, const float* gradient, const float* out,
                  const float* base, const double* most, const float* total, const int* to_of, const int* pair_of, const int* edge_of,
                  const int* nodes, const int* begins, const int* ends, const int* slots, float* shares, float* slopes, double slope, i64 spans,
                  i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 span = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = span < spans ? nodes[span] : -1;
  int at = node >= 0 ? begins[span] : 0, left = node >= 0 ? ends[span] - at : 0;
  int beside = __shfl_xor_sync(EVERY, left, GROUP);
  int steps = left > beside ? left : beside;
  bool cut = node >= 0 && slots[span] >= 0;
  float4 given = row_of(gradient, node, depth, column);
  float mean = 0.0f, sum = 0.0f, whole = node >= 0 ? total[node] : 0.0f;
  if (__any_sync(EVERY, cut)) {
    float4 own = row_of(out, node, depth, column);
    if (base) add_times(own, -1.0f, row_of(base, node < 0 ? -1 : 0, depth, column));
    mean = inner(given, own);
  }
  double top = node >= 0 ? most[node] : 0.0;
  float scale = whole == 0.0f ? 0.0f : 1.0f / whole, all = 0.0f, along = 0.0f, share = 0.0f;
  unsigned rising = 0;  // which of the thread's edges have a positive score
  int edge = 0;
  for (int done = 0; done < steps; done += GROUP) {
    int mine = done + lane < left ? pair_of[at + done + lane] : -1;
    int to = mine >= 0 ? to_of[at + done + lane] : 0;
    float4 value[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) value[i] = row_of(values, told(mine, i), depth, column);
    double score = mine >= 0 ? to_numbers[to] + of_numbers[mine] : 0.0;
    rising |= (score > 0.0 ? 1u : 0u) << (done / GROUP);
    float gain = 0.0f;
    for (int from = 0; from < GROUP && done + from < steps; from += AT_ONCE) {
      float part[AT_ONCE];
      if (from > 0) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) value[i] = row_of(values, told(mine, from + i), depth, column);
      }
#pragma unroll
      for (int i = 0; i < AT_ONCE; ++i) part[i] = part_of(given, value[i]);
      float found = told(four_sums(part, lane), 4 * (lane % 4));
      gain = lane / 4 == from / 4 ? found : gain;
    }
    if (mine < 0) continue;  // no edge here: the other half of the warp may have a longer span, and what this one has found stays
    share = expf((float)(leaky(score, slope) - top)) * scale, along = gain;
    edge = edge_of ? edge_of[at + done + lane] : at + done + lane;
    sum += share * along, all += share;
    if (left > GROUP) shares[edge] = share, slopes[edge] = along;
  }
  sum = sum_of(sum), all = sum_of(all);
  if (!cut && all > 0.0f) mean = sum / all;
  if (left <= GROUP) {
    if (lane < left) shares[edge] = share, slopes[edge] = share * (along - mean) * (rising & 1u ? 1.0f : (float)slope);
    return;
  }
  for (int i = lane; i < left; i += GROUP) {
    edge = edge_of ? edge_of[at + i] : at + i;
    slopes[edge] = shares[edge] * (slopes[edge] - mean) * ((rising >> (i / GROUP)) & 1u ? 1.0f : (float)slope);
  }
}

// Adds to each node's row its pairs' numbers times rows of their relations, of `vectors` [2, relations, depth].
extern "C" __global__ void __launch_bounds__(THREADS, 6)
    pair_rows(float* rows, const float* vectors, const float* to_numbers, const int* to_starts, const int* to_pairs, const int* to_kinds,
              const float* of_numbers, const int* of_starts, const int* of_pairs, const int* of_kinds, i64 nodes, i64 relations, i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 place = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = place < nodes ? (int)place : -1;
  Pairs own = pairs_of(to_starts, of_starts, node);
  float4 sum = row_of(rows, node, depth, column);
  int count = own.to + own.of, beside = __shfl_xor_sync(EVERY, count, GROUP);
  int steps = count > beside ? count : beside;
  for (int base = 0; base < steps; base += GROUP) {
    int mine = base + lane, vector = -1;
    bool to = mine < own.to;
    float number = 0.0f;
    if (mine < count) {
      int at = to ? own.to_at + mine : own.of_at + mine - own.to;
      number = to ? to_numbers[to_pairs[at]] : of_numbers[of_pairs[at]];
      vector = to ? to_kinds[at] : of_kinds[at] + (int)relations;
    }
    for (int from = 0; from < GROUP && base + from < steps; from += 4) {
#pragma unroll
      for (int i = 0; i < 4; ++i) add_times(sum, told(number, from + i), row_of(vectors, told(vector, from + i), depth, column));
    }
  }
  if (node >= 0 && column < depth) *(float4*)(rows + (i64)node * depth + column) = sum;
}

// Adds to `out` [width] the sums of the columns of `rows` [count, width]: torch takes 62 us for bgs' 94,806 rows, whose bytes take 6 (an H200).
extern "C" __global__ void __launch_bounds__(THREADS) column_sums(const float* rows, float* out, i64 count, i64 width) {
  __shared__ __align__(16) float parts[THREADS * 4];
  int lane = threadIdx.x % GROUP, group = threadIdx.x / GROUP, column = 4 * lane;
  i64 step = (i64)gridDim.x * (THREADS / GROUP);
  float4 sum = zero();
  for (i64 row = (i64)blockIdx.x * (THREADS / GROUP) + group; row < count; row += AT_ONCE * step) {
    float4 given[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) given[i] = row_of(rows, row + i * step < count ? row + i * step : -1, width, column);
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) add_times(sum, 1.0f, given[i]);
  }
  *(float4*)(parts + 4 * threadIdx.x) = sum;
  __syncthreads();
  if (group > 0 || column >= width) return;
  for (int other = 1; other < THREADS / GROUP; ++other) add_times(sum, 1.0f, *(const float4*)(parts + 4 * (GROUP * other + lane)));
  add_4(out + column, sum.x, sum.y, sum.z, sum.w);
}
