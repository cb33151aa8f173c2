// Tier F: one fiber for each CUDA thread of a block; a block runs on one thread of the machine. The definition that the other tiers are compared with.
namespace ww {
enum class Wait { none, block, warp, step, meeting };
struct Fiber {
  void* stack_pointer;
  uint3 thread;
  unsigned linear, lane, warp;
  Wait wait;
  int line;                   // of the call that it waits in
  int place;                  // of the step that it waits at, in the source's order
  unsigned mask;              // lanes that the awaited warp operation names
  unsigned long long value;   // what it offers to its warp: up to 8 bytes, or where they are
  unsigned long long count;   // warp operations so far
  int predicate;
  int from;                   // the line and the function of a call that asks which lanes are together
  const char* function;
  int depth;                  // how many loops that ask so it is in, and calls of functions that do
  bool done;
};
struct Warp { unsigned live, arrived, epoch; };
struct Call { int line, site; unsigned turn; };  // or loop: where it stands, by its line and its number in the source's order, and which turn it is in
constexpr int most_calls = 12;
struct Block {
  uint3 index;
  const Launch* launch;
  void (*body)(void*);
  void* argument;
  void* scheduler;            // its stack pointer
  unsigned live, arrived;
  int votes_or, votes_and, votes_count, result_or, result_and, result_count;
  unsigned progress;
  unsigned epoch;             // block barriers passed
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  std::vector<std::array<Call, most_calls>> calls;  // of each fiber, once one makes some
  char* stacks;
};
static thread_local Block* the_block;
static thread_local Fiber* self;
inline unsigned& order_seed() { static unsigned seed = [] { const char* s = std::getenv("WARPWRIGHT_THREAD_ORDER"); return s ? (unsigned)std::atoi(s) : 0u; }(); return seed; }
static const size_t stack_bytes = 256 * 1024;
}  // namespace ww

// Set for the fiber that runs; variables, not macros, since kernels use these names for parameters too.
static thread_local uint3 threadIdx, blockIdx;
static thread_local dim3 blockDim, gridDim;
static constexpr int warpSize = 32;

#if defined(__x86_64__)
extern "C" void ww_switch(void** from, void* to);
asm(R"(
.text
.weak ww_switch
.type ww_switch,@function
ww_switch:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp,(%rdi)
  mov %rsi,%rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
)");
namespace ww {
static inline void switch_context(void** from, void* to) { ww_switch(from, to); }
static inline void* new_context(char* top, void (*entry)()) {
  void** sp = (void**)top;
  *--sp = nullptr;
  *--sp = (void*)entry;
  for (int i = 0; i < 6; ++i) *--sp = nullptr;
  return sp;
}
}  // namespace ww
#else
#include <ucontext.h>
namespace ww {
static inline void switch_context(void** from, void* to) {
  ucontext_t here;
  *from = &here;
  swapcontext(&here, (ucontext_t*)to);
}
static inline void* new_context(char* top, void (*entry)()) {
  ucontext_t* c = (ucontext_t*)(top - sizeof(ucontext_t) - 64);
  getcontext(c);
  c->uc_stack.ss_sp = top - stack_bytes + 64;
  c->uc_stack.ss_size = stack_bytes - sizeof(ucontext_t) - 256;
  c->uc_link = nullptr;
  makecontext(c, entry, 0);
  return c;
}
}  // namespace ww
#endif

