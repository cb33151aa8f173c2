// The part of torch's C++ interface that host code around kernels uses: tensors as views of memory that the caller owns.
#include <functional>
#include <initializer_list>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <unordered_map>

namespace c10 {
enum class ScalarType : signed char { Byte, Char, Short, Int, Long, Half, Float, Double, ComplexHalf, ComplexFloat, ComplexDouble, Bool, QInt8, QUInt8, QInt32, BFloat16, Undefined };
using Half = __half;
using BFloat16 = __nv_bfloat16;
template <class T> using optional = std::optional<T>;
static constexpr std::nullopt_t nullopt = std::nullopt;
}  // namespace c10

namespace ww {
// What crosses the border: one flat record for each argument and result. A list is its head, then its tensors.
struct Value {
  int kind, type, rank, unused;
  int64_t owner, integer;  // owner: which of the caller's tensors holds the memory
  double number;
  char* data;
  int64_t sizes[12], strides[12];
};
enum { kNone, kTensor, kInteger, kNumber, kBoolean, kIntegers, kTensors };  // and kText, kObject of border.hpp
typedef int64_t (*Allocate)(int type, int rank, const int64_t* sizes, char** data);
inline Allocate& allocator() { static Allocate f = nullptr; return f; }

template <class T> struct type_of;
#define WW_TYPE(T, N) template <> struct type_of<T> { static constexpr c10::ScalarType value = c10::ScalarType::N; };
WW_TYPE(uint8_t, Byte) WW_TYPE(int8_t, Char) WW_TYPE(int16_t, Short) WW_TYPE(int32_t, Int) WW_TYPE(int64_t, Long) WW_TYPE(long long, Long)
WW_TYPE(float, Float) WW_TYPE(double, Double) WW_TYPE(bool, Bool) WW_TYPE(__half, Half) WW_TYPE(__nv_bfloat16, BFloat16)
static inline int64_t type_bytes(c10::ScalarType t) {
  static const int bytes[] = {1, 1, 2, 4, 8, 2, 4, 8, 4, 8, 16, 1, 1, 1, 4, 2, 0};
  return bytes[(int)t];
}
static inline const char* type_name(c10::ScalarType t) {
  static const char* names[] = {"Byte", "Char", "Short", "Int", "Long", "Half", "Float", "Double", "ComplexHalf", "ComplexFloat", "ComplexDouble", "Bool", "QInt8", "QUInt8", "QInt32", "BFloat16", "Undefined"};
  return names[(int)t];
}
template <class... A> [[noreturn]] static void complain(const char* condition, const A&... words) {
  std::ostringstream text;
  (text << ... << words);
  throw std::runtime_error(text.str().empty() ? std::string("expected ") + condition : text.str());
}
}  // namespace ww

#define TORCH_CHECK(condition, ...) do { if (!(condition)) ww::complain(#condition, ##__VA_ARGS__); } while (0)
#define TORCH_INTERNAL_ASSERT TORCH_CHECK
#define TORCH_CHECK_EQ(a, b) TORCH_CHECK((a) == (b))
#define AT_ASSERTM TORCH_CHECK
#define AT_ASSERT TORCH_CHECK
#define AT_ERROR(...) ww::complain("", ##__VA_ARGS__)
#define TORCH_WARN(...) do {} while (0)
#define C10_CUDA_CHECK(x) do { (void)(x); } while (0)
#define AT_CUDA_CHECK C10_CUDA_CHECK
#define C10_CUDA_KERNEL_LAUNCH_CHECK() do {} while (0)

