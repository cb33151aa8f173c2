// Cooperative launches: each block has a thread of the machine, and all are there at once, so that they can wait for one another.
#include <condition_variable>
#include <mutex>
#include <thread>
namespace ww {
struct Grid {
  std::mutex lock;
  std::condition_variable changed;
  long blocks = 0, arrived = 0, turn = 0;
  void meet() {
    std::unique_lock<std::mutex> held(lock);
    const long mine = turn;
    if (++arrived >= blocks) { arrived = 0; ++turn; changed.notify_all(); }
    else changed.wait(held, [&] { return turn != mine; });
  }
  void leave() {  // a block that ends is waited for no longer
    std::unique_lock<std::mutex> held(lock);
    --blocks;
    if (arrived && arrived >= blocks) { arrived = 0; ++turn; changed.notify_all(); }
  }
};
static thread_local Grid* the_grid;
static constexpr long most_blocks_together = 1024;
static inline bool cooperative() { return the_grid != nullptr; }
static inline void sync_grid() {
  Block& b = *the_block;
  if (!the_grid && b.launch->blocks() != 1) return fail("grid.sync() needs cudaLaunchCooperativeKernel: the other blocks may not have begun");
  if (the_grid && b.arrived + 1 == b.live) the_grid->meet();  // the block's last thread to come
  sync_threads(0);
}
static void run_together(const Launch& launch, void (*block)(void*, long), void* argument) {
  Grid grid;
  grid.blocks = launch.blocks();
  std::vector<std::thread> threads;
  for (long i = 0; i < launch.blocks(); ++i)
    threads.emplace_back([&grid, block, argument, i] { the_grid = &grid; block(argument, i); grid.leave(); });
  for (std::thread& thread : threads) thread.join();
}
// A launch from outside of a kernel that waits for its grid: such a caller has no other kind of launch.
template <class... P> static int enter_together(void (*f)(const Launch&, P...), const unsigned* shape, size_t shared, void** a) {
  const long blocks = (long)shape[0] * shape[1] * shape[2];
  if (blocks > most_blocks_together) { error_text() = "expected at most 1024 blocks, since they wait for one another at grid.sync()"; return 1; }
  if (blocks > 1) together() = run_together;
  const int failed = enter(f, shape, shared, a);
  together() = nullptr;
  return failed;
}
}  // namespace ww
