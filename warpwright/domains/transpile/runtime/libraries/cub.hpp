// CUB in device code, on fibers: what a warp or a block does together one of its threads does for all, in the order of their ranks. The algorithms that
// CUB offers by name are one here, and temporary storage holds nothing.
#include <iterator>
namespace ww {
struct Nothing {};
// All threads of a block offer an object of their own, which the first of them may change; then they go on.
template <class T, class F> static inline void block_together(T& mine, F first) {
  self->value = (unsigned long long)&mine;
  sync_threads(0);
  if (self->linear == 0) first((unsigned)the_block->launch->threads(), [](unsigned rank) -> T& { return *(T*)the_block->fibers[rank].value; });
  sync_threads(0);
}
template <int size> static inline unsigned logical_warp() { return size >= 32 ? 0xffffffffu : ((1u << (size & 31)) - 1) << (self->lane / size * size); }
// The values of the lanes of a logical warp, in order: take(count, rank -> value, own rank).
template <int size, class T, class F> static inline auto warp_together(const T& mine, F take) {
  static_assert((size & (size - 1)) == 0 && size <= 32, "warps of a power of two of lanes");
  const unsigned first = self->lane / size * size, rank = self->lane - first;
  return exchange(logical_warp<size>(), mine, [=](const Fiber* lanes, unsigned live) {
    unsigned count = 0;
    while (count < size && (live >> (first + count) & 1)) ++count;
    return take(count, [=](unsigned i) { return offered<T>(lanes[first + i]); }, rank);
  });
}
}  // namespace ww
#define CUB_NS_QUALIFIER cub
#define CUB_NAMESPACE_BEGIN namespace cub {
#define CUB_NAMESPACE_END }
#define CUB_MIN(A, B) ((A) < (B) ? (A) : (B))
#define CUB_MAX(A, B) ((A) > (B) ? (A) : (B))
#define CUB_ABS(A) ((A) < 0 ? -(A) : (A))
#define CUB_QUOTIENT_CEILING(A, B) (((A) + (B) - 1) / (B))
#define CUB_ROUND_UP_NEAREST(A, B) (CUB_QUOTIENT_CEILING(A, B) * (B))
#define CUB_STATIC_ASSERT(...) static_assert(__VA_ARGS__)
#define CUB_RUNTIME_FUNCTION
#define CubDebug(E) ::cub::Debug((cudaError_t)(E), __FILE__, __LINE__)
#define CubDebugExit(E) do { if (CubDebug(E)) std::exit(1); } while (0)
#define _CubLog(...) std::printf(__VA_ARGS__)
namespace cub {
using NullType = ww::Nothing;
template <class E> static inline E Debug(E error, const char* file, int line) {
  if (error) std::fprintf(stderr, "CUDA error %d [%s, %d]\n", (int)error, file, line);
  return error;
}
static inline int PtxVersion(int& v) { return v = 800, 0; }
static inline void ThreadTrap() { __trap(); }
template <class N, class D> constexpr N DivideAndRoundUp(N n, D d) { return n / d + (n % d != 0 ? 1 : 0); }
enum Category { NOT_A_NUMBER, SIGNED_INTEGER, UNSIGNED_INTEGER, FLOATING_POINT };
template <class T> struct FpLimits { static T Max() { return std::numeric_limits<T>::max(); } static T Lowest() { return std::numeric_limits<T>::lowest(); } };
template <Category category, bool primitive, bool null, class U, class T> struct BaseTraits {
  using UnsignedBits = U;
  static const Category CATEGORY = category;
  enum { PRIMITIVE = primitive, NULL_TYPE = null };
  static T Max() { return FpLimits<T>::Max(); }
  static T Lowest() { return FpLimits<T>::Lowest(); }
};
template <int bytes> using UnsignedOf = std::conditional_t<bytes == 1, unsigned char, std::conditional_t<bytes == 2, unsigned short, std::conditional_t<bytes == 4, unsigned, unsigned long long>>>;
template <class T> struct NumericTraits
    : BaseTraits<std::is_floating_point_v<T> ? FLOATING_POINT : !std::is_integral_v<T> ? NOT_A_NUMBER : std::is_signed_v<T> ? SIGNED_INTEGER : UNSIGNED_INTEGER, std::is_arithmetic_v<T>, std::is_same_v<T, NullType>, UnsignedOf<(int)sizeof(T)>, T> {};
template <class T> struct Traits : NumericTraits<std::remove_cv_t<T>> {};
struct Sum { template <class A, class B> auto operator()(const A& a, const B& b) const { return a + b; } };
struct Difference { template <class A, class B> auto operator()(const A& a, const B& b) const { return a - b; } };
struct Max { template <class A, class B> std::common_type_t<A, B> operator()(const A& a, const B& b) const { return a < b ? b : a; } };
struct Min { template <class A, class B> std::common_type_t<A, B> operator()(const A& a, const B& b) const { return b < a ? b : a; } };
struct Equality { template <class A, class B> bool operator()(const A& a, const B& b) const { return a == b; } };
struct Inequality { template <class A, class B> bool operator()(const A& a, const B& b) const { return !(a == b); } };
template <class K, class V> struct KeyValuePair {
  typedef K Key;
  typedef V Value;
  K key;
  V value;
  KeyValuePair() = default;
  KeyValuePair(const K& k, const V& v) : key(k), value(v) {}
  bool operator!=(const KeyValuePair& o) const { return key != o.key || value != o.value; }
};
struct ArgMax { template <class K, class V> KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const { return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a; } };
struct ArgMin { template <class K, class V> KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const { return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a; } };
static inline unsigned LaneId() { return ww::self->lane; }
static inline unsigned WarpId() { return ww::self->warp; }
static inline int RowMajorTid(int, int, int) { return (int)ww::self->linear; }
static inline void CTA_SYNC() { ww::sync_threads(0); }
static inline void WARP_SYNC(unsigned mask) { ww::sync_warp(mask); }
enum CacheLoadModifier { LOAD_DEFAULT, LOAD_CA, LOAD_CG, LOAD_CS, LOAD_CV, LOAD_LDG, LOAD_VOLATILE };
enum CacheStoreModifier { STORE_DEFAULT, STORE_WB, STORE_CG, STORE_CS, STORE_WT, STORE_VOLATILE };
template <CacheLoadModifier = LOAD_DEFAULT, class I> static inline auto ThreadLoad(I at) { return *at; }
template <CacheStoreModifier = STORE_DEFAULT, class I, class T> static inline void ThreadStore(I at, T v) { *at = v; }
template <int width, class T> static inline T ShuffleUp(T v, int d, int, unsigned mask) { return __shfl_up_sync(mask, v, (unsigned)d, width); }
template <int width, class T> static inline T ShuffleDown(T v, int d, int, unsigned mask) { return __shfl_down_sync(mask, v, (unsigned)d, width); }
template <int width, class T> static inline T ShuffleIndex(T v, int s, unsigned mask) { return __shfl_sync(mask, v, s, width); }

namespace details {
struct Storage { int unused; };
struct Uninitialized { int unused; operator Storage&() { return *(Storage*)this; } Storage& Alias() { return *this; } };
template <class T, int n, class F> static inline T joined(const T (&items)[n], F f) { T r = items[0]; for (int i = 1; i < n; ++i) r = f(r, items[i]); return r; }
struct Collective {  // as the classes of CUB are made: with storage or without
  typedef Uninitialized TempStorage;
  Collective() = default;
  Collective(Storage&) {}
  Collective(TempStorage&) {}
};
}  // namespace details

template <class T, int size = 32, int = 0> struct WarpReduce : details::Collective {
  using Collective::Collective;
  template <class F> T Reduce(T v, F f, int valid = size) const {
    return ww::warp_together<size>(v, [=](unsigned count, auto of, unsigned) { T r = of(0); for (unsigned i = 1; i < count && (int)i < valid; ++i) r = f(r, of(i)); return r; });
  }
  T Sum(T v, int valid = size) const { return Reduce(v, cub::Sum(), valid); }
  template <class Flag, class F> T HeadSegmentedReduce(T v, Flag head, F f) const {
    struct One { T value; bool head; };
    return ww::warp_together<size>(One{v, (bool)head}, [=](unsigned count, auto of, unsigned rank) { T r = of(rank).value; for (unsigned i = rank + 1; i < count && !of(i).head; ++i) r = f(r, of(i).value); return r; });
  }
  template <class Flag> T HeadSegmentedSum(T v, Flag head) const { return HeadSegmentedReduce(v, head, cub::Sum()); }
};
template <class T, int size = 32, int = 0> struct WarpScan : details::Collective {
  using Collective::Collective;
  template <class F> void InclusiveScan(T v, T& out, F f, T& all) const {
    struct Two { T mine, all; };
    const Two r = ww::warp_together<size>(v, [=](unsigned count, auto of, unsigned rank) { Two r; T sum = of(0); r.mine = sum; for (unsigned i = 1; i < count; ++i) { sum = f(sum, of(i)); if (i == rank) r.mine = sum; } r.all = sum; return r; });
    out = r.mine, all = r.all;
  }
  template <class F> void InclusiveScan(T v, T& out, F f) const { T all; InclusiveScan(v, out, f, all); }
  void InclusiveSum(T v, T& out) const { InclusiveScan(v, out, cub::Sum()); }
  void InclusiveSum(T v, T& out, T& all) const { InclusiveScan(v, out, cub::Sum(), all); }
  template <class F> void ExclusiveScan(T v, T& out, T init, F f, T& all) const {
    struct Two { T mine, all; };
    const Two r = ww::warp_together<size>(v, [=](unsigned count, auto of, unsigned rank) { Two r; T sum = init; r.mine = init; T total = of(0); for (unsigned i = 0; i < count; ++i) { if (i == rank) r.mine = sum; sum = f(sum, of(i)); if (i) total = f(total, of(i)); } r.all = total; return r; });
    out = r.mine, all = r.all;
  }
  template <class F> void ExclusiveScan(T v, T& out, T init, F f) const { T all; ExclusiveScan(v, out, init, f, all); }
  void ExclusiveSum(T v, T& out) const { ExclusiveScan(v, out, T(), cub::Sum()); }
  void ExclusiveSum(T v, T& out, T& all) const { ExclusiveScan(v, out, T(), cub::Sum(), all); }
  T Broadcast(T v, unsigned lane) const { return ww::warp_together<size>(v, [=](unsigned, auto of, unsigned) { return of(lane); }); }
};

enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED };
enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED };
template <class T, int x, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int y = 1, int z = 1, int = 0> struct BlockReduce : details::Collective {
  using Collective::Collective;
  template <class F> T Reduce(T v, F f, int valid = x * y * z) const {  // the first thread has it; here all do
    ww::block_together(v, [=](unsigned count, auto of) {
      T r = of(0);
      for (unsigned i = 1; i < count && (int)i < valid; ++i) r = f(r, of(i));
      for (unsigned i = 0; i < count; ++i) of(i) = r;
    });
    return v;
  }
  template <int n, class F> T Reduce(const T (&items)[n], F f) const { return Reduce(details::joined(items, f), f); }
  T Sum(T v) const { return Reduce(v, cub::Sum()); }
  T Sum(T v, int valid) const { return Reduce(v, cub::Sum(), valid); }
  template <int n> T Sum(const T (&items)[n]) const { return Reduce(items, cub::Sum()); }
};
template <class T, int x, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int y = 1, int z = 1, int = 0> struct BlockScan : details::Collective {
  using Collective::Collective;
  // What a thread starts from: what comes before its first item, and the block's sum. `prefix` is asked by the first thread.
  template <class F> static void before(T mine, bool has_init, T init, F f, T& start, bool& first, T& all) {
    struct Part { T mine, start, all; bool first; } part{mine, init, T(), !has_init};
    ww::block_together(part, [=](unsigned count, auto of) {
      T sum = init, total = of(0).mine;
      bool none = !has_init;
      for (unsigned i = 0; i < count; ++i) {
        of(i).start = sum, of(i).first = none;
        sum = none ? of(i).mine : f(sum, of(i).mine);
        none = false;
        if (i) total = f(total, of(i).mine);
      }
      for (unsigned i = 0; i < count; ++i) of(i).all = total;
    });
    start = part.start, first = part.first, all = part.all;
  }
  template <int n, class F> void inclusive(const T (&in)[n], T (&out)[n], F f, T& all) const {
    T start;
    bool first;
    before(details::joined(in, f), false, T(), f, start, first, all);
    for (int i = 0; i < n; ++i) { start = first && i == 0 ? in[i] : f(start, in[i]); out[i] = start; }
  }
  template <int n, class F> void exclusive(const T (&in)[n], T (&out)[n], T init, F f, T& all) const {
    T start;
    bool first;
    before(details::joined(in, f), true, init, f, start, first, all);
    for (int i = 0; i < n; ++i) { const T next = f(start, in[i]); out[i] = start; start = next; }
  }
  // With a callback, which the first warp calls with the block's sum and which says what comes before it.
  template <int n, class F, class P> void inclusive_after(const T (&in)[n], T (&out)[n], F f, P& prefix) const {
    T all, start;
    bool first;
    before(details::joined(in, f), false, T(), f, start, first, all);
    struct Part { T seed; } part{};
    if (ww::self->warp == 0) part.seed = prefix(all);
    ww::block_together(part, [](unsigned count, auto of) { for (unsigned i = 1; i < count; ++i) of(i).seed = of(0).seed; });
    start = first ? part.seed : f(part.seed, start);
    for (int i = 0; i < n; ++i) { start = f(start, in[i]); out[i] = start; }
  }
  template <int n, class F, class P> void exclusive_after(const T (&in)[n], T (&out)[n], F f, P& prefix) const {
    T all, start;
    bool first;
    before(details::joined(in, f), false, T(), f, start, first, all);
    struct Part { T seed; } part{};
    if (ww::self->warp == 0) part.seed = prefix(all);
    ww::block_together(part, [](unsigned count, auto of) { for (unsigned i = 1; i < count; ++i) of(i).seed = of(0).seed; });
    start = first ? part.seed : f(part.seed, start);
    for (int i = 0; i < n; ++i) { out[i] = start; start = f(start, in[i]); }
  }
#define WW_ONE(CALL) const T in[1] = {v}; T to[1]; CALL; out = to[0];
  void InclusiveSum(T v, T& out) const { T all; WW_ONE(inclusive(in, to, cub::Sum(), all)) }
  void InclusiveSum(T v, T& out, T& all) const { WW_ONE(inclusive(in, to, cub::Sum(), all)) }
  template <class F> void InclusiveScan(T v, T& out, F f) const { T all; WW_ONE(inclusive(in, to, f, all)) }
  template <class F> void InclusiveScan(T v, T& out, F f, T& all) const { WW_ONE(inclusive(in, to, f, all)) }
  void ExclusiveSum(T v, T& out) const { T all; WW_ONE(exclusive(in, to, T(), cub::Sum(), all)) }
  void ExclusiveSum(T v, T& out, T& all) const { WW_ONE(exclusive(in, to, T(), cub::Sum(), all)) }
  template <class F> void ExclusiveScan(T v, T& out, T init, F f) const { T all; WW_ONE(exclusive(in, to, init, f, all)) }
  template <class F> void ExclusiveScan(T v, T& out, T init, F f, T& all) const { WW_ONE(exclusive(in, to, init, f, all)) }
  template <class P, class = std::enable_if_t<std::is_class_v<P> && !std::is_same_v<P, T>>> void InclusiveSum(T v, T& out, P& prefix) const { WW_ONE(inclusive_after(in, to, cub::Sum(), prefix)) }
  template <class P, class = std::enable_if_t<std::is_class_v<P> && !std::is_same_v<P, T>>> void ExclusiveSum(T v, T& out, P& prefix) const { WW_ONE(exclusive_after(in, to, cub::Sum(), prefix)) }
#undef WW_ONE
  template <int n> void InclusiveSum(const T (&in)[n], T (&out)[n]) const { T all; T to[n]; inclusive(in, to, cub::Sum(), all); std::copy(to, to + n, out); }
  template <int n> void InclusiveSum(const T (&in)[n], T (&out)[n], T& all) const { T to[n]; inclusive(in, to, cub::Sum(), all); std::copy(to, to + n, out); }
  template <int n, class F> void InclusiveScan(const T (&in)[n], T (&out)[n], F f) const { T all; T to[n]; inclusive(in, to, f, all); std::copy(to, to + n, out); }
  template <int n> void ExclusiveSum(const T (&in)[n], T (&out)[n]) const { T all; T to[n]; exclusive(in, to, T(), cub::Sum(), all); std::copy(to, to + n, out); }
  template <int n> void ExclusiveSum(const T (&in)[n], T (&out)[n], T& all) const { T to[n]; exclusive(in, to, T(), cub::Sum(), all); std::copy(to, to + n, out); }
  template <int n, class F> void ExclusiveScan(const T (&in)[n], T (&out)[n], T init, F f) const { T all; T to[n]; exclusive(in, to, init, f, all); std::copy(to, to + n, out); }
  template <int n, class P, class = std::enable_if_t<std::is_class_v<P> && !std::is_same_v<P, T>>> void InclusiveSum(const T (&in)[n], T (&out)[n], P& prefix) const { T to[n]; inclusive_after(in, to, cub::Sum(), prefix); std::copy(to, to + n, out); }
  template <int n, class P, class = std::enable_if_t<std::is_class_v<P> && !std::is_same_v<P, T>>> void ExclusiveSum(const T (&in)[n], T (&out)[n], P& prefix) const { T to[n]; exclusive_after(in, to, cub::Sum(), prefix); std::copy(to, to + n, out); }
};

