#include <memory>
// What the module offers: functions by name, with the arguments' names and defaults.
namespace pybind11 {
struct arg {
  std::string name;
  std::optional<ww::Value> fallback;
  explicit arg(const char* n) : name(n) {}
  template <class T> arg& operator=(const T& v) {
    ww::Value made{};
    if constexpr (std::is_same_v<T, bool>) made.kind = ww::kBoolean, made.integer = v;
    else if constexpr (std::is_integral_v<T>) made.kind = ww::kInteger, made.integer = v;
    else if constexpr (std::is_floating_point_v<T>) made.kind = ww::kNumber, made.number = v;
    fallback = made;
    return *this;
  }
};
class object {  // a Python object; what is no tensor, number, text or None stays with the caller and is asked about
 protected:
  ww::Value held{};
  std::shared_ptr<std::string> text;
  mutable std::shared_ptr<std::vector<object>> members;
  struct owned {};
  object(owned, std::string s) : text(std::make_shared<std::string>(std::move(s))) { held.kind = ww::kText, held.data = text->data(); }
 public:
  object() = default;
  explicit object(const ww::Value& v) : held(v) {}
  static object of(const std::string& s) { return object(owned{}, s); }
  static object of(const char* s) { return object(owned{}, s); }
  template <class T> static object of(const T& v) {
    if constexpr (std::is_base_of_v<object, T>) return v;
    else {
      ww::Results one;
      one.add(v);
      return object(one.values.at(0));
    }
  }
  bool is_none() const { return held.kind == ww::kNone; }
  bool is(const object& o) const {
    return held.kind == o.held.kind && (is_none() || (held.kind == ww::kTensor ? held.data == o.held.data : held.integer == o.held.integer));
  }
  object attr(const std::string& name) const { return object(ww::ask_value(".attr", held, name)); }
  template <class... A> object operator()(const A&... given) const { return object(call(of(given)...)); }
  template <class K> object operator[](const K& key) const { return object(ww::ask_value(".item", held, of(key).held)); }
  template <class K> bool contains(const K& key) const { return ww::ask_value(".contains", held, of(key).held).integer != 0; }
  size_t size() const { return (size_t)ww::ask_value(".len", held).integer; }
  bool empty() const { return size() == 0; }
  template <class T> T cast() const;
  const ww::Value& value() const { return held; }
  const object* ptr() const { return this; }
  auto begin() const { return all().begin(); }
  auto end() const { return all().end(); }
  const std::vector<object>& all() const {
    if (!members) {
      members = std::make_shared<std::vector<object>>();
      for (const ww::Value& v : ww::items_of(ww::ask_value(".list", held))) members->emplace_back(v);
    }
    return *members;
  }
  object as(const char* type) const { return object(ww::ask_value(".as", held, type)); }
  bool of_type(const char* type) const { return ww::ask_value(".isinstance", held, type).integer != 0; }
 private:
  template <class... O> ww::Value call(const O&... given) const { return ww::ask_value(".call", held, given.held...); }
};
using handle = object;
using cast_error = std::runtime_error;
using error_already_set = std::runtime_error;
#define WW_PYTHON(NAME, TYPE) \
  struct NAME : object { static constexpr const char* type = TYPE; NAME() : object(object().as(TYPE)) {} NAME(const object& o) : object(o.of_type(TYPE) ? o : o.as(TYPE)) {}
WW_PYTHON(list, "list") };
WW_PYTHON(tuple, "tuple") };
WW_PYTHON(sequence, "Sequence") };
WW_PYTHON(str, "str") str(const char* s) : object(object::of(s)) {} str(const std::string& s) : object(object::of(s)) {} operator std::string() const { return cast<std::string>(); } };
WW_PYTHON(int_, "int") int_(int64_t v) : object(object::of(v)) {} operator int64_t() const { return held.integer; } };
WW_PYTHON(float_, "float") float_(double v) : object(object::of(v)) {} operator double() const { return held.number; } };
WW_PYTHON(bool_, "bool") bool_(bool v) : object(object::of(v)) {} operator bool() const { return held.integer != 0; } };
WW_PYTHON(dict, "dict")
  mutable std::shared_ptr<std::vector<std::pair<object, object>>> pairs;
  const std::vector<std::pair<object, object>>& both() const {
    if (!pairs) {
      pairs = std::make_shared<std::vector<std::pair<object, object>>>();
      for (const object& key : all()) pairs->emplace_back(key, (*this)[key]);
    }
    return *pairs;
  }
  auto begin() const { return both().begin(); }
  auto end() const { return both().end(); }
};
struct none : object {};
static inline bool hasattr(const object& o, const std::string& name) { return ww::ask_value(".hasattr", o.value(), name).integer != 0; }
static inline size_t len(const object& o) { return o.size(); }
template <class T> static bool isinstance(const object& o) {
  if constexpr (std::is_base_of_v<object, T>) return o.of_type(T::type);
  else return o.value().kind == ww::kTensor;
}
template <class T> static T cast(const object& o) { return o.cast<T>(); }
template <class... T> struct call_guard {};
struct gil_scoped_release {};
}  // namespace pybind11
namespace py = pybind11;
static inline int PyMapping_HasKeyString(const py::object* o, const char* key) { return o->contains(key); }
namespace torch { using py::arg; }

