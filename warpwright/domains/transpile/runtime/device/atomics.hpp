// Atomic functions: correct between blocks, which run on different threads of the machine. Relaxed, as in CUDA.
namespace ww {
// Whether one thread of the machine runs all blocks that run now (`Alone` in launch.hpp): a plain operation does then, where a locked one takes 20 cycles.
inline bool alone_now = false;
static inline bool alone() { return __atomic_load_n(&alone_now, __ATOMIC_RELAXED); }
// A rounded value: compilers would join a product and its sum, which atomic functions do not.
template <class T> static inline __attribute__((always_inline)) T rounded(T v) {
#ifdef __SSE2__
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) asm("" : "+x"(v));
#else
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) asm("" : "+m"(v));
#endif
  return v;
}
template <class T> using atom_bits = std::conditional_t<sizeof(T) == 8, unsigned long long, std::conditional_t<sizeof(T) == 4, unsigned, unsigned short>>;

template <class T, class F> static inline T atomic_update(T* p, F next) {  // compare-and-swap loop; returns the old value
  if (alone()) { const T old = *p; *p = next(old); return old; }
  using B = atom_bits<T>;
  B old = __atomic_load_n((B*)p, __ATOMIC_RELAXED), wanted;
  do wanted = bits<B>(next(bits<T>(old)));
  while (!__atomic_compare_exchange_n((B*)p, &old, wanted, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return bits<T>(old);
}
// The same without atomicity, for memory that one block alone sees: a block runs on one thread of the machine.
template <class T, class F> static inline T private_update(T* p, F next) { const T old = *p; *p = next(old); return old; }
}  // namespace ww

template <class T, class V> static inline T atomicAdd(T* p, V v) {
  if constexpr (std::is_integral_v<T>) {
    if (!ww::alone()) return __atomic_fetch_add(p, (T)v, __ATOMIC_RELAXED);
    const T old = *p;
    *p = (T)(old + (T)v);
    return old;
  } else {
    const T more = ww::rounded((T)v);
    return ww::atomic_update(p, [=](T o) { return (T)(o + more); });
  }
}
static inline float2 atomicAdd(float2* p, float2 v) { return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)}; }
static inline float4 atomicAdd(float4* p, float4 v) { return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w)}; }
static inline __half2 atomicAdd(__half2* p, __half2 v) { return {atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)}; }
template <class T, class V> static inline T atomicSub(T* p, V v) { return __atomic_fetch_sub(p, (T)v, __ATOMIC_RELAXED); }
template <class T, class V> static inline T atomicAnd(T* p, V v) { return __atomic_fetch_and(p, (T)v, __ATOMIC_RELAXED); }
template <class T, class V> static inline T atomicOr(T* p, V v) { return __atomic_fetch_or(p, (T)v, __ATOMIC_RELAXED); }
template <class T, class V> static inline T atomicXor(T* p, V v) { return __atomic_fetch_xor(p, (T)v, __ATOMIC_RELAXED); }
template <class T, class V> static inline T atomicMax(T* p, V v) { return ww::atomic_update(p, [=](T o) { return o > (T)v ? o : (T)v; }); }
template <class T, class V> static inline T atomicMin(T* p, V v) { return ww::atomic_update(p, [=](T o) { return o < (T)v ? o : (T)v; }); }
template <class T, class V> static inline T atomicExch(T* p, V v) { return ww::atomic_update(p, [=](T) { return (T)v; }); }
template <class T, class V> static inline T atomicInc(T* p, V v) { return ww::atomic_update(p, [=](T o) { return o >= (T)v ? (T)0 : (T)(o + 1); }); }
template <class T, class V> static inline T atomicDec(T* p, V v) { return ww::atomic_update(p, [=](T o) { return o == 0 || o > (T)v ? (T)v : (T)(o - 1); }); }
template <class T, class C, class V> static inline T atomicCAS(T* p, C compare, V v) {
  const auto wanted = ww::bits<ww::atom_bits<T>>((T)compare);
  return ww::atomic_update(p, [=](T o) { return ww::bits<ww::atom_bits<T>>(o) == wanted ? (T)v : o; });
}

