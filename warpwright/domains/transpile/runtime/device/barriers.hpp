// cuda::barrier and cuda::pipeline within a block, on fibers: a thread that waits lets the others go on; copies are made at once.
namespace ww {
static inline void pause() { yield(); }
static inline void went_on() { ++the_block->progress; }
}  // namespace ww
namespace cuda {
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
template <size_t A> struct aligned_size_t {
  static constexpr size_t align = A;
  size_t value;
  constexpr explicit aligned_size_t(size_t v) : value(v) {}
  constexpr operator size_t() const { return value; }
};
template <thread_scope scope = thread_scope_system, class Completion = void> struct barrier {
  struct arrival_token { unsigned phase; };
  long expected, pending;
  unsigned phase;
  barrier() = default;
  barrier(ptrdiff_t n) : expected(n), pending(n), phase(0) {}
  static constexpr ptrdiff_t max() { return (1 << 20) - 1; }
  arrival_token arrive(ptrdiff_t n = 1) {
    const arrival_token mine{phase};
    pending -= n;
    if (pending <= 0) pending = expected, ++phase;
    ww::went_on();
    return mine;
  }
  void wait(const arrival_token& mine) const { while (phase == mine.phase) ww::pause(); }
  void wait_parity(bool parity) const { while ((phase & 1) == (unsigned)parity) ww::pause(); }
  void arrive_and_wait() { wait(arrive()); }
  void arrive_and_drop() { --expected; arrive(); }
};
template <thread_scope scope, class C> static inline void init(barrier<scope, C>* b, ptrdiff_t n) { b->expected = b->pending = n, b->phase = 0; }

enum class pipeline_role { producer, consumer };
template <thread_scope scope, unsigned stages> struct pipeline_shared_state { unsigned long committed, released; static constexpr unsigned depth = stages; };
template <thread_scope scope = thread_scope_thread> struct pipeline {
  unsigned long *committed = nullptr, *released = nullptr, producers = 1, consumers = 1, depth = 1, produced = 0, consumed = 0;  // no counters: a thread's own
  void until(const unsigned long* count, unsigned long least) const { while (count && *count < least) ww::pause(); }
  void producer_acquire() { if (produced >= depth) until(released, (produced + 1 - depth) * consumers); }
  void producer_commit() { ++produced; if (committed) { ++*committed; ww::went_on(); } }
  void consumer_wait() { until(committed, (consumed + 1) * producers); }
  void consumer_release() { ++consumed; if (released) { ++*released; ww::went_on(); } }
  void quit() {}
};
static inline pipeline<> make_pipeline() { return {}; }
template <class G, thread_scope scope, unsigned stages> static inline pipeline<scope> make_pipeline(const G& group, pipeline_shared_state<scope, stages>* state, size_t producers = 0) {
  group.sync();
  if (group.thread_rank() == 0) state->committed = state->released = 0;
  group.sync();
  pipeline<scope> made;
  made.committed = &state->committed, made.released = &state->released, made.depth = stages;
  made.producers = producers ? producers : group.size(), made.consumers = producers ? group.size() - producers : group.size();
  return made;
}
template <class G, thread_scope scope, unsigned stages> static inline pipeline<scope> make_pipeline(const G& group, pipeline_shared_state<scope, stages>* state, pipeline_role role) {
  return make_pipeline(group, state, (size_t)__syncthreads_count(role == pipeline_role::producer));
}
template <unsigned left, thread_scope scope> static inline void pipeline_consumer_wait_prior(pipeline<scope>& p) {
  if (p.produced > left) p.until(p.committed, (p.produced - left) * p.producers);
}
template <class T, class N, class Wait> static inline void memcpy_async(T* to, const T* from, N bytes, Wait&) { std::memcpy((void*)to, (const void*)from, (size_t)bytes); }
template <class G, class T, class N, class Wait> static inline void memcpy_async(const G& group, T* to, const T* from, N bytes, Wait&) {
  if (group.thread_rank() == 0) std::memcpy((void*)to, (const void*)from, (size_t)bytes);
}
}  // namespace cuda
