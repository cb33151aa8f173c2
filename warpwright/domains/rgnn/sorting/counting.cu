// A graph's index by counting: edges sorted by (relation, node), unique pairs, and the work list of a kernel over rows. See counting.py.
//
// A key is relation * nodes + node; there is a bin for each key. Both sides are done at once: bins [0, first_bins) are of destinations, those
// after them of sources. A block of bins has BINS, and none has bins of both sides.
//
// One launch does all phases: its blocks are all on the device at once (a cooperative launch) and wait for one another between phases.
#define THREADS 256
#define EACH 16
#define BINS (THREADS * EACH)
#define CLASSES 8
#define LONGEST_TILE 16
#define PROGRAMS 1024
typedef unsigned long long u64;
typedef long long i64;

// Exclusive sum over the block of one number of each thread; `total` gets the sum of all. u64 holds two sums of 32 bits, as no sum passes 2^31.
__device__ u64 before_me(u64 mine, u64* room, u64* total) {
  int me = threadIdx.x;
  room[me] = mine;
  __syncthreads();
  for (int step = 1; step < THREADS; step *= 2) {
    u64 other = me >= step ? room[me - step] : 0;
    __syncthreads();
    room[me] += other;
    __syncthreads();
  }
  u64 upto = room[me];
  *total = room[THREADS - 1];
  __syncthreads();
  return upto - mine;
}

// All blocks wait for one another; what they wrote before is seen by all afterwards. `arrived` is zero before the launch, `round` counts from 1.
__device__ void meet(unsigned* arrived, unsigned round) {
  __syncthreads();
  if (gridDim.x == 1) return;
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < round * gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
}

// How many edges each key has, and each edge's place among those of its key. refused is set where a number is out of range.
__device__ void count_keys(const i64* src, const i64* dst, const i64* etype, i64 edges, i64 sources, i64 targets, i64 relations, i64 first_bins,
                           int* bins, int* rank, int* refused) {
  for (i64 e = (i64)blockIdx.x * THREADS + threadIdx.x; e < edges; e += (i64)gridDim.x * THREADS) {
    i64 s = src[e], d = dst[e], r = etype[e];
    if (s < 0 || s >= sources || d < 0 || d >= targets || r < 0 || r >= relations) {
      refused[0] = 1;
    } else {
      rank[e] = atomicAdd(&bins[r * targets + d], 1);
      rank[edges + e] = atomicAdd(&bins[first_bins + r * sources + s], 1);
    }
  }
}

// For each block of bins: its edges, and its keys that have any.
__device__ void sum_bins(const int* bins, i64 blocks, int* edges_of, int* keys_of) {
  __shared__ u64 room[THREADS];
  for (i64 b = blockIdx.x; b < blocks; b += gridDim.x) {
    u64 mine = 0, total;
    for (int i = 0; i < EACH; ++i) {
      u64 count = bins[b * BINS + i * THREADS + threadIdx.x];
      mine += count + (count ? (u64)1 << 32 : 0);
    }
    before_me(mine, room, &total);
    if (threadIdx.x == 0) {
      edges_of[b] = (int)(total & 0xffffffffu);
      keys_of[b] = (int)(total >> 32);
    }
  }
}

// The pairs of one end: where the edges of each begin, its node and its relation.
struct Side {
  int *start, *node, *etype;
};

// Keys that have edges are pairs, numbered in order. A bin then holds its pair's number. Destinations' pairs get their counts as numbers, too.
__device__ void number_pairs(int* bins, const int* edges_of, const int* keys_of, i64 first_blocks, i64 blocks, i64 targets, i64 sources,
                             i64 relations, i64 edges, Side first, Side other, float* count, float* inverse, int* pairs) {
  __shared__ u64 room[THREADS];
  for (i64 b = blockIdx.x; b < blocks; b += gridDim.x) {
    bool second = b >= first_blocks;
    i64 first_block = second ? first_blocks : 0;
    unsigned nodes = (unsigned)(second ? sources : targets);
    int *start = second ? other.start : first.start, *node = second ? other.node : first.node, *etype = second ? other.etype : first.etype;
    u64 earlier = 0, done, total;
    for (i64 i = first_block + threadIdx.x; i < b; i += THREADS) earlier += (u64)edges_of[i] + ((u64)keys_of[i] << 32);
    before_me(earlier, room, &done);
    i64 at = b * BINS + (i64)threadIdx.x * EACH, key = at - first_block * BINS, last = relations * nodes - 1;
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
        unsigned own = (unsigned)(key + i);
        start[pair] = edge;
        node[pair] = (int)(own % nodes);
        etype[pair] = (int)(own / nodes);
        if (!second) {
          count[pair] = (float)mine[i];
          inverse[pair] = 1.0f / (float)mine[i];
        }
        bins[at + i] = pair;
        edge += mine[i];
        ++pair;
      }
      if (key + i == last) {
        start[pair] = (int)edges;
        pairs[second ? 1 : 0] = pair;
      }
    }
  }
}