namespace c10 {
enum class DeviceType : signed char { CPU, CUDA };
struct Device {
  DeviceType kind = DeviceType::CUDA;
  int number = 0;
  Device(DeviceType k = DeviceType::CUDA, int n = 0) : kind(k), number(n) {}
  DeviceType type() const { return kind; }
  int index() const { return number; }
  bool is_cuda() const { return true; }
  bool is_cpu() const { return false; }
  bool operator==(const Device& o) const { return kind == o.kind; }
  bool operator!=(const Device& o) const { return !(*this == o); }
};
static inline std::ostream& operator<<(std::ostream& out, const Device&) { return out << "cuda:0"; }
static inline std::ostream& operator<<(std::ostream& out, ScalarType t) { return out << ww::type_name(t); }
static inline const char* toString(ScalarType t) { return ww::type_name(t); }

class IntArrayRef {
  std::vector<int64_t> held;
 public:
  IntArrayRef() = default;
  IntArrayRef(std::initializer_list<int64_t> v) : held(v) {}
  IntArrayRef(std::vector<int64_t> v) : held(std::move(v)) {}
  IntArrayRef(int64_t one) : held{one} {}
  size_t size() const { return held.size(); }
  bool empty() const { return held.empty(); }
  int64_t operator[](size_t i) const { return held.at(i); }
  int64_t back() const { return held.back(); }
  int64_t front() const { return held.front(); }
  auto begin() const { return held.begin(); }
  auto end() const { return held.end(); }
  std::vector<int64_t> vec() const { return held; }
  const int64_t* data() const { return held.data(); }
  bool operator==(const IntArrayRef& o) const { return held == o.held; }
  bool operator!=(const IntArrayRef& o) const { return held != o.held; }
  operator const std::vector<int64_t>&() const { return held; }
};
static inline std::ostream& operator<<(std::ostream& out, const IntArrayRef& sizes) {
  out << "[";
  for (size_t i = 0; i < sizes.size(); ++i) out << (i ? ", " : "") << sizes[i];
  return out << "]";
}
template <class T> using ArrayRef = std::vector<T>;

struct caffe_type { ScalarType t; operator ScalarType() const { return t; } bool operator==(ScalarType o) const { return t == o; } bool operator!=(ScalarType o) const { return t != o; } ScalarType toScalarType() const { return t; } };
enum class MemoryFormat { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
struct TensorOptions {
  ScalarType type = ScalarType::Float;
  MemoryFormat format = MemoryFormat::Preserve;
  TensorOptions(ScalarType t = ScalarType::Float) : type(t) {}
  TensorOptions(DeviceType) {}
  TensorOptions(Device) {}
  TensorOptions dtype(ScalarType t) const { TensorOptions o = *this; o.type = t; return o; }
  caffe_type dtype() const { return {type}; }
  template <class D> TensorOptions device(const D&, int = 0) const { return *this; }
  Device device() const { return {}; }
  TensorOptions requires_grad(bool) const { return *this; }
  template <class L> TensorOptions layout(L) const { return *this; }
  TensorOptions memory_format(MemoryFormat f) const { TensorOptions o = *this; o.format = f; return o; }
};
}  // namespace c10

namespace at {
using namespace c10;

template <class T, bool> struct acc_type_of { using type = T; };  // what sums of T are kept in on a GPU
template <> struct acc_type_of<__half, true> { using type = float; };
template <> struct acc_type_of<__nv_bfloat16, true> { using type = float; };
template <class T, bool G> using acc_type = typename acc_type_of<T, G>::type;

template <class T, int N> struct TensorAccessorBase {
  T* data_;
  const int64_t *sizes_, *strides_;
};
template <class T, int N> struct TensorAccessor : TensorAccessorBase<T, N> {
  TensorAccessor(T* d, const int64_t* s, const int64_t* r) : TensorAccessorBase<T, N>{d, s, r} {}
  int64_t size(int i) const { return this->sizes_[i]; }
  int64_t stride(int i) const { return this->strides_[i]; }
  T* data() const { return this->data_; }
  decltype(auto) operator[](int64_t i) const {
    if constexpr (N == 1) return (this->data_[i * this->strides_[0]]);
    else return TensorAccessor<T, N - 1>(this->data_ + i * this->strides_[0], this->sizes_ + 1, this->strides_ + 1);
  }
};
template <class T> struct DefaultPtrTraits { using type = T*; };
template <class T> struct RestrictPtrTraits { using type = T*; };
template <class T, int N, template <class> class = DefaultPtrTraits, class I = int64_t> struct GenericPackedTensorAccessor {
  T* data_;
  int64_t sizes_[N], strides_[N];
  I size(int i) const { return (I)sizes_[i]; }
  I stride(int i) const { return (I)strides_[i]; }
  T* data() const { return data_; }
  decltype(auto) operator[](I i) const { return TensorAccessor<T, N>(data_, sizes_, strides_)[i]; }
};
template <class T, int N, template <class> class P = DefaultPtrTraits, class I = int64_t> using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, P, I>;
template <class T, int N, template <class> class P = DefaultPtrTraits> using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, P, int>;
template <class T, int N, template <class> class P = DefaultPtrTraits> using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, P, int64_t>;

class Tensor {
 public:
  int64_t owner = -1;
  ScalarType element = ScalarType::Undefined;
  char* base = nullptr;
  std::vector<int64_t> shape, steps;

