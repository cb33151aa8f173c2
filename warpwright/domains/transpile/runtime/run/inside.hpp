// Launches of which most blocks run in a faster form, and those at the border in the general one.
namespace ww {
// Numbers from the least to the largest that a term may have.
struct Range {
  long low, high;
  Range(long l, long h) : low(l), high(h) {}
  Range(long one) : low(one), high(one) {}
};
static inline Range operator+(Range a, Range b) { return {a.low + b.low, a.high + b.high}; }
static inline Range operator*(Range a, Range b) {
  const long ends[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  return {*std::min_element(ends, ends + 4), *std::max_element(ends, ends + 4)};
}
// Whether no byte belongs to both: elements of p in one range, and of q in another.
template <class P, class Q> static bool are_apart(const P* p, Range a, const Q* q, Range b) {
  const long from = (long)(size_t)p, to = (long)(size_t)q;
  return from + (a.high + 1) * (long)sizeof(P) <= to + b.low * (long)sizeof(Q) || to + (b.high + 1) * (long)sizeof(Q) <= from + a.low * (long)sizeof(P);
}
// The blocks along an axis that are asked nothing in vain. What is asked is linear, so they follow one another.
struct Stretch {
  long first, last;
  template <class Fits> Stretch(long count, Fits fits) : first(0), last(count) {
    while (first < last && !fits(first)) ++first;
    while (last > first && !fits(last - 1)) --last;
  }
  bool has(long at) const { return at >= first && at < last; }
};
// Runs run(row, index) for the blocks inside, as each_stretch does, and block(index) for the others.
template <class F, class G> static void each_inside(const Launch& launch, const Stretch& x, const Stretch& y, const Stretch& z, F run, G block, int weight = 1) {
  const long widest = launch.grid.y * launch.grid.z > 1 || launch.block.y * launch.block.z > 1 ? (2048 + launch.block.x - 1) / launch.block.x : 1l << 30;
  const auto some = [&](long first, long last) {
    Launch wide = launch;
    const Inside kernel(launch);
    while (first < last) {
      const uint3 index = launch.block_index(first);
      const bool fits = y.has(index.y) && z.has(index.z) && x.has(index.x);
      const long blocks = fits ? std::min({last - first, x.last - (long)index.x, widest}) : 1;
      wide.row = blocks * launch.block.x;
      if (fits) run(wide, index); else block(index);
      first += blocks;
    }
  };
  const Alone alone(!launch.worth_threads(weight));
  if (!launch.worth_threads(weight)) return some(0, launch.blocks());
#pragma omp parallel
  {
    const long all = launch.blocks(), team = omp_get_num_threads(), mine = omp_get_thread_num();
    some(all * mine / team, all * (mine + 1) / team);
  }
}
}  // namespace ww