// Edges in the order of (relation, destination), their pairs on both sides, and the order of (relation, source) among them.
__device__ void place_edges(const i64* src, const i64* dst, const i64* etype, i64 edges, i64 sources, i64 targets, i64 first_bins, const int* bins,
                            const int* rank, const int* start0, const int* start1, int* of_edges, i64 room) {
  for (i64 e = (i64)blockIdx.x * THREADS + threadIdx.x; e < edges; e += (i64)gridDim.x * THREADS) {
    i64 s = src[e], d = dst[e], r = etype[e];
    int p = bins[r * targets + d], q = bins[first_bins + r * sources + s];
    int at = start0[p] + rank[e];
    of_edges[at] = (int)s;
    of_edges[room + at] = (int)d;
    of_edges[2 * room + at] = (int)r;
    of_edges[3 * room + at] = p;
    of_edges[4 * room + at] = q;
    of_edges[5 * room + start1[q] + rank[edges + e]] = at;
  }
}

// Rows are cut into chunks of at most `longest` edges, 64 or fewer. How long chunks are put: in class c those of more than 2^(6-c) edges, at most 2^(7-c).
__device__ int class_of(int length) {
  int c = CLASSES - 1;
  for (int most = 1; most < length; most *= 2) --c;
  return c;
}

// Chunks of each relation (etype 0: all rows are of one) and class. classes has to be zero before.
__device__ void count_chunks(const int* start, const int* etype, i64 rows, int longest, int* classes) {
  __shared__ int own[CLASSES];
  for (i64 low = (i64)blockIdx.x * THREADS; low < rows; low += (i64)gridDim.x * THREADS) {
    i64 p = low + threadIdx.x;
    int first = etype ? etype[low] : 0;
    __syncthreads();
    if (threadIdx.x < CLASSES) own[threadIdx.x] = 0;
    __syncthreads();
    if (p < rows) {
      int length = start[p + 1] - start[p], r = etype ? etype[p] : 0, whole = length / longest, rest = length % longest;
      int* into = r == first ? own : classes + r * CLASSES;
      if (whole) atomicAdd(&into[class_of(longest)], whole);
      if (rest) atomicAdd(&into[class_of(rest)], 1);
    }
    __syncthreads();
    if (threadIdx.x < CLASSES && own[threadIdx.x]) atomicAdd(&classes[first * CLASSES + threadIdx.x], own[threadIdx.x]);
  }
}

// One block: where the chunks of each relation and class begin (classes is overwritten), those of each relation, and where its tiles end.
__device__ void place_classes(int* classes, i64 relations, i64 span, int* relation_start, int* ends) {
  __shared__ u64 room[THREADS];
  u64 done = 0, total;
  for (i64 low = 0; low < relations; low += THREADS) {
    i64 r = low + threadIdx.x;
    u64 mine = 0;
    if (r < relations)
      for (int c = 0; c < CLASSES; ++c) mine += classes[r * CLASSES + c];
    u64 tiles = (mine + span - 1) / span;
    u64 before = done + before_me(mine + (tiles << 32), room, &total);
    if (r < relations) {
      int at = (int)(before & 0xffffffffu);
      relation_start[r] = at;
      ends[r] = (int)((before >> 32) + tiles);
      for (int c = 0; c < CLASSES; ++c) {
        int count = classes[r * CLASSES + c];
        classes[r * CLASSES + c] = at;
        at += count;
      }
    }
    done += total;
  }
  if (threadIdx.x == 0) relation_start[relations] = (int)(done & 0xffffffffu);
}