  bool defined() const { return owner >= 0; }
  int64_t dim() const { return (int64_t)shape.size(); }
  int64_t ndimension() const { return dim(); }
  int64_t axis(int64_t i) const { return i < 0 ? i + dim() : i; }
  int64_t size(int64_t i) const { return shape.at((size_t)axis(i)); }
  int64_t stride(int64_t i) const { return steps.at((size_t)axis(i)); }
  IntArrayRef sizes() const { return shape; }
  IntArrayRef strides() const { return steps; }
  int64_t numel() const { int64_t n = 1; for (int64_t s : shape) n *= s; return n; }
  int64_t element_size() const { return ww::type_bytes(element); }
  int64_t itemsize() const { return element_size(); }
  int64_t nbytes() const { return numel() * element_size(); }
  ScalarType scalar_type() const { return element; }
  caffe_type type() const { return {element}; }
  caffe_type dtype() const { return {element}; }
  TensorOptions options() const { return {element}; }
  Device device() const { return {}; }
  int get_device() const { return 0; }
  bool is_cuda() const { return true; }
  bool is_cpu() const { return false; }
  bool requires_grad() const { return false; }
  bool is_floating_point() const { return element == ScalarType::Half || element == ScalarType::Float || element == ScalarType::Double || element == ScalarType::BFloat16; }
  bool is_same_size(const Tensor& o) const { return shape == o.shape; }
  bool is_contiguous(MemoryFormat f = MemoryFormat::Contiguous) const {
    if (f == MemoryFormat::Preserve) return true;
    if (f == MemoryFormat::ChannelsLast && dim() == 4) return permute({0, 2, 3, 1}).is_contiguous();
    if (f == MemoryFormat::ChannelsLast3d && dim() == 5) return permute({0, 2, 3, 4, 1}).is_contiguous();
    int64_t step = 1;
    for (size_t i = shape.size(); i-- > 0; step *= shape[i])
      if (shape[i] != 1 && steps[i] != step) return numel() == 0;
    return true;
  }
  void* data_ptr() const { return base; }
  template <class T> T* data_ptr() const {
    using U = std::remove_const_t<T>;
    TORCH_CHECK(ww::type_of<U>::value == element, "expected scalar element ", ww::type_name(ww::type_of<U>::value), " but found ", ww::type_name(element));
    return (T*)base;
  }
  template <class T> T* data() const { return data_ptr<T>(); }
  template <class T> const T* const_data_ptr() const { return data_ptr<T>(); }
  template <class T> T* mutable_data_ptr() const { return data_ptr<T>(); }
  const void* const_data_ptr() const { return base; }
  void* mutable_data_ptr() const { return base; }

  template <class T, int N, template <class> class P, class I> GenericPackedTensorAccessor<T, N, P, I> packed() const {
    TORCH_CHECK(dim() == N, "expected ", N, " dims but tensor has ", dim());
    GenericPackedTensorAccessor<T, N, P, I> a;
    a.data_ = data_ptr<T>();
    for (int i = 0; i < N; ++i) a.sizes_[i] = shape[i], a.strides_[i] = steps[i];
    return a;
  }
  template <class T, int N, template <class> class P = DefaultPtrTraits> auto packed_accessor32() const { return packed<T, N, P, int>(); }
  template <class T, int N, template <class> class P = DefaultPtrTraits> auto packed_accessor64() const { return packed<T, N, P, int64_t>(); }
  template <class T, int N, template <class> class P = DefaultPtrTraits, class I = int64_t> auto packed_accessor() const { return packed<T, N, P, I>(); }
  template <class T, int N> TensorAccessor<T, N> accessor() const { return {data_ptr<T>(), shape.data(), steps.data()}; }

