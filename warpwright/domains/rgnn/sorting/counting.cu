// A graph's index by counting: edges sorted by (relation, node), unique pairs, and the work list of a kernel over rows. See counting.py.
//
// A key is relation * nodes + node; there is a bin for each key. Both sides are done in one launch: bins [0, first_bins) are of destinations, those
// after them of sources. A block has BINS bins, and no block has bins of both sides.
#define THREADS 256
#define EACH 16
#define BINS (THREADS * EACH)
#define LONGEST 64
#define CLASSES 8
typedef unsigned long long u64;
typedef long long i64;

// Exclusive sum over the block of one number of each thread; `total` gets the sum of all. u64 holds two sums of 32 bits, as no sum passes 2^31.
__device__ u64 before_me(u64 mine, u64* room, u64* total) {
  int me = threadIdx.x;
  room[me] = mine;
  __syncthreads();
  for (int step = 1; step < (int)blockDim.x; step *= 2) {
    u64 other = me >= step ? room[me - step] : 0;
    __syncthreads();
    room[me] += other;
    __syncthreads();
  }
  u64 upto = room[me];
  *total = room[blockDim.x - 1];
  __syncthreads();
  return upto - mine;
}

// 1. How many edges each key has, and each edge's place among those of its key. refused is set where a number is out of range.
extern "C" __global__ void count_keys(const i64* src, const i64* dst, const i64* etype, i64 edges, i64 sources, i64 targets, i64 relations,
                                      i64 first_bins, int* bins, int* rank, int* refused) {
  i64 e = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges) return;
  i64 s = src[e], d = dst[e], r = etype[e];
  if (s < 0 || s >= sources || d < 0 || d >= targets || r < 0 || r >= relations) {
    refused[0] = 1;
    return;
  }
  rank[e] = atomicAdd(&bins[r * targets + d], 1);
  rank[edges + e] = atomicAdd(&bins[first_bins + r * sources + s], 1);
}

// 2. For each block of bins: its edges (low half) and its keys that have any (high half).
extern "C" __global__ void sum_bins(const int* bins, u64* sums) {
  __shared__ u64 room[THREADS];
  i64 base = (i64)blockIdx.x * BINS;
  u64 mine = 0, total;
  for (int i = 0; i < EACH; ++i) {
    u64 count = bins[base + i * THREADS + threadIdx.x];
    mine += count + (count ? (u64)1 << 32 : 0);
  }
  before_me(mine, room, &total);
  if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// 3. Keys that have edges are pairs, numbered in order: where each one's edges begin, its node and its relation. A bin then holds its pair's number.
extern "C" __global__ void number_pairs(int* bins, const u64* sums, i64 first_blocks, i64 targets, i64 sources, i64 relations, i64 edges, int* start0,
                                        int* node0, int* etype0, int* start1, int* node1, int* etype1, int* counts) {
  __shared__ u64 room[THREADS];
  bool second = (i64)blockIdx.x >= first_blocks;
  i64 first_block = second ? first_blocks : 0, nodes = second ? sources : targets;
  int *start = second ? start1 : start0, *node = second ? node1 : node0, *etype = second ? etype1 : etype0;
  u64 earlier = 0, done, total;
  for (i64 b = first_block + threadIdx.x; b < (i64)blockIdx.x; b += THREADS) earlier += sums[b];
  before_me(earlier, room, &done);
  i64 at = (i64)blockIdx.x * BINS + (i64)threadIdx.x * EACH, key = at - first_block * BINS;
  int mine[EACH];
  u64 sum = 0;
  for (int i = 0; i < EACH; ++i) {
    mine[i] = bins[at + i];
    sum += (u64)mine[i] + (mine[i] ? (u64)1 << 32 : 0);
  }
  u64 place = done + before_me(sum, room, &total);
  int edge = (int)(place & 0xffffffffu), pair = (int)(place >> 32);
  for (int i = 0; i < EACH; ++i) {
    if (mine[i]) {
      start[pair] = edge;
      node[pair] = (int)((key + i) % nodes);
      etype[pair] = (int)((key + i) / nodes);
      bins[at + i] = pair;
      edge += mine[i];
      ++pair;
    }
    if (key + i == relations * nodes - 1) {
      start[pair] = (int)edges;
      counts[second ? 1 : 0] = pair;
    }
  }
}

// 4. Edges in the order of (relation, destination), their pairs on both sides, and the order of (relation, source) among them.
extern "C" __global__ void place_edges(const i64* src, const i64* dst, const i64* etype, i64 edges, i64 sources, i64 targets, i64 first_bins,
                                       const int* bins, const int* rank, const int* start0, const int* start1, const int* refused,
                                       int* sorted_src, int* sorted_dst, int* sorted_etype, int* to_dst, int* to_src, int* order) {
  i64 e = (i64)blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= edges || refused[0]) return;
  i64 s = src[e], d = dst[e], r = etype[e];
  int p = bins[r * targets + d], q = bins[first_bins + r * sources + s];
  int at = start0[p] + rank[e];
  sorted_src[at] = (int)s;
  sorted_dst[at] = (int)d;
  sorted_etype[at] = (int)r;
  to_dst[at] = p;
  to_src[at] = q;
  order[start1[q] + rank[edges + e]] = at;
}

// How many chunks of at most LONGEST edges a row has, and how long chunks are put: in class c those of more than 2^(6-c) edges, at most 2^(7-c).
__device__ int class_of(int length) {
  int c = CLASSES - 1;
  for (int most = 1; most < length; most *= 2) --c;
  return c;
}

