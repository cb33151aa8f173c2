// What crosses the border to the caller: results, and questions that the caller's torch or Python answers.
namespace ww {
enum { kText = 7, kObject = 8 };  // an object is the number of a Python object that the caller keeps until the call ends
static inline at::Tensor tensor_of(const Value& v) {
  TORCH_CHECK(v.kind == kTensor, "expected a Tensor as argument");
  at::Tensor t;
  t.owner = v.owner, t.element = (c10::ScalarType)v.type, t.base = v.data;
  t.shape.assign(v.sizes, v.sizes + v.rank), t.steps.assign(v.strides, v.strides + v.rank);
  return t;
}
struct Results {
  std::vector<Value> values;
  void add(const Value& v) { values.push_back(v); }
  void add(const at::Tensor& t) {
    Value v{};
    v.kind = t.defined() ? kTensor : kNone, v.type = (int)t.element, v.rank = (int)t.dim(), v.owner = t.owner, v.data = t.base;
    std::copy(t.shape.begin(), t.shape.end(), v.sizes), std::copy(t.steps.begin(), t.steps.end(), v.strides);
    values.push_back(v);
  }
  void add(const std::vector<at::Tensor>& list) {
    Value v{};
    v.kind = kTensors, v.integer = (int64_t)list.size();
    values.push_back(v);
    for (const auto& t : list) add(t);
  }
  template <class... T> void add(const std::tuple<T...>& all) { add(std::apply([](const auto&... one) { return std::vector<at::Tensor>{one...}; }, all)); }
  template <class A, class B> void add(const std::pair<A, B>& two) { add(std::vector<at::Tensor>{two.first, two.second}); }
  template <class T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0> void add(T x) {
    Value v{};
    v.kind = std::is_same_v<T, bool> ? kBoolean : std::is_integral_v<T> ? kInteger : kNumber;
    v.integer = (int64_t)x, v.number = (double)x;
    values.push_back(v);
  }
};
struct Given : Results {  // a text has to outlive the question
  using Results::add;
  template <class T> void add(const std::optional<T>& one) {
    bool there = one.has_value();
    if constexpr (std::is_same_v<T, at::Tensor>) there = there && one->defined();
    if (there) add(*one); else values.push_back(Value{});
  }
  void add(const c10::IntArrayRef& list) {
    Value v{};
    v.kind = kIntegers, v.rank = (int)list.size();
    std::copy(list.begin(), list.end(), v.sizes);
    values.push_back(v);
  }
  void add(const char* text) {
    Value v{};
    v.kind = kText, v.data = const_cast<char*>(text);
    values.push_back(v);
  }
  void add(const std::string& text) { add(text.c_str()); }
};
typedef int (*Library)(const char* name, const Value* given, int count, Value* made);
inline Library& library() { static Library f = nullptr; return f; }
template <class... A> static Value ask_value(const char* name, const A&... given) {
  Given all;
  (all.add(given), ...);
  Value made{};
  TORCH_CHECK(library() && library()(name, all.values.data(), (int)all.values.size(), &made) == 0, name[0] == '.' ? "Python's " : "torch's ", name[0] == '.' ? name + 1 : name, " failed");
  return made;
}
template <class... A> static at::Tensor ask(const char* name, const A&... given) { return tensor_of(ask_value(name, given...)); }
static inline std::vector<Value> items_of(const Value& list) {
  std::vector<Value> items((size_t)ask_value(".len", list).integer);
  for (size_t i = 0; i < items.size(); ++i) items[i] = ask_value(".item", list, (int64_t)i);
  return items;
}
template <class... A> static std::vector<at::Tensor> ask_several(const char* name, const A&... given) {
  std::vector<at::Tensor> all;
  for (const Value& v : items_of(ask_value(name, given...))) all.push_back(tensor_of(v));
  return all;
}
}  // namespace ww
extern "C" void ww_library_with(ww::Library f) { ww::library() = f; }
