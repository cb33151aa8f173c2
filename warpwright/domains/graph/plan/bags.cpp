// Bags: rows of a table joined to one each (bags.py). The threads share the bags; a bag's rows are joined in order, up to 128 numbers of a row at once,
// which stay in registers. The row that comes sixteen later is fetched meanwhile. A table of 100,000 rows lies in no cache, so that is what a bag waits for.

enum Join { BAG_SUM, BAG_MEAN, BAG_MAX, BAG_MIN, BAG_PROD, BAG_LARGEST };

struct BagForm {
    int64_t rows, step, along;  // of the table, and the distances between its rows and between the numbers of a row
    int64_t width, to_step, to_along, bags, total;  // numbers of a row; the distances in the result; bags, and rows of all of them
    int64_t length;  // of each bag, where no offsets are given
    int64_t index_bag, index_step, weight_bag, weight_step, offset_step;
    int64_t padding, held;  // the row that does not count; how many indices there are, of all bags, or 0 where they do not follow one another
    bool last, first_is_zero, whole;
};

template <Join how, typename T> static inline T bag_joined(bool first, T all, T one) {
    if (how == BAG_MAX) return one != one ? one : all < one ? one : all;
    if (how == BAG_MIN) return one != one ? one : all > one ? one : all;
    if (how == BAG_LARGEST) return first || one > all ? one : all;
    return how == BAG_PROD ? all * one : all + one;
}

template <Join how, int most, typename T, typename I>
static bool join_bag(
    const BagForm& f, const T* table, const I* index, const T* weights, T* to, int64_t before, int64_t from, int64_t end, int64_t width, T begin, T empty) {
    T all[most];
    for (int64_t e = 0; e < most; ++e) all[e] = begin;
    int64_t count = 0;
    for (int64_t j = from; j < end; ++j) {
        const int64_t row = index ? (int64_t)index[j * f.index_step] : j;
        if ((uint64_t)row >= (uint64_t)f.rows) return false;
        if (row == f.padding) continue;
        if (index && j + 16 < f.held - before) {  // of this bag or the next; a prefetch of what is not there does nothing
            const T* const later = table + (int64_t)index[(j + 16) * f.index_step] * f.step;
            for (int64_t e = 0; e < width; e += 64 / (int64_t)sizeof(T)) __builtin_prefetch(later + e * f.along);
        }
        const T* const place = table + row * f.step;
        const T factor = weights ? weights[j * f.weight_step] : T(1);
        const bool first = count++ == 0;
        if (width == most && f.along == 1)
            for (int64_t e = 0; e < most; ++e) all[e] = bag_joined<how, T>(first, all[e], weights ? place[e] * factor : place[e]);
        else
            for (int64_t e = 0; e < width; ++e) all[e] = bag_joined<how, T>(first, all[e], weights ? place[e * f.along] * factor : place[e * f.along]);
    }
    for (int64_t e = 0; e < width; ++e) to[e * f.to_along] = count == 0 ? empty : how == BAG_MEAN ? all[e] / (T)count : all[e];
    return true;
}

template <Join how, int most, typename T, typename I, typename O>
static bool join_bags(const BagForm f, const T* table, const I* index, const O* offsets, const T* weights, T* to, T begin, T empty, int threads) {
    bool right = !f.whole || (int64_t)offsets[f.bags * f.offset_step] == f.total;
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if ((f.total + f.bags) * f.width > 16384) reduction(&& : right)
    for (int64_t b = 0; b < f.bags; ++b) {
        int64_t from = 0, end = f.length;
        if (offsets) {
            from = (int64_t)offsets[b * f.offset_step];
            end = b + 1 < f.bags || f.last ? (int64_t)offsets[(b + 1) * f.offset_step] : f.total;
            if (from < 0 || from > end || end > f.total || (b == 0 && f.first_is_zero && from != 0)) {
                right = false;
                continue;
            }
        }
        for (int64_t d = 0; d < f.width; d += most) {
            const I* const own = index ? index + b * f.index_bag : index;
            const T* const factors = weights ? weights + b * f.weight_bag : weights;
            const int64_t width = f.width - d < most ? f.width - d : most;
            const int64_t before = offsets ? 0 : b * f.length;  // indices of other bags
            T* const into = to + b * f.to_step + d * f.to_along;
            right = join_bag<how, most, T, I>(f, table + d * f.along, own, factors, into, before, from, end, width, begin, empty) && right;
        }
    }
    return right;
}
