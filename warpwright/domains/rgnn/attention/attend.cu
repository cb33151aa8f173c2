// Attention over the edges into each node: scores, their softmax and the weighted sum in one pass over the edges, in float32. See kernels.py.
//
// Edges are in the order of their destinations. Sixteen threads have a span of one node's edges, LONGEST at most, four numbers of a row each. Each
// edge names a row of `keys` and one of `values`, of its (source, relation) pair. A node of more edges than one span has is `cut`: its spans leave
// what they have in slots, which attend_joined puts together.

// out[node] = sum of softmax(query . key) value; `most` and `total`: the largest score and the sum of exp(score - most).
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    attend(const float* query, const float* keys, const float* values, const int* pair_of, const int* nodes, const int* begins, const int* ends,
           const int* slots, float* out, float* most, float* total, float* part_sums, float* part_most, float* part_total, i64 spans, i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 span = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = span < spans ? nodes[span] : -1;
  int at = node >= 0 ? begins[span] : 0, left = node >= 0 ? ends[span] - at : 0;
  float4 own = row_of(query, node, depth, column);
  int beside = __shfl_xor_sync(EVERY, left, GROUP);  // both halves of a warp go through as many steps
  int steps = left > beside ? left : beside;
  float top = LEAST, whole = 0.0f;
  float4 sum = zero();
  int mine = -1;  // of sixteen edges a thread asks for the pair of one
  for (int done = 0; done < steps; done += AT_ONCE) {
    if (done % GROUP == 0) mine = done + lane < left ? pair_of[at + done + lane] : -1;
    float4 key[AT_ONCE], value[AT_ONCE];
    float part[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      int of = told(mine, done % GROUP + i);
      key[i] = row_of(keys, of, depth, column), value[i] = row_of(values, of, depth, column);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) part[i] = part_of(own, key[i]);
    bool real = done + lane / 4 < left;  // of four edges it has the score of one
    float score = four_sums(part, lane), next = largest_of_four(real ? score : LEAST);
    next = next > top ? next : top;
    float kept = whole == 0.0f ? 0.0f : expf(top - next), power = real ? expf(score - next) : 0.0f;
    top = next, whole = whole * kept + sum_of_four(power);
    sum.x *= kept, sum.y *= kept, sum.z *= kept, sum.w *= kept;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) add_times(sum, told(power, 4 * i), value[i]);
  }
  if (node < 0) return;
  int slot = slots[span];
  float share = slot >= 0 ? 1.0f : whole == 0.0f ? 0.0f : 1.0f / whole;
  float* to = slot >= 0 ? part_sums + (i64)slot * depth : out + (i64)node * depth;
  if (column < depth) *(float4*)(to + column) = make_float4(share * sum.x, share * sum.y, share * sum.z, share * sum.w);
  if (lane == 0) {
    (slot >= 0 ? part_most + slot : most + node)[0] = top;
    (slot >= 0 ? part_total + slot : total + node)[0] = whole;
  }
}

// Puts the slots of each cut node together; a node that has none, of those listed, is left as it is.
extern "C" __global__ void __launch_bounds__(THREADS)
    attend_joined(const int* nodes, const int* firsts, const int* counts, const float* part_sums, const float* part_most, const float* part_total,
                  float* out, float* most, float* total, i64 cut, i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 place = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = place < cut ? nodes[place] : 0, first = place < cut ? firsts[place] : 0, count = place < cut ? counts[place] : 0;
  float top = LEAST, whole = 0.0f;
  for (int i = lane; i < count; i += GROUP) top = part_most[first + i] > top ? part_most[first + i] : top;
  for (int far = GROUP / 2; far > 0; far /= 2) {
    float other = __shfl_xor_sync(EVERY, top, far);
    top = other > top ? other : top;
  }
  float4 sum = zero();
  for (int done = 0; done < count; done += AT_ONCE) {
    float kept[AT_ONCE], part[AT_ONCE];
    float4 row[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      bool real = done + i < count;
      part[i] = real ? part_total[first + done + i] : 0.0f, kept[i] = real ? part_most[first + done + i] : 0.0f;
      row[i] = row_of(part_sums, real ? first + done + i : -1, depth, column);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      float by = part[i] == 0.0f ? 0.0f : expf(kept[i] - top);
      whole += by * part[i];
      add_times(sum, by, row[i]);
    }
  }
  if (count == 0) return;
  float share = whole == 0.0f ? 0.0f : 1.0f / whole;
  if (column < depth) *(float4*)(out + (i64)node * depth + column) = make_float4(share * sum.x, share * sum.y, share * sum.z, share * sum.w);
  if (lane == 0) most[node] = top, total[node] = whole;
}

// The gradient of `query`, and for each edge its share and the gradient of its score. Scores are computed again from the same rows in the same order.
// The softmax's own term, the sum of an edge's share times its share's gradient, is the inner product of `out` and its gradient.
extern "C" __global__ void __launch_bounds__(THREADS, 4)
    attend_back(const float* query, const float* keys, const float* values, const float* gradient, const float* out, const float* most,
                const float* total, const int* pair_of, const int* edge_of, const int* nodes, const int* begins, const int* ends, const int* slots,
                float* of_query, float* shares, float* slopes, i64 spans, i64 depth) {
  int lane = threadIdx.x % GROUP, column = 4 * lane;
  i64 span = (i64)blockIdx.x * (THREADS / GROUP) + threadIdx.x / GROUP;
  int node = span < spans ? nodes[span] : -1;
  int at = node >= 0 ? begins[span] : 0, left = node >= 0 ? ends[span] - at : 0;
  float4 own = row_of(query, node, depth, column), given = row_of(gradient, node, depth, column);
  float mean = inner(given, row_of(out, node, depth, column));
  float top = node >= 0 ? most[node] : 0.0f, whole = node >= 0 ? total[node] : 0.0f;
  float scale = whole == 0.0f ? 0.0f : 1.0f / whole;
  int beside = __shfl_xor_sync(EVERY, left, GROUP);
  int steps = left > beside ? left : beside;
  float4 sum = zero();
  int pair = -1;  // of sixteen edges a thread asks for the pair of one
  for (int done = 0; done < steps; done += AT_ONCE) {
    if (done % GROUP == 0) pair = done + lane < left ? pair_of[at + done + lane] : -1;
    float4 key[AT_ONCE], value[AT_ONCE];
    float scores[AT_ONCE], gains[AT_ONCE];
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) {
      int of = told(pair, done % GROUP + i);
      key[i] = row_of(keys, of, depth, column), value[i] = row_of(values, of, depth, column);
    }
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) scores[i] = part_of(own, key[i]), gains[i] = part_of(given, value[i]);
    int mine = done + lane / 4;  // of four edges it has one
    float share = expf(four_sums(scores, lane) - top) * scale, slope = share * (four_sums(gains, lane) - mean);
    share = mine < left ? share : 0.0f, slope = mine < left ? slope : 0.0f;
#pragma unroll
    for (int i = 0; i < AT_ONCE; ++i) add_times(sum, told(slope, 4 * i), key[i]);
    if (lane % 4 == 0 && mine < left) {
      int edge = edge_of ? edge_of[at + mine] : at + mine;
      shares[edge] = share, slopes[edge] = slope;
    }
  }
  if (node < 0 || column >= depth) return;
  float* to = of_query + (i64)node * depth + column;
  if (slots[span] < 0)
    *(float4*)to = sum;
  else
    add_4(to, sum.x, sum.y, sum.z, sum.w);
}