namespace details {
static inline unsigned place_of(unsigned rank, int item, int items, unsigned threads, bool striped) { return striped ? rank + (unsigned)item * threads : rank * (unsigned)items + (unsigned)item; }
}  // namespace details
template <class T, int x, int items, BlockLoadAlgorithm how = BLOCK_LOAD_DIRECT, int y = 1, int z = 1, int = 0> struct BlockLoad : details::Collective {
  using Collective::Collective;
  static unsigned at(int i) { return details::place_of(ww::self->linear, i, items, x * y * z, how == BLOCK_LOAD_STRIPED); }
  template <class I> void Load(I from, T (&to)[items]) const { for (int i = 0; i < items; ++i) to[i] = from[at(i)]; }
  template <class I> void Load(I from, T (&to)[items], int valid) const { for (int i = 0; i < items; ++i) if ((int)at(i) < valid) to[i] = from[at(i)]; }
  template <class I, class D> void Load(I from, T (&to)[items], int valid, D other) const { for (int i = 0; i < items; ++i) to[i] = (int)at(i) < valid ? (T)from[at(i)] : (T)other; }
};
template <class T, int x, int items, BlockStoreAlgorithm how = BLOCK_STORE_DIRECT, int y = 1, int z = 1, int = 0> struct BlockStore : details::Collective {
  using Collective::Collective;
  static unsigned at(int i) { return details::place_of(ww::self->linear, i, items, x * y * z, how == BLOCK_STORE_STRIPED); }
  template <class I> void Store(I to, const T (&from)[items]) const { for (int i = 0; i < items; ++i) to[at(i)] = from[i]; }
  template <class I> void Store(I to, const T (&from)[items], int valid) const { for (int i = 0; i < items; ++i) if ((int)at(i) < valid) to[at(i)] = from[i]; }
};
#define WW_LOAD(NAME, AT) \
  template <class T, int n, class I> static inline void Load##NAME(int rank, I from, T (&to)[n]) { for (int i = 0; i < n; ++i) to[i] = from[AT]; } \
  template <class T, int n, class I> static inline void Load##NAME(int rank, I from, T (&to)[n], int valid) { for (int i = 0; i < n; ++i) if ((AT) < valid) to[i] = from[AT]; } \
  template <class T, int n, class I> static inline void Store##NAME(int rank, I to, T (&from)[n]) { for (int i = 0; i < n; ++i) to[AT] = from[i]; } \
  template <class T, int n, class I> static inline void Store##NAME(int rank, I to, T (&from)[n], int valid) { for (int i = 0; i < n; ++i) if ((AT) < valid) to[AT] = from[i]; }
