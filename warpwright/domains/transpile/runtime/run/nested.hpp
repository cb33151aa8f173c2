// Kernels that kernels launch: they run, in the order of their launches, when the block that launched them has ended, or when one of its threads waits for
// them by cudaDeviceSynchronize(). Each ends with all that it launches before the next begins, as on one stream. The programming guide promises no more:
// a child grid sees what its launcher wrote before the launch, and may run at any time from then on.
#include <functional>
#include <thread>
namespace ww {
inline std::vector<std::function<void()>>& launched() { static thread_local std::vector<std::function<void()>> waiting; return waiting; }
static inline void run_launched() {
  const std::vector<std::function<void()>> now = std::exchange(launched(), {});
  for (const auto& one : now) if (!failed()) one();
}
// While the block still runs: on a thread of its own, since a child may be the same kernel, whose shared memory must stay as it is.
static inline void run_launched_apart() {
  if (launched().empty()) return;
  std::vector<std::function<void()>> now = std::exchange(launched(), {});
  std::thread([&now] { launched() = std::move(now); run_launched(); }).join();
}
inline const bool nested_is_on = (after_block = run_launched, when_waiting = run_launched_apart, several_hosts = true);  // they launch on other threads while a block waits
template <class F, class... A> static inline void from_device(F run, const Launch& launch, A... a) {
  if (inside()) launched().push_back([=]() mutable { run(launch, a...); });
  else run(launch, a...);
}
}  // namespace ww