namespace ww {
static __attribute__((noinline)) void yield() {
  Fiber* const me = self;
  switch_context(&me->stack_pointer, the_block->scheduler);
}

static void release_block(Block& b) {
  b.result_or = b.votes_or; b.result_and = b.votes_and; b.result_count = b.votes_count;
  b.arrived = 0; b.votes_or = 0; b.votes_and = 1; b.votes_count = 0;
  for (Fiber& f : b.fibers) if (!f.done && f.wait == Wait::block) f.wait = Wait::none;
  ++b.progress;
  ++b.epoch;
}
// The lanes of one warp operation go on when each live lane that the mask names has arrived with the same mask.
static void release_warp(Block& b, unsigned warp) {
  Warp& w = b.warps[warp];
  Fiber* const lanes = &b.fibers[warp * 32];
  unsigned left = w.arrived;
  while (left) {
    const unsigned mask = lanes[__builtin_ctz(left)].mask;
    unsigned here = 0;
    for (unsigned l = 0; l < 32; ++l) if ((w.arrived >> l & 1) && lanes[l].mask == mask) here |= 1u << l;
    left &= ~here;
    if ((mask & w.live & ~here) != 0) continue;
    for (unsigned l = 0; l < 32; ++l) if (here >> l & 1) lanes[l].wait = Wait::none;
    w.arrived &= ~here;
    ++b.progress;
    ++w.epoch;
  }
}
static void finish(Block& b, Fiber& f) {
  f.done = true;
  --b.live;
  b.warps[f.warp].live &= ~(1u << f.lane);
  ++b.progress;
  if (b.arrived && b.arrived == b.live) release_block(b);
  release_warp(b, f.warp);
}
static void fiber_main() {
  the_block->body(the_block->argument);
  finish(*the_block, *self);
  yield();
  __builtin_unreachable();
}

static inline int sync_block(int line, int predicate) {
  Block& b = *the_block;
  Fiber& f = *self;
  f.wait = Wait::block; f.line = line;
  b.votes_or |= predicate != 0; b.votes_and &= predicate != 0; b.votes_count += predicate != 0;
  ++b.progress;
  if (++b.arrived == b.live) release_block(b);
  if (f.wait != Wait::none) yield();
  return 0;
}
static inline void sync_threads(int line) { sync_block(line, 0); }
static inline int sync_threads_or(int p) { sync_block(0, p); return the_block->result_or; }
static inline int sync_threads_and(int p) { sync_block(0, p); return the_block->result_and; }
static inline int sync_threads_count(int p) { sync_block(0, p); return the_block->result_count; }

static inline void sync_warp(unsigned mask) {
  Fiber& f = *self;
  Warp& w = the_block->warps[f.warp];
  f.wait = Wait::warp; f.mask = mask | 1u << f.lane;
  w.arrived |= 1u << f.lane;
  ++the_block->progress;
  if (!(f.mask & w.live & ~w.arrived)) release_warp(*the_block, f.warp);  // else a lane that it waits for is missing
  if (f.wait != Wait::none) yield();
}
// Each lane offers a value; after two meetings every lane has read what it wanted.
template <class T, class Take> static inline auto exchange(unsigned mask, T value, Take take) {
  static_assert(std::is_trivially_copyable_v<T>, "a warp exchanges values that can be copied as bytes");
  Fiber& f = *self;
  f.value = 0;
  if constexpr (sizeof(T) <= 8) std::memcpy(&f.value, &value, sizeof value);
  else f.value = (unsigned long long)&value;  // stays where it is until all have read it
  sync_warp(mask);
  const Fiber* const lanes = &the_block->fibers[f.warp * 32];
  const auto taken = take(lanes, mask & the_block->warps[f.warp].live);
  sync_warp(mask);
  return taken;
}
template <class T> static inline T offered(const Fiber& f) {
  T v;
  if constexpr (sizeof(T) <= 8) std::memcpy(&v, &f.value, sizeof v);
  else std::memcpy(&v, (const void*)f.value, sizeof v);
  return v;
}
static inline unsigned lanes_of_warp() { const unsigned left = (unsigned)the_block->launch->threads() - self->warp * 32; return left < 32 ? left : 32; }
template <class T> static inline T shuffle(unsigned mask, T v, unsigned source) {
  return exchange(mask, v, [=](const Fiber* lanes, unsigned) { return source < lanes_of_warp() ? offered<T>(lanes[source]) : v; });
}
template <class T, class F> static inline T warp_reduce(unsigned mask, T v, F join) {
  return exchange(mask, v, [=](const Fiber* lanes, unsigned live) {
    const unsigned first = __builtin_ctz(live);
    T r = offered<T>(lanes[first]);
    for (unsigned l = first + 1; l < 32; ++l) if (live >> l & 1) r = join(r, offered<T>(lanes[l]));
    return r;
  });
}
}  // namespace ww

