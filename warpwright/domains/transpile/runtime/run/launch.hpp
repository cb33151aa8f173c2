// The shape of a launch, errors of a launch, and the entry that a foreign caller uses.
namespace ww {
struct Launch {
  dim3 grid, block;
  size_t shared;
  long row;  // threads along x that a call of the block function runs: those of a block, or of all blocks of a stretch
  template <class... Stream> Launch(dim3 g, dim3 b, size_t s = 0, Stream...) : grid(g), block(b), shared(s), row(b.x) {}
  long blocks() const { return (long)grid.x * grid.y * grid.z; }
  int threads() const { return (int)(block.x * block.y * block.z); }
  uint3 block_index(long i, bool down = false) const {  // down: blocks follow one another along y
    if (grid.y * grid.z == 1) return {(unsigned)i, 0, 0};
    if (down) return {(unsigned)(i / grid.y % grid.x), (unsigned)(i % grid.y), (unsigned)(i / grid.x / grid.y)};
    return {(unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y), (unsigned)(i / grid.x / grid.y)};
  }
  bool is(unsigned x, unsigned y, unsigned z) const { return block.x == x && block.y == y && block.z == z; }
  // Whether so many blocks may stand side by side, and leave work for each thread of the machine, if they are more than a line of memory.
  bool joins(unsigned blocks) const { return grid.x % blocks == 0 && grid.y * grid.z == 1 && (blocks <= 16 || grid.x / blocks >= (unsigned)omp_get_max_threads()); }
  bool is_row(unsigned size) const { return block.x == size && (double)grid.x * size < 1 << 30; }
  // A team costs microseconds: as much as some 4,096 threads of a few operations, or of `weight` times as many.
  bool worth_threads(int weight = 1) const { return blocks() > 1 && (double)blocks() * threads() * weight >= 4096 && omp_get_max_threads() > 1; }
};

inline std::string error_store;
inline std::string& error_text() { return error_store; }
inline __attribute__((noinline, cold)) void fail(const std::string& text) {
#pragma omp critical(ww_error)
  if (error_text().empty()) error_text() = text;
}
// A formatted text: one call where it is used; a sum of strings there would be 300 instructions in every kernel, which takes 0.1 s to compile.
inline __attribute__((noinline, cold, format(printf, 1, 2))) std::string formatted(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}
// Dynamic shared memory: one buffer for each thread of the machine, since a block runs on one.
inline std::vector<char>& dynamic_store() { static thread_local std::vector<char> store; return store; }
static inline char* dynamic_shared() {
  return (char*)(((size_t)dynamic_store().data() + 63) / 64 * 64);
}
// What an address of shared memory points to, given its lower 32 bits: the launch's memory, or near what was last converted.
static inline char* shared_at(unsigned at) {
  char* const low = dynamic_shared();
  char* const there = low + (int)(at - (unsigned)(size_t)low);
  return low && there >= low && there < low + (1 << 18) ? there : (char*)last_shared + (int)(at - (unsigned)(size_t)last_shared);
}
static inline void reserve_dynamic_shared(size_t bytes) {
  if (bytes && dynamic_store().size() < bytes + 128) dynamic_store().resize(bytes + 128);
}
// Whether this thread of the machine runs a kernel, for `assert`: it ends a launch, not the program.
inline bool& inside() { static thread_local bool is = false; return is; }
// What a thread of the machine does when it has run its share of a launch's blocks, if there is something.
inline void (*&after_blocks())() { static thread_local void (*what)() = nullptr; return what; }
// Whoever runs blocks says so, on each thread of the machine, and has the launch's dynamic shared memory there from then on.
struct Inside {
  const bool before = inside();
  explicit Inside(const Launch& launch) { inside() = true; reserve_dynamic_shared(launch.shared); }
  ~Inside() {
    inside() = before;
    if (auto& after = after_blocks()) { after(); after = nullptr; }
  }
};
static inline void asserted(const char* what, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: Assertion `%s' failed.\n", file, line, what);
  if (!inside()) std::abort();
  fail(formatted("assertion `%.400s' (line %d)", what, line));
}
static inline bool failed() { return !error_text().empty(); }
// Bytes of dynamic shared memory that a launch may ask for: 48 KiB unless cudaFuncSetAttribute allows more; at most what a block has on compute capability 9.0.
constexpr size_t most_shared = 232448;
inline size_t& shared_limit() { static size_t limit = 49152; return limit; }
inline bool& being_captured() { static bool is = false; return is; }  // into a graph: launches that can be kept do not come here
inline __attribute__((noinline)) bool acceptable(const Launch& launch) {
  if (being_captured()) {
    fail("a launch in a source that does not capture streams itself cannot be captured into a graph");
    return false;
  }
  if (launch.threads() < 1 || launch.threads() > 1024 || launch.blocks() < 1) {
    fail(formatted("expected 1 to 1024 threads a block and at least one block, saw %d and %ld", launch.threads(), launch.blocks()));
    return false;
  }
  if (launch.shared > shared_limit()) {
    fail(formatted("expected at most %zu bytes of dynamic shared memory, saw %zu; cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) allows up to %zu", shared_limit(), launch.shared, most_shared));
    return false;
  }
  return true;
}

// Whether this is the only thread of the program that has launched kernels so far. A second one waits until the first runs no blocks alone.
inline const char* first_host = nullptr;
inline bool several_hosts = false;
inline __attribute__((noinline)) bool is_only_host() {
  static thread_local const char here = 0;
  const char* none = nullptr;
  if (__atomic_compare_exchange_n(&first_host, &none, &here, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) || none == &here) return !__atomic_load_n(&several_hosts, __ATOMIC_SEQ_CST);
  __atomic_store_n(&several_hosts, true, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(&alone_now, __ATOMIC_SEQ_CST)) {}
  return false;
}
// While it lives, the blocks of a launch run on this thread alone, or on several.
struct Alone {
  const bool mine = is_only_host(), before = alone_now;
  explicit Alone(bool one_thread) {
    if (!mine) return;
    __atomic_store_n(&alone_now, one_thread, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&several_hosts, __ATOMIC_SEQ_CST)) __atomic_store_n(&alone_now, false, __ATOMIC_SEQ_CST);
  }
  ~Alone() { if (mine) __atomic_store_n(&alone_now, before, __ATOMIC_SEQ_CST); }
};