WW_LOAD(DirectBlocked, rank * n + i)
#undef WW_LOAD
template <int threads, class T, int n, class I> static inline void LoadDirectStriped(int rank, I from, T (&to)[n]) { for (int i = 0; i < n; ++i) to[i] = from[rank + i * threads]; }
template <int threads, class T, int n, class I> static inline void LoadDirectStriped(int rank, I from, T (&to)[n], int valid) { for (int i = 0; i < n; ++i) if (rank + i * threads < valid) to[i] = from[rank + i * threads]; }
template <int threads, class T, int n, class I> static inline void StoreDirectStriped(int rank, I to, T (&from)[n]) { for (int i = 0; i < n; ++i) to[rank + i * threads] = from[i]; }
template <int threads, class T, int n, class I> static inline void StoreDirectStriped(int rank, I to, T (&from)[n], int valid) { for (int i = 0; i < n; ++i) if (rank + i * threads < valid) to[rank + i * threads] = from[i]; }

namespace ww_sort {
// Bits whose order as unsigned numbers is that of the keys.
template <class K> static inline auto bits_of(K key) {
  if constexpr (std::is_floating_point_v<K> || std::is_same_v<K, __half> || std::is_same_v<K, __nv_bfloat16>) {
    using B = std::conditional_t<sizeof(K) == 8, uint64_t, std::conditional_t<sizeof(K) == 4, uint32_t, uint16_t>>;
    B b;
    std::memcpy(&b, &key, sizeof b);
    if (b == (B)((B)1 << (8 * sizeof(B) - 1))) b = 0;  // -0 is 0
    return (B)(b >> (8 * sizeof(B) - 1) ? ~b : b | (B)1 << (8 * sizeof(B) - 1));
  } else {
    using B = std::make_unsigned_t<std::conditional_t<std::is_same_v<K, bool>, char, K>>;
    return (B)(std::is_signed_v<K> ? (B)key ^ (B)((B)1 << (8 * sizeof(B) - 1)) : (B)key);
  }
}
template <class K> static inline uint64_t digits(K key, int begin, int end) {
  const uint64_t b = (uint64_t)bits_of(key) >> begin;
  return end - begin >= 64 ? b : b & (((uint64_t)1 << (end - begin)) - 1);
}
template <class K, class V> static inline void pairs(K* keys, V* values, size_t n, bool falling, int begin, int end) {  // stable; values may be null
  std::vector<size_t> order(n);
  for (size_t i = 0; i < n; ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { const uint64_t p = digits(keys[a], begin, end), q = digits(keys[b], begin, end); return falling ? q < p : p < q; });
  std::vector<K> sorted(n);
  for (size_t i = 0; i < n; ++i) sorted[i] = keys[order[i]];
  std::copy(sorted.begin(), sorted.end(), keys);
  if (!values) return;
  std::vector<V> moved(n);
  for (size_t i = 0; i < n; ++i) moved[i] = values[order[i]];
  std::copy(moved.begin(), moved.end(), values);
}
}  // namespace ww_sort
template <class T, int x, int items, bool = false, int y = 1, int z = 1, int = 0> struct BlockExchange : details::Collective {
  using Collective::Collective;
  static void move(const T (&in)[items], T (&out)[items], bool from_striped, bool to_striped) {
    struct Part { T in[items], out[items]; } part;
    std::copy(in, in + items, part.in);
    ww::block_together(part, [=](unsigned count, auto of) {
      std::vector<T> all((size_t)count * items);
      for (unsigned t = 0; t < count; ++t) for (int i = 0; i < items; ++i) all[details::place_of(t, i, items, count, from_striped)] = of(t).in[i];
      for (unsigned t = 0; t < count; ++t) for (int i = 0; i < items; ++i) of(t).out[i] = all[details::place_of(t, i, items, count, to_striped)];
    });
    std::copy(part.out, part.out + items, out);
  }
  void StripedToBlocked(const T (&in)[items], T (&out)[items]) const { move(in, out, true, false); }
  void BlockedToStriped(const T (&in)[items], T (&out)[items]) const { move(in, out, false, true); }
  void StripedToBlocked(T (&both)[items]) const { move(both, both, true, false); }
  void BlockedToStriped(T (&both)[items]) const { move(both, both, false, true); }
  template <class R> void ScatterToStriped(const T (&in)[items], T (&out)[items], const R (&ranks)[items]) const { scatter(in, out, ranks, true); }
  template <class R> void ScatterToBlocked(const T (&in)[items], T (&out)[items], const R (&ranks)[items]) const { scatter(in, out, ranks, false); }
  template <class R> static void scatter(const T (&in)[items], T (&out)[items], const R (&ranks)[items], bool striped) {
    struct Part { T in[items], out[items]; long ranks[items]; } part;
    for (int i = 0; i < items; ++i) part.in[i] = part.out[i] = in[i], part.ranks[i] = (long)ranks[i];
    ww::block_together(part, [=](unsigned count, auto of) {
      std::vector<T> all((size_t)count * items);
      for (unsigned t = 0; t < count; ++t) for (int i = 0; i < items; ++i) if (of(t).ranks[i] >= 0 && of(t).ranks[i] < (long)all.size()) all[(size_t)of(t).ranks[i]] = of(t).in[i];
      for (unsigned t = 0; t < count; ++t) for (int i = 0; i < items; ++i) of(t).out[i] = all[details::place_of(t, i, items, count, striped)];
    });
    std::copy(part.out, part.out + items, out);
  }
};
template <class K, int x, int items, class V = NullType, int = 4, bool = true, BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int y = 1, int z = 1, int = 0> struct BlockRadixSort : details::Collective {
  using Collective::Collective;
  static void sorted(K (&keys)[items], V* values, bool falling, int begin, int end, bool striped) {
    struct Part { K keys[items]; V values[items]; } part;
    for (int i = 0; i < items; ++i) { part.keys[i] = keys[i]; if (values) part.values[i] = values[i]; }
    ww::block_together(part, [=](unsigned count, auto of) {
      std::vector<K> k((size_t)count * items);
      std::vector<V> v((size_t)count * items);
      for (unsigned t = 0; t < count; ++t) for (int i = 0; i < items; ++i) k[t * items + i] = of(t).keys[i], v[t * items + i] = of(t).values[i];
      ww_sort::pairs(k.data(), v.data(), k.size(), falling, begin, end);
      for (unsigned t = 0; t < count; ++t) for (int i = 0; i < items; ++i) { const unsigned at = details::place_of(t, i, items, count, striped); of(t).keys[i] = k[at], of(t).values[i] = v[at]; }
    });
    for (int i = 0; i < items; ++i) { keys[i] = part.keys[i]; if (values) values[i] = part.values[i]; }
  }
  static constexpr int bits = 8 * sizeof(K);
  void Sort(K (&keys)[items], int begin = 0, int end = bits) const { sorted(keys, nullptr, false, begin, end, false); }
  void SortDescending(K (&keys)[items], int begin = 0, int end = bits) const { sorted(keys, nullptr, true, begin, end, false); }
  void SortBlockedToStriped(K (&keys)[items], int begin = 0, int end = bits) const { sorted(keys, nullptr, false, begin, end, true); }
  void SortDescendingBlockedToStriped(K (&keys)[items], int begin = 0, int end = bits) const { sorted(keys, nullptr, true, begin, end, true); }
  void Sort(K (&keys)[items], V (&values)[items], int begin = 0, int end = bits) const { sorted(keys, values, false, begin, end, false); }
  void SortDescending(K (&keys)[items], V (&values)[items], int begin = 0, int end = bits) const { sorted(keys, values, true, begin, end, false); }
  void SortBlockedToStriped(K (&keys)[items], V (&values)[items], int begin = 0, int end = bits) const { sorted(keys, values, false, begin, end, true); }
  void SortDescendingBlockedToStriped(K (&keys)[items], V (&values)[items], int begin = 0, int end = bits) const { sorted(keys, values, true, begin, end, true); }
};
enum BlockHistogramAlgorithm { BLOCK_HISTO_SORT, BLOCK_HISTO_ATOMIC };
template <class T, int x, int items, int bins, BlockHistogramAlgorithm = BLOCK_HISTO_SORT, int y = 1, int z = 1, int = 0> struct BlockHistogram : details::Collective {
  using Collective::Collective;
  template <class C> void InitHistogram(C (&h)[bins]) const { if (ww::self->linear == 0) for (int i = 0; i < bins; ++i) h[i] = 0; ww::sync_threads(0); }
  template <class C> void Composite(T (&in)[items], C (&h)[bins]) const { for (int i = 0; i < items; ++i) ++h[in[i]]; ww::sync_threads(0); }
  template <class C> void Histogram(T (&in)[items], C (&h)[bins]) const { InitHistogram(h); Composite(in, h); }
};

