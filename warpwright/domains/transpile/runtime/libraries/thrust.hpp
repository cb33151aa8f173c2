// Thrust's common algorithms on vectors and pointers, through the standard library: host and device memory are one.
#include <functional>
#include <iostream>
#include <iterator>
#include <numeric>
#include <new>
#include <random>
#include <system_error>
#define THRUST_STATIC_ASSERT(...) static_assert((__VA_ARGS__), #__VA_ARGS__)
#define THRUST_STATIC_ASSERT_MSG(CONDITION, SAYS) static_assert(CONDITION, SAYS)
#define THRUST_NS_QUALIFIER ::thrust
#define THRUST_NAMESPACE_BEGIN namespace thrust {
#define THRUST_NAMESPACE_END }
namespace thrust {
namespace details {
struct Policy { template <class S> Policy on(S) const { return {}; } template <class A> Policy operator()(A&&...) const { return {}; } };
template <class T> constexpr bool is_policy = std::is_base_of_v<Policy, std::decay_t<T>>;
}  // namespace details
namespace details {  // what an element is, kept: of several sequences zipped the elements themselves, not references to them
template <class T> struct value_of { using type = std::decay_t<T>; };
template <class... T> struct value_of<std::tuple<T...>> { using type = std::tuple<std::decay_t<T>...>; };
template <class T> using value_t = typename value_of<std::decay_t<T>>::type;
}  // namespace details
static constexpr details::Policy host{}, device{}, seq{};
namespace cuda { static constexpr details::Policy par{}, par_nosync{}; }
namespace omp { static constexpr details::Policy par{}; }
template <class T> struct device_ptr {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = T*;
  using reference = std::add_lvalue_reference_t<T>;
  T* at = nullptr;
  device_ptr() = default;
  explicit device_ptr(T* p) : at(p) {}
  template <class U, class = std::enable_if_t<std::is_void_v<U> && !std::is_void_v<T>>, class = void> explicit device_ptr(const device_ptr<U>& p) : at((T*)p.get()) {}
  template <class U, class = std::enable_if_t<std::is_convertible_v<U*, T*>>> device_ptr(const device_ptr<U>& p) : at(p.get()) {}
  T* get() const { return at; }
  reference operator*() const { return *at; }
  reference operator[](difference_type i) const { return at[i]; }
  T* operator->() const { return at; }
  device_ptr& operator++() { ++at; return *this; }
  device_ptr& operator--() { --at; return *this; }
  device_ptr operator++(int) { return device_ptr(at++); }
  device_ptr operator--(int) { return device_ptr(at--); }
  device_ptr& operator+=(difference_type n) { at += n; return *this; }
  device_ptr& operator-=(difference_type n) { at -= n; return *this; }
  friend device_ptr operator+(device_ptr p, difference_type n) { return device_ptr(p.at + n); }
  friend device_ptr operator+(difference_type n, device_ptr p) { return device_ptr(p.at + n); }
  friend device_ptr operator-(device_ptr p, difference_type n) { return device_ptr(p.at - n); }
  friend difference_type operator-(device_ptr a, device_ptr b) { return a.at - b.at; }
  friend bool operator==(device_ptr a, device_ptr b) { return a.at == b.at; }
  friend bool operator!=(device_ptr a, device_ptr b) { return a.at != b.at; }
  friend bool operator<(device_ptr a, device_ptr b) { return a.at < b.at; }
};
template <class T> static inline device_ptr<T> device_pointer_cast(T* p) { return device_ptr<T>(p); }
template <class T> static inline device_ptr<T> device_pointer_cast(device_ptr<T> p) { return p; }
template <class T> static inline T* raw_pointer_cast(device_ptr<T> p) { return p.get(); }
template <class T> static inline T* raw_pointer_cast(T* p) { return p; }
using std::bad_alloc, std::system_error;
static inline device_ptr<void> device_malloc(size_t n) { return device_ptr<void>(std::malloc(n)); }
template <class T> static inline device_ptr<T> device_malloc(size_t n) { return device_ptr<T>((T*)std::malloc(n * sizeof(T))); }
template <class T> static inline void device_free(device_ptr<T> p) { std::free(p.get()); }
namespace details {
template <class T> struct padded {  // memory as cudaMalloc gives it: kernels whose last block has no guard write up to its granularity
  using value_type = T;
  padded() = default;
  template <class U> padded(const padded<U>&) {}
  T* allocate(size_t n) {
    void* p;
    if (ww::allocate(&p, n * sizeof(T)) != cudaSuccess) throw std::bad_alloc();
    return (T*)p;
  }
  void deallocate(T* p, size_t) { std::free(p); }
  template <class U> bool operator==(const padded<U>&) const { return true; }
  template <class U> bool operator!=(const padded<U>&) const { return false; }
};
template <class T> using element = std::conditional_t<std::is_same_v<T, bool>, char, T>;
template <class T, class Pointer> struct vector : std::vector<element<T>, padded<element<T>>> {
  using Base = std::vector<element<T>, padded<element<T>>>;
  using Base::Base;
  vector() = default;
  vector(const Base& other) : Base(other) {}
  template <class P> vector(const vector<T, P>& other) : Base(other.begin(), other.end()) {}
  template <class U, class P> vector(const vector<U, P>& other) : Base(other.begin(), other.end()) {}
  template <class U, class A> vector(const std::vector<U, A>& other) : Base(other.begin(), other.end()) {}
  template <class P> vector& operator=(const vector<T, P>& other) { this->assign(other.begin(), other.end()); return *this; }
  vector& operator=(const Base& other) { this->assign(other.begin(), other.end()); return *this; }
  template <class U, class A> vector& operator=(const std::vector<U, A>& other) { this->assign(other.begin(), other.end()); return *this; }
  Pointer data() { return Pointer(Base::data()); }
  const T* data() const { return Base::data(); }
};
}  // namespace details
template <class T, class A = void> using device_vector = details::vector<T, device_ptr<T>>;
template <class T, class A = void> using host_vector = details::vector<T, T*>;
template <class T, class A = void> using universal_vector = details::vector<T, T*>;

using default_random_engine = std::minstd_rand;
using std::minstd_rand, std::uniform_int_distribution, std::uniform_real_distribution, std::normal_distribution;
namespace random { using thrust::default_random_engine; using std::uniform_int_distribution, std::uniform_real_distribution, std::normal_distribution; }
using std::get, std::make_pair, std::make_tuple, std::pair, std::tie, std::tuple, std::swap;
template <class T = void> struct plus : std::plus<T> {};
template <class T = void> struct minus : std::minus<T> {};
template <class T = void> struct multiplies : std::multiplies<T> {};
template <class T = void> struct divides : std::divides<T> {};
template <class T = void> struct less : std::less<T> {};
template <class T = void> struct greater : std::greater<T> {};
template <class T = void> struct less_equal : std::less_equal<T> {};
template <class T = void> struct greater_equal : std::greater_equal<T> {};
template <class T = void> struct equal_to : std::equal_to<T> {};
template <class T = void> struct not_equal_to : std::not_equal_to<T> {};
template <class T = void> struct negate : std::negate<T> {};
template <class T = void> struct logical_and : std::logical_and<T> {};
template <class T = void> struct logical_or : std::logical_or<T> {};
template <class T = void> struct maximum { template <class A, class B> std::common_type_t<A, B> operator()(const A& a, const B& b) const { return a < b ? b : a; } };
template <class T = void> struct minimum { template <class A, class B> std::common_type_t<A, B> operator()(const A& a, const B& b) const { return b < a ? b : a; } };
template <class T = void> struct identity { template <class A> const A& operator()(const A& a) const { return a; } };
template <class T = void> struct square { template <class A> A operator()(const A& a) const { return a * a; } };
template <class A, class R> struct unary_function { typedef A argument_type; typedef R result_type; };
template <class A, class B, class R> struct binary_function { typedef A first_argument_type; typedef B second_argument_type; typedef R result_type; };

namespace details {
template <class Self, class Value> struct counted {  // a random-access iterator over what Self::at(i) says; Self::from(other) is how far its origin lies behind other's
  using iterator_category = std::random_access_iterator_tag;
  using value_type = value_t<Value>;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = Value;
  difference_type i = 0;
  const Self& self() const { return static_cast<const Self&>(*this); }
  Self moved(difference_type n) const { Self r = self(); r.i += n; return r; }
  Value operator*() const { return self().at(i); }
  Value operator[](difference_type n) const { return self().at(i + n); }
  Self& operator++() { ++i; return static_cast<Self&>(*this); }
  Self& operator--() { --i; return static_cast<Self&>(*this); }
  Self operator++(int) { Self r = self(); ++i; return r; }
  Self operator--(int) { Self r = self(); --i; return r; }
  Self& operator+=(difference_type n) { i += n; return static_cast<Self&>(*this); }
  Self& operator-=(difference_type n) { i -= n; return static_cast<Self&>(*this); }
  friend Self operator+(const Self& a, difference_type n) { return a.moved(n); }
  friend Self operator+(difference_type n, const Self& a) { return a.moved(n); }
  friend Self operator-(const Self& a, difference_type n) { return a.moved(-n); }
  friend difference_type operator-(const Self& a, const Self& b) { return a.i - b.i + a.from(b); }
  friend bool operator==(const Self& a, const Self& b) { return a - b == 0; }
  friend bool operator!=(const Self& a, const Self& b) { return a - b != 0; }
  friend bool operator<(const Self& a, const Self& b) { return a - b < 0; }
  friend bool operator>(const Self& a, const Self& b) { return a - b > 0; }
  friend bool operator<=(const Self& a, const Self& b) { return a - b <= 0; }
  friend bool operator>=(const Self& a, const Self& b) { return a - b >= 0; }
};
}  // namespace details
template <class T> struct counting_iterator : details::counted<counting_iterator<T>, T> {
  T first;
  counting_iterator(T v = T()) : first(v) {}
  T at(std::ptrdiff_t n) const { return (T)(first + (T)n); }
  std::ptrdiff_t from(const counting_iterator& other) const { return (std::ptrdiff_t)first - (std::ptrdiff_t)other.first; }
};
template <class T> struct constant_iterator : details::counted<constant_iterator<T>, T> {
  T value;
  constant_iterator(T v = T(), std::ptrdiff_t index = 0) : value(v) { this->i = index; }
  T at(std::ptrdiff_t) const { return value; }
  std::ptrdiff_t from(const constant_iterator&) const { return 0; }
};
template <class F, class I> struct transform_iterator : details::counted<transform_iterator<F, I>, decltype(std::declval<F>()(*std::declval<I>()))> {
  I first; mutable F f;
  transform_iterator(I it, F g) : first(it), f(g) {}
  decltype(auto) at(std::ptrdiff_t n) const { return f(*(first + n)); }
  std::ptrdiff_t from(const transform_iterator& other) const { return first - other.first; }
};
template <class E, class I> struct permutation_iterator : details::counted<permutation_iterator<E, I>, decltype(*std::declval<E>())> {
  E elements; I order;
  permutation_iterator(E e, I o) : elements(e), order(o) {}
  decltype(auto) at(std::ptrdiff_t n) const { return *(elements + *(order + n)); }
  std::ptrdiff_t from(const permutation_iterator& other) const { return order - other.order; }
};
template <class Tuple> struct zip_iterator;
template <class... I> struct zip_iterator<std::tuple<I...>> : details::counted<zip_iterator<std::tuple<I...>>, std::tuple<decltype(*std::declval<I>())...>> {
  std::tuple<I...> first;
  zip_iterator(std::tuple<I...> t) : first(t) {}
  auto at(std::ptrdiff_t n) const { return std::apply([=](auto... it) { return std::tuple<decltype(*it)...>(*(it + n)...); }, first); }
  std::ptrdiff_t from(const zip_iterator& other) const { return std::get<0>(first) - std::get<0>(other.first); }
  const std::tuple<I...> get_iterator_tuple() const { return std::apply([this](auto... it) { return std::tuple<I...>(it + this->i...); }, first); }
};
template <class T> static inline counting_iterator<T> make_counting_iterator(T v) { return {v}; }
template <class T> static inline constant_iterator<T> make_constant_iterator(T v) { return {v}; }
template <class F, class I> static inline transform_iterator<F, I> make_transform_iterator(I it, F f) { return {it, f}; }
template <class E, class I> static inline permutation_iterator<E, I> make_permutation_iterator(E e, I o) { return {e, o}; }
template <class... I> static inline zip_iterator<std::tuple<I...>> make_zip_iterator(std::tuple<I...> t) { return {t}; }
template <class... I> static inline zip_iterator<std::tuple<I...>> make_zip_iterator(I... each) { return {std::tuple<I...>(each...)}; }
namespace details { template <class F> struct zip_function { mutable F f; template <class T> decltype(auto) operator()(T&& t) const { return std::apply(f, std::forward<T>(t)); } }; }
template <class F> static inline details::zip_function<F> make_zip_function(F f) { return {f}; }
namespace details { struct Discarded { template <class T> const Discarded& operator=(const T&) const { return *this; } }; }
template <class T = void> struct discard_iterator : details::counted<discard_iterator<T>, details::Discarded> {
  discard_iterator(std::ptrdiff_t index = 0) { this->i = index; }
  details::Discarded at(std::ptrdiff_t) const { return {}; }
  std::ptrdiff_t from(const discard_iterator&) const { return 0; }
};
static inline discard_iterator<> make_discard_iterator() { return {}; }

#define WW_ALGORITHM(NAME, ...) \
  namespace details { struct do_##NAME { __VA_ARGS__ }; } \
  template <class P, class... A> static inline auto NAME(P&& first, A&&... rest) { \
    if constexpr (details::is_policy<P>) return details::do_##NAME()(std::forward<A>(rest)...); \
    else return details::do_##NAME()(std::forward<P>(first), std::forward<A>(rest)...); }
WW_ALGORITHM(copy, template <class I, class O> auto operator()(I a, I b, O to) const { for (; a != b; ++a, ++to) *to = *a; return to; })
WW_ALGORITHM(copy_n, template <class I, class N, class O> auto operator()(I a, N n, O to) const { for (; n > 0; --n, ++a, ++to) *to = *a; return to; })
WW_ALGORITHM(copy_if, template <class I, class O, class F> auto operator()(I a, I b, O to, F f) const { for (; a != b; ++a) if (f(*a)) { *to = *a; ++to; } return to; }
                      template <class I, class S, class O, class F> auto operator()(I a, I b, S s, O to, F f) const { for (; a != b; ++a, ++s) if (f(*s)) { *to = *a; ++to; } return to; })
WW_ALGORITHM(fill, template <class I, class T> void operator()(I a, I b, const T& v) const { for (; a != b; ++a) *a = v; })
WW_ALGORITHM(fill_n, template <class I, class N, class T> auto operator()(I a, N n, const T& v) const { for (; n > 0; --n, ++a) *a = v; return a; })
WW_ALGORITHM(sequence, template <class I> void operator()(I a, I b) const { for (long v = 0; a != b; ++a, ++v) *a = (details::value_t<decltype(*a)>)v; }
                       template <class I, class T> void operator()(I a, I b, T v) const { (*this)(a, b, v, (T)1); }
                       template <class I, class T, class U> void operator()(I a, I b, T v, U by) const { for (long i = 0; a != b; ++a, ++i) *a = v + (T)by * (T)i; })
namespace details {  // what a generator finds if it asks which thread it is: each element has one of its own, as on a GPU
static inline void at_thread(long i) { threadIdx = {(unsigned)(i % 256), 0, 0}, blockIdx = {(unsigned)(i / 256), 0, 0}, blockDim = dim3(256), gridDim = dim3(1u << 20); }
}  // namespace details
WW_ALGORITHM(generate, template <class I, class F> void operator()(I a, I b, F f) const { for (long i = 0; a != b; ++a, ++i) { details::at_thread(i); *a = f(); } })
WW_ALGORITHM(for_each, template <class I, class F> auto operator()(I a, I b, F f) const { for (; a != b; ++a) { auto&& v = *a; f(v); } return a; })
WW_ALGORITHM(for_each_n, template <class I, class N, class F> auto operator()(I a, N n, F f) const { for (; n > 0; --n, ++a) { auto&& v = *a; f(v); } return a; })
WW_ALGORITHM(transform, template <class I, class O, class F> auto operator()(I a, I b, O to, F f) const { for (; a != b; ++a, ++to) *to = f(*a); return to; }
                        template <class I, class J, class O, class F> auto operator()(I a, I b, J c, O to, F f) const { for (; a != b; ++a, ++c, ++to) *to = f(*a, *c); return to; })
WW_ALGORITHM(transform_if, template <class I, class O, class F, class Q> auto operator()(I a, I b, O to, F f, Q q) const { for (; a != b; ++a, ++to) if (q(*a)) *to = f(*a); return to; })
WW_ALGORITHM(reduce, template <class I> auto operator()(I a, I b) const { details::value_t<decltype(*a)> r{}; for (; a != b; ++a) r = r + *a; return r; }
                     template <class I, class T> T operator()(I a, I b, T r) const { for (; a != b; ++a) r = r + *a; return r; }
                     template <class I, class T, class F> T operator()(I a, I b, T r, F f) const { for (; a != b; ++a) r = f(r, *a); return r; })
WW_ALGORITHM(transform_reduce, template <class I, class G, class T, class F> T operator()(I a, I b, G g, T r, F f) const { for (; a != b; ++a) r = f(r, g(*a)); return r; })
WW_ALGORITHM(inner_product, template <class I, class J, class T> T operator()(I a, I b, J c, T r) const { for (; a != b; ++a, ++c) r = r + *a * *c; return r; }
                            template <class I, class J, class T, class F, class G> T operator()(I a, I b, J c, T r, F f, G g) const { for (; a != b; ++a, ++c) r = f(r, g(*a, *c)); return r; })
WW_ALGORITHM(inclusive_scan, template <class I, class O> auto operator()(I a, I b, O to) const { return (*this)(a, b, to, std::plus<>()); }
  template <class I, class O, class F> auto operator()(I a, I b, O to, F f) const { if (a == b) return to; details::value_t<decltype(*a)> r = *a; *to = r; for (++a, ++to; a != b; ++a, ++to) { r = f(r, *a); *to = r; } return to; })
WW_ALGORITHM(exclusive_scan, template <class I, class O> auto operator()(I a, I b, O to) const { return (*this)(a, b, to, details::value_t<decltype(*a)>{}, std::plus<>()); }
  template <class I, class O, class T> auto operator()(I a, I b, O to, T r) const { return (*this)(a, b, to, r, std::plus<>()); }
  template <class I, class O, class T, class F> auto operator()(I a, I b, O to, T r, F f) const { for (; a != b; ++a, ++to) { const T v = *a; *to = r; r = f(r, v); } return to; })
namespace details {
template <class I, class F> static inline void sorted(I a, I b, F f) {
  if constexpr (std::is_lvalue_reference_v<decltype(*a)>) std::stable_sort(a, b, f);
  else {  // zipped: what stands for an element cannot be exchanged
    std::vector<value_t<decltype(*a)>> all;
    for (I i = a; i != b; ++i) all.push_back(*i);
    std::stable_sort(all.begin(), all.end(), f);
    for (const auto& v : all) { *a = v; ++a; }
  }
}
}  // namespace details
WW_ALGORITHM(sort, template <class I> void operator()(I a, I b) const { details::sorted(a, b, std::less<>()); } template <class I, class F> void operator()(I a, I b, F f) const { details::sorted(a, b, f); })
WW_ALGORITHM(stable_sort, template <class I> void operator()(I a, I b) const { details::sorted(a, b, std::less<>()); } template <class I, class F> void operator()(I a, I b, F f) const { details::sorted(a, b, f); })
WW_ALGORITHM(sort_by_key, template <class I, class J> void operator()(I a, I b, J v) const { (*this)(a, b, v, std::less<>()); }
  template <class I, class J, class F> void operator()(I a, I b, J v, F f) const {
    const size_t n = (size_t)(b - a);
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), (size_t)0);
    std::vector<details::value_t<decltype(*a)>> keys(a, b);
    std::vector<details::value_t<decltype(*v)>> values(v, v + n);
    std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) { return f(keys[i], keys[j]); });
    for (size_t i = 0; i < n; ++i, ++a, ++v) { *a = keys[order[i]]; *v = values[order[i]]; }
  })