// Blocks `first` to `last`, in order. The index is counted on: to divide for each block would cost as much as a small block does.
template <class F> __attribute__((noinline)) static void blocks_from(const Launch& launch, long first, long last, F& block, bool down) {
  uint3 index = launch.block_index(first, down);
  const Inside kernel(launch);
  for (long i = first; i < last; ++i) {
    block(index);
    if (down) {
      if (++index.y < launch.grid.y) continue;
      index.y = 0;
      if (++index.x == launch.grid.x) { index.x = 0; ++index.z; }
      continue;
    }
    if (++index.x < launch.grid.x) continue;
    index.x = 0;
    if (++index.y == launch.grid.y) { index.y = 0; ++index.z; }
  }
}
// Runs block(index) for every block: on this thread where a team does not pay (a parallel region costs a microsecond even alone), else in one
// stretch of blocks for each thread.
template <class F> static void each_block(const Launch& launch, F block, int weight = 1, bool down = false) {
  const long all = launch.blocks();
  const Alone alone(!launch.worth_threads(weight));
  if (!launch.worth_threads(weight)) return blocks_from(launch, 0, all, block, down);
#pragma omp parallel
  {
    const long team = omp_get_num_threads(), mine = omp_get_thread_num();
    blocks_from(launch, all * mine / team, all * (mine + 1) / team, block, down);
  }
}
// The same for blocks that may run as one row of threads along x: one call for all of a thread's blocks in a line. Of a sheet at most 2,048 threads:
// a transpose writes as many lines of 64 bytes a row, and has to find them in the cache for the next.
template <class F> static void each_stretch(const Launch& launch, F run, int weight = 1) {
  const long widest = (long)launch.block.y * launch.block.z > 1 || (long)launch.grid.y * launch.grid.z > 1 ? (2048 + launch.block.x - 1) / launch.block.x : 1l << 30;
  const auto stretch = [&](long first, long last) {
    Launch wide = launch;
    const Inside kernel(launch);
    while (first < last) {
      const uint3 index = launch.block_index(first);
      const long blocks = std::min({last - first, (long)(launch.grid.x - index.x), widest});
      wide.row = blocks * launch.block.x;
      run(wide, index);
      first += blocks;
    }
  };
  const Alone alone(!launch.worth_threads(weight));
  if (!launch.worth_threads(weight)) return stretch(0, launch.blocks());
#pragma omp parallel
  {
    const long all = launch.blocks(), team = omp_get_num_threads(), mine = omp_get_thread_num();
    stretch(all * mine / team, all * (mine + 1) / team);
  }
}

// How many threads, and blocks, take the steps of a grid-stride loop together: those whose private or shared memory fits half of an L1 cache of 32 KiB,
// and where there is none, those that read 16 KiB of floats in a step.
constexpr int threads_together(size_t bytes_of_thread, int most) { const int fit = 16384 / (int)std::max(bytes_of_thread, (size_t)4); return std::max(most, fit); }
constexpr int blocks_together(size_t bytes_of_block) { return (int)std::clamp(16384 / std::max(bytes_of_block, (size_t)1), (size_t)1, (size_t)64); }