// Iterators.
template <class V, class D = std::ptrdiff_t> struct CountingInputIterator {
  typedef V value_type; typedef D difference_type; typedef const V* pointer; typedef V reference; typedef std::random_access_iterator_tag iterator_category;
  V at;
  CountingInputIterator(V v) : at(v) {}
  V operator*() const { return at; }
  template <class N> V operator[](N n) const { return at + (V)n; }
  template <class N> CountingInputIterator operator+(N n) const { return {(V)(at + (V)n)}; }
  CountingInputIterator& operator++() { ++at; return *this; }
};
template <class V, class D = std::ptrdiff_t> struct ConstantInputIterator {
  typedef V value_type; typedef D difference_type; typedef const V* pointer; typedef V reference; typedef std::random_access_iterator_tag iterator_category;
  V at;
  ConstantInputIterator(V v) : at(v) {}
  V operator*() const { return at; }
  template <class N> V operator[](N) const { return at; }
  template <class N> ConstantInputIterator operator+(N) const { return *this; }
};
template <class V, class F, class I, class D = std::ptrdiff_t> struct TransformInputIterator {
  typedef V value_type; typedef D difference_type; typedef const V* pointer; typedef V reference; typedef std::random_access_iterator_tag iterator_category;
  I from;
  F f;
  TransformInputIterator(I from, F f) : from(from), f(f) {}
  V operator*() const { return f(*from); }
  template <class N> V operator[](N n) const { return f(from[n]); }
  template <class N> TransformInputIterator operator+(N n) const { return {from + n, f}; }
};
template <class D = std::ptrdiff_t> struct DiscardOutputIterator {  // what is written is lost
  struct Nowhere { template <class T> const Nowhere& operator=(const T&) const { return *this; } };
  typedef void value_type; typedef D difference_type; typedef void pointer; typedef Nowhere reference; typedef std::random_access_iterator_tag iterator_category;
  D at = 0;
  DiscardOutputIterator(D at = 0) : at(at) {}
  Nowhere operator*() const { return {}; }
  template <class N> Nowhere operator[](N) const { return {}; }
  template <class N> DiscardOutputIterator operator+(N n) const { return {(D)(at + (D)n)}; }
  template <class N> DiscardOutputIterator operator-(N n) const { return {(D)(at - (D)n)}; }
  D operator-(const DiscardOutputIterator& o) const { return at - o.at; }
  DiscardOutputIterator& operator++() { ++at; return *this; }
  DiscardOutputIterator operator++(int) { auto old = *this; ++at; return old; }
  bool operator==(const DiscardOutputIterator& o) const { return at == o.at; }
  bool operator!=(const DiscardOutputIterator& o) const { return at != o.at; }
};
template <class I, class D = std::ptrdiff_t, class V = std::remove_cv_t<std::remove_reference_t<decltype(*std::declval<I>())>>> struct ArgIndexInputIterator {
  typedef KeyValuePair<D, V> value_type; typedef D difference_type; typedef const value_type* pointer; typedef value_type reference; typedef std::random_access_iterator_tag iterator_category;
  I from;
  D at = 0;
  ArgIndexInputIterator(I from, D at = 0) : from(from), at(at) {}
  value_type operator*() const { return {at, from[at]}; }
  template <class N> value_type operator[](N n) const { return {(D)(at + (D)n), from[at + (D)n]}; }
  template <class N> ArgIndexInputIterator operator+(N n) const { return {from, (D)(at + (D)n)}; }
  ArgIndexInputIterator& operator++() { ++at; return *this; }
  void normalize() { from = from + at, at = 0; }
};
template <CacheLoadModifier, class V, class D = std::ptrdiff_t> struct CacheModifiedInputIterator {  // no cache to choose: a pointer
  typedef V value_type; typedef D difference_type; typedef V* pointer; typedef V reference; typedef std::random_access_iterator_tag iterator_category;
  const V* at;
  CacheModifiedInputIterator(const V* at) : at(at) {}
  V operator*() const { return *at; }
  template <class N> V operator[](N n) const { return at[n]; }
  template <class N> CacheModifiedInputIterator operator+(N n) const { return {at + n}; }
  CacheModifiedInputIterator& operator++() { ++at; return *this; }
};
template <CacheStoreModifier, class V, class D = std::ptrdiff_t> struct CacheModifiedOutputIterator {
  typedef void value_type; typedef D difference_type; typedef void pointer; typedef V& reference; typedef std::random_access_iterator_tag iterator_category;
  V* at;
  CacheModifiedOutputIterator(V* at) : at(at) {}
  V& operator*() const { return *at; }
  template <class N> V& operator[](N n) const { return at[n]; }
  template <class N> CacheModifiedOutputIterator operator+(N n) const { return {at + n}; }
  CacheModifiedOutputIterator& operator++() { ++at; return *this; }
};
}  // namespace cub
