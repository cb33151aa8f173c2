// What every native plan stands on: tensors of torch round memory of ours, and products and attention of small sizes. Follows vector_math.cpp.
// Only torch's C shim is used (torch/csrc/inductor/aoti_torch/c/shim.h), whose functions come from the running torch through plan_bind.
#include <algorithm>
#include <cstdlib>

extern "C" {
struct AtenTensorOpaque;
typedef AtenTensorOpaque* AtenTensorHandle;
typedef int32_t AOTITorchError;
}

struct Failure { int step; };  // leaves plan_run: the program then runs as plain torch calls

// --- tensors round our memory --------------------------------------------------------------------------------------
// A handle is kept as long as its memory stays where it is, so that a call makes none for parameters and intermediates.

struct Slot { void* data; AtenTensorHandle handle; };
struct Form { int dims; const int64_t* sizes; const int64_t* strides; int32_t type; };

static AOTITorchError (*create_tensor)(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t, int32_t, int32_t, AtenTensorHandle*);
static AOTITorchError (*delete_tensor)(AtenTensorHandle);
static AOTITorchError (*get_data)(AtenTensorHandle, void**);
static AOTITorchError (*get_strides)(AtenTensorHandle, int64_t**);
static bool (*grad_is_on)();
static void (*set_grad)(bool);

template <int N> struct Slots {
    Slot slots[N + 1] = {};
    ~Slots() { for (Slot& slot : slots) if (slot.handle) delete_tensor(slot.handle); }
};
static AtenTensorHandle tensor(Slot& slot, void* data, const Form& form, int step) {
    if (slot.handle && slot.data == data) return slot.handle;
    if (slot.handle) { delete_tensor(slot.handle); slot.handle = nullptr; }
    if (create_tensor(data, form.dims, form.sizes, form.strides, 0, form.type, 0, 0, &slot.handle)) throw Failure{step};
    slot.data = data;
    return slot.handle;
}
struct Made {  // a tensor that torch made
    AtenTensorHandle handle = nullptr;
    ~Made() { drop(); }
    void drop() { if (handle) delete_tensor(handle); handle = nullptr; }
    char* data(const Form& form, int step) {  // its memory; a failure when it does not lie as expected
        int64_t* strides;
        void* found;
        if (get_strides(handle, &strides) || get_data(handle, &found)) throw Failure{step};
        for (int d = 0; d < form.dims; ++d) if (form.sizes[d] != 1 && strides[d] != form.strides[d]) throw Failure{step};
        return (char*)found;
    }
};
struct NoGrad {
    bool before = grad_is_on();
    NoGrad() { if (before) set_grad(false); }
    ~NoGrad() { if (before) set_grad(true); }
};
struct Arena {  // intermediates of one thread
    char* memory = nullptr;
    char* reach(long bytes) {
        if (!memory && posix_memalign((void**)&memory, 64, bytes + 64)) throw Failure{-1};
        return memory;
    }
    ~Arena() { free(memory); }
};

// --- products ------------------------------------------------------------------------------------------------------
// c[m, n] = sum over k of a[m, k] b[k, n], plus bias[n] (or by[m], one a row). Strides are in elements; b comes in panels of two vectors.

constexpr int PANEL = 2 * W;
#if defined(__AVX512F__)
constexpr int ROWS = 12;
#elif defined(__AVX__)
constexpr int ROWS = 6;
#else
constexpr int ROWS = 4;
#endif