  static Tensor make(IntArrayRef sizes, ScalarType type) {
    Tensor t;
    t.element = type;
    t.shape = sizes.vec();
    t.steps.assign(t.shape.size(), 1);
    for (size_t i = t.shape.size(); i-- > 1;) t.steps[i - 1] = t.steps[i] * std::max<int64_t>(t.shape[i], 1);
    TORCH_CHECK(t.shape.size() <= 12, "expected at most 12 axes, saw ", t.shape.size());
    t.owner = ww::allocator()((int)type, (int)t.shape.size(), t.shape.data(), &t.base);
    TORCH_CHECK(t.owner >= 0, "no memory for a tensor of sizes ", sizes);
    return t;
  }
  template <class F> void each(F f) const {  // the address of each element, the last axis innermost
    const int64_t n = numel(), bytes = element_size();
    std::vector<int64_t> at(shape.size(), 0);
    int64_t offset = 0;
    for (int64_t k = 0; k < n; ++k) {
      f(base + offset * bytes, k);
      for (size_t i = shape.size(); i-- > 0;) {
        offset += steps[i];
        if (++at[i] < shape[i]) break;
        offset -= steps[i] * shape[i];
        at[i] = 0;
      }
    }
  }
  Tensor contiguous(MemoryFormat f = MemoryFormat::Contiguous) const {
    if (is_contiguous(f)) return *this;
    if (f == MemoryFormat::ChannelsLast) return permute({0, 2, 3, 1}).packed_copy().permute({0, 3, 1, 2});
    if (f == MemoryFormat::ChannelsLast3d) return permute({0, 2, 3, 4, 1}).packed_copy().permute({0, 4, 1, 2, 3});
    return packed_copy();
  }
  Tensor clone() const;  // with the layout, as torch's
  Tensor packed_copy() const {
    Tensor t = make(shape, element);
    const int64_t bytes = element_size();
    if (is_contiguous()) std::memcpy(t.base, base, (size_t)nbytes());
    else each([&](char* from, int64_t k) { std::memcpy(t.base + k * bytes, from, (size_t)bytes); });
    return t;
  }
  Tensor detach() const { return *this; }
  Tensor cuda() const { return *this; }
  Tensor with(std::vector<int64_t> sizes, std::vector<int64_t> strides) const { Tensor t = *this; t.shape = std::move(sizes); t.steps = std::move(strides); return t; }
  Tensor reshape(IntArrayRef wanted) const {
    std::vector<int64_t> sizes = wanted.vec();
    int64_t known = 1, open = -1;
    for (size_t i = 0; i < sizes.size(); ++i) if (sizes[i] == -1) open = (int64_t)i; else known *= sizes[i];
    if (open >= 0) sizes[(size_t)open] = known ? numel() / known : 0, known *= sizes[(size_t)open];
    TORCH_CHECK(known == numel(), "shape '", wanted, "' is invalid for input of size ", numel());
    const Tensor from = contiguous();
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * std::max<int64_t>(sizes[i], 1);
    return from.with(sizes, strides);
  }
  Tensor view(IntArrayRef sizes) const {
    if (is_contiguous()) return reshape(sizes);
    const Tensor shaped = packed_copy().reshape(sizes);  // for its sizes; the axes that lie in one piece are cut anew
    std::vector<int64_t> strides(shaped.shape.size(), 0);
    int64_t to = shaped.dim(), piece = 1, cut = 1;
    for (int64_t from = dim() - 1, inner = from; from >= 0; --from) {
      piece *= shape[(size_t)from];
      if (from > 0 && (shape[(size_t)from - 1] == 1 || steps[(size_t)from - 1] == shape[(size_t)from] * steps[(size_t)from])) continue;
      for (; to > 0 && (cut < piece || shaped.shape[(size_t)to - 1] == 1); cut *= shaped.shape[(size_t)--to]) strides[(size_t)to - 1] = cut * steps[(size_t)inner];
      TORCH_CHECK(cut == piece, "view size is not compatible with input tensor's size and stride: use reshape");
      inner = from - 1, piece = cut = 1;
    }
    return with(shaped.shape, strides);
  }
  Tensor view_as(const Tensor& o) const { return view(o.shape); }
  Tensor flatten(int64_t first = 0, int64_t last = -1) const {
    std::vector<int64_t> sizes(shape.begin(), shape.begin() + axis(first));
    int64_t n = 1;
    for (int64_t i = axis(first); i <= axis(last); ++i) n *= shape[(size_t)i];
    sizes.push_back(n);
    sizes.insert(sizes.end(), shape.begin() + axis(last) + 1, shape.end());
    return reshape(sizes);
  }
  Tensor permute(IntArrayRef order) const {
    std::vector<int64_t> sizes, strides;
    for (int64_t i : order) sizes.push_back(size(i)), strides.push_back(stride(i));
    return with(sizes, strides);
  }
  Tensor transpose(int64_t a, int64_t b) const {
    Tensor t = *this;
    std::swap(t.shape.at((size_t)axis(a)), t.shape.at((size_t)axis(b)));
    std::swap(t.steps.at((size_t)axis(a)), t.steps.at((size_t)axis(b)));
    return t;
  }
  Tensor t() const { return dim() < 2 ? *this : transpose(0, 1); }
  Tensor unsqueeze(int64_t i) const {
    Tensor t = *this;
    const int64_t at = i < 0 ? i + dim() + 1 : i;
    t.shape.insert(t.shape.begin() + at, 1);
    t.steps.insert(t.steps.begin() + at, 1);
    return t;
  }
  Tensor squeeze(int64_t i) const {
    Tensor t = *this;
    if (size(i) != 1) return t;
    t.shape.erase(t.shape.begin() + axis(i));
    t.steps.erase(t.steps.begin() + axis(i));
    return t;
  }
  Tensor squeeze() const {
    Tensor t = *this;
    for (int64_t i = dim(); i-- > 0;) t = t.squeeze(i);
    return t;
  }
  Tensor slice(int64_t i, c10::optional<int64_t> first = {}, c10::optional<int64_t> end = {}, int64_t step = 1) const {
    const int64_t n = size(i);
    const auto within = [n](int64_t at) { return std::min(std::max<int64_t>(at < 0 ? at + n : at, 0), n); };
    TORCH_CHECK(step > 0, "slice step must be positive");
    const int64_t from = within(first.value_or(0)), to = std::max(from, within(end.value_or(n)));
    Tensor t = narrow(i, from, to - from);
    t.shape[(size_t)axis(i)] = (to - from + step - 1) / step;
    t.steps[(size_t)axis(i)] *= step;
    return t;
  }
  Tensor narrow(int64_t i, int64_t start, int64_t length) const {
    Tensor t = *this;
    TORCH_CHECK(start >= 0 && start + length <= size(i), "narrow beyond the end of axis ", i);
    t.base += start * stride(i) * element_size();
    t.shape[(size_t)axis(i)] = length;
    return t;
  }
  Tensor select(int64_t i, int64_t index) const { return narrow(i, index < 0 ? index + size(i) : index, 1).squeeze(i); }
  Tensor operator[](int64_t i) const { return select(0, i); }
  Tensor expand(IntArrayRef wanted) const {
    Tensor t = *this;
    while (t.dim() < (int64_t)wanted.size()) t = t.unsqueeze(0);
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i] != -1 && wanted[i] != t.shape[i]) {
        TORCH_CHECK(t.shape[i] == 1, "cannot expand ", sizes(), " to ", wanted);
        t.shape[i] = wanted[i], t.steps[i] = 0;
      }
    return t;
  }
  Tensor expand_as(const Tensor& o) const { return expand(o.shape); }
  template <class F> static void by_type(ScalarType t, F f) {
    switch (t) {
      case ScalarType::Byte: return f((uint8_t*)0);
      case ScalarType::Char: return f((int8_t*)0);
      case ScalarType::Short: return f((int16_t*)0);
      case ScalarType::Int: return f((int32_t*)0);
      case ScalarType::Long: return f((int64_t*)0);
      case ScalarType::Bool: return f((bool*)0);
      case ScalarType::Float: return f((float*)0);
      case ScalarType::Double: return f((double*)0);
      case ScalarType::Half: return f((__half*)0);
      case ScalarType::BFloat16: return f((__nv_bfloat16*)0);
      default: ww::complain("", "elements of element ", ww::type_name(t), " are not translated");
    }
  }
  template <class V> Tensor& fill_(V v) {
    by_type(element, [&](auto* p) { using E = std::remove_pointer_t<decltype(p)>; const E e = (E)(float)v; each([&](char* at, int64_t) { *(E*)at = std::is_floating_point_v<E> || std::is_integral_v<E> ? (E)v : e; }); });
    return *this;
  }
  Tensor& zero_() { each([&](char* at, int64_t) { std::memset(at, 0, (size_t)element_size()); }); return *this; }
  Tensor to(ScalarType wanted) const {
    if (wanted == element) return *this;
    Tensor t = make(shape, wanted);
    by_type(element, [&](auto* p) {
      using From = std::remove_pointer_t<decltype(p)>;
      by_type(wanted, [&](auto* q) {
        using To = std::remove_pointer_t<decltype(q)>;
        each([&](char* at, int64_t k) {
          if constexpr (std::is_arithmetic_v<From> && std::is_arithmetic_v<To>) ((To*)t.base)[k] = (To)*(From*)at;
          else if constexpr (std::is_arithmetic_v<To>) ((To*)t.base)[k] = (To)(float)*(From*)at;
          else ((To*)t.base)[k] = To((float)*(From*)at);
        });
      });
    });
    return t;
  }
  Tensor to(ScalarType wanted, bool, bool copy = false, MemoryFormat f = MemoryFormat::Preserve) const {
    return (copy && wanted == element ? clone() : to(wanted)).contiguous(f);
  }
  Tensor to(TensorOptions o, bool = false, bool = false) const { return to(o.type); }
  Tensor to(Device, bool = false) const { return *this; }
  Tensor to(Device, ScalarType t) const { return to(t); }
  Tensor to(DeviceType, bool = false) const { return *this; }
  Tensor to(MemoryFormat f) const { return contiguous(f); }
  Tensor type_as(const Tensor& o) const { return to(o.element); }
  Tensor toType(ScalarType t) const { return to(t); }
  Tensor& copy_(const Tensor& from, bool = false) {
    const Tensor source = from.expand(shape).to(element);
    const int64_t bytes = element_size();
    const Tensor packed = source.contiguous();
    each([&](char* at, int64_t k) { std::memcpy(at, packed.base + k * bytes, (size_t)bytes); });
    return *this;
  }
  template <class F> Tensor& map_(F f) {  // f in double, each element rounded once
    by_type(element, [&](auto* p) {
      using E = std::remove_pointer_t<decltype(p)>;
      each([&](char* at, int64_t) {
        if constexpr (std::is_arithmetic_v<E>) *(E*)at = (E)f((double)*(E*)at);
        else *(E*)at = E((float)f((double)(float)*(E*)at));
      });
    });
    return *this;
  }
  Tensor& mul_(double v) { return map_([v](double x) { return x * v; }); }
  Tensor& div_(double v) { return map_([v](double x) { return x / v; }); }
  Tensor& add_(double v) { return map_([v](double x) { return x + v; }); }
  Tensor& sub_(double v) { return map_([v](double x) { return x - v; }); }
  Tensor operator*(double v) const { return clone().mul_(v); }
  Tensor operator/(double v) const { return clone().div_(v); }
  Tensor operator+(double v) const { return clone().add_(v); }
  Tensor operator-(double v) const { return clone().sub_(v); }
  Tensor sum() const {
    double total = 0;
    by_type(element, [&](auto* p) { using E = std::remove_pointer_t<decltype(p)>; each([&](char* at, int64_t) { if constexpr (std::is_arithmetic_v<E>) total += (double)*(E*)at; else total += (double)(float)*(E*)at; }); });
    Tensor t = make({}, element);
    return t.fill_(total);
  }
  Tensor mean() const { return sum().div_((double)numel()); }
  // Methods that the caller's torch does: library.hpp.
  Tensor sum(IntArrayRef axes, bool keep = false) const;
  Tensor mean(IntArrayRef axes, bool keep = false) const;
  Tensor min() const;
  Tensor max() const;
  std::tuple<Tensor, Tensor> min(int64_t axis, bool keep = false) const;
  std::tuple<Tensor, Tensor> max(int64_t axis, bool keep = false) const;
#define WW_METHODS(ONE) ONE(relu) ONE(sigmoid) ONE(tanh) ONE(exp) ONE(log) ONE(sqrt) ONE(rsqrt) ONE(abs) ONE(neg) ONE(silu) ONE(square)
#define WW_METHOD(NAME) Tensor NAME() const; Tensor& NAME##_();
  WW_METHODS(WW_METHOD)
#define WW_BINARIES(ONE) ONE(add) ONE(sub) ONE(mul) ONE(div)
#define WW_BINARY_METHOD(NAME) Tensor NAME(const Tensor& o) const; Tensor NAME(double v) const { return clone().NAME##_(v); } Tensor& NAME##_(const Tensor& o);
  WW_BINARIES(WW_BINARY_METHOD)
  Tensor norm(double p, IntArrayRef axes, bool keep = false) const;
  Tensor matmul(const Tensor& o) const;
  Tensor mm(const Tensor& o) const;
  Tensor bmm(const Tensor& o) const;
  Tensor& addmm_(const Tensor& a, const Tensor& b);
  Tensor pow(double v) const;
  Tensor softmax(int64_t axis) const;
  Tensor clamp(c10::optional<double> low = {}, c10::optional<double> high = {}) const;
  Tensor& clamp_(c10::optional<double> low = {}, c10::optional<double> high = {});
  Tensor clamp_min(double low) const { return clamp(low); }
  Tensor clamp_max(double high) const { return clamp({}, high); }
  Tensor cumsum(int64_t axis) const;
  Tensor masked_fill(const Tensor& mask, double v) const;
  Tensor repeat(IntArrayRef times) const;
  Tensor index_select(int64_t axis, const Tensor& which) const;
  std::vector<Tensor> split(int64_t each, int64_t axis = 0) const;
  std::vector<Tensor> split(IntArrayRef sizes, int64_t axis = 0) const;
  std::vector<Tensor> chunk(int64_t count, int64_t axis = 0) const;
  Tensor index(const std::vector<struct TensorIndex>& at) const;
  template <class T> T item() const {
    TORCH_CHECK(numel() == 1, "a Tensor with ", numel(), " elements cannot be converted to Scalar");
    T result{};
    by_type(element, [&](auto* p) { using E = std::remove_pointer_t<decltype(p)>; if constexpr (std::is_arithmetic_v<E>) result = (T)*(E*)base; else result = (T)(float)*(E*)base; });
    return result;
  }
};

