// CUB's algorithms for a whole device, through the standard library: asked for the size of their storage they say a byte.
#include <functional>
#include <numeric>
namespace cub {
struct CachingDeviceAllocator {
  template <class... A> CachingDeviceAllocator(A...) {}
  template <class T> cudaError_t DeviceAllocate(T** p, size_t n, cudaStream_t = nullptr) { return cudaMalloc((void**)p, n); }
  template <class T> cudaError_t DeviceAllocate(int, T** p, size_t n, cudaStream_t = nullptr) { return cudaMalloc((void**)p, n); }
  cudaError_t DeviceFree(void* p) { return cudaFree(p); }
  cudaError_t DeviceFree(int, void* p) { return cudaFree(p); }
  cudaError_t FreeAllCached() { return cudaSuccess; }
};
template <class T> struct DoubleBuffer {
  T* d_buffers[2] = {nullptr, nullptr};
  int selector = 0;
  DoubleBuffer() = default;
  DoubleBuffer(T* current, T* other) : d_buffers{current, other} {}
  T* Current() { return d_buffers[selector]; }
  T* Alternate() { return d_buffers[selector ^ 1]; }
};
namespace details {
static inline bool asks(void* storage, size_t& bytes) { if (storage) return false; bytes = 1; return true; }
template <class F, class A, class I> using sum_of = std::decay_t<decltype(std::declval<F&>()(std::declval<A>(), *std::declval<I&>()))>;  // what CUB adds up in: of signed chars an int
template <class N> using if_number = std::enable_if_t<std::is_integral_v<N>>;
template <class I> using value_of = std::remove_cv_t<std::remove_reference_t<decltype(*std::declval<I>())>>;
template <class I, class O> using start_of = std::conditional_t<std::is_integral_v<value_of<I>> && std::is_arithmetic_v<value_of<O>>, value_of<O>, value_of<I>>;  // of a sum: what it is put into
}  // namespace details
#define WW_ASKED if (details::asks(storage, bytes)) return cudaSuccess;
struct DeviceReduce {
  template <class I, class O, class N, class F, class T> static cudaError_t Reduce(void* storage, size_t& bytes, I in, O out, N n, F f, T init, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    details::sum_of<F, T, I> r = init;
    for (N i = 0; i < n; ++i) r = f(r, in[i]);
    *out = r;
    return ww::status();
  }
  template <class I, class O, class F> static cudaError_t Reduce(void* storage, size_t& bytes, I in, O out, int n, F f) {  // as CUB had it before 1.5
    WW_ASKED
    auto r = *in;
    for (int i = 1; i < n; ++i) r = f(r, in[i]);
    *out = r;
    return ww::status();
  }
  template <class I, class O, class N> static cudaError_t Sum(void* storage, size_t& bytes, I in, O out, N n, cudaStream_t s = nullptr, bool = false) {
    WW_ASKED
    using T = details::value_of<I>;
    using Into = details::start_of<I, O>;
    using Wide = std::conditional_t<std::is_same_v<T, float>, double, Into>;  // one sum of many floats would lose what the sums of threads keep
    Wide r{};
    for (N i = 0; i < n; ++i) r = r + in[i];
    *out = (Into)r;
    return ww::status();
  }
  template <class I, class O, class N> static cudaError_t Max(void* storage, size_t& bytes, I in, O out, N n, cudaStream_t s = nullptr, bool = false) { return Reduce(storage, bytes, in, out, n, cub::Max(), std::numeric_limits<details::value_of<I>>::lowest(), s); }
  template <class I, class O, class N> static cudaError_t Min(void* storage, size_t& bytes, I in, O out, N n, cudaStream_t s = nullptr, bool = false) { return Reduce(storage, bytes, in, out, n, cub::Min(), std::numeric_limits<details::value_of<I>>::max(), s); }
  template <class I, class O, class N> static cudaError_t ArgMax(void* storage, size_t& bytes, I in, O out, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    N best = 0;
    for (N i = 1; i < n; ++i) if (in[best] < in[i]) best = i;
    *out = {(int)best, in[best]};
    return ww::status();
  }
  template <class I, class O, class N> static cudaError_t ArgMin(void* storage, size_t& bytes, I in, O out, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    N best = 0;
    for (N i = 1; i < n; ++i) if (in[i] < in[best]) best = i;
    *out = {(int)best, in[best]};
    return ww::status();
  }
  template <class K, class U, class V, class A, class R, class F, class N> static cudaError_t ReduceByKey(void* storage, size_t& bytes, K keys, U unique, V values, A sums, R runs, F f, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    N count = 0;
    for (N i = 0; i < n; ++count) {
      unique[count] = keys[i];
      details::sum_of<F, details::value_of<V>, V> sum = values[i];
      const auto key = keys[i];
      for (++i; i < n && keys[i] == key; ++i) sum = f(sum, values[i]);
      sums[count] = sum;
    }
    *runs = count;
    return ww::status();
  }
};
struct DeviceSegmentedReduce {
  template <class I, class O, class B, class E, class F, class T> static cudaError_t Reduce(void* storage, size_t& bytes, I in, O out, int n, B begin, E end, F f, T init, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    for (int s = 0; s < n; ++s) { details::sum_of<F, T, I> r = init; for (auto i = begin[s]; i < end[s]; ++i) r = f(r, in[i]); out[s] = r; }
    return ww::status();
  }
  template <class I, class O, class B, class E> static cudaError_t Sum(void* storage, size_t& bytes, I in, O out, int n, B b, E e, cudaStream_t s = nullptr, bool = false) { return Reduce(storage, bytes, in, out, n, b, e, cub::Sum(), details::start_of<I, O>(), s); }
  template <class I, class O, class B, class E> static cudaError_t Max(void* storage, size_t& bytes, I in, O out, int n, B b, E e, cudaStream_t s = nullptr, bool = false) { return Reduce(storage, bytes, in, out, n, b, e, cub::Max(), std::numeric_limits<details::value_of<I>>::lowest(), s); }
  template <class I, class O, class B, class E> static cudaError_t Min(void* storage, size_t& bytes, I in, O out, int n, B b, E e, cudaStream_t s = nullptr, bool = false) { return Reduce(storage, bytes, in, out, n, b, e, cub::Min(), std::numeric_limits<details::value_of<I>>::max(), s); }
};
struct DeviceScan {
  template <class I, class O, class F, class T, class N> static cudaError_t ExclusiveScan(void* storage, size_t& bytes, I in, O out, F f, T init, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    details::sum_of<F, T, I> sum = init;
    for (N i = 0; i < n; ++i) { const auto next = f(sum, in[i]); out[i] = sum; sum = next; }
    return ww::status();
  }
  template <class I, class O, class F, class N> static cudaError_t InclusiveScan(void* storage, size_t& bytes, I in, O out, F f, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    if (n <= 0) return ww::status();
    details::sum_of<F, details::value_of<I>, I> sum = in[0];
    out[0] = sum;
    for (N i = 1; i < n; ++i) { sum = f(sum, in[i]); out[i] = sum; }
    return ww::status();
  }
  template <class I, class O, class N> static cudaError_t ExclusiveSum(void* storage, size_t& bytes, I in, O out, N n, cudaStream_t s = nullptr, bool = false) { return ExclusiveScan(storage, bytes, in, out, cub::Sum(), details::value_of<I>(), n, s); }
  template <class I, class O, class N> static cudaError_t InclusiveSum(void* storage, size_t& bytes, I in, O out, N n, cudaStream_t s = nullptr, bool = false) { return InclusiveScan(storage, bytes, in, out, cub::Sum(), n, s); }
  // In place, as CUB has it since 2.0.
  template <class I, class N, class = details::if_number<N>> static cudaError_t ExclusiveSum(void* storage, size_t& bytes, I data, N n, cudaStream_t = nullptr) { return ExclusiveScan(storage, bytes, data, data, cub::Sum(), details::value_of<I>(), n); }
  template <class I, class N, class = details::if_number<N>> static cudaError_t InclusiveSum(void* storage, size_t& bytes, I data, N n, cudaStream_t = nullptr) { return InclusiveScan(storage, bytes, data, data, cub::Sum(), n); }
  template <class I, class F, class N, class = details::if_number<N>, class = std::enable_if_t<!std::is_arithmetic_v<F>>> static cudaError_t InclusiveScan(void* storage, size_t& bytes, I data, F f, N n, cudaStream_t = nullptr) { return InclusiveScan(storage, bytes, data, data, f, n, nullptr); }
  template <class K, class I, class O, class F, class N, class E = cub::Equality> static cudaError_t InclusiveScanByKey(void* storage, size_t& bytes, K keys, I in, O out, F f, N n, E same = E(), cudaStream_t = nullptr) {
    WW_ASKED
    details::sum_of<F, details::value_of<I>, I> sum{};
    for (N i = 0; i < n; ++i) { if (i > 0 && same(keys[i - 1], keys[i])) sum = f(sum, in[i]); else sum = in[i]; out[i] = sum; }
    return ww::status();
  }
  template <class K, class I, class O, class F, class T, class N, class E = cub::Equality> static cudaError_t ExclusiveScanByKey(void* storage, size_t& bytes, K keys, I in, O out, F f, T init, N n, E same = E(), cudaStream_t = nullptr) {
    WW_ASKED
    details::sum_of<F, T, I> sum = init;
    for (N i = 0; i < n; ++i) { if (i > 0 && !same(keys[i - 1], keys[i])) sum = init; const auto next = f(sum, in[i]); out[i] = sum; sum = next; }
    return ww::status();
  }
  template <class K, class I, class O, class N, class E = cub::Equality> static cudaError_t InclusiveSumByKey(void* storage, size_t& bytes, K keys, I in, O out, N n, E same = E(), cudaStream_t = nullptr) { return InclusiveScanByKey(storage, bytes, keys, in, out, cub::Sum(), n, same); }
  template <class K, class I, class O, class N, class E = cub::Equality> static cudaError_t ExclusiveSumByKey(void* storage, size_t& bytes, K keys, I in, O out, N n, E same = E(), cudaStream_t = nullptr) { return ExclusiveScanByKey(storage, bytes, keys, in, out, cub::Sum(), details::value_of<I>(), n, same); }
};
struct DeviceRadixSort {
  template <class K, class V, class N> static cudaError_t any(void* storage, size_t& bytes, const K* keys, K* keys_out, const V* values, V* values_out, N n, bool falling, int begin, int end) {
    WW_ASKED
    if (keys != keys_out) std::copy(keys, keys + n, keys_out);
    if (values && values != values_out) std::copy(values, values + n, values_out);
    ww_sort::pairs(keys_out, values_out, (size_t)n, falling, begin, end);
    return ww::status();
  }
#define WW_SORT(SUFFIX, FALLING) \
  template <class K, class N> static cudaError_t SortKeys##SUFFIX(void* s, size_t& b, const K* in, K* out, N n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) { return any(s, b, in, out, (const char*)nullptr, (char*)nullptr, n, FALLING, begin, end); } \
  template <class K, class N> static cudaError_t SortKeys##SUFFIX(void* s, size_t& b, DoubleBuffer<K>& k, N n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) { return any(s, b, k.Current(), k.Current(), (const char*)nullptr, (char*)nullptr, n, FALLING, begin, end); } \
  template <class K, class V, class N> static cudaError_t SortPairs##SUFFIX(void* s, size_t& b, const K* in, K* out, const V* v, V* v_out, N n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) { return any(s, b, in, out, v, v_out, n, FALLING, begin, end); } \
  template <class K, class V, class N> static cudaError_t SortPairs##SUFFIX(void* s, size_t& b, DoubleBuffer<K>& k, DoubleBuffer<V>& v, N n, int begin = 0, int end = 8 * sizeof(K), cudaStream_t = nullptr, bool = false) { return any(s, b, k.Current(), k.Current(), v.Current(), v.Current(), n, FALLING, begin, end); }
  WW_SORT(, false) WW_SORT(Descending, true)
#undef WW_SORT
};
struct DeviceMergeSort {
  template <class K, class N, class F> static cudaError_t SortKeys(void* storage, size_t& bytes, K keys, N n, F f, cudaStream_t = nullptr, bool = false) { WW_ASKED std::stable_sort(keys, keys + n, f); return ww::status(); }
  template <class K, class N, class F> static cudaError_t StableSortKeys(void* s, size_t& b, K keys, N n, F f, cudaStream_t = nullptr, bool = false) { return SortKeys(s, b, keys, n, f); }
  template <class K, class V, class N, class F> static cudaError_t SortPairs(void* storage, size_t& bytes, K keys, V values, N n, F f, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    std::vector<std::pair<details::value_of<K>, details::value_of<V>>> both;
    for (N i = 0; i < n; ++i) both.emplace_back(keys[i], values[i]);
    std::stable_sort(both.begin(), both.end(), [&](const auto& a, const auto& b) { return f(a.first, b.first); });
    for (N i = 0; i < n; ++i) keys[i] = both[(size_t)i].first, values[i] = both[(size_t)i].second;
    return ww::status();
  }
};
struct DeviceSelect {
  template <class I, class O, class R, class N, class F> static cudaError_t kept(I in, O out, R count, N n, F keep) {
    N k = 0;
    for (N i = 0; i < n; ++i) if (keep(i)) { const auto v = in[i]; out[k++] = v; }
    *count = k;
    return ww::status();
  }
  template <class I, class M, class O, class R, class N> static cudaError_t Flagged(void* storage, size_t& bytes, I in, M flags, O out, R count, N n, cudaStream_t = nullptr, bool = false) { WW_ASKED return kept(in, out, count, n, [&](N i) { return (bool)flags[i]; }); }
  template <class I, class O, class R, class N, class F> static cudaError_t If(void* storage, size_t& bytes, I in, O out, R count, N n, F f, cudaStream_t = nullptr, bool = false) { WW_ASKED return kept(in, out, count, n, [&](N i) { return (bool)f(in[i]); }); }
  template <class I, class M, class R, class N, class = details::if_number<N>> static cudaError_t Flagged(void* storage, size_t& bytes, I data, M flags, R count, N n, cudaStream_t = nullptr) { return Flagged(storage, bytes, data, flags, data, count, n, nullptr); }
  template <class I, class R, class N, class F, class = details::if_number<N>, class = std::enable_if_t<std::is_class_v<F>>> static cudaError_t If(void* storage, size_t& bytes, I data, R count, N n, F f, cudaStream_t = nullptr) { return If(storage, bytes, data, data, count, n, f, nullptr); }
  template <class K, class V, class O, class P, class R, class N> static cudaError_t UniqueByKey(void* storage, size_t& bytes, K keys, V values, O keys_out, P values_out, R count, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    N k = 0;
    for (N i = 0; i < n; ++i) {
      const bool first = i == 0 || !(keys[i] == keys[i - 1]);
      if (first) { const auto key = keys[i]; const auto value = values[i]; keys_out[k] = key, values_out[k++] = value; }
    }
    *count = k;
    return ww::status();
  }
  template <class I, class O, class R, class N> static cudaError_t Unique(void* storage, size_t& bytes, I in, O out, R count, N n, cudaStream_t = nullptr, bool = false) { WW_ASKED return kept(in, out, count, n, [&](N i) { return i == 0 || !(in[i] == in[i - 1]); }); }
};
struct DevicePartition {
  template <class I, class O, class R, class N, class F> static cudaError_t parted(I in, O out, R count, N n, F first) {  // what is not selected comes behind, from the end
    std::vector<details::value_of<I>> yes, no;
    for (N i = 0; i < n; ++i) (first(i) ? yes : no).push_back(in[i]);
    std::copy(yes.begin(), yes.end(), out);
    std::copy(no.rbegin(), no.rend(), out + yes.size());
    *count = (N)yes.size();
    return ww::status();
  }
  template <class I, class M, class O, class R, class N> static cudaError_t Flagged(void* storage, size_t& bytes, I in, M flags, O out, R count, N n, cudaStream_t = nullptr, bool = false) { WW_ASKED return parted(in, out, count, n, [&](N i) { return (bool)flags[i]; }); }
  template <class I, class O, class R, class N, class F> static cudaError_t If(void* storage, size_t& bytes, I in, O out, R count, N n, F f, cudaStream_t = nullptr, bool = false) { WW_ASKED return parted(in, out, count, n, [&](N i) { return (bool)f(in[i]); }); }
};
struct DeviceRunLengthEncode {
  template <class I, class U, class L, class R, class N> static cudaError_t Encode(void* storage, size_t& bytes, I in, U unique, L lengths, R runs, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    N count = 0;
    for (N i = 0; i < n; ++count) {
      const N begin = i;
      const auto v = in[i];
      while (i < n && in[i] == v) ++i;
      unique[count] = v, lengths[count] = i - begin;
    }
    *runs = count;
    return ww::status();
  }
  template <class I, class O, class L, class R, class N> static cudaError_t NonTrivialRuns(void* storage, size_t& bytes, I in, O offsets, L lengths, R runs, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    N count = 0;
    for (N i = 0; i < n;) {
      const N begin = i;
      const auto v = in[i];
      while (i < n && in[i] == v) ++i;
      if (i - begin > 1) offsets[count] = begin, lengths[count++] = i - begin;
    }
    *runs = count;
    return ww::status();
  }
};
struct DeviceHistogram {
  template <class I, class C, class L, class N> static cudaError_t HistogramEven(void* storage, size_t& bytes, I in, C* histogram, int levels, L low, L high, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    for (int b = 0; b + 1 < levels; ++b) histogram[b] = 0;
    for (N i = 0; i < n; ++i) if (!(in[i] < low) && in[i] < high) ++histogram[(long)((double)(in[i] - low) * (levels - 1) / (double)(high - low))];
    return ww::status();
  }
  template <class I, class C, class L, class N> static cudaError_t HistogramRange(void* storage, size_t& bytes, I in, C* histogram, int levels, L* edges, N n, cudaStream_t = nullptr, bool = false) {
    WW_ASKED
    for (int b = 0; b + 1 < levels; ++b) histogram[b] = 0;
    for (N i = 0; i < n; ++i) { const auto at = std::upper_bound(edges, edges + levels, (L)in[i]) - edges - 1; if (at >= 0 && at + 1 < levels) ++histogram[at]; }
    return ww::status();
  }
};
#undef WW_ASKED
}  // namespace cub
