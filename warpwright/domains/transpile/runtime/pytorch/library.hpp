// Functions of torch's library that host code calls around its kernels: handed back to the caller, who asks torch. Signatures as ATen's.
namespace at {
using Some = c10::optional<Tensor>;
using Ints = IntArrayRef;
using Number = c10::optional<double>;
#define WW_CONVOLUTIONS(D) \
  static inline Tensor conv##D(const Tensor& x, const Tensor& w, const Some& b = {}, Ints stride = 1, Ints padding = 0, Ints dilation = 1, int64_t groups = 1) { \
    return ww::ask("conv" #D, x, w, b, stride, padding, dilation, groups); } \
  static inline Tensor conv_transpose##D(const Tensor& x, const Tensor& w, const Some& b = {}, Ints stride = 1, Ints padding = 0, Ints output_padding = 0, \
                                         int64_t groups = 1, Ints dilation = 1) { \
    return ww::ask("conv_transpose" #D, x, w, b, stride, padding, output_padding, groups, dilation); } \
  static inline Tensor max_pool##D(const Tensor& x, Ints kernel, Ints stride = {}, Ints padding = 0, Ints dilation = 1, bool ceil = false) { \
    return ww::ask("max_pool" #D, x, kernel, stride, padding, dilation, ceil); } \
  static inline Tensor avg_pool##D(const Tensor& x, Ints kernel, Ints stride = {}, Ints padding = 0, bool ceil = false, bool with_padding = true, \
                                   c10::optional<int64_t> divisor = {}) { \
    if (divisor) return ww::ask("avg_pool" #D, x, kernel, stride, padding, ceil, with_padding, divisor); \
    return ww::ask("avg_pool" #D, x, kernel, stride, padding, ceil, with_padding); } \
  static inline Tensor adaptive_avg_pool##D(const Tensor& x, Ints size) { return ww::ask("adaptive_avg_pool" #D, x, size); }
WW_CONVOLUTIONS(1d) WW_CONVOLUTIONS(2d) WW_CONVOLUTIONS(3d)
static inline Tensor linear(const Tensor& x, const Tensor& w, const Some& b = {}) { return ww::ask("linear", x, w, b); }
static inline Tensor batch_norm(const Tensor& x, const Some& w, const Some& b, const Some& mean, const Some& var, bool training, double momentum, double eps, bool cudnn) {
  return ww::ask("batch_norm", x, w, b, mean, var, training, momentum, eps, cudnn); }
static inline Tensor instance_norm(const Tensor& x, const Some& w, const Some& b, const Some& mean, const Some& var, bool own, double momentum, double eps, bool cudnn) {
  return ww::ask("instance_norm", x, w, b, mean, var, own, momentum, eps, cudnn); }
static inline Tensor layer_norm(const Tensor& x, Ints sizes, const Some& w = {}, const Some& b = {}, double eps = 1e-5, bool cudnn = true) {
  return ww::ask("layer_norm", x, sizes, w, b, eps, cudnn); }
static inline Tensor group_norm(const Tensor& x, int64_t groups, const Some& w = {}, const Some& b = {}, double eps = 1e-5, bool cudnn = true) {
  return ww::ask("group_norm", x, groups, w, b, eps, cudnn); }
#define WW_UNARY(NAME) static inline Tensor NAME(const Tensor& x) { return ww::ask(#NAME, x); } \
  static inline Tensor NAME##_(Tensor x) { return x.copy_(NAME(x)); }
WW_METHODS(WW_UNARY) WW_UNARY(relu6) WW_UNARY(mish) WW_UNARY(hardswish) WW_UNARY(hardsigmoid) WW_UNARY(softplus) WW_UNARY(selu) WW_UNARY(logical_not)
#define WW_UNARY_METHOD(NAME) inline Tensor Tensor::NAME() const { return at::NAME(*this); } inline Tensor& Tensor::NAME##_() { return copy_(at::NAME(*this)); }
WW_METHODS(WW_UNARY_METHOD)
static inline Tensor gelu(const Tensor& x, const std::string& approximate = "none") { return ww::ask("gelu", x, approximate); }
static inline Tensor leaky_relu(const Tensor& x, double slope = 0.01) { return ww::ask("leaky_relu", x, slope); }
static inline Tensor elu(const Tensor& x, double alpha = 1) { return ww::ask("elu", x, alpha); }
static inline Tensor hardtanh(const Tensor& x, double low = -1, double high = 1) { return ww::ask("hardtanh", x, low, high); }
static inline Tensor softmax(const Tensor& x, int64_t axis) { return ww::ask("softmax", x, axis); }
static inline Tensor log_softmax(const Tensor& x, int64_t axis) { return ww::ask("log_softmax", x, axis); }
static inline Tensor logsumexp(const Tensor& x, Ints axes, bool keep = false) { return ww::ask("logsumexp", x, axes, keep); }
static inline Tensor dropout(const Tensor& x, double p, bool training) { return ww::ask("dropout", x, p, training); }
static inline Tensor clamp(const Tensor& x, Number low = {}, Number high = {}) { return ww::ask("clamp", x, low, high); }
static inline Tensor clamp(const Tensor& x, const Some& low, const Some& high) { return ww::ask("clamp", x, low, high); }
static inline Tensor norm(const Tensor& x, double p, Ints axes, bool keep = false) { return ww::ask("norm", x, p, axes, keep); }
static inline Tensor flatten(const Tensor& x, int64_t first = 0, int64_t last = -1) { return x.flatten(first, last); }
static inline Tensor reshape(const Tensor& x, Ints sizes) { return x.reshape(sizes); }
static inline Tensor transpose(const Tensor& x, int64_t a, int64_t b) { return x.transpose(a, b); }
static inline Tensor permute(const Tensor& x, Ints order) { return x.permute(order); }
static inline Tensor unsqueeze(const Tensor& x, int64_t axis) { return x.unsqueeze(axis); }
static inline Tensor squeeze(const Tensor& x, int64_t axis) { return x.squeeze(axis); }
static inline std::vector<Tensor> chunk(const Tensor& x, int64_t count, int64_t axis = 0) { return x.chunk(count, axis); }
static inline Tensor clamp_min(const Tensor& x, double low) { return clamp(x, low); }
static inline Tensor clamp_max(const Tensor& x, double high) { return clamp(x, {}, high); }
static inline Tensor sum(const Tensor& x, Ints axes, bool keep = false) { return ww::ask("sum", x, axes, keep); }
static inline Tensor mean(const Tensor& x, Ints axes, bool keep = false) { return ww::ask("mean", x, axes, keep); }
static inline Tensor cumsum(const Tensor& x, int64_t axis) { return ww::ask("cumsum", x, axis); }
static inline Tensor pow(const Tensor& x, double v) { return ww::ask("pow", x, v); }
static inline Tensor tril(const Tensor& x, int64_t diagonal = 0) { return ww::ask("tril", x, diagonal); }
static inline Tensor triu(const Tensor& x, int64_t diagonal = 0) { return ww::ask("triu", x, diagonal); }
static inline Tensor roll(const Tensor& x, Ints shifts, Ints axes = {}) { return ww::ask("roll", x, shifts, axes); }
static inline Tensor constant_pad_nd(const Tensor& x, Ints pad, double value = 0) { return ww::ask("constant_pad_nd", x, pad, value); }
static inline Tensor pad(const Tensor& x, Ints by, const std::string& mode = "constant", Number value = {}) { return ww::ask("pad", x, by, mode, value); }
static inline Tensor cat(const std::vector<Tensor>& all, int64_t axis = 0) { return ww::ask("cat", all, axis); }
static inline Tensor stack(const std::vector<Tensor>& all, int64_t axis = 0) { return ww::ask("stack", all, axis); }
static inline Tensor einsum(const std::string& equation, const std::vector<Tensor>& all) { return ww::ask("einsum", equation, all); }
static inline Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b) { return ww::ask("addmm", c, a, b); }
static inline Tensor rand(Ints sizes, TensorOptions o = {}) { return ww::ask("rand", sizes).to(o.type); }
static inline Tensor randn(Ints sizes, TensorOptions o = {}) { return ww::ask("randn", sizes).to(o.type); }
static inline Tensor where(const Tensor& which, const Tensor& a, const Tensor& b) { return ww::ask("where", which, a, b); }
static inline std::tuple<Tensor, Tensor> two(const std::vector<Tensor>& made) { return {made.at(0), made.at(1)}; }
static inline std::tuple<Tensor, Tensor> gru(const Tensor& x, const Tensor& h, const std::vector<Tensor>& w, bool biases, int64_t layers, double dropout, bool train, bool both, bool batch_first) {
  return two(ww::ask_several("gru", x, h, w, biases, layers, dropout, train, both, batch_first)); }
static inline std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& x, const std::vector<Tensor>& h, const std::vector<Tensor>& w, bool biases, int64_t layers, double dropout, bool train, bool both, bool batch_first) {
  const auto made = ww::ask_several("lstm", x, h, w, biases, layers, dropout, train, both, batch_first);
  return {made.at(0), made.at(1), made.at(2)}; }
#define WW_BINARY(NAME) static inline Tensor NAME(const Tensor& a, const Tensor& b) { return ww::ask(#NAME, a, b); }
WW_BINARIES(WW_BINARY) WW_BINARY(matmul) WW_BINARY(mm) WW_BINARY(bmm) WW_BINARY(maximum) WW_BINARY(minimum) WW_BINARY(eq) WW_BINARY(ne) WW_BINARY(lt) WW_BINARY(le) WW_BINARY(gt) WW_BINARY(ge)
#define WW_OPERATOR(SIGN, NAME) \
  static inline Tensor operator SIGN(const Tensor& a, const Tensor& b) { return NAME(a, b); } \
  static inline Tensor& operator SIGN##=(Tensor& a, const Tensor& b) { return a.copy_(NAME(a, b)); } \
  static inline Tensor operator SIGN(double a, const Tensor& b) { return NAME(full_like(b, a), b); } \
  static inline Tensor& operator SIGN##=(Tensor& a, double b) { return a.NAME##_(b); } \
  inline Tensor Tensor::NAME(const Tensor& o) const { return at::NAME(*this, o); } \
  inline Tensor& Tensor::NAME##_(const Tensor& o) { return copy_(at::NAME(*this, o)); }
WW_OPERATOR(+, add) WW_OPERATOR(-, sub) WW_OPERATOR(*, mul) WW_OPERATOR(/, div)
#define WW_COMPARE(SIGN, NAME) \
  static inline Tensor operator SIGN(const Tensor& a, const Tensor& b) { return NAME(a, b); } \
  static inline Tensor operator SIGN(const Tensor& a, double b) { return NAME(a, full_like(a, b)); }
WW_COMPARE(==, eq) WW_COMPARE(!=, ne) WW_COMPARE(<, lt) WW_COMPARE(<=, le) WW_COMPARE(>, gt) WW_COMPARE(>=, ge)
static inline Tensor operator-(const Tensor& x) { return neg(x); }
static inline Tensor operator~(const Tensor& x) { return logical_not(x); }

inline Tensor Tensor::sum(Ints axes, bool keep) const { return at::sum(*this, axes, keep); }
inline Tensor Tensor::mean(Ints axes, bool keep) const { return at::mean(*this, axes, keep); }
#define WW_EXTREME(NAME) \
  static inline Tensor NAME(const Tensor& x) { return ww::ask(#NAME, x); } \
  static inline std::tuple<Tensor, Tensor> NAME(const Tensor& x, int64_t axis, bool keep = false) { return two(ww::ask_several(#NAME, x, axis, keep)); } \
  inline Tensor Tensor::NAME() const { return at::NAME(*this); } \
  inline std::tuple<Tensor, Tensor> Tensor::NAME(int64_t axis, bool keep) const { return at::NAME(*this, axis, keep); }
WW_EXTREME(min) WW_EXTREME(max)
inline Tensor Tensor::norm(double p, Ints axes, bool keep) const { return at::norm(*this, p, axes, keep); }
inline Tensor Tensor::matmul(const Tensor& o) const { return at::matmul(*this, o); }
inline Tensor Tensor::mm(const Tensor& o) const { return at::mm(*this, o); }
inline Tensor Tensor::bmm(const Tensor& o) const { return at::bmm(*this, o); }
inline Tensor& Tensor::addmm_(const Tensor& a, const Tensor& b) { return copy_(addmm(*this, a, b)); }
inline Tensor Tensor::pow(double v) const { return at::pow(*this, v); }
inline Tensor Tensor::softmax(int64_t axis) const { return at::softmax(*this, axis); }
inline Tensor Tensor::clamp(Number low, Number high) const { return at::clamp(*this, low, high); }
inline Tensor& Tensor::clamp_(Number low, Number high) { return copy_(at::clamp(*this, low, high)); }
inline Tensor Tensor::cumsum(int64_t axis) const { return at::cumsum(*this, axis); }
inline Tensor Tensor::masked_fill(const Tensor& mask, double v) const { return ww::ask("masked_fill", *this, mask, v); }
inline Tensor Tensor::repeat(Ints times) const { return ww::ask("repeat", *this, times); }
inline Tensor Tensor::index_select(int64_t axis, const Tensor& which) const { return ww::ask("index_select", *this, axis, which); }
inline std::vector<Tensor> Tensor::split(int64_t each, int64_t axis) const { return ww::ask_several("split", *this, each, axis); }
inline std::vector<Tensor> Tensor::split(Ints sizes, int64_t axis) const { return ww::ask_several("split_with_sizes", *this, sizes, axis); }
inline std::vector<Tensor> Tensor::chunk(int64_t count, int64_t axis) const { return ww::ask_several("chunk", *this, count, axis); }

struct NoneIndex {};
struct EllipsisIndex {};
struct Slice {
  c10::optional<int64_t> first, end;
  int64_t step;
  static c10::optional<int64_t> at(NoneIndex) { return {}; }
  static c10::optional<int64_t> at(int64_t i) { return i; }
  Slice() : step(1) {}
  template <class A, class B = NoneIndex> Slice(A a, B b = {}, int64_t s = 1) : first(at(a)), end(at(b)), step(s) {}
};
struct TensorIndex {
  enum { kOne, kSlice, kNew, kRest, kList } kind;
  int64_t one = 0;
  Slice slice;
  Tensor list;
  template <class T, std::enable_if_t<std::is_integral_v<T>, int> = 0> TensorIndex(T i) : kind(kOne), one((int64_t)i) {}
  TensorIndex(Slice s) : kind(kSlice), slice(s) {}
  TensorIndex(NoneIndex) : kind(kNew) {}
  TensorIndex(EllipsisIndex) : kind(kRest) {}
  TensorIndex(const char*) : kind(kRest) {}
  TensorIndex(Tensor t) : kind(kList), list(std::move(t)) {}
};
inline Tensor Tensor::index(const std::vector<TensorIndex>& all) const {
  Tensor t = *this;
  int64_t axis = 0, used = 0, lists = 0;
  for (const auto& i : all) used += i.kind != TensorIndex::kNew && i.kind != TensorIndex::kRest, lists += i.kind == TensorIndex::kList;
  TORCH_CHECK(used <= dim() && lists <= 1, "an index by more than one tensor is not translated");
  for (const auto& i : all) {
    if (i.kind == TensorIndex::kOne) t = t.select(axis, i.one);
    else if (i.kind == TensorIndex::kSlice) t = t.slice(axis++, i.slice.first, i.slice.end, i.slice.step);
    else if (i.kind == TensorIndex::kNew) t = t.unsqueeze(axis++);
    else if (i.kind == TensorIndex::kRest) axis += dim() - used;
    else {
      TORCH_CHECK(i.list.element == ScalarType::Long || i.list.element == ScalarType::Int, "an index by a tensor of ", i.list.element, " is not translated");
      std::vector<int64_t> sizes = t.shape;
      sizes.erase(sizes.begin() + axis), sizes.insert(sizes.begin() + axis, i.list.shape.begin(), i.list.shape.end());
      t = t.index_select(axis, i.list.reshape(-1)).reshape(sizes), axis += i.list.dim();
    }
  }
  return t;
}
namespace indexing {
using at::Slice, at::TensorIndex;
static constexpr NoneIndex None{};
static constexpr EllipsisIndex Ellipsis{};
}  // namespace indexing
}  // namespace at

// torch::nn::functional: each function with its options in one structure.
namespace torch { namespace nn { namespace functional {
using namespace at;
#define WW_OPTION(T, NAME, VALUE) T NAME##_v = VALUE; Options& NAME(T v) { NAME##_v = v; return *this; }
struct Options {
  Options() = default;
  explicit Options(Ints first) : dim_v(first.size() ? first[0] : 0), kernel_v(first) {}
  WW_OPTION(Some, bias, {}) WW_OPTION(Some, weight, {}) WW_OPTION(Ints, stride, {}) WW_OPTION(Ints, padding, 0) WW_OPTION(Ints, output_padding, 0) WW_OPTION(Ints, dilation, 1)
  WW_OPTION(int64_t, groups, 1) WW_OPTION(double, p, -1) WW_OPTION(bool, training, true) WW_OPTION(bool, inplace, false) WW_OPTION(int64_t, dim, 1) WW_OPTION(double, eps, -1)
  WW_OPTION(bool, ceil_mode, false)
  Ints kernel_v;
  Ints stride_or_1() const { return stride_v.empty() ? Ints(1) : stride_v; }
  double or_else(double v, double usual) const { return v < 0 ? usual : v; }
};
#define WW_FUNCTIONALS(D, N) \
  using Conv##N##FuncOptions = Options; using ConvTranspose##N##FuncOptions = Options; using MaxPool##N##FuncOptions = Options; using AvgPool##N##FuncOptions = Options; \
  static inline Tensor conv##D(const Tensor& x, const Tensor& w, const Options& o) { return at::conv##D(x, w, o.bias_v, o.stride_or_1(), o.padding_v, o.dilation_v, o.groups_v); } \
  static inline Tensor conv_transpose##D(const Tensor& x, const Tensor& w, const Options& o) { \
    return at::conv_transpose##D(x, w, o.bias_v, o.stride_or_1(), o.padding_v, o.output_padding_v, o.groups_v, o.dilation_v); } \
  static inline Tensor max_pool##D(const Tensor& x, const Options& o) { return at::max_pool##D(x, o.kernel_v, o.stride_v, o.padding_v, o.dilation_v, o.ceil_mode_v); } \
  static inline Tensor avg_pool##D(const Tensor& x, const Options& o) { return at::avg_pool##D(x, o.kernel_v, o.stride_v, o.padding_v, o.ceil_mode_v); }
WW_FUNCTIONALS(1d, 1d) WW_FUNCTIONALS(2d, 2d) WW_FUNCTIONALS(3d, 3d)
using DropoutFuncOptions = Options; using NormalizeFuncOptions = Options; using SoftmaxFuncOptions = Options;
static inline Tensor dropout(const Tensor& x, const Options& o = {}) { return at::dropout(x, o.or_else(o.p_v, 0.5), o.training_v); }
static inline Tensor normalize(const Tensor& x, const Options& o = {}) { return ww::ask("functional.normalize", x, o.or_else(o.p_v, 2), o.dim_v, o.or_else(o.eps_v, 1e-12)); }
static inline Tensor softmax(const Tensor& x, const Options& o) { return at::softmax(x, o.dim_v); }
}}}  // namespace torch::nn::functional