namespace ww {
template <class T, class V> static inline T private_add(T* p, V v) { return private_update(p, [=](T o) { return (T)(o + (T)v); }); }
template <class T, class V> static inline T private_sub(T* p, V v) { return private_update(p, [=](T o) { return (T)(o - (T)v); }); }
template <class T, class V> static inline T private_and(T* p, V v) { return private_update(p, [=](T o) { return (T)(o & (T)v); }); }
template <class T, class V> static inline T private_or(T* p, V v) { return private_update(p, [=](T o) { return (T)(o | (T)v); }); }
template <class T, class V> static inline T private_xor(T* p, V v) { return private_update(p, [=](T o) { return (T)(o ^ (T)v); }); }
template <class T, class V> static inline T private_max(T* p, V v) { return private_update(p, [=](T o) { return o > (T)v ? o : (T)v; }); }
template <class T, class V> static inline T private_min(T* p, V v) { return private_update(p, [=](T o) { return o < (T)v ? o : (T)v; }); }
template <class T, class V> static inline T private_exch(T* p, V v) { return private_update(p, [=](T) { return (T)v; }); }
template <class T, class V> static inline T private_inc(T* p, V v) { return private_update(p, [=](T o) { return o >= (T)v ? (T)0 : (T)(o + 1); }); }
template <class T, class V> static inline T private_dec(T* p, V v) { return private_update(p, [=](T o) { return o == 0 || o > (T)v ? (T)v : (T)(o - 1); }); }
template <class T, class C, class V> static inline T private_cas(T* p, C compare, V v) { return private_update(p, [=](T o) { return o == (T)compare ? (T)v : o; }); }
}  // namespace ww
#define WW_SCOPED(NAME) \
  template <class... A> static inline auto NAME##_block(A... a) { return NAME(a...); } \
  template <class... A> static inline auto NAME##_system(A... a) { return NAME(a...); }
WW_SCOPED(atomicAdd) WW_SCOPED(atomicSub) WW_SCOPED(atomicMax) WW_SCOPED(atomicMin) WW_SCOPED(atomicExch) WW_SCOPED(atomicCAS)
WW_SCOPED(atomicAnd) WW_SCOPED(atomicOr) WW_SCOPED(atomicXor) WW_SCOPED(atomicInc) WW_SCOPED(atomicDec)

#define __NV_ATOMIC_RELAXED __ATOMIC_RELAXED
#define __NV_ATOMIC_CONSUME __ATOMIC_CONSUME
#define __NV_ATOMIC_ACQUIRE __ATOMIC_ACQUIRE
#define __NV_ATOMIC_RELEASE __ATOMIC_RELEASE
#define __NV_ATOMIC_ACQ_REL __ATOMIC_ACQ_REL
#define __NV_ATOMIC_SEQ_CST __ATOMIC_SEQ_CST
enum { __NV_THREAD_SCOPE_THREAD, __NV_THREAD_SCOPE_BLOCK, __NV_THREAD_SCOPE_CLUSTER, __NV_THREAD_SCOPE_DEVICE, __NV_THREAD_SCOPE_SYSTEM };
template <class T> static inline T __nv_atomic_load_n(const T* p, int, int = 3) { return __atomic_load_n(p, __ATOMIC_SEQ_CST); }
template <class T, class V> static inline void __nv_atomic_store_n(T* p, V v, int, int = 3) { __atomic_store_n(p, (T)v, __ATOMIC_SEQ_CST); }
template <class T, class V> static inline T __nv_atomic_exchange_n(T* p, V v, int, int = 3) { return __atomic_exchange_n(p, (T)v, __ATOMIC_SEQ_CST); }
template <class T, class V> static inline T __nv_atomic_fetch_add(T* p, V v, int, int = 3) { return atomicAdd(p, v); }
template <class T, class V> static inline T __nv_atomic_fetch_sub(T* p, V v, int, int = 3) { return atomicSub(p, v); }
template <class T, class V> static inline T __nv_atomic_fetch_min(T* p, V v, int, int = 3) { return atomicMin(p, v); }
template <class T, class V> static inline T __nv_atomic_fetch_max(T* p, V v, int, int = 3) { return atomicMax(p, v); }
