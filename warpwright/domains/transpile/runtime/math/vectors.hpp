// As many floats as a register holds, for regions whose values stay in registers.
namespace ww {
#if defined(__AVX512F__)
static constexpr int width = 16;
#elif defined(__AVX__)
static constexpr int width = 8;
#else
static constexpr int width = 4;
#endif
typedef float floats __attribute__((vector_size(width * 4)));
static inline floats load(const float* p) { floats v; __builtin_memcpy(&v, p, sizeof v); return v; }
static inline void store(float* p, floats v) { __builtin_memcpy(p, &v, sizeof v); }
// AVX-512 of gcc: lanes of memory by a mask, in one instruction.
#if defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
#define WW_MASKED_MOVES 1
static inline unsigned short first_lanes(int lanes) { return (unsigned short)((1u << lanes) - 1); }
#endif
// The same for the first `lanes` elements, at least one: others are not touched, and load as 0.
static inline floats load(const float* p, int lanes) {
#ifdef WW_MASKED_MOVES
  return __builtin_ia32_loadups512_mask(p, floats{}, first_lanes(lanes));
#endif
  floats v = {};
#pragma GCC unroll 16
  for (int i = 0; i < width; ++i) if (i < lanes) v[i] = p[i];
  return v;
}
static inline void store(float* p, floats v, int lanes) {
#ifdef WW_MASKED_MOVES
  return (void)__builtin_ia32_storeups512_mask(p, v, first_lanes(lanes));
#endif
  for (int i = 0; i < lanes; ++i) p[i] = v[i];
}
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define WW_HALVES 1
#endif
#endif
// Halves of a vector. By way of memory, as memcpy does it, a load of the whole waits for the stores of the halves (16 rows read on AVX-512: 6 times slower).
typedef float HalfFloats __attribute__((vector_size(width * 2)));
#if defined(WW_HALVES) && defined(__AVX512F__)
#define WW_LOW 0, 1, 2, 3, 4, 5, 6, 7
#define WW_HIGH 8, 9, 10, 11, 12, 13, 14, 15
#elif defined(WW_HALVES) && defined(__AVX__)
#define WW_LOW 0, 1, 2, 3
#define WW_HIGH 4, 5, 6, 7
#endif
static inline __attribute__((always_inline)) HalfFloats low_half(floats v) {
#ifdef WW_LOW
  return __builtin_shufflevector(v, v, WW_LOW);
#else
  HalfFloats half;
  __builtin_memcpy(&half, &v, sizeof half);
  return half;
#endif
}
static inline __attribute__((always_inline)) HalfFloats high_half(floats v) {
#ifdef WW_LOW
  return __builtin_shufflevector(v, v, WW_HIGH);
#else
  HalfFloats half;
  __builtin_memcpy(&half, (const char*)&v + sizeof half, sizeof half);
  return half;
#endif
}
static inline __attribute__((always_inline)) floats joined_halves(HalfFloats low, HalfFloats high) {
#ifdef WW_LOW
  return __builtin_shufflevector(low, high, WW_LOW, WW_HIGH);
#else
  floats all;
  __builtin_memcpy(&all, &low, sizeof low);
  __builtin_memcpy((char*)&all + sizeof low, &high, sizeof high);
  return all;
#endif
}
// Quarters next to each other.
typedef float Four __attribute__((vector_size(16)));
static inline __attribute__((always_inline)) floats joined(const Four* fours) {
#if defined(WW_LOW) && defined(__AVX512F__)
  return joined_halves(__builtin_shufflevector(fours[0], fours[1], WW_LOW), __builtin_shufflevector(fours[2], fours[3], WW_LOW));
#elif defined(WW_LOW)
  return joined_halves(fours[0], fours[1]);
#else
  floats all;
  __builtin_memcpy(&all, fours, sizeof all);
  return all;
#endif
}
// Four rows of quarters: number x of each quarter of them becomes vector x, those of row r in place r of each quarter.
static inline __attribute__((always_inline)) void exchanged(const floats* rows, floats* out) {
  typedef int Order __attribute__((vector_size(width * 4)));
  Order low, high, first, second;  // of (a, b), in each quarter: a0 b0 a1 b1, a2 b2 a3 b3, a0 a1 b0 b1, a2 a3 b2 b3
  for (int i = 0; i < width; ++i) {
    const int quarter = i & ~3, nth = i & 3;
    low[i] = quarter + nth / 2 + nth % 2 * width;
    high[i] = low[i] + 2;
    first[i] = quarter + nth % 2 + nth / 2 * width;
    second[i] = first[i] + 2;
  }
  const floats a = __builtin_shuffle(rows[0], rows[1], low), b = __builtin_shuffle(rows[2], rows[3], low);
  const floats c = __builtin_shuffle(rows[0], rows[1], high), d = __builtin_shuffle(rows[2], rows[3], high);
  out[0] = __builtin_shuffle(a, b, first);
  out[1] = __builtin_shuffle(a, b, second);
  out[2] = __builtin_shuffle(c, d, first);
  out[3] = __builtin_shuffle(c, d, second);
}
// Element x of each of `width` rows that are `step` apart becomes vector x: rows are read whole, and exchanged in registers, by quarters of four elements.
// Lanes from `lanes` on read row 0.
static inline __attribute__((always_inline)) void load_rows(const float* p, long step, floats* out, int lanes = width) {
#pragma GCC unroll 4
  for (int x = 0; x < width; x += 4) {
    floats rows[4];
#pragma GCC unroll 4
    for (int r = 0; r < 4; ++r) {
      Four fours[width / 4];
#pragma GCC unroll 4
      for (int q = 0; q < width / 4; ++q) __builtin_memcpy(&fours[q], p + (4 * q + r < lanes ? 4 * q + r : 0) * step + x, sizeof(Four));
      rows[r] = joined(fours);
    }
    exchanged(rows, out + x);
  }
}
// The float4 of each of `width` threads that are `apart` apart, as a vector of each of its numbers (transposed_stores.py); how far apart those threads
// are whose places are side by side, 0 where none are.
template <int apart, class F> static inline __attribute__((always_inline)) void load_fours(F four, int thread, floats* out) {
  floats rows[4];
#pragma GCC unroll 4
  for (int r = 0; r < 4; ++r) {
    Four fours[width / 4];
#pragma GCC unroll 4
    for (int q = 0; q < width / 4; ++q) {
      const auto one = four(thread + (4 * q + r) * apart);
      __builtin_memcpy(&fours[q], &one, sizeof(Four));
    }
    rows[r] = joined(fours);
  }
  exchanged(rows, out);
}
template <class... F> constexpr int stored_apart(int bx, F... place) {
  for (int apart = 1; apart * width <= bx && bx % (apart * width) == 0; apart *= 2) {
    bool all = true;
    for (int t = 0; t < bx && all; ++t) {
      const int nth = t / apart % width;
      all = ((place(t) == place(t - nth * apart) + nth) && ...);
    }
    if (all) return apart;
  }
  return 0;
}
template <class F> static inline __attribute__((always_inline)) floats gathered(F value, int thread, int lanes = width) {
  floats v;
#pragma GCC unroll 16
  for (int i = 0; i < width; ++i) v[i] = value(thread + (i < lanes ? i : 0));
  return v;
}
template <class F> static inline __attribute__((always_inline)) void scattered(F place, int thread, floats v, int lanes = width) {
#pragma GCC unroll 16
  for (int i = 0; i < width; ++i) if (i < lanes) place(thread + i) = v[i];
}
template <class F> static inline __attribute__((always_inline)) floats each_lane(F f, floats v) {
  alignas(64) float in[width], out[width];
  __builtin_memcpy(in, &v, sizeof v);
#pragma omp simd
  for (int i = 0; i < width; ++i) out[i] = f(in[i]);
  __builtin_memcpy(&v, out, sizeof v);
  return v;
}
// How many registers a row of threads takes at once, and how many rows: 8 values live in registers, of 32 of them 16; of one vector 4 (16: 8 % slower).
#if defined(__AVX512F__)
constexpr int sums_at_once = 16;
#else
constexpr int sums_at_once = 8;
#endif
constexpr int vectors_of(int bx) { return bx / width >= 4 ? 4 : bx / width; }
constexpr int abreast(int bx, int most) { return !bx || vectors_of(bx) >= most ? most : vectors_of(bx) > 1 ? vectors_of(bx) : 1; }  // 0: of any length
constexpr int rows_of(int bx, int by) {
  int rows = vectors_of(bx) >= 4 ? sums_at_once / 4 : vectors_of(bx) == 2 ? sums_at_once / 2 : 4;
  while (rows > 1 && by % rows) rows /= 2;
  return rows;
}
constexpr int thread_rows(int by) { return by > 0 && by % (sums_at_once / 2) == 0 ? sums_at_once / 2 : 4; }  // two vectors of each
constexpr bool fits_registers(int bx) { return bx >= width && bx % (width * vectors_of(bx)) == 0; }
// Rows of the tiles of neighbouring threads as vectors (thread_tiles.py): whether a block of bx threads, tiles of `size` numbers and rows of `row` fit;
// whether a place is the same for the threads of a vector, or the next thread's is a row further; how many vectors side by side share their left factors.
// Tiles of more rows than registers hold sums go through their loop several times, some rows at a time; 0 where too few or too often.
constexpr int rows_of_tiles(int rows) {
  for (int n = rows < sums_at_once ? rows : sums_at_once; n > 0; --n) if (rows % n == 0) return n == rows || (2 * n >= sums_at_once && rows <= 4 * n) ? n : 0;
  return 0;
}
template <int parts, class F> static inline __attribute__((always_inline)) void each_part(F part) {
  if constexpr (parts > 1) each_part<parts - 1>(part);
  if constexpr (parts > 0) part(std::integral_constant<int, parts - 1>{});
}
constexpr bool fits_tiles(int bx, int row, int size) { return row >= 4 && width % row == 0 && bx % (width / row) == 0 && size % row == 0 && rows_of_tiles(size / row) > 0; }
template <class F> constexpr bool moves_by(int bx, int threads, int by, F place) {
  for (int t = 0; t < bx; ++t) if (place(t) != place(t - t % threads) + t % threads * by) return false;
  return true;
}
template <class F> constexpr bool next_in_tiles(int bx, int row, F place) { return moves_by(bx, width / row, row, place); }
template <class F> constexpr bool same_in_tiles(int bx, int row, F place) { return moves_by(bx, width / row, 0, place); }
// Eight sums at once, of which each product needs a number of its own: 16, of two vectors, gain 5 % on a Xeon and lose 5 to 10 on an EPYC.
template <class... F> constexpr int vectors_of_tiles(int bx, int row, int size, F... left) {
  for (int n = 8 / rows_of_tiles(size / row); n > 1; --n) {
    const int threads = width / row * n;
    if (bx % threads == 0 && (moves_by(bx, threads, 0, left) && ...)) return n;
  }
  return 1;
}
template <int row> static inline __attribute__((always_inline)) floats load_tile(const float* p, long next) {
  if constexpr (row * 4 == width) {
    Four fours[width / 4];
    for (int i = 0; i < width / 4; ++i) __builtin_memcpy(&fours[i], p + i * next, sizeof(Four));
    return joined(fours);
  }
  if constexpr (row * 2 == width) {
    HalfFloats low, high;
    __builtin_memcpy(&low, p, sizeof low);
    __builtin_memcpy(&high, p + next, sizeof high);
    return joined_halves(low, high);
  }
  floats v;
  for (int i = 0; i < width / row; ++i) __builtin_memcpy((float*)&v + i * row, p + i * next, row * 4);
  return v;
}
template <int row> static inline __attribute__((always_inline)) void store_tile(float* p, long next, floats v) {
  if constexpr (row * 2 == width) {
    const HalfFloats low = low_half(v), high = high_half(v);
    __builtin_memcpy(p, &low, sizeof low);
    __builtin_memcpy(p + next, &high, sizeof high);
    return;
  }
  for (int i = 0; i < width / row; ++i) __builtin_memcpy(p + i * next, (float*)&v + i * row, row * 4);
}
// The tiles of neighbours row by row beside each other, as vectors, and back.
template <int row, int size> static inline void join_tiles(float* tiles, int threads) {
  for (float *p = tiles, *end = tiles + threads * size; p < end; p += size * (width / row)) {
    floats all[size / row];
#pragma GCC unroll 16
    for (int i = 0; i < size / row; ++i) all[i] = load_tile<row>(p + i * row, size);
#pragma GCC unroll 16
    for (int i = 0; i < size / row; ++i) store(p + i * width, all[i]);
  }
}
template <int row, int size> static inline void part_tiles(float* tiles, int threads) {
  for (float *p = tiles, *end = tiles + threads * size; p < end; p += size * (width / row)) {
    floats all[size / row];
#pragma GCC unroll 16
    for (int i = 0; i < size / row; ++i) all[i] = load(p + i * width);
#pragma GCC unroll 16
    for (int i = 0; i < size / row; ++i) store_tile<row>(p + i * row, size, all[i]);
  }
}
}  // namespace ww
