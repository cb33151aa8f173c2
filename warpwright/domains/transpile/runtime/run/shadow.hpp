// --sanitize: every access goes through here. Blocks run one after another, so that the shadow needs no locks.
#include <unordered_map>
#include <map>
#include <mutex>
#include <optional>
#include <set>
namespace ww {
enum Access { reads = 1, writes = 2, updates = 3, atomically = 4 };
struct Writer {
  int thread = -1, line = 0;                             // linear thread number in the block
  long block = -1;
  unsigned epoch = 0, warp_epoch = 0;                    // barriers of the block passed then; meetings of the thread's warp
  bool atomic = false;
};
struct Mark {          // the last accesses of one byte
  Writer writer, other_writer;                           // other_writer: a thread that wrote the same value, with no barrier between
  int reader = -1, other_reader = -1;
  long reader_block = -1;
  unsigned reader_epoch = 0, reader_warp_epoch = 0, other_warp_epoch = 0;
  int reader_line = 0;
  bool reader_atomic = false, written = false;
};
struct Rewrite {       // a write over another thread's, with no barrier between: what was there tells, once it is done, whether the values are the same
  const char* place = nullptr;
  std::string before, who;
  int line = 0, other_line = 0;
};
struct Range { size_t low, high; };
struct Shadow {
  std::unordered_map<size_t, Mark> global, shared;
  std::vector<Range> shared_ranges;
  std::unordered_map<size_t, Range> strays;    // pointers that arithmetic moved out of their buffer -> the buffer
  std::set<std::string> findings;
  Rewrite rewrite;
  bool fenced = false;
  long block = 0;
  unsigned first_end = ~0u;                    // barriers that the block had passed when a thread first ran to the kernel's end
  unsigned waited = ~0u; int waited_line = 0;  // where the first thread waits for the barrier after so many others
};
static Shadow& shadow() { static Shadow s; return s; }  // of this program: an inline function would share it with every library that is loaded
// Of all the program's files; never taken apart, since a global object may free its memory after all else is.
inline __attribute__((visibility("hidden"))) std::vector<Range>& buffers() { static auto& b = *new std::vector<Range>; return b; }
// Host threads may allocate, free and launch at once: one does at a time.
inline __attribute__((visibility("hidden"))) std::recursive_mutex& one_at_a_time() { static auto& m = *new std::recursive_mutex; return m; }
static unsigned warp_epoch() { return the_block->warps[self->warp].epoch; }

static void report(const char* kind, int line, const std::string& text) { shadow().findings.insert(std::string(kind) + "\t" + std::to_string(line) + "\t" + text); }
static std::string who() { const Fiber& f = *self; return "thread (" + std::to_string(f.thread.x) + ", " + std::to_string(f.thread.y) + ", " + std::to_string(f.thread.z) + ") of block (" +
  std::to_string(the_block->index.x) + ", " + std::to_string(the_block->index.y) + ", " + std::to_string(the_block->index.z) + ")"; }
static const Range* range_of(const std::vector<Range>& ranges, size_t a) { for (const Range& r : ranges) if (a >= r.low && a < r.high) return &r; return nullptr; }
static bool on_own_stack(size_t a) { const size_t low = (size_t)the_block->stacks; return a >= low && a < low + stack_bytes * (size_t)the_block->launch->threads(); }
static void add_shared(const void* p, size_t bytes) {
  const size_t low = (size_t)p;
  for (const Range& r : shadow().shared_ranges) if (r.low == low) return;
  shadow().shared_ranges.push_back({low, low + bytes});
}
template <class T> static void register_shared(const T& object) { add_shared((const void*)&object, sizeof(T)); }  // which may be volatile

// Were two accesses of threads of this block ordered by a barrier, or by a meeting of their warp?
static bool ordered(int other, unsigned epoch, unsigned met) {
  if (epoch != the_block->epoch) return true;
  return other / 32 == (int)self->warp && met != warp_epoch();
}
static bool unordered(const Writer& w, bool across) {
  if (w.thread < 0) return false;
  if (w.block != shadow().block) return across;
  return w.thread != (int)self->linear && !ordered(w.thread, w.epoch, w.warp_epoch);
}
// Of two writers before `now`, the one that more threads are unordered with: of another block, else of another warp, else another thread.
static const Writer& farther(const Writer& now, const Writer& last, const Writer& other) {
  const auto distance = [&](const Writer& w) { return w.thread < 0 ? -1 : w.block != now.block ? 3 : w.thread / 32 != now.thread / 32 ? 2 : w.thread != now.thread; };
  return distance(other) > distance(last) ? other : last;
}
static void settle_rewrite() {
  Rewrite& r = shadow().rewrite;
  if (!r.place) return;
  const bool same = !std::memcmp(r.place, r.before.data(), r.before.size());
  report(same ? "same-value" : "race", r.line, r.who + (same ? " writes the value that another thread wrote (line " : " writes what another thread wrote (line ") +
    std::to_string(r.other_line) + "), with no barrier between");
  r.place = nullptr;
}
// Returns the line of a write by another thread of the block that this write repeats or changes, with no barrier between; 0 for none.
static int check_race(Mark& m, int kind, int line, bool is_shared) {
  const int me = (int)self->linear;
  const long block = shadow().block;
  const bool atomic = kind & atomically, across = !is_shared && !shadow().fenced;
  int rewritten = 0;
  for (const Writer* w : {&m.writer, &m.other_writer}) {
    if ((atomic && w->atomic) || !unordered(*w, across)) continue;
    const bool same_block = w->block == block;
    if (kind == writes && !w->atomic && same_block) { rewritten = w->line; continue; }
    report("race", line, who() + (kind & writes ? " writes" : " reads") + " what " + (same_block ? "another thread" : "another block") + " wrote (line " + std::to_string(w->line) + "), with no barrier between");
    break;
  }
  if ((kind & writes) && !(atomic && m.reader_atomic)) {
    for (int other : {m.reader, m.other_reader}) {
      if (other < 0) continue;
      const bool same_block = m.reader_block == block;
      if ((same_block && other != me && !ordered(other, m.reader_epoch, other == m.reader ? m.reader_warp_epoch : m.other_warp_epoch)) || (!same_block && across)) {
        report("race", line, who() + " writes what " + (same_block ? "another thread" : "another block") + " read (line " + std::to_string(m.reader_line) + "), with no barrier between");
        break;
      }
    }
  }
  // A thread that accesses plainly and then atomically, with no barrier between, has still accessed plainly.
  const auto still = [&](int who, long its_block, unsigned epoch, unsigned met, bool was_atomic) {
    return atomic && !was_atomic && who == me && its_block == block && epoch == the_block->epoch && met == warp_epoch();
  };
  if ((kind & reads) && !still(m.reader, m.reader_block, m.reader_epoch, m.reader_warp_epoch, m.reader_atomic)) {
    if (m.reader_epoch != the_block->epoch || m.reader_block != block || m.reader < 0) { m.reader = me; m.other_reader = -1; }
    else if (m.reader != me) { m.other_reader = me; m.other_warp_epoch = warp_epoch(); }
    m.reader_block = block; m.reader_epoch = the_block->epoch; if (m.reader == me) m.reader_warp_epoch = warp_epoch(); m.reader_line = line; m.reader_atomic = atomic;
  }
  if (still(m.writer.thread, m.writer.block, m.writer.epoch, m.writer.warp_epoch, m.writer.atomic)) m.written = true;
  else if (kind & writes) {
    const Writer now{me, line, block, the_block->epoch, warp_epoch(), atomic};
    m.other_writer = rewritten ? farther(now, m.writer, m.other_writer) : m.writer.thread == me && m.writer.block == block && m.writer.epoch == now.epoch ? m.other_writer : Writer();
    m.writer = now;
    m.written = true;
  }
  return rewritten;
}
// A barrier under a condition that the threads of a block do not share is undefined, though it is passed: it waits for those that have not exited, and
// all barriers are one. So it is told where threads run to the kernel's end past it, and where they wait for each other at different ones. A thread that
// a `return` took out of the kernel before is no bug: compute capability 7.0 and later do not wait for it.
struct Votes { int any, all, count; };
static Votes checked_barrier(int line, int predicate = 0) {
  Shadow& s = shadow();
  const unsigned passed = the_block->epoch;
  if (s.waited != passed) s.waited = passed, s.waited_line = line;
  else if (s.waited_line != line)
    for (int one : {line, s.waited_line})
      report("barrier", one, "threads of a block wait here while others wait at line " + std::to_string(one == line ? s.waited_line : line) + "; all of them or none must reach a barrier");
  sync_block(line, predicate);
  if (s.first_end <= passed) report("barrier", line, "threads of the block have run to the kernel's end without this barrier; all of them or none must reach it");
  return {the_block->result_or, the_block->result_and, the_block->result_count};
}
static inline void at_end() { shadow().first_end = std::min(shadow().first_end, the_block->epoch); }
static void access(const void* p, size_t size, int line, int kind) {
  const size_t a = (size_t)p;
  Shadow& s = shadow();
  settle_rewrite();
  if (on_own_stack(a)) return;
  int rewritten = 0;
  if (range_of(s.shared_ranges, a)) {
    for (size_t i = 0; i < size; ++i) {
      Mark& m = s.shared[a + i];
      if ((kind & reads) && !m.written) { report("uninitialised", line, who() + " reads shared memory that no thread of its block has written"); m.written = true; }
      if (const int other = check_race(m, kind, line, true)) rewritten = other;
    }
  } else if (range_of(buffers(), a)) {
    for (size_t i = 0; i < size; ++i)
      if (const int other = check_race(s.global[a + i], kind, line, false)) rewritten = other;
  }
  if (rewritten) s.rewrite = {(const char*)p, std::string((const char*)p, size), who(), line, rewritten};
}
template <class T> static inline T& touch(T& r, int line, int kind) { if constexpr (!std::is_array_v<T>) access((const void*)&r, sizeof(T), line, kind); return r; }  // which may be volatile
static std::optional<Range> stray_of(size_t a) { const auto found = shadow().strays.find(a); return found == shadow().strays.end() ? std::nullopt : std::optional(found->second); }
// All memory that a pointer may belong to: arguments may be parts of one array (`x[:-1]`, `x[1:]`), and an address in both does not say which was meant.
static std::optional<Range> range_or_end(const std::vector<Range>& ranges, size_t a) {
  std::optional<Range> all, ending;
  for (const Range& r : ranges) {
    if (a >= r.low && a < r.high) all = all ? Range{std::min(all->low, r.low), std::max(all->high, r.high)} : r;
    else if (r.high == a) ending = ending ? Range{std::min(ending->low, r.low), a} : r;
  }
  return all ? all : ending;
}
// A pointer that is moved: `inp + row * width` of a row that is not there belongs to no buffer, so that its buffer is remembered.
template <class T, class I> static inline T* moved(T* p, I by) {
  T* const q = p + by;
  const size_t from = (size_t)p, to = (size_t)q;
  Shadow& s = shadow();
  if (on_own_stack(from) || range_of(buffers(), to) || range_of(s.shared_ranges, to)) return q;
  std::optional<Range> r = range_or_end(s.shared_ranges, from);
  if (!r) r = range_or_end(buffers(), from);
  if (!r) r = stray_of(from);
  if (r && to != r->high) s.strays[to] = *r;
  return q;
}
static bool inside(size_t base, size_t address, size_t size, int line) {
  Shadow& s = shadow();
  for (const auto* ranges : {&s.shared_ranges, &buffers()}) {
    std::optional<Range> r = range_or_end(*ranges, base);
    if (!r && ranges == &buffers()) r = stray_of(base);
    if (!r) continue;
    if (address >= r->low && address + size <= r->high) return true;
    report("out-of-bounds", line, who() + " is " + std::to_string(address < r->low ? r->low - address : address + size - r->high) + " bytes " + (address < r->low ? "before" : "behind") +
      (ranges == &buffers() ? " a buffer of " : " a shared array of ") + std::to_string(r->high - r->low) + " bytes");
    return false;
  }
  return true;
}
inline char* waste() { alignas(64) static char bytes[1 << 16]; std::memset(bytes, 0, 4096); return bytes; }  // where accesses out of bounds go
template <class P, class I> static inline auto at(P&& p, I i, int line) -> std::remove_reference_t<decltype(p[0])>& {
  using T = std::remove_reference_t<decltype(p[0])>;
  if constexpr (std::is_array_v<std::remove_reference_t<P>>) {
    constexpr size_t n = std::extent_v<std::remove_reference_t<P>>;
    if ((long long)i >= 0 && (unsigned long long)i < n) return p[i];
    report("out-of-bounds", line, who() + " uses index " + std::to_string((long long)i) + " of an array of " + std::to_string(n));
    return *(T*)waste();
  } else {
    T* const base = &*p;
    T* const q = base + i;
    if (!on_own_stack((size_t)base) && !inside((size_t)base, (size_t)q, sizeof(T), line)) return *(T*)waste();
    return *q;
  }
}
template <class T> static inline T& deref(T* p, int line) { return at(p, 0, line); }
template <class T> static inline T* pointed(T* p, int line, int kind) { T* const q = &at(p, 0, line); touch(*q, line, kind); return q; }

// Runs the kernel with one block after another.
template <class F> static void run_sanitized(const Launch& launch, F body) {
  const std::lock_guard hold(one_at_a_time());
  if (failed() || !acceptable(launch)) return;
  const std::vector<int> order = thread_order(launch.threads());
  Shadow& s = shadow();
  s.global.clear();
  s.strays.clear();
  s.fenced = false;
  Block b = block_of(launch, body);
  reserve_dynamic_shared(launch.shared + 4096);
  the_block = &b;
  for (long i = 0; i < launch.blocks() && !failed(); ++i) {
    s.block = i;
    s.first_end = s.waited = ~0u;
    s.shared.clear();
    s.shared_ranges.clear();
    if (launch.shared) add_shared(dynamic_shared(), launch.shared);
    start_block(b, launch.block_index(i));
    run_block(b, order);
    settle_rewrite();
  }
  if (failed()) { int line = 0; for (const Fiber& f : b.fibers) if (!f.done && f.wait == Wait::block) line = f.line; report("barrier", line, error_text()); error_text().clear(); }
  the_block = nullptr;
  self = nullptr;
  std::free(b.stacks);
}
template <class F> static void run_unknown(const Launch& launch, F body, int) { run_sanitized(launch, body); }
static bool is_note(const std::string& finding) { return finding.rfind("same-value", 0) == 0; }
static std::string findings_text() { std::string r; for (const std::string& f : shadow().findings) r += f + "\n"; return r; }
// A program of its own says at its end what was found, each kind at each line once. Whoever loads it as a library asks for the findings instead.
static bool asked = false;
namespace {  // each file of a program has its own, which says what was found in that file
struct AtExit {
  AtExit() { shadow(); }  // is taken apart after this
  ~AtExit() {
    if (asked) return;
    std::map<std::string, std::pair<long, std::string>> lines;
    for (const std::string& f : shadow().findings) {
      const size_t kind = f.find('\t'), line = f.find('\t', kind + 1);
      auto& seen = lines[(is_note(f) ? "note: line " : "line ") + f.substr(kind + 1, line - kind - 1) + ": " + f.substr(0, kind)];
      if (!seen.first++) seen.second = f.substr(line + 1);
    }
    for (const auto& [where, seen] : lines)
      std::fprintf(stderr, "sanitizer: %s: %s%s\n", where.c_str(), seen.second.c_str(), seen.first > 1 ? (" (" + std::to_string(seen.first) + " times)").c_str() : "");
  }
};
AtExit at_exit;
}
// What the program itself allocates is watched as what Python names; outside a whole program nothing is allocated here.
static void watch(const void* p, size_t bytes) {
  const std::lock_guard hold(one_at_a_time());
  buffers().push_back({(size_t)p, (size_t)p + bytes});
}
static void forget(const void* p) {
  const std::lock_guard hold(one_at_a_time());
  std::vector<Range>& all = buffers();
  all.erase(std::remove_if(all.begin(), all.end(), [&](const Range& r) { return r.low == (size_t)p; }), all.end());
}
#ifdef WW_C
static const bool watching = (on_allocate = watch, on_free = forget, true);
#endif
}  // namespace ww
#define WW_ONCE extern "C" __attribute__((weak))  // a program has several files of this text
WW_ONCE void ww_watch(const void* p, size_t bytes) { ww::watch(p, bytes); }
WW_ONCE void ww_forget() { ww::buffers().clear(); ww::shadow().findings.clear(); }
WW_ONCE const char* ww_findings() { static std::string text; ww::asked = true; text = ww::findings_text(); return text.c_str(); }
