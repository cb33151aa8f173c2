// Of libcu++: the standard library under its name in device code, and atomics of any scope.
#include <array>
#include <atomic>
#include <complex>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
namespace cuda {
namespace std {
using namespace ::std;
#if __cplusplus < 202002L
struct identity { template <class T> constexpr T&& operator()(T&& v) const noexcept { return static_cast<T&&>(v); } };
#endif
}  // namespace std
using memory_order = ::std::memory_order;
constexpr memory_order memory_order_relaxed = ::std::memory_order_relaxed, memory_order_acquire = ::std::memory_order_acquire, memory_order_release = ::std::memory_order_release, memory_order_acq_rel = ::std::memory_order_acq_rel,
                               memory_order_seq_cst = ::std::memory_order_seq_cst;
template <class T, int scope = 0> struct atomic_ref {
  T* at;
  explicit atomic_ref(T& v) : at(&v) {}
  T load(::std::memory_order = memory_order_seq_cst) const { T v; __atomic_load(at, &v, __ATOMIC_SEQ_CST); return v; }
  void store(T v, ::std::memory_order = memory_order_seq_cst) const { __atomic_store(at, &v, __ATOMIC_SEQ_CST); }
  T exchange(T v, ::std::memory_order = memory_order_seq_cst) const { T old; __atomic_exchange(at, &v, &old, __ATOMIC_SEQ_CST); return old; }
  bool compare_exchange_strong(T& expected, T v, ::std::memory_order = memory_order_seq_cst, ::std::memory_order = memory_order_seq_cst) const { return __atomic_compare_exchange(at, &expected, &v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); }
  bool compare_exchange_weak(T& expected, T v, ::std::memory_order = memory_order_seq_cst, ::std::memory_order = memory_order_seq_cst) const { return compare_exchange_strong(expected, v); }
  T fetch_add(T v, ::std::memory_order = memory_order_seq_cst) const { return atomicAdd(at, v); }
  T fetch_sub(T v, ::std::memory_order = memory_order_seq_cst) const { return atomicAdd(at, (T)-v); }
  T fetch_max(T v, ::std::memory_order = memory_order_seq_cst) const { return atomicMax(at, v); }
  T fetch_min(T v, ::std::memory_order = memory_order_seq_cst) const { return atomicMin(at, v); }
  T fetch_and(T v, ::std::memory_order = memory_order_seq_cst) const { return atomicAnd(at, v); }
  T fetch_or(T v, ::std::memory_order = memory_order_seq_cst) const { return atomicOr(at, v); }
  T fetch_xor(T v, ::std::memory_order = memory_order_seq_cst) const { return atomicXor(at, v); }
  T operator=(T v) const { store(v); return v; }
  operator T() const { return load(); }
  T operator++() const { return fetch_add(1) + 1; }
  T operator++(int) const { return fetch_add(1); }
  T operator--() const { return fetch_sub(1) - 1; }
  T operator--(int) const { return fetch_sub(1); }
  T operator+=(T v) const { return fetch_add(v) + v; }
  T operator-=(T v) const { return fetch_sub(v) - v; }
};
template <class T, int scope = 0> struct atomic {
  T value;
  atomic() = default;
  constexpr atomic(T v) : value(v) {}
  atomic(const atomic&) = delete;
  atomic_ref<T> ref() const { return atomic_ref<T>(const_cast<T&>(value)); }
  T load(::std::memory_order = memory_order_seq_cst) const { return ref().load(); }
  void store(T v, ::std::memory_order = memory_order_seq_cst) { ref().store(v); }
  T exchange(T v, ::std::memory_order = memory_order_seq_cst) { return ref().exchange(v); }
  bool compare_exchange_strong(T& expected, T v, ::std::memory_order = memory_order_seq_cst, ::std::memory_order = memory_order_seq_cst) { return ref().compare_exchange_strong(expected, v); }
  bool compare_exchange_weak(T& expected, T v, ::std::memory_order = memory_order_seq_cst, ::std::memory_order = memory_order_seq_cst) { return ref().compare_exchange_strong(expected, v); }
  T fetch_add(T v, ::std::memory_order = memory_order_seq_cst) { return ref().fetch_add(v); }
  T fetch_sub(T v, ::std::memory_order = memory_order_seq_cst) { return ref().fetch_sub(v); }
  T fetch_max(T v, ::std::memory_order = memory_order_seq_cst) { return ref().fetch_max(v); }
  T fetch_min(T v, ::std::memory_order = memory_order_seq_cst) { return ref().fetch_min(v); }
  T fetch_and(T v, ::std::memory_order = memory_order_seq_cst) { return ref().fetch_and(v); }
  T fetch_or(T v, ::std::memory_order = memory_order_seq_cst) { return ref().fetch_or(v); }
  T fetch_xor(T v, ::std::memory_order = memory_order_seq_cst) { return ref().fetch_xor(v); }
  T operator=(T v) { store(v); return v; }
  operator T() const { return load(); }
  T operator++() { return fetch_add(1) + 1; }
  T operator++(int) { return fetch_add(1); }
  T operator--() { return fetch_sub(1) - 1; }
  T operator--(int) { return fetch_sub(1); }
  T operator+=(T v) { return fetch_add(v) + v; }
  T operator-=(T v) { return fetch_sub(v) - v; }
};
static inline void atomic_thread_fence(::std::memory_order = memory_order_seq_cst, int = 0) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
}  // namespace cuda