INLINE void transpose(vf* r) {  // W rows of W
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC unroll 4
    for (int s = 1; s < W; s *= 2) {
        vi low, high;
        for (int l = 0; l < W; ++l) low[l] = l & s ? W + (l ^ s) : l, high[l] = l & s ? W + l : l ^ s;
#pragma GCC unroll 16
        for (int i = 0; i < W; ++i)
            if (!(i & s)) {
                const vf a = r[i], b = r[i + s];
                r[i] = __builtin_shuffle(a, b, low);
                r[i + s] = __builtin_shuffle(a, b, high);
            }
    }
#else
    for (int i = 0; i < W; ++i) for (int j = 0; j < i; ++j) { const float x = r[i][j]; r[i][j] = r[j][i]; r[j][i] = x; }
#endif
}
static void pack(float* to, const float* b, long along_k, long along_n, long K, long n) {  // n columns, the rest of the panel zero
    if (along_n == 1 || along_k != 1 || n < PANEL) {
        for (long k = 0; k < K; ++k)
            for (long j = 0; j < PANEL; ++j) to[k * PANEL + j] = j < n ? b[k * along_k + j * along_n] : 0.f;
        return;
    }
    long k = 0;
    for (; k + W <= K; k += W)
        for (int half = 0; half < PANEL; half += W) {
            vf r[W];
            for (int j = 0; j < W; ++j) r[j] = load(b + (half + j) * along_n + k, Full{});
            transpose(r);
            for (int i = 0; i < W; ++i) store(to + (k + i) * PANEL + half, r[i], Full{});
        }
    for (; k < K; ++k)
        for (long j = 0; j < PANEL; ++j) to[k * PANEL + j] = b[k + j * along_n];
}
constexpr long TERMS = 128;  // are summed at once, so that rounding does not grow with K
template <int R> INLINE void tile(const float* a, long row, long along, const float* panel, long wide, long K, const vf* first, const float* by, float* c, long out, long n) {
    vf s[R][2] = {};  // added to first (and by), or without first to what c holds
    for (long k = 0; k < K; ++k) {
        const vf p = load(panel + k * wide, Full{}), q = load(panel + k * wide + W, Full{});
#pragma GCC unroll 12
        for (int r = 0; r < R; ++r) {
            const vf x = splat(a[r * row + k * along]);
            s[r][0] += x * p, s[r][1] += x * q;
        }
    }
    const auto add = [&](int r, int half, auto some) {
        float* const to = c + r * out + half * W;
        store(to, s[r][half] + (first ? first[half] + (by ? splat(by[r]) : vf{}) : load(to, some)), some);
    };
#pragma GCC unroll 12
    for (int r = 0; r < R; ++r)
        for (int half = 0; half < 2; ++half) {
            const long left = n - half * W;
            if (left >= W) add(r, half, Full{});
            else if (left > 0) add(r, half, Part{(int)left});
        }
}
template <int R> static void some_rows(long count, const float* a, long row, long along, const float* panel, long wide, long K, const vf* first, const float* by, float* c, long out, long n) {
    if constexpr (R > 0) {
        if (count == R) tile<R>(a, row, along, panel, wide, K, first, by, c, out, n);
        else some_rows<R - 1>(count, a, row, along, panel, wide, K, first, by, c, out, n);
    }
}
static void dots(const float* a, long row, const float* b, long along_n, const float* bias, const float* by, float* c, long out, long M, long N, long K) {
    for (long m = 0; m < M; ++m)  // few rows, and b lies as its transpose: a sum along both
        for (long n = 0; n < N; n += 4) {
            const long count = std::min(4L, N - n);
            vf s[4] = {};
            long k = 0;
            for (; k + W <= K; k += W) {
                const vf x = load(a + m * row + k, Full{});
                for (int j = 0; j < 4; ++j) s[j] += x * load(b + (n + (j < count ? j : 0)) * along_n + k, Full{});
            }
            if (k < K) {
                const Part rest{(int)(K - k)};
                const vf x = load(a + m * row + k, rest);
                for (int j = 0; j < 4; ++j) s[j] += x * load(b + (n + (j < count ? j : 0)) * along_n + k, rest);
            }
            for (int j = 0; j < count; ++j) {
                float total = 0.f;
                for (int i = 0; i < W; ++i) total += s[j][i];
                c[m * out + n + j] = total + (bias ? bias[n + j] : 0.f) + (by ? by[m] : 0.f);
            }
        }
}
constexpr long DEEPEST = 2048;  // of K: the panel lies on the stack, and in L1 or L2
static void product(const float* a, long row, long along, const float* b, long along_k, long along_n, const float* bias, const float* by, float* c, long out, long M, long N, long K) {
    if (M < 6 && along == 1 && along_k == 1) return dots(a, row, b, along_n, bias, by, c, out, M, N, K);
    alignas(64) float panel[DEEPEST * PANEL];
    for (long n = 0; n < N; n += PANEL) {
        const long count = std::min((long)PANEL, N - n);
        const bool lies = along_n == 1 && count == PANEL;  // as a panel does
        if (!lies) pack(panel, b + n * along_n, along_k, along_n, K, count);
        const float* const from = lies ? b + n : panel;
        const long wide = lies ? along_k : PANEL;
        vf first[2] = {};
        if (bias) for (long j = 0; j < count; ++j) first[j / W][j % W] = bias[n + j];
        for (long m = 0; m < M; m += ROWS)
            for (long k = 0; k == 0 || k < K; k += TERMS)  // once too where nothing is summed: it stores
                some_rows<ROWS>(std::min((long)ROWS, M - m), a + m * row + k * along, row, along, from + k * wide, wide, std::min(TERMS, K - k), k ? nullptr : first, by ? by + m : nullptr,
                                c + m * out + n, out, count);
    }
}
// The same by several threads, for products that torch's library would do as well.
static void wide_product(const float* a, long row, long along, const float* b, long along_k, long along_n, const float* bias, float* c, long out, long M, long N, long K, int threads) {
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (long n = 0; n < N; n += PANEL)
        product(a, row, along, b + n * along_n, along_k, along_n, bias ? bias + n : nullptr, nullptr, c + n, out, M, std::min((long)PANEL, N - n), K);
}
static bool is_amd() {
#if defined(__x86_64__)
    return __builtin_cpu_init(), __builtin_cpu_is("amd");
#else
    return false;
#endif
}
static const bool ours_is_faster = is_amd();

