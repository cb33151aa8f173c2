// --- pools ---------------------------------------------------------------------------------------------------------
// The largest number, or the sum over a divisor, of each window along up to three axes: first over depth and height, whole rows at a time, then along
// the rows. torch's library takes the windows one by one: 8 numbers of each of 32,768 windows took it 1.2 ms of a core, and this 0.09 (KernelBench's 2:74).

struct Pool { long planes, sizes[3], out[3], kernel[3], stride[3], padding[3], dilation[3]; float divisor; };
constexpr long HELD = 4096;  // numbers between the two steps, in L1
struct Largest {
    static constexpr float empty = -INF;
    INLINE vf join(vf a, vf b) { return vmax(a, b); }
    INLINE vf end(vf v, const Pool&) { return v; }
};
struct Mean {
    static constexpr float empty = 0.f;
    INLINE vf join(vf a, vf b) { return a + b; }
    INLINE vf end(vf v, const Pool& pool) { return v / pool.divisor; }
};
template <long S> INLINE vf every(const float* p, long step) {  // W numbers, `step` apart: S where that is known
    if constexpr (S == 1) return load(p, Full{});
#if defined(__GNUC__) && !defined(__clang__)
    if constexpr (S == 2 || S == 4) {
        vi even;
        for (int i = 0; i < W; ++i) even[i] = 2 * i;
        return __builtin_shuffle(every<S / 2>(p, S / 2), every<S / 2>(p + S / 2 * W, S / 2), even);
    }
#endif
    vf v;
    for (int i = 0; i < W; ++i) v[i] = p[i * step];
    return v;
}
template <class Kind, long S> static void along_rows(const float* held, long count, const Pool& pool, float* y) {  // `count` windows, side by side
    const long step = pool.stride[2];
    for (long at = 0; at < count; at += W) {
        vf v = every<S>(held + at * step, step);
        for (long t = 1; t < pool.kernel[2]; ++t) v = Kind::join(v, every<S>(held + at * step + t * pool.dilation[2], step));
        v = Kind::end(v, pool);
        if (at + W <= count) store(y + at, v, Full{});
        else store(y + at, v, Part{(int)(count - at)});
    }
}
template <class Kind> INLINE void join_row(float* to, const float* from, long count, const float* end) {  // nothing is read from `end` on
    long j = 0;
    for (; j + W <= count; j += W) store(to + j, Kind::join(load(to + j, Full{}), load(from + j, Full{})), Full{});
    if (j == count) return;
    vi lanes;
    for (int i = 0; i < W; ++i) lanes[i] = i;
    const vf old = load(to + j, Full{}), more = from + j + W <= end ? load(from + j, Full{}) : load(from + j, Part{(int)(count - j)});
    store(to + j, pick(lanes < (int32_t)(count - j), Kind::join(old, more), old), Full{});
}
template <class Kind, long S> static void pooled(const float* x, const Pool& p, float* y, int threads) {
    const long apart = p.stride[2], reach = (p.kernel[2] - 1) * p.dilation[2] + 1, full = (p.out[2] - 1) * apart + reach;
    const bool joined = reach <= apart && p.padding[2] == 0;  // no window leaves its own `apart` numbers: rows join to one
    const long pitch = joined ? p.out[2] * apart : full, rows = joined ? std::max(1L, HELD / pitch) : 1;
    const long left = p.padding[2], seen = std::min(p.sizes[2], (joined ? pitch : full) - left), slack = (S ? S : apart) * W + reach;
    const long blocks = (p.out[1] + rows - 1) / rows;
    const float* const end = x + p.planes * p.sizes[0] * p.sizes[1] * p.sizes[2];
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (long item = 0; item < p.planes * p.out[0] * blocks; ++item) {
        alignas(64) float held[2 * HELD];
        const long from = item % blocks * rows, some = std::min(rows, p.out[1] - from), a = item / blocks % p.out[0], plane = item / blocks / p.out[0];
        std::fill(held, held + some * pitch + slack, Kind::empty);
        for (long r = 0; r < some; ++r)
            for (long i = 0; i < p.kernel[0]; ++i)
                for (long j = 0; j < p.kernel[1]; ++j) {
                    const long d = a * p.stride[0] - p.padding[0] + i * p.dilation[0], h = (from + r) * p.stride[1] - p.padding[1] + j * p.dilation[1];
                    if (d < 0 || d >= p.sizes[0] || h < 0 || h >= p.sizes[1]) continue;
                    join_row<Kind>(held + r * pitch + left, x + ((plane * p.sizes[0] + d) * p.sizes[1] + h) * p.sizes[2], seen, end);
                }
        along_rows<Kind, S>(held, some * p.out[2], p, y + (item / blocks * p.out[1] + from) * p.out[2]);
    }
}
template <class Kind> static void pool(const float* x, const Pool& p, float* y, int threads) {
    if (p.stride[2] == 1) pooled<Kind, 1>(x, p, y, threads);
    else if (p.stride[2] == 2) pooled<Kind, 2>(x, p, y, threads);
    else if (p.stride[2] == 4) pooled<Kind, 4>(x, p, y, threads);
    else pooled<Kind, 0>(x, p, y, threads);
}
