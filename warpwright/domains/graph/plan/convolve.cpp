// --- convolutions --------------------------------------------------------------------------------------------------
// Results next to each other read values of the image that lie next to each other, where the image has zeros round it: no columns are written.
//     y[m, j] = bias[m] + sum over channels c and taps t of w[m, c, t] x[c, j + at[t]]        j along up to three axes, in the order of memory
// Between the rows of results lie places that are no results; what comes out there is dropped. A transposed convolution of stride s is s such sums
// along each axis, whose results take turns.

struct Images { long count, channels, sizes[3], low[3], padded[3]; };  // `low` zeros before each axis, `padded` of its places in all
struct Phase { long places[3], first, step[3], taps; const int* kernel; const int* at; };  // `kernel`: the places of its taps in a kernel

static void surround(const float* x, const long* along, float* to, const Images& images, int threads) {  // the images with zeros round them
    const auto& s = images.sizes;
    const auto& low = images.low;
    const auto& p = images.padded;
    const long plane = p[0] * p[1] * p[2];
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (long i = 0; i < images.count * images.channels; ++i) {
        const float* const from = x + i / images.channels * along[0] + i % images.channels * along[1];
        float* const plain = to + i * plane;
        std::fill(plain, plain + plane, 0.f);
        for (long a = 0; a < s[0]; ++a)
            for (long b = 0; b < s[1]; ++b) memcpy(plain + ((a + low[0]) * p[1] + b + low[1]) * p[2] + low[2], from + (a * s[1] + b) * s[2], s[2] * sizeof(float));
    }
    std::fill(to + images.count * images.channels * plane, to + images.count * images.channels * plane + PANEL, 0.f);
}
constexpr long GROUP = 4, MOST_ROWS = 8 * ROWS;
// A block of terms of R rows and one panel, added to `to`. Blocks keep weights in the first cache, and rounding from growing with the number of terms.
template <int R> INLINE void sums(const float* a, long row, long along, const float* x, long plane, long C, const int* at, long T, float* to) {
    vf s[R][2] = {};
    for (long c = 0; c < C; ++c, x += plane)
        for (long t = 0; t < T; ++t, a += along) {
            const vf p = load(x + at[t], Full{}), q = load(x + at[t] + W, Full{});
#pragma GCC unroll 12
            for (int r = 0; r < R; ++r) {
                const vf w = splat(a[r * row]);
                s[r][0] += w * p, s[r][1] += w * q;
            }
        }
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
        for (int half = 0; half < PANEL; half += W) store(to + r * PANEL + half, load(to + r * PANEL + half, Full{}) + s[r][half / W], Full{});
}
template <int R> static void some_sums(long count, const float* a, long row, long along, const float* x, long plane, long C, const int* at, long T, float* to) {
    if constexpr (R > 0) {
        if (count == R) sums<R>(a, row, along, x, plane, C, at, T, to);
        else some_sums<R - 1>(count, a, row, along, x, plane, C, at, T, to);
    }
}
static void spread(const float* from, long rows, const Phase& phase, const long* padded, long j, float* y, long apart) {  // a panel's results to their places
    for (long lane = 0; lane < PANEL;) {
        const long place = j + lane, last = place % padded[2], over = place / padded[2], middle = over % padded[1], first = over / padded[1];
        const long left = std::min((long)PANEL - lane, padded[2] - last), count = std::min(left, phase.places[2] - last), step = phase.step[2];
        if (count > 0 && middle < phase.places[1] && first < phase.places[0]) {
            float* const to = y + phase.first + first * phase.step[0] + middle * phase.step[1] + last * step;
            for (long r = 0; r < rows; ++r) {
                const float* const row = from + r * PANEL + lane;
                if (step == 1) for (long l = 0; l < count; ++l) to[r * apart + l] = row[l];
                else for (long l = 0; l < count; ++l) to[r * apart + l * step] = row[l];
            }
        }
        lane += left;
    }
}
struct Weights { const float* data; long row, along, block; };  // element (m, k) of a block of rows; from block to block
// Some rows of up to GROUP panels of one image.
static void panels(const Weights& a, long each, const float* x, long plane, long C, const Phase& phase, const long* padded, const float* by, float* y, long apart, long rows,
                   long j, long count) {
    alignas(64) float made[GROUP * MOST_ROWS * PANEL];
    for (long g = 0; g < count; ++g)
        for (long r = 0; r < rows; ++r) std::fill(made + (g * rows + r) * PANEL, made + (g * rows + r + 1) * PANEL, by ? by[r] : 0.f);
    const long T = phase.taps, some = std::max(1L, TERMS / std::max(1L, T));
    for (long c = 0; c < C; c += some)
        for (long m = 0; m < rows; m += each)
            for (long g = 0; g < count; ++g)
                some_sums<ROWS>(std::min(each, rows - m), a.data + m / each * a.block + c * T * a.along, a.row, a.along, x + c * plane + j + g * PANEL, plane, std::min(some, C - c),
                                phase.at, T, made + (g * rows + m) * PANEL);
    for (long g = 0; g < count; ++g) spread(made + g * rows * PANEL, rows, phase, padded, j + g * PANEL, y, apart);
}
// weight[g][m, c, k] lies at g * of[0] + m * of[1] + c * of[2] + k. `room` takes the weights in the order of their use where that pays, then the images.
static void convolve(const float* x, const long* along, const float* weight, const long* of, const float* bias, float* y, const long* out, long groups, long rows, long kernel,
                     const Images& images, const Phase* phases, int count, float* room, int threads) {
    const long C = images.channels / groups, plane = images.padded[0] * images.padded[1] * images.padded[2];
    const long blocks = (rows + ROWS - 1) / ROWS, each = (rows + blocks - 1) / blocks;
    const bool lies = count == 1 && of[2] == kernel && images.count * plane < 8 * PANEL;  // too few results to lay them out anew
    float* const surrounded = room + (lies ? 0 : groups * blocks * each * C * kernel);
    surround(x, along, surrounded, images, threads);
    float* to = room;
    for (int i = 0; i < count; ++i) {
        const Phase& phase = phases[i];
        const long K = C * phase.taps;
        const float* const laid = to;
        if (!lies)
            for (long g = 0; g < groups; ++g)
                for (long m = 0; m < rows; m += each)
                    for (long c = 0; c < C; ++c)
                        for (long t = 0; t < phase.taps; ++t)
                            for (long r = m; r < m + each; ++r) *to++ = weight[g * of[0] + std::min(r, rows - 1) * of[1] + c * of[2] + phase.kernel[t]];
        const long places = ((phase.places[0] - 1) * images.padded[1] + phase.places[1] - 1) * images.padded[2] + phase.places[2];
        const long all = (places + PANEL - 1) / PANEL, shares = (all + GROUP - 1) / GROUP, many = MOST_ROWS / each * each, parts = (rows + many - 1) / many;
#pragma omp parallel for collapse(3) schedule(static) num_threads(threads) if (threads > 1)
        for (long image = 0; image < images.count * groups; ++image)
            for (long part = 0; part < parts; ++part)
                for (long share = 0; share < shares; ++share) {
                    const long n = image / groups, g = image % groups, m = part * many, some = std::min(many, rows - m);
                    const Weights plain{weight + g * of[0] + m * of[1], of[1], 1, each * of[1]}, packed{laid + (g * blocks + m / each) * each * K, 1, each, each * K};
                    panels(lies ? plain : packed, each, surrounded + (n * images.channels + g * C) * plane, plane, C, phase, images.padded, bias ? bias + g * rows + m : nullptr,
                           y + n * out[0] + (g * rows + m) * out[1], out[1], some, share * GROUP * PANEL, std::min(GROUP, all - share * GROUP));
                }
    }
}