#define __syncthreads() ww::sync_threads(__LINE__)
#define __syncthreads_or(p) ww::sync_threads_or(p)
#define __syncthreads_and(p) ww::sync_threads_and(p)
#define __syncthreads_count(p) ww::sync_threads_count(p)
static inline void __syncwarp(unsigned mask = 0xffffffffu) { ww::sync_warp(mask); }
namespace ww { static unsigned converged(int line, const char* function); }
#define WW_HERE static inline __attribute__((always_inline))  // where it is called tells which lanes are together
#define WW_CALLED int line = __builtin_LINE(), const char* function = __builtin_FUNCTION()
WW_HERE unsigned __activemask(WW_CALLED) { return ww::converged(line, function); }
static inline unsigned __lanemask_lt() { return (1u << ww::self->lane) - 1; }
static inline unsigned __ballot_sync(unsigned m, int p) {
  return ww::exchange(m, p, [](const ww::Fiber* lanes, unsigned live) {
    unsigned r = 0;
    for (unsigned l = 0; l < 32; ++l) if ((live >> l & 1) && ww::offered<int>(lanes[l])) r |= 1u << l;
    return r;
  });
}
static inline int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }
static inline int __all_sync(unsigned m, int p) { return __ballot_sync(m, !p) == 0; }
template <class T> static inline unsigned __match_any_sync(unsigned m, T v) {
  return ww::exchange(m, v, [=](const ww::Fiber* lanes, unsigned live) {
    unsigned r = 0;
    for (unsigned l = 0; l < 32; ++l) if ((live >> l & 1) && ww::offered<T>(lanes[l]) == v) r |= 1u << l;
    return r;
  });
}
template <class T> static inline unsigned __match_all_sync(unsigned m, T v, int* p) {
  const unsigned same = __match_any_sync(m, v), all = m & ww::the_block->warps[ww::self->warp].live;
  *p = same == all;
  return *p ? all : 0;
}
template <class T> static inline T __shfl_sync(unsigned m, T v, int s, int w = 32) { return ww::shuffle(m, v, ww::lane_at(ww::self->lane, s, w)); }
template <class T> static inline T __shfl_up_sync(unsigned m, T v, unsigned d, int w = 32) { return ww::shuffle(m, v, ww::lane_up(ww::self->lane, d, w)); }
template <class T> static inline T __shfl_down_sync(unsigned m, T v, unsigned d, int w = 32) { return ww::shuffle(m, v, ww::lane_down(ww::self->lane, d, w)); }
template <class T> static inline T __shfl_xor_sync(unsigned m, T v, int b, int w = 32) { return ww::shuffle(m, v, ww::lane_xor(ww::self->lane, b, w)); }
template <class T> WW_HERE T __shfl(T v, int s, int w = 32, WW_CALLED) { return __shfl_sync(__activemask(line, function), v, s, w); }
template <class T> WW_HERE T __shfl_up(T v, unsigned d, int w = 32, WW_CALLED) { return __shfl_up_sync(__activemask(line, function), v, d, w); }
template <class T> WW_HERE T __shfl_down(T v, unsigned d, int w = 32, WW_CALLED) { return __shfl_down_sync(__activemask(line, function), v, d, w); }
template <class T> WW_HERE T __shfl_xor(T v, int b, int w = 32, WW_CALLED) { return __shfl_xor_sync(__activemask(line, function), v, b, w); }
WW_HERE unsigned __ballot(int p, WW_CALLED) { return __ballot_sync(__activemask(line, function), p); }
WW_HERE int __any(int p, WW_CALLED) { return __any_sync(__activemask(line, function), p); }
WW_HERE int __all(int p, WW_CALLED) { return __all_sync(__activemask(line, function), p); }
template <class T> static inline T __reduce_add_sync(unsigned m, T v) { return ww::warp_reduce(m, v, [](T a, T b) { return (T)(a + b); }); }
template <class T> static inline T __reduce_min_sync(unsigned m, T v) { return ww::warp_reduce(m, v, [](T a, T b) { return a < b ? a : b; }); }
template <class T> static inline T __reduce_max_sync(unsigned m, T v) { return ww::warp_reduce(m, v, [](T a, T b) { return a > b ? a : b; }); }
template <class T> static inline T __reduce_and_sync(unsigned m, T v) { return ww::warp_reduce(m, v, [](T a, T b) { return a & b; }); }
template <class T> static inline T __reduce_or_sync(unsigned m, T v) { return ww::warp_reduce(m, v, [](T a, T b) { return a | b; }); }
template <class T> static inline T __reduce_xor_sync(unsigned m, T v) { return ww::warp_reduce(m, v, [](T a, T b) { return a ^ b; }); }