// 5. Chunks of each relation (etype 0: all rows are of one) and class. classes has to be zero before.
extern "C" __global__ void count_chunks(const int* start, const int* etype, i64 rows, int* classes) {
  __shared__ int own[CLASSES];
  i64 p = (i64)blockIdx.x * blockDim.x + threadIdx.x, low = (i64)blockIdx.x * blockDim.x;
  int first = etype ? etype[low] : 0;
  if (threadIdx.x < CLASSES) own[threadIdx.x] = 0;
  __syncthreads();
  if (p < rows) {
    int length = start[p + 1] - start[p], r = etype ? etype[p] : 0, whole = length / LONGEST, rest = length % LONGEST;
    int* into = r == first ? own : classes + r * CLASSES;
    if (whole) atomicAdd(&into[class_of(LONGEST)], whole);
    if (rest) atomicAdd(&into[class_of(rest)], 1);
  }
  __syncthreads();
  if (threadIdx.x < CLASSES && own[threadIdx.x]) atomicAdd(&classes[first * CLASSES + threadIdx.x], own[threadIdx.x]);
}

// 6. One block: where the chunks of each relation and class begin (classes is overwritten), and those of each relation.
extern "C" __global__ void place_classes(int* classes, i64 relations, i64* relation_start) {
  __shared__ u64 room[THREADS];
  u64 done = 0, total;
  for (i64 low = 0; low < relations; low += THREADS) {
    i64 r = low + threadIdx.x;
    u64 mine = 0;
    if (r < relations)
      for (int c = 0; c < CLASSES; ++c) mine += classes[r * CLASSES + c];
    u64 at = done + before_me(mine, room, &total);
    if (r < relations) {
      relation_start[r] = (i64)at;
      for (int c = 0; c < CLASSES; ++c) {
        int count = classes[r * CLASSES + c];
        classes[r * CLASSES + c] = (int)at;
        at += count;
      }
    }
    done += total;
  }
  if (threadIdx.x == 0) relation_start[relations] = (i64)done;
}

// 7. The chunks, in order of relation and class; in a class in order of blocks of rows, as they come.
extern "C" __global__ void place_chunks(const int* start, const int* etype, i64 rows, int* classes, int* row, int* begin, int* end, int* first_of) {
  __shared__ int own[CLASSES], base[CLASSES];
  i64 p = (i64)blockIdx.x * blockDim.x + threadIdx.x, low = (i64)blockIdx.x * blockDim.x;
  int first = etype ? etype[low] : 0, full = class_of(LONGEST);
  if (threadIdx.x < CLASSES) own[threadIdx.x] = 0;
  __syncthreads();
  int from = 0, to = 0, r = 0, whole = 0, rest = 0, of_whole = 0, of_rest = 0;
  if (p < rows) {
    from = start[p];
    to = start[p + 1];
    r = etype ? etype[p] : 0;
    whole = (to - from) / LONGEST;
    rest = (to - from) % LONGEST;
    int* into = r == first ? own : classes + r * CLASSES;
    if (whole) of_whole = atomicAdd(&into[full], whole);
    if (rest) of_rest = atomicAdd(&into[class_of(rest)], 1);
  }
  __syncthreads();
  if (threadIdx.x < CLASSES && own[threadIdx.x]) base[threadIdx.x] = atomicAdd(&classes[first * CLASSES + threadIdx.x], own[threadIdx.x]);
  __syncthreads();
  if (p >= rows) return;
  if (r == first && whole) of_whole += base[full];
  if (r == first && rest) of_rest += base[class_of(rest)];
  for (int i = 0; i < whole; ++i) {
    row[of_whole + i] = (int)p;
    begin[of_whole + i] = from + i * LONGEST;
    end[of_whole + i] = from + (i + 1) * LONGEST;
    first_of[of_whole + i] = i == 0;
  }
  if (rest) {
    row[of_rest] = (int)p;
    begin[of_rest] = to - rest;
    end[of_rest] = to;
    first_of[of_rest] = whole == 0;
  }
}

// 8. One block: tiles of `span` chunks of one relation; `ends` [relations] is room for where each relation's tiles end. Tiles past the last are empty.
extern "C" __global__ void make_tiles(const i64* relation_start, i64 relations, i64 span, i64 tiles, int* ends, int* relation, int* begin, int* end) {
  __shared__ u64 room[THREADS];
  u64 done = 0, total;
  for (i64 low = 0; low < relations; low += THREADS) {
    i64 r = low + threadIdx.x;
    u64 mine = r < relations ? (u64)((relation_start[r + 1] - relation_start[r] + span - 1) / span) : 0;
    u64 at = done + before_me(mine, room, &total);
    if (r < relations) ends[r] = (int)(at + mine);
    done += total;
  }
  __syncthreads();
  for (i64 t = threadIdx.x; t < tiles; t += THREADS) {
    i64 low = 0, high = relations;  // the first relation whose tiles end after t
    while (low < high) {
      i64 middle = (low + high) / 2;
      if (ends[middle] > t) high = middle;
      else low = middle + 1;
    }
    bool used = low < relations;
    i64 r = used ? low : relations - 1, number = t - (r ? ends[r - 1] : 0), from = relation_start[r] + number * span;
    i64 last = relation_start[r + 1];
    relation[t] = (int)r;
    begin[t] = used ? (int)from : 0;
    end[t] = used ? (int)(from + span < last ? from + span : last) : 0;
  }
}