static inline Tensor empty(IntArrayRef sizes, TensorOptions o = {}) {
  const auto wanted = sizes.vec();
  const auto made = [&](std::vector<int64_t> there, std::vector<int64_t> back) {  // the axes as they lie in memory, and back
    std::vector<int64_t> lie;
    for (int64_t i : there) lie.push_back(wanted.at((size_t)i));
    return Tensor::make(lie, o.type).permute(back);
  };
  if (o.format == MemoryFormat::ChannelsLast) return made({0, 2, 3, 1}, {0, 3, 1, 2});
  if (o.format == MemoryFormat::ChannelsLast3d) return made({0, 2, 3, 4, 1}, {0, 4, 1, 2, 3});
  return Tensor::make(sizes, o.type);
}
static inline Tensor zeros(IntArrayRef sizes, TensorOptions o = {}) { return empty(sizes, o).zero_(); }
template <class V> static inline Tensor full(IntArrayRef sizes, V v, TensorOptions o = {}) { return empty(sizes, o).fill_(v); }
static inline Tensor ones(IntArrayRef sizes, TensorOptions o = {}) { return full(sizes, 1, o); }
static inline Tensor tensor(double v, TensorOptions o = {}) { return full(IntArrayRef(std::vector<int64_t>{}), v, o); }
static inline Tensor like(const Tensor& t, ScalarType type) {  // the layout too, where the memory has no holes
  Tensor made = empty(t.sizes(), type);
  std::vector<int64_t> order(t.shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = (int64_t)i;
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return t.steps[(size_t)a] > t.steps[(size_t)b]; });
  if (!t.permute(order).is_contiguous()) return made;
  made.steps = t.steps;
  return made;
}
static inline Tensor empty_like(const Tensor& t) { return like(t, t.element); }
inline Tensor Tensor::clone() const { return like(*this, element).copy_(*this); }
static inline Tensor sum(const Tensor& t) { return t.sum(); }
static inline Tensor mean(const Tensor& t) { return t.mean(); }
static inline Tensor empty_like(const Tensor& t, TensorOptions o) { return o.format == MemoryFormat::Preserve ? like(t, o.type) : empty(t.sizes(), o); }
static inline Tensor zeros_like(const Tensor& t) { return like(t, t.element).zero_(); }
static inline Tensor zeros_like(const Tensor& t, TensorOptions o) { return empty_like(t, o).zero_(); }
static inline Tensor ones_like(const Tensor& t) { return like(t, t.element).fill_(1); }
template <class V> static inline Tensor full_like(const Tensor& t, V v) { return like(t, t.element).fill_(v); }