// --- attention -----------------------------------------------------------------------------------------------------
// One head: softmax(scale q k^T + mask) v; S keys, D and E numbers a key and a value, all in one core's cache. A mask of bool hides where it is
// false, one of float is added; `causal` hides keys after the query. A query that sees nothing gives zeros, as torch's does.

INLINE vf seen_by(const float* mask, vf score, Full) { return score + load(mask, Full{}); }
INLINE vf seen_by(const bool* mask, vf score, Full) {
    vi hidden;
    for (int j = 0; j < W; ++j) hidden[j] = mask[j] ? 0 : -1;
    return pick(hidden, splat(-INF), score);
}
template <class Mask> INLINE vf seen_by(const Mask* mask, long along, long count, vf score) {  // `count` keys from here on, the others are hidden
    if (along == 1 && count >= W) return seen_by(mask, score, Full{});
    for (int j = 0; j < W; ++j) {
        if (j >= count) score[j] = -INF;
        else if constexpr (sizeof(Mask) == 1) score[j] = mask[j * along] ? score[j] : -INF;
        else score[j] += mask[j * along];
    }
    return score;
}
INLINE vf first_of(vf v, long count) {  // -INF after `count` keys
    for (int j = 0; j < W; ++j) if (j >= count) v[j] = -INF;
    return v;
}
// R queries at once, so that keys and values are read once for all of them.
template <int R, class Mask> static void attend_some(const float* q, long qt, const float* v, long vt, const Mask* mask, long mt, long ms, bool causal, long t,
                                                     float* out, long ot, const float* turned, float* weights, long S, long D, long E) {
    const long wide = (S + W - 1) / W * W;
    const long most = causal ? std::min(S, t + R) : S;
    vf top[R];
    for (int r = 0; r < R; ++r) top[r] = splat(-INF);
    for (long s = 0; s < wide; s += W) {
        vf sum[R] = {};
        for (long d = 0; d < D; ++d) {
            const vf key = load(turned + d * wide + s, Full{});
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) sum[r] += splat(q[r * qt + d]) * key;
        }
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            const long left = (causal ? std::min(S, t + r + 1) : S) - s;
            if (mask) sum[r] = seen_by(mask + r * mt + s * ms, ms, left, sum[r]);
            else if (left < W) sum[r] = first_of(sum[r], left);
            store(weights + r * wide + s, sum[r], Full{});
            top[r] = vmax(top[r], sum[r]);
        }
    }
    float share[R];
    for (int r = 0; r < R; ++r) {
        float best = top[r][0];
        for (int j = 1; j < W; ++j) best = top[r][j] != top[r][j] || top[r][j] > best ? top[r][j] : best;
        if (best == -INF) {  // it sees nothing
            for (long s = 0; s < wide; ++s) weights[r * wide + s] = 0.f;
            share[r] = 0.f;
            continue;
        }
        vf total = {};
        for (long s = 0; s < wide; s += W) {
            const vf power = vexp(load(weights + r * wide + s, Full{}) - splat(best));
            total += power;
            store(weights + r * wide + s, power, Full{});
        }
        float all = 0.f;
        for (int j = 0; j < W; ++j) all += total[j];
        share[r] = 1.f / all;
    }
    const auto step = [&](long e, auto n) {
        vf sum[R] = {};
        for (long s = 0; s < most; ++s) {
            const vf x = load(v + s * vt + e, n);
#pragma GCC unroll 4
            for (int r = 0; r < R; ++r) sum[r] += splat(weights[r * wide + s]) * x;
        }
        for (int r = 0; r < R; ++r) store(out + r * ot + e, sum[r] * share[r], n);
    };
    long e = 0;
    for (; e + W <= E; e += W) step(e, Full{});
    if (e < E) step(e, Part{(int)(E - e)});
}
template <class Mask> static void attend(const float* q, long qt, const float* k, long kt, const float* v, long vt, const Mask* mask, long mt, long ms, bool causal, float scale,
                                         float* out, long ot, float* room, long T, long S, long D, long E) {
    const long wide = (S + W - 1) / W * W;
    float* const turned = room;             // [D, wide]: the keys, transposed
    float* const weights = room + D * wide;  // [4, wide]
    for (long s = 0; s < wide; ++s)
        for (long d = 0; d < D; ++d) turned[d * wide + s] = s < S ? k[s * kt + d] * scale : 0.f;
    long t = 0;
    for (; t + 4 <= T; t += 4)
        attend_some<4>(q + t * qt, qt, v, vt, mask ? mask + t * mt : mask, mt, ms, causal, t, out + t * ot, ot, turned, weights, S, D, E);
    for (; t < T; ++t)
        attend_some<1>(q + t * qt, qt, v, vt, mask ? mask + t * mt : mask, mt, ms, causal, t, out + t * ot, ot, turned, weights, S, D, E);
}