template <class... A> static inline void stable_sort_by_key(A&&... a) { sort_by_key(std::forward<A>(a)...); }
WW_ALGORITHM(reduce_by_key, template <class I, class J, class K, class L> auto operator()(I a, I b, J v, K keys, L sums) const { return (*this)(a, b, v, keys, sums, std::equal_to<>(), std::plus<>()); }
  template <class I, class J, class K, class L, class E> auto operator()(I a, I b, J v, K keys, L sums, E e) const { return (*this)(a, b, v, keys, sums, e, std::plus<>()); }
  template <class I, class J, class K, class L, class E, class F> auto operator()(I a, I b, J v, K keys, L sums, E e, F f) const {
    while (a != b) {
      details::value_t<decltype(*a)> key = *a;
      details::value_t<decltype(*v)> sum = *v;
      for (++a, ++v; a != b && e(key, *a); ++a, ++v) sum = f(sum, *v);
      *keys = key; *sums = sum; ++keys; ++sums;
    }
    return std::make_pair(keys, sums);
  })
WW_ALGORITHM(count, template <class I, class T> long operator()(I a, I b, const T& v) const { long n = 0; for (; a != b; ++a) n += *a == v; return n; })
WW_ALGORITHM(count_if, template <class I, class F> long operator()(I a, I b, F f) const { long n = 0; for (; a != b; ++a) n += (bool)f(*a); return n; })
WW_ALGORITHM(all_of, template <class I, class F> bool operator()(I a, I b, F f) const { for (; a != b; ++a) if (!f(*a)) return false; return true; })
WW_ALGORITHM(any_of, template <class I, class F> bool operator()(I a, I b, F f) const { for (; a != b; ++a) if (f(*a)) return true; return false; })
WW_ALGORITHM(equal, template <class I, class J> bool operator()(I a, I b, J c) const { for (; a != b; ++a, ++c) if (!(*a == *c)) return false; return true; })
WW_ALGORITHM(is_sorted, template <class I> bool operator()(I a, I b) const { return std::is_sorted(a, b); } template <class I, class F> bool operator()(I a, I b, F f) const { return std::is_sorted(a, b, f); })
WW_ALGORITHM(max_element, template <class I> auto operator()(I a, I b) const { return std::max_element(a, b); } template <class I, class F> auto operator()(I a, I b, F f) const { return std::max_element(a, b, f); })
WW_ALGORITHM(min_element, template <class I> auto operator()(I a, I b) const { return std::min_element(a, b); } template <class I, class F> auto operator()(I a, I b, F f) const { return std::min_element(a, b, f); })
WW_ALGORITHM(find, template <class I, class T> auto operator()(I a, I b, const T& v) const { for (; a != b && !(*a == v); ++a) {} return a; })
WW_ALGORITHM(find_if, template <class I, class F> auto operator()(I a, I b, F f) const { for (; a != b && !f(*a); ++a) {} return a; })
WW_ALGORITHM(lower_bound, template <class I, class T, class = std::enable_if_t<!std::is_same_v<I, T>>> auto operator()(I a, I b, const T& v) const { return std::lower_bound(a, b, v); }
  template <class I, class J, class O> auto operator()(I a, I b, J c, J d, O to) const { for (; c != d; ++c, ++to) *to = std::lower_bound(a, b, *c) - a; return to; })
