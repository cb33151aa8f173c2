// Bags: rows of a table joined to one, by a thread for each few elements of it (domains/graph/cpp/calls/bags.py).
//
// Ladder
//   1  four rows at once: their indices are read and looked at before the first row is used, so that four reads are on their way
//
// Measured: nothing yet. A row that is in no cache is read once for each bag that it is in: 4 to 8 bytes an index, and its own.
//
// Sums are kept in double, in the order of the rows, and so are products. A thread reads `width` neighbours of a row at once where the table's rows
// begin at multiples of that.
#define BAG_SUM 0
#define BAG_MEAN 1
#define BAG_MAX 2
#define BAG_MIN 3
#define BAG_PROD 4
#define BAG_LARGEST 5
#define BAG_AHEAD 4

// Where a bag begins and ends, of `total` rows: what is no bag ends the kernel. The first begins at 0, whatever is said, if not `bounded`.
template <typename I>
__device__ __forceinline__ long long bag_begin(const I* offsets, long long step, long long bag, long long total, bool bounded) {
    const long long from = bag || bounded ? (long long)offsets[bag * step] : 0ll;
    if (from < 0 || from > total) __trap();
    return from;
}
template <typename I>
__device__ __forceinline__ long long bag_end(const I* offsets, long long step, long long bag, long long count, long long total, bool last, long long from) {
    const long long to = bag + 1 < count || last ? (long long)offsets[(bag + 1) * step] : total;
    if (to < from || to > total) __trap();
    return to;
}
__device__ __forceinline__ double bag_joined(int how, bool first, double all, double one) {
    if (how == BAG_MAX) return one != one ? one : all < one ? one : all;
    if (how == BAG_MIN) return one != one ? one : all > one ? one : all;
    if (how == BAG_LARGEST) return first || one > all ? one : all;  // as torch's embedding_bag has it
    return how == BAG_PROD ? all * one : all + one;
}
template <int how, bool indexed, bool weighted, bool aligned, int width, typename T, typename I, typename W>
__device__ __forceinline__ void joined_bag(float (&x)[width], const T* column, long long step, long long rows, const I* indices, long long index_step,
                                           const W* weights, long long weight_step, long long from, long long to, long long padding, double begin,
                                           double empty) {
    double all[width];
    long long count = 0;
    for (int e = 0; e < width; ++e) all[e] = begin;
    for (long long j = from; j < to; j += BAG_AHEAD) {
        long long row[BAG_AHEAD];
        float y[BAG_AHEAD][width];
#pragma unroll
        for (int u = 0; u < BAG_AHEAD; ++u) {
            row[u] = -1;
            if (j + u < to) row[u] = indexed ? row_at((long long)indices[(j + u) * index_step], rows) : j + u;
            if (indexed && row[u] == padding) row[u] = -1;
        }
#pragma unroll
        for (int u = 0; u < BAG_AHEAD; ++u) {
            const T* place = column + (row[u] < 0 ? 0 : row[u]) * step;
            if constexpr (aligned) {
                load<width>(y[u], place);
            } else {
                for (int e = 0; e < width; ++e) y[u][e] = number(place[e]);
            }
        }
#pragma unroll
        for (int u = 0; u < BAG_AHEAD; ++u) {
            if (row[u] >= 0) {
                const double factor = weighted ? (double)number(weights[(j + u) * weight_step]) : 1.0;
                for (int e = 0; e < width; ++e) all[e] = bag_joined(how, count == 0, all[e], weighted ? (double)y[u][e] * factor : (double)y[u][e]);
                ++count;
            }
        }
    }
    for (int e = 0; e < width; ++e) x[e] = (float)(count == 0 ? empty : how == BAG_MEAN ? all[e] / (double)count : all[e]);
}
