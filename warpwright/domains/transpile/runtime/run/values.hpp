// Kernels as values of the host: a pointer to one, kept or given to cudaLaunchKernel, finds the launch function of its tier.
#include <functional>
#include <map>
namespace ww {
struct KernelValue {
  void (*run)(void (*launcher)(), const Launch&, void** arguments);
  std::function<void(const Launch&)> (*bind)(void (*launcher)(), void** arguments);  // with copies of the arguments
  void (*launcher)();
};
inline std::map<const void*, KernelValue>& kernel_values() { static std::map<const void*, KernelValue> known; return known; }
template <class... P> static void run_value(void (*launcher)(), const Launch& launch, void** arguments) {
  enter_with((void (*)(const Launch&, P...))launcher, launch, arguments, std::index_sequence_for<P...>());
}
template <class... P, size_t... I> static std::function<void(const Launch&)> bind_with(void (*launcher)(const Launch&, P...), void** a, std::index_sequence<I...>) {
  const auto kept = std::make_tuple(*static_cast<std::remove_cv_t<std::remove_reference_t<P>>*>(a[I])...);
  return [=](const Launch& launch) { launcher(launch, std::get<I>(kept)...); };
}
template <class... P> static std::function<void(const Launch&)> bind_value(void (*launcher)(), void** arguments) {
  return bind_with((void (*)(const Launch&, P...))launcher, arguments, std::index_sequence_for<P...>());
}
template <class... P> static auto value_of(void (*kernel)(P...), void (*launcher)(const Launch&, P...)) -> void (*)(P...) {
#pragma omp critical(ww_values)
  kernel_values()[(const void*)kernel] = {&run_value<P...>, &bind_value<P...>, (void (*)())launcher};
  return kernel;
}
static inline const KernelValue* value_at(const void* kernel) {
  const auto at = kernel_values().find(kernel);
  return at == kernel_values().end() ? nullptr : &at->second;
}
// Of a kernel that nobody entered, as a template's argument. The sanitizer has a better match for 0.
template <class F> static void run_unknown(const Launch& launch, F body, long) { run_fibers(launch, body); }
template <class... P, class... A> static void launch_any(const Launch& launch, void (*kernel)(P...), A... a) {
  if (const KernelValue* known = value_at((const void*)kernel)) ((void (*)(const Launch&, P...))known->launcher)(launch, a...);
  else run_unknown(launch, [&] { kernel(a...); }, 0);
}
template <class K, class... A> static void launch_any(const Launch& launch, K kernel, A... a) { run_unknown(launch, [&] { kernel(a...); }, 0); }
}  // namespace ww