WW_ALGORITHM(upper_bound, template <class I, class T, class = std::enable_if_t<!std::is_same_v<I, T>>> auto operator()(I a, I b, const T& v) const { return std::upper_bound(a, b, v); }
  template <class I, class J, class O> auto operator()(I a, I b, J c, J d, O to) const { for (; c != d; ++c, ++to) *to = std::upper_bound(a, b, *c) - a; return to; })
WW_ALGORITHM(unique, template <class I> auto operator()(I a, I b) const { return std::unique(a, b); } template <class I, class F> auto operator()(I a, I b, F f) const { return std::unique(a, b, f); })
WW_ALGORITHM(remove_if, template <class I, class F> auto operator()(I a, I b, F f) const { return std::remove_if(a, b, f); })
WW_ALGORITHM(remove, template <class I, class T> auto operator()(I a, I b, const T& v) const { return std::remove(a, b, v); })
WW_ALGORITHM(replace, template <class I, class T> void operator()(I a, I b, const T& v, const T& w) const { std::replace(a, b, v, w); })
WW_ALGORITHM(reverse, template <class I> void operator()(I a, I b) const { std::reverse(a, b); })
WW_ALGORITHM(gather, template <class I, class J, class O> auto operator()(I a, I b, J from, O to) const { for (; a != b; ++a, ++to) *to = *(from + *a); return to; })
WW_ALGORITHM(scatter, template <class I, class J, class O> void operator()(I a, I b, J order, O to) const { for (; a != b; ++a, ++order) *(to + *order) = *a; })
WW_ALGORITHM(adjacent_difference, template <class I, class O> auto operator()(I a, I b, O to) const { return std::adjacent_difference(a, b, to); } template <class I, class O, class F> auto operator()(I a, I b, O to, F f) const { return std::adjacent_difference(a, b, to, f); })
WW_ALGORITHM(inclusive_scan_by_key, template <class I, class J, class O> auto operator()(I a, I b, J v, O to) const { return (*this)(a, b, v, to, std::equal_to<>(), std::plus<>()); }
  template <class I, class J, class O, class E> auto operator()(I a, I b, J v, O to, E e) const { return (*this)(a, b, v, to, e, std::plus<>()); }
  template <class I, class J, class O, class E, class F> auto operator()(I a, I b, J v, O to, E e, F f) const {
    while (a != b) {
      details::value_t<decltype(*a)> key = *a;
      details::value_t<decltype(*v)> sum = *v;
      *to = sum;
      for (++a, ++v, ++to; a != b && e(key, *a); ++a, ++v, ++to) { key = *a; sum = f(sum, *v); *to = sum; }
    }
    return to;
  })