// The chunks, in order of relation and class; in a class in order of blocks of rows, as they come.
__device__ void place_chunks(const int* start, const int* etype, i64 rows, int longest, int* classes, int* row, int* begin, int* end, int* first_of) {
  __shared__ int own[CLASSES], base[CLASSES];
  int full = class_of(longest);
  for (i64 low = (i64)blockIdx.x * THREADS; low < rows; low += (i64)gridDim.x * THREADS) {
    i64 p = low + threadIdx.x;
    int first = etype ? etype[low] : 0;
    __syncthreads();
    if (threadIdx.x < CLASSES) own[threadIdx.x] = 0;
    __syncthreads();
    int from = 0, to = 0, r = 0, whole = 0, rest = 0, of_whole = 0, of_rest = 0;
    if (p < rows) {
      from = start[p];
      to = start[p + 1];
      r = etype ? etype[p] : 0;
      whole = (to - from) / longest;
      rest = (to - from) % longest;
      int* into = r == first ? own : classes + r * CLASSES;
      if (whole) of_whole = atomicAdd(&into[full], whole);
      if (rest) of_rest = atomicAdd(&into[class_of(rest)], 1);
    }
    __syncthreads();
    if (threadIdx.x < CLASSES && own[threadIdx.x]) base[threadIdx.x] = atomicAdd(&classes[first * CLASSES + threadIdx.x], own[threadIdx.x]);
    __syncthreads();
    if (p < rows) {
      if (r == first && whole) of_whole += base[full];
      if (r == first && rest) of_rest += base[class_of(rest)];
      for (int i = 0; i < whole; ++i) {
        row[of_whole + i] = (int)p;
        begin[of_whole + i] = from + i * longest;
        end[of_whole + i] = from + (i + 1) * longest;
        first_of[of_whole + i] = i == 0;
      }
      if (rest) {
        row[of_rest] = (int)p;
        begin[of_rest] = to - rest;
        end[of_rest] = to;
        first_of[of_rest] = whole == 0;
      }
    }
  }
}

// Tiles of `span` chunks of one relation; `ends` says where each relation's tiles end. Tiles past the last are empty.
__device__ void place_tiles(const int* relation_start, const int* ends, i64 relations, i64 span, i64 tiles, int* relation, int* begin, int* end) {
  for (i64 t = (i64)blockIdx.x * THREADS + threadIdx.x; t < tiles; t += (i64)gridDim.x * THREADS) {
    int low = 0, high = (int)relations;  // the first relation whose tiles end after t
    while (low < high) {
      int middle = (low + high) / 2;
      if (ends[middle] > t) high = middle;
      else low = middle + 1;
    }
    bool used = low < relations;
    int r = used ? low : (int)relations - 1, number = (int)t - (r ? ends[r - 1] : 0), last = relation_start[r + 1];
    i64 from = relation_start[r] + (i64)number * span;
    relation[t] = r;
    begin[t] = used ? (int)from : 0;
    end[t] = used ? (int)(from + span < last ? from + span : last) : 0;
  }
}

// A part of `count` numbers of an allocation: parts begin at multiples of 256 bytes.
__device__ i64 padded(i64 count) { return (count + 63) / 64 * 64; }

// The work list of rows: chunks, and tiles of `span` of them. `out` has row, begin, end and first of `room` chunks, relation, begin and end of
// `tiles` tiles, then where each relation's chunks begin and its tiles end. Rounds of `meet` from `round` on.
__device__ void list_work(const int* start, const int* etype, i64 rows, i64 relations, i64 room, i64 span, i64 tiles, int longest,
                          unsigned* arrived, unsigned round, int* classes, int* out, i64 chunk_room, i64 tile_room) {
  int *chunk = out, *tile = out + 4 * chunk_room, *relation_start = tile + 3 * tile_room, *ends = relation_start + padded(relations + 1);
  meet(arrived, round);
  if (blockIdx.x == 0) place_classes(classes, relations, span, relation_start, ends);
  meet(arrived, round + 1);
  place_chunks(start, etype, rows, longest, classes, chunk, chunk + chunk_room, chunk + 2 * chunk_room, chunk + 3 * chunk_room);
  place_tiles(relation_start, ends, relations, span, tiles, tile, tile + tile_room, tile + 2 * tile_room);
}