static constexpr ScalarType kByte = ScalarType::Byte, kUInt8 = ScalarType::Byte, kChar = ScalarType::Char, kInt8 = ScalarType::Char, kShort = ScalarType::Short, kInt16 = ScalarType::Short,
    kInt = ScalarType::Int, kInt32 = ScalarType::Int, kLong = ScalarType::Long, kInt64 = ScalarType::Long, kHalf = ScalarType::Half, kFloat16 = ScalarType::Half, kFloat = ScalarType::Float,
    kFloat32 = ScalarType::Float, kDouble = ScalarType::Double, kFloat64 = ScalarType::Double, kBool = ScalarType::Bool, kBFloat16 = ScalarType::BFloat16;
static constexpr DeviceType kCUDA = DeviceType::CUDA, kCPU = DeviceType::CPU;

struct CUDAStream {
  operator cudaStream_t() const { return nullptr; }
  cudaStream_t stream() const { return nullptr; }
  void synchronize() const {}
};
struct DeviceProperties { int multiProcessorCount = 1, maxThreadsPerBlock = 1024, warpSize = 32; size_t sharedMemPerBlock = 49152, sharedMemPerMultiprocessor = 49152; int major = 8, minor = 0; };
namespace cuda {
using at::CUDAStream;
static inline CUDAStream getCurrentCUDAStream(int = 0) { return {}; }
static inline CUDAStream getDefaultCUDAStream(int = 0) { return {}; }
static inline CUDAStream getStreamFromPool(bool = false, int = 0) { return {}; }
static inline void setCurrentCUDAStream(CUDAStream) {}
struct CUDAStreamGuard { explicit CUDAStreamGuard(CUDAStream) {} };
static inline DeviceProperties* getCurrentDeviceProperties() { static DeviceProperties p; return &p; }
static inline int current_device() { return 0; }
struct CUDAGuard { template <class D> explicit CUDAGuard(const D&) {} };
struct OptionalCUDAGuard { template <class D> explicit OptionalCUDAGuard(const D&) {} };
}  // namespace cuda
static inline Device device_of(const Tensor&) { return {}; }
struct DeviceGuard { template <class D> explicit DeviceGuard(const D&) {} };
struct OptionalDeviceGuard { template <class D> explicit OptionalDeviceGuard(const D&) {} };
struct Context {  // how torch does its products and convolutions, not what they are
  void setBenchmarkCuDNN(bool) {}
  void setDeterministicCuDNN(bool) {}
  void setAllowTF32CuBLAS(bool) {}
  void setAllowTF32CuDNN(bool) {}
};
static inline Context& globalContext() { static Context one; return one; }
enum class Layout { Strided };
static constexpr Layout kStrided = Layout::Strided;
}  // namespace at