WW_ALGORITHM(exclusive_scan_by_key, template <class I, class J, class O> auto operator()(I a, I b, J v, O to) const { return (*this)(a, b, v, to, details::value_t<decltype(*v)>{}); }
  template <class I, class J, class O, class T> auto operator()(I a, I b, J v, O to, T init) const { return (*this)(a, b, v, to, init, std::equal_to<>(), std::plus<>()); }
  template <class I, class J, class O, class T, class E> auto operator()(I a, I b, J v, O to, T init, E e) const { return (*this)(a, b, v, to, init, e, std::plus<>()); }
  template <class I, class J, class O, class T, class E, class F> auto operator()(I a, I b, J v, O to, T init, E e, F f) const {
    while (a != b) {
      details::value_t<decltype(*a)> key = *a;
      T sum = init;
      do { const T next = f(sum, *v); *to = sum; sum = next; key = *a; ++a, ++v, ++to; } while (a != b && e(key, *a));
    }
    return to;
  })
WW_ALGORITHM(unique_by_key_copy, template <class I, class J, class K, class L> auto operator()(I a, I b, J v, K keys, L values) const { return (*this)(a, b, v, keys, values, std::equal_to<>()); }
  template <class I, class J, class K, class L, class E> auto operator()(I a, I b, J v, K keys, L values, E e) const {
    while (a != b) {
      details::value_t<decltype(*a)> key = *a;
      *keys = key, *values = *v;
      for (++a, ++v, ++keys, ++values; a != b && e(key, *a); ++a, ++v) {}
    }
    return std::make_pair(keys, values);
  })