// Tells the host, in memory of its own, what it waits for; its ticket last.
__device__ void tell(int* told, int ticket, int refused, int pairs, int others) {
  if (!told || blockIdx.x || threadIdx.x) return;
  told[1] = refused;
  told[2] = pairs;
  told[3] = others;
  __threadfence_system();
  *(volatile int*)told = ticket;
}

// A graph's index, and the work list of its (relation, destination) pairs. `zeroed` has arrived, refused, the numbers of pairs of both sides, then
// classes and bins; `told` (or none) is memory of the host's, which reads there, behind its ticket, what it would else copy when all is done; `scratch` has ranks and sums of blocks of bins; of_edges has source, destination, relation, both pairs and the order by
// sources; of_pairs start, node, relation, count and inverse count of destinations' pairs, start, node and relation of sources', and the work list.
extern "C" __global__ void index_graph(const i64* src, const i64* dst, const i64* etype, i64 edges, i64 sources, i64 targets, i64 relations, i64 step,
                                       i64 longest, int* zeroed, int* scratch, int* of_edges, int* of_pairs, i64 chunk_room, i64 tile_room,
                                       int* told, i64 ticket) {
  unsigned* arrived = (unsigned*)zeroed;
  int *refused = zeroed + 1, *pairs = zeroed + 2, *classes = zeroed + 64, *bins = classes + padded(relations * CLASSES);
  i64 first_blocks = (relations * targets + BINS - 1) / BINS, blocks = first_blocks + (relations * sources + BINS - 1) / BINS;
  i64 first_bins = first_blocks * BINS;
  int *rank = scratch, *edges_of = rank + padded(2 * edges), *keys_of = edges_of + padded(blocks);
  i64 most0 = relations * targets < edges ? relations * targets : edges, most1 = relations * sources < edges ? relations * sources : edges;
  Side first, other;
  first.start = of_pairs;
  first.node = first.start + padded(most0 + 1);
  first.etype = first.node + padded(most0);
  int *count = first.etype + padded(most0), *inverse = count + padded(most0);
  other.start = inverse + padded(most0);
  other.node = other.start + padded(most1 + 1);
  other.etype = other.node + padded(most1);
  int* work = other.etype + padded(most1);
  count_keys(src, dst, etype, edges, sources, targets, relations, first_bins, bins, rank, refused);
  meet(arrived, 1);
  if (refused[0]) {
    tell(told, (int)ticket, 1, 0, 0);
    return;
  }
  sum_bins(bins, blocks, edges_of, keys_of);
  meet(arrived, 2);
  number_pairs(bins, edges_of, keys_of, first_blocks, blocks, targets, sources, relations, edges, first, other, (float*)count, (float*)inverse,
               pairs);
  meet(arrived, 3);
  tell(told, (int)ticket, 0, pairs[0], pairs[1]);
  place_edges(src, dst, etype, edges, sources, targets, first_bins, bins, rank, first.start, other.start, of_edges, padded(edges));
  i64 rows = pairs[0], room = rows + edges / longest, longer = room / (step * PROGRAMS);
  i64 span = step * (longer < 1 ? 1 : longer > LONGEST_TILE ? LONGEST_TILE : longer);
  count_chunks(first.start, first.etype, rows, (int)longest, classes);
  list_work(first.start, first.etype, rows, relations, room, span, room / span + relations, (int)longest, arrived, 4, classes, work, chunk_room,
            tile_room);
}

// The work list of other rows. `zeroed` has arrived, and from its 64th number on classes.
extern "C" __global__ void work_list(const int* start, const int* etype, i64 rows, i64 relations, i64 room, i64 span, i64 tiles, i64 longest,
                                     int* zeroed, int* out) {
  int* classes = zeroed + 64;
  count_chunks(start, etype, rows, (int)longest, classes);
  list_work(start, etype, rows, relations, room, span, tiles, (int)longest, (unsigned*)zeroed, 1, classes, out, padded(room), padded(tiles));
}

// One block: tiles of another span over chunks that are there; `ends` [relations] is room.
extern "C" __global__ void make_tiles(const int* relation_start, i64 relations, i64 span, i64 tiles, int* ends, int* relation, int* begin, int* end) {
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
  place_tiles(relation_start, ends, relations, span, tiles, relation, begin, end);
}
