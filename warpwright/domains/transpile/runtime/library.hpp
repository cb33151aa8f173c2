// Functions of torch's library that host code calls around its kernels: handed back to the caller, who asks torch. Signatures as ATen's.
#include <map>

namespace ww {
enum { kText = 7 };
typedef int (*Library)(const char* name, const Value* given, int count, Value* made);
inline Library& library() { static Library f = nullptr; return f; }
struct Given : Results {
  using Results::add;
  void add(const std::optional<at::Tensor>& t) { if (t && t->defined()) Results::add(*t); else values.push_back(Value{}); }
  void add(const c10::IntArrayRef& list) {
    Value v{};
    v.kind = kIntegers, v.rank = (int)list.size();
    std::copy(list.begin(), list.end(), v.sizes);
    values.push_back(v);
  }
  void add(const std::string& text) {
    Value v{};
    v.kind = kText, v.data = const_cast<char*>(text.c_str());
    values.push_back(v);
  }
};
template <class... A> static at::Tensor ask(const char* name, const A&... given) {
  Given all;
  (all.add(given), ...);
  Value made{};
  TORCH_CHECK(library() && library()(name, all.values.data(), (int)all.values.size(), &made) == 0, "torch's ", name, " failed");
  return tensor_of(made);
}
}  // namespace ww
extern "C" void ww_library_with(ww::Library f) { ww::library() = f; }

namespace at {
using Some = c10::optional<Tensor>;
using Ints = IntArrayRef;
#define WW_CONVOLUTIONS(D) \
  static inline Tensor conv##D(const Tensor& x, const Tensor& w, const Some& b = {}, Ints stride = 1, Ints padding = 0, Ints dilation = 1, int64_t groups = 1) { \
    return ww::ask("conv" #D, x, w, b, stride, padding, dilation, groups); } \
  static inline Tensor conv_transpose##D(const Tensor& x, const Tensor& w, const Some& b = {}, Ints stride = 1, Ints padding = 0, Ints output_padding = 0, \
                                         int64_t groups = 1, Ints dilation = 1) { \
    return ww::ask("conv_transpose" #D, x, w, b, stride, padding, output_padding, groups, dilation); } \
  static inline Tensor max_pool##D(const Tensor& x, Ints kernel, Ints stride = {}, Ints padding = 0, Ints dilation = 1, bool ceil = false) { \
    return ww::ask("max_pool" #D, x, kernel, stride, padding, dilation, ceil); } \
  static inline Tensor avg_pool##D(const Tensor& x, Ints kernel, Ints stride = {}, Ints padding = 0, bool ceil = false, bool with_padding = true) { \
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
WW_UNARY(relu) WW_UNARY(relu6) WW_UNARY(sigmoid) WW_UNARY(tanh) WW_UNARY(exp) WW_UNARY(log) WW_UNARY(sqrt) WW_UNARY(abs) WW_UNARY(silu) WW_UNARY(mish)
static inline Tensor gelu(const Tensor& x, const std::string& approximate = "none") { return ww::ask("gelu", x, approximate); }
static inline Tensor softmax(const Tensor& x, int64_t axis) { return ww::ask("softmax", x, axis); }
static inline Tensor log_softmax(const Tensor& x, int64_t axis) { return ww::ask("log_softmax", x, axis); }
static inline Tensor dropout(const Tensor& x, double p, bool training) { return ww::ask("dropout", x, p, training); }
static inline Tensor clamp(const Tensor& x, double low, double high) { return ww::ask("clamp", x, low, high); }
static inline Tensor sum(const Tensor& x, Ints axes, bool keep = false) { return ww::ask("sum", x, axes, keep); }
static inline Tensor mean(const Tensor& x, Ints axes, bool keep = false) { return ww::ask("mean", x, axes, keep); }
static inline Tensor cumsum(const Tensor& x, int64_t axis) { return ww::ask("cumsum", x, axis); }
static inline Tensor tril(const Tensor& x, int64_t diagonal = 0) { return ww::ask("tril", x, diagonal); }
static inline Tensor roll(const Tensor& x, Ints shifts, Ints axes = {}) { return ww::ask("roll", x, shifts, axes); }
static inline Tensor constant_pad_nd(const Tensor& x, Ints pad, double value = 0) { return ww::ask("constant_pad_nd", x, pad, value); }
static inline Tensor cat(const std::vector<Tensor>& all, int64_t axis = 0) { return ww::ask("cat", all, axis); }
static inline Tensor stack(const std::vector<Tensor>& all, int64_t axis = 0) { return ww::ask("stack", all, axis); }
static inline Tensor einsum(const std::string& equation, const std::vector<Tensor>& all) { return ww::ask("einsum", equation, all); }
static inline Tensor addmm(const Tensor& c, const Tensor& a, const Tensor& b) { return ww::ask("addmm", c, a, b); }
#define WW_BINARY(NAME) static inline Tensor NAME(const Tensor& a, const Tensor& b) { return ww::ask(#NAME, a, b); }
WW_BINARY(matmul) WW_BINARY(mm) WW_BINARY(bmm) WW_BINARY(add) WW_BINARY(sub) WW_BINARY(mul) WW_BINARY(div)
#define WW_OPERATOR(SIGN, NAME) \
  static inline Tensor operator SIGN(const Tensor& a, const Tensor& b) { return NAME(a, b); } \
  static inline Tensor& operator SIGN##=(Tensor& a, const Tensor& b) { return a.copy_(NAME(a, b)); }
WW_OPERATOR(+, add) WW_OPERATOR(-, sub) WW_OPERATOR(*, mul) WW_OPERATOR(/, div)
}  // namespace at