template <class P, class... A> static inline auto unique_by_key(P&& first, A&&... rest) {  // in place
  if constexpr (details::is_policy<P>) return unique_by_key(std::forward<A>(rest)...);
  else { auto t = std::forward_as_tuple(rest...); return unique_by_key_copy(first, std::get<0>(t), std::get<1>(t), first, std::get<1>(t)); }
}
WW_ALGORITHM(transform_inclusive_scan, template <class I, class O, class G, class F> auto operator()(I a, I b, O to, G g, F f) const { if (a == b) return to; auto r = g(*a); *to = r; for (++a, ++to; a != b; ++a, ++to) { r = f(r, g(*a)); *to = r; } return to; })
WW_ALGORITHM(transform_exclusive_scan, template <class I, class O, class G, class T, class F> auto operator()(I a, I b, O to, G g, T r, F f) const { for (; a != b; ++a, ++to) { const T v = g(*a); *to = r; r = f(r, v); } return to; })
WW_ALGORITHM(unique_copy, template <class I, class O> auto operator()(I a, I b, O to) const { return std::unique_copy(a, b, to); } template <class I, class O, class F> auto operator()(I a, I b, O to, F f) const { return std::unique_copy(a, b, to, f); })
WW_ALGORITHM(remove_copy, template <class I, class O, class T> auto operator()(I a, I b, O to, const T& v) const { return std::remove_copy(a, b, to, v); })
WW_ALGORITHM(remove_copy_if, template <class I, class O, class F> auto operator()(I a, I b, O to, F f) const { return std::remove_copy_if(a, b, to, f); })
WW_ALGORITHM(replace_if, template <class I, class F, class T> void operator()(I a, I b, F f, const T& v) const { for (; a != b; ++a) if (f(*a)) *a = v; }
                         template <class I, class S, class F, class T> void operator()(I a, I b, S s, F f, const T& v) const { for (; a != b; ++a, ++s) if (f(*s)) *a = v; })