// What Python asks of each parameter. Tables and one function that reads them: texts put together by templates took 0.2 s of each compilation.
struct Parameter { int pointers; char kind; size_t bytes, size, alignment; };
template <class T> constexpr Parameter element_of() {
  using V = std::remove_cv_t<T>;
  if constexpr (std::is_pointer_v<V>) { Parameter p = element_of<std::remove_pointer_t<V>>(); ++p.pointers; return p; }
  else if constexpr (std::is_void_v<V>) return {0, 'v', 1, 0, 0};
  else return {0, std::is_same_v<V, bool> ? 'b' : std::is_enum_v<V> || (std::is_integral_v<V> && std::is_signed_v<V>) ? 'i' : std::is_integral_v<V> ? 'u' : std::is_floating_point_v<V> ? 'f' : 's', sizeof(V), 0, 0};
}
template <class T> constexpr Parameter parameter_of() { Parameter p = element_of<T>(); p.size = sizeof(T); p.alignment = alignof(T); return p; }
inline __attribute__((noinline)) const char* words_of(const Parameter* all, size_t count, bool sizes) {
  std::string& text = *new std::string;  // lives as long as the library
  for (const Parameter* p = all; p != all + count; ++p) {
    char word[64];
    if (sizes) std::snprintf(word, sizeof(word), "%zu %zu ", p->size, p->alignment); else std::snprintf(word, sizeof(word), "%c%zu ", p->kind, p->bytes);
    if (!sizes) text.append(p->pointers, 'p');
    text += word;
  }
  return text.c_str();
}
template <class... P> constexpr Parameter parameters[sizeof...(P) + 1] = {parameter_of<std::remove_reference_t<P>>()..., Parameter{}};
// One code for each parameter: a 'p' for each pointer, the kind, the size in bytes, as in "pf4 i4 ".
template <class... P> static const char* signature(void (*)(const Launch&, P...)) {
  static const char* const text = words_of(parameters<P...>, sizeof...(P), false);
  return text;
}
// Sizes and alignments of the parameters, for arguments that lie one after the other in a buffer: "8 8 4 4 ".
template <class... P> static const char* layout(void (*)(const Launch&, P...)) {
  static const char* const text = words_of(parameters<P...>, sizeof...(P), true);
  return text;
}
template <class... P, size_t... I> static void enter_with(void (*f)(const Launch&, P...), const Launch& launch, void** a, std::index_sequence<I...>) {
  f(launch, *static_cast<std::remove_cv_t<std::remove_reference_t<P>>*>(a[I])...);
}
inline bool entered_from_outside = false;  // a library's caller is told of errors by enter's result
template <class... P> static int enter(void (*f)(const Launch&, P...), const unsigned* shape, size_t shared, void** a) {
  entered_from_outside = true;
  if (failed()) error_text().clear();
  shared_limit() = most_shared;  // Python has no cudaFuncSetAttribute
  enter_with(f, Launch(dim3(shape[0], shape[1], shape[2]), dim3(shape[3], shape[4], shape[5]), shared), a, std::index_sequence_for<P...>());
  return failed();
}
}  // namespace ww

// The source lane of each shuffle, for sub-warps of `width` lanes.
namespace ww {
static inline unsigned lane_at(unsigned lane, int source, int width) { return (lane & ~(unsigned)(width - 1)) + ((unsigned)source & (unsigned)(width - 1)); }
static inline unsigned lane_up(unsigned lane, unsigned delta, int width) { return (lane & (unsigned)(width - 1)) >= delta ? lane - delta : lane; }
static inline unsigned lane_down(unsigned lane, unsigned delta, int width) { return (lane & (unsigned)(width - 1)) + delta < (unsigned)width ? lane + delta : lane; }
static inline unsigned lane_xor(unsigned lane, int bits, int width) { return (lane ^ (unsigned)bits) < (lane & ~(unsigned)(width - 1)) + (unsigned)width ? lane ^ (unsigned)bits : lane; }

// Quotient and rest of ints by a divisor known at run time, for vectors. Exact: a / b, if not whole, is 1 / b or more from a whole number, which is 2^-31
// of itself, and a double errs by 2^-53.
static inline __attribute__((always_inline)) int quotient(int a, int b) { return __builtin_constant_p(b) ? a / b : (int)((double)a / (double)b); }
static inline __attribute__((always_inline)) int rest(int a, int b) { return __builtin_constant_p(b) ? a % b : (int)((unsigned)a - (unsigned)quotient(a, b) * (unsigned)b); }
}  // namespace ww
extern "C" __attribute__((weak)) const char* ww_error() {  // weak: each source of a program has it
  return ww::error_text().c_str();
}