namespace ww {
class Arguments {
  const Value* at;
  const Value* last;
 public:
  Arguments(const Value* a, int n) : at(a), last(a + n) {}
  const Value& next() { TORCH_CHECK(at < last, "too few arguments"); return *at++; }
  void finish() const { TORCH_CHECK(at == last, "too many arguments"); }
};
template <class T> struct take { static T from(Arguments& a) {
  const Value& v = a.next();
  if constexpr (std::is_enum_v<T>) return (T)v.integer;
  else {
    static_assert(std::is_arithmetic_v<T>, "an argument of this type is not translated");
    TORCH_CHECK(v.kind == kInteger || v.kind == kBoolean || (v.kind == kNumber && std::is_floating_point_v<T>), "expected a number as argument");
    return v.kind == kNumber ? (T)v.number : (T)v.integer;
  }
} };
template <> struct take<at::Tensor> { static at::Tensor from(Arguments& a) { return tensor_of(a.next()); } };
template <> struct take<std::string> { static std::string from(Arguments& a) {
  const Value& v = a.next();
  TORCH_CHECK(v.kind == kText, "expected a text as argument");
  return v.data;
} };
template <> struct take<py::object> { static py::object from(Arguments& a) {
  Value v = a.next();
  if (v.kind == kTensors) for (int64_t i = 0; i < v.integer; ++i) a.next();
  if (v.kind == kTensors || v.kind == kIntegers) v.integer = v.owner, v.kind = kObject;
  return py::object(v);
} };
#define WW_TAKE(T) template <> struct take<py::T> { static py::T from(Arguments& a) { \
  const py::object o = take<py::object>::from(a); \
  TORCH_CHECK(o.of_type(py::T::type), "expected a ", py::T::type, " as argument"); \
  return py::T(o); \
} };
WW_TAKE(dict) WW_TAKE(list) WW_TAKE(tuple) WW_TAKE(sequence) WW_TAKE(str) WW_TAKE(int_) WW_TAKE(float_) WW_TAKE(bool_)
template <class T> struct take<std::vector<T>> { static std::vector<T> from(Arguments& a) {
  const py::object list = take<py::object>::from(a);
  TORCH_CHECK(list.value().kind == kObject, "expected a list as argument");
  std::vector<T> made;
  for (const Value& v : items_of(list.value())) made.push_back(py::object(v).template cast<T>());
  return made;
} };
template <> struct take<std::vector<int64_t>> { static std::vector<int64_t> from(Arguments& a) {
  const Value& v = a.next();
  if (v.kind == kIntegers) return {v.sizes, v.sizes + v.rank};
  TORCH_CHECK(v.kind == kObject, "expected a list of integers as argument");
  std::vector<int64_t> made;
  for (const Value& one : items_of(v)) made.push_back(py::object(one).cast<int64_t>());
  return made;
} };
template <> struct take<c10::IntArrayRef> { static c10::IntArrayRef from(Arguments& a) { return take<std::vector<int64_t>>::from(a); } };
template <class... T> struct take<std::tuple<T...>> { static std::tuple<T...> from(Arguments& a) {
  const auto items = take<std::vector<py::object>>::from(a);
  TORCH_CHECK(items.size() == sizeof...(T), "expected ", sizeof...(T), " values as argument");
  size_t i = 0;
  return {items[i++].template cast<T>()...};
} };
template <class A, class B> struct take<std::pair<A, B>> { static std::pair<A, B> from(Arguments& a) {
  const auto both = take<std::tuple<A, B>>::from(a);
  return {std::get<0>(both), std::get<1>(both)};
} };
template <class M> static M take_map(Arguments& a) {
  M made;
  for (const auto& [key, value] : take<py::dict>::from(a)) made[key.template cast<typename M::key_type>()] = value.template cast<typename M::mapped_type>();
  return made;
}
template <class K, class T> struct take<std::map<K, T>> { static std::map<K, T> from(Arguments& a) { return take_map<std::map<K, T>>(a); } };
template <class K, class T> struct take<std::unordered_map<K, T>> { static std::unordered_map<K, T> from(Arguments& a) { return take_map<std::unordered_map<K, T>>(a); } };
template <class T> struct take<std::optional<T>> { static std::optional<T> from(Arguments& a) {
  Arguments ahead = a;
  if (ahead.next().kind == kNone) { a = ahead; return std::nullopt; }
  return take<T>::from(a);
} };
}  // namespace ww
template <class T> T pybind11::object::cast() const {
  if constexpr (std::is_base_of_v<object, std::decay_t<T>>) return std::decay_t<T>(*this);  // as Python's dict(o) does: an argument is not converted
  else {
    ww::Arguments one(&held, 1);
    return ww::take<std::decay_t<T>>::from(one);
  }
}
namespace ww {
using Wrapped = std::function<void(Arguments&, Results&)>;
template <class R, class... A> static Wrapped wrap(R (*f)(A...)) {
  return [f](Arguments& given, Results& out) {
    std::tuple<std::decay_t<A>...> held{take<std::decay_t<A>>::from(given)...};  // braces: from left to right
    given.finish();
    if constexpr (std::is_void_v<R>) std::apply(f, held);
    else out.add(std::apply(f, held));
  };
}
struct Bound { std::string name; std::vector<py::arg> arguments; Wrapped call; };
inline std::vector<Bound>& bound() { static std::vector<Bound> all; return all; }
struct Module {
  template <class F> static auto wrapped(F f) { if constexpr (std::is_pointer_v<F>) return wrap(f); else return wrap(+f); }
  static void note(Bound& b, const py::arg& a) { b.arguments.push_back(a); }
  template <class T> static void note(Bound&, const T&) {}
  template <class F, class... Extra> Module& def(const char* name, F f, const Extra&... extra) {
    Bound b{name, {}, wrapped(f)};
    (note(b, extra), ...);
    bound().push_back(std::move(b));
    return *this;
  }
  struct Doc { template <class T> Doc& operator=(const T&) { return *this; } };
  Doc doc() const { return {}; }
  Doc attr(const char*) const { return {}; }
};
struct Registrar { template <class F> explicit Registrar(F f) { Module m; f(m); } };
inline Results& results() { static thread_local Results r; return r; }
}  // namespace ww