namespace c10 { namespace cuda { using at::cuda::getCurrentCUDAStream; using at::cuda::getStreamFromPool; using at::cuda::CUDAStream; using at::cuda::CUDAStreamGuard; using at::cuda::CUDAGuard; using at::cuda::OptionalCUDAGuard; using at::cuda::current_device; } }
namespace torch {
using namespace at;
namespace cuda { using namespace at::cuda; }
static inline TensorOptions dtype(ScalarType t) { return {t}; }
template <class D> static inline TensorOptions device(const D&, int = 0) { return {}; }
struct NoGradGuard {};
}  // namespace torch

#define WW_CASE(T, N, ...) case c10::ScalarType::N: { using scalar_t = T; return __VA_ARGS__(); }
#define WW_SWITCH(TYPE, NAME, ...) [&] { \
    const c10::ScalarType ww_type = TYPE; \
    switch (ww_type) { __VA_ARGS__ default: ww::complain("", "\"", NAME, "\" not implemented for '", ww::type_name(ww_type), "'"); } }()
#define WW_FLOATING(...) WW_CASE(float, Float, __VA_ARGS__) WW_CASE(double, Double, __VA_ARGS__)
#define WW_INTEGRAL(...) WW_CASE(uint8_t, Byte, __VA_ARGS__) WW_CASE(int8_t, Char, __VA_ARGS__) WW_CASE(int16_t, Short, __VA_ARGS__) WW_CASE(int32_t, Int, __VA_ARGS__) WW_CASE(int64_t, Long, __VA_ARGS__)
#define WW_NARROW(...) WW_CASE(__half, Half, __VA_ARGS__) WW_CASE(__nv_bfloat16, BFloat16, __VA_ARGS__)
#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) WW_SWITCH(TYPE, NAME, WW_FLOATING(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) WW_SWITCH(TYPE, NAME, WW_FLOATING(__VA_ARGS__) WW_CASE(__half, Half, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) WW_SWITCH(TYPE, NAME, WW_FLOATING(__VA_ARGS__) WW_NARROW(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...) WW_SWITCH(TYPE, NAME, WW_FLOATING(__VA_ARGS__) WW_NARROW(__VA_ARGS__))
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) WW_SWITCH(TYPE, NAME, WW_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) WW_SWITCH(TYPE, NAME, WW_FLOATING(__VA_ARGS__) WW_INTEGRAL(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) WW_SWITCH(TYPE, NAME, WW_FLOATING(__VA_ARGS__) WW_INTEGRAL(__VA_ARGS__) WW_NARROW(__VA_ARGS__))