namespace ww {
static void start_block(Block& b, uint3 index) {
  const int n = b.launch->threads();
  const dim3 d = b.launch->block;
  b.index = index;
  blockIdx = index; blockDim = d; gridDim = b.launch->grid;
  b.live = (unsigned)n; b.arrived = 0; b.votes_or = 0; b.votes_and = 1; b.votes_count = 0; b.progress = 0; b.epoch = 0;
  for (Warp& w : b.warps) { w.live = 0; w.arrived = 0; w.epoch = 0; }
  for (int t = 0; t < n; ++t) {
    Fiber& f = b.fibers[t];
    f.thread = {t % d.x, t / d.x % d.y, t / d.x / d.y};
    f.linear = (unsigned)t; f.lane = t % 32; f.warp = t / 32; f.wait = Wait::none; f.done = false; f.line = 0; f.place = 0; f.depth = 0;
    f.stack_pointer = new_context(b.stacks + stack_bytes * (t + 1) - 64 - (t % 32) * 64, fiber_main);  // staggered: equal frames would share cache sets
    b.warps[f.warp].live |= 1u << f.lane;
  }
}
static void report_stuck(const Block& b) {
  int at_block = 0, at_warp = 0, line = 0;
  for (const Fiber& f : b.fibers) if (!f.done) { (f.wait == Wait::block ? at_block : at_warp)++; if (f.line) line = f.line; }
  fail(formatted("barrier that not all threads reach: %d threads wait at __syncthreads() (line %d), %d in a warp operation, in block (%u, %u, %u)", at_block, line, at_warp,
                 b.index.x, b.index.y, b.index.z));
}
// Lockstep: when no thread can go on otherwise, those that wait at the earliest place step together; threads that are ahead wait for them there.
static bool release_steps(Block& b) {
  const Fiber* first = nullptr;
  for (const Fiber& f : b.fibers) if (!f.done && f.wait == Wait::step && (!first || f.place < first->place)) first = &f;
  if (!first) return false;
  const int place = first->place;
  for (Fiber& f : b.fibers) if (!f.done && f.wait == Wait::step && f.place == place) f.wait = Wait::none;
  return true;
}
// The lanes of its warp that a thread is together with: those that call this from the same place before no thread of the block can go on otherwise.
#ifdef __clang__
__attribute__((convergent))
#endif
static __attribute__((noinline)) unsigned converged(int line, const char* function) {
  Fiber& f = *self;
  f.from = line;
  f.function = function;
  f.wait = Wait::meeting;
  f.value = (unsigned long long)__builtin_return_address(0);
  yield();
  return f.mask;
}
constexpr int spins = 2147483647;  // the place of a turn of a loop that waits: after all others
// A call of a function that asks, or a loop that does: what is inside is another place for each call, and in each turn. Deeper ones than are kept count
// by their number alone.
struct At {
  At(int line, int site) {
    if (!self) return;
    auto& calls = the_block->calls;
    if (self->linear >= calls.size()) calls.resize(std::max<size_t>(the_block->fibers.size(), self->linear + 1));
    if (self->depth < most_calls) calls[self->linear][self->depth] = {line, site, 0};
    ++self->depth;
  }
  ~At() { if (self) --self->depth; }
  At(const At&) = delete;
  void next() { if (self && self->depth <= most_calls) ++the_block->calls[self->linear][self->depth - 1].turn; }
};
static int kept_calls(const Fiber& f) { return f.depth < most_calls ? f.depth : most_calls; }
static const Call& call_of(const Fiber& f, int n) { return the_block->calls[f.linear][n]; }
// How many calls and turns two threads have in common, from the kernel on.
static int common_calls(const Fiber& a, const Fiber& b) {
  const int least = std::min(kept_calls(a), kept_calls(b));
  int n = 0;
  while (n < least && call_of(a, n).site == call_of(b, n).site && call_of(a, n).turn == call_of(b, n).turn) ++n;
  return n;
}
static bool same_place(const Fiber& a, const Fiber& b) { return a.value == b.value && a.depth == b.depth && common_calls(a, b) == kept_calls(a); }
// Whether the place where a waits comes before that of b: by lines in one function, otherwise (inlined ones) as the machine code lies.
static bool before(const Fiber& a, const Fiber& b) {
  const int n = common_calls(a, b);
  const bool in_a = n < kept_calls(a), in_b = n < kept_calls(b);
  if (in_a && in_b) return call_of(a, n).site != call_of(b, n).site ? call_of(a, n).site < call_of(b, n).site : call_of(a, n).turn < call_of(b, n).turn;
  if (in_a || in_b) {
    const int line_a = in_a ? call_of(a, n).line : a.from, line_b = in_b ? call_of(b, n).line : b.from;
    if (line_a != line_b) return line_a < line_b;
  } else if (a.depth != b.depth) {
    return a.depth < b.depth;
  }
  return a.function == b.function && a.from != b.from ? a.from < b.from : a.value < b.value;
}
static bool release_meeting(Block& b) {
  bool any = false;
  for (size_t w = 0; w < b.warps.size(); ++w) {
    Fiber* const lanes = &b.fibers[w * 32];
    unsigned here = 0;
    for (unsigned l = 0; l < 32; ++l) {  // the earliest place: others there may come to the later ones yet
      if (lanes[l].done || lanes[l].wait != Wait::meeting) continue;
      if (here && before(lanes[l], lanes[__builtin_ctz(here)])) here = 0;
      if (!here || same_place(lanes[l], lanes[__builtin_ctz(here)])) here |= 1u << l;
    }
    bool behind = false;  // in lockstep: a lane that waits at a place before may come here yet
    for (unsigned l = 0; here && l < 32; ++l) behind = behind || (!lanes[l].done && lanes[l].wait == Wait::step && lanes[l].place != spins && lanes[l].place <= lanes[__builtin_ctz(here)].place);
    if (behind) continue;
    for (unsigned l = 0; l < 32; ++l) if (here >> l & 1) lanes[l].wait = Wait::none, lanes[l].mask = here;
    any = any || here;
  }
  return any;
}
static inline void step(int place) {
  self->wait = Wait::step;
  self->place = place;
  yield();
}
static void run_block(Block& b, const std::vector<int>& order) {
  while (b.live) {
    const unsigned before = b.progress;
    for (int t : order) {
      Fiber& f = b.fibers[t];
      if (f.done || f.wait != Wait::none) continue;
      self = &f;
      threadIdx = f.thread;
      switch_context(&b.scheduler, f.stack_pointer);
    }
    if (b.progress == before && !release_meeting(b) && !release_steps(b)) { report_stuck(b); return; }
  }
}
static std::vector<int> thread_order(int n) {
  std::vector<int> order(n);
  for (int t = 0; t < n; ++t) order[t] = t;
  unsigned long long state = order_seed();
  if (state) for (int t = n - 1; t > 0; --t) {  // shuffled: a program without races does not notice
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    std::swap(order[t], order[(state >> 33) % (unsigned)(t + 1)]);
  }
  return order;
}
// A block whose threads run body(); whoever asks for it frees its stacks.
template <class F> static Block block_of(const Launch& launch, F& body) {
  const size_t n = (size_t)launch.threads();
  Block b{};
  b.launch = &launch;
  b.body = [](void* p) { (*(F*)p)(); };
  b.argument = &body;
  b.fibers.resize((n + 31) / 32 * 32);
  for (Fiber& f : b.fibers) f.done = true;
  b.warps.resize((n + 31) / 32);
  b.stacks = (char*)std::aligned_alloc(64, stack_bytes * n);
  return b;
}
// What runs all blocks of the next launch at once, if they wait for one another (grid.hpp): it calls block(argument, i) for each.
typedef void (*Together)(const Launch&, void (*block)(void*, long), void* argument);
inline Together& together() { static thread_local Together run = nullptr; return run; }
// Of kernels that launch kernels (nested.hpp): what is done when a block has ended, and when one of its threads waits for what it launched.
inline void (*after_block)() = nullptr;
inline void (*when_waiting)() = nullptr;
// Runs body() once for each thread of each block.
template <class F> static void run_fibers(const Launch& launch, F body) {
  const Together at_once = std::exchange(together(), nullptr);
  if (failed() || !acceptable(launch)) return;
  const std::vector<int> order = thread_order(launch.threads());
  const Alone alone(!at_once && !launch.worth_threads());
  if (at_once) {
    auto block = [&](long i) {
      const Inside kernel(launch);
      Block b = block_of(launch, body);
      the_block = &b;
      start_block(b, launch.block_index(i));
      run_block(b, order);
      if (after_block) after_block();
      std::free(b.stacks);
    };
    return at_once(launch, [](void* p, long i) { (*(decltype(block)*)p)(i); }, &block);
  }
#pragma omp parallel if (launch.worth_threads())
  {
    const Inside kernel(launch);
    Block b = block_of(launch, body);
    Block* const outer = the_block;
    Fiber* const outer_self = self;
    the_block = &b;
#pragma omp for schedule(dynamic)
    for (long i = 0; i < launch.blocks(); ++i) {
      if (failed()) continue;
      start_block(b, launch.block_index(i));
      run_block(b, order);
      if (after_block) after_block();
    }
    the_block = outer;
    self = outer_self;
    std::free(b.stacks);
  }
}
}  // namespace ww

namespace ww {
// For a device function that reads the thread's index and is called from a loop over threads.
static inline void at_thread(const Launch& launch, uint3 index, int x, int y, int z) {
  static thread_local Block block{};
  static thread_local Fiber fiber{};
  block.launch = &launch; block.index = index;
  fiber.thread = {(unsigned)x, (unsigned)y, (unsigned)z};
  fiber.linear = (unsigned)((z * (int)launch.block.y + y) * (int)launch.block.x + x); fiber.lane = fiber.linear % 32; fiber.warp = fiber.linear / 32;
  the_block = &block; self = &fiber;
  threadIdx = fiber.thread; blockIdx = index; blockDim = launch.block; gridDim = launch.grid;
}
}  // namespace ww