#define TORCH_EXTENSION_NAME extension
#define WW_JOIN2(a, b) a##b
#define WW_JOIN(a, b) WW_JOIN2(a, b)
#define PYBIND11_MODULE(NAME, M) static void ww_bind(ww::Module& M); static ww::Registrar ww_bind_now(ww_bind); static void ww_bind([[maybe_unused]] ww::Module& M)

extern "C" void ww_allocate_with(ww::Allocate f) { ww::allocator() = f; }
extern "C" int ww_bound_count() { return (int)ww::bound().size(); }
extern "C" const char* ww_bound_name(int i) { return ww::bound().at((size_t)i).name.c_str(); }
extern "C" const char* ww_bound_arguments(int i) {
  static thread_local std::string text;
  text.clear();
  for (const auto& a : ww::bound().at((size_t)i).arguments) text += a.name + " ";
  return text.c_str();
}
extern "C" int ww_bound_default(int i, int k, ww::Value* out) {
  const auto& a = ww::bound().at((size_t)i).arguments.at((size_t)k);
  if (a.fallback) *out = *a.fallback;
  return a.fallback.has_value();
}
extern "C" int ww_call(int i, const ww::Value* arguments, int count) {  // the number of results, or -1: ww_error() says why
  ww::results().values.clear();
  ww::error_text().clear();
  try {
    ww::Arguments given(arguments, count);
    ww::bound().at((size_t)i).call(given, ww::results());
  } catch (const std::exception& e) { ww::fail(e.what()); }
  return ww::failed() ? -1 : (int)ww::results().values.size();
}
extern "C" const ww::Value* ww_results() { return ww::results().values.data(); }