WW_ALGORITHM(partition, template <class I, class F> auto operator()(I a, I b, F f) const { return std::stable_partition(a, b, f); })
WW_ALGORITHM(stable_partition, template <class I, class F> auto operator()(I a, I b, F f) const { return std::stable_partition(a, b, f); })
WW_ALGORITHM(partition_copy, template <class I, class O, class Q, class F> auto operator()(I a, I b, O yes, Q no, F f) const { return std::partition_copy(a, b, yes, no, f); })
WW_ALGORITHM(reverse_copy, template <class I, class O> auto operator()(I a, I b, O to) const { return std::reverse_copy(a, b, to); })
WW_ALGORITHM(merge, template <class I, class J, class O> auto operator()(I a, I b, J c, J d, O to) const { return std::merge(a, b, c, d, to); } template <class I, class J, class O, class F> auto operator()(I a, I b, J c, J d, O to, F f) const { return std::merge(a, b, c, d, to, f); })
WW_ALGORITHM(set_intersection, template <class I, class J, class O> auto operator()(I a, I b, J c, J d, O to) const { return std::set_intersection(a, b, c, d, to); })
WW_ALGORITHM(set_union, template <class I, class J, class O> auto operator()(I a, I b, J c, J d, O to) const { return std::set_union(a, b, c, d, to); })
WW_ALGORITHM(set_difference, template <class I, class J, class O> auto operator()(I a, I b, J c, J d, O to) const { return std::set_difference(a, b, c, d, to); })
WW_ALGORITHM(binary_search, template <class I, class T> bool operator()(I a, I b, const T& v) const { return std::binary_search(a, b, v); })
WW_ALGORITHM(swap_ranges, template <class I, class J> auto operator()(I a, I b, J c) const { return std::swap_ranges(a, b, c); })
WW_ALGORITHM(tabulate, template <class I, class F> void operator()(I a, I b, F f) const { for (long i = 0; a != b; ++a, ++i) *a = f(i); })
WW_ALGORITHM(none_of, template <class I, class F> bool operator()(I a, I b, F f) const { for (; a != b; ++a) if (f(*a)) return false; return true; })
WW_ALGORITHM(mismatch, template <class I, class J> auto operator()(I a, I b, J c) const { for (; a != b && *a == *c; ++a, ++c) {} return std::make_pair(a, c); })
WW_ALGORITHM(minmax_element, template <class I> auto operator()(I a, I b) const { return std::minmax_element(a, b); })
WW_ALGORITHM(generate_n, template <class I, class N, class F> auto operator()(I a, N n, F f) const { for (; n > 0; --n, ++a) *a = f(); return a; })
WW_ALGORITHM(scatter_if, template <class I, class J, class S, class O> void operator()(I a, I b, J order, S s, O to) const { for (; a != b; ++a, ++order, ++s) if (*s) *(to + *order) = *a; })
WW_ALGORITHM(uninitialized_fill, template <class I, class T> void operator()(I a, I b, const T& v) const { for (; a != b; ++a) *a = v; })
WW_ALGORITHM(uninitialized_copy, template <class I, class O> auto operator()(I a, I b, O to) const { for (; a != b; ++a, ++to) *to = *a; return to; })
template <class I> static inline auto distance(I a, I b) { return b - a; }
template <class I, class N> static inline void advance(I& a, N n) { a += n; }
namespace system { namespace cuda { namespace detail {} } }
}  // namespace thrust
