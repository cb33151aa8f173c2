// Counts that each thread of the machine keeps for itself while it runs the blocks of a launch: adds to an array that all blocks share and that nothing
// of the kernel reads. They are added to the array when the thread has run its share.
#include <memory>
namespace ww {
constexpr unsigned long counts_most = 4096;
struct CountStore {  // one array of counts of one thread of the machine
  void* all = nullptr;
  void (*give)(CountStore&) = nullptr;
  alignas(64) unsigned char own[counts_most * 8] = {};
};
struct CountStores {
  std::unique_ptr<CountStore> at[4];
};
inline CountStores& count_stores() { static thread_local CountStores stores; return stores; }
static inline void give_counts() {  // by whoever has run blocks
  for (auto& store : count_stores().at) if (store && store->all) { store->give(*store); store->all = nullptr; }
}
template <class T> struct Counts {
  T* all;
  T* own;  // none where the array is added to in place
};
// Of the nth array of a kernel. `others`: may be the same array by another name, which the kernel then reads.
template <int nth, class T, class... P> static Counts<T> counts_of(const Launch& launch, T* all, P... others) {
  const auto same = [&](auto other) { if constexpr (std::is_pointer_v<decltype(other)>) return (const void*)other == (const void*)all; else return false; };
  if ((double)launch.blocks() * launch.threads() < 8 * counts_most || ((int)same(others) + ... + 0) > 1) return {all, nullptr};
  CountStores& stores = count_stores();
  if (!stores.at[nth]) stores.at[nth] = std::make_unique<CountStore>();
  CountStore& store = *stores.at[nth];
  store.all = all;
  store.give = [](CountStore& held) {
    T *const all = (T*)held.all, *const own = (T*)held.own;
    for (unsigned long i = 0; i < counts_most; ++i) if (own[i]) { atomicAdd(all + i, own[i]); own[i] = 0; }
  };
  after_blocks() = give_counts;
  return {all, (T*)store.own};
}
template <class T, class I, class V> static inline __attribute__((always_inline)) void count(const Counts<T>& counts, I at, V v) {
  if (counts.own && (unsigned long)at < counts_most) counts.own[at] += (T)v;  // the first is looked at outside of loops, the second never for bytes
  else atomicAdd(counts.all + at, (T)v);
}
}  // namespace ww
